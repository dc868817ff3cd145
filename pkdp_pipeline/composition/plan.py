"""Which laws a total is made of, and their product at a ladder of tilts, with a window around each mean."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache, wraps
from typing import Any, TypeVar, cast

from pkdp_pipeline.composition.grid_law import GridLaw
from pkdp_pipeline.composition.loss_laws import (
    Directions,
    EnvelopeLosses,
    Losses,
    NoiseLosses,
    PairLosses,
    ProductLosses,
)
from pkdp_pipeline.composition.tilted_transform import Choice, Factor, Rung, make_rung

_MOST_WAYS = 2_000
"""Most ways to choose directions that are all looked at."""

_WAYS_OF_MANY = 60_000
"""The same for many releases, whose transforms vanish but at a few frequencies."""

_MANY = 100

_LATTICE_CELLS = 2**18


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Laws on one grid: `fixed` ones, and choices of directions, the one with most ways first."""

    step: float
    fixed: tuple[Factor, ...]
    choices: tuple[Choice, ...]


@dataclass(frozen=True, slots=True)
class _Chosen:
    """`times` releases in two orders, `least` to `most` of them in the order `right`."""

    right: Losses
    left: Losses
    times: int
    least: int
    most: int


def make_plan(parts: Sequence[tuple[Directions, int]], participation: int | None) -> Plan:
    """Return the laws whose product dominates the total, for every choice of directions.

    Notes
    -----
    *Participation.* Each of the two lives takes part in at most t of the T releases. A release in which only the
    first takes part has the order `right`, at most t of these; only the second: `left`, at most t. A
    release in which both do, in different cells, has one of each where the value pair is the product of the two; so
    t of each dominate. More factors only help the attacker, so for equal parts t right and t left ones are the
    worst where ``2t ≤ T``, else all numbers that add up to T. Elsewhere the lives differ in at most ``min(2t, T)``
    releases, each dominated by the envelope of all parts in both orders.
    """
    groups: dict[tuple[Losses, Losses | None], int] = {}
    for part, times in parts:
        if times > 0:
            groups[part.right, part.left] = groups.get((part.right, part.left), 0) + times
    total = sum(groups.values())
    if participation is not None and participation < total:
        chosen, fixed = _taking_part(groups, total, participation)
    else:
        open_ways = [(right, left, times) for (right, left), times in groups.items() if left is not None]
        chosen = _affordable([_Chosen(right, left, times, 0, times) for right, left, times in open_ways], total)
        open_choices = {(choice.right, choice.left) for choice in chosen}
        fixed = [
            (right if left is None else EnvelopeLosses(members=(right, left)), times)
            for (right, left), times in groups.items()
            if (right, left) not in open_choices
        ]
    spreads = [(choice.right, choice.times) for choice in chosen] + fixed
    step = grid_step(spreads)
    factors = [
        Factor(law=_law(factor, step), times=times)
        for losses, times in fixed
        for factor in (losses.factors if isinstance(losses, ProductLosses) else (losses,))
    ]
    choices = [
        Choice(_law(each.right, step), _law(each.left, step), each.times, each.least, each.most) for each in chosen
    ]
    choices.sort(key=lambda choice: -choice.ways)
    return Plan(step=step, fixed=tuple(factors), choices=tuple(choices))


def _taking_part(
    groups: dict[tuple[Losses, Losses | None], int], total: int, most: int
) -> tuple[list[_Chosen], list[tuple[Losses, int]]]:
    """Return the choices and fixed factors where nobody takes part more than `most` times."""
    if len(groups) == 1:
        ((right, left),) = groups
        if left is None:
            return [], [(right, most if _is_value_pair(right) else min(2 * most, total))]
        if 2 * most <= total:
            return [], [(right, most), (left, most)]
        return [_Chosen(right, left, total, total - most, most)], []
    singles: dict[Losses, None] = {}
    values = all(_is_value_pair(right) for right, _ in groups)
    for right, left in groups:
        members = right.factors if values and isinstance(right, ProductLosses) else (right, left)
        singles.update((member, None) for member in members if member is not None)
    times = 2 * most if values else min(2 * most, total)
    return [], [(EnvelopeLosses(members=tuple(singles)), times)]


def _is_value_pair(losses: Losses) -> bool:
    """Whether a loss is that of leaving one cell and entering another."""
    factors = losses.factors if isinstance(losses, ProductLosses) else ()
    return [factor.order for factor in factors if isinstance(factor, PairLosses)] == ["right", "left"]


