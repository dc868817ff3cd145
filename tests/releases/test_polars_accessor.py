"""df.pkdp of Polars: the questions, bytes and keys of pandas, and no column read that is not asked about."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import pandas as pd
import pytest

import pkdp_pipeline as pkdp
from pkdp_pipeline.releases.accessor import PkdpAccessor

pl = pytest.importorskip("polars")

ROWS = {
    "person": [f"p{i % 70:02}" for i in range(140)],
    "city": ["Ås", "Bø", "Ås", None, "Bø", "Ås", "Bø"] * 20,
    "age": [i % 70 for i in range(140)],
    "visits": [1, 2, -1, 4, 5] * 28,
    "name": ["secret"] * 140,
}
ASKED = {"unit": "person", "attacker": pkdp.AttackerModel(p_max=0.1), "k": 15}
SUMMED = {"unit": "person", "bounds": (0, 5), "noise": pkdp.GeometricNoise(1.0)}


def scanned(read: set[str]) -> Any:
    """Return a lazy frame of the rows that notes which columns are read."""
    frame = pl.DataFrame(ROWS)

    def batches(with_columns, predicate, n_rows, batch_size) -> Iterator[Any]:
        read.update(frame.columns if with_columns is None else with_columns)
        part = frame if with_columns is None else frame.select(with_columns)
        yield part if predicate is None else part.filter(predicate)

    return pl.io.plugins.register_io_source(batches, schema=frame.schema)


QUESTIONS = {
    "histogram": ("histogram", ("city",), ASKED, {"person", "city"}),
    "domain and where": ("histogram", ("city",), {**ASKED, "where": "age > 9"}, {"person", "city", "age"}),
    "bins": ("histogram", (pkdp.bins("age", [0, 18, 40]),), ASKED, {"person", "age"}),
    "hash": ("histogram", ("visits",), {**ASKED, "one_cell": "hash"}, {"person", "visits"}),
    "count": ("count", ("city == 'Ås'",), ASKED, {"person", "city"}),
    "each row": ("count", (None,), {**ASKED, "unit": pkdp.EACH_ROW}, set()),
}


@pytest.mark.parametrize(("method", "values", "options", "columns"), QUESTIONS.values(), ids=QUESTIONS)
def test_polars_publishes_the_bytes_of_pandas_and_reads_the_columns_asked_about(method, values, options, columns):
    read = set[str]()
    expected = getattr(pd.DataFrame(ROWS).pkdp, method)(*values, **options).to_bytes()
    for rows in (pl.DataFrame(ROWS), pl.LazyFrame(ROWS), scanned(read)):
        assert getattr(rows.pkdp, method)(*values, **options).to_bytes() == expected
        assert getattr(pkdp, method)(rows, *values, **options).to_bytes() == expected
    if columns:
        assert read == columns
    else:
        assert len(read) <= 1  # rows are counted by some column


def test_a_sum_of_polars_reads_three_columns():
    read = set[str]()
    release = scanned(read).pkdp.sum("visits", "city", domain=["Ås", "Bø", None], one_cell="hash", **SUMMED)
    assert release.table["city"].tolist()[:2] == ["Ås", "Bø"]
    assert read == {"person", "city", "visits"}


def test_a_ledger_finds_the_questions_of_pandas_again():
    with pkdp.Ledger.open(":memory:", dataset="d") as ledger:
        terms = {**ASKED, "ledger": ledger, "period": "2026-01-01"}
        first = pd.DataFrame(ROWS).pkdp.histogram("city", **terms)
        for frame in (pl.DataFrame(ROWS), pl.LazyFrame(ROWS)):
            with pytest.warns(UserWarning, match="another frame"):
                again = frame.pkdp.histogram("city", **terms)
            assert again.replayed
            assert again.to_bytes() == first.to_bytes()


def test_frames_of_polars_have_the_same_accessor():
    assert pl.DataFrame.pkdp is pl.LazyFrame.pkdp is pd.DataFrame.pkdp is PkdpAccessor
    frame = pl.DataFrame(ROWS)
    assert inspect.signature(frame.pkdp.sum) == inspect.signature(pd.DataFrame(ROWS).pkdp.sum)
    assert "unit" in frame.lazy().pkdp.histogram.__doc__
    expected = frame.pkdp.explain("city", **ASKED)
    assert pd.DataFrame(ROWS).pkdp.explain("city", **ASKED).certificate == expected.certificate
