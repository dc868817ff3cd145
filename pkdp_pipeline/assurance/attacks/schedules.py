"""Attackers who look at several releases, on independent days, and add up what each of them says."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any

import flint
import numpy as np
from numpy.random import Generator

from pkdp_pipeline.assurance.attacks.bounds import Array, bernstein
from pkdp_pipeline.assurance.attacks.crowd import Crowd
from pkdp_pipeline.assurance.attacks.enumeration import BITS, LARGEST, hockey_stick, laws, size
from pkdp_pipeline.assurance.attacks.simulation import simulated
from pkdp_pipeline.assurance.attacks.sums import BALLS
from pkdp_pipeline.model.arguments import probability, whole_number
from pkdp_pipeline.model.mechanisms import Mechanism

__all__ = ["Day", "EnumeratedSchedule", "Schedule", "SimulatedSchedule", "enumerated_schedule", "simulated_schedule"]

_RATES = (0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
_PILOT = 1_500
_AT_ONCE = 200_000
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Day:
    """One release and the attacker on its day, and how many days are like it."""

    mechanism: Mechanism
    crowd: Crowd
    times: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """What one attacker sees of several releases: given everybody's habits, which she knows, days are independent.

    Releases that are not named are ignored by the attacker.
    """

    days: tuple[Day, ...]

    @property
    def releases(self) -> int:
        """How many releases the attacker looks at."""
        return sum(day.times for day in self.days)


@dataclass(frozen=True, slots=True, kw_only=True)
class EnumeratedSchedule:
    """The divergence of the target's two trajectories at `epsilon`: ``lower ≤ truth ≤ upper``."""

    schedule: Schedule
    epsilon: float
    lower: Fraction
    upper: Fraction


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedSchedule:
    """What a schedule attains at `epsilon` by the sum of its days' scores; fields as of `Simulated`."""

    schedule: Schedule
    epsilon: float
    draws: int
    estimate: float
    lower: float
    upper: float
    confidence: float


def enumerated_schedule(schedule: Schedule, epsilon: float) -> EnumeratedSchedule | None:
    """Return the exact divergence of `schedule`, or None where the product of its days has too many terms.

    Notes
    -----
    *Guarantee*: ``lower ≤ truth ≤ upper``. *Rounding*: outward.
    """
    if any(size(day.mechanism, day.crowd) > LARGEST for day in schedule.days) or schedule.releases > 40:
        return None
    with flint.ctx.workprec(BITS):
        days = [list(laws(day.mechanism, day.crowd, BALLS)) for day in schedule.days for _ in range(day.times)]
        if math.prod(len(day) for day in days) > LARGEST:
            return None
        lower, upper = hockey_stick(map(_together, product(*days)), epsilon, BALLS)
    return EnumeratedSchedule(schedule=schedule, epsilon=float(epsilon), lower=lower, upper=upper)


def _together(pairs: Iterable[tuple[Any, Any]]) -> tuple[Any, Any]:
    first, second = flint.arb(1), flint.arb(1)
    for one, other in pairs:
        first, second = first * one, second * other
    return first, second


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Scored:
    """One day's outputs: probabilities in the first life, and scores; an infinite score has a finite stand-in."""

    first: Array
    scores: Array
    infinite: np.ndarray[tuple[int], np.dtype[np.bool_]]
    times: int

    def log_moment(self, rate: float) -> float:
        logs = np.log(self.first) + rate * self.scores
        return float(np.logaddexp.reduce(logs))

    def draw(self, rate: float, draws: int, generator: Generator) -> tuple[Array, np.ndarray[Any, np.dtype[np.bool_]]]:
        """Return sums of scores, and whether one of them is infinite, under the tilted law."""
        logs = np.log(self.first) + rate * self.scores
        heights = np.cumsum(np.exp(logs - logs.max()))
        total, sure = np.zeros(draws), np.zeros(draws, dtype=bool)
        for _ in range(self.times):
            chosen = np.searchsorted(heights, generator.random(draws) * heights[-1], side="right")
            chosen = np.minimum(chosen, len(heights) - 1)
            total += self.scores[chosen]
            sure |= self.infinite[chosen]
        return total, sure


