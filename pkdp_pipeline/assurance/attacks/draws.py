"""Draws of how many people are in a cell, under exponentially tilted chances, and what draws say of a mean.

A person's chances ``p_v`` become proportional to ``p_v e^{θ_v}``. A draw with the counts ``x_v`` then stands for
``M e^{-Σ θ_v x_v}`` draws of the true law, where M is the product of everybody's normalising constants. The confidence
bounds are valid for every number of draws.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from pkdp_pipeline.assurance.attacks.crowd import Group

Array = NDArray[np.float64]
Whole = NDArray[np.int64]

_STEEPEST = 60.0
_SLACK = 1e-12
"""Bounds are widened by this much, relatively, for the rounding of the special functions."""

_ROUNDING = 1e-9
"""Weights and chances in floating point err by less than this, relatively."""


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


def mean_below(values: Array, least: float, most: float, error: float, *, draws: int | None = None) -> float:
    """Return a lower bound of the mean of independent numbers in ``[least, most]`` that fails with `error` at most.

    With `draws`, what it is likely to be after so many, from a few.

    Notes
    -----
    Empirical Bernstein bound (Maurer and Pontil, 2009): ``mean - (√(2 V L / n) + 7 (most - least) L / (3 (n - 1)))``
    with the sample variance V and ``L = ln(2 / error)``; good where the deviation is small against the range.
    """
    if len(values) < 2:
        return least
    if draws is not None and not values.any():
        return -math.inf
    number, mean, variance = draws or len(values), float(values.mean()), float(values.var(ddof=1))
    log = math.log(2.0 / error)
    reach = math.sqrt(2.0 * variance * log / number) + 7.0 * (most - least) * log / (3.0 * (number - 1))
    return mean - reach - _ROUNDING * (abs(mean) + math.sqrt(variance))


@dataclass(frozen=True, slots=True, kw_only=True)
class Tilted:
    """Some people, looked at in some cells, with an exponent for each of these.

    Parameters
    ----------
    groups : tuple of Group
    cells : tuple of int
    exponents : tuple of float
        θ of each cell; 0 everywhere is the true law.
    """

    groups: tuple[Group, ...]
    cells: tuple[int, ...]
    exponents: tuple[float, ...]

    @property
    def log_mass(self) -> float:
        """The logarithm of M."""
        total = 0.0
        for group in self.groups:
            gain = sum(
                group.chances[cell] * math.expm1(theta) for cell, theta in zip(self.cells, self.exponents, strict=True)
            )
            if group.people:
                total += group.people * math.log1p(gain)
        return total

    def draw(self, draws: int, generator: Generator) -> Whole:
        """Return counts, one row per cell, one column per draw."""
        counts = np.zeros((len(self.cells), draws), dtype=np.int64)
        for _, drawn in self.each(draws, generator):
            counts += drawn
        return counts

    def each(self, draws: int, generator: Generator) -> Iterator[tuple[Group, Whole]]:
        """Yield every group with its counts, one row per cell, one column per draw."""
        for group in self.groups:
            chances = [group.chances[cell] for cell in self.cells]
            weights = [chance * math.exp(theta) for chance, theta in zip(chances, self.exponents, strict=True)]
            # What is left for elsewhere, without cancellation where the cells take nearly everything.
            rest = max(0.0, float(1 - sum(map(Fraction, chances), Fraction(0))))
            drawn = np.zeros((len(self.cells), draws), dtype=np.int64)
            left: Whole | int = group.people
            for row, weight in enumerate(weights):
                total = sum(weights[row:]) + rest
                drawn[row] = generator.binomial(left, 0.0 if total <= 0.0 else min(1.0, weight / total), size=draws)
                left = left - drawn[row]
            yield group, drawn


def mean_and_spread(groups: Sequence[Group], cell: int, exponent: float = 0.0) -> tuple[float, float]:
    """Return mean and standard deviation of the (tilted) number of people in `cell`."""
    mean, variance = 0.0, 0.0
    for group in groups:
        chance = group.chances[cell]
        # The logistic function of the tilted log-odds, from the side that does not overflow.
        raised = 1.0 if chance == 1.0 else chance * math.exp(min(exponent, _STEEPEST))
        share = chance if chance in (0.0, 1.0) else raised / (1.0 - chance + raised)
        mean += group.people * share
        variance += group.people * share * (1.0 - share)
    return mean, math.sqrt(variance)


def exponent_for(groups: Sequence[Group], cell: int, mean: float) -> float:
    """Return the exponent under which about `mean` people are in `cell`."""
    low, high = -_STEEPEST, _STEEPEST
    for _ in range(60):
        middle = (low + high) / 2.0
        if mean_and_spread(groups, cell, middle)[0] < mean:
            low = middle
        else:
            high = middle
    return (low + high) / 2.0
