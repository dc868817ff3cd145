"""A missing value in a predicate, in every dtype that pandas has for it: equal to nothing, and never an error."""

from __future__ import annotations

import pandas as pd
import pytest
from thorough import thinned

from pkdp_pipeline.engines import Selection, engine_for

NUMBERS = ("float64", "Int64", "Float64", "int64[pyarrow]", "double[pyarrow]")
TEXTS = ("str", "string", "object", "string[pyarrow]")
TRUTHS = ("boolean", "bool[pyarrow]", "object")


def satisfying(values, dtype, query):
    frame = pd.DataFrame({"u": [1, 2, 3], "v": pd.Series(values, dtype=dtype)})
    return engine_for(frame).tally(frame, Selection(unit=("u",), where=query)).satisfying


@thinned(3)
@pytest.mark.parametrize(
    ("values", "dtype", "constant"),
    [([1, 2, None], dtype, "2") for dtype in NUMBERS] + [(["a", "b", None], dtype, "'b'") for dtype in TEXTS],
)
def test_a_missing_value_equals_and_exceeds_nothing(values, dtype, constant):
    expected = {
        f"v == {constant}": 1,
        f"v in [{constant}]": 1,
        f"v >= {constant}": 1,
        "v == v": 2,
        "v.isna()": 1,
        "v.notna()": 2,
        f"v.isna() or v == {constant}": 2,
        f"v != {constant}": 2,
    }
    assert {query: satisfying(values, dtype, query) for query in expected} == expected


@pytest.mark.parametrize("dtype", TRUTHS)
def test_a_missing_truth_is_no(dtype):
    assert satisfying([True, False, None], dtype, "v") == 1
    assert satisfying([True, False, None], dtype, "v or v.isna()") == 2
    assert satisfying([True, False, None], dtype, "not v") == 2
