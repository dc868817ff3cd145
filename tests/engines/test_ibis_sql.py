"""The SQL that Ibis makes of a count for BigQuery and Snowflake: what it computes there, and what it brings back.

Nobody connects anywhere: the tables are unbound, and the query is compiled instead of being sent.
"""

from __future__ import annotations

from dataclasses import replace

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from thorough import thinned

from pkdp_pipeline.engines import Selection, engine_for
from pkdp_pipeline.engines.narwhals_engine import NarwhalsEngine
from pkdp_pipeline.errors import ArgumentError, PkdpError
from pkdp_pipeline.model.keys import canonical_key

pytestmark = pytest.mark.ibis

DIALECTS = ["bigquery", "snowflake"]
#: What units are looked at for in the same statement.
LOOKED_AT = {"spaced", "rounded"}
SCHEMA = {
    "person": "string",
    "device": "float64",
    "town": "string",
    "since": "date",
    "at": "timestamp('UTC')",
    "visits": "int64",
    "weight": "float64",
    "adult": "boolean",
}
QUESTIONS = {
    "cells": Selection(unit=("person",), by=("town",)),
    "composite": Selection(unit=("person", "device"), by=("town", "since")),
    "real keys": Selection(unit=("device",), by=("weight",)),
    "predicate": Selection(unit=("person",), by=("town",), where="visits > 5 and town not in ['Å', \"B'ø\"]"),
    "patterns": Selection(
        unit=("person",), by=("town",), where="town.str.startswith('50%') or town.str.contains('a_')"
    ),
    "parts of dates": Selection(
        unit=("person",), by=("town",), where="since.dt.year == 2013 and since.dt.day_of_week < 5"
    ),
    "boolean": Selection(unit=("person",), by=("town",), where="adult"),
    "most frequent": Selection(unit=("person",), by=("town",), one_cell="most_frequent"),
    "first": Selection(unit=("person",), by=("town",), one_cell="first", order_by=("since", "weight")),
    "hash": Selection(unit=("person", "device", "visits"), by=("town", "weight"), one_cell="hash"),
    "several cells": Selection(unit=("person",), by=("town",), one_cell="hash", cells_per_unit=3),
    "rows": Selection(unit=(), by=("town",)),
}


class CompiledError(PkdpError):
    """Raised in place of sending a query."""


@pytest.fixture
def compiled(monkeypatch):
    """Return a function that compiles the queries a question sends."""

    def compile_for(dialect, question, schema=SCHEMA, *, tally=False):
        import ibis

        sent = []

        def capture(query):
            sent.append(str(ibis.to_sql(query.to_native(), dialect=dialect)))
            raise CompiledError

        monkeypatch.setattr("pkdp_pipeline.engines.narwhals_engine.collected", capture)
        ask = NarwhalsEngine().tally if tally else NarwhalsEngine().cells
        with pytest.raises(CompiledError):
            ask(ibis.table(schema, name="visits"), question)
        (text,) = sent
        return text

    return compile_for


def parsed(text, dialect):
    """Return the one statement of a text."""
    import sqlglot

    (statement,) = sqlglot.parse(text, dialect=dialect)
    assert isinstance(statement, sqlglot.exp.Select)
    return statement


def outermost(statement):
    """Return the select list that decides what comes back: below selects of everything and of nothing else."""
    import sqlglot

    while statement.is_star:
        (star,) = statement.expressions
        assert isinstance(star, sqlglot.exp.Star)
        assert not star.args.get("except_")
        statement = statement.find(sqlglot.exp.From).this.unnest()
    return statement


