"""Two noised looks at one number: of x people in the one cell all others are in the other, and both are published.

A cell is suppressed below k, noised, and suppressed below a release threshold, as one cell is in `theorems.channel`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import lru_cache

import numpy as np

from pkdp_pipeline.theorems.binomial_tails import binomial_weights
from pkdp_pipeline.theorems.channel import Channel, noised
from pkdp_pipeline.theorems.rounding import TINY, Array, Whole

_BLOCK_SIZE = 16
"""So many values of the smaller look are summed at once."""

_NO_RELEASE = -(2**40)
"""Stands for no release threshold: noise is never so far out."""

UNDERFLOW = 1e-310
"""Underflow changes a chance of what is shown by at most this: a million operations, and weights of up to 100."""

MAX_LOOKED_AT = 200
"""Of up to this many coins the law of two looks is computed."""

_ERROR = 1e-11
"""Relative error of its chances, with room for what a sampler may draw."""

_MAX_SUM = 1 << 12
"""The sum of many cells' noise is not looked at where either side of it may be this large."""


def two_looks(
    laws: Array,
    noise: float,
    thresholds: tuple[int, int] = (0, 0),
    releases: tuple[int | None, int | None] = (None, None),
) -> Iterator[Array]:
    """Yield the law of what is shown of x people in the one cell and all others in the other, in parts: columns.

    Parameters
    ----------
    laws : array, shape (rows, M + 1)
        Chances, or other numbers of at least 0, of x = 0 … M; parts have a row for each row.
    noise : float
        ε0 of two-sided geometric noise in each cell.
    thresholds, releases : (int, int)
        k of the one cell and of the other, and from which noisy counts on they are shown.

    Notes
    -----
    Shown values beyond all counts, and pairs that exchange their places, have the likelihood ratio of others: they are
    merged, so that the outcomes are finitely many and nothing is left out. *Rounding*: sums of positive terms, within
    1e-12 relatively and `UNDERFLOW`.
    """
    everybody, below = laws.shape[1] - 1, Channel(0, None, noise, 0.5, 0.5).below
    counts = np.arange(everybody + 1)
    cells = []
    for k, release in zip(thresholds, releases, strict=True):
        least = _NO_RELEASE if release is None else release
        cells.append((max(k, 0), least, np.where(counts >= k, below((least - counts).astype(float)), 1.0)))
    (k, release, hides), (other_k, other_release, other_hides) = cells
    last = everybody - other_k
    yield laws @ (hides * other_hides[::-1])[:, None]
    # One cell alone: its own counts, then the same of the other one, turned around.
    for least, shown, hidden, law in ((k, release, other_hides, laws), (other_k, other_release, hides, laws[:, ::-1])):
        if least <= everybody:
            weights = _merged(least, everybody, shown, noise)
            yield noised(law[:, least:] * hidden[::-1][least:], noise) * weights
    if k <= last:
        first = _merged(k, last, release, noise)
        second = _merged(other_k, everybody - k, other_release, noise)[::-1]
        yield from _looks(laws[:, k : last + 1], noise, first, second)


Lives = tuple[Array, Array]
"""Rows of what is shown in either life of the target."""


def parts_of_lives(laws: Array, noise: float, k: int, release: int | None, known: tuple[int, int]) -> Iterator[Lives]:
    """Yield what is shown with the target in the one cell, and in the other, some outcomes at a time.

    `laws`: rows of how many others are in the one cell. `known`: so many more are known to be in the one cell, and in
    the other; thresholds are those of all others.
    """
    lives = np.zeros((2 * len(laws), laws.shape[1] + 1))
    lives[: len(laws), 1:], lives[len(laws) :, :-1] = laws, laws
    releases = (None, None) if release is None else (release - known[0], release - known[1])
    for shown in two_looks(lives, noise, (k - known[0], k - known[1]), releases):
        yield shown[: len(laws)], shown[len(laws) :]


def lives_of(laws: Array, noise: float, k: int, release: int | None, known: tuple[int, int]) -> Lives:
    """Return all that `parts_of_lives` yields."""
    first, second = zip(*parts_of_lives(laws, noise, k, release, known), strict=True)
    return np.hstack(first), np.hstack(second)


