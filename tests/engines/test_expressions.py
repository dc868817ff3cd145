"""Expressions and masks as predicates: they choose the rows that a query string does, and a ledger wants a label."""

from __future__ import annotations

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import pkdp_pipeline as pkdp
from pkdp_pipeline.errors import ArgumentError, ConfigError

PEOPLE = pd.DataFrame({"id": range(200), "x": [number % 10 for number in range(200)], "where": True, "town": "Ely"})
PEOPLE.loc[5:9, "x"] = None
ASKED = {"unit": "id", "k": 5, "attacker": pkdp.AttackerModel(p_max=0.5), "target": None}
WANTED = pkdp.histogram(PEOPLE, "town", where="x > 3", **ASKED)
FRAME = pl.from_pandas(PEOPLE)


def ibis_cases():
    ibis = pytest.importorskip("ibis")
    table = ibis.memtable(PEOPLE)
    return [(table, table.x > 3), (table, ibis._.x > 3)]


def same(frame, where):
    assert pkdp.histogram(frame, "town", where=where, **ASKED).table.equals(WANTED.table)
    assert pkdp.count(frame, where, **ASKED).value == int(WANTED.table["count"].iloc[0])


@pytest.mark.parametrize(
    ("frame", "where"),
    [
        (FRAME, pl.col("x") > 3),
        (FRAME.lazy(), pl.col("x") > 3),
        (FRAME, FRAME["x"] > 3),
        (FRAME, pl.all_horizontal(pl.col("^wher.$"), pl.col("x") > 3)),
        (PEOPLE, (PEOPLE["x"] > 3).to_numpy()),
        (PEOPLE, (PEOPLE["x"] > 3).tolist()),
    ],
    ids=str,
)
def test_an_expression_chooses_the_rows_of_a_query_string(frame, where):
    same(frame, where)


@pytest.mark.ibis
@pytest.mark.parametrize("place", [0, 1])
def test_an_expression_of_ibis_does(place):
    same(*ibis_cases()[place])


@pytest.mark.parametrize(
    ("frame", "where", "words"),
    [
        (FRAME, pl.col("y") > 3, "names column 'y', which the frame does not have"),
        (FRAME, pl.col("x") + 3, "must be boolean"),
        (FRAME.lazy(), FRAME["x"] > 3, r"an expression of Polars for this frame, not polars\.Series"),
        (FRAME, PEOPLE["x"] > 3, r"not pandas\.Series"),
        (FRAME, len, "not builtin_function_or_method"),
        (FRAME, np.ones(200, dtype=bool), "or an expression of Polars or Ibis"),
        (PEOPLE, pl.col("x") > 3, r"not polars\.Expr"),
        (pa.Table.from_pandas(PEOPLE), pl.col("x") > 3, r"not polars\.Expr"),
        (PEOPLE, np.ones(3, dtype=bool), "one boolean per row"),
        (PEOPLE, np.arange(200), "must be boolean"),
    ],
    ids=str,
)
def test_what_is_none_of_the_frame_is_one_error(frame, where, words):
    with pytest.raises(ArgumentError, match=words) as caught:
        pkdp.count(frame, where, **ASKED)
    assert str(caught.value).startswith("where ")


def test_a_relation_takes_none():
    with duckdb.connect() as connection, pytest.raises(ArgumentError, match=r"DuckDB relation, not polars\.Expr"):
        pkdp.count(connection.from_df(PEOPLE), pl.col("x") > 3, **ASKED)


@pytest.mark.ibis
def test_expressions_of_ibis_are_for_tables_of_ibis():
    (table, column), (_, deferred) = ibis_cases()
    for frame, where, words in (
        (table, pl.col("x") > 3, r"an expression of Ibis for this table, not polars\.Expr"),
        (FRAME, column, r"an expression of Polars for this frame, not ibis\.BooleanColumn"),
        (PEOPLE, deferred, r"not ibis\.Deferred"),
        (table, table.x + 3, "expression of Polars or Ibis"),
    ):
        with pytest.raises(ArgumentError, match=words):
            pkdp.count(frame, where, **ASKED)


def test_what_fails_in_an_expression_quotes_nothing():
    frame = pl.DataFrame({"id": range(9), "secret": ["Ann Smith"] * 9})
    with pytest.raises(ConfigError) as caught:
        pkdp.count(frame, pl.col("secret").cast(pl.Int64) > 3, **ASKED)
    assert "Ann" not in str(caught.value)
    assert caught.value.__context__ is None


def test_with_a_ledger_an_expression_needs_a_label():
    terms = {**ASKED, "period": "2020"}
    with pkdp.Ledger.open(":memory:") as ledger:
        with pytest.raises(ArgumentError, match="an expression or a callable"):
            pkdp.count(FRAME, pl.col("x") > 3, ledger=ledger, **terms)
        first = pkdp.count(FRAME, pl.col("x") > 3, ledger=ledger, label="tall", **terms)
        with pytest.warns(UserWarning, match="published for the label 'tall' before"):
            again = pkdp.count(FRAME, pl.col("x") > 5, ledger=ledger, label="tall", **terms)
        assert again.id == first.id
        assert "labelled 'tall'" in first.certificate.sentence()
