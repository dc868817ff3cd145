"""A pandas column whose values are counted in groups, as their names."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from pkdp_pipeline.engines.pandas_where import plain, selected_rows
from pkdp_pipeline.model.bins import Bins
from pkdp_pipeline.model.keys import canonical_key, kind_of_dtype
from pkdp_pipeline.model.predicate import Condition


def grouped_values(column: pd.Series[Any], groups: Bins) -> pd.Series[Any]:
    """Return the name of each value's group, missing where the value is.

    Raises `ArgumentError` if the column holds no values of the kind that is grouped.
    """
    kind = kind_of_dtype(column.dtype)
    groups.holds(None if isinstance(column.dtype, pd.CategoricalDtype | pd.SparseDtype) else kind)
    if isinstance(groups.edges, str):
        codes, distinct = column.factorize()
        values = [canonical_key(value) for value in distinct]
        # A day outside the years 1 to 9999 is no value of Python's, and missing.
        names = [groups.of_day(value) if value is not None and 1 <= value.year <= 9999 else None for value in values]
        texts = pd.Series([*names, None], dtype="str").array.take(codes)
    else:
        # A value is in the group of as many edges as it is not below.
        frame, places = pd.DataFrame({column.name: column}), np.zeros(len(column), dtype=np.int64)
        for condition in groups.below:
            places += ~_hits(frame, condition)
        places[plain(column).isna().to_numpy(dtype=bool)] = -1
        texts = pd.Categorical.from_codes(places, pd.Index(groups.names, dtype="str"))
    result: pd.Series[Any] = pd.Series(texts, index=column.index, name=column.name)
    return result


def _hits(frame: pd.DataFrame, condition: Condition) -> npt.NDArray[np.bool_]:
    hits = selected_rows(frame, condition)
    assert hits is not None
    return hits
