"""Attackers who look at several releases, on independent days, and add up what each of them says.

Schedules are one attacker for every release, in both directions, as the rule of a total allows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any

import flint
import numpy as np
from numpy.random import Generator

from pkdp_pipeline.assurance.attacks.crowd import Crowd
from pkdp_pipeline.assurance.attacks.draws import Array, mean_below, promised
from pkdp_pipeline.assurance.attacks.enumeration import (
    BITS,
    LARGEST,
    Enumerated,
    enumerated,
    hockey_stick,
    laws,
    size,
)
from pkdp_pipeline.assurance.attacks.laws import BALLS
from pkdp_pipeline.assurance.attacks.matching import knowing_all, matching
from pkdp_pipeline.assurance.attacks.simulation import simulated
from pkdp_pipeline.certificates.composed import ComposedCertificate
from pkdp_pipeline.certificates.release_certificate import ReleaseCertificate
from pkdp_pipeline.model.evidence import BoundedParticipation, BoundedSensitivity
from pkdp_pipeline.model.mechanisms import Mechanism

EPSILONS = (0.1, 0.5, 1.0, 2.0)
"""At these ε the strongest attackers are looked for, unless told otherwise."""

_RATES = (0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
_PILOT = 1_500
_AT_ONCE = 200_000

_COMPARED = 8
"""So many crowds are compared when the strongest for a day is chosen."""

_LARGEST = frozenset({"disjoint_units", "once_per_unit", "one_day_protected", "single"})
"""Rules by which a total is the largest of its parts."""

_Part = tuple[ReleaseCertificate, int]


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


def enumerated_schedule(schedule: Schedule, epsilon: float) -> Enumerated | None:
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
        pairs = ((math.prod(one for one, _ in seen), math.prod(other for _, other in seen)) for seen in product(*days))
        lower, upper = hockey_stick(pairs, epsilon, BALLS)
    return Enumerated(lower=lower, upper=upper)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Scored:
    """One day's outputs: probabilities in the first life, and scores; an infinite score has a finite stand-in."""

    first: Array
    scores: Array
    infinite: np.ndarray[tuple[int], np.dtype[np.bool_]]
    times: int

    def logs(self, rate: float) -> Array:
        return np.asarray(np.log(self.first) + rate * self.scores)

    def draw(self, rate: float, draws: int, generator: Generator) -> tuple[Array, np.ndarray[Any, np.dtype[np.bool_]]]:
        """Return sums of scores, and whether one of them is infinite, under the tilted law."""
        logs = self.logs(rate)
        heights = np.cumsum(np.exp(logs - logs.max()))
        total, sure = np.zeros(draws), np.zeros(draws, dtype=bool)
        for _ in range(self.times):
            chosen = np.searchsorted(heights, generator.random(draws) * heights[-1], side="right")
            chosen = np.minimum(chosen, len(heights) - 1)
            total += self.scores[chosen]
            sure |= self.infinite[chosen]
        return total, sure


def simulated_schedule(
    schedule: Schedule, epsilon: float, *, draws: int, error: float, generator: Generator
) -> float | None:
    """Return what `schedule` attains at `epsilon` at least, from draws; None where one of several days is too large.

    Parameters
    ----------
    schedule : Schedule
    epsilon : float
    draws : int
        2 at least.
    error : float
        The returned number exceeds the true divergence with this probability at most.
    generator : numpy.random.Generator

    Notes
    -----
    A day's score is the logarithm of the ratio of the probabilities of what it shows, from its enumerated law. Days
    are drawn with probabilities in proportion to ``P e^{λ score}``; on the event that the scores add up to ε at least,
    a draw weighs at most ``M e^{-λ ε}``. The exponent λ is chosen on a pilot sample. *Guarantee*: by the empirical
    Bernstein bound. *Rounding*: down.
    """
    if any(size(day.mechanism, day.crowd) > LARGEST for day in schedule.days):
        if schedule.releases > 1:
            return None
        (only,) = schedule.days
        return simulated(only.mechanism, only.crowd, epsilon, draws=draws, error=error, generator=generator)
    days = [_scored(day) for day in schedule.days]
    rates = sorted(_RATES, key=lambda rate: -_promise(days, rate, epsilon, draws, error, generator))
    parts = [min(_AT_ONCE, draws - start) for start in range(0, draws, _AT_ONCE)]
    values = np.concatenate([_values(days, rates[0], epsilon, part, generator) for part in parts])
    return mean_below(values, 0.0, _most(days, rates[0], epsilon), error)


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
    return sum(day.times * float(np.logaddexp.reduce(day.logs(rate))) for day in days)


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
    values = _values(days, rate, epsilon, _PILOT, generator)
    return promised(values, 0.0, _most(days, rate, epsilon), draws, error)


def schedules(certificate: ComposedCertificate, *, epsilons: Sequence[float] = EPSILONS) -> tuple[Schedule, ...]:
    """Return the schedules by which a total is tried; none where no attack is known.

    Parameters
    ----------
    certificate : ComposedCertificate
    epsilons : sequence of float
        Where the strongest attackers are looked for.

    Returns
    -------
    tuple of Schedule
        *Independent given habits*: the strongest attacker of every release, in one direction, in the other, and mixed;
        with bounded participation on as many days as a life has. *Once per unit*, *one day protected*, *disjoint
        units*, *bounded dependence*, *same people* and a total of one: the strongest attacker of any one release.
        Guarantees that rest on noise alone: `worst_schedules`. Releases that are totals themselves, or protect
        something else than the total, are ignored by the attacker. All of it can be enumerated day by day, but for
        the releases of the last group.
    """
    if not certificate.has_partial_knowledge:
        return worst_schedules(certificate)
    parts = _attacked(certificate)
    found: dict[Schedule, None] = {}
    for epsilon in epsilons:
        found |= dict.fromkeys(_singles(parts, partial(matching, epsilon=epsilon)))
        if certificate.rule == "independent_given_habits":
            found |= dict.fromkeys(_independent(certificate, parts, epsilon))
    return tuple(schedule for schedule in found if schedule.days)


