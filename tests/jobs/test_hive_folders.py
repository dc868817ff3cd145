"""Columns that the names of folders tell."""

from __future__ import annotations

import re
from datetime import date

import duckdb
import pytest
from source_jobs import job_of

from pkdp_pipeline.errors import ConfigError
from pkdp_pipeline.jobs import load_job
from pkdp_pipeline.jobs.job import open_source
from pkdp_pipeline.jobs.session import backfill
from pkdp_pipeline.jobs.tables import PeriodTable

HIVE = {"date": "date", "region": "text"}


def lay(tmp_path, *folders: str, select: str = "SELECT 'p' || i AS person FROM range(6) t(i)") -> str:
    for folder in folders:
        (tmp_path / "in" / folder).mkdir(parents=True)
        duckdb.sql(f"COPY ({select}) TO '{tmp_path / 'in' / folder / 'part.parquet'}'")
    return str(tmp_path / "in" / "**" / "*.parquet")


def job(pattern: str, hive=HIVE, **keys):
    keys = {"period": {"column": "date"}, "unit": "person", "release": [{"name": "a", "by": "region", "k": 5}], **keys}
    return job_of({"files": pattern, "hive": hive}, **keys)


def test_a_job_reads_the_folders_of_its_period(tmp_path):
    lay(tmp_path, "date=2026-01-31/region=S%C3%B8r", "region=00123/date=2026-02-01", "date=2026-02-28/region=00123")
    few = "SELECT 'q' || i AS person FROM range(4) t(i)"
    lay(tmp_path, "date=2026-02-01/region=few", select=few)
    (tmp_path / "job.toml").write_text("""
        dataset = "d"
        source = { files = "in/**/*.parquet", hive = { date = "date", region = "text" } }
        period = { column = "date", every = "month" }
        unit = "person"
        ledger = "ledger.sqlite"
        evidence = { kind = "one_day_protected" }
        target = "none"
        attacker.p_max = 0.5
        output.directory = "out"
        [[release]]
        name = "a"
        by = "region"
        where = "region != 'x'"
        k = 5
    """)
    read = load_job(tmp_path / "job.toml")
    backfill(read, date(2026, 1, 1), date(2026, 2, 1))
    tables = [
        duckdb.sql(f"SELECT region, count FROM '{tmp_path}/out/{month}/a.parquet'").fetchall()
        for month in ("2026-01", "2026-02")
    ]
    assert tables == [[("Sør", 6)], [("00123", 6)]]


def test_a_missing_part_is_a_missing_value(tmp_path):
    pattern = lay(tmp_path, "date=2026-02-01/region=__HIVE_DEFAULT_PARTITION__", "date=2026-02-01/region=a")
    source = open_source(job(pattern))
    try:
        counts = source.day(PeriodTable(column="date"), date(2026, 2, 1)).aggregate("region, count(*)").fetchall()
        assert dict(source.columns) == {"person": "text", "date": "date", "region": "text"}
        assert source.newest(PeriodTable(column="date"), "date") == date(2026, 2, 1)
    finally:
        source.close()
    assert sorted(counts, key=str) == [("a", 6), (None, 6)]


@pytest.mark.parametrize(
    ("folders", "hive", "message"),
    [
        (["date=2026-02-01"], HIVE, "must lie in folders date=…, region=…, each once"),
        (["date=2026-02-01/region=a/v=1"], HIVE, "and in no others of this form"),
        (["date=2026-02-01/region=a/date=2026-02-02"], HIVE, "each once"),
        (["date=01.02.2026/region=a"], HIVE, "the folder date=… must name dates such as 2013-01-31"),
        (["date=2026-02-01/region=a"], {"date": "date", "region": "number"}, "region=… must name whole numbers"),
        (["date=2026-02-01/person=a"], {"date": "date", "person": "text"}, "has a column 'person'"),
    ],
)
def test_folders_that_do_not_fit_are_refused(tmp_path, folders, hive, message):
    with pytest.raises(ConfigError, match=re.escape(message)):
        open_source(job(lay(tmp_path, *folders), hive, release=[{"name": "a", "k": 5}]))


@pytest.mark.parametrize(
    ("source", "keys", "message"),
    [
        ({"files": "a.parquet", "hive": "date"}, {}, "hive"),
        ({"files": "a.parquet", "hive": {"date": "timestamp"}}, {}, "hive"),
        ({"files": "a.parquet", "hive": {"date": "real"}}, {}, "hive"),
        ({"files": "a.csv", "hive": HIVE}, {}, "hive is for Parquet files"),
        ({"files": "a.parquet", "hive": HIVE}, {"engine": "spark"}, "Spark finds the columns of folders itself"),
        ({"files": "a.parquet", "hives": HIVE}, {}, "did you mean 'hive'"),
    ],
)
def test_wrong_hive_keys_are_one_clear_error(source, keys, message):
    with pytest.raises(ValueError, match=message):
        job_of(source, **keys)
