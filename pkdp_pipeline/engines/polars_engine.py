"""Counting the units of a Polars frame, eager or lazy, in Polars where that is faster."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import polars as pl
import pyarrow as pa

from pkdp_pipeline.engines.memory import cells_in_memory
from pkdp_pipeline.engines.narwhals_engine import FrameColumns, NarwhalsEngine, collected, guarded
from pkdp_pipeline.engines.narwhals_queries import cells_query, clamped, doubted, most_frequent
from pkdp_pipeline.engines.question import DRAWN, NO_DOUBTS, Doubts, Tally, keys_of, numbered, wrong_where
from pkdp_pipeline.model.columns import Selection, check_columns


class PolarsEngine(NarwhalsEngine):
    """Counts the distinct units of a `polars.DataFrame` or `polars.LazyFrame`; ``where`` may be an expression."""

    def _marked(self, frame: Any, where: Any, name: str) -> Any:
        if isinstance(where, pl.Expr):
            # A pattern stands for names, and is none.
            named = [column for column in where.meta.root_names() if not column.startswith("^")]
            check_columns("where", named, frame.lazy().collect_schema().names())
        elif not (isinstance(where, pl.Series) and isinstance(frame, pl.DataFrame)):
            raise wrong_where(where, "a column name, a query string or an expression of Polars for this frame")
        return frame.with_columns(where.alias(name))

    def _source(self, frame: Any, question: Selection) -> FrameColumns:
        empty = guarded(lambda: [name for name, kind in frame.lazy().collect_schema().items() if kind == pl.Null])
        return FrameColumns(frame.lazy().with_columns(pl.col(empty).cast(pl.String)) if empty else frame, empty=empty)

    def _tallied(self, rows: nw.LazyFrame[Any], question: Selection, doubts: Doubts) -> Tally:
        if question.everybody or len(question.unit) != 1:
            return super()._tallied(rows, question, doubts)
        person = nw.col("u0")
        answer = rows.select(
            satisfying=person.filter(nw.col("hit")).drop_nulls().n_unique(),
            missing_unit=person.is_null().any(),
            **{name: doubt.any() for name, doubt in doubted(doubts).items()},
        )
        return self._tally_of(collected(answer), rows, question, doubts)

    def _counted(self, rows: nw.LazyFrame[Any], question: Selection, frame: Any, doubts: Doubts = NO_DOUBTS) -> Any:
        units, keys = numbered("u", len(question.unit)), keys_of(question)
        if not units or question.one_cell == "first":
            return super()._counted(rows, question, frame, doubts)
        drawn = question.one_cell in DRAWN or question.cells_per_unit > 1
        if isinstance(frame, pl.DataFrame) and (drawn or len(units) == 1):
            # It is in memory already: its columns are named, not copied.
            native: pl.DataFrame = rows.to_native().collect()
            by_hash = not drawn and not question.bounds and native["u0"].dtype == pl.String
            counted = _by_hash(native, keys) if by_hash else None
            if counted is not None:
                return counted.to_arrow()
            return cells_in_memory(pa.table({name: _in_arrow(native[name]) for name in native.columns}), question)
        if drawn:
            # Polars has no md5: the distinct rows from which it draws are read; so are those of several cells.
            frequent, own = question.one_cell == "most_frequent", ["v"] if question.bounds else []
            if own:
                rows = rows.with_columns(v=clamped(nw.col("v").sum().over(*units, *keys), question))
            pairs = most_frequent(rows, units, [*keys, *own]) if frequent else rows.unique()
            drawn_by = question if question.one_cell == "error" else replace(question, one_cell="hash")
            return cells_in_memory(collected(pairs), drawn_by)
        if question.bounds or len(units) > 1 or rows.collect_schema()["u0"] == nw.String:
            return cells_query(rows, question, doubts).to_native().collect(engine="streaming").to_arrow()
        return _by_cell(rows, keys)


def _in_arrow(column: pl.Series) -> Any:
    """Return a column in Arrow, text as a dictionary: Polars finds the distinct values faster."""
    if column.dtype != pl.String:
        return column.to_arrow()
    # Categories of their own: shared ones would keep the keys after this.
    return column.cast(pl.Categorical(pl.Categories.random())).to_arrow()


def _by_hash(rows: pl.DataFrame, cell: list[str]) -> pl.DataFrame | None:
    """Count each cell's distinct texts, and see by their hashes that no two cells have one in common.

    There are no more hashes than units, and no more units than the cells have together. So where the cells have as
    many as there are hashes, no unit is in two; else this does not know.
    """
    present = rows.filter(pl.col("u0").is_not_null()) if rows["u0"].null_count() else rows
    groups = present.group_by(cell).agg(n=pl.col("u0").n_unique(), hashes=pl.col("u0").hash().unique())
    hashes = np.sort(groups["hashes"].explode(empty_as_null=False).to_numpy())
    if not len(groups) or groups["n"].sum() != len(hashes) - np.count_nonzero(hashes[1:] == hashes[:-1]):
        return None
    return groups.select(
        *cell, "n", pl.lit(len(present) < len(rows)).alias("missing_unit"), pl.lit(False).alias("several_cells")
    )


def _by_cell(rows: nw.LazyFrame[Any], cell: list[str]) -> Any:
    """Count by way of each cell's distinct units: the faster way for whole numbers and the like.

    A unit is in several cells just when the cells have more units than there are.
    """
    groups: pl.DataFrame = rows.to_native().group_by(cell).agg(pl.col("u0").unique()).collect(engine="streaming")
    units = groups["u0"].explode(empty_as_null=False)
    missing = units.null_count()
    several = units.n_unique() - (missing > 0) < len(units) - missing
    present = pl.col("u0").list.drop_nulls() if missing else pl.col("u0")
    answer = groups.select(*cell, present.list.len().alias("n"), missing_unit=missing > 0, several_cells=several)
    return answer.to_arrow()
