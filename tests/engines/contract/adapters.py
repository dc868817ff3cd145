"""The engines under contract: how each gets its frame from an Arrow table.

A file ``*_adapter.py`` beside this one adds to `ADAPTERS`; nothing else has to know of it.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
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
    """

    name: str
    frame: Callable[[pa.Table], AbstractContextManager[Any]]
    marks: tuple[Any, ...] = ()
    unheld: frozenset[str] = field(default_factory=frozenset)


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
        return pd.ArrowDtype(kind) if pa.types.is_date(kind) or pa.types.is_decimal(kind) else None

    return table.to_pandas(types_mapper=dtype)


@contextmanager
def relation(table: pa.Table):
    """Give a relation over the table, whose session is in UTC."""
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        yield connection.from_arrow(table)


@contextmanager
def stored_relation(table: pa.Table):
    """Give a relation over a table that DuckDB stores, whose rows may be read twice."""
    with relation(table) as rows:
        rows.create("stored")
        yield rows.query("rows", "FROM stored")


@contextmanager
def parquet_relation(table: pa.Table):
    with tempfile.TemporaryDirectory() as folder, duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        pq.write_table(table, f"{folder}/rows.parquet")
        yield connection.read_parquet(f"{folder}/rows.parquet")


@contextmanager
def wrapped_relation(table: pa.Table):
    with relation(table) as rows:
        yield nw.from_native(rows)


#: A relation's points in time have no zone of their own, nor nanoseconds; it has no null type.
_UNHELD = frozenset({"instants in a zone", "instants of nanoseconds", "null type"})

ADAPTERS: list[Adapter] = [
    Adapter(name="pandas", frame=plain(pandas_frame), unheld=frozenset({"null type", "wide integers"})),
    Adapter(name="duckdb", frame=relation, unheld=_UNHELD),
    Adapter(name="duckdb table", frame=stored_relation, unheld=_UNHELD),
    Adapter(name="duckdb parquet", frame=parquet_relation, unheld=_UNHELD | {"a cell of a duration"}),
    Adapter(name="polars", frame=plain(pl.from_arrow)),
    Adapter(name="polars lazy", frame=plain(lambda table: pl.from_arrow(table).lazy())),
    Adapter(name="pyarrow", frame=plain(lambda table: table)),
    Adapter(name="narwhals polars", frame=plain(lambda table: nw.from_native(pl.from_arrow(table)).lazy())),
    Adapter(name="narwhals pyarrow", frame=plain(nw.from_native)),
    Adapter(name="narwhals duckdb", frame=wrapped_relation, unheld=_UNHELD),
]


def adapters() -> list[Adapter]:
    """Return all adapters, those of the other files in this folder too."""
    for path in sorted(Path(__file__).parent.glob("*_adapter.py")):
        import_module(path.stem)
    return list(ADAPTERS)
