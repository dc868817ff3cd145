"""What a hash draws: the same in every engine, by the rule alone, evenly, and of nobody's rows but the person's own."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from itertools import product

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from adapters import adapters
from drawn import draw
from thorough import one_in, spread, thinned

from pkdp_pipeline.engines import Selection, engine_for
from pkdp_pipeline.model.keys import canonical_key

FRAMES = [pytest.param(adapter, marks=adapter.marks, id=adapter.name) for adapter in adapters() if not adapter.other]
CELLS = ["north", "south", None, "é", ""]
#: Draws as they were when the rule was made: what is published once must be drawn again.
VECTORS = {
    ((7,), ("north",)): 923_417_752,
    ((-1,), ("north",)): 262_262_847,
    ((2**63 - 1,), (None,)): 101_732_965,
    ((0.5,), ("é",)): 116_898_404,
    (("ann",), ("",)): 455_051_983,
    (("ann", 7), ("south", 3)): 236_251_142,
}
PEOPLE = 60
UNITS = {
    "whole": pa.array([(-3) ** (person % 40) - person for person in range(PEOPLE)], pa.int64()),
    "small": pa.array(range(-30, PEOPLE - 30), pa.int8()),
    "unsigned": pa.array([2**64 - 1 - 3**person % 2**63 for person in range(PEOPLE)], pa.uint64()),
    "reals": pa.array([person - 30.0 if person % 2 else 2.0 ** (person + 2) for person in range(PEOPLE)]),
    "text": pa.array([f"pérson {person}" for person in range(PEOPLE)]),
    "missing": pa.array([None if person % 7 == 0 else person for person in range(PEOPLE)], pa.int64()),
}


def counted(frame, unit=("u",), one_cell="hash", most=1):
    answer = engine_for(frame).cells(frame, Selection(unit=unit, by=("c",), one_cell=one_cell, cells_per_unit=most))
    return dict(zip(map(canonical_key, answer.keys["c"]), answer.counts.tolist(), strict=True))


def expected(people, most=1):
    """Count people, all of whom are in every cell, in the cells of their smallest draws."""
    counts = {}
    for person in people:
        if None not in person:
            for cell in sorted(CELLS, key=lambda cell, person=person: draw(person, [cell]))[:most]:
                counts[cell] = counts.get(cell, 0) + 1
    return counts


def everywhere(**units):
    """Return rows in which every unit is twice in every cell."""
    often = 2 * len(CELLS)
    people = len(next(iter(units.values())))
    rows = {name: pa.concat_arrays([column] * often) for name, column in units.items()}
    return pa.table({**rows, "c": pa.array([cell for cell in CELLS * 2 for _ in range(people)])})


def test_the_rule_is_what_it_was():
    assert {vector: draw(*vector) for vector in VECTORS} == VECTORS


def test_another_person_s_row_may_make_a_column_text_or_lengthen_its_decimals():
    numbers = pa.array([*range(PEOPLE)])
    texts = everywhere(u=numbers.cast(pa.string()))
    for frame in (everywhere(u=numbers), texts.to_pandas(), pl.from_arrow(texts), duckdb.from_arrow(texts)):
        assert counted(frame) == expected([(person,) for person in range(PEOPLE)])
    prices = [Decimal(person) / 4 for person in range(PEOPLE)]
    drawn = [counted(everywhere(u=pa.array(prices, pa.decimal128(18, scale)))) for scale in (2, 3, 9)]
    drawn.append(counted(everywhere(u=pa.array(prices, pa.decimal128(18, 2))).to_pandas()))
    assert all(counts == expected([(float(price),) for price in prices]) for counts in drawn)


def test_rows_that_are_drawn_at_random_are_read_once():
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE people AS SELECT i AS u, i % 7 AS c FROM range(4000) r(i)")
        relation = connection.sql("SELECT u, c FROM people WHERE random() < 0.5")
        # Two readings would keep a quarter of them.
        answer = engine_for(relation).cells(relation, Selection(unit=("u",), by=("c",), one_cell="hash"))
        assert 1700 < answer.counts.sum() < 2300


#: By-columns under PostgreSQL's types; in each a key is missing, and text orders as a language does.
KEYS = {
    "words": ("text", r"(ARRAY[NULL, 'a', 'B', 'é\'''])[1 + i % 4]"),
    "wholes": ("bigint", "nullif(i % 4, 3) - 1"),
    "decimals": ("numeric(9, 3)", "nullif(i % 4, 3) / 4.0"),
    "reals": ("double precision", "(ARRAY[NULL, 'NaN', '-0', '0', '0.5'])[1 + i % 5]"),
    "truths": ("boolean", "(ARRAY[NULL, true, false])[1 + i % 3]"),
    "days": ("date", "(ARRAY[NULL, '2026-01-01', '1970-01-01', '1969-12-31'])[1 + i % 4]"),
    "times": ("timestamp", "(ARRAY[NULL, '1970-01-01 00:00', '2026-01-01 01:02:03.4'])[1 + i % 3]"),
    "instants": ("timestamptz", "(ARRAY[NULL, '1970-01-01 00:00Z', '2026-01-01 01:02:03.4Z'])[1 + i % 3]"),
}


@pytest.mark.ibis
@pytest.mark.postgres
@pytest.mark.xdist_group("postgres")
def test_postgres_draws_as_every_engine_and_reads_its_rows_once(postgres_url, monkeypatch):
    import ibis
    import psycopg

    with psycopg.connect(postgres_url, autocommit=True) as connection:
        columns = ", ".join(f"CAST({key} AS {kind}) AS {name}" for name, (kind, key) in KEYS.items())
        person = "nullif(i % 61, 7) AS u, CASE WHEN i % 11 > 0 THEN 'pérson ' || i % 2 END AS v"
        numbers = "(SELECT n * n + n / 3 AS i FROM generate_series(0, 900) AS s(n)) AS numbers"
        connection.execute(f"CREATE TABLE rows AS SELECT {person}, {columns} FROM {numbers}")
        connection.execute('ALTER TABLE rows ALTER words TYPE text COLLATE "en-x-icu"')
        chance = "FROM generate_series(1, 4000) AS s(i) WHERE random() < 0.5"
        connection.execute(f"CREATE VIEW half AS SELECT i AS u, i % 7 AS c {chance}")
    backend = ibis.connect(postgres_url)
    try:
        frame = backend.table("rows")
        here = duckdb.from_arrow(frame.to_pyarrow())

        def drawn(rows, unit, by):
            answer = engine_for(rows).cells(rows, Selection(unit=unit, by=by, one_cell="hash"))
            cells = zip(*(map(canonical_key, answer.keys[name]) for name in by), strict=True)
            return dict(zip(cells, answer.counts.tolist(), strict=True)), answer.missing_unit

        groups = [(name,) for name in KEYS] + [("words", "instants"), ("reals", "wholes", "days")]
        questions = [(("u",), ("words",)), *((("v", "u"), by) for by in groups)]
        answers = [drawn(frame, *question) for question in questions]
        half = engine_for(frame).cells(backend.table("half"), Selection(unit=("u",), by=("c",), one_cell="hash"))
        assert 1700 < half.counts.sum() < 2300  # two readings would keep a quarter of them
        monkeypatch.setattr("pkdp_pipeline.engines.narwhals_queries._is_in_postgres", lambda rows: False)
        for question, answer in zip(questions, answers, strict=True):
            assert answer == drawn(here, *question) == drawn(frame, *question)
    finally:
        backend.disconnect()


RULES = [
    pytest.param(name, most, id=f"{name} {most}") for name, most in (("hash", 1), ("hash", 3), ("most_frequent", 1))
]


@thinned(4)
@pytest.mark.parametrize(("adapter", "units", "one_cell", "most"), spread(5, FRAMES, [*UNITS, "two columns"], RULES))
def test_every_engine_follows_the_rule(adapter, units, one_cell, most):
    if units == "unsigned" and "uint64" in adapter.unheld:
        pytest.skip("this kind of frame has no unsigned numbers")
    names = {"u": UNITS["missing"], "v": UNITS["text"]} if units == "two columns" else {"u": UNITS[units]}
    people = list(zip(*(column.to_pylist() for column in names.values()), strict=True))
    with adapter.frame(everywhere(**names)) as frame:
        assert counted(frame, tuple(names), one_cell, most) == expected(people, most)


def pandas_frame(column):
    people = pd.concat([column] * len(CELLS), ignore_index=True)
    cells = pd.Series([cell for cell in CELLS for _ in column], dtype="str")
    return pd.DataFrame({"u": people, "c": cells})


NUMBERS = [1, -1, 0, 2**40, *range(2, 50)]


@thinned(3)
@pytest.mark.parametrize(
    "column",
    [
        pd.Series(NUMBERS, dtype="Int64"),
        pd.Series([*NUMBERS, None], dtype="Int64"),
        pd.Series([*NUMBERS, math.nan]),
        pd.Series([*NUMBERS, None], dtype="Float64"),
        pd.Series([*NUMBERS, None], dtype=object),
        pd.Series(list(map(float, NUMBERS)), dtype=object),
        pd.Series([*NUMBERS, None], dtype="int64[pyarrow]"),
        pd.Series([*NUMBERS, None], dtype="double[pyarrow]"),
        pd.Series(NUMBERS).astype("category"),
    ],
    ids=[
        "Int64",
        "with NA",
        "with NaN",
        "Float64",
        "objects",
        "reals as objects",
        "arrow",
        "arrow reals",
        "categories",
    ],
)
def test_a_whole_number_is_drawn_alike_under_every_dtype(column):
    assert counted(pandas_frame(column)) == expected([(number,) for number in NUMBERS])


def test_a_number_of_any_size_is_drawn_by_its_value():
    huge = [2**63, 2**64 - 1, 2**64, -(2**70), 2**120, *range(20)]
    assert counted(pandas_frame(pd.Series(huge, dtype=object))) == expected([(number,) for number in huge])
    with duckdb.connect() as connection:
        for kind in ("HUGEINT", "UHUGEINT"):
            numbers = [number for number in huge if number >= 0 or kind == "HUGEINT"]
            people = " UNION ALL ".join(f"SELECT {number}::{kind} AS u" for number in numbers)
            cells = ", ".join("(NULL)" if cell is None else f"('{cell}')" for cell in CELLS)
            rows = connection.sql(f"SELECT u, c FROM ({people}), (VALUES {cells}) t(c)")
            assert counted(rows) == expected([(number,) for number in numbers])


OTHERS = {
    "a fraction": (NUMBERS, [0.5]),
    "objects of several types": (pd.Series(NUMBERS, dtype=object), [0.25, Decimal("7.5")]),
    "a time of day": (
        pd.to_datetime([f"2020-01-{day:02}" for day in range(1, 30)]),
        [pd.Timestamp("2020-02-01 07:00")],
    ),
    "dates": ([dt.date(2020, 1, day) for day in range(1, 30)], [dt.date(1, 1, 1)]),
    "a huge number": (pd.Series(NUMBERS, dtype=object), [2**80]),
}


@thinned(2)
@pytest.mark.parametrize("name", OTHERS)
def test_nobody_else_s_row_changes_what_is_drawn(name):
    """A column's dtype, or how its values are written, may be owed to one other person's row."""
    people, others = (pd.Series(list(values)) for values in OTHERS[name])
    together = pd.concat([people.astype(object), others.astype(object)], ignore_index=True).infer_objects()
    alone, more = counted(pandas_frame(people)), counted(pandas_frame(together))
    assert sum(more.values()) == len(people) + len(others)
    assert sum(abs(more.get(cell, 0) - alone.get(cell, 0)) for cell in CELLS) == len(others)


@thinned(2)
@pytest.mark.parametrize(
    ("ids", "cells"), one_in(5, product(["range", "range * 1000", "range * 1048576", "'p' || range"], [2, 3, 5, 12]))
)
def test_draws_are_even(ids, cells):
    people = 20_000
    with duckdb.connect() as connection:
        rows = connection.sql(f"SELECT {ids} AS u, 'cell ' || c AS c FROM range({people}), range({cells}) t(c)")
        counts = np.array(list(counted(rows).values()))
        few = np.array(list(counted(rows, most=2).values()))
    assert counts.sum() == people
    assert len(counts) == cells
    # A chi-square of so many degrees of freedom is above this once in 10,000 times.
    assert ((counts - people / cells) ** 2).sum() * cells / people < {2: 15.2, 3: 18.5, 5: 23.6, 12: 35.6}[cells]
    assert abs(few / people - 2 / cells).max() < 0.02
