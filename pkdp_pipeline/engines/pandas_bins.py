"""A pandas column whose values are counted in groups, as their names."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from pkdp_pipeline.engines.pandas_where import plain, selected_rows
from pkdp_pipeline.model.bins import Bins
from pkdp_pipeline.model.keys import kind_of_dtype
from pkdp_pipeline.model.predicate import Condition


def grouped_values(column: pd.Series[Any], groups: Bins) -> pd.Series[Any]:
    """Return the name of each value's group, missing where the value is.

    Raises `ArgumentError` if the column holds no values of the kind that is grouped.
    """
    if isinstance(column.dtype, pd.CategoricalDtype):  # what its categories are, as elsewhere
        categories: Any = column.cat.categories
        values = pd.array(categories).take(column.cat.codes.to_numpy(), allow_fill=True)
        column = pd.Series(values, index=column.index, name=column.name)
    kind = kind_of_dtype(column.dtype)
    if column.dtype == object and pd.api.types.infer_dtype(column, skipna=True) == "empty":
        # A column that says nothing of what it would hold has no group.
        return pd.Series(pd.array([None] * len(column), dtype="str"), index=column.index, name=column.name)
    groups.holds(None if isinstance(column.dtype, pd.SparseDtype) else kind)
    texts: Any
    if isinstance(groups.edges, str):
        codes, distinct = column.factorize()
        texts = pd.Series([*map(groups.of_day, _days(distinct)), None], dtype="str").array.take(codes)
    else:
        # A value is in the group of as many edges as it is not below.
        frame, places = pd.DataFrame({column.name: column}), np.zeros(len(column), dtype=np.int64)
        for condition in groups.below:
            places += ~_hits(frame, condition)
        places[plain(column).isna().to_numpy(dtype=bool)] = -1
        texts = pd.Categorical.from_codes(places, pd.Index(groups.names, dtype="str"))
    return pd.Series(texts, index=column.index, name=column.name)


def _days(distinct: Any) -> Iterator[date | None]:
    """Yield dates, or times, of the years 1 to 9999; others are no value of Python's, and missing."""
    import pyarrow as pa
    import pyarrow.compute as pc

    moments = pa.array(distinct, from_pandas=True)
    for moment, year in zip(moments, pc.year(moments).to_pylist(), strict=True):
        yield moment.as_py() if year is not None and 1 <= year <= 9999 else None


def _hits(frame: pd.DataFrame, condition: Condition) -> npt.NDArray[np.bool_]:
    hits = selected_rows(frame, condition)
    assert hits is not None
    return hits
