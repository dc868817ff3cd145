"""Counting the units of a DuckDB relation, in its own connection and in one statement."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from pkdp_pipeline.engines.question import ROUNDED, CellCounts, Doubts, Tally, Units, numbered, wrong_where
from pkdp_pipeline.engines.rows import Rows, asked, literal, quoted
from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.model.like import like_regex
from pkdp_pipeline.model.predicate import (
    Column,
    Condition,
    Conjunction,
    Constant,
    Part,
    Predicate,
    check_columns,
    check_families,
)
from pkdp_pipeline.model.question import Selection

if TYPE_CHECKING:
    import duckdb


@dataclass(frozen=True, slots=True)
class RelationEngine:
    """Counts the distinct units of a `duckdb.DuckDBPyRelation`; nothing is left in its connection."""

    def cells(self, frame: duckdb.DuckDBPyRelation, question: Selection) -> CellCounts:
        """See `Engine.cells`."""
        source = RelationColumns(frame)
        selected = [
            *source.units(question.unit),
            *source.keys(question.by),
            *(f"{source.ordering(name)} AS o{i}" for i, name in enumerate(question.order_by)),
        ]
        rows = Rows(frame, tuple(selected), source.condition(question.where))
        if question.unit and question.where is None and question.one_cell == "error" and question.cells_per_unit == 1:
            answer, units = rows.cells_by_code(question, source.doubts(question.unit))
        else:
            units = self.units(frame, question.unit)
            answer = rows.cells(question)
        return CellCounts.of(answer, question.by, lambda keys, name: to_public(keys, source.kinds[name]), units)

    def tally(self, frame: duckdb.DuckDBPyRelation, question: Selection) -> Tally:
        """See `Engine.tally`."""
        source = RelationColumns(frame)
        selected = [*source.units(question.unit), f"{source.condition(question.where)} AS hit"]
        doubts = source.doubts(question.unit)
        return Rows(frame, tuple(selected)).tally(len(question.unit), doubts, everybody=question.everybody)

    def units(self, frame: duckdb.DuckDBPyRelation, unit: tuple[str, ...]) -> Units:
        """See `Engine.units`."""
        source = RelationColumns(frame)
        return Rows(frame, tuple(source.units(unit))).units(len(unit), source.doubts(unit))


class RelationColumns:
    """A relation's columns as SQL."""

    def __init__(self, relation: duckdb.DuckDBPyRelation) -> None:
        self._columns, kinds = asked(lambda: (list(relation.columns), [str(kind) for kind in relation.types]))
        self.kinds = dict(zip(self._columns, kinds, strict=True))

    def units(self, unit: tuple[str, ...]) -> list[str]:
        """Return SQL for u0, u1, …: what is equal is one person."""
        self._check("unit", unit)
        for column in unit:
            check_unit(column, self.kinds[column])
        return [f"{comparable(quoted(name), self.kinds[name])} AS u{i}" for i, name in enumerate(unit)]

    def _check(self, argument: str, names: Sequence[str]) -> None:
        """Raise `ArgumentError` unless every name is one column's, also of what DuckDB has made a relation.

        Of an Arrow table or a file with columns ``g`` and ``G`` it calls the second one ``G_1``.
        """
        check_columns(argument, names, self._columns)
        for name in names:
            for column in self._columns:
                first = re.sub(r"_\d+$", "", column)
                if first not in (column, name) and first.casefold() == name.casefold():
                    raise ArgumentError(
                        f"{argument} names column {name!r}, and the relation has {column!r} as well, as DuckDB calls "
                        f"another column {first!r}: capitals and small letters are not told apart everywhere; rename "
                        "one."
                    )

    def doubts(self, unit: tuple[str, ...]) -> Doubts:
        """Return which of u0, u1, … are to be looked at."""
        kinds = {short: self.kinds[name] for short, name in zip(numbered("u", len(unit)), unit, strict=True)}
        return Doubts(
            texts=tuple(short for short, kind in kinds.items() if kind == "VARCHAR" or kind.startswith("ENUM(")),
            reals={short: ROUNDED[_REALS[kind]] for short, kind in kinds.items() if kind in _REALS},
        )

    def keys(self, by: tuple[str, ...]) -> list[str]:
        """Return SQL for b0, b1, …, which can name a cell."""
        self._check("by", by)
        return [f"{nameable(name, quoted(name), self.kinds[name])} AS b{i}" for i, name in enumerate(by)]

    def ordering(self, name: str) -> str:
        """Return SQL for what rows are ordered by."""
        self._check("order_by", [name])
        return comparable(quoted(name), self.kinds[name])

    def condition(self, where: Any) -> str:
        """Return SQL for whether a row counts."""
        if where is None:
            return "true"
        if isinstance(where, Predicate):
            self._check("where", sorted(where.columns))
            return predicate_sql(where, self.kinds)
        raise wrong_where(where, "a column name or a query string when the frame is a DuckDB relation")


