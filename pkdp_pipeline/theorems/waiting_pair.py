"""The dominating pair of thresholding, as two laws on common atoms, and the product of two such pairs.

``(W_t, W_{t+1})``, the waiting times for `t` and for ``t+1`` successes of a p-coin, live on ``m = t + i``.
The second law is the first one size-biased: ``Q(i) = P(i) · i/c`` with ``c = t(1-p)/p``. A cap on the number
of coins merges all later atoms into one. Atoms are kept in the order of their likelihood ratio ``Q/P``.

Attacks on two such counts at once take one crowd that may be in the one cell, and another that may be in the other. A
person who may be in cell v or absent says nothing about w. So for m such people, and n who may be in w or absent, the
two counts are independent, and the divergence of what is published is that of a product of two pairs of laws.

A bound on both takes one crowd only, in the first cell or absent: given what that shows, the second cell is dominated
by waiting times, whoever is in it. The worst number of people in the crowd is searched: blocks of numbers are halved
where they may tell more.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from heapq import heapify, heappop, heappush
from itertools import pairwise

import flint
import numpy as np

from pkdp_pipeline.theorems.numerics import (
    MIN_P,
    TINY,
    UNIT,
    Array,
    ball_above,
    binomial_weights,
    likely_counts,
    log_binomial_pmf,
    outward_from,
)

_MAX_ATOMS = 400_000
"""Most atoms kept for one pair; a p that needs more is replaced by a larger one, which is sound."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Pair:
    """Two laws ``(P, Q)`` on atoms of increasing ratio ``Q/P``.

    Parameters
    ----------
    weight : array, shape (n,)
        ``P`` of the atoms, within `budget` relatively.
    ratio : array, shape (n,)
        ``Q/P`` of the atoms, increasing, within `budget` relatively.
    first_only, second_only : float
        At or above the mass of P, and of Q, on all other events.
    """

    weight: Array
    ratio: Array
    budget: float
    first_only: float
    second_only: float


_DISJOINT = Pair(weight=np.zeros(0), ratio=np.zeros(0), budget=0.0, first_only=1.0, second_only=1.0)
"""Two laws that one look tells apart; they dominate every pair."""


@lru_cache(maxsize=32)
def waiting_pair(t: int, p: float, cap: int | None, lost: float) -> Pair:
    """Return the pair ``(W_t, W_{t+1})`` of a p-coin tossed at most `cap` times.

    Parameters
    ----------
    t : int
        Successes waited for; at 0 or below the two laws are disjoint.
    p : float
        In [0, 1].
    lost : float
        Mass that may be left out of the atoms; what is left out is bounded in the `_only` fields.

    Notes
    -----
    *Guarantee*: the pair dominates that of theorem A. *Rounding*: see the fields of `Pair`.
    """
    if t <= 0 or (p == 1.0 and (cap is None or cap >= t)):
        return _DISJOINT
    if p == 0.0 or (cap is not None and cap < t):
        return Pair(weight=np.ones(1), ratio=np.ones(1), budget=0.0, first_only=0.0, second_only=0.0)
    p = max(p, MIN_P)
    if cap is not None and cap - t < _MAX_ATOMS:
        return _capped(t, p, cap)
    reach = 5.0 - math.log(max(lost, 1e-280))
    # A larger p dominates: theorem A's attackers at p are among those at any larger p.
    p = max(p, (2.0 * math.sqrt(2.0 * reach * (t + 1.0)) + 4.0 * reach) / _MAX_ATOMS)
    if p > 1.0 - 2.0**-20:
        return _DISJOINT
    mean, spread = t * (1.0 - p) / p, math.sqrt((t + 1.0) * (1.0 - p)) / p
    low = max(0, math.floor(mean - math.sqrt(2.0 * reach) * spread - 2.0))
    high = math.ceil(mean + math.sqrt(2.0 * reach) * spread + reach / p) + 2
    weight, ratio = _atoms(t, p, low, high, 1.0)
    # The window holds next to all of the law, so its masses add up to 1. Atoms rise to the mode and fall from there.
    weight /= float(weight.sum())
    weight += TINY
    mode, end = _mode(t, p, low, high) - low, len(weight)
    # What is left out at either edge does not show beside `lost`.
    end -= int(np.searchsorted(weight[:mode:-1], 1e-12 * lost / max(1.0, ratio[-1])))
    start = int(np.searchsorted(weight[:mode], 1e-12 * lost))
    weight, ratio, low, high = weight[start:end], ratio[start:end], low + start, low + end - 1
    # Beyond either edge the atoms fall at least geometrically. A cap beyond the window changes nothing more.
    falling = (t + high) * (1.0 - p) / high
    sinking = low / ((t + low - 1.0) * (1.0 - p)) if low else 0.0
    beyond = weight[-1] * max(1.0, ratio[-1]) * falling / (1.0 - falling) * 1.01 + TINY
    before = weight[0] * max(1.0, ratio[0]) * sinking / (1.0 - sinking) * 1.01 + (TINY if low else 0.0)
    rest = float(before + beyond)
    if cap is not None and cap + 1 - t <= high:
        # A cap this far out that still bites: what it merges is counted as disclosed.
        cut = max(0, cap + 1 - t - low)
        rest += float((weight[cut:] * np.maximum(1.0, ratio[cut:])).sum() * (1.0 + 1e-9))
        weight, ratio = weight[:cut], ratio[:cut]
    budget = (10.0 * (high - low) + 70.0) * UNIT
    return Pair(weight=weight, ratio=ratio, budget=budget, first_only=rest, second_only=rest)


