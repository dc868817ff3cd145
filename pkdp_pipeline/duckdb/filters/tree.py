"""What a filter is made of, as it is read and as it is written."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, TypeAlias

__all__ = [
    "FLIPPED",
    "NEGATED",
    "Among",
    "Both",
    "Column",
    "Compare",
    "Condition",
    "Constant",
    "Either",
    "Known",
    "Member",
    "Missing",
    "Negation",
    "NotAmong",
    "NotNull",
    "Null",
    "Operator",
    "Order",
    "Settled",
    "Value",
]

Operator: TypeAlias = Literal["=", "<>", "<", "<=", ">", ">="]
FLIPPED: dict[Operator, Operator] = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
NEGATED: dict[Operator, Operator] = {"=": "<>", "<>": "=", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column, under the catalog's spelling."""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Constant:
    """A constant as it is written: of which kind, and its value."""

    kind: Literal["number", "text", "boolean", "date", "timestamp", "instant"]
    value: Fraction | str | bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Null:
    """NULL, which is no constant to compare with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """TRUE or FALSE."""

    value: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Compare:
    """A column compared with a constant; unknown where the column is NULL."""

    column: str
    operator: Operator
    constant: Constant


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """Whether a column is one of several constants; unknown where it is NULL."""

    column: str
    constants: tuple[Constant, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Missing:
    """Whether a column is NULL."""

    column: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Negation:
    """NOT of a condition."""

    condition: Condition


@dataclass(frozen=True, slots=True, kw_only=True)
class Both:
    """AND of all parts."""

    parts: Collection[Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Either:
    """OR of all parts."""

    parts: Collection[Any]


Condition: TypeAlias = Known | Compare | Member | Missing | Negation | Both | Either


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """A constant as a column of its type holds it: how it sorts, and how a query string writes it."""

    order: Any
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """True where the column has a value on that side of a constant; false where it is NULL."""

    column: str
    operator: Literal["<", "<=", ">", ">="]
    value: Value


@dataclass(frozen=True, slots=True, kw_only=True)
class Among:
    """True where the column is one of the values; false where it is NULL."""

    column: str
    values: frozenset[Value]


@dataclass(frozen=True, slots=True, kw_only=True)
class NotAmong:
    """True where the column has a value that is none of these; false where it is NULL."""

    column: str
    values: frozenset[Value]


@dataclass(frozen=True, slots=True, kw_only=True)
class NotNull:
    """True where the column has a value."""

    column: str


Settled: TypeAlias = Known | Order | Among | NotAmong | NotNull | Missing | Both | Either
"""A condition that is true or false, never unknown; its `Both` and `Either` hold such conditions only."""
