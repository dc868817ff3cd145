"""The tree of a query string: what it compares, without any engine's words.

A comparison with a missing value is false; `!=` and `not in` are the negations of `==` and `in`, so they are
true for missing values, as pandas has it for its default dtypes. Every node is true or false for every row.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

__all__ = [
    "Column",
    "Comparison",
    "Conjunction",
    "Disjunction",
    "Flag",
    "Membership",
    "Missing",
    "Negation",
    "Node",
    "Operand",
    "Value",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column of the frame, by its own name."""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """A constant; a real one is finite."""

    value: str | bool | int | float


Operand: TypeAlias = Column | Value


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """``==``, ``<``, ``<=``, ``>`` or ``>=`` between two operands of one family, of which one at least is a column."""

    left: Operand
    operator: str
    right: Operand


@dataclass(frozen=True, slots=True, kw_only=True)
class Membership:
    """Whether a column equals one of several constants of its family; there is at least one."""

    column: Column
    values: tuple[Value, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Missing:
    """Whether a column has no value."""

    column: Column


@dataclass(frozen=True, slots=True, kw_only=True)
class Flag:
    """Whether a boolean column is true."""

    column: Column


@dataclass(frozen=True, slots=True, kw_only=True)
class Negation:
    """What a condition is not."""

    part: Node


@dataclass(frozen=True, slots=True, kw_only=True)
class Conjunction:
    """All of several conditions."""

    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Disjunction:
    """Any of several conditions."""

    parts: tuple[Node, ...]


Node: TypeAlias = Comparison | Membership | Missing | Flag | Negation | Conjunction | Disjunction
