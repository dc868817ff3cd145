"""The tree of a predicate, in one form for equal questions, and the text by which a ledger knows it.

Its leaves are conditions on a column; NOT is at the leaves only. A comparison with a missing value is false, and its
negation true: every node is true or false for every row.

A LIKE pattern has one spelling, and tests and a regular expression that mean the same in every engine.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from types import MappingProxyType
from typing import Literal, TypeAlias

from pkdp_pipeline.errors import ArgumentError

#: The longest pattern that is read, in characters.
_MAX_PATTERN_LENGTH = 200
_ESCAPE = "\\"


def like_pattern(argument: str, text: str, escape: str = _ESCAPE) -> str:
    r"""Return a pattern in its one spelling: ``\`` stands before a ``%``, ``_`` or ``\`` that means itself.

    Of neighbouring wildcards ``_`` comes first, and one ``%`` says what several do. `argument` is what an
    error names. `escape`: the character before one that means itself; empty where all ``%`` and ``_`` are wildcards.
    Raises `ArgumentError` if it is too long, or ends with the escape character.
    """
    if len(text) > _MAX_PATTERN_LENGTH:
        raise ArgumentError(
            f"{argument} has a pattern of more than {_MAX_PATTERN_LENGTH} characters; write a shorter one, or make a "
            "boolean column."
        )
    spelled, ones, many = "", 0, False
    characters = iter(text)
    for character in characters:
        itself = bool(escape) and character == escape
        if itself:
            character = next(characters, "")  # noqa: PLW2901
            if not character:
                raise ArgumentError(f"{argument} has a pattern that ends with its escape character; write it twice.")
        elif character in "%_":
            ones, many = ones + (character == "_"), many or character == "%"
            continue
        spelled, ones, many = spelled + "_" * ones + "%" * many + literally(character), 0, False
    return spelled + "_" * ones + "%" * many


def literally(text: str) -> str:
    """Return the pattern of this text alone."""
    return re.sub(r"[%_\\]", r"\\\g<0>", text)


def plain_pieces(pattern: str) -> tuple[str, ...] | None:
    """Return the texts around the ``%`` of a pattern; None where it has a ``_``."""
    tokens = re.findall(r"\\.|[^\\]", pattern, re.DOTALL)
    if "_" in tokens:
        return None
    return tuple("".join(token[-1] for token in piece) for piece in _split(tokens))


def _split(tokens: list[str]) -> list[list[str]]:
    pieces: list[list[str]] = [[]]
    for token in tokens:
        if token == "%":
            pieces.append([])
        else:
            pieces[-1].append(token)
    return pieces


def like_regex(pattern: str) -> str:
    """Return a regular expression, found in just the texts that a pattern matches.

    It is one that RE2 (DuckDB, Arrow, BigQuery), Rust (Polars) and Java (Spark) read alike; all but Java take time in
    proportion to the text, whatever the pattern.
    """
    wildcards = {"%": ".*", "_": "."}
    tokens = re.findall(r"\\.|[^\\]", pattern, re.DOTALL)
    return r"(?s)\A" + "".join(wildcards.get(token) or _character(token[-1]) for token in tokens) + r"\z"


def _character(character: str) -> str:
    plain = character.isascii() and character.isalnum()
    return character if plain else rf"\x{{{ord(character):x}}}"


#: A real number is finite. No text has a Decimal: it is what a column of decimals is compared with in the end.
Constant: TypeAlias = str | bool | int | float | Decimal
Operator: TypeAlias = Literal["==", "<", "<=", ">", ">=", "in", "isna", "like"]
Part: TypeAlias = Literal["year", "month", "day", "weekday"]
#: The parts of a date, as query strings spell them; a weekday is ISO's, from 1 for Monday to 7 for Sunday.
PARTS: Mapping[Part, str] = MappingProxyType(
    {"year": "dt.year", "month": "dt.month", "day": "dt.day", "weekday": "dt.isocalendar().day"}
)
#: The operators that say the same with both sides exchanged.
FLIPPED: Mapping[Operator, Operator] = MappingProxyType({"==": "==", "<": ">", "<=": ">=", ">": "<", ">=": "<="})


@dataclass(frozen=True, slots=True)
class Column:
    """A column that another one is compared with."""

    name: str

    def __str__(self) -> str:
        return _name(self.name)


@dataclass(frozen=True, slots=True)
class Condition:
    """One test of a column, or its negation.

    Parameters
    ----------
    operator : {"==", "<", "<=", ">", ">=", "in", "isna", "like"}
    operand : Column, constant or tuple of constants
        Several constants for "in", none for "isna", for "like" a pattern as `like_pattern` spells it.
    part : {"year", "month", "day", "weekday"}, optional
        The part of the column's dates that is tested, instead of the column itself.
    """

    column: str
    operator: Operator
    operand: Column | Constant | tuple[Constant, ...] = ()
    negated: bool = False
    part: Part | None = None

    @property
    def term(self) -> str:
        """The tested term, a column or a part of its dates, as query strings spell it."""
        return _name(self.column) + (f".{PARTS[self.part]}" if self.part else "")

    @property
    def constants(self) -> tuple[Constant, ...]:
        """The constants that the column is compared with."""
        if isinstance(self.operand, Column):
            return ()
        return self.operand if isinstance(self.operand, tuple) else (self.operand,)

    @property
    def columns(self) -> frozenset[str]:
        """The names of the columns."""
        return frozenset([self.column, *([self.operand.name] if isinstance(self.operand, Column) else [])])

    @property
    def conditions(self) -> Iterator[Condition]:
        """The conditions of the tree."""
        yield self

    @property
    def present(self) -> frozenset[str]:
        """Terms that have a value wherever it is true."""
        tested = self.negated == (self.operator == "isna")
        return frozenset([self.term, *map(_name, self.columns)]) if tested else frozenset()

    def __str__(self) -> str:
        name = self.term
        if self.operator == "isna":
            return f"{name}.notna()" if self.negated else f"{name}.isna()"
        if self.operator == "in":
            return f"{name} {'not in' if self.negated else 'in'} [{', '.join(map(repr, self.constants))}]"
        operand = str(self.operand) if isinstance(self.operand, Column) else repr(self.operand)
        if self.operator == "==":
            flag = self.operand is True and not self.negated
            return name if flag else f"{name} {'!=' if self.negated else '=='} {operand}"
        tested = f"{name}.str.like({operand})" if self.operator == "like" else f"{name} {self.operator} {operand}"
        return f"not {tested}" if self.negated else tested


@dataclass(frozen=True, slots=True)
class _Several:
    parts: tuple[Predicate, ...]

    @property
    def columns(self) -> frozenset[str]:
        """The names of the columns."""
        return frozenset().union(*(part.columns for part in self.parts))

    @property
    def conditions(self) -> Iterator[Condition]:
        """The conditions of the tree."""
        return (condition for part in self.parts for condition in part.conditions)


class Conjunction(_Several):
    """All of several predicates; of none, it is true of every row."""

    __slots__ = ()

    @property
    def present(self) -> frozenset[str]:
        """Terms that have a value wherever it is true."""
        return frozenset().union(*(part.present for part in self.parts))

    def __str__(self) -> str:
        return " and ".join(map(_enclosed, self.parts))


class Disjunction(_Several):
    """Any of several predicates; of none, it is true of no row."""

    __slots__ = ()

    @property
    def present(self) -> frozenset[str]:
        """Terms that have a value wherever it is true."""
        return frozenset.intersection(*(part.present for part in self.parts)) if self.parts else frozenset()

    def __str__(self) -> str:
        return " or ".join(map(_enclosed, self.parts))


Predicate: TypeAlias = Condition | Conjunction | Disjunction


def among(column: str, constants: Iterable[Constant], *, negated: bool = False, part: Part | None = None) -> Condition:
    """Return whether a column equals one of some constants, of which there is at least one."""
    distinct = {repr(constant): constant for constant in constants}
    values = sorted(distinct.values(), key=lambda value: (constant_family(value), value))
    if len(values) == 1:
        return Condition(column, "==", values[0], negated, part)
    return Condition(column, "in", tuple(values), negated, part)


def like(column: str, pattern: str, *, negated: bool = False) -> Condition:
    """Return whether a column's text has a pattern, as `like_pattern` spells it."""
    if pattern == "%":
        return Condition(column, "isna", negated=not negated)
    pieces = plain_pieces(pattern)
    if pieces is not None and len(pieces) == 1:
        return Condition(column, "==", pieces[0], negated)
    return Condition(column, "like", pattern, negated)


