"""Crowd: one attacker in full, that is, how likely everybody is to be where, and which two lives are compared.

Besides: whether a crowd keeps to what is declared, the extreme people that a declaration admits, and every extreme
crowd of a small instance. The divergence is convex in each chance, so the worst attackers are among those whose
chances are vertices.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations_with_replacement

from pkdp_pipeline.certificates.release_certificate import ReleaseCertificate
from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.model.attacker import AttackerModel
from pkdp_pipeline.model.mechanisms import Count, Protects
from pkdp_pipeline.model.wording import probability, whole_number

Shape = tuple[float, ...]
"""Chances of one person."""

Life = int | None
"""The cell a person is in; None: absent, or not counted. A `Count` has the one cell 0, unless it counts everybody."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Equal people, independent of one another and of everybody else.

    `chances`: the probability of each cell, exactly as the floats are; what is left is absence. Raises `ArgumentError`
    if a number is out of range or the chances exceed 1.
    """

    people: int
    chances: tuple[float, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "people", whole_number("people of a Group", self.people, least=0))
        chances = tuple(probability("chances of a Group", chance) for chance in self.chances)
        object.__setattr__(self, "chances", chances)
        if self.absence < 0:
            raise ArgumentError("chances of a Group add up to more than 1; a person is in one cell, or absent.")

    @property
    def absence(self) -> Fraction:
        """The probability of being in no cell, exactly."""
        return 1 - sum(map(Fraction, self.chances), Fraction(0))

    @property
    def is_certain(self) -> bool:
        """Whether it is known beforehand where these people are."""
        return all(chance in (0.0, 1.0) for chance in self.chances)


@dataclass(frozen=True, slots=True, kw_only=True)
class Crowd:
    """One attacker in full.

    Raises `ArgumentError` if a group, the controlled people or a life do not fit the cells.

    Parameters
    ----------
    cells : int
        Number of cells of the table; 1 for a `Count`. A `Count` of several cells counts everybody who is in one.
    unknown : tuple of Group
        People whose records the attacker does not see.
    known : tuple of Group
        People whose records the attacker is shown, drawn like those of the others.
    controlled : tuple of int
        How many people are surely in each cell, by the attacker's doing; ``()`` is none.
    first, second : int or None
        The target's two lives. The result is the divergence of everything the attacker sees in the first life
        from what is seen in the second.
    sees_total : bool, default False
        Whether the attacker is also told how many people are in the cells, all together and exactly.
    adds : int, default 1
        By how much the target changes a cell that only one of the lives is in; `controlled` is the sum of the others.

    Notes
    -----
    The population of a `Count` with ``k_complement`` is everybody named here and the target; people who are surely
    absent belong to it.
    """

    cells: int
    unknown: tuple[Group, ...] = ()
    known: tuple[Group, ...] = ()
    controlled: tuple[int, ...] = ()
    first: Life = 0
    second: Life = None
    sees_total: bool = False
    adds: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "cells", whole_number("cells of a Crowd", self.cells, least=1))
        for groups in (self.unknown, self.known):
            if any(len(group.chances) != self.cells for group in groups):
                raise ArgumentError(f"every Group of a Crowd with {self.cells} cells needs {self.cells} chances.")
        if self.controlled and len(self.controlled) != self.cells:
            raise ArgumentError(f"controlled of a Crowd must be empty or hold {self.cells} numbers, one per cell.")
        controlled = tuple(whole_number("controlled of a Crowd", people, least=0) for people in self.controlled)
        object.__setattr__(self, "controlled", controlled)
        for life in (self.first, self.second):
            if life is not None and not (isinstance(life, int) and 0 <= life < self.cells):
                raise ArgumentError(f"a life is a cell from 0 to {self.cells - 1}, or None for absent; got {life!r}.")
        if self.first == self.second:
            raise ArgumentError("the two lives of a Crowd must differ.")

    @property
    def population(self) -> int:
        """How many people there are, the target and those who are surely absent included."""
        return 1 + sum(group.people for group in (*self.unknown, *self.known)) + sum(self.controlled)

    def reversed(self) -> Crowd:
        """Return the same people with the target's lives in the other order."""
        return replace(self, first=self.second, second=self.first)


