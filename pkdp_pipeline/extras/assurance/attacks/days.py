"""One attacker's gain from one look, by tables of floats, and from several that are independent given the habits.

Tables are for crowds too large, or too many cells, to enumerate. The attacker looks at one of the cells in which the
target's lives differ, or without noise at several; seeing less tells no more. Nothing uses `pkdp_pipeline.theorems`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import combinations_with_replacement, product
from typing import Any

import flint
import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.extras.assurance.attacks.crowd import Crowd, Group
from pkdp_pipeline.extras.assurance.attacks.enumeration import (
    BITS,
    LARGEST,
    Cell,
    Enumerated,
    cell_of,
    enumerated,
    hockey_stick,
    listed_laws,
    size,
)
from pkdp_pipeline.model.mechanisms import Count, Mechanism

Array = NDArray[np.float64]

_ROUNDING = 1e-9
"""Weights and chances in floating point err by less than this, relatively: sums of products of positive
numbers, and SciPy's binomial probabilities, which err by 4e-11 at most for a billion people."""

_LOG_LOST = 80.0
"""Ends of a table leave out a chance of ``e^-80`` at most, each."""

_MAX_STATES = 5_000_000
_MAX_PRODUCTS = 300_000_000
"""Larger tables, and those whose convolution takes more products, are not made."""

_MAX_KNOWN = 2_000
"""Where the known people can be spread in more ways, the attacker forgets who they are."""


def tabulated(mechanism: Mechanism, crowd: Crowd, epsilon: float) -> float:
    """Return what `crowd` attains at `epsilon` at least; not of a `Count` of several cells.

    Notes
    -----
    A total that the crowd sees is not looked at, nor who is known, where that are too many: forgetting what is known
    tells no more. Nor are noised counts where larger ones are exact: from the noise's ε on they tell nothing.
    *Guarantee*: the attained divergence is no smaller; 0 where the tables would be too large. *Rounding*: down.
    """
    if (isinstance(mechanism, Count) or mechanism.totals) and crowd.cells > 1:
        raise ArgumentError("a Count of everybody in several cells is enumerated, not tabulated.")
    cell = cell_of(mechanism, crowd.population)
    if cell.exact is not None:
        cell = Cell(least=cell.exact)
    lives = tuple(life for life in (crowd.first, crowd.second) if life is not None)
    # Noise is drawn for each cell apart: there one cell is looked at; otherwise both of the target's, or all.
    several = [] if cell.noise is not None else [lives, tuple(range(crowd.cells))]
    looks = dict.fromkeys([*((life,) for life in lives), *several])
    return max(_attained(cell, crowd, cells, epsilon) for cells in looks)


def _attained(cell: Cell, crowd: Crowd, cells: Sequence[int], epsilon: float) -> float:
    """Return ``Σ max(0, P - e^ε Q)`` over all that these cells show, beside the known people, rounded down."""
    if cell.noise is not None and 2 * _LOG_LOST / cell.noise > _MAX_STATES:
        return 0.0
    unknown, known = _joint(crowd.unknown, cells), _joint(crowd.known, cells)
    if unknown is None or known is None or known[0].size > min(_MAX_KNOWN, _MAX_PRODUCTS / unknown[0].size):
        unknown, known = _joint((*crowd.unknown, *crowd.known), cells), _joint((), cells)
    if unknown is None or known is None:
        return 0.0
    (others, first_others), (weights, first_known) = unknown, known
    controlled = [crowd.controlled[index] if crowd.controlled else 0 for index in cells]
    starts = [sum(numbers) for numbers in zip(first_others, first_known, controlled, strict=True)]
    # Either life adds the target to one cell, or to none.
    lives = [
        np.pad(others, [(int(life == index), int(life != index)) for index in cells])
        for life in (crowd.first, crowd.second)
    ]
    growth, total = math.exp(min(epsilon, 700.0)), 0.0
    for place in zip(*np.nonzero(weights), strict=True):
        bases = [start + int(number) for start, number in zip(starts, place, strict=True)]
        first, second = (_shown(cell, law, bases) for law in lives)
        gains = first * (1.0 - _ROUNDING) - growth * second * (1.0 + _ROUNDING)
        total += float(weights[place] * gains[gains > 0.0].sum())
    # The second life may be seen outside of its table.
    lost = growth * math.exp(-_LOG_LOST) * (2 * len(cells) * len((*crowd.unknown, *crowd.known)) + 2)
    return max(0.0, total * (1.0 - _ROUNDING) - lost)


