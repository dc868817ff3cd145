"""Between ε and e^ε: rationals on either side, and floats at or above a rational."""

from __future__ import annotations

import math
from fractions import Fraction
from numbers import Rational
from typing import Any

import flint

from pkdp_pipeline.errors import ArgumentError

__all__ = ["BITS", "exact_end", "float_above", "growth_above", "growth_below", "read_epsilon", "read_growth"]

BITS = 192
"""Precision of balls; what is read off them is off by about 1e-57, relatively."""

_LARGEST = 700.0
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
    if value > _LARGEST:
        raise ArgumentError(f"epsilon must be at most {_LARGEST:g} here: more says nothing about a small universe.")
    with flint.ctx.workprec(BITS):
        ball = flint.arb(value).exp()
        return exact_end(ball.lower()), exact_end(ball.upper())


def exact_end(end: Any) -> Fraction:
    """Return the exact value of a ball without radius: an end of another ball."""
    mantissa, exponent = end.man_exp()
    return Fraction(int(mantissa)) * Fraction(2) ** int(exponent)


def float_above(value: Fraction) -> float:
    """Return the smallest float at or above `value`, which is at least 0; `math.inf` beyond all floats."""
    try:
        rounded = float(value)
    except OverflowError:
        return math.inf
    return rounded if math.isinf(rounded) or Fraction(rounded) >= value else math.nextafter(rounded, math.inf)


def read_epsilon(name: str, value: object) -> float:
    """Return `value` as a float of at least 0, ``inf`` allowed, or raise `ArgumentError`."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not value >= 0:
        raise ArgumentError(f"{name} must be a number of at least 0, got {value!r}.")
    try:
        return float(value) + 0.0
    except OverflowError:
        return math.inf


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
