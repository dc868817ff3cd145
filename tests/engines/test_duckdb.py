"""Both kinds of frame against a slow count in plain Python, and the errors that offer the fix."""

from __future__ import annotations

import os
import warnings
from collections import Counter
from dataclasses import replace
from importlib.util import find_spec

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from drawn import draw
from hypothesis import given, settings
from hypothesis import strategies as st
from thorough import examples, few, spread, thinned

from pkdp_pipeline import engines as engine_question
from pkdp_pipeline.engines import ENGINES, Selection, engine_for, rows
from pkdp_pipeline.engines import guarded as told_by_duckdb
from pkdp_pipeline.engines.relation_engine import predicate_sql
from pkdp_pipeline.errors import ArgumentError, ConfigError, TemporaryError
from pkdp_pipeline.model.columns import Bins
from pkdp_pipeline.model.keys import canonical_key
from pkdp_pipeline.model.predicate import from_query

RULES = ("error", "most_frequent", "first", "hash")
TEXTS = st.sampled_from([None, "", "a", "b", "é", "a'b"])
WHOLE = st.sampled_from([None, -1, 0, 7, 2**40])
ROWS = st.lists(st.tuples(TEXTS, WHOLE, TEXTS, WHOLE, st.sampled_from([None, 1, 2])), max_size=25)


def frame_of(rows) -> pd.DataFrame:
    frame = pd.DataFrame(rows, columns=["p", "q", "c 1", 'd"2', "o"])
    return frame.astype({"p": "str", "q": "Int64", "c 1": "str", 'd"2': "Int64", "o": "Int64"})


def relation_of(connection, frame):
    connection.register("frame", frame)
    return connection.sql('SELECT p, q::BIGINT AS q, "c 1", "d""2"::BIGINT AS "d""2", o::BIGINT AS o FROM frame')


def last(values):
    return tuple((value is None, 0 if value is None else value) for value in values)


def chosen(person, own_rows, one_cell):
    """Return which of a unit's own cells a rule chooses; of equals the smallest, or the one that a hash draws."""
    often = Counter(cell for cell, _ in own_rows)

    def rank(cell):
        drawn = draw(person, cell)
        if one_cell == "most_frequent":
            return -often[cell], drawn
        if one_cell == "first":
            return min(last([order]) for other, order in own_rows if other == cell)
        return drawn

    return min(often, key=lambda cell: (rank(cell) if one_cell != "error" else 0, last(cell)))


def counted(rows, unit, by, one_cell):
    """Count units per cell the slow way; None where a unit has several cells and no rule chooses."""
    people = {}
    missing = False
    for row in rows:
        named = dict(zip(["p", "q", "c 1", 'd"2', "o"], row, strict=True))
        person = tuple(named[column] for column in unit)
        if None in person:
            missing = True
            continue
        people.setdefault(person, []).append((tuple(named[column] for column in by), named["o"]))
    counts = Counter()
    for person, own_rows in people.items():
        cells = [cell for cell, _ in own_rows]
        if one_cell == "error" and len(set(cells)) > 1:
            return None, missing
        counts[chosen(person, own_rows, one_cell)] += 1
    return dict(counts), missing


def answered(frame, question):
    cells = engine_for(frame).cells(frame, question)
    keys = [tuple(map(canonical_key, key)) for key in cells.keys.itertuples(index=False)]
    assert len(set(keys)) == len(keys)
    return (None if cells.several_cells else dict(zip(keys, cells.counts.tolist(), strict=True))), cells.missing_unit


@thinned(3)
@pytest.mark.parametrize(
    ("one_cell", "by", "unit"),
    spread(5, RULES, [("c 1",), ('d"2',), ("c 1", 'd"2')], [("p",), ("q",), ("p", "q")]),
)
@examples(quick=1, full=30)
def test_units_per_cell_are_what_a_slow_count_gives(unit, by, one_cell, examples):
    question = Selection(unit=unit, by=by, one_cell=one_cell, order_by=("o",) if one_cell == "first" else ())

    @settings(max_examples=examples, deadline=None)
    @given(rows=ROWS)
    def check(rows):
        expected = counted(rows, unit, by, one_cell)
        frame = frame_of(rows)
        assert answered(frame, question) == expected
        assert answered(relation_of(connection, frame), question) == expected

    with duckdb.connect() as connection:
        check()


@settings(max_examples=few(20), deadline=None)
@given(rows=ROWS)
def test_a_tally_counts_units_with_any_satisfying_row(rows):
    frame = frame_of(rows)
    people = {(p, q) for p, q, *_ in rows if p is not None and q is not None}
    hits = {(p, q) for p, q, c, *_ in rows if p is not None and q is not None and c == "a"}
    question = Selection(unit=("p", "q"), where="`c 1` == 'a'")
    with duckdb.connect() as connection:
        for given_frame in (frame, relation_of(connection, frame)):
            tally = engine_for(given_frame).tally(given_frame, question)
            assert (tally.satisfying, tally.population) == (len(hits), len(people))
            assert tally.missing_unit == any(p is None or q is None for p, q, *_ in rows)


