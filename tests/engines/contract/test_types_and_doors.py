"""Every type of column through every door: the same counts everywhere, or the same refusal."""

from __future__ import annotations

import pyarrow as pa
import pytest
from doors import doors

import pkdp_pipeline as pkdp

EVERY = [pytest.param(door, marks=door.marks, id=door.name) for door in doors()]
ROWS = pa.table(
    {"person": [f"p{i}" for i in range(7)], "city": ["a", "a", "b", "b", "c", None, None], "kept": [1] * 3 + [2] * 4}
)


@pytest.mark.parametrize("door", EVERY)
def test_every_door_counts_people_by_cell(door):
    assert door.count(ROWS, by="city", unit="person", k=2) == {"a": 2, "b": 2, None: 2}
    assert door.count(ROWS, by=["city", "kept"], unit="person", k=2) == {("a", 1): 2, (None, 2): 2}
    assert door.count(ROWS, by="kept", unit="person", k=2, where="city in ['a', 'b']", sql="city IN ('a', 'b')") == {
        1: 3
    }
    kept = {"where": "kept == 1", "sql": "kept = 1"}
    assert door.count(ROWS, by="kept", unit="city", k=2, missing_unit="drop", **kept) == {1: 2}


@pytest.mark.parametrize("door", EVERY)
def test_every_door_refuses_by_an_error_of_ours(door):
    with pytest.raises(pkdp.errors.PkdpError, match="nothing"):
        door.count(ROWS, by="nothing", unit="person", k=2)
