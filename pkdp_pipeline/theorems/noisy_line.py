"""Bounds on what coins of one kind tell behind a threshold and noise, for whole blocks of numbers of them.

Positions at which gains turn into losses are moved by 1e-6 and a whole number to the safe side.
"""

from __future__ import annotations

import math

import numpy as np

from pkdp_pipeline.theorems.noisy_divergences import Divergences
from pkdp_pipeline.theorems.noisy_rows import UNDERFLOW_MASS, Channel, ChannelRows, rows_of
from pkdp_pipeline.theorems.rounding import UNIT, Array, Whole


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
