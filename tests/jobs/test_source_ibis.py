"""Databases that Ibis connects to: the same releases as from files, counted where the rows are."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
import zoneinfo
from contextlib import closing
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import duckdb
import pandas as pd
import pytest
from postgres_server import PASSWORD
from source_jobs import job_of
from thorough import one_in, thinned

from pkdp_pipeline.engines import Selection, engine_for
from pkdp_pipeline.errors import ConfigError, InputCheckError, TemporaryError
from pkdp_pipeline.extras.connect import ibis as ibis_tables
from pkdp_pipeline.jobs import load_job, run_job
from pkdp_pipeline.jobs.job import open_source
from pkdp_pipeline.jobs.steps import Stopped, Stopping, interruptible
from pkdp_pipeline.jobs.tables import PeriodTable
from pkdp_pipeline.model.predicate import from_query

pytestmark = [pytest.mark.ibis, pytest.mark.xdist_group("postgres")]

DAY = date(2013, 1, 2)
AT = PeriodTable(column="at")
#: Types by their names in Arrow, as both databases write them.
TYPES = {
    "date32[day]": "DATE",
    "int64": "BIGINT",
    "int32": "INTEGER",
    "string": "VARCHAR",
    "large_string": "VARCHAR",
    "double": "DOUBLE PRECISION",
    "bool": "BOOLEAN",
    "timestamp[us]": "TIMESTAMP",
    "timestamp[us, tz=UTC]": "TIMESTAMPTZ",
    "decimal128(9, 2)": "DECIMAL(9, 2)",
}


class Database:
    """A database of a test: its address, and how to run SQL in it as another program would."""

    def __init__(self, address: str, file: Path | None = None) -> None:
        self.address, self._file = address, file

    def ask(self, sql: str, rows: list[tuple] | None = None) -> list[tuple]:
        if self._file is not None:
            with duckdb.connect(self._file) as connection:
                connection.execute("SET TimeZone = 'UTC'")
                done = connection.execute(sql) if rows is None else connection.executemany(sql, rows)
                return done.fetchall() if rows is None else []
        import psycopg

        with psycopg.connect(self.address, autocommit=True) as connection, connection.cursor() as cursor:
            cursor.execute("SET TimeZone = 'UTC'")
            if rows is not None:
                cursor.executemany(sql.replace("?", "%s"), rows)
                return []
            cursor.execute(sql)
            return [] if cursor.description is None else cursor.fetchall()

    def hold(self, table) -> None:
        """Hold an Arrow table as table visits."""
        if self._file is not None:
            with duckdb.connect(self._file) as connection:
                connection.from_arrow(table).create("visits")
            return
        columns = ", ".join(f'"{field.name}" {TYPES[str(field.type)]}' for field in table.schema)
        self.ask(f"CREATE TABLE visits ({columns})")
        places = ", ".join("?" * table.num_columns)
        self.ask(f"INSERT INTO visits VALUES ({places})", [tuple(row.values()) for row in table.to_pylist()])


@pytest.fixture(params=["duckdb", pytest.param("postgres", marks=pytest.mark.postgres)])
def database(request, tmp_path):
    if request.param == "duckdb":
        file = tmp_path / "warehouse.duckdb"
        return Database(f"duckdb://{file}", file)
    return Database(request.getfixturevalue("postgres_url"))


@pytest.fixture
def opened(database):
    sources = []

    def build(table="visits", address=None, **keys):
        what = {"ibis": address or database.address, **({"table": table} if isinstance(table, str) else table)}
        sources.append(open_source(job_of(what, **keys)))
        return sources[-1]

    yield build
    for source in sources:
        source.close()


def rows(source, *columns, day=DAY, **period):
    table = PeriodTable(**({"column": "at"} | period))
    fetched = source.day(table, day).select(*(columns or ("n",))).to_pyarrow().to_pylist()
    assert source.counts(table, day, ()) == (len(fetched), 0)
    return sorted((tuple(row.values()) for row in fetched), key=repr)


def quiet(error) -> str:
    """Return a message after checking that nothing of the database's words, nor a password, leaves with it."""
    assert (error.__cause__, error.__context__) == (None, None)
    for word in (PASSWORD, "sesame", "ERROR", "FATAL", "LINE", "Catalog", "Secretville", "pkdp@", "pkdp:", "host="):
        assert word not in str(error)
    return str(error)


