"""Keys that one row could spoil: collations, times without end, sessions in other zones, types with values in them."""

from __future__ import annotations

import datetime

import duckdb
import polars as pl
import pytest
from thorough import spread, thinned

import pkdp_pipeline as pkdp
from pkdp_pipeline.engines import Selection, engine_for
from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.model.predicate import from_query

ATTACKER = pkdp.AttackerModel(p_max=0.1)
TIMES = ["DATE", "TIMESTAMP", "TIMESTAMPTZ", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS"]


@pytest.fixture
def connection():
    with duckdb.connect() as opened:
        yield opened


def released(frame, **more):
    return pkdp.histogram(frame, "c", unit="u", attacker=ATTACKER, k=20, **more).table


@pytest.fixture(params=["column", "default", "both"], scope="module")
def collated(request):
    """Visits of 60 people, of whom 20 are spelled alike but for their case or accents; text has a collation."""
    kind = {"column": "VARCHAR COLLATE NOCASE.NOACCENT", "default": "VARCHAR", "both": "VARCHAR COLLATE NOCASE"}
    connection = duckdb.connect()
    connection.execute(f"CREATE TABLE visits (u {kind[request.param]}, c {kind[request.param]}, e ENUM('X', 'x'))")
    connection.execute(
        "INSERT INTO visits SELECT CASE WHEN i < 40 THEN 'p' || i ELSE 'P' || (i - 40) END, CASE WHEN i < 40 "
        "THEN 'Oslo' WHEN i < 50 THEN 'OSLO' ELSE 'Ösló' END, CASE WHEN i < 40 THEN 'X' ELSE 'x' END "
        "FROM range(60) t(i)"
    )
    if request.param != "column":
        connection.execute("SET default_collation = 'NOCASE.NOACCENT'")
    with connection:
        yield connection.table("visits")


PLACES = {"Oslo": 40, "OSLO": 10, "Ösló": 10}


@thinned(2)
def test_a_collation_makes_no_two_people_one(collated):
    for rule in ("error", "most_frequent", "hash", "first"):
        more = {"order_by": "c"} if rule == "first" else {}
        cells = engine_for(collated).cells(collated, Selection(unit=("u",), by=("c",), one_cell=rule, **more))
        assert dict(zip(cells.keys["c"], cells.counts.tolist(), strict=True)) == PLACES
    assert pkdp.count(collated, unit="u", attacker=ATTACKER, k=20).value == 60
    assert len(engine_for(collated).cells(collated, Selection(unit=(), by=("u",))).keys) == 60
    of_each = engine_for(collated).cells(collated, Selection(unit=("u",), by=("e",)))
    assert dict(zip(of_each.keys["e"], of_each.counts.tolist(), strict=True)) == {"X": 40, "x": 20}


@thinned(6)
@pytest.mark.parametrize(
    ("where", "people"),
    [
        ("c == 'OSLO'", 10),
        ("c != 'OSLO'", 50),
        ("c in ['OSLO', 'oslo']", 10),
        ("c not in ['Oslo', 'OSLO']", 10),
        ("c < 'a' and c > 'Oa'", 40),
        ("c.str.startswith('OS')", 10),
        ("e == 'X'", 40),
        ("u == c", 0),
    ],
)
def test_a_collation_chooses_no_rows(collated, where, people):
    tally = engine_for(collated).tally(collated, Selection(unit=("u",), where=from_query(where)))
    assert tally.satisfying == people


def test_what_comes_first_is_ordered_by_bytes(collated):
    rows = collated.project("'one' AS u, u AS name, c")
    first = engine_for(rows).cells(rows, Selection(unit=("u",), by=("c",), one_cell="first", order_by=("name",)))
    assert first.keys["c"].tolist() == ["OSLO"]  # P0 comes before p0


@pytest.mark.parametrize("rule", ["error", "most_frequent", "hash"])
def test_one_person_s_spelling_names_no_cell(connection, rule):
    connection.execute("CREATE TABLE rows (u INTEGER, c VARCHAR COLLATE NOCASE)")
    connection.execute("INSERT INTO rows SELECT i, CASE i WHEN 0 THEN 'SeCrEt' ELSE 'secret' END FROM range(100) t(i)")
    table = released(connection.table("rows"), one_cell=rule)
    assert table.to_dict("list") == {"c": ["secret"], "count": [99]}


@thinned(3)
@pytest.mark.parametrize(("kind", "end"), spread(2, TIMES, ["infinity", "-infinity"]))
def test_a_time_without_end_is_missing_and_never_fails(connection, kind, end):
    connection.execute("SET TimeZone = 'UTC'")
    rows = connection.sql(
        f"SELECT i AS u, CASE i WHEN 0 THEN '{end}' ELSE '2020-01-02' END::{kind} AS c FROM range(100) t(i)"
    )
    table = released(rows)
    assert table["count"].tolist() == [99]
    assert str(table["c"].iloc[0])[:10] == "2020-01-02"
    day = table["c"].iloc[0]
    declared = released(rows, domain=[day], undeclared="absent")
    assert declared["count"].tolist() == [99]
    everybody = released(connection.sql(f"SELECT i AS u, '{end}'::{kind} AS c FROM range(50) t(i)"))
    assert everybody["c"].isna().tolist() == [True]


def test_a_date_that_python_cannot_name_is_missing_in_other_engines_too():
    days = pl.Series([0] * 50 + [3_000_000] * 50, dtype=pl.Int32).cast(pl.Date)
    table = released(pl.DataFrame({"u": range(100), "c": days}))
    assert table["c"].tolist()[0] == datetime.date(1970, 1, 1)
    assert table["c"].isna().tolist() == [False, True]
    assert table["count"].tolist() == [50, 50]


@thinned(2)
@pytest.mark.parametrize("rule", ["error", "most_frequent", "hash"])
def test_the_session_s_time_zone_changes_nothing(connection, rule):
    said = []
    for zone in ("UTC", "Asia/Kolkata", "America/St_Johns"):
        connection.execute(f"SET TimeZone = '{zone}'")
        share = 1 if rule == "error" else 2
        rows = connection.sql(
            f"SELECT i // {share} AS u, TIMESTAMPTZ '2020-01-01 00:00:00+00' + to_hours((i % 2)::INTEGER) AS c, "
            "TIMESTAMPTZ '2020-01-01 00:00:00+00' + to_hours((i // 2)::INTEGER) AS v FROM range(200) t(i)"
        )
        said.append([released(rows, one_cell=rule).to_dict("list")])
        if rule == "hash":
            named = engine_for(rows).cells(rows, Selection(unit=("v",), by=("c",), one_cell="hash"))
            said[-1].append(dict(zip(named.keys["c"], named.counts.tolist(), strict=True)))
    assert said[0] == said[1] == said[2]


def test_a_type_s_own_values_are_not_told(connection):
    rows = connection.sql("SELECT 1 AS u, {'a': 'x'::ENUM('x', 'withheld')} AS c")
    with pytest.raises(ArgumentError, match="has type STRUCT, which cannot name cells") as error:
        released(rows)
    assert "withheld" not in str(error.value)
