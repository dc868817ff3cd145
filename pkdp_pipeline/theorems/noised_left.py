"""Theorem I, absent against present from ε0 on: how much more it tells than theorem A, as a bound over all crowds.

With α = e^{-ε} and a larger D the event holds for more noised values: `F(m, D)` of `noised_below`.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from pkdp_pipeline.theorems.rounding import UNIT, Array

SLACK = 5e-4
"""Blocks are halved until none exceeds the best attacker by more than this, relatively."""

_MAX_LEFT_BLOCKS, _LEFT_BLOCKS = 20_000, (24, 72)
"""The search for the left side ends with the first number of blocks, and begins with fewer, for one threshold last."""

_MAX_STEPS = 4_096
"""Most D looked at one by one."""

_MAX_EPSILON = 60.0
"""At a larger ε the left side is bounded by the one here."""


@lru_cache(maxsize=4096)
def left_bound(
    chances: tuple[float, ...], thresholds: tuple[int, ...], p: float, cap: int | None, epsilon: float, enough: float
) -> float:
    """Return a bound on the mean over thresholds k of the largest ``F(m, D)``, or `enough` where it is no more.

    With one threshold D = 0 is left out, since it is theorem A's. In a block of numbers of people ``f(k-1)`` is at most
    its value at the end nearer its mode, and the tail at least that of the most people.
    """
    alone = len(thresholds) == 1
    if alone and (math.exp(min(epsilon, _MAX_EPSILON)) * (1.0 - p) <= 1.0 - 1e-12 or math.exp(-epsilon) < enough):
        return enough  # proved; and F(m, D) is below e^{-ε D}
    # F falls with ε, so a smaller one bounds it.
    epsilon = min(epsilon, _MAX_EPSILON)
    likely = [(chance, k) for chance, k in zip(chances, thresholds, strict=True) if k > 1]
    disclosed = sum(chance for chance, k in zip(chances, thresholds, strict=True) if k <= 1)
    odds, growth = p / (1.0 - p), math.expm1(epsilon)
    largest, smallest = max(k for _, k in likely), min(k for _, k in likely)
    # From this many people on every gain reaches up to k, and theorem A holds; before the mode of k - 1, F grows.
    last = largest + math.ceil(min(1e15, (largest - 1) * math.exp(epsilon) / odds)) + 1
    last = last if cap is None else min(last, cap)
    first = min(math.floor((largest - 1) / p), last) if alone else min(smallest - 1, last)
    edges = np.unique(np.floor(first + (last + 1 - first) * np.linspace(0.0, 1.0, _LEFT_BLOCKS[alone] + 1) ** 1.5))
    low, high = edges[:-1], edges[1:] - 1.0
    bound, looked, level = 0.0, 0, enough if alone else enough * (1.0 + SLACK)
    # Branch and bound: blocks of numbers of people are halved until none is above what is enough, or one is left.
    while len(low):
        values = np.full(len(low), float(disclosed))
        for chance, k in likely:
            values += chance * _largest_left(k, p, growth, epsilon, low, high, level, 1 if alone else 0)
        values *= 1.0 + 4.0 * UNIT * len(thresholds)
        looked += len(values)
        # Every bound holds as it stands: stopping here is looser and changes nothing else.
        done = (values <= level) | (low == high) | (looked >= _MAX_LEFT_BLOCKS)
        bound = max(bound, float(values[done].max(initial=0.0)))
        low, high = low[~done], high[~done]
        middle = np.floor((low + high) / 2.0)
        low, high = np.concatenate([low, middle + 1.0]), np.concatenate([middle, high])
    return max(enough, bound)


def _largest_left(
    k: int, p: float, growth: float, epsilon: float, low: Array, high: Array, enough: float, least: int
) -> Array:
    """Return at or above the largest ``F(m, D)`` with D from `least` to k - 1, for m from `low` to `high`."""
    odds = p / (1.0 - p)
    ends = np.stack([np.clip(math.floor((k - 1) / p), low, high), high])
    (peaks, tops), budgets = _density(k - 1, p, ends)
    # Larger D add less than is enough, or are bounded by the first of them.
    reach = math.log(max(1.0, float(peaks.max()) / max(enough, 1e-290))) / epsilon + 2.0
    steps = int(min(k - 1.0, reach, _MAX_STEPS)) + 1
    places = np.arange(k - 1, max(0, k - 1 - steps - 64), -1, dtype=np.float64)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        ratios = places / ((high[:, None] - places + 1.0) * odds)
        law = tops[:, None] * np.cumprod(ratios, axis=1)  # f(k-2), f(k-3), …
    law = np.where(np.isfinite(law), law, 0.0)
    tails = np.cumsum(law[:, ::-1], axis=1)[:, ::-1]  # P[S ≤ k-2], P[S ≤ k-3], …, without the smallest counts
    if tails.shape[1] < steps:
        tails = np.hstack([tails, np.zeros((len(tails), steps - tails.shape[1]))])
    shrinking = np.exp(-epsilon * np.arange(steps))
    share = (budgets.max(axis=0) + (4.0 * len(places) + 16.0) * UNIT)[:, None]
    values = shrinking * peaks[:, None] * (1.0 + share) - growth * tails[:, :steps] * (1.0 - share)
    result: Array = values[:, least:].max(axis=1, initial=0.0)
    if steps < k:
        result = np.maximum(result, peaks * (1.0 + share[:, 0]) * math.exp(-epsilon * steps))
    return result


def _density(s: int, p: float, m: Array) -> tuple[Array, Array]:
    """Return ``P[Bin(m, p) = s]`` for each m, and the relative budget of each."""
    parts = (
        log_factorials(m),
        -math.lgamma(s + 1.0) - log_factorials(np.maximum(m - s, 0.0)),
        s * math.log(p),
        (m - s) * math.log1p(-p),
    )
    exponent = np.where(m >= s, parts[0] + parts[1] + parts[2] + parts[3], -np.inf)
    size = abs(parts[0]) + abs(parts[1]) + abs(parts[2]) + abs(parts[3])
    return np.exp(exponent), 32.0 * UNIT * (size + 4.0)


def log_factorials(numbers: Array) -> Array:
    """Return the logarithms of the factorials of whole numbers, each within a few units of its size."""
    return np.array([math.lgamma(number + 1.0) for number in numbers.ravel().tolist()]).reshape(numbers.shape)