ZONES = ["Europe/Oslo", "America/St_Johns", "Asia/Kolkata", "Africa/Monrovia", "UTC"]


def _moments():
    # Clocks go forward and back in Oslo and, over midnight, in St. John's; Monrovia's were 44 minutes 30 behind.
    begins = [datetime(2010, 11, 6, 20, 0, 30), datetime(2010, 3, 27, 20), datetime(2010, 10, 30, 20)]
    moments = [begin.replace(tzinfo=UTC) + timedelta(minutes=30 * n) for begin in begins for n in range(100)]
    moments += [datetime(1950, 3, 1, tzinfo=UTC) + timedelta(minutes=10 * n) for n in range(300)]
    midnight = datetime(2010, 11, 7, 2, 30, tzinfo=UTC)  # in St. John's; a minute later it was an hour before midnight
    return moments + [midnight + timedelta(seconds=n) for n in (-1, 0, 59, 60, 61, 3659, 3660)]


@thinned(2)
@pytest.mark.parametrize("zone", one_in(3, ZONES))
def test_days_are_cut_on_the_clocks_of_the_zone_whatever_they_do(opened, database, zone):
    moments, local = _moments(), zoneinfo.ZoneInfo(zone)
    database.ask('CREATE TABLE visits ("at" TIMESTAMPTZ, n INTEGER)')
    database.ask("INSERT INTO visits VALUES (?, ?)", [(moment, n) for n, moment in enumerate(moments)])
    source = opened()
    days = sorted({moment.astimezone(local).date() for moment in moments})
    for day in days:
        expected = [(n,) for n, moment in enumerate(moments) if moment.astimezone(local).date() == day]
        assert rows(source, day=day, time_zone=zone) == sorted(expected, key=repr), day
    assert source.newest(PeriodTable(column="at", time_zone=zone), "at") == days[-1]
    for day in (date.min, date.max):
        assert rows(source, day=day, time_zone=zone) == []
    with pytest.raises(ConfigError, match="time_zone"):
        rows(source)


@thinned(2)
@pytest.mark.parametrize("zone", [*ZONES, "Pacific/Apia", "Antarctica/Troll", "Europe/Dublin"])
def test_moments_are_those_that_clocks_show(zone):
    local = zoneinfo.ZoneInfo(zone)
    for first, last in [(date(2010, 11, 6), date(2010, 11, 6)), (date(2011, 12, 29), date(2011, 12, 31))]:
        spans = ibis_tables.moments(first, last, zone)
        begin = datetime.combine(first, datetime.min.time(), UTC) - timedelta(2)
        for n in range(0, 8 * 86400, 30):
            moment = begin + timedelta(seconds=n)
            inside = any(start <= moment < end for start, end in spans)
            assert inside == (first <= moment.astimezone(local).date() <= last), moment
    year = ibis_tables.moments(date(2010, 1, 1), date(2010, 12, 31), zone)
    assert len(year) == 1
    assert (year[0][1] - year[0][0]) == timedelta(365) + (
        local.utcoffset(datetime(2010, 1, 1)) - local.utcoffset(datetime(2011, 1, 1))
    )


def test_the_newest_day_can_lie_before_the_newest_moment(opened, database):
    database.ask('CREATE TABLE visits ("at" TIMESTAMPTZ, n INTEGER)')
    later, newest = datetime(2010, 11, 7, 2, 30, 30, tzinfo=UTC), datetime(2010, 11, 7, 2, 40, tzinfo=UTC)
    database.ask("INSERT INTO visits VALUES (?, ?)", [(later, 1), (newest, 2)])
    zone = PeriodTable(column="at", time_zone="America/St_Johns")
    source = opened()
    assert source.newest(zone, "at") == date(2010, 11, 7)
    source.close()
    database.ask("DELETE FROM visits WHERE n = 1")
    assert opened().newest(zone, "at") == date(2010, 11, 6)


