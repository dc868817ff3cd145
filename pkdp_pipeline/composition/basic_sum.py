"""Worst-case guarantees of several releases about the same people add up."""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction

from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.model.arguments import probability, whole_number
from pkdp_pipeline.theorems.rounding import float_above

__all__ = ["basic_sum"]


def basic_sum(parts: Iterable[tuple[float, float]], times: Iterable[int] | None = None) -> tuple[float, float]:
    """Add up worst-case (ε, δ) guarantees: basic composition of differential privacy.

    Parameters
    ----------
    parts : iterable of (float, float)
        One (ε, δ) for each release, ε ≥ 0 (``inf`` allowed) and δ in [0, 1]. Each must hold against any
        attacker, with fresh randomness in every release; partial-knowledge guarantees do not add up so.
    times : iterable of int, optional
        How often each part occurs; once where it is left out.

    Returns
    -------
    epsilon, delta : float
        ``(0.0, 0.0)`` for no parts.

    Raises
    ------
    ArgumentError
        If a part is not such a pair.

    Notes
    -----
    *Guarantee.* All parts together are (ε, δ)-differentially private against every attacker, also when
    later releases are chosen after seeing earlier ones.

    *Rounding.* Both sums are computed exactly and rounded up to the next float; δ is capped at 1, where it
    says nothing.

    `docs/mathematics.md`, section "Composition over a schedule", rule 6; Dwork and Roth, "The Algorithmic
    Foundations of Differential Privacy", Theorem 3.16.
    """
    listed = list(parts)
    often = [1] * len(listed) if times is None else [whole_number("times", number, least=1) for number in times]
    if len(often) != len(listed):
        raise ArgumentError("times must have one number for each part.")
    epsilons: list[float] = []
    deltas: list[float] = []
    for part in listed:
        if not isinstance(part, tuple) or len(part) != 2:
            raise ArgumentError("every part must be a pair (epsilon, delta).")
        epsilon, delta = part
        if isinstance(epsilon, bool) or not isinstance(epsilon, (int, float)) or not epsilon >= 0:
            raise ArgumentError(f"epsilon of a part must be a number of at least 0, got {epsilon!r}.")
        epsilons.append(float(epsilon))
        deltas.append(probability("delta of a part", delta))
    return _sum_up(epsilons, often), min(1.0, _sum_up(deltas, often))


def _sum_up(numbers: list[float], often: list[int]) -> float:
    """Return the smallest float that is at least the exact sum."""
    if math.inf in numbers:
        return math.inf
    exact = sum((Fraction(number) * n for number, n in zip(numbers, often, strict=True)), Fraction(0))
    return float_above(exact)
