"""Every type of column through every door: the same counts everywhere, or the same refusal."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from column_types import COLUMNS, TYPES, page
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


def cases():
    """Return every type with the doors of its frames; of those that take longer a third each, the others are slow."""
    tried = [door for door in doors() if any(door.name in names for names in COLUMNS.values())]
    return [
        pytest.param(
            door,
            one,
            id=f"{door.name}-{one.name}-{one.column.type}",
            marks=[pytest.mark.slow] if door.slow and (place + number) % 4 else [],
        )
        for place, one in enumerate(TYPES)
        for number, door in enumerate(tried)
        if door.name not in one.unheld
    ]


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