@thinned(3)
@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("kind", QUESTIONS)
def test_one_statement_groups_there_and_brings_back_cells_counts_and_answers(compiled, dialect, kind):
    from sqlglot import exp

    question = QUESTIONS[kind]
    statement = parsed(compiled(dialect, question), dialect)
    keys = [f"b{position}" for position in range(len(question.by))]
    answer = outermost(statement)
    columns = [*keys, "n", "missing_unit", "several_cells"]
    assert answer.named_selects[: len(columns)] == columns
    assert set(answer.named_selects[len(columns) :]) <= LOOKED_AT
    group = answer.args.get("group")
    inner = answer.find(exp.From).this.unnest() if group is None else answer
    group = inner.args.get("group")
    assert group is not None
    assert len(group.expressions) == len(keys)
    # A key is a by-column and nothing else; everything else in the answer is aggregated.
    for projection in inner.selects:
        if projection.alias_or_name in keys:
            assert isinstance(projection.unalias(), exp.Column)
        else:
            assert projection.find(exp.AggFunc) or projection.unalias() == exp.false()
    # All the rest happens below the grouping: no unit's row leaves.
    assert [table.name for table in statement.find_all(exp.Table)] == ["visits"]


@thinned(2)
@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("kind", ["cells", "composite", "predicate", "most frequent", "first"])
def test_only_by_columns_decide_keys(compiled, dialect, kind):
    from sqlglot import exp

    question = QUESTIONS[kind]
    statement = parsed(compiled(dialect, question), dialect)
    # The select nearest to the table names what is read of it: every column under a name of ours.
    reading = next(select for select in statement.find_all(exp.Select) if isinstance(_from(select), exp.Table))
    read = {projection.alias: projection.unalias() for projection in reading.selects}
    for position, name in enumerate(question.by):
        assert {column.name for column in read[f"b{position}"].find_all(exp.Column)} == {name}
    for position, name in enumerate(question.unit):
        assert {column.name for column in read[f"u{position}"].find_all(exp.Column)} == {name}
    answer = outermost(statement)
    assert not {column.name for column in answer.find_all(exp.Column) if column.parent_select is answer} & set(SCHEMA)
    assert not set(answer.named_selects) & {f"u{position}" for position in range(len(question.unit))}


def _from(select):
    return select.args["from_" if "from_" in select.args else "from"].this


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("kind", ["cells", "composite", "real keys", "predicate", "rows"])
def test_rows_are_grouped_and_not_numbered(compiled, dialect, kind):
    from sqlglot import exp

    # Numbering all rows is dear, and BigQuery refuses it by a FLOAT64.
    statement = parsed(compiled(dialect, QUESTIONS[kind]), dialect)
    assert not list(statement.find_all(exp.Window))
    assert len([select for select in statement.find_all(exp.Select) if select.args.get("group")]) >= 1


def test_bigquery_is_asked_for_the_digits_of_a_hash_that_it_gives_as_bytes(compiled, monkeypatch):
    assert "TO_HEX" not in compiled("snowflake", QUESTIONS["hash"])
    monkeypatch.setattr("pkdp_pipeline.engines.narwhals_queries.backend_of", lambda table: "bigquery")
    text = compiled("bigquery", QUESTIONS["hash"])
    assert text.count("MD5(") == text.count("TO_HEX(MD5(") == 4


@pytest.mark.parametrize("kind", ["hash", "several cells", "most frequent"])
def test_each_unit_and_each_cell_is_hashed_once(compiled, kind):
    from sqlglot import exp

    # PostgreSQL computes an expression wherever it is written, but not again behind a window.
    hashes = list(parsed(compiled("postgres", QUESTIONS[kind]), "postgres").find_all(exp.MD5))
    assert len(hashes) == len(QUESTIONS[kind].unit) + 1
    firsts = [hashed.find_ancestor(exp.Case, exp.Select).args["ifs"][0].this for hashed in hashes]
    assert all(first.find(exp.Window).this.key == "rownumber" for first in firsts)
    assert len({first.find(exp.Window).args["partition_by"][0].name for first in firsts}) == len(firsts)