def _affordable(choices: list[_Chosen], total: int) -> list[_Chosen]:
    """Keep as many choices as can all be looked at; the others are covered by envelopes."""
    limit = _WAYS_OF_MANY if total >= _MANY else _MOST_WAYS
    kept: list[_Chosen] = []
    ways = 1
    for choice in sorted(choices, key=lambda choice: -choice.times):
        if ways * (choice.times + 1) <= limit:
            kept.append(choice)
            ways *= choice.times + 1
    if len(kept) < len(choices):
        # A choice for a few of many single releases changes next to nothing.
        kept = [choice for choice in kept if 8 * choice.times >= total]
    return kept


def grid_step(losses: Sequence[tuple[Losses, int]]) -> float:
    """Return a step so fine that splitting onto the grid adds next to nothing to the variance of the total.

    Steps are rounded to a power of √2, so that one more release rarely changes it. Noise alone stays on its lattice.
    """
    noises = sorted({each.noise for each, _ in losses if isinstance(each, NoiseLosses)})
    if noises and all(isinstance(each, NoiseLosses) for each, _ in losses):
        lattice = _lattice(noises, losses)
        if lattice is not None:
            return lattice
    times = sum(count for _, count in losses)
    variance = sum(count * _spread(each) ** 2 for each, count in losses)
    if not variance > 0.0:
        return 2.0**-10
    step = math.sqrt(variance / times) * min(0.035, 0.01 * times**0.25)
    # Among very many narrow laws a wide one must not take too many cells.
    step = max(step, max(_spread(each) for each, _ in losses) * 2.0**-14)
    if len(noises) == 1:
        return float(noises[0] / 2.0 ** math.ceil(math.log2(noises[0] / step)))
    return float(2.0 ** (math.floor(2.0 * math.log2(step)) / 2.0))


def _lattice(noises: list[float], losses: Sequence[tuple[Losses, int]]) -> float | None:
    """Return a step of which every ε0 is a multiple, but for roundoff."""
    whole = sum(count * each.noise * each.cells for each, count in losses if isinstance(each, NoiseLosses))
    for parts in range(1, 65):
        step = noises[0] / parts
        if whole / step > _LATTICE_CELLS:
            break
        if all(abs(float(Fraction(noise) / Fraction(step) - round(noise / step))) < 1e-12 for noise in noises):
            return step
    return None


@lru_cache(maxsize=4096)
def _law(losses: Losses, step: float) -> GridLaw:
    return losses.on_grid(step)


@lru_cache(maxsize=4096)
def _spread(losses: Losses) -> float:
    return losses.spread()


_LEAST_PERIOD = 1024
_MOST_PERIOD = 2**21

_MOST_NUMBERS = 2**22
"""Rungs that keep more numbers than this are not made for wider windows."""

_STEEPEST = 60.0
"""Largest exponent per cell."""


_Method = TypeVar("_Method", bound=Callable[..., Any])


def remembered(method: _Method) -> _Method:
    """Return a method whose results are kept in the `_cache` of its object, by its arguments."""

    @wraps(method)
    def wrapper(self: Any, *args: Any) -> Any:
        key = (method.__name__, *args)
        if key not in self._cache:
            self._cache[key] = method(self, *args)
        return self._cache[key]

    return cast("_Method", wrapper)


@dataclass(frozen=True, slots=True, eq=False)
class Moments:
    """The total at one tilt: logarithm of its moment, range of its mean and its deviation in cells.

    `size` is the sum of the sizes of what the logarithm is a sum of, `factors` the number of laws multiplied.
    """

    log_moment: float
    size: float
    factors: int
    low: float
    high: float
    deviation: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Level:
    """A rung with its window: cells ``low … high``, the logarithm of what may lie above, whether it can be no wider."""

    rung: Rung
    low: int
    high: int
    log_above: float
    final: bool


