"""The total of independent releases, by convolution of their privacy losses."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from pkdp_pipeline.composition.loss_laws import Directions, GridLaw, on_grid, profile_at, split_pairs
from pkdp_pipeline.composition.score_attack import attained_by_scores
from pkdp_pipeline.composition.tilted_transform import Factor, Ladder, Level, Moments, joined, remembered
from pkdp_pipeline.theorems.bound import Bound, EnvelopeLosses, Losses, NoiseLosses, PairLosses, ProductLosses
from pkdp_pipeline.theorems.numerics import EVALUATED, UNIT, Array, smallest_epsilon

_MAX_CHOICES = 2_000
"""Most ways to choose directions that are all looked at."""

_MAX_CHOICES_OF_MANY = 60_000
"""The same for many releases, whose transforms vanish but at a few frequencies."""

_MANY_RELEASES = 100

_MAX_LATTICE_CELLS = 2**18

_BATCH_OF_PAIRS = 8
"""So many pairs go onto the grid together: their atoms stay in a processor's cache."""


def make_ladder(parts: Sequence[tuple[Directions, int]], participation: int | None, *, covering: bool = True) -> Ladder:
    """Return the laws whose product dominates the total, for every choice of directions.

    Where choices are too many to be looked at one by one they are covered, or, without `covering`, each release is
    replaced by the envelope of its two orders.

    Notes
    -----
    *Participation.* Each of the two lives takes part in at most t of the T releases. A release in which only the
    first takes part has the order `right`, at most t of these; only the second: `left`, at most t. A
    release in which both do, in different cells, has one of each where the value pair is the product of the two; so
    t of each dominate. More factors only help the attacker, so for equal parts t right and t left ones are the
    worst where ``2t ≤ T``, else all numbers that add up to T. Elsewhere the lives differ in at most ``min(2t, T)``
    releases, each dominated by the envelope of all parts in both orders.
    """
    groups: dict[tuple[Losses, ...], int] = {}
    for part, times in parts:
        if times > 0:
            groups[part.orders] = groups.get(part.orders, 0) + times
    total = sum(groups.values())
    if participation is not None and participation < total:
        taken = _taking_part(groups, total, participation)
    else:
        open_ways = [Factor(laws=laws, times=times, most=times) for laws, times in groups.items() if len(laws) > 1]
        ways = math.prod(factor.times + 1 for factor in open_ways)
        if ways > (_MAX_CHOICES_OF_MANY if total >= _MANY_RELEASES else _MAX_CHOICES):
            open_ways = [
                replace(factor, covered=True)
                if covering
                else Factor(laws=(EnvelopeLosses(members=factor.laws),), times=factor.times)
                for factor in open_ways
            ]
        taken = open_ways + [Factor(laws=laws, times=times) for laws, times in groups.items() if len(laws) == 1]
    step = grid_step(taken)
    split = [
        (factor, laws)
        for factor in taken
        for laws in (_factors(factor.laws) if len(factor.laws) == 1 else (factor.laws,))
    ]
    on_the_grid = _laws([losses for _, laws in split for losses in laws], step)
    factors = [
        Factor(
            laws=tuple(on_the_grid[losses] for losses in laws),
            times=factor.times,
            least=factor.least,
            most=factor.most,
            covered=factor.covered,
        )
        for factor, laws in split
    ]
    return Ladder(step=step, factors=tuple(sorted(factors, key=lambda factor: (factor.ways > 1, -factor.ways))))


def _factors(laws: tuple[Losses, ...]) -> list[tuple[Losses, ...]]:
    """Return a law, or each of those that it is the product of, by itself."""
    return [(law,) for losses in laws for law in (losses.members if isinstance(losses, ProductLosses) else (losses,))]


def _taking_part(groups: dict[tuple[Losses, ...], int], total: int, most: int) -> list[Factor[Losses]]:
    """Return the factors where nobody takes part more than `most` times."""
    values = all(_is_value_pair(laws[0]) for laws in groups)
    times = 2 * most if values else min(2 * most, total)
    if len(groups) == 1:
        (laws,) = groups
        if len(laws) == 1:
            return [Factor(laws=laws, times=most if values else times)]
        if 2 * most <= total:
            return [Factor(laws=(losses,), times=most) for losses in laws]
        return [Factor(laws=laws, times=total, least=total - most, most=most)]
    singles = dict.fromkeys(law for laws in groups for each in (_factors(laws) if values else [laws]) for law in each)
    return [Factor(laws=(EnvelopeLosses(members=tuple(singles)),), times=times)]