def gains_of(first: Array, second: Array, growth: float, sign: float) -> Array:
    """Return at least ``first - growth · second`` of chances that underflow has changed; for sign -1 at most it."""
    gains: Array = second - sign * UNDERFLOW
    np.maximum(gains, 0.0, out=gains)
    gains *= -growth
    gains += first
    return gains


def _merged(low: int, high: int, least: int, noise: float) -> Array:
    """Return for each value from `low` to `high` how much is shown there: of `least` or more, what is nearest to it.

    Noise beyond the first value, and beyond the last, counts ``e^(-ε0)`` for each step.
    """
    weight: Array = (np.arange(low, high + 1) >= least).astype(float)
    weight[-1] += math.exp(-noise * max(1, least - high)) / -math.expm1(-noise)
    if low >= least:
        weight[0] += math.exp(-noise) * math.expm1(-noise * (low - least)) / math.expm1(-noise)
    return weight


def _looks(laws: Array, noise: float, first: Array, second: Array) -> Iterator[Array]:
    """Yield the law of the smaller and the larger of two looks ``x + Z1`` and ``x - Z2``.

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
    # Blocks of u: beyond a block, or the first v shown, a sum from u to v is one up to there and one from there.
    shown = np.flatnonzero(weights.any(axis=0)), np.flatnonzero(weights.any(axis=1))
    if not len(shown[0]):
        return
    least = int(shown[0][0])
    for start in range(0, int(shown[1][-1]) + 1, _BLOCK_SIZE):
        end = min(start + _BLOCK_SIZE, size)
        cut = max(end, least)
        below = np.cumsum(laws[:, start:cut][:, ::-1], axis=1)[:, ::-1][:, : end - start] + before[:, start:end]
        above = np.cumsum(laws[:, cut:], axis=1) + after[:, cut:]
        apart = below[:, :, None] + above[:, None, :]
        apart *= weights[start:end, cut:]
        yield apart.reshape(rows, -1)
        if end > least:
            inside = laws[:, None, start:end] * (places[start:end, None] <= places[start:end])
            np.cumsum(inside, axis=2, out=inside)
            inside += before[:, start:end, None] + after[:, None, start:end]
            inside *= weights[start:end, start:end]
            yield inside.reshape(rows, -1)[:, np.flatnonzero(weights[start:end, start:end])]


def brackets_of(counts: Whole, noise: float, epsilon: float) -> tuple[Array, Array]:
    """Return brackets of the profile of two looks at each of these numbers of fair coins."""
    sides = np.zeros((2, len(counts)))
    for index, people in enumerate(counts.tolist()):
        for side, sign in enumerate((-1.0, 1.0)):
            present, absent = _coin_lives(people, noise)
            growth = math.exp(min(epsilon, 700.0)) * (1.0 - sign * 2.0 * _ERROR)
            gains = gains_of(present, absent, growth, sign)
            sides[side, index] = np.maximum(0.0, gains).sum() * (1.0 + sign * 2.0 * _ERROR) + sign * TINY
    return np.maximum(0.0, sides[0]), sides[1]


@lru_cache(maxsize=2 * MAX_LOOKED_AT)
def _coin_lives(people: int, noise: float) -> tuple[Array, Array]:
    """Return what both cells show of so many fair coins in the target's two lives, each the other's mirror image."""
    present, absent = lives_of(binomial_weights(people, 0.5, 0, people)[None], noise, 0, None, (0, 0))
    return present[0], absent[0]


@lru_cache(maxsize=16)
def noise_of(cells: int, noise: float) -> Array | None:
    """Return the law of the sum of so many cells' noise, from its least value to its largest; None where it is wide.

    It is the difference of two negative binomial numbers, of either of which less than e^-40 is left out.
    """
    alpha, size = math.exp(-noise), 64
    while size <= _MAX_SUM:
        ratios = alpha * (1.0 + (cells - 1.0) / np.arange(1.0, size + 1.0))
        # They fall, to either side of the mode, so that the rest is at most a geometric series.
        mode = int((ratios > 1.0).sum())
        with np.errstate(under="ignore"):
            down, up = np.cumprod(1.0 / ratios[:mode][::-1])[::-1], np.cumprod(ratios[mode:])
        if mode < size and up[-1] < math.exp(-40.0) * (1.0 - ratios[-1]):
            weights = np.concatenate([down, [1.0], up])
            law: Array = np.convolve(weights, weights[::-1]) / weights.sum() ** 2
            return law
        size *= 2
    return None
