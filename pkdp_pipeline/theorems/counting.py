"""Exact and noised counts: the other people's uncertainty as noise."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from pkdp_pipeline.theorems.bound import Bound, Derived
from pkdp_pipeline.theorems.numerics import TINY, Array, Whole, chord, invert
from pkdp_pipeline.theorems.tilted_inversion import MAX_PEOPLE, TwoCoinTails, inverted

Blocks = tuple[Whole, Whole, Whole]

_SLACK = 0.0075
_MAX_EVALUATED = 2**17
"""Most vertices and blocks that are evaluated for one ε."""

MAX_INVERTED_SHARE = 0.96
"""Up to this share of the noise's ε0 tails are inverted."""

MAX_EPSILON = 700.0
"""At a larger ε a bound is the one here: no e^ε is larger, and no δ increases with ε."""

_MIN_BRACKETED_NOISE = 1e-5
"""With noise of a smaller ε0 brackets are too wide to be divided: only what the noise gives against anybody is left."""

_MAX_PEOPLE_WITH_SURE_MODE = 10**6
"""With noise and more people than this, the climb to the mode of a tilted law may stop early, which widens brackets."""

_NEGLIGIBLE_DELTA = 1e-300
"""Below this no two sides need to agree: blocks bounded by it are not divided further."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Uncertain(Bound):
    """The base of bounds on counts without a threshold: a smaller number of unknown people only helps the attacker.

    Parameters
    ----------
    theorem : str
        Which statement uses the profile.
    unknown : int
        At least this many people are unknown.
    noise : float, optional
        ε0 of the two-sided geometric noise; None for an exact count.
    """

    unknown: int
    noise: float | None = None

    def rounding(self, epsilons: Array) -> Array:
        """See `pkdp_pipeline.theorems.bound.Bound`."""
        most = self._most(epsilons)
        shares = np.tile([inverted(int(people)) for people in most], (2, 1))
        if self.noise is None or np.all(most <= _MAX_PEOPLE_WITH_SURE_MODE):
            return shares
        # Elsewhere what is attained is at most what is certified here, and what is certified at least what is attained.
        lower, upper = self.bracket(epsilons)
        apart = (upper - lower) / np.stack([np.maximum(lower, TINY), np.maximum(upper, TINY)])
        wider: Array = np.maximum(shares, np.where(lower > 0.0, apart, [[0.0], [1.0]]).clip(0.0, 1.0))
        return wider

    @property
    def max_evaluated(self) -> int:
        """Return how many vertices and blocks are evaluated for one ε, at most; then the bracket stays wider."""
        return _MAX_EVALUATED

    def _most(self, epsilons: Array) -> Array:
        """Return how many people are looked at, at most."""
        return np.full(len(epsilons), float(min(self.unknown, MAX_PEOPLE)))

    def bracket(self, epsilons: Array) -> tuple[Array, Array]:
        """Return (attained, certified) arrays; see `pkdp_pipeline.theorems.bound.Bound`."""
        if self.unknown > MAX_PEOPLE:
            # Fewer unknown people only help the attacker; what is attained with fewer proves nothing.
            return np.zeros(len(epsilons)), replace(self, unknown=MAX_PEOPLE).bracket(epsilons)[1]
        lower, upper = self._sides(np.minimum(epsilons, MAX_EPSILON))
        return np.where(epsilons > MAX_EPSILON, 0.0, lower), upper

    def _sides(self, epsilons: Array) -> tuple[Array, Array]:
        if self.noise is None:
            return self._search(epsilons)
        noise = self.noise
        inside = epsilons < noise
        lower, upper = np.zeros(len(epsilons)), np.where(inside, 1.0, 0.0)
        if noise < _MIN_BRACKETED_NOISE:
            return lower, upper
        invertible = epsilons <= MAX_INVERTED_SHARE * noise
        if invertible.any():
            lower[invertible], upper[invertible] = self._search(epsilons[invertible])
        # δ is convex in e^ε and vanishes at ε0: beyond the last ε that is inverted, a chord bounds it.
        anchor = MAX_INVERTED_SHARE * noise
        for row in np.flatnonzero(inside & ~invertible):
            upper[row] = chord(float(epsilons[row]), (anchor, _anchor(self, anchor)), (noise, 0.0))
        return lower, upper

    def _search(self, epsilons: Array) -> tuple[Array, Array]:
        """Return the bracket at these ε; with noise, at ε that are not too close to its ε0."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True, kw_only=True)
