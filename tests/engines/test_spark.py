"""Releases of PySpark frames: the bytes of the DuckDB engine, aggregated by Spark, without Spark's words."""

from __future__ import annotations

import datetime
import runpy
from dataclasses import replace
from datetime import date
from pathlib import Path

import duckdb
import pandas as pd
import pytest
from local_spark import local_spark
from thorough import thinned

import pkdp_pipeline as pkdp
from pkdp_pipeline.engines import Selection, engine_for
from pkdp_pipeline.engines.period_engine import OnePeriod
from pkdp_pipeline.errors import ConfigError, DifferencingError, InputCheckError
from pkdp_pipeline.extras.connect.spark import SparkPeriods
from pkdp_pipeline.model.keys import canonical_key
from pkdp_pipeline.model.predicate import Condition

pytestmark = pytest.mark.spark

FLIGHTS = Path(__file__).parents[2] / "examples" / "data" / "flights_2013.parquet"
ON_ONE_DAY = "date = DATE '2013-01-02'"
ATTACKER = pkdp.AttackerModel(p_max=0.5)


@pytest.fixture(scope="module")
def spark():
    return local_spark()


@pytest.fixture(scope="module")
def flights(spark):
    """One day of flights, some without a tail number."""
    return spark.read.parquet(FLIGHTS.as_uri()).where(ON_ONE_DAY)


@pytest.fixture
def relation():
    with duckdb.connect() as connection:
        yield connection.read_parquet(str(FLIGHTS)).filter(ON_ONE_DAY)


def histogram(frame, **changes):
    terms = {"by": "carrier", "unit": "tailnum", "k": 50, "missing_unit": "drop", "attacker": ATTACKER} | changes
    return pkdp.histogram(frame, **terms)


def test_a_histogram_is_charged_replayed_and_the_same_as_of_a_relation(flights, relation, tmp_path):
    ledger = {"period": "2013-01-02"}
    with pkdp.Ledger.open(tmp_path / "spark.sqlite", dataset="flights") as first:
        release = histogram(flights, ledger=first, **ledger)
        again = histogram(None, ledger=first, **ledger)
        assert (release.replayed, again.replayed) == (False, True)
        assert again.to_bytes() == release.to_bytes()
        assert [entry.release_id for entry in first.entries()] == [release.id]
        with pytest.raises(DifferencingError):
            histogram(flights, by="origin", one_cell="most_frequent", ledger=first, **ledger)
    with pkdp.Ledger.open(tmp_path / "duckdb.sqlite", dataset="flights") as second:
        assert histogram(relation, ledger=second, **ledger).to_bytes() == release.to_bytes()
    assert release.table["count"].tolist() == [82, 103, 117, 82, 149]


def test_a_count_is_charged_and_the_same_as_of_a_relation(flights, relation, tmp_path):
    terms = {"where": "distance > 1000 and origin != 'JFK'", "unit": "tailnum", "k": 20, "k_complement": 20}
    terms |= {"missing_unit": "drop", "attacker": pkdp.AttackerModel(p_max=0.5, p_min=0.1), "period": "2013-01-02"}
    releases = []
    for name, frame in (("spark", flights), ("duckdb", relation)):
        with pkdp.Ledger.open(tmp_path / f"{name}.sqlite", dataset="flights") as ledger:
            releases.append(pkdp.count(frame, ledger=ledger, **terms))
            assert len(list(ledger.entries())) == 1
    assert releases[0].to_bytes() == releases[1].to_bytes()
    assert releases[0].table["count"].notna().all()


def test_missing_units_stop_a_release_and_give_the_charge_back(flights, tmp_path):
    with pkdp.Ledger.open(tmp_path / "ledger.sqlite", dataset="flights") as ledger:
        with pytest.raises(InputCheckError, match='missing_unit="drop"'):
            histogram(flights, missing_unit="error", ledger=ledger, period="2013-01-02")
        assert list(ledger.entries()) == []


@pytest.fixture
def brought(monkeypatch):
    """Return the columns and the plan of everything that is brought to the driver from now on."""
    from pyspark.sql.classic.dataframe import DataFrame

    brought = []
    for name in ("collect", "toArrow", "toPandas", "toLocalIterator", "take", "head", "first", "count"):
        plain = getattr(DataFrame, name)

        def watched(self, *arguments, plain=plain, **named):
            brought.append((tuple(self.columns), plan_of(self)))
            return plain(self, *arguments, **named)

        monkeypatch.setattr(DataFrame, name, watched)
    return brought


def plan_of(frame):
    return frame._jdf.queryExecution().executedPlan().toString()


