"""Counting the units of a Polars frame, eager or lazy, in Polars itself."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import numpy.typing as npt
import polars as pl

from pkdp_pipeline.engines.narwhals.arrow_engine import cells_of_rows
from pkdp_pipeline.engines.narwhals.engine import NarwhalsEngine, cell_counts
from pkdp_pipeline.engines.narwhals.source import Source, asked
from pkdp_pipeline.engines.narwhals.statements import cells_query, most_frequent, numbered
from pkdp_pipeline.engines.places import WIDEST, counted_by_place
from pkdp_pipeline.engines.question import DRAWN, CellCounts
from pkdp_pipeline.model.question import Selection


class PolarsEngine(NarwhalsEngine):
    """Counts the distinct units of a `polars.DataFrame` or `polars.LazyFrame`."""

    def source(self, frame: Any) -> Source:
        """See `NarwhalsEngine.source`."""
        return Source(asked(partial(_typed, frame)))

    def cells(self, frame: Any, question: Selection) -> CellCounts:
        """See `Engine.cells`."""
        if question.one_cell == "first" or not question.unit:
            return super().cells(frame, question)
        source = self.source(frame)
        rows = source.selected(question)
        if question.one_cell in DRAWN:
            # Polars has no md5: the distinct rows from which it draws go to DuckDB, in this process.
            units, keys = numbered("u", len(question.unit)), numbered("b", len(question.by))
            frequent = question.one_cell == "most_frequent"
            pairs = asked(lambda: most_frequent(rows, units, keys) if frequent else rows.unique())
            table = asked(lambda: pairs.with_columns(hit=nw.lit(True)).collect(backend="pyarrow").to_native())
            return cells_of_rows(table, source.schema, replace(question, one_cell="hash"))
        answer = asked(partial(_counted, rows, question, source.schema, eager=isinstance(frame, pl.DataFrame)))
        return cell_counts(answer.to_arrow(), source.schema, question)


ENGINE = PolarsEngine()

_TEXT = (nw.String, nw.Categorical, nw.Enum)
_Integers = npt.NDArray[Any]


def _typed(frame: pl.DataFrame | pl.LazyFrame) -> pl.LazyFrame:
    """Return a lazy frame whose columns without a type, all missing, are text."""
    lazy = frame.lazy()
    untyped = [pl.col(pl.Null).cast(pl.String)] if pl.Null in lazy.collect_schema().dtypes() else []
    return lazy.with_columns(untyped) if untyped else lazy


def _counted(rows: nw.LazyFrame[Any], question: Selection, schema: Mapping[str, Any], *, eager: bool) -> pl.DataFrame:
    """Return the answer in the fastest way for these types."""
    if eager and len(question.unit) == 1:
        # The frame is in memory already: its columns are named, not copied.
        native: pl.DataFrame = rows.to_native().collect()
        counted = _by_place(native, numbered("b", len(question.by)))
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


def _by_pair(rows: nw.LazyFrame[Any], question: Selection) -> pl.DataFrame:
    """Count by way of the distinct pairs of unit and cell: the faster way for text and for several columns."""
    query = cells_query(rows, units=len(question.unit), keys=len(question.by), one_cell="error")
    counted: pl.DataFrame = query.to_native().collect(engine="streaming")
    return counted


def _by_cell(rows: nw.LazyFrame[Any], question: Selection) -> pl.DataFrame:
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


@dataclass(frozen=True, slots=True, eq=False)
class _Codes:
    """One column of keys: `codes` index `values`, of which the last is "missing"."""

    codes: _Integers
    values: pl.Series


def _by_place(rows: pl.DataFrame, keys: Sequence[str]) -> pl.DataFrame | None:
    """Count rows of (u0, b0, b1, …) as `cells_query` does, or return None where another way is better.

    One pass writes every row's cell to its unit's place, another sees whether it is still there.
    """
    if not rows["u0"].dtype.is_integer() or not rows["u0"].count():
        return None
    columns = [_encoded(rows[name]) for name in keys]
    size = math.prod(len(column.values) for column in columns if column is not None)
    if None in columns or size > WIDEST:
        return None
    unit, cells = rows["u0"], _mixed([column for column in columns if column is not None])
    missing = unit.null_count() > 0
    if missing:
        present = unit.is_not_null().to_numpy()
        unit, cells = unit.drop_nulls(), cells[present]
    counted = counted_by_place(unit.to_numpy(), cells, size)
    if counted is None:
        return None
    counts, several = counted
    held = np.flatnonzero(counts)
    return _answer(columns, keys, held, counts[held], missing=missing, several=several)


def _answer(
    columns: Sequence[_Codes | None],
    keys: Sequence[str],
    held: _Integers,
    counts: _Integers,
    *,
    missing: bool,
    several: bool,
) -> pl.DataFrame:
    answer = {}
    for name, column in reversed(list(zip(keys, columns, strict=True))):
        if column is not None:
            held, codes = np.divmod(held, len(column.values))
            answer[name] = column.values.gather(codes)
    return pl.DataFrame({name: answer[name] for name in keys} | {"n": counts}).with_columns(
        pl.lit(missing).alias("missing_unit"), pl.lit(several).alias("several_cells")
    )


def _mixed(columns: Sequence[_Codes]) -> _Integers:
    """Return the cell of every row as a whole number."""
    cells = columns[0].codes
    for column in columns[1:]:
        cells = cells * np.int32(len(column.values)) + column.codes
    return cells


def _encoded(keys: pl.Series) -> _Codes | None:
    """Return the keys of a column as codes, or None for a type that is counted another way."""
    if keys.dtype == pl.String:
        # Categories of their own: shared ones would keep the keys after this.
        categories = pl.Categories.random()
        text = keys.cast(pl.Categorical(categories))
        last = text.to_physical().max()
        distinct = 0 if last is None else int(last) + 1  # type: ignore[arg-type]
        if distinct > WIDEST:
            return None
        values = pl.Series([categories[code] for code in range(distinct)], dtype=pl.String)
        codes = text.to_physical()  # after the values: categories live no longer than the column that has them
    elif keys.dtype == pl.Boolean:
        values, codes = pl.Series([False, True]), keys.cast(pl.UInt32)
    elif keys.dtype.is_integer() and keys.null_count() < len(keys):
        least, most = int(keys.min()), int(keys.max())  # type: ignore[arg-type]
        if most - least >= WIDEST or not -(2**62) < least <= most < 2**62:
            return None
        values, codes = pl.int_range(least, most + 1, dtype=pl.Int64, eager=True), keys.cast(pl.Int64) - least
        values = values.cast(keys.dtype)
    else:
        return None
    return _Codes(
        codes=codes.cast(pl.Int32).fill_null(len(values)).to_numpy(),
        values=pl.concat([values, pl.Series([None], dtype=values.dtype)]),
    )
