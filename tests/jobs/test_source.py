from __future__ import annotations

import datetime
import os
import subprocess
import sys
import textwrap
from datetime import date
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from local_spark import local_spark
from source_jobs import job_of
from thorough import thinned

from pkdp_pipeline.errors import ConfigError
from pkdp_pipeline.jobs.job import open_source
from pkdp_pipeline.jobs.tables import PeriodTable

DAY = date(2013, 1, 2)


@pytest.fixture
def source_of(tmp_path, engine):
    """Return a function that opens a source whose column "at" holds the given SQL values."""
    opened = []

    def build(values: str, name: str = "at", file: str = "source.parquet"):
        path = str(tmp_path / file)
        with duckdb.connect() as connection:
            quoted = '"' + name.replace('"', '""') + '"'
            connection.execute(f"CREATE TABLE t AS SELECT * FROM (VALUES {values}) AS v({quoted}, n)")
            connection.execute(f"COPY t TO '{path}' (FORMAT parquet)")
        opened.append(open_source(job_of(path, engine)))
        return opened[-1]

    yield build
    for source in opened:
        source.close()


def chosen(source, day=DAY, **period):
    table = PeriodTable(**({"column": "at"} | period))
    frame = source.day(table, day)
    if isinstance(frame, duckdb.DuckDBPyRelation):
        numbers = frame.project("n").fetchall()
    else:
        numbers = [tuple(row) for row in frame.select("n").collect()]
    assert source.counts(table, day, ()) == (len(numbers), 0)
    return sorted(n for (n,) in numbers)


def test_dates_select_their_day(source_of):
    source = source_of("(DATE '2013-01-01', 1), (DATE '2013-01-02', 2), (DATE '2013-01-03', 3), (NULL, 4)")
    assert chosen(source) == chosen(source, time_zone="Europe/Oslo") == [2]


def test_local_timestamps_are_taken_as_written(source_of):
    source = source_of(
        "(TIMESTAMP '2013-01-01 23:59:59', 1), (TIMESTAMP '2013-01-02 00:00:00', 2), "
        "(TIMESTAMP '2013-01-02 23:59:59', 3), (TIMESTAMP '2013-01-03 00:00:00', 4)"
    )
    assert chosen(source) == [2, 3]
    with pytest.raises(ConfigError, match="time_zone"):
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


@thinned(2)
@pytest.mark.parametrize("name", ["^.*$", "*", "a.b", "a`b", "ünï", "n "])
def test_a_column_name_is_no_pattern(source_of, name):
    source = source_of("(DATE '2013-01-02', 1), (DATE '2013-01-03', 2)", name)
    assert chosen(source, column=name) == [1]
    assert source.counts(PeriodTable(column=name), DAY, (name,)) == (1, 0)


@thinned(2)
@pytest.mark.parametrize("file", ["a[1].parquet", "a*.parquet", "a?.parquet", "a{1,2}.parquet", "a b%20#.parquet"])
def test_a_path_is_no_pattern(source_of, file):
    source_of("(DATE '2013-01-02', 1)", file="a1.parquet")
    assert chosen(source_of("(DATE '2013-01-02', 7)", file=file)) == [7]


def test_days_are_cut_on_the_clocks_of_the_zone_whatever_they_do(source_of):
    # On that night in St. John's, clocks went from 00:01 back to 23:01 of the day before: the day has two parts.
    # Before 1970, in a zone that was not a whole number of hours from Greenwich.
    hours = [f"(TIMESTAMPTZ '2010-11-07 02:00:30+00' + INTERVAL {n} MINUTE, {n})" for n in range(0, 1500, 30)]
    early = [f"(TIMESTAMPTZ '1950-03-01 00:00:00+00' + INTERVAL {n} MINUTE, {n + 2000})" for n in range(0, 3000, 10)]
    source = source_of(", ".join([*hours, *early]))
    import zoneinfo

    def expected(zone, day):
        begins = [(datetime.datetime(2010, 11, 7, 2, 0, 30, tzinfo=datetime.UTC), range(0, 1500, 30), 0)]
        begins.append((datetime.datetime(1950, 3, 1, tzinfo=datetime.UTC), range(0, 3000, 10), 2000))
        local = zoneinfo.ZoneInfo(zone)
        return [
            n + shift
            for begin, minutes, shift in begins
            for n in minutes
            if (begin + datetime.timedelta(minutes=n)).astimezone(local).date() == day
        ]

    for zone in ("America/St_Johns", "Asia/Kolkata", "Pacific/Kiritimati", "UTC"):
        for day in (date(2010, 11, 6), date(2010, 11, 7), date(1950, 3, 1), date(1950, 3, 2)):
            assert chosen(source, day, time_zone=zone) == expected(zone, day), (zone, day)


