"""Keys that one row could spoil: collations, times without end, sessions in other zones, types with values in them."""

from __future__ import annotations

import datetime

import duckdb
import polars as pl
import pytest

import pkdp_pipeline as pkdp
from pkdp_pipeline.engines import Selection, engine_for
from pkdp_pipeline.errors import ArgumentError

ATTACKER = pkdp.AttackerModel(p_max=0.1)
TIMES = ["DATE", "TIMESTAMP", "TIMESTAMPTZ", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS"]


@pytest.fixture
def connection():
    with duckdb.connect() as opened:
        yield opened


def released(frame, **more):
    return pkdp.histogram(frame, "c", unit="u", attacker=ATTACKER, k=20, **more).table


@pytest.mark.parametrize("rule", ["error", "most_frequent", "hash"])
def test_one_person_s_spelling_names_no_cell(connection, rule):
    connection.execute("CREATE TABLE rows (u INTEGER, c VARCHAR COLLATE NOCASE)")
    connection.execute("INSERT INTO rows SELECT i, CASE i WHEN 0 THEN 'SeCrEt' ELSE 'secret' END FROM range(100) t(i)")
    table = released(connection.table("rows"), one_cell=rule)
    assert table.to_dict("list") == {"c": ["secret"], "count": [99]}


@pytest.mark.parametrize("kind", TIMES)
@pytest.mark.parametrize("end", ["infinity", "-infinity"])
def test_a_time_without_end_is_missing_and_never_fails(connection, kind, end):
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
