from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
import zoneinfo
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pandas as pd
import pytest
from postgres_server import PASSWORD
from source_jobs import job_of
from thorough import one_in, thinned

from pkdp_pipeline.engines import engine_for
from pkdp_pipeline.engines.period_engine import OnePeriod
from pkdp_pipeline.errors import ConfigError, TemporaryError
from pkdp_pipeline.extras.connect import postgres
from pkdp_pipeline.jobs import load_job, run_job
from pkdp_pipeline.jobs.job import open_source
from pkdp_pipeline.jobs.sources.relations import in_period
from pkdp_pipeline.jobs.sources.source import period_kind
from pkdp_pipeline.jobs.steps import Stopped, Stopping, interruptible
from pkdp_pipeline.jobs.tables import PeriodTable
from pkdp_pipeline.model.columns import Selection

pytestmark = [pytest.mark.postgres, pytest.mark.xdist_group("postgres")]

DAY = date(2013, 1, 2)
AT = PeriodTable(column="at")


@pytest.fixture
def ask(postgres_url):
    """Run SQL as another program would."""
    import psycopg

    with psycopg.connect(postgres_url, autocommit=True) as connection:
        yield connection.execute


@pytest.fixture
def opened(postgres_url):
    sources = []

    def build(table="visits", address=None, query=None, **keys):
        what = {"table": table} if query is None else {"query": query}
        sources.append(open_source(job_of({"postgres": address or postgres_url, **what}, **keys)))
        return sources[-1]

    yield build
    for source in sources:
        source.close()


def rows(source, *columns, day=DAY, **period):
    table = PeriodTable(**({"column": "at"} | period))
    fetched = source.day(table, day).project(", ".join(f'"{column}"' for column in columns or ("n",))).fetchall()
    assert source.counts(table, day, ()) == (len(fetched), 0)
    return sorted(fetched, key=repr)


def quiet(error) -> str:
    """Return a message after checking that nothing of the server's words, nor a password, leaves with it."""
    assert error.__cause__ is None
    assert error.__context__ is None
    said = str(error)
    for word in (PASSWORD, "sesame", "ERROR", "FATAL", "LINE", "libpq", "Secretville", "pkdp@", "pkdp:"):
        assert word not in said
    return said


@pytest.mark.parametrize("zone", one_in(2, ["America/St_Johns", "Asia/Kolkata", "Europe/Oslo", "UTC"]))
def test_days_are_cut_on_the_clocks_of_the_zone_whatever_they_do(opened, ask, zone):
    # Clocks go forward and back in Oslo and, over midnight, in St. John's; some moments are in 1950.
    begins = [datetime(2010, 11, 6, 20, 0, 30), datetime(2010, 3, 27, 20), datetime(2010, 10, 30, 20)]
    moments = [begin.replace(tzinfo=UTC) + timedelta(minutes=30 * n) for begin in begins for n in range(100)]
    moments += [datetime(1950, 3, 1, tzinfo=UTC) + timedelta(minutes=10 * n) for n in range(300)]
    ask('CREATE TABLE visits ("at" timestamptz, n int)')
    for n, moment in enumerate(moments):
        ask("INSERT INTO visits VALUES (%s, %s)", (moment, n))
    source, local = opened(), zoneinfo.ZoneInfo(zone)
    days = sorted({moment.astimezone(local).date() for moment in moments})
    for day in days:
        expected = [(n,) for n, moment in enumerate(moments) if moment.astimezone(local).date() == day]
        assert rows(source, day=day, time_zone=zone) == sorted(expected, key=repr), day
    assert source.newest(PeriodTable(column="at", time_zone=zone), "at") == days[-1]
    with pytest.raises(ConfigError, match="time_zone"):
        rows(source)


def test_dates_and_local_timestamps_are_taken_as_written(opened, ask):
    ask('CREATE TABLE visits ("at" date, local timestamp, n int)')
    ask(
        "INSERT INTO visits VALUES ('2013-01-02', '2013-01-02 00:00', 1), ('2013-01-02', '2013-01-02 23:59:59.999', 2),"
        " ('2013-01-01', '2013-01-03 00:00', 3), (NULL, NULL, 4), ('infinity', '-infinity', 5), "
        "('-infinity', 'infinity', 6), ('0044-03-15 BC', '20000-01-01', 7)"
    )
    source = opened()
    assert rows(source) == [(1,), (2,)]
    assert rows(source, column="local") == [(1,), (2,)]
    assert source.newest(AT, "at") == DAY
    assert source.newest(AT, "local") == date(2013, 1, 3)
    with pytest.raises(ConfigError, match="remove time_zone"):
        rows(source, column="local", time_zone="UTC")
    with pytest.raises(ConfigError, match="holds numbers"):
        rows(source, column="n")


