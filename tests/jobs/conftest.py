from __future__ import annotations

import textwrap
from pathlib import Path

import pandas as pd
import pytest
from local_spark import local_spark
from one_duckdb import one_duckdb

__all__ = ["one_duckdb"]

BASIC = """
    dataset = "visits"
    source = "visits.parquet"
    period = { column = "day" }
    unit = "person"
    missing_unit = "drop"
    ledger = "out/ledger.sqlite"
    target = "none"

    [attacker]
    p_max = 0.5

    [[release]]
    name = "people_by_town"
    by = "town"
    k = 5

    [output]
    directory = "out"
"""


ENGINES = ["duckdb", pytest.param("spark", marks=pytest.mark.spark)]


@pytest.fixture(params=ENGINES)
def engine(request):
    """Every engine of job files; Spark's is the session of the test run."""
    if request.param == "spark":
        local_spark()
    return request.param


@pytest.fixture
def basic():
    return textwrap.dedent(BASIC)


@pytest.fixture
def job_file(tmp_path):
    """Return a function that writes a job file beside a small source."""

    def write(text: str = BASIC, frame: pd.DataFrame | None = None) -> Path:
        (visits() if frame is None else frame).to_parquet(tmp_path / "visits.parquet")
        path = tmp_path / "job.toml"
        path.write_text(textwrap.dedent(text), encoding="utf-8")
        return path

    return write


def visits() -> pd.DataFrame:
    """Two days; in each 7 people in Ås, 5 in Bø, 4 (below k) in Secretville, and a row without a person."""
    rows = []
    for day in ("2020-01-01", "2020-01-02"):
        for town, people in (("Ås", 7), ("Bø", 5), ("Secretville", 4)):
            rows += [(pd.Timestamp(day).date(), f"{town} {n}", town) for n in range(people)] * 2
        rows.append((pd.Timestamp(day).date(), None, "Ås"))
    return pd.DataFrame(rows, columns=["day", "person", "town"])
