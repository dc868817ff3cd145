"""The published number of coins: suppressed below k, noised, and suppressed again; in one cell, or in two.

*Rounding*, with ``u = 2^-53``: a law is anchored in a ball at its mode and cut where it is below e^-92 of what
matters; geometric series bound the rest. The sum with the noise is built from both sides in steps of 1, 2, 4, …:
positive terms, at most 14 products each. So probabilities of what is published err by
``(10n + 4W + 12ε0(W + |k - r|) + 200)u``, relatively, for n counts and W values, where ``12ε0 W`` also covers every
ε0 of the sampler, within 2^-50 of the declared one. Laws of coins of two kinds are convolutions, with 14n in the
place of 10n, cut beyond what both have exactly. 1e-285 covers underflow. Divergences are sums of
``max(0, P(1 ± b) - e^ε Q(1 ∓ b))`` with that budget b, so cancellation widens the bracket only; four times the
distance of its sides is added to `rounding`. Within 2^-40 of ε0 what the sampler's own ε0 may add is added.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from pkdp_pipeline.theorems.binomial_tails import anchored_weights
from pkdp_pipeline.theorems.kernels import noised
from pkdp_pipeline.theorems.rounding import TINY, UNIT, Array, Whole, kept

_CUTOFF_EXPONENT = 92.0
"""Counts whose probability is below e^-92 of what matters are bounded together."""

MAX_NOISY_VALUES = 6_000
"""Most noisy values looked at for one number of people; with more the search stops."""

UNDERFLOW_MASS = 1e5 * TINY
"""The most that may have been lost to underflow in all numbers of a row."""

_NO_RELEASE = -(2**40)
"""Stands for no release threshold: noise is never so far out."""

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


def two_looks(
    laws: Array,
    noise: float,
    thresholds: tuple[int, int] = (0, 0),
    releases: tuple[int | None, int | None] = (None, None),
) -> Array:
    """Return the law of what is shown of x people in the one cell and all others in the other; a row for each row.

    Parameters
    ----------
    laws : array, shape (rows, M + 1)
        Chances, or other numbers of at least 0, of x = 0 … M.
    noise : float
        ε0 of two-sided geometric noise in each cell.
    thresholds, releases : (int, int)
        k of the one cell and of the other, and from which noisy counts on they are shown.

    Notes
    -----
    Shown values beyond all counts, and pairs that exchange their places, have the likelihood ratio of others: they are
    merged, so that the outcomes are finitely many and nothing is left out. *Rounding*: sums of positive terms, within
    1e-12 relatively.
    """
    everybody, below = laws.shape[1] - 1, Channel(0, None, noise, 0.5, 0.5).below
    counts = np.arange(everybody + 1)
    cells = []
    for k, release in zip(thresholds, releases, strict=True):
        least = _NO_RELEASE if release is None else release
        cells.append((max(k, 0), least, np.where(counts >= k, below((least - counts).astype(float)), 1.0)))
    (k, release, hides), (other_k, other_release, other_hides) = cells
    last = everybody - other_k
    outcomes = [laws @ (hides * other_hides[::-1])[:, None]]
    # One cell alone: its own counts, then the same of the other one, turned around.
    for least, shown, hidden, law in ((k, release, other_hides, laws), (other_k, other_release, hides, laws[:, ::-1])):
        if least <= everybody:
            weights = _merged(least, everybody, shown, noise)
            outcomes.append(noised(law[:, least:] * hidden[::-1][least:], noise) * weights)
    if k <= last:
        first = _merged(k, last, release, noise)
        second = _merged(other_k, everybody - k, other_release, noise)[::-1]
        outcomes.append(_looks(laws[:, k : last + 1], noise, first, second))
    return np.hstack(outcomes)


def lives_of(laws: Array, noise: float, k: int, release: int | None, known: tuple[int, int]) -> tuple[Array, Array]:
    """Return what is shown with the target in the one cell, and in the other.

    `laws`: rows of how many others are in the one cell. `known`: so many more are known to be in the one cell, and in
    the other; thresholds are those of all others.
    """
    lives = np.vstack([np.pad(laws, ((0, 0), (1, 0))), np.pad(laws, ((0, 0), (0, 1)))])
    releases = (None, None) if release is None else (release - known[0], release - known[1])
    shown = two_looks(lives, noise, (k - known[0], k - known[1]), releases)
    return shown[: len(laws)], shown[len(laws) :]


def _merged(low: int, high: int, least: int, noise: float) -> Array:
    """Return for each value from `low` to `high` how much is shown there: of `least` or more, what is nearest to it.

    Noise beyond the first value, and beyond the last, counts ``e^(-ε0)`` for each step.
    """
    weight: Array = (np.arange(low, high + 1) >= least).astype(float)
    weight[-1] += math.exp(-noise * max(1, least - high)) / -math.expm1(-noise)
    if low >= least:
        weight[0] += math.exp(-noise) * math.expm1(-noise * (low - least)) / math.expm1(-noise)
    return weight


def _looks(laws: Array, noise: float, first: Array, second: Array) -> Array:
    """Return the law of the smaller and the larger of two looks ``x + Z1`` and ``x - Z2``.

    `first` and `second` are the weights of either look's value; of a pair of values ``u ≤ v`` the chance given x is in
    proportion to ``α^(v - u) α^(2 dist(x, [u, v]))``.
    """
    rows, size = laws.shape
    beta, places = math.exp(-2.0 * noise), np.arange(size)
    before, after = np.zeros_like(laws), np.zeros_like(laws)
    for place in range(1, size):
        before[:, place] = beta * (before[:, place - 1] + laws[:, place - 1])
        after[:, -place - 1] = beta * (after[:, -place] + laws[:, -place])
    weights = np.triu(np.outer(first, second) + np.outer(second, first))
    np.fill_diagonal(weights, first * second)
    weights *= np.exp(-noise * np.abs(places[:, None] - places)) * math.tanh(0.5 * noise) ** 2
    inside = laws[:, None, :] * (places[:, None] <= places)
    np.cumsum(inside, axis=2, out=inside)
    inside += before[:, :, None]
    inside += after[:, None, :]
    where = np.flatnonzero(weights)
    result: Array = inside.reshape(rows, -1)[:, where]
    result *= weights.ravel()[where]
    return result
