"""Laws of privacy losses on a grid, or read off a profile, made so that they only overstate the divergence.

A pair of laws ``(P, Q)`` is kept as masses of P at losses ``log(P/Q)``, plus the mass of P where Q has none. Its
profile is ``f(z) = Σ w (1 - z e^{-x})_+ + infinite`` with ``z = e^ε``, and the divergence of a product of pairs is
``Σ_r P_r f(e^ε Q_r/P_r)`` over the outcomes `r` of all other factors: it is monotone in each factor's `f`. So a
factor may be replaced by any measure whose `f` is larger. Three steps are used:

- raising a mass or a loss;
- splitting an atom onto its two neighbours on the grid so that both its P-mass and its Q-mass stay: `f` is
  convex in z, and between the neighbours it becomes the chord;
- taking the largest of several profiles at the points of the grid and connecting these by chords in z.

The share of one release in a total is its losses in either order of the two lives.

Laws are rows of tables. The transform of a row is computed at a few frequencies. Between two of these ``|T|²`` exceeds
the larger value by ``(π/n)² m² v`` at most, for n frequencies, total mass m and variance v, since
``|T|² = Σ q_i q_j cos((i-j)θ)`` has a second derivative of at most ``2 m² v``. That bounds the product at all
frequencies; those where it counts are summed directly, with an error of ``2(n + 32)u m``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache, reduce, singledispatch

import numpy as np
from numpy.typing import NDArray

from pkdp_pipeline.model.mechanisms import Protects
from pkdp_pipeline.theorems.bound import (
    Bound,
    EnvelopeLosses,
    Guarantee,
    Losses,
    NoiseLosses,
    PairLosses,
    ProductLosses,
)
from pkdp_pipeline.theorems.hull import MAX_FINITE_LOSS, ProfileLosses, where_it_falls
from pkdp_pipeline.theorems.numerics import TINY, UNIT, Array
from pkdp_pipeline.theorems.thresholding import Thresholding
from pkdp_pipeline.theorems.waiting_pair import Pair

_UNDERFLOW = 1e-120
"""The most that underflow may take away from a profile at losses up to `MAX_FINITE_LOSS`, with room to spare."""

_NEGLIGIBLE_UPPER_MASS = 1e-102
"""The largest losses, while none has more mass, may be counted as infinite to keep a law short."""

_NEGLIGIBLE_LOWER_MASS = 1e-22
"""The smallest losses, while none has more mass, may be moved up to keep a law short; at no ε does that show."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TiltedMoments:
    """Logarithm of the moment ``M = Σ w e^{λx}``, and mean and variance (in cells) of the masses ``w e^{λx}/M``."""

    log_moment: float
    mean: float
    variance: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GridLaw:
    """A measure pair on a grid.

    Parameters
    ----------
    start : int
        The first mass is at loss ``start · step``.
    masses : array, shape (n,)
        P-masses at the losses ``(start + i) · step``; Q-masses are ``e^{-loss}`` times these.
    infinite : float
        P-mass on events that Q excludes.
    """

    start: int
    masses: Array
    infinite: float
    _tilts: dict[float, TiltedMoments] = field(default_factory=dict, repr=False)

    @property
    def last(self) -> int:
        """Return the index of the last mass."""
        return self.start + len(self.masses) - 1

    @property
    def total(self) -> float:
        """Return at or above the P-mass, finite and infinite."""
        return (float(self.masses.sum()) + self.infinite) * (1.0 + 64.0 * UNIT)

    def tilted(self, rate: float) -> TiltedMoments:
        """Return moment, mean and variance under the exponent `rate` per cell."""
        known = self._tilts.get(rate)
        if known is None:
            logs = self._logs(rate)
            peak = float(logs.max())
            weights = np.exp(logs - peak)
            total = float(weights.sum())
            steps = np.arange(len(weights), dtype=np.float64)
            mean = float((weights * steps).sum()) / total
            variance = float((weights * (steps - mean) ** 2).sum()) / total
            known = TiltedMoments(log_moment=peak + math.log(total), mean=self.start + mean, variance=variance)
            self._tilts[rate] = known
        return known

    def tilted_masses(self, rate: float, log_scale: float) -> Array:
        """Return ``masses · e^{rate·index - log_scale}``, rounded up but for underflow."""
        logs = self._logs(rate)
        sizes = 2.0 * np.abs(rate * (self.start + np.arange(len(logs)))) + np.abs(logs) + abs(log_scale)
        with np.errstate(under="ignore", invalid="ignore"):
            masses: Array = np.exp(logs - log_scale) * (1.0 + (sizes + 8.0) * (4.0 * UNIT))
        # An empty cell has the logarithm -inf.
        return np.where(np.isfinite(logs), masses, 0.0)

    def _logs(self, rate: float) -> Array:
        with np.errstate(divide="ignore"):
            logs: Array = np.log(self.masses) + rate * (self.start + np.arange(len(self.masses)))
        return logs


