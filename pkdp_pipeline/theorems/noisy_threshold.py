"""Theorem D: a count that is suppressed below k, noised, and suppressed again, with and without a declared box."""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass, replace
from functools import cache, lru_cache, partial
from typing import Any

import numpy as np

from pkdp_pipeline.theorems.bound import Bound, Largest
from pkdp_pipeline.theorems.channel import MAX_NOISY_VALUES, UNDERFLOW_MASS, Channel, row_of
from pkdp_pipeline.theorems.noisy_search import (
    NEGLIGIBLE_DELTA,
    NEGLIGIBLE_DELTA_IN_BOX,
    SLACK,
    SLACK_IN_BOX,
    NoisySearch,
    ladder,
)
from pkdp_pipeline.theorems.numerics import (
    EVALUATED,
    TINY,
    Array,
    Optimum,
    Whole,
    binomial_weights,
    highest,
    invert,
    kept,
    left_tails,
    right_tails,
    weights_below,
)
from pkdp_pipeline.theorems.thresholding import Threshold
from pkdp_pipeline.theorems.waiting_pair import Pair
from pkdp_pipeline.theorems.worst_case import NoiseCurve

_MIN_EPSILON = 2.0**-11
"""Of a smaller ε the profile is bounded by the one here, and what a smaller ε can add."""

_MAX_EPSILON = 300.0
"""At a larger ε the profile is bounded by the one here; what the fewest people attain does not depend on ε."""

_MIN_P = 1e-9
"""A smaller p is replaced by this one, which is sound."""

_BATCH_SIZE = 32
"""This many ε are searched at once."""

_SPARE_ROUNDS = 6
"""More ε at which an inversion looks at all numbers of people before it is left to a search without leaders."""

_MAX_ROUNDS_IN_BOX = 4
"""In a box, where a search is slow, it is left to the other theorems after this many."""

_NEGLIGIBLE_SHARE = 1e-3
"""Numbers of known people that add less than this together, relatively, are not looked at."""

MAX_KNOWN = 8
"""Of more known people it takes long to look at all numbers of them who may count."""

