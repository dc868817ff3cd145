"""Exact laws of how many people are in each cell, in rationals or in rigorous balls."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import flint

from pkdp_pipeline.assurance.attacks.crowd import Group

__all__ = ["BALLS", "RATIONALS", "Counts", "Numbers", "counted_in_one_cell", "counted_per_cell"]

Counts = tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Numbers:
    """A kind of number to enumerate with.

    Parameters
    ----------
    exact : bool
        Whether they are rationals; otherwise they are balls of `pkdp_pipeline.assurance.attacks.enumeration.BITS` bits.
    of : callable
        Turns a float, exactly, or a whole number into one.
    """

    exact: bool
    of: Callable[[float], Any]

    def positive(self, number: Any) -> Any:
        """Return ``max(0, number)``."""
        if self.exact:
            return number if number > 0 else flint.fmpq(0)
        return number.nonnegative_part()


def _ratio(number: float) -> Any:
    return flint.fmpq(*float(number).as_integer_ratio())


RATIONALS = Numbers(exact=True, of=_ratio)
BALLS = Numbers(exact=False, of=flint.arb)


def counted_in_one_cell(groups: Iterable[Group], cell: int, numbers: Numbers) -> list[Any]:
    """Return the law of how many of these people are in `cell`, as a list from 0 on."""
    kind = flint.fmpq_poly if numbers.exact else flint.arb_poly
    law: Any = kind([numbers.of(1)])
    sure = 0
    for group in groups:
        chance = group.chances[cell]
        if chance == 1.0:
            sure += group.people
        elif chance > 0.0 and group.people:
            law *= kind(_successes(group.people, chance, numbers))
    return [numbers.of(0)] * sure + list(law.coeffs())


def _successes(people: int, chance: float, numbers: Numbers) -> list[Any]:
    """Return the law of the number of successes among equal coins."""
    success = numbers.of(chance)
    failure = 1 - success
    if numbers.exact:
        return list((flint.fmpq_poly([failure, success]) ** people).coeffs())
    # Every weight is the one before times a ratio: all terms are positive, so the balls stay narrow relatively.
    odds = success / failure
    weights = [failure**people]
    for number in range(people):
        weights.append(weights[-1] * (people - number) / (number + 1) * odds)
    return weights


def counted_per_cell(groups: Iterable[Group], cells: Sequence[int], numbers: Numbers) -> dict[Counts, Any]:
    """Return the joint law of how many of these people are in each of `cells`; people elsewhere are left out."""
    law: dict[Counts, Any] = {(0,) * len(cells): numbers.of(1)}
    for group in groups:
        chances = [numbers.of(group.chances[cell]) for cell in cells]
        rest = 1 - sum(chances, numbers.of(0))
        law = _sum_of(law, _spread(group.people, [*chances, rest], group, cells, numbers))
    return law


def _spread(
    people: int, chances: Sequence[Any], group: Group, cells: Sequence[int], numbers: Numbers
) -> dict[Counts, Any]:
    """Return the multinomial law of equal people; `chances` has one entry more than `cells`, for everywhere else."""
    possible = [group.chances[cell] > 0.0 for cell in cells]
    powers = [_powers(chance, people, numbers) for chance in chances]
    elsewhere = sum(map(_exactly, (group.chances[cell] for cell in cells)), flint.fmpq(0)) < 1
    law: dict[Counts, Any] = {}

    def place(at: int, left: int, done: Counts, ways: Any, weight: Any) -> None:
        if at == len(cells):
            if left == 0 or elsewhere:
                law[done] = weight * powers[-1][left] * ways
            return
        choose = flint.fmpz(1)
        for here in range(left + 1 if possible[at] else 1):
            place(at + 1, left - here, (*done, here), ways * choose, weight * powers[at][here])
            choose = choose * (left - here) // (here + 1)

    place(0, people, (), flint.fmpz(1), numbers.of(1))
    return law


def _exactly(number: float) -> Any:
    return flint.fmpq(*number.as_integer_ratio())


def _powers(number: Any, most: int, numbers: Numbers) -> list[Any]:
    powers = [numbers.of(1)]
    for _ in range(most):
        powers.append(powers[-1] * number)
    return powers


def _sum_of(one: Mapping[Counts, Any], other: Mapping[Counts, Any]) -> dict[Counts, Any]:
    """Return the law of the sum of two independent tables."""
    if len(one) == 1 and not any(next(iter(one))):
        return dict(other)
    law: dict[Counts, Any] = {}
    for left, weight in one.items():
        for right, chance in other.items():
            both = tuple(x + y for x, y in zip(left, right, strict=True))
            law[both] = law[both] + weight * chance if both in law else weight * chance
    return law
