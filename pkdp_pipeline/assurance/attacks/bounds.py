"""Confidence bounds for probabilities, means and differences, valid for every number of draws."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

_SLACK = 1e-12
"""Bounds are widened by this much, relatively, for the rounding of the special functions."""


def clopper_pearson(successes: int, draws: int, error: float) -> tuple[float, float]:
    """Return (low, high): each side alone fails with probability `error` at most.

    Parameters
    ----------
    successes, draws : int
    error : float
        In (0, 1). The interval as a whole fails with probability ``2 · error`` at most.

    Notes
    -----
    Exact for every number of draws: the quantiles of the beta law (Clopper and Pearson, 1934). *Rounding*: outward.
    """
    from scipy.special import betaincinv

    low, high = 0.0, 1.0
    if successes > 0:
        low = float(betaincinv(successes, draws - successes + 1, error)) * (1.0 - _SLACK)
    if successes < draws:
        high = min(1.0, float(betaincinv(successes + 1, draws - successes, 1.0 - error)) * (1.0 + _SLACK))
        # Near 1 the complement has the digits.
        high = min(high, 1.0 - float(betaincinv(draws - successes, successes + 1, error)) * (1.0 - _SLACK))
        high = max(high, successes / draws)
    return low, high


def difference_below(first: tuple[int, int], second: tuple[int, int], epsilon: float, error: float) -> float:
    """Return a lower bound of ``P[E] - e^ε Q[E]`` that fails with probability `error` at most.

    Parameters
    ----------
    first, second : tuple of (int, int)
        How often E happened, and how many independent draws there were, under P and under Q.
    epsilon : float
    error : float
    """
    low, _ = clopper_pearson(*first, error / 2.0)
    _, high = clopper_pearson(*second, error / 2.0)
    return low - math.exp(epsilon) * high * (1.0 + _SLACK)


def bernstein(values: Array, least: float, most: float, error: float) -> tuple[float, float]:
    """Return (low, high) for the mean of independent numbers in ``[least, most]``; each side fails with `error`.

    Notes
    -----
    Empirical Bernstein bound (Maurer and Pontil, 2009): ``mean ± (√(2 V L / n) + 7 (most - least) L / (3 (n - 1)))``
    with the sample variance V and ``L = ln(2 / error)``; good where the deviation is small against the range.
    """
    draws = len(values)
    if draws < 2:
        return least, most
    mean, variance = float(values.mean()), float(values.var(ddof=1))
    log = math.log(2.0 / error)
    reach = math.sqrt(2.0 * variance * log / draws) + 7.0 * (most - least) * log / (3.0 * (draws - 1))
    # Sums of floats err by far less than this.
    reach += 1e-11 * (abs(mean) + math.sqrt(variance))
    return max(least, mean - reach), min(most, mean + reach)


def promised(values: Array, least: float, most: float, draws: int, error: float) -> float:
    """Return what the lower bound of `bernstein` is likely to be after `draws` draws, from a few of them."""
    if not values.any():
        return -math.inf
    log = math.log(2.0 / error)
    reach = float(values.std()) * math.sqrt(2.0 * log / draws) + 7.0 * (most - least) * log / (3.0 * draws)
    return float(values.mean()) - reach
