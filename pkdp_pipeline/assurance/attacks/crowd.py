"""Crowd: one attacker in full, that is, how likely everybody is to be where, and which two lives are compared."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.model.arguments import probability, whole_number

__all__ = ["Crowd", "Group", "Life"]

Life = int | None
"""The cell a person is in; None: absent, or not counted. A `Count` has the one cell 0, unless it counts everybody."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Equal people, independent of one another and of everybody else.

    Parameters
    ----------
    people : int
    chances : tuple of float
        The probability of each cell, exactly as the floats are; what is left is absence.

    Raises
    ------
    ArgumentError
        If a number is out of range or the chances exceed 1.
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
        The target's two lives. What is told is the divergence of everything the attacker sees in the first life
        from what is seen in the second.
    sees_total : bool, default False
        Whether the attacker is also told how many people are in the cells, all together and exactly.

    Notes
    -----
    The population of a `Count` with ``k_complement`` is everybody named here and the target; people who are surely
    absent belong to it.

    Raises
    ------
    ArgumentError
        If a group, the controlled people or a life do not fit the cells.
    """

    cells: int
    unknown: tuple[Group, ...] = ()
    known: tuple[Group, ...] = ()
    controlled: tuple[int, ...] = ()
    first: Life = 0
    second: Life = None
    sees_total: bool = False

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
