"""How probable a loss above ε can be, in any release that a pair dominates."""

from __future__ import annotations

import math

import numpy as np

from pkdp_pipeline.theorems.rounding import UNIT
from pkdp_pipeline.theory.privacy_loss.side import LossSide

__all__ = ["exceeding_above"]

_AT_ONCE = 24


def exceeding_above(first: LossSide, second: LossSide, epsilon: float) -> float:
    """Return at or above ``P[L > ε]`` of every pair whose profiles are nowhere above those of the two sides.

    Notes
    -----
    On the event that the loss exceeds ε, Q has less than ``e^{-ε}`` times the mass of P, so for every ``ε′ < ε``
    (also below 0) ``P[L > ε] (1 - e^{ε′-ε}) ≤ H_{ε′}(P ‖ Q)``. The best ε′ is a kink of the profile; quotients of a
    convex and a linear function have one minimum, so a search finds it, and any ε′ is sound. It is the best bound
    there is: putting the outcomes with the largest losses together makes a release that attains it. *Rounding*: up.
    """
    if first.delta(epsilon) == 0.0:
        return 0.0
    finite = first.losses[: np.searchsorted(first.losses, epsilon, side="left")]
    candidates = np.concatenate([-second.losses[::-1], [0.0] if epsilon > 0.0 else [], finite])
    best, low, high = 1.0, 0, len(candidates) - 1
    while low <= high:
        tried = np.unique(np.linspace(low, high, min(_AT_ONCE, high - low + 1)).astype(int))
        values = [_bound(first, second, epsilon, float(candidates[at])) for at in tried]
        at = int(np.argmin(values))
        best = min(best, values[at])
        if high - low + 1 <= _AT_ONCE:
            break
        low, high = int(tried[max(0, at - 1)]), int(tried[min(len(tried) - 1, at + 1)])
    return best


def _bound(first: LossSide, second: LossSide, epsilon: float, probe: float) -> float:
    if probe >= 0.0:
        height = first.delta(probe)
    else:
        # H at e^{-y} is 1 - e^{-y} + e^{-y} H_y(Q ‖ P).
        height = (-math.expm1(probe) + math.exp(probe) * second.delta(-probe)) * (1.0 + 16.0 * UNIT)
    away = -math.expm1(probe - epsilon) * (1.0 - 8.0 * UNIT * (1.0 + (abs(probe) + epsilon) / (epsilon - probe)))
    return height / away * (1.0 + 8.0 * UNIT) if away > 0.0 else math.inf
