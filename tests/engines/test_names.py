"""A column's name is a name: whatever an engine reads into it, no other column is counted."""

from __future__ import annotations

import pandas as pd
import pytest
from thorough import spread, thinned

import pkdp_pipeline as pkdp
from pkdp_pipeline.errors import ArgumentError

ATTACKER = pkdp.AttackerModel(p_max=0.5, p_min=0.1, unknown=50)
NAMES = [
    "^oth.*$",
    "^.*$",
    "*",
    "a.b",
    "a`b",
    'a"b',
    "a b",
    "select",
    "ünï",
    "pkdp_",
    "n",
    "u0",
    "b0",
    "count(*)",
    "hit",
]


def polars(frame):
    import polars

    return polars.from_pandas(frame)


def lazy(frame):
    return polars(frame).lazy()


def arrow(frame):
    import pyarrow

    return pyarrow.Table.from_pandas(frame)


def ibis(frame):
    import ibis

    return ibis.memtable(frame)


def spark(frame):
    from local_spark import local_spark

    # Spark does not tell names apart by case.
    records = list(frame.itertuples(index=False, name=None))
    kinds = {"int64": "bigint", "bool": "boolean", "str": "string"}
    names = [f"`{name.replace('`', '``')}` {kinds[str(dtype)]}" for name, dtype in frame.dtypes.items()]
    return local_spark().createDataFrame(records, ", ".join(names))


FRAMES = [
    pytest.param(build, marks=marks, id=build.__name__)
    for build, marks in ((polars, ()), (lazy, ()), (arrow, ()), (ibis, pytest.mark.ibis), (spark, pytest.mark.spark))
]


def table(name: str) -> pd.DataFrame:
    """Nine people; the column with the name is unlike all others."""
    columns = {"person": range(9), "other": ["wrong"] * 9, "a": ["wrong"] * 9, "b": ["wrong"] * 9}
    return pd.DataFrame(columns | {name: ["right"] * 6 + ["rest"] * 3})


@thinned(4)
@pytest.mark.parametrize(("build", "name"), spread(3, FRAMES, NAMES))
def test_a_cell_is_named_by_the_column_that_is_named(build, name):
    release = pkdp.histogram(build(table(name)), name, unit="person", k=2, attacker=ATTACKER)
    assert release.table.to_dict("list") == {name: ["rest", "right"], "count": [3, 6]}


@thinned(3)
@pytest.mark.parametrize(("build", "name"), spread(2, FRAMES, ["^oth.*$", "*", "a.b", "a b"]))
def test_predicates_units_and_orders_read_the_column_that_is_named(build, name):
    frame = build(table(name).assign(**{"^fl.*$": [True] * 4 + [False] * 5}))
    counted = pkdp.count(frame, f"`{name}` == 'right'", unit="person", attacker=ATTACKER)
    assert counted.table["count"].tolist() == [6]
    flagged = pkdp.count(frame, "`^fl.*$`", unit="person", attacker=ATTACKER)
    assert flagged.table["count"].tolist() == [4]
    people = pkdp.count(frame, unit=name, attacker=ATTACKER)
    assert people.table["count"].tolist() == [2]
    ordered = pkdp.histogram(
        frame, "other", unit=name, one_cell="first", order_by="^fl.*$", k=2, attacker=pkdp.AttackerModel(p_max=0.5)
    )
    assert ordered.table.to_dict("list") == {"other": ["wrong"], "count": [2]}


@pytest.mark.spark
def test_names_that_spark_cannot_tell_apart_are_refused():
    frame = spark(pd.DataFrame({"person": range(9), "town": ["x"] * 9, "Town": ["y"] * 9}))
    with pytest.raises(ArgumentError, match="the frame has 'Town' as well"):
        pkdp.histogram(frame, "town", unit="person", k=2, attacker=ATTACKER)