def _joint(groups: Sequence[Group], cells: Sequence[int]) -> tuple[Array, list[int]] | None:
    """Return the law of how many people are in each cell, and the counts at which it starts; None if too large."""
    law, start = np.ones((1,) * len(cells)), [0] * len(cells)
    for group in groups:
        ends = [_ends(group.people, group.chances[index]) for index in cells]
        states = math.prod(last - first + 1 for first, last in ends)
        if states > _MAX_STATES or law.size * states > _MAX_PRODUCTS:
            return None
        law = _convolved(law, _table(group, cells, ends))
        start = [before + first for before, (first, _) in zip(start, ends, strict=True)]
    return law, start


def _ends(people: int, chance: float) -> tuple[int, int]:
    """Return between which numbers a binomial one lies, but for ``e^-80`` on each side (Bernstein)."""
    mean, variance = people * chance, people * chance * (1.0 - chance)
    reach = math.sqrt(2.0 * variance * _LOG_LOST) + _LOG_LOST
    return max(0, math.floor(mean - reach)), min(people, math.ceil(mean + reach))


def _table(group: Group, cells: Sequence[int], ends: Sequence[tuple[int, int]]) -> Array:
    """Return how many equal people are in each cell: a binomial number in the first, then one of those who are left."""
    from scipy.stats import binom

    law, left, rest = np.ones(()), np.asarray(group.people), Fraction(1)
    for index, (first, last) in zip(cells, ends, strict=True):
        counts, chance = np.arange(first, last + 1), Fraction(group.chances[index])
        law = law[..., None] * binom.pmf(counts, left[..., None], float(chance / rest) if rest else 0.0)
        left, rest = np.maximum(0, left[..., None] - counts), rest - chance
    return np.nan_to_num(law)


def _convolved(law: Array, other: Array) -> Array:
    """Return the law of a sum, term by term: all are positive, so nothing cancels."""
    if law.ndim == 1:
        return np.convolve(law, other)
    large, small = (law, other) if law.size >= other.size else (other, law)
    total = np.zeros([size + more - 1 for size, more in zip(large.shape, small.shape, strict=True)])
    for place in zip(*np.nonzero(small), strict=True):
        total[tuple(slice(begin, begin + size) for begin, size in zip(place, large.shape, strict=True))] += (
            small[place] * large
        )
    return total


def _shown(cell: Cell, law: Array, bases: Sequence[int]) -> Array:
    """Return the law of what is published of true counts from `bases` on; each cell's last place is a hidden one."""
    for axis, base in enumerate(bases):
        visible = cell.shows(base + np.arange(law.shape[axis]))
        hidden = law.compress(~visible, axis).sum(axis, keepdims=True)
        if cell.noise is None:
            law = np.concatenate([law.compress(visible, axis), hidden], axis)
            continue
        reach = math.ceil(_LOG_LOST / cell.noise)
        noisy = _noised(np.pad(np.where(visible, law, 0.0), reach), cell.noise)
        least = 0 if cell.release is None else min(max(0, cell.release - base + reach), len(noisy))
        law = np.append(noisy[least:], hidden + noisy[:least].sum())
    return law


def _noised(law: Array, noise: float) -> Array:
    """Return the law after two-sided geometric noise: one recursion from the left and one from the right."""
    from scipy.signal import lfilter

    alpha = math.exp(-noise)
    left, right = (lfilter([1.0], [1.0, -alpha], side) for side in (law, law[::-1]))
    return np.asarray((left + alpha * np.append(right[::-1][1:], 0.0)) * (1.0 - alpha) / (1.0 + alpha))