def split(losses: Array, weights: Array, infinite: float, step: float, *, trim: bool = True) -> GridLaw:
    """Split atoms onto a grid, keeping the mass of both laws.

    Parameters
    ----------
    losses : array, shape (n,)
        Finite, none below the exact loss but for 8 units of roundoff.
    weights : array, shape (n,)
        None below the exact P-mass.
    trim : bool
        Whether tiny masses at both ends may be moved up.

    Notes
    -----
    An atom at ``j·h + s`` puts ``(1 - e^{-s})/(1 - e^{-h})`` of its mass on ``(j+1)·h`` and
    ``(e^{h-s} - 1)/(e^h - 1)`` on ``j·h``. *Guarantee*: the profile is nowhere below that of the atoms.
    *Rounding*: up; losses by a few units of roundoff, masses by a few more than atoms share a cell.
    """
    kept = weights > 0.0
    losses, weights = losses[kept], weights[kept]
    if len(losses) == 0:
        return GridLaw(start=0, masses=np.full(1, TINY), infinite=min(1.0, infinite))
    position = losses / step
    position += 16.0 * UNIT * np.abs(position)
    floor = np.floor(position)
    part = position - floor
    upper = weights * (np.expm1(-part * step) / math.expm1(-step))
    lower = weights * (np.expm1((1.0 - part) * step) / math.expm1(step))
    start = int(floor.min())
    cell = (floor - start).astype(np.int64)
    size = int(cell.max()) + 2
    masses = np.zeros(size)
    masses += np.bincount(cell, lower, size)
    masses += np.bincount(cell + 1, upper, size)
    most = int(np.bincount(cell, minlength=size).max())
    masses = masses * (1.0 + (2.0 * most + 24.0) * UNIT)
    if not trim:
        if masses[-1] == 0.0:
            masses = masses[:-1]
        return GridLaw(start=start, masses=masses, infinite=min(1.0, infinite))
    return _trimmed(start, masses, infinite + TINY)


