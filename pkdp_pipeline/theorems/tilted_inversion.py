"""Tails of a sum of two binomials (plus geometric noise) by exponentially tilted Fourier inversion.

Let ``T = Bin(n1, low) + Bin(n2, high) + Z`` with generating function `G`. Tilting by exactly ``r = e^ε``
gives the law ``g(s) = P[T = s] r^s / G(r)``, and with it

    P[T ≥ t] - e^ε P[T ≥ t+1] = G(r) r^-t · I(t),    I(t) = Σ_{i≥0} e^{-εi} (g(t+i) - g(t+i+1)).

The smallness of the result sits in ``G(r) r^-t``, which is computed in logarithms; `I` needs only absolute
accuracy, for a law with ordinary probabilities. It is a trapezoidal sum over the characteristic function of
`g`, whose magnitude falls like ``exp(-2v sin²(φ/2))`` with `v` the tilted variance of the coins: some 30 nodes are
enough, whatever the number of people. The sum's share from other periods lies where the noise alone decides, is
exponential there, and is taken off in closed form. `docs/numerics.md` derives every term of the error budget.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pkdp_pipeline.theorems.numerics import UNIT, Array, Decided, first_offset

MAX_PEOPLE = 2**34
"""More unknown people than this are not looked at; fewer is sound."""

_CUTOFF_EXPONENT = 52.0
_DROPPED = 12.0 * np.exp(-_CUTOFF_EXPONENT)
"""Tilted mass of coins outside the window and dropped nodes together: 12 exp(-52) = 3.2e-22."""

_MAX_MATRIX_ENTRIES = 50_000


def inverted(people: int) -> float:
    """Return the relative width of what an inversion gives for this many people, wherever it exceeds 1e-300."""
    return min(1.0, 1e-8 + 1e-14 * people)


@dataclass(frozen=True, slots=True)
class _Alias:
    """Other periods' share of a sum over nodes, on one side: ``exp(log + slope·offset)``, within `doubt` of itself.

    `density` and `inner` are its parts in `g` and in `I`.
    """

    log: Array
    slope: Array
    density: float
    inner: Array
    doubt: Array

    def value(self, offset: Array) -> Array:
        values: Array = np.exp(self.log + self.slope * offset)
        return values


@dataclass(frozen=True, slots=True)
class _Window:
    """Variance of the coins and their reach, the mean on which all is centred, and where the mode lies around it."""

    coins: Array
    reach: Array
    mean: Array
    lowest: Array
    highest: Array
    period: Array

    @property
    def middle(self) -> Array:
        """A place within the window, next to which the mode is looked for first."""
        middle: Array = np.rint(0.5 * (self.lowest + self.highest))
        return np.clip(middle, self.lowest + 1.0, np.maximum(self.lowest, self.highest - 1.0))


@dataclass(frozen=True, slots=True)
class _Waves:
    """Characteristic functions at their nodes φ, re-centred on the whole number `centre`; `turn` is ``1 - e^{-iφ}``."""

    wave: NDArray[np.complex128]
    turn: NDArray[np.complex128]
    doubt: Array
    node: Array
    centre: Array
    window: _Window
    aliases: tuple[_Alias, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TwoCoinTails:
    """Right tails of ``Bin(n1, low) + Bin(n2, high) + Z`` for many ``(n1, n2)`` at once.

    Parameters
    ----------
    low, high : float
        The two probabilities, strictly between 0 and 1.
    low_complement, high_complement : float
        One minus each, to within one rounding; passed because mirroring swaps them.
    noise : float, optional
        The ε0 of two-sided geometric noise `Z`, above every ε asked for; None for no noise.
    """

    low: float
    low_complement: float
    high: float
    high_complement: float
    noise: float | None = None

    def right_tails(self, n_low: Array, n_high: Array, epsilons: Array) -> tuple[Array, Array]:
        """Return floats around ``max over t of P[T ≥ t] - e^ε P[T ≥ t+1]``, row by row.

        Parameters
        ----------
        n_low, n_high : arrays of whole numbers, shape (n,)
            How many records are at each probability; together at most 2^50.
        epsilons : array, shape (n,)
            At least 0 and, with noise, below its ε0.

        Returns
        -------
        (lower, upper) : arrays, shape (n,)

        Notes
        -----
        *Guarantee*: lower ≤ exact value ≤ upper. *Rounding*: outward by an explicit budget; relative width around 1e-9,
        below 1e-5 up to 1e9 records where the value exceeds 1e-300. *Source*: `docs/numerics.md`, "Tilted inversion".
        """
        lower, upper = np.zeros(len(epsilons)), np.zeros(len(epsilons))
        for rows in self._like_sized(n_low, n_high, epsilons):
            lower[rows], upper[rows] = self._bracket(n_low[rows], n_high[rows], epsilons[rows])
        return lower, upper

    def slopes(self, n_low: Array, n_high: Array, epsilons: Array, *places: Array) -> Array:
        """Return about ``log(g(t + 1)/g(t))`` of the tilted law at each place t, shape (places, n).

        Its sign is sure: where it is not, it is 0. Beyond the window, whose end decides, it is infinite.
        """
        slopes = np.zeros((len(places), len(epsilons)))
        for rows in self._like_sized(n_low, n_high, epsilons):
            row = self._waves(n_low[rows], n_high[rows], epsilons[rows])
            for slope, place in zip(slopes, places, strict=True):
                slope[rows] = self._slope(row, epsilons[rows], place[rows] - row.centre)
        return slopes

    def _slope(self, row: _Waves, epsilons: Array, offset: Array) -> Array:
        # A sum of independent coins has its mode within 1 of its mean (Darroch 1964).
        ends = (-2.0, 1.0) if self.noise is None else (row.window.lowest, row.window.highest)
        inside = np.clip(offset, *ends)
        mass, fall, doubt = _density(row, inside)
        rises, falls = fall < -2.0 * doubt, fall > 2.0 * doubt
        if self.noise is None:
            rises, falls = rises | (offset <= -2.0), falls | (offset >= 1.0)
        else:
            if not np.all(rises | falls):
                mode = row.window.middle
                rises, falls = _sides(row, _density(row, mode)[0], mode, inside)
            # A log-concave law rises before a rise and falls after a fall.
            rises, falls = rises & (offset <= inside), falls & (offset >= inside)
        with np.errstate(divide="ignore", invalid="ignore"):
            size = np.maximum(np.nan_to_num(np.abs(np.log1p(-fall / mass)), nan=np.inf, posinf=np.inf), 1e-300)
        size = np.where(offset == inside, size, np.inf)
        return np.where(rises, size, np.where(falls, -size, 0.0))

    def _like_sized(self, n_low: Array, n_high: Array, epsilons: Array) -> Iterator[NDArray[np.intp]]:
        """Yield rows that share a rectangle of nodes."""
        nodes = self._nodes(n_low, n_high, epsilons)
        left = np.argsort(nodes, kind="stable")
        while len(left):
            rows = left[: max(1, int(_MAX_MATRIX_ENTRIES // nodes[left[0]]))]
            rows = rows[nodes[rows] <= 2.0 * nodes[rows[0]]]
            left = left[len(rows) :]
            yield rows

    def _tilted(self, epsilons: Array) -> tuple[Array, Array, Array, Array]:
        """Return the tilted probabilities and their complements: low, 1 - low, high, 1 - high."""
        shrink = np.exp(-epsilons)
        low_total = self.low + self.low_complement * shrink
        high_total = self.high + self.high_complement * shrink
        return (
            self.low / low_total,
            self.low_complement * shrink / low_total,
            self.high / high_total,
            self.high_complement * shrink / high_total,
        )

    def _window(self, n_low: Array, n_high: Array, epsilons: Array) -> _Window:
        q1, c1, q2, c2 = self._tilted(epsilons)
        coins = n_low * q1 * c1 + n_high * q2 * c2
        # Bernstein: outside this many steps lie less than exp(-_CUTOFF_EXPONENT) on either side.
        reach = _CUTOFF_EXPONENT / 3.0 + np.sqrt((_CUTOFF_EXPONENT / 3.0) ** 2 + 2.0 * _CUTOFF_EXPONENT * coins)
        lowest, highest = np.full(len(epsilons), -1.0), np.ones(len(epsilons))
        if self.noise is not None:
            # Tilted two-sided geometric noise is the difference of two geometric variables.
            right, left = -np.expm1(epsilons - self.noise), -np.expm1(-epsilons - self.noise)
            more, less = (1.0 - right) / right, (1.0 - left) / left
            # A unimodal law has its mode within √3 standard deviations of its mean; the coins' window is looked at.
            width = np.sqrt(3.0 * (coins + more / right + less / left + 1.0)) + 3.0
            most = np.ceil(reach) + 2.0
            lowest = np.clip(np.floor(more - less - width), -most, 0.0)
            highest = np.clip(np.ceil(more - less + width), 1.0, most)
        half = np.ceil((reach + np.maximum(-lowest, highest)) / 2.0) + 3.0
        return _Window(coins, reach, n_low * q1 + n_high * q2, lowest, highest, 2.0 * half + 1.0)

    def _nodes(self, n_low: Array, n_high: Array, epsilons: Array) -> Array:
        window = self._window(n_low, n_high, epsilons)
        edge = 2.0 * np.arcsin(np.sqrt(np.minimum(1.0, _CUTOFF_EXPONENT / 2.0 / np.maximum(window.coins, 1e-300))))
        count: Array = np.minimum((window.period - 1.0) / 2.0, np.ceil(window.period * edge / (2.0 * np.pi)) + 1.0)
        return count

    def _bracket(self, n_low: Array, n_high: Array, epsilons: Array) -> tuple[Array, Array]:
        row = self._waves(n_low, n_high, epsilons)
        if self.noise is None:
            # A sum of independent coins has its mode within 1 of its mean (Darroch 1964).
            offsets = [np.full(len(epsilons), float(offset)) for offset in (-1, 0, 1)]
            slack = np.zeros(len(epsilons))
        else:
            mode, slack = _search_mode(row, epsilons)
            offsets = [mode]
        lower, upper = np.zeros(len(epsilons)), np.zeros(len(epsilons))
        for offset in offsets:
            total, doubt = _inner_sum(row, epsilons, offset)
            log_scale, log_doubt = self._log_scale(n_low, n_high, epsilons, row.centre + offset)
            doubt = doubt + slack
            lower = np.maximum(lower, _scaled(log_scale - log_doubt, total - doubt))
            upper = np.maximum(upper, _scaled(log_scale + log_doubt, total + doubt))
        return np.maximum(0.0, lower * (1.0 - 16.0 * UNIT) - 1e-323), upper * (1.0 + 16.0 * UNIT) + 1e-323

    def _waves(self, n_low: Array, n_high: Array, epsilons: Array) -> _Waves:
        q1, c1, q2, c2 = (column[:, None] for column in self._tilted(epsilons))
        window = self._window(n_low, n_high, epsilons)
        period, half = window.period, (window.period - 1.0) / 2.0
        node = np.arange(1.0, self._nodes(n_low, n_high, epsilons).max() + 1.0)[None, :]
        node = np.minimum(node, half[:, None] + 1.0)
        angle = 2.0 * np.pi * node / period[:, None]
        sine, squared = np.sin(angle), np.sin(angle / 2.0) ** 2
        low, high = n_low[:, None], n_high[:, None]
        fading = 0.5 * (low * np.log1p(-4.0 * q1 * c1 * squared) + high * np.log1p(-4.0 * q2 * c2 * squared))
        turn1 = np.arctan2(q1 * sine, 1.0 - 2.0 * q1 * squared)
        turn2 = np.arctan2(q2 * sine, 1.0 - 2.0 * q2 * squared)
        centre = np.rint(window.mean)
        turning = low * (turn1 - q1 * angle) + high * (turn2 - q2 * angle)
        turning = turning + (low * q1 + high * q2 - centre[:, None]) * angle
        wave, bend = np.exp(fading + 1j * turning), 2.0 * squared
        if self.noise is not None:
            right, left = -np.expm1(epsilons - self.noise)[:, None], -np.expm1(-epsilons - self.noise)[:, None]
            wave = wave * (right / (right + (1.0 - right) * (bend - 1j * sine)))
            wave = wave * (left / (left + (1.0 - left) * (bend + 1j * sine)))
        wave = np.where(node <= half[:, None], wave, 0.0)
        doubt = 100.0 * UNIT * (1.0 + np.abs(fading) + (low * q1 + high * q2 + np.abs(centre)[:, None]) * angle)
        aliases = tuple(self._aliases(n_low, n_high, epsilons, centre, window))
        return _Waves(wave, bend + 1j * sine, doubt, node, centre, window, aliases)

    def _aliases(
        self, n_low: Array, n_high: Array, epsilons: Array, centre: Array, window: _Window
    ) -> Iterator[_Alias]:
        """Yield what the trapezoidal sums hold of the periods to the right and to the left."""
        q1, _, q2, _ = self._tilted(epsilons)
        # Steeper ones are below exp(-_CUTOFF_EXPONENT) beyond Bernstein's window; the others are the whole law's.
        steepest = window.reach / (window.coins + window.reach / 3.0)

        def alias(slope: Array, share: Array, density: float, inner: Array) -> _Alias:
            """Return ``E[e^{-slope(s - t)}] · share`` with ``t = centre + offset``."""
            with np.errstate(all="ignore"):
                shift = np.expm1(-slope)
                parts = n_low * np.log1p(q1 * shift), n_high * np.log1p(q2 * shift)
                log = np.where(np.abs(slope) < steepest, parts[0] + parts[1] + slope * centre + np.log(share), -np.inf)
                sizes = np.where(np.isfinite(log), np.abs(parts[0]) + np.abs(parts[1]) + np.abs(slope) * centre, 0.0)
            return _Alias(
                log, slope, density, inner, UNIT * (64.0 * sizes + 32.0 * np.abs(slope) * window.period + 300)
            )

        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            share = np.where(epsilons > 0.0, np.expm1(epsilons) / np.expm1(epsilons * window.period), 1 / window.period)
        share = np.nan_to_num(share)
        if self.noise is not None:
            ahead, behind = self.noise - epsilons, self.noise + epsilons
            right, left, whole = -np.expm1(-ahead), -np.expm1(-behind), -np.expm1(-self.noise)
            share = share * (right / whole) * (left / whole)
            top = right * left / -np.expm1(-2.0 * self.noise)
            with np.errstate(over="ignore"):
                yield alias(-ahead, top / np.expm1(ahead * window.period), 1.0, right / whole)
                growth = np.exp(np.minimum(epsilons, 3.0))
                yield alias(behind, top / np.expm1(behind * window.period), 1.0, growth * left / whole)
        yield alias(epsilons, share, 0.0, np.full(len(epsilons), -1.0))

    def _log_scale(self, n_low: Array, n_high: Array, epsilons: Array, cutoff: Array) -> tuple[Array, Array]:
        """Return ``log(G(r) r^-cutoff)`` and a bound on its error."""
        total = (n_low + n_high - cutoff) * epsilons
        doubt = 4.0 * UNIT * np.abs(total) + 20.0 * UNIT
        for count, p, complement in ((n_low, self.low, self.low_complement), (n_high, self.high, self.high_complement)):
            change = complement * np.expm1(-epsilons)
            by_log1p = np.log1p(np.maximum(change, -0.5))
            by_log = np.log(p + complement * np.exp(-epsilons))
            part = np.where(change > -0.5, by_log1p, by_log)
            total = total + count * part
            doubt = doubt + count * UNIT * (16.0 * np.abs(part) + np.where(change > -0.5, 0.0, 8.0))
        if self.noise is not None:
            right, left = -np.expm1(epsilons - self.noise), -np.expm1(-epsilons - self.noise)
            noise_part = 2.0 * np.log(-np.expm1(-self.noise)) - np.log(right) - np.log(left)
            total = total + noise_part
            doubt = doubt + UNIT * (16.0 * np.abs(noise_part) + 40.0)
        return total, doubt + 4.0 * UNIT * np.abs(total)


def _scaled(logarithm: Array, total: Array) -> Array:
    """Return ``exp(logarithm) · total``, 0 where `total` is not positive (the factor may overflow there)."""
    with np.errstate(over="ignore"):
        product: Array = np.exp(np.where(total > 0.0, logarithm, 0.0)) * np.maximum(0.0, total)
    return product


def _shift(row: _Waves, offset: Array) -> NDArray[np.complex128]:
    """Return ``exp(-i φ offset)`` at every node, with the angle reduced in whole numbers."""
    turned: Array = np.fmod(row.node * offset[:, None], row.window.period[:, None]) / row.window.period[:, None]
    rotation: NDArray[np.complex128] = np.exp(-2j * np.pi * turned)
    return rotation


def _inner_sum(row: _Waves, epsilons: Array, offset: Array) -> tuple[Array, Array]:
    """Return ``I(centre + offset)`` and a bound on its error."""
    kernel = row.turn / (-np.expm1(-epsilons)[:, None] + np.exp(-epsilons)[:, None] * row.turn)
    values = row.wave * _shift(row, offset) * kernel
    size = np.abs(row.wave)
    doubt = (size * (np.abs(kernel) * row.doubt + 120.0 * UNIT)).sum(axis=1)
    scale = 2.0 / row.window.period
    total, doubt = scale * values.real.sum(axis=1), 1.01 * scale * doubt + _DROPPED
    for alias in row.aliases:
        part = alias.inner * alias.value(offset)
        total, doubt = total - part, doubt + np.abs(part) * alias.doubt
    return total, doubt


def _density(row: _Waves, offset: Array) -> tuple[Array, Array, Array]:
    """Return (g, g(·) - g(·+1), error bound of either) at ``centre + offset``."""
    turned = row.wave * _shift(row, offset)
    scale = 1.0 / row.window.period
    mass = scale * (1.0 + 2.0 * turned.real.sum(axis=1))
    fall = 2.0 * scale * (turned * row.turn).real.sum(axis=1)
    doubt = 2.02 * scale * (np.abs(row.wave) * (row.doubt + 120.0 * UNIT)).sum(axis=1) + 4.0 * UNIT * scale + _DROPPED
    for alias in row.aliases:
        part, slope = alias.density * alias.value(offset), np.minimum(alias.slope, 3.0)
        mass, fall = mass - part, fall + part * np.expm1(slope)
        doubt = doubt + part * np.exp(slope) * alias.doubt + part * alias.doubt
    return mass, fall, doubt


def _search_mode(row: _Waves, epsilons: Array) -> tuple[Array, Array]:
    """Return an offset at or below the last mode of the tilted law, and what stopping early may cost.

    A log-concave law rises up to its mode and falls after it. `_sides` decides only where densities differ by more
    than their error; between the last sure rise and the first sure fall the rest of the climb is bounded. Where even
    the ends of the window do not surely rise and fall, nothing is said.
    """
    lowest, highest = row.window.lowest, row.window.highest
    guess = row.window.middle
    peak, _, _ = _density(row, guess)
    above = first_offset(lambda offset: ~_sides(row, peak, guess, offset)[0], lowest, highest, guess)
    falling = first_offset(lambda offset: _sides(row, peak, guess, offset)[1], above - 1.0, highest, above)
    mass, _, doubt = _density(row, above)
    further = falling - above
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        growth = 4.0 * doubt / np.maximum(mass - doubt, 1e-30)
        steps = np.minimum(further, 1.0 / -np.expm1(-epsilons))
        cost = steps * growth * np.minimum(1.0, (mass + doubt) * np.exp(growth * further))
    cost = np.nan_to_num(cost, nan=np.inf, posinf=np.inf)
    decided = _sides(row, peak, guess, lowest)[0] & _sides(row, peak, guess, highest)[1]
    return above, np.where(decided, cost, np.inf)


def _sides(row: _Waves, peak: Array, guess: Array, offset: Array) -> tuple[Decided, Decided]:
    """Return where the law surely rises, and where it surely falls, from `offset` to the next number."""
    mass, fall, doubt = _density(row, offset)
    # A log-concave law that is lower here than at `guess`, where it is `peak`, rises towards it on either side.
    lower = mass + 2.0 * doubt < peak
    return np.where(lower, offset < guess, fall < -2.0 * doubt), np.where(lower, offset > guess, fall > 2.0 * doubt)
