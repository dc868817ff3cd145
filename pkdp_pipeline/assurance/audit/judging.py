"""Judging: samples of two lives become findings, by bounds that hold for every number of samples."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from pkdp_pipeline.assurance.attacks.bounds import difference_below
from pkdp_pipeline.assurance.audit.events import Event, chosen, fixed
from pkdp_pipeline.assurance.audit.features import Features
from pkdp_pipeline.assurance.audit.findings import Direction, Finding

__all__ = ["Samples", "judged", "judgements"]

Certified = Callable[[float], float]

#: So many samples of each life are enough to choose an event by; all others judge it.
_CHOOSING = 400


@dataclass(slots=True)
class Samples:
    """Features of outputs, in the order in which they were drawn, of both lives.

    `shown` says that the events about the target's cell being shown are judged, too.
    """

    shown: bool
    first: list[Features] = field(default_factory=list)
    second: list[Features] = field(default_factory=list)


def judgements(samples: Sequence[bool], epsilons: int) -> int:
    """Return how many events are judged, so that the error can be shared beforehand; see `judged`."""
    return sum(2 * epsilons * (1 + (len(fixed()) if shown else 0)) for shown in samples)


def judged(
    samples: Samples,
    *,
    case: str,
    engine: str,
    trial: str,
    epsilons: Sequence[float],
    certified: Certified,
    error: float,
) -> list[Finding]:
    """Return a finding for every event, in both directions.

    The event that is chosen on the first samples, a third of them and never more than `_CHOOSING`, is judged by the
    others; those that are fixed are judged by all.

    Parameters
    ----------
    error : float
        How likely one event may be judged wrongly.
    """
    findings = []
    directions: tuple[tuple[Direction, list[Features], list[Features]], ...] = (
        ("first", samples.first, samples.second),
        ("second", samples.second, samples.first),
    )
    for direction, likelier, other in directions:
        looked = tuple(min(_CHOOSING, len(samples) // 3) for samples in (likelier, other))
        for epsilon in epsilons:
            events: list[tuple[Event, Sequence[Features], Sequence[Features]]] = [
                (
                    chosen(likelier[: looked[0]], other[: looked[1]], epsilon),
                    likelier[looked[0] :],
                    other[looked[1] :],
                )
            ]
            events += [(event, likelier, other) for event in fixed() if samples.shown]
            for event, ones, others in events:
                p, q = (sum(map(event.holds, judging)) for judging in (ones, others))
                delta = certified(epsilon)
                findings.append(
                    Finding(
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
                )
    return findings


def _could_see(draws: int, other: tuple[int, int], epsilon: float, delta: float, error: float) -> float | None:
    """Return the smallest estimate whose lower bound is above `delta`, as often as the event was seen in `other`."""
    if difference_below((draws, draws), other, epsilon, error) <= delta:
        return None
    low, high = 0, draws
    while high - low > 1:
        middle = (low + high) // 2
        if difference_below((middle, draws), other, epsilon, error) > delta:
            high = middle
        else:
            low = middle
    return high / draws - math.exp(epsilon) * other[0] / other[1]
