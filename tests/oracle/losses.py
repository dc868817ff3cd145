"""Dominating pairs atom by atom, and products of them by enumeration, as exact fractions or balls."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import flint

__all__ = ["ball", "enumerated", "noise_pair", "profile", "reversed_pair", "shown_count", "waiting_times"]

Pair = list[tuple[Fraction, Fraction]]
BITS = 320


def waiting_times(t: int, p: float, cap: int) -> Pair:
    """Return the masses of the waiting times for t and for t+1 successes, both stopped after `cap` tosses."""
    chance = Fraction(p)

    def mass(successes: int, tosses: int) -> Fraction:
        ways = math.comb(tosses - 1, successes - 1)
        return ways * chance**successes * (1 - chance) ** (tosses - successes)

    atoms = [(mass(t, m), mass(t + 1, m) if m > t else Fraction(0)) for m in range(t, cap + 1)]
    return [*atoms, (1 - sum(first for first, _ in atoms), 1 - sum(second for _, second in atoms))]


def shown_count(k: int, p: float, people: int) -> Pair:
    """Return the masses of what is published, with one more person and without, when counts below k are hidden."""
    chance = Fraction(p)
    law = [math.comb(people, s) * chance**s * (1 - chance) ** (people - s) for s in range(people + 1)]
    hidden = sum(law[: max(0, k - 1)], Fraction(0)), sum(law[:k], Fraction(0))
    return [hidden, *((law[x - 1], law[x] if x <= people else Fraction(0)) for x in range(k, people + 2))]


def noise_pair(epsilon: float, cells: int) -> list[tuple[Any, Any]]:
    """Return the pair of two-sided geometric noise on one cell, or on one cell up and one down, as balls."""
    with flint.ctx.workprec(BITS):
        alpha = (-flint.arb(epsilon)).exp()
        one_cell = [(1 / (1 + alpha), alpha / (1 + alpha)), (alpha / (1 + alpha), 1 / (1 + alpha))]
        if cells == 1:
            return one_cell
        return [(a[0] * b[0], a[1] * b[1]) for a in one_cell for b in one_cell]


def reversed_pair(pair: Sequence[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    """Return the pair in the other order."""
    return [(second, first) for first, second in pair]


def ball(number: Any) -> Any:
    """Return a number as a ball."""
    if isinstance(number, Fraction):
        return flint.arb(flint.fmpq(number.numerator, number.denominator))
    return number


def profile(pair: Sequence[tuple[Any, Any]], epsilon: float) -> Any:
    """Return the ball of the divergence of one pair."""
    return enumerated([pair], epsilon)


def enumerated(pairs: Sequence[Sequence[tuple[Any, Any]]], epsilon: float) -> Any:
    """Return the ball of the divergence of a product of pairs: a sum over all combinations of outcomes."""
    with flint.ctx.workprec(BITS):
        growth = flint.arb(epsilon).exp()
        balls = [[(ball(first), ball(second)) for first, second in pair] for pair in pairs]
        total = flint.arb(0)
        for combination in itertools.product(*balls):
            first, second = flint.arb(1), flint.arb(1)
            for p, q in combination:
                first, second = first * p, second * q
            excess = first - growth * second
            if not excess < 0:
                total += excess.nonnegative_part()
        return total
