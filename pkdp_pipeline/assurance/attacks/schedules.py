"""Attackers who look at several releases, on independent days, and add up what each of them says.

Schedules are one attacker for every release, in both directions, as the rule of a total allows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product

import flint
import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from pkdp_pipeline.assurance.attacks.crowd import Crowd
from pkdp_pipeline.assurance.attacks.enumeration import (
    BITS,
    LARGEST,
    Enumerated,
    enumerated,
    hockey_stick,
    laws,
    size,
)
from pkdp_pipeline.assurance.attacks.matching import knowing_all, matching
from pkdp_pipeline.assurance.attacks.one_cell import Array
from pkdp_pipeline.assurance.attacks.simulation import mean_below, simulated
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


Schedule = tuple[Day, ...]
"""What one attacker sees of several releases: given everybody's habits, which she knows, days are independent.

Releases that are not named are ignored by the attacker.
"""


def releases_in(schedule: Schedule) -> int:
    """Return how many releases the attacker looks at."""
    return sum(day.times for day in schedule)


def enumerated_schedule(schedule: Schedule, epsilon: float) -> Enumerated | None:
    """Return the exact divergence of `schedule`, or None where the product of its days has too many terms.

    Notes
    -----
    *Guarantee*: ``lower ≤ truth ≤ upper``. *Rounding*: outward.
    """
    if any(size(day.mechanism, day.crowd) > LARGEST for day in schedule) or releases_in(schedule) > 40:
        return None
    with flint.ctx.workprec(BITS):
        days = [list(laws(day.mechanism, day.crowd)) for day in schedule for _ in range(day.times)]
        if math.prod(map(len, days)) > LARGEST:
            return None
        pairs = ((math.prod(one for one, _ in seen), math.prod(other for _, other in seen)) for seen in product(*days))
        return hockey_stick(pairs, epsilon)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Scored:
    """One day's outputs: probabilities in the first life, and scores; an infinite score has a finite stand-in."""

    first: Array
    scores: Array
    infinite: NDArray[np.bool_]
    times: int

    def logs(self, rate: float) -> Array:
        return np.asarray(np.log(self.first) + rate * self.scores)


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
    if any(size(day.mechanism, day.crowd) > LARGEST for day in schedule):
        if releases_in(schedule) > 1:
            return None
        (only,) = schedule
        return simulated(only.mechanism, only.crowd, epsilon, draws=draws, error=error, generator=generator)
    days = [_scored(day) for day in schedule]

    def promise(rate: float) -> float:
        values = _values(days, rate, epsilon, _PILOT, generator)
        return mean_below(values, 0.0, _most(days, rate, epsilon), error, draws=draws)

    best = max(_RATES, key=promise)
    parts = [min(_AT_ONCE, draws - start) for start in range(0, draws, _AT_ONCE)]
    values = np.concatenate([_values(days, best, epsilon, part, generator) for part in parts])
    return max(0.0, mean_below(values, 0.0, _most(days, best, epsilon), error))


def _scored(day: Day) -> _Scored:
    with flint.ctx.workprec(BITS):
        pairs = [(float(one), float(other)) for one, other in laws(day.mechanism, day.crowd)]
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
        logs = day.logs(rate)
        heights = np.cumsum(np.exp(logs - logs.max()))
        for _ in range(day.times):
            chosen = np.searchsorted(heights, generator.random(draws) * heights[-1], side="right")
            chosen = np.minimum(chosen, len(heights) - 1)
            total += day.scores[chosen]
            sure |= day.infinite[chosen]
    weights = np.exp(np.minimum(700.0, _mass(days, rate) - rate * total))
    told = np.where(sure, 1.0, -np.expm1(np.minimum(0.0, epsilon - total)))
    return np.asarray(np.where(total >= epsilon, weights * told, 0.0))


