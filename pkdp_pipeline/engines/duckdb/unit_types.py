"""What the unit's columns of a pandas frame hold: a column of objects may hold one person under two types."""

from __future__ import annotations

from datetime import datetime
from numbers import Number
from typing import Any

import numpy as np
import pandas as pd

from pkdp_pipeline.engines.question import SPACES

__all__ = ["has_spaces", "holds_several_types", "holds_text"]

#: What pandas calls columns of objects that may have several types; to it a time among dates is a date.
_PERHAPS_MIXED = frozenset({"mixed", "mixed-integer", "date"})


def holds_several_types(column: pd.Series[Any]) -> bool:
    """Return whether values are of several types, such as text and numbers; all numbers are of one type."""
    values = _values(column)
    if values.dtype != object or pd.api.types.infer_dtype(values, skipna=True) not in _PERHAPS_MIXED:
        return False
    return len({_type(value) for value in values[values.notna()]}) > 1


def holds_text(column: pd.Series[Any]) -> bool:
    """Return whether values are text."""
    import pyarrow as pa

    values = _values(column)
    if isinstance(values.dtype, pd.ArrowDtype):
        kind = values.dtype.pyarrow_dtype
        return any(is_text(kind) for is_text in (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view))
    return isinstance(values.dtype, pd.StringDtype) or pd.api.types.infer_dtype(values, skipna=True) == "string"


def has_spaces(column: pd.Series[Any]) -> bool:
    """Return whether a text has spaces around it."""
    import pyarrow as pa
    import pyarrow.compute as pc

    texts = pa.array(_values(column), type=pa.large_string(), from_pandas=True)
    return bool(pc.any(pc.not_equal(pc.utf8_trim(texts, SPACES), texts)).as_py())


def _values(column: pd.Series[Any]) -> Any:
    """Return the values of a column; of categories those that some row has, each once."""
    import pyarrow as pa

    if isinstance(column.dtype, pd.CategoricalDtype):
        codes = np.unique(column.cat.codes)
        return column.cat.categories.take(codes[codes >= 0])
    if isinstance(column.dtype, pd.ArrowDtype) and pa.types.is_dictionary(column.dtype.pyarrow_dtype):
        return column.astype(pd.ArrowDtype(column.dtype.pyarrow_dtype.value_type))
    return column


def _type(value: Any) -> object:
    if isinstance(value, (bool, np.bool_)):
        return bool
    return next((kind for kind in (str, bytes, Number, datetime) if isinstance(value, kind)), type(value))
