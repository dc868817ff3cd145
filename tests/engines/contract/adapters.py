"""The engines under contract: how each gets its frame from an Arrow table.

A file ``*_adapter.py`` beside this one adds to `ADAPTERS`; nothing else has to know of it.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import duckdb
import narwhals as nw
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

__all__ = ["ADAPTERS", "Adapter", "adapters", "plain"]


@dataclass(frozen=True, kw_only=True)
class Adapter:
    """One kind of frame.

    Parameters
    ----------
    name : str
    frame : callable
        Gives a context with the frame of an Arrow table.
    marks : tuple
        Marks of every test over this kind.
    unheld : frozenset of str
        Cases whose data this kind of frame cannot hold.
    other : bool
        It is another kind of frame of an engine that is here: a sixth of the cases will do, all in ``make slow``.
    """

    name: str
    frame: Callable[[pa.Table], AbstractContextManager[Any]]
    marks: tuple[Any, ...] = ()
    unheld: frozenset[str] = field(default_factory=frozenset)
    other: bool = False


def plain(make: Callable[[pa.Table], Any]) -> Callable[[pa.Table], AbstractContextManager[Any]]:
    """Return a frame's maker as one of contexts, for frames that nothing has to be closed for."""

    @contextmanager
    def frame(table):
        yield make(table)

    return frame


def pandas_frame(table: pa.Table) -> pd.DataFrame:
    """Return a frame of pandas' default dtypes, where it has one that holds the values."""

    def dtype(kind):
        if pa.types.is_boolean(kind):
            return pd.BooleanDtype()
        # Objects are dates where there are any.
        typed = pa.types.is_decimal(kind) or (pa.types.is_date(kind) and not len(table))
        return pd.ArrowDtype(kind) if typed else None

    return table.to_pandas(types_mapper=dtype)


@cache
def connection() -> duckdb.DuckDBPyConnection:
    """Return the one connection of all relations, whose session is in UTC."""
    opened = duckdb.connect()
    opened.execute("SET TimeZone = 'UTC'")
    return opened


def relation(table: pa.Table) -> duckdb.DuckDBPyRelation:
    return connection().from_arrow(table)


def stored_relation(table: pa.Table) -> duckdb.DuckDBPyRelation:
    """Return a relation over a table that DuckDB stores, whose rows may be read twice."""
    connection().execute("DROP TABLE IF EXISTS stored")
    rows = relation(table)
    rows.create("stored")
    return rows.query("rows", "FROM stored")


@contextmanager
def parquet_relation(table: pa.Table):
    with tempfile.TemporaryDirectory() as folder:
        pq.write_table(table, f"{folder}/rows.parquet")
        yield connection().read_parquet(f"{folder}/rows.parquet")


#: A relation's points in time have no zone of their own, nor, in DuckDB 1, nanoseconds; it has no null type.
_UNHELD = frozenset({"instants in a zone", "null type"})
if duckdb.__version__.startswith("1."):
    _UNHELD |= {"instants of nanoseconds"}

ADAPTERS: list[Adapter] = [
    Adapter(name="pandas", frame=plain(pandas_frame), unheld=frozenset({"null type", "wide integers"})),
    Adapter(name="duckdb", frame=plain(relation), unheld=_UNHELD),
    Adapter(name="duckdb table", frame=plain(stored_relation), unheld=_UNHELD),
    Adapter(name="duckdb parquet", frame=parquet_relation, unheld=_UNHELD | {"a cell of a duration"}, other=True),
    Adapter(name="polars", frame=plain(pl.from_arrow)),
    Adapter(name="polars lazy", frame=plain(lambda table: pl.from_arrow(table).lazy()), other=True),
    Adapter(name="pyarrow", frame=plain(lambda table: table)),
    Adapter(name="narwhals polars", frame=plain(lambda table: nw.from_native(pl.from_arrow(table)).lazy()), other=True),
    Adapter(name="narwhals pyarrow", frame=plain(nw.from_native), other=True),
    Adapter(
        name="narwhals duckdb",
        frame=plain(lambda table: nw.from_native(relation(table))),
        unheld=_UNHELD,
        other=True,
    ),
]


def adapters() -> list[Adapter]:
    """Return all adapters, those of the other files in this folder too."""
    for path in sorted(Path(__file__).parent.glob("*_adapter.py")):
        import_module(path.stem)
    return list(ADAPTERS)
