"""Rényi divergences of a pair given by its two sides, the Kullback-Leibler divergence included.

With ``s = α - 1`` and ``f(t) = (t^α - 1 - α (t - 1))/s``, which is convex, 0 at 1 and flat there,

    G(s) = Σ Q f(P/Q),        D_α = log(1 + s G(s))/s,        KL = G(0),

so `G` is a sum of terms that are not negative: one for every loss above 0 in either order. At each loss the term grows
with the mass, and as a whole `G` grows with both profiles. `docs/privacy_loss.md` proves it.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Callable

import numpy as np

from pkdp_pipeline.theorems.rounding import UNIT, Array
from pkdp_pipeline.theory.privacy_loss.side import LossSide, log_sum_above

__all__ = ["renyi_above", "supremum_above"]

_TERMS = 18
"""Terms of the series for small exponents: the first one left out is below 0.5^20/20! of the first one."""

_LEAST = 2e-323
"""A few of the smallest floats: what may be lost where a number falls below the normal ones."""

_FAR = 1e300


def renyi_above(first: LossSide, second: LossSide, order: float) -> float:
    """Return at or above the Rényi divergence of order ``1 + order`` of P from Q; the KL divergence at 0.

    Parameters
    ----------
    first, second : LossSide
        Losses above 0 of P against Q, and of Q against P.
    order : float
        ``α - 1``, at least 0; `math.inf` is the largest loss.

    Notes
    -----
    *Guarantee*: never below the divergence of any pair whose profiles are nowhere above those of the two sides.
    *Rounding*: up; each term with a relative budget of a few hundred units of roundoff and what its logarithm needs.
    """
    if first.infinite > 0.0 or math.isinf(order):
        return first.largest
    logs = [*_terms(first, order, True), *_terms(second, order, False)]
    if second.infinite > 0.0:
        # f(0) = (α - 1)/s = 1.
        logs.append(np.array([math.log(second.infinite) + 4.0 * UNIT]))
    total = log_sum_above(np.concatenate(logs)) if logs else -math.inf
    return min(_divergence(total, order), first.largest if len(first.losses) else 0.0)


def _divergence(log_gain: float, order: float) -> float:
    """Return ``log(1 + s e^g)/s`` from `g`, rounded up."""
    if log_gain == -math.inf:
        return 0.0
    exponent = log_gain + math.log(order) if order > 0.0 else -math.inf
    if exponent < -40.0:
        # log(1 + x) is at most x, and no less in so many digits.
        grown = math.exp(log_gain) if log_gain < 700.0 else math.inf
        return grown * (1.0 + (abs(log_gain) + 8.0) * 4.0 * UNIT) + _LEAST
    top = exponent + math.exp(-exponent) if exponent > 30.0 else math.log1p(math.exp(exponent))
    return top / order * (1.0 + (abs(exponent) + abs(log_gain) + 16.0) * 8.0 * UNIT)


def _weights(order: float) -> list[float]:
    """Return ``d_n = (1 - α^{-(n-1)})/s`` for n = 2, 3, …; n - 1 at s = 0."""
    grown = math.log1p(order)
    return [-math.expm1(-(n - 1) * grown) / order if order > 0.0 else n - 1.0 for n in range(2, 2 + _TERMS)]


def _series(exponents: Array, order: float, sign: float) -> Array:
    """Return ``log(Σ_{n≥2} d_n (±u)^n/n!)`` for u up to 0.5; beside the first term the others are at most a third."""
    total = np.zeros_like(exponents)
    for n, weight in reversed(list(enumerate(_weights(order), start=2))):
        total = total * (sign * exponents) + weight / math.factorial(n)
    logs: Array = np.log(total) + 2.0 * np.log(exponents)
    return logs


def _terms(side: LossSide, order: float, gains: bool) -> list[Array]:
    """Return logarithms, rounded up, of the terms of all losses of a side.

    They are ``w e^{-x} f(e^x)`` for losses x > 0 with the P-mass w, and ``v f(e^{-y})`` for losses -y < 0 with the
    Q-mass v.
    """
    with np.errstate(over="ignore"):
        exponents, tilts = (1.0 + order) * side.losses, order * side.losses
    near, found = exponents <= 0.5, []
    if near.any():
        losses, logs = side.losses[near], side.log_masses[near]
        away = losses if gains else 0.0
        series = _series(exponents[near], order, 1.0 if gains else -1.0)
        found.append(_raised(logs - away, series, np.abs(logs) + away))
    if not near.all():
        losses, logs, tilt = side.losses[~near], side.log_masses[~near], tilts[~near]
        small = np.expm1(-tilt) / order if order > 0.0 else -losses
        if gains:
            first, second, wide = -small, np.exp(-tilt) * np.expm1(-losses), np.minimum(tilt, _FAR)
        else:
            first, second, wide, tilt = -np.expm1(-losses), np.exp(-losses) * small, losses, np.zeros_like(tilt)
        inner = first + second + 16.0 * UNIT * (first - second * (1.0 + wide))
        found.append(_raised(logs + tilt, np.log(inner), np.abs(logs) + tilt))
    return found


def _raised(logs: Array, factors: Array, sizes: Array) -> Array:
    with np.errstate(over="ignore"):
        total: Array = logs + factors + (4.0 * sizes + 4.0 * np.abs(factors) + 256.0) * UNIT
    return total


_EVALUATIONS = 1500


def supremum_above(
    convex: Callable[[float], float],
    quotient: Callable[[float, float], float],
    best_of_chord: Callable[[float, float, float, float], float],
    beyond: Callable[[float], float],
    start: float,
    close: float,
) -> float:
    """Return at or above the supremum over ``s ≥ start`` of a quotient ``K(s)/w(s)`` with convex `K`.

    Parameters
    ----------
    convex : callable
        At or above ``K(s)``.
    quotient : callable
        The quotient from `s` and the value of `K` there, roughly: it decides where to look, not what is returned.
    best_of_chord : callable
        At or above the quotient of the line ``u + v s`` anywhere on ``[low, high]``, from (u, v, low, high).
    beyond : callable
        At or above the quotient at any ``s ≥ b``, from `b`; it falls to 0.
    start : float
        Above 0.
    close : float
        The relative gap that is left between what is attained and what is returned.

    Notes
    -----
    Between two points a convex function lies below its chord. So every interval has a bound, whose excess falls with
    the square of its width; the interval with the largest bound is halved until that is as good as attained.
    *Guarantee*: never below the supremum, wherever the search stops. *Rounding*: that of the callables.
    """
    values = {start: convex(start)}
    best = quotient(start, values[start])
    ends = [start]
    while beyond(ends[-1]) > best * (1.0 + close) and ends[-1] < 1e200:
        # Far out nothing bends any more.
        point = ends[-1] * (2.0 if len(ends) < 100 else 16.0)
        values[point] = convex(point)
        best = max(best, quotient(point, values[point]))
        ends.append(point)
    last = beyond(ends[-1])

    def bound(low: float, high: float) -> float:
        slope = (values[high] - values[low]) / (high - low)
        return best_of_chord(values[low] - slope * low, slope, low, high)

    queue = [(-bound(low, high), low, high) for low, high in itertools.pairwise(ends)]
    heapq.heapify(queue)
    while queue and -queue[0][0] > best * (1.0 + close) and len(values) < _EVALUATIONS:
        _, low, high = heapq.heappop(queue)
        middle = (low * high) ** 0.5
        if not low < middle < high:
            heapq.heappush(queue, (-bound(low, high), low, high))
            break
        values[middle] = convex(middle)
        best = max(best, quotient(middle, values[middle]))
        heapq.heappush(queue, (-bound(low, middle), low, middle))
        heapq.heappush(queue, (-bound(middle, high), middle, high))
    return max(best, last, -queue[0][0] if queue else best)
