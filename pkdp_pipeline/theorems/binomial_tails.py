"""Hockey-stick divergences of one thresholded binomial count, as series without cancellation.

For ``S ~ Bin(m, p)`` with density `f` and a cutoff `t`, the two tails of lemma 1 are

    right = P[S ≥ t] - e^ε P[S ≥ t+1] = Σ_{i≥0} f(t+i) (1 - e^ε f(t+i+1)/f(t+i)),
    left  = P[S ≤ t] - e^ε P[S ≤ t-1] = Σ_{i≥0} f(t-i) (1 - e^ε f(t-i-1)/f(t-i)).

Up to the worst `m` of theorem A every bracket is non-negative, and it is linear in `i` over a denominator
linear in `i`. A sum in float64 then keeps its relative accuracy however small the result is. Only ``f(t)``
and the constant of the linear form need more digits; they come from ball arithmetic. The error budget is
derived in `docs/numerics.md`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import flint
import numpy as np

from pkdp_pipeline.theorems.rounding import TINY, UNIT, Array, ball_above, ball_below, lowered, raised

_MAX_MATRIX_ENTRIES = 2_000_000

MIN_P = 1e-200
"""A smaller p is replaced by this one: δ grows with p, and by less than the error budget here."""

MAX_RIGHT_EPSILON = 2_000.0
"""Beyond this ε the right tail no longer changes: e^ε exceeds every likelihood ratio for p above `MIN_P`."""

MAX_LEFT_EPSILON = 170.0
"""Beyond this ε the left tail is below exp(-1e50); it only falls with ε, so its value here bounds it."""

_FLOOR_PRECISION = 256
"""Bits at which the worst number of coins is rounded to a whole one: a miss by one would not show in 2^-100."""


def precision(*sizes: int) -> int:
    """Return the bits at which log-factorials of numbers as large as `sizes` keep 96 good bits."""
    return 96 + 2 * max(size.bit_length() for size in sizes)


def log_binomial_pmf(m: int, s: int, p: float) -> Any:
    """Return the ball of ``log P[Bin(m, p) = s]`` at the current precision (0 < p < 1, 0 ≤ s ≤ m)."""
    ways = flint.arb(m + 1).lgamma() - flint.arb(s + 1).lgamma() - flint.arb(m - s + 1).lgamma()
    return ways + s * flint.arb(p).log() + (m - s) * (-flint.arb(p)).log1p()


def right_tails(
    cutoffs: Sequence[int], p: float, epsilons: Array, *, cap: int | None = None, trials: int | None = None
) -> tuple[Array, Array]:
    """Return floats around ``max over m of P[S ≥ t] - e^ε P[S ≥ t+1]`` for ``S ~ Bin(m, p)``.

    Parameters
    ----------
    cutoffs : sequence of int, shape (n,)
        The cutoffs t, each at least 1.
    p : float
        Strictly between 0 and 1.
    epsilons : array, shape (n,)
        At least 0.
    cap : int, optional
        The maximum is over ``m ≤ cap`` only.
    trials : int, optional
        Look at this m only; rows for which it exceeds the worst m are reported as 0, which bounds from below.

    Returns
    -------
    (lower, upper) : arrays, shape (n,)

    Notes
    -----
    *Guarantee*: lower ≤ exact value ≤ upper (with `trials`, the lower side only). *Rounding*: outward, width below
    ``(16·terms + 100)·2^-53``, whatever the size of the value. `docs/mathematics.md`, theorem A, with
    ``m* = t + ⌊t(1-p)/(p e^ε)⌋``.
    """
    count, p, epsilons = len(cutoffs), max(p, MIN_P), np.minimum(epsilons, MAX_RIGHT_EPSILON)
    anchors = np.zeros((2, count))
    first, slope, extra = np.zeros(count), np.zeros(count), np.zeros(count)
    for row, (t, epsilon) in enumerate(zip(cutoffs, epsilons.tolist(), strict=True)):
        with flint.ctx.workprec(_FLOOR_PRECISION):
            more = whole_part(t * odds_against(p) / flint.arb(epsilon).exp())
        if trials is not None:
            more = trials - t if trials - t <= more else -1
        elif cap is not None:
            more = min(more, cap - t)
        if more < 0:
            continue
        with flint.ctx.workprec(precision(t + more)):
            weight = log_binomial_pmf(t + more, t, p).exp()
            anchors[:, row] = max(0.0, ball_below(weight)), ball_above(weight)
            pull = flint.arb(epsilon).exp() / odds_against(p) if more else flint.arb(0)
            first[row] = float((t + 1 - more * pull).mid())
            slope[row] = float((1 + pull).mid())
        extra[row] = float(more)
    start = np.asarray(cutoffs, dtype=np.float64) + 1.0
    if p == MIN_P:
        anchors[0] = 0.0
    return _summed(anchors, first, slope, start, extra, p / (1.0 - p), epsilons)


def left_tails(cutoffs: Sequence[int], p: float, epsilons: Array, *, cap: int | None = None) -> tuple[Array, Array]:
    """Return floats around ``max over m of P[S ≤ t] - e^ε P[S ≤ t-1]``, floored at 0, for ``S ~ Bin(m, p)``.

    Parameters, shapes, guarantee and rounding are those of `right_tails`, with
    ``m° = ⌈t + e^ε t(1-p)/p⌉ - 1``. Where `cap` cuts m° short the value is a difference; it is
    then accurate relative to ``P[S = t]``, and still bracketed.
    """
    count, p, epsilons = len(cutoffs), max(p, MIN_P), np.minimum(epsilons, MAX_LEFT_EPSILON)
    anchors = np.zeros((2, count))
    first, slope, extra = np.zeros(count), np.zeros(count), np.full(count, np.inf)
    short: dict[int, int] = {}
    for row, (t, epsilon) in enumerate(zip(cutoffs, epsilons.tolist(), strict=True)):
        with flint.ctx.workprec(_FLOOR_PRECISION):
            more = worst = -whole_part(-(t * odds_against(p) * flint.arb(epsilon).exp()))
        if cap is not None:
            more = min(more, cap - t + 1)
        if more < 1:
            continue
        with flint.ctx.workprec(precision(t + more)):
            weight = log_binomial_pmf(t + more - 1, t, p).exp()
            anchors[:, row] = max(0.0, ball_below(weight)), ball_above(weight)
            push = flint.arb(epsilon).exp() * odds_against(p)
            first[row] = max(0.0, float((more - t * push).mid()))
            slope[row] = float((1 + push).mid())
        extra[row] = float(worst)
        if more < worst:
            short[row] = more
    top = np.asarray(cutoffs, dtype=np.float64)
    if p == MIN_P:
        anchors[0] = 0.0
    lower, upper = _summed(anchors, first, slope, extra, top, (1.0 - p) / p, epsilons)
    for row, more in short.items():
        lower[row], upper[row] = _short_left(anchors[:, row], int(top[row]), float(more), p, float(epsilons[row]))
    return lower, upper


def _short_left(anchor: Array, t: int, more: float, p: float, epsilon: float) -> tuple[float, float]:
    """Bracket ``f(t) - (e^ε - 1) P[S ≤ t-1]`` for fewer trials than the worst number."""
    # Leaving out terms of what is subtracted errs upward; the lower side then says nothing.
    kept = min(t, 1_000_000)
    steps = np.arange(kept, dtype=np.float64)
    with np.errstate(over="ignore"):
        below = np.cumprod((t - steps) * ((1.0 - p) / p) / (more + steps)).sum()
    budget = (8.0 * kept + 40.0) * UNIT
    scale = flint.arb(epsilon).expm1()
    total = flint.arb(min(float(below), 1e300))
    if below >= 1e300 or kept < t:
        anchor = np.array([0.0, anchor[1]])
    least = ball_below(flint.arb(float(anchor[0])) * (1 - scale * total * (1 + flint.arb(budget))))
    most = ball_above(flint.arb(float(anchor[1])) * (1 - scale * total * (1 - flint.arb(budget))))
    return max(0.0, least), max(0.0, most)


def _summed(
    anchors: Array, first: Array, slope: Array, start: Array, falling: Array, odds: float, epsilons: Array
) -> tuple[Array, Array]:
    """Return brackets of ``f(t) · Σ_i R_i (first + slope·i)/(start + i)``, row by row.

    ``R_i`` is the product of the first `i` neighbouring ratios ``(falling - l)·odds/(start + l)``.
    """
    lower, upper = np.zeros(len(first)), np.zeros(len(first))
    if len(first) == 0:
        return lower, upper
    # Ratios fall at least like e^-ε t/(t+l), so this many terms leave about 1e-18 of the sum. What they leave
    # is bounded below in any case: the number affects the width of the bracket, never its truth.
    scale = np.minimum(start, np.maximum(falling, 1.0))
    reach = 42.0 + np.log(scale + 1.0)
    needed = reach + np.sqrt(reach * reach + 2.0 * reach * scale)
    with np.errstate(divide="ignore", over="ignore"):
        needed = np.minimum(needed, reach / epsilons)
    needed = np.minimum(np.ceil(needed) + 2.0, falling + 1.0)
    begin = 0
    while begin < len(first):
        rows = slice(begin, begin + max(1, int(_MAX_MATRIX_ENTRIES // (needed[begin:].max() + 1.0))))
        terms = int(needed[rows].max())
        steps = np.arange(terms + 1, dtype=np.float64)
        ratios = np.maximum(falling[rows, None] - steps, 0.0) * odds / (start[rows, None] + steps)
        products = np.ones_like(ratios)
        np.cumprod(ratios[:, :-1], axis=1, out=products[:, 1:])
        body = products[:, :-1] * (first[rows, None] + slope[rows, None] * steps[:-1])
        total = (body / (start[rows, None] + steps[:-1])).sum(axis=1)
        # The ratios fall with i, so the terms left out are below a geometric series with the last of them.
        rest = products[:, -1] / np.maximum(1.0 - ratios[:, -1], UNIT)
        budget = (8.0 * terms + 50.0) * UNIT
        lower[rows] = lowered(anchors[0, rows] * total, budget)
        upper[rows] = raised(anchors[1, rows] * (total + rest), budget)
        begin = rows.stop
    return lower, np.where(anchors[1] > 0.0, upper, 0.0)


def binomial_weights(trials: int, p: float, low: int, high: int) -> Array:
    """Return floats at or above ``P[Bin(trials, p) = b]`` for ``low ≤ b ≤ high``, within [0, trials].

    Notes
    -----
    *Guarantee*: no entry is below the exact probability. *Rounding*: upward, relative width about
    ``(16·n + 80)·2^-53`` for n entries, down to 1e-280.
    """
    if p in (0.0, 1.0):
        return np.where(np.arange(low, high + 1) == (trials if p == 1.0 else 0), 1.0, 0.0)
    weights = anchored_weights(trials, p, low, high)
    raised_weights: Array = weights * (1.0 + (8.0 * len(weights) + 40.0) * UNIT) + TINY
    return raised_weights


def anchored_weights(trials: int, p: float, low: int, high: int) -> Array:
    """Return the same within ``(4n + 20)·2^-53``, but for underflow: from a ball at the mode, ratio by ratio."""
    mode, steps = min(high, max(low, int((trials + 1) * p))), np.arange(low, high, dtype=np.float64)
    with flint.ctx.workprec(precision(trials)):
        peak = ball_above(log_binomial_pmf(trials, mode, p).exp())
    with np.errstate(under="ignore"):
        return outward_from(mode - low, peak, (trials - steps) * (p / (1.0 - p)) / (steps + 1.0))


def weights_below(weights: Array) -> Array:
    """Return floats at or below the probabilities that these `binomial_weights` are at or above."""
    result: Array = np.maximum(0.0, weights - 2.0 * TINY) * (1.0 - (32.0 * len(weights) + 100.0) * UNIT)
    return result


def outward_from(index: int, peak: float, ratios: Array) -> Array:
    """Return the sequence whose neighbours have these ratios (next/this) and whose value at `index` is `peak`."""
    values = np.empty(len(ratios) + 1)
    values[index] = peak
    values[index + 1 :] = peak * np.cumprod(ratios[index:])
    values[:index] = (peak * np.cumprod(1.0 / ratios[:index][::-1]))[::-1]
    return values


def likely_counts(trials: int, p: float) -> tuple[int, Array, float]:
    """Return (low, weights, above): ``Bin(trials, p)`` on ``low, low + 1, …``, moved up where it is unlikely.

    Mass below `low` is counted at `low`; `above` is at or above the probability of exceeding the last one.
    For an average of something that does not decrease, the result errs upward.
    """
    # Bernstein's inequality puts all but about e^-700 within this half-width; what is outside is bounded by Chernoff's.
    mean, reach = trials * p, 700.0
    half = math.sqrt(2.0 * reach * mean * (1.0 - p)) + reach
    low, high = max(0, math.floor(mean - half)), min(trials, math.ceil(mean + half))
    weights = binomial_weights(trials, p, low, high)
    weights[0] += binomial_below(trials, p, low)
    return low, weights, binomial_below(trials, 1.0 - p, trials - high)


def binomial_below(trials: int, p: float, bound: int) -> float:
    """Return a float at or above ``P[Bin(trials, p) < bound]`` for a bound below the mean (Chernoff)."""
    if bound <= 0:
        return 0.0
    with flint.ctx.workprec(precision(trials)):
        share, chance = flint.arb(bound) / trials, flint.arb(min(p, 1.0 - UNIT))
        if not share < chance:
            return 1.0
        # Chernoff bound: exp(-n KL(share ‖ chance)), which holds for every share below the chance.
        relative = share * (share / chance).log()
        if bound < trials:
            relative += (1 - share) * ((1 - share) / (1 - chance)).log()
        # One part in a hundred covers the rounding of `p`, in a term far below what it is added to.
        return 1.01 * ball_above((-trials * relative).exp())


def odds_against(p: float) -> Any:
    """Return the ball of (1-p)/p at the current precision."""
    return (1 - flint.arb(p)) / flint.arb(p)


def whole_part(ball: Any) -> int:
    """Return the whole part of the upper end of a ball; a ball across an integer has both as good answers."""
    with flint.ctx.workprec(4096):
        return int(ball.upper().floor().unique_fmpz())
