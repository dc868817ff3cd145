"""Counting the units of a Polars frame, eager or lazy, in Polars itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import narwhals.stable.v2 as nw

from pkdp_pipeline.engines.narwhals.arrow_engine import cells_of_rows
from pkdp_pipeline.engines.narwhals.engine import ENGINE as ANYWHERE
from pkdp_pipeline.engines.narwhals.source import Source, asked
from pkdp_pipeline.engines.question import CellCounts, Question, Tally

__all__ = ["ENGINE", "PolarsEngine"]


@dataclass(frozen=True, slots=True)
class PolarsEngine:
    """Counts the distinct units of a `polars.DataFrame` or `polars.LazyFrame`."""

    def cells(self, frame: Any, question: Question) -> CellCounts:
        """See `Engine.cells`."""
        if question.one_cell == "hash" and question.unit:
            # Polars has no md5: its distinct rows go to DuckDB, in this process.
            source = Source(frame)
            pairs = source.selected(question).unique().with_columns(hit=nw.lit(True))
            return cells_of_rows(asked(lambda: pairs.collect(backend="pyarrow").to_native()), source.schema, question)
        return ANYWHERE.cells(frame, question)

    def tally(self, frame: Any, question: Question) -> Tally:
        """See `Engine.tally`."""
        return ANYWHERE.tally(frame, question)


ENGINE = PolarsEngine()
