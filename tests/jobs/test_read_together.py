"""A backfill reads its source once, and leaves behind, byte for byte, what running period after period does."""

from __future__ import annotations

import json
import secrets
from contextlib import closing, suppress
from datetime import date, timedelta
from pathlib import Path

import duckdb
import pytest
from interrupted_backfill import ten_o_clock
from local_spark import local_spark
from test_kill_campaign import public_files, whole_ledger
from thorough import one_in, thinned

from pkdp_pipeline import clock
from pkdp_pipeline.engines.period_engine import OnePeriod, Periods
from pkdp_pipeline.errors import ConfigError, InputCheckError
from pkdp_pipeline.extras.connect.spark import SparkPeriods
from pkdp_pipeline.jobs import JobSession, load_job, run_job
from pkdp_pipeline.jobs.job import open_source
from pkdp_pipeline.jobs.session import backfill, days_of, run_missed
from pkdp_pipeline.jobs.sources.relations import RelationSource

HEAD = """
    dataset = "visits"
    unit = "person"
    ledger = "out/ledger.sqlite"
    target = "none"
    records = { directory = "records" }
    evidence = { kind = "one_day_protected" }
    attacker = { p_max = 0.5 }
    output = { directory = "out", formats = ["csv", "parquet"] }
"""
TOWNS = '[[release]]\nname = "towns"\nby = "town"\nk = 5\n'
CHOSEN = '[[release]]\nname = "drawn"\nby = ["town", "kind"]\none_cell = "hash"\nk = 3\n'
FIRST, LAST = date(2020, 3, 26), date(2020, 3, 31)
APRIL = date(2020, 4, 2)

#: Days with nobody, without a date, with a person in two towns, with spaces around a name, with nobody's row.
VISITS = """
    SELECT day, 'person ' || n AS person, 'town ' || (n % 3) AS town, n % 2 AS kind, day + INTERVAL 22 HOUR AS at,
        timezone('UTC', day + INTERVAL (n) HOUR) AS moment
    FROM (SELECT DATE '2020-03-24' + d::INTEGER AS day, n FROM range(15) AS d(d), range(24) AS n(n)
        WHERE d NOT IN (4, 5) AND n < 18 + d % 6)
    UNION ALL VALUES
        (NULL, 'person 1', 'town 1', 0, NULL, NULL),
        (DATE '2020-03-27', 'person 1', 'town 2', 0, TIMESTAMP '2020-03-27 01:00', TIMESTAMPTZ '2020-03-27 01:00+00'),
        (DATE '2020-03-31', ' person 1', 'town 1', 0, TIMESTAMP '2020-03-31 01:00', TIMESTAMPTZ '2020-03-31 01:00+00'),
        (DATE '2020-04-02', NULL, 'town 1', 0, TIMESTAMP '2020-04-02 01:00', TIMESTAMPTZ '2020-04-02 01:00+00'),
        (DATE 'infinity', 'person 1', 'town 1', 0, TIMESTAMP 'infinity', NULL)
"""


@pytest.fixture
def statements(monkeypatch):
    """The statements that were asked of many periods together."""
    monkeypatch.setattr(clock, "_read", ten_o_clock)
    monkeypatch.setattr(secrets, "token_hex", lambda size: "0" * 2 * size)
    run, recorded_statements = Periods._run, []
    monkeypatch.setattr(
        Periods, "_run", lambda self, text, *more: recorded_statements.append(text) or run(self, text, *more)
    )
    return recorded_statements