def test_dates_and_local_timestamps_are_taken_as_written(opened, database):
    database.ask('CREATE TABLE visits ("at" DATE, local TIMESTAMP, n INTEGER, x DOUBLE PRECISION)')
    database.ask(
        "INSERT INTO visits VALUES ('2013-01-02', '2013-01-02 00:00', 1, 1.5), "
        "('2013-01-02', '2013-01-02 23:59:59.999', 2, 'NaN'), ('2013-01-01', '2013-01-03 00:00', 3, NULL), "
        "(NULL, NULL, 4, 1), ('infinity', '-infinity', 5, 1), ('-infinity', 'infinity', 6, 'Infinity')"
    )
    source = opened(release=[{"name": "a", "by": ["local", "x"], "k": 5}])
    assert rows(source) == [(1,), (2,)]
    assert source.counts(AT, DAY, ("x",)) == source.counts(AT, DAY, ("n", "x")) == (2, 1)
    assert source.counts(AT, date(2014, 1, 1), ("x",)) == (0, 0)
    assert source.newest(AT, "at") == DAY
    assert rows(source, day=date.min) == rows(source, day=date.max) == []
    local = opened(period={"column": "local"}, release=[{"name": "a", "by": ["at", "x"], "k": 5}])
    assert rows(local, "at", column="local") == [(DAY,), (DAY,)]
    assert rows(local, "at", column="local", day=date(2013, 1, 3)) == [(date(2013, 1, 1),)]
    assert local.newest(AT, "local") == date(2013, 1, 3)
    assert rows(local, "at", column="local", day=date.min) == rows(local, "at", column="local", day=date.max) == []
    for table, message in ({"column": "local", "time_zone": "UTC"}, "remove time_zone"), ({"column": "n"}, "numbers"):
        with pytest.raises(ConfigError, match=message):
            rows(source, **table)
    with pytest.raises(ConfigError, match="no column 'nowhere'"):
        source.newest(AT, "nowhere")


EXAMPLES = Path(__file__).parents[2] / "examples"
RULES = {
    "found cells": ([], "day"),
    "a domain": ([('by = "carrier"', 'by = "carrier"\ndomain = ["UA", "DL", "ZZ"]\nundeclared = "absent"')], "day"),
    "a predicate": ([('by = "carrier"', 'by = "carrier"\nwhere = "distance > 500 and origin != \'JFK\'"')], "week"),
    "most frequent": ([('by = "carrier"', 'by = "origin"'), ('"hash"', '"most_frequent"')], "month"),
    "first": (
        [('by = "carrier"', 'by = ["origin", "carrier"]'), ('"hash"', '"first"\norder_by = ["dep_delay", "distance"]')],
        "quarter",
    ),
    "hash": ([('by = "carrier"', 'by = ["dest"]'), ("k = 50", "k = 20")], "day"),
    "several cells, drawn": (
        [
            ('by = "carrier"', 'by = "dest"\ncells_per_unit = 2\nnoise = { epsilon = 50 }\nrelease_threshold = 60'),
            ('one_cell = "hash"', ""),
        ],
        "day",
    ),
    "several cells, all": (
        [
            ('by = "carrier"', 'by = "dest"\ncells_per_unit = 20'),
            ('one_cell = "hash"', ""),
            ("[attacker]\n", "[attacker]\nindependent_cells = true\n"),
            ("p_max = 0.5", "p_max = 0.01"),
        ],
        "day",
    ),
    "every kind of key": ([('by = "carrier"', 'by = ["late", "born", "price"]'), ("k = 50", "k = 5")], "day"),
    "instants as keys": (
        [('by = "carrier"', 'by = "seen"'), ("k = 50", "k = 5"), ('"hash"', '"first"\norder_by = "distance"')],
        "year",
    ),
    "a count": ([('by = "carrier"', 'where = "dep_delay > 15"'), ('one_cell = "hash"', "")], "year"),
    "fresh": ([("[output]", "[checks]\nfresh = { column = 'seen', days = 1 }\nrows = { min = 9 }\n\n[output]")], "day"),
}


