"""Divergences of one channel with coins of two kinds, for several ε at once, and bounds on blocks of one kind.

In a block positions at which gains turn into losses are moved by 1e-6 and a whole number to the safe side.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from pkdp_pipeline.theorems.channel import UNDERFLOW_MASS, Channel, ChannelRows, row_of, rows_of
from pkdp_pipeline.theorems.rounding import UNIT, Array, Decided, Whole

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
        """Return bounds on the divergence with this many coins of either kind or more, where these make k likely.

        From ε0 on only a count that has just reached k tells anything. Below, the count without its threshold, which
        more coins only help to hide, differs from it where fewer than k people count.
        """
        k, p, q = self.channel.k, self.channel.p_min, self.channel.p_max
        growth, noisy = self.growth[column], self.noisy[column]
        row = row_of(self.channel, low, high) if low + high >= k - 1 else None
        if row is None or low * p + high * q < k:
            return np.ones(len(column))
        bounds = np.full(len(column), self.channel.appears * row.numbers[1] * (1.0 + row.numbers[-1]) + UNDERFLOW_MASS)
        bounds[self.silent(column, low, high)] = 0.0
        bounds += self.doubt[column]
        if noisy.any():
            free = row_of(replace(self.channel, k=0, release=None), low, high)
            if free is None:
                return np.where(noisy, 1.0, bounds)
            budget, rest = free.numbers[-1], free.numbers[3] + free.numbers[4]
            gains = np.zeros(len(column))
            for first, second in (free.laws[:2], free.laws[1::-1]):
                apart = first * (1.0 + budget) - growth[:, None] * (1.0 - budget) * second
                gains = np.maximum(gains, np.maximum(0.0, apart).sum(axis=1) + rest)
            few = row.numbers[0] + row.numbers[1] + row.numbers[4]
            bounds = np.where(noisy, gains + (1.0 + growth) * (few * (1.0 + row.numbers[-1]) + UNDERFLOW_MASS), bounds)
        return bounds * (1.0 + 1e-12)

    def silent(self, column: Whole, low: int, high: int) -> Decided:
        """Return where this many coins, or more, or likelier ones, tell nothing: k people are too likely for it."""
        growth, row = self.growth[column], row_of(self.channel, low, high)
        k, noise = self.channel.k, self.channel.noise
        if row is None or len(row.law) <= k - row.start or not row.law[k - row.start] > 0.0:
            return np.zeros(len(column), dtype=bool)
        ratio = row.numbers[1] / float(row.law[k - row.start])
        quiet = growth * (0.0 if self.channel.release is None else 1.0 - self.channel.appears) > 1.0 + 1e-9
        rare = (growth - math.exp(noise)) * (1.0 - 1e-6) > ratio
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
        silent = 0.0 if self.channel.release is None else 1.0 - self.channel.appears
        kept = rows.just * (1.0 + rows.budget) * (1.0 - growth * silent) - (growth - 1.0) * rows.few * (
            1.0 - rows.budget
        )
        kept = np.where(self.inside[column], 0.0, np.maximum(0.0, kept[:, 0] * (1.0 + 1e-12)) + UNDERFLOW_MASS)
        return least, most, np.maximum(most.max(axis=0), kept) + self.doubt[column]

    def lives(self, rows: ChannelRows) -> tuple[Array, Array]:
        """Return the laws of what is published with the target and without: each value, and "suppressed" at the end."""
        present = rows.few + rows.just * (1.0 - self.channel.appears) + rows.before[:, :1]
        absent = rows.few + rows.just + rows.hidden[:, :1]
        return np.hstack([rows.present, present]), np.hstack([rows.absent, absent])

    def left_out(self, column: Whole, rows: ChannelRows) -> Array:
        """Return at most how much the counts left out can add: from ε0 on only that of k - 1 people tells anything."""
        return np.where(self.noisy[column][:, None], rows.rest, UNDERFLOW_MASS)


def between(part: Divergences, column: Whole, firsts: Whole, lasts: Whole, enough: Array) -> Array:
    """Return bounds on the divergence in each block, both ends included; coarse ones where these are `enough`."""
    people = np.concatenate([firsts, lasts])
    ends = rows_of(part.channel, people, np.zeros_like(people))
    first, last = (
        ChannelRows(*(values[half] for values in ends)) for half in (np.s_[: len(firsts)], np.s_[len(firsts) :])
    )
    a, b = firsts[:, None].astype(float), lasts[:, None].astype(float)
    # No event gains more than the chance to be published, which increases with the coins (stochastic dominance).
    bounds: Array = last.present.sum(axis=1) * (1.0 + 2.0 * last.budget[:, 0]) + last.rest[:, 0]
    todo = np.flatnonzero(bounds > enough)
    if len(todo):
        first, last = (ChannelRows(*(values[todo] for values in rows)) for rows in (first, last))
        a, b, column = a[todo], b[todo], column[todo]
        closer = np.maximum(
            _right(part, first, last, a, b, column), _left(part, first, last, a, b, column, enough[todo])
        )
        bounds[todo] = np.minimum(bounds[todo], closer)
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
