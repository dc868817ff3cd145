"""Counting the units of a DuckDB relation, in its own connection and in one statement."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from pkdp_pipeline.engines import ROUNDED, CellCounts, Doubts, Tally, Units, guarded, numbered, wrong_where
from pkdp_pipeline.engines.rows import Rows, literal, matched, quoted
from pkdp_pipeline.engines.statements import operation, whole_number_sql
from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.model.columns import Bins, Selection, check_columns
from pkdp_pipeline.model.comparisons import DAY, SECOND, Values, settled, written_time
from pkdp_pipeline.model.keys import from_arrow
from pkdp_pipeline.model.predicate import Column, Condition, Conjunction, Constant, Part, Predicate

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
            *source.keys(question),
            *(f"{source.ordering(name)} AS o{i}" for i, name in enumerate(question.order_by)),
            *source.numbers(question),
        ]
        rows = Rows(frame, tuple(selected), source.condition(question.where))
        if question.unit and question.where is None and question.counts_in_one_cell:
            answer, units = rows.cells_by_code(question, source.doubts(question.unit))
        else:
            units = self.units(frame, question.unit)
            answer = rows.cells(question)
        return CellCounts.of(
            answer, question.by, lambda keys, name: to_public(keys, source.key_kind(question, name)), units
        )

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
        self._columns, kinds = guarded(lambda: (list(relation.columns), [str(kind) for kind in relation.types]))
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

    def keys(self, question: Selection) -> list[str]:
        """Return SQL for b0, b1, …, which can name a cell."""
        self._check("by", question.by)
        keys = [nameable(name, quoted(name), self.kinds[name]) for name in question.by]
        for place, name in enumerate(question.by):
            if name in question.bins:
                keys[place] = grouped(question.bins[name], keys[place], self.kinds[name])
        return [f"{key} AS b{i}" for i, key in enumerate(keys or ["0"])]

    def numbers(self, question: Selection) -> list[str]:
        """Return SQL for v, the number that a row adds; nothing where units are counted."""
        if not question.bounds:
            return []
        if question.summed is None:
            return ["1 AS v"]
        self._check("sum", [question.summed])
        kind = self.kinds[question.summed]
        return [f"{whole_number_sql(question.summed, quoted(question.summed), kind)} AS v"]

    def key_kind(self, question: Selection, name: str) -> str:
        """Return the SQL type of a by-column's keys."""
        return "VARCHAR" if name in question.bins else self.kinds[name]

    def ordering(self, name: str) -> str:
        """Return SQL for what rows are ordered by."""
        self._check("order_by", [name])
        # A category is its text, here as everywhere: not its place among the values of an ENUM.
        return as_text(quoted(name), self.kinds[name]) or comparable(quoted(name), self.kinds[name])

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
_INSTANT, _FINE_INSTANT = "TIMESTAMP WITH TIME ZONE", "TIMESTAMPTZ_NS"
#: The SQL types of points in time.
INSTANTS = (_INSTANT, _FINE_INSTANT)
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
        _FINE_INSTANT: "datetime64[ns]",
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

    Instants become points of UTC, which are spelled alike in every session; text is its bytes, under any collation.
    """
    if kind in _REALS:
        return f"CASE WHEN {is_number(column)} THEN {operation('+', f'{column}::DOUBLE', '0.0::DOUBLE')} END"
    if kind in INSTANTS:
        return f"timezone('UTC', {column})"
    return f"{column} COLLATE C" if kind == "VARCHAR" else column


def is_fine(kind: str) -> bool:
    """Return whether a column of this SQL type holds nanoseconds."""
    return kind in ("TIMESTAMP_NS", _FINE_INSTANT)


def in_microseconds(column: str, kind: str) -> str:
    """Return SQL for a quoted column of dates or times whose nanoseconds are cut off.

    DuckDB itself, in a cast or in a function of a date, rounds them to the next day or to 1970.
    """
    if not is_fine(kind):
        return column
    before = f"({operation('%', f'epoch_ns({column})', '1000')} < 0)::BIGINT"
    whole = operation("-", operation("//", f"epoch_ns({column})", "1000"), before)
    if kind == _FINE_INSTANT:
        return f"make_timestamptz({whole})"
    return f"CASE WHEN isfinite({column}) THEN make_timestamp({whole}) END"  # DuckDB 1 has a number for infinity


def as_text(column: str, kind: str) -> str:
    """Return SQL for the text of a quoted column, which is compared as it is written; empty for other types."""
    return f"({column}::VARCHAR COLLATE C)" if kind in ("VARCHAR", "UUID") or kind.startswith("ENUM(") else ""


def check_unit(name: str, kind: str) -> None:
    """Raise `ArgumentError` where a unit's column may hold 7 and "7", which would be two people, or what has parts.

    Of intervals DuckDB keeps no nanoseconds, and takes a month for 30 days.
    """
    if kind.endswith("]") or kind.startswith(("STRUCT(", "MAP(")) or kind == "INTERVAL":
        raise ArgumentError(
            f"unit column {name!r} has type {_type_name(kind)}, whose values are not compared; cast it in the "
            "relation, for example to VARCHAR."
        )
    if kind.startswith("UNION(") or kind in ("JSON", "VARIANT"):
        raise ArgumentError(
            f"unit column {name!r} has type {kind.partition('(')[0]}, whose values may be text in one row and a number "
            "in another: one person would be counted as two. Extract text, or numbers, in the relation."
        )


def _type_name(kind: str) -> str:
    """Return a type without what is nested in it, such as the values of an ENUM."""
    return "LIST" if kind.endswith("]") else kind.partition("(")[0]


def nameable(name: str, column: str, kind: str) -> str:
    """Return SQL for a quoted by-column, or raise `ArgumentError` when its type cannot name cells.

    Text is compared as it is written: under a collation a cell would be named by one person's spelling. A date or
    a time outside the years 1 to 9999, such as infinity, is missing: it has no name in Python, and a table must not
    fail for one row.
    """
    # A column without a value in any row may have no type: in another period's file it has one.
    if kind == '"NULL"':
        return f"{column}::VARCHAR"
    if text := as_text(column, kind):
        return text
    if kind == "DATE" or kind.startswith("TIMESTAMP"):
        read = comparable(column, kind)
        return f"CASE WHEN year({read}) BETWEEN 1 AND 9999 THEN {read} END"
    if kind in _PLAIN or _DECIMAL.fullmatch(kind):
        return column
    if kind in _REALS:
        return comparable(column, kind)
    raise ArgumentError(
        f"by column {name!r} has type {_type_name(kind)}, which cannot name cells; cast it in the relation, for "
        "example to VARCHAR."
    )


def grouped(groups: Bins, column: str, kind: str) -> str:
    """Return SQL for the names of the groups that a by-column's values are in; see `nameable`."""
    if kind == '"NULL"':  # a column that says nothing of what it would hold has no group
        return column
    if isinstance(groups.edges, str):
        # Of instants the day depends on a zone.
        groups.holds("date" if kind in _STEPS and kind not in INSTANTS else None)
        day = in_microseconds(column, kind)
        year = f"format('{{:04d}}', year({day}))"
        return {
            "week": f"format('{{:04d}}-W{{:02d}}', isoyear({day}), week({day}))",
            "month": f"format('{{:04d}}-{{:02d}}', year({day}), month({day}))",
            "quarter": f"format('{{:04d}}-Q{{}}', year({day}), quarter({day}))",
            "year": year,
        }[groups.edges]
    whole = kind.removeprefix("U") in _BITS and kind not in _REALS
    groups.holds("integer" if whole else "real" if kind in _REALS or _DECIMAL.fullmatch(kind) else None)
    tests = (predicate_sql(condition, {groups.column: kind}) for condition in groups.below)
    names = map(literal, groups.names)
    cases = " ".join(f"WHEN {test} THEN {name}" for test, name in zip(tests, names, strict=False))
    return f"CASE WHEN {column} IS NULL THEN NULL {cases} ELSE {literal(groups.names[-1])} END"


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
    keys = from_arrow(values, dtype)
    return keys.dt.tz_localize("UTC") if kind in INSTANTS else keys


