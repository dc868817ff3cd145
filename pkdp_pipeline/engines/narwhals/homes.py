"""Counting whole-numbered units of an eager Polars frame: each has a place in an array, which holds its cell."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

__all__ = ["cells_of_homes"]

#: Cells and whole-numbered keys that span more than this are counted another way.
_WIDEST = 1 << 20


@dataclass(frozen=True, slots=True, eq=False)
class _Codes:
    """One column of keys: `codes` index `values`, of which the last is "missing"."""

    codes: npt.NDArray[Any]
    values: pl.Series


def cells_of_homes(rows: pl.DataFrame, keys: Sequence[str]) -> pl.DataFrame | None:
    """Count rows of (u0, b0, b1, …) as `cells_query` does, or return None where another way is better.

    One pass writes every row's cell to its unit's place, another sees whether it is still there.
    """
    unit = rows["u0"]
    if not unit.dtype.is_integer() or unit.null_count() == len(unit):
        return None
    least, most = int(unit.min()), int(unit.max())  # type: ignore[arg-type]
    if most - least >= max(_WIDEST, 4 * len(unit)) or not -(2**62) < least <= most < 2**62:
        return None
    columns = [_encoded(rows[name]) for name in keys]
    size = math.prod(len(column.values) for column in columns if column is not None)
    if None in columns or size > _WIDEST:
        return None
    cells = _mixed([column for column in columns if column is not None])
    missing = unit.null_count() > 0
    if missing:
        present = unit.is_not_null().to_numpy()
        unit, cells = unit.drop_nulls(), cells[present]
    places = unit.cast(pl.Int64).to_numpy() - least if least else unit.to_numpy()
    homes = np.full(most - least + 1, -1, dtype=np.int32)
    homes[places] = cells
    several = bool((homes[places] != cells).any())
    counts = np.bincount(homes[homes >= 0], minlength=size)
    held = np.flatnonzero(counts)
    return _answer(columns, keys, held, counts[held], missing=missing, several=several)


def _answer(
    columns: Sequence[_Codes | None],
    keys: Sequence[str],
    held: npt.NDArray[Any],
    counts: npt.NDArray[Any],
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


def _mixed(columns: Sequence[_Codes]) -> npt.NDArray[Any]:
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
        text = keys.cast(pl.Categorical(categories))  # the categories live as long as a column that has them
        codes = text.to_physical()
        last = codes.max()
        distinct = 0 if last is None else int(last) + 1  # type: ignore[arg-type]
        if distinct > _WIDEST:
            return None
        values = pl.Series([categories[code] for code in range(distinct)], dtype=pl.String)
        del text
    elif keys.dtype == pl.Boolean:
        values, codes = pl.Series([False, True]), keys.cast(pl.UInt32)
    elif keys.dtype.is_integer() and keys.null_count() < len(keys):
        least, most = int(keys.min()), int(keys.max())  # type: ignore[arg-type]
        if most - least >= _WIDEST or not -(2**62) < least <= most < 2**62:
            return None
        values, codes = pl.int_range(least, most + 1, dtype=pl.Int64, eager=True), keys.cast(pl.Int64) - least
        values = values.cast(keys.dtype)
    else:
        return None
    return _Codes(
        codes=codes.cast(pl.Int32).fill_null(len(values)).to_numpy(),
        values=pl.concat([values, pl.Series([None], dtype=values.dtype)]),
    )
