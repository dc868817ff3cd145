"""Cells of a pandas frame as whole numbers: DuckDB counts codes, pandas keeps what they stand for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.keys import canonical_key, key_dtype, kind_of_dtype

__all__ = ["CellCodes", "encode_cells"]

Codes = npt.NDArray[Any]


@dataclass(frozen=True, slots=True, eq=False)
class _ColumnCodes:
    """One column: `codes` index `values`, None means that a code is its own value; the last code is "missing"."""

    codes: Codes
    values: pd.Index[Any] | None
    dtype: Any

    @property
    def size(self) -> int:
        return 0 if self.values is None else len(self.values) + 1

    def decode(self, codes: Codes) -> pd.Series[Any]:
        if self.values is None:
            return pd.Series(codes.astype(self.dtype))
        missing = codes == len(self.values)
        if missing.all():
            return pd.Series([None] * len(codes), dtype=self.dtype)
        keys = pd.Series(self.values.take(np.where(missing, 0, codes))).astype(self.dtype)
        if kind_of_dtype(self.dtype) == "real":
            keys = keys + 0.0  # -0.0 and 0.0 are one cell, and have one name
        return keys.mask(missing) if missing.any() else keys


@dataclass(frozen=True, slots=True, eq=False)
class CellCodes:
    """The cell of every row as a whole number.

    Parameters
    ----------
    codes : integer array, one per row
    columns : sequence of _ColumnCodes
    parts : sequence of integer arrays, optional
        For several columns: the code of each column in each cell.
    """

    codes: Codes
    columns: Sequence[_ColumnCodes]
    parts: Sequence[Codes] | None

    def decode(self, cells: Codes) -> list[pd.Series[Any]]:
        """Return the keys of these cells, one Series per column."""
        if self.parts is None:
            return [self.columns[0].decode(cells)]
        return [column.decode(part[cells]) for column, part in zip(self.columns, self.parts, strict=True)]

    def spelled(self) -> Any:
        """Return every row's cell as text that only its own keys decide; no two cells are spelled alike."""
        distinct, positions = np.unique(self.codes, return_inverse=True)
        keys = [[canonical_key(key) for key in column] for column in self.decode(distinct)]
        texts = ["".join(_spelled(key) for key in cell) for cell in zip(*keys, strict=True)]
        return pd.array(texts, dtype="str").take(positions)


def encode_cells(columns: Sequence[pd.Series[Any]], *, ordered: bool) -> CellCodes:
    """Return the rows' cells; with `ordered`, smaller codes are smaller cells, and missing values come last.

    Raises
    ------
    ArgumentError
        If a column's dtype cannot name cells.
    """
    encoded = [_encode(column, ordered=ordered, alone=len(columns) == 1) for column in columns]
    if len(encoded) == 1:
        return CellCodes(encoded[0].codes, encoded, None)
    codes, parts = encoded[0].codes, [np.arange(encoded[0].size)]
    for column in encoded[1:]:
        mixed = codes.astype(np.int64) * column.size + column.codes
        codes, distinct = pd.factorize(mixed, sort=ordered)
        parts = [part[distinct // column.size] for part in parts] + [distinct % column.size]
    return CellCodes(codes, encoded, parts)


def _encode(column: pd.Series[Any], *, ordered: bool, alone: bool) -> _ColumnCodes:
    dtype: Any = column.dtype
    _check_nameable(column)
    public = key_dtype(dtype)
    values: pd.Index[Any]
    if alone and isinstance(dtype, np.dtype) and dtype.kind in "iu":
        return _ColumnCodes(column.to_numpy(), None, public)
    if isinstance(dtype, pd.CategoricalDtype):
        codes, values = np.asarray(column.cat.codes), dtype.categories
        if ordered:
            order = np.argsort(values.argsort())
            codes = np.where(codes < 0, -1, order.take(codes, mode="clip"))
            values = values.sort_values()
    else:
        codes, distinct = column.factorize(sort=ordered)
        values = pd.Index(distinct)
    if len(codes) and codes.min() < 0:
        codes = np.where(codes < 0, len(values), codes.astype(np.int64))
    return _ColumnCodes(codes, values, public)


def _check_nameable(column: pd.Series[Any]) -> None:
    if kind_of_dtype(column.dtype) is None:
        raise ArgumentError(
            f"by column {column.name!r} has dtype {column.dtype}, which cannot name cells; convert it, for example "
            "with astype('str')."
        )
    if column.dtype == object and pd.api.types.infer_dtype(column, skipna=True) not in ("string", "empty"):
        raise ArgumentError(
            f"by column {column.name!r} has dtype object and does not hold text alone; give it one dtype, for example "
            "with astype('str'), convert_dtypes() or pd.to_datetime."
        )


def _spelled(key: Any) -> str:
    text = str(key)
    return "-" if key is None else f"{len(text)}:{text}"
