"""The promise of noise whatever the attacker knows, and the change of a bound beside what leaks."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import flint
import numpy as np

from pkdp_pipeline.model.mechanisms import Protects
from pkdp_pipeline.theorems.bound import Bound, Derived, WorstCase
from pkdp_pipeline.theorems.inversion import chord
from pkdp_pipeline.theorems.losses import Losses, NoiseLosses
from pkdp_pipeline.theorems.rounding import Array, ball_above, ball_below, float_above

SAMPLER_LEEWAY = 2.0**-50
"""The noise drawn has an ε0 at most this much, relatively, below the declared one, and never above it.

A sampler whose scale is a float cannot hit every ε0. Wider noise is harmless where nothing is suppressed before
it, being the declared noise with more added; but it lifts a count that has just reached k above the release
threshold a little more often.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseCurve(WorstCase):
    """Privacy profile of two-sided geometric noise against an attacker who knows everybody else.

    Parameters
    ----------
    theorem : str
        Which statement uses the profile.
    noise : float
        ε0, the parameter of the noise: one person changes a cell by 1.
    cells : int
        The most cells a person is in.
    moves : bool
        Whether a person leaves this many cells and enters as many others (value), or is in them or absent (presence).
    table : int, optional
        With `moves`, how many cells there are, where they are not enough for all of these; at least `cells`.
    appears_at : int, optional
        ``release_threshold - k`` where counts below `k` are suppressed before the noise; None where nothing
        is suppressed before the noise.

    Notes
    -----
    With ``α = e^{-ε0}`` the loss of one noisy cell is ±ε0, so that of m is ``(2s - m) ε0`` with binomial weights. A
    count that has just reached `k` appears with probability ``δ0 = P[k + Z ≥ release_threshold]`` where none could
    appear before. Of the cells that the first life has alone any i may be such ones, of those of the other any j;
    the others lose ±ε0 each. The curve is the largest over i and j, in both orders, so of all neighbouring pairs; it
    is ``1 - (1 - δ0)^cells`` at ``ε = changes·ε0`` and beyond. In a small table the cells of both lives add up to
    no more than there are, and no life has all cells alone, or the other one would be absence: that is not attained,
    and certified nevertheless, so that lives that differ in the cells, in presence or in both are covered.

    *Guarantee*: never below the divergence of any pair of neighbouring inputs, for every ε0 within
    `SAMPLER_LEEWAY` of the declared one; attained, but for absence in a small table. *Rounding*: outward, about one
    part in 1e15 for each step between k and the release threshold. *Source*: `docs/mathematics.md`, "Two-sided
    geometric noise", and `docs/composition.md`, rule 10; Definition 19 of Desfontaines et al.
    """

    noise: float
    cells: int = 1
    moves: bool = False
    appears_at: int | None = None
    table: int | None = None

    @property
    def changes(self) -> int:
        """How many numbers change by 1 between two lives."""
        if self.moves:
            return 2 * self.cells if self.table is None else min(2 * self.cells, self.table)
        return self.cells

    @property
    def kinks(self) -> tuple[float, ...]:
        """See `pkdp_pipeline.theorems.bound.Bound`."""
        return tuple(cells * self.noise for cells in range(1, self.changes + 1))

    def losses(self, protects: Protects) -> tuple[Losses, ...]:
        """See `pkdp_pipeline.theorems.bound.Bound`."""
        return (NoiseLosses(noise=self.noise, cells=self.changes),) if self.appears_at is None else ()

    @property
    def _alone(self) -> int:
        """The most cells that one of two lives, both of them in some cell, has alone."""
        return self.cells if self.table is None else min(self.cells, self.table - 1)

    @property
    def parameters(self) -> tuple[float, float]:
        """Return (ε, δ) at which the guarantee holds for any attacker, both rounded up."""
        return _end(self)

    def bracket(self, epsilons: Array) -> tuple[Array, Array]:
        """Return (attained, certified) arrays; see `pkdp_pipeline.theorems.bound.Bound`."""
        sides = [_sides(self, epsilon) for epsilon in epsilons.tolist()]
        return np.array([side[0] for side in sides]), np.minimum(np.array([side[1] for side in sides]), 1.0)

    def _beyond(self) -> float:
        """Return δ where ε is so large that only what could not appear before tells anything."""
        with flint.ctx.workprec(_PRECISION):
            return min(1.0, ball_above(self._appearing()[-1][0])) if self.appears_at is not None else 0.0

    def _appearing(self) -> list[tuple[Any, Any]]:
        """Return the balls of `appearing` for cells that have just reached k."""
        return appearing(flint.arb(self.noise), self.appears_at, self.cells)

    def _bracket_at(self, epsilon: float) -> tuple[float, float]:
        end, beyond = self.parameters
        with flint.ctx.workprec(_PRECISION):
            appearing, growth = self._appearing(), flint.arb(min(epsilon, end)).exp()
            lower, upper = ball_below(appearing[self._alone][0]) if self.appears_at is not None else 0.0, beyond
            if epsilon >= end:
                return max(0.0, lower), upper
            slope = float(appearing[-1][1].log().mid()) / self.cells
            for (i, (appeared, hidden)), (j, (_, other)) in itertools.product(enumerate(appearing), repeat=2):
                if (i and j and not self.moves) or i + j > self.changes:
                    continue  # all cells are those of the one life, or there are not so many
                coins = self.changes - i - j
                tails = _tails(self.noise, coins)
                # Neyman-Pearson: the best test accepts the losses above ε, so all from some number of coins on. That
                # number is rounded, so its neighbours are tried as well.
                least = (coins + (epsilon + (j - i) * slope) / self.noise) / 2.0
                if math.isfinite(least):
                    least = math.floor(min(max(least, 0.0), coins))
                    tails = tails[max(0, least - 2) : least + 4]
                for first, second in tails:
                    loss = appeared + hidden * first - other * second * growth
                    upper = max(upper, ball_above(loss))
                    if 0 < self._alone >= max(i, j):
                        lower = max(lower, ball_below(loss))
        return max(0.0, lower), upper


