"""Key columns and domains: which values may name a cell, their public dtype, canonical form and declared set.

A key column's dtype comes from the source's schema or from the declared domain, never from the cells that
happen to be published: a dtype that changed with a withheld cell would tell of it.
"""

from __future__ import annotations

import datetime
import decimal
import itertools
import json
import math
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from pkdp_pipeline.errors import ArgumentError

if TYPE_CHECKING:
    import pandas as pd

#: A canonical key: text, bool, int, float, Decimal, date, Timestamp, or None where the value is missing.
Key = Any


def canonical_key(value: object) -> Key:
    """Return the one Python value that stands for `value`; everything that means "missing" is None."""
    import pandas as pd

    if value is None or value is pd.NaT or value is pd.NA:
        return None
    if isinstance(value, np.generic):
        value = pd.Timestamp(value) if isinstance(value, np.datetime64) else value.item()
    if isinstance(value, float):
        return None if math.isnan(value) else value + 0.0
    if isinstance(value, datetime.datetime):
        return pd.Timestamp(value)
    return value


def kind_of_values(name: str, values: Sequence[Key]) -> str | None:
    """Return the common kind of canonical `values`, or None when all are missing.

    Raises `ArgumentError` if a value cannot name a cell, or the values are of several kinds.
    """
    kinds = {_kind_of_value(name, value) for value in values if value is not None}
    if kinds == {"integer", "real"}:
        return "real"
    if len(kinds) > 1:
        raise ArgumentError(f"{name} mixes {' and '.join(sorted(kinds))} values; write all of them as one kind.")
    return kinds.pop() if kinds else None


_KINDS: Mapping[str, type] = MappingProxyType(
    # A boolean is an int as well.
    {"text": str, "boolean": bool, "integer": int, "real": float, "date": datetime.date, "decimal": decimal.Decimal}
)


def _kind_of_value(name: str, value: Key) -> str:
    import pandas as pd

    if isinstance(value, pd.Timestamp):
        return "timestamp" if value.tz is None else "instant"
    for kind, of in _KINDS.items():
        if isinstance(value, of):
            return kind
    raise ArgumentError(
        f"{name} holds a {type(value).__name__}; a cell is named by text, a number, a boolean, a date, a timestamp or "
        "None (missing)."
    )


def kind_of_dtype(dtype: Any) -> str | None:
    """Return the kind of values a pandas dtype holds, or None for a dtype that cannot name cells.

    A column of Python objects counts as text; its reader checks that it holds nothing else.
    """
    import pandas as pd

    types = pd.api.types
    if isinstance(dtype, pd.CategoricalDtype):
        return kind_of_dtype(dtype.categories.dtype)
    if isinstance(dtype, pd.ArrowDtype):
        return _kind_of_arrow(dtype)
    tests = (
        ("boolean", types.is_bool_dtype),
        ("integer", types.is_integer_dtype),
        ("real", types.is_float_dtype),
        ("instant", lambda given: isinstance(given, pd.DatetimeTZDtype)),
        ("timestamp", types.is_datetime64_any_dtype),
        ("text", types.is_string_dtype),
        ("text", types.is_object_dtype),
    )
    return next((kind for kind, matches in tests if matches(dtype)), None)


def _kind_of_arrow(dtype: pd.ArrowDtype) -> str | None:
    import pyarrow as pa

    arrow = dtype.pyarrow_dtype
    if pa.types.is_dictionary(arrow):
        arrow = arrow.value_type
    tests = (
        ("boolean", pa.types.is_boolean),
        ("integer", pa.types.is_integer),
        ("real", pa.types.is_floating),
        ("instant", lambda given: pa.types.is_timestamp(given) and given.tz is not None),
        ("timestamp", pa.types.is_timestamp),
        ("date", pa.types.is_date),
        ("decimal", pa.types.is_decimal),
        ("text", pa.types.is_string),
        ("text", pa.types.is_large_string),
    )
    return next((kind for kind, matches in tests if matches(arrow)), None)


def key_dtype(dtype: Any) -> Any:
    """Return the public dtype of keys that come from a pandas column of `dtype`.

    Text is always ``str``. Categories, which list withheld cells, give way to plain values, and integers and
    booleans from a categorical to their nullable forms, since any categorical can hold missing values.
    """
    import pandas as pd

    if kind_of_dtype(dtype) == "text":
        return pd.StringDtype(na_value=np.nan)
    if isinstance(dtype, pd.CategoricalDtype):
        inner = key_dtype(dtype.categories.dtype)
        return _nullable(inner) if isinstance(inner, np.dtype) else inner
    if isinstance(dtype, pd.ArrowDtype):
        import pyarrow as pa

        arrow = dtype.pyarrow_dtype
        arrow = arrow.value_type if pa.types.is_dictionary(arrow) else arrow
        # pandas keeps the zone of no value in its own dtype alone.
        return arrow.to_pandas_dtype() if kind_of_dtype(dtype) == "instant" else pd.ArrowDtype(arrow)
    return dtype


