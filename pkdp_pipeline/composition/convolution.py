"""The total of independent releases, by convolution of their privacy losses."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from pkdp_pipeline.composition.grid_law import GridLaw, profile_at
from pkdp_pipeline.composition.loss_laws import Directions
from pkdp_pipeline.composition.plan import Plan, make_plan
from pkdp_pipeline.composition.score_attack import attained_by_scores
from pkdp_pipeline.composition.tilted_transform import Accumulated, Rung, accumulate, make_rung, nothing
from pkdp_pipeline.profiles.inversion import smallest_epsilon
from pkdp_pipeline.profiles.rounding import UNIT, Array

__all__ = ["Convolved"]

_LEAST_PERIOD = 1024
_MOST_PERIOD = 2**21

_NEGLIGIBLE = -45.0
"""Logarithm of the share of δ that may lie above the window."""

_STEEPEST = 60.0
"""Largest exponent per cell."""

_SLACK = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Moments:
    """The total at one tilt: logarithm of its moment, range of its mean and its deviation in cells."""

    log_moment: float
    size: float
    low: float
    high: float
    deviation: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Level:
    """A rung with its window: cells ``low … high``, and the logarithm of what may lie above."""

    rung: Rung
    low: int
    high: int
    log_above: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Convolved:
    """Privacy profile of independent releases together.

    Parameters
    ----------
    theorem : str
        Which rule uses the profile.
    parts : tuple of (Directions, int)
        Losses of each release, and how many releases are like it.
    participation : int, optional
        Nobody takes part in more than this many of the releases, in either of the two lives.

    Notes
    -----
    *Guarantee*: the certified side is never below the divergence of the product of the parts' dominating pairs, for
    every choice of their directions; δ is 0 for no parts. Where few choices exist all are evaluated; elsewhere each
    part is replaced by the pair, its own mirror image, that dominates both its orders. *Rounding*: upward, with the
    budget of `docs/numerics.md`; the grid widens the result by about 0.05 % in ε. The attained side is that of an
    attacker who adds up scores, see `pkdp_pipeline.composition.score_attack`; 0 where none is known. *Source*:
    `docs/mathematics.md`, "Composition over a schedule", rules 2 and 5.
    """

    theorem: str
    parts: tuple[tuple[Directions, int], ...]
    participation: int | None = None
    _cache: dict[Any, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def slack(self) -> float:
        """Return how far δ may jump where one tilt takes over from another."""
        return _SLACK

    def bracket(self, epsilons: Array) -> tuple[Array, Array]:
        """Return (attained, certified) arrays; see `pkdp_pipeline.profiles.bound.Bound`."""
        upper = np.array([self._at(epsilon, leading=False) for epsilon in epsilons.tolist()])
        lower = attained_by_scores(self.parts, self.participation, epsilons)
        return np.minimum(lower, upper), upper

    def smallest_epsilon(self, target: float) -> float:
        """Return an ε at which the certified δ is at most `target`, as small as can be found, or `math.inf`."""
        found = smallest_epsilon(lambda epsilon: self._towards(target, epsilon), target, _SLACK)
        if math.isinf(found) or self._at(found, leading=False) <= target:
            return found
        return smallest_epsilon(lambda epsilon: self._at(epsilon, leading=False), target, _SLACK)

    def _towards(self, target: float, epsilon: float) -> float:
        """Return the certified δ of the leading choice, or, far from `target`, a number on the same side of it."""
        told = float(self._disclosed(leading=True).max())
        if target > 0.0 and told <= target and 0.0 < epsilon < self._reach()[1] * self._plan().step:
            number = self._nearest(epsilon)
            moments, position = self._moments(number), epsilon / self._plan().step
            rate = self._rate(number) / self._plan().step
            exponent = moments.log_moment - self._rate(number) * position
            # Chernoff's bound, and about what δ is for a normal tilted law.
            if exponent + told / target < math.log(target) - 3.0:
                return told + math.exp(exponent)
            apart = (position - moments.high) / max(moments.deviation, 1e-300)
            width = 2.5 * moments.deviation * self._plan().step
            guess = exponent - 0.5 * apart * apart - math.log1p(rate * (1.0 + rate) * width)
            if rate > 0.0 and abs(apart) < 3.0 and guess > math.log(target) + 4.0:
                return math.exp(min(0.0, guess))
        return self._at(epsilon, leading=True)

    def with_part(self, part: Directions, times: int = 1) -> Convolved:
        """Return the total with one more part; where it fits the same grid, transforms are used again.

        The result is the same as that of a new object, bit by bit.
        """
        more = Convolved(theorem=self.theorem, parts=(*self.parts, (part, times)), participation=self.participation)
        old, new = self._plan(), more._plan()
        known = len(old.fixed)
        if new.step == old.step and new.fixed[:known] == old.fixed and new.choices == old.choices:
            more._cache["before"] = (known, {key: value for key, value in self._cache.items() if key[0] == "product"})
        return more

    def _plan(self) -> Plan:
        if "plan" not in self._cache:
            self._cache["plan"] = make_plan(self.parts, self.participation)
        plan: Plan = self._cache["plan"]
        return plan

    def _at(self, epsilon: float, *, leading: bool) -> float:
        """Return the certified δ at one ε; with `leading`, for the most `right` laws only."""
        plan = self._plan()
        told = self._disclosed(leading)
        # Beyond the largest finite loss only infinite ones are left; compared exactly.
        if not (plan.fixed or plan.choices) or Fraction(epsilon) >= Fraction(plan.step) * self._reach()[1]:
            return min(1.0, float(told.max()))
        if (laws := self._alone(leading)) is not None:
            return max(profile_at(law, plan.step, epsilon) for law in laws)
        number = self._nearest(epsilon)
        level = self._level(number)
        position = epsilon / plan.step
        while number and level.low > position:
            number -= 1
            level = self._level(number)
        if level.low > position:
            return 1.0
        moments = self._moments(number)
        rate = level.rung.rate
        pad = 8.0 * UNIT * (abs(level.high) + abs(position)) + 1e-300
        cells = np.arange(math.floor(position), level.high + 1, dtype=np.float64)
        away = np.maximum(0.0, cells - position + pad)
        with np.errstate(under="ignore"):
            kernel = np.exp(-rate * away) * -np.expm1(-plan.step * away) * (1.0 + 24.0 * UNIT)
        values, error = level.rung.pair_with(kernel, math.floor(position), leading)
        exponent = moments.log_moment - rate * position
        exponent += 2.0 * rate * pad + 8.0 * UNIT * (moments.size + rate * (abs(level.high) + position))
        scale = math.exp(min(exponent, 700.0)) * (1.0 + 8.0 * UNIT)
        above = math.exp(min(level.log_above, 0.0))
        finite = (np.maximum(0.0, values + error) * scale + above) * (1.0 + 8.0 * UNIT)
        total = float((finite + told).max()) * (1.0 + 4.0 * UNIT)
        return min(1.0, math.nextafter(total, math.inf))

    def _alone(self, leading: bool) -> tuple[GridLaw, ...] | None:
        """Return the laws of a total of one single factor, which needs no transform."""
        plan = self._plan()
        if sum(factor.times for factor in plan.fixed) + sum(choice.times for choice in plan.choices) != 1:
            return None
        if plan.fixed:
            return (plan.fixed[0].law,)
        choice = plan.choices[0]
        return (choice.right,) if leading or choice.least == 1 else (choice.left, choice.right)

    def _disclosed(self, leading: bool) -> Array:
        """Return at or above the mass of infinite losses, for every choice of directions."""
        if ("told", leading) not in self._cache:
            plan = self._plan()
            first = np.zeros((1, 2))
            second = np.zeros((1, 2))
            for factor in plan.fixed:
                second = second + factor.times * _logs_of_rest(factor.law.infinite, factor.law.total)
            for index, choice in enumerate(plan.choices):
                ways = np.arange(choice.least, choice.most + 1, dtype=np.float64)[:, None]
                right, left = (_logs_of_rest(law.infinite, law.total) for law in (choice.right, choice.left))
                rows = ways * right + (choice.times - ways) * left
                if index == 0:
                    first = rows
                else:
                    second = (second[:, None, :] + rows[None, :, :]).reshape(-1, 2)
            if leading:
                first, second = first[-1:], second[-1:]
            together = first[:, None, :] + second[None, :, :]
            self._cache["told", leading] = -np.expm1(together[..., 0]) * np.exp(together[..., 1]) * (1.0 + 1e-12)
        told: Array = self._cache["told", leading]
        return told

    def _reach(self) -> tuple[int, int]:
        """Return the first and last cell the total can reach."""
        if "reach" not in self._cache:
            plan = self._plan()
            low = sum(factor.times * factor.law.start for factor in plan.fixed)
            high = sum(factor.times * factor.law.last for factor in plan.fixed)
            low += sum(choice.times * min(choice.right.start, choice.left.start) for choice in plan.choices)
            high += sum(choice.times * max(choice.right.last, choice.left.last) for choice in plan.choices)
            self._cache["reach"] = (low, high)
        low, high = self._cache["reach"]
        return low, high

    def _rate(self, number: int) -> float:
        """Return the exponents of a ladder: 0, and powers of √2 from about a third of the inverse deviation."""
        if number == 0:
            return 0.0
        if "least" not in self._cache:
            deviation = max(1e-6, self._moments(0).deviation)
            self._cache["least"] = math.floor(2.0 * math.log2(0.35 / deviation))
        return float(2.0 ** ((self._cache["least"] + number - 1) / 2.0))

    def _moments(self, number: int) -> _Moments:
        key = ("moments", number)
        if key not in self._cache:
            rate = self._rate(number)
            logs: list[float] = []
            low = high = variance = 0.0
            for factor in self._plan().fixed:
                tilted = factor.law.tilted(rate)
                logs.append(factor.times * tilted.log_moment)
                low += factor.times * tilted.mean
                high += factor.times * tilted.mean
                variance += factor.times * tilted.variance
            for choice in self._plan().choices:
                right, left = choice.right.tilted(rate), choice.left.tilted(rate)
                logs.append(choice.times * max(right.log_moment, left.log_moment))
                ends = [n * right.mean + (choice.times - n) * left.mean for n in (choice.least, choice.most)]
                low += min(ends)
                high += max(ends)
                variance += choice.times * max(right.variance, left.variance)
            self._cache[key] = _Moments(
                log_moment=math.fsum(logs),
                size=math.fsum(map(abs, logs)),
                low=low,
                high=high,
                deviation=math.sqrt(variance),
            )
        moments: _Moments = self._cache[key]
        return moments

    def _nearest(self, epsilon: float) -> int:
        """Return the rung whose mean loss is nearest to `epsilon`."""
        position = epsilon / self._plan().step
        start = self._moments(0)
        if position <= start.high:
            return 0
        guess = (position - start.high) / max(start.deviation**2, 1e-300)
        number = max(1, round(2.0 * math.log2(guess / self._rate(1))) + 1)
        while number > 1 and (self._rate(number) > _STEEPEST or self._moments(number - 1).high >= position):
            number -= 1
        while self._moments(number).high < position and self._rate(number + 1) <= _STEEPEST:
            number += 1
        here, before = self._moments(number).high, self._moments(number - 1).high
        return number - 1 if position - before < here - position else number

    def _level(self, number: int) -> _Level:
        key = ("level", number)
        if key not in self._cache:
            first, last = self._reach()
            moments = self._moments(number)
            rate = self._rate(number)
            half = (9.0 + 0.25 * rate * moments.deviation) * moments.deviation + 32.0
            needed = min(last - first + 1.0, moments.high - moments.low + 2.0 * half)
            period = max(_LEAST_PERIOD, 2 ** math.ceil(math.log2(max(2.0, min(needed, float(_MOST_PERIOD))))))
            while True:
                low = first
                if period < last - first + 1:
                    low = max(first, math.floor(0.5 * (moments.low + moments.high - period)))
                high = min(last, low + period - 1)
                log_above = self._log_above(number, high) if high < last else -math.inf
                enough = log_above <= moments.log_moment - rate * moments.high + _NEGLIGIBLE
                if enough or period >= _MOST_PERIOD:
                    break
                period *= 2
            plan = self._plan()
            multiplications = sum(factor.times + 1 for factor in plan.fixed) + sum(
                choice.times + 1 for choice in plan.choices
            )
            rung = make_rung(self._product(number, period), plan.choices, multiplications, rate, period)
            self._cache[key] = _Level(rung=rung, low=low, high=high, log_above=log_above)
        level: _Level = self._cache[key]
        return level

    def _log_above(self, number: int, high: int) -> float:
        """Return the logarithm of a Chernoff bound on the mass of losses above the cell `high`."""
        moments = self._moments(number)
        wanted = self._rate(number) + (high - moments.high) / max(moments.deviation**2, 1e-300)
        near = max(1, round(2.0 * math.log2(max(wanted, 1e-300) / self._rate(1))) + 1)
        best = 0.0
        for other in range(max(1, near - 2), near + 2):
            rate = self._rate(other)
            if rate <= _STEEPEST:
                there = self._moments(other)
                best = min(best, there.log_moment - rate * (high + 1) + 1e-9 + 1e-12 * (there.size + rate * abs(high)))
        return best

    def _product(self, number: int, period: int) -> Accumulated:
        """Return the product of the fixed factors, continued from that of an earlier total where there is one."""
        rate = self._rate(number)
        key = ("product", rate, period)
        if key not in self._cache:
            factors = self._plan().fixed
            known, earlier = self._cache.get("before", (0, {}))
            if key in earlier:
                self._cache[key] = accumulate(earlier[key], factors[known:], rate, period)
            else:
                self._cache[key] = accumulate(nothing(period), factors, rate, period)
        product: Accumulated = self._cache[key]
        return product


def _logs_of_rest(infinite: float, total: float) -> Array:
    """Return ``log(1 - infinite)`` and the logarithm of what the mass exceeds 1 by."""
    rest = math.log1p(-infinite) if infinite < 1.0 else -math.inf
    return np.array([rest, math.log(max(1.0, total * (1.0 + 4.0 * UNIT)))])
