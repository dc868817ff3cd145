"""Products of many laws by one Fourier transform, exponentially tilted, with a budget for its rounding.

The masses of every factor are multiplied by ``e^{λx}`` and divided by their sum before they are transformed, so that
the losses that matter at a small δ become the likely ones and keep their relative accuracy. What is asked of
the product is ``Σ_x q(x) k(x)`` for a kernel `k`; by Parseval's identity only those frequencies are needed at which
the product has not vanished, which are few when there are many factors. The budget is derived in
`docs/numerics.md`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pkdp_pipeline.composition.grid_law import GridLaw
from pkdp_pipeline.theorems.rounding import UNIT, Array

Complex = NDArray[np.complex128]

_FFT = 10.0
"""A transform of N numbers errs in the l2 norm by at most this many ``log2(N)·2^-53``, relatively."""

_VANISHED = 1e-22
"""Frequencies are dropped where the product is below this share of its largest value; what is dropped is charged."""

_UNDERFLOWN = 1e-280


@dataclass(frozen=True, slots=True, kw_only=True)
class Factor:
    """One law, `times` times."""

    law: GridLaw
    times: int


@dataclass(frozen=True, slots=True)
class Choice:
    """`times` releases, of which any number from `least` to `most` has the law `right`, and the others `left`."""

    right: GridLaw
    left: GridLaw
    times: int
    least: int
    most: int

    @property
    def ways(self) -> int:
        """Return how many numbers there are to choose from."""
        return self.most - self.least + 1


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Rung:
    """The product at one tilt.

    Parameters
    ----------
    rate : float
        Exponent per cell.
    period : int
        Length of the transforms.
    kept : array of int
        Frequencies in use.
    first, second : arrays, shapes (ways, kept), (other ways, kept)
        The product of a row of one and a row of the other is the transform of one choice of directions.
    error : float
        At or above the error of every tilted mass of the product, whatever the choice.
    size : float
        At or above the l2 norm of the transform, over all frequencies.
    """

    rate: float
    period: int
    kept: NDArray[np.int64]
    first: Complex
    second: Complex
    error: float
    size: float

    def pair_with(self, kernel: Array, start: int, leading: bool) -> tuple[Array, float]:
        """Return ``Σ q(x) kernel(x)`` for every choice (or for the last one), and a bound on the error.

        Parameters
        ----------
        kernel : array
            Non-negative, for the cells ``start, start + 1, …``; no longer than the period.
        start : int
        leading : bool
            Only the choice with the most `right` laws.
        """
        size = self.period
        folded = np.zeros(size)
        first = start % size
        head = min(len(kernel), size - first)
        folded[first : first + head] = kernel[:head]
        folded[: len(kernel) - head] = kernel[head:]
        weights = np.conj(np.fft.rfft(folded)[self.kept]) * (2.0 / size)
        weights[self.kept % size == 0] *= 0.5
        weights[self.kept == size // 2] *= 0.5
        one, other = (self.first[-1:], self.second[-1:]) if leading else (self.first, self.second)
        # A BLAS pays off for many choices only.
        many = len(one) > 1 and len(other) > 1
        values: Array = ((one * weights) @ other.T).real if many else (one * other * weights).real.sum(axis=1)
        values = values.reshape(len(one), len(other))
        length = math.sqrt(float(np.square(kernel).sum())) * (1.0 + len(kernel) * UNIT)
        budget = (_FFT * math.log2(size) + 4.0 * len(self.kept) + 40.0) * UNIT
        error = self.error * float(kernel.sum()) + budget * self.size * length / math.sqrt(size)
        return values, error * (1.0 + 1e-6)


def make_rung(factors: Sequence[Factor], choices: Sequence[Choice], rate: float, period: int) -> Rung:
    """Multiply the transforms of all factors and choices of directions, drop frequencies, and bound the error.

    Beside the product `log_size` bounds its size at each frequency; `spoilt` is ``Σ (T ē/m)²`` over the factors: T
    times, error at most ē, size at most m.
    """
    half = period // 2 + 1
    product, log_size, spoilt = np.ones(half, dtype=np.complex128), np.zeros(half), np.zeros(half)
    for factor in factors:
        transform, error = _transform(factor.law, rate, factor.law.tilted(rate).log_moment, period)
        size = np.abs(transform) + error
        product *= _power(transform, factor.times)
        log_size += factor.times * np.log(size)
        spoilt += (factor.times * error / size) ** 2
    pairs = []
    for choice in choices:
        scale = max(law.tilted(rate).log_moment for law in (choice.right, choice.left))
        right, error = _transform(choice.right, rate, scale, period)
        left, other_error = _transform(choice.left, rate, scale, period)
        error = max(error, other_error)
        size = np.maximum(np.abs(right), np.abs(left)) + error
        log_size += choice.times * np.log(size)
        spoilt += (choice.times * error / size) ** 2
        pairs.append((choice, right, left))
    multiplications = sum(factor.times + 1 for factor in factors) + sum(choice.times + 1 for choice in choices)
    with np.errstate(under="ignore"):
        sizes = np.exp(np.minimum(log_size, 700.0)) * (1.0 + 1e-6)
        spoiling = math.sqrt(2.0 * (len(factors) + len(choices)) * float((sizes * sizes * spoilt).sum()))
        norm = math.sqrt(2.0 * float((sizes * sizes).sum()))
    kept = np.flatnonzero(sizes > _VANISHED * float(sizes.max()))
    dropped = 2.0 * float(np.delete(sizes, kept).sum())
    rounding = 2.0 * (8.0 * multiplications + 60.0) * UNIT * float(sizes.sum())
    first = np.ones((1, len(kept)), dtype=np.complex128)
    second = product[kept][None, :]
    for choice, right, left in pairs:
        rows = _powers(right[kept], choice.times)[choice.least : choice.most + 1]
        others = _powers(left[kept], choice.times)[choice.times - choice.most : choice.times - choice.least + 1]
        rows = rows * others[::-1]
        if len(first) <= len(second):
            first = (first[:, None, :] * rows[None, :, :]).reshape(-1, len(kept))
        else:
            second = (second[:, None, :] * rows[None, :, :]).reshape(-1, len(kept))
    error = (rounding + spoiling + dropped) / period * (1.0 + 1e-6) + _UNDERFLOWN
    return Rung(rate=rate, period=period, kept=kept, first=first, second=second, error=error, size=norm)


def _transform(law: GridLaw, rate: float, scale: float, period: int) -> tuple[Complex, float]:
    """Return the transform of the tilted masses, folded onto the period, and a bound on its l2 error."""
    masses = law.tilted_masses(rate, scale)
    folded = np.zeros(period)
    at = 0
    while at < len(masses):
        first = (law.start + at) % period
        piece = masses[at : at + period - first]
        folded[first : first + len(piece)] += piece
        at += len(piece)
    length = math.sqrt(float(np.square(folded).sum())) * (1.0 + period * UNIT)
    folds = len(masses) // period + 2
    error = (_FFT * math.log2(period) + folds) * UNIT * math.sqrt(period) * length
    return np.fft.rfft(folded), error


def _power(base: Complex, times: int) -> Complex:
    """Return ``base**times`` by repeated squaring: at most `times` roundings add up."""
    result: Any = None
    while True:
        if times & 1:
            result = base if result is None else result * base
        times >>= 1
        if not times:
            return np.ones_like(base) if result is None else result
        base = base * base


def _powers(base: Complex, times: int) -> Complex:
    """Return ``base**0 … base**times``, row by row."""
    rows = np.empty((times + 1, len(base)), dtype=np.complex128)
    rows[0] = 1.0
    for row in range(times):
        np.multiply(rows[row], base, out=rows[row + 1])
    return rows
