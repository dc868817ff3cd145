"""Counting the whole-numbered units of an eager Polars frame: each has a place, which holds its cell."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from pkdp_pipeline.engines.places import WIDEST, counted_by_place

__all__ = ["cells_of_homes"]

_Integers = npt.NDArray[Any]


@dataclass(frozen=True, slots=True, eq=False)
class _Codes:
    """One column of keys: `codes` index `values`, of which the last is "missing"."""

    codes: _Integers
    values: pl.Series


def cells_of_homes(rows: pl.DataFrame, keys: Sequence[str]) -> pl.DataFrame | None:
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
