"""Rényi divergences of a pair given by its two sides, and concentrated privacy: the best ρ, pure and approximate.

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

from pkdp_pipeline.extras.theory.privacy_loss.side import LossSide, log_sum_above
from pkdp_pipeline.theorems.numerics import TINY, UNIT, Array

_TERMS = 18
"""Terms of the series for small exponents: the first one left out is below 0.5^20/20! of the first one."""

_UNDERFLOW = 2e-323
"""A few of the smallest floats: what may be lost where a number falls below the normal ones."""

_MAX_FINITE = 1e300


def renyi_above(first: LossSide, second: LossSide, order: float) -> float:
    """Return at or above the Rényi divergence of order ``1 + order`` of P from Q; the KL divergence at 0.

    `first` and `second`: losses above 0 of P against Q, and of Q against P. `order`: ``α - 1``, at least 0; `math.inf`
    is the largest loss.

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
        # log(1 + x) is at most x, and no less in this many digits.
        grown = math.exp(log_gain) if log_gain < 700.0 else math.inf
        return grown * (1.0 + (abs(log_gain) + 8.0) * 4.0 * UNIT) + _UNDERFLOW
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
    is_small, terms = exponents <= 0.5, []
    if is_small.any():
        losses, logs = side.losses[is_small], side.log_masses[is_small]
        away = losses if gains else 0.0
        series = _series(exponents[is_small], order, 1.0 if gains else -1.0)
        terms.append(_raised(logs - away, series, np.abs(logs) + away))
    if not is_small.all():
        losses, logs, tilt = side.losses[~is_small], side.log_masses[~is_small], tilts[~is_small]
        small = np.expm1(-tilt) / order if order > 0.0 else -losses
        if gains:
            first, second, wide = -small, np.exp(-tilt) * np.expm1(-losses), np.minimum(tilt, _MAX_FINITE)
        else:
            first, second, wide, tilt = -np.expm1(-losses), np.exp(-losses) * small, losses, np.zeros_like(tilt)
        inner = first + second + 16.0 * UNIT * (first - second * (1.0 + wide))
        terms.append(_raised(logs + tilt, np.log(inner), np.abs(logs) + tilt))
    return terms


def _raised(logs: Array, factors: Array, sizes: Array) -> Array:
    with np.errstate(over="ignore"):
        total: Array = logs + factors + (4.0 * sizes + 4.0 * np.abs(factors) + 256.0) * UNIT
    return total


_MAX_EVALUATIONS = 1500


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
    while queue and -queue[0][0] > best * (1.0 + close) and len(values) < _MAX_EVALUATIONS:
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


_MIN_ORDER = 2.0**-40

_RELATIVE_TOLERANCE = 1e-7

_TOLERANCE_OF_MANY = 1e-5
"""The same for more than `_MANY_LOSSES` losses, of which every order looked at takes its time."""

_MANY_LOSSES = 4096


def smallest_rho(first: LossSide, second: LossSide, xi: float = 0.0) -> float:
    """Return at or above the smallest ρ with ``D_α(P ‖ Q) ≤ ξ + ρ α`` for all α > 1; `math.inf` where there is none.

    Notes
    -----
    With ``s = α - 1`` the function ``K(s) = s D_α`` is convex and 0 at 0, so on an interval it lies below its chord
    ``u + v s``, and ``(u + (v - ξ) s)/(s (s + 1))`` has its maximum at an end or at the positive root of ``(v - ξ) s²
    + 2 u s + u``. Up to the first point `D` is at most its value there, since it grows with α; beyond the last one it
    is at most the largest loss. *Guarantee*: never below the supremum over all α > 1, for any pair whose profiles are
    nowhere above those of the two sides. *Rounding*: up, within one part in 1e7; in 1e5
    for thousands of losses, and in 1e3 where all losses are far below 0.01.
    """
    if first.infinite > 0.0:
        return math.inf
    first, second = first.shorter(), second.shorter()
    most = first.largest - xi
    if most <= 0.0:
        return 0.0

    def convex(order: float) -> float:
        return order * renyi_above(first, second, order) * (1.0 + 2.0 * UNIT) + _UNDERFLOW

    def quotient(order: float, value: float) -> float:
        return max(0.0, value - xi * order) / (order * (1.0 + order))

    def best_of_chord(height: float, slope: float, low: float, high: float) -> float:
        tilt, points = slope - xi, [low, high]
        if height < 0.0 < tilt:
            points.append(min(high, max(low, (-height + math.sqrt(height * height - height * tilt)) / tilt)))
        # The size of what is subtracted decides how much its rounding can matter.
        pad = 16.0 * UNIT * (abs(height) + (slope + xi) * high) + 8.0 * _UNDERFLOW
        return max(0.0, *((height + tilt * point + pad) / (point * (1.0 + point)) for point in points)) * (1.0 + 1e-12)

    def beyond(order: float) -> float:
        return most / (1.0 + order) * (1.0 + 4.0 * UNIT)

    small = max(0.0, renyi_above(first, second, _MIN_ORDER) - xi)
    close = _RELATIVE_TOLERANCE if len(first.losses) + len(second.losses) <= _MANY_LOSSES else _TOLERANCE_OF_MANY
    largest = supremum_above(convex, quotient, best_of_chord, beyond, _MIN_ORDER, close)
    return max(small, largest) * (1.0 + 8.0 * UNIT)


