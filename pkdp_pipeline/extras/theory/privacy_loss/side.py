"""LossSide: one side of a privacy loss, the losses above 0 of one law against another, as atoms.

Exact numbers: rationals on either side of e^ε, finite laws and their divergence, and their arguments.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from numbers import Rational, Real
from typing import Any, TypeAlias, TypeVar

import flint
import numpy as np

from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.model.wording import probability
from pkdp_pipeline.theorems.numerics import TINY, UNIT, Array, float_above, smallest_epsilon

_MAX_ATOMS = 16_384
"""Most atoms that are summed again and again; more are put together two by two, with both masses kept."""

_EQUALITY_TOLERANCE = 1e-12

_MIN_RELATIVE_GAP = 1e-9
"""How far apart, relatively to the largest one, losses that are kept lie at least."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LossSide:
    """Losses above 0 of a law P against a law Q, with their P-masses.

    Parameters
    ----------
    losses : array, shape (n,)
        Values of ``log(P/Q)``, positive and increasing.
    log_masses : array, shape (n,)
        Logarithms of the P-masses there: large losses are weighted by exponentials of themselves, so tiny masses
        count.
    infinite : float
        P-mass where Q has none.

    Notes
    -----
    A side stands for the profile ``h(ε) = Σ w (1 - e^{ε-x})_+ + infinite`` at ``ε ≥ 0``. Its maker rounds
    losses and masses so that `h` is nowhere below the profile meant.
    """

    losses: Array
    log_masses: Array
    infinite: float

    @classmethod
    def of_masses(cls, losses: Array, masses: Array, infinite: float) -> LossSide:
        """Return the side with these atoms, in any order; those at or below 0 are left out.

        *Rounding*: logarithms of masses up.
        """
        kept = (losses > 0.0) & (masses > 0.0)
        losses, masses = losses[kept], masses[kept]
        order = np.argsort(losses, kind="stable")
        logs = np.log(masses[order])
        return cls(losses=losses[order], log_masses=logs + 2.0 * UNIT * (np.abs(logs) + 1.0), infinite=infinite)

    @property
    def largest(self) -> float:
        """The largest loss: `math.inf` where there is infinite mass, 0 where there is no loss."""
        if self.infinite > 0.0:
            return math.inf
        return float(self.losses[-1]) if len(self.losses) else 0.0

    @property
    def masses(self) -> Array:
        """The P-masses, rounded up; a mass too small for a float becomes the smallest one that is looked at."""
        with np.errstate(under="ignore"):
            masses: Array = np.exp(self.log_masses) * (1.0 + (2.0 * np.abs(self.log_masses) + 8.0) * UNIT) + TINY
        return masses

    @property
    def log_other_masses(self) -> Array:
        """Logarithms of the Q-masses of the atoms, rounded up."""
        logs: Array = self.log_masses - self.losses
        return logs + 2.0 * UNIT * (np.abs(self.log_masses) + self.losses)

    def above(self, epsilon: float) -> float:
        """Return at or above ``P[L > ε]``."""
        masses = self.masses[np.searchsorted(self.losses, epsilon, side="right") :]
        if len(masses) == 0:
            return self.infinite
        total = float(masses.sum()) * (1.0 + (len(masses) + 8.0) * UNIT) + self.infinite
        return min(1.0, math.nextafter(total, math.inf))

    def delta(self, epsilon: float) -> float:
        """Return at or above ``h(ε)``, at most 1."""
        start = int(np.searchsorted(self.losses, epsilon, side="right"))
        losses = self.losses[start:]
        if len(losses) == 0:
            return self.infinite
        pad = 8.0 * UNIT * (losses + epsilon)
        terms = self.masses[start:] * -np.expm1(np.minimum(0.0, epsilon - losses - pad))
        total = float(terms.sum()) * (1.0 + (len(terms) + 16.0) * UNIT) + self.infinite
        return min(1.0, math.nextafter(total, math.inf))

    def epsilon(self, delta: float) -> float:
        """Return an ε with ``self.delta(ε) <= delta``, as small as can be found, or `math.inf`."""
        return crossing((self,), delta)

    def shorter(self, most: int = _MAX_ATOMS) -> LossSide:
        """Return a side with at most about `most` atoms whose profile is nowhere smaller.

        Notes
        -----
        An atom between two losses that are kept goes to both so that its P-mass and its Q-mass stay: between them
        the profile becomes its chord in ``e^ε``. *Rounding*: up.
        """
        if len(self.losses) <= most:
            return self
        # What goes to loss 0 tells nothing.
        ends = np.append(0.0, _subset(self.losses, most))
        return LossSide(
            losses=ends[1:], log_masses=_between(ends, self.losses, self.log_masses)[1:], infinite=self.infinite
        )

    def ending_at(self, end: float) -> LossSide:
        """Return a side without losses above `end`, for a convex profile that is known to be 0 from there on.

        Notes
        -----
        Let `e` be the largest loss below `end`, or 0. From `e` on the true profile lies below the chord in ``e^ε``
        from ``(e, h(e))`` to ``(end, 0)``, which is the profile of one atom at `end`. Before `e` the profile stays as
        it is, with its slope: what the atom at `end` adds to that, compared with those it replaces, is taken from the
        atom at `e`, as far as that goes. *Rounding*: up.
        """
        if self.largest <= end:
            return self
        kept = int(np.searchsorted(self.losses, end, side="left"))
        last = float(self.losses[kept - 1]) if kept else 0.0
        height, slack = self.delta(last), 64.0 * UNIT * (1.0 + end / (end - last))
        logs = self.log_masses[:kept].copy()
        if kept:
            # In masses of P at `e`: what is there, what lies beyond, less what the chord needs.
            there = float(self.masses[kept - 1]) + float((self.masses[kept:] * np.exp(last - self.losses[kept:])).sum())
            grown = math.expm1(min(700.0, end - last))
            left = max(there - height / grown, 0.0) + (there + height / grown) * (slack + len(self.losses) * UNIT)
            logs[-1] = math.nextafter(math.log(left), math.inf)
        mass = height / -math.expm1(last - end) * (1.0 + slack)
        logs = np.append(logs, math.nextafter(math.log(mass), math.inf) if mass > 0.0 else -math.inf)
        return LossSide(losses=np.append(self.losses[:kept], end), log_masses=logs, infinite=0.0)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, LossSide):
            return NotImplemented
        same = np.array_equal(self.losses, other.losses) and np.array_equal(self.log_masses, other.log_masses)
        return same and self.infinite == other.infinite

    def __hash__(self) -> int:
        return hash((self.losses.tobytes(), self.log_masses.tobytes(), self.infinite))


