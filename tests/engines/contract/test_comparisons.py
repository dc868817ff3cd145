"""A comparison has one answer: of every type of column, in every kind of frame, or the same refusal in all of them."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from functools import cache

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from adapters import Adapter, adapters, plain
from thorough import ALL, spread, thinned

from pkdp_pipeline.engines import Selection, engine_for
from pkdp_pipeline.errors import ArgumentError

BIG = 2**53
NOON = dt.datetime(2026, 1, 5, 12)
NANOS = 1_769_903_999_999_999_999
"""The last nanosecond of January 2026."""
DECIMALS = [Decimal("0.10"), Decimal("0.30"), None]
MOMENTS = [dt.datetime(2026, 1, 5, 23, minute, tzinfo=dt.UTC) for minute in (0, 30)]

INTS = pa.array([BIG, BIG + 1, -1, None], pa.int64())
UNSIGNED = pa.array([2**64 - 1, 2**64 - 2, 0, None], pa.uint64())
SMALL = pa.array([-128, 0, 127, None], pa.int8())
DECIMAL = pa.array(DECIMALS, pa.decimal128(10, 2))
WIDE = pa.array([Decimal("9" * 36 + ".1"), Decimal("9" * 36 + ".2")], pa.decimal128(38, 1))
SINGLE = pa.array([0.1, 0.3, float("nan"), None], pa.float32())
DOUBLE = pa.array([0.1 + 0.2, 0.3, -0.0, float("nan"), float("inf"), None])
DAYS = pa.array([dt.date(2026, 1, 5), dt.date(2026, 1, 6), None])
TEXT = pa.array(["low", "high", "é", "Z", None])
CATEGORIES = pa.DictionaryArray.from_arrays(pa.array([0, 1, None], pa.int8()), pa.array(["low", "high"]), ordered=True)
FLAGS = pa.array([True, False, None])
FINE = pa.array([NANOS, NANOS + 1, -1, None], pa.timestamp("ns"))


def instants(unit, zone):
    return pa.array(MOMENTS, pa.timestamp(unit, zone))


#: A column, what is asked of it, and how many rows answer yes; or words of the refusal.
ANSWERS = [
    (INTS, {f"x == {BIG + 1}": 1, f"x <= {BIG}": 2, f"x == {BIG}.0": 1, "x > 0.5": 2, "x != 0.5": 4, "x < 1e300": 3}),
    (INTS, {"x in [-1, 99999999999999999999]": 1, "x not in [99999999999999999999, 1]": 4, "not x < 1e300": 1}),
    (UNSIGNED, {f"x == {2**64 - 1}": 1, f"x in [{2**64 - 1}, 7]": 1, "x > -1": 3, f"x < {2**64 - 1}": 2}),
    (SMALL, {"x < 300": 3, "x > 127": 0, "x >= 126.5": 1, "x == 0.5": 0, "x in [0, 300]": 1, "x <= -128.5": 0}),
    (DECIMAL, {"x == 0.1": 1, "x >= 0.3": 1, "x > 0.2999": 1, "x < 1": 2, "x == 0.1000001": 0, "x != 0.3": 2}),
    (DECIMAL, {"x in [0.1, 7]": 1, "x < 0.10000001": 1, "x <= 1e30": 2, "not x > -1e30": 1}),
    (WIDE, {f"x > {10**36 - 1}": 2, f"x < {10**36}": 2, f"x == {10**36}": 0, "x > 0.5": 2}),
    (SINGLE, {"x == 0.1": 1, "x > 0.1": 1, "x < 0.1": 0, "x <= 0.1": 1, "x in [0.1, 0.3]": 2, "x != 0.1": 3}),
    (SINGLE, {"x == 1e39": "beyond the range", "x.isna()": 2, "not x >= 0.1": 2}),
    (DOUBLE, {"x == 0.3": 1, "x == 0": 1, "x > 1e308": 1, f"x < {BIG + 1}": 3, f"x == {10**400}": "beyond the range"}),
    (
        DAYS,
        {
            "x >= '2026-01-06'": 1,
            "x == '2026-01-05'": 1,
            "x > '2026-01-05 12:00'": "cannot equal",
            "x > '2026'": "cannot",
        },
    ),
    (DAYS, {"x == 20260105": "compares number with time", "x.dt.day == 5": 1, "x == '2026-01-05+01:00'": "cannot"}),
    (pa.array([NOON, None], pa.timestamp("us")), {"x <= '2026-01-05'": 0, "x == '2026-01-05 12:00'": 1}),
    (
        pa.array([NOON, None], pa.timestamp("s")),
        {"x > '2026-01-05 11:59:59.5'": 1, "x < '2026-01-05T12:00:00.000000001'": 1},
    ),
    (
        pa.array([NOON, None], pa.timestamp("ms")),
        {"x == '2026-01-05 12:00:00.0005'": 0, "x in ['2026-01-05 12:00']": 1},
    ),
    (
        pa.array([NOON, None], pa.timestamp("us")),
        {"x > '2026-01-05 12:00:00+01:00'": "cannot equal", "x > 'today'": "cannot"},
    ),
    (
        FINE,
        {
            "x < '2026-02-01'": 2,
            "x == '2026-01-31 23:59:59.999999999'": 1,
            "x > '1500-01-01'": 3,
            "x < '1500-01-01'": 0,
        },
    ),
    (FINE, {"x.dt.month == 1": 1, "x.dt.year == 1969": 1, "x.dt.day == 31": 2, "x.dt.day_of_week == 2": 1}),
    (FINE, {"x in ['1969-12-31 23:59:59.999999999', '2026-02-01']": 2, "not x.dt.month == 12": 3}),
    *(
        (
            instants(unit, zone),
            {"x >= '2026-01-06 00:30:00+01:00'": 1, "x in ['2026-01-05 23:00Z', '2020-01-01 00:00Z']": 1},
        )
        for unit in ("s", "ms", "us", "ns")
        for zone in ("UTC", "Europe/Oslo", "+02:00")
    ),
    (instants("us", "UTC"), {"x > '2026-01-05 23:00:00'": "offset", "x.dt.year == 2026": "in every time zone"}),
    (instants("us", "UTC"), {"x > '2026-01-05'": "offset", "x > '9999-12-31 23:59:59-10:00'": "year"}),
    (TEXT, {"x > 'i'": 2, "x > 'Z'": 3, "x == 'low'": 1, "x in ['low', 'é']": 2, "x == 1": "number with text"}),
    (TEXT, {"x > '2026-01-01'": "ordered by its letters", "x": "must be boolean", "x == True": "must be boolean"}),
    (TEXT, {"x >= '65'": "below a number", "x < 6": "below a number", "x > ' -.5e3'": "below a number", "x > '08'": 4}),
    (
        CATEGORIES,
        {"x > 'i'": 1, "x > 'high'": 1, "x == 'low'": 1, "x in ['low', 'none']": 1, "x == 'none'": 0, "x > 'low'": 0},
    ),
    (CATEGORIES, {"x.str.startswith('l')": 1, "not x == 'low'": 2, "x == 1": "number with text"}),
    (FLAGS, {"x": 1, "not x": 2, "x == False": 1, "x > False": "orders column", "x == 1": "boolean with number"}),
    (pa.array([b"a", None]), {"x == 'a'": "no constant", "x.isna()": 1, "x > 1": "no constant"}),
    (pa.array([dt.time(10), None]), {"x >= '10:00:00'": "no constant", "x.notna()": 1}),
    (pa.nulls(3), {"x > 3": 0, "x == 'a'": 0, "not x == 'a'": 3, "x.isna()": 3, "x.dt.year == 1": 0, "x": 0}),
]
#: Two columns, what is asked of them, and how many rows answer yes.
PAIRS = [
    (INTS, pa.array([BIG, BIG, 0, 0], pa.int64()), {"x == y": 1, "x > y": 1, "x != y": 3}),
    (SMALL, pa.array([-128.0, 0.5, float("nan"), 1]), {"x == y": 1, "x < y": 1, "not x >= y": 3}),
    (SINGLE, pa.array([0.1, 0.3, 1, 1]), {"x == y": 0, "x < y": 0, "x > y": 2}),
    (UNSIGNED, pa.array([-1, -2, 0, 0], pa.int64()), {"x == y": 1, "x > y": 2}),
    (DECIMAL, pa.array([Decimal("0.1"), Decimal("0.301"), None]), {"x == y": 1, "x < y": 1}),
    (DECIMAL, pa.array([0.1, 0.3, 1]), {"x == y": "one alone holds decimals"}),
    (DECIMAL, pa.array([1, 0, 1]), {"x < y": "one alone holds decimals"}),
    (TEXT, pa.array(["low", "low", "e", "a", None]).dictionary_encode(), {"x == y": 1, "x < y": 2}),
    (DAYS, pa.array([dt.datetime(2026, 1, 5), dt.datetime(2026, 1, 6, 1), None]), {"x == y": 1, "x < y": 1}),
    (FINE, pa.array([NOON] * 4, pa.timestamp("us")), {"x > y": "one alone holds nanoseconds"}),
    (instants("us", "UTC"), instants("ms", "Europe/Oslo"), {"x == y": 2, "x < y": 0}),
    (FLAGS, pa.array([True, True, None]), {"x == y": 1, "x < y": "orders column"}),
    (DAYS, TEXT.slice(0, 3), {"x == y": "text with time"}),
]


def pandas_of_objects(table):
    """Return a frame of pandas' own dtypes and of Python objects, in which whole numbers stay whole."""
    whole = {pa.int64(): pd.Int64Dtype(), pa.int8(): pd.Int8Dtype(), pa.uint64(): pd.UInt64Dtype()}
    return table.to_pandas(types_mapper=whole.get)


