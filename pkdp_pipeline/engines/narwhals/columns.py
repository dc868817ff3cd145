"""Types of a Narwhals frame's columns: which may name cells or units, how they are read, and their public dtype."""

from __future__ import annotations

import math
import re
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd

from pkdp_pipeline.errors import ArgumentError

__all__ = ["column", "comparable", "family", "nameable", "opened", "to_public"]

_TEXT = (nw.String, nw.Categorical, nw.Enum)
_WHOLE = (nw.Int8, nw.Int16, nw.Int32, nw.Int64, nw.UInt8, nw.UInt16, nw.UInt32, nw.UInt64)
_REAL = (nw.Float32, nw.Float64)
#: What values can be grouped by, but cannot name a published cell.
_OTHER_UNITS = (nw.Binary, nw.Duration, nw.Time, nw.Int128, nw.UInt128)


def family(dtype: Any) -> str:
    """Return what a column of this type can be compared with in a query string."""
    if isinstance(dtype, _TEXT):
        return "text"
    if isinstance(dtype, (nw.Date, nw.Datetime)):
        return "time" if getattr(dtype, "time_zone", None) is None else "instant"
    if isinstance(dtype, (*_WHOLE, *_REAL, nw.Decimal)):
        return "number"
    return "boolean" if isinstance(dtype, nw.Boolean) else str(dtype)


def comparable(argument: str, name: str, dtype: Any) -> nw.Expr:
    """Return a column under which equal values are one value and NaN is missing.

    Raises
    ------
    ArgumentError
        If values of its type cannot be grouped and ordered.
    """
    values = column(name)
    if isinstance(dtype, nw.String):
        return values
    if isinstance(dtype, _TEXT):
        return values.cast(nw.String)
    if isinstance(dtype, _REAL):
        real = values.cast(nw.Float64)
        # -0.0 and 0.0 are one cell, and have one name.
        return nw.when(_is_number(real)).then(real + nw.lit(0.0))
    if isinstance(dtype, (*_WHOLE, *_OTHER_UNITS, nw.Boolean, nw.Date, nw.Datetime, nw.Decimal)):
        return values
    raise ArgumentError(
        f"{argument} column {name!r} has type {dtype}, whose values cannot be compared; cast it in the frame, for "
        "example to text."
    )


def _is_number(real: nw.Expr) -> nw.Expr:
    """Return whether a column of reals holds a number, neither missing nor NaN; never missing.

    Not `is_nan`: over a Parquet file whose statistics leave NaN out, DuckDB 2 as a backend of Ibis answers it from them
    (https://github.com/duckdb/duckdb/issues/25521). The difference is NaN for NaN and the infinities, and NaN equals no
    number in any engine. With its statistics DuckDB looks through a bare ``==``, not through `fill_null`.
    """
    infinite = (real == nw.lit(math.inf)) | (real == nw.lit(-math.inf))
    return ((real - real == nw.lit(0.0)) | infinite).fill_null(False)


def nameable(name: str, dtype: Any) -> nw.Expr:
    """Return a by-column as `comparable` does, or raise `ArgumentError` when its type cannot name cells.

    A date outside the years 1 to 9999, such as infinity, is missing: it has no name in Python, and a table must not
    fail for one row.
    """
    if isinstance(dtype, nw.Date):
        dates = column(name)
        return nw.when(dates.dt.year().is_between(1, 9999)).then(dates)
    if isinstance(dtype, (*_TEXT, *_WHOLE, *_REAL, nw.Boolean, nw.Date, nw.Datetime, nw.Decimal)):
        return comparable("by", name, dtype)
    raise ArgumentError(
        f"by column {name!r} has type {dtype}, which cannot name cells; cast it in the frame, for example to text."
    )


def to_public(values: Any, dtype: Any) -> pd.Series[Any]:
    """Return an Arrow column of keys as a Series under the public dtype that its type decides."""
    import pyarrow as pa

    public: Any = pd.StringDtype(na_value=np.nan)
    if isinstance(dtype, nw.Date):
        public = pd.ArrowDtype(pa.date32())
    elif isinstance(dtype, nw.Decimal):
        public = pd.ArrowDtype(values.type)
    elif isinstance(dtype, _REAL):
        public = np.dtype("float64")
    elif isinstance(dtype, nw.Boolean):
        public = pd.BooleanDtype()
    elif isinstance(dtype, _WHOLE):
        public = pd.api.types.pandas_dtype(str(dtype))
    elif isinstance(dtype, nw.Datetime):
        unit = "ns" if dtype.time_unit == "ns" else "us"
        zone = "" if dtype.time_zone is None else f", {dtype.time_zone}"
        public = pd.api.types.pandas_dtype(f"datetime64[{unit}{zone}]")
    keys: pd.Series[Any] = pd.Series(pd.arrays.ArrowExtensionArray(values)).astype(public)
    # An engine may keep either zero for the cell that holds both.
    return keys + 0.0 if isinstance(dtype, _REAL) else keys


def column(name: str) -> nw.Expr:
    """Return a column of an `opened` frame by the name it has in the frame that was given."""
    return nw.col(_spelled(name))


def opened(frame: Any) -> tuple[nw.LazyFrame[Any], dict[str, Any]]:
    """Return a frame whose columns have plain names, and its schema under the names it was given with."""
    if type(frame).__module__.split(".")[0] == "pyspark":
        names = list(frame.columns)
        # By position: the names do not have to be read for it.
        lazy = nw.from_native(frame.toDF(*map(_spelled, names)) if _renamed(names) else frame).lazy()
        return lazy, dict(zip(names, map(_in_utc, lazy.collect_schema().values()), strict=True))
    lazy = nw.from_native(frame).lazy()
    schema = dict(lazy.collect_schema())
    renamed = _renamed(schema)
    return (lazy.rename(renamed) if renamed else lazy), schema


def _in_utc(dtype: Any) -> Any:
    """Return the type of a Spark column: instants have no zone of their own there, only a session shows them in one."""
    zoned = isinstance(dtype, nw.Datetime) and dtype.time_zone is not None
    return nw.Datetime("us", "UTC") if zoned else dtype


def _renamed(names: Any) -> dict[str, str]:
    return {name: _spelled(name) for name in names if _spelled(name) != name}


def _spelled(name: str) -> str:
    """Return a name that stands for this one alone and that no engine reads as anything but a name."""
    return name if re.fullmatch(r"\w+", name) else f"pkdp_{name.encode('utf-8', 'surrogatepass').hex()}"