def split_pairs(pairs: Sequence[Pair], step: float) -> list[tuple[GridLaw, GridLaw]]:
    """Split the losses of pairs ``(P, Q)`` onto a grid as `split` does, each in this order and in the other one.

    Notes
    -----
    Of the atoms in the cell from ``j·h`` to ``(j+1)·h`` only the sums A of P and B of Q count: of A its upper end takes
    ``(A - e^{jh} B)/(1 - e^{-h})``, and of B in the other order, from ``-(j+1)·h`` to ``-j·h``, it takes
    ``(B - e^{-(j+1)h} A)/(1 - e^{-h})``. *Guarantee*: the profiles are nowhere below those of the atoms. *Rounding*:
    up. Ratios are lowered by their budget; an atom that may lie beyond the upper end of its cell counts as in the next
    one, or, in the other order, moves on as much mass as it may lie beyond. Subtracted sums are lowered by the errors
    of both, which raises losses; masses are raised by a few units of roundoff more than atoms share a cell.
    """
    hidden = [int(np.searchsorted(pair.ratio, 0.0, side="right")) for pair in pairs]
    sizes = np.array([max(1, len(pair.ratio) - known) for pair, known in zip(pairs, hidden, strict=True)])
    starts, offs = np.cumsum(sizes) - sizes, np.array([1.01 * pair.budget + 4.0 * UNIT for pair in pairs])
    atoms, (ratios, places) = np.empty((2, int(sizes.sum()))), np.empty((2, int(sizes.sum())))
    for pair, known, start, size, off in zip(
        pairs, hidden, starts.tolist(), sizes.tolist(), offs.tolist(), strict=True
    ):
        place = slice(start, start + size)
        # A pair without atoms has next to nothing at loss 0.
        atoms[0, place] = pair.weight[known:] if known < len(pair.ratio) else TINY
        ratios[place] = pair.ratio[known:] if known < len(pair.ratio) else 1.0
        ratios[place] *= 1.0 - off
        logs = np.log(ratios[place], out=places[place])
        logs *= -1.0 / step
        logs += 16.0 * UNIT * (abs(float(logs[0])) + abs(float(logs[-1])) + 1.0)
    np.multiply(atoms[0], ratios, out=atoms[1])
    np.floor(places, out=places)
    # Cells that have atoms, in decreasing order; rows of sums are the two orders.
    changes = places[1:] < places[:-1]
    changes[starts[1:] - 1] = True
    first = np.concatenate([[0], np.flatnonzero(changes) + 1])
    counts = np.diff(first, append=len(places))
    sums, places = np.add.reduceat(atoms, first, axis=1), places[first]
    cells = np.searchsorted(first, starts)
    most, least = places[cells], places[np.append(cells[1:], len(first)) - 1]
    widths = (most - least).astype(np.int64) + 3
    blocks, filled = np.cumsum(widths) - widths, np.diff(cells, append=len(first))
    off, index = np.repeat(offs, filled), np.repeat(blocks + most, filled) - places
    growth, pads = np.exp(step * places), UNIT * (48.0 * step * (np.abs(places) + 2.0) + 16.0)
    less, share = pads + (2.0 * counts + 32.0) * UNIT, (1.0 + 8.0 * UNIT) / -math.expm1(-step)
    less = 1.0 - np.stack([2.0 * pads + less, 2.01 * off + less])
    less *= np.stack([growth, math.exp(-step) / growth]) * sums[::-1]
    upper = np.minimum(sums, np.maximum(0.0, sums - less) * share)
    scales = (1.0 + off) * (1.0 + (2.0 * counts + 24.0) * UNIT) * np.stack([np.ones_like(off), 1.0 + 2.01 * off])
    lower, upper = (sums - upper) * scales, upper * scales
    excess = ratios[first + counts - 1] * growth - 1.0 + 2.01 * off + 4.0 * pads
    beyond = np.flatnonzero(excess > 0.0)
    moved = np.minimum(upper[1], sums[1] * excess * share * scales[1])[beyond]
    upper[1, beyond] -= moved
    index, size = index.astype(np.int64), int(widths.sum())
    right, left = np.zeros((2, size))
    right += np.bincount(index, upper[0], size) + np.bincount(index + 1, lower[0], size)
    left += np.bincount(index, lower[1], size) + np.bincount(index + 1, upper[1], size)
    left += np.bincount(index[beyond] + 2, moved, size)
    laws = []
    disclosed = [
        (pair.first_only + float(pair.weight[:known].sum()) * (1.0 + 2.0 * pair.budget)) * (1.0 + 8.0 * UNIT)
        for pair, known in zip(pairs, hidden, strict=True)
    ]
    seconds = [pair.second_only for pair in pairs]
    for *infinite, start, width, last, off in zip(disclosed, seconds, blocks, widths, most, offs, strict=True):
        low, (first_mass, second_mass) = int(last) + 1, (min(1.0, mass) + TINY for mass in infinite)
        # Where cells are as narrow as ratios are uncertain, all losses in the other order are raised.
        more = math.ceil(4.0 * off / step) if 16.0 * off > step else 0
        first_law = _trimmed(low - int(width) + 2, right[start : start + width - 1][::-1], first_mass)
        laws.append((first_law, _trimmed(more - low, left[start : start + width], second_mass)))
    return laws