def relation_elsewhere(table):
    """Return a relation whose session has another time zone."""
    return elsewhere().from_arrow(table)


@cache
def elsewhere():
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'America/New_York'")
    return connection


DOORS = [
    Adapter(name="pandas of objects", frame=plain(pandas_of_objects)),
    Adapter(name="pandas of Arrow", frame=plain(lambda table: table.to_pandas(types_mapper=pd.ArrowDtype))),
    Adapter(name="relation elsewhere", frame=plain(relation_elsewhere)),
    *(
        each
        for each in adapters()
        if each.name in ("polars", "polars lazy", "pyarrow", "duckdb parquet", "spark", "ibis")
    ),
]
EVERY = [pytest.param(door, marks=door.marks, id=door.name) for door in DOORS]
#: What some frames cannot hold.
UNHELD = {
    "spark": lambda kind: kind in (pa.uint64(), pa.null()) or (pa.types.is_timestamp(kind) and kind.unit == "ns"),
    "ibis": lambda kind: (
        kind == pa.null() or (pa.types.is_timestamp(kind) and kind.tz is not None and kind.unit == "ns")
    ),
}
if duckdb.__version__.startswith("1."):
    UNHELD |= dict.fromkeys(("relation elsewhere", "duckdb parquet"), UNHELD["ibis"])


