"""Public cells: how they are declared, what is refused, and the dtypes they give their columns."""

from __future__ import annotations

import datetime
import decimal

import numpy as np
import pandas as pd
import pytest

from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.model.keys import Domain


def test_cells_of_one_column_are_a_list_and_of_several_tuples_or_a_product():
    assert Domain.parse(("a",), ["x", "y"]).cells == (("x",), ("y",))
    assert Domain.parse(("a",), {"a": ["x", None]}).cells == (("x",), (None,))
    assert Domain.parse(("a", "b"), [("x", 1), ["y", 2]]).cells == (("x", 1), ("y", 2))
    assert Domain.parse(("b", "a"), {"a": ["x"], "b": [2, 1]}).cells == ((2, "x"), (1, "x"))
    assert Domain.parse(("a",), pd.Series([np.nan, 2.0])).cells == ((None,), (2.0,))


@pytest.mark.parametrize(
    ("by", "domain", "words"),
    [
        (("a",), [], "at least one"),
        (("a",), ["x", "x"], "twice"),
        (("a",), [1, 1.0], "twice"),
        (("a",), [None, float("nan")], "twice"),
        (("a",), {"x", "y"}, "order"),
        (("a",), "xy", "list"),
        (("a",), 3, "list"),
        (("a",), [("x",)], "plain values"),
        (("a",), {"b": ["x"]}, "by names 'a', and domain gives the values of 'b'"),
        (("a", "b"), ["x", "y"], "list of tuples"),
        (("a", "b"), [("x",)], "one value for each of 'a', 'b'"),
        (("a", "b"), {"a": ["x"]}, "must name the same columns"),
        (("a", "b"), {"a": ["x"], "b": "xy"}, "domain of 'b'"),
        (("a",), ["x", 1], "mixes integer and text"),
        (("a",), [True, 1.5], "mixes"),
        (("a",), [b"x"], "bytes"),
        (("a",), [-1, 2**63], "64-bit"),
        (("a",), [2**64, None], "64-bit"),
        (("a",), [decimal.Decimal("1e-90"), decimal.Decimal("1e90")], "no column can hold"),
        (("a",), [pd.Timestamp("2020-01-01"), datetime.date(2020, 1, 1)], "mixes"),
    ],
)
def test_a_malformed_domain_is_refused(by, domain, words):
    with pytest.raises(ArgumentError, match=words):
        Domain.parse(by, domain)


@pytest.mark.parametrize(
    ("values", "dtype"),
    [
        (["x", None], "str"),
        ([1, 2], "int64"),
        ([1, None], "Int64"),
        ([1, 2**64 - 1], "uint64"),
        ([2**63, None], "UInt64"),
        ([True], "bool"),
        ([True, None], "boolean"),
        ([1, 2.5, None], "float64"),
        ([datetime.date(2020, 1, 1), None], "date32[day][pyarrow]"),
        ([datetime.datetime(2020, 1, 1), None], "datetime64[us]"),
        ([pd.Timestamp("2020-01-01 00:00:00.000000001")], "datetime64[ns]"),
        ([pd.Timestamp("2020-01-01", tz="UTC"), None], "datetime64[us, UTC]"),
        ([decimal.Decimal("1.50"), None], "decimal128(3, 2)[pyarrow]"),
        ([None], "str"),
    ],
)
def test_the_domain_alone_decides_the_dtype(values, dtype):
    keys = Domain.parse(("a",), values).keys()
    assert str(keys["a"].dtype) == dtype
    assert keys["a"].isna().tolist() == [value is None for value in values]


def test_the_canonical_form_is_of_the_set():
    domain, reordered = Domain.parse(("a",), ["x", "y"]), Domain.parse(("a",), ["y", "x"])
    assert domain.canonical() == reordered.canonical()
    assert domain.canonical() != Domain.parse(("a",), ["x"]).canonical()
    dates = Domain.parse(("a",), [datetime.date(2020, 1, 1)])
    assert dates.canonical() != Domain.parse(("a",), ["2020-01-01"]).canonical()