def written(folder: Path, text: str, source: str, rows: str = VISITS):
    """Write a job file beside its source; return the job."""
    folder.mkdir()
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        if "duckdb" in source:
            connection.execute(f"ATTACH '{folder / 'visits.duckdb'}' AS file")
            connection.execute(f"CREATE TABLE file.visits AS {rows}")
        elif source.startswith('"'):
            kind = source.strip('"').rpartition(".")[2]
            connection.execute(f"COPY ({rows}) TO '{folder / source.strip(chr(34))}' (FORMAT {kind})")
        else:  # folders that name days, and a column more from the second month on
            for day in [FIRST + timedelta(days=number) for number in range(15)]:
                place = folder / "data" / f"day={day}"
                place.mkdir(parents=True)
                more = ", 1 AS later" if day.month > 3 else ""
                mine = f"SELECT * EXCLUDE day{more} FROM ({rows}) WHERE day = DATE '{day}'"
                connection.execute(f"COPY ({mine}) TO '{place / 'a.parquet'}' (FORMAT parquet)")
    head = "\n".join(line.strip() for line in HEAD.strip().splitlines())
    (folder / "job.toml").write_text(f"source = {source}\n{head}\n{text}", encoding="utf-8")
    return load_job(folder / "job.toml")


def one_after_another(job, days):
    for day in days:
        with suppress(InputCheckError):
            run_job(job, day)


def recorded(job):
    """Return what runs have recorded, without what differs between any two."""
    records = [json.loads(file.read_text(encoding="utf-8")) for file in Path(job.records.directory).glob("*.json")]
    private = {"run", "started", "ended", "digest", "files"}
    kept = [{key: value for key, value in record.items() if key not in private} for record in records]
    return sorted(kept, key=lambda record: record["day"])


def check_same(tmp_path, text, source, rows=VISITS, *, first=FIRST, last=LAST, failed=None):
    together, alone = (written(tmp_path / name, text, source, rows) for name in ("together", "alone"))
    days = days_of(together, first, last)
    done = backfill(together, first, last, keep_going=True)
    one_after_another(alone, days)
    assert done.published
    assert failed is None or [str(failure.day) for failure in done.failed] == failed
    folders = tmp_path / "together", tmp_path / "alone"
    assert public_files(folders[0]) == public_files(folders[1])
    assert whole_ledger(folders[0]) == whole_ledger(folders[1])
    assert recorded(together) == recorded(alone)


PARQUET = '"visits.parquet"'
DAY = 'period = { column = "day" }\n'
FOLDERS = '{ files = "data/*/*.parquet", hive = { day = "date" } }'
FILE = "{ table = 'visits', duckdb = 'visits.duckdb' }"


@thinned(2)
@pytest.mark.parametrize("source", one_in(2, [PARQUET, FOLDERS, FILE]))
def test_days_that_fail_and_days_without_anybody(tmp_path, statements, source):
    failed, last = ["2020-03-27", "2020-03-31"], LAST
    if source == FOLDERS:  # which have a column more in April
        failed, last = [*failed, "2020-04-02"], APRIL
    check_same(tmp_path, DAY + TOWNS, source, last=last, failed=failed)
    assert len(statements) == 3  # the rows, the cells, and who is in which, of all days


@pytest.mark.slow
def test_days_of_csv_are_counted_together_as_well(tmp_path, statements):
    rows = f"SELECT day, person, town FROM ({VISITS}) WHERE day < DATE '2020-05-01'"
    check_same(tmp_path, DAY + TOWNS, '"visits.csv"', rows, last=date(2020, 3, 27))
    assert len(statements) == 3


@pytest.mark.slow
def test_rules_expectations_retention_and_freshness(tmp_path, statements):
    checks = """
        missing_unit = "drop"
        retention = { directory = "private", days = 7 }
        [checks]
        rows = { min = 1 }
        fresh = { column = "at", days = 1 }
    """
    text = "\n".join(line.strip() for line in checks.splitlines())
    check_same(tmp_path, DAY + text + CHOSEN, PARQUET, failed=["2020-03-28", "2020-03-29", "2020-03-31"])
    assert len(statements) == 1  # the rows: which of several cells counts, a hash draws for each day alone
    copies = [sorted((tmp_path / name / "private").glob("*")) for name in ("together", "alone")]
    assert copies[0]
    assert [file.read_bytes() for file in copies[0]] == [file.read_bytes() for file in copies[1]]


