"""Every engine gives the same sums as the rule written out in plain Python: edges of types, missing values, cells."""

from __future__ import annotations

from contextlib import contextmanager
from decimal import Decimal

import pandas as pd
import pyarrow as pa
import pytest
from adapters import adapters
from drawn import draw
from thorough import spread

from pkdp_pipeline.engines import Selection, engine_for
from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.model.keys import canonical_key

FRAMES = [pytest.param(adapter, marks=adapter.marks, id=adapter.name) for adapter in adapters() if not adapter.other]
LARGEST_NUMBER = 10**12
UNITS = [1, 1, 1, 2, 2, 3, 4, 4, 4, None, 5, 6]
CELLS = ["a", "a", "b", "a", None, "b", "b", "a", "b", "a", "a", "c"]
VISITS = [1, 3, 9, None, 2, -4, 1, 1, 1, 100, None, 7]
ORDER = [3, 4, 2, 1, 1, 1, 2, 1, 3, 1, 1, 1]
TABLE = pa.table(
    {
        "unit": pa.array(UNITS, pa.int64()),
        "cell": pa.array(CELLS),
        "visits": pa.array(VISITS, pa.int32()),
        "order": pa.array(ORDER, pa.int16()),
        "kept": pa.array([visit != 3 for visit in VISITS]),
    }
)
#: Numbers at the edges of their types, beyond what a row adds, and missing.
EDGES = {
    "int8": ([-128, 127, None], pa.int8()),
    "int16": ([-(2**15), 2**15 - 1, None], pa.int16()),
    "int32": ([-(2**31), 2**31 - 1], pa.int32()),
    "int64": ([-(2**63), 2**63 - 1, 2**63 - 1, LARGEST_NUMBER, -LARGEST_NUMBER, None], pa.int64()),
    "uint8": ([0, 255], pa.uint8()),
    "uint16": ([0, 2**16 - 1], pa.uint16()),
    "uint32": ([0, 2**32 - 1], pa.uint32()),
    "uint64": ([0, 2**64 - 1, 2**64 - 1, LARGEST_NUMBER, None], pa.uint64()),
    "decimals": ([Decimal(-(10**37)), Decimal(10**37), Decimal(7), None], pa.decimal128(38, 0)),
    "short decimals": ([Decimal(-99), Decimal(7), None], pa.decimal128(2, 0)),
    "nothing": ([None, None], pa.int64()),
}


@contextmanager
def framed(adapter, table):
    """Give a frame; pandas makes reals of whole numbers where one is missing, unless it is told otherwise."""
    with adapter.frame(table) as frame:
        for name in {"visits", "v", "unit"} & set(frame.columns) if isinstance(frame, pd.DataFrame) else ():
            frame[name] = pd.arrays.ArrowExtensionArray(table[name])
        yield frame


def summed(adapter, table, by=("cell",), summed="visits", unit=("unit",), bounds=(0, 5), **rules):
    selection = Selection(unit=unit, by=by, bounds=bounds, summed=summed, **rules)
    with framed(adapter, table) as frame:
        answer = engine_for(frame).cells(frame, selection)
    if not by:
        return int(answer.sums.sum())
    assert not answer.several_cells
    if not len(answer.keys):
        return {}
    keys = zip(*(map(canonical_key, answer.keys[name]) for name in by), strict=True)
    return dict(zip(keys, answer.sums.tolist(), strict=True))


def expected(rows, bounds, choose=lambda person, cells: cells):
    """Sum by the rule: `rows` are (person, cell, number), and `choose` takes the cells of a person with their rows."""
    people = {}
    for person, cell, number in rows:
        if person is not None:
            people.setdefault(person, {}).setdefault(cell, []).append(number)
    sums = {}
    for person, cells in people.items():
        for cell in choose(person, cells):
            total = sum(
                max(-LARGEST_NUMBER, min(LARGEST_NUMBER, number)) for number in cells[cell] if number is not None
            )
            sums[cell] = sums.get(cell, 0) + max(bounds[0], min(bounds[1], int(total)))
    return {(cell,): total for cell, total in sums.items()}


def drawn(most):
    return lambda person, cells: sorted(cells, key=lambda cell: draw([person], [cell]))[:most]


def frequent(person, cells):
    return [min(cells, key=lambda cell: (-len(cells[cell]), draw([person], [cell])))]