_GUESSES = (0.4, 0.6, 0.8, 1.0, 1.3, 1.8)
"""Multiples of k/p at which the worst number of people may be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NoisyThreshold(Threshold):
    """Privacy profile of a count that is suppressed below `k`, noised, and suppressed again below a release threshold.

    Parameters
    ----------
    theorem, k, p, cap, known
        See `Threshold`; `k` is what is left of the threshold once all who are controlled are taken off; all `known` are
        merely known, fewer than k - 1 of them or no more than k - 1 expected to count.
    p_min : float, optional
        Every unknown person is counted with at least this probability; None where some may be known not to be.
    unknown : int
        At least this many people are unknown, in a box.
    noise : float
        ε0 of the two-sided geometric noise.
    release_threshold : int, optional
        Less those who are controlled; None where every noisy value is published.

    Notes
    -----
    The worst attacker has some number of people at `p`, all who may be merely known among them, and nobody else counts.
    In a box, some people are at `p_min` and some at `p`. All their numbers are covered: by blocks, in each of which the
    numbers at the corners bound the whole block, and from some numbers on by the count without its threshold, against
    whom more people only hide better.

    *Guarantee*: the certified side is never below the divergence of any declared attacker, in either direction; the
    attained side is that of one such attacker. *Rounding*: outward; the two sides agree within 0.2 %, in a box within
    4.1 %, where the search is not cut short, as it is next to the end of the noise's profile, for thresholds of many
    thousands, and in a box for hundreds. Above
    ε = 300 and below 2^-11 the certified side is that of these ε, and what a smaller ε can add. *Source*:
    `docs/mathematics.md`, theorem D.
    """

    noise: float
    release_threshold: int | None = None
    p_min: float | None = None
    unknown: int = 0

    @property
    def slack(self) -> float:
        """Return how far above the best attacker found the search may stop."""
        return SLACK if self.p_min in (None, self.p) else SLACK_IN_BOX

    @property
    def negligible(self) -> float:
        """Below this no two sides need to agree."""
        return NEGLIGIBLE_DELTA if self.p_min in (None, self.p) else NEGLIGIBLE_DELTA_IN_BOX

    def before_noise(self, epsilons: Array) -> Array:
        """Return at most what the count tells without noise, of which noise only hides; 1 beside people known."""
        if self.known:
            return np.ones(len(epsilons))
        return self.suppression.certified(epsilons)

    def rounding(self, epsilons: Array) -> Array:
        """See `pkdp_pipeline.theorems.bound.Bound`."""
        return np.repeat(np.minimum(1.0, EVALUATED + 4.0 * self._optimum(epsilons).apart)[None], 2, axis=0)

    def bracket(self, epsilons: Array) -> tuple[Array, Array]:
        """Return (attained, certified) arrays; see `pkdp_pipeline.theorems.bound.Bound`."""
        optimum = self._optimum(epsilons)
        return optimum.best, optimum.top

    def smallest_epsilon(self, target: float) -> float:
        """See `pkdp_pipeline.theorems.bound.Bound`; few ε look at all numbers of people, the others at the worst."""
        if self.out_of_reach or self.p < _MIN_P or max(self.k, self.release_threshold or 0) > MAX_NOISY_VALUES:
            return Bound.smallest_epsilon(self, target)
        first, most = self._channels, math.inf if self.cap is None else self.cap
        low, high = (part.tolist() for part in ladder(first, max(0, self.unknown, first[-1].k - 1), most))
        people, options = list(zip(low, high, strict=True)), dict[str, Any](share=1.0 + 0.5 * self.slack)
        if self.p_min is None:
            search, share = self.search(np.array([self.noise])), 1.0 + 1.14 * self.slack
            # Each order of the lives has a worst number of people of its own.
            heights = [cache(partial(search.reaching, high=0, target=target / share, order=order)) for order in (1, -1)]
            middle = bisect_left(places := low[::2], self.k / self.p, hi=len(places) - 1)
            start, worst = max((height(crowd := highest(height, places, middle)), crowd) for height in heights)
            people = [(worst, 0)]
            options |= {"share": share, "start": start, "tolerance": 0.25 * self.slack, "spare": _SPARE_ROUNDS}
        else:
            options |= {"rounds": _MAX_ROUNDS_IN_BOX}
        best = invert(target, people, self._towards, self._look, **options)
        # In a box, where a search is slow, it is left to the other theorems.
        return Bound.smallest_epsilon(self, target) if math.isinf(best) and self.p_min is None else best

    def _look(self, epsilon: float) -> tuple[float, list[tuple[int, int]]]:
        """Return what is certified at an ε, and the worst numbers of people there."""
        optimum = self._optimum(np.array([epsilon]))
        low, high = optimum.leader[:, 0].tolist()
        return float(optimum.top[0]), [(low, high)]

    def worst_numbers(self, epsilon: float) -> tuple[int, int]:
        """Return how many people at `p_min`, if declared, and how many at `p` are the worst attacker found."""
        low, high = self._optimum(np.array([epsilon])).leader[:, 0].tolist()
        return (0, low) if self.p_min is None else (low, high)

    def crowd(self, people: int) -> Pair | None:
        """Return the laws of what so many equal people show with the target and without; None where they are too many.

        It bounds from below only; what is left out of either law is at most `Pair.first_only`, and `second_only`.
        """
        channel = self._channels[0]
        if people < channel.k - 1:
            return Pair(weight=np.ones(1), ratio=np.ones(1), budget=0.0, first_only=0.0, second_only=0.0)
        row = row_of(channel, people, 0)
        if row is None:
            return None
        few, just, _, rest, under, budget = row.numbers
        hidden = few + just * channel.hides + row.laws[3, 0], few + just + row.laws[2, 0]
        weight, absent = (np.append(law, mass) for law, mass in zip(row.laws[:2], hidden, strict=True))
        weight, ratio = (
            weight[weight > UNDERFLOW_MASS],
            absent[weight > UNDERFLOW_MASS] / weight[weight > UNDERFLOW_MASS],
        )
        order = np.argsort(ratio, kind="stable")
        lost = rest + under + UNDERFLOW_MASS
        return Pair(weight=weight[order], ratio=ratio[order], budget=2.0 * budget, first_only=lost, second_only=lost)

    def _towards(self, people: list[tuple[int, int]], epsilon: float) -> float:
        """Return the largest δ of some numbers of people."""
        clipped = min(max(epsilon, _MIN_EPSILON), _MAX_EPSILON)
        _, upper = self.search(np.array([clipped])).exact(np.zeros(len(people), dtype=np.int64), *np.array(people).T)
        return float(upper.max()) + math.expm1(clipped) - math.expm1(min(clipped, epsilon))

    @property
    def out_of_reach(self) -> bool:
        """Whether everything is suppressed, whichever people count."""
        most = 0 if self.p == 0.0 else self.cap
        return most is not None and most < self.k - 1 - (self.known if self.p > 0.0 else 0)

    def search(self, epsilons: Array) -> NoisySearch:
        """Return the search for the worst number of people."""
        p, channels = max(self.p, _MIN_P), self._channels
        if not self.known:
            return NoisySearch(channels, np.ones(1), np.ones(1), self.unknown, self.cap, epsilons)
        chances = binomial_weights(self.known, p, 0, self.known)
        kept, others = self._matters(channels[0], chances, epsilons)
        relevant, lowered = tuple(channels[b] for b in kept.tolist()), weights_below(chances)[kept]
        return NoisySearch(relevant, chances[kept], lowered, self.unknown, self.cap, epsilons, others)

    @property
    def _channels(self) -> tuple[Channel, ...]:
        """The channels where 0, 1, 2, … of those who are known count."""
        release, p = self.release_threshold, max(self.p, _MIN_P)
        low = p if self.p_min is None else max(_MIN_P, min(self.p_min, p))
        return tuple(
            Channel(max(0, self.k - b), None if release is None else release - b, self.noise, low, p)
            for b in range(self.known + 1)
        )

    def _matters(self, channel: Channel, chances: Array, epsilons: Array) -> tuple[Whole, Array]:
        """Return which numbers of known people are looked at, and at most what the others add at each ε.

        No number adds more than it does without noise, or without a threshold; from k on nobody is hidden by one.
        """
        behind = np.arange(self.k - 1, self.k - 1 - min(len(chances), self.k - 1), -1)
        points, cutoffs = np.tile(epsilons, len(behind)), np.repeat(behind, len(epsilons)).tolist()
        sides = (tails(cutoffs, channel.p_max, points, cap=self.cap)[1] for tails in (right_tails, left_tails))
        most = np.ones((len(chances), len(epsilons)))
        most[: len(behind)] = np.maximum(*sides).reshape(len(behind), len(epsilons))
        noise = NoiseCurve(theorem="noise", noise=self.noise, cells=1, moves=False)
        most[self.k :] = noise.certified(epsilons)
        if self.release_threshold is not None:
            appears = replace(noise, appears_at=self.release_threshold - self.k)
            most = np.minimum(most, appears.certified(epsilons))
        adds = chances[:, None] * most * (1.0 + 1e-12)
        # δ is a mean over how many known people count. Numbers that together add a negligible share of what some number
        # of people attains with nobody known are left out, and what they add at most is added to the bound.
        people = np.unique(np.ceil(self.k / channel.p_max * np.array(_GUESSES)).astype(np.int64))
        people = np.minimum(people, np.iinfo(np.int64).max if self.cap is None else self.cap)
        alone = NoisySearch((channel,), np.ones(1), np.ones(1), self.unknown, self.cap, epsilons)
        column, index = (part.ravel() for part in np.indices((len(epsilons), len(people))))
        deltas = np.full(column.shape, 0.0)
        if all(alone.fits(m, 0) for m in people.tolist()):
            deltas = alone.exact(column, people[index], np.zeros_like(index))[0]
        deltas = deltas.reshape(len(epsilons), len(people)).max(axis=1)
        share = np.divide(adds, deltas, out=np.full(adds.shape, np.inf), where=deltas > TINY).max(axis=1)
        order = np.argsort(share, kind="stable")
        small = np.cumsum(share[order]) <= _NEGLIGIBLE_SHARE
        return np.sort(order[~small]), adds[order[small]].sum(axis=0) * (1.0 + 1e-12)

    def as_on_line(self, epsilons: Array) -> tuple[Whole, Optimum]:
        """Return which ε have to be searched, and what is found for the others.

        In a box nobody tells more than where some may be known not to be counted. A search would only say the same
        where as much, but for the slack, is attained in the box: by the worst people of that, and others at `p_min`.
        """
        many = len(epsilons)
        everywhere, nothing = np.arange(many), np.zeros(many)
        if self.p_min is None or self.p < _MIN_P:
            return everywhere, Optimum(nothing, nothing, nothing, np.zeros((2, many), dtype=np.int64))
        line = _cached_optimum(
            replace(self, theorem="noisy_thresholding", p_min=None, unknown=0), tuple(epsilons.tolist())
        )
        high = line.leader[0]
        low = np.maximum(0, self.unknown - high)
        search = self.search(epsilons)
        fit = np.array([search.fits(*pair) for pair in zip(low.tolist(), high.tolist(), strict=True)], dtype=bool)
        best, upper, rows = nothing.copy(), nothing.copy(), np.flatnonzero(fit)
        if len(rows):
            best[rows], upper[rows] = search.exact(rows, low[rows], high[rows])
        enough = (line.top <= (1.0 + self.slack) * best) & (best > 0.0)
        apart = np.minimum(1.0, np.maximum(line.apart, (upper - best) / np.maximum(best, TINY)))
        return everywhere[~enough], Optimum(best, line.top, apart, np.stack([low, high]))

    def _optimum(self, epsilons: Array) -> Optimum:
        return _cached_optimum(self, tuple(epsilons.tolist()))


@dataclass(frozen=True, slots=True, kw_only=True)
class NoisyBesideKnown(Largest):
    """`NoisyThreshold` in a box for each number of known people who may count: there more may tell more, or less."""

    parts: tuple[NoisyThreshold, ...]

    def worst_numbers(self, epsilon: float) -> tuple[int, int]:
        """Return what `NoisyThreshold.worst_numbers` does, of the part that attains most."""
        point = np.array([epsilon])
        return max(self.parts, key=lambda part: float(part.bracket(point)[0][0])).worst_numbers(epsilon)


@lru_cache(maxsize=256)
def _cached_optimum(bound: NoisyThreshold, epsilons: tuple[float, ...]) -> Optimum:
    """Return what is found at these ε; a certificate asks for the same ones again."""
    points = np.array(epsilons)
    if bound.out_of_reach:
        nothing = np.zeros(len(points))
        return Optimum(*kept((nothing, nothing, nothing, np.zeros((2, len(points)), dtype=np.int64))))
    if bound.p == 0.0:
        return _cached_optimum(replace(bound, p=0.5, cap=0, known=0), epsilons)
    clipped = np.clip(points, _MIN_EPSILON, _MAX_EPSILON)
    left, optimum = bound.as_on_line(clipped)
    best, top, apart, leader = (part.copy() for part in optimum)
    before = bound.before_noise(clipped[left])
    small = before <= bound.negligible
    settled, left = left[small], left[~small]
    top[settled], apart[settled] = before[small], 0.0
    leader[0, settled] = np.maximum(leader[0, settled], max(bound.unknown, bound.k - 1) - leader[1, settled])
    for start in range(0, len(left), _BATCH_SIZE):
        rows = left[start : start + _BATCH_SIZE]
        best[rows], top[rows], apart[rows], leader[:, rows] = bound.search(clipped[rows]).sides()
    # For a smaller ε the profile grows by at most the difference of the e^ε, as no event is likelier than 1.
    top = np.minimum(1.0, top + (np.expm1(clipped) - np.expm1(np.minimum(clipped, points))))
    if (points > _MAX_EPSILON).any():
        # What is attained by just as many people as make k possible does not depend on ε.
        search = bound.search(np.array([_MAX_EPSILON]))
        place = np.zeros(1, dtype=np.int64), np.array([search.least]), np.zeros(1, dtype=np.int64)
        best = np.where(points > _MAX_EPSILON, search.exact(*place)[0] if search.fits(search.least, 0) else 0.0, best)
    if bound.p < _MIN_P:
        # A larger p dominates; what is attained there proves nothing.
        best = np.zeros(len(points))
    return Optimum(*kept((best, top, apart, leader)))