def is_admitted(crowd: Crowd, certificate: ReleaseCertificate) -> bool:
    """Return whether `crowd` is one of the attackers that `certificate` is about.

    `certificate`: where it rests on nothing that is declared (noise alone), every crowd of the right form is admitted.

    Notes
    -----
    Unknown people have to keep to `p_min`, `p_max` and `p_max_between`, known people as well unless they are
    controlled. At least `unknown` people are unknown; of them at most `unknown_max` are uncertain (a person who is
    surely absent is not unknown). Where the secret is a record given those it depends on (`secret`), everybody but
    the unknown may be known. An attacker who sees the total must be declared to (`leakage`). *Rounding*: none;
    chances are compared as the exact values of their floats.
    """
    attacker = certificate.attacker
    counted = isinstance(certificate.mechanism, Count)
    absent = (crowd.first, crowd.second).count(None)
    if absent != (1 if certificate.protects == "presence" else 0) or (counted and absent and crowd.cells > 1):
        return False
    if crowd.sees_total and not attacker.total_is_known:
        return False
    if not certificate.has_partial_knowledge:
        return True
    active = attacker.influence == "active"
    controlled = sum(crowd.controlled)
    known = sum(group.people for group in crowd.known) + controlled
    if attacker.secret == "record" and (known > attacker.known or (controlled > 0 and not active)):
        return False
    uncertain = sum(group.people for group in crowd.unknown if not group.is_certain)
    if attacker.unknown_max is not None and uncertain > attacker.unknown_max:
        return False
    if attacker.unknown is not None and sum(group.people for group in crowd.unknown) < attacker.unknown:
        return False
    bound = crowd.unknown if active or attacker.secret == "conditional" else (*crowd.unknown, *crowd.known)
    return all(keeps(group, attacker, counted, certificate.protects) for group in bound if group.people)


def keeps(group: Group, attacker: AttackerModel, counted: bool, protects: Protects) -> bool:
    """Return whether the chances of `group` keep to what `attacker` declares about a person, exactly."""
    chances = [Fraction(chance) for chance in group.chances]
    least, most = (None if p is None else Fraction(p) for p in (attacker.p_min, attacker.p_max))
    if least is not None and min(chances) < least:
        return False
    if counted:
        return most is None or max(chances) <= most
    absence = group.absence
    # P[v | v or absent] ≤ p_max, for every cell; a person who can be neither does not matter.
    if most is not None and any(chance * (1 - most) > most * absence for chance in chances):
        return False
    if attacker.p_max_between is None or protects == "presence":
        return True
    # P[v | v or w] ≤ p_max_between, for every two cells; cells that the crowd leaves out have the chance 0.
    between = Fraction(attacker.p_max_between)
    others = [*chances, Fraction(0)] if len(chances) == 1 else chances
    return all(
        first * (1 - between) <= between * second
        for i, first in enumerate(others)
        for j, second in enumerate(others)
        if i != j
    )


def knows_total(crowd: Crowd, attacker: AttackerModel) -> Crowd:
    """Return the crowd with what is declared to be known beside the release: the total, where that leaks."""
    return replace(crowd, sees_total=True) if attacker.total_is_known else crowd


def counted_shapes(attacker: AttackerModel) -> tuple[Shape, ...]:
    """Return the ends of what a `Count` is told about a person, the largest first."""
    low = 0.0 if attacker.p_min is None else attacker.p_min
    high = 1.0 if attacker.p_max is None else attacker.p_max
    return ((high,),) if low == high else ((high,), (low,))


def histogram_shapes(attacker: AttackerModel, protects: Protects, cells: int) -> tuple[Shape, ...]:
    """Return extreme people of a table with `cells` cells, of whom the first two are the target's.

    Notes
    -----
    With odds against absence of at most ``o = p_max / (1 - p_max)``, and odds between cells of at most
    ``r = p_max_between / (1 - p_max_between)``, weights are o, o/r or 0 for a cell and 1 for absence; where nobody
    needs to be absent also r and 1. Floats are rounded until the declaration holds exactly; what cannot be is left out.
    """
    p = None if attacker.p_max is None else Fraction(attacker.p_max)
    between = attacker.p_max_between if protects == "value" else None
    q = None if between is None else Fraction(between)
    least = Fraction(0 if attacker.p_min is None else attacker.p_min)
    candidates: list[Sequence[Fraction]] = []
    if p is not None and p < 1:
        odds = p / (1 - p)
        lower = Fraction(0) if q is None else odds * (1 - q) / q
        candidates += [[*levels, Fraction(1)] for levels in _levels(odds, lower, cells)]
        # The least that p_min allows, the rest absent.
        candidates.append([*[least] * cells, 1 - cells * least])
    elif q is not None and q < 1:
        ratio = q / (1 - q)
        candidates += [[*levels, Fraction(0)] for levels in _levels(ratio, Fraction(1), cells)]
    elif least > 0:
        rest = 1 - cells * least
        candidates += [
            [least + rest * (cell == favoured) for cell in range(cells)] + [Fraction(0)]
            for favoured in range(cells)
            if rest >= 0
        ]
        candidates.append([Fraction(1, cells)] * cells + [Fraction(0)])
    if least == 0:
        candidates.append([Fraction(0)] * cells + [Fraction(1)])
    shapes = (_rounded(weights, attacker, protects) for weights in candidates if min(weights) >= 0)
    return tuple(dict.fromkeys(shape for shape in shapes if shape is not None))