@dataclass(slots=True, kw_only=True, eq=False)
class Ladder:
    """Rungs of one plan, made when first asked for.

    Parameters
    ----------
    plan : Plan
    """

    plan: Plan
    _cache: dict[Any, Any] = field(default_factory=dict)

    @remembered
    def reach(self) -> tuple[int, int]:
        """Return the first and last cell the total can reach."""
        fixed, choices = self.plan.fixed, self.plan.choices
        low = sum(factor.times * factor.law.start for factor in fixed)
        high = sum(factor.times * factor.law.last for factor in fixed)
        low += sum(choice.times * min(choice.right.start, choice.left.start) for choice in choices)
        high += sum(choice.times * max(choice.right.last, choice.left.last) for choice in choices)
        return low, high

    @remembered
    def rate(self, number: int) -> float:
        """Return the exponents of a ladder: 0, and powers of √2 from where a tilt begins to show."""
        if number == 0:
            return 0.0
        deviation = max(1e-6, self.moments(0).deviation)
        # Rare large losses take effect at exponents far below the inverse deviation.
        laws = [factor.law for factor in self.plan.fixed]
        laws += [law for choice in self.plan.choices for law in (choice.right, choice.left)]
        widest = max(1, *(law.last for law in laws))
        least = math.floor(2.0 * math.log2(min(0.35 / deviation, 1.0 / widest)))
        return float(2.0 ** ((least + number - 1) / 2.0))

    @remembered
    def moments(self, number: int) -> Moments:
        """Return the moments at a rung."""
        rate, factors = self.rate(number), 0
        logs: list[float] = []
        low = high = variance = 0.0
        for factor in self.plan.fixed:
            tilted = factor.law.tilted(rate)
            logs.append(factor.times * tilted.log_moment)
            low += factor.times * tilted.mean
            high += factor.times * tilted.mean
            variance += factor.times * tilted.variance
            factors += factor.times
        for choice in self.plan.choices:
            right, left = choice.right.tilted(rate), choice.left.tilted(rate)
            logs.append(choice.times * max(right.log_moment, left.log_moment))
            ends = [n * right.mean + (choice.times - n) * left.mean for n in (choice.least, choice.most)]
            low += min(ends)
            high += max(ends)
            variance += choice.times * max(right.variance, left.variance)
            factors += choice.times
        size, deviation = math.fsum(map(abs, logs)), math.sqrt(variance)
        return Moments(math.fsum(logs), size, factors, low, high, deviation)

    def nearest(self, epsilon: float) -> int:
        """Return the rung with the smallest Chernoff bound at `epsilon`: mostly the one with the nearest mean."""
        position = epsilon / self.plan.step
        start = self.moments(0)
        if position <= start.high:
            return 0

        def exponent(number: int) -> float:
            rate = self.rate(number)
            return self.moments(number).log_moment - rate * position if rate <= _STEEPEST else math.inf

        guess = (position - start.high) / max(start.deviation**2, 1e-12)
        number = max(1, round(2.0 * math.log2(guess / self.rate(1))) + 1)
        while self.rate(number) > _STEEPEST:
            number -= 1
        # The logarithm of a moment is convex in the exponent, so the bound has one minimum.
        while exponent(number + 1) < exponent(number):
            number += 1
        while number > 0 and exponent(number - 1) <= exponent(number):
            number -= 1
        return number

    @remembered
    def level(self, number: int, doublings: int) -> Level:
        """Return the product at a rung, with a window that holds it, or one some times wider than that."""
        (first, last), moments, rate, plan = self.reach(), self.moments(number), self.rate(number), self.plan
        half = (9.0 + 0.25 * rate * moments.deviation) * moments.deviation + 32.0
        needed = min(last - first + 1.0, moments.high - moments.low + 2.0 * half)
        period = max(_LEAST_PERIOD, 2 ** math.ceil(math.log2(max(2.0, min(needed, float(_MOST_PERIOD))))))
        period = min(_MOST_PERIOD, period * 2**doublings)
        low = first
        if period < last - first + 1:
            low = max(first, math.floor(0.5 * (moments.low + moments.high - period)))
        high = min(last, low + period - 1)
        log_above = self._log_above(number, high) if high < last else -math.inf
        rung = make_rung(plan.fixed, plan.choices, rate, period)
        large = rung.first.size + rung.second.size > _MOST_NUMBERS
        final = high == last or period >= _MOST_PERIOD or large
        return Level(rung=rung, low=low, high=high, log_above=log_above, final=final)

    def _log_above(self, number: int, high: int) -> float:
        """Return the logarithm of a Chernoff bound on the mass of losses above the cell `high`."""
        moments = self.moments(number)
        wanted = self.rate(number) + (high - moments.high) / max(moments.deviation**2, 1e-12)
        near = max(1, round(2.0 * math.log2(max(wanted, 1e-300) / self.rate(1))) + 1)
        best = 0.0
        for other in range(max(1, near - 2), near + 2):
            rate = self.rate(other)
            if rate <= _STEEPEST:
                there = self.moments(other)
                slack = 1e-9 + 1e-12 * (there.size + rate * abs(high) + there.factors)
                best = min(best, there.log_moment - rate * (high + 1) + slack)
        return best
