"""The share of one release in a total: its privacy losses in either order of the two lives, on a grid."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import reduce, singledispatch

import numpy as np

from pkdp_pipeline.composition.grid_law import GridLaw, envelope, product, split, split_ratios
from pkdp_pipeline.theorems import Bound, Protects
from pkdp_pipeline.theorems.bound import Guarantee
from pkdp_pipeline.theorems.hull import ProfileLosses, where_it_falls
from pkdp_pipeline.theorems.losses import EnvelopeLosses, Losses, NoiseLosses, PairLosses, ProductLosses
from pkdp_pipeline.theorems.rounding import TINY
from pkdp_pipeline.theorems.thresholding import Thresholding

_RELATIVE_TOLERANCE = 1e-9
"""Two bounds this close, relatively, count as equal when one of them is dropped."""


@singledispatch
def on_grid(losses: Losses, step: float) -> GridLaw:
    """Return a law on multiples of `step` whose profile is nowhere below that of the release."""
    return split(*losses.atoms(), step)


@on_grid.register
def _(losses: PairLosses, step: float) -> GridLaw:
    return split_ratios(*losses.ratios(), step)


@on_grid.register
def _(losses: ProductLosses, step: float) -> GridLaw:
    return reduce(product, (on_grid(member, step) for member in losses.members))


@on_grid.register
def _(losses: EnvelopeLosses, step: float) -> GridLaw:
    return envelope([on_grid(member, step) for member in losses.members], step)


@on_grid.register
def _(losses: NoiseLosses, step: float) -> GridLaw:
    places, weights, _ = losses.atoms()
    cells = Fraction(losses.noise) / Fraction(step)
    if cells.denominator > 1:
        return split(places, weights, 0.0, step, trim=False)
    # Noise of whole steps stays on its lattice: nothing is split, and its largest loss is known exactly.
    masses = np.zeros(2 * losses.cells * int(cells) + 1)
    masses[:: 2 * int(cells)] = weights
    return GridLaw(start=-losses.cells * int(cells), masses=masses, infinite=0.0)


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


def directions(bounds: tuple[Bound, ...], protects: Protects) -> Directions:
    """Return the losses of a release from the bounds that hold for it: its own where one is enough, else of the hull.

    `bounds`: all hold; those that are nowhere better than another one are left out, which is sound.
    """
    bounds = _undominated(bounds)
    losses = bounds[0].losses(protects) if len(bounds) == 1 else ()
    right, left = (*losses, None, None)[:2]
    return Directions(right=right or ProfileLosses(bounds=bounds), left=left)


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
