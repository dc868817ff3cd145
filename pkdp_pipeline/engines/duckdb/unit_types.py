"""What the unit's columns of a pandas frame hold: a column of objects may hold one person under two types."""

from __future__ import annotations

from numbers import Number
from typing import Any

import numpy as np
import pandas as pd

from pkdp_pipeline.engines.question import SPACES

__all__ = ["has_spaces", "holds_several_types", "holds_text"]


def holds_several_types(column: pd.Series[Any]) -> bool:
    """Return whether values are of several types, such as text and numbers; all numbers are of one type."""
    values = _values(column)
    if values.dtype != object or pd.api.types.infer_dtype(values, skipna=True) not in ("mixed", "mixed-integer"):
        return False
    return len({_type(value) for value in values[values.notna()]}) > 1


def holds_text(column: pd.Series[Any]) -> bool:
    """Return whether values are text."""
    values = _values(column)
    return isinstance(values.dtype, pd.StringDtype) or pd.api.types.infer_dtype(values, skipna=True) == "string"


def has_spaces(column: pd.Series[Any]) -> bool:
    """Return whether a text has spaces around it."""
    import pyarrow as pa
    import pyarrow.compute as pc

    texts = pa.array(_values(column), from_pandas=True)
    return bool(pc.any(pc.not_equal(pc.ascii_trim(texts, SPACES), texts)).as_py())


def _values(column: pd.Series[Any]) -> Any:
    """Return the values of a column; of categories, each once."""
    return column.cat.categories if isinstance(column.dtype, pd.CategoricalDtype) else column


def _type(value: Any) -> object:
    if isinstance(value, (bool, np.bool_)):
        return bool
    return next((kind for kind in (str, bytes, Number) if isinstance(value, kind)), type(value))
