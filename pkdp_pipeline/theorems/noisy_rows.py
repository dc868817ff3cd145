"""What is published of a number of coins: suppressed below k, noised, and suppressed below a release threshold."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import flint
import numpy as np
from numpy.typing import NDArray

from pkdp_pipeline.theorems.binomial_tails import log_binomial_pmf, outward_from
from pkdp_pipeline.theorems.rounding import TINY, UNIT, Array, ball_above

Whole = NDArray[np.int64]

_REACH = 92.0
"""Counts whose probability is below e^-92 of what matters are bounded together."""

WIDEST = 6_000
"""Most noisy values looked at for one number of people; with more the search stops."""

LOST = 1e5 * TINY
"""What may have been lost to underflow in all numbers of a row."""


@dataclass(frozen=True, slots=True)
class Channel:
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
class Row:
    """What is published of m coins: every number within its `budget`, relatively, but for `rest` and `under`.

    `laws` has four rows. The first two are the laws of what is published in the target's two lives, from the least
    value on, values of the same likelihood ratio merged. The others are ``P[S ≥ k, S + Z < t]`` for the same values t,
    and for t - 1. `numbers` are those of `Rows`.
    """

    laws: Array
    numbers: tuple[float, ...]


class Rows(NamedTuple):
    """Rows of several numbers of coins below each other; what is a number of one row is a column here.

    `few` and `just` are P[S < k-1] and P[S = k-1]. Counts above `high` are left out, and so are very few: `rest` bounds
    the former, `under` the latter.
    """

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


@lru_cache(maxsize=8192)
def row_of(channel: Channel, m: int) -> Row | None:
    """Return the row of m coins, at least k - 1; None where it would be too wide."""
    k, release, p, noise = channel.k, channel.release, channel.p, channel.noise
    mode = int((m + 1) * p)
    spread = _REACH / 3.0 + math.sqrt(_REACH * _REACH / 9.0 + 2.0 * _REACH * m * p * (1.0 - p)) + 2.0
    low = max(0, math.floor(min(mode, k - 1) - spread))
    high = min(m, math.ceil(max(mode, k - 1) + spread))
    first = k if release is None else max(k, release)
    size = max(high + 1, first) - k + 1
    if max(size, high - low, abs(first - (release or first))) > WIDEST:
        return None
    steps = np.arange(low, high, dtype=np.float64)
    anchor = min(mode, high)
    with flint.ctx.workprec(96 + 2 * m.bit_length()):
        peak = ball_above(log_binomial_pmf(m, anchor, p).exp())
    with np.errstate(under="ignore"):
        weights = outward_from(anchor - low, peak, (m - steps) * (p / (1.0 - p)) / (steps + 1.0))
        falls = (m - high) * p / ((high + 1) * (1.0 - p))
        rest = float(weights[-1]) * falls / (1.0 - falls) * 1.01 + LOST
        sinks = low * (1.0 - p) / ((m - low + 1) * p)
        under = float(weights[0]) * sinks / (1.0 - sinks) * 1.01 + LOST if low else 0.0
        below, counts = weights[: k - low], weights[k - low :]
        sums, alpha, silent = _noised(counts, noise, size), math.exp(-noise), -math.expm1(-noise)
        # P(y) = Q(y - 1) + P[S = k - 1] P[Z = y - k].
        just = float(below[-1]) if k else 0.0
        earlier = np.append(alpha * sums[0], sums[:-1])
        present = earlier + just * (silent / (1.0 + alpha)) * np.exp(-noise * np.arange(size))
        numbers = np.arange(k, k + len(counts), dtype=np.float64)
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
    laws = np.stack([present * factors, absent * factors, hidden, before])
    return Row(laws=laws, numbers=(float(below[:-1].sum()), just, high, rest, under, budget))


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


def rows_of(channel: Channel, people: Whole) -> Rows:
    """Return the rows of these numbers of coins, none of them too wide; shorter ones are continued."""
    unique, place = np.unique(people, return_inverse=True)
    rows = [row for m in unique.tolist() if (row := row_of(channel, m)) is not None]
    laws = np.zeros((4, len(rows), max(row.laws.shape[1] for row in rows)))
    for at, row in enumerate(rows):
        laws[:, at, : row.laws.shape[1]] = row.laws
        laws[2:, at, row.laws.shape[1] :] = row.laws[2, -1]
    numbers = np.array([row.numbers for row in rows])
    return Rows(*laws[:, place], *numbers[place].T[:, :, None])


def suffixes(values: Array) -> Array:
    """Return for every entry the sum of itself and what follows in its row."""
    return np.cumsum(values[:, ::-1], axis=1)[:, ::-1]


def rising_ratio(p: float, x: Array, a: Array, b: Array) -> Array:
    """Return at least ``P[Bin(m) = x] / P[Bin(a) = x]`` for all m in [a, b]; x is at most a."""
    peak = np.clip(np.floor(x / p), a, b)
    # -log(1 - x/i) is convex in i.
    first, last = -np.log1p(-x / (a + 1.0)), -np.log1p(-x / np.maximum(peak, a + 1.0))
    rise = np.minimum(700.0, (peak - a) * (0.5 * (first + last) + math.log1p(-p)))
    result: Array = np.exp(rise) * (1.0 + 1e-12 * (b - a + 1.0))
    return result


def falling_ratio(p: float, x: Array, a: Array, b: Array) -> Array:
    """Return at least ``P[Bin(m) = x] / P[Bin(b) = x]`` for all m in [a, b]; 0 where x is above b."""
    peak = np.clip(np.floor(x / p), a, b)
    rate = -np.log1p(-x / np.maximum(0.5 * (peak + 1.0 + b), x + 0.25)) + math.log1p(-p)
    # As large a ratio makes more than 1 of whatever may be lost in rounding.
    ratio = np.exp(np.minimum(700.0, (peak - b) * rate)) * (1.0 + 1e-12 * (b - a + 1.0))
    return np.where(x > b, 0.0, ratio)


def least_ratio(p: float, x: Array, a: Array, b: Array) -> Array:
    """Return at most ``P[Bin(m) = x] / P[Bin(b) = x]`` for all m in [a, b], and at most 1."""
    inside = np.minimum(x, a)
    rate = 0.5 * (-np.log1p(-inside / (a + 1.0)) - np.log1p(-inside / np.maximum(b, a + 1.0))) + math.log1p(-p)
    ratio = np.exp(np.minimum(0.0, (a - b) * rate)) * (1.0 - 1e-12 * (b - a + 1.0))
    return np.where(x > a, 0.0, ratio)