def conjunction(parts: Iterable[Predicate]) -> Predicate:
    """Return the AND of predicates in its one form."""
    members = [member for part in parts for member in (part.parts if isinstance(part, Conjunction) else (part,))]
    present = Conjunction(tuple(members)).present
    # Where a column has a value, it may be unequal to several constants at once, however missing values are negated.
    unequal: dict[tuple[str, Part | None], list[Constant]] = {}
    kept: list[Predicate] = []
    for member in members:
        if isinstance(member, Condition) and _equals(member) and member.negated and member.term in present:
            unequal.setdefault((member.column, member.part), []).extend(member.constants)
        else:
            kept.append(member)
    kept += [among(column, constants, negated=True, part=part) for (column, part), constants in unequal.items()]
    missing = _terms(filter(_is_missing, kept))
    flags = {(member.column, member.operand) for member in kept if isinstance(member, Condition) and _is_flag(member)}
    contradiction = missing & present or len(flags) > len({column for column, _ in flags})
    if contradiction or any(isinstance(member, Disjunction) and not member.parts for member in kept):
        return Disjunction(())
    implied = Conjunction(tuple(member for member in kept if not _is_notna(member))).present
    return _joined(Conjunction, [member for member in kept if not (_is_notna(member) and _terms([member]) <= implied)])


