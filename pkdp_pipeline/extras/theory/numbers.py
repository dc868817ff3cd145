"""Exact numbers: rationals on either side of e^ε, finite laws and their divergence, and their arguments."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping
from fractions import Fraction
from numbers import Rational, Real
from typing import Any, TypeAlias, TypeVar

import flint

from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.model.arguments import probability
from pkdp_pipeline.theorems.rounding import float_above

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