def test_only_counted_cells_leave_spark(flights, brought):
    # What collects a query may call another way of collecting on the same frame; "spaced" says whether names are alike.
    histogram(flights)
    assert {columns for columns, _ in brought} == {
        ("listed", "b0", "code", "n", "missing_unit", "several_cells", "spaced")
    }
    brought.clear()
    histogram(flights, one_cell="first", order_by="distance")
    assert {columns for columns, _ in brought} == {("b0", "n", "missing_unit", "several_cells", "spaced")}


def test_values_that_spark_cannot_read_are_not_repeated(spark, capfd, caplog):
    broken = spark.range(9).selectExpr("id AS person", "CAST(concat('Secretville ', id) AS INT) AS town")
    for ask in (
        lambda: pkdp.histogram(broken, "town", unit="person", k=2, attacker=ATTACKER),
        lambda: pkdp.count(broken, "town > 3", unit="person", k=2, attacker=ATTACKER),
    ):
        with pytest.raises(ConfigError) as caught:
            ask()
        assert "Secretville" not in str(caught.value)
        assert caught.value.__cause__ is None
    assert "Secretville" not in "".join(capfd.readouterr())
    assert "Secretville" not in caplog.text


def test_what_pyspark_logs_is_logged_again_afterwards(spark):
    from pyspark.logger import PySparkLogger

    pkdp.count(spark.range(9).selectExpr("id AS person"), unit="person", k=2, attacker=ATTACKER)
    for name in ("DataFrameQueryContextLogger", "SQLQueryContextLogger"):
        assert not PySparkLogger.getLogger(name).disabled


@thinned(2)
@pytest.mark.parametrize("zone", ["UTC", "Asia/Tokyo", "America/St_Johns"])
def test_instants_are_published_in_utc_whatever_the_session_says(spark, zone):
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        rows = connection.sql(
            "SELECT i AS person, TIMESTAMPTZ '2013-01-02 22:30:00.123456+00' AS at, TIMESTAMP '2013-01-02 02:30:00' AS "
            "local FROM range(9) r(i)"
        )
        expected = [pkdp.histogram(rows, by, unit="person", k=2, attacker=ATTACKER) for by in ("at", "local")]
    before = spark.conf.get("spark.sql.session.timeZone")
    frame = spark.range(9).selectExpr(
        "id AS person",
        "TIMESTAMP '2013-01-02 22:30:00.123456+00:00' AS at",
        "TIMESTAMP_NTZ '2013-01-02 02:30:00' AS local",
    )
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        releases = [pkdp.histogram(frame, by, unit="person", k=2, attacker=ATTACKER) for by in ("at", "local")]
        counted = [
            pkdp.count(frame, query, unit="person", k=2, attacker=ATTACKER).value
            for query in (
                "at >= '2013-01-02 23:30:00+01:00'",
                "local == '2013-01-02 02:30'",
                "local > '2013-01-02 02:30'",
            )
        ]
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)
    assert [release.to_bytes() for release in releases] == [release.to_bytes() for release in expected]
    assert str(releases[0].table["at"].dtype.tz) == "UTC"
    assert releases[0].table["at"].tolist() == [pd.Timestamp("2013-01-02 22:30:00.123456", tz="UTC")]
    assert releases[1].table["local"].tolist() == [pd.Timestamp("2013-01-02 02:30:00")]
    # A constant is an instant of its own offset, and as written for any other timestamp.
    assert counted == [9, 9, None]


def test_a_hash_draws_by_the_clock_of_utc_whatever_the_session_says(spark):
    with duckdb.connect() as connection:
        instant = "1357165800500000 + 8640000000000 * "
        rows = connection.sql(
            f"SELECT i // 3 AS person, make_timestamptz({instant} (i % 3)) AS at FROM range(120) r(i)"
        )
        frame = spark.range(120).selectExpr("id div 3 AS person", f"timestamp_micros({instant} (id % 3)) AS at")
        question = Selection(unit=("person",), by=("at",), one_cell="hash")
        counts = [
            dict(zip(map(canonical_key, answer.keys["at"]), answer.counts.tolist(), strict=True))
            for answer in (engine_for(each).cells(each, question) for each in (rows, frame))
        ]
    assert counts[0] == counts[1]
    assert len(counts[0]) == 3


def test_no_function_of_a_sessions_stands_for_one_of_sparks(spark):
    session = spark.newSession()
    frame = session.sql("SELECT 'p' AS u, DATE '2020-01-01' AS day")
    question = Selection(unit=("u",), by=("day",))
    session.udf.register("year", lambda day: "7")
    assert engine_for(frame).cells(frame, question).counts.tolist() == [1]
    session.conf.set("spark.sql.functionResolution.sessionOrder", "first")
    with pytest.raises(ConfigError, match="'year'"):
        engine_for(frame).cells(frame, question)