def disjunction(parts: Iterable[Predicate], *, booleans: Collection[str] = ()) -> Predicate:
    """Return the OR of predicates in its one form; a column of `booleans` is true or false wherever it has a value."""
    equal: dict[tuple[str, Part | None], list[Constant]] = {}
    kept: list[Predicate] = []
    for each in parts:
        for member in each.parts if isinstance(each, Disjunction) else (each,):
            if isinstance(member, Condition) and _equals(member) and not member.negated:
                equal.setdefault((member.column, member.part), []).extend(member.constants)
            else:
                kept.append(member)
    for (column, part), constants in equal.items():
        every = column in booleans and len(set(constants)) > 1
        kept.append(Condition(column, "isna", negated=True) if every else among(column, constants, part=part))
    notna, missing = _terms(filter(_is_notna, kept)), _terms(filter(_is_missing, kept))
    if missing & notna or any(isinstance(member, Conjunction) and not member.parts for member in kept):
        return Conjunction(())
    return _joined(Disjunction, [member for member in kept if _is_notna(member) or not member.present & notna])


def constant_family(constant: Constant) -> str:
    """Return what a constant can be compared with."""
    if isinstance(constant, bool):
        return "boolean"
    return "text" if isinstance(constant, str) else "number"


def _equals(condition: Condition) -> bool:
    return condition.operator in ("==", "in") and not isinstance(condition.operand, Column)


def _is_flag(condition: Condition) -> bool:
    return condition.operator == "==" and isinstance(condition.operand, bool) and not condition.negated


def _is_missing(predicate: Predicate) -> bool:
    return isinstance(predicate, Condition) and predicate.operator == "isna" and not predicate.negated


def _is_notna(predicate: Predicate) -> bool:
    return isinstance(predicate, Condition) and predicate.operator == "isna" and predicate.negated


def _terms(predicates: Iterable[Predicate]) -> frozenset[str]:
    return frozenset(condition.term for predicate in predicates for condition in predicate.conditions)


def _joined(kind: type[Conjunction | Disjunction], parts: Iterable[Predicate]) -> Predicate:
    distinct = {str(part): part for part in parts}
    if len(distinct) == 1:
        return next(iter(distinct.values()))
    return kind(tuple(distinct[text] for text in sorted(distinct)))


def _enclosed(predicate: Predicate) -> str:
    return str(predicate) if isinstance(predicate, Condition) else f"({predicate})"


def _name(name: str) -> str:
    """Return a column's name as query strings spell it."""
    plain = name.isascii() and name.isidentifier() and not keyword.iskeyword(name)
    return name if plain else "`" + name.replace("`", "``") + "`"
