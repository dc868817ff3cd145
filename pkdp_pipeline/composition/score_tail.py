"""How likely a sum of independent scores reaches a level: both sides, with every rounding on the safe side."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from pkdp_pipeline.composition.tilted_transform import Factor, accumulate, make_rung, nothing
from pkdp_pipeline.theorems.rounding import UNIT

__all__ = ["score_tail"]

_MOST_PERIOD = 2**21

_NEGLIGIBLE = 1e-14
"""Tilted mass that may lie outside the window."""


def score_tail(factors: Sequence[Factor], level: int, rate: float) -> tuple[float, float]:
    """Return floats around the measure of the event that the sum of the scores is at least `level`.

    Parameters
    ----------
    factors : sequence of Factor
        Measures of the scores, on cells; what is infinite in them is left out.
    level : int
    rate : float
        Exponent per cell, at least 0: one under which sums near `level` are likely.

    Notes
    -----
    *Guarantee*: lower ≤ measure ≤ upper, for the masses as they are given. *Rounding*: outward. What the period folds
    into the window is at most the tilted mass outside it, which Chernoff's bound limits on either side.
    """
    first = sum(factor.times * factor.law.start for factor in factors)
    last = sum(factor.times * factor.law.last for factor in factors)
    if level > last:
        return 0.0, 0.0
    tilts = [(factor, factor.law.tilted(rate)) for factor in factors]
    mean = math.fsum(factor.times * tilt.mean for factor, tilt in tilts)
    deviation = math.sqrt(math.fsum(factor.times * tilt.variance for factor, tilt in tilts)) + 1e-6
    logs = [factor.times * tilt.log_moment for factor, tilt in tilts]
    half = 10.0 * deviation + abs(mean - level) + 32.0
    needed = min(last - first + 1.0, 2.0 * half, float(_MOST_PERIOD))
    period = max(1024, 2 ** math.ceil(math.log2(needed)))
    while True:
        low = min(first if period > last - first else max(first, math.floor(mean - 0.5 * period)), level)
        high = min(last, low + period - 1)
        above = _beyond(factors, rate, high + 1, logs, deviation) if high < last else 0.0
        below = _beyond(factors, rate, low - 1, logs, -deviation) if low > first else 0.0
        if above + below <= _NEGLIGIBLE or period > last - first or period >= _MOST_PERIOD:
            break
        period *= 2
    multiplications = sum(factor.times + 1 for factor in factors)
    rung = make_rung(accumulate(nothing(period), factors, rate, period), (), multiplications, rate, period)
    cells = np.arange(level, high + 1, dtype=np.float64)
    with np.errstate(under="ignore"):
        kernel = np.exp(-rate * (cells - level))
    values, error = rung.pair_with(kernel, level, leading=True)
    value = float(values[0, 0])
    # Tilted masses were rounded up, each by what the sizes of its exponents ask for.
    raised = sum(factor.times * _most_raised(factor, rate, tilt.log_moment) for factor, tilt in tilts)
    size = math.fsum(map(abs, logs)) + rate * (abs(level) + abs(high))
    budget = raised + (16.0 * size + 64.0) * UNIT
    scale = math.exp(min(700.0, math.fsum(logs) - rate * level))
    lower = max(0.0, value - error - above - below) * scale * (1.0 - min(1.0, 2.0 * budget))
    return lower, (max(0.0, value + error) + above) * scale * (1.0 + 2.0 * budget)


def _beyond(factors: Sequence[Factor], rate: float, cell: int, logs: list[float], deviation: float) -> float:
    """Return Chernoff's bound on the tilted mass at `cell` and beyond: above it, or for a negative deviation below."""
    best = 0.0
    for share in (1.5, 3.0, 6.0, 9.0, 12.0):
        more = share / deviation
        there = math.fsum(factor.times * factor.law.tilted(rate + more).log_moment for factor in factors)
        size = abs(there) + math.fsum(map(abs, logs)) + abs(more * cell)
        times = sum(factor.times for factor in factors)
        best = min(best, there - math.fsum(logs) - more * cell + 1e-9 + 1e-12 * (size + times))
    return math.exp(best)


def _most_raised(factor: Factor, rate: float, log_moment: float) -> float:
    law = factor.law
    sizes = 2.0 * rate * max(abs(law.start), abs(law.last)) + 745.0 + abs(log_moment) + 8.0
    return sizes * 8.0 * UNIT