@pytest.fixture(scope="module")
def flights(tmp_path_factory):
    """Return Parquet data with columns of every kind."""
    path = tmp_path_factory.mktemp("flights") / "flights.parquet"
    data = EXAMPLES / "data" / "flights_2013.parquet"
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.execute(
            f"COPY (SELECT date, tailnum, carrier, origin, dest, dep_delay::DOUBLE AS dep_delay, "
            "distance::INTEGER AS distance, dep_delay > 15 AS late, "
            "DATE '2000-01-01' + (distance % 2)::INTEGER AS born, "
            "(distance % 3 + 0.25)::DECIMAL(9, 2) AS price, "
            "date::TIMESTAMP::TIMESTAMPTZ + INTERVAL 1 HOUR * (distance % 30 - 3) AS seen "
            f"FROM '{data}' WHERE date < DATE '2013-01-04') TO '{path}'"
        )
    return path


def written(folder: Path, source: str, rule: str, **period: str) -> Path:
    changes, every = RULES[rule]
    if rule == "fresh":  # of instants
        period = {"time_zone": "UTC", **period}
    text = (EXAMPLES / "daily_flights.toml").read_text(encoding="utf-8")
    keys = "".join(f', {key} = "{value}"' for key, value in {"every": every, **period}.items() if key != "column")
    changes = [
        ('source = "data/flights_2013.parquet"', f"source = {source}"),
        ('{ column = "date" }', f'{{ column = "{period.get("column", "date")}"{keys} }}'),
        ('budget = { epsilon = 1.2, delta = 1e-6, part = "partial_knowledge" }', ""),
        *changes,
    ]
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    folder.mkdir()
    path = folder / "job.toml"
    path.write_text(text, encoding="utf-8")
    return path


def published(path: Path) -> dict[str, bytes]:
    result = run_job(load_job(path), DAY)
    return {Path(file).name: Path(file).read_bytes() for release in result.releases for file in release.files}


@thinned(2)
@pytest.mark.parametrize("rule", one_in(2, RULES))
@pytest.mark.parametrize("period", [{}, {"column": "seen", "time_zone": "America/St_Johns"}], ids=["dates", "instants"])
def test_the_same_bytes_are_published_as_from_parquet(flights, database, tmp_path, monkeypatch, rule, period):
    import pyarrow.parquet as pq

    database.hold(pq.read_table(flights))
    monkeypatch.setenv("PKDP_SOURCE", database.address)
    source = '{ ibis = "${PKDP_SOURCE}", table = "visits" }'
    expected = published(written(tmp_path / "file", f'"{flights}"', rule, **period))
    assert published(written(tmp_path / "ibis", source, rule, **period)) == expected
    assert sorted(Path(name).suffix for name in expected) == [".json", ".parquet"]


def test_what_is_refused_is_refused_in_the_same_words(flights, database, tmp_path, monkeypatch):
    import pyarrow.parquet as pq

    database.hold(pq.read_table(flights))
    monkeypatch.setenv("PKDP_SOURCE", database.address)
    for number, (old, new) in enumerate([('"drop"', '"error"'), ('one_cell = "hash"', ""), ("rows", "rows")]):
        said = []
        for name, source in (("file", f'"{flights}"'), ("ibis", '{ ibis = "${PKDP_SOURCE}", table = "visits" }')):
            path = written(tmp_path / f"{name} {number}", source, "found cells")
            text = path.read_text(encoding="utf-8").replace('by = "carrier"', 'by = "origin"').replace(old, new)
            if old == "rows":
                text = text.replace("[output]", "[checks]\nrows = { max = 5 }\n\n[output]")
            path.write_text(text, encoding="utf-8")
            with pytest.raises(InputCheckError) as caught:
                run_job(load_job(path), DAY)
            said.append(str(caught.value))
        assert said[0] == said[1]


def test_only_aggregates_leave_the_database(database, flights, tmp_path, monkeypatch):
    import ibis
    import pyarrow.parquet as pq

    database.hold(pq.read_table(flights))
    monkeypatch.setenv("PKDP_SOURCE", database.address)
    fetched = []
    kind = type(ibis.connect(database.address))

    def recording(self, expr, **keys):
        result = of_ibis(self, expr, **keys)
        fetched.append((expr.as_table().columns, getattr(result, "num_rows", 1)))
        return result

    of_ibis = kind.to_pyarrow
    monkeypatch.setattr(kind, "to_pyarrow", recording)
    source = '{ ibis = "${PKDP_SOURCE}", table = "visits" }'
    published(written(tmp_path / "job", source, "fresh"))
    assert fetched
    for columns, number in fetched:
        assert number <= 16  # there are so many carriers, and hundreds of aircraft
        assert not {"tailnum", "u0", "date", "distance"} & {*columns}