def _capped(t: int, p: float, cap: int) -> Pair:
    """Return the pair of at most `cap` tosses: the atoms up to the cap, and one for everything later."""
    last = cap - t
    mode = _mode(t, p, 0, last)
    with flint.ctx.workprec(160 + 2 * (t + mode).bit_length()):
        peak = ball_above(log_binomial_pmf(t + mode, t, p).exp() * t / (t + mode))
    weight, ratio = _atoms(t, p, 0, last, peak)
    weight += TINY * (peak > 0.0)
    fewer = binomial_weights(cap, p, 0, t)
    tail = float(fewer[:-1].sum())
    budget = (10.0 * (last + t) + 200.0) * UNIT
    merged = (tail + float(fewer[-1])) / tail
    if tail < 1e-250 or merged < ratio[-1]:
        # Too little is left to have a ratio: it is counted as disclosed.
        rest = (tail + float(fewer[-1])) * (1.0 + 1e-9)
        return Pair(weight=weight, ratio=ratio, budget=budget, first_only=rest, second_only=rest)
    weight, ratio = np.append(weight, tail), np.append(ratio, merged)
    return Pair(weight=weight, ratio=ratio, budget=budget, first_only=0.0, second_only=0.0)


def _mode(t: int, p: float, low: int, high: int) -> int:
    """Return the likeliest number of failures from `low` to `high`."""
    return max(low, min(high, math.floor((t - 1) * (1.0 - p) / p)))


def _atoms(t: int, p: float, low: int, high: int, peak: float) -> tuple[Array, Array]:
    """Return the first law, where it is `peak` at its largest, and the ratio of the two on `low … high` failures."""
    steps = np.arange(low, high + 1, dtype=np.float64)
    rising = steps[:-1] + t
    rising *= 1.0 - p
    rising /= steps[1:]
    with np.errstate(under="ignore"):
        weight = outward_from(_mode(t, p, low, high) - low, peak, rising)
    return weight, steps * (p / (t * (1.0 - p)))


def reaching_pair(k: int, p: float, low: int, high: int | None, lost: float) -> Pair:
    """Return the pair of what tosses of p-coins show: their number of successes after `low`, if that reaches `k`.

    Else it is shown when, up to `high` tosses, `k` is reached, or that it is not; the target counts in the first law.
    Without `high` there is no last toss; `lost` is as in `waiting_pair`, and p is not too small for its atoms.

    Notes
    -----
    *Guarantee*: it dominates a count published from `k` on, of any number of p-coins from `low` to `high`, or of fewer
    where ``low < k - 1``: that is a random function of it. *Rounding*: see the fields of `Pair`.
    """
    t, pair = k - 1, waiting_pair(k - 1, p, high, lost)
    if low < t or not len(pair.weight):
        return pair
    reach = 5.0 - math.log(max(lost, 1e-280))
    top = min(
        low, math.ceil(max(t, low * p) + reach / 3.0 + math.sqrt(reach * reach / 9.0 + 2.0 * reach * low * p)) + 2
    )
    s = np.arange(top, t - 1, -1, dtype=np.float64)
    weight = binomial_weights(low, p, t, top)[::-1]
    # Bernstein's inequality leaves less than `lost` above `top`.
    later = pair.ratio > (low - t + 0.5) * (p / (t * (1.0 - p)))
    beyond = 0.0 if top == low else 1.01 * lost + TINY
    return Pair(
        weight=np.concatenate([weight, pair.weight[later]]),
        ratio=np.concatenate([(low - s) * p / ((s + 1.0) * (1.0 - p)), pair.ratio[later]]),
        budget=max(pair.budget, (16.0 * len(s) + 80.0) * UNIT),
        first_only=pair.first_only + beyond,
        second_only=pair.second_only + beyond,
    )


def mixed(chances: Sequence[float], pairs: Sequence[Pair], beyond: float) -> Pair:
    """Return the pair in which a public coin decides which of `pairs` is seen.

    `chances`: at or above the probability of each pair. `beyond`: at or above the probability that neither is seen and
    the two laws are disjoint.
    """
    weight = np.concatenate([chance * pair.weight for chance, pair in zip(chances, pairs, strict=True)])
    ratio = np.concatenate([pair.ratio for pair in pairs])
    order = np.argsort(ratio, kind="stable")
    first = sum(chance * pair.first_only for chance, pair in zip(chances, pairs, strict=True))
    second = sum(chance * pair.second_only for chance, pair in zip(chances, pairs, strict=True))
    return Pair(
        weight=weight[order],
        ratio=ratio[order],
        budget=max(pair.budget for pair in pairs) + 4.0 * UNIT,
        first_only=(first + beyond) * (1.0 + 1e-12),
        second_only=(second + beyond) * (1.0 + 1e-12),
    )


