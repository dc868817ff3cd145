"""Counting by hashes of cells: never another answer than a slow count, however the hashes fall."""

from __future__ import annotations

from functools import reduce
from operator import or_

import duckdb
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from thorough import spread, thinned

import pkdp_pipeline as pkdp
from pkdp_pipeline.engines import Selection, engine_for
from pkdp_pipeline.engines.rows import Rows
from pkdp_pipeline.engines.statements import MAX_CODES, joinable
from pkdp_pipeline.errors import ConfigError

QUESTION = Selection(unit=("u",), by=("c",))
#: DuckDB 1 gives no plan that a program can read: all its rows are counted in one statement.
tells_plans = pytest.mark.skipif(duckdb.__version__.startswith("1."), reason="DuckDB 1 gives no plan")


@given(
    codes=st.lists(st.integers(0, 255), min_size=1, max_size=6),
    rows=st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=20),
)
def test_joined_hashes_are_those_of_one_cell_or_of_none(codes, rows):
    """Hashes of eight bits only, so that many are part of others or alike."""
    hashes = np.array(codes, dtype=np.uint64)
    if not joinable(hashes):
        assert any(a & b == a for i, a in enumerate(codes) for j, b in enumerate(codes) if i != j)
        return
    cells = {unit: {cell % len(codes) for other, cell in rows if other == unit} for unit, _ in rows}
    for own in cells.values():
        assert (reduce(or_, (codes[cell] for cell in own)) in codes) == (len(own) == 1)


def test_too_many_cells_and_none_are_counted_another_way():
    assert not joinable(np.array([], dtype=np.uint64))
    # Of equally many bits each: none has all the bits of another.
    numbers = np.arange(MAX_CODES + 1, dtype=np.uint64)
    codes = numbers | (~numbers << np.uint64(32))
    assert joinable(codes[:MAX_CODES])
    assert not joinable(codes)


STORED = """
CREATE TABLE stored AS SELECT i % 700 AS u, 'p' || i % 700 AS name, (i % 700)::DOUBLE AS real,
    i % 700 * 10000019 AS sparse, CASE WHEN i % 7 < 6 THEN 'cell ' || i % 7 END AS c, i % 5 AS d
FROM range(2100) r(i)
"""


@pytest.fixture
def connection():
    with duckdb.connect() as connection:
        connection.execute(STORED)
        yield connection


@pytest.fixture(scope="module")
def reading(tmp_path_factory):
    """A connection whose rows no test changes, with a file of them, and with rows of which one is nobody's."""
    with duckdb.connect() as connection:
        connection.execute(STORED)
        connection.execute("CREATE TABLE lacking AS FROM stored; INSERT INTO lacking (c, d) VALUES ('cell 2', 0)")
        file = tmp_path_factory.mktemp("codes") / "stored.parquet"
        connection.execute(f"COPY stored TO '{file}'")
        yield connection, str(file)


def rows_of(relation, unit=("u",), by=("c",)):
    selected = [f"{column} AS u{i}" for i, column in enumerate(unit)]
    return Rows(relation, (*selected, *(f"{column} AS b{i}" for i, column in enumerate(by))))


def by_code(relation, unit=("u",), by=("c",)):
    return rows_of(relation, unit, by).cells(Selection(unit=unit, by=by))


RELATIONS = {
    "table": lambda connection, file: connection.table("stored"),
    "query": lambda connection, file: connection.sql("SELECT * FROM stored WHERE u >= 0"),
    "file": lambda connection, file: connection.read_parquet(file),
    "stream": lambda connection, file: duckdb.from_arrow(connection.table("stored").to_arrow_table().to_reader()),
}


