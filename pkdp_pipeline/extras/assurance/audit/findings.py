"""Findings: samples of two lives, judged event by event, by bounds that hold for every number of samples."""

from __future__ import annotations

import itertools
import json
import math
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Literal

from pkdp_pipeline.extras.assurance.audit.events import FIXED, Features, chosen
from pkdp_pipeline.model import VERSION
from pkdp_pipeline.model.wording import rounded_down, rounded_up

SCHEMA = "pkdp-audit/1"

_RELATIVE_SLACK = 1e-12
"""Bounds are widened by this much, relatively, for the rounding of the special functions."""

Direction = Literal["first", "second"]

#: This many samples of each life are enough to choose an event by; all others judge it.
_MAX_CHOOSING_SAMPLES = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One event, judged.

    Attributes
    ----------
    case : str
        The publication.
    engine : str
        The engine of its frames.
    trial : str
        The attacker by whom it was tried.
    event : str
        The event that the attacker looks for.
    direction : {"first", "second"}
        The target's life in which the event is likelier.
    epsilon : float
    certified : float
        The δ that is certified at ε.
    estimate : float
        How often the event was seen in one life, less e^ε times how often in the other.
    attained_lower : float
        A lower bound of the true difference, with the audit's confidence.
    could_see : float or None
        The smallest estimate that would have been called a loss above the certificate, the event being as rare in the
        other life as it was. None: however often it were seen, nothing could be concluded.
    samples : int
        The number of judging samples, in the life that has fewer.
    """

    case: str
    engine: str
    trial: str
    event: str
    direction: Direction
    epsilon: float
    certified: float
    estimate: float
    attained_lower: float
    could_see: float | None
    samples: int

    @property
    def passed(self) -> bool:
        """Whether no loss above the certificate was found."""
        return self.attained_lower <= self.certified

    @property
    def words(self) -> str:
        """The finding in one line."""
        return (
            f"{self.case}, {self.engine}, {self.trial}: at ε = {self.epsilon:g}, where δ = "
            f"{rounded_up(self.certified)} is certified, at least {rounded_down(self.attained_lower)} is told "
            f"({self.event})."
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class NotAudited:
    """A case that could not be audited, and why."""

    case: str
    engine: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """The findings of an audit.

    Attributes
    ----------
    findings : tuple of Finding
    not_audited : tuple of NotAudited
    confidence : float
        An audit of operators that keep to their certificates passes with at least this probability.
    samples : int
        How many data sets were drawn for each life, where a case asked for no more and no fewer.
    seed : int
        Seed of the data sets; noise has none.
    """

    findings: tuple[Finding, ...]
    not_audited: tuple[NotAudited, ...] = ()
    confidence: float
    samples: int
    seed: int

    @property
    def passed(self) -> bool:
        """Whether no loss above a certificate was found."""
        return all(finding.passed for finding in self.findings)

    def cases(self) -> tuple[Finding, ...]:
        """Return one finding for each case on each engine: the one that fails by most, or could have seen most."""
        grouped: dict[tuple[str, str], list[Finding]] = {}
        for finding in self.findings:
            grouped.setdefault((finding.engine, finding.case), []).append(finding)
        return tuple(map(_representative, grouped.values()))

    def to_json(self) -> str:
        """Return the audit as JSON; ``schemas/audit.v1.json`` describes it."""
        document = {
            "schema": SCHEMA,
            "library": {"name": "pkdp_pipeline", "version": VERSION},
            "passed": self.passed,
            "confidence": self.confidence,
            "samples": self.samples,
            "seed": self.seed,
            "findings": [{**asdict(finding), "passed": finding.passed} for finding in self.findings],
            "not_audited": [asdict(entry) for entry in self.not_audited],
        }
        return json.dumps(document, ensure_ascii=False, indent=2)

    def __str__(self) -> str:
        lines = []
        for finding in self.cases():
            lines.append(f"{'passed' if finding.passed else 'FAILED'}  {finding.engine:8} {finding.case}")
            lines.append(f"        {_detectable(finding) if finding.passed else finding.words}")
        lines += [f"not audited  {entry.engine}: {entry.case}: {entry.reason}" for entry in self.not_audited]
        return "\n".join([*lines, self.conclusion])

    @property
    def conclusion(self) -> str:
        """The result in one sentence."""
        wrong = rounded_up(1.0 - self.confidence)
        if not self.findings:
            return "Nothing was audited."
        if self.passed:
            return (
                f"Passed: {len(self.findings)} events judged, none shows a loss above its certificate. A loss that is "
                f"smaller than what could be seen is not excluded."
            )
        failed = sum(not finding.passed for finding in self.findings)
        return (
            f"FAILED: {failed} of {len(self.findings)} events show a loss above the certificate. Operators that keep "
            f"to theirs fail with probability {wrong} at most."
        )


def _representative(findings: Sequence[Finding]) -> Finding:
    """Return the finding whose lower bound is farthest above its certificate; else the one that could see most."""
    worst = max(findings, key=lambda finding: finding.attained_lower - finding.certified)
    if not worst.passed:
        return worst
    return min(
        findings, key=lambda finding: 2.0 if finding.could_see is None else finding.could_see - finding.certified
    )


def _detectable(finding: Finding) -> str:
    noticed = "nothing" if finding.could_see is None else f"{rounded_up(finding.could_see)} or more"
    return (
        f"ε = {finding.epsilon:g}: estimated {rounded_down(finding.estimate)}, certified "
        f"{rounded_up(finding.certified)}; {noticed} would have been noticed"
    )


def clopper_pearson(successes: int, draws: int, error: float) -> tuple[float, float]:
    """Return (low, high): each side alone fails with probability `error` at most.

    `error`: in (0, 1). The interval as a whole fails with probability ``2 · error`` at most.

    Notes
    -----
    Exact for every number of draws: the quantiles of the beta law (Clopper and Pearson, 1934). *Rounding*: outward.
    """
    from scipy.special import betaincinv

    low, high = 0.0, 1.0
    if successes > 0:
        low = float(betaincinv(successes, draws - successes + 1, error)) * (1.0 - _RELATIVE_SLACK)
    if successes < draws:
        high = min(1.0, float(betaincinv(successes + 1, draws - successes, 1.0 - error)) * (1.0 + _RELATIVE_SLACK))
        # Near 1 the complement has the digits.
        high = min(high, 1.0 - float(betaincinv(draws - successes, successes + 1, error)) * (1.0 - _RELATIVE_SLACK))
        high = max(high, successes / draws)
    return low, high


def difference_below(first: tuple[int, int], second: tuple[int, int], epsilon: float, error: float) -> float:
    """Return a lower bound of ``P[E] - e^ε Q[E]`` that fails with probability `error` at most.

    `first` and `second`: how often E happened, and how many independent draws there were, under P and under Q.
    """
    low, _ = clopper_pearson(*first, error / 2.0)
    _, high = clopper_pearson(*second, error / 2.0)
    return low - math.exp(epsilon) * high * (1.0 + _RELATIVE_SLACK)


def judgements(levels: Sequence[bool], epsilons: int) -> int:
    """Return how many events are judged, so that the error can be shared beforehand: of each level, fixed ones too."""
    return sum(2 * epsilons * (1 + (len(FIXED) if fixed else 0)) for fixed in levels)


def judged(
    samples: tuple[Sequence[Features], Sequence[Features]],
    *,
    fixed: bool,
    case: str,
    engine: str,
    trial: str,
    epsilons: Sequence[float],
    certified: Callable[[float], float],
    error: float,
) -> Iterator[Finding]:
    """Yield a finding for every event, in both directions, from samples of the first and of the second life.

    The event that is chosen on the first samples, a third of them and never more than `_MAX_CHOOSING_SAMPLES`, is
    judged by the others; those that are `fixed` are judged by all, where they are judged. `error`: how likely one event
    may be judged wrongly.
    """
    sides: tuple[tuple[Direction, Sequence[Features], Sequence[Features]], ...] = (
        ("first", *samples),
        ("second", *samples[::-1]),
    )
    for (direction, likelier, other), epsilon in itertools.product(sides, epsilons):
        size, other_size = (min(_MAX_CHOOSING_SAMPLES, len(side) // 3) for side in (likelier, other))
        events = [(chosen(likelier[:size], other[:other_size], epsilon), likelier[size:], other[other_size:])]
        events += [(event, likelier, other) for event in FIXED if fixed]
        delta = certified(epsilon)
        for event, ones, others in events:
            p, q = (sum(map(event.holds, judging)) for judging in (ones, others))
            yield Finding(
                case=case,
                engine=engine,
                trial=trial,
                event=event.words,
                direction=direction,
                epsilon=epsilon,
                certified=delta,
                estimate=p / len(ones) - math.exp(epsilon) * q / len(others),
                attained_lower=difference_below((p, len(ones)), (q, len(others)), epsilon, error),
                could_see=_could_see(len(ones), (q, len(others)), epsilon, delta, error),
                samples=min(len(ones), len(others)),
            )


def _could_see(draws: int, other: tuple[int, int], epsilon: float, delta: float, error: float) -> float | None:
    """Return the smallest estimate whose lower bound is above `delta`, as often as the event was seen in `other`."""
    if difference_below((draws, draws), other, epsilon, error) <= delta:
        return None
    events = bisect_left(
        range(draws), True, key=lambda count: difference_below((count, draws), other, epsilon, error) > delta
    )
    return events / draws - math.exp(epsilon) * other[0] / other[1]
