"""Counting by joined hashes of cells: never another answer than a slow count, however the hashes fall."""

from __future__ import annotations

from functools import reduce
from operator import or_

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pkdp_pipeline.engines.narwhals.spark_codes import MOST, counted_by_code, joinable


@given(
    codes=st.lists(st.integers(0, 255), min_size=1, max_size=6),
    rows=st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=20),
)
def test_joined_hashes_count_units_of_one_cell_and_give_up_on_others(codes, rows):
    """Hashes of eight bits only, so that many are part of others or alike."""
    hashes = np.array(codes, dtype=np.uint64)
    if not joinable(hashes):
        assert any(a & b == a for i, a in enumerate(codes) for j, b in enumerate(codes) if i != j)
        return
    cells = {unit: {cell % len(codes) for other, cell in rows if other == unit} for unit, _ in rows}
    often: dict[int, int] = {}
    for own in cells.values():
        joined = reduce(or_, (codes[cell] for cell in own))
        often[joined] = often.get(joined, 0) + 1
    counts = counted_by_code(hashes, often)
    assert (counts is None) == any(len(own) > 1 for own in cells.values())
    if counts is not None:
        assert counts.tolist() == [sum(own == {cell} for own in cells.values()) for cell in range(len(codes))]


def test_too_many_cells_and_none_are_counted_another_way():
    assert not joinable(np.array([], dtype=np.uint64))
    # Of equally many bits each: none has all the bits of another.
    numbers = np.arange(MOST + 1, dtype=np.uint64)
    codes = numbers | (~numbers << np.uint64(32))
    assert joinable(codes[:MOST])
    assert not joinable(codes)