@pytest.mark.parametrize("kind", ["cells", "hash", "most frequent"])
def test_rows_that_are_drawn_at_random_are_read_once(kind):
    import ibis

    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE visits AS SELECT i AS person, i % 7 AS town FROM range(4000) r(i)")
        connection.execute("CREATE VIEW half AS SELECT * FROM visits WHERE random() < 0.5")
        tables = ibis.duckdb.from_connection(connection)
        question = replace(QUESTIONS[kind], unit=("person",), by=("town",))
        for rows in (tables.table("visits").filter(ibis.random() < 0.5), tables.table("half")):
            # Two readings would keep a quarter of them.
            assert 1700 < engine_for(rows).cells(rows, question).counts.sum() < 2300


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_unit_that_is_null_or_nan_is_missing_and_none(compiled, dialect):
    from sqlglot import exp

    statement = parsed(compiled(dialect, Selection(unit=("device",), by=("town",))), dialect)
    reading = next(select for select in statement.find_all(exp.Select) if isinstance(_from(select), exp.Table))
    (device,) = [projection.unalias() for projection in reading.selects if projection.alias == "u0"]
    # Arithmetic, and no question about NaN that a backend could answer from its statistics.
    assert [part.sql(dialect=dialect).count("device") for part in device.find_all(exp.Sub)] == [2]
    assert "NAN" not in device.sql(dialect=dialect).upper()
    with duckdb.connect() as connection:
        # Rules about NaN in which these engines differ play no part in it: DuckDB has those of Snowflake.
        rows = "(VALUES (NULL), ('nan'::DOUBLE), ('inf'), ('-inf'), (0.0), (1.5), (1.7976931348623157e308)) t0(device)"
        units = connection.sql(f"SELECT device, {device.sql(dialect='duckdb')} FROM {rows}").fetchall()
    assert [unit for given, unit in units[:2]] == [None, None]
    assert all(unit == given for given, unit in units[2:])
    counted = {projection.alias: projection for projection in _aggregating(statement).selects}
    marks = {
        projection.alias: projection.unalias()
        for select in statement.find_all(exp.Select)
        for projection in select.selects
        if projection.alias in ("present", "missing") and not isinstance(projection.unalias(), exp.AggFunc)
    }
    assert {column.name for column in counted["n"].find_all(exp.Column)} == {"present"}
    assert {column.name for column in counted["missing_unit"].find_all(exp.Column)} == {"missing"}
    null = [test for test in marks["missing"].find_all(exp.Is) if isinstance(test.expression, exp.Null)]
    assert [test.this.name for test in null] == ["u0"]
    assert marks["present"].find(exp.Not) is not None
    assert [test.this.name for test in marks["present"].find_all(exp.Is)] == ["u0"]


@thinned(3)
@pytest.mark.parametrize("kind", [pa.float64(), pa.float32()])
@pytest.mark.parametrize("rest", [[1.0, 2.0, 7.0], [5.0, 5.0], [0.0, -0.0], [float("inf")], [float("-inf"), 3.0]])
def test_nan_in_a_parquet_file_is_missing_though_its_statistics_name_none(tmp_path, kind, rest):
    import ibis

    path = tmp_path / "rows.parquet"
    people = pa.array([float("nan"), float("nan"), *rest], kind)
    pq.write_table(pa.table({"person": people, "cell": ["a"] * len(people)}), path)
    connection = ibis.duckdb.connect()
    try:
        table = connection.read_parquet(path)
        engine = engine_for(table)
        by_person = engine.cells(table, Selection(unit=("person",), by=("cell",)))
        by_row = engine.cells(table, Selection(unit=(), by=("person",)))
        expected = {
            "person > 1.5": sum(value > 1.5 for value in rest),
            "person <= 1000": sum(value <= 1000 for value in rest),
            "not (person <= 1000)": 2 + sum(value > 1000 for value in rest),
            "person != 5": 2 + sum(value != 5 for value in rest),
            "person.isna()": 2,
            "person.notna()": len(rest),
            "person == person": len(rest),
            "person in [5, 7]": sum(value in (5, 7) for value in rest),
        }
        tallies = {query: engine.tally(table, Selection(unit=(), where=query)).satisfying for query in expected}
        counted = {
            query: sum(engine.cells(table, Selection(unit=(), by=("cell",), where=query)).counts) for query in expected
        }
    finally:
        connection.disconnect()
    assert (list(by_person.counts), by_person.missing_unit) == ([len(set(rest))], True)
    keys = [canonical_key(key) for key in by_row.keys["person"]]
    assert dict(zip(keys, by_row.counts, strict=True)) == {value: rest.count(value) for value in rest} | {None: 2}
    assert tallies == expected
    assert counted == expected


