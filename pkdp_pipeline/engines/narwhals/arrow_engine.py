"""Counting the units of a PyArrow table: Narwhals names the rows, then they are counted in memory."""

from __future__ import annotations

from functools import partial
from typing import Any

import narwhals.stable.v2 as nw

from pkdp_pipeline.engines.memory import cells_in_memory, tally_in_memory, units_in_memory
from pkdp_pipeline.engines.narwhals.engine import NarwhalsEngine, collected
from pkdp_pipeline.engines.narwhals.source import Source, asked
from pkdp_pipeline.engines.question import Tally, Units
from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.model.predicate.columns import check_columns
from pkdp_pipeline.model.question import Selection


class ArrowEngine(NarwhalsEngine):
    """Counts the distinct units of a `pyarrow.Table`."""

    def _source(self, frame: Any, question: Selection) -> Source:
        _check_names(frame, question)
        return Source(asked(partial(_typed_table, frame)))

    def _counted(self, rows: nw.LazyFrame[Any], question: Selection, frame: Any) -> Any:
        return cells_in_memory(collected(rows), question)

    def _tallied(self, rows: nw.LazyFrame[Any], units: int) -> Tally:
        return tally_in_memory(collected(rows), units)

    def _looked_at(self, rows: nw.LazyFrame[Any], units: int, texts: list[str]) -> Units:
        return units_in_memory(collected(rows), units, texts)


ENGINE = ArrowEngine()


def _check_names(table: Any, question: Selection) -> None:
    """Raise `ArgumentError` where two columns have one name: which of them is meant, nothing says."""
    names = list(table.schema.names)
    if len(set(names)) == len(names):
        return
    for argument in ("unit", "by", "order_by"):
        check_columns(argument, getattr(question, argument), names)
    twice = next(name for name in names if names.count(name) > 1)
    raise ArgumentError(f"the table has column {twice!r} more than once; rename one, or drop it.")


def _typed_table(table: Any) -> Any:
    """Return a table of which Narwhals knows the types: it takes every dictionary for text, and null for nothing."""
    import pyarrow as pa

    for position, field in enumerate(table.schema):
        kind = field.type
        plain = kind.value_type if pa.types.is_dictionary(kind) else pa.string() if pa.types.is_null(kind) else kind
        plain = pa.large_string() if pa.types.is_string_view(plain) else plain  # Arrow neither encodes nor trims these
        if plain != kind and not (pa.types.is_string(plain) and pa.types.is_dictionary(kind)):
            table = table.set_column(position, field.name, table.column(position).cast(plain))
    return table