def worst_schedules(certificate: ComposedCertificate) -> tuple[Schedule, ...]:
    """Return schedules of attackers to whom nobody is unknown, for what noise promises against anybody."""
    parts = [part for part in _attacked(certificate, partial=False) if part[0].worst_case_bound is not None]
    if not parts or certificate.worst_case_bound is None:
        return ()
    if certificate.rule in _LARGEST:
        return tuple(dict.fromkeys(_singles(parts, knowing_all)))
    found: dict[Schedule, None] = {}
    kinds = [knowing_all(part) for part, _ in parts]
    for at in range(max(map(len, kinds))):
        # The same place of every list: all towards one life, or all towards the other.
        chosen = [crowds[at % len(crowds)] for crowds in kinds]
        found[_limited(zip(parts, chosen, strict=True), _differing(certificate))] = None
    return tuple(schedule for schedule in found if schedule.days)


def _attacked(certificate: ComposedCertificate, *, partial: bool = True) -> list[_Part]:
    """Return the releases that an attacker on the total looks at."""
    return [
        (part, times)
        for part, times in certificate.parts
        if isinstance(part, ReleaseCertificate)
        and part.protects == certificate.protects
        and (part.has_partial_knowledge or not partial)
    ]


def _participation(certificate: ComposedCertificate) -> int | None:
    return next((one.times for one in certificate.evidence if isinstance(one, BoundedParticipation)), None)


def _differing(certificate: ComposedCertificate) -> int | None:
    """Return in how many releases two lives may differ; None for all of them."""
    for one in certificate.evidence:
        if isinstance(one, BoundedSensitivity):  # who moves in a table changes two numbers
            return one.changes // (2 if certificate.protects == "value" else 1)
    most = _participation(certificate)
    return None if most is None else 2 * most


def _limited(days: Iterable[tuple[_Part, Crowd]], most: int | None) -> Schedule:
    """Return a schedule of at most `most` releases."""
    found: list[Day] = []
    left = math.inf if most is None else most
    for (part, times), crowd in days:
        number = int(min(times, left))
        if number > 0:
            found.append(Day(mechanism=part.mechanism, crowd=crowd, times=number))
            left -= number
    return Schedule(days=tuple(found))


def _singles(parts: Iterable[_Part], crowds: Callable[[ReleaseCertificate], Iterable[Crowd]]) -> Iterator[Schedule]:
    """Yield the attackers on any one release."""
    for part, _ in parts:
        for crowd in crowds(part):
            yield Schedule(days=(Day(mechanism=part.mechanism, crowd=crowd),))


def _independent(certificate: ComposedCertificate, parts: Sequence[_Part], epsilon: float) -> Iterator[Schedule]:
    most = _participation(certificate)
    total = sum(times for _, times in parts)
    days = total if most is None else min(2 * most, total)
    for lean in (0.0, 0.5, 1.0):
        sides = [_strongest(part, epsilon / max(1, days), lean) for part, _ in parts]
        right = [(part, one) for part, (one, _) in zip(parts, sides, strict=True) if one is not None]
        left = [(part, other) for part, (_, other) in zip(parts, sides, strict=True) if other is not None]
        if most is None:
            yield _limited(right, None)
            yield _limited(left, None)
            halves = [((part, times - times // 2), crowd) for (part, times), crowd in right]
            halves += [((part, times // 2), crowd) for (part, times), crowd in left]
            yield _limited(halves, None)
        else:
            # Each life takes part in `most` releases, of which the other life is in none.
            first = _limited(right, most)
            yield first
            yield _limited(left, most)
            if certificate.protects == "presence":
                yield Schedule(days=(*first.days, *_others(left, first, min(most, total - first.releases)).days))


def _others(days: Sequence[tuple[_Part, Crowd]], taken: Schedule, most: int) -> Schedule:
    """Return a schedule of releases that `taken` leaves over."""
    used: dict[object, int] = {}
    for day in taken.days:
        used[day.mechanism] = used.get(day.mechanism, 0) + day.times
    rest: list[tuple[_Part, Crowd]] = []
    for (part, times), crowd in days:
        gone = min(times, used.get(part.mechanism, 0))
        used[part.mechanism] = used.get(part.mechanism, 0) - gone
        rest.append(((part, times - gone), crowd))
    return _limited(rest, most)


def _strongest(part: ReleaseCertificate, epsilon: float, lean: float) -> tuple[Crowd | None, Crowd | None]:
    """Return the strongest attackers on one day in both directions, at an ε that is a share of the total.

    On most days the loss is below the mean: people are chosen as for an ε that lies `lean` deviations lower.
    """
    k = part.mechanism.k or 0
    at = epsilon - lean / math.sqrt(k) if k > 1 else epsilon
    crowds = [crowd for crowd in matching(part, at) if size(part.mechanism, crowd) <= LARGEST]

    def attained(crowd: Crowd) -> float:
        found = enumerated(part.mechanism, crowd, max(0.0, epsilon))
        return -1.0 if found is None else float(found.lower)

    right, left = (
        max([crowd for crowd in crowds if (crowd.first == 0) == first][:_COMPARED], key=attained, default=None)
        for first in (True, False)
    )
    return right, left
