"""Several releases, and releases beside a leakage, as printed: sums with more, or with less, than they need."""

from __future__ import annotations

import math

__all__ = ["advanced_composition", "private_leakage", "theorem_6"]

Pair = tuple[float, float]


def theorem_6(first: Pair, second: Pair, dependence: Pair, *, thesis: bool = False) -> Pair:
    """Return ``(ε1 + ε2 + ε', δ1 + δ2 + δ')``, Theorem 6 of the paper; the thesis prints 2ε'.

    **Sound** where `dependence` is that of the new release on *all* earlier ones together; with 2ε' **loose**.

    Parameters
    ----------
    first, second : tuple of float
        (ε, δ) of each release.
    dependence : tuple of float
        (ε', δ').
    thesis : bool
        Whether 2ε' takes the place of ε'.
    """
    share = 2.0 if thesis else 1.0
    return first[0] + second[0] + share * dependence[0], first[1] + second[1] + dependence[1]


def advanced_composition(part: Pair, parts: int, slack: float, *, misprint: bool = False) -> Pair:
    """Return ``(ε√(2k ln(1/δ')) + kε(e^ε - 1), kδ + δ')``; misprinted, with e^(ε-1) in place of e^ε - 1.

    **Sound and loose**. The misprint, too, is never below the truth, but no textbook proves it: above ε = 0.46 it is
    smaller than the formula, and for small ε it grows like kε, which is what the formula is there to avoid.

    Parameters
    ----------
    part : tuple of float
        (ε, δ) of each part.
    parts : int
        k.
    slack : float
        δ'.
    misprint : bool
        Whether the formula stands as in Theorem 16 of *Bounded-leakage differential privacy*.
    """
    epsilon, delta = part
    growth = math.exp(epsilon - 1.0) if misprint else math.expm1(epsilon)
    spread = epsilon * math.sqrt(2.0 * parts * math.log(1.0 / slack))
    return spread + parts * epsilon * growth, parts * delta + slack


def private_leakage(given: Pair, leakage: Pair, values: int) -> Pair:
    """Return ``(ε1 + ε2, δ1 + (1 + |O'|) δ2)``: (ε1, δ1) given a leakage that is itself (ε2, δ2)-private.

    **Sound and loose**: ``δ1 + δ2`` is enough, whatever the leakage can say. (A remark in *Bounded-leakage
    differential privacy*, after the proof of Theorem 4.)

    Parameters
    ----------
    given : tuple of float
        (ε, δ) of the release, given the leakage.
    leakage : tuple of float
        (ε, δ) of the leakage itself.
    values : int
        |O'|: how many values of the leakage are possible in both of two neighbouring data sets.
    """
    return given[0] + leakage[0], given[1] + (1 + values) * leakage[1]
