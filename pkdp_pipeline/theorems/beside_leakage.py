"""The change of a bound beside what leaks."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import flint
import numpy as np

from pkdp_pipeline.theorems.bound import Bound, Derived, WorstCase
from pkdp_pipeline.theorems.inversion import chord
from pkdp_pipeline.theorems.rounding import Array, ball_above

_GRID_SIZE = 96
"""Theorem 9's sum is evaluated at this many ε: a profile does not increase, so the smallest up to an ε holds there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BesidePrivate(Derived):
    """The profile of a release together with a leakage that is itself (ε2, δ2)-private, given the release or not.

    Parameters
    ----------
    theorem : str
        Which statement uses the profile.
    base : Bound
        The release alone, in both orders.
    epsilon : float
        ε2, at least 0.
    delta : float
        δ2.

    Notes
    -----
    Anything (ε2, δ2)-private is dominated by this pair: with probability δ2 the two lives are told apart, otherwise
    one bit is shown that is right with probability ``q = e^ε2/(1 + e^ε2)``. So the whole is dominated by the product
    of both pairs, with ``δ2 + (1 - δ2)(q δ1(ε - ε2) + (1 - q) δ1(ε + ε2))`` and, below 0,
    ``δ1(-x) = 1 - e^{-x}(1 - δ1(x))``. At ``ε1 + ε2`` that is at most ``δ1(ε1) + δ2``. *Guarantee*: never below the
    divergence of both together, or of one of them. *Rounding*: up. *Source*: `docs/leakage.md`; it sharpens Theorem 4
    of the bounded-leakage paper.
    """

    epsilon: float
    delta: float = 0.0

    def rounding(self, epsilons: Array) -> Array:
        """See `pkdp_pipeline.theorems.bound.Bound`."""
        return np.maximum(self.base.rounding(epsilons), self.base.rounding(epsilons + self.epsilon))

    def bracket(self, epsilons: Array) -> tuple[Array, Array]:
        """Return (attained, certified) arrays; see `pkdp_pipeline.theorems.bound.Bound`."""
        # A smaller ε has a larger δ, so rounding ε down is rounding δ up.
        points = np.nextafter(np.concatenate([epsilons - self.epsilon, epsilons + self.epsilon]), -np.inf)
        if self.epsilon == 0.0:
            points = np.concatenate([epsilons, epsilons])
        nearer, farther = np.split(both_sides(self.base, points), 2)
        certified = np.ones(len(epsilons))
        with flint.ctx.workprec(128):
            right = 1 / (1 + (-flint.arb(self.epsilon)).exp())
            hidden = 1 - flint.arb(self.delta)
            for index in range(len(epsilons)):
                delta = right * float(nearer[index]) + (1 - right) * float(farther[index])
                certified[index] = min(1.0, ball_above(self.delta + hidden * delta))
        # An attacker may leave the leakage aside. A bound that rests on the others' uncertainty has its own attack.
        attained = self.base.bracket(epsilons)[0] if isinstance(self.base, WorstCase) else np.zeros(len(epsilons))
        return np.minimum(attained, certified), certified


