"""Channels: what is published of a count, as a map from laws of counts to laws of what is published.

A `Kernel` maps the law of any count. A `Channel` is of the number of coins of two kinds that fell: suppressed below k,
noised, and suppressed below a release threshold.

*Rounding*, with ``u = 2^-53``: a map sums positive terms of a law. The sum with the noise is built from both sides in
steps of 1, 2, 4, …: at most 14 products each. So published probabilities err by
``(4W + 12ε0(W + |k - r|) + 200)u`` relatively, for W values, where ``12ε0 W`` also covers every ε0 of the sampler,
within 2^-50 of the declared one. Of signed vectors the same share of what their absolute values publish.

A law of coins is anchored in a ball at its mode and cut where it is below e^-92 of what matters; geometric series bound
the rest. That adds 10n u for n counts, and 14n u with coins of two kinds, whose laws are convolutions, cut beyond what
both have exactly. 1e-285 covers underflow. Divergences are sums of
``max(0, P(1 ± b) - e^ε Q(1 ∓ b))`` with that budget b, so cancellation widens the bracket only; four times the
distance of its sides is added to `rounding`. Within 2^-40 of ε0 what the sampler's own ε0 may add is added.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from pkdp_pipeline.theorems.numerics import TINY, UNIT, Array, Whole, anchored_weights, kept


class Kernel(ABC):
    """A public map from a count to what is published of it."""

    @property
    @abstractmethod
    def for_large_counts(self) -> tuple[Kernel, int]:
        """A kernel to which more people who count are noise, and the count from which on it is the same."""

    @abstractmethod
    def published(self, laws: Array) -> Array:
        """Return what is published of counts 0, 1, …: a law, or differences of laws, a row; symbols are columns."""

    @abstractmethod
    def budget(self, counts: int) -> float:
        """Return the relative error of what is published of so many counts."""


def noised(values: Array, noise: float) -> Array:
    """Return what is published of counts 0, 1, … with noise, row by row, of as many values."""
    ahead, back, step = values.copy(), values.copy(), 1
    while step < values.shape[1] and (decay := math.exp(-noise * step)) > 0.0:
        # Doubling: after this step the geometric sums to either side hold every term within 2·step.
        ahead[:, step:] += decay * ahead[:, :-step]
        back[:, :-step] += decay * back[:, step:]
        step *= 2
    alpha = math.exp(-noise)
    ahead[:, :-1] += alpha * back[:, 1:]
    result: Array = ahead * (-math.expm1(-noise) / (1.0 + alpha))
    return result


@dataclass(frozen=True, slots=True)
class ExactFromK(Kernel):
    """Exact from `k` on, noised and marked below; `from_one`: of a count of 0 nothing is published.

    Symbols are the counts from k on, then the noised values, of which 0 and less, and k and more, are merged, and
    "hidden", below `release`.
    """

    k: int
    release: int | None
    noise: float
    from_one: bool = False

    @property
    def for_large_counts(self) -> tuple[Kernel, int]:
        """See `Kernel`: the count itself."""
        return ExactFromK(0, None, self.noise), self.k

    def budget(self, counts: int) -> float:
        """See `Kernel`."""
        return (4.0 * self.k + 12.0 * self.noise * (self.k + abs(self.release or 0)) + 200.0) * UNIT

    def published(self, laws: Array) -> Array:
        """See `Kernel`."""
        k, silent = self.k, -math.expm1(-self.noise)
        if k == 0:
            return laws
        values = np.zeros((len(laws), k + 1))
        values[:, : min(k, laws.shape[1])] = laws[:, :k]
        hidden = values[:, 0] * self.from_one
        values[:, 0] *= not self.from_one
        values = noised(values, self.noise)
        # P[count + Z ≤ 0] and P[count + Z ≥ k] sum geometric tails.
        values[:, [0, k]] /= silent
        if self.release is not None and self.release <= 0:
            # Of values of 0 or less, this share is below the release threshold.
            hidden = hidden + values[:, 0] * math.exp(-self.noise * (1 - self.release))
            values[:, 0] *= -math.expm1(-self.noise * (1 - self.release))
        elif self.release is not None:
            cut = min(self.release, k)
            beyond = self.noise * (self.release - cut)
            hidden = hidden + values[:, :cut].sum(axis=1) - values[:, cut] * math.expm1(-beyond)
            values = values[:, cut:]
            values[:, 0] *= math.exp(-beyond)
        return np.hstack([laws[:, k:], values, hidden[:, None]])


@dataclass(frozen=True, slots=True)
class Mixed(Kernel):
    """One of several kernels, each with its chance, and which one is shown: one for each number of known people.

    Thresholds fall from one to the next. `chances` are at or above, within 1e-14.
    """

    kernels: tuple[Kernel, ...]
    chances: tuple[float, ...]

    @property
    def for_large_counts(self) -> tuple[Kernel, int]:
        """See `Kernel`."""
        return self.kernels[0].for_large_counts[0], max(kernel.for_large_counts[1] for kernel in self.kernels)

    def budget(self, counts: int) -> float:
        """See `Kernel`."""
        return max(kernel.budget(counts) for kernel in self.kernels) + 1e-14

    def published(self, laws: Array) -> Array:
        """See `Kernel`."""
        pairs = zip(self.kernels, self.chances, strict=True)
        return np.hstack([chance * kernel.published(laws) for kernel, chance in pairs])


_CUTOFF_EXPONENT = 92.0
"""Counts whose probability is below e^-92 of what matters are bounded together."""

MAX_NOISY_VALUES = 6_000
"""Most noisy values looked at for one number of people; with more the search stops."""

UNDERFLOW_MASS = 1e5 * TINY
"""The most that may have been lost to underflow in all numbers of a row."""

_WIDTH_STEP = 64
"""Laws of coins of two kinds end at multiples of this, so that those of one kind are made seldom."""


@dataclass(frozen=True, slots=True)
class Channel:
    """Suppress below `k`, add noise, suppress below `release`; coins fall with chance `p_min` or with `p_max`."""

    k: int
    release: int | None
    noise: float
    p_min: float
    p_max: float

    def above(self, steps: Array) -> Array:
        """Return ``P[Z ≥ s]``."""
        with np.errstate(over="ignore"):
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

    @property
    def hides(self) -> float:
        """1 - δ0, to full relative precision."""
        return 0.0 if self.release is None else float(self.below(np.array([self.release - self.k]))[0])


@dataclass(frozen=True, slots=True)
class ChannelRow:
    """The law of the published number of coins: each within its `budget`, relatively, but for `rest` and `under`.

    `law` is that of the coins, from the count `start` on. `laws` has four rows. The first two are what is published in
    the target's two lives, from the least value on, values of the same likelihood ratio merged. The others are
    ``P[S ≥ k, S + Z < t]`` for the same values t, and for t - 1. `numbers` are those of `ChannelRows`.
    """

    start: int
    law: Array
    laws: Array
    numbers: tuple[float, ...]


class ChannelRows(NamedTuple):
    """Rows of several places below each other; what is a number of one row is a column here.

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


