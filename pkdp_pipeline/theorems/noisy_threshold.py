"""Theorem D: a count that is suppressed below k, noised, and suppressed again below a release threshold."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import NamedTuple

import numpy as np

from pkdp_pipeline.theorems.binomial_tails import binomial_below
from pkdp_pipeline.theorems.bound import Bound, smallest_epsilon
from pkdp_pipeline.theorems.noisy_rows import (
    LOST,
    WIDEST,
    Channel,
    Rows,
    Whole,
    falling_ratio,
    least_ratio,
    rising_ratio,
    row_of,
    rows_of,
    suffixes,
)
from pkdp_pipeline.theorems.rounding import EVALUATED, TINY, UNIT, Array
from pkdp_pipeline.theorems.thresholding import Threshold

_SLACK = 0.01
"""Blocks are divided until none exceeds the best attacker found by more than this, relatively."""

_LEAST = 2.0**-11
"""Of a smaller ε the profile is bounded by the one here, and what a smaller ε can add."""

_NEGLIGIBLE = 1e-250
"""Below this no two sides need to agree."""

_FLAT = 300.0
"""At a larger ε the profile is bounded by the one here; what k - 1 people attain does not depend on ε."""

_LEAST_P = 1e-9
"""A smaller p is replaced by this one, which is sound."""

_AT_ONCE = 32
"""So many ε are searched at once."""

_TOGETHER = 256
"""So many blocks are looked at together."""

_ROUNDS = 6
"""Most ε at which an inversion looks at all numbers of people, before it is left to a plain search."""

_CLOSE = 1e-3
"""An inversion ends this close below the δ asked for, relatively."""

_LADDER = 24
"""With so many numbers of people an inversion begins."""

_NEAR = 1.0 - 2.0**-40
"""Up to this share of ε0 an ε is surely below that of the noise as it is drawn."""

_MOST_BLOCKS = 1000
"""With more blocks than this to divide at once, the search stops, which widens the bracket."""


class _Found(NamedTuple):
    """For every ε: the best attacker's δ, a bound on all, how far apart the sides of one are, and who is the best."""

    best: Array
    top: Array
    apart: Array
    leader: Whole


