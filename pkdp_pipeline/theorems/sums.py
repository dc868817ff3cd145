"""The promise of noise on sums of clamped contributions, whatever the attacker knows."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, reduce
from typing import Any

import flint
import numpy as np

from pkdp_pipeline.theorems.bound import WorstCase
from pkdp_pipeline.theorems.rounding import Array, ball_above, ball_below, evaluated, float_above
from pkdp_pipeline.theorems.worst_case import appearing

_MAX_END = 500.0
"""Noise whose ε ends beyond this promises nothing before it."""

_BUDGET = 1e-10
"""Relative error of a profile on its lattice: sums of some thousand positive terms, some of them twice."""

_PAD = 2.0**-48
"""Relative error of a loss; that of ``log(1 - δ0)``, with the noise as it is drawn, is below 2^12 of these."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SumCurve(WorstCase):
    """Privacy profile of noisy sums of clamped contributions against an attacker who knows everybody else.

    Parameters
    ----------
    theorem : str
        Which statement uses the profile.
    noise : float
        ε0, the parameter of the noise where one person changes a sum by up to Δ, the larger size of `bounds`.
    bounds : tuple of two int
        The least and the most that a person adds to a cell she is in.
    cells : int
        The most cells a person is in.
    moves : bool
        Whether a person's two lives are in some cells each, with any contributions there (value), or she is in these
        cells or absent (presence).
    table : int, optional
        With `moves`, how many cells there are, where they are not enough for two lives in different ones.
    appears_at : int, optional
        Where cells are found in the data, the release threshold less the upper bound; None where they are declared.

    Notes
    -----
    A cell that one life has alone is shifted by up to Δ, one that both have by up to ``W = U - L``. With ``η = ε0/Δ`` a
    shift by d has the losses ``η (d - 2z)``, z = 0 … d, and the profile ``1 - e^{-η s}`` at ``ε = η (d - 2s)``, with
    chords in ``e^ε`` between these; it grows with d. Losses of several cells are convolved on that lattice. A cell that
    exists through one person alone appears with probability ``δ0 = P[U + Z ≥ release_threshold]``. The curve is the
    largest over how many cells both lives have, and how many of the others appear in either. It covers presence as well
    where it is about the value.

    *Guarantee*: never below the divergence of any pair of neighbouring inputs, for every ε0 within
    `pkdp_pipeline.theorems.worst_case.SAMPLER_LEEWAY` of the declared one. Attained, with four exceptions. A lattice of
    several cells with more than some thousand points is taken in groups of g units, each shift rounded up to whole
    groups, which dominates and is at most one in K later in ε where a shift has K groups; the attained side is moved
    down by as much, and by one group for each cell. Where many cells a person are found, all appear and all are
    shifted, which at most doubles δ. Absence in a small table, and ε beyond 500, count as disclosed. *Rounding*:
    outward. *Source*: `docs/mathematics.md`, "Sums".
    """

    noise: float
    bounds: tuple[int, int]
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
        step = max(2, 2 * (self.units // 128))
        return tuple(shift * self.noise / self.sensitivity for shift in range(self.units, 0, -step))[::-1]

    @property
    def parameters(self) -> tuple[float, float]:
        """Return (ε, δ) at which the guarantee holds for any attacker, both rounded up."""
        return _end(self)

    def rounding(self, epsilons: Array) -> Array:
        """See `pkdp_pipeline.theorems.bound.Bound`; close to the end of the curve a small loss is all that is left."""
        left = self.parameters[0] - epsilons
        share = np.where(left > 0.0, 64.0 * _PAD * (1.0 + epsilons) / np.where(left > 0.0, left, 1.0), 0.0)
        return np.minimum(1.0, evaluated(epsilons) + share)

    def bracket(self, epsilons: Array) -> tuple[Array, Array]:
        """Return (attained, certified) arrays; see `pkdp_pipeline.theorems.bound.Bound`."""
        end, beyond = self.parameters
        lower, upper = np.zeros(len(epsilons)), np.full(len(epsilons), beyond)
        if end > _MAX_END:
            return lower, np.where(epsilons >= end, beyond, 1.0)
        appears, log_hidden = _chances(self)
        for both, shifted, i, j, use in self._ways():
            law, slack = self._law(both, shifted)
            # Of the tests "nothing has appeared, and the loss is large" the other life passes (1 - δ0)^j of its own.
            points, pad = epsilons + (j - i) * log_hidden, _PAD * (epsilons + 2.0**12 * abs((j - i) * log_hidden))
            (appeared_least, appeared), (hidden_least, hidden) = appears[i]
            if use != "attained":
                profile = _profile(*law, points - pad) * (1.0 + _BUDGET)
                upper = np.maximum(upper, np.nextafter(appeared + hidden * profile, np.inf))
            if use != "certified":
                profile = _profile(*law, points + pad + slack) * (1.0 - _BUDGET)
                lower = np.maximum(lower, np.nextafter(appeared_least + hidden_least * profile, -np.inf))
        upper = np.where(epsilons >= end, beyond, np.minimum(1.0, upper))
        return np.clip(lower, 0.0, upper), upper

    def _ways(self) -> Iterator[tuple[int, int, int, int, str]]:
        """Yield how two lives differ: cells of both, cells shifted alone, cells that appear in either, and the use."""
        most = len(_chances(self)[0]) - 1
        few = (most + 1) ** 2 * len(self._lives) <= _MAX_WAYS
        for both, alone in self._lives:
            last = min(self.cells - both, alone, most)
            # The most cells that one of two lives, both of them in some cell, has alone.
            small = self.moves and self.table is not None and not both
            apart = min(self.cells, (self.table or 0) - 1) if small else self.cells
            every = [(i, j) for i in range(last + 1) for j in range(last + 1)] if few else [(0, 0), (last, 0)]
            for i, j in every:
                if i + j <= alone and (self.moves or not (i and j)):  # all cells are those of the one life
                    reached = 0 < apart >= max(i, j)
                    if few or reached:
                        yield both, alone - i - j, i, j, ("" if reached else "certified") if few else "attained"
            if not few:
                yield both, alone, last, last, "certified"

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


_MAX_WAYS = 150
"""Up to so many ways, all in which cells may appear are looked at: those of 10 cells, or 4 where a bound is below 0."""

_MAX_POINTS = 4096
"""Most points of the lattice of several cells, and a quarter as many for 10 cells or more and a bound below 0."""


@lru_cache(maxsize=512)
def _end(curve: SumCurve) -> tuple[float, float]:
    """Return the (ε, δ) at which a curve ends."""
    return float_above(curve.units * Fraction(curve.noise) / curve.sensitivity), _chances(curve)[0][-1][0][1]


@lru_cache(maxsize=512)
def _chances(curve: SumCurve) -> tuple[list[tuple[tuple[float, float], tuple[float, float]]], float]:
    """Return both sides of ``1 - (1 - δ0)^i`` and ``(1 - δ0)^i`` for i up to all cells, and ``log(1 - δ0)``."""
    with flint.ctx.workprec(192):
        balls = appearing(flint.arb(curve.noise) / curve.sensitivity, curve.appears_at, curve.cells)
        sides = [((0.0, 0.0), (1.0, 1.0)), *((_both(first), _both(second)) for first, second in balls[1:])]
        return sides, float(balls[-1][1].log().mid()) / curve.cells


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
    cell = np.clip(np.floor((size - epsilons / step) / 2.0), 0, size - 1).astype(np.int64)
    if sum(times for _, times in shifts) == 1:
        above, below = -np.expm1(-step * cell), -np.expm1(-step * (cell + 1))
    else:
        heights = _heights(step, shifts)
        above, below = heights[cell], heights[cell + 1]
    # Between two points of the lattice the profile is a chord in e^ε.
    inside = np.minimum(0.0, epsilons - step * (size - 2 * cell))
    chord = above + np.minimum(1.0, np.expm1(inside) / math.expm1(-2.0 * step)) * (below - above)
    return np.where(epsilons <= -step * size, _all(epsilons), chord)


def _all(epsilons: Array) -> Array:
    """Return ``max(0, 1 - e^ε)``, the difference where every outcome is accepted."""
    return -np.expm1(np.minimum(0.0, epsilons))


@lru_cache(maxsize=512)
def _heights(step: float, shifts: tuple[tuple[int, int], ...]) -> Array:
    """Return the profile of several cells at losses ``step (size - 2s)``, s = 0 … size: convex, so sums of slopes."""
    masses = reduce(np.convolve, (_masses(step, *shift) for shift in shifts))
    size = len(masses) - 1
    # The other life has the same masses the other way round: its chance of at least a loss is where the profile falls.
    slopes = np.exp(step * (size - 2.0 * np.arange(size))) * np.cumsum(masses[::-1])[:-1] * -math.expm1(-2.0 * step)
    return np.concatenate([[0.0], np.cumsum(slopes)])


@lru_cache(maxsize=512)
def _masses(step: float, width: int, times: int) -> Array:
    """Return masses of ``Σ z`` for so many cells that are shifted by `width`, z being their noise held to 0 … width."""
    if times > 1:
        return np.convolve(_masses(step, width, times - 1), _masses(step, width, 1))
    masses = np.exp(-step * np.arange(width + 1.0)) / (1.0 + math.exp(-step))
    masses[1:-1] *= -math.expm1(-step)
    return masses
