"""The total of independent releases, by convolution of their privacy losses."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from pkdp_pipeline.composition.grid_law import GridLaw, profile_at
from pkdp_pipeline.composition.loss_laws import Directions
from pkdp_pipeline.composition.plan import Ladder, Level, Moments, make_plan, remembered
from pkdp_pipeline.composition.score_attack import attained_by_scores
from pkdp_pipeline.theorems import Bound
from pkdp_pipeline.theorems.bound import smallest_epsilon
from pkdp_pipeline.theorems.rounding import EVALUATED, UNIT, Array

_SLACK = 1e-6

_NEGLIGIBLE = 1e-9
"""Share of δ above the window at which that is not widened any more."""

_NOTHING = -800.0
"""Stands for the logarithm of 0: its exponential does not show beside 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Convolved(Bound):
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

    parts: tuple[tuple[Directions, int], ...]
    participation: int | None = None
    _cache: dict[Any, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def slack(self) -> float:
        """Return how far δ may jump where one tilt takes over from another."""
        return _SLACK

    def rounding(self, epsilons: Array) -> Array:
        """See `pkdp_pipeline.theorems.bound.Bound`."""
        return np.array([self._rounded(epsilon) for epsilon in epsilons.tolist()]).reshape(-1, 2).T

    def bracket(self, epsilons: Array) -> tuple[Array, Array]:
        """Return (attained, certified) arrays; see `pkdp_pipeline.theorems.bound.Bound`."""
        upper = self.certified(epsilons)
        lower = np.array([self._attained(epsilon)[0] for epsilon in epsilons.tolist()])
        return np.minimum(lower, upper), upper

    def certified(self, epsilons: Array) -> Array:
        """Return the certified side of `bracket` without looking for an attack."""
        return np.array([self._at(epsilon) for epsilon in epsilons.tolist()])

    @remembered
    def _attained(self, epsilon: float) -> tuple[float, float]:
        """Return what adding up scores attains, and how far it may be rounded."""
        return attained_by_scores(self.parts, self.participation, epsilon)

    def _rounded(self, epsilon: float) -> tuple[float, float]:
        """Return `rounding` at one ε."""
        attained, wide = self._attained(epsilon)
        upper, doubt = self._evaluated(epsilon, False)
        if upper == 0.0 or not self.parts:
            return 0.0, 0.0
        ladder = self._ladder()
        number = ladder.nearest(epsilon)
        moments, rate, step = ladder.moments(number), ladder.rate(number), ladder.plan.step
        # Every tilted mass is raised by what the sizes of its exponents ask for, and the whole by those of its own.
        reach = max(map(abs, ladder.reach()))
        raised = 32.0 * UNIT * (moments.size + rate * (reach + epsilon / step) + 150.0 * moments.factors)
        # δ falls about as fast as its tilt is steep; near the mean, as the width of the law says.
        steepest = 2.0 * (rate + 1.0 / max(moments.deviation, 1e-3)) / step
        releases = sum(times for _, times in self.parts)
        if self.participation is not None:
            releases = min(releases, 2 * self.participation)
        each = [one.rounding() for part, _ in self.parts for one in (part.right, part.left) if one is not None]
        masses, losses, left = (max(column) for column in zip(*each, strict=True))
        laws: float = releases * (masses + losses * (1.0 + steepest) + left / upper)
        return wide / attained if attained else 0.0, min(1.0, laws + raised + doubt / upper)

    def smallest_epsilon(self, target: float) -> float:
        """Return an ε at which the certified δ is at most `target`, as small as can be found, or `math.inf`."""
        found = smallest_epsilon(lambda epsilon: self._towards(target, epsilon), target, _SLACK)
        if math.isinf(found):
            return found
        if self._at(found) > target:
            found = smallest_epsilon(self._at, target, _SLACK)
        # The largest finite loss is known exactly; a search only comes close to it.
        plan = self._ladder().plan
        end = math.nextafter(max(0.0, plan.step * self._ladder().reach()[1]), math.inf) if plan.fixed else found
        return end if end < found and self._at(end) <= target else found

    def _towards(self, target: float, epsilon: float) -> float:
        """Return the certified δ of the leading choice, or, far from `target`, a number on the same side of it."""
        ladder, told = self._ladder(), float(self._disclosed(True).max())
        step = ladder.plan.step
        if target > 0.0 and told <= target and 0.0 < epsilon < ladder.reach()[1] * step:
            number = ladder.nearest(epsilon)
            moments, position, rate = ladder.moments(number), epsilon / step, ladder.rate(number)
            exponent = moments.log_moment - rate * position
            # Chernoff's bound, and about what δ is for a normal tilted law.
            if exponent + told / target < math.log(target) - 3.0:
                return told + math.exp(exponent)
            apart = (position - moments.high) / max(moments.deviation, 1e-300)
            width = 2.5 * moments.deviation * step
            guess = exponent - 0.5 * apart * apart - math.log1p(rate / step * (1.0 + rate / step) * width)
            if rate > 0.0 and abs(apart) < 3.0 and guess > math.log(target) + 4.0:
                return math.exp(min(0.0, guess))
        return self._at(epsilon, True)

    @remembered
    def _ladder(self) -> Ladder:
        return Ladder(plan=make_plan(self.parts, self.participation))

    def _at(self, epsilon: float, leading: bool = False) -> float:
        """Return the certified δ at one ε; with `leading`, for the most `right` laws only."""
        return self._evaluated(epsilon, leading)[0]

    def _evaluated(self, epsilon: float, leading: bool) -> tuple[float, float]:
        """Return `_at`, and how much less the product of the laws on the grid may give at the least."""
        ladder = self._ladder()
        plan, told = ladder.plan, self._disclosed(leading)
        # Beyond the largest finite loss only infinite ones are left; compared exactly.
        if not (plan.fixed or plan.choices) or Fraction(epsilon) >= Fraction(plan.step) * ladder.reach()[1]:
            return min(1.0, float(told.max())), EVALUATED * float(told.max())
        if (laws := self._alone(leading)) is not None:
            alone = max(profile_at(law, plan.step, epsilon) for law in laws)
            return alone, EVALUATED * alone
        position = epsilon / plan.step
        number, doublings = ladder.nearest(epsilon), 0
        while True:
            level = ladder.level(number, doublings)
            if level.low > position:
                # Below the window nothing is known; only the untilted product starts low enough in any case.
                if number == 0:
                    return self._differing(), EVALUATED * self._differing()
                number -= 1
                continue
            finite, above, doubt = self._finite(level, ladder.moments(number), position, leading)
            certain = float((finite + told).max())
            if level.final or above <= _NEGLIGIBLE * certain or certain >= self._differing():
                break
            doublings += 1
        total = float((finite + above + told).max()) * (1.0 + 8.0 * UNIT)
        return min(self._differing(), math.nextafter(total, math.inf)), doubt + above + EVALUATED * total

    def _finite(self, level: Level, moments: Moments, position: float, leading: bool) -> tuple[Array, float, float]:
        """Return at or above the part of δ from finite losses in the window, for every choice, and from those above.

        The third is how much less the first may be for reasons of rounding.
        """
        step, rate = self._ladder().plan.step, level.rung.rate
        pad = 8.0 * UNIT * (abs(level.high) + abs(position)) + 1e-300
        cells = np.arange(math.floor(position), level.high + 1, dtype=np.float64)
        away = np.maximum(0.0, cells - position + pad)
        with np.errstate(under="ignore"):
            kernel = np.exp(-rate * away) * -np.expm1(-step * away) * (1.0 + 24.0 * UNIT)
        values, error = level.rung.pair_with(kernel, math.floor(position), leading)
        exponent = moments.log_moment - rate * position
        exponent += 2.0 * rate * pad + 8.0 * UNIT * (moments.size + rate * (abs(level.high) + position))
        if exponent > 700.0:
            return np.ones_like(values), 0.0, 1.0
        scale = math.exp(exponent) * (1.0 + 8.0 * UNIT)
        above = math.exp(min(level.log_above, 0.0)) * (1.0 + 8.0 * UNIT)
        return np.maximum(0.0, values + error) * scale * (1.0 + 8.0 * UNIT), above, 2.0 * error * scale

    @remembered
    def _differing(self) -> float:
        """Return at or above the sum of all parts' δ(0): two products differ in total by no more than their factors."""
        plan = self._ladder().plan
        laws: list[tuple[int, tuple[GridLaw, ...]]] = [(factor.times, (factor.law,)) for factor in plan.fixed]
        laws += [(choice.times, (choice.right, choice.left)) for choice in plan.choices]
        apart = [times * max(profile_at(law, plan.step, 0.0) for law in either) for times, either in laws]
        return min(1.0, math.fsum(apart) * (1.0 + 1e-12))

    def _alone(self, leading: bool) -> tuple[GridLaw, ...] | None:
        """Return the laws of a total of one single factor, which needs no transform."""
        plan = self._ladder().plan
        if sum(factor.times for factor in plan.fixed) + sum(choice.times for choice in plan.choices) != 1:
            return None
        if plan.fixed:
            return (plan.fixed[0].law,)
        choice = plan.choices[0]
        return (choice.right,) if leading or choice.least == 1 else (choice.left, choice.right)

    @remembered
    def _disclosed(self, leading: bool) -> Array:
        """Return at or above the mass of infinite losses, for every choice of directions."""
        plan = self._ladder().plan
        logs = [(factor.times, *_logs_of_rest(factor.law)) for factor in plan.fixed]
        first = np.zeros((1, 2))
        second = np.array([[math.fsum(times * each[index] for times, *each in logs) for index in range(2)]])
        for choice in plan.choices:
            ways = np.arange(choice.least, choice.most + 1, dtype=np.float64)[:, None]
            right, left = (np.array(_logs_of_rest(law)) for law in (choice.right, choice.left))
            rows = ways * right + (choice.times - ways) * left
            # Grouped as the transforms of a rung are.
            if len(first) <= len(second):
                first = (first[:, None, :] + rows[None, :, :]).reshape(-1, 2)
            else:
                second = (second[:, None, :] + rows[None, :, :]).reshape(-1, 2)
        if leading:
            first, second = first[-1:], second[-1:]
        together = first[:, None, :] + second[None, :, :]
        told: Array = -np.expm1(together[..., 0]) * np.exp(together[..., 1]) * (1.0 + 1e-12)
        return told


def _logs_of_rest(law: GridLaw) -> tuple[float, float]:
    """Return ``log(1 - infinite)`` and the logarithm of what the mass exceeds 1 by."""
    rest = math.log1p(-law.infinite) if law.infinite < 1.0 else _NOTHING
    return rest, math.log(max(1.0, law.total * (1.0 + 4.0 * UNIT)))
