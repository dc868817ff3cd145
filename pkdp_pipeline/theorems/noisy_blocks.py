"""Divergences of one channel with coins of two kinds, and bounds on them for whole blocks of numbers of coins.

They are those of theorem D, for several ε at once. `between_columns` bounds blocks of one kind of coins: positions at
which gains turn into losses are moved by 1e-6 and a whole number to the safe side. `between` bounds blocks of two
kinds: where gains turn into losses at a count x that is not sure to 1e-6, the count nearest is taken: h is 0 there,
and the sign does not matter. Ratios of neighbouring probabilities are widened by 1e-9, and unknown where one is below
1e-280.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from pkdp_pipeline.theorems.channel import UNDERFLOW_MASS, Channel, ChannelRows, coins_of, row_of, rows_of
from pkdp_pipeline.theorems.numerics import UNIT, Array, Decided, Whole

_SAMPLER_SLACK = 2.0**-40
"""An ε this close to ε0, relatively, may lie on either side of the ε0 that the sampler draws with."""


class Divergences:
    """Divergences of what one channel publishes, for several ε at once."""

    def __init__(self, channel: Channel, epsilons: Array) -> None:
        self.channel, self.epsilons = channel, epsilons
        alpha, rise = math.exp(-channel.noise), np.expm1(epsilons)
        self.growth = np.exp(epsilons)
        self.noisy, self.inside = epsilons < channel.noise, epsilons < channel.noise * (1.0 - _SAMPLER_SLACK)
        self.doubtful = ~self.inside & (epsilons <= channel.noise * (1.0 + _SAMPLER_SLACK))
        # There the profile may be above what holds beyond ε0, by at most this much.
        doubt = 4.0 * _SAMPLER_SLACK * channel.noise * self.growth
        self.doubt = np.where(self.doubtful & (channel.p_min < channel.p_max), doubt, 0.0)
        # How far beyond a cutoff gains turn into losses: c = log((e^ε - 1)(1 + α)/(e^ε - α)) / log α of theorem D.
        share = rise * (1.0 + alpha) / (rise - math.expm1(-channel.noise))
        self.turn = np.where(self.inside, np.maximum(0.0, -np.log(share) / channel.noise), 0.0)

    def beyond(self, column: Whole, low: int, high: int) -> Array:
        """Return bounds in both orders with this many coins of either kind or more; 1 where nothing is known.

        From ε0 on only a count that has just reached k tells anything. Below, "More people" of `docs/mathematics.md`.
        """
        k, p, q = self.channel.k, self.channel.p_min, self.channel.p_max
        growth, noisy = self.growth[column], self.noisy[column]
        row = row_of(self.channel, low, high) if low + high >= k - 1 else None
        # P[S = k - 1] falls with the coins from a mean of k - 1 on.
        peak = row
        if low * p + high * q < k:
            peak = row_of(self.channel, max(low, int((k - 1) / p)), 0) if row and p == q else None
        if row is None or peak is None:
            return np.ones((2, len(column)))
        just = peak.numbers[1] * (1.0 + peak.numbers[-1]) + UNDERFLOW_MASS
        bounds = np.full((2, len(column)), self.channel.appears * just)
        bounds[:, self.silent(column, low, high)] = 0.0
        bounds += self.doubt[column]
        if noisy.any():
            free = row_of(replace(self.channel, k=0, release=None), low, high)
            if free is None:
                return np.where(noisy, 1.0, bounds)
            budget, rest = free.numbers[-1], free.numbers[3] + free.numbers[4]
            gains = np.zeros((2, len(column)))
            for order, (first, second) in enumerate((free.laws[:2], free.laws[1::-1])):
                apart = first * (1.0 + budget) - growth[:, None] * (1.0 - budget) * second
                gains[order] = np.maximum(0.0, apart).sum(axis=1) + rest
            # Events that do not gain here do not gain with more coins; of the others the smallest adds most.
            present, absent = row.laws[0] * (1.0 + row.numbers[-1]), row.laws[1] * (1.0 - row.numbers[-1])
            tells = _suffixes(present - growth[:, None] * absent) + row.numbers[3] + UNDERFLOW_MASS > 0.0
            adds = self.channel.above(_cutoffs(self.channel, len(present)) - (k - 1))
            few = (row.numbers[0] + row.numbers[4]) * (1.0 + row.numbers[-1])
            gains += growth * just * (tells * adds).max(axis=1), adds[0] * np.maximum(just, growth * few)
            bounds = np.where(noisy, gains, bounds)
        return bounds * (1.0 + 1e-12)

    def silent(self, column: Whole, low: int, high: int) -> Decided:
        """Return where this many coins, or more, or likelier ones, tell nothing: k people are too likely for it."""
        growth, row = self.growth[column], row_of(self.channel, low, high)
        k = self.channel.k
        if row is None or len(row.law) <= k - row.start or not row.law[k - row.start] > _MIN_EXACT:
            return np.zeros(len(column), dtype=bool)
        ratio = (row.numbers[1] + UNDERFLOW_MASS) / float(row.law[k - row.start])
        quiet = growth * self.channel.hides > 1.0 + 1e-9
        rare = -growth * np.expm1(self.channel.noise - self.epsilons[column]) * (1.0 - 1e-6) > ratio
        result: Decided = quiet & rare & ~self.inside[column] & (self.doubt[column] == 0.0)
        return result

    def orders(self, column: Whole, low: Whole, high: Whole) -> tuple[Array, Array, Array]:
        """Return brackets of the divergence at each place, in both orders, shape (2, places); and bounds for blocks."""
        rows, growth = rows_of(self.channel, low, high), self.growth[column][:, None]
        present, absent = self.lives(rows)
        less, more = growth * (1.0 + rows.budget), growth * (1.0 - rows.budget)
        both = ((present, absent), (absent, present))
        lower = [np.maximum(0.0, first * (1.0 - rows.budget) - second * less).sum(axis=1) for first, second in both]
        upper = [np.maximum(0.0, first * (1.0 + rows.budget) - second * more).sum(axis=1) for first, second in both]
        lost = ((1.0 + growth) * (rows.rest + rows.under))[:, 0]
        least = np.maximum(0.0, np.stack(lower) * (1.0 - 1e-12) - lost)
        most = np.stack(upper) * (1.0 + 1e-12) + self.left_out(column, rows)[:, 0]
        # From ε0 on losses of what is published beside "suppressed" are left out in blocks.
        kept = rows.just * (1.0 + rows.budget) * (1.0 - growth * self.channel.hides * (1.0 - rows.budget))
        kept -= (growth - 1.0) * rows.few * (1.0 - rows.budget)
        kept = np.where(self.inside[column], 0.0, np.maximum(0.0, kept[:, 0] * (1.0 + 1e-12)) + UNDERFLOW_MASS)
        return least, most, np.maximum(most.max(axis=0), kept) + self.doubt[column]

    def lives(self, rows: ChannelRows) -> tuple[Array, Array]:
        """Return the laws of what is published with the target and without: each value, and "suppressed" at the end."""
        present = rows.few + rows.just * self.channel.hides + rows.before[:, :1]
        absent = rows.few + rows.just + rows.hidden[:, :1]
        return np.hstack([rows.present, present]), np.hstack([rows.absent, absent])

    def left_out(self, column: Whole, rows: ChannelRows) -> Array:
        """Return at most how much the counts left out can add: from ε0 on only that of k - 1 people tells anything."""
        return np.where(self.noisy[column][:, None], rows.rest, UNDERFLOW_MASS)


def between_columns(part: Divergences, column: Whole, firsts: Whole, lasts: Whole, enough: Array) -> Array:
    """Return bounds on the divergence in each block in both orders, ends included; coarse ones where `enough`."""
    people = np.concatenate([firsts, lasts])
    ends = rows_of(part.channel, people, np.zeros_like(people))
    first, last = (
        ChannelRows(*(values[half] for values in ends)) for half in (np.s_[: len(firsts)], np.s_[len(firsts) :])
    )
    a, b = firsts[:, None].astype(float), lasts[:, None].astype(float)
    # No event gains more than the chance to be published, which increases with the coins (stochastic dominance).
    bounds: Array = np.tile(last.present.sum(axis=1) * (1.0 + 2.0 * last.budget[:, 0]) + last.rest[:, 0], (2, 1))
    todo = np.flatnonzero(bounds[0] > enough)
    if len(todo):
        first, last = (ChannelRows(*(values[todo] for values in rows)) for rows in (first, last))
        a, b, column = a[todo], b[todo], column[todo]
        closer = _right(part, first, last, a, b, column), _left(part, first, last, a, b, column, enough[todo])
        bounds[:, todo] = np.minimum(bounds[:, todo], closer)
    return bounds * (1.0 + 1e-10)


def _right(part: Divergences, first: ChannelRows, last: ChannelRows, a: Array, b: Array, column: Whole) -> Array:
    """Return bounds on ``P[Y ≥ t] - e^ε P[Y' ≥ t]`` for all t and all numbers of coins in each block."""
    growth = part.growth[column][:, None]
    # Stochastic dominance bounds P[Y ≥ t] by its value with the most coins; the monotone likelihood ratio bounds gains
    # that end at `turns` by those with the fewest coins, times the largest ratio of the laws there ("One end").
    bounds = _suffixes(last.present * (1.0 + last.budget)) + last.rest
    gains = first.present * (1.0 + first.budget) - growth * (1.0 - first.budget) * first.absent
    gains = _suffixes(np.maximum(0.0, gains)) + UNDERFLOW_MASS
    least = float(max(0, part.channel.k - 1))
    turns = _cutoffs(part.channel, gains.shape[1]) + np.floor(part.turn[column] + 1e-6)[:, None]
    turns = np.where(part.noisy[column][:, None], np.maximum(turns, least), least)
    covered = turns <= np.minimum(first.high, a)
    rising = _rising_ratio(part.channel.p_min, np.minimum(turns, a), a, b)
    result: Array = np.where(covered, np.minimum(bounds, gains * rising), bounds).max(axis=1)
    return result


def _left(
    part: Divergences, first: ChannelRows, last: ChannelRows, a: Array, b: Array, column: Whole, enough: Array
) -> Array:
    """Return bounds on the other order: events that hold less often with more coins, from the end of each block."""
    k, growth, turn = part.channel.k, part.growth[column][:, None], part.turn[column][:, None]
    cutoffs = _cutoffs(part.channel, last.present.shape[1] + 1)
    gains = last.absent * (1.0 + last.budget) - growth * (1.0 - last.budget) * last.present
    rest = part.left_out(column, last)
    gains = np.cumsum(np.maximum(0.0, gains), axis=1) + rest
    gains *= part.noisy[column][:, None]
    # Events with "suppressed" are bounded in three parts: fewer than k - 1 people, just as many, and more.
    more = last.hidden * (1.0 + last.budget) - growth * (1.0 - last.budget) * last.before + rest
    jumps = np.maximum(0.0, 1.0 - growth * part.channel.below(cutoffs[:-1] - k) + 4.0 * UNIT * (1.0 + growth))
    just = first.just * (1.0 + first.budget) + UNDERFLOW_MASS
    just = np.minimum(1.0, just * _rising_ratio(part.channel.p_min, np.full((1, 1), max(0.0, k - 1.0)), a, b))
    others = jumps * just - (growth - 1.0) * (1.0 - 1e-12) * last.few * (1.0 - last.budget)
    # The ratio is largest at the first cutoff: a coarse bound for all of them, refined where it is not enough.
    falling = _falling_ratio(part.channel.p_min, np.maximum(float(k), np.floor(cutoffs[:1] - 1.0 - turn - 1e-6)), a, b)
    most = np.maximum(0.0, more.max(axis=1, keepdims=True)) * falling + others[:, :1]
    bounds: Array = np.maximum(gains[:, -1:] * falling, most)[:, 0]
    todo = np.flatnonzero(bounds > enough)
    if len(todo):
        a, b, turn, more = a[todo], b[todo], turn[todo], more[todo]
        falling = _falling_ratio(part.channel.p_min, np.maximum(float(k), np.floor(cutoffs - 1.0 - turn - 1e-6)), a, b)
        least = least_ratio(part.channel.p_min, np.maximum(float(k), np.ceil(cutoffs[:-1] - turn)), a, b)
        with np.errstate(over="ignore"):
            more = np.where(more > 0.0, more * falling[:, :-1], more * (least * part.inside[column[todo]][:, None]))
        bounds[todo] = np.maximum((gains[todo] * falling[:, 1:]).max(axis=1), (more + others[todo]).max(axis=1))
    return bounds


def _cutoffs(channel: Channel, size: int) -> Array:
    """Return the values at which an event can begin: the first that is published, and those that follow."""
    k, release = channel.k, channel.release
    cutoffs = np.arange(size, dtype=np.float64) + (k if release is None else max(k, release))
    cutoffs[0] = -np.inf if release is None else release
    return cutoffs


def _suffixes(values: Array) -> Array:
    """Return for every entry the sum of itself and what follows in its row."""
    return np.cumsum(values[:, ::-1], axis=1)[:, ::-1]


def _rising_ratio(p: float, x: Array, a: Array, b: Array) -> Array:
    """Return at least ``P[Bin(m) = x] / P[Bin(a) = x]`` for all m in [a, b]; x is at most a."""
    peak = np.clip(np.floor(x / p), a, b)
    # The ratio is the product of i(1-p)/(i-x); -log(1 - x/i) is convex in i, so the ends' mean bounds the sum.
    first, last = -np.log1p(-x / (a + 1.0)), -np.log1p(-x / np.maximum(peak, a + 1.0))
    rise = np.minimum(700.0, (peak - a) * (0.5 * (first + last) + math.log1p(-p)))
    result: Array = np.exp(rise) * (1.0 + 1e-12 * (b - a + 1.0))
    return result


def _falling_ratio(p: float, x: Array, a: Array, b: Array) -> Array:
    """Return at least ``P[Bin(m) = x] / P[Bin(b) = x]`` for all m in [a, b]; 0 where x is above b."""
    peak = np.clip(np.floor(x / p), a, b)
    # By convexity in i (Jensen's inequality) the middle of the range bounds the sum of -log(1 - x/i) from below.
    rate = -np.log1p(-x / np.maximum(0.5 * (peak + 1.0 + b), x + 0.25)) + math.log1p(-p)
    # At this clip the ratio times the allowance for underflow exceeds 1, so the bound stays true.
    ratio = np.exp(np.minimum(700.0, (peak - b) * rate)) * (1.0 + 1e-12 * (b - a + 1.0))
    return np.where(x > b, 0.0, ratio)


def least_ratio(p: float, x: Array, a: Array, b: Array) -> Array:
    """Return at most ``P[Bin(m) = x] / P[Bin(b) = x]`` for all m in [a, b], and at most 1."""
    inside = np.minimum(x, a)
    rate = 0.5 * (-np.log1p(-inside / (a + 1.0)) - np.log1p(-inside / np.maximum(b, a + 1.0))) + math.log1p(-p)
    ratio = np.exp(np.minimum(0.0, (a - b) * rate)) * (1.0 - 1e-12 * (b - a + 1.0))
    return np.where(x > a, 0.0, ratio)


_GAIN_TAIL_SHARE = 1e-3
"""Cutoffs beyond which an event gains at most this share of what is enough are not evaluated."""

_PRUNED_SHARE = 0.9
"""Events that gain at most this share of what is enough are not evaluated, and no bound is smaller."""

_LOSS_TAIL_SHARE = 1e-6
"""The same of losses left out beyond a second cutoff."""

_ROUNDED_UP = 1.0 + 1e-9
"""Covers all roundings of a law and of sums of it."""

_MIN_EXACT = 1e-280
"""Smaller probabilities may have lost digits to underflow."""

_MAX_EXPONENT = 60.0
"""Larger exponents say nothing."""

_MIN_BOUNDED_NOISE = 1e-8
"""With noise of a smaller ε0 the place at which gains turn into losses is not known well enough."""


class Blocks(NamedTuple):
    """Blocks of numbers of coins, one an entry: from `low` and `high` on, up to this many steps in two directions.

    The first direction adds coins of the smaller chance. The second exchanges such coins for those of the larger chance
    where a block is `slanted` (1), and adds the latter where it is not (0). So every step makes larger counts likelier.
    """

    column: Whole
    low: Whole
    high: Whole
    first: Whole
    second: Whole
    slanted: Whole

    def taken(self, indices: Whole) -> Blocks:
        """Return some of the blocks."""
        return Blocks(*(part[indices] for part in self))

    def corner(self, first: int, second: int) -> tuple[Whole, Whole]:
        """Return the numbers of coins of both kinds at a corner, (0, 0) being that of the smallest counts."""
        steps = second * self.second
        return self.low + first * self.first - self.slanted * steps, self.high + steps

    @property
    def corners(self) -> tuple[tuple[Whole, Whole], ...]:
        """All four corners, that of the smallest counts first, that of the largest last."""
        return tuple(self.corner(first, second) for first in (0, 1) for second in (0, 1))

    def halved(self, shares: tuple[float, float, float]) -> Blocks:
        """Return both halves of each, cut in the direction whose steps change the mean most; see `weights`."""
        of_first, of_second = self.weights(shares)
        along = of_first >= of_second
        step, other = np.where(along, self.first // 2, 0), np.where(along, 0, self.second // 2)
        low, high = self.low + step - self.slanted * other, self.high + other
        half = self._replace(first=np.where(along, step, self.first), second=np.where(along, self.second, other))
        other_half = self._replace(low=low, high=high, first=self.first - step, second=self.second - other)
        return Blocks(*(np.concatenate(pair) for pair in zip(half, other_half, strict=True)))

    def weights(self, shares: tuple[float, float, float]) -> tuple[Array, Array]:
        """Return how far each direction moves the mean, for (smaller chance, exchange, larger chance)."""
        of_first = np.where(self.first > 1, self.first * shares[0], 0.0)
        each = np.where(self.slanted == 1, shares[1], shares[2])
        return of_first, np.where(self.second > 1, self.second * each, 0.0)


class _Rates(NamedTuple):
    """At most and at least how fast ``log P[S = x]`` grows with a step, in a block and for each x."""

    least: Array
    most: Array

    def take(self, place: Whole) -> _Rates:
        """Return the rates at one x of each block."""
        return _Rates(*(np.take_along_axis(part, place, axis=1) for part in self))


def between(part: Divergences, blocks: Blocks, corners: Array, enough: Array) -> Array:
    """Return bounds on the divergence in each block in both orders; coarse ones where `enough`, or nothing is closer.

    `corners` bounds the divergences at the corners, one corner a row.
    """
    largest = rows_of(part.channel, *blocks.corner(1, 1))
    # No event gains more than the chance to be published, which increases with the coins (stochastic dominance).
    published = largest.present.sum(axis=1) * (1.0 + 2.0 * largest.budget[:, 0]) + largest.rest[:, 0]
    bounds: Array = np.tile(published, (2, 1))
    todo = np.flatnonzero(published > enough)
    if len(todo) and part.channel.noise >= _MIN_BOUNDED_NOISE:
        published = (np.cumsum(largest.present[:, ::-1], axis=1)[:, ::-1] * _ROUNDED_UP + largest.rest)[todo]
        closer = _Block(part, blocks.taken(todo), corners[:, todo], enough[todo]).bound(published)
        bounds[:, todo] = np.minimum(bounds[:, todo], closer)
    return bounds * (1.0 + 1e-10)


class _Block:
    """Blocks that are bounded more closely, all values below each other, one x a column."""

    def __init__(self, part: Divergences, blocks: Blocks, corners: Array, enough: Array) -> None:
        self.channel, self.corners, self.enough = part.channel, corners, _PRUNED_SHARE * enough[:, None]
        self.growth, self.inside = part.growth[blocks.column][:, None], part.inside[blocks.column][:, None]
        self.turn = np.floor(part.turn[blocks.column][:, None] + 1e-6)
        ends = [np.concatenate(pair) for pair in zip(blocks.corner(0, 0), blocks.corner(1, 1), strict=True)]
        self.counts, laws, rest, under = coins_of(self.channel, *ends)
        many, k = len(enough), self.channel.k
        low_law, high_law = laws[:many], laws[many:]
        # P[S ≥ x] at the corner of the largest counts, and P[S < x] at that of the smallest: the most in the block.
        tails = np.cumsum(high_law[:, ::-1], axis=1)[:, ::-1] * _ROUNDED_UP + rest[many:]
        beyond = np.hstack([tails[:, 1:], rest[many:]])
        heads = np.hstack([np.zeros((many, 1)), np.cumsum(low_law, axis=1)[:, :-1] * _ROUNDED_UP]) + under[:many]
        self.few = (high_law * (self.counts < k - 1)).sum(axis=1, keepdims=True) / _ROUNDED_UP
        # Counts of negligible probability in every block are left out; heads and tails are summed already.
        small = _LOSS_TAIL_SHARE * self.enough / self.growth
        first = int((heads <= small).all(axis=0).sum()) - 2
        last = int((beyond > small).any(axis=0).sum()) + 2
        kept = slice(max(0, min(first, k - 2 - int(self.counts[0]))), max(last, k + 1 - int(self.counts[0])))
        self.counts, self.low_law, high_law = self.counts[kept], low_law[:, kept], high_law[:, kept]
        self.tails, self.beyond, self.heads = tails[:, kept], beyond[:, kept], heads[:, kept]
        # All ratios P[S = x - 1] / P[S = x] in a block, with a coin less as well, lie between that at the corner of the
        # largest counts and that of x + 1 at the other one (log-concavity); where one is not known, in [0, ∞].
        least, most = np.zeros_like(high_law), np.full_like(high_law, np.inf)
        sure, known = high_law > _MIN_EXACT, self.low_law > _MIN_EXACT
        np.divide(high_law[:, :-1], high_law[:, 1:] * _ROUNDED_UP, out=least[:, 1:], where=sure[:, :-1] & sure[:, 1:])
        np.divide(
            self.low_law[:, :-1] * _ROUNDED_UP,
            self.low_law[:, 1:],
            out=most[:, :-1],
            where=known[:, :-1] & known[:, 1:],
        )
        p, q = self.channel.p_min, self.channel.p_max
        of_low, of_high = (tuple(np.log1p(chance * (ratio - 1.0)) for ratio in (least, most)) for chance in (p, q))
        with np.errstate(invalid="ignore"):
            # An exchange multiplies by (1 - q + q ratio) / (1 - p + p ratio), which is q/p where the ratio is infinite.
            exchanged = of_high[0] - of_low[0], np.where(np.isinf(most), math.log(q / p), of_high[1] - of_low[1])
        slanted = blocks.slanted[:, None] == 1
        steps = (blocks.first[:, None].astype(float), blocks.second[:, None].astype(float))
        rates = of_low, tuple(np.where(slanted, b, a) for a, b in zip(of_high, exchanged, strict=True))
        self.directions = tuple(
            (number, _Rates(*(np.where(number > 0.0, rate, 0.0) for rate in pair)))
            for number, pair in zip(steps, rates, strict=True)
            if number.any()
        )
        # P[S = k - 1] is at most this, and what is beyond k gains at most 1 - e^(ε - ε0). At this clip, as below, the
        # exponential times the allowance for underflow exceeds 1.
        place = self._place(np.full((many, 1), self.channel.k - 1.0))
        rise = sum(np.maximum(0.0, number * rate.take(place).most) for number, rate in self.directions)
        just = np.take_along_axis(self.low_law, place, axis=1) * _ROUNDED_UP + UNDERFLOW_MASS
        self.just = np.minimum(1.0, just * np.exp(np.minimum(rise, 700.0)))
        self.pull = np.maximum(1e-12, 1.0 - self.growth * math.exp(-self.channel.noise) * (1.0 - 1e-12))

    def bound(self, published: Array) -> Array:
        """Return the bounds; `published` bounds the chance that what is published is at each cutoff or beyond it."""
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            bounds: Array = np.maximum([self._right(published), self._left()], self.enough)
        return bounds[:, :, 0]

    def _place(self, count: Array) -> Whole:
        places: Whole = np.clip(count - self.counts[0], 0, len(self.counts) - 1).astype(np.int64)
        return places

    def _upper(self, level: Array) -> tuple[Array, Array]:
        """Return the least z with ``P[S > z]`` at most `level` for all numbers of coins, and what bounds it."""
        place = (self.beyond > level).sum(axis=1, keepdims=True)
        inside = np.minimum(place, len(self.counts) - 1)
        z = np.where(place > inside, np.inf, self.counts[0] + place)
        return z, np.take_along_axis(self.beyond, inside, axis=1)

    def _lower(self, level: Array) -> tuple[Array, Array]:
        """Return the largest z with ``P[S < z]`` at most `level` for all numbers of coins, and what bounds it."""
        place = (self.heads <= level).sum(axis=1, keepdims=True) - 1
        inside = np.maximum(place, 0)
        z = np.where(place < 0, -np.inf, self.counts[0] + place)
        return z, np.take_along_axis(self.heads, inside, axis=1)

    def _right(self, published: Array) -> Array:
        """Return bounds on ``P[Y ≥ t] - e^ε P[Y' ≥ t]``: gains, then losses from beyond some x on."""
        k, release = self.channel.k, self.channel.release
        first, least = -math.inf if release is None else float(release), k if release is None else max(k, release)
        # Values have likelihood ratios of at most e^(ε0), so an event gains at most `pull` of its chance, and what a
        # count that has just reached k adds.
        appearing = self.channel.above(np.arange(published.shape[1], dtype=np.float64) + (least - k))
        gains = self.pull * published + np.where(appearing > 0.0, self.just * appearing, 0.0)
        last = (gains > self.enough).sum(axis=1, keepdims=True) - 1.0
        cutoff = np.where(last > 0.0, last + least, first)
        start, end = (np.maximum(k - 1.0, t - 1.0 + self.turn) for t in (first, cutoff))
        start, end = (np.where(self.inside, x, k - 1.0) for x in (start, end))
        # Truncation: gains beyond z and losses beyond `loss_cutoff` are left out and bounded by `left_out` and `lost`.
        z, left_out = self._upper(_GAIN_TAIL_SHARE * self.enough / self.pull)
        loss_cutoff, lost = self._upper(_LOSS_TAIL_SHARE * self.enough / np.maximum(1.0, self.growth - 1.0))
        z = np.maximum(z, k - 1.0)
        left_out = np.where(end > z, self.pull * left_out, 0.0)
        start, end = np.minimum(start, z), np.minimum(end, z)
        loss_cutoff, lost = np.maximum(loss_cutoff, end + 1.0), lost * (self.growth - 1.0)
        rise, swell = np.zeros_like(self.low_law), np.ones_like(self.low_law)
        for steps, rates in self.directions:
            rise += np.maximum(0.0, steps * rates.most)
            swell *= _swell(steps, rates, rates.take(self._place(loss_cutoff)))
        # Bounds from one corner (the likelihood ratio to it is monotone) and from both ends (total positivity); the
        # smaller of the two holds: `docs/mathematics.md`, section 6, "One end" and "Both ends".
        swell = np.where(np.isfinite(loss_cutoff) & (loss_cutoff <= self.counts[-1]), swell, np.inf)
        from_corner = np.exp(np.minimum(rise, 700.0)) * self.corners[0][:, None] + left_out
        from_corners = swell * (self.corners.max(axis=0)[:, None] + 2.0 * (left_out + lost))
        return self._largest(np.fmin(from_corner, from_corners), start, end)

    def _left(self) -> Array:
        """Return bounds on the other order: losses, then gains from some x on, but that k - 1 people may be a gain."""
        k, growth = float(self.channel.k), self.growth
        z, left_out = self._lower(_GAIN_TAIL_SHARE * self.enough / self.pull)
        loss_cutoff, lost = self._lower(_LOSS_TAIL_SHARE * self.enough / growth)
        lost = lost * growth
        first = k - 1.0 if self.channel.release is None else np.maximum(k - 1.0, self.channel.release - 1.0 - self.turn)
        start = np.where(self.inside, np.maximum(first, z), k - 1.0)
        loss_cutoff = np.minimum(loss_cutoff, start - 1.0)
        left_out = np.where(self.inside & (z > first), self.pull * left_out, 0.0)
        # Beside losses k - 1 people are a gain of the events that begin to gain at each count, until they are a loss.
        gain = np.maximum(0.0, 1.0 - growth * self.channel.below(self.counts + 1.0 + self.turn - k) * (1.0 - 1e-9))
        alpha = math.exp(-self.channel.noise)
        most = np.where(self.inside, (growth - 1.0) * alpha / (growth - alpha), 0.0) * 1.01
        gain = np.where(self.counts > start, np.minimum(gain, most), most) * ((self.counts >= k) & (k > 0.0))
        # Larger counts are too unlikely to gain what is enough, unless k - 1 people are a gain.
        last = (self.counts * (gain > 0.0)).max(axis=1, keepdims=True)
        end = np.maximum(start, np.maximum(self._upper(self.enough / self.pull)[0], last))
        end = np.where(self.inside, end, start)
        place, just_before = self._place(np.full_like(growth, k - 1.0)), np.minimum(loss_cutoff, k - 2.0)
        fall, swell, hump = np.zeros_like(self.low_law), np.ones_like(self.low_law), np.zeros_like(self.low_law)
        swell_of_just = np.where(just_before >= self.counts[0], 1.0, np.inf)
        for steps, rates in self.directions:
            fall += np.maximum(0.0, -steps * rates.least)
            swell *= _swell(steps, rates.take(self._place(loss_cutoff)), rates)
            hump += _hump(steps, rates.take(self._place(loss_cutoff)), rates.take(place), rates)
            swell_of_just *= _swell(steps, rates.take(self._place(just_before)), rates.take(place))
        swell = np.where(loss_cutoff >= self.counts[0], swell, np.inf)
        corners = self.corners.max(axis=0)[:, None]
        of_last = np.exp(np.minimum(fall, 700.0)) * self.corners[-1][:, None]
        from_corner, from_corners = of_last + left_out, swell * (corners + 2.0 * (left_out + lost))
        # Beside a gain of k - 1 people fewer of them are losses.
        more = (
            from_corner + gain * self.just,
            from_corners + np.where(loss_cutoff < k - 1.0, swell * gain * self.just * hump, 0.0),
        )
        apart, losses = gain * self.just + self.pull * self.tails + left_out, (growth - 1.0) * self.few
        humped = np.where(gain > 0.0, np.fmin(np.fmin(*more), apart - losses), 0.0)
        bounds = self._largest(np.maximum(np.fmin(from_corner, from_corners), humped), start, end)
        # Events whose gains begin beyond all counts that are looked at gain at k - 1, and what is so unlikely.
        rare = gain[:, -1:] * self.just + self.pull * self.beyond[:, -1:] - losses
        bounds = np.maximum(bounds, np.where(gain[:, -1:] > 0.0, np.fmin(more[0][:, -1:], rare), 0.0))
        # Events that gain from k - 1 on: `pull` bounds what others gain below z, but not what k - 1 people do.
        of_just = np.fmin(np.take_along_axis(of_last, place, axis=1), swell_of_just * (corners + 2.0 * lost))
        of_just = np.maximum(bounds, np.fmin(of_just, bounds + self.just))
        return np.where(self.inside & (z > first) & (first == k - 1.0) & (k > 0.0), of_just, bounds)

    def _largest(self, values: Array, start: Array, end: Array) -> Array:
        """Return the largest value from `start` to `end`, infinite where these are not all there."""
        complete = (start >= self.counts[0]) & (end <= self.counts[-1])
        within = (self.counts >= start) & (self.counts <= end)
        return np.where(complete, np.where(within, values, 0.0).max(axis=1, keepdims=True), np.inf)


def _swell(steps: Array, smaller: _Rates, larger: _Rates) -> Array:
    """Return a bound on λ + μ of "Both ends" in `docs/mathematics.md`: how much more is told between than at the ends.

    The rates are those at the smaller and at the larger of two counts, between which gains end.
    """
    up, down = _up(steps * smaller.most), _up(-steps * smaller.least)
    larger_up, larger_down = _up(steps * larger.most), _up(-steps * larger.least)
    base = np.maximum(
        np.maximum(0.0, up) * np.maximum(0.0, larger_up), np.maximum(0.0, down) * np.maximum(0.0, larger_down)
    )
    gap = steps * (larger.least - smaller.most)
    # The excess is at most a quarter of the steps times the change of slope.
    bent, larger_bent = (_bent(steps, rates) for rates in (smaller, larger))
    rising = np.where(up > 0.0, up / np.where(gap > 0.0, np.expm1(np.minimum(gap, _MAX_EXPONENT)), 0.0), 0.0)
    falling = np.where(larger_down > 0.0, larger_down / np.where(gap > 0.0, -np.expm1(-gap), 0.0), 0.0)
    bent = np.where(larger_up > 0.0, bent * (np.maximum(1.0, 1.0 + up) + rising), 0.0)
    larger_bent = np.where(down > 0.0, larger_bent * np.maximum(1.0, 1.0 + larger_up) * (1.0 + falling), 0.0)
    result: Array = 1.0 + 0.125 * base + bent + larger_bent
    return result


def _hump(steps: Array, smaller: _Rates, middle: _Rates, larger: _Rates) -> Array:
    """Return a bound on h, how far a law between exceeds λf₁ + μf₂ at the middle count, as a share of the first."""
    below, above = _up(steps * (smaller.least - middle.most)), _up(steps * (larger.most - middle.least))
    arch = np.maximum(0.0, above) * np.clip(-0.125 * below / (1.0 + below) ** 2, 0.0, 1.0)
    result: Array = np.maximum(1.0, 1.0 + _up(steps * middle.most)) * (arch + _bent(steps, middle))
    return result


def _bent(steps: Array, rates: _Rates) -> Array:
    """Return how far a log-concave path is above its chord at most; rates that are nearly equal may be out of order."""
    result: Array = np.maximum(0.0, _up(0.25 * steps * (rates.most - rates.least)))
    return result


def _up(exponents: Array) -> Array:
    """Return the exponentials less 1, infinite where they are too large to say anything."""
    result: Array = np.where(exponents > _MAX_EXPONENT, np.inf, np.expm1(np.minimum(exponents, _MAX_EXPONENT)))
    return result