@dataclass(frozen=True, slots=True, kw_only=True)
class WorstBesidePrivate(BesidePrivate, WorstCase):
    """`BesidePrivate` where the release alone is private against any attacker."""

    base: WorstCase

    @property
    def parameters(self) -> tuple[float, float]:
        """Return (ε1 + ε2, δ1 + δ2), rounded up."""
        epsilon, delta = self.base.parameters
        return _sum(epsilon, self.epsilon), min(1.0, _sum(delta, self.delta))

    def bracket(self, epsilons: Array) -> tuple[Array, Array]:
        """Return (attained, certified) arrays; see `pkdp_pipeline.theorems.bound.Bound`."""
        attained, certified = BesidePrivate.bracket(self, epsilons)
        # From ε1 + ε2 on the sum of both δ holds, which rounding may have exceeded.
        epsilon, delta = self.parameters
        certified = np.where(epsilons >= epsilon, np.minimum(certified, delta), certified)
        return np.minimum(attained, certified), certified


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenDependent(Derived, WorstCase):
    """The profile of noise given a leakage that may depend on the noise: it is (ε′, δ′)-independent of the release.

    Parameters
    ----------
    theorem : str
        Which statement uses the profile.
    base : WorstCase
        The noise alone.
    epsilon : float
        ε′, at least 0.
    delta : float
        δ′.

    Notes
    -----
    For every real a, ``δ(a + 2ε′) ≤ (e^{ε′+a} + 1) δ′ + e^{ε′} δ1(a)``: from the release given the leaked value to
    the release alone, to the other life, and back. Above, the smallest over smaller a is taken; below, a chord in e^ε
    from δ = 1 at ε = 0, since every profile is convex there. *Guarantee*: never below the divergence given any
    leaked value that both lives can leak. *Rounding*: up. *Source*: `docs/leakage.md`; Theorem 9 of the
    bounded-leakage paper.
    """

    base: WorstCase
    epsilon: float
    delta: float

    @property
    def parameters(self) -> tuple[float, float]:
        """Return (ε + 2ε′, (e^{ε′+ε} + 1) δ′ + e^{ε′} δ), rounded up."""
        epsilon, delta = self.base.parameters
        return _sum(epsilon, self.epsilon, self.epsilon), self._delta_given(epsilon, delta)

    def bracket(self, epsilons: Array) -> tuple[Array, Array]:
        """Return (attained, certified) arrays; see `pkdp_pipeline.theorems.bound.Bound`."""
        shift = _sum(self.epsilon, self.epsilon)
        # Beyond the end of the noise's profile its sum only grows.
        left = np.minimum(np.nextafter(epsilons - shift, -np.inf), self.base.parameters[0])
        deltas = [
            self._delta_given(a, d) for a, d in zip(left.tolist(), both_sides(self.base, left).tolist(), strict=True)
        ]
        points, smallest = _smallest_before(self)
        row = np.searchsorted(points, left, side="right") - 1
        certified = np.where(row >= 0, np.minimum(deltas, smallest[np.maximum(row, 0)]), deltas)
        end = smallest[0]
        below = np.flatnonzero(left < 0.0)
        certified[below] = [
            min(certified[index], chord(float(epsilons[index]), (0.0, 1.0), (shift, end))) for index in below.tolist()
        ]
        epsilon, delta = self.parameters
        certified = np.where(epsilons >= epsilon, np.minimum(certified, delta), np.minimum(1.0, certified))
        # Independence of the noise meets every declaration of a dependence.
        return np.minimum(self.base.bracket(epsilons)[0], certified), certified

    def _delta_given(self, epsilon: float, delta: float) -> float:
        """Return what theorem 9 makes of one point of the noise's profile; `epsilon` may be below 0."""
        if delta == 0.0 and self.delta == 0.0:
            return 0.0
        with flint.ctx.workprec(128):
            dependence = flint.arb(self.epsilon)
            growth = (dependence + epsilon).exp() + 1
            return min(1.0, ball_above(growth * self.delta + dependence.exp() * delta))


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaked(WorstCase):
    """The profile of what is leaked in any case, between lives that leak the same: nothing.

    *Guarantee*: the number of people present is the same wherever a person is, and that of each group in whichever cell
    of her group she is. It says nothing else.
    """

    @property
    def parameters(self) -> tuple[float, float]:
        """Return (0, 0)."""
        return 0.0, 0.0

    def bracket(self, epsilons: Array) -> tuple[Array, Array]:
        """Return (attained, certified) arrays; see `pkdp_pipeline.theorems.bound.Bound`."""
        return np.zeros(len(epsilons)), np.zeros(len(epsilons))


@lru_cache(maxsize=64)
def _smallest_before(bound: GivenDependent) -> tuple[Array, Array]:
    """Return points from 0 to the end of the noise's profile, and the smallest sum of theorem 9 up to each."""
    points = np.linspace(0.0, bound.base.parameters[0], _GRID_SIZE)
    values = bound.base.bracket(points)[1]
    deltas = [bound._delta_given(a, d) for a, d in zip(points.tolist(), values.tolist(), strict=True)]
    return points, np.minimum.accumulate(np.array(deltas))


def both_sides(bound: Bound, epsilons: Array) -> Array:
    """Return the certified δ at ε of either sign: ``δ(-x) = 1 - e^{-x} (1 - δ(x))``, rounded up."""
    values = bound.bracket(np.abs(epsilons))[1]
    with flint.ctx.workprec(128):
        for index in np.flatnonzero(epsilons < 0.0).tolist():
            below = 1 - flint.arb(float(epsilons[index])).exp() * (1 - flint.arb(float(values[index])))
            values[index] = min(1.0, ball_above(below))
    return values


def _sum(*numbers: float) -> float:
    """Return the sum of numbers of at least 0, rounded up."""
    total = math.fsum(numbers)
    return total if sum(number > 0.0 for number in numbers) < 2 else math.nextafter(total, math.inf)
