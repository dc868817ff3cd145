"""From a SQL filter to a predicate: of what DuckDB parsed, listed nodes are read and everything else is refused."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from pkdp_pipeline.engines.relation_engine import INSTANTS
from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.model.predicate import (
    FLIPPED,
    Condition,
    Conjunction,
    Disjunction,
    Operator,
    Part,
    Predicate,
    conjunction,
    disjunction,
    like,
    like_pattern,
)
from pkdp_pipeline.sql.constants import SqlConstant, compared, members
from pkdp_pipeline.sql.parsing import call, cast, check_characters, fields, literal_of, named, parsed, refuse
from pkdp_pipeline.sql.tables import LACKING, column_named, is_enum, type_name

_OPERATORS: dict[str, Operator] = {
    "COMPARE_EQUAL": "==",
    "COMPARE_NOTEQUAL": "==",
    "COMPARE_LESSTHAN": "<",
    "COMPARE_LESSTHANOREQUALTO": "<=",
    "COMPARE_GREATERTHAN": ">",
    "COMPARE_GREATERTHANOREQUALTO": ">=",
}
_OPPOSITE: dict[Operator, Operator] = {"<": ">=", "<=": ">", ">": "<=", ">=": "<"}
#: What a filter may ask of a date, by the names that DuckDB has for it.
_PARTS: dict[str, Part] = {
    "year": "year",
    "month": "month",
    "day": "day",
    "dayofmonth": "day",
    "isodow": "weekday",
}
_LIKES = {"~~": False, "like_escape": False, "!~~": True, "not_like_escape": True}
#: A column, and what of its dates is meant.
_Term: TypeAlias = tuple[str, Part | None]
_EVERY_ROW, _NO_ROW = Conjunction(()), Disjunction(())


def from_sql(text: str, columns: Mapping[str, str], *, lacking: str = LACKING) -> Predicate | None:
    """Return the predicate that is true of the rows for which a SQL filter is true; None where it is of every row.

    The filter has SQL's meaning: what is unknown because of NULL is not selected, not even by NOT. NaN counts
    as NULL, as it does in keys and units. Numbers, dates and times are compared exactly, whatever the type of
    the column; only for FLOAT and DOUBLE columns, the constant is the nearest number of that type. A time
    compared with a TIMESTAMP WITH TIME ZONE needs its offset from UTC: it must not depend on the session.

    Filters that differ in case, white space, parentheses, the order or repetition of the members of AND, OR and
    IN, in which side the constant is on, in how NOT, BETWEEN, IN, ``<>``, ``IS [NOT] TRUE`` and
    ``IS [NOT] DISTINCT FROM`` are spelled, or in how numbers and dates are spelled, give the same predicate. That
    two predicates differ does not mean that the filters do. `columns`: the table's column names and their DuckDB types,
    for example ``{"age": "TINYINT"}``. `lacking`: the words of an error about a column that is not among them. Raises
    `ArgumentError` if the filter cannot be read, has anything but columns, comparisons with constants, BETWEEN, IN, IS
    [NOT] NULL, TRUE or FALSE, AND, OR, NOT and parentheses, names a column that does not exist, compares a column with
    a constant of another type, or is true of no row, whatever the rows are.
    """
    check_characters(text)
    try:
        predicate = _Reader(columns, lacking).predicate(parsed(text), negated=False)
    except RecursionError:
        predicate = None
    if predicate is None:
        raise ArgumentError("filter is nested too deeply; write it flatter.")
    if predicate == _NO_ROW:
        raise ArgumentError("filter is true of no row, whatever the rows are; correct it or leave it out.")
    return None if predicate == _EVERY_ROW else predicate


class _Reader:
    def __init__(self, columns: Mapping[str, str], lacking: str) -> None:
        self._columns, self._lacking = columns, lacking
        self._booleans = frozenset(name for name, kind in columns.items() if kind == "BOOLEAN")

    def predicate(self, node: Mapping[str, Any], *, negated: bool) -> Predicate:
        """Return what is true exactly where a condition (where `negated`: its NOT) is true.

        NOT goes down to the comparisons, where it is exact in three-valued logic. Above them are AND and OR only,
        for which an unknown part that counts as false changes no row: both are true only because of parts that are.
        """
        kind = node["type"]
        if kind in ("CONJUNCTION_AND", "CONJUNCTION_OR"):
            (children,) = fields(node, "children")
            parts = [self.predicate(child, negated=negated) for child in children]
            return conjunction(parts) if (kind == "CONJUNCTION_AND") != negated else self._either(parts)
        if kind == "OPERATOR_NOT":
            ((child,),) = fields(node, "children")
            return self.predicate(child, negated=not negated)
        if kind in ("OPERATOR_IS_NULL", "OPERATOR_IS_NOT_NULL"):
            ((child,),) = fields(node, "children")
            name, part = self._term(child)
            return Condition(name, "isna", negated=negated != (kind == "OPERATOR_IS_NOT_NULL"), part=part)
        if kind in ("COMPARE_IN", "COMPARE_NOT_IN"):
            ((column, *constants),) = fields(node, "children")
            negated ^= kind == "COMPARE_NOT_IN"
            return self._members(self._term(column), list(map(literal_of, constants)), negated=negated)
        if kind == "COMPARE_BETWEEN":
            tested, low, high = fields(node, "input", "lower", "upper")
            term = self._term(tested)
            parts = [
                self._compared(term, ">=", literal_of(low), negated=negated),
                self._compared(term, "<=", literal_of(high), negated=negated),
            ]
            return self._either(parts) if negated else conjunction(parts)
        if kind in ("COMPARE_DISTINCT_FROM", "COMPARE_NOT_DISTINCT_FROM"):
            term, _, literal = self._sides(node, "==")
            distinct, (name, part) = negated != (kind == "COMPARE_DISTINCT_FROM"), term
            missing = Condition(name, "isna", negated=not distinct, part=part)
            parts = [self._members(term, [literal], negated=distinct), missing]
            return self._either(parts) if distinct else conjunction(parts)
        if kind in _OPERATORS:
            term, sign, literal = self._sides(node, _OPERATORS[kind])
            return self._compared(term, sign, literal, negated=negated != (kind == "COMPARE_NOTEQUAL"))
        if kind == "COLUMN_REF":
            flag = self._boolean(self._column(node)), None
            return self._members(flag, [SqlConstant("boolean", True)], negated=negated)
        if kind == "FUNCTION" and node["function_name"] in _LIKES:
            return self._like(node, negated=negated)
        literal = literal_of(node)
        if not isinstance(literal.value, bool):
            refuse(f"a {literal.kind} where a condition must stand")
        return _EVERY_ROW if literal.value != negated else _NO_ROW

    def _either(self, parts: Iterable[Predicate]) -> Predicate:
        return disjunction(parts, booleans=self._booleans)

    def _sides(self, node: Mapping[str, Any], sign: Operator) -> tuple[_Term, Operator, SqlConstant]:
        """Return the term, the sign and the constant of a comparison, whichever side they are on."""
        left, right = fields(node, "left", "right")
        if _may_be_term(right) and not _may_be_term(left):
            left, sign, right = right, FLIPPED[sign], left
        return self._term(left), sign, literal_of(right)

    def _compared(self, term: _Term, sign: Operator, literal: SqlConstant, *, negated: bool) -> Predicate:
        if sign == "==":
            return self._members(term, [literal], negated=negated)
        name, part = term
        self._check_numbers(term, [literal])
        return _of_part(compared(name, self._kind(term), _OPPOSITE[sign] if negated else sign, literal), part)

    def _members(self, term: _Term, literals: Sequence[SqlConstant], *, negated: bool) -> Predicate:
        name, part = term
        self._check_numbers(term, literals)
        return _of_part(members(name, self._kind(term), literals, negated=negated), part)

    def _kind(self, term: _Term) -> str:
        """Return the SQL type of what is compared; no year that DuckDB has is beyond that of a part."""
        name, part = term
        return self._columns[name] if part is None else "INTEGER"

    def _check_numbers(self, term: _Term, literals: Iterable[SqlConstant]) -> None:
        name, part = term
        for literal in literals if part is not None else ():
            if literal.kind != "number":
                raise ArgumentError(
                    f"filter compares the {part} of column {name!r} with a {literal.kind}: write a number, without "
                    "quotes."
                )

    def _like(self, node: Mapping[str, Any], *, negated: bool) -> Predicate:
        name, (tested, *given) = call(node)
        column, literals = self._column(tested), [literal_of(argument) for argument in given]
        texts = [literal.value for literal in literals if isinstance(literal.value, str) and literal.kind == "text"]
        if len(texts) != len(literals):
            raise ArgumentError(f"filter has a LIKE of column {column!r} with something other than a text.")
        kind = self._columns[column]
        if kind != "VARCHAR" and not is_enum(kind):
            raise ArgumentError(
                f"filter has a LIKE of column {column!r}, which has type {type_name(kind)}: only text has patterns."
            )
        text, escape = (*texts, "")[:2]
        if len(escape) > 1 or escape in ("%", "_"):
            raise ArgumentError("filter has an ESCAPE that is not one character, other than % and _.")
        unlike = negated != _LIKES[name]
        condition = like(column, like_pattern("filter", text, escape), negated=unlike)
        return conjunction([condition, Condition(column, "isna", negated=True)]) if unlike else condition

    def _term(self, node: Mapping[str, Any]) -> _Term:
        """Return a column, and what of its dates is meant."""
        if node["class"] != "FUNCTION":
            return self._column(node), None
        name, arguments = call(node)
        if name in ("date_part", "datepart") and len(arguments) == 2 and arguments[0]["class"] == "CONSTANT":
            name, arguments = str(literal_of(arguments[0]).value).lower(), arguments[1:]
        if name in ("dow", "dayofweek", "weekday"):
            raise ArgumentError(
                f"filter has {name}, which counts from another day elsewhere: write isodow(...), from 1 for Monday to "
                "7 for Sunday."
            )
        if name not in _PARTS or len(arguments) != 1:
            refuse(f"a function or operator, {node['function_name']}, where a column must stand")
        column = self._column(arguments[0])
        kind = self._columns[column]
        if kind in INSTANTS:
            raise ArgumentError(
                f"filter asks for the {_PARTS[name]} of column {column!r}, which has type {kind}: in every time zone "
                "it may be another one. Make a view with the local time, such as timezone('Europe/Oslo', "
                f"{column}), and filter by that."
            )
        if kind != "DATE" and not kind.startswith("TIMESTAMP"):
            raise ArgumentError(
                f"filter asks for the {_PARTS[name]} of column {column!r}, which has type {type_name(kind)}: only "
                "dates and timestamps have one."
            )
        return column, _PARTS[name]

    def _column(self, node: Mapping[str, Any]) -> str:
        if node["class"] == "CAST":
            # IS TRUE casts, which says nothing of a column that is boolean.
            child, kind = cast(node)
            if kind == "BOOLEAN" and child["class"] == "COLUMN_REF":
                return self._boolean(self._column(child))
        if node["class"] != "COLUMN_REF":
            refuse(f"{named(node)} where a column must stand")
        (names,) = fields(node, "column_names")
        if len(names) > 1:
            refuse("a dot: columns are named without their table")
        lacking = f"{self._lacking} (texts are written with '...')"
        return column_named("filter", names[0], self._columns, lacking=lacking)

    def _boolean(self, name: str) -> str:
        if name not in self._booleans:
            raise ArgumentError(
                f"filter uses column {name!r} as a condition, but it has type {type_name(self._columns[name])}: "
                "compare it with a constant."
            )
        return name


def _of_part(predicate: Predicate, part: Part | None) -> Predicate:
    """Return what is said of a column said of a part of its dates."""
    if isinstance(predicate, Conjunction):
        return conjunction(_of_part(member, part) for member in predicate.parts)
    return replace(predicate, part=part) if isinstance(predicate, Condition) else predicate


def _may_be_term(node: Mapping[str, Any]) -> bool:
    return node["class"] == "COLUMN_REF" or (node["class"] == "FUNCTION" and not node["is_operator"])
