"""Cells of a pandas frame as whole numbers: DuckDB counts codes, pandas keeps what they stand for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.model.keys import canonical_key, key_dtype, kind_of_dtype

Codes = npt.NDArray[Any]


#: Whole numbers that span less than this are their own codes.
_WIDEST_SPAN = 1 << 20


@dataclass(frozen=True, slots=True, eq=False)
class _ColumnCodes:
    """One column: `codes` index `values`; the code after the last value is "missing"."""

    codes: Codes
    values: pd.Index[Any]
    dtype: Any

    @property
    def size(self) -> int:
        return len(self.values) + 1

    def decode(self, codes: Codes) -> pd.Series[Any]:
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
    codes : unsigned integer array, one per row
    size : int
        Above every code.
    columns : sequence of _ColumnCodes
    parts : sequence of integer arrays
        The code of each column in each cell.
    """

    codes: Codes
    size: int
    columns: Sequence[_ColumnCodes]
    parts: Sequence[Codes]

    @property
    def bits(self) -> int:
        """How many bits a code needs: 8, 16 or 32."""
        return next(bits for bits in (8, 16, 32) if self.size <= 1 << bits)

    def packed(self) -> Codes:
        """Return every code beside its complement: the OR of two rows differs from both unless they are equal."""
        codes: Codes = self.codes.astype(f"uint{2 * self.bits}")
        complements: Codes = ((1 << self.bits) - 1 - codes) << self.bits
        packed: Codes = codes | complements
        return packed

    def decode(self, cells: Codes) -> list[pd.Series[Any]]:
        """Return the keys of these cells, one Series per column."""
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
    encoded = [_encode(column, ordered=ordered) for column in columns]
    codes, parts = encoded[0].codes, [np.arange(encoded[0].size)]
    for column in encoded[1:]:
        mixed = codes.astype(np.int64) * column.size + column.codes
        codes, distinct = pd.factorize(mixed, sort=ordered)
        parts = [part[distinct // column.size] for part in parts] + [distinct % column.size]
    return CellCodes(codes, len(parts[0]), encoded, parts)


def _encode(column: pd.Series[Any], *, ordered: bool) -> _ColumnCodes:
    dtype: Any = column.dtype
    _check_nameable(column)
    values: pd.Index[Any]
    span = _span(column) if isinstance(dtype, np.dtype) and dtype.kind in "iu" else None
    if span is not None:
        values, codes = span, (column.to_numpy() - span.start).astype(np.uint32)
    elif isinstance(dtype, pd.CategoricalDtype):
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
    return _ColumnCodes(codes, values, key_dtype(dtype))


def _span(column: pd.Series[Any]) -> pd.RangeIndex | None:
    """Return the range of whole numbers a column lies in, or None where it is wide."""
    if not len(column):
        return None
    low, high = int(column.min()), int(column.max())
    return pd.RangeIndex(low, high + 1) if high - low < _WIDEST_SPAN and high < 1 << 62 else None


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
    if isinstance(key, pd.Timestamp) and key.tz is not None:
        key = key.tz_convert(None)
    # As DuckDB spells them.
    text = str(key).lower() if isinstance(key, bool) else str(key)
    if isinstance(key, float):
        text = text.removesuffix(".0")
    return "-" if key is None else f"{len(text)}:{text}"