class _Coins(NamedTuple):
    """The law of equal coins from `start` on, and bounds on what is left out above and below."""

    start: int
    weights: Array
    rest: float
    under: float


@lru_cache(maxsize=8192)
def coin_law(m: int, p: float, low: int, high: int) -> _Coins:
    """Return the law of m coins from `low` to `high`, which the mode lies between, or to m."""
    high = min(m, high)
    weights = anchored_weights(m, p, low, high)
    falls = (m - high) * p / ((high + 1) * (1.0 - p))
    rest = float(weights[-1]) * falls / (1.0 - falls) * 1.01 + UNDERFLOW_MASS
    sinks = low * (1.0 - p) / ((m - low + 1) * p)
    under = float(weights[0]) * sinks / (1.0 - sinks) * 1.01 + UNDERFLOW_MASS if low else 0.0
    return _Coins(low, weights, rest, under)


def bernstein(variance: float, exponent: float) -> float:
    """Return a distance from the mean beyond which, on one side, lies less than ``e^-exponent`` (Bernstein's)."""
    return exponent / 3.0 + math.sqrt(exponent * exponent / 9.0 + 2.0 * exponent * variance) + 2.0


def ends_of(channel: Channel, low: int, high: int) -> tuple[int, int] | None:
    """Return the least count that is looked at, and the largest; None where a row would be too wide."""
    k, release, p, q = channel.k, channel.release, channel.p_min, channel.p_max
    # Bernstein's window, widened to k - 1: on either side less than e^-92 of the law lies beyond.
    mode, variance = int((low + 1) * p + high * q), low * p * (1.0 - p) + high * q * (1.0 - q)
    spread = bernstein(variance, _CUTOFF_EXPONENT)
    top = math.ceil(max(mode, k - 1) + spread)
    bottom = 0 if low and high else max(0, math.floor(min(mode, k - 1) - spread))
    if low and high:
        top += -top % _WIDTH_STEP
    top, first = min(low + high, top), k if release is None else max(k, release)
    wide = max(max(top + 1, first) - k + 1, top - bottom, abs(first - (release or first))) > MAX_NOISY_VALUES
    return None if wide else (bottom, top)


def _law(channel: Channel, low: int, high: int, ends: tuple[int, int]) -> _Coins:
    """Return the law of `low` coins of the smaller chance and `high` of the larger."""
    p, q, (bottom, top) = channel.p_min, channel.p_max, ends
    if not low or not high:
        return coin_law(low or high, p if low else q, bottom, top)
    # The convolution of two laws from 0 to `top` is complete up to `top`; what is beyond is bounded in `rest`.
    smaller, larger = coin_law(low, p, 0, top), coin_law(high, q, 0, top)
    with np.errstate(under="ignore"):
        weights = np.convolve(smaller.weights, larger.weights)
    rest = smaller.rest + larger.rest + 1.01 * float(weights[top + 1 :].sum())
    return _Coins(0, weights[: top + 1], rest, 0.0)


