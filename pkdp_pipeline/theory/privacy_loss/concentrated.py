"""Zero-concentrated differential privacy, pure and approximate: the best ρ of a pair given by its two sides."""

from __future__ import annotations

import math

import numpy as np

from pkdp_pipeline.theorems.rounding import UNIT
from pkdp_pipeline.theory.privacy_loss.convex_sup import supremum_above
from pkdp_pipeline.theory.privacy_loss.renyi import renyi_above
from pkdp_pipeline.theory.privacy_loss.side import LossSide, log_sum_above

__all__ = ["lowered", "smallest_rho"]

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
