"""Published keys: what is withheld decides neither their dtype nor their bytes."""

from __future__ import annotations

from decimal import Decimal

import duckdb
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from thorough import one_in

import pkdp_pipeline as pkdp
from pkdp_pipeline.model.keys import published_keys

ATTACKER = pkdp.AttackerModel(p_max=0.1)
WITHHELD = ["2.5", "2.505", "1000.5", "-7", "0", "12345678901234567890123456789012345.678", None]


def decimals(values, arrow=None):
    return pd.Series(pd.array(values, dtype=pd.ArrowDtype(arrow or pa.array(values).type)), name="key")


def released(keys):
    frame = pd.DataFrame({"uid": range(len(keys)), "key": keys.to_numpy(dtype=object)}).astype({"key": keys.dtype})
    return pkdp.histogram(frame, "key", unit="uid", attacker=ATTACKER, k=50).to_bytes()


def released_by_duckdb(*literals):
    connection = duckdb.connect()
    rows = [f"SELECT {literal} AS key FROM range({60 if number < 2 else 1})" for number, literal in enumerate(literals)]
    connection.sql(f"CREATE TABLE people AS SELECT row_number() OVER () AS uid, key FROM ({' UNION ALL '.join(rows)})")
    return pkdp.histogram(connection.sql("FROM people"), "key", unit="uid", attacker=ATTACKER, k=50).to_bytes()


@pytest.mark.parametrize("withheld", one_in(2, WITHHELD))
@pytest.mark.parametrize("shown", [("1.50", "20.25"), ("1.00", "3.00")])
def test_a_withheld_decimal_leaves_no_trace_in_the_bytes(shown, withheld):
    keys = [Decimal(text) for text in shown for _ in range(60)]
    more = [] if withheld is None else [Decimal(withheld)]
    assert released(decimals(keys + more)) == released(decimals(keys))
    plain = [text.rstrip("0").rstrip(".") for text in shown]
    assert released_by_duckdb(*plain, withheld or "NULL") == released(decimals(keys))


def test_a_withheld_decimal_among_whole_numbers_leaves_no_trace():
    assert released_by_duckdb("1", "3", "2.5") == released_by_duckdb("1", "3", "2")


@pytest.mark.parametrize(
    ("values", "dtype"),
    [
        (["1.50", "20.00"], "decimal128(3, 1)[pyarrow]"),
        (["0.05"], "decimal128(2, 2)[pyarrow]"),
        (["100.00", None], "Int64"),
        (["0.00"], "Int64"),
        ([str(2**63)], "UInt64"),
        (["-1", str(2**63)], "decimal128(19, 0)[pyarrow]"),
        (["1" + "0" * 30], "decimal128(31, 0)[pyarrow]"),
        (["9" * 38 + ".5"], "decimal256(39, 1)[pyarrow]"),
        (["9" * 76], "decimal256(76, 0)[pyarrow]"),
    ],
)
def test_the_dtype_is_the_smallest_that_holds_the_published_decimals(values, dtype):
    given_values = [None if value is None else Decimal(value) for value in values]
    published = published_keys(decimals(given_values))
    assert published.dtype == dtype
    assert [None if pd.isna(key) else key for key in published] == given_values


@given(st.lists(st.decimals(allow_nan=False, allow_infinity=False, places=6, min_value=-(10**9), max_value=10**9)))
def test_published_decimals_keep_their_values_whatever_they_were_stored_as(values):
    narrow = published_keys(decimals(values, pa.decimal128(18, 6)))
    wide = published_keys(decimals(values, pa.decimal256(60, 20)))
    assert narrow.dtype == wide.dtype
    assert list(narrow) == list(wide) == values