class Counting(Uncertain):
    """Privacy profile of an exact count, or of one with two-sided geometric noise, without a threshold.

    Parameters
    ----------
    theorem : str
        Which statement uses the profile.
    unknown : int
        At least this many people are unknown; fewer only helps the attacker (a known person is a shift).
    p_min, p_max : float
        Every unknown person counts with a probability in this box; ``0 < p_min ≤ p_max < 1``.
    noise : float, optional
        ε0 of the noise; None for an exact count.

    Notes
    -----
    The divergence is convex in each probability (lemma 2), so the worst attacker has `j` people at `p_max` and
    the others at `p_min`; all `j` are covered by blocks, in each of which `w` revealed people bound the whole
    block from above (lemma 3).

    Searching many ε at once may divide blocks further than one alone needs, which moves the certified side within
    its slack. *Guarantee*: the certified side is never below the divergence of any declared attacker, in either
    direction; the attained side is that of one such attacker. *Rounding*: outward; the two sides agree within
    0.8 % where the noise, if any, leaves a window that can be inverted. *Source*: `docs/mathematics.md`,
    "Counting"; it replaces Theorem 3 of Desfontaines et al.
    """

    p_min: float
    p_max: float

    @property
    def slack(self) -> float:
        """Return how far above the best attacker found the search may stop."""
        return _SLACK

    def smallest_epsilon(self, target: float) -> float:
        """See `pkdp_pipeline.theorems.bound.Bound`; few ε look at the whole box, the others at its best vertices."""
        if self.unknown > MAX_PEOPLE:
            return replace(self, unknown=MAX_PEOPLE).smallest_epsilon(target)
        if (
            self.p_min == self.p_max
            or self.unknown == 0
            or (self.noise is not None and self.noise < _MIN_BRACKETED_NOISE)
        ):
            return Bound.smallest_epsilon(self, target)
        vertices = [(way, vertex) for way in range(len(self._directions())) for vertex in (0, self.unknown)]
        best = invert(target, vertices, self._towards, self._look, share=1.0 + _SLACK)
        return Bound.smallest_epsilon(self, target) if math.isinf(best) else best

    def _look(self, epsilon: float) -> tuple[float, list[tuple[int, int]]]:
        """Return what is certified at an ε, and the worst vertex there; none beyond the last ε that is inverted."""
        point = np.array([epsilon])
        if self.noise is not None and epsilon > MAX_INVERTED_SHARE * self.noise:
            return float(self.certified(point)[0]), []
        _, upper, leaders = self._cover(point)
        return float(upper[0]), list(zip(*leaders.tolist(), strict=True))

    def _towards(self, vertices: list[tuple[int, int]], epsilon: float) -> float:
        """Return the largest δ of some vertices, and what is certified where a chord says that."""
        if self.noise is not None and epsilon > MAX_INVERTED_SHARE * self.noise:
            return float(self.certified(np.array([epsilon]))[0])
        ways, people = np.array(vertices, dtype=np.int64).T
        return float(self._evaluate(self._directions(), ways, people, people, np.array([epsilon]))[1].max())

    def _directions(self) -> list[TwoCoinTails]:
        """Return what has to be looked at: `_both`, or one of them."""
        # A box symmetric around 1/2 is its own mirror image: j people at p_max become m - j.
        return self._both()[: 1 if 1.0 - self.p_min == self.p_max and 1.0 - self.p_max == self.p_min else 2]

    def _both(self) -> list[TwoCoinTails]:
        """Return right tails of the count and of its mirror image; the second's are the count's left tails."""
        low, high = self.p_min, self.p_max
        low_complement, high_complement = 1.0 - low, 1.0 - high
        ahead = TwoCoinTails(
            low=low, low_complement=low_complement, high=high, high_complement=high_complement, noise=self.noise
        )
        mirrored = TwoCoinTails(
            low=low_complement, low_complement=low, high=high_complement, high_complement=high, noise=self.noise
        )
        return [ahead, mirrored]

    def _search(self, epsilons: Array) -> tuple[Array, Array]:
        """Return the bracket of the supremum over all vertices, for every ε."""
        people = self.unknown
        lower, upper = np.zeros(len(epsilons)), np.zeros(len(epsilons))
        if self.p_min == self.p_max or people == 0:
            for tails in self._directions():
                sides = tails.right_tails(np.full(len(epsilons), float(people)), np.zeros(len(epsilons)), epsilons)
                lower, upper = np.maximum(lower, sides[0]), np.maximum(upper, sides[1])
            return lower, np.minimum(upper, 1.0)
        return self._cover(epsilons)[:2]

    def _whole_box(self, epsilons: Array) -> Blocks:
        """Return blocks of all vertices, for each direction and ε."""
        starts, ends = first_blocks(self.unknown)
        times = len(self._directions()) * len(epsilons)
        return np.repeat(np.arange(times, dtype=np.int64), len(starts)), np.tile(starts, times), np.tile(ends, times)

    def _cover(self, epsilons: Array) -> tuple[Array, Array, Whole]:
        """Divide blocks until none exceeds the best vertex by more than the slack, or enough are evaluated.

        Branch and bound: the first vertex of a block is attained, and lemma 3 (theorem E with a threshold) bounds the
        block by that vertex beside fewer people.

        A block is a mark (direction × number of ε + which ε) with its first and last vertex. The last of what is
        returned is the direction and the vertex with the largest δ, for every ε, shape (2, ε).
        """
        directions = self._directions()
        lower, upper = np.zeros(len(epsilons)), np.zeros(len(epsilons))
        mark, first, last = self._whole_box(epsilons)
        leaders, evaluated = np.zeros((2, len(epsilons)), dtype=np.int64), np.zeros(len(epsilons))
        while len(mark):
            column = mark % len(epsilons)
            evaluated += 2.0 * np.bincount(column, minlength=len(epsilons))
            exact = self._evaluate(directions, mark, first, first, epsilons)
            best = lower.copy()
            np.maximum.at(lower, column, exact[0])
            leading = (exact[0] == lower[column]) & (lower > best)[column]
            leaders[:, column[leading]] = mark[leading] // len(epsilons), first[leading]
            above, wide = np.fmin(exact[1], 1.0), last > first
            block = self._evaluate(directions, mark[wide], first[wide], last[wide], epsilons)
            above[wide] = np.fmin(block[1], 1.0)
            done = (above <= np.maximum((1.0 + _SLACK) * lower[column], _NEGLIGIBLE_DELTA)) | (first == last)
            # Every bound holds as it stands: stopping here widens the bracket and changes nothing else.
            done |= (2.0 * evaluated > self.max_evaluated)[column]
            np.maximum.at(upper, column[done], above[done])
            mark, first, last = _split(mark[~done], first[~done], last[~done])
        return lower, np.minimum(np.maximum(upper, lower), 1.0), leaders

    def _evaluate(
        self, directions: list[TwoCoinTails], mark: Whole, first: Whole, last: Whole, epsilons: Array
    ) -> tuple[Array, Array]:
        """Return brackets with ``last - first`` people revealed and `first` of the others at p_max."""
        lower, upper = np.zeros(len(mark)), np.zeros(len(mark))
        for index, tails in enumerate(directions):
            rows = np.flatnonzero(mark // len(epsilons) == index)
            low, high = (self.unknown - last[rows]).astype(float), first[rows].astype(float)
            lower[rows], upper[rows] = tails.right_tails(low, high, epsilons[mark[rows] % len(epsilons)])
        return lower, upper


MAX_HIDDEN = 0.01
"""Where thresholds before the noise may hide a count with a larger chance, what enough people pass says little."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Passed(Derived):
    """Privacy profile of a count with noise behind thresholds that the unknown people alone nearly surely pass.

    Parameters
    ----------
    theorem : str
        Which statement uses the profile.
    base : Uncertain
        The same noise on the counts without thresholds before it.
    hidden : float
        At or above the chance that so few of the unknown people count, or do not, that a threshold may hide a count.
    cells : int, default 1
        How many counts the target's two lives change.

    Notes
    -----
    Where all counts pass in both lives, an event gains what it does without thresholds; elsewhere at most e^ε more, of
    two cells 1 + e^ε. From the end of the noise on δ is at most what it is there. *Guarantee*: the certified side is
    never below the divergence of any declared attacker, whoever else is known; nothing is said to be attained.
    *Rounding*: up. *Source*: `docs/mathematics.md`, section 6, "Against an attacker with partial knowledge".
    """

    base: Uncertain
    hidden: float
    cells: int = 1

    def bracket(self, epsilons: Array) -> tuple[Array, Array]:
        """Return (attained, certified) arrays; see `pkdp_pipeline.theorems.bound.Bound`."""
        added = (self.cells - 1.0 + np.exp(np.minimum(epsilons, self.base.noise or 0.0))) * self.hidden * (1.0 + 1e-12)
        certified = np.nextafter(self.base.certified(epsilons) + added, np.inf)
        return np.zeros(len(epsilons)), np.minimum(1.0, certified)


@lru_cache(maxsize=64)
def _anchor(bound: Uncertain, epsilon: float) -> float:
    """Return the certified δ from which a chord starts; an inversion asks for the same one again and again."""
    return float(bound._search(np.array([epsilon]))[1][0])


def first_blocks(people: int) -> tuple[Whole, Whole]:
    """Return blocks that cover 0 … people and double away from both ends."""
    cuts = {0, people + 1}
    step = 1
    while step <= people // 2:
        cuts |= {step, people + 1 - step}
        step *= 2
    edges = np.array(sorted(cuts), dtype=np.int64)
    return edges[:-1], edges[1:] - 1


def _split(mark: Whole, first: Whole, last: Whole) -> tuple[Whole, Whole, Whole]:
    """Halve every block."""
    middle = (first + last) // 2
    return np.concatenate([mark, mark]), np.concatenate([first, middle + 1]), np.concatenate([middle, last])