def _levels(high: Fraction, low: Fraction, cells: int) -> Iterable[list[Fraction]]:
    """Return every choice of `high` or `low` for each cell but ``low`` for all."""
    for mask in range(1, 2**cells):
        yield [high if mask >> cell & 1 else low for cell in range(cells)]


def _rounded(weights: Sequence[Fraction], attacker: AttackerModel, protects: Protects) -> Shape | None:
    """Return the chances of these weights as floats that keep to the declaration, or None."""
    total = sum(weights, Fraction(0))
    if total <= 0:
        return None
    exact = [weight / total for weight in weights[:-1]]
    # To the nearest, then a few steps down, cell by cell: ratios between cells have to stay where they are.
    for steps in range(4):
        for which in range(2 ** len(exact)):
            chances = tuple(_down(value, steps * (which >> cell & 1)) for cell, value in enumerate(exact))
            if sum(map(Fraction, chances)) <= 1:
                group = Group(people=1, chances=chances)
                if keeps(group, attacker, counted=False, protects=protects):
                    return chances
    return None


def _down(value: Fraction, steps: int) -> float:
    result = float(value)
    for _ in range(steps):
        result = math.nextafter(result, 0.0)
    return result


MAX_CROWDS = 160
"""This many crowds make an instance small, in both orders of the lives together."""

_MAX_PEOPLE = 14
_MAX_KNOWN = 3


def vertices(certificate: ReleaseCertificate, *, most: int = MAX_CROWDS) -> tuple[Crowd, ...]:
    """Return all extreme attackers with up to some number of unknown people; the number is as large as `most` allows.

    Notes
    -----
    Extreme means that every person's chances are a vertex of what is declared about one person. Attackers are the same
    when people change places, so what counts is how many people are of each kind. Besides, for counts, one attacker of
    each size to whom no two people are alike.
    """
    least = certificate.attacker.unknown or 0
    if not certificate.has_partial_knowledge or least > _MAX_PEOPLE:
        return ()
    cap = certificate.attacker.unknown_max
    accepted: dict[Crowd, None] = {}
    for people in range(least, _MAX_PEOPLE + 1):
        if cap is not None and people > cap and certificate.attacker.p_min:
            break
        crowds = [
            knows_total(crowd, certificate.attacker)
            for crowd in _with(certificate, people)
            if is_admitted(crowd, certificate)
        ]
        if len(accepted) + len(crowds) > most:
            break
        accepted |= dict.fromkeys(crowds)
    return tuple(accepted)


def _with(certificate: ReleaseCertificate, people: int) -> Iterator[Crowd]:
    """Yield the extreme attackers with exactly `people` unknown people."""
    if isinstance(certificate.mechanism, Count):
        cells, second, shapes = 1, None, counted_shapes(certificate.attacker)
    else:
        cells, second = 2, 1 if certificate.protects == "value" else None
        shapes = histogram_shapes(certificate.attacker, certificate.protects, cells)
    for unknown in _groups(shapes, people):
        for known, controlled in _known(certificate.attacker, shapes, cells):
            crowd = Crowd(cells=cells, unknown=unknown, known=known, controlled=controlled, second=second)
            yield from (crowd, crowd.reversed())
    if cells == 1 and people > 1 and len(shapes) == 2:
        (high,), (low,) = shapes
        steps = (low + (high - low) * (people - rank) / people for rank in range(people))
        graded = tuple(Group(people=1, chances=(min(high, step),)) for step in steps)
        crowd = Crowd(cells=1, unknown=graded)
        yield from (crowd, crowd.reversed())


def _groups(shapes: tuple[Shape, ...], people: int) -> Iterator[tuple[Group, ...]]:
    for chosen in combinations_with_replacement(range(len(shapes)), people):
        numbers = [chosen.count(kind) for kind in range(len(shapes))]
        yield tuple(Group(people=n, chances=shape) for n, shape in zip(numbers, shapes, strict=True) if n)


def _known(
    attacker: AttackerModel, shapes: tuple[Shape, ...], cells: int
) -> Iterator[tuple[tuple[Group, ...], tuple[int, ...]]]:
    """Yield ways to know or control as many people as are declared, or a few of them."""
    people = attacker.known
    if not people:
        yield (), ()
    elif attacker.influence == "active":
        for in_first in range(people + 1) if people <= _MAX_KNOWN else (0, people):
            if cells == 1:
                yield (Group(people=people - in_first, chances=(0.0,)),), (in_first,)
            else:
                yield (), (in_first, people - in_first, *[0] * (cells - 2))
    else:
        for known in _groups(shapes, min(people, _MAX_KNOWN)):
            yield known, ()