def _trimmed(start: int, masses: Array, infinite: float) -> GridLaw:
    """Count the largest losses as infinite and lift the smallest, as far as their masses are negligible."""
    slack = 1.0 + (len(masses) + 8.0) * UNIT
    drop = int((masses[::-1] > _NEGLIGIBLE_UPPER_MASS).argmax())
    lift = int((masses > _NEGLIGIBLE_LOWER_MASS).argmax())
    if drop:
        infinite += float(masses[-drop:].sum()) * slack
    kept = masses[lift : len(masses) - drop].copy()
    if lift:
        kept[0] = (kept[0] + float(masses[:lift].sum())) * slack
    return GridLaw(start=start + lift, masses=kept, infinite=min(1.0, infinite * (1.0 + 8.0 * UNIT)))


def product(first: GridLaw, second: GridLaw) -> GridLaw:
    """Return a law at or above the product of two, as one factor."""
    terms = min(len(first.masses), len(second.masses))
    masses = np.convolve(first.masses, second.masses) * (1.0 + (terms + 8.0) * UNIT)
    both = first.infinite + second.infinite
    return _trimmed(first.start + second.start, masses, min(1.0, both * (1.0 + 4.0 * UNIT)) + TINY * (both > 0.0))


def envelope(laws: Sequence[GridLaw], step: float) -> GridLaw:
    """Return the law, its own mirror image, whose profile at ``ε ≥ 0`` is the largest of those of `laws`.

    Notes
    -----
    The largest of convex functions, connected by chords between the points of the grid, is convex. Where the
    law `d` is the largest at a point and at both its neighbours, the mass there is that of `d`; where a neighbour is
    larger by `v`, the slope changes by that much more, and ``v/(e^h - 1)`` (to the right) or ``v/(1 - e^{-h})`` (to the
    left) is added: positive terms only. *Guarantee*: at every ``ε ≥ 0`` the profile is at or above that of each law,
    at every ``ε < 0`` at or above that of each law reversed. *Rounding*: up.
    """
    most = max(1, math.floor(MAX_FINITE_LOSS / step))
    size = min(most, max(1, *(law.last for law in laws))) + 2
    finite, constants = np.zeros((len(laws), size)), np.zeros(len(laws))
    for row, law in enumerate(laws):
        first, end = max(1, law.start), min(law.last + 1, size - 1)
        if end > first:
            finite[row, first:end] = law.masses[first - law.start : end - law.start]
        constants[row] = min(1.0, law.infinite + float(law.masses[max(0, end - law.start) :].sum()) * (1.0 + 1e-12))
    values = _profiles(finite, constants, step)
    error = (8.0 * size + 64.0) * UNIT
    leader = values.argmax(axis=0)
    best = values.max(axis=0)
    columns = np.arange(size)
    masses = finite[leader, columns]
    changed = leader[1:] != leader[:-1]
    cuts = columns[:-1][changed]
    masses[cuts] += np.maximum(0.0, best[cuts + 1] * (1.0 + 4.0 * error) - values[leader[cuts], cuts + 1]) / (
        math.expm1(step)
    )
    masses[cuts + 1] += np.maximum(0.0, best[cuts] * (1.0 + 4.0 * error) - values[leader[cuts + 1], cuts]) / (
        -math.expm1(-step)
    )
    scale = 1.0 + 4.0 * error
    masses, infinite = masses[1:-1] * scale, min(1.0, float(constants.max()) * scale + _UNDERFLOW)
    # P has at -x what Q has at x: w e^{-x}. What is left of the total mass 1 lies at 0, where both agree.
    away = step * np.arange(1, len(masses) + 1)
    negative = masses * np.exp(-away) * (1.0 + (4.0 * away + 8.0) * UNIT)
    middle = max(TINY, 1.0 - (float(masses.sum()) + float(negative.sum()) + infinite) + 128.0 * UNIT)
    whole = np.concatenate([negative[::-1], [middle], masses])
    return GridLaw(start=-len(masses), masses=whole, infinite=min(1.0, infinite))


