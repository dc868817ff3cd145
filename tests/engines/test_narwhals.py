"""Polars and PyArrow frames, and the engine over Narwhals, against a slow count in plain Python."""

from __future__ import annotations

import warnings

import duckdb
import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_duckdb import RULES, counted
from thorough import examples, few, spread, thinned

from pkdp_pipeline.engines import Selection, engine_for
from pkdp_pipeline.engines.narwhals_engine import NarwhalsEngine
from pkdp_pipeline.errors import ArgumentError, ConfigError
from pkdp_pipeline.model.keys import canonical_key
from pkdp_pipeline.model.predicate import from_query

COLUMNS = ["p", "q", "c 1", 'd"2', "o"]
SCHEMA = {"p": pl.String, "q": pl.Int64, "c 1": pl.String, 'd"2': pl.Int64, "o": pl.Int64}
TEXTS = st.sampled_from([None, "", "a", "b", "é", "a'b"])
WHOLE = st.sampled_from([None, -1, 0, 7, 2**40])
ROWS = st.lists(st.tuples(TEXTS, WHOLE, TEXTS, WHOLE, st.sampled_from([None, 1, 2])), max_size=25)
SECRET = "SECRET-VALUE"


def frame_of(rows) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=SCHEMA, orient="row")


def answered(engine, frame, question):
    cells = engine.cells(frame, question)
    keys = [tuple(map(canonical_key, key)) for key in cells.keys.itertuples(index=False)]
    assert len(set(keys)) == len(keys)
    return (None if cells.several_cells else dict(zip(keys, cells.counts.tolist(), strict=True))), cells.missing_unit


@thinned(3)
@pytest.mark.parametrize(
    ("one_cell", "by", "unit"), spread(3, RULES, [("c 1",), ("c 1", 'd"2')], [("p",), ("q",), ("p", "q")])
)
@examples(quick=2, full=40)
def test_units_per_cell_are_what_a_slow_count_gives(unit, by, one_cell, examples):
    question = Selection(unit=unit, by=by, one_cell=one_cell, order_by=("o",) if one_cell == "first" else ())

    @settings(max_examples=examples, deadline=None)
    @given(rows=ROWS)
    def check(rows):
        expected = counted(rows, unit, by, one_cell)
        frame = frame_of(rows)
        for given_frame in (frame, frame.lazy(), frame.to_arrow()):
            assert answered(engine_for(given_frame), given_frame, question) == expected
        if one_cell in ("error", "first"):
            assert answered(NarwhalsEngine(), frame, question) == expected

    check()


@settings(max_examples=few(30), deadline=None)
@given(rows=ROWS)
def test_a_tally_counts_units_with_any_satisfying_row(rows):
    people = {(p, q) for p, q, *_ in rows if p is not None and q is not None}
    hits = {(p, q) for p, q, c, *_ in rows if p is not None and q is not None and c == "a"}
    question = Selection(unit=("p", "q"), where="`c 1` == 'a'")
    frame = frame_of(rows)
    for given_frame in (frame, frame.to_arrow(), nw.from_native(frame)):
        tally = engine_for(given_frame).tally(given_frame, question)
        assert (tally.satisfying, tally.population) == (len(hits), len(people))
        assert tally.missing_unit == any(p is None or q is None for p, q, *_ in rows)


@thinned(3)
@pytest.mark.parametrize("spread", [False, True])
@pytest.mark.parametrize("kind", [pl.String, pl.Float64, pl.Date, pl.Int64, pl.UInt8])
def test_many_units_are_counted_the_same_whichever_way_is_the_fastest(kind, spread):
    people = np.random.default_rng(7).integers(0, 9_000, 20_000)
    homes = people * 31 % 57
    if spread:
        homes[np.flatnonzero(people == people[0])[-1]] = 57
    units = pl.Series(people % 251 if kind == pl.UInt8 else people).cast(pl.Int32).cast(kind)
    if kind == pl.UInt8:
        homes = people % 251 % 57 + (57 * (people % 251 == 3) * (people > 251) if spread else 0)
    frame = pl.DataFrame({"u": units, "sparse": pl.Series(people) * 10_000_019, "c": homes, "even": homes % 2 == 0})
    frame = frame.with_columns(pl.col("u", "sparse").replace(units[5], None), pl.col("c").cast(pl.String))
    for unit in ("u", "sparse") if kind == pl.Int64 else ("u",):
        question = Selection(unit=(unit,), by=("c", "even"))
        expected = answered(NarwhalsEngine(), frame, question)
        assert (expected[0] is None) == spread
        for given_frame in (frame, frame.lazy()):
            assert answered(engine_for(given_frame), given_frame, question) == expected