def crossing(sides: Iterable[LossSide], delta: float) -> float:
    """Return an ε at which every side's profile is at most `delta`, as small as can be found, or `math.inf`."""
    listed = tuple(sides)

    def delta_at(epsilon: float) -> float:
        return max(side.delta(epsilon) for side in listed)

    high = smallest_epsilon(delta_at, delta)
    if high in (0.0, math.inf):
        ends = [float(side.losses[-1]) for side in listed if len(side.losses)]
        return max(ends) if high > 0.0 and ends and delta_at(max(ends)) <= delta else high
    # A profile has its kinks at the losses: a search only comes close to them.
    low = 0.0
    for side in listed:
        index = int(np.searchsorted(side.losses, high, side="right"))
        if index and delta_at(float(side.losses[index - 1])) <= delta:
            high = float(side.losses[index - 1])
        elif index:
            low = max(low, float(side.losses[index - 1]))
    probe = high * (1.0 - 1e-6)
    low = max(low, probe if probe > low and delta_at(probe) > delta else low)
    while high - low > 1e-14 * high:
        middle = 0.5 * (low + high)
        low, high = (low, middle) if delta_at(middle) <= delta else (middle, high)
    return high


def thinned(losses: Array, logs: Array, most: int) -> tuple[Array, Array]:
    """Return a law with at most about `most` atoms, as `LossSide.shorter` does, for losses of either sign in order."""
    if len(losses) <= most:
        return losses, logs
    # Sums that are equal but for rounding, as multiples of one number are, become one loss.
    step = _EQUALITY_TOLERANCE * max(abs(float(losses[0])), abs(float(losses[-1])))
    together, place = np.unique(np.ceil(losses / step), return_inverse=True)
    losses = np.minimum(np.nextafter(together * step, np.inf), losses[-1])
    logs = _gathered(place, logs, len(together))
    logs = logs + 8.0 * UNIT * (8.0 + np.abs(logs)) + UNIT * float(np.bincount(place).max())
    if len(losses) <= most:
        return losses, logs
    ends = _subset(losses, most)
    if len(ends) == 1:
        return ends, np.array([log_sum_above(logs)])
    return ends, _between(ends, losses, logs)