@pytest.mark.slow
@thinned(2)
@pytest.mark.parametrize("every", ["week", "quarter"])
def test_longer_periods_of_which_some_are_closed(tmp_path, statements, every):
    rows = f"SELECT * FROM ({VISITS}) WHERE person IS NOT NULL AND person NOT LIKE ' %'"
    period = f'period = {{ column = "day", every = "{every}", closed = ["2020-03-30/2020-04-05"] }}\n'
    people = '[[release]]\nname = "people"\nk = 5\nk_complement = 1\n'
    first = date(2020, 3, 16) if every == "week" else date(2020, 1, 1)
    check_same(tmp_path, period + people, PARQUET, rows, first=first, last=date(2020, 4, 6), failed=[])
    assert len(statements) == 2


@pytest.mark.slow
@pytest.mark.parametrize(("column", "zone"), one_in(2, [("moment", ', time_zone = "Europe/Oslo"'), ("at", "")]))
def test_times_and_instants_over_a_change_of_clocks(tmp_path, statements, column, zone):
    rows = f"SELECT * FROM ({VISITS}) WHERE person IS NOT NULL AND person NOT LIKE ' %'"
    check_same(tmp_path, f'period = {{ column = "{column}"{zone} }}\n' + TOWNS, PARQUET, rows)
    assert len(statements) == 3


@pytest.mark.spark
@pytest.mark.parametrize(
    ("period", "where", "release", "together"),
    [
        (DAY, "true", TOWNS, 2),
        # Which of several cells counts, a hash draws for each week alone.
        pytest.param(
            *('period = { column = "day", every = "week" }\n', "person NOT LIKE ' %'", CHOSEN, 1),
            marks=pytest.mark.slow,
        ),
        pytest.param(
            *('period = { column = "moment", time_zone = "Europe/Oslo" }\n', "person IS NOT NULL", TOWNS, 2),
            marks=pytest.mark.slow,
        ),
    ],
)
def test_spark_reads_days_together(tmp_path, monkeypatch, period, where, release, together):
    local_spark()
    monkeypatch.setattr(clock, "_read", ten_o_clock)
    monkeypatch.setattr(secrets, "token_hex", lambda size: "0" * 2 * size)
    questions, once = [], SparkPeriods._once
    monkeypatch.setattr(SparkPeriods, "_once", lambda self, *given: questions.append(given[0]) or once(self, *given))
    columns = "day, person, town, kind, moment"
    rows = f"SELECT {columns} FROM ({VISITS}) WHERE day < DATE '2020-05-01' AND {where}"
    first, last = (date(2020, 3, 24), APRIL) if "week" in period else (FIRST, LAST)
    check_same(tmp_path, f'engine = "spark"\n{period}{release}', PARQUET, rows, first=first, last=last)
    assert len({*questions}) == together


def test_what_cannot_be_read_of_one_day_stops_that_day_alone(tmp_path, statements):
    town = "CASE WHEN day = DATE '2020-03-30' THEN 'x' ELSE '7' END AS town"
    numbers = "{ duckdb = 'visits.duckdb', query = 'SELECT day, person, CAST(town AS INTEGER) AS town FROM visits' }"
    days, messages = days_of(written(tmp_path / "dates", DAY + TOWNS, FILE), date(2020, 3, 28), LAST), []
    for name, run in (("together", lambda job: backfill(job, days[0], LAST)), ("alone", one_after_another)):
        written(tmp_path / name, DAY + TOWNS, FILE, f"SELECT day, person, {town} FROM ({VISITS})")
        path = tmp_path / name / "job.toml"
        path.write_text(path.read_text(encoding="utf-8").replace(FILE, numbers), encoding="utf-8")
        with pytest.raises(ConfigError) as caught:
            run(load_job(path), *([days] if name == "alone" else []))
        messages.append(str(caught.value))
    assert messages[0] == messages[1]
    assert whole_ledger(tmp_path / "together") == whole_ledger(tmp_path / "alone")
    assert len(whole_ledger(tmp_path / "alone")["entry"]) == 2