TYPED = {
    "duckdb": "u UUID, j JSON, l INTEGER[], c TIME, b BLOB, h HUGEINT",
    "postgres": "u UUID, j JSONB, l INTEGER[], c TIME, b BYTEA, h NUMERIC",
}


def test_a_type_that_cannot_be_counted_is_refused_with_what_to_write(opened, database):
    kind = "duckdb" if database.address.startswith("duckdb") else "postgres"
    database.ask(f'CREATE TABLE visits ("at" DATE, n INTEGER, {TYPED[kind]})')
    others = ["u", "j", "l", "c", "b"] + (["h"] if kind == "postgres" else [])
    for column in others:
        for keys in ({"release": [{"name": "a", "by": column, "k": 5}]}, {"unit": column}):
            with pytest.raises(ConfigError, match=f"column '{column}' has a type") as caught:
                opened(**keys)
            assert f"CAST({column} AS VARCHAR)" in quiet(caught.value)
    source = opened()
    assert {source.columns[column] for column in others} == {"other"}
    source.close()
    database.ask('CREATE VIEW cast_ AS SELECT "at", CAST(u AS VARCHAR) AS n FROM visits')
    assert opened("cast_").columns == {"at": "date", "n": "text"}


def test_a_query_is_one_select_that_cannot_write(opened, database, tmp_path):
    database.ask("CREATE TYPE mood AS ENUM ('sad', 'glad')")
    database.ask('CREATE TABLE visits ("at" DATE, n INTEGER, cost DECIMAL(6, 2), m mood)')
    database.ask("INSERT INTO visits VALUES ('2013-01-02', 1, 1.5, 'glad')")

    def counted(query):
        with closing(opened({"query": query})) as source:
            source.counts(AT, DAY, ("n",))

    for query in (
        "DROP TABLE visits",
        "SELECT 1; DROP TABLE visits",
        "WITH gone AS (DELETE FROM visits RETURNING *) SELECT * FROM gone",
        'SELECT "at", nothing FROM visits',
        "SELECT \"at\", CAST('Secretville' AS INTEGER) AS n FROM visits",
        "SELEC 1",
        "-",
    ):
        with pytest.raises(ConfigError, match=r"one SELECT") as caught:
            counted(query)
        quiet(caught.value)
    with pytest.raises(ConfigError, match="two columns 'n'"):
        opened({"query": 'SELECT "at", n, n FROM visits'})
    keys = {"release": [{"name": "a", "by": ["cost", "m"], "k": 5}]}
    source = opened(
        {"query": 'WITH a AS (SELECT * FROM visits) SELECT "at", n + 1 AS n, cost, m FROM a -- done'}, **keys
    )
    assert source.columns == {"at": "date", "n": "number", "cost": "number", "m": "text"}
    assert [tuple(map(str, row)) for row in rows(source, "n", "cost", "m")] == [("2", "1.50", "glad")]
    source.close()
    assert database.ask("SELECT count(*) FROM visits") == [(1,)]
    assert [path.name for path in tmp_path.iterdir()] in ([], ["warehouse.duckdb"])


@pytest.mark.parametrize("name", ["a'; DROP TABLE visits; --", "select", "Odd Name", "ünï"])
def test_names_are_names_and_no_sql(opened, database, name):
    database.ask('CREATE TABLE visits ("at" DATE)')
    database.ask(f'CREATE TABLE "{name}" ("at" DATE, n INTEGER, "{name}" VARCHAR)')
    database.ask(f"INSERT INTO \"{name}\" VALUES ('2013-01-02', 1, 'x'), ('2013-01-02', 2, NULL)")
    schema = "main" if database.address.startswith("duckdb") else "public"
    for table in (name, f"{schema}.{name}"):
        source = opened(table, unit=["n", name])
        assert rows(source) == [(1,), (2,)]
        assert source.counts(AT, DAY, (name,)) == (2, 1)
        source.close()
    assert database.ask("SELECT count(*) FROM visits") == [(0,)]