def test_the_filter_can_use_an_index(opened, ask):
    ask('CREATE TABLE visits ("at" timestamptz, n int)')
    ask(
        "INSERT INTO visits SELECT timestamptz '2013-01-01' + i * interval '1 minute', i "
        "FROM generate_series(1, 50000) AS s(i)"
    )
    ask('CREATE INDEX ON visits ("at")')
    ask("ANALYZE visits")
    source = opened()
    period = PeriodTable(column="at", time_zone="Europe/Oslo")
    condition = in_period('"at"', period_kind(source.columns, period), period, *period.span(DAY))
    plan = "\n".join(line for (line,) in ask(f"EXPLAIN SELECT n FROM visits WHERE {condition}"))
    assert "Index" in plan


TYPES = """
    CREATE TYPE mood AS ENUM ('sad', 'glad');
    CREATE DOMAIN price AS numeric(6, 1);
    CREATE TABLE visits ("at" date, n bigint, amount numeric(9, 2), cost price, exact numeric, id uuid, m mood,
        c char(5), v varchar(9), t text, b boolean, r real, d double precision, s smallint, tags text[], j jsonb,
        local timestamp, moment timestamptz, born date, clock time, bytes bytea);
    INSERT INTO visits VALUES
        ('2013-01-02', 9007199254740993, 1.50, 2.5, 0.1, '7d444840-9dc0-11d1-b245-5ffdce74fad2', 'glad', 'ab', 'v',
         'Ås', true, 1.5, 'NaN', 3, ARRAY['x'], '{}', '2013-01-02 10:00:00.123456', '2013-01-02 10:00+02', '1950-02-28',
         '10:00', 'x'),
        ('2013-01-02', NULL, 'NaN', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'Infinity', NULL, NULL, NULL, NULL,
         'infinity', '-infinity', 'infinity', NULL, NULL)
"""
READ = ["n", "amount", "cost", "id", "m", "c", "v", "t", "b", "r", "d", "s", "local", "moment", "born"]


def test_every_type_that_can_be_counted_is_read_as_from_any_other_source(opened, ask):
    for statement in TYPES.split(";"):
        ask(statement)
    source = opened(release=[{"name": "a", "by": READ, "k": 5}])
    kinds = {name: kind for name, kind in source.columns.items() if name in READ}
    assert kinds == {
        "n": "number", "amount": "number", "cost": "number", "id": "text", "m": "text", "c": "text", "v": "text",
        "t": "text", "b": "boolean", "r": "real", "d": "real", "s": "number", "local": "timestamp",
        "moment": "instant", "born": "date",
    }  # fmt: skip
    assert {source.columns[name] for name in ("exact", "tags", "j", "clock", "bytes")} == {"other"}
    read = [name for name in READ if name != "moment"]
    first, second = rows(source, *read)[::-1]
    if first[0] is None:
        first, second = second, first
    uuid = "7d444840-9dc0-11d1-b245-5ffdce74fad2"
    assert first[:9] == (9007199254740993, Decimal("1.50"), Decimal("2.5"), uuid, "glad", "ab", "v", "Ås", True)
    assert (first[9], str(first[10]), first[11]) == (1.5, "nan", 3)
    assert first[12:] == (datetime(2013, 1, 2, 10, 0, 0, 123456), date(1950, 2, 28))
    assert second == (None,) * 9 + (float("inf"), None, None, None, None)
    types = dict(zip(source.day(AT, DAY).columns, map(str, source.day(AT, DAY).types), strict=True))
    assert (types["amount"], types["cost"], types["r"]) == ("DECIMAL(9,2)", "DECIMAL(6,1)", "FLOAT")
    assert set(types) == {"at", *READ}
    missing = {name: source.counts(AT, DAY, (name,)) for name in READ}
    assert missing == {**dict.fromkeys(READ, (2, 1)), "d": (2, 2), "r": (2, 0)}
    assert source.counts(AT, DAY, ("r", "n")) == (2, 1)
    frame = source.pandas(AT, DAY, ["amount", "moment", "b"])
    assert sorted(map(str, frame["amount"])) == ["1.50", "None"]
    assert str(frame["moment"].dtype) == "datetime64[us, UTC]"
    assert frame["moment"].dropna().tolist()[0].isoformat() == "2013-01-02T08:00:00+00:00"


