"""What a sealed table says is the same whether or not a DataFrame is made of it."""

from __future__ import annotations

import datetime
import decimal
import json

import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pkdp_pipeline as pkdp
from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.ledger import sealed
from pkdp_pipeline.ledger.sealed import Cells, check_table

WHOLE = st.none() | st.integers(-(2**63), 2**63 - 1)
TEXT = st.none() | st.text()
ZONED = pd.to_datetime(["2026-01-01T00:00Z", None]).tz_convert("Europe/Oslo")
OTHERS = {
    "booleans": pd.array([True, None], dtype="boolean"),
    "reals": [0.5, -0.0],
    "plain whole numbers": [1, 2],
    "dates": pd.array([datetime.date(2026, 1, 1), None], dtype=pd.ArrowDtype(pa.date32())),
    "decimals": pd.array([decimal.Decimal("1.50"), None], dtype=pd.ArrowDtype(pa.decimal128(5, 2))),
    "timestamps": pd.to_datetime(["2026-01-01", None]),
    "instants": ZONED,
}


def arrow(**columns):
    return pa.Table.from_pandas(pd.DataFrame(columns), preserve_index=False)


def no_frames(patch):
    def refuse(table):
        raise AssertionError("a DataFrame was made")

    patch.setattr(sealed, "_frame", refuse)


@given(st.lists(st.tuples(TEXT, WHOLE, WHOLE), max_size=5))
def test_texts_and_whole_numbers_are_read_without_a_frame(rows):
    texts, keys, counts = zip(*rows, strict=True) if rows else ((), (), ())
    table = arrow(
        town=pd.array(texts, dtype=pd.StringDtype(na_value=float("nan"))),
        age=pd.array(keys, dtype="Int64"),
        count=pd.array(counts, dtype="Int64"),
    )
    with pytest.MonkeyPatch.context() as patch:
        no_frames(patch)
        read = Cells.read(table)
    assert read == Cells.of(table.to_pandas())
    assert read.counted


@pytest.mark.parametrize("values", OTHERS.values(), ids=OTHERS)
def test_other_columns_are_as_pandas_has_them(values):
    table = arrow(key=values, count=pd.array([3, None], dtype="Int64"))
    assert Cells.read(table) == Cells.of(table.to_pandas())


@pytest.mark.parametrize(
    "change",
    [
        lambda stated: stated["columns"][0].update(name="village"),
        lambda stated: stated["columns"][1].update(numpy_type="float64"),
        lambda stated: stated["columns"].pop(),
        lambda stated: stated.update(index_columns=["town"]),
        lambda stated: stated.update(columns=[], index_columns=[]),
    ],
)
def test_what_the_file_says_about_its_columns_counts(change):
    table = arrow(town=["a", "b"], count=pd.array([3, None], dtype="Int64"))
    stated = json.loads(table.schema.metadata[b"pandas"])
    change(stated)
    altered = table.replace_schema_metadata({b"pandas": json.dumps(stated).encode()})
    assert Cells.read(altered) == Cells.of(altered.to_pandas())
    assert Cells.read(altered) != Cells.read(table)


@pytest.mark.parametrize("stated", [b"", b"{", b"\xff", b"1", b'{"columns": [{}], "index_columns": []}'])
def test_what_no_reader_understands_of_columns_is_refused(stated):
    altered = arrow(town=["a"], count=pd.array([3], dtype="Int64")).replace_schema_metadata({b"pandas": stated})
    with pytest.raises(ArgumentError):
        Cells.read(altered)


COUNTS = pd.array([60, None], dtype="Int64")


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({"c": ["a", "b"]}, "no column 'count'"),
        ({"c": ["a", "b"], "count": [60, 70]}, "no column 'count'"),
        ({"c": ["a", "b"], "count": ["60", "70"]}, "no column 'count'"),
        ({"c": ["a", "a"], "count": COUNTS}, "names a cell twice"),
        ({"c": [None, None], "count": COUNTS}, "names a cell twice"),
        ({"c": ["a", "b"], "count": pd.array([60, 49], dtype="Int64")}, "below its certificate's threshold"),
    ],
)
def test_a_table_that_a_mechanism_cannot_publish_is_refused(table, words):
    certificate = pkdp.certify(pkdp.Histogram(k=50), pkdp.AttackerModel(p_max=0.1))
    frame = pd.DataFrame(table)
    check_table(pd.DataFrame({"c": ["a", None], "count": COUNTS}), certificate)
    for check in (lambda: check_table(frame, certificate), lambda: Cells.read(arrow(**table)).check(certificate)):
        with pytest.raises(ArgumentError, match=words):
            check()


def test_a_count_is_one_number():
    certificate = pkdp.certify(pkdp.Count(k=50, k_complement=50), pkdp.AttackerModel(p_max=0.6, p_min=0.4))
    check_table(pd.DataFrame({"count": COUNTS[:1]}), certificate)
    for frame in (pd.DataFrame({"count": COUNTS}), pd.DataFrame({"c": ["a"], "count": COUNTS[:1]})):
        with pytest.raises(ArgumentError, match="must hold one number"):
            check_table(frame, certificate)