def test_rows_without_a_value_are_counted_apart_and_nan_is_no_value(source_of):
    source = source_of("(DATE '2013-01-02', 1.5::DOUBLE), (DATE '2013-01-02', 'nan'), (DATE '2013-01-02', NULL)")
    period = PeriodTable(column="at")
    for unit in (("n",), ("at", "n")):
        assert source.counts(period, DAY, unit) == (3, 2)
        assert source.counts(period, date(2014, 1, 1), unit) == (0, 0)


def test_nan_is_no_value_where_the_statistics_of_the_file_do_not_tell_of_it(engine, tmp_path):
    rows = pa.table({"at": pa.array([DAY] * 3), "n": pa.array([1.5, float("nan"), 7.0], pa.float64())})
    pq.write_table(rows, tmp_path / "source.parquet")
    source = open_source(job_of(str(tmp_path / "source.parquet"), engine))
    try:
        assert source.counts(PeriodTable(column="at"), DAY, ("n",)) == (3, 1)
    finally:
        source.close()


def test_a_file_that_may_not_be_read_is_named_so(tmp_path, engine, monkeypatch):
    path = tmp_path / "source.parquet"
    path.write_bytes(b"PAR1")
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # a super-user may read everything
    with pytest.raises(ConfigError, match="may not be read by this user: check the permissions"):
        open_source(job_of(str(path), engine))


@thinned(4)
@pytest.mark.parametrize(
    ("value", "kind"),
    [
        ("DATE '2013-01-02'", "date"),
        ("TIMESTAMP '2013-01-02 01:00:00'", "timestamp"),
        ("TIMESTAMPTZ '2013-01-02 01:00:00+00'", "instant"),
        ("'text'", "text"),
        ("true", "boolean"),
        ("1::TINYINT", "number"),
        ("1::BIGINT", "number"),
        ("1.5::DECIMAL(9, 2)", "number"),
        ("1.5::FLOAT", "real"),
        ("1.5::DOUBLE", "real"),
        ("'ab'::BLOB", "other"),
        ("[1, 2]", "other"),
    ],
)
def test_every_engine_finds_the_same_kinds(source_of, value, kind):
    assert source_of(f"({value}, 1::INTEGER)").columns == {"at": kind, "n": "number"}


def test_what_is_no_parquet_file_is_a_config_error_without_engine_messages(tmp_path, engine):
    path = tmp_path / "source.parquet"
    with pytest.raises(ConfigError, match="does not exist"):
        open_source(job_of(str(path), engine))
    path.write_bytes(b"PAR1 nonsense with a secret PAR1")
    with pytest.raises(ConfigError, match="cannot be read") as caught:
        open_source(job_of(str(path), engine))
    assert str(caught.value) == f"source {str(path)!r} cannot be read as a Parquet file."
    assert caught.value.__cause__ is None


def test_a_folder_is_no_file_but_for_spark(tmp_path, engine):
    (tmp_path / "parts.parquet").mkdir()
    with pytest.raises(ConfigError, match="cannot be read" if engine == "spark" else "is not a file"):
        open_source(job_of(str(tmp_path / "parts.parquet"), engine))


def test_a_file_that_breaks_off_is_a_config_error_without_engine_messages(tmp_path, engine):
    path = tmp_path / "source.parquet"
    with duckdb.connect() as connection:
        connection.execute(
            f"COPY (SELECT DATE '2013-01-02' AS at, md5(i::VARCHAR) AS n FROM range(50000) r(i)) TO '{path}'"
        )
    content = bytearray(path.read_bytes())
    content[1000:-3000] = bytes(len(content) - 4000)
    path.write_bytes(content)
    source = open_source(job_of(str(path), engine))
    try:
        with pytest.raises(ConfigError) as caught:
            source.counts(PeriodTable(column="at"), DAY, ("n",))
    finally:
        source.close()
    assert str(caught.value) == f"source {str(path)!r} cannot be read to its end as a Parquet file."