def test_unsigned_columns_are_the_next_wider_signed_ones(spark, tmp_path):
    path = tmp_path / "unsigned.parquet"
    with duckdb.connect() as connection:
        connection.execute(f"COPY (SELECT i AS person, 4000000000::UINTEGER AS size FROM range(9) r(i)) TO '{path}'")
    table = pkdp.histogram(spark.read.parquet(path.as_uri()), "size", unit="person", k=2, attacker=ATTACKER).table
    assert table["size"].tolist() == [4_000_000_000]
    assert table["size"].dtype == "Int64"


def test_names_are_names(spark):
    names = ["a.b", "a`b", "*", "select", "a b"]
    frame = spark.range(9).selectExpr("id AS person", *(f"'x' AS `{name.replace('`', '``')}`" for name in names))
    for name in names:
        table = pkdp.histogram(frame, name, unit="person", k=2, attacker=ATTACKER).table
        assert table.to_dict("list") == {name: ["x"], "count": [9]}


def test_the_example_prints_one_id_twice(capsys, spark):
    runpy.run_path(str(Path(__file__).parents[2] / "examples" / "spark_histogram.py"), run_name="__main__")
    printed = capsys.readouterr().out.splitlines()
    assert printed[0].split() == ["carrier", "count"]
    assert [line.split() for line in printed[1:6]] == [
        ["AA", "82"],
        ["B6", "103"],
        ["DL", "117"],
        ["EV", "82"],
        ["UA", "149"],
    ]
    ids = {line.split(":")[0]: line.split()[1] for line in printed if line.startswith(("Spark:", "DuckDB:"))}
    assert set(ids) == {"Spark", "DuckDB"}
    assert len(set(ids.values())) == 1
    assert spark.range(3).count() == 3


def test_a_job_over_instants_cuts_days_on_the_clocks_of_its_zone(spark, tmp_path):
    from pkdp_pipeline.jobs import load_job, run_job

    source = tmp_path / "visits.parquet"
    with duckdb.connect() as connection:
        # Ten people in the last hour of the second of January in Oslo, eleven in the first of the third.
        connection.execute(
            "COPY (SELECT i AS person, 'Ås' AS town, TIMESTAMPTZ '2013-01-02 22:30:00+00' + "
            f"INTERVAL (CASE WHEN i < 10 THEN 0 ELSE 1 END) HOUR AS at FROM range(21) r(i)) TO '{source}'"
        )
    for engine in ("spark", "duckdb"):
        job = tmp_path / f"{engine}.toml"
        job.write_text(
            f"""
            engine = "{engine}"
            dataset = "visits"
            source = "visits.parquet"
            period = {{ column = "at", time_zone = "Europe/Oslo" }}
            unit = "person"
            ledger = "{engine}/ledger.sqlite"
            evidence = {{ kind = "one_day_protected" }}
            [attacker]
            p_max = 0.5
            [[release]]
            name = "towns"
            by = "town"
            k = 5
            [output]
            directory = "{engine}"
            """,
            encoding="utf-8",
        )
        counts = [
            run_job(load_job(job), datetime.date(2013, 1, day)).releases[0].release.table["count"].tolist()
            for day in (2, 3)
        ]
        assert counts == [[10], [11]]


@pytest.fixture(scope="module")
def towns(spark, tmp_path_factory):
    folder = str(tmp_path_factory.mktemp("spark") / "towns.parquet")
    rows = (
        "CASE WHEN id < 4 THEN NULL ELSE id % 70 END AS person, CASE WHEN id % 7 < 6 THEN 'town ' || id % 7 END AS town"
    )
    spark.range(210).selectExpr(*rows.split(", ")).write.parquet(folder)
    return spark.read.parquet(folder)


@thinned(3)
@pytest.mark.parametrize(
    "terms",
    [
        {"by": "number"},
        {"by": "town"},
        {"by": "number", "unit": "name"},
        {"one_cell": "hash"},
        {"one_cell": "most_frequent"},
        {"one_cell": "first", "order_by": "number"},
        {"cells_per_unit": 2, "noise": pkdp.GeometricNoise(0.5), "release_threshold": 9},
        {"where": "number > 2", "unit": "name"},
    ],
)
def test_a_question_is_one_job_of_spark_without_python_in_its_plan(spark, towns, brought, terms):
    from pyspark.sql.functions import udf

    terms = {"unit": "person", "k": 2, "missing_unit": "drop", "attacker": ATTACKER} | terms
    rows = towns.selectExpr("person", "CAST(person AS STRING) AS name", "town", "person % 7 AS number")
    assert "Python" in plan_of(rows.select(udf(lambda text: text, "string", useArrow=False)("town")))
    spark.sparkContext.setJobGroup("asked", "what is asked here")
    before = len(spark.sparkContext.statusTracker().getJobIdsForGroup("asked"))
    try:
        pkdp.count(rows, **terms) if "where" in terms else pkdp.histogram(rows, **({"by": "town"} | terms))
    finally:
        spark.sparkContext._jsc.clearJobGroup()
    assert len(spark.sparkContext.statusTracker().getJobIdsForGroup("asked")) - before == 1
    plans = {plan for _, plan in brought}
    assert len(plans) == 1
    for plan in plans:
        assert "Aggregate" in plan
        assert not any(word in plan for word in ("Python", "Pandas", "InArrow"))


