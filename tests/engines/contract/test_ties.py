"""One of a unit's most frequent cells is drawn by a hash: of equals no cell has more, and all engines draw the same."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from functools import partial

import pyarrow as pa
import pytest
from adapters import adapters
from drawn import draw
from thorough import spread, thinned

from pkdp_pipeline.engines import Selection, engine_for
from pkdp_pipeline.model.keys import canonical_key

FRAMES = [pytest.param(adapter, marks=adapter.marks, id=adapter.name) for adapter in adapters() if not adapter.other]
PEOPLE = 200


def rows_of(keys, units=None):
    """Return rows in which everybody is twice in each of two cells, and once in a third."""
    units = units or pa.array(range(PEOPLE), pa.int64())
    people = pa.concat_arrays([units] * 5)
    cells = pa.concat_arrays([keys.take(pa.array([cell] * PEOPLE)) for cell in (2, 0, 1, 0, 1)])
    return pa.table({"unit": people, "cell": cells})


def counted(adapter, rows, one_cell="most_frequent", by=("cell",), most=1):
    selection = Selection(unit=("unit",), by=by, one_cell=one_cell, cells_per_unit=most)
    with adapter.frame(rows) as frame:
        answer = engine_for(frame).cells(frame, selection)
        keys = [tuple(map(canonical_key, key)) for key in answer.keys.itertuples(index=False)]
        return dict(zip(keys, answer.counts.tolist(), strict=True))


def drawn(person, *cells):
    return min(cells, key=partial(drawn_by, person))


def drawn_by(person, cell):
    return draw([person], [cell])


@thinned(3)
@pytest.mark.parametrize("adapter", FRAMES)
@pytest.mark.parametrize("cells", [("north", "south", "a"), ("Å", None, "b")])
def test_of_equals_a_hash_of_the_unit_and_the_cell_draws(adapter, cells):
    expected = [drawn(person, *cells[:2]) for person in range(PEOPLE)]
    counts = counted(adapter, rows_of(pa.array(cells)))
    assert counts == {(cell,): expected.count(cell) for cell in cells[:2]}
    # Five standard deviations.
    assert abs(counts[(cells[0],)] - PEOPLE / 2) < 2.5 * PEOPLE**0.5


@thinned(3)
@pytest.mark.parametrize("adapter", FRAMES)
@pytest.mark.parametrize("most", [2, 3])
def test_of_more_cells_a_hash_draws_so_many(adapter, most):
    cells = ("north", "south", None)
    expected = dict.fromkeys(((cell,) for cell in cells), 0)
    for person in range(PEOPLE):
        for cell in sorted(cells, key=partial(drawn_by, person))[:most]:
            expected[(cell,)] += 1
    assert counted(adapter, rows_of(pa.array(cells)), "hash", most=most) == expected


KEYS = {
    "whole": pa.array([3, 40, 5], pa.int32()),
    "booleans": pa.array([True, False, None]),
    "dates": pa.array([dt.date(2020, 1, day) for day in (1, 2, 3)], pa.date32()),
    "timestamps": pa.array([dt.datetime(2020, 1, day, 7) for day in (1, 2, 3)], pa.timestamp("us")),
    "moments": pa.array([dt.datetime(2020, 1, 1, 7, 0, 5, part) for part in (10, 500_000, 0)], pa.timestamp("us")),
    "instants": pa.array([dt.datetime(2020, 1, day, 7) for day in (1, 2, 3)], pa.timestamp("us", "UTC")),
    "decimals": pa.array([Decimal("1.50"), Decimal("2.25"), Decimal("3.00")], pa.decimal128(9, 2)),
    "reals": pa.array([1.5, -2.0, 3.25]),
    "categories": pa.array(["x", "y", "z"]).dictionary_encode(),
}
UNITS = {
    "text": pa.array([f"p{number}" for number in range(PEOPLE)]),
    "reals": pa.array([number + 0.5 for number in range(PEOPLE)]),
    "categories": pa.array([f"p{number}" for number in range(PEOPLE)]).dictionary_encode(),
}


@pytest.fixture(scope="module")
def references():
    return {}


PAIRS = [
    *(pytest.param(keys, None, id=name) for name, keys in KEYS.items()),
    *(pytest.param(KEYS["whole"], units, id=f"units of {name}") for name, units in UNITS.items()),
]


@thinned(4)
@pytest.mark.parametrize(("adapter", "keys", "units", "one_cell"), spread(8, FRAMES, PAIRS, ["most_frequent", "hash"]))
def test_every_engine_draws_the_same(adapter, keys, units, one_cell, references):
    rows = rows_of(keys, units)
    counts = counted(adapter, rows, one_cell)
    if adapter.name in ("spark", "ibis") and (pa.types.is_timestamp(keys.type) or units is UNITS["reals"]):
        return  # spelled there as the session or the backend spells them
    key = (id(keys), id(units), one_cell)
    if key not in references:
        references[key] = counted(next(other for other in adapters() if other.name == "duckdb"), rows, one_cell)
    assert counts == references[key]
    assert sum(counts.values()) == PEOPLE
    assert len(counts) == (3 if one_cell == "hash" else 2)


@pytest.mark.parametrize("adapter", FRAMES)
def test_what_is_most_frequent_is_not_drawn(adapter):
    counts = counted(adapter, rows_of(pa.array(["a", "a", "b"])))
    assert counts == {("a",): PEOPLE}


@thinned(2)
@pytest.mark.parametrize(("adapter", "one_cell"), spread(2, FRAMES, ["most_frequent", "hash"]))
def test_whole_numbers_are_drawn_alike_as_whole_numbers_and_as_reals(adapter, one_cell):
    numbers = [None, *range(1, PEOPLE - 3), 10**15, 10**16, 2**62]
    keys = pa.array([3, 4 * 10**16, 5], pa.int64())
    units = pa.array(numbers, pa.int64())
    whole, reals = (rows_of(keys, names) for names in (units, units.cast(pa.float64(), safe=False)))
    assert counted(adapter, reals, one_cell) == counted(adapter, whole, one_cell)
    as_reals = rows_of(keys.cast(pa.float64(), safe=False))
    assert counted(adapter, as_reals, one_cell) == counted(adapter, rows_of(keys), one_cell)
