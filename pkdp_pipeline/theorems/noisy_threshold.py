"""Theorem D: a count that is suppressed below k, noised, and suppressed again below a release threshold."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

import flint
import numpy as np
from numpy.typing import NDArray

from pkdp_pipeline.theorems.binomial_tails import LEAST_P, binomial_below, log_binomial_pmf, outward_from
from pkdp_pipeline.theorems.bound import Bound
from pkdp_pipeline.theorems.rounding import TINY, UNIT, Array, ball_above
from pkdp_pipeline.theorems.thresholding import Threshold

Whole = NDArray[np.int64]

_SLACK = 0.0075
"""Blocks are divided until none exceeds the best attacker found by more than this, relatively."""

_REACH = 92.0
"""Counts whose probability is below e^-92 of what matters are bounded together."""

_LEAST = 2.0**-11
"""Of a smaller ε the profile is bounded by the one here, and what a smaller ε can add."""

_NEGLIGIBLE = 1e-250
"""Below this no two sides need to agree."""

_FLAT = 300.0
"""At a larger ε the profile is bounded by the one here; what k - 1 people attain does not depend on ε."""

_WIDEST = 12_000
"""Most noisy values looked at for one number of people; with more the search stops."""

_NEAR = 1.0 - 2.0**-40
"""Up to this share of ε0 an ε is surely below that of the noise as it is drawn."""

_MOST_BLOCKS = 600
"""With more blocks than this to divide at once, the search stops, which widens the bracket."""

_LOST = 1e5 * TINY
"""What may have been lost to underflow in all numbers of a row."""


@dataclass(frozen=True, slots=True)
class _Channel:
    """Suppress below `k`, add noise, suppress below `release`; `p` is the chance of every coin."""

    k: int
    release: int | None
    noise: float
    p: float

    def above(self, steps: Array) -> Array:
        """Return ``P[Z ≥ s]``."""
        tail = np.exp(-self.noise * np.where(steps >= 1, steps, 1 - steps)) / (1.0 + math.exp(-self.noise))
        result: Array = np.where(steps >= 1, tail, 1.0 - tail)
        return result

    def below(self, steps: Array) -> Array:
        """Return ``P[Z < s]``."""
        return self.above(1 - steps)

    @property
    def appears(self) -> float:
        """δ0: how often a count that has just reached k is published."""
        return 1.0 if self.release is None else float(self.above(np.array([self.release - self.k]))[0])


@dataclass(frozen=True, slots=True)
class _Row:
    """What is published of m coins: every number within `budget`, relatively, but for `rest`.

    `present` and `absent` are the laws of what is published in the target's two lives, from the least value on, values
    of the same likelihood ratio merged. `few` and `just` are P[S < k-1] and P[S = k-1]; ``hidden[i]`` and
    ``before[i]`` are ``P[S ≥ k, S + Z < t]`` for the i-th value t, and for t - 1. `rest` bounds the coins not looked at.
    """

    present: Array
    absent: Array
    hidden: Array
    before: Array
    few: float
    just: float
    high: int
    rest: float
    under: float
    budget: float


@lru_cache(maxsize=8192)
def _row(channel: _Channel, m: int) -> _Row | None:
    """Return the row of m coins, at least k - 1; None where it would be too wide."""
    k, release, p, noise = channel.k, channel.release, channel.p, channel.noise
    mode = int((m + 1) * p)
    spread = _REACH / 3.0 + math.sqrt(_REACH * _REACH / 9.0 + 2.0 * _REACH * m * p * (1.0 - p)) + 2.0
    low = max(0, math.floor(min(mode, k - 1) - spread))
    high = min(m, math.ceil(max(mode, k - 1) + spread))
    first = k if release is None else max(k, release)
    size = max(high + 1, first) - k + 1
    if max(size, high - low, abs(first - (release or first))) > _WIDEST:
        return None
    steps = np.arange(low, high, dtype=np.float64)
    anchor = min(mode, high)
    with flint.ctx.workprec(96 + 2 * m.bit_length()):
        peak = ball_above(log_binomial_pmf(m, anchor, p).exp())
    with np.errstate(under="ignore"):
        weights = outward_from(anchor - low, peak, (m - steps) * (p / (1.0 - p)) / (steps + 1.0))
        falls = (m - high) * p / ((high + 1) * (1.0 - p))
        rest = float(weights[-1]) * falls / (1.0 - falls) * 1.01 + _LOST
        sinks = low * (1.0 - p) / ((m - low + 1) * p)
        under = float(weights[0]) * sinks / (1.0 - sinks) * 1.01 + _LOST if low else 0.0
        below, counts = weights[: k - low], weights[k - low :]
        sums, alpha, silent = _noised(counts, noise, size), math.exp(-noise), -math.expm1(-noise)
        # P(y) = Q(y - 1) + P[S = k - 1] P[Z = y - k].
        just = float(below[-1]) if k else 0.0
        earlier = np.append(alpha * sums[0], sums[:-1])
        present = earlier + just * (silent / (1.0 + alpha)) * np.exp(-noise * np.arange(size))
        numbers = np.arange(k, k + len(counts))
        told = float((counts * channel.below(first - numbers)).sum())
        least = float((counts * channel.below(first - 1 - numbers)).sum())
        absent, present = sums[first - k :].copy(), present[first - k :]
        hidden = told + np.append(0.0, np.cumsum(absent[:-1]))
        before = np.append(least, hidden[:-1])
        factors = np.ones(len(absent))
        if first != release:
            # Values below k that are published have one likelihood ratio.
            depth = math.inf if release is None else float(first - release)
            hidden[0], before[0] = told * math.exp(-noise * depth), told * math.exp(-noise * (depth + 1.0))
            before[1:2] = told
            factors[0] -= alpha / silent * math.expm1(-noise * depth)
        factors[-1] += alpha / silent
    budget = (10.0 * len(weights) + 4.0 * size + 12.0 * noise * (size + abs(first - (release or first))) + 200.0) * UNIT
    return _Row(
        present=present * factors,
        absent=absent * factors,
        hidden=hidden,
        before=before,
        few=float(below[:-1].sum()),
        just=just,
        high=high,
        rest=rest,
        under=under,
        budget=budget,
    )


def _noised(counts: Array, noise: float, size: int) -> Array:
    """Return the law of the sum of noise and a count with these probabilities, on so many values."""
    ahead = np.zeros(size)
    ahead[: len(counts)] = counts
    back, step = ahead.copy(), 1
    while step < size and (decay := math.exp(-noise * step)) > 0.0:
        # After this step every term within 2·step is there.
        ahead[step:] += decay * ahead[:-step]
        back[:-step] += decay * back[step:]
        step *= 2
    alpha = math.exp(-noise)
    ahead[:-1] += alpha * back[1:]
    result: Array = ahead * (-math.expm1(-noise) / (1.0 + alpha))
    return result


class _Rows(NamedTuple):
    """Rows of several numbers of coins below each other; the numbers of a row are columns of one."""

    present: Array
    absent: Array
    hidden: Array
    before: Array
    few: Array
    just: Array
    high: Array
    rest: Array
    under: Array
    budget: Array


def _stacked(rows: list[_Row]) -> _Rows:
    """Return rows as arrays, the shorter ones continued by values that nothing is published at."""
    laws = np.zeros((4, len(rows), max(len(row.present) for row in rows)))
    for at, row in enumerate(rows):
        size = len(row.present)
        for law, values in zip(laws, (row.present, row.absent, row.hidden, row.before), strict=True):
            law[at, :size] = values
        laws[2:, at, size:] = row.hidden[-1]
    numbers = np.array([(row.few, row.just, row.high, row.rest, row.under, row.budget) for row in rows])
    return _Rows(*laws, *numbers.T[:, :, None])


def _suffixes(values: Array) -> Array:
    """Return for every entry the sum of itself and what follows in its row."""
    return np.cumsum(values[:, ::-1], axis=1)[:, ::-1]


class _Search:
    """The largest divergence of a channel over all numbers of coins, for one ε."""

    def __init__(self, channel: _Channel, cap: int | None, epsilon: float) -> None:
        self.channel, self.cap, self.epsilon = channel, cap, epsilon
        self.growth = math.exp(epsilon)
        self.inside = epsilon < channel.noise * _NEAR
        self.turn = self._turn()

    def _turn(self) -> float:
        """Return how far above a cutoff a count still speaks for it: ``log((e^ε-1)(1+α)/(e^ε-α)) / log α``."""
        if not self.inside:
            return 0.0
        alpha, rise = math.exp(-self.channel.noise), math.expm1(self.epsilon)
        share = rise * (1.0 + alpha) / (rise - math.expm1(-self.channel.noise))
        return max(0.0, -math.log(share) / self.channel.noise)

    def sides(self) -> tuple[float, float]:
        """Return (attained, certified)."""
        edges = self._edges()
        if edges is None:
            return 0.0, 1.0
        ends, beyond = edges
        firsts, lasts = np.array(ends[:-1]), np.array(ends[1:])
        lower, upper = self._exact(np.array(ends))
        best, top = float(lower.max()), max(float(upper.max()), beyond)
        while len(firsts):
            bounds = self._between(firsts, lasts)
            done = (bounds <= max((1.0 + _SLACK) * best, _NEGLIGIBLE)) | (len(firsts) > _MOST_BLOCKS)
            top = max(top, float(bounds[done].max(initial=0.0)))
            firsts, lasts = firsts[~done], lasts[~done]
            middles = (firsts + lasts) // 2
            if not len(middles):
                break
            lower, upper = self._exact(middles)
            best, top = max(best, float(lower.max())), max(top, float(upper.max()))
            firsts, lasts = np.concatenate([firsts, middles]), np.concatenate([middles, lasts])
            wide = lasts - firsts > 1
            firsts, lasts = firsts[wide], lasts[wide]
        return best, min(1.0, top)

    def _edges(self) -> tuple[list[int], float] | None:
        """Return numbers of coins at which blocks begin, the last one, and a bound on all that are larger."""
        least = max(0, self.channel.k - 1)
        ends, best = [least], 0.0
        while True:
            if _row(self.channel, ends[-1]) is None:
                return None
            best = max(best, float(self._exact(np.array(ends[-1:]))[0][0]))
            if ends[-1] == self.cap:
                return ends, 0.0
            beyond = self._beyond(ends[-1])
            if beyond is None:
                return None
            if beyond <= max((1.0 + _SLACK) * best, _NEGLIGIBLE):
                return ends, beyond
            ahead = 2 * ends[-1] - least + 1
            ends.append(ahead if self.cap is None else min(ahead, self.cap))

    def _beyond(self, m: int) -> float | None:
        """Return a bound on the divergence with m coins or more: that of the count without its threshold, and its rest.

        Without the threshold more coins only help to hide; it matters where fewer than k people count.
        """
        few = binomial_below(m, self.channel.p, self.channel.k)
        if few >= 1.0:
            return 1.0
        free = 0.0
        if self.epsilon < self.channel.noise:
            row = _row(replace(self.channel, k=0, release=None), m)
            if row is None:
                return None
            present, absent = row.present * (1.0 + row.budget), row.absent * (1.0 + row.budget)
            fewer = self.growth * (1.0 - 2.0 * row.budget)
            right = np.maximum(0.0, present - fewer * row.absent).sum()
            left = np.maximum(0.0, absent - fewer * row.present).sum()
            free = (max(float(right), float(left)) + row.rest) * (1.0 + 1e-12)
        return (free + (1.0 + self.growth) * few) * (1.0 + 1e-12)

    def _exact(self, people: Whole) -> tuple[Array, Array]:
        """Return brackets of the divergence, the larger of both orders, with each of these numbers of coins."""
        rows = self._rows(people)
        if rows is None:
            return np.zeros(len(people)), np.ones(len(people))
        shown = 1.0 - self.channel.appears
        one, other = rows.few + rows.just * shown + rows.before[:, :1], rows.few + rows.just + rows.hidden[:, :1]
        present, absent = np.hstack([rows.present, one]), np.hstack([rows.absent, other])
        lower, upper = np.zeros(len(people)), np.zeros(len(people))
        for first, second in ((present, absent), (absent, present)):
            second = self.growth * second
            gains = np.maximum(0.0, first * (1.0 - rows.budget) - second * (1.0 + rows.budget)).sum(axis=1)
            lower = np.maximum(lower, gains)
            gains = np.maximum(0.0, first * (1.0 + rows.budget) - second * (1.0 - rows.budget)).sum(axis=1)
            upper = np.maximum(upper, gains)
        lost = (1.0 + self.growth) * (rows.rest + rows.under)[:, 0]
        return np.maximum(0.0, lower * (1.0 - 1e-12) - lost), upper * (1.0 + 1e-12) + rows.rest[:, 0]

    def _between(self, firsts: Whole, lasts: Whole) -> Array:
        """Return bounds on the divergence with any number of coins in each block, both ends included."""
        ends = self._rows(np.concatenate([firsts, lasts]))
        if ends is None:
            return np.ones(len(firsts))
        near, far = (_Rows(*(part[half] for part in ends)) for half in (np.s_[: len(firsts)], np.s_[len(firsts) :]))
        a, b = firsts[:, None].astype(float), lasts[:, None].astype(float)
        return np.maximum(self._right(near, far, a, b), self._left(near, far, a, b)) * (1.0 + 1e-10)

    def _rows(self, people: Whole) -> _Rows | None:
        found = [_row(self.channel, m) for m in people.tolist()]
        rows = [row for row in found if row is not None]
        return _stacked(rows) if len(rows) == len(found) else None

    def _right(self, near: _Rows, far: _Rows, a: Array, b: Array) -> Array:
        """Return bounds on ``P[Y ≥ t] - e^ε P[Y' ≥ t]`` for all t and all numbers of coins in each block."""
        # More coins publish larger numbers.
        bounds = _suffixes(far.present * (1.0 + far.budget)) + far.rest
        gains = near.present * (1.0 + near.budget) - self.growth * (1.0 - near.budget) * near.absent
        gains = _suffixes(np.maximum(0.0, gains)) + _LOST
        turns = np.full(gains.shape[1], self.channel.k - 1.0)
        if self.epsilon < self.channel.noise:
            turns = np.maximum(turns, self._cutoffs(gains.shape[1]) + math.floor(self.turn + 1e-6))
        seen = turns <= np.minimum(near.high, a)
        rising = self._rising(np.minimum(turns, a), a, b)
        result: Array = np.where(seen, np.minimum(bounds, gains * rising), bounds).max(axis=1)
        return result

    def _left(self, near: _Rows, far: _Rows, a: Array, b: Array) -> Array:
        """Return bounds on the other order: events that hold less often with more coins, from the end of each block."""
        k, size = self.channel.k, far.present.shape[1]
        cutoffs = self._cutoffs(size + 1)
        falling = self._falling(np.maximum(float(k), np.floor(cutoffs - 1.0 - self.turn - 1e-6)), a, b)
        bounds = np.zeros(len(a))
        if self.epsilon < self.channel.noise:
            gains = far.absent * (1.0 + far.budget) - self.growth * (1.0 - far.budget) * far.present
            gains = np.cumsum(np.maximum(0.0, gains), axis=1) + far.rest
            bounds = (gains * falling[:, 1:]).max(axis=1)
        # With what is suppressed: fewer than k - 1 people, just as many, and more.
        more = far.hidden * (1.0 + far.budget) - self.growth * (1.0 - far.budget) * far.before + far.rest
        least = 0.0
        if self.inside:
            least = self._least(np.maximum(float(k), np.ceil(cutoffs[:-1] - self.turn)), a, b)
        more = np.where(more > 0.0, more * falling[:, :-1], more * least)
        hides = self.growth * self.channel.below(cutoffs[:-1] - k)
        jumps = np.maximum(0.0, 1.0 - hides + 4.0 * UNIT * (1.0 + self.growth))
        just = np.minimum(1.0, (near.just * (1.0 + near.budget) + _LOST) * self._rising(np.array([k - 1.0]), a, b))
        few = math.expm1(self.epsilon) * (1.0 - 1e-12) * far.few * (1.0 - far.budget)
        return np.maximum(bounds, (more + jumps * just - few).max(axis=1))

    def _cutoffs(self, size: int) -> Array:
        """Return the values at which an event can begin: the first that is published, and those that follow."""
        k, release = self.channel.k, self.channel.release
        cutoffs = np.arange(size, dtype=np.float64) + (k if release is None else max(k, release))
        cutoffs[0] = -np.inf if release is None else release
        return cutoffs

    def _rising(self, x: Array, a: Array, b: Array) -> Array:
        """Return at least ``P[Bin(m) = x] / P[Bin(a) = x]`` for all m in [a, b]; x is at most a."""
        p = self.channel.p
        peak = np.clip(np.floor(x / p), a, b)
        # -log(1 - x/i) is convex in i.
        first, last = -np.log1p(-x / (a + 1.0)), -np.log1p(-x / np.maximum(peak, a + 1.0))
        rise = np.minimum(700.0, (peak - a) * (0.5 * (first + last) + math.log1p(-p)))
        result: Array = np.where(rise < 700.0, np.exp(rise), np.inf) * (1.0 + 1e-12 * (b - a + 1.0))
        return result

    def _falling(self, x: Array, a: Array, b: Array) -> Array:
        """Return at least ``P[Bin(m) = x] / P[Bin(b) = x]`` for all m in [a, b]; 0 where x is above b."""
        p = self.channel.p
        peak = np.clip(np.floor(x / p), a, b)
        rate = -np.log1p(-x / np.maximum(0.5 * (peak + 1.0 + b), x + 0.25)) + math.log1p(-p)
        return np.where(x > b, 0.0, np.exp((peak - b) * rate) * (1.0 + 1e-12 * (b - a + 1.0)))

    def _least(self, x: Array, a: Array, b: Array) -> Array:
        """Return at most ``P[Bin(m) = x] / P[Bin(b) = x]`` for all m in [a, b], and at most 1."""
        inside = np.minimum(x, a)
        rate = 0.5 * (-np.log1p(-inside / (a + 1.0)) - np.log1p(-inside / b)) + math.log1p(-self.channel.p)
        ratio = np.exp(np.minimum(0.0, (a - b) * rate)) * (1.0 - 1e-12 * (b - a + 1.0))
        return np.where(x > a, 0.0, ratio)


@dataclass(frozen=True, slots=True, kw_only=True)
class NoisyThreshold(Threshold):
    noise: float
    release_threshold: int | None = None

    @property
    def slack(self) -> float:
        return _SLACK

    def bracket(self, epsilons: Array) -> tuple[Array, Array]:
        sides = [_sides(self, epsilon) for epsilon in epsilons.tolist()]
        return np.array([side[0] for side in sides]), np.array([side[1] for side in sides])


@lru_cache(maxsize=1024)
def _sides(bound: NoisyThreshold, epsilon: float) -> tuple[float, float]:
    if epsilon < _LEAST:
        lower, upper = _sides(bound, _LEAST)
        return lower, min(1.0, upper + math.expm1(_LEAST))
    if epsilon > _FLAT:
        search = _search(bound, _FLAT)
        return float(search._exact(np.array([max(0, bound.k - 1)]))[0][0]), _sides(bound, _FLAT)[1]
    return _search(bound, epsilon).sides()


def _search(bound: NoisyThreshold, epsilon: float) -> _Search:
    return _Search(_Channel(bound.k, bound.release_threshold, bound.noise, bound.p), bound.cap, epsilon)