def cells_of(frame, unit=("person",)):
    cells = engine_for(frame).cells(frame, Selection(unit=unit, by=("town",)))
    return [*zip(cells.keys["town"], map(int, cells.counts), strict=True)], cells.missing_unit, cells.several_cells


def test_cells_and_units_are_counted_by_hashes_in_one_reading(towns, brought):
    expected = {f"town {i}" if i < 6 else "-": 10 for i in range(7)}
    cells, missing, several = cells_of(towns)
    assert ({"-" if pd.isna(town) else town: n for town, n in cells}, missing, several) == (expected, True, False)
    assert all(plan.count("FileScan") == 1 for _, plan in brought)
    both, missing, _ = cells_of(towns, unit=("person", "town"))
    assert (sum(n for _, n in both), len(both), missing) == (60, 6, True)


def test_units_in_several_cells_are_noticed(towns):
    for town in ("'elsewhere'", "NULL", "'town 0'"):
        two = towns.unionByName(towns.selectExpr("person", f"CASE WHEN person = 9 THEN {town} ELSE town END AS town"))
        assert cells_of(two)[1:] == (True, True)
        with pytest.raises(InputCheckError, match="one_cell"):
            pkdp.histogram(two, "town", unit="person", k=2, missing_unit="drop", attacker=ATTACKER)


def test_rows_without_a_unit_may_be_in_several_cells(spark):
    rows = spark.range(8).selectExpr("CASE WHEN id > 3 THEN id END AS person", "concat('town ', id % 4) AS town")
    cells, missing, several = cells_of(rows.where("id <> 7"))
    assert (sorted(cells), missing, several) == ([(f"town {i}", 1) for i in range(3)], True, False)
    assert cells_of(rows.limit(0)) == ([], False, False)


def test_two_cells_of_one_hash_are_counted_another_way(towns, monkeypatch):
    from pyspark.sql.classic.dataframe import DataFrame

    expected, plain = cells_of(towns), DataFrame.selectExpr
    monkeypatch.setattr(DataFrame, "selectExpr", lambda rows, *said: plain(rows, *said[:-1], "1L AS code"))
    assert sorted(cells_of(towns)[0], key=repr) == sorted(expected[0], key=repr)


def test_random_rows_are_drawn_once(towns):
    drawn = towns.selectExpr("person", "CASE WHEN rand() < 0.5 THEN person ELSE -person END AS town")
    once = drawn.dropDuplicates(["person"]).where("rand() < 0.5")
    cells, _, several = cells_of(once)
    assert (len(cells) > 5, several) == (True, False)


def answers_of(frame, question):
    """Return all that an engine says of a frame."""
    engine = engine_for(frame)
    cells, units = engine.cells(frame, question), question.unit and engine.units(frame, question.unit)
    table = cells.keys.assign(n=cells.counts, total=cells.counts if cells.sums is None else cells.sums)
    rows = sorted(map(repr, table.itertuples(index=False)))
    return rows, list(map(str, table.dtypes)), cells.missing_unit, cells.several_cells, units


PEOPLE = Selection(unit=("p",), by=("c",))


@thinned(4)
@pytest.mark.parametrize(
    "question",
    [
        PEOPLE,
        replace(PEOPLE, unit=("q", "p"), where=Condition("v", ">", 5)),
        replace(PEOPLE, unit=()),
        replace(PEOPLE, bounds=(0, 7), summed="v"),
        replace(PEOPLE, bounds=(0, 7), summed="v", by=()),
        replace(PEOPLE, unit=("v",), by=("q", "c")),
        replace(PEOPLE, one_cell="hash"),
    ],
)
def test_periods_together_are_each_told_what_they_would_be_alone(spark, question):
    # One day lacks a unit, one has people in several cells, one has spaces around a name.
    names = {0: ["a", "b", None], 1: ["a", "b"], 2: ["a", " a", "c"]}
    rows = [
        (day, names[day][n % len(names[day])], n % 3 or None, f"c{0 if day != 1 else n % 3}", n)
        for day in names
        for n in range(8)
    ]
    frame = spark.createDataFrame(rows, "day int, p string, q int, c string, v bigint")
    periods = SparkPeriods(frame, "day")
    for day in range(4):
        alone = frame.where(f"day = {day}")
        period = OnePeriod(periods, date(1970, 1, 1 + day), lambda alone=alone: alone)
        assert answers_of(period, question) == answers_of(alone, question)
    assert None not in periods._answers.values()
    assert len(periods._answers) == (question.one_cell == "error") + bool(question.unit)
