"""People with two names: values of several types, and texts that differ only by spaces around them."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import partial

import duckdb
import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from adapters import ADAPTERS, adapters
from thorough import spread, thinned

import pkdp_pipeline as pkdp
from pkdp_pipeline.engines import SPACES, Doubts, Selection, Units, engine_for
from pkdp_pipeline.engines.narwhals_columns import opened
from pkdp_pipeline.engines.narwhals_engine import _spaced
from pkdp_pipeline.engines.narwhals_queries import looked_at
from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.model.predicate import from_query

SURE = pkdp.AttackerModel(p_max=0.5)
EVERY = [pytest.param(adapter, marks=adapter.marks, id=adapter.name) for adapter in adapters()]
FRAMES = [pytest.param(adapter, marks=adapter.marks, id=adapter.name) for adapter in adapters() if not adapter.other]


def published(frame, **options):
    options = {"by": "clinic", "unit": "person", "k": 20, "attacker": SURE} | options
    return pkdp.histogram(frame, options.pop("by"), **options)


def clinic(people):
    return pd.DataFrame({"person": pd.Series(people, dtype=object), "clinic": "a"})


NAMES = {
    "text and numbers": [*range(25), *map(str, range(25))],
    "text and reals": [*map(float, range(25)), *map(str, range(25))],
    "text and bytes": [*map(str, range(25)), *(str(name).encode() for name in range(25))],
    "booleans and text": [True, "True"] * 25,
    "dates and times": [date(2024, 1, 1), pd.Timestamp(2024, 1, 1)] * 25,
}


@thinned(2)
@pytest.mark.parametrize("people", NAMES.values(), ids=NAMES)
def test_a_unit_of_several_types_is_refused(people):
    frame = clinic([*people, None])
    categories = frame.assign(person=pd.Categorical(frame["person"]))
    for rows in (frame, categories):
        for ask in ({}, {"units": "exact"}, {"where": "person.isna()"}, {"unit": ["clinic", "person"]}):
            with pytest.raises(pkdp.InputCheckError, match=r"'person'.* several types.* astype"):
                published(rows, missing_unit="drop", **ask)
        with pytest.raises(pkdp.InputCheckError, match="several types"):
            pkdp.count(rows, unit="person", attacker=SURE, missing_unit="drop", k=2)


@pytest.mark.parametrize(
    "people",
    [
        [*range(30)],
        [*range(15), *map(float, range(15, 30)), *map(Decimal, range(30))],
        [*map(str, range(30)), None],
        [str(name).encode() for name in range(30)],
        [*(datetime(2024, 1, day) for day in range(1, 31)), *(pd.Timestamp(2024, 1, day) for day in range(1, 31))],
    ],
)
def test_a_unit_of_one_type_is_counted(people):
    (count,) = published(clinic(people), missing_unit="drop").table["count"]
    assert count == 30


@thinned(2)
@pytest.mark.parametrize("dtype", ["float64", "Float64", "double[pyarrow]", "category", "float32"])
def test_large_whole_numbers_among_reals_are_refused(dtype):
    """One missing value makes whole numbers reals, among which 2^53 and 2^53 + 1 are one person."""
    first = 2**24 if dtype == "float32" else 2**53
    frame = pd.DataFrame({"person": [*range(first - 25, first), None], "clinic": "a"}).astype({"person": dtype})
    assert published(frame, missing_unit="drop").table["count"].tolist() == [25]
    larger = pd.DataFrame({"person": [*range(first - 25, first + 2), None], "clinic": "a"}).astype({"person": dtype})
    for ask in ({}, {"units": "exact"}, {"unit": ["clinic", "person"]}):
        with pytest.raises(pkdp.InputCheckError, match=r"'person' has whole numbers kept as reals.* dtype='Int64'"):
            published(larger, missing_unit="drop", **ask)
    exact = pd.DataFrame({"person": pd.array([*range(first - 25, first + 2), None], dtype="Int64"), "clinic": "a"})
    assert published(exact, missing_unit="drop").table["count"].tolist() == [27]


@pytest.mark.parametrize(
    "people",
    [
        pd.Series([2048, 2049, None], dtype="float16"),
        pd.Series([2.0**53, 2.0**53 + 1, None], dtype=object),
        pd.Series(pd.arrays.SparseArray([2.0**53, 1.0, None])),
    ],
    ids=["short", "objects", "sparse"],
)
def test_so_are_short_reals_and_objects(people):
    with pytest.raises(pkdp.InputCheckError, match="kept as reals"):
        published(pd.DataFrame({"person": people, "clinic": "a"}), missing_unit="drop")


def test_categories_that_no_row_has_are_nobody():
    """A frame of which rows were left out keeps the categories of these."""
    frame = clinic([*map(str, range(30)), 7, "7 "])
    frame["person"] = frame["person"].astype("category")
    assert published(frame.iloc[:30]).table["count"].tolist() == [30]
    assert published(frame.iloc[:0]).table.empty


def test_texts_that_arrow_keeps_in_pandas_are_read_as_such():
    people = pa.array([*map(str, range(30)), "7 "])
    frame = clinic(range(31))
    kept = pd.ArrowDtype(pa.dictionary(pa.int32(), pa.string()))
    viewed = pd.Series(people.cast(pa.string_view()), dtype=pd.ArrowDtype(pa.string_view()))
    for names in (pd.Series(people.dictionary_encode(), dtype=kept), viewed):
        with pytest.raises(pkdp.InputCheckError, match="only by spaces"):
            published(frame.assign(person=names))


@pytest.mark.parametrize("kind", ["UNION(n BIGINT, t VARCHAR)", "JSON"])
def test_a_relation_with_a_type_of_several_is_refused(kind):
    with duckdb.connect() as connection:
        relation = connection.sql(f"SELECT i::VARCHAR::{kind} AS person, 'a' AS clinic FROM range(30) r(i)")
        with pytest.raises(ArgumentError, match=r"'person' has type \w+, whose values may be text in one row"):
            published(relation)


def table(*people, clinics=None):
    return pa.table({"person": pa.array(people, pa.string()), "clinic": clinics or ["a"] * len(people)})


SPACED = {
    "before": ("ann", " ann"),
    "behind": ("ann", "ann "),
    "tabs and line ends": ("\tann", "ann\r\n"),
    "missing beside": ("ann", None, "ann "),
    "not ASCII": ("Åse ", "Åse"),
    "no-break space": ("Åse\u00a0", "Åse"),
    "wide and thin": ("\u3000ann", "ann\u2009"),
    "every kind": (f"{SPACES}ann{SPACES}", "ann"),
}


@thinned(4)
@pytest.mark.parametrize(
    ("adapter", "people"), spread(3, FRAMES, [pytest.param(people, id=name) for name, people in SPACED.items()])
)
def test_names_that_differ_by_spaces_around_them_are_found(adapter, people):
    with adapter.frame(table(*people, "bob")) as frame:
        assert engine_for(frame).units(frame, ("person",)) == Units(alike=True)


@thinned(6)
@pytest.mark.parametrize("adapter", FRAMES)
@pytest.mark.parametrize(
    "people", [(), (None,), ("",), ("ann", "Ann", "an n"), ("ann ", " bob"), ("ann ", "ann "), ("\ufeffann", "ann")]
)
def test_other_names_are_told_apart(adapter, people):
    with adapter.frame(table(*people)) as frame:
        assert engine_for(frame).units(frame, ("person",)) == Units()


@thinned(2)
@pytest.mark.parametrize("adapter", FRAMES)
def test_a_unit_of_several_columns_is_one_when_all_of_them_are(adapter):
    numbers = pa.array([1, 2, 1, None], pa.int64())
    rows = table("ann", "ann ", "bob", "bob ").append_column("house", numbers)
    with adapter.frame(rows) as frame:
        assert engine_for(frame).units(frame, ("person", "house")) == Units()
        assert engine_for(frame).units(frame, ("house",)) == Units()
    with adapter.frame(pa.concat_tables([rows, rows.slice(1, 1).set_column(0, "person", [["ann"]])])) as frame:
        assert engine_for(frame).units(frame, ("person", "house")) == Units(alike=True)
        assert engine_for(frame).units(frame, ("house", "person")) == Units(alike=True)


def test_categories_and_wrapped_frames_are_looked_at():
    rows = table("ann", "ann ")
    coded = rows.set_column(0, "person", rows["person"].dictionary_encode())
    with duckdb.connect() as connection:
        relation = connection.sql("SELECT 'ann'::ENUM('ann', 'ann ') AS person UNION ALL SELECT 'ann '")
        for frame in (coded, coded.to_pandas(), pl.from_arrow(coded), nw.from_native(coded), relation):
            assert engine_for(frame).units(frame, ("person",)) == Units(alike=True)


def test_they_are_refused_whatever_is_asked_unless_they_are_said_to_differ():
    people = [f"{name}{space}" for name in range(25) for space in ("", " ")]
    frame = table(*people).to_pandas()
    for ask in ({}, {"where": "person == '1'"}, {"one_cell": "hash"}):
        with pytest.raises(pkdp.InputCheckError, match=r"'person' .* only by spaces .* units=\"exact\""):
            published(frame, **ask)
    with pytest.raises(pkdp.InputCheckError, match="only by spaces"):
        frame.pkdp.count(unit="person", attacker=SURE, k=2)
    assert list(published(frame, units="exact").table["count"]) == [50]
    assert frame.pkdp.count(unit="person", attacker=SURE, k=2, units="exact").value == 50
    with pytest.raises(ArgumentError, match="units"):
        published(frame, units="trimmed")


def test_spaces_are_what_python_strips():
    assert set(SPACES) == {sign for sign in map(chr, range(0x110000)) if sign.isspace()}


def spaced_texts():
    """Return texts with each space before, behind and within, and one that is another sign, and whether each is."""
    texts = [text for sign in (*SPACES, "é", "日") for text in (sign, f"{sign}ann", f"ann{sign}", f"a{sign}n")]
    return [*texts, "", None], [text != text.strip() for text in texts] + [False, False]


def test_polars_sees_every_space_around_a_name():
    texts, spaced = spaced_texts()
    frame = pl.DataFrame({"i": range(len(texts)), "u0": texts})
    assert looked_at(opened(frame)[0], Doubts(texts=("u0",))).collect()["spaced"].to_list() == spaced
    assert frame.group_by("i").agg(_spaced(pl.col("u0"))).sort("i")["u0"].to_list() == spaced


@pytest.mark.ibis
@pytest.mark.postgres
@pytest.mark.xdist_group("postgres")
def test_postgres_sees_every_space_around_a_name(postgres_url):
    import ibis
    import psycopg

    texts, spaced = spaced_texts()
    with psycopg.connect(postgres_url, autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE TABLE rows (i integer, u0 text)")
        cursor.executemany("INSERT INTO rows VALUES (%s, %s)", list(enumerate(texts)))
    backend = ibis.connect(postgres_url)
    try:
        frame = backend.table("rows")
        answer = looked_at(opened(frame)[0], Doubts(texts=("u0",))).collect("pyarrow").to_native().sort_by("i")
        assert answer["spaced"].to_pylist() == spaced
        assert engine_for(frame).units(frame, ("u0",)) == Units(alike=True)
        within = frame.filter(frame.i % 4 == 3)
        assert engine_for(within).units(within, ("u0",)) == Units()
    finally:
        backend.disconnect()


@pytest.mark.parametrize("kind", [pl.DataFrame, pl.LazyFrame])
@pytest.mark.parametrize("hit", [True, False])
def test_polars_looks_at_the_names_of_all_rows(kind, hit):
    rows = kind({"u": ["ann", " ann", "bob", None], "hit": [not hit, hit, True, False]})
    question = Selection(unit=("u",), where=from_query("hit"), everybody=False)
    tally = engine_for(rows).tally(rows, question)
    assert (tally.satisfying, tally.missing_unit, tally.units) == (2, True, Units(alike=True))


@pytest.mark.ibis
@pytest.mark.postgres
@pytest.mark.xdist_group("postgres")
def test_postgres_counts_numbers_with_a_hit(postgres_url):
    import ibis
    import psycopg

    people = [(None, 1), (7, 1), (7, 9), (8, 9), (8, 9), (2**53, 1), (None, 9)]
    with psycopg.connect(postgres_url, autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE TABLE rows (whole bigint, real double precision, day integer)")
        cursor.executemany("INSERT INTO rows VALUES (%s, %s, %s)", [(person, person, day) for person, day in people])
    backend = ibis.connect(postgres_url)
    try:
        frame = backend.table("rows")
        for name, rounded in {"whole": False, "real": True}.items():
            question = Selection(unit=(name,), where=from_query("day > 5"), everybody=False)
            tally = engine_for(frame).tally(frame, question)
            assert (tally.satisfying, tally.population, tally.missing_unit) == (2, None, True)
            assert tally.units == Units(rounded=rounded)
            nobody = frame.filter(frame.day > 9)
            assert engine_for(nobody).tally(nobody, question) == replace(
                tally, satisfying=0, missing_unit=False, units=Units()
            )
    finally:
        backend.disconnect()


def test_every_engine_takes_part():
    assert {"pandas", "duckdb", "polars", "pyarrow"} <= {adapter.name for adapter in ADAPTERS}


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view()], ids=str)
def test_all_texts_of_arrow_are_units_and_cells(kind):
    table = pa.table({"u": pa.array(["a", "a "]).cast(kind), "c": pa.array(["x", "y"]).cast(kind)})
    assert engine_for(table).units(table, ("u",)) == Units(alike=True)
    for one_cell in ("error", "hash", "most_frequent"):
        question = Selection(unit=("u",), by=("c",), one_cell=one_cell)
        assert engine_for(table).cells(table, question).counts.tolist() == [1, 1]


LEAST = {pa.float64(): 2.0**53, pa.float32(): 2.0**24}


def measured(largest, kind, *others):
    people = pa.array([*(largest - i for i in range(25)), 0.5, -0.0, float("inf"), *others], kind)
    return pa.table({"person": people, "clinic": ["a"] * len(people), "day": range(len(people))})


@thinned(3)
@pytest.mark.parametrize(("adapter", "kind"), spread(2, EVERY, LEAST))
def test_whole_numbers_that_rounding_may_have_made_one_are_found_everywhere(adapter, kind):
    """80 people of HUGEINT whom DuckDB's COPY writes as DOUBLE were published as 41."""
    least = LEAST[kind]
    with adapter.frame(measured(least, kind, None, float("nan"))) as frame:
        assert engine_for(frame).units(frame, ("person",)) == Units(rounded=True)
        assert engine_for(frame).units(frame, ("clinic", "person")) == Units(rounded=True)
    with adapter.frame(measured(-least, kind)) as frame:
        assert engine_for(frame).units(frame, ("person",)) == Units(rounded=True)
    with adapter.frame(measured(least - 1, kind)) as frame:
        assert engine_for(frame).units(frame, ("person",)) == Units()
        assert published(frame).table["count"].tolist() == [28]