@pytest.mark.parametrize("kind", ["pandas", "relation"])
def test_each_row_is_a_unit_of_its_own(kind):
    frame = frame_of([("a", 1, "x", 1, 1), ("a", 1, "x", 1, 1), (None, None, "y", 1, 1)])
    with duckdb.connect() as connection:
        source = frame if kind == "pandas" else relation_of(connection, frame)
        assert answered(source, Selection(unit=(), by=("c 1",))) == ({("x",): 2, ("y",): 1}, False)
        tally = engine_for(source).tally(source, Selection(unit=(), where="`c 1` == 'x'"))
        assert (tally.satisfying, tally.population, tally.missing_unit) == (2, 3, False)


DTYPES = {
    "str": pd.Series(["a", "b", None, "a"], dtype="str"),
    "string": pd.Series(["a", "b", None, "a"], dtype="string"),
    "object": pd.Series(["a", "b", None, "a"], dtype=object),
    "category": pd.Series(["a", "b", None, "a"]).astype("category"),
    "int8": pd.Series([1, -2, 3, 1], dtype="int8"),
    "uint64": pd.Series([1, 2**64 - 1, 3, 1], dtype="uint64"),
    "wide int64": pd.Series([1, -(2**62), 2**62, 1]),
    "Int64": pd.Series([1, 2, None, 1], dtype="Int64"),
    "int category": pd.Series([1, 2, None, 1], dtype="Int64").astype("category"),
    "float": pd.Series([1.5, 2.0, np.nan, 1.5]),
    "bool": pd.Series([True, False, True, True]),
    "boolean": pd.Series([True, False, None, True], dtype="boolean"),
    "timestamp": pd.to_datetime(pd.Series(["2020-01-01", "2021-05-06", None, "2020-01-01"])),
    "instant": pd.to_datetime(pd.Series(["2020-01-01", "2021-05-06", None, "2020-01-01"])).dt.tz_localize("UTC"),
    "arrow text": pd.Series(["a", "b", None, "a"], dtype="string[pyarrow]"),
    "arrow date": pd.Series(pd.to_datetime(["2020-01-01", "2021-05-06", None, "2020-01-01"])).astype("date32[pyarrow]"),
    "arrow int": pd.Series([1, 2, None, 1], dtype="int64[pyarrow]"),
}


@thinned(4)
@pytest.mark.parametrize("name", DTYPES)
def test_any_dtype_can_name_cells_and_units(name):
    column = DTYPES[name]
    expected = Counter(canonical_key(value) for value in column)
    frame = pd.DataFrame({"cell": column, "unit": range(4), "same": column})
    cells, missing = answered(frame, Selection(unit=("unit",), by=("cell",)))
    assert cells == {(key,): n for key, n in expected.items()}
    assert not missing
    by_itself, missing = answered(frame, Selection(unit=("same",), by=("cell",)))
    assert by_itself == {(key,): 1 for key in expected if key is not None}
    assert missing == (None in expected)
    for rule in ("most_frequent", "hash"):
        assert answered(frame, Selection(unit=("same",), by=("cell",), one_cell=rule)) == (by_itself, missing)


def test_missing_values_of_every_spelling_are_one_cell_and_zeros_are_one_cell():
    frame = pd.DataFrame({"u": range(4), "f": pd.Series([np.nan, None, -0.0, 0.0], dtype="float64")})
    assert answered(frame, Selection(unit=("u",), by=("f",)))[0] == {(None,): 2, (0.0,): 2}
    with duckdb.connect() as connection:
        relation = connection.sql(
            "SELECT * FROM (VALUES (1, 'nan'::DOUBLE), (2, NULL), (3, -0.0::DOUBLE), (4, 0.0::DOUBLE)) t(u, f)"
        )
        cells, _ = answered(relation, Selection(unit=("u",), by=("f",)))
        assert cells == {(None,): 2, (0.0,): 2}
        assert not any(np.signbit(key) for (key,) in cells if key is not None)


