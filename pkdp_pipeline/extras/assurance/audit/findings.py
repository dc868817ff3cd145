"""Findings: samples of two lives, judged event by event, by bounds that hold for every number of samples.

Events: what an attacker looks at, from whole outputs down to a number, and which of it speaks for the first life.

An event is chosen on samples that do not judge it.
"""

from __future__ import annotations

import itertools
import json
import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np

from pkdp_pipeline.extras.assurance.audit.operators import HIDDEN, Output
from pkdp_pipeline.model.wording import rounded_down, rounded_up
from pkdp_pipeline.schemas import VERSION

NOTHING = "nothing"
"""Stands for the count of a cell that has no row."""
TARGET = "the target's cell"

Features = Mapping[str, Any]
"""The features of one sample: name → a value that is equal or not. For whole numbers a cutoff is tried, too."""


def of_table(outputs: Sequence[Output], own: frozenset[tuple[str, ...]]) -> Features:
    """Return the features of whole outputs; `own` names the cells of the target's copy, spelled as text."""
    features: dict[str, Any] = {
        "everything": tuple((output.rows, output.exact, output.form, output.said, output.digest) for output in outputs)
    }
    for suffix, output in _numbered(outputs):
        keys, counts = [row[:-1] for row in output.rows], [row[-1] for row in output.rows]
        shown = [count for count in counts if count is not HIDDEN]
        features |= {
            f"the form of the table{suffix}": output.form,
            f"what is said{suffix}": output.said,
            f"the order of the rows{suffix}": _order(keys),
            f"the first and the last row's keys{suffix}": (tuple(keys[:1]), tuple(keys[-1:])),
            f"all keys in their order{suffix}": tuple(keys),
            f"where the target's cells stand{suffix}": tuple(i for i, key in enumerate(keys) if _spelled(key) in own),
            f"the number of rows{suffix}": len(keys),
            f"the number of shown counts{suffix}": len(shown),
            f"the sum of shown counts{suffix}": sum(shown),
            f"the largest shown count{suffix}": max(shown, default=None),
            f"the smallest shown count{suffix}": min(shown, default=None),
        }
        if output.exact:
            features[f"the number of exact counts{suffix}"] = output.exact.count(True)
            features[f"which counts are exact{suffix}"] = output.exact
    return features


def of_cell(outputs: Sequence[Output], keys: Sequence[tuple[str, ...]] | None, shown: tuple[int, ...]) -> Features:
    """Return the features of the cells of one copy, whose names are `keys`; None for the one number of a count.

    `shown` is what the attacker is shown of known people.
    """
    features: dict[str, Any] = {}
    by_output = [_statuses(output, keys) for output in outputs]
    for (suffix, output), (first, *others) in zip(_numbered(outputs), by_output, strict=True):
        features[f"{TARGET}{suffix}"] = first
        if output.exact:
            exact = _marks(output, keys)
            features[f"whether the target's count is exact{suffix}"] = str(exact[0])
            features[f"the target's count where it is exact{suffix}"] = first if exact[0] else "noised"
            features[f"all cells beside the target's, and which are exact{suffix}"] = (first, *others, exact)
        if others:
            features[f"the difference of the first two cells{suffix}"] = _difference(first, others[0])
            features[f"the second cell{suffix}"] = others[0]
    firsts = [statuses[0] for statuses in by_output]
    if len(by_output) > 1:
        numbers = [first for first in firsts if isinstance(first, int)]
        features["the sum over all outputs"] = sum(numbers) if len(numbers) == len(firsts) else None
        features["the smallest of all outputs"] = min(numbers, default=None)
        features["the difference of the first two outputs"] = _difference(firsts[0], firsts[1])
        features["in which outputs the target's cell is shown"] = tuple(isinstance(first, int) for first in firsts)
    if keys is not None and len(keys) > 1:
        places = [{_spelled(row[:-1]): place for place, row in enumerate(output.rows)} for output in outputs]
        shown_counts = [status for statuses in by_output for status in statuses if isinstance(status, int)]
        features["the sum of the target's cell and those beside it"] = sum(shown_counts)
        features["how many of these are shown"] = len(shown_counts)
        features["the smallest of these"] = min(shown_counts, default=None)
        features["the largest of these"] = max(shown_counts, default=None)
        features["the difference of the first and the last cell"] = _difference(by_output[0][0], by_output[0][-1])
        features["the order of all cells beside the target's"] = tuple(
            tuple(sorted(range(len(keys)), key=lambda key: place.get(keys[key], -1))) for place in places
        )
    features["all cells beside the target's"] = (tuple(by_output), shown)
    features["the target's cell in all outputs"] = (tuple(firsts), shown)
    return features


def _numbered(outputs: Sequence[Output]) -> Iterator[tuple[str, Output]]:
    """Yield every output, and what is added to the names of its features."""
    for place, output in enumerate(outputs, 1):
        yield "" if len(outputs) == 1 else f" (output {place})", output


def _statuses(output: Output, keys: Sequence[tuple[str, ...]] | None) -> tuple[Any, ...]:
    """Return the count of every cell, "hidden" for a row without a number, `NOTHING` for none."""
    statuses = {_spelled(row[:-1]): "hidden" if row[-1] is HIDDEN else row[-1] for row in output.rows}
    return (
        tuple(statuses.values())[:1] or (NOTHING,)
        if keys is None
        else tuple(statuses.get(key, NOTHING) for key in keys)
    )


