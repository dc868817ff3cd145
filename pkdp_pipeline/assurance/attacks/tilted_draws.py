"""Draws of how many people are in a cell, under exponentially tilted chances, with their weights.

A person's chances ``p_v`` become proportional to ``p_v e^{θ_v}``. A draw with the counts ``x_v`` then stands for
``M e^{-Σ θ_v x_v}`` draws of the true law, where M is the product of everybody's normalising constants.
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

Whole = NDArray[np.int64]

_STEEPEST = 60.0


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