def lowered(side: LossSide, delta: float) -> LossSide | None:
    """Return the side after mass `delta` has been taken from its largest losses; None where that is too little.

    Notes
    -----
    P is cut down to ``e^τ Q`` wherever it is larger, with ``h(τ) ≤ δ``, and what is left is divided by ``1 - δ``: the
    infinite loss and the excess over τ are gone. *Guarantee*: the profile is at or above ``(h - δ)_+/(1 - δ)``.
    *Rounding*: up.
    """
    if delta <= 0.0:
        return side if side.infinite == 0.0 else None
    top = side.epsilon(delta)
    if math.isinf(top):
        return None
    if delta >= 1.0 or top <= 0.0:
        return LossSide(losses=np.zeros(0), log_masses=np.zeros(0), infinite=0.0)
    kept = int(np.searchsorted(side.losses, top, side="left"))
    losses, logs = side.losses[:kept], side.log_masses[:kept]
    beyond = log_sum_above(side.log_other_masses[kept:])
    if beyond > -math.inf:
        losses = np.append(losses, top)
        logs = np.append(logs, beyond + top + 4.0 * UNIT * (abs(beyond) + top))
    rest = -math.log1p(-delta)
    logs = logs + rest + 4.0 * UNIT * (np.abs(logs) + rest + 1.0)
    return LossSide(losses=losses, log_masses=logs, infinite=0.0)


_NORMAL_RATE = 1e-4
"""Up to exponents this small, times the largest deviation, moments are those of a normal loss."""

_PROXY_TOLERANCE = 3e-5

_MIN_SQUARE = 1e-100
"""Squares of losses below this, or above its inverse, are not summed in floats."""


def concentration(first: LossSide, second: LossSide) -> tuple[float, float]:
    """Return (μ, τ): ``E[L] ≤ μ``, and ``E[e^{λ(L - E[L])}] ≤ e^{λ²τ²/2}`` for every real λ; infinite where L can be.

    Notes
    -----
    ``ψ(λ) = log E[e^{λ(L - E L)}]`` is convex and 0 at 0 with slope 0. For small λ it is bounded by ``λ²/2 E[(L - E
    L)² e^{λ(L - E L)_+}]``, between points by chords, for large λ by λ times the largest deviation; likewise for λ <
    0. *Guarantee*: μ and τ are never too small for the pair itself, whose masses are exact but for rounding. It is
    *not* passed on to what the pair dominates. *Rounding*: up, τ within five parts in 1e5; where all
    losses are below 1e-100 it is Hoeffding's.
    """
    if first.infinite > 0.0:
        return math.inf, math.inf
    first, second = first.shorter(), second.shorter()
    mean = renyi_above(first, second, 0.0)
    losses, logs = whole_law(first, second)
    # Hoeffding's lemma: half the distance between the least and the largest loss.
    half = (0.5 * float(losses[-1]) - 0.5 * float(losses[0])) * (1.0 + 4.0 * UNIT)
    if not _MIN_SQUARE < half < 1.0 / _MIN_SQUARE:
        return mean, half
    parts = np.exp(logs) * losses
    centre = float(parts.sum())
    # The masses are a few units of roundoff off, and so is the sum.
    error = (len(parts) + 64.0 + 4.0 * float(np.abs(logs).max())) * UNIT
    away = error * float(np.abs(parts).sum()) + 4.0 * UNIT * float(np.abs(losses).max(initial=0.0))
    proxies = (_proxy(sign * (losses - centre), away, logs) for sign in (1.0, -1.0))
    return mean, min(half, math.sqrt(max(proxies)) * (1.0 + 4.0 * UNIT))


