"""A ladder of tilts for one total: at each rung the product of all laws, with a window around its mean."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

from pkdp_pipeline.composition.plan import Plan
from pkdp_pipeline.composition.tilted_transform import Rung, accumulate, make_rung

__all__ = ["Ladder", "Level", "Moments", "remembered"]

_LEAST_PERIOD = 1024
_MOST_PERIOD = 2**21

_MOST_NUMBERS = 2**22
"""Rungs that keep more numbers than this are not made for wider windows."""

_STEEPEST = 60.0
"""Largest exponent per cell."""


_Method = TypeVar("_Method", bound=Callable[..., Any])


def remembered(method: _Method) -> _Method:
    """Return a method whose results are kept in the `_cache` of its object, by its arguments."""

    @functools.wraps(method)
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
        multiplications = moments.factors + len(plan.fixed) + len(plan.choices)
        rung = make_rung(accumulate(plan.fixed, rate, period), plan.choices, multiplications, rate, period)
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
