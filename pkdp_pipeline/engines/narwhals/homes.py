"""Counting the units of an eager Polars frame: each has a place in an array, which holds its cell."""

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

#: Each round but a contrived one leaves a small part for the next.
_ROUNDS = 12

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
    if not rows["u0"].count():
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
    counted = counted_by_place(unit.to_numpy(), cells, size) if unit.dtype.is_integer() else _by_hash(unit, cells, size)
    if counted is None:
        return None
    counts, several = counted
    held = np.flatnonzero(counts)
    return _answer(columns, keys, held, counts[held], missing=missing, several=several)


def _by_hash(unit: pl.Series, cells: _Integers, size: int) -> tuple[_Integers, bool] | None:
    """Do what `counted_by_place` does for any type: a hash gives the place, and who finds it taken has another round.

    A place is one unit's, whose rows are all there: every row is compared with the row that holds its place.
    """
    counts, several = np.zeros(size, dtype=np.int64), False
    for seed in range(_ROUNDS):
        about: Any = unit.approx_n_unique()
        bits = min(26, max(10, (4 * int(about)).bit_length()))
        places = (unit.hash(seed).to_numpy() >> np.uint64(64 - bits)).view(np.int64)
        holders = np.full(1 << bits, -1, dtype=np.int32)
        holders[places] = np.arange(len(unit), dtype=np.int32)
        held = np.flatnonzero(holders >= 0)
        rows = holders[held]
        # Numbered anew, the holders lie together and are found quickly.
        holders[held] = np.arange(len(held), dtype=np.int32)
        mine, homes = holders[places], cells[rows]
        same = (unit.gather(rows).gather(mine) == unit).to_numpy()
        several = several or bool(((homes[mine] != cells) & same).any())
        counts += np.bincount(homes, minlength=size)
        others = np.flatnonzero(~same)
        if not len(others):
            return counts, several
        unit, cells = unit.gather(others), cells[others]
    return None


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
