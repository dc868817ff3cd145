"""Counting the units of a PyArrow table: Narwhals names the rows, DuckDB reads them where they lie."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import narwhals.stable.v2 as nw
import pandas as pd

from pkdp_pipeline.engines.duckdb.connecting import counting
from pkdp_pipeline.engines.duckdb.relation_engine import ENGINE as RELATIONS
from pkdp_pipeline.engines.narwhals.source import Source, asked
from pkdp_pipeline.engines.narwhals.statements import numbered
from pkdp_pipeline.engines.question import CellCounts, Tally, Units
from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.model.predicate.columns import check_columns
from pkdp_pipeline.model.question import Selection

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class ArrowEngine:
    """Counts the distinct units of a `pyarrow.Table` with a private, in-memory DuckDB."""

    def cells(self, frame: Any, question: Selection) -> CellCounts:
        """See `Engine.cells`."""
        _check_names(frame, question)
        source = Source(asked(partial(_typed, frame)))
        rows = source.marked(question)
        return cells_of_rows(asked(lambda: rows.collect(backend="pyarrow").to_native()), source.schema, question)

    def tally(self, frame: Any, question: Selection) -> Tally:
        """See `Engine.tally`."""
        _check_names(frame, question)
        rows = Source(asked(partial(_typed, frame))).marked(question)
        table = asked(lambda: _readable(rows.collect(backend="pyarrow").to_native()))
        with counting(table.num_rows) as connection:
            relation = asked(lambda: connection.from_arrow(table))
            return RELATIONS.tally(relation, Selection(unit=tuple(numbered("u", len(question.unit))), where="hit"))

    def units(self, frame: Any, unit: tuple[str, ...]) -> Units:
        """See `Engine.units`."""
        question = Selection(unit=unit)
        _check_names(frame, question)
        rows = Source(asked(partial(_typed, frame))).selected(question)
        table = asked(lambda: _readable(rows.collect(backend="pyarrow").to_native()))
        with counting(table.num_rows) as connection:
            return RELATIONS.units(asked(lambda: connection.from_arrow(table)), tuple(numbered("u", len(unit))))


ENGINE = ArrowEngine()


def cells_of_rows(rows: Any, schema: Mapping[str, Any], question: Selection) -> CellCounts:
    """Count an Arrow table of (u0, …, b0, …, o0, …, hit) in DuckDB; `schema` has the frame's own types."""
    table = asked(lambda: _readable(rows))
    renamed = replace(
        question,
        unit=tuple(numbered("u", len(question.unit))),
        by=tuple(numbered("b", len(question.by))),
        order_by=tuple(numbered("o", len(question.order_by))),
        where="hit",
    )
    with counting(table.num_rows) as connection:
        relation = asked(lambda: connection.from_arrow(table))
        counted = RELATIONS.cells(relation, renamed)
    keys = {
        name: _in_zone(counted.keys[short], schema[name]) for short, name in zip(renamed.by, question.by, strict=True)
    }
    return replace(counted, keys=pd.DataFrame(keys, copy=False))


def _in_zone(keys: pd.Series[Any], dtype: Any) -> pd.Series[Any]:
    zone = dtype.time_zone if isinstance(dtype, nw.Datetime) else None
    return keys if zone is None else keys.dt.tz_localize("UTC").dt.tz_convert(zone)


def _readable(rows: Any) -> Any:
    """Return the rows under types that DuckDB reads without loss."""
    import pyarrow as pa

    for position, field in enumerate(rows.schema):
        kind = field.type
        if pa.types.is_timestamp(kind) and kind.tz is not None:
            # As a point in time without a zone: DuckDB's own type for these keeps no nanoseconds.
            rows = rows.set_column(position, field.name, rows.column(position).cast(pa.timestamp(kind.unit)))
    return rows


def _check_names(table: Any, question: Selection) -> None:
    """Raise `ArgumentError` where two columns have one name: which of them is meant, nothing says."""
    names = list(table.schema.names)
    if len(set(names)) == len(names):
        return
    for argument in ("unit", "by", "order_by"):
        check_columns(argument, getattr(question, argument), names)
    twice = next(name for name in names if names.count(name) > 1)
    raise ArgumentError(f"the table has column {twice!r} more than once; rename one, or drop it.")


def _typed(table: Any) -> Any:
    """Return a table of which Narwhals knows the types: it takes every dictionary for text, and null for nothing."""
    import pyarrow as pa

    for position, field in enumerate(table.schema):
        kind = field.type
        plain = kind.value_type if pa.types.is_dictionary(kind) else pa.string() if pa.types.is_null(kind) else kind
        if plain != kind and not (pa.types.is_string(plain) and pa.types.is_dictionary(kind)):
            table = table.set_column(position, field.name, table.column(position).cast(plain))
    return table