@thinned(2)
@pytest.mark.parametrize(
    ("column", "fix"),
    [("tags", 'CAST("tags" AS text)'), ("exact", "numeric(18, 2)"), ("j", "AS text"), ("clock", "AS text")],
)
def test_a_type_that_cannot_be_counted_is_refused_with_what_to_write(opened, ask, column, fix):
    for statement in TYPES.split(";"):
        ask(statement)
    for keys in ({"release": [{"name": "a", "by": column, "k": 5}]}, {"unit": column}):
        with pytest.raises(ConfigError, match=repr(column)) as caught:
            opened(**keys)
        assert fix in quiet(caught.value)
    cast = fix if fix.startswith("CAST") else f'CAST("{column}" AS {"text" if fix == "AS text" else fix})'
    source = opened(query=f'SELECT "at", n, {cast} AS "{column}" FROM visits', unit=column)
    assert source.columns[column] == ("number" if column == "exact" else "text")
    assert len(rows(source, column)) == 2
    assert len(rows(opened(release=[{"name": "a", "where": f"n > 3 or {column} == 7", "k": 5}]))) == 2


def test_only_the_rows_and_columns_that_are_needed_come_over(opened, ask):
    ask('CREATE TABLE visits ("at" date, n int, t text, secret text)')
    ask("INSERT INTO visits VALUES ('2013-01-02', 1, 'x', 'Secretville'), ('2013-01-03', 2, 'y', 'Secretville')")
    source = opened(release=[{"name": "a", "by": "t", "k": 5}])
    relation = source.day(AT, DAY)
    assert relation.columns == ["at", "n", "t"]
    assert relation.fetchall() == [(DAY, 1, "x")]


@pytest.mark.parametrize(
    "name", ["a'; DROP TABLE visits; --", "select", "Odd Name", "ünï", "x); DELETE FROM visits; --"]
)
def test_names_are_names_and_no_sql(opened, ask, name):
    ask('CREATE TABLE visits ("at" date)')
    ask(f'CREATE TABLE "{name}" ("at" date, n int, "{name}" text)')
    ask(f"INSERT INTO \"{name}\" VALUES ('2013-01-02', 1, 'x'), ('2013-01-02', 2, NULL)")
    for table in (name, f"public.{name}"):
        source = opened(table, unit=["n", name])
        assert rows(source) == [(1,), (2,)]
        assert source.counts(AT, DAY, (name,)) == (2, 1)
    assert ask("SELECT count(*) FROM visits").fetchone() == (0,)


def test_a_query_is_read_with_its_comments_and_cannot_write(opened, ask):
    ask('CREATE TABLE visits ("at" date, n int)')
    ask("INSERT INTO visits VALUES ('2013-01-02', 1)")
    assert rows(opened(query='WITH a AS (SELECT * FROM visits) SELECT "at", n + 1 AS n FROM a -- done')) == [(2,)]
    for query in (
        "WITH gone AS (DELETE FROM visits RETURNING *) SELECT * FROM gone",
        "SELECT * FROM visits) x; DROP TABLE visits; SELECT * FROM (SELECT 1",
        'SELECT "at", nothing FROM visits',
        "SELECT \"at\", 'Secretville'::int AS n FROM visits",
    ):
        with pytest.raises(ConfigError, match="SQLSTATE") as caught:
            opened(query=query)
        quiet(caught.value)
    with pytest.raises(ConfigError, match="two columns 'n'"):
        opened(query='SELECT "at", n, n FROM visits')
    assert ask("SELECT count(*) FROM visits").fetchone() == (1,)


def test_all_questions_of_a_run_see_one_state(opened, ask):
    ask('CREATE TABLE visits ("at" date, n int)')
    ask("INSERT INTO visits VALUES ('2013-01-02', 1)")
    source = opened()
    ask("INSERT INTO visits VALUES ('2013-01-02', 2), ('2013-01-03', 3)")
    ask("DELETE FROM visits WHERE n = 1")
    assert rows(source) == [(1,)]
    assert source.newest(AT, "at") == DAY
    assert rows(opened()) == [(2,)]


@pytest.fixture
def scans(monkeypatch):
    """The statements that have read the rows."""
    run, read = postgres.PostgresSource._run, []

    def noted(self, sql, **keys):
        if "BETWEEN DATE" in sql:
            read.append(sql)
        return run(self, sql, **keys)

    monkeypatch.setattr(postgres.PostgresSource, "_run", noted)
    return read