_BITS: Mapping[str, int] = MappingProxyType(
    {"TINYINT": 8, "SMALLINT": 16, "INTEGER": 32, "BIGINT": 64, "HUGEINT": 128, "FLOAT": 32, "DOUBLE": 64}
)
#: How many nanoseconds lie between the values of dates and times.
_STEPS: Mapping[str, int] = MappingProxyType(
    {
        "DATE": DAY,
        "TIMESTAMP_S": SECOND,
        "TIMESTAMP_MS": 10**6,
        "TIMESTAMP": 10**3,
        "TIMESTAMP_NS": 1,
        _INSTANT: 10**3,
        _FINE_INSTANT: 1,
    }
)


def values_of(kind: str) -> Values:
    """Return what a column of this SQL type can be compared with."""
    unsigned = kind.startswith("U") and kind[1:] in _BITS
    if kind in _REALS:
        return Values("number", bits=_BITS[kind])
    if kind in _BITS or unsigned:
        return Values.whole(_BITS[kind[unsigned:]], signed=not unsigned)
    if decimal := _DECIMAL.fullmatch(kind):
        return Values.decimals(int(decimal[1]), int(decimal[2]))
    if kind in _STEPS:
        return Values.times("instant" if kind in INSTANTS else "time", _STEPS[kind])
    if kind.endswith("]"):
        return Values(kind)  # a list or an array
    if kind in ("VARCHAR", "UUID") or kind.startswith("ENUM("):
        return Values("text")
    return Values({"BOOLEAN": "boolean", '"NULL"': "empty"}.get(kind, kind.partition("(")[0]))