class Search:
    """The largest divergences of a channel over all numbers of coins, for several ε at once.

    A place is an ε and a number of coins; a block is an ε and two numbers, with all between.
    """

    def __init__(self, channel: Channel, cap: int | None, epsilons: Array) -> None:
        self.channel, self.cap, self.epsilons = channel, cap, epsilons
        alpha, rise = math.exp(-channel.noise), np.expm1(epsilons)
        self.growth = np.exp(epsilons)
        # So far beyond a cutoff a count still speaks for it: log((e^ε - 1)(1 + α)/(e^ε - α)) / log α.
        self.inside = epsilons < channel.noise * _NEAR
        share = rise * (1.0 + alpha) / (rise - math.expm1(-channel.noise))
        self.turn = np.where(self.inside, np.maximum(0.0, -np.log(share) / channel.noise), 0.0)

    def sides(self) -> _Found:
        """Return what is found for every ε."""
        many = len(self.epsilons)
        best, top, apart = np.zeros((3, many))
        found = _Found(best, top, apart, np.full(many, max(0, self.channel.k - 1)))
        ends, reached = self._edges(found)
        column, place = np.nonzero(np.arange(len(ends) - 1) < reached[:, None])
        firsts, lasts = np.array(ends)[place], np.array(ends)[place + 1]
        wide = lasts - firsts > 1
        column, firsts, lasts = column[wide], firsts[wide], lasts[wide]
        while len(firsts):
            enough = np.maximum((1.0 + _SLACK) * best[column], _NEGLIGIBLE)
            parts = range(0, len(firsts), _TOGETHER)
            cut = [slice(at, at + _TOGETHER) for at in parts]
            bounds = np.concatenate([self.between(column[c], firsts[c], lasts[c], enough[c]) for c in cut])
            done = bounds <= enough
            # Every bound holds as it stands: stopping here widens the bracket and changes nothing else.
            done |= len(firsts) > _MOST_BLOCKS * many
            np.maximum.at(top, column[done], bounds[done])
            column, firsts, lasts = column[~done], firsts[~done], lasts[~done]
            if not len(firsts):
                break
            middles = (firsts + lasts) // 2
            self._improve(column, middles, found)
            column, firsts, lasts = (
                np.concatenate(pair) for pair in ((column, column), (firsts, middles), (middles, lasts))
            )
            wide = lasts - firsts > 1
            column, firsts, lasts = column[wide], firsts[wide], lasts[wide]
        np.minimum(1.0, top, out=top)
        return found

    def _edges(self, found: _Found) -> tuple[list[int], Whole]:
        """Return numbers of coins that blocks lie between, and how many blocks each ε needs.

        The upper sides of what is found include a bound on all larger numbers.
        """
        k, p, many = self.channel.k, self.channel.p, len(self.epsilons)
        least = max(0, k - 1)
        most = math.inf if self.cap is None else self.cap
        ends, step, reached = [least], 1, np.zeros(many, dtype=np.int64)
        # Before about as many as make k likely no tail can be left out.
        while ends[-1] * p < k and ends[-1] < most:
            ends.append(int(min(least + step, most)))
            step *= 2
        if row_of(self.channel, ends[-1]) is None:
            found.top[:] = 1.0
            return ends, reached
        column, place = (part.ravel() for part in np.indices((many, len(ends))))
        self._improve(column, np.array(ends)[place], found)
        left = np.arange(many)
        while len(left):
            beyond = np.zeros(len(left)) if ends[-1] == most else self.beyond(left, ends[-1])
            reached[left] = len(ends) - 1
            further = int(min(least + step, most))
            done = beyond <= np.maximum((1.0 + _SLACK) * found.best[left], _NEGLIGIBLE)
            # A bound that is not small enough holds as well.
            done |= row_of(self.channel, further) is None
            found.top[left[done]] = np.maximum(found.top[left[done]], beyond[done])
            left = left[~done]
            if len(left):
                ends.append(further)
                step *= 2
                self._improve(left, np.full(len(left), further), found)
        return ends, reached

    def _improve(self, column: Whole, people: Whole, found: _Found) -> None:
        """Look at these places, and enter what is there."""
        lower, upper = self.exact(column, people)
        np.maximum.at(found.best, column, lower)
        np.maximum.at(found.top, column, upper)
        leading = lower >= 0.5 * found.best[column]
        wide = (upper - lower)[leading] / np.maximum(lower[leading], TINY)
        np.maximum.at(found.apart, column[leading], np.minimum(1.0, wide))
        first = (lower == found.best[column]) & (lower > 0.0)
        found.leader[column[first]] = people[first]

    def beyond(self, column: Whole, m: int) -> Array:
        """Return bounds on the divergence with m coins or more, where these make k likely.

        From ε0 on only a count that has just reached k tells anything. Below, the count without its threshold, which
        more coins only help to hide, differs from it where fewer than k people count.
        """
        row, growth = row_of(self.channel, m), self.growth[column]
        noisy = self.epsilons[column] < self.channel.noise
        if row is None or m * self.channel.p < self.channel.k:
            return np.ones(len(column))
        bounds = np.full(len(column), self.channel.appears * row.numbers[1] * (1.0 + row.numbers[-1]) + LOST)
        if noisy.any():
            free = row_of(replace(self.channel, k=0, release=None), m)
            if free is None:
                return np.where(noisy, 1.0, bounds)
            budget, rest = free.numbers[-1], free.numbers[3]
            gains = np.zeros(len(column))
            for first, second in (free.laws[:2], free.laws[1::-1]):
                apart = first * (1.0 + budget) - growth[:, None] * (1.0 - budget) * second
                gains = np.maximum(gains, np.maximum(0.0, apart).sum(axis=1) + rest)
            few = (1.0 + growth) * binomial_below(m, self.channel.p, self.channel.k)
            bounds = np.where(noisy, gains + few, bounds)
        return bounds * (1.0 + 1e-12)

    def exact(self, column: Whole, people: Whole) -> tuple[Array, Array]:
        """Return brackets of the divergence, the larger of both orders, at each place."""
        rows, growth = rows_of(self.channel, people), self.growth[column][:, None]
        shown = 1.0 - self.channel.appears
        one, other = rows.few + rows.just * shown + rows.before[:, :1], rows.few + rows.just + rows.hidden[:, :1]
        present, absent = np.hstack([rows.present, one]), np.hstack([rows.absent, other])
        lower, upper = np.zeros(len(people)), np.zeros(len(people))
        less, more = growth * (1.0 + rows.budget), growth * (1.0 - rows.budget)
        for first, second in ((present, absent), (absent, present)):
            lower = np.maximum(lower, np.maximum(0.0, first * (1.0 - rows.budget) - second * less).sum(axis=1))
            upper = np.maximum(upper, np.maximum(0.0, first * (1.0 + rows.budget) - second * more).sum(axis=1))
        lost = ((1.0 + growth) * (rows.rest + rows.under))[:, 0]
        return np.maximum(0.0, lower * (1.0 - 1e-12) - lost), upper * (1.0 + 1e-12) + self._left_out(column, rows)[:, 0]

    def _left_out(self, column: Whole, rows: Rows) -> Array:
        """Return at most how much the counts left out can add: from ε0 on only that of k - 1 people tells anything."""
        return np.where((self.epsilons[column] < self.channel.noise)[:, None], rows.rest, LOST)

    def between(self, column: Whole, firsts: Whole, lasts: Whole, enough: Array) -> Array:
        """Return bounds on the divergence in each block, both ends included; coarse ones where these are `enough`."""
        ends = rows_of(self.channel, np.concatenate([firsts, lasts]))
        near, far = (Rows(*(part[half] for part in ends)) for half in (np.s_[: len(firsts)], np.s_[len(firsts) :]))
        a, b = firsts[:, None].astype(float), lasts[:, None].astype(float)
        # More coins publish more often.
        bounds: Array = far.present.sum(axis=1) * (1.0 + 2.0 * far.budget[:, 0]) + far.rest[:, 0]
        todo = np.flatnonzero(bounds > enough)
        if len(todo):
            near, far = (Rows(*(part[todo] for part in rows)) for rows in (near, far))
            a, b, column = a[todo], b[todo], column[todo]
            found = np.maximum(self._right(near, far, a, b, column), self._left(near, far, a, b, column, enough[todo]))
            bounds[todo] = np.minimum(bounds[todo], found)
        return bounds * (1.0 + 1e-10)

    def _right(self, near: Rows, far: Rows, a: Array, b: Array, column: Whole) -> Array:
        """Return bounds on ``P[Y ≥ t] - e^ε P[Y' ≥ t]`` for all t and all numbers of coins in each block."""
        growth = self.growth[column][:, None]
        # More coins publish larger numbers.
        bounds = suffixes(far.present * (1.0 + far.budget)) + far.rest
        gains = near.present * (1.0 + near.budget) - growth * (1.0 - near.budget) * near.absent
        gains = suffixes(np.maximum(0.0, gains)) + LOST
        least = float(max(0, self.channel.k - 1))
        turns = self._cutoffs(gains.shape[1]) + np.floor(self.turn[column] + 1e-6)[:, None]
        turns = np.where((self.epsilons[column] < self.channel.noise)[:, None], np.maximum(turns, least), least)
        seen = turns <= np.minimum(near.high, a)
        rising = rising_ratio(self.channel.p, np.minimum(turns, a), a, b)
        result: Array = np.where(seen, np.minimum(bounds, gains * rising), bounds).max(axis=1)
        return result

    def _left(self, near: Rows, far: Rows, a: Array, b: Array, column: Whole, enough: Array) -> Array:
        """Return bounds on the other order: events that hold less often with more coins, from the end of each block."""
        k, growth, turn = self.channel.k, self.growth[column][:, None], self.turn[column][:, None]
        cutoffs = self._cutoffs(far.present.shape[1] + 1)
        gains = far.absent * (1.0 + far.budget) - growth * (1.0 - far.budget) * far.present
        rest = self._left_out(column, far)
        gains = np.cumsum(np.maximum(0.0, gains), axis=1) + rest
        gains *= (self.epsilons[column] < self.channel.noise)[:, None]
        # With what is suppressed: fewer than k - 1 people, just as many, and more.
        more = far.hidden * (1.0 + far.budget) - growth * (1.0 - far.budget) * far.before + rest
        jumps = np.maximum(0.0, 1.0 - growth * self.channel.below(cutoffs[:-1] - k) + 4.0 * UNIT * (1.0 + growth))
        just = near.just * (1.0 + near.budget) + LOST
        just = np.minimum(1.0, just * rising_ratio(self.channel.p, np.full((1, 1), max(0.0, k - 1.0)), a, b))
        others = jumps * just - (growth - 1.0) * (1.0 - 1e-12) * far.few * (1.0 - far.budget)
        # The first cutoff falls least.
        falling = falling_ratio(self.channel.p, np.maximum(float(k), np.floor(cutoffs[:1] - 1.0 - turn - 1e-6)), a, b)
        most = np.maximum(0.0, more.max(axis=1, keepdims=True)) * falling + others[:, :1]
        bounds: Array = np.maximum(gains[:, -1:] * falling, most)[:, 0]
        todo = np.flatnonzero(bounds > enough)
        if len(todo):
            a, b, turn, more = a[todo], b[todo], turn[todo], more[todo]
            falling = falling_ratio(self.channel.p, np.maximum(float(k), np.floor(cutoffs - 1.0 - turn - 1e-6)), a, b)
            least = least_ratio(self.channel.p, np.maximum(float(k), np.ceil(cutoffs[:-1] - turn)), a, b)
            more = np.where(more > 0.0, more * falling[:, :-1], more * least * self.inside[column[todo]][:, None])
            bounds[todo] = np.maximum((gains[todo] * falling[:, 1:]).max(axis=1), (more + others[todo]).max(axis=1))
        return bounds

    def _cutoffs(self, size: int) -> Array:
        """Return the values at which an event can begin: the first that is published, and those that follow."""
        k, release = self.channel.k, self.channel.release
        cutoffs = np.arange(size, dtype=np.float64) + (k if release is None else max(k, release))
        cutoffs[0] = -np.inf if release is None else release
        return cutoffs


