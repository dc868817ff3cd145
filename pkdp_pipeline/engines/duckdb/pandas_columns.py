"""Columns of a pandas frame as Arrow's, under which equal values are one value and NaN is missing."""

from __future__ import annotations

from datetime import datetime
from numbers import Number
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.model.keys import key_dtype, kind_of_dtype

__all__ = ["holds_several_types", "key_column", "order_column", "public_dtype", "unit_column"]

#: What pandas calls columns of objects that may have several types; to it a time among dates is a date.
_PERHAPS_MIXED = frozenset({"mixed", "mixed-integer", "date"})


def key_column(column: pd.Series[Any]) -> Any:
    """Return a by-column; categories stay coded.

    Raises
    ------
    ArgumentError
        If the dtype cannot name cells.
    """
    kind = kind_of_dtype(column.dtype)
    if kind is None:
        raise ArgumentError(
            f"by column {column.name!r} has dtype {column.dtype}, which cannot name cells; convert it, for example "
            "with astype('str')."
        )
    if column.dtype == object and pd.api.types.infer_dtype(column, skipna=True) not in ("string", "empty"):
        raise ArgumentError(
            f"by column {column.name!r} has dtype object and does not hold text alone; give it one dtype, for example "
            "with astype('str'), convert_dtypes() or pd.to_datetime."
        )
    if isinstance(column.dtype, pd.CategoricalDtype):
        codes = np.asarray(column.cat.codes)
        categories = key_column(pd.Series(column.cat.categories, name=column.name))
        categories = categories.combine_chunks() if isinstance(categories, pa.ChunkedArray) else categories
        return pa.DictionaryArray.from_arrays(pa.array(codes, mask=codes < 0), categories)
    if kind == "real":
        return pa.array(_reals(column), from_pandas=True)
    return pa.array(column, type=pa.large_string() if kind == "text" else None, from_pandas=True)


def public_dtype(dtype: Any) -> Any:
    """Return the public dtype of a by-column: reals are NumPy's, as whose they are read."""
    if isinstance(dtype, pd.ArrowDtype) and pa.types.is_floating(dtype.pyarrow_dtype):
        return np.dtype(dtype.pyarrow_dtype.to_pandas_dtype())
    return key_dtype(dtype)


def unit_column(column: pd.Series[Any], *, as_text: bool) -> Any:
    """Return a unit's column: text, or whole numbers that stand for its values.

    `as_text` keeps the unit's own name, which a number would replace by one that depends on the other units.
    """
    values = _values(column)
    dtype = values.dtype
    if isinstance(dtype, np.dtype) and dtype.kind in "iu":
        return pa.array(values.to_numpy())
    view = isinstance(dtype, pd.ArrowDtype) and pa.types.is_string_view(dtype.pyarrow_dtype)
    texts = view or (
        kind_of_dtype(dtype) == "text" and pd.api.types.infer_dtype(values, skipna=True) in ("string", "empty")
    )
    if texts:
        return pa.array(values, type=pa.large_string(), from_pandas=True)
    codes, distinct = _factorized(values)
    if not as_text:
        return pa.array(codes, mask=codes < 0)
    # What is equal is one unit, and has one spelling: 0.0 is -0.0, and 7 is 7.0.
    named = pd.Series(distinct)
    numbers = np.array([isinstance(value, Number) for value in named], dtype=bool)
    names = (named + 0.0 if pd.api.types.is_float_dtype(named.dtype) else named).astype("str")
    names = names.mask(numbers, names.str.removesuffix(".0"))
    return pa.array(names.array.take(codes, allow_fill=True), type=pa.large_string())


def order_column(column: pd.Series[Any]) -> Any:
    """Return where each value stands in the column's order."""
    codes, _ = _factorized(_values(column), sort=True)
    return pa.array(codes, mask=codes < 0)


def holds_several_types(column: pd.Series[Any]) -> bool:
    """Return whether values are of several types, such as text and numbers; all numbers are of one type."""
    values = _values(column)
    if values.dtype != object or pd.api.types.infer_dtype(values, skipna=True) not in _PERHAPS_MIXED:
        return False
    return len({_type(value) for value in values[values.notna()]}) > 1


def _values(column: pd.Series[Any]) -> pd.Series[Any]:
    """Return a column without codes for its values, and with NumPy's reals, among which NaN is missing."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        plain = column.cat.categories.dtype
        return _values(column.astype(object if pd.api.types.is_integer_dtype(plain) else plain))
    if isinstance(column.dtype, pd.ArrowDtype) and pa.types.is_dictionary(column.dtype.pyarrow_dtype):
        return _values(column.astype(pd.ArrowDtype(column.dtype.pyarrow_dtype.value_type)))
    if isinstance(column.dtype, pd.ArrowDtype) and pa.types.is_floating(column.dtype.pyarrow_dtype):
        return pd.Series(_reals(column), index=column.index, name=column.name)
    return column


def _reals(column: pd.Series[Any]) -> npt.NDArray[np.float64]:
    return column.to_numpy(dtype=np.float64, na_value=np.nan)


def _factorized(column: pd.Series[Any], *, sort: bool = False) -> tuple[npt.NDArray[np.intp], Any]:
    problem = ""
    try:
        return column.factorize(sort=sort)
    except (TypeError, NotImplementedError) as error:
        problem = type(error).__name__
    raise ArgumentError(
        f"column {column.name!r} holds values that cannot be {'ordered' if sort else 'compared'} ({problem}); give it "
        "one dtype, for example with astype('str')."
    )


def _type(value: Any) -> object:
    if isinstance(value, (bool, np.bool_)):
        return bool
    return next((kind for kind in (str, bytes, Number, datetime) if isinstance(value, kind)), type(value))