def _profiles(masses: Array, constants: Array, step: float) -> Array:
    """Return the profiles of several laws at ``0, step, 2·step, …``; row by row, column i has the mass at i·step."""
    tails = np.zeros_like(masses)
    tails[:, :-1] = np.cumsum(masses[:, :0:-1], axis=1)[:, ::-1]
    # 1 - e^{-nh} = (1 - e^{-h}) Σ_{l<n} e^{-lh} turns the sum over masses into one over tails.
    decay = np.exp(-step * np.arange(masses.shape[1]))
    sums = np.cumsum((tails * decay)[:, ::-1], axis=1)[:, ::-1]
    values: Array = constants[:, None] - math.expm1(-step) * sums / decay
    return values


def profile_at(law: GridLaw, step: float, epsilon: float) -> float:
    """Return a float at or above the profile of one law at `epsilon`, at most 1."""
    if Fraction(epsilon) >= Fraction(step) * law.last:
        return law.infinite
    losses = step * np.arange(law.start, law.last + 1)
    pad = 8.0 * UNIT * (np.abs(losses) + epsilon)
    terms = law.masses * -np.expm1(np.minimum(0.0, epsilon - losses - pad))
    total = float(terms.sum()) * (1.0 + (len(terms) + 16.0) * UNIT) + law.infinite
    return min(1.0, math.nextafter(total * (1.0 + 4.0 * UNIT), math.inf))


_RELATIVE_TOLERANCE = 1e-9
"""Two bounds this close, relatively, count as equal when one of them is dropped."""


@singledispatch
def on_grid(losses: Losses, step: float) -> GridLaw:
    """Return a law on multiples of `step` whose profile is nowhere below that of the release."""
    return split(*losses.atoms(), step)


@on_grid.register
def _(losses: PairLosses, step: float) -> GridLaw:
    return _in_both_orders(losses.pair(), step)[losses.order == "left"]


@lru_cache(maxsize=8)
def _in_both_orders(pair: Pair, step: float) -> tuple[GridLaw, GridLaw]:
    return split_pairs((pair,), step)[0]


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


Complex = NDArray[np.complex128]

_FFT_ERROR = 10.0
"""A transform of N numbers errs in the l2 norm by at most this many ``log2(N)·2^-53``, relatively."""


_BATCH_SIZE = 64
"""This many releases share a table."""

_LEFT_OUT = 1e-24
"""So much of a tilted mass of 1 may be left out of a table."""

_MAX_EXPONENT = 600.0
"""Largest exponent of one mass."""