@lru_cache(maxsize=16384)
def row_of(channel: Channel, low: int, high: int) -> ChannelRow | None:
    """Return the row of at least k - 1 coins, `low` at `p_min` and `high` at `p_max`; None where it is too wide."""
    k, release, noise, ends = channel.k, channel.release, channel.noise, ends_of(channel, low, high)
    if ends is None:
        return None
    coins = _law(channel, low, high, ends)
    start, weights = coins.start, coins.weights
    first = k if release is None else max(k, release)
    size = max(start + len(weights), first) - k + 1
    with np.errstate(under="ignore"):
        below, counts = weights[: k - start], weights[k - start :]
        sums, alpha, silent = _noised(counts, noise, size), math.exp(-noise), -math.expm1(-noise)
        # P(y) = Q(y - 1) + P[S = k - 1] P[Z = y - k].
        just = float(below[-1]) if k else 0.0
        earlier = np.append(alpha * sums[0], sums[:-1])
        present = earlier + just * (silent / (1.0 + alpha)) * np.exp(-noise * np.arange(size))
        hides = _below(noise, first - k)
        suppressed, suppressed_before = (float((counts * hides[shift : shift + len(counts)]).sum()) for shift in (0, 1))
        absent, present = sums[first - k :].copy(), present[first - k :]
        hidden = suppressed + np.append(0.0, np.cumsum(absent[:-1]))
        before = np.append(suppressed_before, hidden[:-1])
        factors = np.ones(len(absent))
        if first != release:
            # Values below k that are published have one likelihood ratio.
            depth = math.inf if release is None else float(first - release)
            hidden[0], before[0] = suppressed * math.exp(-noise * depth), suppressed * math.exp(-noise * (depth + 1.0))
            before[1:2] = suppressed
            factors[0] -= alpha / silent * math.expm1(-noise * depth)
        factors[-1] += alpha / silent
    each = 14.0 if low and high else 10.0
    budget = (each * len(weights) + 4.0 * size + 12.0 * noise * (size + abs(first - (release or first))) + 200.0) * UNIT
    laws = np.stack([present * factors, absent * factors, hidden, before])
    last = float(start + len(weights) - 1)
    numbers = (float(below[:-1].sum()), just, last, coins.rest, coins.under, budget)
    return ChannelRow(start=start, law=weights, laws=laws, numbers=numbers)


@lru_cache(maxsize=128)
def _below(noise: float, first: int) -> Array:
    """Return ``P[Z < s]`` for all steps s from the first one down that a row may need."""
    (chances,) = kept(
        [Channel(0, None, noise, 0.0, 0.0).below(first - np.arange(MAX_NOISY_VALUES + 3, dtype=np.float64))]
    )
    return chances


def _noised(counts: Array, noise: float, size: int) -> Array:
    """Return the law of the sum of noise and a count with these probabilities, on this many values."""
    values = np.zeros((1, size))
    values[0, : len(counts)] = counts
    result: Array = noised(values, noise)[0]
    return result


def rows_of(channel: Channel, low: Whole, high: Whole) -> ChannelRows:
    """Return the rows of these numbers of coins, none of them too wide; shorter ones are continued."""
    rows, place = _distinct(channel, low, high)
    laws = np.zeros((4, len(rows), max(row.laws.shape[1] for row in rows)))
    for index, row in enumerate(rows):
        laws[:, index, : row.laws.shape[1]] = row.laws
        laws[2:, index, row.laws.shape[1] :] = row.laws[2, -1]
    numbers = np.array([row.numbers for row in rows])
    return ChannelRows(*laws[:, place], *numbers[place].T[:, :, None])


def coins_of(channel: Channel, low: Whole, high: Whole) -> tuple[Array, Array, Array, Array]:
    """Return (counts, laws, rest, under): the laws of these coins below each other, for the same counts."""
    rows, place = _distinct(channel, low, high)
    start = max(0, min(row.start for row in rows) - 1)
    counts = np.arange(start, max(row.start + len(row.law) for row in rows) + 1, dtype=np.float64)
    laws = np.zeros((len(rows), len(counts)))
    for index, row in enumerate(rows):
        laws[index, row.start - start : row.start - start + len(row.law)] = row.law
    rest, under = np.array([row.numbers[3:5] for row in rows])[place].T[:, :, None]
    return counts, laws[place], rest, under


def _distinct(channel: Channel, low: Whole, high: Whole) -> tuple[list[ChannelRow], Whole]:
    """Return the rows of all numbers that occur, and which of them is whose."""
    pairs = list(zip(low.tolist(), high.tolist(), strict=True))
    place = {pair: index for index, pair in enumerate(dict.fromkeys(pairs))}
    rows = [row for pair in place if (row := row_of(channel, *pair)) is not None]
    return rows, np.array([place[pair] for pair in pairs])
