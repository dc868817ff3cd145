"""Directed rounding: from ball arithmetic and budgeted floats to floats that err on the safe side."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Whole = NDArray[np.int64]
Decided = NDArray[np.bool_]

UNIT = 2.0**-53
"""Unit roundoff of float64: one operation errs by at most this much, relatively."""

TINY = 1e-290
"""The most that may have been lost to underflow in one product of probabilities, with room to spare."""


EVALUATED = 1e-9
"""Error budgets of balls and of sums of some million positive terms are below this, relatively, on either side."""


def kept(arrays: Iterable[NDArray[Any]]) -> Iterator[NDArray[Any]]:
    """Yield arrays that a cache keeps, so that nobody who is given them can change them."""
    for array in arrays:
        array.flags.writeable = False
        yield array


def evaluated(epsilons: Array) -> Array:
    """Return `EVALUATED` for each side and ε: the rounding of a bound that is evaluated with such a budget."""
    return np.full((2, len(epsilons)), EVALUATED)


def ball_above(ball: Any) -> float:
    """Return a float at or above every point of a python-flint ball."""
    return math.nextafter(float(ball.upper()), math.inf)


def ball_below(ball: Any) -> float:
    """Return a float at or below every point of a python-flint ball."""
    return math.nextafter(float(ball.lower()), -math.inf)


def float_above(value: Fraction) -> float:
    """Return the smallest float at or above `value`, which is at least 0; `math.inf` beyond all floats."""
    try:
        rounded = float(value)
    except OverflowError:
        return math.inf
    return rounded if math.isinf(rounded) or Fraction(rounded) >= value else math.nextafter(rounded, math.inf)


def float_below(value: Fraction) -> float:
    """Return the largest float at or below `value`, which is at least 0."""
    rounded = float_above(value)
    return rounded if not math.isinf(rounded) and Fraction(rounded) == value else math.nextafter(rounded, 0.0)


def sum_above(numbers: Iterable[float], times: Iterable[int] | None = None) -> float:
    """Return the smallest float that is at least the sum of numbers of at least 0, each so often (once by default)."""
    listed = list(numbers)
    counted = [(number, n) for number, n in zip(listed, times or [1] * len(listed), strict=True) if n]
    if any(math.isinf(number) for number, _ in counted):
        return math.inf
    return float_above(sum((Fraction(number) * n for number, n in counted), Fraction(0)))


def raised(values: Array, budget: Array | float) -> Array:
    """Return non-negative `values` raised by the relative error `budget` and at least one float further."""
    result: Array = np.nextafter(values * (1.0 + budget), np.inf)
    return result


def lowered(values: Array, budget: Array | float) -> Array:
    """Return non-negative `values` lowered by the relative error `budget` and one float further, not below 0."""
    result: Array = np.maximum(0.0, np.nextafter(values * (1.0 - budget), -np.inf))
    return result
