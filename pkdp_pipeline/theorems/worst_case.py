"""The promise of noise whatever the attacker knows, on counts and on clamped sums; and bounds beside what leaks.

A leakage changes the bound of a release: one that is private itself, one that depends on the noise, and one that is
the same in both lives.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, reduce
from itertools import accumulate
from typing import Any

import flint
import numpy as np

from pkdp_pipeline.model.mechanisms import Protects
from pkdp_pipeline.theorems.bound import Bound, Derived, Losses, NoiseLosses, WorstCase
from pkdp_pipeline.theorems.numerics import UNIT, Array, Whole, ball_above, ball_below, chord, evaluated, float_above

SAMPLER_LEEWAY = 2.0**-50
"""The noise drawn has an ε0 at most this much, relatively, below the declared one, and never above it.

A sampler whose scale is a float cannot hit every ε0. Wider noise is harmless where nothing is suppressed before
it, being the declared noise with more added; but it lifts a count that has just reached k above the release
threshold a little more often.
"""


_PAD = 2.0**-50
"""Relative error of a loss."""

_GRID_SIZE, _TOLERANCE = 400, 1e-12
"""An inversion looks at so many ε at once, until they are this close to each other, relatively."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NoisyCells(WorstCase):
    """Privacy profile of two-sided geometric noise in cells, against an attacker who knows everybody else.

    Parameters
    ----------
    theorem : str
        Which statement uses the profile.
    noise : float
        ε0, the parameter of the noise where one person changes a cell by up to Δ, the larger size of `bounds`.
    bounds : tuple of two int
        The least and the most that a person adds to a cell she is in; 1 of a count.
    cells : int
        The most cells a person is in.
    moves : bool
        Whether a person's two lives are in some cells each, with any contributions there (value), or she is in these
        cells or absent (presence).
    table : int, optional
        With `moves`, how many cells there are, where they are not enough for two lives in different ones.
    appears_at : int, optional
        Where a person alone can make a cell appear, the release threshold less the most that she shows there: of counts
        suppressed below k less `k`, of sums in cells found in the data less the upper bound; None where none appears.

    Notes
    -----
    A cell that one life has alone is shifted by up to Δ, one that both have by up to ``W = U - L``. With ``η = ε0/Δ`` a
    shift by d has the losses ``η (d - 2z)``, z = 0 … d, and the profile ``1 - e^{-η s}`` at ``ε = η (d - 2s)``, with
    chords in ``e^ε`` between these; it grows with d. Losses of several cells are convolved on that lattice; ±ε0 each,
    where these are counts. A cell that exists through one person alone appears with probability
    ``δ0 = P[Z ≥ appears_at]``. The curve is the largest over how many cells both lives have, and how many of the others
    appear in either. It covers presence as well where it is about the value: in a small table no life has all cells
    alone, or the other one would be absence, which is not attained, and certified nevertheless.

    *Guarantee*: never below the divergence of any pair of neighbouring inputs, for every ε0 within `SAMPLER_LEEWAY` of
    the declared one. Attained, with three exceptions. A lattice of several cells with more than some thousand points is
    taken in groups of g units, each shift rounded up to whole groups, which dominates and is at most one in K later in
    ε where a shift has K groups; the attained side is moved down by as much, and by one group for each cell. Where many
    cells of sums are found, all appear and all are shifted, which at most doubles δ. Absence in a small table counts as
    disclosed. *Rounding*: outward, a few units for each point of the lattice. *Source*: `docs/mathematics.md`,
    "Two-sided geometric noise" and "Sums", and `docs/composition.md`, rule 10; Definition 19 of Desfontaines et al.
    """

    noise: float
    bounds: tuple[int, int] = (1, 1)
    cells: int = 1
    moves: bool = False
    appears_at: int | None = None
    table: int | None = None

    @property
    def sensitivity(self) -> int:
        """Δ, by how much one person's being there changes a sum at most."""
        return max(map(abs, self.bounds))

    @property
    def _lives(self) -> list[tuple[int, int]]:
        """How many cells two lives have both, and how many one of them has alone."""
        if not self.moves:
            return [(0, self.cells)]
        table = 2 * self.cells if self.table is None else self.table
        # A smaller change of a cell in both tells less than leaving it for another one, if there is another one.
        both = min(self.cells, table) if self._width > self.sensitivity or table == 1 else 0
        return [(number, min(2 * (self.cells - number), table - number)) for number in range(both + 1)]

    @property
    def _width(self) -> int:
        return self.bounds[1] - self.bounds[0]

    @property
    def units(self) -> int:
        """By how much all sums together change at most between two lives."""
        return max(both * self._width + alone * self.sensitivity for both, alone in self._lives)

    @property
    def kinks(self) -> tuple[float, ...]:
        """See `pkdp_pipeline.theorems.bound.Bound`."""
        step = 1 if self.sensitivity == 1 else max(2, 2 * (self.units // 128))
        return tuple(shift * self.noise / self.sensitivity for shift in range(self.units, 0, -step))[::-1]

    @property
    def parameters(self) -> tuple[float, float]:
        """Return (ε, δ) at which the guarantee holds for any attacker, both rounded up."""
        return _end(self)

    def rounding(self, epsilons: Array) -> Array:
        """See `pkdp_pipeline.theorems.bound.Bound`; close to the end of the curve a small loss is all that is left."""
        left = self.parameters[0] - epsilons
        share = (self.sensitivity > 1) * 64.0 * _PAD * (1.0 + epsilons) / np.where(left > 0.0, left, np.inf)
        return np.minimum(1.0, evaluated(epsilons) + share)

    def bracket(self, epsilons: Array) -> tuple[Array, Array]:
        """Return (attained, certified) arrays; see `pkdp_pipeline.theorems.bound.Bound`."""
        end, beyond = self.parameters
        lower, upper = np.zeros(len(epsilons)), np.full(len(epsilons), beyond)
        appears, log_hidden = _chances(self)
        for both, shifted, i, j, use in _ways(self):
            (step, shifts), slack = self._law(both, shifted)
            several = sum(times for _, times in shifts)
            size = sum(width * times for width, times in shifts)
            budget = (4.0 * several * (size + 16.0) + 16.0 * min(end, 1e3) + 64.0) * UNIT
            # Of the tests "nothing has appeared, and the loss is large" the other life passes (1 - δ0)^j of its own.
            moved = np.sort((j - i)[:, None] * log_hidden, axis=1)[:, :, None]
            pad = _PAD * (epsilons * (self.sensitivity > 1) + abs(moved[:, 0]))
            (appeared_least, appeared), (hidden_least, hidden) = appears[i].transpose(1, 2, 0)[..., None]
            if use != "attained":
                profile = _profile(step, shifts, epsilons + moved[:, 0] - pad) * (1.0 + budget)
                upper = np.maximum(upper, np.nextafter(appeared + hidden * profile, np.inf).max(axis=0))
            if use != "certified":
                profile = _profile(step, shifts, epsilons + moved[:, 1] + pad + slack) * (1.0 - budget)
                lower = np.maximum(lower, np.nextafter(appeared_least + hidden_least * profile, -np.inf).max(axis=0))
        upper = np.where(epsilons >= end, beyond, np.minimum(1.0, upper))
        return np.clip(lower, 0.0, upper), upper

    def smallest_epsilon(self, target: float) -> float:
        """See `pkdp_pipeline.theorems.bound.Bound`; many ε at once cost as much as one."""
        low, high = 0.0, self.parameters[0]
        if not self.parameters[1] <= target:
            return math.inf
        while high - low > _TOLERANCE * high:
            points = np.linspace(low, high, _GRID_SIZE)
            place = int(np.argmax(self.certified(points) <= target))
            low, high = float(points[max(0, place - 1)]), float(points[place])
        return high

    def _law(self, both: int, alone: int) -> tuple[tuple[float, tuple[tuple[int, int], ...]], float]:
        """Return half the distance of two losses, widths of shifts in such steps with how many there are, and a slack.

        Shifts are rounded up to groups of units; the attained side is moved by at most the slack.
        """
        shifts = [(width, times) for width, times in ((self._width, both), (self.sensitivity, alone)) if times]
        size = 1
        if both + alone > 1:
            size = -(-self.units // (_MAX_POINTS if len(self._lives) <= 10 else _MAX_POINTS // 4))
        step = self.noise * size / self.sensitivity
        # A loss of a cell is below that of its group by one group, and the shift by less than another half.
        slack = 3.0 * (both + alone) * step if size > 1 else 0.0
        return (step, tuple((-(-width // size), times) for width, times in shifts)), slack


@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseCurve(NoisyCells):
    """Privacy profile of noise on counts: one person changes a cell by 1."""

    def losses(self, protects: Protects) -> tuple[Losses, ...]:
        """See `pkdp_pipeline.theorems.bound.Bound`."""
        return (NoiseLosses(noise=self.noise, cells=self.units),) if self.appears_at is None else ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SumCurve(NoisyCells):
    """Privacy profile of noise on sums of contributions that are clamped to `bounds`."""


_MAX_WAYS = 150
"""Up to so many ways, all in which cells may appear are looked at: those of 10 cells, or 4 where a bound is below 0."""

_MAX_POINTS = 4096
"""Most points of the lattice of several cells, and a quarter as many for 10 cells or more and a bound below 0."""


@lru_cache(maxsize=512)
def _ways(curve: NoisyCells) -> list[tuple[int, int, Whole, Whole, str]]:
    """Return how two lives differ: cells of both, cells shifted alone, cells that appear in either, and the use."""
    most = len(_chances(curve)[0]) - 1
    few = curve.sensitivity == 1 or (most + 1) ** 2 * len(curve._lives) <= _MAX_WAYS
    ways = []
    for both, alone in curve._lives:
        last = min(curve.cells - both, alone, most)
        # The most cells that one of two lives, both of them in some cell, has alone.
        small = curve.moves and curve.table is not None and not both
        apart = min(curve.cells, (curve.table or 0) - 1) if small else curve.cells
        i, j = (part.ravel() for part in np.indices((last + 1, last + 1)) * (1 if few else last))
        # Without a move all cells are those of the one life.
        possible = (i <= last) & (j <= last) & (i + j <= alone) & (curve.moves | (i * j == 0))
        for total in np.unique((i + j)[possible]).tolist():
            for reached in (True, False):
                way = possible & (i + j == total) & (reached == ((np.maximum(i, j) <= apart) & (apart > 0)))
                if way.any() and (few or reached):
                    use = ("" if reached else "certified") if few else "attained"
                    ways.append((both, alone - total, i[way], j[way], use))
        if not few:
            ways.append((both, alone, np.array([last]), np.array([last]), "certified"))
    return ways


@lru_cache(maxsize=512)
def _end(curve: NoisyCells) -> tuple[float, float]:
    """Return the (ε, δ) at which a curve ends."""
    return float_above(curve.units * Fraction(curve.noise) / curve.sensitivity), float(_chances(curve)[0][-1][0][1])


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
def _chances(curve: NoisyCells) -> tuple[Array, Array]:
    """Return both sides of ``1 - (1 - δ0)^i`` and ``(1 - δ0)^i`` for i up to all cells, and of ``log(1 - δ0)``."""
    with flint.ctx.workprec(192):
        balls = appearing(flint.arb(curve.noise) / curve.sensitivity, curve.appears_at, curve.cells)
        sides = [((0.0, 0.0), (1.0, 1.0)), *((_both(first), _both(second)) for first, second in balls[1:])]
        log_hidden = balls[-1][1].log() / curve.cells
        # Beyond all floats the chance to stay hidden is between 0 and 1.
        logs = np.nan_to_num([ball_below(log_hidden), min(0.0, ball_above(log_hidden))], nan=-1e300)
        return np.array(sides), np.maximum(logs, -1e300)


def _both(ball: Any) -> tuple[float, float]:
    """Return both sides of a chance."""
    return max(0.0, ball_below(ball)), min(1.0, ball_above(ball))


def _profile(step: float, shifts: tuple[tuple[int, int], ...], epsilons: Array) -> Array:
    """Return ``P[S ≥ s] - e^ε Q[S ≥ s]`` at its largest, for ε of either sign.

    Of one cell it is ``1 - e^{-η s}`` at lattice point s; of several it is summed up from there.
    """
    size = sum(width * times for width, times in shifts)
    if not size:
        return _all(epsilons)
    points = np.clip(epsilons, -step * size, 2.0 * step * size)
    cell = np.clip(np.floor((size - points / step) / 2.0), 0, size - 1).astype(np.int64)
    if sum(times for _, times in shifts) == 1:
        above, below = -np.expm1(-step * cell), -np.expm1(-step * (cell + 1))
    else:
        heights = _heights(step, shifts)
        above, below = heights[cell], heights[cell + 1]
    # Between two points of the lattice the profile is a chord in e^ε. Products with either half of `step` are exact.
    mantissa, exponent = math.frexp(step)
    half = math.ldexp(round(mantissa * 2.0**26), exponent - 26)
    inside = np.minimum(0.0, points - (size - 2 * cell) * half - (size - 2 * cell) * (step - half))
    chord = above + np.minimum(1.0, np.expm1(inside) / math.expm1(-2.0 * step)) * (below - above)
    return np.where(epsilons <= -step * size, _all(epsilons), chord)


def _all(epsilons: Array) -> Array:
    """Return ``max(0, 1 - e^ε)``, the difference where every outcome is accepted."""
    return -np.expm1(np.minimum(0.0, epsilons))


@lru_cache(maxsize=512)
def _heights(step: float, shifts: tuple[tuple[int, int], ...]) -> Array:
    """Return the profile of several cells at losses ``step (size - 2s)``, s = 0 … size: convex, so sums of slopes."""
    masses = reduce(np.convolve, (_masses(step, *shift) for shift in shifts))
    # From one point to the next the profile grows by (1 - e^{-2η}) Σ_{j≤s} P[j] e^{-2η(s - j)}: the losses' symmetry.
    decay = math.exp(-2.0 * step)
    sums = accumulate(masses[:-1].tolist(), lambda total, mass: decay * total + mass)
    return np.cumsum([0.0, *(-math.expm1(-2.0 * step) * total for total in sums)])


@lru_cache(maxsize=512)
def _masses(step: float, width: int, times: int) -> Array:
    """Return masses of ``Σ z`` for so many cells that are shifted by `width`, z being their noise held to 0 … width."""
    if times > 1:
        return np.convolve(_masses(step, width, times - 1), _masses(step, width, 1))
    masses = np.exp(-step * np.arange(width + 1.0)) / (1.0 + math.exp(-step))
    masses[1:-1] *= -math.expm1(-step)
    return masses


_LEAKED_GRID_SIZE = 96
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
    points = np.linspace(0.0, bound.base.parameters[0], _LEAKED_GRID_SIZE)
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