@thinned(4)
@pytest.mark.parametrize(
    ("adapter", "kind", "ask"),
    spread(
        6,
        EVERY,
        LEAST,
        [
            pytest.param({}, id="all"),
            pytest.param({"units": "exact"}, id="exact"),
            pytest.param({"where": "day > 26"}, id="where"),
            pytest.param({"one_cell": "hash"}, id="hash"),
            pytest.param(None, id="count"),
        ],
    ),
)
def test_they_are_refused_whatever_is_asked_of_them(adapter, kind, ask):
    counted = partial(pkdp.count, where="day > 26", unit="person", attacker=SURE, k=2)
    publish = counted if ask is None else partial(published, **ask)
    with (
        adapter.frame(measured(LEAST[kind], kind, None, float("nan"))) as frame,
        pytest.raises(pkdp.InputCheckError, match="kept as reals"),
    ):
        publish(frame, missing_unit="drop")


LARGE = 10**17
#: Whole numbers that a real does not tell apart; a pandas column that is nothing else has reals beside a missing value.
WHOLE = [
    ((LARGE + 3, LARGE + 16, LARGE + 64), pa.int64()),
    ((LARGE + 1, LARGE + 3, LARGE + 16), pa.int64()),
    ((9, 2**63, 2**63 + 1), pa.uint64()),
]