@dataclass(frozen=True, slots=True, kw_only=True)
class NoisyThreshold(Threshold):
    """Privacy profile of a count that is suppressed below `k`, noised, and suppressed again below a release threshold.

    Parameters
    ----------
    theorem, k, p, cap
        See `Threshold`; `k` is what is left of the threshold once all who are controlled are taken off.
    noise : float
        ε0 of the two-sided geometric noise.
    release_threshold : int, optional
        Less those who are controlled; None where every noisy value is published.

    Notes
    -----
    The worst attacker has some number of people at `p`, and nobody else is counted. All numbers are covered: by blocks,
    in each of which the number at either end bounds the whole block, and from some number on by the count without its
    threshold, against whom more people only hide better.

    *Guarantee*: the certified side is never below the divergence of any declared attacker, in either direction; the
    attained side is that of one such attacker. *Rounding*: outward; the two sides agree within 1.1 % where the search
    is not cut short, as it is next to the end of the noise's profile and for thresholds of many thousands. Above
    ε = 300 and below 2^-11 the certified side is that of these ε, and what a smaller ε can add. *Source*:
    `docs/mathematics.md`, theorem D.
    """

    noise: float
    release_threshold: int | None = None

    @property
    def slack(self) -> float:
        """Return how far above the best attacker found the search may stop."""
        return _SLACK

    def rounding(self, epsilons: Array) -> Array:
        """See `pkdp_pipeline.theorems.bound.Bound`."""
        return np.repeat(np.minimum(1.0, EVALUATED + 4.0 * self._found(epsilons).apart)[None], 2, axis=0)

    def bracket(self, epsilons: Array) -> tuple[Array, Array]:
        """Return (attained, certified) arrays; see `pkdp_pipeline.theorems.bound.Bound`."""
        found = self._found(epsilons)
        return found.best, found.top

    def smallest_epsilon(self, target: float) -> float:
        """See `pkdp_pipeline.theorems.bound.Bound`; few ε look at all numbers of people, the others at the worst."""
        if self.out_of_reach or self.p < _LEAST_P or max(self.k, self.release_threshold or 0) > WIDEST:
            return Bound.smallest_epsilon(self, target)
        most = math.ceil(2.0 * max(self.k, self.release_threshold or 0) / self.p)
        ladder = max(0, self.k - 1) + most * (np.arange(_LADDER) / _LADDER) ** 2
        looked = np.unique(np.minimum(ladder, math.inf if self.cap is None else self.cap).astype(np.int64))
        leaders: set[int] = set()
        share, best = 1.0 + 0.5 * _SLACK, math.inf
        for _ in range(_ROUNDS):
            epsilon = smallest_epsilon(partial(self._towards, looked, share), target, _CLOSE)
            if math.isinf(epsilon):
                break
            found = self._found(np.array([epsilon]))
            certain = float(found.top[0])
            best = min(best, epsilon) if certain <= target else best
            leaders.add(int(found.leader[0]))
            looked = np.array(sorted(leaders))
            near = self._towards(looked, 1.0, epsilon)
            if (1.0 - 3.0 * _CLOSE) * target <= certain <= target or near == 0.0:
                break
            share = max(1.0, certain / near) * (1.0 + _CLOSE)
        return Bound.smallest_epsilon(self, target) if math.isinf(best) else best

    def worst_number(self, epsilon: float) -> int:
        """Return how many people at `p` are the worst attacker found."""
        return int(self._found(np.array([epsilon])).leader[0])

    def _towards(self, people: Whole, share: float, epsilon: float) -> float:
        """Return `share` times the largest δ of some numbers of people."""
        near = min(max(epsilon, _LEAST), _FLAT)
        search = self.search(np.array([near]))
        _, upper = search.exact(np.zeros(len(people), dtype=np.int64), people)
        return min(1.0, share * float(upper.max()) + math.expm1(near) - math.expm1(min(near, epsilon)))

    @property
    def channel(self) -> Channel:
        """What the count goes through."""
        return Channel(self.k, self.release_threshold, self.noise, max(self.p, _LEAST_P))

    @property
    def out_of_reach(self) -> bool:
        """Whether everything is suppressed, whoever counts."""
        most = 0 if self.p == 0.0 else self.cap
        return most is not None and most < self.k - 1

    def search(self, epsilons: Array) -> Search:
        """Return the search for the worst number of people."""
        return Search(self.channel, self.cap, epsilons)

    def _found(self, epsilons: Array) -> _Found:
        return _looked(self, tuple(epsilons.tolist()))


