"""The share of one release in a total: the laws of its privacy loss, in either order of the two lives."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache, reduce
from typing import Literal

import flint
import numpy as np

from pkdp_pipeline.composition.grid_law import (
    GridLaw,
    envelope,
    product,
    split,
    split_ratios,
)
from pkdp_pipeline.theorems import Bound
from pkdp_pipeline.theorems.bound import Guarantee, coarsest
from pkdp_pipeline.theorems.hull import hull_atoms, where_it_falls
from pkdp_pipeline.theorems.rounding import TINY, UNIT, Array, ball_above
from pkdp_pipeline.theorems.thresholding import Thresholding, ValueThroughAbsence
from pkdp_pipeline.theorems.waiting_pair import Pair, averaged_pair, waiting_pair
from pkdp_pipeline.theorems.worst_case import NoiseCurve

Order = Literal["right", "left"]

_DROPPED_MASS = 1e-90
"""Mass of a waiting time that may be left out of its atoms and counted as disclosed."""

_DROPPED_FOR_SPREAD = 1e-20
"""The same where only the width of the law is asked for."""

_MAX_ATOMS = 3e6
"""Most atoms of a pair that is an average over known people."""

_NEGLIGIBLE_MASS = 1e-100
"""Losses with less mass do not count for the width of a law."""

_RELATIVE_TOLERANCE = 1e-9
"""Two bounds this close, relatively, count as equal when one of them is dropped."""


_GRID_ROUNDING = 1e-10
"""The relative rounding that products, envelopes and hulls on a grid of some thousand cells add to the masses'."""


_MIN_RELATIVE_DELTA = 1e-30
"""Below this the rounding of a profile is counted absolutely."""