def unheld(door, *columns):
    return any(UNHELD.get(door.name, lambda kind: False)(column.type) for column in columns)


def answers(frame, queries):
    return {query: answer(frame, query) for query in queries}


def answer(frame, query):
    try:
        return engine_for(frame).tally(frame, Selection(unit=("id",), where=query)).satisfying
    except ArgumentError as error:
        return str(error)


def agree(answered, wanted):
    return answered == wanted if isinstance(wanted, int) else wanted in str(answered)


def differing(table, queries, door):
    with door.frame(table) as frame:
        answered = answers(frame, queries)
    return {query: answered[query] for query, wanted in queries.items() if not agree(answered[query], wanted)}


@pytest.mark.parametrize(("door", "part"), spread(4, EVERY, range(4)))
def test_a_constant_takes_the_type_of_the_column(door, part):
    wrong = []
    # A query is a job of Spark: there a third of the columns will do.
    for column, queries in ANSWERS[part :: 12 if door.name == "spark" and not ALL else 4]:
        table = pa.table({"id": np.arange(len(column)), "x": column})
        if not unheld(door, column) and (differs := differing(table, queries, door)):
            wrong.append((str(column.type), differs))
    assert not wrong


@pytest.mark.parametrize("door", EVERY)
def test_columns_are_compared_alike_or_refused_alike(door):
    wrong = []
    for column, other, queries in PAIRS:
        table = pa.table({"id": np.arange(len(column)), "x": column, "y": other})
        if not unheld(door, column, other) and (differs := differing(table, queries, door)):
            wrong.append((str(column.type), str(other.type), differs))
    assert not wrong


def firsts(frame):
    """Return in how many first rows of people, in the order of x, each cell is."""
    selection = Selection(unit=("id",), by=("c",), one_cell="first", order_by=("x",))
    try:
        cells = engine_for(frame).cells(frame, selection)
    except ArgumentError as error:
        return str(error)
    return dict(
        zip(cells.keys["c"].astype("object").where(cells.keys["c"].notna(), None), cells.counts.tolist(), strict=True)
    )