def test_the_engine_over_narwhals_counts_pandas_frames_and_relations_too():
    rows = [("a", 1, "x", 1, 1), ("a", 1, "x", 1, 1), (None, None, "y", 1, 1), ("b", 2, None, 1, 1)]
    question = Selection(unit=("p",), by=("c 1",))
    expected = counted(rows, ("p",), ("c 1",), "error")
    frame = frame_of(rows)
    assert answered(NarwhalsEngine(), frame.to_pandas(), question) == expected
    plain = frame.drop('d"2').to_arrow()  # Narwhals cannot read a quoted quote from DuckDB 1.5
    with duckdb.connect() as connection:
        assert answered(NarwhalsEngine(), connection.from_arrow(plain), question) == expected


@pytest.mark.parametrize("where", [lambda frame: frame["o"], [True], np.array([True])])
def test_what_only_pandas_can_be_asked_is_refused(where):
    frame = frame_of([("a", 1, "x", 1, 1)])
    with pytest.raises(ArgumentError, match="query string or an expression of Polars"):
        engine_for(frame).cells(frame, Selection(unit=("p",), by=("c 1",), where=where))


@pytest.mark.parametrize("where", ["day == '1 January'", "day > '2020-13-01'", "day == '2020-01-01 10:00'", "day == 3"])
def test_a_constant_that_is_no_date_is_refused_before_anything_is_read(where):
    frame = pl.LazyFrame({"u": [1], "day": [None]}, schema={"u": pl.Int64, "day": pl.Date})
    with pytest.raises(ArgumentError, match="where compares"):
        engine_for(frame).cells(frame, Selection(unit=("u",), by=("u",), where=where))


def test_what_goes_wrong_inside_polars_is_told_without_its_values():
    broken = pl.LazyFrame({"u": [1], "c": [SECRET]}).with_columns(pl.col("c").cast(pl.Int64))
    for one_cell in ("error", "most_frequent", "hash"):
        with pytest.raises(ConfigError, match="could not be counted") as caught:
            engine_for(broken).cells(broken, Selection(unit=("u",), by=("c",), one_cell=one_cell))
        assert SECRET not in str(caught.value)
        assert caught.value.__context__ is None
        assert caught.value.__cause__ is None


def test_a_column_that_a_table_has_twice_is_refused():
    table = pa.table([pa.array([1]), pa.array([2]), pa.array(["x"])], names=["u", "u", "c"])
    engine = engine_for(table)
    with pytest.raises(ArgumentError, match="unit names column 'u', which the frame has more than once; rename one"):
        engine.cells(table, Selection(unit=("u",), by=("c",)))
    with pytest.raises(ArgumentError, match="by names column 'u', which the frame has more than once; rename one"):
        engine.cells(table, Selection(unit=("c",), by=("u",)))
    with pytest.raises(ArgumentError, match="has column 'u' more than once; rename one"):
        engine.tally(table, Selection(unit=("c",), where="u == 1"))


@pytest.mark.parametrize("rest", [[1.0, 2.0, 7.0], [5.0, 5.0]])
def test_nan_in_a_parquet_file_is_missing_though_its_statistics_name_none(tmp_path, rest):
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"u": [*rest, float("nan"), float("nan")], "c": ["a"] * (len(rest) + 2)}), path)
    expected = {"u != 5": 2 + sum(value != 5 for value in rest), "not (u <= 9)": 2, "u.isna()": 2, "u <= 9": len(rest)}
    for frame in (pl.scan_parquet(path), pq.read_table(path)):
        engine = engine_for(frame)
        cells = engine.cells(frame, Selection(unit=("u",), by=("c",)))
        assert (list(cells.counts), cells.missing_unit) == ([len(set(rest))], True)
        groups = {query: engine.cells(frame, Selection(unit=(), by=("c",), where=query)) for query in expected}
        assert {query: sum(cells.counts) for query, cells in groups.items()} == expected


def test_categories_and_enumerations_are_ordered_as_text():
    for kind in (pl.Categorical, pl.Enum(["z", "a", "withheld"])):
        frame = pl.DataFrame({"u": [1, 1], "c": pl.Series(["z", "a"], dtype=kind)})
        question = Selection(unit=("u",), by=("c",), one_cell="first", order_by=("u",))
        assert answered(engine_for(frame), frame, question)[0] == {("a",): 1}
        assert str(engine_for(frame).cells(frame, question).keys["c"].dtype) == "str"


def test_counting_warns_of_nothing_and_changes_nothing():
    frame = frame_of([("a", 1, "x", 1, 1), ("b", 2, "x", 1, None)])
    before = frame.clone()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for one_cell in RULES:
            question = Selection(unit=("p",), by=("c 1",), one_cell=one_cell, where="o == 1 or o.isna()")
            for given_frame in (frame, frame.lazy(), frame.to_arrow()):
                assert answered(engine_for(given_frame), given_frame, question)[0] == {("x",): 2}
    assert frame.equals(before)


