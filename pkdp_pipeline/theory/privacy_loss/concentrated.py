"""Zero-concentrated differential privacy, pure and approximate: the best ρ of a pair given by its two sides."""

from __future__ import annotations

import math

import numpy as np

from pkdp_pipeline.theorems.rounding import TINY, UNIT, Array
from pkdp_pipeline.theory.privacy_loss.renyi import renyi_above, supremum_above
from pkdp_pipeline.theory.privacy_loss.side import LossSide, log_sum_above

__all__ = ["concentration", "lowered", "smallest_rho", "whole_law"]

_START = 2.0**-40

_LEAST = 2e-323
"""A few of the smallest floats: what may be lost where a number falls below the normal ones."""

_CLOSE = 1e-7

_CLOSE_OF_MANY = 1e-5
"""The same for more than `_MANY` losses, of which every order looked at takes its time."""

_MANY = 4096


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
        return order * renyi_above(first, second, order) * (1.0 + 2.0 * UNIT) + _LEAST

    def quotient(order: float, value: float) -> float:
        return max(0.0, value - xi * order) / (order * (1.0 + order))

    def best_of_chord(height: float, slope: float, low: float, high: float) -> float:
        tilt = slope - xi
        points = [low, high]
        if height < 0.0 < tilt:
            root = (-height + math.sqrt(height * height - height * tilt)) / tilt
            points.append(min(high, max(low, root)))
        # The size of what is subtracted decides how much its rounding can matter.
        pad = 16.0 * UNIT * (abs(height) + (slope + xi) * high) + 8.0 * _LEAST
        return max(0.0, *((height + tilt * at + pad) / (at * (1.0 + at)) for at in points)) * (1.0 + 1e-12)

    def beyond(order: float) -> float:
        return most / (1.0 + order) * (1.0 + 4.0 * UNIT)

    small = max(0.0, renyi_above(first, second, _START) - xi)
    close = _CLOSE if len(first.losses) + len(second.losses) <= _MANY else _CLOSE_OF_MANY
    found = supremum_above(convex, quotient, best_of_chord, beyond, _START, close)
    return max(small, found) * (1.0 + 8.0 * UNIT)


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


_FLAT = 1e-4
"""Up to exponents this small, times the largest deviation, moments are those of a normal loss."""

_CLOSE_PROXY = 3e-5

_SMALL = 1e-100
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
    if not _SMALL < half < 1.0 / _SMALL:
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

    What the two sides leave of the mass 1 lies at loss 0, where the laws agree.
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
    start = _FLAT / widest
    squares = np.maximum(low * low, high * high)
    near = float((np.exp(logs) * squares).sum()) * (1.0 + (len(logs) + 16.0 + 4.0 * float(np.abs(logs).max())) * UNIT)
    # (e^v - 1 - v)/(v²/2) is at most 1 + v/2 there.
    near = near * (1.0 + 0.5 * _FLAT) + TINY

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
        return max(0.0, *(2.0 * (height + slope * at + pad) / (at * at) for at in points)) * (1.0 + 1e-12)

    def beyond(rate: float) -> float:
        return max(0.0, 2.0 * highest / rate) * (1.0 + 4.0 * UNIT)

    return max(near, supremum_above(convex, quotient, best_of_chord, beyond, start, _CLOSE_PROXY))


def _log_excess(exponents: Array) -> Array:
    """Return the logarithm, rounded up, of ``e^v - 1 - v``."""
    size = np.abs(exponents)
    series = np.zeros_like(exponents)
    bounded = np.clip(exponents, -0.5, 0.5)
    for n in range(19, 1, -1):
        series = series * bounded + 1.0 / math.factorial(n)
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        near = np.log(series) + 2.0 * np.log(np.abs(bounded))
        positive = exponents + np.log(-np.expm1(-exponents) - exponents * np.exp(-exponents))
        negative = np.log(np.expm1(exponents) - exponents)
    found = np.where(size <= 0.5, near, np.where(exponents > 0.0, positive, negative))
    raised: Array = found + (64.0 + 4.0 * np.where(np.isfinite(found), np.abs(found), 0.0)) * UNIT
    return raised
