"""Many periods counted together: each is told what it would be told alone."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, timedelta
from functools import partial

import duckdb
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from thorough import examples, thinned

from pkdp_pipeline.engines import Selection, engine_for, period_engine
from pkdp_pipeline.engines.period_engine import OnePeriod, Periods
from pkdp_pipeline.errors import ConfigError, PkdpError

FIRST = date(2020, 1, 6)
DAYS = [FIRST + timedelta(days=number) for number in range(3)]
TEXTS = st.sampled_from([None, "", "a", "b", "é", " a", "b ", "\u2003b"])
WHOLE = st.sampled_from([None, -1, 0, 7, 2**40])
REALS = st.sampled_from([None, float("nan"), -0.0, 0.0, 1.5])
ROWS = st.lists(st.tuples(st.sampled_from(DAYS[:2]), TEXTS, WHOLE, TEXTS, REALS), max_size=40)
COLUMNS = 'day DATE, p VARCHAR, q BIGINT, "c 1" VARCHAR, d DOUBLE'


@pytest.fixture(scope="module")
def connection():
    with duckdb.connect() as opened:
        yield opened


def stored(connection, rows):
    connection.execute(f"CREATE OR REPLACE TABLE visits ({COLUMNS})")
    if rows:
        connection.executemany("INSERT INTO visits VALUES (?, ?, ?, ?, ?)", rows)
    return connection.table("visits")


def one_by_one(relation):
    """Return every day as a relation of its own."""
    return {day: relation.filter(f"day = DATE '{day}'") for day in DAYS}


def answers(frame, question):
    """Return all that an engine says, or what it raises."""
    engine = engine_for(frame)
    try:
        cells, tally = engine.cells(frame, question), engine.tally(frame, question)
        units = engine.units(frame, question.unit)
    except PkdpError as error:
        return type(error), str(error)
    table = cells.keys.assign(n=cells.counts, **({} if cells.sums is None else {"total": cells.sums}))
    order = table.sort_values(list(table.columns), ignore_index=True)
    return order, (cells.missing_unit, cells.several_cells), replace(tally, units=units), units


def check_same(relation, question, *, alone=None):
    periods, apart = Periods(relation, "day"), one_by_one(relation)
    for day in DAYS:
        frame = OnePeriod(periods, day, lambda day=day: alone(day) if alone else apart[day])
        (mine, *others), (expected, *rest) = answers(frame, question), answers(apart[day], question)
        assert others == rest
        if isinstance(expected, pd.DataFrame):
            pd.testing.assert_frame_equal(mine, expected, check_exact=True)
        else:
            assert mine == expected


@thinned(2)
@pytest.mark.parametrize(
    ("unit", "by", "where"),
    [
        ((), ("c 1",), None),
        (("p",), ("c 1",), None),
        (("q",), ("q", "d"), "q > 0 or d == 0"),
        (("p", "q"), ("d",), "`c 1` != 'a'"),
    ],
)
@examples(1, 60)
def test_each_period_is_told_what_it_would_be_told_alone(connection, unit, by, where, examples):
    @settings(max_examples=examples, deadline=None)
    @given(rows=ROWS, joinable=st.booleans())
    def same(rows, joinable):
        with pytest.MonkeyPatch.context() as patch:
            if not joinable:  # hashes of which one has all bits of another
                patch.setattr(period_engine, "joinable", lambda codes: False)
            relation = stored(connection, rows)
            check_same(relation, Selection(unit=unit, by=by, where=where))
            summed = {"bounds": (-2, 5), "summed": "q" if joinable else None}
            for columns in (by, ()):
                check_same(relation, Selection(unit=unit, by=columns, where=where, **summed))

    same()


@pytest.mark.parametrize("rule", ["hash", "most_frequent", "first"])
@examples(1, 40)
def test_rules_that_choose_a_cell_choose_as_for_the_period_alone(connection, rule, examples):
    order = ("q",) if rule == "first" else ()

    @settings(max_examples=examples, deadline=None)
    @given(rows=ROWS, most=st.sampled_from([1, 2]) if rule == "hash" else st.just(1))
    def same(rows, most):
        question = Selection(unit=("p",), by=("c 1",), one_cell=rule, order_by=order, cells_per_unit=most)
        check_same(stored(connection, rows), question)

    same()


def test_no_period_is_asked_alone_where_it_need_not_be(connection):
    rows = [(day, f"person {number}", number, f"town {number % 3}", 0.0) for day in DAYS[:2] for number in range(9)]
    rows += [(DAYS[0], None, 1, "town 1", 1.0), (DAYS[1], "person 1", 1, "town 2", 1.0)]

    def asked_alone(day):
        raise AssertionError(day)

    relation, question = stored(connection, rows), Selection(unit=("p",), by=("c 1",))
    check_same(relation, question, alone=asked_alone)
    check_same(relation, replace(question, bounds=(0, 5), summed="q"), alone=asked_alone)
    periods, statements, run = Periods(relation, "day"), [], Periods._run
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Periods, "_run", lambda self, text, *more: statements.append(text) or run(self, text, *more))
        for day in DAYS:
            answers(OnePeriod(periods, day, partial(asked_alone, day)), question)
    assert len(statements) == 4  # rows, cells, and both counts: once, not once a day


def test_a_constant_of_another_spelling_chooses_the_same_rows(connection):
    relation = stored(connection, [(DAYS[0], f"person {n}", 2**53 + n, "a", 0.0) for n in range(4)])
    periods, alone, satisfying = Periods(relation, "day"), one_by_one(relation)[DAYS[0]], []
    for where in ("q == 9007199254740992", "q == 9007199254740992.0"):
        question = Selection(unit=("p",), by=("c 1",), where=where)
        mine, expected = answers(OnePeriod(periods, DAYS[0], lambda: alone), question), answers(alone, question)
        assert mine[1:] == expected[1:]
        satisfying.append(mine[2].satisfying)
    assert satisfying == [1, 1]


def test_hashes_that_are_equal_send_each_period_alone(connection, monkeypatch):
    rows = [(day, f"person {number}", number, f"town {number % 3}", 0.0) for day in DAYS[:2] for number in range(9)]
    monkeypatch.setattr(period_engine, "code_of", lambda cell: f"hash(1) + 0 * length(({cell})::VARCHAR)")
    check_same(stored(connection, rows), Selection(unit=("p",), by=("c 1",)))


def test_a_row_that_cannot_be_read_stops_its_own_period_alone(connection):
    rows = [(day, f"person {number}", number, "7", 0.0) for day in DAYS[:2] for number in range(9)]
    stored(connection, [*rows, (DAYS[1], "person 1", 1, "no number", 0.0)])
    relation = connection.sql('SELECT day, p, CAST("c 1" AS INTEGER) AS "c 1" FROM visits')
    question, apart = Selection(unit=("p",), by=("c 1",)), one_by_one(relation)
    check_same(relation, question)
    assert answers(apart[DAYS[1]], question)[0] is ConfigError


def test_what_was_interrupted_is_not_asked_in_another_way(connection):
    relation = connection.sql("SELECT DATE '2020-01-06' AS day, error('no') AS p, 'a' AS c")
    periods = Periods(relation, "day", stopped=True)
    frame, alone = OnePeriod(periods, FIRST, lambda: alone.append(1)), []
    with pytest.raises(ConfigError):
        engine_for(frame).units(frame, ("p",))
    assert alone == []
