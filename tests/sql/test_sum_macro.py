"""``pkdp_sum`` publishes what `pkdp_pipeline.sum` does, under the columns' own names, and refuses what it refuses."""

from __future__ import annotations

from contextlib import contextmanager

import duckdb
import pytest

import pkdp_pipeline as pkdp
from pkdp_pipeline.duckdb import install
from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.releases import public_table
from pkdp_pipeline.sql.spec import Spec, mechanism_of


@contextmanager
def installed():
    with duckdb.connect() as connection:
        connection.execute(
            "CREATE TABLE events AS SELECT i // 2 AS uid, ['US', 'NO', 'DE'][1 + (i // 2) % 3] AS country, "
            "(i % 5)::UTINYINT AS visits, 0.5 AS share FROM range(60) t(i)"
        )
        install(connection, unit="uid")
        yield connection


@pytest.fixture(autouse=True)
def _exact(monkeypatch):
    monkeypatch.setattr(public_table, "add_noise", lambda counts, *_: list(counts))


def test_sums_are_those_of_the_library(con):
    arguments = "by := 'Country', bounds := [0, 4], noise := 1.0, domain := ['NO', 'US', 'FR', 'DE']"
    rows = con.sql(f"FROM pkdp_sum('events', 'VISITS', {arguments})")
    assert (rows.columns, list(map(str, rows.types))) == (["country", "sum"], ["VARCHAR", "BIGINT"])
    frame = con.sql("FROM events").df().astype({"visits": "int64"})
    people = frame.groupby(["uid", "country"])["visits"].sum().clip(0, 4).groupby("country").sum()
    assert rows.fetchall() == [(cell, int(people.get(cell, 0))) for cell in ("NO", "US", "FR", "DE")]
    assert con.sql(f"FROM pkdp_sum('events', 'visits', {arguments})").fetchall() == rows.fetchall()
    (again,) = {row[0] for row in con.sql("SELECT id FROM pkdp_releases()").fetchall()}
    assert len(again) == 64
    total = con.sql("SELECT sum FROM pkdp_sum('events', NULL, rows := 'count', bounds := [0, 3], noise := 1.0)")
    assert total.fetchall() == [(60,)]
    few = con.sql(
        "FROM pkdp_sum('events', 'visits', bounds := [-1, 9], noise := 1.0, filter := 'visits < 2', by := ['country'], "
        "release_threshold := 100)"
    )
    assert few.fetchall() == []


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("'visits', bounds := [0, 5]", "a sum needs noise"),
        ("'visits', noise := 1.0", "needs bounds"),
        ("'visits', noise := 1.0, bounds := [5, 0]", "in order"),
        ("'share', noise := 1.0, bounds := [0, 5]", "whole numbers"),
        ("'nothing', noise := 1.0, bounds := [0, 5]", "nothing"),
        ("NULL, noise := 1.0, bounds := [0, 5]", "one of"),
        ("'visits', rows := 'count', noise := 1.0, bounds := [0, 5]", "one of"),
        ("NULL, rows := 'all', noise := 1.0, bounds := [0, 5]", "count"),
        ("'visits', by := 'country', noise := 1.0, bounds := [0, 5]", "release_threshold"),
        ("'visits', domain := ['US'], noise := 1.0, bounds := [0, 5]", "domain is about the cells"),
        ("'uid', noise := 1.0, bounds := [0, 5]", "names people"),
    ],
)
def test_bad_input_is_refused(con, arguments, words):
    with pytest.raises(duckdb.Error, match=words):
        con.sql(f"FROM pkdp_sum('events', {arguments})").fetchall()


def test_a_mechanism_is_made_of_its_steps():
    given = {"bounds": [0, 5], "noise": 0.5, "by": "x", "k": None}
    assert mechanism_of("sum", given) == pkdp.Sum((0, 5), pkdp.GeometricNoise(0.5))


def test_questions_about_counts_take_nothing_of_sums():
    with pytest.raises(ArgumentError, match="bounds is about a sum"):
        _ = Spec.read({"table": "events", "count": True, "bounds": [0, 5]}).mechanism
    with pytest.raises(ArgumentError, match="k is about a count"):
        _ = Spec.read({"table": "events", "sum": "visits", "bounds": [0, 5], "noise": 1.0, "k": 5}).mechanism