def _most(days: Sequence[_Scored], rate: float, epsilon: float) -> float:
    """Return the largest of the numbers of `_values`: ``e^{-λ s} (1 - e^{ε - s})`` has one maximum."""
    top = _mass(days, rate) - rate * epsilon
    if not any(bool(day.infinite.any()) for day in days):
        top -= (rate + 1.0) * math.log1p(rate) - rate * math.log(rate)
    return math.exp(min(700.0, top)) * (1.0 + 1e-9)


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
    return tuple(filter(None, found))


def worst_schedules(certificate: ComposedCertificate) -> tuple[Schedule, ...]:
    """Return schedules of attackers to whom nobody is unknown, for what noise promises against anybody."""
    parts = [part for part in _attacked(certificate, unsure=False) if part[0].worst_case_bound is not None]
    if not parts or certificate.worst_case_bound is None:
        return ()
    if certificate.rule in _LARGEST:
        return tuple(dict.fromkeys(_singles(parts, knowing_all)))
    kinds, stop = [knowing_all(part) for part, _ in parts], 2 * _participation(certificate)
    for one in certificate.evidence:
        if isinstance(one, BoundedSensitivity):  # in so many releases two lives differ: a move changes two numbers
            stop = one.changes // (2 if certificate.protects == "value" else 1)
            break
    # The same place of every list: all towards one life, or all towards the other.
    chosen = ([crowds[at % len(crowds)] for crowds in kinds] for at in range(max(map(len, kinds))))
    return tuple(filter(None, dict.fromkeys(_schedule(parts, crowds, stop=stop) for crowds in chosen)))


def _attacked(certificate: ComposedCertificate, *, unsure: bool = True) -> list[_Part]:
    """Return the releases that an attacker on the total looks at."""
    return [
        (part, times)
        for part, times in certificate.parts
        if isinstance(part, ReleaseCertificate)
        and part.protects == certificate.protects
        and (part.has_partial_knowledge or not unsure)
    ]


def _participation(certificate: ComposedCertificate) -> float:
    """Return in how many releases a person may be."""
    return next((one.times for one in certificate.evidence if isinstance(one, BoundedParticipation)), math.inf)


def _schedule(
    parts: Iterable[_Part], crowds: Iterable[Crowd | None], start: float = 0, stop: float = math.inf
) -> Schedule:
    """Return the days of the releases from `start` to `stop`, counted through all of them, that have an attacker."""
    days, before = [], 0
    for (part, times), crowd in zip(parts, crowds, strict=True):
        number = min(before + times, stop) - max(before, start)
        before += times
        if crowd is not None and number > 0:
            days.append(Day(mechanism=part.mechanism, crowd=crowd, times=int(number)))
    return tuple(days)


def _singles(parts: Iterable[_Part], crowds: Callable[[ReleaseCertificate], Iterable[Crowd]]) -> Iterator[Schedule]:
    """Yield the attackers on any one release."""
    for part, _ in parts:
        for crowd in crowds(part):
            yield (Day(mechanism=part.mechanism, crowd=crowd),)


def _independent(certificate: ComposedCertificate, parts: Sequence[_Part], epsilon: float) -> Iterator[Schedule]:
    most, total = _participation(certificate), sum(times for _, times in parts)
    days = max(1, min(2 * most, total))
    for lean in (0.0, 0.5, 1.0):
        sides = [_strongest(part, epsilon / days, lean) for part, _ in parts]
        right, left = ([both[at] for both in sides] for at in (0, 1))
        # Each life takes part in `most` releases, of which the other life is in none.
        yield _schedule(parts, right, stop=most)
        yield _schedule(parts, left, stop=most)
        if math.isinf(most):
            more, fewer = ([(part, (times + extra) // 2) for part, times in parts] for extra in (1, 0))
            yield (*_schedule(more, right), *_schedule(fewer, left))
        elif certificate.protects == "presence":
            yield (*_schedule(parts, right, stop=most), *_schedule(parts, left, most, 2 * most))


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