def test_what_cannot_be_opened_is_one_error_without_the_databases_words(opened, database, tmp_path):
    database.ask('CREATE TABLE visits ("at" DATE, n INTEGER)')
    for table in ("nowhere", "nowhere.visits", "a.b.c"):
        with pytest.raises(ConfigError, match="check the") as caught:
            opened(table)
        quiet(caught.value)
    with pytest.raises(ConfigError, match="Ibis has no database 'oracel'") as caught:
        opened(address="oracel://ada:sesame@db.example/x")
    quiet(caught.value)
    with pytest.raises(ConfigError, match=r'ibis-framework\[snowflake\]"') as caught:
        opened(address="snowflake://ada:sesame@account/database/schema")
    assert "snowflake://account/database/schema, visits" in quiet(caught.value)
    with pytest.raises(ConfigError, match="check the address") as caught:
        opened(address=f"duckdb://{tmp_path}/missing.duckdb")
    assert str(tmp_path) not in quiet(caught.value)
    assert not (tmp_path / "missing.duckdb").exists()


def test_a_file_that_another_program_writes_to_is_a_temporary_error(tmp_path):
    file = tmp_path / "warehouse.duckdb"
    program = f"import duckdb, sys; held = duckdb.connect({str(file)!r}); print(1, flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as writer:
        assert writer.stdout.readline() == "1\n"
        with pytest.raises(TemporaryError, match="in use") as caught:
            open_source(job_of({"ibis": f"duckdb://{file}", "table": "visits"}))
        writer.stdin.close()
    quiet(caught.value)


@pytest.mark.postgres
def test_all_questions_of_a_run_see_one_state_of_postgresql(postgres_url):
    database = Database(postgres_url)
    database.ask('CREATE TABLE visits ("at" DATE, n INTEGER)')
    database.ask("INSERT INTO visits VALUES ('2013-01-02', 1)")
    source = open_source(job_of({"ibis": postgres_url, "table": "visits"}))
    database.ask("INSERT INTO visits VALUES ('2013-01-02', 2), ('2013-01-03', 3)")
    database.ask("DELETE FROM visits WHERE n = 1")
    assert rows(source) == [(1,)]
    assert source.newest(AT, "at") == DAY
    with pytest.raises(ConfigError, match="SQLSTATE 25006"):
        source.guarded(lambda: source._backend.raw_sql("DELETE FROM visits"))
    source.close()


def test_no_spelling_of_one_person_names_a_cell(opened, database):
    ignoring = "NOCASE"
    if not database.address.startswith("duckdb"):
        ignoring = "ignoring"
        database.ask("CREATE COLLATION ignoring (provider = icu, locale = 'und-u-ks-level2', deterministic = false)")
    database.ask(f'CREATE TABLE visits ("at" DATE, n VARCHAR(9) COLLATE {ignoring})')
    table, question = opened().day(AT, DAY), Selection(unit=("n",), by=("n",))
    with pytest.raises(ConfigError, match="'n' has a type or a collation"):
        engine_for(table).cells(table, question)
    table = opened({"query": 'SELECT "at", n COLLATE "C" AS n FROM visits'}).day(AT, DAY)
    assert engine_for(table).cells(table, question).counts.tolist() == []


def test_no_function_of_a_users_stands_for_one_that_counts(opened, database):
    database.ask('CREATE TABLE visits ("at" DATE, n VARCHAR(9))')
    # Arguments of exactly these types come before those of PostgreSQL's own, which are text.
    database.ask(
        'CREATE MACRO "Starts_With"(x, y) AS true'
        if database.address.startswith("duckdb")
        else "CREATE FUNCTION starts_with(varchar, varchar) RETURNS boolean LANGUAGE sql AS 'SELECT true'"
    )
    rows, question = opened().day(AT, DAY), Selection(unit=("n",), by=("n",))
    with pytest.raises(ConfigError, match="starts_with"):
        engine_for(rows).cells(rows, replace(question, where=from_query("n.str.startswith('a')")))
    # What is not called is not refused.
    assert engine_for(rows).cells(rows, question).counts.tolist() == []