@thinned(2)
@pytest.mark.parametrize("every", one_in(2, ["day", "week", "month"]))
def test_many_periods_are_one_scan_and_its_count(opened, ask, scans, monkeypatch, every):
    ask('CREATE TABLE visits ("at" timestamptz, n int, pkdp_clock text)')
    moments = "timestamptz '2010-10-20 20:00+00' + d * interval '7 hours'"  # clocks go back in Oslo on the 31st
    ask(f"INSERT INTO visits SELECT {moments}, nullif(d % 11, 0), 'x' FROM generate_series(0, 99) AS d")
    period = PeriodTable(column="at", time_zone="Europe/Oslo", every=every)
    days = tuple(period.periods(date(2010, 10, 20), date(2010, 11, 20)))
    question = Selection(unit=("n",), by=("pkdp_clock",))

    def read(source):
        for day in days:
            frame = source.day(period, day)
            cells = engine_for(frame).cells(frame, question)
            alone = frame.alone() if isinstance(frame, OnePeriod) else frame
            kept = sorted(alone.project('n, "at"::VARCHAR').fetchall(), key=repr)
            yield source.counts(period, day, ("n",)), [*cells.counts], cells.missing_unit, kept

    keys = {"period": {"column": "at", "time_zone": "Europe/Oslo", "every": every}}
    keys["release"] = [{"name": "a", "by": "pkdp_clock", "k": 5}]
    expected, reads = [*read(opened(**keys))], []
    for most in (100, 30, 0):  # all at once, in parts, and each alone
        monkeypatch.setattr(postgres, "_MOST_TOGETHER", most)
        source = opened(**keys)
        source.together(period, days)
        scans.clear()
        assert [*read(source)] == expected
        reads.append(len(scans))
        assert source.is_one_state()
    assert 2 == reads[0] <= reads[1] <= reads[2] <= len(days) + 1
    assert reads[2] > 2


def test_a_malformed_row_of_another_period_disturbs_no_other(opened, ask, scans):
    ask('CREATE TABLE visits ("at" date, n int)')
    ask("INSERT INTO visits SELECT date '2013-01-02' + d % 4, d % 7 - 2 * (d % 4) FROM generate_series(0, 27) AS d")
    source = opened(query='SELECT "at", 10 / (n + 6) AS n FROM visits')  # n is -6 on the last day
    source.together(AT, [DAY + timedelta(days=passed) for passed in range(4)])
    for passed in range(3):
        assert source.counts(AT, DAY + timedelta(days=passed), ("n",)) == (7, 0)
    with pytest.raises(ConfigError, match="SQLSTATE 22012") as caught:
        source.counts(AT, DAY + timedelta(days=3), ("n",))
    quiet(caught.value)
    assert not source.is_one_state()  # of two transactions


def test_a_server_that_is_away_is_a_temporary_error_and_a_refusal_is_not(opened, postgres_url, ask, tmp_path):
    ask('CREATE TABLE visits ("at" date, n int)')
    away = f"postgresql://pkdp:Secretville@/ledger?host={tmp_path}"
    with pytest.raises(TemporaryError) as unreachable:
        opened(address=away)
    assert "/ledger, visits" in quiet(unreachable.value)
    refused = [
        postgres_url.replace("pkdp:", "pkdp:Secretville"),
        postgres_url.replace("pkdp:", "nobody:"),
        postgres_url.replace("/ledger?", "/nowhere?"),
        f"{postgres_url}&nonsense=Secretville",
        f"{postgres_url}&sslmode=Secretville",
    ]
    for address in refused:
        with pytest.raises(ConfigError, match="refuses the connection") as caught:
            opened(address=address)
        quiet(caught.value)
    with pytest.raises(ConfigError, match="SQLSTATE 42P01") as caught:
        opened("nowhere.visits")
    quiet(caught.value)


def test_a_connection_that_is_lost_is_a_temporary_error_and_the_next_question_asks_again(opened, ask):
    ask('CREATE TABLE visits ("at" date, n int)')
    ask("INSERT INTO visits VALUES ('2013-01-02', 1)")
    source = opened()
    ask("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'pkdp_pipeline'")
    with pytest.raises(TemporaryError) as caught:
        source.counts(AT, DAY, ())
    quiet(caught.value)
    assert rows(source) == [(1,)]


