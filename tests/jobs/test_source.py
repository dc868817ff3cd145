from __future__ import annotations

from datetime import date

import duckdb
import pytest

from pkdp_pipeline.errors import ConfigError
from pkdp_pipeline.jobs.job import PeriodTable
from pkdp_pipeline.jobs.source import ParquetSource

DAY = date(2013, 1, 2)


@pytest.fixture
def source_of(tmp_path):
    """Return a function that opens a source whose column "at" holds the given SQL values."""
    opened = []

    def build(values: str, name: str = "at") -> ParquetSource:
        path = str(tmp_path / "source.parquet")
        with duckdb.connect() as connection:
            quoted = '"' + name.replace('"', '""') + '"'
            connection.execute(f"CREATE TABLE t AS SELECT * FROM (VALUES {values}) AS v({quoted}, n)")
            connection.execute(f"COPY t TO '{path}'")
        opened.append(ParquetSource(path))
        return opened[-1]

    yield build
    for source in opened:
        source.close()


def chosen(source, **period):
    rows = source.day(PeriodTable(**({"column": "at"} | period)), DAY)
    return sorted(n for (n,) in rows.project("n").fetchall())


def test_dates_select_their_day(source_of):
    source = source_of("(DATE '2013-01-01', 1), (DATE '2013-01-02', 2), (DATE '2013-01-03', 3), (NULL, 4)")
    assert chosen(source) == [2]


def test_local_timestamps_are_taken_as_written(source_of):
    source = source_of(
        "(TIMESTAMP '2013-01-01 23:59:59', 1), (TIMESTAMP '2013-01-02 00:00:00', 2), "
        "(TIMESTAMP '2013-01-02 23:59:59', 3), (TIMESTAMP '2013-01-03 00:00:00', 4)"
    )
    assert chosen(source) == [2, 3]
    with pytest.raises(ConfigError, match="remove time_zone"):
        chosen(source, time_zone="UTC")


def test_instants_need_a_time_zone_and_follow_it(source_of):
    source = source_of(
        "(TIMESTAMPTZ '2013-01-01 22:59:59+00', 1), (TIMESTAMPTZ '2013-01-01 23:00:00+00', 2), "
        "(TIMESTAMPTZ '2013-01-02 22:59:59+00', 3), (TIMESTAMPTZ '2013-01-02 23:00:00+00', 4)"
    )
    assert chosen(source, time_zone="Europe/Oslo") == [2, 3]
    assert chosen(source, time_zone="UTC") == [3, 4]
    with pytest.raises(ConfigError, match="time_zone"):
        chosen(source)


def test_texts_are_no_dates(source_of):
    with pytest.raises(ConfigError, match="not dates"):
        chosen(source_of("('2013-01-02', 1)"))


def test_any_column_name_is_a_name_and_no_sql(source_of):
    name = 'a"; DROP TABLE t; --'
    assert chosen(source_of("(DATE '2013-01-02', 1)", name), column=name) == [1]


def test_what_is_no_parquet_file_is_a_config_error_without_engine_messages(tmp_path):
    path = tmp_path / "source.parquet"
    with pytest.raises(ConfigError, match="does not exist"):
        ParquetSource(str(path))
    path.write_bytes(b"PAR1 nonsense with a secret PAR1")
    with pytest.raises(ConfigError, match="cannot be read") as caught:
        ParquetSource(str(path))
    assert "Error" not in str(caught.value)
    with pytest.raises(ConfigError):
        ParquetSource(str(tmp_path))