_FINENESS = 14.0
"""Frequencies at which the size of a transform is bounded, over the deviation of its law: |T|² grows by 5 % of m²."""

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
    largest : array, shape (width,)
        The largest mass of each column.
    """

    times: Array
    starts: NDArray[np.int64]
    masses: Array
    largest: Array

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
        growth, heights = np.exp(tilts) * pads[0], np.exp(shifts) * pads[1]
        # What lies in the last cells of all rows is left out where it does not show, and charged.
        rest = np.cumsum((self.largest * growth)[::-1])[::-1] * float(heights.max())
        width = max(1, width - int(np.searchsorted(rest[::-1], _LEFT_OUT)))
        masses = self.masses[..., :width] * growth[:width]
        masses *= heights
        totals = masses.sum(axis=2, keepdims=True) * (1.0 + width * UNIT)
        lengths = np.sqrt(np.square(masses).sum(axis=2, keepdims=True)) * (1.0 + width * UNIT)
        # So fine that the curvature below adds little.
        size = min(period, 2 ** math.ceil(math.log2(64.0 + _FINENESS * math.sqrt(float(variances.max())))))
        doubt = UNIT * ((_FFT_ERROR * math.log2(period) + width // size + 2.0) * math.sqrt(period) * lengths)
        doubt = np.maximum(doubt, 2.0 * (width + 32.0) * UNIT * totals) + 2.0 * _LEFT_OUT
        squares, most = (np.abs(np.fft.rfft(_folded(masses, size), axis=2)) + doubt) ** 2, totals[..., 0] ** 2
        # Between two frequencies |T|² exceeds the larger one by its curvature, at most 2 m² times the variance.
        spread = most * (1.01 * variances + 1e-9 * width * width) * (math.pi / size) ** 2
        squares = np.maximum(squares[..., :-1], squares[..., 1:]) + spread[..., None]
        sizes = 0.5 * np.log(np.minimum(squares, most[..., None]).max(axis=0))
        bound = np.minimum(np.arange(period // 2 + 1) * size // period, sizes.shape[1] - 1)
        log_sizes = ((self.times[:, None] * sizes).sum(axis=0) + 1e-9)[bound]
        return Spectrum(table=self, masses=masses, period=period, log_sizes=log_sizes, doubt=doubt.max(axis=0))


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
        tables.append(
            LossTable(np.array([float(times) for _, times in batch]), starts, masses, masses.max(axis=(0, 1)))
        )
    return tuple(tables)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Spectrum:
    """Transforms of a table: a bound of their sizes everywhere, and their values where these are asked for.

    Parameters
    ----------
    masses : array, shape (2, n, width)
    log_sizes : array
        At or above the logarithm of the magnitude of the product of every choice, at all frequencies.
    doubt : array, shape (n, 1)
        At or above the error of one value.
    """

    table: LossTable
    masses: Array
    period: int
    log_sizes: Array
    doubt: Array

    def values(self, kept: NDArray[np.int64], turns: Complex, waves: Array) -> Complex:
        """Return the transforms, shape (2, n, frequencies).

        Parameters
        ----------
        kept : array of int
            Frequencies.
        turns : array, shape (period,)
            The roots of unity.
        waves : array, shape (cells, 2, frequencies)
            Real and imaginary parts of the root of each cell and frequency, for no cells where frequencies are many.
        """
        width = self.masses.shape[2]
        if len(waves):
            both = _multiplied(self.masses, waves[:width].reshape(width, -1)).reshape(*self.masses.shape[:2], 2, -1)
            values = both[..., 0, :] + 1j * both[..., 1, :]
        else:
            values = np.fft.rfft(_folded(self.masses, self.period), axis=2)[..., kept]
        result: Complex = values * turns[self.table.starts * kept % self.period]
        return result


def transforms(spectra: Sequence[Spectrum], kept: NDArray[np.int64]) -> Complex:
    """Return the transforms of all tables together, shape (2, releases, frequencies)."""
    period, width = spectra[0].period, max(spectrum.masses.shape[2] for spectrum in spectra)
    turns, waves = np.exp(-2j * np.pi / period * np.arange(period)), np.zeros((0, 2, len(kept)))
    if len(kept) <= _MAX_DIRECT_FREQUENCIES:
        roots = turns[np.multiply.outer(np.arange(width), kept) % period]
        waves = np.stack([roots.real, roots.imag], axis=1)
    return np.concatenate([spectrum.values(kept, turns, waves) for spectrum in spectra], axis=1)


def _folded(rows: Array, period: int) -> Array:
    """Return the rows of a table, folded onto a period."""
    folded = np.zeros((*rows.shape[:2], period))
    for start in range(0, rows.shape[2], period):
        piece = rows[..., start : start + period]
        folded[..., : piece.shape[2]] += piece
    return folded


def _multiplied(rows: Array, columns: Array) -> Array:
    """Return the product of matrices, in pieces so small that no BLAS starts threads: they cost more than they save."""
    most = max(4, 2**17 // (8 * rows.shape[2]))
    result = np.empty((*rows.shape[:2], columns.shape[1]))
    for start in range(0, columns.shape[1], most):
        piece = np.ascontiguousarray(columns[:, start : start + most])
        for row in range(0, rows.shape[1], 8):
            result[:, row : row + 8, start : start + most] = rows[:, row : row + 8] @ piece
    return result
