"""Two explicit laws, read exactly, as the two sides of a privacy loss."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from fractions import Fraction
from numbers import Rational, Real
from typing import Any

import flint
import numpy as np

from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.theorems.rounding import ball_above
from pkdp_pipeline.theory.privacy_loss.side import LossSide

__all__ = ["Law", "explicit_sides"]

Law = Mapping[Any, Any] | Sequence[Any]
"""Probabilities of outcomes: by outcome, or in a fixed order."""

_NEAR_ONE = Fraction(1, 10**9)
"""Floats that sum up to 1 but for less than this are scaled so that they do."""


def explicit_sides(first: Law, second: Law) -> tuple[LossSide, LossSide]:
    """Return the losses above 0 of `first` against `second`, and of `second` against `first`.

    Raises
    ------
    ArgumentError
        If one is not a law, or they are lists of different length.
    """
    one, other = _read("first", first), _read("second", second)
    if not (isinstance(first, Mapping) or isinstance(second, Mapping)) and len(first) != len(second):
        raise ArgumentError("first and second must list the same outcomes: the lists differ in length.")
    if isinstance(first, Mapping) != isinstance(second, Mapping):
        raise ArgumentError("first and second must both be lists of probabilities, or both dicts by outcome.")
    return _side(one, other), _side(other, one)


def _read(name: str, law: Law) -> dict[Hashable, Fraction]:
    if isinstance(law, str | bytes) or not isinstance(law, Mapping | Sequence | np.ndarray):
        raise ArgumentError(f"{name} must be a list of probabilities, or a dict of them by outcome.")
    items = law.items() if isinstance(law, Mapping) else enumerate(law)
    found = {outcome: _exactly(name, chance) for outcome, chance in items}
    total = sum(found.values(), Fraction(0))
    if abs(total - 1) > _NEAR_ONE or (total != 1 and not any(isinstance(chance, float) for _, chance in _pairs(law))):
        raise ArgumentError(f"{name} must be a law: its probabilities must sum up to 1.")
    return {outcome: chance / total for outcome, chance in found.items() if chance}


def _pairs(law: Law) -> list[tuple[Any, Any]]:
    return list(law.items() if isinstance(law, Mapping) else enumerate(law))


def _exactly(name: str, chance: object) -> Fraction:
    if isinstance(chance, bool) or not isinstance(chance, Real):
        raise ArgumentError(f"{name} must hold probabilities: numbers or Fractions of at least 0.")
    if not isinstance(chance, Rational) and not math.isfinite(chance):
        raise ArgumentError(f"{name} must hold finite probabilities.")
    exact = Fraction(chance) if isinstance(chance, Rational | float) else Fraction(float(chance))
    if exact < 0:
        raise ArgumentError(f"{name} must hold probabilities of at least 0.")
    return exact


def _side(one: Mapping[Hashable, Fraction], other: Mapping[Hashable, Fraction]) -> LossSide:
    masses: dict[Fraction, Fraction] = {}
    infinite = Fraction(0)
    for outcome, chance in one.items():
        against = other.get(outcome, Fraction(0))
        if not against:
            infinite += chance
        elif chance > against:
            ratio = chance / against
            masses[ratio] = masses.get(ratio, Fraction(0)) + chance
    ratios = sorted(masses)
    with flint.ctx.workprec(256):
        losses = [ball_above(_ball(ratio).log()) for ratio in ratios]
        logs = [ball_above(_ball(masses[ratio]).log()) for ratio in ratios]
    return LossSide(losses=np.array(losses), log_masses=np.array(logs), infinite=_float_above(infinite))


def _ball(exact: Fraction) -> Any:
    return flint.arb(flint.fmpq(exact.numerator, exact.denominator))


def _float_above(exact: Fraction) -> float:
    number = float(exact)
    return number if Fraction(number) >= exact else math.nextafter(number, math.inf)