def test_a_user_who_may_not_read_is_told_so(opened, ask, postgres_url):
    ask('CREATE TABLE visits ("at" date, n int)')
    ask("DROP ROLE IF EXISTS reader")
    ask("CREATE ROLE reader LOGIN PASSWORD 'sesame'")
    try:
        host = postgres_url.partition("host=")[2]
        with pytest.raises(ConfigError, match="grant SELECT") as caught:
            opened("public.visits", address=f"postgresql://reader:sesame@/ledger?host={host}")
        quiet(caught.value)
    finally:
        ask("DROP ROLE reader")


def test_a_function_of_a_schema_before_that_of_the_server_is_refused(opened, ask, postgres_url):
    ask("CREATE TABLE visits (at TIMESTAMPTZ, n INTEGER)")
    ask("DROP SCHEMA IF EXISTS own CASCADE; CREATE SCHEMA own")
    ask("CREATE FUNCTION own.timezone(text, timestamptz) RETURNS timestamp LANGUAGE sql AS 'SELECT now()::timestamp'")
    assert rows(opened(address=f"{postgres_url}&options=-csearch_path%3Dpublic,own"), time_zone="UTC") == []
    with pytest.raises(ConfigError, match="own 'timezone'"):
        opened(address=f"{postgres_url}&options=-csearch_path%3Down,pg_catalog,public")


def test_without_the_driver_the_extra_is_named(opened, monkeypatch):
    for module in [name for name in sys.modules if name.startswith("adbc_driver_postgresql")]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, "adbc_driver_postgresql", None)
    with pytest.raises(ConfigError, match=r"'\.\[postgres\]'"):
        opened()


def test_a_job_publishes_the_same_from_a_table_as_from_a_file(
    job_file, basic, ask, postgres_url, monkeypatch, tmp_path
):

    path = job_file(basic)
    expected = run_job(load_job(path), date(2020, 1, 1)).releases[0].release
    ask("CREATE TABLE visits (day date, person text, town text)")
    for day, person, town in pd.read_parquet(path.with_name("visits.parquet")).itertuples(index=False):
        ask("INSERT INTO visits VALUES (%s, %s, %s)", (day, None if pd.isna(person) else person, town))
    monkeypatch.setenv("PKDP_SOURCE", postgres_url)
    table = 'source = { postgres = "${PKDP_SOURCE}", table = "public.visits" }'
    path.write_text(basic.replace('source = "visits.parquet"', table).replace('"out', '"other'), encoding="utf-8")
    job = load_job(path)
    release = run_job(job, date(2020, 1, 1)).releases[0].release
    assert release.to_bytes() == expected.to_bytes()
    for shown in (repr(job), str(job), job.model_dump_json()):
        assert PASSWORD not in shown
        assert "sesame" not in shown
    path.write_text(path.read_text(encoding="utf-8").replace('"other', '"third'), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "pkdp_pipeline.cli.main", "run", str(path), "--date", "2020-01-01"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PKDP_SOURCE": postgres_url},
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "sesame" not in done.stdout


def test_a_signal_ends_a_long_question_here_and_at_the_server(opened, ask):
    source = opened(query="SELECT 1 AS n, localtimestamp AS at, pg_sleep(600)")
    asleep = "SELECT 1 FROM pg_stat_activity WHERE wait_event = 'PgSleep'"

    def stop() -> None:
        while not ask(asleep).fetchall():
            time.sleep(0.02)
        os.kill(os.getpid(), signal.SIGTERM)

    stopping, other = Stopping(), threading.Thread(target=stop)
    with stopping.listening():
        other.start()
        with pytest.raises(Stopped), stopping.reading():
            interruptible(lambda: source.newest(AT, "at"), source.interrupt)
    other.join()
    # The server ends it in its own time, long before ten minutes are over.
    deadline = time.monotonic() + 60
    while ask(asleep).fetchall() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not ask(asleep).fetchall()


def test_a_locked_table_is_temporary_and_not_waited_for_without_end(opened, ask, postgres_url, monkeypatch):
    import psycopg

    monkeypatch.setattr(postgres, "_LOCK_SECONDS", 1)
    ask('CREATE TABLE visits ("at" date, n int)')
    with psycopg.connect(postgres_url) as holder:
        holder.execute("LOCK TABLE visits IN ACCESS EXCLUSIVE MODE")
        with pytest.raises(TemporaryError, match="locked") as caught:
            opened()
    quiet(caught.value)