def test_a_relation_keeps_the_types_of_its_keys():
    values = {
        "b": "true",
        "i8": "1::TINYINT",
        "u64": "1::UBIGINT",
        "f": "1.5::FLOAT",
        "s": "'x'",
        "e": "'x'::ENUM('x', 'withheld')",
        "d": "DATE '2020-01-02'",
        "t": "TIMESTAMP '2020-01-02 03:04:05'",
        "tz": "TIMESTAMPTZ '2020-01-02 03:04:05+00'",
        "m": "1.50::DECIMAL(9, 2)",
    }
    dtypes = ["boolean", "Int8", "UInt64", "float64", "str", "str"]
    dtypes += ["date32[day][pyarrow]", "datetime64[us]", "datetime64[us, UTC]", "decimal128(9, 2)[pyarrow]"]
    with duckdb.connect() as connection:
        connection.sql("SET TimeZone = 'Asia/Tokyo'")
        relation = connection.sql("SELECT 1 AS u, " + ", ".join(f"{value} AS {name}" for name, value in values.items()))
        full = engine_for(relation).cells(relation, Selection(unit=("u",), by=tuple(values)))
        assert [str(dtype) for dtype in full.keys.dtypes] == dtypes
        assert full.keys["tz"].iloc[0] == pd.Timestamp("2020-01-02 03:04:05", tz="UTC")
        empty_relation = relation.filter("u = 2")
        empty = engine_for(empty_relation).cells(empty_relation, Selection(unit=("u",), by=tuple(values)))
        assert len(empty.keys) == 0
        assert [str(dtype) for dtype in empty.keys.dtypes] == dtypes


def test_rows_without_a_unit_are_in_no_cell_and_in_as_many_as_they_like():
    with duckdb.connect() as connection:
        relation = connection.sql(
            "SELECT * FROM (VALUES (1, 1, 'x'), (NULL, 1, 'x'), (NULL, 1, 'y'), (2, NULL, 'z')) t(p, q, c)"
        )
        assert answered(relation, Selection(unit=("p", "q"), by=("c",))) == ({("x",): 1}, True)
        nobody = relation.filter("p IS NULL")
        assert answered(nobody, Selection(unit=("p", "q"), by=("c",))) == ({}, True)


def test_a_relation_of_any_making_is_counted_and_its_connection_is_left_as_it_was():
    with duckdb.connect() as connection:
        connection.sql("CREATE TABLE pkdp_source AS SELECT 1 AS u, 'x' AS c")
        relation = connection.sql("SELECT u, c FROM pkdp_source UNION ALL SELECT 2, 'x'")
        before = connection.sql("SELECT table_name FROM information_schema.tables").fetchall()
        assert answered(relation.filter("u < 3"), Selection(unit=("u",), by=("c",)))[0] == {("x",): 2}
        assert connection.sql("SELECT table_name FROM information_schema.tables").fetchall() == before
        prepared = connection.sql("SELECT u, c FROM pkdp_source WHERE u = ?", params=[1])
        assert answered(prepared, Selection(unit=("u",), by=("c",)))[0] == {("x",): 1}


def test_frames_are_not_changed_and_nothing_is_warned_about():
    frame = frame_of([("a", 1, "x", 1, 1), ("b", 2, "x", 1, 1)])
    before = frame.copy()

    def meddling(given_frame):
        given_frame["c 1"] = "meddled"
        return given_frame["o"] == 1

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        engine_for(frame).cells(frame, Selection(unit=("p",), by=("c 1",), where=meddling))
        with duckdb.connect() as connection:
            relation = relation_of(connection, frame)
            engine_for(relation).cells(relation, Selection(unit=("p",), by=("c 1",), where="o == 1"))
    pd.testing.assert_frame_equal(frame, before)


def test_the_index_plays_no_part():
    frame = frame_of([("a", 1, "x", 1, 1), ("b", 2, "y", 1, 1), ("c", 3, "x", 1, None)])
    frame.index = [5, 5, 2]
    assert answered(frame, Selection(unit=("p",), by=("c 1",), where="o == 1"))[0] == {("x",): 1, ("y",): 1}


WHERE = [
    ("p == 'a'", {0}),
    ("p != 'a'", {1, 2, 3}),
    ("q >= 0 & q < 9", {1, 2}),
    ("q < 0 | p == 'b'", {0, 1}),
    ("0 <= q < 7 or p == 'a'", {0, 1}),
    ("not q > 0", {0, 1, 3}),
    ("~(q > 0)", {0, 1, 3}),
    ("p in ['a', 'b']", {0, 1}),
    ("p not in ['a', 'b']", {2, 3}),
    ("p.isna()", {3}),
    ("p.notna() and f == 0.5", {0}),
    ("`odd name` == 'it''s' or yes", {2}),
    ('`odd name` == "it\'s"', {1}),
    ("yes", {2}),
    ("-1 == q", {0}),
    ("p != '`c 1`' and p == p", {0, 1, 2}),
    ("p != p", {3}),
    ("q != q", {3}),
    ("not (q < 0 or q >= 0)", {3}),
    ("q not in [0]", {0, 2, 3}),
    ("q.isnull()", {3}),
]


@thinned(4)
@pytest.mark.parametrize(("query", "rows"), WHERE)
def test_a_query_string_means_the_same_on_both_kinds_of_frame(query, rows):
    frame = pd.DataFrame(
        {
            "row": range(4),
            "p": pd.Series(["a", "b", "c", None], dtype="str"),
            "q": [-1.0, 0.0, 7.0, np.nan],
            "f": [0.5, 1.0, 2.0, 0.5],
            "odd name": ["", "it's", "", ""],
            "yes": [False, False, True, False],
        }
    )
    if "''" in query:
        query = query.replace("'it''s'", "'nobody'")
    question = Selection(unit=("row",), by=("row",), where=query)
    expected = {(row,): 1 for row in rows}
    assert answered(frame, question)[0] == expected
    with duckdb.connect() as connection:
        connection.register("frame", frame)
        assert answered(connection.table("frame"), question)[0] == expected