@pytest.mark.postgres
def test_a_signal_ends_a_long_question_here_and_at_the_server(postgres_url):
    import psycopg

    query = "SELECT DATE '2013-01-02' AS \"at\", CASE WHEN pg_sleep(600) IS NULL THEN 1 END AS n"
    source = open_source(job_of({"ibis": postgres_url, "query": query}))
    asleep = "SELECT 1 FROM pg_stat_activity WHERE wait_event = 'PgSleep'"
    with psycopg.connect(postgres_url, autocommit=True) as connection:

        def stop() -> None:
            while not connection.execute(asleep).fetchall():
                time.sleep(0.02)
            os.kill(os.getpid(), signal.SIGTERM)

        stopping, other = Stopping(), threading.Thread(target=stop)
        with stopping.listening():
            other.start()
            with pytest.raises(Stopped), stopping.reading():
                interruptible(lambda: source.counts(AT, DAY, ("n",)), source.interrupt)
        other.join()
        # The server ends it in its own time, long before ten minutes are over.
        deadline = time.monotonic() + 60
        while connection.execute(asleep).fetchall() and time.monotonic() < deadline:
            time.sleep(0.02)
        assert not connection.execute(asleep).fetchall()
    source.close()


@pytest.mark.postgres
def test_a_server_that_is_away_or_refuses_is_told_apart(postgres_url, tmp_path):
    def opening(address):
        with pytest.raises((ConfigError, TemporaryError)) as caught:
            open_source(job_of({"ibis": address, "table": "visits"}))
        return type(caught.value), quiet(caught.value)

    kind, said = opening(f"postgres://pkdp:Secretville@/ledger?host={tmp_path}")
    assert (kind, "local/ledger, visits" in said) == (TemporaryError, True)
    for address in (
        postgres_url.replace("pkdp:", "pkdp:Secretville"),
        postgres_url.replace("pkdp:", "nobody:"),
        postgres_url.replace("/ledger?", "/nowhere?"),
    ):
        kind, said = opening(address)
        assert (kind, "refuses the connection" in said) == (ConfigError, True)


@pytest.mark.parametrize("what", ["ibis", "psycopg"])
def test_what_is_not_installed_is_named_with_its_extra(monkeypatch, what):
    monkeypatch.setitem(sys.modules, what, None)
    extra = r"'\.\[ibis\]'" if what == "ibis" else r"ibis-framework\[postgres\]"
    with pytest.raises(ConfigError, match=extra):
        open_source(job_of({"ibis": "postgresql://db.example/warehouse", "table": "visits"}))


def test_a_job_of_its_own_process_tells_no_secret(database, tmp_path):
    frame = pd.DataFrame({"at": [DAY] * 9, "n": [f"p{n}" for n in range(9)], "town": "Ås"})
    import pyarrow as pa

    database.hold(pa.Table.from_pandas(frame, preserve_index=False))
    job = tmp_path / "job.toml"
    job.write_text(
        'dataset = "visits"\nsource = { ibis = "${PKDP_SOURCE}", table = "visits" }\nperiod = { column = "at" }\n'
        'unit = "n"\nledger = "private/ledger.sqlite"\ntarget = "none"\n[attacker]\np_max = 0.5\n'
        '[[release]]\nname = "people"\nby = "town"\nk = 5\n[output]\ndirectory = "out"\nreport = true\n'
        '[records]\ndirectory = "private/runs"\nlineage = "private/lineage.jsonl"\n',
        encoding="utf-8",
    )
    option = "?access_mode=automatic" if database.address.startswith("duckdb") else "&application_name=sesame"
    done = subprocess.run(
        [sys.executable, "-m", "pkdp_pipeline.cli.main", "run", str(job), "--date", str(DAY)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PKDP_SOURCE": database.address + option},
        cwd=tmp_path,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert re.search(r"Ås\s+│\s+9", done.stdout)
    kept = [path for path in tmp_path.rglob("*") if path.is_file() and path.suffix != ".duckdb"]
    assert len(kept) >= 6
    for text in [done.stdout.encode(), *(path.read_bytes() for path in kept)]:
        for word in (PASSWORD, "sesame", "access_mode", str(tmp_path / "warehouse")):
            assert word.encode() not in text
    assert [path for path in tmp_path.iterdir() if path.name.endswith((".tmp", ".wal"))] == []