#: The bits of reals.
_REALS: Mapping[str, int] = MappingProxyType({"FLOAT": 32, "DOUBLE": 64})
_INSTANT = "TIMESTAMP WITH TIME ZONE"
#: SQL types whose pandas dtype has a name; text, floats, dates and decimals are read in `to_public`.
_PLAIN: Mapping[str, str] = MappingProxyType(
    {
        "BOOLEAN": "boolean",
        "TINYINT": "Int8",
        "SMALLINT": "Int16",
        "INTEGER": "Int32",
        "BIGINT": "Int64",
        "UTINYINT": "UInt8",
        "USMALLINT": "UInt16",
        "UINTEGER": "UInt32",
        "UBIGINT": "UInt64",
        "TIMESTAMP": "datetime64[us]",
        "TIMESTAMP_S": "datetime64[us]",
        "TIMESTAMP_MS": "datetime64[us]",
        "TIMESTAMP_NS": "datetime64[ns]",
        _INSTANT: "datetime64[us]",
    }
)
_DECIMAL = re.compile(r"DECIMAL\((\d+),\s*(\d+)\)")


def is_number(column: str) -> str:
    """Return SQL for whether a quoted column of reals holds a number: neither NULL nor NaN.

    Not ``isnan``: where the statistics of a Parquet file name no NaN, which they never do, DuckDB 2 takes its answer
    from them instead of from the rows (https://github.com/duckdb/duckdb/issues/25521).
    """
    return f"(isfinite({column}) OR isinf({column})) IS TRUE"


def comparable(column: str, kind: str) -> str:
    """Return SQL for a quoted column under which equal values are one value and NaN is missing.

    Instants become points of UTC, which are spelled alike in every session.
    """
    if kind in _REALS:
        return f"CASE WHEN {is_number(column)} THEN {column}::DOUBLE + 0.0::DOUBLE END"
    if kind == _INSTANT:
        return f"timezone('UTC', {column})"
    return column


def check_unit(name: str, kind: str) -> None:
    """Raise `ArgumentError` where a unit's column may hold 7 and "7", which would be two people, or what has parts.

    Of intervals DuckDB keeps no nanoseconds, and takes a month for 30 days.
    """
    if kind.endswith("]") or kind.startswith(("STRUCT(", "MAP(")) or kind == "INTERVAL":
        raise ArgumentError(
            f"unit column {name!r} has type {_told(kind)}, whose values are not compared; cast it in the relation, for "
            "example to VARCHAR."
        )
    if kind.startswith("UNION(") or kind in ("JSON", "VARIANT"):
        raise ArgumentError(
            f"unit column {name!r} has type {kind.partition('(')[0]}, whose values may be text in one row and a number "
            "in another: one person would be counted as two. Extract text, or numbers, in the relation."
        )


def _told(kind: str) -> str:
    """Return a type without what is nested in it, such as the values of an ENUM."""
    return "LIST" if kind.endswith("]") else kind.partition("(")[0]


def nameable(name: str, column: str, kind: str) -> str:
    """Return SQL for a quoted by-column, or raise `ArgumentError` when its type cannot name cells.

    Text is compared as it is written: under a collation a cell would be named by one person's spelling. A date or
    a time outside the years 1 to 9999, such as infinity, is missing: it has no name in Python, and a table must not
    fail for one row.
    """
    # A column without a value in any row may have no type: in another period's file it has one.
    if kind.startswith("ENUM(") or kind in ("UUID", '"NULL"'):
        return f"{column}::VARCHAR"
    if kind == "VARCHAR":
        return f"{column} COLLATE C"
    if kind == "DATE" or kind.startswith("TIMESTAMP"):
        read = comparable(column, kind)
        return f"CASE WHEN year({read}) BETWEEN 1 AND 9999 THEN {read} END"
    if kind in _PLAIN or _DECIMAL.fullmatch(kind):
        return column
    if kind in _REALS:
        return comparable(column, kind)
    raise ArgumentError(
        f"by column {name!r} has type {_told(kind)}, which cannot name cells; cast it in the relation, for example "
        "to VARCHAR."
    )


