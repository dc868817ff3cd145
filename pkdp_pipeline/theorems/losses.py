"""Privacy losses, which bounds give to be composed: the logarithm of the likelihood ratio of the target's two lives."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

import flint
import numpy as np

from pkdp_pipeline.theorems.rounding import UNIT, Array, ball_above
from pkdp_pipeline.theorems.waiting_pair import Pair, averaged_pair, waiting_pair

Order = Literal["right", "left"]

DROPPED_MASS = 1e-90
"""Mass of a waiting time that may be left out of its atoms and counted as disclosed."""

_DROPPED_FOR_SPREAD = 1e-20
"""The same where only the width of the law is asked for."""

_MAX_ATOMS = 3e6
"""Most atoms of a pair that is an average over known people."""

_NEGLIGIBLE_MASS = 1e-100
"""Losses with less mass do not count for the width of a law."""

GRID_ROUNDING = 1e-10
"""The relative rounding that products, envelopes and hulls on a grid of some thousand cells add to the masses'."""

Atoms = tuple[Array, Array, float]
"""Losses, their masses, and the mass of infinite ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Losses:
    """The privacy loss of one release in one order."""

    def atoms(self) -> Atoms:
        """Return atoms whose profile is nowhere below that of the release."""
        raise NotImplementedError

    def spread(self) -> float:
        """Return about the standard deviation of the loss; it decides the grid, not the truth of what follows."""
        return _deviation(*self.atoms()[:2])

    def rounding(self) -> tuple[float, float, float]:
        """Return how far the law on a grid may be rounded: its masses, relatively, its losses, and its profile."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True, kw_only=True)
class PairLosses(Losses):
    """Losses of theorem A's waiting times.

    Parameters
    ----------
    k : int
        The threshold; people who are controlled are taken off.
    known : int
        People the attacker merely knows; both laws show how many of them count.
    order : str
        ``"right"``: `k` − 1 against `k` successes; ``"left"``: the other way round.
    """

    k: int
    p: float
    cap: int | None = None
    known: int = 0
    order: Order = "right"

    def atoms(self) -> Atoms:
        """See `Losses`."""
        ratios, weights, infinite = self.ratios()
        return -np.log(ratios), weights, infinite

    def ratios(self) -> Atoms:
        """Return ratios ``e^{-loss}``, increasing, none above the exact ones, with masses and infinite mass."""
        return _ratios(_pair(self.k, self.p, self.cap, self.known), self.order)

    def spread(self) -> float:
        """See `Losses`; of a pair without its far tails, or as of a normal law, within 4 %.

        That spares a year of different releases half of its pairs (benchmarks/bench_composition.py).
        """
        apart = (self.k - 1) * (1.0 - self.p)
        if self.known:
            return Losses.spread(self)
        if self.cap is None and apart > 16.0:
            return 1.0 / math.sqrt(apart)
        ratios, weights, _ = _ratios(waiting_pair(self.k - 1, self.p, self.cap, _DROPPED_FOR_SPREAD), self.order)
        return _deviation(-np.log(ratios), weights)

    def rounding(self) -> tuple[float, float, float]:
        """See `Losses`."""
        budget = _pair(self.k, self.p, self.cap, self.known).budget + 64.0 * UNIT
        return 4.0 * budget, 4.0 * budget, 2.0 * DROPPED_MASS


@dataclass(frozen=True, slots=True, kw_only=True)
class ProductLosses(Losses):
    """Losses of several independent factors shown together."""

    members: tuple[Losses, ...]

    def spread(self) -> float:
        """See `Losses`."""
        return math.sqrt(sum(member.spread() ** 2 for member in self.members))

    def rounding(self) -> tuple[float, float, float]:
        """See `Losses`: they add up."""
        masses, losses, left = map(math.fsum, zip(*(member.rounding() for member in self.members), strict=True))
        return masses + GRID_ROUNDING, losses, left


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvelopeLosses(Losses):
    """Losses of the pair, its own mirror image, that dominates several pairs in both orders."""

    members: tuple[Losses, ...]

    def spread(self) -> float:
        """See `Losses`."""
        return max(member.spread() for member in self.members)

    def rounding(self) -> tuple[float, float, float]:
        """See `Losses`: that of the one that is rounded most."""
        masses, losses, left = map(max, zip(*(member.rounding() for member in self.members), strict=True))
        return masses + GRID_ROUNDING, losses, left