@thinned(3)
@pytest.mark.parametrize("kind", [pa.float64(), pa.float32()])
@pytest.mark.parametrize("rule", RULES)
def test_reals_of_arrow_in_a_pandas_frame_mean_what_those_of_numpy_mean(kind, rule):
    reals = pa.array([float("nan"), None, 0.0, -0.0, 2.5, 2.5], kind)
    table = pa.table({"person": reals, "n": [1, 2, 3, 4, 5, 6], "cell": ["a"] * 6, "real": reals})
    given_frames = [table.to_pandas(types_mapper=pd.ArrowDtype), table.to_pandas()]
    for question in (
        Selection(unit=("person",), by=("cell",), one_cell=rule, order_by=("real",) if rule == "first" else ()),
        Selection(unit=("n",), by=("real",), one_cell=rule, order_by=("real",) if rule == "first" else ()),
    ):
        arrow, numpy = (engine_for(frame).cells(frame, question) for frame in given_frames)
        pd.testing.assert_frame_equal(arrow.keys, numpy.keys)
        assert (list(arrow.counts), arrow.missing_unit) == (list(numpy.counts), numpy.missing_unit)
        assert (sum(arrow.counts), arrow.missing_unit) == ((2, True) if "person" in question.unit else (6, False))
    arrow, numpy = (
        engine_for(frame).tally(frame, Selection(unit=("person",), where="n > 0")) for frame in given_frames
    )
    assert arrow == numpy
    assert (arrow.satisfying, arrow.missing_unit) == (2, True)


def test_units_of_arrow_that_cannot_be_compared_are_refused_in_our_words():
    rows = pa.table({"person": [{"name": "zoe"}], "cell": ["a"]}).to_pandas(types_mapper=pd.ArrowDtype)
    with pytest.raises(ArgumentError, match="'person'") as error:
        engine_for(rows).cells(rows, Selection(unit=("person",), by=("cell",)))
    assert "zoe" not in str(error.value)


@pytest.mark.parametrize("kind", [pa.float64(), pa.float32()])
def test_nan_in_a_parquet_file_is_missing_though_its_statistics_name_none(tmp_path, kind):
    path = tmp_path / "rows.parquet"
    people = pa.array([float("nan"), float("nan"), 1.0, 2.0, 7.0], kind)
    pq.write_table(pa.table({"person": people, "cell": ["a"] * 5}), path)
    with duckdb.connect() as connection:
        relation = connection.read_parquet(str(path))
        engine = engine_for(relation)
        by_person = engine.cells(relation, Selection(unit=("person",), by=("cell",)))
        by_row = engine.cells(relation, Selection(unit=(), by=("person",)))
        tallies = {
            query: engine.tally(relation, Selection(unit=(), where=query)).satisfying
            for query in ("person > 1.5", "person <= 1000", "person != 1", "person.isna()", "person == person")
        }
    assert (list(by_person.counts), by_person.missing_unit) == ([3], True)
    keys = [canonical_key(key) for key in by_row.keys["person"]]
    assert dict(zip(keys, by_row.counts, strict=True)) == {1.0: 1, 2.0: 1, 7.0: 1, None: 2}
    assert tallies == {
        "person > 1.5": 2,
        "person <= 1000": 3,
        "person != 1": 4,
        "person.isna()": 2,
        "person == person": 3,
    }


@pytest.mark.parametrize("kind", [pa.float64(), pa.float32()])
def test_nan_is_missing_where_the_statistics_of_a_file_name_one_value_only(tmp_path, kind):
    path = tmp_path / "rows.parquet"
    people = pa.array([5.0, float("nan"), 5.0, float("nan")], kind)
    pq.write_table(pa.table({"person": people, "cell": ["a"] * 4}), path)
    expected = {"person == 5": 2, "person != 5": 2, "person <= 9": 2, "not (person <= 9)": 2, "person.notna()": 2}
    with duckdb.connect() as connection:
        relation = connection.read_parquet(str(path))
        engine = engine_for(relation)
        by_person = engine.cells(relation, Selection(unit=("person",), by=("cell",)))
        tallies = {query: engine.tally(relation, Selection(unit=(), where=query)).satisfying for query in expected}
        groups = {query: engine.cells(relation, Selection(unit=(), by=("cell",), where=query)) for query in expected}
    assert (list(by_person.counts), by_person.missing_unit) == ([1], True)
    assert tallies == expected
    assert {query: sum(cells.counts) for query, cells in groups.items()} == expected