@thinned(4)
@pytest.mark.parametrize(
    ("unit", "by", "relation"),
    spread(
        4,
        [("u",), ("name",), ("real",), ("sparse",), ("u", "name")],
        [("c",), ("d",), ("d", "c")],
        [pytest.param(relation, id=name) for name, relation in RELATIONS.items()],
    ),
)
def test_rows_are_counted_by_code(reading, unit, by, relation):
    answer = by_code(relation(*reading), unit, by)
    counts = {tuple(row[f"b{i}"] for i in range(len(by))): row["n"] for row in answer.to_pylist()}
    names = ", ".join(by)
    plain = reading[0].sql(f"SELECT {names}, count(DISTINCT u) FROM stored GROUP BY {names}").fetchall()
    assert counts == {row[:-1]: row[-1] for row in plain}
    assert not any(row["missing_unit"] or row["several_cells"] for row in answer.to_pylist())


@thinned(2)
@pytest.mark.parametrize("unit", ["u", "name", "real", "sparse"])
def test_units_in_several_cells_and_without_a_name_are_noticed(connection, unit):
    connection.execute("INSERT INTO stored (c) VALUES ('cell 1'), ('nobody''s')")
    relation = connection.table("stored")
    answer = by_code(relation, (unit,))
    assert all(row["missing_unit"] for row in answer.to_pylist())
    assert {row["b0"]: row["n"] for row in answer.to_pylist()}["nobody's"] == 0
    counted = engine_for(relation).cells(relation, Selection(unit=(unit,), by=("c",)))
    assert (counted.missing_unit, counted.several_cells, int(counted.counts.sum())) == (True, False, 700)
    connection.execute("INSERT INTO stored SELECT * REPLACE ('cell 6' AS c) FROM stored WHERE u = 3 LIMIT 1")
    assert all(row["several_cells"] for row in by_code(relation, (unit,)).to_pylist())
    assert engine_for(relation).cells(relation, Selection(unit=(unit,), by=("c",))).several_cells


def test_a_column_may_be_unit_and_cell(connection):
    relation = connection.table("stored")
    for where in (None, "u < 650"):
        counted = engine_for(relation).cells(relation, Selection(unit=("u",), by=("u", "c"), where=where))
        assert (len(counted.keys), int(counted.counts.sum()), counted.several_cells) == (
            (700, 700, False) if where is None else (650, 650, False)
        )


@thinned(2)
@pytest.mark.parametrize(
    "statement",
    [
        "SELECT a.u, b.c FROM stored a JOIN stored b ON a.u = b.u AND a.c = b.c",
        "SELECT u, c FROM stored USING SAMPLE 10",
        "SELECT u, c FROM stored LIMIT 10",
        "SELECT u, min(c) AS c FROM stored GROUP BY u",
        "SELECT u, c FROM stored UNION ALL SELECT u, c FROM stored",
    ],
)
def test_rows_that_cost_something_to_read_are_read_once(connection, statement):
    assert not rows_of(connection.sql(statement)).is_stored()
    connection.execute(f"CREATE VIEW made AS {statement}")
    assert not rows_of(connection.table("made")).is_stored()


def test_a_stream_that_can_be_read_only_once_is(connection):
    reader = connection.table("stored").to_arrow_reader(100)
    relation = duckdb.from_arrow(reader)
    assert engine_for(relation).cells(relation, QUESTION).counts.sum() == 700


@pytest.mark.parametrize("name", ["p3", " p3"])
def test_a_stream_of_people_with_names_of_text_is_no_empty_table(connection, name):
    """Whether it is refused does not depend on spaces; of one that was read DuckDB 1 would find nobody."""
    connection.execute(f"UPDATE stored SET name = '{name}' WHERE u = 3")
    terms = {"unit": "name", "attacker": pkdp.AttackerModel(p_max=0.1, p_min=0.05), "k": 2, "units": "exact"}

    def stream():
        return duckdb.from_arrow(connection.table("stored").to_arrow_reader(100))

    for publish in (
        lambda: pkdp.histogram(stream(), "c", **terms),
        lambda: pkdp.histogram(stream(), "c", where="d >= 1", **terms),
        lambda: pkdp.count(stream(), "d >= 1", **terms),
        lambda: pkdp.count(stream(), "d >= 1", k_complement=2, **terms),
    ):
        with pytest.raises(ConfigError, match="could not be counted"):
            publish()