def averaged_pair(k: int, p: float, cap: int | None, known: tuple[int, float], lost: float, most: int) -> Pair:
    """Return the pair of theorem A at the threshold `k`, averaged over how many known people count.

    Parameters
    ----------
    k, p, cap, lost :
        As in `waiting_pair`, with ``t = k - 1``.
    known : (int, float)
        How many people are known, and the chance that one of them counts; both laws show how many do.
    most : int
        Most pairs built; a block of numbers is dominated by its largest one.
    """
    # The number who count is public, so the pair is a mixture; a block of numbers is dominated by its largest, which
    # leaves the lowest threshold.
    low, weights, beyond = likely_counts(*known)
    # Thresholds at 1 or below disclose everything; so are counted those too unlikely to matter.
    disclosed = (low + np.arange(len(weights)) >= k - 1) | (weights < lost / len(weights))
    beyond = (beyond + float(weights[disclosed].sum())) * (1.0 + (len(weights) + 4.0) * UNIT)
    kept = np.flatnonzero(~disclosed)
    if len(kept) == 0:
        return _DISJOINT
    chances, pairs = [], []
    for block in np.array_split(kept, min(len(kept), most)):
        chances.append(float(weights[block].sum()) * (1.0 + (len(block) + 4.0) * UNIT))
        pairs.append(waiting_pair(k - 1 - low - int(block[-1]), p, cap, lost))
    return mixed(chances, pairs, beyond)


def product_above(first: Pair, second: Pair, epsilon: float) -> float:
    """Return a float at or above ``H_ε(P1 ⊗ Q2 ‖ Q1 ⊗ P2)`` for two pairs ``(P1, Q1)`` and ``(P2, Q2)``.

    Notes
    -----
    *Guarantee*: never below the divergence. *Rounding*: upward; errors of the ratios act like an error of ε and are
    covered by evaluating at a slightly smaller ε.
    """
    total = _product(first, second, epsilon, 1.0 - _shift(first, second))
    total *= (1.0 + 2.0 * first.budget + 2.0 * second.budget) * (1.0 + _summing(first, second))
    total += TINY * (total > 0.0)
    return min(1.0, math.nextafter((total + first.first_only + second.second_only) * (1.0 + 1e-14), math.inf))


def product_below(first: Pair, second: Pair, epsilon: float) -> float:
    """Return a float at or below the divergence of `product_above`.

    Notes
    -----
    *Guarantee*: never above the divergence: events without an atom are left out. *Rounding*: downward, at a slightly
    larger ε.
    """
    total = _product(first, second, epsilon, 1.0 + _shift(first, second))
    total *= (1.0 - 2.0 * first.budget - 2.0 * second.budget) * (1.0 - _summing(first, second))
    return max(0.0, math.nextafter((total - TINY) * (1.0 - 1e-14), -math.inf))


def _shift(first: Pair, second: Pair) -> float:
    return 2.0 * (first.budget + second.budget) + 64.0 * UNIT


def _summing(first: Pair, second: Pair) -> float:
    return (4.0 * (len(first.weight) + len(second.weight)) + 64.0) * UNIT


def _product(first: Pair, second: Pair, epsilon: float, share: float) -> float:
    """Return ``Σ_i P1(i) Σ_l P2(l) (ρ2(l) - share·e^ε ρ1(i))_+`` over atoms, all of whose terms are positive.

    The inner sum is a second-order tail of ``P2``, so that the cost is linear.
    """
    count = len(second.weight)
    if not count or not len(first.weight):
        return 0.0
    tail = np.cumsum(second.weight[::-1])[::-1]
    # later[l] = Σ_{j>l} (ρ(j) - ρ(j-1)) tail(j)
    later = np.append(np.cumsum((np.diff(second.ratio) * tail[1:])[::-1])[::-1], 0.0)
    with np.errstate(over="ignore"):
        level = first.ratio * math.exp(min(epsilon, 700.0)) * share
    index = np.searchsorted(second.ratio, level, side="right")
    inside = index < count
    index, level = index[inside], level[inside]
    return float((first.weight[inside] * ((second.ratio[index] - level) * tail[index] + later[index])).sum())


_MAX_CROWD_ATOMS = 20_000
"""Crowds are not tried where more counts than this are likely."""

MAX_BUDGET = (40.0 * _MAX_CROWD_ATOMS + 400.0) * UNIT
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
    if high >= _MAX_CROWD_ATOMS:
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


BLOCK_SLACK = 4e-4
"""Blocks of crowds are halved until they are at most this far above the best one, relatively."""

_FIRST_WIDTH = 0.1
"""The first blocks are this wide next to the best crowd found, in standard deviations of a waiting time."""


def crowd_alone(
    thresholds: tuple[int, int], p: float, cap: int | None, epsilon: float, lost: float, low: int, high: int | None
) -> float:
    """Return what `low` to `high` people who may be in the first cell tell at most, beside waiting times."""
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
