"""Counting a relation's whole-numbered units in an array: never another answer than a slow count."""

from __future__ import annotations

import duckdb
import pytest

from pkdp_pipeline.engines import Question, engine_for
from pkdp_pipeline.engines.duckdb.relation_places import MOST, cells_by_place
from pkdp_pipeline.engines.duckdb.relation_rows import RelationRows
from pkdp_pipeline.errors import ConfigError

QUESTION = Question(unit=("u",), by=("c",))


@pytest.fixture
def connection():
    with duckdb.connect() as connection:
        connection.execute(
            "CREATE TABLE stored AS SELECT i % 700 AS u, 'p' || i % 700 AS name, (i % 700)::DOUBLE AS real, "
            "i % 700 * 10000019 AS sparse, CASE WHEN i % 7 < 6 THEN 'cell ' || i % 7 END AS c, i % 5 AS d "
            "FROM range(2100) r(i)"
        )
        yield connection


def rows_of(relation, unit=("u",), by=("c",)):
    selected = [f"{column} AS u{i}" for i, column in enumerate(unit)]
    return RelationRows(relation, (*selected, *(f"{column} AS b{i}" for i, column in enumerate(by))))


def by_place(relation, unit=("u",), by=("c",)):
    return cells_by_place(rows_of(relation, unit, by), keys=len(by))


@pytest.mark.parametrize("by", [("c",), ("d",), ("d", "c")])
def test_stored_rows_are_counted_by_place(connection, tmp_path, by):
    connection.execute(f"COPY stored TO '{tmp_path}/stored.parquet'")
    for relation in (
        connection.table("stored"),
        connection.sql("SELECT * FROM stored WHERE u >= 0"),
        connection.read_parquet(str(tmp_path / "stored.parquet")),
    ):
        answer = by_place(relation, ("u",), by)
        found = {tuple(row[f"b{i}"] for i in range(len(by))): row["n"] for row in answer.to_pylist()}
        names = ", ".join(by)
        plain = connection.sql(f"SELECT {names}, count(DISTINCT u) FROM stored GROUP BY {names}").fetchall()
        assert found == {row[:-1]: row[-1] for row in plain}
        assert not any(row["missing_unit"] or row["several_cells"] for row in answer.to_pylist())


@pytest.mark.parametrize("unit", ["u", "name", "real", "sparse"])
def test_units_in_several_cells_and_without_a_name_are_noticed(connection, unit):
    connection.execute("INSERT INTO stored (c) VALUES ('cell 1'), ('nobody''s')")
    relation = connection.table("stored")
    if unit == "u":
        answer = by_place(relation)
        assert all(row["missing_unit"] for row in answer.to_pylist())
        assert {row["b0"]: row["n"] for row in answer.to_pylist()}["nobody's"] == 0
    counted = engine_for(relation).cells(relation, Question(unit=(unit,), by=("c",)))
    assert (counted.missing_unit, counted.several_cells, int(counted.counts.sum())) == (True, False, 700)
    connection.execute("INSERT INTO stored SELECT * REPLACE ('cell 6' AS c) FROM stored WHERE u = 3 LIMIT 1")
    assert unit != "u" or by_place(relation) is None
    assert engine_for(relation).cells(relation, Question(unit=(unit,), by=("c",))).several_cells


def test_many_cells_and_units_far_apart_are_counted_another_way(connection):
    many = connection.sql(f"SELECT i AS u, i // 2 AS c FROM range({2 * MOST + 2}) r(i)")
    many.create("many")
    for relation in (connection.table("many"), connection.sql("SELECT u * 10000019 AS u, c % 7 AS c FROM many")):
        assert by_place(relation) is None
        assert engine_for(relation).cells(relation, QUESTION).counts.sum() == 2 * MOST + 2


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


def test_hashes_that_tell_nothing_change_no_answer(connection, monkeypatch):
    """With the same hash for several cells another way gives the answer."""
    relation = connection.table("stored")
    expected = engine_for(relation).cells(relation, QUESTION)
    plain = RelationRows.run
    for hashed in ("0::UBIGINT", "(hash(b0) & 3)::UBIGINT"):

        def run(self, statement, hashed=hashed):
            return plain(self, statement.replace("hash(b0, 1)", hashed))

        monkeypatch.setattr(RelationRows, "run", run)
        assert by_place(relation) is None
        assert sorted(engine_for(relation).cells(relation, QUESTION).counts) == sorted(expected.counts)


def test_rows_that_change_between_two_readings_change_no_answer(connection, monkeypatch):
    relation, plain = connection.table("stored"), RelationRows.run

    def run(self, statement):
        answer = plain(self, statement)
        if "AS code FROM pkdp_rows GROUP BY b0" in statement:
            connection.execute("INSERT INTO stored (u, name, c) VALUES (9999, 'new', 'new cell')")
        return answer

    monkeypatch.setattr(RelationRows, "run", run)
    assert by_place(relation) is None


def test_a_row_that_cannot_be_read_is_not_repeated(connection, tmp_path):
    connection.execute(
        "CREATE VIEW broken AS SELECT u, CASE WHEN u = 699 THEN CAST('Secretville' AS INT) ELSE d END AS c FROM stored"
    )
    for unit in ("u", "name"):
        relation = connection.sql("SELECT u, c, 'p' || u AS name FROM broken")
        with pytest.raises(ConfigError, match="could not be counted") as caught:
            engine_for(relation).cells(relation, Question(unit=(unit,), by=("c",)))
        assert "Secretville" not in str(caught.value)
        assert caught.value.__context__ is None
    relation = connection.sql(
        "SELECT CASE WHEN u = 699 THEN CAST('Secretville' || u AS INT) ELSE u END AS u, 'x' AS c FROM stored"
    )
    with pytest.raises(ConfigError) as caught:
        list(rows_of(relation).batches("SELECT u0, hash(b0) AS code FROM pkdp_rows"))
    assert "Secretville" not in str(caught.value)
    assert caught.value.__context__ is None