def _aggregating(statement):
    from sqlglot import exp

    return next(select for select in statement.find_all(exp.Select) if select.args.get("group"))


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_tally_is_one_row_of_counts_and_an_answer(compiled, dialect):
    from sqlglot import exp

    text = compiled(dialect, Selection(unit=("person",), where="visits >= 3"), tally=True)
    answer = outermost(parsed(text, dialect))
    assert answer.named_selects[:3] == ["satisfying", "population", "missing_unit"]
    assert set(answer.named_selects[3:]) <= LOOKED_AT
    assert answer.args.get("group") is None
    assert all(projection.find(exp.AggFunc) for projection in answer.selects)


NAMES = ['a"; DROP TABLE visits; --', "a' OR 1=1 --", "select", "ünï cödé", "a\\"]


@pytest.mark.parametrize("name", [*NAMES, "a`; DROP TABLE visits; --"])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_hostile_column_name_is_a_name_and_no_sql(compiled, dialect, name):
    from sqlglot import exp

    schema = {"person": "string", name: "string", f"{name}2": "int64"}
    question = Selection(unit=("person",), by=(name,), one_cell="first", order_by=(f"{name}2",))
    statement = parsed(compiled(dialect, question, schema), dialect)
    assert not list(statement.find_all(exp.Drop, exp.Command))
    assert [table.name for table in statement.find_all(exp.Table)] == ["visits"]
    reading = next(select for select in statement.find_all(exp.Select) if isinstance(_from(select), exp.Table))
    (key,) = [projection.unalias() for projection in reading.selects if projection.alias == "b0"]
    assert isinstance(key, exp.Column)
    if dialect == "snowflake":
        assert key.name == name
    else:
        # BigQuery allows no such characters in names; Ibis leaves them out.
        assert key.name
        assert not set(key.name) & set('"`;')
    assert all(column.this.quoted for column in reading.find_all(exp.Column))


@pytest.mark.parametrize("text", ["x' OR 'a' = 'a", 'x" OR 1 = 1 --', "back\\slash", "\\' OR 1=1 --", "`x`"])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_hostile_constant_is_a_constant(compiled, dialect, text):
    from sqlglot import exp

    where = f"town == {text!r}"
    statement = parsed(compiled(dialect, Selection(unit=("person",), by=("town",), where=where)), dialect)
    reading = next(select for select in statement.find_all(exp.Select) if isinstance(_from(select), exp.Table))
    condition = reading.args["where"]
    assert [literal.name for literal in condition.find_all(exp.Literal)] == [text]
    assert not list(condition.find_all(exp.Or))


def test_what_cannot_be_asked_is_refused_before_anything_is_compiled(compiled):
    import ibis

    table = ibis.table(SCHEMA, name="visits")
    with pytest.raises(ArgumentError, match="nowhere"):
        NarwhalsEngine().cells(table, Selection(unit=("nowhere",), by=("town",)))
    with pytest.raises(ArgumentError, match="where"):
        NarwhalsEngine().cells(table, Selection(unit=("person",), by=("town",), where="visits.max() > 1"))


def test_a_pattern_that_needs_a_regular_expression_is_asked_of_no_backend_that_reads_others():
    import ibis

    table = ibis.table(SCHEMA, name="visits")
    with pytest.raises(ArgumentError, match="no common way"):
        engine_for(table).cells(table, Selection(unit=("person",), by=("town",), where="town.str.like('a_%')"))