def _subset(losses: Array, most: int) -> Array:
    """Return about `most` of the losses, the largest among them, and the least where they are apart.

    Half of them are chosen by number, for where the mass is, and half by distance, for rare losses far out.
    """
    by_number = np.arange(0, len(losses), -(-2 * len(losses) // most))
    by_distance = np.searchsorted(losses, np.linspace(losses[0], losses[-1], most // 2))
    chosen = losses[np.unique(np.concatenate([by_number, np.minimum(by_distance, len(losses) - 1)]))]
    # Losses that differ by rounding only would make steep chords.
    gap = _MIN_RELATIVE_GAP * max(abs(losses[0]), abs(losses[-1]))
    chosen = chosen[np.concatenate([[True], np.diff(chosen) > gap])]
    return np.append(chosen[chosen < losses[-1] - gap], losses[-1])


def _between(ends: Array, losses: Array, logs: Array) -> Array:
    """Return the logarithms of the masses at `ends` when every loss goes to its two neighbours; rounded up."""
    place = np.maximum(1, np.searchsorted(ends, losses, side="left"))  # ends[place - 1] <= loss <= ends[place]
    low, high = ends[place - 1], ends[place]
    width = high - low
    slack = 16.0 * UNIT * (1.0 + np.maximum(np.abs(low), np.abs(high)) / width + width) + 2.0 * UNIT * np.abs(logs)
    with np.errstate(divide="ignore"):
        whole = np.log(-np.expm1(-width))
        up = logs + np.log(-np.expm1(low - losses)) - whole + slack
        down = logs + (low - losses) + np.log(-np.expm1(losses - high)) - whole + slack
    summed = np.logaddexp(_gathered(place, up, len(ends)), _gathered(place - 1, down, len(ends)))
    with np.errstate(invalid="ignore"):
        raised: Array = summed + 8.0 * UNIT * (len(losses) / len(ends) + 8.0 + np.abs(summed))
    return np.where(np.isfinite(summed), raised, summed)


def log_sum_above(logs: Array) -> float:
    """Return at or above the logarithm of the sum of exponentials, -inf for none."""
    peak = float(logs.max(initial=-math.inf))
    if not math.isfinite(peak):
        return peak
    with np.errstate(under="ignore"):
        total = math.log(float(np.exp(logs - peak).sum()))
    # An exponent errs by a unit of its own size; those that matter are near the peak.
    return peak + total + (len(logs) + 16.0 + 2.0 * abs(peak)) * 2.0 * UNIT


def _gathered(place: np.ndarray[tuple[int], np.dtype[np.int64]], logs: Array, size: int) -> Array:
    """Return the logarithm of the sum of exponentials at each place."""
    peak = np.full(size, -np.inf)
    np.maximum.at(peak, place, logs)
    finite = np.where(np.isfinite(peak), peak, 0.0)
    with np.errstate(under="ignore", divide="ignore"):
        sums: Array = np.log(np.bincount(place, np.exp(logs - finite[place]), size)) + finite
    return sums


_BATCH_SIZE = 24


def exceeding_above(first: LossSide, second: LossSide, epsilon: float) -> float:
    """Return at or above ``P[L > ε]`` of every pair whose profiles are nowhere above those of the two sides.

    Notes
    -----
    On the event that the loss exceeds ε, Q has less than ``e^{-ε}`` times the mass of P, so for every ``ε′ < ε``
    (also below 0) ``P[L > ε] (1 - e^{ε′-ε}) ≤ H_{ε′}(P ‖ Q)``. The best ε′ is a kink of the profile; quotients of a
    convex and a linear function have one minimum, so a search finds it, and any ε′ is sound. It is the best bound
    there is: putting the outcomes with the largest losses together makes a release that attains it. *Rounding*: up.
    """
    if first.delta(epsilon) == 0.0:
        return 0.0
    finite = first.losses[: np.searchsorted(first.losses, epsilon, side="left")]
    candidates = np.concatenate([-second.losses[::-1], [0.0] if epsilon > 0.0 else [], finite])
    best, low, high = 1.0, 0, len(candidates) - 1
    while low <= high:
        tried = np.unique(np.linspace(low, high, min(_BATCH_SIZE, high - low + 1)).astype(int))
        values = [_bound(first, second, epsilon, float(candidates[place])) for place in tried]
        lowest = int(np.argmin(values))
        best = min(best, values[lowest])
        if high - low + 1 <= _BATCH_SIZE:
            break
        low, high = int(tried[max(0, lowest - 1)]), int(tried[min(len(tried) - 1, lowest + 1)])
    return best


def _bound(first: LossSide, second: LossSide, epsilon: float, probe: float) -> float:
    if probe >= 0.0:
        height = first.delta(probe)
    else:
        # H at e^{-y} is 1 - e^{-y} + e^{-y} H_y(Q ‖ P).
        height = (-math.expm1(probe) + math.exp(probe) * second.delta(-probe)) * (1.0 + 16.0 * UNIT)
    away = -math.expm1(probe - epsilon) * (1.0 - 8.0 * UNIT * (1.0 + (abs(probe) + epsilon) / (epsilon - probe)))
    return height / away * (1.0 + 8.0 * UNIT) if away > 0.0 else math.inf


BITS = 192
"""Precision of balls; what is read off them is off by about 1e-57, relatively."""

_MAX_EPSILON = 700.0
"""e^ε is a float up to here; larger ε say nothing about a small universe."""


def growth_below(epsilon: float) -> Fraction:
    """Return a rational at or below e^ε, and at least 1.

    A δ falls while ε grows. So δ at this growth is at or above δ at `epsilon`, and what is (0, 0)-private at this
    growth is so at `epsilon`: the safe side for everything that is certified.

    Parameters
    ----------
    epsilon : float
        At least 0 and at most 700.

    Raises
    ------
    ArgumentError
        If it is not.

    Notes
    -----
    *Rounding*: down, by less than 1e-50 relatively; exactly 1 at ε = 0.
    """
    return max(Fraction(1), _enclosed(epsilon)[0])


def growth_above(epsilon: float) -> Fraction:
    """Return a rational at or above e^ε: δ at this growth is at or below δ at `epsilon`, for what is attained.

    Parameters
    ----------
    epsilon : float
        At least 0 and at most 700.

    Raises
    ------
    ArgumentError
        If it is not.

    Notes
    -----
    *Rounding*: up, by less than 1e-50 relatively; exactly 1 at ε = 0.
    """
    return _enclosed(epsilon)[1]


def _enclosed(epsilon: float) -> tuple[Fraction, Fraction]:
    value = read_epsilon("epsilon", epsilon)
    if value > _MAX_EPSILON:
        raise ArgumentError(f"epsilon must be at most {_MAX_EPSILON:g} here: more says nothing about a small universe.")
    with flint.ctx.workprec(BITS):
        ball = flint.arb(value).exp()
        return exact_end(ball.lower()), exact_end(ball.upper())


def exact_end(end: Any) -> Fraction:
    """Return the exact value of a ball without radius: an end of another ball."""
    mantissa, exponent = end.man_exp()
    return Fraction(int(mantissa)) * Fraction(2) ** int(exponent)


def exact_above(ball: Any) -> float:
    """Return the smallest float at or above every point of a ball of numbers of at least 0."""
    return float_above(max(Fraction(0), exact_end(ball.upper())))


def ball_of(value: Fraction) -> Any:
    """Return the ball of a rational number at the current precision."""
    return flint.arb(flint.fmpq(value.numerator, value.denominator))


def read_number(name: str, value: object, least: float = 0.0) -> float:
    """Return `value` as a finite float of at least `least`, or raise `ArgumentError`."""
    number = read_epsilon(name, value, least)
    if math.isinf(number):
        raise ArgumentError(f"{name} must be at least {least:g} and finite.")
    return number


def read_epsilon(name: str, value: object, least: float = 0.0) -> float:
    """Return `value` as a float of at least `least`, ``inf`` allowed, or raise `ArgumentError`."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise ArgumentError(f"{name} must be a number of at least {least:g}, not {type(value).__name__}.")
    try:
        number = float(value) + 0.0
    except OverflowError:
        number = math.inf
    if not number >= least:
        raise ArgumentError(f"{name} must be a number of at least {least:g}.")
    return number


def read_growth(name: str, value: object) -> Fraction:
    """Return `value`, an exact number of at least 1, or raise `ArgumentError`."""
    if isinstance(value, bool) or not isinstance(value, Rational):
        raise ArgumentError(
            f"{name} must be an exact number, not {type(value).__name__}: write Fraction(11, 10), or growth_below(0.1) "
            "for e^0.1."
        )
    exact = Fraction(value)
    if exact < 1:
        raise ArgumentError(f"{name} stands for e^ε with ε at least 0, so it must be at least 1, got {value!r}.")
    return exact


Law: TypeAlias = dict[Hashable, Fraction]

_Outcome = TypeVar("_Outcome", bound=Hashable)


def read_law(name: str, law: Mapping[_Outcome, object]) -> dict[_Outcome, Fraction]:
    """Return `law` without outcomes of probability 0, or raise `ArgumentError`."""
    if not isinstance(law, Mapping):
        raise ArgumentError(f"{name} must be a mapping from outcomes to probabilities, not {type(law).__name__}.")
    read: dict[_Outcome, Fraction] = {}
    for outcome, chance in law.items():
        if isinstance(chance, bool) or not isinstance(chance, Rational):
            raise ArgumentError(
                f"{name} must have exact probabilities: write Fraction(1, 10), not 0.1 (got {chance!r})."
            )
        exact = Fraction(chance)
        if exact < 0:
            raise ArgumentError(f"{name} must have probabilities of at least 0, got {chance!r}.")
        if exact > 0:
            read[outcome] = exact
    if sum(read.values()) != 1:
        raise ArgumentError(f"the probabilities of {name} must add up to exactly 1.")
    return read


def summed(chances: Iterable[tuple[_Outcome, Fraction]]) -> dict[_Outcome, Fraction]:
    """Return the law of outcomes that may be listed several times."""
    law: dict[_Outcome, Fraction] = {}
    for outcome, chance in chances:
        law[outcome] = law.get(outcome, Fraction(0)) + chance
    return law


def divergence(first: Mapping[_Outcome, Fraction], second: Mapping[_Outcome, Fraction], growth: Fraction) -> Fraction:
    """Return the largest ``P(S) - growth Q(S)`` over all events S: how far `first` is from `second`."""
    nothing = Fraction(0)
    return sum(
        (max(nothing, chance - growth * second.get(outcome, nothing)) for outcome, chance in first.items()), nothing
    )


def read_guarantee(name: str, value: object) -> tuple[float, float]:
    """Return `value` as a pair of floats, ε at least 0 (``inf`` allowed) and δ in [0, 1], or raise `ArgumentError`."""
    if not isinstance(value, tuple) or len(value) != 2:
        raise ArgumentError(f"{name} must be a pair (epsilon, delta), such as (1.0, 1e-6).")
    return read_epsilon(f"epsilon of {name}", value[0]), probability(f"delta of {name}", value[1])