@pytest.mark.parametrize(("adapter", "case"), spread(4, FRAMES, EDGES))
def test_numbers_at_the_edges_of_their_type(adapter, case):
    if adapter.name == "spark" and case.startswith("uint"):
        pytest.skip("Spark has no unsigned numbers")
    values, kind = EDGES[case]
    table = pa.table({"unit": pa.array([0] * len(values) + [1], pa.int64()), "v": pa.array([*values, None], kind)})
    for bounds in ((-(10**8), 10**8), (2, 5), (-3, 1)):
        rows = [(0, "", value) for value in values] + [(1, "", None)]
        assert summed(adapter, table, (), "v", bounds=bounds) == expected(rows, bounds)[("",)]
        each = [(place, "", value) for place, value in enumerate([*values, None])]
        assert summed(adapter, table, (), "v", (), bounds) == expected(each, bounds)[("",)]


RULES = {
    "hash": ({"one_cell": "hash"}, drawn(1)),
    "two cells": ({"one_cell": "hash", "cells_per_unit": 2}, drawn(2)),
    "most frequent": ({"one_cell": "most_frequent"}, frequent),
    "first": (
        {"one_cell": "first", "order_by": ("order",)},
        lambda person, cells: [{1: "b", 2: "a", 3: "b", 4: "a", 5: "a", 6: "c"}[person]],
    ),
}


@pytest.mark.parametrize(("adapter", "rule"), spread(3, FRAMES, RULES))
def test_a_person_adds_to_the_cells_that_the_rule_chooses(adapter, rule):
    options, choose = RULES[rule]
    rows = list(zip(UNITS, CELLS, VISITS, strict=True))
    assert summed(adapter, TABLE, **options) == expected(rows, (0, 5), choose)
    ones = [(person, cell, 1) for person, cell in zip(UNITS, CELLS, strict=True)]
    assert summed(adapter, TABLE, summed=None, bounds=(0, 2), **options) == expected(ones, (0, 2), choose)
    texts = TABLE.set_column(0, "unit", pa.array([None if person is None else f"p{person}" for person in UNITS]))
    named = [(None if person is None else f"p{person}", cell, visits) for person, cell, visits in rows]
    if rule != "first":
        assert summed(adapter, texts, bounds=(-2, 9), **options) == expected(named, (-2, 9), choose)


@pytest.mark.parametrize("adapter", FRAMES)
def test_rows_that_where_keeps_are_summed_and_cells_may_add_nothing(adapter):
    # Person 2 has no number in a, and person 3 a negative one in b: their cells are there, and add 0.
    table = TABLE.filter(pa.array([person in (1, 2, 3) and cell != None for person, cell in zip(UNITS, CELLS)]))  # noqa: B905,E711
    table = table.filter(pa.array([True, True, False, True, True]))
    rows = [(1, "a", 1), (2, "a", None), (3, "b", -4)]
    assert summed(adapter, table, where="kept") == expected(rows, (0, 5)) == {("a",): 1, ("b",): 0}
    assert summed(adapter, table, (), where="kept") == 1
    assert summed(adapter, table, summed=None, bounds=(0, 9)) == {("a",): 3, ("b",): 1}
    assert summed(adapter, table.slice(0, 0)) == {}
    assert summed(adapter, table.slice(0, 0), ()) == 0


@pytest.mark.parametrize("adapter", FRAMES)
def test_rows_in_several_cells_and_without_a_person_are_told(adapter):
    with framed(adapter, TABLE) as frame:
        engine = engine_for(frame)
        answer = engine.cells(frame, Selection(unit=("unit",), by=("cell",), bounds=(0, 5), summed="visits"))
        assert (answer.several_cells, answer.missing_unit, len(answer.sums)) == (True, True, 0)
        alone = engine.cells(frame, Selection(unit=("unit",), bounds=(0, 5), summed="visits", where="visits < 9"))
        assert (alone.several_cells, alone.missing_unit) == (False, False)


@pytest.mark.parametrize("adapter", FRAMES)
def test_other_columns_are_refused(adapter):
    for values, kind in (
        ([1.0], pa.float64()),
        ([True], pa.bool_()),
        (["1"], pa.string()),
        ([Decimal("1.00")], pa.decimal128(9, 2)),
    ):
        table = pa.table({"unit": [1], "cell": ["a"], "visits": pa.array(values, kind)})
        for rows in (table, table.slice(0, 0)):
            with pytest.raises(ArgumentError, match=r"summed column 'visits' .* whole numbers"):
                summed(adapter, rows)
    with pytest.raises(ArgumentError, match="sum"):
        summed(adapter, TABLE, summed="strangers")