@lru_cache(maxsize=256)
def _looked(bound: NoisyThreshold, epsilons: tuple[float, ...]) -> _Found:
    """Return what is found at these ε; a certificate asks for the same ones again."""
    asked = np.array(epsilons)
    if bound.out_of_reach:
        nothing = np.zeros(len(asked))
        return _Found(nothing, nothing, nothing, nothing.astype(np.int64))
    if bound.p == 0.0:
        return _looked(replace(bound, p=0.5, cap=0), epsilons)
    near = np.clip(asked, _LEAST, _FLAT)
    parts = [bound.search(near[at : at + _AT_ONCE]).sides() for at in range(0, len(near), _AT_ONCE)]
    best, top, apart, leader = (np.concatenate(part) for part in zip(*parts, strict=True))
    # Of the events that the profile consists of none is likelier than 1.
    top = np.minimum(1.0, top + (np.expm1(near) - np.expm1(np.minimum(near, asked))))
    if (asked > _FLAT).any():
        # What k - 1 people attain does not depend on ε.
        search = bound.search(np.array([_FLAT]))
        least = np.array([max(0, bound.k - 1)])
        wide = row_of(bound.channel, int(least[0])) is None
        best = np.where(asked > _FLAT, 0.0 if wide else search.exact(np.zeros(1, dtype=np.int64), least)[0], best)
    return _Found(best, top, apart, leader)