def _is_value_pair(losses: Losses) -> bool:
    """Whether a loss is that of leaving one cell and entering another."""
    factors = losses.members if isinstance(losses, ProductLosses) else ()
    return [factor.order for factor in factors if isinstance(factor, PairLosses)] == ["right", "left"]


def grid_step(factors: Sequence[Factor[Losses]]) -> float:
    """Return a step so fine that splitting onto the grid adds next to nothing to the variance of the total.

    Steps are rounded to a power of √2, so that one more release rarely changes it. Noise alone stays on its lattice.
    """
    losses = [(factor.laws[0], factor.times) for factor in factors]
    noises = sorted({each.noise for each, _ in losses if isinstance(each, NoiseLosses)})
    if noises and all(isinstance(each, NoiseLosses) for each, _ in losses):
        lattice = _lattice(noises, losses)
        if lattice is not None:
            return lattice
    times = sum(count for _, count in losses)
    variance = sum(count * _spread(each) ** 2 for each, count in losses)
    if not variance > 0.0:
        return 2.0**-10
    # A cover is for many different laws, all of which have to be made; 0.02 % of ε are no loss there.
    coarse = 2.0 if any(factor.covered for factor in factors) else 1.0
    step = math.sqrt(variance / times) * coarse * min(0.035, 0.01 * times**0.25)
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
        if whole / step > _MAX_LATTICE_CELLS:
            break
        if all(abs(float(Fraction(noise) / Fraction(step) - round(noise / step))) < 1e-12 for noise in noises):
            return step
    return None


_MAX_LAWS = 4096
_KEPT_LAWS: dict[tuple[Losses, float], GridLaw] = {}
"""Laws by losses and step, the newest last."""


def _laws(wanted: Sequence[Losses], step: float) -> dict[Losses, GridLaw]:
    """Return laws on the grid; those that are not kept are made, those of waiting times a few at a time."""
    on_the_grid = {losses: _KEPT_LAWS[losses, step] for losses in wanted if (losses, step) in _KEPT_LAWS}
    missing = [losses for losses in dict.fromkeys(wanted) if losses not in on_the_grid]
    pairs = list(dict.fromkeys(replace(losses, order="right") for losses in missing if isinstance(losses, PairLosses)))
    for start in range(0, len(pairs), _BATCH_OF_PAIRS):
        batch = pairs[start : start + _BATCH_OF_PAIRS]
        for losses, laws in zip(batch, split_pairs([losses.pair() for losses in batch], step), strict=True):
            on_the_grid[losses], on_the_grid[replace(losses, order="left")] = laws
    on_the_grid |= {losses: on_grid(losses, step) for losses in missing if not isinstance(losses, PairLosses)}
    _KEPT_LAWS.update(((losses, step), on_the_grid[losses]) for losses in on_the_grid)
    for key in list(_KEPT_LAWS)[:-_MAX_LAWS]:
        _KEPT_LAWS.pop(key, None)
    return on_the_grid


@lru_cache(maxsize=4096)
def _spread(losses: Losses) -> float:
    return losses.spread()


_RELATIVE_SLACK = 1e-6

_MAX_COVER_EXCESS = 0.02
"""Share of δ from which on envelopes are looked at as well, where a cover of choices may be too large by so much."""

_NEGLIGIBLE_SHARE = 1e-9
"""Share of δ above the window at which that is not widened any more."""

