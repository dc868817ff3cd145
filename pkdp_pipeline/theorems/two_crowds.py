"""Attacks on two thresholded counts at once: a crowd that may be in the one cell, another in the other.

A person who may be in cell v or absent says nothing about w. So for m such people, and n who may be in w or absent,
the two counts are independent, and the divergence of what is published is that of a product of two pairs of laws.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache, partial
from heapq import heapify, heappop, heappush
from itertools import pairwise

import numpy as np

from pkdp_pipeline.theorems.binomial_tails import binomial_weights
from pkdp_pipeline.theorems.rounding import UNIT
from pkdp_pipeline.theorems.waiting_pair import Pair, product_above, product_below, reaching_pair, waiting_pair

_MAX_ATOMS = 20_000
"""Crowds are not tried where more counts than this are likely."""

MAX_BUDGET = (40.0 * _MAX_ATOMS + 400.0) * UNIT
"""The largest budget of a pair here."""

_NEGLIGIBLE_PROBABILITY = 1e-250
"""Less likely counts are left out."""

_MAX_PEOPLE = 10**15
"""Crowds much larger than this are not tried either."""

_START_SHARES = ((-0.6, 0.3), (-1.0, 0.0))
"""The search starts here, in shares of ε: leaving the one cell, entering the other."""

_HALVINGS = 9
"""How often the search for the two sizes halves its steps."""

_DIRECTIONS = ((1, 0), (-1, 0), (0, 1), (0, -1), (1, -1), (-1, 1), (1, 1), (-1, -1))
"""Where it looks: one crowd or both, larger or smaller."""


_Sizes = tuple[int, int]


@lru_cache(maxsize=512)
def crowd_pair(people: int, p: float, k: int) -> Pair | None:
    """Return the laws of a count with and without the target, published from `k` on; None where it has too many values.

    Parameters
    ----------
    people : int
        The others, each counted with chance `p`.
    p : float
        Strictly between 0 and 1.
    k : int
        At least 2.

    Notes
    -----
    *Guarantee*: `Pair.weight` and `Pair.ratio` are those of distinct outcomes, within `Pair.budget`; unlikely outcomes
    are left out, and the masses of what is seen in one life alone are atoms or left out. So the pair bounds from below
    only.
    """
    if people < k - 1:
        return Pair(weight=np.ones(1), ratio=np.ones(1), budget=0.0, first_only=0.0, second_only=0.0)
    mean = people * p
    high = min(people, math.ceil(max(k, mean) + 12.0 * math.sqrt(max(k, mean)) + 60.0))
    if high >= _MAX_ATOMS:
        return None
    others = binomial_weights(people, p, 0, high)
    # The target makes s others a count of s + 1; ratios increase from the largest count to what is not published.
    s = np.arange(high, k - 2, -1, dtype=np.float64)
    hidden = float(others[: k - 1].sum())
    weight = np.append(others[high : k - 2 : -1], hidden)
    ratio = np.append((people - s) * p / ((s + 1.0) * (1.0 - p)), (hidden + float(others[k - 1])) / hidden)
    likely = weight > _NEGLIGIBLE_PROBABILITY
    budget = (40.0 * high + 400.0) * UNIT
    return Pair(weight=weight[likely], ratio=ratio[likely], budget=budget, first_only=0.0, second_only=0.0)


def crowds_reach(
    thresholds: tuple[int, int],
    p: float,
    cap: int | None,
    epsilon: float,
    pair_of: Callable[[int, float, int], Pair | None] = crowd_pair,
) -> float:
    """Return what two crowds reach: the target is in the first cell in one life, in the second cell in the other.

    Parameters
    ----------
    thresholds : (int, int)
        From which counts on the cells are published; at least 2.
    p : float
        Strictly between 0 and 1.
    cap : int, optional
        At most this many people, both crowds together.
    pair_of : callable
        Takes the place of `crowd_pair`; the `_only` fields of its pairs bound the mass that their atoms leave out.

    Notes
    -----
    *Guarantee*: at or below the divergence, first life against second, of an attacker with these chances; the sizes are
    searched for. *Rounding*: downward.
    """
    tried: dict[_Sizes, float] = {}

    def reached(sizes: _Sizes) -> float:
        if sizes not in tried:
            first, second = (pair_of(people, p, k) for people, k in zip(sizes, thresholds, strict=True))
            tried[sizes] = 0.0
            if first is not None and second is not None:
                lost = math.exp(min(epsilon, 700.0)) * (first.second_only + second.first_only)
                tried[sizes] = max(0.0, product_below(first, second, epsilon) - 1.01 * lost)
        return tried[sizes]

    least = (thresholds[0] - 1, thresholds[1] - 1)
    return max(_climbed(reached, _start(least, p, cap, epsilon, shares), least, cap) for shares in _START_SHARES)


def _start(least: _Sizes, p: float, cap: int | None, epsilon: float, shares: tuple[float, float]) -> _Sizes:
    """Return what is worst for the two counts where these are their shares of ε."""
    spare = (t * (1.0 - p) / p * math.exp(min(share * epsilon, 700.0)) for t, share in zip(least, shares, strict=True))
    first, second = (t + int(min(more, _MAX_PEOPLE)) for t, more in zip(least, spare, strict=True))
    if cap is not None:
        first = min(first, max(cap - least[1], round(cap * least[0] / sum(least))), cap)
        second = min(second, cap - first)
    return first, second


def _climbed(reached: Callable[[_Sizes], float], sizes: _Sizes, least: _Sizes, cap: int | None) -> float:
    """Return the most that is reached by steps from `sizes`; steps are shares of what exceeds `least`."""
    # Pattern search with halved steps; any sizes are a declared attacker, so a local optimum errs downward only.
    for halvings in range(1, _HALVINGS):
        for first_step, second_step in _DIRECTIONS:
            by = [max(1, (people - t) >> halvings) for people, t in zip(sizes, least, strict=True)]
            if cap is not None and first_step * second_step < 0:
                by = [min(by)] * 2
            moved = (sizes[0] + first_step * by[0], sizes[1] + second_step * by[1])
            inside = min(moved) >= 0 and (cap is None or sum(moved) <= cap)
            if inside and reached(moved) > reached(sizes):
                sizes = moved
    return reached(sizes)


BLOCK_SLACK = 2e-3
"""Blocks of crowds are halved until they are at most this far above the best one, relatively."""

_FIRST_WIDTH = 0.1
"""The first blocks are this wide next to the best crowd found, in standard deviations of a waiting time."""


def crowd_alone(
    thresholds: tuple[int, int], p: float, cap: int | None, epsilon: float, lost: float, low: int, high: int | None
) -> float:
    """Return what `low` to `high` people who may be in the first cell tell at most, beside waiting times; see below."""
    second = waiting_pair(thresholds[1] - 1, p, cap, lost)
    return product_above(reaching_pair(thresholds[0], p, low, high, lost), second, epsilon)


def one_crowd_tells(
    thresholds: tuple[int, int], p: float, cap: int | None, epsilon: float, lost: float
) -> tuple[float, int]:
    """Return what a crowd of any size in the first cell tells at most, beside a second cell of waiting times.

    Returns
    -------
    (float, int)
        The bound, and the worst size found.

    Parameters
    ----------
    thresholds, p, cap, epsilon
        See `crowds_reach`.
    lost : float
        See `waiting_pair`.

    Notes
    -----
    *Guarantee*: at or above the divergence, first life against second, of any declared attacker: given what the first
    cell shows the second is dominated by waiting times, and what both tell is convex in the chances of the first.
    *Rounding*: upward, within 0.2 % of the worst size. *Source*: `docs/mathematics.md`, theorem B, value.
    """
    most = partial(crowd_alone, thresholds, p, cap, epsilon, lost)
    alone = lru_cache(maxsize=None)(lambda people: most(people, people))
    t, least, end = thresholds[0] - 1, thresholds[0] - 2, math.inf if cap is None else cap
    if end < t:
        return most(least, cap), least
    # A climb from where the first cell has a share of ε to a good size.
    spare, width = t * (1.0 - p) / p, max(1, int(_FIRST_WIDTH * math.sqrt(t * (1.0 - p)) / p))
    best = max((int(min(end, t + spare * math.exp(-min(share * epsilon, 600.0)))) for share in (0.5, 1.0)), key=alone)
    step = 8 * width
    while step:
        better = max((people for people in (best - step, best, best + step) if t <= people <= end), key=alone)
        best, step = better, step if better != best else step // 4 if step >= width else 0
    # Blocks are the wider the farther they are from it, and then halved where they may tell more.
    low, high, step = best, best, width
    edges: list[int] = [best]
    while low > least or high < min(end, best + 100 * width):
        low, high, step = max(least, low - step), int(min(end, high + step)), 2 * step
        edges = sorted({low, *edges, high})
    blocks: list[tuple[float, int, int | None]] = [(-most(*block), *block) for block in pairwise(edges)]
    if high < end:
        blocks.append((-most(high, cap), high, cap))
    heapify(blocks)
    while blocks and -blocks[0][0] > (1.0 + BLOCK_SLACK) * alone(best):
        _, low, last = heappop(blocks)
        middle = 2 * low - least if last is None else (low + last) // 2
        best = max(best, middle, key=alone)
        if last == low + 1:
            best = max(best, last, key=alone)
        else:
            for block in ((low, middle), (middle, last)):
                heappush(blocks, (-most(*block), *block))
    return max([alone(best), *(-above for above, _, _ in blocks[:1])]), best
