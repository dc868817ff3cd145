"""One crowd of people who may be in the first cell or absent, beside a second cell that is bounded by waiting times.

Given what the first cell shows, the second is dominated by waiting times, whoever is in it. A search over the number of
people in the first cell is then a bound on both: blocks of numbers are halved where they may tell more.
"""

from __future__ import annotations

import math
from functools import lru_cache, partial
from heapq import heapify, heappop, heappush
from itertools import pairwise

from pkdp_pipeline.theorems.waiting_pair import product_above, reaching_pair, waiting_pair

BLOCK_SLACK = 4e-4
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
    *Rounding*: upward, within 0.04 % of the worst size. *Source*: `docs/mathematics.md`, theorem B, value.
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
