"""Guarantee: a certified δ(ε) made of bounds that all hold, and its inverse."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from numbers import Real
from typing import Any, cast, overload

import numpy as np
from numpy.typing import ArrayLike

from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.model.arguments import probability
from pkdp_pipeline.theorems import Applied, Bound, Certified, Invertible, WorstCase
from pkdp_pipeline.theorems.inversion import smallest_epsilon
from pkdp_pipeline.theorems.rounding import Array

__all__ = ["Guarantee", "bracketed", "epsilon_points"]


@dataclass(frozen=True, slots=True)
class Guarantee:
    """A certified δ(ε): the pointwise smallest of bounds that all hold; with no bound, no guarantee.

    Parameters
    ----------
    bounds : tuple of Bound
    parameters : (float, float) or None
        An (ε, δ) pair the guarantee is known by, where it has one.
    """

    bounds: tuple[Bound, ...]
    parameters: tuple[float, float] | None = None

    @overload
    def delta(self, epsilon: float) -> float: ...
    @overload
    def delta(self, epsilon: ArrayLike) -> Array: ...
    def delta(self, epsilon: ArrayLike) -> float | Array:
        """Return the certified δ at `epsilon`; 1.0 where there is no guarantee. See `Certificate.delta`."""
        points, scalar = epsilon_points(epsilon)
        values = np.ones(points.size)
        for bound in self.bounds:
            values = np.fmin(values, _certified(bound, points.ravel()))
        return float(values[0]) if scalar else values.reshape(points.shape)

    def rounding(self, epsilons: Array) -> Array:
        """Return how far δ may be rounded at each ε, as a share of it; see `pkdp_pipeline.theorems.bound.Bound`."""
        smallest, least = np.ones(len(epsilons)), np.ones(len(epsilons))
        for bound in self.bounds:
            value = _certified(bound, epsilons)
            smallest = np.fmin(smallest, value)
            least = np.fmin(least, value * (1.0 - bound.rounding(epsilons)[1]))
        share: Array = 1.0 - least / np.where(smallest > 0.0, smallest, np.inf)
        return np.where(smallest > 0.0, share, 0.0).clip(0.0, 1.0)

    def epsilon(self, delta: float) -> float:
        """Return the smallest certified ε at `delta`; `math.inf` where there is none."""
        target = probability("delta", delta)
        if target >= 1.0:
            return 0.0
        if not self.bounds:
            return math.inf
        # The smallest of several bounds reaches the target where the first of them does.
        return min(_crossing(bound, target) for bound in self.bounds)


def _certified(bound: Bound, epsilons: Array) -> Array:
    return bound.certified(epsilons) if isinstance(bound, Certified) else bound.bracket(epsilons)[1]


def _crossing(bound: Bound, target: float) -> float:
    """Return the smallest ε found at which one bound is at most `target`."""
    try:
        return _remembered(cast("Any", bound), target)
    except TypeError:  # a bound that holds arrays has no hash
        return _searched(bound, target)


@functools.lru_cache(maxsize=1024)
def _remembered(bound: Bound, target: float) -> float:
    # A job that runs every day asks about the same bound again and again.
    return _searched(bound, target)


def _searched(bound: Bound, target: float) -> float:
    def delta_at(epsilon: float) -> float:
        return float(_certified(bound, np.array([epsilon]))[0])

    if isinstance(bound, Invertible):
        found = bound.smallest_epsilon(target)
    else:
        found = smallest_epsilon(delta_at, target, bound.slack)
    if isinstance(bound, WorstCase):
        # The end of the noise's curve is known exactly; a search only comes close to it.
        end = bound.parameters[0]
        return min(found, end) if delta_at(end) <= target else found
    return found


def epsilon_points(epsilon: ArrayLike) -> tuple[Array, bool]:
    """Return the ε asked for as an array, and whether it was a single number."""
    scalar = isinstance(epsilon, Real) or (isinstance(epsilon, np.ndarray) and epsilon.ndim == 0)
    if isinstance(epsilon, bool):
        raise ArgumentError("epsilon must be a number, at least 0 and finite, not bool.")
    try:
        given = np.asarray(float(epsilon)) if isinstance(epsilon, Real) else np.asarray(epsilon)
    except (TypeError, ValueError, OverflowError):
        given = np.asarray(None)
    if given.dtype.kind not in "iuf" and given.size:
        raise ArgumentError("epsilon must be a number or an array of numbers, each at least 0 and finite.")
    points = np.atleast_1d(given.astype(np.float64))
    if not np.all(np.isfinite(points) & (points >= 0.0)):
        raise ArgumentError("epsilon must be at least 0 and finite.")
    return points, scalar


def bracketed(partial: tuple[Applied, ...], worst: WorstCase | None, epsilons: Array) -> tuple[Array, Array]:
    """Return (attained, certified) δ at each ε of a certificate with these bounds."""
    attained, certified = np.zeros(epsilons.size), np.ones(epsilons.size)
    for applied in partial:
        lower, upper = applied.bound.bracket(epsilons)
        certified = np.minimum(certified, upper)
        if applied.attack is not None:
            if applied.attack is not applied.bound:
                lower, _ = applied.attack.bracket(epsilons)
            attained = np.maximum(attained, lower)
    if worst is not None:
        lower, upper = worst.bracket(epsilons)
        certified = np.minimum(certified, upper)
        if not partial:
            attained = np.maximum(attained, lower)
    return np.minimum(attained, certified), certified