def simulated_schedule(
    schedule: Schedule, epsilon: float, *, draws: int, confidence: float, generator: Generator
) -> SimulatedSchedule | None:
    """Return what `schedule` attains at `epsilon`, from draws; None where one of several days is too large.

    Parameters
    ----------
    schedule : Schedule
    epsilon : float
    draws : int
    confidence : float
        ``lower`` exceeds the true divergence with probability ``1 - confidence`` at most.
    generator : numpy.random.Generator

    Notes
    -----
    A day's score is the logarithm of the ratio of the probabilities of what it shows, from its enumerated law. Days
    are drawn with probabilities in proportion to ``P e^{λ score}``; on the event that the scores add up to ε at least,
    a draw weighs at most ``M e^{-λ ε}``. The exponent λ is chosen on a pilot sample. *Guarantee*: by the empirical
    Bernstein bound. *Rounding*: ``lower`` down, ``upper`` up.
    """
    draws, error = whole_number("draws", draws, least=2), 1.0 - probability("confidence", confidence)
    if any(size(day.mechanism, day.crowd) > LARGEST for day in schedule.days):
        return _alone(schedule, epsilon, draws, confidence, generator) if schedule.releases == 1 else None
    days = [_scored(day) for day in schedule.days]
    rates = sorted(_RATES, key=lambda rate: -_promise(days, rate, epsilon, draws, error, generator))
    parts = [min(_AT_ONCE, draws - start) for start in range(0, draws, _AT_ONCE)]
    values = np.concatenate([_values(days, rates[0], epsilon, part, generator) for part in parts])
    low, high = bernstein(values, 0.0, _most(days, rates[0], epsilon), error)
    return SimulatedSchedule(
        schedule=schedule,
        epsilon=float(epsilon),
        draws=draws,
        estimate=float(values.mean()),
        lower=max(0.0, low * (1.0 - _ROUNDING)),
        upper=min(1.0, high * (1.0 + _ROUNDING)),
        confidence=float(confidence),
    )


def _alone(
    schedule: Schedule, epsilon: float, draws: int, confidence: float, generator: Generator
) -> SimulatedSchedule:
    (day,) = schedule.days
    found = simulated(day.mechanism, day.crowd, epsilon, draws=draws, confidence=confidence, generator=generator)
    return SimulatedSchedule(
        schedule=schedule,
        epsilon=found.epsilon,
        draws=found.draws,
        estimate=found.estimate,
        lower=found.lower,
        upper=found.upper,
        confidence=found.confidence,
    )


def _scored(day: Day) -> _Scored:
    with flint.ctx.workprec(BITS):
        pairs = [(float(one), float(other)) for one, other in laws(day.mechanism, day.crowd, BALLS)]
    first, second = (np.array(side) for side in zip(*pairs, strict=True))
    # What is less likely than floats can say is left out: an event need not have it.
    seen = first > 1e-290
    first, second = first[seen], second[seen]
    infinite = second < 1e-290
    scores = np.log(first) - np.log(np.where(infinite, 1.0, second))
    top = float(scores[~infinite].max(initial=0.0))
    return _Scored(first=first, scores=np.where(infinite, top + 1.0, scores), infinite=infinite, times=day.times)


def _mass(days: Sequence[_Scored], rate: float) -> float:
    return sum(day.times * day.log_moment(rate) for day in days)


def _values(days: Sequence[_Scored], rate: float, epsilon: float, draws: int, generator: Generator) -> Array:
    """Return independent numbers with the mean ``P[E] - e^ε Q[E]``, or a little less."""
    total, sure = np.zeros(draws), np.zeros(draws, dtype=bool)
    for day in days:
        part, certain = day.draw(rate, draws, generator)
        total += part
        sure |= certain
    weights = np.exp(np.minimum(700.0, _mass(days, rate) - rate * total))
    told = np.where(sure, 1.0, -np.expm1(np.minimum(0.0, epsilon - total)))
    return np.asarray(np.where(total >= epsilon, weights * told, 0.0))


def _most(days: Sequence[_Scored], rate: float, epsilon: float) -> float:
    """Return the largest of the numbers of `_values`: ``e^{-λ s} (1 - e^{ε - s})`` has one maximum."""
    top = _mass(days, rate) - rate * epsilon
    if not any(bool(day.infinite.any()) for day in days):
        top -= (rate + 1.0) * math.log1p(rate) - rate * math.log(rate)
    return math.exp(min(700.0, top)) * (1.0 + 1e-9)


def _promise(
    days: Sequence[_Scored], rate: float, epsilon: float, draws: int, error: float, generator: Generator
) -> float:
    values, log = _values(days, rate, epsilon, _PILOT, generator), math.log(2.0 / error)
    if not values.any():
        return -math.inf
    spread = float(values.std()) * math.sqrt(2.0 * log / draws)
    return float(values.mean()) - spread - 7.0 * _most(days, rate, epsilon) * log / (3.0 * draws)