Atoms = tuple[Array, Array, float]
"""Losses, their masses, and the mass of infinite ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Losses:
    """The privacy loss of one release in one order."""

    def atoms(self) -> Atoms:
        """Return atoms whose profile is nowhere below that of the release."""
        raise NotImplementedError

    def on_grid(self, step: float) -> GridLaw:
        """Return a law on multiples of `step` whose profile is nowhere below that of the release."""
        return split(*self.atoms(), step)

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
        return pair_atoms(_pair(self.k, self.p, self.cap, self.known), self.order)

    def on_grid(self, step: float) -> GridLaw:
        """See `Losses`."""
        return split_ratios(*_ratios(_pair(self.k, self.p, self.cap, self.known), self.order), step)

    def spread(self) -> float:
        """See `Losses`; of a pair without its far tails, or as of a normal law, within 4 %.

        That spares a year of different releases half of its pairs (benchmarks/bench_composition.py).
        """
        apart = (self.k - 1) * (1.0 - self.p)
        if self.known:
            return Losses.spread(self)
        if self.cap is None and apart > 16.0:
            return 1.0 / math.sqrt(apart)
        return _deviation(*pair_atoms(waiting_pair(self.k - 1, self.p, self.cap, _DROPPED_FOR_SPREAD), self.order)[:2])

    def rounding(self) -> tuple[float, float, float]:
        """See `Losses`."""
        budget = _pair(self.k, self.p, self.cap, self.known).budget + 64.0 * UNIT
        return 4.0 * budget, 4.0 * budget, 2.0 * _DROPPED_MASS


@dataclass(frozen=True, slots=True, kw_only=True)
class ProductLosses(Losses):
    """Losses of several independent factors shown together."""

    factors: tuple[Losses, ...]

    def on_grid(self, step: float) -> GridLaw:
        """See `Losses`."""
        return reduce(product, (factor.on_grid(step) for factor in self.factors))

    def spread(self) -> float:
        """See `Losses`."""
        return math.sqrt(sum(factor.spread() ** 2 for factor in self.factors))

    def rounding(self) -> tuple[float, float, float]:
        """See `Losses`."""
        masses, losses, left = zip(*(factor.rounding() for factor in self.factors), strict=True)
        return math.fsum(masses) + _GRID_ROUNDING, math.fsum(losses), math.fsum(left)


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvelopeLosses(Losses):
    """Losses of the pair, its own mirror image, that dominates several pairs in both orders."""

    members: tuple[Losses, ...]

    def on_grid(self, step: float) -> GridLaw:
        """See `Losses`."""
        return envelope([member.on_grid(step) for member in self.members], step)

    def spread(self) -> float:
        """See `Losses`."""
        return max(member.spread() for member in self.members)

    def rounding(self) -> tuple[float, float, float]:
        """See `Losses`."""
        masses, losses, left = zip(*(member.rounding() for member in self.members), strict=True)
        return max(masses) + _GRID_ROUNDING, max(losses), max(left)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileLosses(Losses):
    """Losses of the pair, its own mirror image, whose profile is the convex hull of certified points.

    `bounds`: all of them hold in both orders, so the smallest does, and so does its lower convex hull in ``e^ε``: the
    true profile is convex and below all points. With no bound everything is disclosed.
    """

    bounds: tuple[Bound, ...]

    def atoms(self) -> Atoms:
        """See `Losses`."""
        return hull_atoms(self.bounds)

    def rounding(self) -> tuple[float, float, float]:
        """See `Losses`."""
        losses, weights, infinite = hull_atoms(self.bounds)
        points = np.unique(np.abs(losses))
        shares = coarsest(self.bounds, points)[1]
        values = (np.maximum(0.0, -np.expm1(points[:, None] - losses)) * weights).sum(axis=1) + infinite
        # Far in the tail a share may be large, and is one of next to nothing: it is counted absolutely.
        relative = values > _MIN_RELATIVE_DELTA
        masses, left = float(shares[relative].max(initial=0.0)), float((shares * values)[~relative].max(initial=0.0))
        return masses + _GRID_ROUNDING, 64.0 * UNIT, left + 2.0 * _DROPPED_MASS


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

    def on_grid(self, step: float) -> GridLaw:
        """See `Losses`."""
        losses, weights, _ = self.atoms()
        cells = Fraction(self.noise) / Fraction(step)
        if cells.denominator == 1:
            size = int(cells)
            masses = np.zeros(2 * self.cells * size + 1)
            masses[:: 2 * size] = weights
            return GridLaw(start=-self.cells * size, masses=masses, infinite=0.0)
        return split(losses, weights, 0.0, step, trim=False)

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Directions:
    """Losses of one release in both orders of the two lives.

    Parameters
    ----------
    right : Losses
        The target's first life shows up and the second does not.
    left : Losses or None
        The other order; None where `right` serves both.
    attack : Thresholding or None
        An attack on the release that a score test may repeat on every day.
    """

    right: Losses
    left: Losses | None = None
    attack: Thresholding | None = None

    @property
    def orders(self) -> tuple[Losses, ...]:
        """The losses in each order that is not served by another one."""
        return (self.right,) if self.left is None else (self.right, self.left)

    @property
    def averages(self) -> bool:
        """Whether its pairs average over how many known people count, each number of them with its own worst crowd."""
        return any(isinstance(losses, PairLosses) and losses.known > 0 for losses in self.orders)


def directions(bounds: tuple[Bound, ...], protects: str) -> Directions:
    """Return the losses of a release from the bounds that hold for it.

    In two orders for the presence theorems on thresholds, in one for everything else. `bounds`: all hold; those that
    are nowhere better than another one are left out, which is sound. `protects`: ``"presence"`` or ``"value"``.
    """
    bounds = _undominated(bounds)
    losses: tuple[Losses, ...] = ()
    bound = bounds[0] if len(bounds) == 1 else None
    if isinstance(bound, Thresholding):
        known, controlled = (0, bound.known) if bound.active else (bound.known, 0)
        losses = _waiting(bound.k - controlled, bound.p, bound.cap, known)
        if protects != "presence":
            losses = (EnvelopeLosses(members=losses),)
    elif isinstance(bound, ValueThroughAbsence) and bound.known == 0:
        losses = (ProductLosses(factors=_waiting(bound.k, bound.p, bound.cap, 0)),)
    elif isinstance(bound, NoiseCurve) and bound.appears_at is None:
        losses = (NoiseLosses(noise=bound.noise, cells=bound.changes),)
    right, left = (*losses, None, None)[:2]
    return Directions(right=right or ProfileLosses(bounds=bounds), left=left)


def _waiting(k: int, p: float, cap: int | None, known: int) -> tuple[Losses, Losses]:
    right = PairLosses(k=k, p=p, cap=cap, known=known)
    return right, replace(right, order="left")


def pair_atoms(pair: Pair, order: Order) -> Atoms:
    """Return losses, masses and infinite mass of a pair in one order, none below the exact ones."""
    ratios, weights, infinite = _ratios(pair, order)
    return -np.log(ratios), weights, infinite


def _ratios(pair: Pair, order: Order) -> Atoms:
    """Return ratios ``e^{-loss}``, increasing, none above the exact ones, with masses and infinite mass."""
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
        return waiting_pair(k - 1, p, cap, _DROPPED_MASS)
    if p in (0.0, 1.0):
        return waiting_pair(k - 1 - (known if p == 1.0 else 0), p, cap, _DROPPED_MASS)
    atoms = 40.0 * math.sqrt(k) / max(p, 1e-9)
    return averaged_pair(k, p, cap, (known, p), _DROPPED_MASS, int(min(400.0, max(16.0, _MAX_ATOMS / atoms))))


def _undominated(bounds: tuple[Bound, ...]) -> tuple[Bound, ...]:
    """Leave out bounds that are nowhere seen to be the smallest."""
    if len(bounds) < 2:
        return bounds
    first, scale = where_it_falls(bounds)
    points = first + scale * np.array([0.0, 0.1, 0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 40.0])
    values = [Guarantee((bound,)).delta(points) for bound in bounds]
    kept = list(range(len(bounds)))
    for row, value in enumerate(values):
        others = [values[other] for other in kept if other != row]
        if others and (np.min(others, axis=0) <= value * (1.0 + _RELATIVE_TOLERANCE) + TINY).all():
            kept.remove(row)
    return tuple(bounds[row] for row in kept)


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