LATER = dt.datetime(2026, 10, 25, 1, 30, tzinfo=dt.UTC)
#: The smaller and the greater value, as a column.
ORDERED = {
    "levels": pa.DictionaryArray.from_arrays(pa.array([1, 0]), pa.array(["z", "b"]), ordered=True),
    "text by code points": pa.array(["Z", "a"]),
    "text by all of them": pa.array(["\uffff", "\U0001d538"]),
    "digits": pa.array(["10", "9"]),
    "missing last": pa.array(["z", None]),
    "NaN last": pa.array([float("inf"), float("nan")]),
    "infinity": pa.array([float("-inf"), 0.0]),
    "whole numbers": pa.array([BIG, BIG + 1], pa.int64()),
    "unsigned": pa.array([2**63, 2**64 - 1], pa.uint64()),
    "booleans": pa.array([False, True]),
    "decimals": pa.array([Decimal("9.5"), Decimal("10.0")]),
    "nanoseconds": pa.array([-2, -1], pa.timestamp("ns")),
    "instants": pa.array([LATER - dt.timedelta(hours=1), LATER], pa.timestamp("us", "Europe/Berlin")),
    "dates": pa.array([dt.date(1969, 12, 31), dt.date(1970, 1, 1)]),
}


@pytest.mark.parametrize("door", EVERY)
def test_what_comes_first_does_so_everywhere(door):
    wrong = {}
    for name, values in ORDERED.items():
        rows = pa.table({"id": [1, 1], "c": ["later", "first"], "x": values.take(pa.array([1, 0]))})
        if unheld(door, values):
            continue
        with door.frame(rows) as frame:
            counts = firsts(frame)
        if counts != {"first": 1}:
            wrong[name] = counts
    assert not wrong


@thinned(4)
@pytest.mark.parametrize("door", EVERY)
@pytest.mark.parametrize(
    "cells",
    [
        pa.array(["Z", "a", None]),
        pa.array(["\uffff", "\U0001d538", None]),
        pa.DictionaryArray.from_arrays(pa.array([1, 0, None]), pa.array(["z", "b"]), ordered=True),
    ],
)
def test_of_equals_the_smallest_cell_is_first_and_a_missing_one_last(door, cells):
    rows = pa.table({"id": [1, 1, 1, 2, 2], "c": cells.take(pa.array([2, 1, 0, 2, 1])), "x": [0] * 5})
    first, second = cells.slice(0, 2).to_pylist()
    with door.frame(rows) as frame:
        assert firsts(frame) == {first: 1, second: 1}


def test_an_enum_is_ordered_as_text():
    with duckdb.connect() as connection:
        connection.execute("CREATE TYPE size AS ENUM ('small', 'large')")
        connection.execute("CREATE TABLE rows (id INTEGER, c VARCHAR, x size)")
        connection.execute("INSERT INTO rows VALUES (1, 'b', 'small'), (1, 'a', 'large')")
        frame = connection.table("rows")
        assert str(frame.types[2]).startswith("ENUM(")
        assert firsts(frame) == {"a": 1}
        queries = {"x > 'large'": 1, "x > 'm'": 1, "x == 'large'": 1, "x in ['large', 'none']": 1, "x == 'none'": 0}
        assert answers(frame, queries) == queries


@pytest.mark.ibis
@pytest.mark.postgres
@pytest.mark.xdist_group("postgres")
def test_postgres_orders_text_by_code_points_whatever_its_language_says(postgres_url):
    import ibis
    import psycopg

    kind = 'text COLLATE "en-x-icu"'
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(f"CREATE TABLE rows (id int, x {kind}, c {kind})")
        connection.execute("INSERT INTO rows VALUES (1, 'a', 'a'), (1, 'Z', 'Z'), (2, 'é', NULL), (2, 'f', 'b\\c')")
    backend = ibis.connect(postgres_url)
    try:
        frame = backend.table("rows")
        queries = {
            "x > 'a'": 1,
            "x < 'a'": 1,
            "x <= 'Z'": 1,
            "x < c": 0,
            "not x > 'Z'": 1,
            "x > '2026-01-01'": "letters",
        }
        answered = {query: answer(frame, query) for query in queries}
        assert {query: wanted for query, wanted in queries.items() if not agree(answered[query], wanted)} == {}
        assert firsts(frame) == {"Z": 1, "b\\c": 1}
        tied = frame.mutate(x=1)
        assert firsts(tied) == {"Z": 1, "b\\c": 1}
    finally:
        backend.disconnect()
