"""All choices of directions at once, where they are too many to be looked at one by one.

At one frequency let ``R_d``, ``L_d`` be the transforms of release d in its two orders and ``Δ_d = log(R_d/L_d)/2``.
The total of a choice is ``Π R_d · exp(-2 Σ_l Δ_d)``, the sum over the releases in the order `left`; the branch of
the logarithm does not matter. With ``U = Σ Δ_d`` and any ``a_d ≥ 0`` that do not depend on the frequency and add up
to 1, write ``Δ_d = a_d U + e_d``. Then ``Σ e_d = 0``, and with ``x = 1 - 2 Σ_l a_d``, between -1 and 1,

    total = Π R_d · exp(-(1-x)U) · exp(E),   E = -2 Σ_l e_d,   |E| ≤ min((1 - |x|) max_d |e_d|/a_d, Σ |e_d|),

because E is also ``2 Σ_r e_d`` over the releases in the order `right`. For weights w,
``F(x) = Re Σ w Π R_d exp(-(1-x)U)`` lies between two of 33 values of x at most ``g²/8 · Σ |w| |U|² G`` above the
larger one, with their distance g and G the larger magnitude at the two; ``exp(E)`` changes it by at most
``Σ |w| G (e^{|E|} - 1)``. Where that is more than twice the size of all totals, or a transform is 0, twice that size
is added instead. The bound is the largest over the 32 intervals; at x = ±1 all releases go one way, and E is 0.

Laws are rows of tables. The transform of a row is computed with the shortest period that holds it. Between two such
frequencies ``|T|²`` exceeds the larger value by ``(π/n)² m² v`` at most, for n frequencies, total mass m and
variance v, since ``|T|² = Σ q_i q_j cos((i-j)θ)`` has a second derivative of at most ``2 m² v``. That bounds the
product at all frequencies; those where it counts are summed directly, with an error of ``2(n + 32)u m``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pkdp_pipeline.composition.loss_laws import GridLaw
from pkdp_pipeline.theorems.rounding import UNIT, Array

Complex = NDArray[np.complex128]

_GRID_POINTS = 33
"""Values of x that are looked at."""

_FFT_ERROR = 10.0
"""A transform of N numbers errs in the l2 norm by at most this many ``log2(N)·2^-53``, relatively."""


_BATCH_SIZE = 64
"""This many releases share a table."""

_MAX_EXPONENT = 600.0
"""Largest exponent of one mass."""

_MAX_DIRECT_FREQUENCIES = 512
"""Up to this many frequencies are summed directly."""


@dataclass(frozen=True, slots=True, eq=False)
class LossTable:
    """The laws of some releases, in both orders, as rows of one table.

    Parameters
    ----------
    times : array, shape (n,)
        How many releases are alike.
    starts : array of int, shape (2, n, 1)
        The cell of a row's first mass; orders `right` first.
    masses : array, shape (2, n, width)
    """

    times: Array
    starts: NDArray[np.int64]
    masses: Array

    @property
    def steepest(self) -> float:
        """Return the largest exponent per cell that keeps all numbers finite."""
        return _MAX_EXPONENT / int(self.masses.shape[2])

    def tilted(self, rate: float) -> tuple[Array, Array, Array]:
        """Return logarithms of moments, means and variances under the exponent `rate` per cell, shape (2, n)."""
        steps = np.arange(self.masses.shape[2], dtype=np.float64)
        tilts = np.exp(rate * steps)
        sums = _multiplied(self.masses, np.stack([tilts, tilts * steps, tilts * steps**2], axis=1))
        total, mean, square = np.moveaxis(sums, 2, 0)
        mean, square, starts = mean / total, square / total, self.starts[..., 0]
        return np.log(total) + rate * starts, starts + mean, np.maximum(0.0, square - mean * mean)

    def spectrum(self, rate: float, period: int) -> Spectrum:
        """Return transforms of the tilted masses with so long a period."""
        moments, _, variances = self.tilted(rate)
        width, scales = self.masses.shape[2], moments.max(axis=0)[None, :, None]
        tilts, shifts = rate * np.arange(width), rate * self.starts - scales
        pads = 1.0 + UNIT * (4.0 * tilts + 16.0), 1.0 + UNIT * (8.0 * np.abs(rate * self.starts) + 8.0 * np.abs(scales))
        masses = self.masses * (np.exp(tilts) * pads[0]) * (np.exp(shifts) * pads[1])
        totals = masses.sum(axis=2, keepdims=True) * (1.0 + width * UNIT)
        lengths = np.sqrt(np.square(masses).sum(axis=2, keepdims=True)) * (1.0 + width * UNIT)
        size = 2 ** math.ceil(math.log2(width + 1))
        longer = max(size, period)
        doubt = UNIT * ((_FFT_ERROR * math.log2(longer) + width // period + 2.0) * math.sqrt(longer) * lengths)
        doubt = np.maximum(doubt, 2.0 * (width + 32.0) * UNIT * totals)
        squares = (np.abs(np.fft.rfft(masses, size, axis=2)) + doubt) ** 2
        # Between two frequencies |T|² exceeds the larger one by its curvature, at most 2 m² times the variance.
        spread = totals[..., 0] ** 2 * (1.01 * variances + 1e-9 * width * width)
        squares = np.maximum(squares[..., :-1], squares[..., 1:]) + ((math.pi / size) ** 2 * spread)[..., None]
        sizes = np.sqrt(squares.max(axis=0))
        bound = np.minimum(np.arange(period // 2 + 1) * size // period, sizes.shape[1] - 1)
        return Spectrum(table=self, masses=masses, period=period, sizes=sizes, bound=bound, doubt=doubt.max(axis=0))


def loss_tables(pairs: Sequence[tuple[tuple[GridLaw, ...], int]]) -> tuple[LossTable, ...]:
    """Return tables of pairs of laws, each with the number of releases that have it; those of like length together."""
    ordered = sorted(pairs, key=lambda pair: max(len(law.masses) for law in pair[0]))
    tables = []
    for start in range(0, len(ordered), _BATCH_SIZE):
        batch = ordered[start : start + _BATCH_SIZE]
        masses = np.zeros((2, len(batch), max(len(law.masses) for law in batch[-1][0])))
        for row, (laws, _) in enumerate(batch):
            for order, law in enumerate(laws):
                masses[order, row, : len(law.masses)] = law.masses
        starts = np.array([[[law.start] for law in order] for order in zip(*(laws for laws, _ in batch), strict=True)])
        tables.append(LossTable(np.array([float(times) for _, times in batch]), starts, masses))
    return tuple(tables)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Spectrum:
    """Transforms of a table: bounds of their sizes everywhere, and their values where these are asked for.

    Parameters
    ----------
    masses : array, shape (2, n, width)
    sizes : array, shape (n, bounds)
        At or above the magnitude of either transform.
    bound : array of int
        Which bound is that of a frequency.
    doubt : array, shape (n, 1)
        At or above the error of one value.
    """

    table: LossTable
    masses: Array
    period: int
    sizes: Array
    bound: NDArray[np.int64]
    doubt: Array

    def log_sizes(self) -> Array:
        """Return at or above the logarithm of the magnitude of the product of every choice, at all frequencies."""
        together: Array = ((self.table.times[:, None] * np.log(self.sizes)).sum(axis=0) + 1e-9)[self.bound]
        return together

    def spoilt(self, kept: NDArray[np.int64]) -> Array:
        """Return how far the errors of all values spoil the product, as a share of its size, at each frequency."""
        shares: Array = (self.table.times[:, None] * self.doubt / self.sizes).sum(axis=0)[self.bound[kept]]
        return shares

    def values(self, kept: NDArray[np.int64]) -> Complex:
        """Return the transforms, shape (2, n, frequencies)."""
        width, period = self.masses.shape[2], self.period
        turns = np.exp(-2j * np.pi / period * np.arange(period))
        if len(kept) <= _MAX_DIRECT_FREQUENCIES:
            waves = turns[np.multiply.outer(np.arange(width), kept) % period]
            values = _multiplied(self.masses, waves.real.copy()) + 1j * _multiplied(self.masses, waves.imag.copy())
        else:
            folded = np.zeros((*self.masses.shape[:2], period))
            for start in range(0, width, period):
                piece = self.masses[..., start : start + period]
                folded[..., : piece.shape[2]] += piece
            values = np.fft.rfft(folded, axis=2)[..., kept]
        result: Complex = values * turns[self.table.starts * kept % period]
        return result


def _multiplied(rows: Array, columns: Array) -> Array:
    """Return the product of matrices, in pieces so small that no BLAS starts threads: they cost more than they save."""
    most = max(4, 2**17 // (8 * rows.shape[2]))
    result = np.empty((*rows.shape[:2], columns.shape[1]))
    for start in range(0, columns.shape[1], most):
        piece = np.ascontiguousarray(columns[:, start : start + most])
        for row in range(0, rows.shape[1], 8):
            result[:, row : row + 8, start : start + most] = rows[:, row : row + 8] @ piece
    return result


def cover(right: Complex, left: Complex, times: Array, others: Complex, sizes: Array) -> tuple[Complex, Array]:
    """Return transforms, and how far a choice may be from one of two neighbours, at each frequency.

    Parameters
    ----------
    right, left : arrays, shape (releases, frequencies)
    times : array, shape (releases,)
        How many releases are alike.
    others : array, shape (frequencies,)
        The product of all other factors.
    sizes : array, shape (frequencies,)
        At or above the magnitude of the total of every choice.

    Returns
    -------
    rows : array, shape (n, frequencies)
    apart : array, shape (n - 1, frequencies)

    Notes
    -----
    *Guarantee*: for every choice there is an `i` such that for all weights `w` the sum ``Re Σ w · total`` is at most
    the larger one of ``Re Σ w · rows[i]`` and ``Re Σ w · rows[i+1]`` plus ``Σ |w| · apart[i]``. *Rounding*: up; that of
    `rows` is charged with the product.
    """
    # In the module's docstring Δ_d is `half`, U `together`, a_d `shares` and e_d `rest`. Any a_d is sound; these follow
    # the frequencies at which the total is large.
    counts = times[:, None]
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        logs, half = np.log(right), 0.5 * np.log(right / left)
    lost = ~(np.isfinite(half) & np.isfinite(logs)).all(axis=0)
    half[:, lost] = logs[:, lost] = 0.0
    together = (counts * half).sum(axis=0)
    shares = np.maximum(0.0, (half * np.conj(together) * sizes).real.sum(axis=1))
    whole = float((times * shares).sum())
    shares = shares / whole if whole > 0.0 else np.full(len(times), 1.0 / times.sum())
    rest = np.abs(half - shares[:, None] * together) + 8.0 * UNIT * (np.abs(half) + np.abs(together))
    with np.errstate(divide="ignore", over="ignore"):
        steepest = np.divide(rest, shares[:, None], out=np.zeros_like(rest), where=rest > 0.0).max(axis=0)
    most = (counts * rest).sum(axis=0)
    places = np.linspace(-1.0, 1.0, _GRID_POINTS)
    rows: Complex = others * np.exp((counts * logs).sum(axis=0) + (places - 1.0)[:, None] * together)
    rows[:, lost] = 0.0
    larger = np.maximum(np.abs(rows[1:]), np.abs(rows[:-1]))
    gap = 2.0 / (_GRID_POINTS - 1)
    away = 1.0 - np.minimum(np.abs(places[1:]), np.abs(places[:-1]))
    left_over = np.minimum(np.minimum(away[:, None] * steepest, most), 40.0)
    apart = larger * (gap * gap / 8.0 * np.abs(together) ** 2 + np.expm1(left_over)) * (1.0 + 1e-6)
    return rows, np.where(lost | (left_over >= 40.0), 2.0 * sizes, np.minimum(apart, 2.0 * sizes))