@pytest.mark.parametrize(
    "query",
    [
        "q = 1",
        "q == 1; DROP TABLE frame",
        "(SELECT 1)",
        "q + 1 == 2",
        "p.str.len() == 1",
        "sleep(1)",
        "nobody == 1",
        "p == 1",
        "q == 'a'",
        "q",
        "p == nobody",
        "q in []",
        "q in p",
        "q is None",
        "`p == 1",
        "p.isna(1)",
        "f'{p}' == 'a'",
        "p == None",
        "q == 1e999",
        "__import__('os')",
        "",
    ],
)
def test_what_a_relation_cannot_be_asked_is_refused_before_it_is_read(query):
    with pytest.raises(ArgumentError, match="where"):
        predicate_sql(from_query(query), {"p": "VARCHAR", "q": "BIGINT"})


def test_text_in_a_query_is_a_value_whatever_it_looks_like():
    hostile = "'; DROP TABLE frame; --"
    with duckdb.connect() as connection:
        connection.sql("CREATE TABLE t AS SELECT 1 AS u, 'x' AS c")
        assert answered(connection.table("t"), Selection(unit=("u",), by=("c",), where=f'c == "{hostile}"')) == (
            {},
            False,
        )
        assert connection.table("t").fetchall() == [(1, "x")]


SECRET = "SECRET-VALUE"


def cells_of(frame, **fields):
    question = Selection(**{"unit": ("u",), "by": ("c",), **fields})
    return engine_for(frame).cells(frame, question)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"unit": ("U",)}, "unit names column 'U'"),
        ({"by": ("cc",)}, "Did you mean 'c'"),
        ({"order_by": ("x",), "one_cell": "first"}, "order_by names column 'x'"),
        ({"by": ("twice",)}, "more than once"),
        ({"by": ("mixed",)}, "astype"),
        ({"by": ("period",)}, "cannot name cells"),
        ({"unit": ("lists",)}, "compared"),
        ({"order_by": ("lists",), "one_cell": "first"}, "ordered"),
        ({"where": "c"}, "must be boolean"),
        ({"where": "c > 3"}, "above or below a number"),
        ({"where": "mixed == 3"}, "one dtype each"),
        ({"where": "c == @SECRET"}, "backticks"),
        ({"where": "new = 3"}, "cannot|be read|backticks"),
        ({"where": lambda frame: frame["nobody"]}, "raised KeyError"),
        ({"where": lambda frame: [True]}, "gave a list"),
        ({"where": pd.Series([True])}, "one boolean per row"),
        ({"where": pd.Series([True, True], index=[7, 8])}, "own index"),
        ({"where": 3}, "not int"),
        ({"one_cell": "guess"}, "no rule"),
    ],
)
def test_an_error_names_the_fix_and_no_value(fields, words):
    frame = pd.DataFrame(
        {
            "u": [1, 2],
            "c": [SECRET, "x"],
            "a": [1, 2],
            "b": [1, 2],
            "mixed": [SECRET, 1],
            "period": pd.PeriodIndex(["2020", "2021"], freq="Y"),
            "lists": [[SECRET], []],
        }
    ).rename(columns={"a": "twice", "b": "twice"})
    with pytest.raises(ArgumentError, match=words) as caught:
        cells_of(frame, **fields)
    assert SECRET not in str(caught.value)
    assert caught.value.__context__ is None


@pytest.mark.parametrize(
    "error", [duckdb.OutOfMemoryException("a"), OSError("Out of Memory Error: a"), pa.ArrowMemoryError("a")]
)
def test_too_little_memory_is_temporary(error):
    def question():
        raise error

    with pytest.raises(TemporaryError, match="not enough memory"):
        told_by_duckdb(question)


def test_what_goes_wrong_inside_the_engine_is_told_without_its_values():
    with duckdb.connect() as connection:
        relation = connection.sql(f"SELECT 1 AS u, CAST(c AS INTEGER) AS c FROM (VALUES ('{SECRET}')) t(c)")
        with pytest.raises(ConfigError, match="could not be counted") as caught:
            cells_of(relation)
        assert SECRET not in str(caught.value)
        assert caught.value.__context__ is None
        closed = connection.sql("SELECT 1 AS u, 2 AS c")
    with pytest.raises(ConfigError, match="connection is open"):
        cells_of(closed)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"by": ("l",)}, "cannot name cells"),
        ({"where": "u"}, "must be boolean"),
        ({"where": lambda frame: frame}, "column name or a query string"),
        ({"unit": ("v",)}, "unit names column 'v'"),
    ],
)
def test_a_relation_says_what_it_cannot_do(fields, words):
    with duckdb.connect() as connection, pytest.raises(ArgumentError, match=words):
        cells_of(connection.sql("SELECT 1 AS u, 'x' AS c, [1] AS l"), **fields)


