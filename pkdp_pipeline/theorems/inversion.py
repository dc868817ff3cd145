"""From a certified δ(ε) back to ε, and from a monotone question to the smallest whole number that answers it."""

from __future__ import annotations

import math
from collections.abc import Callable

__all__ = ["least_whole", "smallest_epsilon"]

_LARGEST = 2.0**20
_EVALUATIONS = 36
_CLOSE = 1e-12


def smallest_epsilon(delta_at: Callable[[float], float], target: float, slack: float = 0.0) -> float:
    """Return an ε at which ``delta_at(ε) <= target``, as small as can be found, or `math.inf`.

    Parameters
    ----------
    delta_at : callable
        A certified, essentially non-increasing δ(ε).
    target : float
        In [0, 1].
    slack : float
        Relative steps `delta_at` may have; finer differences are not chased.

    Returns
    -------
    float
        An ε that was evaluated, so ``delta_at(result) <= target`` holds as stated; `math.inf` when even
        ε = 2^20 does not reach the target.

    Notes
    -----
    *Rounding*: up; within one part in 1e12 of a crossing where `delta_at` is continuous.
    """
    if delta_at(0.0) <= target:
        return 0.0
    above, below = 0.0, 1.0
    value_above, value_below = math.inf, delta_at(below)
    if value_below <= target:
        # Walk down while the target still holds, so that tiny ε keep their relative accuracy.
        while below > 1e-9:
            probe = below / 8.0
            value = delta_at(probe)
            if not value <= target:
                above, value_above = probe, value
                break
            below, value_below = probe, value
    else:
        while not value_below <= target:
            if below >= 8.0 and not delta_at(_LARGEST) <= target:
                return math.inf
            above, value_above = below, value_below
            below = min(below * 2.0, _LARGEST)
            value_below = delta_at(below)
    return _narrow(delta_at, target, (above, below), (value_above, value_below), max(_CLOSE, 1e-2 * slack))


def _narrow(
    delta_at: Callable[[float], float],
    target: float,
    ends: tuple[float, float],
    values: tuple[float, float],
    close: float,
) -> float:
    """Shrink a bracket whose right end reaches the target: false position on log δ, guarded by bisection."""
    (above, below), (value_above, value_below) = ends, values
    weight_above, weight_below = 1.0, 1.0
    last_side = 0
    for step in range(_EVALUATIONS):
        if below - above <= close * below:
            break
        probe = 0.5 * (above + below)
        if step % 3 != 2 and value_below > 0.0 and value_above < math.inf and target > 0.0:
            high = weight_above * math.log(value_above / target)
            low = weight_below * math.log(target / value_below) if value_below < target else 0.0
            guess = (above * low + below * high) / (high + low) if high + low > 0.0 else probe
            # Step a little past the estimate: it lands on the right side and closes the bracket from there.
            guess += 0.25 * close * below
            if above < guess < below:
                probe = guess
        value = delta_at(probe)
        if value <= target:
            below, value_below = probe, value
            weight_above, weight_below = (0.5 * weight_above if last_side == 1 else 1.0), 1.0
            last_side = 1
        else:
            above, value_above = probe, value
            weight_below, weight_above = (0.5 * weight_below if last_side == -1 else 1.0), 1.0
            last_side = -1
    return below


def least_whole(holds: Callable[[int], bool], start: int, most: int) -> int | None:
    """Return the smallest n in [start, most] for which a monotone `holds` is true, or None."""
    if holds(start):
        return start
    below, above = start, start
    step = 1
    while True:
        above = min(most, below + step)
        if holds(above):
            break
        if above == most:
            return None
        below, step = above, step * 2
    while above - below > 1:
        middle = (below + above) // 2
        if holds(middle):
            above = middle
        else:
            below = middle
    return above