_RATES = (0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
_PILOT = 1_500
_BATCH_SIZE = 200_000

_NEGLIGIBLE_CHANCE = 1e-10
"""Outcomes that are less likely do not say how wide a step is."""

_MAX_SCORE = 300.0
"""A score from here on says which life it is, as far as floats tell."""

Outcomes = Sequence[tuple[Any, Any]]
"""The outcomes of one day, each by its probability in the first life, and in the second."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Day:
    """One release, or one cell of it, and the attacker on its day, and how many days are like it."""

    mechanism: Mechanism
    crowd: Crowd
    times: int = 1


Schedule = tuple[Day, ...]
"""One attacker's view of several releases: given everybody's habits, which she knows, days are independent.

Releases that are not named are ignored by the attacker.
"""


def releases_in(schedule: Schedule) -> int:
    """Return how many releases the attacker looks at, each of a person's cells counted as one."""
    return sum(day.times for day in schedule)


def terms_of(schedule: Schedule) -> int:
    """Return how many terms an enumeration takes; it is done up to `LARGEST`."""
    largest = max(size(day.mechanism, day.crowd) for day in schedule)
    if largest > LARGEST or releases_in(schedule) == 1:
        return largest
    lengths = ((len(listed_laws(day.mechanism, day.crowd)), day.times) for day in schedule)
    return math.prod(math.comb(outcomes + times - 1, times) for outcomes, times in lengths)


def is_enumerated(schedule: Schedule) -> bool:
    """Return whether each of its days is small enough to be enumerated."""
    return all(size(day.mechanism, day.crowd) <= LARGEST for day in schedule)


def enumerated_schedule(schedule: Schedule, epsilon: float) -> Enumerated | None:
    """Return the exact divergence of `schedule`, or None where the product of its days has too many terms.

    Notes
    -----
    *Guarantee*: ``lower ≤ truth ≤ upper``. *Rounding*: outward.
    """
    if releases_in(schedule) == 1:
        return enumerated(schedule[0].mechanism, schedule[0].crowd, epsilon)
    if terms_of(schedule) > LARGEST:
        return None
    return _product([listed_laws(day.mechanism, day.crowd) for day in schedule], schedule, epsilon)


def lumped_schedule(schedule: Schedule, epsilon: float, most: int) -> Fraction | None:
    """Return what `schedule` attains at least, exactly, for an attacker who does not tell all outcomes apart.

    Those of a day whose likelihood ratios are next to each other are one, so that `most` terms are enough. None where a
    day is too large.
    """
    if not is_enumerated(schedule):
        return None
    laws_of = [listed_laws(day.mechanism, day.crowd) for day in schedule]
    apart = max(map(len, laws_of))
    while apart > 2 and math.prod(math.comb(apart + day.times - 1, day.times) for day in schedule) > most:
        apart = max(2, apart * 9 // 10)
    return _product([_lumped(outcomes, apart) for outcomes in laws_of], schedule, epsilon).lower


def _lumped(outcomes: Outcomes, most: int) -> Outcomes:
    """Return outcomes of which at most this many are told apart, by even steps of the logarithm of their ratio."""
    if len(outcomes) <= most:
        return outcomes
    scores = [math.log(max(float(first), 1e-300)) - math.log(max(float(second), 1e-300)) for first, second in outcomes]
    likely = zip(scores, outcomes, strict=True)
    finite = [score for score, (first, _) in likely if abs(score) < _MAX_SCORE and first > _NEGLIGIBLE_CHANCE]
    low, high = min(finite, default=0.0), max(finite, default=0.0)
    width = (high - low) / max(1, most - 2) or 1.0
    lumps: dict[int, tuple[Any, Any]] = {}
    for (chance, other_chance), score in zip(outcomes, scores, strict=True):
        step = int((min(max(score, low), high) - low) / width)
        place = -2 if score <= -_MAX_SCORE else most if score >= _MAX_SCORE else step
        first, second = lumps.get(place, (flint.arb(0), flint.arb(0)))
        lumps[place] = first + chance, second + other_chance
    return tuple(lumps.values())


def _product(laws_of: Sequence[Outcomes], schedule: Schedule, epsilon: float) -> Enumerated:
    with flint.ctx.workprec(BITS):
        days = [list(_repeated(outcomes, day.times)) for outcomes, day in zip(laws_of, schedule, strict=True)]
        pairs = (
            (math.prod(chance for chance, _ in combination), math.prod(other for _, other in combination))
            for combination in product(*days)
        )
        return hockey_stick(pairs, epsilon)


def _repeated(outcomes: Outcomes, times: int) -> Iterator[tuple[Any, Any]]:
    """Yield the probabilities of what this many equal days show, but for their order, which tells nothing."""
    for indices in combinations_with_replacement(range(len(outcomes)), times):
        ways = math.factorial(times) // math.prod(map(math.factorial, Counter(indices).values()))
        first, second = (math.prod(outcomes[index][life] for index in indices) for life in (0, 1))
        yield first * ways, second * ways


def is_simulated(schedule: Schedule, *, most_people: int) -> bool:
    """Return whether `simulated_schedule` can try it: one release, or days that are enumerated one by one."""
    groups = (group for day in schedule for group in (*day.crowd.unknown, *day.crowd.known))
    return sum(group.people for group in groups) <= most_people and (
        releases_in(schedule) == 1 or is_enumerated(schedule)
    )


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
    """Return what `schedule` attains at `epsilon` at least; None where one of several days is too large.

    Several days are drawn; one that is too large to enumerate is tabulated. `draws`: at least 2. `error`: the returned
    number exceeds the true divergence with this probability at most.

    Notes
    -----
    A day's score is the logarithm of the ratio of the probabilities of what it shows, from its enumerated law. Days
    are drawn with probabilities in proportion to ``P e^{λ score}``; on the event that the scores add up to ε at least,
    a draw weighs at most ``M e^{-λ ε}``. The exponent λ is chosen on a pilot sample. *Guarantee*: by the empirical
    Bernstein bound. *Rounding*: down.
    """
    if not is_enumerated(schedule):
        if releases_in(schedule) > 1:
            return None
        (only,) = schedule
        return tabulated(only.mechanism, only.crowd, epsilon)
    days = [_scored(day) for day in schedule]

    def promise(rate: float) -> float:
        values = _values(days, rate, epsilon, _PILOT, generator)
        return mean_below(values, 0.0, _most(days, rate, epsilon), error, draws=draws)

    best = max(_RATES, key=promise)
    parts = [min(_BATCH_SIZE, draws - start) for start in range(0, draws, _BATCH_SIZE)]
    values = np.concatenate([_values(days, best, epsilon, part, generator) for part in parts])
    return max(0.0, mean_below(values, 0.0, _most(days, best, epsilon), error))


def mean_below(values: Array, least: float, most: float, error: float, *, draws: int | None = None) -> float:
    """Return a lower bound of the mean of independent numbers, `least` or more, that fails with `error` at most.

    A value above `most` counts as `most`, which lowers the mean. With `draws`, the bound likely after this many is
    returned, from a few.

    Notes
    -----
    Empirical Bernstein bound (Maurer and Pontil, 2009): ``mean - (√(2 V L / n) + 7 (most - least) L / (3 (n - 1)))``
    with the sample variance V and ``L = ln(2 / error)``; good where the deviation is small against the range.
    """
    if len(values) < 2:
        return least
    if draws is not None and not values.any():
        return -math.inf
    values = np.minimum(values, most)
    number, mean, variance = draws or len(values), float(values.mean()), float(values.var(ddof=1))
    log = math.log(2.0 / error)
    reach = math.sqrt(2.0 * variance * log / number) + 7.0 * (most - least) * log / (3.0 * (number - 1))
    return mean - reach - _ROUNDING * (abs(mean) + math.sqrt(variance))


@lru_cache(maxsize=4)
def _scored(day: Day) -> _Scored:
    pairs = [(float(first), float(second)) for first, second in listed_laws(day.mechanism, day.crowd)]
    first, second = (np.array(side) for side in zip(*pairs, strict=True))
    # What is less likely than floats can say is left out: an event need not have it.
    likely = first > 1e-290
    first, second = first[likely], second[likely]
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
    gains = np.where(sure, 1.0, -np.expm1(np.minimum(0.0, epsilon - total)))
    return np.asarray(np.where(total >= epsilon, weights * gains, 0.0))


def _most(days: Sequence[_Scored], rate: float, epsilon: float) -> float:
    """Return the largest of the numbers of `_values`: ``e^{-λ s} (1 - e^{ε - s})`` has one maximum."""
    top = _mass(days, rate) - rate * epsilon
    if not any(bool(day.infinite.any()) for day in days):
        top -= (rate + 1.0) * math.log1p(rate) - rate * math.log(rate)
    return math.exp(min(700.0, top)) * (1.0 + 1e-9)