def _nullable(dtype: np.dtype[Any]) -> Any:
    import pandas as pd

    if dtype.kind == "b":
        return pd.BooleanDtype()
    if dtype.kind in "iu":
        return pd.api.types.pandas_dtype(dtype.name.replace("uint", "UInt").replace("int", "Int"))
    return dtype


def domain_dtype(kind: str | None, values: Sequence[Key]) -> Any:
    """Return the dtype of a key column whose public cells are `values`, all of one `kind`."""
    import pandas as pd

    missing = any(value is None for value in values)
    if kind == "integer":
        dtype = _number_dtype([value for value in values if value is not None])
        if dtype == "float64":
            raise ArgumentError("domain holds whole numbers that no 64-bit column can hold; leave them out.")
        return dtype if missing else dtype.numpy_dtype
    if kind == "boolean":
        return pd.BooleanDtype() if missing else np.dtype("bool")
    if kind == "real":
        return np.dtype("float64")
    if kind in ("timestamp", "instant"):
        index = pd.DatetimeIndex([value for value in values if value is not None])
        return index.as_unit("ns" if any(value.nanosecond for value in index) else "us").dtype
    if kind in ("date", "decimal"):
        import pyarrow as pa

        return pd.ArrowDtype(pa.date32() if kind == "date" else pa.array(list(values)).type)
    return pd.StringDtype(na_value=np.nan)


def from_arrow(values: Any, dtype: Any) -> pd.Series[Any]:
    """Return an Arrow column as a Series of a pandas dtype.

    Beside a missing value pandas itself takes whole numbers through floats, which tell them apart up to 2^53.
    """
    import pandas as pd

    public: Any = pd.api.types.pandas_dtype(dtype)
    exact = public.kind in "biu" and isinstance(public, pd.api.extensions.ExtensionDtype)
    keys: Any = public.__from_arrow__(values) if exact else pd.arrays.ArrowExtensionArray(values)
    return pd.Series(keys).astype(public)


def published_keys(keys: pd.Series[Any]) -> pd.Series[Any]:
    """Return published keys under a dtype that they alone decide.

    A source's dtype may owe itself to a withheld row: one missing value turns a pandas column of integers into
    floats, one nanosecond makes a whole column finer, one long decimal a whole column wider.
    """
    import pandas as pd

    kind = kind_of_dtype(keys.dtype)
    dtype: Any = keys.dtype
    # What the values of texts, dates and truth values are, their dtypes do not depend on.
    listed = keys.array if kind in ("integer", "real", "timestamp", "instant", "decimal") else ()
    present = [value for value in map(canonical_key, listed) if value is not None]
    if kind == "boolean":
        dtype = pd.BooleanDtype()
    elif kind in ("integer", "real"):
        dtype = _number_dtype(present)
    elif kind in ("timestamp", "instant"):
        unit: Literal["ns", "us"] = "ns" if any(value.nanosecond for value in present) else "us"
        return pd.Series(pd.DatetimeIndex(keys).as_unit(unit), name=keys.name)
    elif kind == "decimal":
        dtype = _decimal_dtype(present)
        read = (lambda value: value) if isinstance(dtype, pd.ArrowDtype) else int
        values = [None if value is None else read(value) for value in map(canonical_key, keys.array)]
        return pd.Series(values, dtype=dtype, name=keys.name)
    return keys.astype("object").astype(dtype) if isinstance(keys.dtype, pd.ArrowDtype) else keys.astype(dtype)