@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseLosses(Losses):
    """Losses of two-sided geometric noise: sums of as many ±ε0 as cells change; the pair is its own mirror image.

    Parameters
    ----------
    noise : float
        ε0.
    cells : int
        How many cells change.
    """

    noise: float
    cells: int

    def rounding(self) -> tuple[float, float, float]:
        """See `Losses`."""
        return 64.0 * UNIT, 64.0 * UNIT, 0.0

    def atoms(self) -> Atoms:
        """See `Losses`."""
        with flint.ctx.workprec(128):
            alpha = (-flint.arb(self.noise)).exp()
            balls = (
                math.comb(self.cells, gains) * alpha ** (self.cells - gains) / (1 + alpha) ** self.cells
                for gains in range(self.cells + 1)
            )
            weights = np.array([ball_above(ball) for ball in balls])
        steps = np.arange(-self.cells, self.cells + 1, 2, dtype=np.float64)
        return steps * self.noise, weights, 0.0


def waiting_losses(k: int, p: float, cap: int | None, known: int = 0) -> tuple[Losses, Losses]:
    """Return the losses of theorem A in either order."""
    right = PairLosses(k=k, p=p, cap=cap, known=known)
    return right, replace(right, order="left")


def _ratios(pair: Pair, order: Order) -> Atoms:
    finite = pair.ratio > 0.0
    lowered = 1.0 - 1.1 * pair.budget - 4.0 * UNIT
    ratio, weight = pair.ratio[finite], pair.weight[finite] * (1.0 + 1.1 * pair.budget)
    if order == "right":
        infinite = pair.first_only + float(pair.weight[~finite].sum()) * (1.0 + 1.1 * pair.budget + 4.0 * UNIT)
        return ratio * lowered, weight, min(1.0, infinite * (1.0 + 4.0 * UNIT))
    masses = weight * ratio * (1.0 + 1.1 * pair.budget + 4.0 * UNIT)
    return (lowered / ratio)[::-1], masses[::-1], min(1.0, pair.second_only)


@lru_cache(maxsize=8)
def _pair(k: int, p: float, cap: int | None, known: int) -> Pair:
    if known == 0:
        return waiting_pair(k - 1, p, cap, DROPPED_MASS)
    if p in (0.0, 1.0):
        return waiting_pair(k - 1 - (known if p == 1.0 else 0), p, cap, DROPPED_MASS)
    atoms = 40.0 * math.sqrt(k) / max(p, 1e-9)
    return averaged_pair(k, p, cap, (known, p), DROPPED_MASS, int(min(400.0, max(16.0, _MAX_ATOMS / atoms))))


def _deviation(losses: Array, weights: Array) -> float:
    """Return the standard deviation, or a hundredth of the range where nearly all mass is at one loss."""
    losses, weights = losses[weights > _NEGLIGIBLE_MASS], weights[weights > _NEGLIGIBLE_MASS]
    if len(losses) == 0:
        return 0.0
    # Not as inner products: threads of a BLAS cost more here than they save.
    total = float(weights.sum())
    mean = float((weights * losses).sum()) / total
    deviation = math.sqrt(max(0.0, float((weights * (losses - mean) ** 2).sum()) / total))
    deviation = max(deviation, 1e-2 * float(losses.max() - losses.min()))
    # A single loss deviates by its rounding only.
    return deviation if deviation > 1e-10 * abs(mean) else 0.0
