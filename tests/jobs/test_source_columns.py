"""Columns that an engine would take for others, or whose values it would take for one."""

from __future__ import annotations

from decimal import Decimal

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from source_jobs import job_of

from pkdp_pipeline.errors import ConfigError
from pkdp_pipeline.jobs.job import open_source

BY_CELL = [{"name": "a", "by": "cell", "k": 5}]


def refusal(source, engine="duckdb", **keys) -> str:
    with pytest.raises(ConfigError) as caught:
        open_source(job_of(source, engine, **keys)).close()
    assert caught.value.__context__ is None
    return str(caught.value)


@pytest.mark.parametrize("names", [("cell", "Cell"), ("Straße", "STRASSE"), ("cell", "cell")])
def test_two_columns_of_one_name_are_refused_with_both_named(tmp_path, engine, names):
    path = str(tmp_path / "a.parquet")
    pq.write_table(pa.table([["x"], ["y"], [1]], names=[*names, "n"]), path)
    message = refusal(path, engine)
    assert "a.parquet" in message
    assert all(repr(name) in message for name in names)
    assert "rename one" in message
    assert "_1" not in message


def test_so_are_those_of_csv_and_of_a_query(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("at,cell,Cell\n2013-01-02,x,y\n", encoding="utf-8")
    assert "has columns 'cell' and 'Cell'" in refusal(str(path))
    database = str(tmp_path / "a.duckdb")
    duckdb.connect(database).close()
    query = 'SELECT 1 AS cell, 2 AS "Cell"'
    assert "has columns 'cell' and 'Cell'" in refusal({"duckdb": database, "query": query})


def test_decimals_that_are_not_told_apart_are_refused_where_they_are_needed(tmp_path, engine):
    path = str(tmp_path / "a.parquet")
    wide = pa.array([Decimal("1234567890123456789012345678901234567890")], pa.decimal256(40, 0))
    pq.write_table(pa.table({"cell": wide, "n": [1]}), path)
    message = refusal(path, engine, release=BY_CELL)
    assert "column 'cell'" in message
    assert "more than 38" in message
    assert "store it as text" in message
    if engine == "duckdb":
        open_source(job_of(path, engine)).close()