def predicate_sql(predicate: Predicate, kinds: Mapping[str, str]) -> str:
    """Return the SQL condition of a predicate; it is true or false, never NULL.

    `kinds` has the relation's columns and their SQL types.
    """
    return _sql(settled(predicate, {name: values_of(kind) for name, kind in kinds.items()}), kinds)


def _sql(predicate: Predicate, kinds: Mapping[str, str]) -> str:
    if isinstance(predicate, Condition):
        test = _test(predicate, kinds)
        return f"(NOT {test})" if predicate.negated else test
    word = " AND " if isinstance(predicate, Conjunction) else " OR "
    return f"({word.join(_sql(part, kinds) for part in predicate.parts)})"


def _test(condition: Condition, kinds: Mapping[str, str]) -> str:
    kind, operand = kinds[condition.column], condition.operand
    column = _column(condition.column, kind)
    if condition.part is not None:
        column, kind = f"{_PARTS[condition.part]}({in_microseconds(column, kind)})", "BIGINT"
    if condition.operator == "isna":
        return f"({column} IS NULL)"
    if not condition.constants and not isinstance(operand, Column):
        return "false"
    if condition.operator == "like":
        compared = matched(column, str(operand))
    elif isinstance(operand, Column):
        compared = f"{column} {condition.operator} {_column(operand.name, kinds[operand.name])}"
    elif condition.operator == "in":
        compared = f"{column} IN ({', '.join(_constant(constant, kind) for constant in condition.constants)})"
    else:
        compared = f"{column} {condition.operator} {_constant(condition.constants[0], kind)}"
    return f"coalesce({compared}, false)"


_PARTS: Mapping[Part, str] = MappingProxyType({"year": "year", "month": "month", "day": "day", "weekday": "isodow"})


def _column(name: str, kind: str) -> str:
    column = quoted(name)
    if kind in _REALS:
        # NaN is missing, as in pandas; DuckDB would take it for the largest number, equal to itself.
        return f"(CASE WHEN {is_number(column)} THEN {column} END)"
    return as_text(column, kind) or column


def _constant(constant: Constant, kind: str) -> str:
    """Return SQL for a constant as a column of this type holds it."""
    if kind in _STEPS:
        return f"{literal(written_time(int(constant), zoned=kind in INSTANTS))}::{kind}"
    if isinstance(constant, str):
        return literal(constant)
    if isinstance(constant, float):
        return f"{constant!r}::DOUBLE"
    exact = isinstance(constant, Decimal) or abs(constant) >= 2**63
    return f"{literal(str(constant))}::{kind}" if exact else str(constant).lower()
