"""Counting by place against a slow count, and when it is not tried."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pkdp_pipeline.engines import Selection, engine_for
from pkdp_pipeline.engines.memory import DENSE_SPAN, counted_by_place

SIZE = 4


@given(
    rows=st.lists(st.tuples(st.integers(-6, 6), st.integers(0, SIZE - 1)), min_size=1, max_size=30),
    shift=st.sampled_from([0, 7, -(2**61), 2**61]),
    kind=st.sampled_from([np.int8, np.uint32]),
)
def test_units_with_a_place_are_counted_once(rows, shift, kind):
    units = np.array([unit + shift for unit, _ in rows], dtype=np.int64)
    cells = np.array([cell for _, cell in rows], dtype=kind)
    cells_of_unit = {unit: {cell for other, cell in rows if other == unit} for unit, _ in rows}
    answer = counted_by_place(units, cells, SIZE)
    assert answer is not None
    counts, several = answer
    assert several == any(len(own) > 1 for own in cells_of_unit.values())
    assert counts.sum() == len(cells_of_unit)
    if not several:
        assert counts.tolist() == [sum(own == {cell} for own in cells_of_unit.values()) for cell in range(SIZE)]


@given(
    rows=st.lists(st.tuples(st.integers(-6, 6), st.booleans()), min_size=1, max_size=30),
    shift=st.sampled_from([0, 7, -(2**61), 2**61]),
)
def test_units_with_a_place_are_tallied_once(rows, shift):
    frame = pd.DataFrame({"u": [unit + shift for unit, _ in rows], "hit": [hit for _, hit in rows]})
    tally = engine_for(frame).tally(frame, Selection(unit=("u",), where="hit"))
    assert tally.satisfying == len({unit for unit, hit in rows if hit})
    assert tally.population == len({unit for unit, _ in rows})
    assert not tally.missing_unit


@pytest.mark.parametrize(
    "units",
    [
        np.array([0, DENSE_SPAN]),
        np.array([-(2**63), 2**63 - 1]),
        np.array([2**63, 2**63 + 1], dtype=np.uint64),
        np.array([-(2**62), -(2**62) + 1]),
    ],
)
def test_units_far_apart_have_no_places(units):
    assert counted_by_place(units, np.array([0, 1]), 2) is None
    frame = pd.DataFrame({"u": units, "c": ["x", "y"]})
    cells = engine_for(frame).cells(frame, Selection(unit=("u",), by=("c",)))
    assert cells.counts.tolist() == [1, 1]
    tally = engine_for(frame).tally(frame, Selection(unit=("u",), where="c == 'x'"))
    assert (tally.satisfying, tally.population) == (1, 2)


@pytest.mark.parametrize("kind", ["int8", "uint16", "int64", "uint64"])
def test_a_frame_s_whole_numbers_of_any_width(kind):
    frame = pd.DataFrame({"u": pd.Series([1, 2, 2, 3], dtype=kind), "c": ["x", "y", "y", None]})
    cells = engine_for(frame).cells(frame, Selection(unit=("u",), by=("c",)))
    assert (cells.counts.tolist(), cells.several_cells, cells.missing_unit) == ([1, 1, 1], False, False)
    frame["c"] = ["x", "y", "x", None]
    cells = engine_for(frame).cells(frame, Selection(unit=("u",), by=("c",)))
    assert (len(cells.keys), cells.several_cells) == (0, True)


def test_many_rows_are_looked_at_in_threads():
    units = np.arange(10**6) % 5000
    cells = units % 7
    counts, several = counted_by_place(units, cells, 7)
    assert (counts.sum(), several) == (5000, False)
    cells[123_456] += 1
    assert counted_by_place(units, cells, 8)[1]