HASHES = ("0::UBIGINT", "(hash({0}) & 3)::UBIGINT", "((1::UBIGINT << (hash({0}) % 60)) - 1)::UBIGINT")


@thinned(2)
@pytest.mark.parametrize("hashed", HASHES)
def test_hashes_that_tell_nothing_change_no_answer(connection, monkeypatch, hashed):
    """With the same hash for all cells, or hashes that are part of each other, the same is found."""
    relation, engine = connection.table("stored"), engine_for(connection.table("stored"))
    expected = engine.cells(relation, QUESTION)
    plain = Rows.run

    def run(self, statement):
        return plain(self, statement.replace("hash(b0, 1)", hashed.format("b0")))

    monkeypatch.setattr(Rows, "run", run)
    for unit in ("u", "name"):
        counted = engine.cells(relation, Selection(unit=(unit,), by=("c",)))
        assert sorted(counted.counts) == sorted(expected.counts)
    stream = duckdb.from_arrow(relation.select("name", "c").to_arrow_table().to_reader())
    with pytest.raises(ConfigError, match="could not be counted"):
        engine.cells(stream, Selection(unit=("name",), by=("c",)))
    connection.execute("INSERT INTO stored SELECT * REPLACE ('cell 6' AS c) FROM stored WHERE u = 3 LIMIT 1")
    for unit in ("u", "name"):
        assert engine.cells(relation, Selection(unit=(unit,), by=("c",))).several_cells


@thinned(4)
@pytest.mark.parametrize(
    ("where", "unit", "table", "rows"),
    spread(
        4,
        ["c == 'cell 1'", "d >= 1", "c == 'nobody'"],
        [("u",), ("name",), ("u", "name")],
        ["stored", "lacking"],
        ["once", "twice", "stream"],
    ),
)
def test_people_who_do_not_satisfy_are_counted_only_when_asked_for(reading, where, unit, table, rows):
    """A unit that is missing is noticed in rows that do not satisfy, too, also where rows can be read only once."""
    if rows == "stream" and "name" in unit:
        return  # of which names of text are not counted
    connection, _ = reading
    tallies = []
    for everybody in (True, False):
        frame = connection.table(table)
        if rows == "twice":
            frame = connection.sql(f"SELECT * FROM {table} UNION ALL SELECT * FROM {table}")
        elif rows == "stream":
            frame = duckdb.from_arrow(frame.to_arrow_table().to_reader())
        tallies.append(engine_for(frame).tally(frame, Selection(unit=unit, where=where, everybody=everybody)))
    all_of_them, satisfying_only = tallies
    assert (all_of_them.population, satisfying_only.population) == (700, None)
    assert all_of_them.satisfying == satisfying_only.satisfying
    assert all_of_them.missing_unit == satisfying_only.missing_unit == (table == "lacking")


def test_a_row_that_cannot_be_read_is_not_repeated(connection, tmp_path):
    connection.execute(
        "CREATE VIEW broken AS SELECT u, CASE WHEN u = 699 THEN CAST('Secretville' AS INT) ELSE d END AS c FROM stored"
    )
    for unit in ("u", "name"):
        relation = connection.sql("SELECT u, c, 'p' || u AS name FROM broken")
        with pytest.raises(ConfigError, match="could not be counted") as caught:
            engine_for(relation).cells(relation, Selection(unit=(unit,), by=("c",)))
        assert "Secretville" not in str(caught.value)
        assert caught.value.__context__ is None
    relation = connection.sql(
        "SELECT CASE WHEN u = 699 THEN CAST('Secretville' || u AS INT) ELSE u END AS u, 'x' AS c FROM stored"
    )
    with pytest.raises(ConfigError) as caught:
        engine_for(relation).tally(relation, Selection(unit=("u",), where="c == 'x'"))
    assert "Secretville" not in str(caught.value)
    assert caught.value.__context__ is None