def to_public(values: Any, kind: str) -> pd.Series[Any]:
    """Return an Arrow column of keys as a Series under the public dtype that its SQL type decides."""
    import pyarrow as pa

    dtype: Any = pd.StringDtype(na_value=np.nan)
    decimal = _DECIMAL.fullmatch(kind)
    if kind == "DATE":
        dtype = pd.ArrowDtype(pa.date32())
    elif decimal:
        dtype = pd.ArrowDtype(pa.decimal128(int(decimal[1]), int(decimal[2])))
    elif kind in _REALS:
        dtype = np.dtype("float64")
    else:
        dtype = _PLAIN.get(kind, dtype)
    keys: pd.Series[Any] = pd.Series(pd.arrays.ArrowExtensionArray(values)).astype(dtype)
    return keys.dt.tz_localize("UTC") if kind == _INSTANT else keys


_NUMBERS = frozenset(
    [sign + size for sign in ("", "U") for size in ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT")]
    + ["FLOAT", "DOUBLE"]
)


def predicate_sql(predicate: Predicate, kinds: Mapping[str, str]) -> str:
    """Return the SQL condition of a predicate; it is true or false, never NULL.

    `kinds` has the relation's columns and their SQL types.
    """
    check_families(predicate, {name: _family(kind) for name, kind in kinds.items()})
    return _sql(predicate, kinds)


def _family(kind: str) -> str:
    """Return what a column of this SQL type can be compared with."""
    if kind.endswith("]"):
        return kind  # a list or an array
    if kind == "VARCHAR" or kind.startswith("ENUM") or kind == "UUID":
        return "text"
    if kind == "TIMESTAMP WITH TIME ZONE":
        return "instant"
    if kind.startswith("TIME") and not kind.startswith("TIMESTAMP"):
        return "clock"
    if kind.startswith(("DATE", "TIME")):
        return "time"
    if kind in _NUMBERS or kind.startswith("DECIMAL"):
        return "number"
    return "boolean" if kind == "BOOLEAN" else kind


def _sql(predicate: Predicate, kinds: Mapping[str, str]) -> str:
    if isinstance(predicate, Condition):
        test = _test(predicate, kinds)
        return f"(NOT {test})" if predicate.negated else test
    word = " AND " if isinstance(predicate, Conjunction) else " OR "
    return f"({word.join(_sql(part, kinds) for part in predicate.parts)})"


def _test(condition: Condition, kinds: Mapping[str, str]) -> str:
    column, operand = _column(condition.column, kinds), condition.operand
    if condition.part is not None:
        column = f"{_PARTS[condition.part]}({column})"
    if condition.operator == "isna":
        return f"({column} IS NULL)"
    if condition.operator == "like":
        compared = _matched(f"{column}::VARCHAR", str(operand))
    elif isinstance(operand, Column):
        compared = f"{column} {condition.operator} {_column(operand.name, kinds)}"
    elif condition.operator == "in":
        # Whole numbers and reals apart: one list makes all of them doubles.
        lists = groupby(sorted(condition.constants, key=_is_real), key=_is_real)
        compared = " OR ".join(f"{column} IN ({', '.join(map(_constant, constants))})" for _, constants in lists)
    else:
        compared = f"{column} {condition.operator} {_constant(condition.constants[0])}"
    return f"coalesce({compared}, false)"


_PARTS: Mapping[Part, str] = MappingProxyType({"year": "year", "month": "month", "day": "day", "weekday": "isodow"})


def _matched(text: str, pattern: str) -> str:
    # DuckDB takes long for LIKE with % and _, and cannot be interrupted in it; a regular expression is read once.
    if "_" in pattern or "\\" in pattern:
        return f"regexp_matches({text}, {literal(like_regex(pattern))})"
    return f"{text} LIKE {literal(pattern)}"


def _column(name: str, kinds: Mapping[str, str]) -> str:
    column = quoted(name)
    # NaN is missing, as in pandas; DuckDB would take it for the largest number, equal to itself.
    return f"(CASE WHEN {is_number(column)} THEN {column} END)" if kinds[name] in _REALS else column


def _is_real(constant: Constant) -> bool:
    return isinstance(constant, float)


def _constant(constant: Constant) -> str:
    if isinstance(constant, str):
        return literal(constant)
    return f"{constant!r}::DOUBLE" if isinstance(constant, float) else str(constant).lower()
