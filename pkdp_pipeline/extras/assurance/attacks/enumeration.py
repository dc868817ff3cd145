"""The exact divergence of one attacker: the joint law of everything that is seen, in both lives, enumerated.

A mechanism is written down from its definition. The steps, in every cell: count, suppress below `k` (and near the whole
population), add noise, suppress below `release_threshold`; where small counts are noised, those from `k` on are shown
as they are, and marked. A suppressed cell looks the same whatever the reason, and like a cell nobody is in. All
numbers are balls that enclose the truth; chances are the exact values of their floats. Nothing here uses
`pkdp_pipeline.theorems`: what is enumerated has to be independent of what is certified.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from operator import add
from typing import Any

import flint

from pkdp_pipeline.extras.assurance.attacks.crowd import Crowd, Group
from pkdp_pipeline.model.mechanisms import Count, Mechanism, Sum, noised_below, sensitivity

BITS = 320
"""Precision of balls."""

LARGEST = 400_000
"""The largest `size` allowed; it takes a few seconds."""

Counts = tuple[int, ...]
Law = dict[Counts, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """The steps that act on one cell.

    Parameters
    ----------
    least, most : int
        Counts outside this range are suppressed before the noise; `most` is None where there is no upper end.
    noise : float, optional
        ε0.
    release : int, optional
        Noisy counts below are suppressed.
    exact : int, optional
        Counts from here on are shown without noise, and can be told from noisy ones.
    sensitivity : int
        The change that the noise is for.
    """

    least: int = 0
    most: int | None = None
    noise: float | None = None
    release: int | None = None
    exact: int | None = None
    sensitivity: int = 1

    @property
    def alpha(self) -> Any:
        """The ball of ``e^{-ε0/Δ}``."""
        assert self.noise is not None
        return (-flint.arb(self.noise) / self.sensitivity).exp()

    def shows(self, counts: Any) -> Any:
        """Return whether a true count, or each of an array, reaches the noise, or the public."""
        return counts >= self.least if self.most is None else (counts >= self.least) & (counts <= self.most)

    def reaching(self, first: int, last: int, *, noised: bool = False) -> range:
        """Return which true counts from `first` to `last` reach the public; or which the noise, if `noised`."""
        ends = (last, self.most, None if self.exact is None or not noised else self.exact - 1)
        return range(max(first, self.least), min(end for end in ends if end is not None) + 1)


def cell_of(mechanism: Mechanism, population: int) -> Cell:
    """Return what `mechanism` does to each of its cells; `population` is public and matters to `k_complement` only."""
    complement = mechanism.k_complement if isinstance(mechanism, Count) else None
    least = int(mechanism.below == "noise_from_1") if noised_below(mechanism) else mechanism.k or 0
    if isinstance(mechanism, Sum):
        # Of cells that are found in the data those are looked at that have people where they have a sum above 0.
        least = 1 if mechanism.cells_found else _LEAST_SUM
    return Cell(
        least=least,
        most=None if complement is None else population - complement,
        noise=None if mechanism.noise is None else mechanism.noise.epsilon,
        release=mechanism.release_threshold,
        exact=mechanism.k if noised_below(mechanism) else None,
        sensitivity=sensitivity(mechanism),
    )


_LEAST_SUM = -(2**63)


@dataclass(frozen=True, slots=True, kw_only=True)
class Enumerated:
    """The divergence of an attacker's first life from the second: ``lower ≤ truth ≤ upper``, about 1e-90 apart."""

    lower: Fraction
    upper: Fraction