def appearing(declared: Any, appears_at: int | None, cells: int) -> list[tuple[Any, Any]]:
    """Return the balls of ``1 - (1 - δ0)^i`` and ``(1 - δ0)^i`` for i cells up to all, ``δ0 = P[Z ≥ appears_at]``.

    `declared`: the ball of -log α of the noise. None for `appears_at`: no cell appears.
    """
    if appears_at is None:
        return [(flint.arb(0), flint.arb(1))]
    # Any ε0 that the sampler may have; of the losses ±ε0 the declared one is the largest.
    drawn = declared.union(declared * (1 - flint.arb(SAMPLER_LEEWAY)))
    above = appears_at >= 0
    tail = (-drawn * (appears_at if above else 1 - appears_at)).exp() / (1 + (-drawn).exp())
    appears, stays = (tail, 1 - tail) if above else (1 - tail, tail)
    balls = [(flint.arb(0), flint.arb(1))]
    for _ in range(cells):
        appeared, hidden = balls[-1]
        balls.append((appeared + hidden * appears, hidden * stays))
    return balls


@lru_cache(maxsize=512)
def _end(curve: NoiseCurve) -> tuple[float, float]:
    """Return the (ε, δ) at which a curve ends."""
    return float_above(curve.changes * Fraction(curve.noise)), curve._beyond()


@lru_cache(maxsize=512)
def _sides(curve: NoiseCurve, epsilon: float) -> tuple[float, float]:
    """Return both sides of a curve; every release of a ledger states those of its mechanism at the same places."""
    return curve._bracket_at(epsilon)


_PRECISION = 192
"""Bits of a ball: those of a float, and as many for differences of floats that are next to each other."""


@lru_cache(maxsize=512)
def _tails(noise: float, coins: int) -> tuple[tuple[Any, Any], ...]:
    """Return ``P[S ≥ s]`` and ``Q[S ≥ s]`` for s = 0 … `coins` cells whose loss is +ε0, each with its own noise."""
    with flint.ctx.workprec(_PRECISION):
        alpha = (-flint.arb(noise)).exp()
        tails, first, second = [], flint.arb(0), flint.arb(0)
        for s in range(coins, -1, -1):
            weight = flint.arb(math.comb(coins, s)) / (1 + alpha) ** coins
            first, second = first + weight * alpha ** (coins - s), second + weight * alpha**s
            tails.append((first, second))
        return tuple(reversed(tails))


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