_LOG_OF_ZERO = -800.0
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
    every choice of their directions; δ is 0 for no parts. Where few choices exist all are evaluated; elsewhere they are
    covered, see `pkdp_pipeline.composition.loss_laws`, or, where that says too little, each part is replaced by the
    pair, its own mirror image, that dominates both its orders. *Rounding*: upward, with the
    budget of `docs/numerics.md`; the grid widens the result by about 0.05 % in ε. The attained side is that of an
    attacker who adds up scores, see `pkdp_pipeline.composition.score_attack`; 0 where none is known. *Source*:
    `docs/composition.md`, rules 2 and 5.
    """

    parts: tuple[tuple[Directions, int], ...]
    participation: int | None = None
    _cache: dict[Any, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def slack(self) -> float:
        """Return how far δ may jump where one tilt takes over from another."""
        return _RELATIVE_SLACK

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
        return np.array([self._delta_at(epsilon) for epsilon in epsilons.tolist()])

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
        moments, rate, step = ladder.moments(number), ladder.rate(number), ladder.step
        # Every tilted mass is raised by what the sizes of its exponents ask for, and the whole by those of its own.
        reach = max(map(abs, ladder.reach()))
        raised = 32.0 * UNIT * (moments.size + rate * (reach + epsilon / step) + 150.0 * moments.factors)
        # δ falls about as fast as its tilt is steep; near the mean, as the width of the law says.
        steepest = 2.0 * (rate + 1.0 / max(moments.deviation, 1e-3)) / step
        releases = sum(times for _, times in self.parts)
        if self.participation is not None:
            releases = min(releases, 2 * self.participation)
        each = [order.rounding() for part, _ in self.parts for order in (part.right, part.left) if order is not None]
        masses, losses, left = (max(column) for column in zip(*each, strict=True))
        laws: float = releases * (masses + losses * (1.0 + steepest) + left / upper)
        return wide / attained if attained else 0.0, min(1.0, laws + raised + doubt / upper)

    def smallest_epsilon(self, target: float) -> float:
        """Return an ε at which the certified δ is at most `target`, as small as can be found, or `math.inf`."""
        # Where a normal law would cross.
        moments = self._ladder().moments(0)
        start = self._ladder().step * (
            moments.high + moments.deviation * math.sqrt(-2.0 * math.log(max(target, 1e-300)))
        )
        crossing = smallest_epsilon(
            lambda epsilon: self._towards(target, epsilon), target, _RELATIVE_SLACK, start if start > 1e-9 else None
        )
        if math.isinf(crossing):
            return crossing
        # A profile is continuous: a search that ends well below the target was led there by a guess.
        if crossing and not 0.99 * target <= self._delta_at(crossing) <= target:
            crossing = smallest_epsilon(self._delta_at, target, _RELATIVE_SLACK)
        # The largest finite loss is known exactly; a search only comes close to it.
        ladder = self._ladder()
        fixed = any(len(factor.laws) == 1 for factor in ladder.factors)
        end = math.nextafter(max(0.0, ladder.step * ladder.reach()[1]), math.inf) if fixed else crossing
        return end if end < crossing and self._delta_at(end) <= target else crossing

    def _towards(self, target: float, epsilon: float) -> float:
        """Return the certified δ of the leading choice, or, far from `target`, a number on the same side of it."""
        ladder, disclosed = self._ladder(), float(self._disclosed()[-1, -1])
        step = ladder.step
        if target > 0.0 and disclosed <= target and epsilon < ladder.reach()[1] * step:
            number = ladder.nearest(epsilon)
            moments, position, rate = ladder.moments(number), epsilon / step, ladder.rate(number)
            exponent = moments.log_moment - rate * position
            # Far from the crossing a cheap number on the right side will do: Chernoff's bound well below the target, or
            # e^4 times it by the δ of a normal tilted law, or by what it is at least below the mean. What is found is
            # evaluated afterwards.
            if exponent + disclosed / target < math.log(target) - 3.0:
                return disclosed + math.exp(exponent)
            apart = (position - moments.high) / max(moments.deviation, 1e-300)
            width = 2.5 * moments.deviation * step
            guess = exponent - 0.5 * apart * apart - math.log1p(rate / step * (1.0 + rate / step) * width)
            if rate == 0.0:
                guess = ladder.log_below_mean(epsilon)
            if (rate == 0.0 or abs(apart) < 3.0) and guess > math.log(target) + 4.0:
                return math.exp(min(0.0, guess))
        return self._delta_at(epsilon, True)

    @remembered
    def _ladder(self) -> Ladder:
        return make_ladder(self.parts, self.participation)

    @remembered
    def _enveloped(self) -> Convolved:
        """Return the same total by envelopes of both orders of each release."""
        other = replace(self)
        other._cache["_ladder",] = make_ladder(self.parts, self.participation, covering=False)
        return other

    def _delta_at(self, epsilon: float, leading: bool = False) -> float:
        """Return the certified δ at one ε; with `leading`, for the most `right` laws only."""
        return self._evaluated(epsilon, leading)[0]

    def _evaluated(self, epsilon: float, leading: bool) -> tuple[float, float]:
        """Return `_delta_at`, and how much less the product of the laws on the grid may give at the least."""
        ladder = self._ladder()
        disclosed = self._disclosed()[-1:, -1:] if leading else self._disclosed()
        # Beyond the largest finite loss only infinite ones are left; compared exactly.
        if not ladder.factors or Fraction(epsilon) >= Fraction(ladder.step) * ladder.reach()[1]:
            return min(1.0, float(disclosed.max())), EVALUATED * float(disclosed.max())
        if (laws := self._alone(leading)) is not None:
            alone = max(profile_at(law, ladder.step, epsilon) for law in laws)
            return alone, EVALUATED * alone
        position = epsilon / ladder.step
        number, doublings = ladder.nearest(epsilon), 0
        # The window is doubled until Chernoff's bound on the mass above it, which is added, is negligible.
        while True:
            level = ladder.level(number, doublings)
            if level.low > position:
                # Below the window nothing is known; only the untilted product starts low enough in any case.
                if number == 0:
                    return self._differing(), EVALUATED * self._differing()
                number -= 1
                continue
            finite, above, doubt, spare = self._finite(level, ladder.moments(number), position, leading)
            certain = float((finite + disclosed).max())
            if level.final or above <= _NEGLIGIBLE_SHARE * certain or certain >= self._differing():
                break
            doublings += 1
        total = float((finite + above + disclosed).max()) * (1.0 + 8.0 * UNIT)
        result = min(self._differing(), math.nextafter(total, math.inf)), doubt + above + EVALUATED * total
        # The transforms of laws of a few atoms do not vanish, and their cover is loose; both bounds hold.
        return min(result, self._enveloped()._evaluated(epsilon, leading)) if spare > _MAX_COVER_EXCESS else result

    def _finite(
        self, level: Level, moments: Moments, position: float, leading: bool
    ) -> tuple[Array, float, float, float]:
        """Return at or above the part of δ from finite losses in the window, for every choice, and from those above.

        The third is how much less the first may be for reasons of rounding, the fourth by what share of it for others.
        """
        step, rate = self._ladder().step, level.rung.rate
        pad = 8.0 * UNIT * (abs(level.high) + abs(position)) + 1e-300
        cells = np.arange(math.floor(position), level.high + 1, dtype=np.float64)
        away = np.maximum(0.0, cells - position + pad)
        with np.errstate(under="ignore"):
            kernel = np.exp(-rate * away) * -np.expm1(-step * away) * (1.0 + 24.0 * UNIT)
        values, error, spare = level.rung.pair_with(kernel, math.floor(position), leading)
        exponent = moments.log_moment - rate * position
        exponent += 2.0 * rate * pad + 8.0 * UNIT * (moments.size + rate * (abs(level.high) + position))
        if exponent > 700.0:
            return np.ones_like(values), 0.0, 1.0, 0.0
        scale = math.exp(exponent) * (1.0 + 8.0 * UNIT)
        above = math.exp(min(level.log_above, 0.0)) * (1.0 + 8.0 * UNIT)
        return np.maximum(0.0, values + error) * scale * (1.0 + 8.0 * UNIT), above, 2.0 * error * scale, spare

    @remembered
    def _differing(self) -> float:
        """Return at or above the sum of all parts' δ(0): two products differ in total by no more than their factors."""
        ladder = self._ladder()
        apart = 0.0
        for factor in ladder.factors:
            apart += factor.times * max(profile_at(law, ladder.step, 0.0) for law in factor.laws) * (1.0 + 1e-12)
            if apart >= 1.0:
                return 1.0
        return apart

    def _alone(self, leading: bool) -> tuple[GridLaw, ...] | None:
        """Return the laws of a total of one single factor, which needs no transform."""
        factors = self._ladder().factors
        if sum(factor.times for factor in factors) != 1:
            return None
        return factors[0].laws[:1] if leading or factors[0].least == 1 else factors[0].laws

    @remembered
    def _disclosed(self) -> Array:
        """Return at or above the mass of infinite losses, for every choice of directions, the leading one last."""
        factors = [(factor, [_logs_of_rest(law) for law in factor.laws]) for factor in self._ladder().factors]
        fixed = [
            (factor.times, min(log for log, _ in logs), max(log for _, log in logs))
            for factor, logs in factors
            if factor.ways == 1
        ]
        first = np.zeros((1, 2))
        second = np.array([[math.fsum(times * each[index] for times, *each in fixed) for index in range(2)]])
        for factor, logs in factors[len(fixed) :]:
            ways = np.arange(factor.least, factor.most + 1, dtype=np.float64)[:, None]
            right, left = np.array(logs)
            # Choices come in the same order as the transforms of `make_rung`.
            first, second = joined(first, second, ways * right + (factor.times - ways) * left, np.add)
        together = first[:, None, :] + second[None, :, :]
        disclosed: Array = -np.expm1(together[..., 0]) * np.exp(together[..., 1]) * (1.0 + 1e-12)
        return disclosed


def _logs_of_rest(law: GridLaw) -> tuple[float, float]:
    """Return ``log(1 - infinite)`` and the logarithm of what the mass exceeds 1 by."""
    rest = math.log1p(-law.infinite) if law.infinite < 1.0 else _LOG_OF_ZERO
    return rest, math.log(max(1.0, law.total * (1.0 + 4.0 * UNIT)))