@pytest.mark.parametrize(
    ("adapter", "values", "kind"),
    [
        pytest.param(adapter, values, kind, marks=adapter.marks, id=f"{adapter.name}-{values[0]}")
        for adapter in adapters()
        for values, kind in WHOLE
        if adapter.name != "pandas" and (adapter.name != "spark" or kind == pa.int64())
    ],
)
def test_large_whole_numbers_are_keys_beside_a_missing_one(adapter, values, kind):
    rows = table(*map(str, range(7))).append_column("key", pa.array([*values, *values, None], kind))
    with adapter.frame(rows) as frame:
        cells = engine_for(frame).cells(frame, Selection(unit=("person",), by=("key",)))
    keys = [None if pd.isna(key) else int(key) for key in cells.keys["key"].array]
    assert dict(zip(keys, cells.counts.tolist(), strict=True)) == {**dict.fromkeys(values, 2), None: 1}


def test_a_large_real_is_no_whole_number_as_a_key():
    keys = pkdp.histogram(
        pd.DataFrame({"u": range(60), "key": 1e17}), "key", unit="u", k=20, attacker=pkdp.AttackerModel(p_max=0.1)
    ).table["key"]
    assert (keys.dtype, keys.tolist()) == (np.dtype("float64"), [1e17])


@pytest.mark.parametrize("k", [20, 70])
def test_instants_of_arrow_keep_their_zone_where_nothing_is_published(k):
    kind = pd.ArrowDtype(pa.timestamp("us", "Europe/Oslo"))
    frame = pd.DataFrame({"u": range(60), "key": pd.Series([datetime(2026, 1, 1, tzinfo=UTC)] * 60, dtype=kind)})
    attacker = pkdp.AttackerModel(p_max=0.1)
    published = pkdp.histogram(frame, "key", unit="u", k=k, attacker=attacker).table
    assert (len(published), str(published["key"].dtype)) == (int(k == 20), "datetime64[us, Europe/Oslo]")