@pytest.mark.spark
def test_spark_says_which_types_it_does_not_read(tmp_path):
    local_spark()
    path = tmp_path / "source.parquet"
    with duckdb.connect() as connection:
        connection.execute(f"COPY (SELECT TIMESTAMP_NS '2013-01-02 00:00:00' AS at) TO '{path}'")
    with pytest.raises(ConfigError, match="nanoseconds"):
        open_source(job_of(str(path), "spark"))


@pytest.mark.spark
def test_spark_reads_a_folder_of_parts_and_an_address(tmp_path):
    local_spark()
    folder = tmp_path / "parts.parquet"
    folder.mkdir()
    with duckdb.connect() as connection:
        for n in (1, 2):
            connection.execute(f"COPY (SELECT DATE '2013-01-02' AS at, {n} AS n) TO '{folder}/{n}.parquet'")
    for path in (str(folder), folder.as_uri()):
        source = open_source(job_of(path, "spark"))
        assert chosen(source) == [1, 2]
        source.close()
    with pytest.raises(ConfigError, match="does not exist"):
        open_source(job_of((tmp_path / "nowhere.parquet").as_uri(), "spark"))


@pytest.mark.spark
def test_a_session_that_was_there_stays_as_it_was(tmp_path):
    from pyspark.logger import PySparkLogger

    session = local_spark()
    zone = session.conf.get("spark.sql.session.timeZone")
    path = tmp_path / "source.parquet"
    with duckdb.connect() as connection:
        connection.execute(f"COPY (SELECT DATE '2013-01-02' AS at, 1 AS n) TO '{path}'")
    logger = PySparkLogger.getLogger("DataFrameQueryContextLogger")
    first, second = open_source(job_of(str(path), "spark")), open_source(job_of(str(path), "spark"))
    assert logger.disabled
    second.close()
    assert logger.disabled
    first.close()
    assert not logger.disabled
    assert session.range(3).count() == 3
    assert session.conf.get("spark.sql.session.timeZone") == zone


def test_a_missing_package_is_a_config_error_that_names_the_extra(monkeypatch, tmp_path):
    path = tmp_path / "source.parquet"
    path.touch()
    for module in [name for name in sys.modules if name.split(".")[0] == "pyspark"]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, "pyspark", None)
    with pytest.raises(ConfigError, match=r"'\.\[spark\]'"):
        open_source(job_of(str(path), "spark"))


@pytest.mark.spark
def test_missing_java_is_a_config_error_and_prints_nothing(tmp_path):
    path = tmp_path / "source.parquet"
    path.touch()
    program = f"""
        from pkdp_pipeline.errors import ConfigError
        from pkdp_pipeline.jobs.job import open_source
        from source_jobs import job_of
        try:
            open_source(job_of({str(path)!r}, "spark"))
        except ConfigError as error:
            assert "Java 17" in str(error) and "JAVA_HOME" in str(error), error
        else:
            raise SystemExit("there was a Java")
    """
    ran = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        capture_output=True,
        text=True,
        check=False,
        env={
            "PATH": "/nowhere-with-java:/bin",
            "JAVA_HOME": str(tmp_path),
            "PYTHONPATH": str(Path(__file__).parent),
        },
    )
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")


@pytest.fixture
def imported():
    """The engines that are loaded where the sources are."""
    program = "import sys, pkdp_pipeline.jobs; print(*({'duckdb', 'polars', 'pyspark', 'narwhals'} & set(sys.modules)))"
    return subprocess.run([sys.executable, "-c", program], check=True, text=True, stdout=subprocess.PIPE).stdout.split()


@pytest.mark.slow
def test_importing_the_sources_loads_no_engine(imported):
    assert imported == []


def test_old_timestamps_are_instants_to_spark_alone_so_no_job_runs_with_two_meanings(tmp_path, engine):
    import pyarrow as pa
    import pyarrow.parquet

    path = tmp_path / "source.parquet"
    table = pa.table({"at": pa.array([datetime.datetime(2013, 1, 2)], pa.timestamp("us")), "n": [1]})
    pyarrow.parquet.write_table(table, path, use_deprecated_int96_timestamps=True, store_schema=False)
    source = open_source(job_of(str(path), engine))
    try:
        if engine == "spark":
            assert chosen(source, time_zone="UTC") == [1]
        else:
            assert chosen(source) == [1]
        with pytest.raises(ConfigError, match="time_zone"):
            chosen(source, **({} if engine == "spark" else {"time_zone": "UTC"}))
    finally:
        source.close()