def whole_law(first: LossSide, second: LossSide) -> tuple[Array, Array]:
    """Return all finite losses of P against Q, in order, and the logarithms of their P-masses.

    The mass that the two sides leave of 1 lies at loss 0, where the laws agree.
    """
    below = second.log_other_masses[::-1]
    used = math.fsum([*np.exp(first.log_masses).tolist(), *np.exp(below).tolist(), first.infinite])
    # A little is added for rounding, so that no mass is missing.
    middle = max(0.0, 1.0 - used) + 16.0 * UNIT * (len(first.losses) + len(second.losses) + 2.0)
    losses = np.concatenate([-second.losses[::-1], [0.0], first.losses])
    return losses, np.concatenate([below, [math.log(middle)], first.log_masses])


def _proxy(deviations: Array, away: float, logs: Array) -> float:
    """Return at or above the supremum over λ > 0 of ``2 ψ(λ)/λ²``."""
    highest = float(deviations.max()) + away
    widest = float(np.abs(deviations).max()) + away
    if widest == 0.0:
        return 0.0
    low, high = deviations - away, deviations + away
    start = _NORMAL_RATE / widest
    squares = np.maximum(low * low, high * high)
    near_zero = float((np.exp(logs) * squares).sum()) * (
        1.0 + (len(logs) + 16.0 + 4.0 * float(np.abs(logs).max())) * UNIT
    )
    # (e^v - 1 - v)/(v²/2) is at most 1 + v/2 there.
    near_zero = near_zero * (1.0 + 0.5 * _NORMAL_RATE) + TINY

    def convex(rate: float) -> float:
        terms = logs + np.maximum(_log_excess(rate * low), _log_excess(rate * high))
        moment = log_sum_above(terms + 4.0 * UNIT * np.abs(logs))
        top = moment + math.exp(-moment) if moment > 30.0 else math.log1p(math.exp(moment))
        return top * (1.0 + (abs(moment) + 16.0) * 8.0 * UNIT)

    def quotient(rate: float, value: float) -> float:
        return 2.0 * value / (rate * rate)

    def best_of_chord(height: float, slope: float, low: float, high: float) -> float:
        points = [low, high]
        if height < 0.0 < slope:
            points.append(min(high, max(low, -2.0 * height / slope)))
        pad = 16.0 * UNIT * (abs(height) + slope * high)
        return max(0.0, *(2.0 * (height + slope * point + pad) / (point * point) for point in points)) * (1.0 + 1e-12)

    def beyond(rate: float) -> float:
        return max(0.0, 2.0 * highest / rate) * (1.0 + 4.0 * UNIT)

    return max(near_zero, supremum_above(convex, quotient, best_of_chord, beyond, start, _PROXY_TOLERANCE))


def _log_excess(exponents: Array) -> Array:
    """Return the logarithm, rounded up, of ``e^v - 1 - v``."""
    size = np.abs(exponents)
    series = np.zeros_like(exponents)
    bounded = np.clip(exponents, -0.5, 0.5)
    for n in range(19, 1, -1):
        series = series * bounded + 1.0 / math.factorial(n)
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        by_series = np.log(series) + 2.0 * np.log(np.abs(bounded))
        positive = exponents + np.log(-np.expm1(-exponents) - exponents * np.exp(-exponents))
        negative = np.log(np.expm1(exponents) - exponents)
    logs = np.where(size <= 0.5, by_series, np.where(exponents > 0.0, positive, negative))
    raised: Array = logs + (64.0 + 4.0 * np.where(np.isfinite(logs), np.abs(logs), 0.0)) * UNIT
    return raised
