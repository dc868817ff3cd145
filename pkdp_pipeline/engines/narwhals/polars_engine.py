"""Counting the units of a Polars frame, eager or lazy, in Polars itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import polars as pl

from pkdp_pipeline.engines.narwhals.answers import cell_counts
from pkdp_pipeline.engines.narwhals.arrow_engine import cells_of_rows
from pkdp_pipeline.engines.narwhals.engine import ENGINE as ANYWHERE
from pkdp_pipeline.engines.narwhals.homes import cells_of_homes
from pkdp_pipeline.engines.narwhals.source import Source, asked
from pkdp_pipeline.engines.narwhals.statements import cells_query, most_frequent, numbered
from pkdp_pipeline.engines.question import DRAWN, CellCounts, Question, Tally, Units

__all__ = ["ENGINE", "PolarsEngine"]


@dataclass(frozen=True, slots=True)
class PolarsEngine:
    """Counts the distinct units of a `polars.DataFrame` or `polars.LazyFrame`."""

    def cells(self, frame: Any, question: Question) -> CellCounts:
        """See `Engine.cells`."""
        eager, frame = isinstance(frame, pl.DataFrame), asked(partial(_typed, frame))
        if question.one_cell == "first" or not question.unit:
            return ANYWHERE.cells(frame, question)
        source = Source(frame)
        rows = source.selected(question)
        if question.one_cell in DRAWN:
            # Polars has no md5: the distinct rows from which it draws go to DuckDB, in this process.
            units, keys = numbered("u", len(question.unit)), numbered("b", len(question.by))
            frequent = question.one_cell == "most_frequent"
            pairs = asked(lambda: most_frequent(rows, units, keys) if frequent else rows.unique())
            table = asked(lambda: pairs.with_columns(hit=nw.lit(True)).collect(backend="pyarrow").to_native())
            return cells_of_rows(table, source.schema, replace(question, one_cell="hash"))
        answer = asked(partial(_counted, rows, question, source.schema, eager=eager))
        return cell_counts(answer.to_arrow(), source.schema, question)

    def tally(self, frame: Any, question: Question) -> Tally:
        """See `Engine.tally`."""
        return ANYWHERE.tally(asked(partial(_typed, frame)), question)

    def units(self, frame: Any, unit: tuple[str, ...]) -> Units:
        """See `Engine.units`."""
        return ANYWHERE.units(asked(partial(_typed, frame)), unit)


ENGINE = PolarsEngine()

_TEXT = (nw.String, nw.Categorical, nw.Enum)


def _typed(frame: pl.DataFrame | pl.LazyFrame) -> pl.LazyFrame:
    """Return a lazy frame whose columns without a type, all missing, are text."""
    lazy = frame.lazy()
    untyped = [pl.col(pl.Null).cast(pl.String)] if pl.Null in lazy.collect_schema().dtypes() else []
    return lazy.with_columns(untyped) if untyped else lazy


def _counted(rows: nw.LazyFrame[Any], question: Question, schema: Mapping[str, Any], *, eager: bool) -> pl.DataFrame:
    """Return the answer in the fastest way for these types."""
    if eager and len(question.unit) == 1:
        # The frame is in memory already: its columns are named, not copied.
        native: pl.DataFrame = rows.to_native().collect()
        counted = cells_of_homes(native, numbered("b", len(question.by)))
        if counted is None and native["u0"].dtype == pl.String:
            counted = _by_hash(native, numbered("b", len(question.by)))
        if counted is not None:
            return counted
    text = isinstance(schema[question.unit[0]], _TEXT)
    return _by_pair(rows, question) if text or len(question.unit) > 1 else _by_cell(rows, question)


def _by_hash(rows: pl.DataFrame, cell: list[str]) -> pl.DataFrame | None:
    """Count each cell's distinct texts, and see by their hashes that no two cells have one in common.

    There are no more hashes than units, and no more units than the cells have together. So where the cells have as
    many as there are hashes, no unit is in two; else this does not know.
    """
    present = rows.filter(pl.col("u0").is_not_null()) if rows["u0"].null_count() else rows
    held = present.group_by(cell).agg(n=pl.col("u0").n_unique(), hashes=pl.col("u0").hash().unique())
    hashes = np.sort(held["hashes"].explode(empty_as_null=False).to_numpy())
    if not len(held) or held["n"].sum() != len(hashes) - np.count_nonzero(hashes[1:] == hashes[:-1]):
        return None
    return held.select(
        *cell, "n", pl.lit(len(present) < len(rows)).alias("missing_unit"), pl.lit(False).alias("several_cells")
    )


def _by_pair(rows: nw.LazyFrame[Any], question: Question) -> pl.DataFrame:
    """Count by way of the distinct pairs of unit and cell: the faster way for text and for several columns."""
    query = cells_query(rows, units=len(question.unit), keys=len(question.by), one_cell="error")
    counted: pl.DataFrame = query.to_native().collect(engine="streaming")
    return counted


def _by_cell(rows: nw.LazyFrame[Any], question: Question) -> pl.DataFrame:
    """Count by way of each cell's distinct units: the faster way for whole numbers and the like.

    A unit is in several cells just when the cells have more units than there are.
    """
    cell = numbered("b", len(question.by))
    held: pl.DataFrame = rows.to_native().group_by(cell).agg(pl.col("u0").unique()).collect(engine="streaming")
    units = held["u0"].explode(empty_as_null=False)
    missing = units.null_count()
    several = units.n_unique() - (missing > 0) < len(units) - missing
    present = pl.col("u0").list.drop_nulls() if missing else pl.col("u0")
    return held.select(
        *cell,
        present.list.len().alias("n"),
        pl.lit(missing > 0).alias("missing_unit"),
        pl.lit(several).alias("several_cells"),
    )