def test_days_of_csv_before_one_that_cannot_be_read_are_counted_together(tmp_path, statements):
    town = "CASE WHEN day = DATE '2020-03-31' THEN 'x' ELSE '7' END AS town"
    rows = f"SELECT day, trim(person) AS person, {town} FROM ({VISITS}) WHERE day < DATE '2020-05-01'"
    messages, days = [], [FIRST + timedelta(days=number) for number in range(6)]
    for name, run in (("together", lambda job: backfill(job, FIRST, LAST)), ("alone", one_after_another)):
        written(tmp_path / name, DAY + TOWNS, '"visits.csv"', rows)
        path = tmp_path / name / "job.toml"
        text = path.read_text(encoding="utf-8")
        path.write_text(text.replace('"visits.csv"', '{ files = "visits.csv", types = { town = "number" } }'))
        with pytest.raises(ConfigError, match="column 'town' must hold whole numbers") as caught:
            run(load_job(path), *([days] if name == "alone" else []))
        messages.append(str(caught.value).replace(name, ""))
        assert len(statements) == 3
    assert messages[0] == messages[1]
    assert whole_ledger(tmp_path / "together") == whole_ledger(tmp_path / "alone")
    assert len(whole_ledger(tmp_path / "alone")["entry"]) == 5


def test_what_is_published_is_not_read_again(tmp_path, statements):
    rows = f"SELECT * FROM ({VISITS}) WHERE kind = 0 AND person NOT LIKE ' %'"
    job = written(tmp_path / "visits", DAY + TOWNS, PARQUET, rows)
    run_job(job, date(2020, 3, 30))
    assert statements == []
    spans, together = [], RelationSource.together

    def noted(self, period, days):
        spans.append((days[0], days[-1]))
        together(self, period, days)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RelationSource, "together", noted)
        backfill(job, FIRST, APRIL)
    assert spans == [(FIRST, date(2020, 3, 29)), (date(2020, 3, 31), APRIL)]
    statements.clear()
    assert len(backfill(job, FIRST, APRIL).replayed) == 8
    assert statements == []


def test_what_a_schedule_missed_is_read_together(tmp_path, statements):
    job = written(tmp_path / "visits", DAY + TOWNS, PARQUET, f"SELECT * FROM ({VISITS}) WHERE person IS NOT NULL")
    days = [date(2020, 3, 24), date(2020, 3, 25), date(2020, 3, 26)]
    with JobSession(job) as session:
        assert [result.day for result in run_missed(session, days[:2], days[2])] == days
    assert len(statements) == 3


def test_a_source_that_changes_meanwhile_is_counted_as_it_was(tmp_path, statements):
    job = written(tmp_path / "visits", DAY + TOWNS, PARQUET, f"SELECT * FROM ({VISITS}) WHERE person IS NOT NULL")
    days = [date(2020, 3, 24), date(2020, 3, 25), date(2020, 3, 26)]
    with JobSession(job) as session:
        session.announce(days)
        session.run(days[0])
        Path(job.source.files[0]).unlink()
        assert session.run(days[1]).releases[0].release.table["count"].tolist() == [7, 6, 6]


def test_what_is_interrupted_is_not_read_together_any_more(tmp_path):
    job = written(tmp_path / "visits", DAY + TOWNS, PARQUET)
    with closing(open_source(job)) as source:
        source.together(job.period, [FIRST, LAST])
        frame = source.day(job.period, FIRST)
        assert isinstance(frame, OnePeriod)
        source.interrupt()
        assert frame.periods.stopped
        assert isinstance(source.day(job.period, LAST), duckdb.DuckDBPyRelation)
        source.together(job.period, [FIRST])  # one alone
        assert isinstance(source.day(job.period, FIRST), duckdb.DuckDBPyRelation)
