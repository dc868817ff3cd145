"""The exact divergence of one attacker: the joint law of everything that is seen, in both lives, enumerated.

Probabilities are the exact values of their floats: rationals where few people are concerned, and rigorous balls
elsewhere. e^ε and ``α = e^{-ε0}`` are enclosed. Nothing here uses `pkdp_pipeline.theorems`.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import flint

from pkdp_pipeline.assurance.attacks.crowd import Crowd, Group, Life
from pkdp_pipeline.assurance.attacks.laws import (
    BALLS,
    RATIONALS,
    Cell,
    Counts,
    Numbers,
    cell_of,
    counted_in_one_cell,
    counted_per_cell,
    noisy_kernel,
    noisy_outputs,
    outputs,
)
from pkdp_pipeline.model.mechanisms import Count, Mechanism

BITS = 320
"""Precision of balls."""

LARGEST = 400_000
"""What `size` may be at most; that takes a few seconds."""

_EXACT = Cell(least=0, most=None, noise=None, release=None)

_RATIONAL_PEOPLE = 48
"""Up to this many people probabilities are rational numbers; their digits grow with every one of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Enumerated:
    """The divergence of an attacker's first life from the second: ``lower ≤ truth ≤ upper``.

    The two differ by about 1e-90, because e^ε (and noise) is no rational number, and not at all at ε = 0 without noise
    among few people.
    """

    lower: Fraction
    upper: Fraction


