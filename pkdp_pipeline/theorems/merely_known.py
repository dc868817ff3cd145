"""Theorem A with people merely known: one number of unknown people, whichever of the known ones count.

Let `f` be the density of ``S ~ Bin(m, p)``, b the number of known people who count, and ``C(x) = P[k - 1 - b ≤ x]``.
The divergence of m unknown people is, in the two orders,

    right = Σ_{x≥t} (f(x) - e^ε f(x+1)) C(x),
    left  = Σ_{u≤x<T} (e^ε f(x) - f(x+1)) C(x) + L(T) C(T),      L(x) = P[S ≤ x] - e^ε P[S ≤ x-1],

with the exact count's best cutoffs t and u, and the last T at which L is positive. All terms are positive.

*Rounding*, with ``u = 2^-53``: the law is anchored in a ball and made down to 1e-286; geometric series bound the
rest. Right terms are ``f(x)(a + b(x - t))/(x + 1)`` with a and b from balls. ``L(x)`` falls from the exact count's
divergence by positive terms, and is ``f(x) - (e^ε - 1) P[S < x]``; the narrower ends of both brackets count. The
budget is ``(16n + 100)u`` for n counts, and ``(n + 8)u`` for C. Four times the distance of both sides at the best
number of people is added to `rounding`.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

import flint
import numpy as np

from pkdp_pipeline.theorems.numerics import (
    MAX_LEFT_EPSILON,
    MAX_RIGHT_EPSILON,
    TINY,
    UNIT,
    Array,
    Optimum,
    Whole,
    anchored_weights,
    ball_above,
    binomial_below,
    kept,
    likely_counts,
    odds_against,
    precision,
    weights_below,
    whole_part,
)

SLACK = 1e-3
"""Blocks are divided until none exceeds the best number found by more than this, relatively."""

_NEGLIGIBLE_DELTA = 1e-280
"""Below this no two sides need to agree."""

_MAX_BLOCKS = 2_000
"""With more blocks than this to divide for one ε and order, the search stops, which widens the bracket."""

_CUTOFF_EXPONENT = 690.0
"""Counts less likely than e^-690 are bounded together by geometric series."""

_MAX_COUNTS = 3_000_000.0
"""With more counts than this in the window, the law is not built and trivial bounds are used."""

_MAX_EXACT_INTEGER = 2.0**50
"""Floats up to this one represent whole numbers, their sums and their halves exactly."""

LEFT_OUT_MASS = 1e4 * TINY
"""The most that may be left out of a sum for its smallness."""


class Places(NamedTuple):
    """The divergences of some numbers of people, those of the exact count, and ``C`` at its best cutoff.

    The first four bracket, the last is at or above.
    """

    lower: Array
    upper: Array
    exact_lower: Array
    exact_upper: Array
    free: Array


@lru_cache(maxsize=256)
def passive_optimum(k: int, p: float, known: int, cap: int | None, least: int, epsilons: tuple[float, ...]) -> Optimum:
    """Return the worst number of unknown people beside people merely known, for ``0 < p < 1``.

    Parameters
    ----------
    k, p, known, cap
        See `pkdp_pipeline.theorems.thresholding.Threshold`.
    least : int
        Fewer unknown people than this do not count as attained.

    Notes
    -----
    *Guarantee*: `top` is never below the divergence of any attacker, in either order; `best` is never above that of
    `leader` unknown people. *Rounding*: outward; the two agree within `SLACK` where the search is not cut short.
    """
    return Optimum(*kept(PassiveSearch(k, p, known, np.array(epsilons)).sides(cap, least)))


class PassiveSearch:
    """The largest divergence over all numbers of unknown people, for several ε at once.

    A column is an order and an ε: those of the right order come first.
    """

    def __init__(self, k: int, p: float, known: int, epsilons: Array) -> None:
        self.k, self.p, self.known, self.many = k, p, known, len(epsilons)
        self.epsilons = np.append(np.minimum(epsilons, MAX_RIGHT_EPSILON), np.minimum(epsilons, MAX_LEFT_EPSILON))
        # Beyond `MAX_LEFT_EPSILON` the left order is bounded by its value there, which attains nothing.
        self.gone = np.append(np.zeros(self.many, dtype=bool), epsilons > MAX_LEFT_EPSILON)
        self.low, weights, beyond = likely_counts(known, p)
        budget, sure = (len(weights) + 8.0) * UNIT, weights_below(weights)
        sure[0] *= self.low == 0
        above, below = (np.append(np.cumsum(chances[::-1])[::-1], 0.0) for chances in (weights, sure))
        self.weights, self.sure = weights, sure
        self.above, self.below = np.minimum(1.0, (above + beyond) * (1.0 + budget)), below * (1.0 - budget)

    def sides(self, cap: int | None, least: int) -> Optimum:
        """Return what is found for every ε."""
        columns = np.arange(2 * self.many)
        result = Optimum(*np.zeros((4, self.many)))
        start = max(0, self.k - 1 - self.known)
        # A cap beyond exact floats is dropped: to allow more people only raises the bound.
        cap = None if cap is None or cap > _MAX_EXACT_INTEGER else cap
        if cap is not None and start > cap:
            return result
        last = [max(start, self.enough(column)) for column in columns.tolist()]
        last = last if cap is None else [min(number, cap) for number in last]
        ends, end_places, needed = self._ladder(start, np.array(last, dtype=np.float64), cap, least, result)
        column, block = np.nonzero(np.arange(1, len(ends)) <= needed[:, None])
        firsts, lasts = ends[block], ends[block + 1]
        fewest, most = (self._places_at(end_places, end, column) for end in (block, block + 1))
        # Branch and bound: `between` bounds a block by its two ends; a block above the incumbent by more than the slack
        # is halved at a middle that may become the incumbent.
        while len(firsts):
            index, middles = column % self.many, np.floor(firsts + (lasts - firsts) / 2.0)
            bounds = between(fewest, most)
            done = bounds <= np.maximum((1.0 + SLACK) * result.best[index], _NEGLIGIBLE_DELTA)
            # Every bound holds as it stands: stopping here widens the bracket and changes nothing else.
            done |= (np.bincount(column)[column] > _MAX_BLOCKS) | (middles <= firsts) | (middles >= lasts)
            np.maximum.at(result.top, index[done], np.where(lasts - firsts > 1.0, bounds, 0.0)[done])
            if done.all():
                break
            column = column[~done]
            firsts, lasts, middles = (part[~done] for part in (firsts, lasts, middles))
            fewest, most = (Places(*(part[~done] for part in end)) for end in (fewest, most))
            inside = self.places(column, middles)
            self._enter(column, middles, inside, least, result)
            column = np.concatenate([column, column])
            firsts, lasts = np.concatenate([firsts, middles]), np.concatenate([middles, lasts])
            fewest, most = (
                Places(*(np.concatenate(pair) for pair in zip(*ends, strict=True)))
                for ends in ((fewest, inside), (inside, most))
            )
        if least:
            people = np.maximum(np.concatenate([result.leader, result.leader]), least)
            self._enter(columns, people, self.places(columns, people), least, result)
        np.minimum(result.top, 1.0, out=result.top)
        return result

    def _ladder(
        self, start: int, last: Array, cap: int | None, least: int, result: Optimum
    ) -> tuple[Array, list[Places], Whole]:
        """Return numbers of people that blocks lie between, what they tell, and how many blocks each column needs.

        They are the same for every ε: most of what is computed serves several. Beyond the blocks all that is told is
        entered.
        """
        most = math.inf if cap is None else float(cap)
        ends, end_places, needed = [float(start)], [], np.zeros(2 * self.many, dtype=np.int64)
        left, step = np.arange(2 * self.many), 2.0 ** max(0, math.floor(-math.log2(self.p)) - 6)
        # Ends at growing distances, until the exact count's divergence, which does not increase with the people and
        # bounds all larger numbers, is below the incumbent's slack, or the threshold forbids nothing.
        while True:
            places = self.places(left, np.full(len(left), ends[-1]))
            self._enter(left, np.full(len(left), ends[-1]), places, least, result)
            end_places.append(Places(*np.zeros((5, 2 * self.many))))
            for whole, part in zip(end_places[-1], places, strict=True):
                whole[left] = part
            needed[left] = len(ends) - 1
            # More people tell no more than the exact count does here.
            small = places.exact_upper <= np.maximum((1.0 + SLACK) * result.best[left % self.many], _NEGLIGIBLE_DELTA)
            done = small | (ends[-1] >= last[left])
            beyond = np.where(ends[-1] < most, places.exact_upper, 0.0)
            np.maximum.at(result.top, left[done] % self.many, beyond[done])
            left = left[~done]
            if not len(left):
                return np.array(ends), end_places, needed
            further = start + step * max(len(ends), math.floor(2.0 ** (len(ends) / 2.0)))
            ends.append(min(further, most))

    @staticmethod
    def _places_at(end_places: list[Places], block: Whole, column: Whole) -> Places:
        return Places(*(np.stack(part)[block, column] for part in zip(*end_places, strict=True)))

    def _enter(self, column: Whole, people: Array, places: Places, least: int, result: Optimum) -> None:
        """Enter what this many people tell."""
        index, lower = column % self.many, np.where(people >= least, places.lower, 0.0)
        np.maximum.at(result.top, index, places.upper)
        np.maximum.at(result.best, index, lower)
        first = (lower == result.best[index]) & (lower > 0.0)
        result.leader[index[first]] = people[first]
        result.apart[index[first]] = (places.upper[first] - lower[first]) / lower[first]

    def enough(self, column: int) -> int:
        """Return a number of people from which on the threshold forbids nothing, and more of them tell no more."""
        with flint.ctx.workprec(256):
            tilt = (flint.arb(float(self.epsilons[column])) * (-1 if column < self.many else 1)).exp()
            return math.floor(ball_above(self.k * (1 + odds_against(self.p) * tilt))) + 1

    def places(self, column: Whole, people: Array) -> Places:
        """Return what this many people tell in each column."""
        result = np.zeros((5, len(column)))
        many, back = np.unique(people, return_inverse=True)
        order = np.argsort(back, kind="stable")
        for m, rows in zip(
            many.tolist(), np.split(order, np.searchsorted(back[order], np.arange(1, len(many)))), strict=True
        ):
            right = column[rows] < self.many
            row = _row(m, self.p)
            for part, evaluate in ((rows[right], self._right), (rows[~right], self._left)):
                if len(part):
                    result[:, part] = evaluate(m, row, self.epsilons[column[part]])
        result[0, self.gone[column]] = 0.0
        return Places(*result)

    def _right(self, m: float, row: BinomialRow | None, epsilons: Array) -> Array:
        """Return the columns of `Places` for m people in the right order."""
        t, first, slope = np.array([_right_form(int(m), self.p, epsilon) for epsilon in epsilons.tolist()]).T[
            :, :, None
        ]
        free = self._counted(self.above, t[:, 0])
        if row is None:
            return np.stack([0.0 * free, 0.0 * free + 1.0, 0.0 * free, 0.0 * free + 1.0, free])
        beside, rest = row.counts - t, row.above
        with np.errstate(over="ignore", invalid="ignore"):
            terms = np.where(beside >= 0.0, row.weights * (first + slope * beside) / (row.counts + 1.0), 0.0)
        # Terms that overflowed are replaced by 0 in the lower sums and by 1 in the upper ones.
        least, most = (np.nan_to_num(terms, nan=value, posinf=value) for value in (0.0, 1.0))
        above, below = (self._counted(chances, row.counts) for chances in (self.above, self.below))
        lower, upper = least @ below, most @ above
        return np.stack(
            [
                lower * (1.0 - row.budget),
                upper * (1.0 + row.budget) + rest,
                least.sum(axis=1) * (1.0 - row.budget),
                most.sum(axis=1) * (1.0 + row.budget) + rest,
                free,
            ]
        )

    def _left(self, m: float, row: BinomialRow | None, epsilons: Array) -> Array:
        """Return the columns of `Places` for m people in the left order."""
        forms = [_left_form(int(m), self.p, epsilon) for epsilon in epsilons.tolist()]
        u, first, second, slope = np.array(forms).T[:, :, None]
        free = self._counted(self.above, u[:, 0])
        if row is None:
            most = np.array([binomial_below(int(m), self.p, int(cutoff) + 1) for cutoff in u[:, 0].tolist()])
            return np.stack([0.0 * most, most, 0.0 * most, most, free])
        beside, others = row.counts - u, row.weights / (m + 1.0 - row.counts)
        with np.errstate(over="ignore"):
            exact = np.where(beside <= 0.0, others * (first - slope * beside), 0.0).sum(axis=1)
            # How far L has fallen at each cutoff beyond the best one, by positive terms.
            falls = np.cumsum(np.where(beside > 0.0, others * (second + slope * (beside - 1.0)), 0.0), axis=1)
        sides = exact * (1.0 - row.budget), exact * (1.0 + row.budget) + row.below
        # The same as f(x) - (e^ε - 1) P[S < x], which is more accurate where little is left.
        fewer, rise = np.append(0.0, np.cumsum(row.weights[:-1])), np.expm1(epsilons)[:, None]
        lost, over = row.weights * (1.0 - row.budget) - rise * (fewer * (1.0 + row.budget) + row.below), beside > 0.0
        least = np.maximum(sides[0][:, None] - falls * (1.0 + row.budget), lost).clip(0.0) * over
        kept = row.weights * (1.0 + row.budget) - rise * fewer * (1.0 - row.budget)
        most = np.minimum(sides[1][:, None] - falls * (1.0 - row.budget), kept).clip(0.0) * over
        offset = self.k - 1 - self.low - row.counts
        inside = (offset >= 0.0) & (offset < len(self.weights))
        where = offset[inside].astype(np.int64)
        lower = least[:, inside] @ self.sure[where] + self._counted(self.below, u[:, 0]) * sides[0]
        upper = most[:, inside] @ self.weights[where] + free * sides[1]
        # At cutoffs beyond the window L is at most its last value there, and at most the mass above.
        beyond = np.where(u[:, 0] > row.counts[-1], sides[1], np.minimum(most[:, -1], row.above))
        upper += beyond * (row.counts[-1] < min(m, self.k - 1.0))
        return np.stack([lower * (1.0 - row.budget), upper * (1.0 + row.budget) + LEFT_OUT_MASS, *sides, free])

    def _counted(self, chances: Array, cutoffs: Array) -> Array:
        """Return ``C`` at these cutoffs, from the chances that this many known people count, or more."""
        result: Array = chances[np.clip(self.k - 1 - self.low - cutoffs, 0, len(chances) - 1).astype(np.int64)]
        return result


def between(fewest: Places, most: Places) -> Array:
    """Return bounds on what any number of people tells between two numbers of them.

    For numbers of known people at which the threshold binds with the `most` unknown people, the divergence grows with
    the unknown up to there. For the others, of chance `free`, the exact count with the `fewest` bounds it (data
    processing). `docs/mathematics.md`, section 4, "All m".
    """
    bounds = most.upper + most.free * np.maximum(0.0, fewest.exact_upper - most.exact_lower)
    result: Array = np.minimum(bounds, fewest.exact_upper) * (1.0 + 8.0 * UNIT)
    return result


class BinomialRow(NamedTuple):
    """``P[Bin(m, p) = x]`` at some counts x, within `budget` relatively; of more, and of fewer, a bound."""

    counts: Array
    weights: Array
    above: float
    below: float
    budget: float


@lru_cache(maxsize=1024)
def _row(m: float, p: float) -> BinomialRow | None:
    """Return the row of m coins; None where it would be too wide."""
    people, spread = int(m), math.sqrt(2.0 * _CUTOFF_EXPONENT * m * p * (1.0 - p)) + _CUTOFF_EXPONENT
    if spread > _MAX_COUNTS or (p > 0.5 and m > _MAX_EXACT_INTEGER):
        return None
    # Bernstein's window around the mode; neighbouring ratios fall, so geometric series bound both tails.
    mode = min(people, int((people + 1) * Fraction(p)))
    first, last = max(0, math.floor(mode - spread)), min(people, math.ceil(mode + spread))
    counts, weights = np.arange(first, last + 1, dtype=np.float64), anchored_weights(people, p, first, last)
    likely = np.flatnonzero(weights > LEFT_OUT_MASS)
    kept = slice(int(likely[0]), int(likely[-1]) + 1)
    counts, weights = counts[kept], weights[kept]
    low, high = float(counts[0]), float(counts[-1])
    falls, sinks = (m - high) * p / ((high + 1.0) * (1.0 - p)), low * (1.0 - p) / ((m - low + 1.0) * p)
    above, below = (
        LEFT_OUT_MASS + float(weight) * ratio / (1.0 - ratio) * 1.01 if ratio < 1.0 else 1.0
        for weight, ratio in ((weights[-1], falls), (weights[0], sinks))
    )
    return BinomialRow(counts, weights, above, below, (16.0 * len(counts) + 100.0) * UNIT)


def _right_form(m: int, p: float, epsilon: float) -> tuple[float, float, float]:
    """Return t, and ``1 - e^ε f(x+1)/f(x)`` as ``(first + slope (x - t))/(x + 1)``."""
    with flint.ctx.workprec(precision(m)):
        pull = flint.arb(epsilon).exp() / odds_against(p)
        t = min(m, whole_part((m + 1) / (1 + 1 / pull)))
        pull = pull if t < m else flint.arb(0)
        return float(t), max(0.0, float((t + 1 - (m - t) * pull).mid())), float((1 + pull).mid())


def _left_form(m: int, p: float, epsilon: float) -> tuple[float, float, float, float]:
    """Return u, and ``1 - e^ε f(x-1)/f(x)`` as ``(first + slope (u - x))/(m - x + 1)``, with `first` less `slope`."""
    with flint.ctx.workprec(precision(m)):
        push = flint.arb(epsilon).exp() * odds_against(p)
        u = min(m, whole_part((m + 1) / (1 + push)))
        first = m + 1 - u - u * push
        at_u, beyond = (max(0.0, float(part.mid())) for part in (first, 1 + push - first))
        return float(u), at_u, beyond, float((1 + push).mid())
