"""Counting the units of Polars frames and PyArrow tables: Narwhals names the rows, this process counts them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import narwhals.stable.v2 as nw

from pkdp_pipeline.engines.answers import cell_counts
from pkdp_pipeline.engines.duckdb.in_memory import cells_of_rows, tally_of_rows
from pkdp_pipeline.engines.narwhals.columns import family, to_public
from pkdp_pipeline.engines.narwhals.source import Source, asked
from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.model.predicate.columns import check_columns

if TYPE_CHECKING:
    from pkdp_pipeline.engines.question import CellCounts, Question, Tally

__all__ = ["ENGINE", "MemoryEngine"]


@dataclass(frozen=True, slots=True)
class MemoryEngine:
    """Counts the distinct units of a `polars.DataFrame`, a `polars.LazyFrame` or a `pyarrow.Table`."""

    def cells(self, frame: Any, question: Question) -> CellCounts:
        """See `Engine.cells`."""
        source = Source(asked(partial(_typed, frame, question)))
        # Names that differ by spaces are looked for in every row, whatever the predicate says.
        text = any(family(source.schema.get(name)) == "text" for name in question.unit)
        rows = source.marked(question) if text and question.where is not None else source.selected(question)
        if type(frame).__name__ == "LazyFrame" and question.unit and question.one_cell in ("error", "hash"):
            rows = asked(rows.unique)  # what these ask about needs no more, and may be larger than memory
        answer = asked(lambda: cells_of_rows(_collected(rows), question))
        return cell_counts(answer, question, lambda keys, name: to_public(keys, source.schema[name]))

    def tally(self, frame: Any, question: Question) -> Tally:
        """See `Engine.tally`."""
        rows = Source(asked(partial(_typed, frame, question))).marked(question)
        return asked(lambda: tally_of_rows(_collected(rows), question))


ENGINE = MemoryEngine()


def _collected(rows: nw.LazyFrame[Any]) -> Any:
    if rows.implementation.is_polars():
        import polars as pl

        return rows.to_native().collect(engine="streaming").to_arrow(compat_level=pl.CompatLevel.newest())
    return rows.collect(backend="pyarrow").to_native()


def _typed(frame: Any, question: Question) -> Any:
    """Return a frame whose columns without a type, all missing, are text."""
    if type(frame).__module__.split(".")[0] == "pyarrow":
        _check_names(frame, question)
        return _typed_table(frame)
    import polars as pl

    lazy = frame.lazy()
    return lazy.with_columns(pl.col(pl.Null).cast(pl.String)) if pl.Null in lazy.collect_schema().dtypes() else lazy


def _typed_table(table: Any) -> Any:
    """Return a table of which Narwhals knows the types: it takes every dictionary for text, and null for nothing."""
    import pyarrow as pa

    for position, field in enumerate(table.schema):
        kind = field.type
        plain = kind.value_type if pa.types.is_dictionary(kind) else pa.string() if pa.types.is_null(kind) else kind
        if plain != kind and not (pa.types.is_string(plain) and pa.types.is_dictionary(kind)):
            table = table.set_column(position, field.name, table.column(position).cast(plain))
    return table


def _check_names(table: Any, question: Question) -> None:
    """Raise `ArgumentError` where two columns have one name: which of them is meant, nothing says."""
    names = list(table.schema.names)
    if len(set(names)) == len(names):
        return
    for argument in ("unit", "by", "order_by"):
        check_columns(argument, getattr(question, argument), names)
    twice = next(name for name in names if names.count(name) > 1)
    raise ArgumentError(f"the table has column {twice!r} more than once; rename one, or drop it.")
