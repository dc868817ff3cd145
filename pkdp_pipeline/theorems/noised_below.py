"""Theorem I: counts from k on are published exactly, smaller ones with noise, and marked as noised.

For ``S ~ Bin(m, p)`` with density f, α = e^{-ε0} and ε ≥ ε0, present against absent is theorem A's right side: noised
values tell nothing there. Absent against present is theorem A's left side where the gains ``f(j) > e^ε f(j-1)`` reach
up to k; elsewhere it is at most the largest, over D from 0 on, of

    F(m, D) = e^{-ε D} f(k-1) - (e^ε - 1) P[S ≤ k-2-D],

and ``F(m, 0)`` is theorem A's left side again. Below ε0 all numbers of people are looked at on a grid of ε, by blocks:
the gain of an event is a sequence in m whose second differences are at most p² times the kernel's, so between two
numbers of people no event gains more than at the better end, plus an eighth of that times the squared distance. A
profile is convex in e^ε, so a chord between grid points bounds it, and so does one from the last point to ε0.

*Rounding*, with ``u = 2^-53``: laws are exponentials of sums of logarithms, within ``8u(n + 2)`` times the largest of
them, n of them; sums of positive terms add ``(n + 4)u`` and noise, in passes to either side, ``4ku``. Divergences are
sums of ``max(0, P(1 ± b) - e^ε Q(1 ∓ b))`` with that budget b.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial

import flint
import numpy as np

from pkdp_pipeline.theorems.binomial_tails import binomial_weights
from pkdp_pipeline.theorems.bound import smallest_epsilon
from pkdp_pipeline.theorems.noised_left import SLACK, left_bound
from pkdp_pipeline.theorems.noised_profile import Profile, grid_points, profile_below, profile_with_bends
from pkdp_pipeline.theorems.rounding import EVALUATED, Array, ball_above
from pkdp_pipeline.theorems.thresholding import Threshold, Thresholding
from pkdp_pipeline.theorems.worst_case import SAMPLER_LEEWAY

_MIN_P = 1e-9
"""A smaller p is replaced by this one, which is sound."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NoisedBelow(Threshold):
    """Privacy profile of a count that is exact from `k` on, and noised below.

    Parameters
    ----------
    theorem, k, p, cap, known, active
        See `Threshold`.
    noise : float
        ε0 of the two-sided geometric noise.
    release_threshold : int, optional
        A noised value below it is not published.
    from_one : bool
        Whether a count of 0 publishes nothing, as where cells are found in the data.
    looks : int
        1; 2 where the noised value of a partner cell is a second look at the same number (theorem C).

    Notes
    -----
    *Guarantee*: the certified side is never below the divergence of any declared attacker, in either order. From
    ``looks · noise`` on it is theorem A's, or what the left side's bound exceeds it by; a count of 0 that is told apart
    adds the chance that a count of 1 appears. *Rounding*: outward, see the module. *Source*: `docs/mathematics.md`,
    theorem I.
    """

    noise: float
    release_threshold: int | None = None
    from_one: bool = False
    looks: int = 1

    @property
    def slack(self) -> float:
        """Return how far above the best attacker found the search may stop."""
        return max(SLACK, self._suppressed.slack)

    @property
    def from_epsilon(self) -> float:
        """The ε from which on noised values tell nothing: that of their looks, whatever the sampler's leeway."""
        return math.nextafter(self.looks * self.noise * (1.0 + 2.0 * SAMPLER_LEEWAY), math.inf)

    @property
    def kinks(self) -> tuple[float, ...]:
        """See `pkdp_pipeline.theorems.bound.Bound`: the grid below ε0, and the fall of theorem A beyond."""
        start = self.from_epsilon
        fall = np.concatenate([[0.0], 0.5 / math.sqrt(self.k) * 1.35 ** np.arange(24)])
        return (*np.log1p(grid_points(self.noise)).tolist(), *(start + fall).tolist())

    @property
    def _suppressed(self) -> Thresholding:
        """Theorem A for the same people."""
        return Thresholding(
            theorem=self.theorem, k=self.k, p=self.p, cap=self.cap, known=self.known, active=self.active
        )

    @property
    def _appears(self) -> float:
        """At or above the chance that a count of 1 is published where one of 0 never is."""
        if not self.from_one:
            return 0.0
        return _at_least(self.noise, 1 if self.release_threshold is None else self.release_threshold - 1)

    def rounding(self, epsilons: Array) -> Array:
        """See `pkdp_pipeline.theorems.bound.Bound`."""
        return np.maximum(self._suppressed.rounding(epsilons), EVALUATED)

    def bracket(self, epsilons: Array) -> tuple[Array, Array]:
        """Return (attained, certified) arrays; see `pkdp_pipeline.theorems.bound.Bound`."""
        start = self.from_epsilon
        raised = np.maximum(epsilons, start)
        attained, certified = (side.copy() for side in self._from_noise_on(raised))
        below = np.flatnonzero(epsilons < start)
        if len(below):
            end = self._from_noise_on(np.array([start]))
            # At ε0 itself, where the sampler's leeway is all that is missing: no event is likelier than 1, so a profile
            # falls by at most the difference of the e^ε, of which 2e-15 stands for the rounding of both.
            rise = np.exp(start) * (2e-15 - np.expm1(epsilons[below] - start) * (1.0 + 1e-9))
            attained[below], certified[below] = end[0][0], np.minimum(1.0, end[1][0] + rise)
            below = below[epsilons[below] < start * (1.0 - 1e-13)]
        if len(below):
            low, high = self._below_noise(epsilons[below], float(end[0][0]), float(end[1][0]))
            attained[below], certified[below] = low, high
        return np.minimum(attained, certified), certified

    def smallest_epsilon(self, target: float) -> float:
        """See `pkdp_pipeline.theorems.bound.Bound`; from ε0 on it is theorem A's where the left side tells no more."""
        start = self.from_epsilon
        if float(self.certified(np.array([start]))[0]) > target and not self.from_one:
            epsilon = max(start, self._suppressed.smallest_epsilon(target))
            if math.isinf(epsilon) or float(self.certified(np.array([epsilon]))[0]) <= target:
                return epsilon
        return smallest_epsilon(lambda epsilon: float(self.certified(np.array([epsilon]))[0]), target, self.slack)

    def _from_noise_on(self, epsilons: Array) -> tuple[Array, Array]:
        """Return the bracket at ε from `from_epsilon` on."""
        attained, certified = self._suppressed.bracket(epsilons)
        certified = np.array(
            [max(a, self._left(e, a)) for e, a in zip(epsilons.tolist(), certified.tolist(), strict=True)]
        )
        appears = self._appears
        if appears and self.p < 1.0:
            # A count of 1 beside none appears so often, and hiding tells as much as the odds of it exceed e^ε; that is
            # all where fewer than k - 1 others may be counted, and of more nobody is with a chance of (1-p)^(k-1).
            ratio = np.exp(np.minimum(epsilons - (self.looks - 1) * self.noise, 700.0))
            hides = np.maximum(0.0, 1.0 - ratio * (1.0 - appears) * (1.0 - 1e-12))
            if self.looks > 1:
                certified += appears + hides
            else:
                alone, nobody = np.maximum(appears, hides), (self._least - 1) * math.log1p(-self.p)
                certified = np.maximum(alone, certified + math.exp(nobody) * (1.0 + 1e-9) * alone)
            # Nobody else may be counted: then a count of 1 appears, or not.
            attained = np.maximum(attained, appears * (1.0 - 1e-12) if self._least > 1 else 0.0)
        return attained, np.minimum(certified, 1.0)

    @property
    def _least(self) -> int:
        """The threshold left where all known people count."""
        return self.k - self.known

    def _left(self, epsilon: float, enough: float) -> float:
        """Return a bound on what absence tells beyond theorem A, or `enough` where it is no more."""
        if enough >= 1.0 or self._least <= 1 or self.p in (0.0, 1.0):
            return 0.0 if self.p == 0.0 else enough
        if self.known == 0 or self.active:
            return left_bound((1.0,), (self._least,), self.p, self.cap, epsilon, enough)
        chances = binomial_weights(self.known, self.p, 0, self.known)
        thresholds = tuple(self.k - known for known in range(self.known + 1))
        return left_bound(tuple(chances.tolist()), thresholds, self.p, self.cap, epsilon, enough)

    def _below_noise(self, epsilons: Array, attained: float, certified: float) -> tuple[Array, Array]:
        """Return the bracket below `from_epsilon`, where it is (attained, certified)."""
        ends = math.expm1(self.from_epsilon)
        x = np.expm1(epsilons)
        if self.looks > 1:
            # δ is at most 1 at ε = 0, and convex in e^ε.
            return np.full(len(x), attained), np.minimum(1.0, 1.0 - x / ends * (1.0 - certified)) * (1.0 + 1e-12)
        grid = self._grid()
        points = np.append(grid.points, ends)
        upper = np.append(grid.certified, certified)
        lower = np.append(grid.attained, attained)
        place = np.clip(np.searchsorted(points, x, side="right") - 1, 0, len(points) - 2)
        share = (x - points[place]) / (points[place + 1] - points[place])
        high = upper[place] + share * (upper[place + 1] - upper[place])
        # A convex profile lies above the lines through a point before it and the next, continued.
        # No event is likelier than 1, so a profile falls by at most the difference of the e^ε.
        low = np.maximum(lower[place + 1], lower[place] - (x - points[place]))
        for first, second in ((place - 1, place), (place + 2, place + 1)):
            inside = (first >= 0) & (first < len(points))
            a, b = np.clip(first, 0, len(points) - 1), second
            slope = (lower[b] - upper[a]) / np.where(inside, points[b] - points[a], 1.0)
            low = np.where(inside, np.maximum(low, lower[b] + slope * (x - points[b])), low)
        return np.minimum(low, high), np.minimum(1.0, np.maximum(high, certified) * (1.0 + 1e-12))

    def _grid(self) -> Profile:
        """Return the profile on the grid, for those who are merely known the mean over how many of them count."""
        p = max(self.p, _MIN_P)
        if self.known == 0:
            return profile_with_bends(p, self.cap, self.noise, self.k, self.release_threshold, self.from_one)
        alone = partial(profile_below, p, self.cap, self.noise)
        if self.active:
            # A higher threshold is post-processing of a lower one, and a release threshold of none.
            best = alone(self._least, None, False)
            release = None if self.release_threshold is None else self.release_threshold - self.known
            lower = alone(self._least, release, False).attained
            upper = best.certified
            if self.from_one:
                nobody = alone(self.k, self.release_threshold, True)
                lower, upper = np.maximum(lower, nobody.attained), np.maximum(upper, nobody.certified)
            return Profile(best.points, lower, upper)
        # What each number of known people tells adds up, each with its own worst number of unknown ones.
        chances = binomial_weights(self.known, p, 0, self.known)
        profile, rest = None, 0.0
        for known, chance in enumerate(chances.tolist()):
            if chance < _NEGLIGIBLE_CHANCE or self.k - known <= 1:
                rest += chance
                continue
            each = alone(self.k - known, None, self.from_one and known == 0)
            upper = chance * each.certified + (0.0 if profile is None else profile.certified)
            profile = Profile(each.points, np.zeros(len(upper)), upper)
        if profile is None:
            profile = alone(2, None, False)
            return Profile(profile.points, np.zeros(len(profile.points)), np.ones(len(profile.points)))
        return Profile(profile.points, profile.attained, np.minimum(1.0, (profile.certified + rest) * (1.0 + 1e-12)))


_NEGLIGIBLE_CHANCE = 1e-9
"""Numbers of known people that are less likely are counted as if they told all."""


def _at_least(noise: float, least: int) -> float:
    """Return a float at or above ``P[Z ≥ least]``, for every ε0 that the sampler may have."""
    with flint.ctx.workprec(128):
        drawn = flint.arb(noise) * (1 - flint.arb(SAMPLER_LEEWAY))
        alpha = (-drawn).exp()
        tail = (-drawn * abs(least if least > 0 else 1 - least)).exp() / (1 + alpha)
        if least > 0:
            return ball_above(tail)
        declared = (-flint.arb(noise)).exp()
        return ball_above(1 - (-flint.arb(noise) * (1 - least)).exp() / (1 + declared))
