"""Every type of column through every door: the same counts everywhere, or the same refusal."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from column_types import COLUMNS, DAYS, NO_UNIT, TYPES, coded, page
from doors import ATTACKER, arrow_frame, doors
from thorough import spread, thinned

import pkdp_pipeline as pkdp

EVERY = [pytest.param(door, marks=door.marks, id=door.name) for door in doors()]


def spared(turn):
    """Return all doors, of which half of those that take longer are slow; another half at the next turn."""
    slow = [door for door in doors() if door.slow]
    later = slow[turn % 2 :: 2]
    return [
        pytest.param(door, marks=[*door.marks, *([pytest.mark.slow] if door in later else [])], id=door.name)
        for door in doors()
    ]


ROWS = pa.table(
    {"person": [f"p{i}" for i in range(7)], "city": ["a", "a", "b", "b", "c", None, None], "kept": [1] * 3 + [2] * 4}
)


@pytest.mark.parametrize("door", EVERY)
def test_every_door_counts_people_by_cell(door):
    assert door.count(ROWS, by="city", unit="person", k=2) == {"a": 2, "b": 2, None: 2}


@thinned(3)
@pytest.mark.parametrize("door", spared(0))
def test_every_door_counts_people_by_several_columns(door):
    assert door.count(ROWS, by=["city", "kept"], unit="person", k=2) == {("a", 1): 2, (None, 2): 2}


@thinned(3)
@pytest.mark.parametrize("door", spared(1))
def test_every_door_counts_the_people_chosen(door):
    assert door.count(ROWS, by="kept", unit="person", k=2, where="city in ['a', 'b']", sql="city IN ('a', 'b')") == {
        1: 3
    }


@thinned(3)
@pytest.mark.parametrize("door", spared(0))
def test_every_door_drops_rows_without_a_unit(door):
    kept = {"where": "kept == 1", "sql": "kept = 1"}
    assert door.count(ROWS, by="kept", unit="city", k=2, missing_unit="drop", **kept) == {1: 2}


@pytest.mark.parametrize("door", spared(1))
def test_every_door_refuses_by_an_error_of_ours(door):
    with pytest.raises(pkdp.errors.PkdpError, match="nothing"):
        door.count(ROWS, by="nothing", unit="person", k=2)


def cases():
    """Return every type with the doors of its frames: a fifth of them, of doors that take longer a twentieth.

    The others are slow.
    """
    tried = [door for door in doors() if any(door.name in names for names in COLUMNS.values())]
    return [
        pytest.param(
            door,
            column,
            id=f"{door.name}-{column.name}-{column.column.type}",
            marks=[*door.marks, *([pytest.mark.slow] if (place + number) % (20 if door.slow else 5) else [])],
        )
        for place, column in enumerate(TYPES)
        for number, door in enumerate(tried)
        if column.is_held(door.name)
    ]


@thinned(6)
@pytest.mark.parametrize(("door", "column"), cases())
def test_a_type_means_the_same_through_every_door(door, column):
    values = column.column
    table = pa.table({"x": values, "person": range(len(values)), "all": ["k"] * len(values)})
    key, unit = column.of(door.name)
    for answer, question in (
        (key, {"by": "x", "unit": "person"}),
        ({"k": unit} if unit else {}, {"by": "all", "unit": "x", "missing_unit": "drop"}),
    ):
        refused = key if question["by"] == "x" else unit
        if isinstance(refused, str):
            with pytest.raises(pkdp.errors.PkdpError, match=refused) as caught:
                door.count(table, k=2, **question)
            assert isinstance(caught.value, (pkdp.ArgumentError, pkdp.ConfigError, pkdp.InputCheckError))
            assert "connection is open" not in str(caught.value)
        else:
            assert door.count(table, k=2, **question) == answer


def test_the_page_shows_what_is_tested():
    text = (Path(__file__).parents[3] / "docs" / "engines.md").read_text(encoding="utf-8")
    assert page() in text


LARGE = [10**30 + number for number in (0, 0, 1, 1, 2)]


@thinned(2)
@pytest.mark.parametrize(
    ("kind", "rule"), spread(2, [pl.Int128, pl.UInt128], ["error", "hash", "most_frequent", "first"])
)
def test_whole_numbers_of_128_bits_are_units_of_polars(kind, rule):
    frame = pl.DataFrame({"x": pl.Series([*LARGE, None, None], dtype=kind), "c": ["k"] * 7, "u": range(7)})
    terms = {"k": 2, "attacker": ATTACKER, "missing_unit": "drop", "one_cell": rule}
    terms |= {"order_by": "u"} if rule == "first" else {}
    for rows in (frame, frame.lazy()):
        assert pkdp.histogram(rows, "c", unit="x", **terms).table["count"].tolist() == [3]
        assert pkdp.histogram(rows, "c", unit=["x", "c"], **terms).table["count"].tolist() == [3]
        with pytest.raises(pkdp.ArgumentError, match="cannot name cells"):
            pkdp.histogram(rows, "x", unit="u", k=2, attacker=ATTACKER)


def test_whole_numbers_of_128_bits_are_units_of_duckdb_and_refused_where_a_file_makes_reals_of_them(tmp_path):
    with duckdb.connect() as connection:
        numbers = ", ".join(f"({number})" for number in LARGE)
        connection.execute(f"CREATE TABLE people AS SELECT x::HUGEINT AS x, 'k' AS c FROM (VALUES {numbers}) t(x)")
        terms = {"unit": "x", "k": 2, "attacker": ATTACKER}
        assert pkdp.histogram(connection.table("people"), "c", **terms).table["count"].tolist() == [3]
        connection.execute(f"COPY people TO '{tmp_path}/people.parquet'")
        with pytest.raises(pkdp.InputCheckError, match="kept as reals"):
            pkdp.histogram(connection.read_parquet(f"{tmp_path}/people.parquet"), "c", **terms)


def test_a_value_in_a_sparse_column_of_pandas_is_a_unit_and_no_key():
    frame = pd.DataFrame({"x": pd.arrays.SparseArray([0, 0, 1, 1, 2]), "c": "k", "u": range(5)})
    assert pkdp.histogram(frame, "c", unit="x", k=2, attacker=ATTACKER).table["count"].tolist() == [3]
    with pytest.raises(pkdp.ArgumentError, match=r"sparse\.to_dense"):
        pkdp.histogram(frame, "x", unit="u", k=2, attacker=ATTACKER)


OBJECTS = {
    "bytes": [b"a", b"b"],
    "whole numbers and text": [1, "1"],
    "dates and times": [dt.date(2020, 1, 1), dt.datetime(2020, 1, 2)],
    "dates and text": [dt.date(2020, 1, 1), "2020-01-02"],
}


@pytest.mark.parametrize("values", OBJECTS.values(), ids=OBJECTS)
def test_categories_are_keys_of_pandas_where_their_values_are(values):
    plain = pd.DataFrame({"x": pd.Series(values * 3, dtype=object), "u": range(6)})
    for frame in (plain, plain.astype({"x": "category"})):
        for ask in ({}, {"where": "u > 100"}):
            with pytest.raises(pkdp.ArgumentError, match="does not hold text alone"):
                pkdp.histogram(frame, "x", unit="u", k=2, attacker=ATTACKER, **ask)


@pytest.mark.parametrize("kind", [object, "category"])
@pytest.mark.parametrize("terms", [{}, {"one_cell": "hash"}, {"domain": [*DAYS, None]}], ids=str)
def test_objects_of_pandas_that_are_dates_alone_are_counted_as_dates(kind, terms):
    days, people = [*DAYS, DAYS[0], None, None, DAYS[2]], [1, 2, 3, 4, 5, 6, 2 if terms.get("one_cell") else 7]
    frame = pd.DataFrame({"x": pd.Series(days, dtype=object).astype(kind), "u": people})
    table, terms = pa.table({"x": pa.array(days), "u": people}), {"k": 2} | terms
    for by in ("x", pkdp.bins("x", "month"))[: 1 if "domain" in terms else 2]:
        question = {**terms, "unit": "u", "attacker": ATTACKER}
        assert pkdp.histogram(frame, by, **question).id == pkdp.histogram(duckdb.from_arrow(table), by, **question).id


def test_the_keys_alone_say_whether_objects_of_pandas_are_dates():
    nothing = {"x": [None] * 4, "u": [1, 2, 3, 4]}
    for rows in (nothing, nothing | {"x": [*nothing["x"][:3], DAYS[0]]}):
        frame = pd.DataFrame(rows).astype({"x": object})
        release = pkdp.histogram(frame, "x", unit="u", k=2, attacker=ATTACKER)
        assert release.table["x"].dtype == "str"
        declared = pkdp.histogram(frame, "x", unit="u", k=2, attacker=ATTACKER, domain=[DAYS[0], None])
        assert declared.table["count"].fillna(0).tolist() == [0, 4 if rows is nothing else 3]


def test_a_missing_value_in_a_dictionary_is_a_missing_unit():
    people = coded(pa.array(["a", "b", None]), [0, 1, 2, 2])
    table = pa.table({"x": people, "c": ["k"] * 4})
    for frame in (table, arrow_frame(table), pl.from_arrow(table), duckdb.from_arrow(table)):
        with pytest.raises(pkdp.InputCheckError, match="missing_unit"):
            pkdp.histogram(frame, "c", unit="x", k=2, attacker=ATTACKER)


def test_texts_of_polars_from_several_string_caches_are_one():
    parts = [pl.Series("x", names, dtype=pl.Categorical) for names in (["a", "b", "c"], ["c", "b", "a"])]
    frame = pl.DataFrame({"x": pl.concat(parts), "u": range(6)})
    for rows in (frame, frame.lazy(), frame.to_arrow(), frame.to_pandas()):
        assert pkdp.histogram(rows, "x", unit="u", k=2, attacker=ATTACKER).table["count"].tolist() == [2, 2, 2]
        assert pkdp.count(rows, unit="x", k=2, attacker=ATTACKER).value == 3


@pytest.mark.parametrize("door", [door for door in doors() if not door.marks], ids=lambda door: door.name)
def test_columns_whose_names_differ_in_case_are_refused_as_unit_and_key(door):
    if door.name in ("macros", "gate"):
        return  # a table cannot have them
    table = pa.table({"g": ["a", "b"], "G": ["b", "a"], "person": [1, 2]})
    for ask in ({"by": "g", "unit": "person"}, {"by": "G", "unit": "person"}, {"by": "person", "unit": "g"}):
        with pytest.raises((pkdp.ArgumentError, pkdp.ConfigError), match="capitals and small letters"):
            door.count(table, k=2, **ask)


@thinned(2)
@pytest.mark.parametrize("door", [door for door in doors() if not door.marks], ids=lambda door: door.name)
def test_a_list_names_no_unit_also_where_there_is_no_row(door):
    table = pa.table({"x": pa.array([], pa.list_(pa.int64())), "all": pa.array([], pa.string())})
    if door.name in ("pandas", "CSV", "Excel"):
        return  # have objects, of no type, and texts
    with pytest.raises((pkdp.ArgumentError, pkdp.ConfigError), match=NO_UNIT):
        door.count(table, by="all", unit="x", k=2)
