"""One crowd of people who may be in the first of two cells behind a threshold and noise, beside a bound on the second.

Given what the first cell shows, the second is dominated by the hull of theorem D's profile in both orders, whoever is
in it. Both together tell a mean, over the hull's losses, of what the first cell tells at as many ε. The search for the
worst number of people in it is that of any kernel. `docs/mathematics.md`, section 6, "Value through absence".
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from pkdp_pipeline.theorems.bound import Atoms, Bound
from pkdp_pipeline.theorems.channel import Channel, Kernel, noised
from pkdp_pipeline.theorems.hull import TwoCells, hull_atoms
from pkdp_pipeline.theorems.kernel_search import Coins, KernelSearch
from pkdp_pipeline.theorems.noisy_threshold import NoisyThreshold
from pkdp_pipeline.theorems.numerics import MIN_P, UNIT, Array, Whole, invert
from pkdp_pipeline.theorems.reached import Attained
from pkdp_pipeline.theorems.waiting_pair import crowds_reach

SLACK = 3e-3
"""Blocks of crowds are halved until they are at most this far above the best one, relatively."""

SLACK_OF_SECOND, _NEGLIGIBLE = 5e-3, 1e-16
"""The same of the second cell, but for what is less likely than this."""

_END, _EXPONENT_OF_SECOND = 8.0, 56.0
"""Losses of the second cell beyond this are infinite; counts less likely than e^-56 there are bounded together."""

_MAX_EPSILON = 200.0
"""At a larger ε crowds are not looked at."""

_MIN_DELTA = 1e-250
"""Nor where less than this is told."""

_MIN_P, _MAX_THRESHOLD = 1e-9, 200
"""Nor for people less likely than this, or for larger thresholds, which take long."""

_EXPONENT = 32.0
"""Counts whose probability is below e^-32 of what is told are bounded together."""


@dataclass(frozen=True, slots=True)
class Suppressed(Kernel):
    """Suppress below `k`, add noise, suppress below `release`; with a chance of `told_apart` tell what is below `k`."""

    k: int
    release: int | None
    noise: float
    told_apart: float = 0.0

    @property
    def for_large_counts(self) -> tuple[Kernel, int]:
        """See `Kernel`: noise alone."""
        return Suppressed(0, None, self.noise), self.k

    def budget(self, counts: int) -> float:
        """See `Kernel`."""
        return (4.0 * counts + 12.0 * self.noise * (counts + abs(self.k - (self.release or 0))) + 200.0) * UNIT

    @property
    def silent(self) -> float:
        """An ε from which on nothing tells that the target is absent."""
        hides = 0.0 if self.release is None else float(self._below(np.array([self.release - self.k]))[0])
        return max(self.noise, -math.log(hides)) * (1.0 + 1e-9) if hides > 0.0 else math.inf

    def _below(self, steps: Array) -> Array:
        return Channel(0, None, self.noise, 0.5, 0.5).below(steps)

    def published(self, laws: Array) -> Array:
        """See `Kernel`; values below all counts that are shown, and beyond all counts, have one likelihood ratio."""
        laws = np.pad(laws, ((0, 0), (0, max(0, self.k + 1 - laws.shape[1]))))
        (rows, size), silent = laws.shape, -math.expm1(-self.noise)
        values = noised(np.hstack([np.zeros((rows, self.k)), laws[:, self.k :]]), self.noise)
        least, first = (-math.inf if self.release is None else self.release), self.k
        values[:, -1] /= silent
        if least > first:
            first = int(min(least, size - 1))
            values[:, first] *= math.exp(-self.noise * (least - first))
        else:
            values[:, first] *= -math.expm1(-self.noise * (first - least + 1.0)) / silent
        symbols, few = [values[:, first:]], laws[:, : self.k].sum(axis=1, keepdims=True)
        if self.release is not None:
            hides = self._below(self.release - np.arange(self.k, size, dtype=np.float64))
            symbols.append(few * (1.0 - self.told_apart) + (laws[:, self.k :] * hides).sum(axis=1, keepdims=True))
            few = few * self.told_apart
        return np.hstack([*symbols, few])


@dataclass(frozen=True, slots=True, kw_only=True)
class OneOrder(Bound):
    """Theorem D's profile of presence in one order: of two cells each has its own.

    `order`: see `KernelSearch`. *Guarantee*: the certified side is never below the divergence beside any number of
    people. *Rounding*: up, within 0.5 % and 1e-16; from `_END` on it stays as it is.
    """

    kernel: Suppressed
    coins: Coins
    order: int

    def certified(self, epsilons: Array) -> Array:
        """See `pkdp_pipeline.theorems.bound.Bound`."""
        # Where the target is absent, from ε0 on, she is hidden by what suppresses a count of k.
        result, tells = np.zeros(len(epsilons)), (self.order > 0) | (epsilons < self.kernel.silent)
        points, place = np.unique(np.minimum(epsilons[tells], _END), return_inverse=True)
        if len(points):
            limits = SLACK_OF_SECOND, 0.0, _EXPONENT_OF_SECOND, (self.order,), _NEGLIGIBLE
            result[tells] = KernelSearch(self.kernel, self.coins, points, *limits).sides().top[place]
        return result


class CrowdSearch(KernelSearch):
    """The largest divergence over all numbers of people in the first cell, beside the second, at one ε.

    `second`: losses of the second cell without the target against the same with her, their masses, and the rest.
    *Guarantee*: as of `KernelSearch`, for the kernel's lives with and without the target beside `second`. *Rounding*:
    outward, see there; losses err by 64 u.
    """

    def __init__(self, kernel: Kernel, coins: Coins, epsilon: float, second: Atoms, exponent: float) -> None:
        KernelSearch.__init__(self, kernel, coins, np.array([epsilon]), SLACK, second[2], exponent, orders=(1,))
        self._second, self._growths = second, np.exp(epsilon - second[0]) * (1.0 - 64.0 * UNIT)

    def beside(self, m: int, growths: Array) -> tuple[Array, Array]:
        """See `KernelSearch`, of both cells."""
        least, most = self._sum(np.stack(self.each(m, self._growths))[:, 0])
        return np.array([least * (1.0 - 1e-12)]), np.array([most])

    def between(self, first: int, last: int, column: Whole) -> Array:
        """See `KernelSearch`: the ends of a block are those of both cells together."""
        bounds = self._sum(self.ends(first, last, self._growths)[0]).max() + self.others
        result: Array = np.minimum(1.0, np.nan_to_num(bounds, nan=1.0))
        return result

    def _sum(self, gains: Array) -> Array:
        """Return the mean over what the second cell shows: each of its losses is one of ε."""
        with np.errstate(invalid="ignore", over="ignore"):
            total: Array = (gains * self._second[1]).sum(axis=-1) * (1.0 + 1e-12)
        return total

    def _of(self, kernel: Kernel) -> KernelSearch:
        return CrowdSearch(kernel, self.coins, float(self.epsilons[0]), self._second, self.exponent)


@dataclass(frozen=True, slots=True, kw_only=True)
class NoisyTwoCells(TwoCells):
    """`TwoCells` behind a threshold, noise and a release threshold, with a search for the worst crowd in one of them.

    Notes
    -----
    *Guarantee*: as of `TwoCells`; what the second cell shows, given the first, is dominated by the hull of theorem D's
    profile in both orders, and what both tell is convex in the chances of the first. *Rounding*: up, within 0.3 % of
    the worst crowd. *Source*: `docs/mathematics.md`, section 6, "Value through absence".
    """

    presence: NoisyThreshold

    @property
    def quick(self) -> Bound:
        """See `pkdp_pipeline.theorems.bound.Bound`: without the search."""
        return TwoCells(theorem=self.theorem, presence=self.presence, told_apart=self.told_apart)

    def rounding(self, epsilons: Array) -> Array:
        """See `pkdp_pipeline.theorems.bound.Bound`: blocks may be halved once more, or less, on another processor."""
        result: Array = TwoCells.rounding(self, epsilons) + np.array([[0.0], [2.0 * SLACK]])
        return result

    def certified(self, epsilons: Array) -> Array:
        """Return the certified side of `bracket` alone."""
        crowds = [_worst_crowd(self, epsilon)[0] for epsilon in epsilons.tolist()]
        result: Array = np.minimum(TwoCells.certified(self, epsilons), crowds)
        return result

    def smallest_epsilon(self, target: float) -> float:
        """See `pkdp_pipeline.theorems.bound.Bound`; few ε look at all sizes of a crowd, the others at the worst."""

        def beside(sizes: list[int], epsilon: float) -> float:
            search = self.crowds(epsilon)
            return 1.0 if search is None else max(float(search.exact(size)[1][0]) for size in sizes)

        def look(epsilon: float) -> tuple[float, list[int]]:
            return float(self.certified(np.array([epsilon]))[0]), [_worst_crowd(self, epsilon)[1]]

        people = math.ceil(self.presence.k / max(self.presence.p, _MIN_P))
        people = people if self.presence.cap is None else min(people, self.presence.cap)
        best = invert(target, [people], beside, look)
        return Bound.smallest_epsilon(self, target) if math.isinf(best) else best

    def crowds(self, epsilon: float) -> CrowdSearch | None:
        """Return the search for the worst crowd; None where none is looked for."""
        cell = self.presence
        if cell.out_of_reach or cell.p < _MIN_P or max(cell.k, cell.release_threshold or 0) > _MAX_THRESHOLD:
            return None
        attained = float(cell.bracket(np.array([epsilon]))[0][0])
        if epsilon > _MAX_EPSILON or attained < _MIN_DELTA:
            return None
        coins = Coins(cell.p, math.inf if cell.cap is None else cell.cap)
        kernel = Suppressed(cell.k, cell.release_threshold, cell.noise)
        absent, present = (OneOrder(theorem=self.theorem, kernel=kernel, coins=coins, order=order) for order in (-1, 1))
        first, second = replace(kernel, told_apart=self.told_apart), hull_atoms((absent,), (present,))
        return CrowdSearch(first, coins, epsilon, second, _EXPONENT + epsilon - math.log(attained))


@dataclass(frozen=True, slots=True, kw_only=True)
class ReachedThroughAbsence(Attained):
    """Two crowds before two cells behind a threshold and noise: of one may be in the first, of the other in the second.

    `presence`: what one of the cells tells.

    *Guarantee*: the attained side is at or below the divergence of one declared attacker; the certified side is 1.
    *Rounding*: downward.
    """

    presence: NoisyThreshold

    def bracket(self, epsilons: Array) -> tuple[Array, Array]:
        """Return (attained, certified) arrays; see `pkdp_pipeline.theorems.bound.Bound`."""
        cell = self.presence
        attained = cell.bracket(epsilons)[0].copy()
        # Crowds are looked for from those on that just reach either threshold.
        thresholds = {cell.k, max(cell.k, cell.release_threshold or 0)} if cell.p >= MIN_P and cell.k > 1 else set()
        for row, epsilon in enumerate(epsilons.tolist()):
            for k in thresholds:
                crowds = crowds_reach((k, k), cell.p, cell.cap, epsilon, lambda people, p, k: cell.crowd(people))
                attained[row] = max(attained[row], crowds)
        return attained, np.ones(len(epsilons))


@lru_cache(maxsize=1024)
def _worst_crowd(cells: NoisyTwoCells, epsilon: float) -> tuple[float, int]:
    """Return what any crowd tells at most, and the worst one found."""
    search = cells.crowds(epsilon)
    if search is None:
        return 1.0, 0
    optimum = search.sides()
    return float(optimum.top[0]), int(optimum.leader[0])