def test_a_column_beside_one_that_differs_in_case_is_refused_with_both_named():
    table = pa.table([["x"], ["y"], [1]], names=["cell", "Cell", "u"])
    with duckdb.connect() as connection:
        relation = connection.from_arrow(table)
        for frame in (table, table.to_pandas(), pl.from_arrow(table)):
            for name, other in (("cell", "Cell"), ("Cell", "cell")):
                with pytest.raises(
                    ArgumentError, match=f"by names column '{name}', and the frame has '{other}' as well: "
                ):
                    engine_for(frame).cells(frame, Selection(unit=("u",), by=(name,)))
        with pytest.raises(
            ArgumentError, match=r"'Cell', and the frame has 'cell' as well, .* read as 'Cell_1': .* rename"
        ):
            engine_for(relation).cells(relation, Selection(unit=("u",), by=("Cell",)))


def test_decimals_of_more_than_38_digits_are_refused_by_the_column():
    wide = pa.array([10**39 + number for number in range(4)], pa.decimal256(40, 0))
    table = pa.table({"u": [1, 2, 3, 4], "m": wide})
    for question in (Selection(unit=("u",), by=("m",)), Selection(unit=("m",), by=("u",))):
        with pytest.raises(ArgumentError, match=r"column 'm' .* cast it in the frame, for example to text"):
            engine_for(table).cells(table, question)


def test_decimals_of_negative_scale_are_whole_numbers_wherever_they_stand():
    hundreds = pa.array([200, 200, 300, None]).cast(pa.decimal128(20, 0)).cast(pa.decimal128(5, -2))
    table = pa.table({"u": [1, 2, 3, 4], "b": ["x"] * 4, "m": hundreds})
    for frame in (table, table.to_pandas(types_mapper=pd.ArrowDtype)):
        cells, _ = answered(engine_for(frame), frame, Selection(unit=("u",), by=("m",)))
        assert cells == {(200,): 2, (300,): 1, (None,): 1}
        for where, people in ((None, 4), (from_query("m > 200"), 1)):
            question = Selection(unit=("u",), by=("b",), where=where)
            assert answered(engine_for(frame), frame, question)[0] == {("x",): people}


def test_half_floats_are_compared_with_the_constant_as_they_hold_it():
    table = pa.table({"u": [1, 2, 3], "b": ["x"] * 3, "h": pa.array([0.1, 0.3, None], pa.float16())})
    for frame in (table, table.to_pandas(), table.to_pandas(types_mapper=pd.ArrowDtype), pl.from_arrow(table)):
        for where in ("h == 0.1", "h > 0.2", "h in [0.3, 0.5]", "h.isna()"):
            question = Selection(unit=("u",), by=("b",), where=from_query(where))
            assert answered(engine_for(frame), frame, question)[0] == {("x",): 1}


def test_a_comparison_of_two_families_names_its_columns_and_what_to_write():
    table = pa.table({"u": [1], "n": [1], "t": ["a"]})
    for where, words in (
        ("n == 'a'", "compares number with text in column 'n'; write the constant"),
        ("t in [1]", "compares number with text in column 't'; write the constant"),
        ("n == t", "compares number with text in columns 'n' and 't'; cast one"),
    ):
        for frame in (table, table.to_pandas(), pl.from_arrow(table)):
            with pytest.raises(ArgumentError, match=words):
                engine_for(frame).cells(frame, Selection(unit=("u",), by=("t",), where=from_query(where)))


@pytest.mark.parametrize("zone", [None, "UTC", "Europe/Oslo", "+05:30"])
def test_a_time_outside_the_years_1_to_9999_names_no_cell_in_any_engine(zone):
    beyond, before = 253_402_300_800, -62_135_596_801  # seconds: the first of the year 10000, the last before year 1
    times = pa.array([0, beyond, before, beyond - 86_400], pa.timestamp("s", zone))
    table = pa.table({"u": [1, 2, 3, 4], "at": times.cast(pa.timestamp("us", zone))})
    frames = [table, table.to_pandas(), table.to_pandas(types_mapper=pd.ArrowDtype)]
    if zone != "+05:30":
        frames += [pl.from_arrow(table), pl.from_arrow(table).lazy()]
    for frame in frames:
        counted_cells = engine_for(frame).cells(frame, Selection(unit=("u",), by=("at",)))
        assert sorted(counted_cells.counts) == [1, 1, 2]
        assert counted_cells.keys["at"].isna().tolist() == [units == 2 for units in counted_cells.counts]