def size(mechanism: Mechanism, crowd: Crowd) -> int:
    """Return how many terms an enumeration takes; it is done up to `LARGEST`."""
    cells = _telling(crowd)
    unknown: list[int] = [group.people for group in crowd.unknown]
    known: list[int] = [group.people for group in crowd.known]
    if len(cells) == 1:
        people = sum(unknown) + sum(crowd.controlled) + 2
        # Laws of different people are multiplied as polynomials, which takes more than in proportion.
        several = len([group for group in crowd.unknown if not group.is_certain]) > 1
        return people * (sum(known) + 1) + (people**2 // 20_000 if several else 0)
    # Convolving the groups, then pushing every table through every cell's kernel.
    tables = [_tables(group, cells) for group in crowd.unknown]
    steps = sum(math.prod(tables[: at + 1]) for at in range(len(tables))) + 1
    seen = math.prod(_tables(group, cells) for group in crowd.known)
    side = sum(unknown) + 1
    pushed: int = min(math.prod(tables), side ** len(cells))
    if mechanism.noise is not None:
        pushed *= (side + 3) * len(cells) * 2 * (side if crowd.sees_total else 1)
    return steps + seen * pushed * 2


def _tables(group: Group, cells: list[int]) -> int:
    """Return in how many ways the people of a group may be spread over the cells and elsewhere."""
    places = sum(group.chances[cell] > 0.0 for cell in cells)
    return math.comb(group.people + places, places)


def _telling(crowd: Crowd) -> list[int]:
    """Return the cells that differ from a constant: where somebody may be, or the target is in one life."""
    return [
        cell
        for cell in range(crowd.cells)
        if cell in (crowd.first, crowd.second)
        or any(group.chances[cell] > 0.0 for group in (*crowd.unknown, *crowd.known) if group.people)
    ]


def enumerated(mechanism: Mechanism, crowd: Crowd, epsilon: float) -> Enumerated | None:
    """Return the exact divergence of `crowd` at `epsilon`, or None where `size` is above `LARGEST`.

    Parameters
    ----------
    mechanism : Count or Histogram
    crowd : Crowd
    epsilon : float
        At least 0 and finite.

    Notes
    -----
    The divergence is that of everything the attacker sees: the records of the known people together with all
    published cells, and the number of people in them where the crowd sees that. *Guarantee*:
    ``lower ≤ truth ≤ upper``. *Rounding*: outward.
    """
    if size(mechanism, crowd) > LARGEST:
        return None
    with flint.ctx.workprec(BITS):
        lower, upper = hockey_stick(_listed(mechanism, crowd), epsilon, numbers_for(mechanism, crowd))
    return Enumerated(lower=lower, upper=upper)


@lru_cache(maxsize=4)
def _listed(mechanism: Mechanism, crowd: Crowd) -> tuple[tuple[Any, Any], ...]:
    """Return `laws`; kept, because the same crowd is asked for at several ε in a row."""
    return tuple(laws(mechanism, crowd, numbers_for(mechanism, crowd)))


def numbers_for(mechanism: Mechanism, crowd: Crowd) -> Numbers:
    """Return the kind of number in which this crowd is enumerated."""
    return RATIONALS if mechanism.noise is None and crowd.population <= _RATIONAL_PEOPLE else BALLS


def laws(mechanism: Mechanism, crowd: Crowd, numbers: Numbers) -> Iterable[tuple[Any, Any]]:
    """Return the probabilities of everything that may be seen: pairs (in the first life, in the second)."""
    cells = _telling(crowd)
    step = cell_of(mechanism, crowd.population)
    if crowd.sees_total and (len(cells) == 1 or isinstance(mechanism, Count)):
        # The attacker is told the number itself: what else is said about it says nothing more.
        step = _EXACT
    if len(cells) == 1 or isinstance(mechanism, Count):
        return _one_number(step, crowd, cells, numbers)
    return _several_cells(step, crowd, cells, numbers)


def hockey_stick(pairs: Iterable[tuple[Any, Any]], epsilon: float, numbers: Numbers) -> tuple[Fraction, Fraction]:
    """Return rationals at or below, and at or above, ``Σ max(0, first - e^ε second)``."""
    growth = flint.arb(epsilon).exp()
    if not numbers.exact:
        total = sum((numbers.positive(first - growth * second) for first, second in pairs), flint.arb(0))
        return max(Fraction(0), _rational(total.lower())), min(Fraction(1), _rational(total.upper()))
    low, high = (flint.fmpq(1),) * 2 if epsilon == 0.0 else (_quotient(growth.lower()), _quotient(growth.upper()))
    least, most = flint.fmpq(0), flint.fmpq(0)
    for first, second in pairs:
        least += numbers.positive(first - high * second)
        most += numbers.positive(first - low * second)
    return Fraction(int(least.p), int(least.q)), Fraction(int(most.p), int(most.q))


def _rational(ball: Any) -> Fraction:
    mantissa, exponent = ball.man_exp()
    return Fraction(int(mantissa)) * Fraction(2) ** int(exponent)


def _quotient(ball: Any) -> Any:
    exact = _rational(ball)
    return flint.fmpq(exact.numerator, exact.denominator)


def _totals(tables: Mapping[Counts, Any], numbers: Numbers) -> list[Any]:
    law = [numbers.of(0)] * (1 + max(map(sum, tables)))
    for counts, weight in tables.items():
        law[sum(counts)] += weight
    return law


def _one_number(step: Cell, crowd: Crowd, cells: list[int], numbers: Numbers) -> Iterable[tuple[Any, Any]]:
    """Yield what one count tells: that of a cell, or of everybody who is in any of several."""
    sides = crowd.unknown, crowd.known
    controlled = sum(crowd.controlled)
    if len(cells) == 1:
        others, seen = (counted_in_one_cell(groups, cells[0], numbers) for groups in sides)
        controlled = crowd.controlled[cells[0]] if crowd.controlled else 0
    else:
        others, seen = (_totals(counted_per_cell(groups, cells, numbers), numbers) for groups in sides)
    zero = numbers.of(0)
    for shift, weight in enumerate(seen):
        base = [zero] * (shift + controlled) + others
        lives = [[zero, *base] if life in cells else base for life in (crowd.first, crowd.second)]
        if step.noise is None:
            one, other = (outputs(step, life, numbers) for life in lives)
        else:
            counts = [x for x in range(shift + controlled, len(base) + 1) if step.shows(x)]
            if not counts:
                yield weight, weight
                continue
            alpha = (-flint.arb(step.noise)).exp()
            low, top = counts[0], counts[-1]
            one, other = (noisy_outputs(step, life, alpha, low, top, numbers) for life in lives)
        for output in one.keys() | other.keys():
            yield weight * one.get(output, zero), weight * other.get(output, zero)


def _several_cells(step: Cell, crowd: Crowd, cells: list[int], numbers: Numbers) -> Iterable[tuple[Any, Any]]:
    others = counted_per_cell(crowd.unknown, cells, numbers)
    seen = counted_per_cell(crowd.known, cells, numbers)
    fixed = tuple(crowd.controlled[cell] if crowd.controlled else 0 for cell in cells)
    zero = numbers.of(0)
    for known, weight in seen.items():
        base = tuple(map(sum, zip(known, fixed, strict=True)))
        one, other = (
            _published(step, others, _with_target(base, cells, life), base, numbers, sees_total=crowd.sees_total)
            for life in (crowd.first, crowd.second)
        )
        for output in one.keys() | other.keys():
            yield weight * one.get(output, zero), weight * other.get(output, zero)


def _with_target(base: Counts, cells: list[int], life: Life) -> Counts:
    return tuple(count + (cell == life) for count, cell in zip(base, cells, strict=True))


def _published(
    step: Cell, others: Mapping[Counts, Any], added: Counts, base: Counts, numbers: Numbers, *, sees_total: bool
) -> dict[Hashable, Any]:
    """Return the joint law of all cells' outputs, and of the total, when `added` people are surely there."""
    tables = {tuple(map(sum, zip(counts, added, strict=True))): weight for counts, weight in others.items()}
    law: dict[Hashable, Any] = {}
    if step.noise is None:
        for counts, weight in tables.items():
            shown = (*(count if step.shows(count) else None for count in counts), sum(counts) if sees_total else None)
            law[shown] = law[shown] + weight if shown in law else weight
        return law
    alpha = (-flint.arb(step.noise)).exp()
    # One cell after the other goes through its noise; what lies on the right of it is still a true count.
    current: dict[tuple[Any, ...], Any] = {
        (*counts, sum(counts) if sees_total else None): weight for counts, weight in tables.items()
    }
    for at, start in enumerate(base):
        top = start + 1 + max(counts[at] for counts in others)
        reached = [count for count in range(start, top + 1) if step.shows(count)]
        low, high = (reached[0], reached[-1]) if reached else (0, 0)
        kernels: dict[int, Mapping[Hashable, Any]] = {}
        pushed: dict[tuple[Any, ...], Any] = {}
        for state, weight in current.items():
            count = state[at]
            if count not in kernels:
                kernels[count] = noisy_kernel(step, count, alpha, low, high, numbers)
            for output, chance in kernels[count].items():
                after = (*state[:at], output, *state[at + 1 :])
                pushed[after] = pushed[after] + weight * chance if after in pushed else weight * chance
        current = pushed
    return dict(current)