def test_a_frame_of_another_kind_is_an_error_that_lists_the_engines():
    with pytest.raises(ArgumentError, match=r"pandas\.DataFrame"):
        engine_for({"a": [1]})
    assert all(hasattr(engine_for(frame), "tally") for frame in (pd.DataFrame(), duckdb.sql("SELECT 1 AS a")))
    assert all(find_spec(engine.partition(":")[0]) is not None for engine in ENGINES.values())


@pytest.mark.parametrize("query", ["at > '2020-01-01 02:00'", "'2020-01-01' < at", "at in ['2020-01-01 00:00:00']"])
def test_no_instant_depends_on_the_time_zone_of_a_session(query):
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE rows AS SELECT TIMESTAMPTZ '2020-01-01 01:30:00+00' AS at")
        relation = connection.table("rows")
        for frame in (relation, relation.to_arrow_table()):
            with pytest.raises(ArgumentError, match=r"'at'.*\+00:00"):
                engine_for(frame).tally(frame, Selection(unit=(), where=query))
        for zone in ("UTC", "Asia/Tokyo"):
            connection.execute(f"SET TimeZone = '{zone}'")
            tally = engine_for(relation).tally(relation, Selection(unit=(), where="at > '2020-01-01 02:00:00+01:00'"))
            assert tally.satisfying == 1


NAMES = [f"p{i} of the town" for i in range(20)]
COLUMNS = ("name", "town")