def _marks(output: Output, keys: Sequence[tuple[str, ...]] | None) -> tuple[bool | None, ...]:
    """Return whether the count of every cell is marked as exact; None where nothing is shown."""
    marks = {_spelled(row[:-1]): mark for row, mark in zip(output.rows, output.exact, strict=True)}
    return tuple(marks.values())[:1] or (None,) if keys is None else tuple(map(marks.get, keys))


def _spelled(key: tuple[Any, ...]) -> tuple[str, ...]:
    return tuple(map(str, key))


def _order(keys: Sequence[tuple[Any, ...]]) -> str:
    """Return whether keys go up, down, or both; missing ones last."""
    ranks = [tuple((part is None, str(part)) for part in key) for key in keys]
    ups = any(earlier < later for earlier, later in itertools.pairwise(ranks))
    downs = any(earlier > later for earlier, later in itertools.pairwise(ranks))
    return f"{'up' * ups}{'down' * downs}"


def _difference(first: Any, other: Any) -> int | None:
    return first - other if isinstance(first, int) and isinstance(other, int) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something that can be seen, or not, in a sample: in words, and whether it is."""

    words: str
    holds: Callable[[Features], bool]


def _is_shown(sample: Features) -> bool:
    names = (name for name in sample if name == TARGET or name.startswith(f"{TARGET} (output"))
    return all(isinstance(sample[name], int) for name in names)


FIXED = (
    Event(words=f"{TARGET} is shown", holds=_is_shown),
    Event(words=f"{TARGET} is not shown", holds=lambda sample: not _is_shown(sample)),
)
"""The events that are judged whatever was sampled: a number in all outputs, or none in one of them."""


def chosen(first: Sequence[Features], second: Sequence[Features], epsilon: float) -> Event:
    """Return the event that seems to tell most about the first life, beyond ``e^ε`` times the second.

    Every feature chooses its events on one half of these samples, and the other half tells which is best; the
    winner chooses again on all of them. So a feature with as many values as there are samples gains nothing by that.
    """
    factor = math.exp(epsilon)
    fits, trials = (first[0::2], second[0::2]), (first[1::2], second[1::2])
    best: tuple[float, Callable[..., Event], str] = (-math.inf, _set_of_values, "")
    for name in sorted({name for sample in (*first, *second) for name in sample}):
        values = [sample.get(name) for samples in fits for sample in samples]
        # A truth value is no number to compare, and where nothing else was seen there is no cutoff.
        numbers = any(type(value) is int for value in values)
        for fitted in (_cutoff, _set_of_values) if numbers else (_set_of_values,):
            score = _score(fitted(name, *fits, factor), *trials, factor)
            if score > best[0]:
                best = score, fitted, name
    _, fitted, name = best
    return fitted(name, first, second, factor)


def _score(event: Event, first: Sequence[Features], second: Sequence[Features], factor: float) -> float:
    """Return an estimate of ``P(E) − e^ε Q(E)`` that is a deviation to the safe side."""
    ones, others = (sum(map(event.holds, samples)) for samples in (first, second))
    p, q = (ones + 0.5) / (len(first) + 1), (others + 0.5) / (len(second) + 1)
    spread = p * (1 - p) / (len(first) + 1) + factor**2 * q * (1 - q) / (len(second) + 1)
    return p - factor * q - math.sqrt(spread)


def _set_of_values(name: str, first: Sequence[Features], second: Sequence[Features], factor: float) -> Event:
    ones, others = (Counter(sample.get(name, NOTHING) for sample in samples) for samples in (first, second))
    likelier = {value for value, times in ones.items() if times / len(first) > factor * others[value] / len(second)}
    return Event(words=f"{name}: one of {len(likelier)}", holds=lambda sample: sample.get(name, NOTHING) in likelier)


def _cutoff(name: str, first: Sequence[Features], second: Sequence[Features], factor: float) -> Event:
    """Return that a number reaches a cutoff, from below or from above; what has no number is with them, or not."""
    columns = [[sample.get(name) for sample in samples] for samples in (first, second)]
    numbers = [np.sort([value for value in values if isinstance(value, int)]).astype(np.int64) for values in columns]
    cutoffs = np.unique(np.concatenate(numbers))
    shares = [1 - len(kept) / len(values) for kept, values in zip(numbers, columns, strict=True)]
    with_none = shares[0] > factor * shares[1]
    tails = []
    for above in (True, False):
        p, q = (
            (len(values) - np.searchsorted(values, cutoffs, side="left"))
            if above
            else np.searchsorted(values, cutoffs, side="right")
            for values in numbers
        )
        gains = p / len(first) - factor * (q / len(second))
        place = int(np.argmax(gains))
        tails.append((float(gains[place]), int(cutoffs[place]), above))
    _, cutoff, above = max(tails)

    def beyond(sample: Features) -> bool:
        value = sample.get(name)
        if not isinstance(value, int):
            return with_none
        return value >= cutoff if above else value <= cutoff

    words = f"{name} is at {'least' if above else 'most'} {cutoff}"
    return Event(words=f"{words}, or not shown" if with_none else words, holds=beyond)


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
