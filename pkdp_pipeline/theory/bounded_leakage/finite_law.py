"""Laws of finitely many outcomes with rational probabilities, and how far two of them are apart."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from fractions import Fraction
from numbers import Rational
from typing import TypeAlias, TypeVar

from pkdp_pipeline.errors import ArgumentError

__all__ = ["Law", "divergence", "read_law"]

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


def divergence(first: Mapping[_Outcome, Fraction], second: Mapping[_Outcome, Fraction], growth: Fraction) -> Fraction:
    """Return the largest ``P(S) - growth Q(S)`` over all events S: how far `first` is from `second`."""
    nothing = Fraction(0)
    return sum(
        (max(nothing, chance - growth * second.get(outcome, nothing)) for outcome, chance in first.items()), nothing
    )