def written(path, names):
    pq.write_table(pa.table({"name": names, "town": ["a", "b"] * (len(names) // 2)}), path)
    return path


@pytest.fixture
def looks(monkeypatch):
    """Forget files that are known, let new ones count as settled, and return whether each counting looks at names."""
    looks, plain = [], rows.homes_steps
    monkeypatch.setattr(engine_question, "_KNOWN", {})
    monkeypatch.setattr(engine_question, "_SETTLED_NANOSECONDS", -(10**12))
    monkeypatch.setattr(rows, "homes_steps", lambda **parts: looks.append(bool(parts["doubts"])) or plain(**parts))
    return looks


def alike(path, condition=""):
    relation = duckdb.read_parquet(str(path))
    relation = relation.filter(condition) if condition else relation
    return engine_for(relation).cells(relation, Selection(unit=("name",), by=("town",))).units.alike


def test_names_of_a_file_are_looked_at_once_under_any_condition(tmp_path, looks):
    path = written(tmp_path / "rows.parquet", NAMES)
    assert not alike(path, "town = 'a'")  # which rows it leaves out, its text does not say
    assert not alike(path)
    assert not alike(path, "town = 'b' AND town IN (SELECT 'b')")
    assert not alike(path)
    assert looks == [True, True, False, False]
    relation = duckdb.read_parquet(str(path)).project("name || ' ' AS name, town")
    assert not engine_for(relation).cells(relation, Selection(unit=("name",), by=("town",))).units.alike
    assert looks[4:] == [True]


def test_a_file_that_was_changed_is_looked_at_again(tmp_path, looks):
    path, changed = written(tmp_path / "rows.parquet", NAMES), [*NAMES[:-1], NAMES[0] + " "]
    assert not alike(path)
    times = path.stat()
    written(path, changed)
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert alike(path)
    assert alike(path)  # what is in doubt is looked at every time
    written(tmp_path / "other.parquet", NAMES)
    assert not alike(tmp_path / "other.parquet")
    os.replace(path, tmp_path / "other.parquet")
    assert alike(tmp_path / "other.parquet")
    assert looks == [True] * 5


def test_a_file_that_is_changed_while_it_is_counted_is_looked_at_again(tmp_path, looks, monkeypatch):
    path, plain = written(tmp_path / "rows.parquet", NAMES), rows.Rows.taken
    assert not alike(path)

    def taken(self, steps):
        answer = plain(self, steps)
        if len(looks) == 2:
            written(path, [*NAMES[:-1], NAMES[0] + " "])
        return answer

    monkeypatch.setattr(rows.Rows, "taken", taken)
    assert alike(path)
    assert looks == [True, False]


@pytest.mark.parametrize(
    ("statement", "before", "after"),
    [
        ("FROM read_parquet('{0}') WHERE keep(name)", "CREATE MACRO keep(x) AS x <> 'A '", "DROP MACRO keep"),
        (
            "FROM read_parquet('{0}') WHERE town = 'a'",
            "SET default_collation = 'C'",
            "SET default_collation = 'NOCASE'",
        ),
        (
            "FROM read_parquet('{0}', schema = getvariable('read'))",
            "SET VARIABLE read = MAP {{1: {{name: 'name', type: 'VARCHAR', default_value: NULL}}}}",
            "SET VARIABLE read = MAP {{2: {{name: 'name', type: 'VARCHAR', default_value: NULL}}}}",
        ),
    ],
)
def test_what_a_session_sets_shows_no_name_that_was_not_looked_at(tmp_path, looks, statement, before, after):
    fields = [pa.field(name, pa.string(), metadata={"PARQUET:field_id": str(n)}) for n, name in enumerate(COLUMNS, 1)]
    columns = (["A", "A ", "B"], ["a", "A", "a"]) if "schema" not in statement else (["A", "B"], ["A", "A "])
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table(dict(zip(COLUMNS, columns, strict=True)), schema=pa.schema(fields)), path)
    with duckdb.connect() as connection:
        for setting, expected in ((before, False), (after, True)):
            connection.execute(setting.format())
            if setting.startswith("DROP"):
                connection.execute("CREATE MACRO keep(x) AS true")
            relation = connection.sql(statement.format(path))
            assert engine_for(relation).units(relation, ("name",)).alike is expected


def test_a_file_that_is_another_one_while_names_are_looked_at_is_not_known(tmp_path, looks, monkeypatch):
    path, plain = tmp_path / "link.parquet", rows.Rows.taken
    clean = written(tmp_path / "clean.parquet", NAMES)
    path.symlink_to(written(tmp_path / "other.parquet", [*NAMES[:-1], NAMES[0] + " "]))

    def link(file):
        path.unlink()
        path.symlink_to(file)

    with monkeypatch.context() as patched:
        patched.setattr(rows.Rows, "taken", lambda self, steps: link(clean) or plain(self, steps))
        assert not alike(path)
    link(tmp_path / "other.parquet")
    assert alike(path)


def test_a_file_that_was_just_written_is_not_known(tmp_path, looks, monkeypatch):
    monkeypatch.setattr(engine_question, "_SETTLED_NANOSECONDS", 10**15)  # its next change may bear the same time
    path = written(tmp_path / "rows.parquet", NAMES)
    assert not alike(path)
    assert not alike(path)
    assert looks == [True, True]


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT * FROM read_parquet('{0}', filename = getvariable('name'))",
        "SELECT * FROM read_parquet('{0}', filename = ('a' = 'A'))",
        "SELECT * FROM main.read_parquet('{0}')",
        "SELECT * FROM read_parquet(other.list_value('{0}'))",
        "SELECT * FROM read_parquet('file://{0}')",
        "SELECT * REPLACE (town AS name) FROM read_parquet('{0}')",
        "SELECT * FROM read_parquet('{0}') AS other(name, town)",
        "SELECT DISTINCT * FROM read_parquet('{0}')",
        "SELECT * FROM read_parquet('{0}') UNION ALL SELECT * FROM read_parquet('{0}')",
        "SELECT * FROM read_parquet('{0}'), range(2)",
        "SELECT * FROM read_parquet('{1}')",
        "SELECT * FROM read_parquet(['{0}', '{0}' || ''])",
        "SELECT * FROM (SELECT town AS name, town FROM read_parquet('{0}'))",
        "FROM '{0}' LIMIT 3",
    ],
)
def test_relations_that_are_not_a_file_or_some_of_its_rows_are_not_known(tmp_path, statement):
    path = written(tmp_path / "rows.parquet", NAMES)
    with duckdb.connect() as connection:
        connection.execute("SET VARIABLE name = 'place'")
        connection.execute("CREATE SCHEMA other; CREATE MACRO other.list_value(x) AS x")
        relation = connection.sql(statement.format(path, tmp_path / "*.parquet"))
        assert engine_question.parquet_files(relation, connection) is None
        plain = engine_question.parquet_files(connection.read_parquet(str(path)), connection)
        assert plain.names == (str(path),)
        assert plain.all_rows


@pytest.mark.parametrize("name", ["read_parquet", "parquet_scan"])
@pytest.mark.parametrize(
    ("before", "macro", "after"),
    [
        ("", "MACRO {reader}(x) AS TABLE {rows}", "DROP MACRO TABLE {reader}"),
        ("", "MACRO {capitals}(x, y := 1) AS TABLE {rows}", "DROP MACRO TABLE {reader}"),
        ("", "TEMP MACRO {reader}(x) AS TABLE {rows}", "DROP MACRO TABLE {reader}"),
        ("", "MACRO {reader}() AS TABLE ({rows}), (x) AS TABLE ({rows})", "DROP MACRO TABLE {reader}"),
        ("CREATE SCHEMA s; SET search_path = 's'", "MACRO s.{reader}(x) AS TABLE {rows}", "SET search_path = 'main'"),
        ("ATTACH ':memory:' AS s", "MACRO s.{reader}(x) AS TABLE {rows}; USE s", "USE memory"),
        ("", "MACRO list_value(x) AS '{other}'", "DROP MACRO list_value"),
        ("", "TEMP MACRO List_Value(x, y := 1) AS '{other}'", "DROP MACRO list_value"),
        ("CREATE MACRO bool_and(x) AS true", "MACRO {reader}(x) AS TABLE {rows}", "DROP MACRO TABLE {reader}"),
    ],
)
def test_a_macro_with_the_name_of_a_function_that_reads_is_looked_at(tmp_path, looks, name, before, macro, after):
    path, selection = written(tmp_path / "rows.parquet", NAMES), Selection(unit=("name",), by=("town",))
    words = {
        "reader": name,
        "capitals": name.upper(),
        "rows": "SELECT unnest(['A', 'A ']) AS name, 'a' AS town",
        "other": written(tmp_path / "other.parquet", [*NAMES[:-1], NAMES[0] + " "]),
    }
    with duckdb.connect() as connection:

        def units():
            relation = connection.sql(f"FROM {name}(['{path}'])")
            units = engine_for(relation).cells(relation, selection).units
            assert engine_for(relation).units(relation, selection.unit) == units
            return units.alike

        connection.execute(before)
        assert not units()
        connection.execute("CREATE " + macro.format(**words))
        assert units()
        connection.execute(after.format(**words))
        assert not units()
    assert looks == [True, False, False]


def test_a_file_is_not_known_by_a_macro_that_reads_nothing(tmp_path, looks):
    path = written(tmp_path / "rows.parquet", [*NAMES[:-1], NAMES[0] + " "])
    with duckdb.connect() as connection:
        connection.execute("CREATE MACRO read_parquet(x) AS TABLE SELECT 'A' AS name, 'a' AS town WHERE false")
        relation = connection.sql(f"FROM read_parquet('{path}')")
        engine = engine_for(relation)
        assert engine.cells(relation, Selection(unit=("name",), by=("town",))).counts.tolist() == []
        assert not engine.tally(relation, Selection(unit=("name",))).units.alike
        assert not engine.units(relation, ("name",)).alike
        connection.execute("DROP MACRO TABLE read_parquet")
        assert engine.units(connection.sql(f"FROM read_parquet('{path}')"), ("name",)).alike
    assert looks == [True]


@pytest.mark.parametrize("scope", ["", "TEMP "])
def test_no_macro_stands_for_a_function_that_counts(scope):
    questions = [Selection(unit=("u",), by=("town", "day"), one_cell=rule, order_by=("x",)) for rule in RULES]
    questions.append(replace(questions[0], by=("day",), where=from_query("x > 0 and day.dt.year == 2021")))
    quarters = Bins("day", "quarter")
    questions.append(replace(questions[-1], one_cell="hash", cells_per_unit=2, bins={"day": quarters}))
    questions.append(replace(questions[-1], by=("x",), bins={}, where=from_query("town.str.startswith('a')")))
    names = "count count_star sum min bool_or bit_or hash xor md5_number length strlen contains year quarter least "
    names += "+ - * / // % & | << || ~~"
    with duckdb.connect() as connection:
        connection.execute(
            "CREATE TABLE t AS SELECT (i // 2)::VARCHAR AS u, 'ab'[1 + i % 2] AS town, i % 5 / 2::DOUBLE AS x, "
            "DATE '2021-01-01' + (i % 200)::INTEGER AS day FROM range(300) numbers(i)"
        )
        relation = connection.sql("FROM t")

        def counted():
            cells = [engine_for(relation).cells(relation, question) for question in questions]
            tallied = [engine_for(relation).tally(relation, replace(question, by=())) for question in questions]
            # Groups come in no order.
            listed = [sorted(zip(*cell.keys.to_dict("list").values(), cell.counts, strict=True)) for cell in cells]
            return listed, [cell.several_cells for cell in cells], tallied

        own = counted()
        for name in names.split():
            connection.execute(f'CREATE {scope}MACRO "{name}"(x := 0, y := 0) AS 7')
        assert counted() == own
        # A text that reads like a call is a text.
        assert (
            rows.built_in("""f('g(''h(') || "i(" || coalesce(x)""")
            == """system.main.f('g(''h(') || "i(" || coalesce(x)"""
        )


@pytest.mark.parametrize("one_cell", ["hash", "most_frequent"])
@pytest.mark.parametrize("unit", [("u",), ("w",), ("u", "w")])
def test_a_person_of_many_rows_is_hashed_once_and_draws_the_same_cell(tmp_path, monkeypatch, unit, one_cell):
    file = tmp_path / "rows.parquet"
    duckdb.execute(
        f"COPY (SELECT nullif(hash(i) % 40, 3)::DOUBLE AS u, nullif('n' || hash(i + 1) % 9, 'n5') AS w, "
        f"nullif(hash(i + 2) % 30, 4) AS b, hash(i + 3) % 2 = 0 AS c FROM range(2000) AS t(i)) TO '{file}'"
    )
    question, answers = Selection(unit=unit, by=("b", "c"), one_cell=one_cell), []
    for most in (0, 10**9):
        monkeypatch.setattr("pkdp_pipeline.engines.rows._MANY_ROWS", most)
        rows = duckdb.read_parquet(str(file))
        cells = engine_for(rows).cells(rows, question)
        table = zip(*(cells.keys[name].astype("string").fillna("") for name in ("b", "c")), cells.counts, strict=True)
        answers.append((sorted(table), cells.missing_unit))
    assert answers[0] == answers[1]
    assert answers[0][1]
