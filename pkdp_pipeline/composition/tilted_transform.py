"""Products of many laws by one Fourier transform, exponentially tilted, with a budget for its rounding.

The masses of every factor are multiplied by ``e^{λx}`` and divided by their sum before they are transformed, so that
the losses that matter at a small δ become the likely ones and keep their relative accuracy. The number asked
of the product is ``Σ_x q(x) k(x)`` for a kernel `k`; by Parseval's identity only those frequencies are needed at which
the product has not vanished, which are few when there are many factors. The budget is derived in
`docs/numerics.md`.

A cover bounds all choices of directions at once, where they are too many to be looked at one by one.

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
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import wraps
from typing import Any, Generic, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from pkdp_pipeline.composition.loss_laws import _FFT_ERROR, GridLaw, LossTable, loss_tables, transforms
from pkdp_pipeline.theorems.numerics import UNIT, Array

Complex = NDArray[np.complex128]

_Rows = TypeVar("_Rows", bound=NDArray[Any])

_NEGLIGIBLE_SHARE = 1e-22
"""Frequencies are dropped where the product is below this share of its largest value; what is dropped is charged."""

_UNDERFLOW = 1e-280

_GRID_POINTS = 33
"""Values of x that are looked at."""

_Law = TypeVar("_Law")


@dataclass(frozen=True, slots=True, kw_only=True)
class Factor(Generic[_Law]):
    """`times` releases with one law; or with one of two: any number from `least` to `most` has the first of them.

    With `covered` the choices are not looked at one by one, but all together.
    """

    laws: tuple[_Law, ...]
    times: int
    least: int = 0
    most: int = 0
    covered: bool = False

    @property
    def ways(self) -> int:
        """Return how many numbers there are to choose from."""
        return 1 if self.covered else self.most - self.least + 1


Factors = Sequence[Factor[GridLaw]]


@dataclass(frozen=True, slots=True, eq=False)
class Moments:
    """A product at one tilt: logarithm of its moment, range of its mean and its deviation in cells.

    `size` is the sum of the sizes of what the logarithm is a sum of, `factors` the number of laws multiplied.
    """

    log_moment: float
    size: float
    factors: int
    low: float
    high: float
    deviation: float


def moments_of(factors: Factors, rate: float, tables: Sequence[LossTable] = ()) -> Moments:
    """Return the moments of the product of all factors under the exponent `rate` per cell."""
    logs: list[float] = []
    low = high = variance = 0.0
    for table in tables:
        moments, means, variances = table.tilted(rate)
        logs += (table.times * moments.max(axis=0)).tolist()
        low += float((table.times * means.min(axis=0)).sum())
        high += float((table.times * means.max(axis=0)).sum())
        variance += float((table.times * variances.max(axis=0)).sum())
    for factor in factors:
        if factor.covered:
            continue
        tilts = [law.tilted(rate) for law in factor.laws]
        logs.append(factor.times * max(tilt.log_moment for tilt in tilts))
        ends = [n * tilts[0].mean + (factor.times - n) * tilts[-1].mean for n in (factor.least, factor.most)]
        low += min(ends)
        high += max(ends)
        variance += factor.times * max(tilt.variance for tilt in tilts)
    size, many = math.fsum(map(abs, logs)), sum(factor.times for factor in factors)
    return Moments(math.fsum(logs), size, many, low, high, math.sqrt(variance))


def reach_of(factors: Factors) -> tuple[int, int]:
    """Return the first and last cell that the product can reach."""
    first = sum(factor.times * min(law.start for law in factor.laws) for factor in factors)
    return first, sum(factor.times * max(law.last for law in factor.laws) for factor in factors)


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
    apart : array or None, shape (ways - 1, kept)
        Where rows of the first cover choices: how far these may be from one of two neighbours.
    """

    rate: float
    period: int
    kept: NDArray[np.int64]
    first: Complex
    second: Complex
    error: float
    size: float
    apart: Array | None = None

    def pair_with(self, kernel: Array, start: int, leading: bool) -> tuple[Array, float, float]:
        """Return ``Σ q(x) kernel(x)`` for every choice (or for the last one), and a bound on the error.

        The third is the share of the largest of them by which a cover of choices may be too large.

        Parameters
        ----------
        kernel : array
            Non-negative, for the cells ``start, start + 1, …``; no longer than the period.
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
        fewest = 1 if self.apart is None else 2
        rows, others = (self.first[-fewest:], self.second[-1:]) if leading else (self.first, self.second)
        # A BLAS pays off for many choices only.
        many = len(rows) > 1 and len(others) > 1
        values: Array = ((rows * weights) @ others.T).real if many else (rows * others * weights).real.sum(axis=1)
        values = values.reshape(len(rows), len(others))
        spare = 0.0
        if self.apart is not None:
            doubt = (self.apart[1 - len(rows) :] * np.abs(weights)).sum(axis=1) * (1.0 + 1e-9)
            least, values = float(values.max()), np.maximum(values[1:], values[:-1]) + doubt[:, None]
            spare = 1.0 - max(0.0, least) / max(float(values.max()), 1e-300)
        length = math.sqrt(float(np.square(kernel).sum())) * (1.0 + len(kernel) * UNIT)
        budget = (_FFT_ERROR * math.log2(size) + 4.0 * len(self.kept) + 40.0) * UNIT
        error = self.error * float(kernel.sum()) + budget * self.size * length / math.sqrt(size)
        return values, error * (1.0 + 1e-6), spare


def make_rung(factors: Factors, rate: float, period: int, tables: Sequence[LossTable] = ()) -> Rung:
    """Multiply the transforms of all factors, for every choice of directions, drop frequencies, and bound the error.

    Beside the product `log_size` bounds its size at each frequency; `spoilt` is ``Σ (T ē/m)²`` over the factors: T
    times, error at most ē, size at most m.
    """
    half = period // 2 + 1
    product, log_size, spoilt = np.ones(half, dtype=np.complex128), np.zeros(half), np.zeros(half)
    choices: list[tuple[Factor[GridLaw], tuple[Complex, ...]]] = []
    alone = [factor for factor in factors if not factor.covered]
    for factor in alone:
        scale = max(law.tilted(rate).log_moment for law in factor.laws)
        transformed, errors = zip(*(_transform(law, rate, scale, period) for law in factor.laws), strict=True)
        size = np.max([np.abs(transform) for transform in transformed], axis=0) + max(errors)
        log_size += factor.times * np.log(size)
        spoilt += (factor.times * max(errors) / size) ** 2
        if len(transformed) == 1:
            product *= _power(transformed[0], factor.times)
        else:
            choices.append((factor, transformed))
    multiplications = sum((4 if factor.covered else 1) * factor.times + 1 for factor in factors)
    spectra = [table.spectrum(rate, period) for table in tables]
    sizes = _size(log_size + sum(spectrum.log_sizes for spectrum in spectra))
    kept = np.flatnonzero(sizes > _NEGLIGIBLE_SHARE * float(sizes.max()))
    dropped, spoiling = 2.0 * float(np.delete(sizes, kept).sum()), 0.0
    first = np.ones((1, len(kept)), dtype=np.complex128)
    second, apart = product[kept][None, :], None
    if spectra:
        right, left = transforms(spectra, kept)
        times = np.concatenate([table.times for table in tables])
        # Where a frequency is kept, sizes follow from the values there.
        doubt = np.concatenate([spectrum.doubt for spectrum in spectra])
        magnitudes = np.maximum(np.abs(right), np.abs(left)) + doubt
        sizes[kept] = _size(log_size[kept] + (times[:, None] * np.log(magnitudes)).sum(axis=0) + 1e-9)
        spoiling = 2.0 * float((sizes[kept] * times[:, None] * doubt / magnitudes).sum())
        first, apart = cover(right, left, times, product[kept], sizes[kept])
        second = np.ones((1, len(kept)), dtype=np.complex128)
    with np.errstate(under="ignore"):
        spoiling += math.sqrt(2.0 * len(alone) * float((sizes * sizes * spoilt).sum()))
        norm = math.sqrt(2.0 * float((sizes * sizes).sum()))
    rounding = 2.0 * (8.0 * multiplications + 60.0) * UNIT * float(sizes.sum())
    for factor, (right, left) in choices:
        rows = _powers(right[kept], factor.times)[factor.least : factor.most + 1]
        others = _powers(left[kept], factor.times)[factor.times - factor.most : factor.times - factor.least + 1]
        first, second = joined(first, second, rows * others[::-1], np.multiply)
    error = (rounding + spoiling + dropped) / period * (1.0 + 1e-6) + _UNDERFLOW
    return Rung(rate=rate, period=period, kept=kept, first=first, second=second, error=error, size=norm, apart=apart)


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


def _size(log_size: Array) -> Array:
    """Return at or above the exponentials of what is at or above logarithms of sizes."""
    with np.errstate(under="ignore"):
        result: Array = np.exp(np.minimum(log_size, 700.0)) * (1.0 + 1e-6)
    return result


def joined(first: _Rows, second: _Rows, rows: _Rows, join: np.ufunc) -> tuple[_Rows, _Rows]:
    """Return both tables, the shorter one with every row joined with every one of `rows`."""
    if len(first) <= len(second):
        return join(first[:, None, :], rows[None, :, :]).reshape(-1, rows.shape[1]), second
    return first, join(second[:, None, :], rows[None, :, :]).reshape(-1, rows.shape[1])


def _transform(law: GridLaw, rate: float, scale: float, period: int) -> tuple[Complex, float]:
    """Return the transform of the tilted masses, folded onto the period, and a bound on its l2 error."""
    masses = law.tilted_masses(rate, scale)
    folded = np.zeros(period)
    position = 0
    while position < len(masses):
        first = (law.start + position) % period
        piece = masses[position : position + period - first]
        folded[first : first + len(piece)] += piece
        position += len(piece)
    length = math.sqrt(float(np.square(folded).sum())) * (1.0 + period * UNIT)
    folds = len(masses) // period + 2
    error = (_FFT_ERROR * math.log2(period) + folds) * UNIT * math.sqrt(period) * length
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


_MIN_PERIOD = 1024
_MAX_PERIOD = 2**21

_MAX_NUMBERS = 2**22
"""Rungs that keep more numbers than this are not made for wider windows."""

_MAX_RATE = 60.0
"""Largest exponent per cell."""


_Method = TypeVar("_Method", bound=Callable[..., Any])


def remembered(method: _Method) -> _Method:
    """Return a method whose results are kept in the `_cache` of its object, by its arguments."""

    @wraps(method)
    def wrapper(self: Any, *args: Any) -> Any:
        key = (method.__name__, *args)
        if key not in self._cache:
            self._cache[key] = method(self, *args)
        return self._cache[key]

    return cast("_Method", wrapper)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Level:
    """A rung with its window: cells ``low … high``, the logarithm of what may lie above, whether it can be no wider."""

    rung: Rung
    low: int
    high: int
    log_above: float
    final: bool


@dataclass(slots=True, kw_only=True, eq=False)
class Ladder:
    """The product of factors at a ladder of tilts, made when first asked for.

    Parameters
    ----------
    step : float
        Width of a cell.
    factors : tuple of Factor
        Those with one law first, then those with a choice, most ways first.
    """

    step: float
    factors: tuple[Factor[GridLaw], ...]
    _cache: dict[Any, Any] = field(default_factory=dict)

    @remembered
    def reach(self) -> tuple[int, int]:
        """Return the first and last cell the total can reach."""
        return reach_of(self.factors)

    @remembered
    def loss_tables(self) -> tuple[LossTable, ...]:
        """Return tables of the factors whose choices are covered."""
        return loss_tables([(factor.laws, factor.times) for factor in self.factors if factor.covered])

    @property
    def steepest(self) -> float:
        """Return the largest exponent per cell that is used."""
        return min((_MAX_RATE, *(table.steepest for table in self.loss_tables())))

    @remembered
    def rate(self, number: int) -> float:
        """Return the exponents of a ladder: 0, and powers of √2 from where a tilt begins to show."""
        if number == 0:
            return 0.0
        deviation = max(1e-6, self.moments(0).deviation)
        least = math.floor(2.0 * math.log2(min(0.35 / deviation, 1.0 / self._widest())))
        return float(2.0 ** ((least + number - 1) / 2.0))

    @remembered
    def _widest(self) -> int:
        """Return the largest loss: a rare one takes effect at exponents far below the inverse deviation."""
        return max(1, *(law.last for factor in self.factors for law in factor.laws))

    @remembered
    def moments(self, number: int) -> Moments:
        """Return the moments at a rung."""
        return moments_of(self.factors, self.rate(number), self.loss_tables())

    def nearest(self, epsilon: float) -> int:
        """Return the rung with the smallest Chernoff bound at `epsilon`: mostly the one with the nearest mean."""
        position = epsilon / self.step
        start = self.moments(0)
        if position <= start.high:
            return 0

        def exponent(number: int) -> float:
            rate = self.rate(number)
            return self.moments(number).log_moment - rate * position if rate <= self.steepest else math.inf

        guess = (position - start.high) / max(start.deviation**2, 1e-12)
        number = max(1, round(2.0 * math.log2(guess / self.rate(1))) + 1)
        while self.rate(number) > self.steepest:
            number -= 1
        # The logarithm of a moment is convex in the exponent, so the bound has one minimum.
        while exponent(number + 1) < exponent(number):
            number += 1
        while number > 0 and exponent(number - 1) <= exponent(number):
            number -= 1
        return number

    def log_below_mean(self, epsilon: float) -> float:
        """Return the logarithm of what δ is at least where ε is below the mean; -∞ elsewhere.

        Paley and Zygmund's inequality for ``Z = e^{λX}``: ``P[Z > E Z/e] ≥ (1 - 1/e)² (E Z)²/E Z²``.
        """
        number = 1 + max(0, math.ceil(2.0 * math.log2(2.0 / (max(1e-6, self.moments(0).deviation) * self.rate(1)))))
        if self.rate(number + 2) > self.steepest:
            return -math.inf
        once, twice = self.moments(number).log_moment, self.moments(number + 2).log_moment
        away = (once - 1.0) / self.rate(number) * self.step - epsilon
        if away <= 0.0:
            return -math.inf
        return 2.0 * (once + math.log1p(-math.exp(-1.0))) - twice + math.log(-math.expm1(-away))

    @remembered
    def level(self, number: int, doublings: int) -> Level:
        """Return the product at a rung, with a window that holds it, or one some times wider than that."""
        (first, last), moments, rate = self.reach(), self.moments(number), self.rate(number)
        half = (9.0 + 0.25 * rate * moments.deviation) * moments.deviation + 32.0
        needed = min(last - first + 1.0, moments.high - moments.low + 2.0 * half)
        period = max(_MIN_PERIOD, 2 ** math.ceil(math.log2(max(2.0, min(needed, float(_MAX_PERIOD))))))
        period = min(_MAX_PERIOD, period * 2**doublings)
        low = first
        if period < last - first + 1:
            low = max(first, math.floor(0.5 * (moments.low + moments.high - period)))
        high = min(last, low + period - 1)
        log_above = self._log_above(number, high) if high < last else -math.inf
        rung = make_rung(self.factors, rate, period, self.loss_tables())
        large = rung.first.size + rung.second.size > _MAX_NUMBERS
        final = high == last or period >= _MAX_PERIOD or large
        return Level(rung=rung, low=low, high=high, log_above=log_above, final=final)

    def _log_above(self, number: int, high: int) -> float:
        """Return the logarithm of a Chernoff bound on the mass of losses above `high`: the best of a few rungs."""
        moments = self.moments(number)
        wanted = self.rate(number) + (high - moments.high) / max(moments.deviation**2, 1e-12)
        guess = max(1, round(2.0 * math.log2(max(wanted, 1e-300) / self.rate(1))) + 1)
        # So little does not show beside δ where this rung is used.
        negligible = moments.log_moment - self.rate(number) * moments.high - 36.0
        best = 0.0
        for other in dict.fromkeys(max(1, guess + away) for away in (0, -1, 1, -2)):
            rate = self.rate(other)
            if rate <= self.steepest and best > negligible:
                at_other = self.moments(other)
                slack = 1e-9 + 1e-12 * (at_other.size + rate * abs(high) + at_other.factors)
                best = min(best, at_other.log_moment - rate * (high + 1) + slack)
        return best
