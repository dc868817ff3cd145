"""SQL types of a relation's key columns: which may name cells, how they are read, and their public dtype."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd

from pkdp_pipeline.errors import ArgumentError

_INSTANT = "TIMESTAMP WITH TIME ZONE"
#: SQL types whose pandas dtype has a name; text, floats, dates and decimals are read in `to_public`.
_PLAIN: Mapping[str, str] = MappingProxyType(
    {
        "BOOLEAN": "boolean",
        "TINYINT": "Int8",
        "SMALLINT": "Int16",
        "INTEGER": "Int32",
        "BIGINT": "Int64",
        "UTINYINT": "UInt8",
        "USMALLINT": "UInt16",
        "UINTEGER": "UInt32",
        "UBIGINT": "UInt64",
        "TIMESTAMP": "datetime64[us]",
        "TIMESTAMP_S": "datetime64[us]",
        "TIMESTAMP_MS": "datetime64[us]",
        "TIMESTAMP_NS": "datetime64[ns]",
        _INSTANT: "datetime64[us]",
    }
)
_DECIMAL = re.compile(r"DECIMAL\((\d+),\s*(\d+)\)")


def is_number(column: str) -> str:
    """Return SQL for whether a quoted column of reals holds a number: neither NULL nor NaN.

    Not ``isnan``: where the statistics of a Parquet file name no NaN, which they never do, DuckDB 2 takes its answer
    from them instead of from the rows (https://github.com/duckdb/duckdb/issues/25521).
    """
    return f"(isfinite({column}) OR isinf({column})) IS TRUE"


def comparable(column: str, kind: str) -> str:
    """Return SQL for a quoted column under which equal values are one value and NaN is missing.

    Instants become points of UTC, which are spelled alike in every session.
    """
    if kind in ("FLOAT", "DOUBLE"):
        return f"CASE WHEN {is_number(column)} THEN {column}::DOUBLE + 0.0::DOUBLE END"
    if kind == _INSTANT:
        return f"timezone('UTC', {column})"
    return column


def check_one_type(name: str, kind: str) -> None:
    """Raise `ArgumentError` where a unit's column may hold 7 and "7", which would be two people."""
    if kind.startswith("UNION(") or kind in ("JSON", "VARIANT"):
        raise ArgumentError(
            f"unit column {name!r} has type {kind.partition('(')[0]}, whose values may be text in one row and a number "
            "in another: one person would be counted as two. Extract text, or numbers, in the relation."
        )


def nameable(name: str, column: str, kind: str) -> str:
    """Return SQL for a quoted by-column, or raise `ArgumentError` when its type cannot name cells.

    Text is compared as it is written: under a collation a cell would be named by one person's spelling. A date or
    a time outside the years 1 to 9999, such as infinity, is missing: it has no name in Python, and a table must not
    fail for one row.
    """
    # A column without a value in any row may have no type: in another period's file it has one.
    if kind.startswith("ENUM(") or kind in ("UUID", '"NULL"'):
        return f"{column}::VARCHAR"
    if kind == "VARCHAR":
        return f"{column} COLLATE C"
    if kind == "DATE" or kind.startswith("TIMESTAMP"):
        read = comparable(column, kind)
        return f"CASE WHEN year({read}) BETWEEN 1 AND 9999 THEN {read} END"
    if kind in _PLAIN or _DECIMAL.fullmatch(kind):
        return column
    if kind in ("FLOAT", "DOUBLE"):
        return comparable(column, kind)
    raise ArgumentError(
        f"by column {name!r} has type {kind.partition('(')[0]}, which cannot name cells; cast it in the relation, for "
        "example to VARCHAR."
    )


def to_public(values: Any, kind: str) -> pd.Series[Any]:
    """Return an Arrow column of keys as a Series under the public dtype that its SQL type decides."""
    import pyarrow as pa

    dtype: Any = pd.StringDtype(na_value=np.nan)
    decimal = _DECIMAL.fullmatch(kind)
    if kind == "DATE":
        dtype = pd.ArrowDtype(pa.date32())
    elif decimal:
        dtype = pd.ArrowDtype(pa.decimal128(int(decimal[1]), int(decimal[2])))
    elif kind in ("FLOAT", "DOUBLE"):
        dtype = np.dtype("float64")
    else:
        dtype = _PLAIN.get(kind, dtype)
    keys: pd.Series[Any] = pd.Series(pd.arrays.ArrowExtensionArray(values)).astype(dtype)
    return keys.dt.tz_localize("UTC") if kind == _INSTANT else keys
