"""Laws: how many people are in each cell, and what a mechanism publishes about it, written from its definition.

Exact, in rationals or in rigorous balls. The steps, in every cell: count, suppress below `k` (and near the whole
population), add noise, suppress below `release_threshold`. A suppressed cell looks the same whatever the reason, and
like a cell nobody is in. Nothing here uses `pkdp_pipeline.theorems`: what is enumerated has to be independent of what
is certified.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import flint

from pkdp_pipeline.assurance.attacks.crowd import Group
from pkdp_pipeline.model.mechanisms import Count, Mechanism

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
    elsewhere = sum((_ratio(group.chances[cell]) for cell in cells), flint.fmpq(0)) < 1
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


SUPPRESSED = None
"""The one output of a cell that is not published."""


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
    """

    least: int
    most: int | None
    noise: float | None
    release: int | None

    def shows(self, counts: Any) -> Any:
        """Return whether a true count, or each of an array, reaches the noise, or the public."""
        return (counts >= self.least) & (self.most is None or counts <= self.most)


def cell_of(mechanism: Mechanism, population: int) -> Cell:
    """Return what `mechanism` does to each of its cells; `population` is public and matters to `k_complement` only."""
    most = None
    if isinstance(mechanism, Count) and mechanism.k_complement is not None:
        most = population - mechanism.k_complement
    return Cell(
        least=0 if mechanism.k is None else mechanism.k,
        most=most,
        noise=None if mechanism.noise is None else mechanism.noise.epsilon,
        release=mechanism.release_threshold,
    )


def outputs(cell: Cell, law: Sequence[Any], numbers: Numbers) -> dict[Hashable, Any]:
    """Return the law of what is published, without noise, when the true count has the law `law` (from 0 on)."""
    shown: dict[Hashable, Any] = {SUPPRESSED: numbers.of(0)}
    for count, weight in enumerate(law):
        if cell.shows(count):
            shown[count] = weight
        else:
            shown[SUPPRESSED] += weight
    return shown


def _edges(cell: Cell, low: int, top: int) -> tuple[int, int, int]:
    """Return (last of the low tail, first middle output, first of the high tail) of the noisy outputs.

    True counts that reach the noise lie in ``low … top``. Outputs up to the first number, and from the last one on,
    all have the same ratio of probabilities in any two lives, so each of the two tails can be one output.
    """
    bottom = min(low, top - 1)
    first = bottom + 1 if cell.release is None else max(cell.release, bottom + 1)
    return bottom, first, max(top, first)


def noisy_outputs(
    cell: Cell, law: Sequence[Any], alpha: Any, low: int, top: int, numbers: Numbers
) -> dict[Hashable, Any]:
    """Return the law of what is published with noise, when the true count has the law `law` (from 0 on).

    Parameters
    ----------
    cell : Cell
    law : sequence of numbers
    alpha : ball
        ``e^{-ε0}``.
    low, top : int
        Smallest and largest count that may reach the noise in any law that is compared with this one.
    numbers : Numbers

    Notes
    -----
    ``Σ_x law(x) α^|o - x|`` for all outputs `o` by one recursion from the left and one from the right.
    """
    bottom, first, above = _edges(cell, low, top)
    weights = [law[x] if x < len(law) and cell.shows(x) else numbers.of(0) for x in range(max(0, low), top + 1)]
    offset = max(0, low)
    left, right = list(weights), [numbers.of(0)] * len(weights)
    for at in range(1, len(weights)):
        left[at] = left[at - 1] * alpha + weights[at]
        right[-1 - at] = (right[-at] + weights[-at]) * alpha
    share = (1 - alpha) / (1 + alpha)
    shown: dict[Hashable, Any] = {o: share * (left[o - offset] + right[o - offset]) for o in range(first, above)}
    shown["above"] = left[-1] * alpha ** (above - top) / (1 + alpha)
    if cell.release is None or cell.release <= bottom:
        below = (weights[0] + right[0]) * alpha ** (offset - bottom) / (1 + alpha)
        shown["below"] = below if cell.release is None else below * (1 - alpha ** (bottom - cell.release + 1))
    shown[SUPPRESSED] = 1 - sum(shown.values(), numbers.of(0))
    return shown


def noisy_kernel(cell: Cell, count: int, alpha: Any, low: int, top: int, numbers: Numbers) -> Mapping[Hashable, Any]:
    """Return the law of what is published with noise about one true count; see `noisy_outputs`."""
    if not cell.shows(count):
        return {SUPPRESSED: numbers.of(1)}
    shown = noisy_outputs(cell, [numbers.of(x == count) for x in range(count + 1)], alpha, low, top, numbers)
    if cell.release is None:
        del shown[SUPPRESSED]
    return shown
