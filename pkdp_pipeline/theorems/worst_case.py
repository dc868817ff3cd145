"""The promise of noise whatever the attacker knows: on counts, and on sums of clamped contributions."""

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
from pkdp_pipeline.theorems.bound import WorstCase
from pkdp_pipeline.theorems.losses import Losses, NoiseLosses
from pkdp_pipeline.theorems.rounding import UNIT, Array, Whole, ball_above, ball_below, evaluated, float_above

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