def _number_dtype(present: Sequence[int | float]) -> Any:
    """Return the dtype of these numbers: Int64 or UInt64 where all are whole, are known to the unit, and fit."""
    import pandas as pd

    # A real from 2^53 on stands for several whole numbers.
    if all(value == value // 1 and (isinstance(value, int) or abs(value) < 2**53) for value in present):
        for dtype, least, most in ((pd.Int64Dtype(), -(2**63), 2**63), (pd.UInt64Dtype(), 0, 2**64)):
            if all(least <= value < most for value in present):
                return dtype
    return np.dtype("float64")


def _decimal_dtype(present: Sequence[decimal.Decimal]) -> Any:
    """Return the smallest dtype that holds these: that of whole numbers where it can, else of decimals.

    1.50 and 1.5 are the same key, and ask for the same digits.
    """
    import pandas as pd
    import pyarrow as pa

    whole = scale = 0
    for value in present:
        _, digits, exponent = value.as_tuple()
        written = "".join(map(str, digits)).lstrip("0")
        kept = written.rstrip("0")
        if kept:
            power = int(exponent) + len(written) - len(kept)  # Arrow's decimals are finite
            whole, scale = max(whole, len(kept) + power), max(scale, -power)
    if not scale and whole < 20 and (numbers := _number_dtype([int(value) for value in present])) != "float64":
        return numbers
    precision = whole + scale
    return pd.ArrowDtype(pa.decimal128(precision, scale) if precision <= 38 else pa.decimal256(precision, scale))


def sort_rank(keys: Sequence[Key]) -> tuple[tuple[bool, Any], ...]:
    """Return what sorts tuples of keys column by column, missing values last."""
    return tuple((key is None, 0 if key is None else key) for key in keys)


def plain(key: Key) -> str:
    """Return a key as one text, numbers and times as programs read them; a missing one is the empty text."""
    if key is None:
        return ""
    if isinstance(key, bool):
        return "true" if key else "false"
    if isinstance(key, datetime.date):  # timestamps and instants, too
        return key.isoformat()
    return f"{key:f}" if isinstance(key, decimal.Decimal) else str(key)


def json_key(value: Key) -> Any:
    """Return a key as the JSON value that stands for it in hashes."""
    import pandas as pd

    if isinstance(value, pd.Timestamp) and value.tz is not None:
        return value.tz_convert("UTC").isoformat()
    if isinstance(value, datetime.date):
        return value.isoformat()
    if isinstance(value, decimal.Decimal):
        return str(value)
    return value


Cell = tuple[Key, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Domain:
    """The public cells, in the order in which they are published.

    `cells`: one key per by-column; None stands for "missing". `kinds`: the kind of each column's keys; None where all
    of them are missing.
    """

    by: tuple[str, ...]
    cells: tuple[Cell, ...]
    kinds: tuple[str | None, ...]

    @classmethod
    def parse(cls, by: tuple[str, ...], domain: object) -> Domain:
        """Read a declared domain.

        `domain`: for one column its cells. For several, tuples with one key per column, or a dict of each column's
        values, of which all combinations are cells. Raises `ArgumentError` if it is empty, repeats a cell, does not fit
        `by`, or has no order.
        """
        cells = _product(by, domain) if isinstance(domain, Mapping) else _listed(by, domain)
        if not cells:
            raise ArgumentError("domain must have at least one cell.")
        if len(set(cells)) < len(cells):
            raise ArgumentError("domain lists a cell twice; list every public cell once.")
        kinds = tuple(
            kind_of_values(f"domain of {column!r}", [cell[position] for cell in cells])
            for position, column in enumerate(by)
        )
        read = cls(by=by, cells=cells, kinds=kinds)
        try:
            read.keys()
        except (ValueError, ArithmeticError) as error:
            if isinstance(error, ArgumentError):
                raise
            raise ArgumentError("domain holds values that no column can hold; leave them out.") from None
        return read

    def keys(self) -> pd.DataFrame:
        """Return the cells as key columns, under dtypes that the domain alone decides."""
        import pandas as pd

        columns = {}
        for position, (column, kind) in enumerate(zip(self.by, self.kinds, strict=True)):
            values = [cell[position] for cell in self.cells]
            columns[column] = pd.Series(values, dtype=domain_dtype(kind, values))
        return pd.DataFrame(columns)

    def canonical(self) -> dict[str, Any]:
        """Return the set of cells, whatever their order, as a JSON-ready dictionary."""
        cells = [[json_key(key) for key in cell] for cell in self.cells]
        return {"kinds": list(self.kinds), "cells": sorted(cells, key=json.dumps)}


def _values(name: str, values: object) -> list[Any]:
    if isinstance(values, (str, bytes, Set)) or not isinstance(values, Iterable):
        raise ArgumentError(f"{name} must be a list: the order of the public cells is published.")
    return list(values)


def _key(value: object) -> Key:
    if isinstance(value, (list, tuple, dict, set)):
        raise ArgumentError("domain has a cell with several values for one by-column; write plain values.")
    return canonical_key(value)


def _product(by: tuple[str, ...], domain: Mapping[Any, Any]) -> tuple[Cell, ...]:
    if set(domain) != set(by):
        raise ArgumentError(f"domain must give the values of exactly the by-columns {', '.join(map(repr, by))}.")
    columns = [[_key(value) for value in _values(f"domain of {column!r}", domain[column])] for column in by]
    return tuple(itertools.product(*columns))


def _listed(by: tuple[str, ...], domain: object) -> tuple[Cell, ...]:
    values = _values("domain", domain)
    if len(by) == 1:
        return tuple((_key(value),) for value in values)
    cells = []
    for value in values:
        if not isinstance(value, Sequence) or isinstance(value, str) or len(value) != len(by):
            raise ArgumentError(
                f"domain must be a list of tuples with one value for each of {', '.join(map(repr, by))}, or a dict of "
                "each column's values."
            )
        cells.append(tuple(_key(part) for part in value))
    return tuple(cells)