def size(mechanism: Mechanism, crowd: Crowd) -> int:
    """Return how many terms an enumeration takes; it is done up to `LARGEST`."""
    cells = _telling(crowd)
    unknown: list[int] = [group.people for group in crowd.unknown]
    known: list[int] = [group.people for group in crowd.known]
    if len(cells) == 1:
        people = sum(unknown) + sum(crowd.controlled) + 1 + abs(crowd.adds)
        # Laws of different people are multiplied as polynomials, which takes more than in proportion.
        several = len([group for group in crowd.unknown if not group.is_certain]) > 1
        return people * (sum(known) + 1) + (people**2 // 20_000 if several else 0)
    # Convolving the groups, then pushing every table through every cell's noise.
    tables = [_tables(group, cells) for group in crowd.unknown]
    steps = sum(math.prod(tables[: index + 1]) for index in range(len(tables))) + 1
    known_outcomes = math.prod(_tables(group, cells) for group in crowd.known)
    side = sum(unknown) + abs(crowd.adds)
    pushed: int = min(math.prod(tables), side ** len(cells))
    if mechanism.noise is not None:
        pushed *= (side + 3) * len(cells) * 2 * (side if crowd.sees_total else 1)
    return steps + known_outcomes * pushed * 2


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

    `epsilon`: at least 0 and finite.

    Notes
    -----
    The divergence is that of everything the attacker sees: the records of the known people together with all
    published cells, and the number of people in them where the crowd sees that. *Guarantee*:
    ``lower ≤ truth ≤ upper``. *Rounding*: outward.
    """
    if size(mechanism, crowd) > LARGEST:
        return None
    with flint.ctx.workprec(BITS):
        return hockey_stick(listed_laws(mechanism, crowd), epsilon)


def listed_laws(mechanism: Mechanism, crowd: Crowd) -> tuple[tuple[Any, Any], ...]:
    """Return `laws`; kept, because the same crowd is asked for at several ε and in both orders of its lives."""
    if crowd.first is None or (crowd.second is not None and crowd.second < crowd.first):
        return tuple((first, second) for second, first in _listed(mechanism, crowd.reversed()))
    return _listed(mechanism, crowd)


@lru_cache(maxsize=4)
def _listed(mechanism: Mechanism, crowd: Crowd) -> tuple[tuple[Any, Any], ...]:
    with flint.ctx.workprec(BITS):
        return tuple(laws(mechanism, crowd))


def hockey_stick(pairs: Iterable[tuple[Any, Any]], epsilon: float) -> Enumerated:
    """Return ``Σ max(0, first - e^ε second)``, rounded outward."""
    growth = flint.arb(epsilon).exp()
    total = sum(((first - growth * second).nonnegative_part() for first, second in pairs), flint.arb(0))
    lower, upper = _rational(total.lower()), _rational(total.upper())
    return Enumerated(lower=max(Fraction(0), lower), upper=min(Fraction(1), upper))


def _rational(ball: Any) -> Fraction:
    mantissa, exponent = ball.man_exp()
    return Fraction(int(mantissa)) * Fraction(2) ** int(exponent)


def laws(mechanism: Mechanism, crowd: Crowd) -> Iterator[tuple[Any, Any]]:
    """Yield the probabilities of everything that may be seen: pairs (in the first life, in the second)."""
    cells, step = _telling(crowd), cell_of(mechanism, crowd.population)
    # A count is one number: that of everybody who is in any of the cells; so is the total of a group.
    whole = isinstance(mechanism, Count) or mechanism.totals
    if crowd.sees_total and (whole or len(cells) == 1):
        step = Cell()  # the attacker is told the number itself: what else is said about it says nothing more
    others, known_law = (_counted(groups, cells, whole=whole) for groups in (crowd.unknown, crowd.known))
    fixed = tuple(crowd.controlled[cell] if crowd.controlled else 0 for cell in cells)
    lives = [tuple(crowd.adds * (cell == life) for cell in cells) for life in (crowd.first, crowd.second)]
    if whole:
        fixed, lives = (sum(crowd.controlled),), [(sum(life),) for life in lives]
    zero = flint.arb(0)
    numbers = [others.get((x,), zero) for x in range(1 + max(others)[0])] if len(fixed) == 1 else []
    for known, weight in known_law.items():
        base = tuple(map(add, known, fixed))
        if numbers:
            first, second = (_published_number(step, numbers, base[0], life[0], crowd.adds) for life in lives)
        else:
            first, second = (_published(step, others, base, life, crowd) for life in lives)
        for output, chance in first.items():
            yield weight * chance, weight * second.pop(output, zero)
        yield from ((zero, weight * chance) for chance in second.values())


def _counted(groups: Sequence[Group], cells: Sequence[int], *, whole: bool) -> Law:
    """Return the joint law of how many of these people are in each of `cells`, or in any of them (`whole`)."""
    if len(cells) == 1:
        return {(count,): weight for count, weight in enumerate(_in_one_cell(groups, cells[0]))}
    law: Law = {(0,) * len(cells): flint.arb(1)}
    for group in groups:
        law = _collected(
            (tuple(map(add, first, second)), weight * chance)
            for (first, weight), (second, chance) in itertools.product(law.items(), _spread(group, cells))
        )
    return _collected(((sum(counts),), weight) for counts, weight in law.items()) if whole else law


def _collected(weights: Iterable[tuple[Any, Any]]) -> dict[Any, Any]:
    """Return the sum of the weights of each outcome."""
    law: dict[Any, Any] = {}
    for outcome, weight in weights:
        law[outcome] = law[outcome] + weight if outcome in law else weight
    return law


def _in_one_cell(groups: Iterable[Group], cell: int) -> list[Any]:
    """Return the law of how many of these people are in `cell`, as a list from 0 on."""
    law, sure = flint.arb_poly([flint.arb(1)]), 0
    for group in groups:
        chance = group.chances[cell]
        if chance == 1.0:
            sure += group.people
        elif chance > 0.0 and group.people:
            success = flint.arb(chance)
            failure = 1 - success
            # Every weight is the one before times a ratio: all terms are positive, so the balls stay narrow relatively.
            weights, odds = [failure**group.people], success / failure
            for number in range(group.people):
                weights.append(weights[-1] * (group.people - number) / (number + 1) * odds)
            law *= flint.arb_poly(weights)
    return [flint.arb(0)] * sure + list(law.coeffs())


def _spread(group: Group, cells: Sequence[int]) -> list[tuple[Counts, Any]]:
    """Return the multinomial law of equal people; those elsewhere are left out."""
    chances = [flint.arb(group.chances[cell]) for cell in cells]
    rest = 1 - sum(chances, flint.arb(0))
    powers = [[chance**people for people in range(group.people + 1)] for chance in (*chances, rest)]
    possible = [group.chances[cell] > 0.0 for cell in cells]
    elsewhere = sum(Fraction(group.chances[cell]) for cell in cells) < 1
    law: list[tuple[Counts, Any]] = []

    def place(index: int, left: int, done: Counts, ways: Any, weight: Any) -> None:
        if index == len(cells):
            if left == 0 or elsewhere:
                law.append((done, weight * powers[-1][left] * ways))
            return
        choose = flint.fmpz(1)
        for here in range(left + 1 if possible[index] else 1):
            place(index + 1, left - here, (*done, here), ways * choose, weight * powers[index][here])
            choose = choose * (left - here) // (here + 1)

    place(0, group.people, (), flint.fmpz(1), flint.arb(1))
    return law


def _published_number(step: Cell, others: Sequence[Any], base: int, life: int, adds: int) -> dict[Hashable, Any]:
    """Return the law of the output of a single number, whose `others` are 0, 1, 2, ... people with these weights."""
    start, last = base + life, base + life + len(others) - 1
    if step.noise is not None:
        noised = step.reaching(base + min(0, adds), base + len(others) - 1 + max(0, adds), noised=True)
        return _noisy(step, dict(enumerate(others, start)), noised)
    shown = step.reaching(start, last)
    law: dict[Hashable, Any] = dict(zip(shown, others[shown.start - start :], strict=False))
    if len(shown) < len(others):
        law[None] = sum((others[x - start] for x in range(start, last + 1) if x not in shown), flint.arb(0))
    return law


def _published(step: Cell, others: Law, base: Counts, life: Counts, crowd: Crowd) -> dict[Hashable, Any]:
    """Return the joint law of all cells' outputs, and of the total, when `base` and the target are surely there."""
    start, width = tuple(map(add, base, life)), len(base)
    current: dict[Any, Any] = {tuple(map(add, counts, start)): weight for counts, weight in others.items()}
    if crowd.sees_total:
        current = {(*counts, sum(counts)): weight for counts, weight in current.items()}
    if step.noise is None:
        # States of which all cells are shown stay as they are.
        for state in [state for state in current if not all(map(step.shows, state[:width]))]:
            output = (*[x if step.shows(x) else None for x in state[:width]], *state[width:])
            current[output] = current.pop(state) + current.get(output, 0)
        return current
    # One cell after the other goes through its noise; what lies on the right of it is still a true count.
    for index, least in enumerate(base):
        most = least + max(counts[index] for counts in others)
        noised = step.reaching(least + min(0, crowd.adds), most + max(0, crowd.adds), noised=True)
        lines: dict[tuple[Any, ...], dict[int, Any]] = {}
        for state, weight in current.items():
            lines.setdefault((*state[:index], *state[index + 1 :]), {})[state[index]] = weight
        current = {
            (*rest[:index], output, *rest[index:]): weight
            for rest, line in lines.items()
            for output, weight in _noisy(step, line, noised).items()
        }
    return current


def _noisy(step: Cell, law: Mapping[int, Any], noised: range) -> dict[Hashable, Any]:
    """Return the law of what is published with noise, when the true count has the law `law`.

    `law`: the weight of each true count. `noised`: counts that may reach the noise in any law that is compared with
    this one.

    Notes
    -----
    ``Σ_x law(x) α^|o - x|`` for all outputs `o` by one recursion from the left and one from the right. Outputs up to
    the first of `noised`, and from the last on, have the same ratio of probabilities in any two lives: each of the two
    tails is one.
    """
    alpha, (low, top) = step.alpha, (noised[0], noised[-1]) if noised else (0, 0)
    bottom = min(low, top - 1)
    first = bottom + 1 if step.release is None else max(step.release, bottom + 1)
    above = max(top, first)
    zero = flint.arb(0)
    weights = [law.get(x, zero) for x in noised] or [zero]
    left, right = list(weights), [zero] * len(weights)
    for index in range(1, len(weights)):
        left[index] = left[index - 1] * alpha + weights[index]
        right[-1 - index] = (right[-index] + weights[-index]) * alpha
    share = (1 - alpha) / (1 + alpha)
    shown: dict[Hashable, Any] = {o: share * (left[o - low] + right[o - low]) for o in range(first, above)}
    if step.exact is not None:
        shown |= {("exact", x): weight for x, weight in law.items() if x >= step.exact}
    shown["above"] = left[-1] * alpha ** (above - top) / (1 + alpha)
    if step.release is None or step.release <= bottom:
        below = (weights[0] + right[0]) * alpha ** (low - bottom) / (1 + alpha)
        shown["below"] = below if step.release is None else below * (1 - alpha ** (bottom - step.release + 1))
    suppressed = sum(law.values(), zero) - sum(shown.values(), zero)
    return {**shown, None: suppressed}
