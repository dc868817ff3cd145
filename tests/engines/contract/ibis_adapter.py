"""Ibis under contract, on its DuckDB backend."""

from __future__ import annotations

from contextlib import contextmanager

import pyarrow as pa
import pytest
from adapters import ADAPTERS, Adapter

__all__: list[str] = []


@contextmanager
def ibis_table(table: pa.Table):
    """Give a table of a database of its own."""
    import ibis

    connection = ibis.duckdb.connect()
    try:
        connection.con.register("rows", table)
        yield connection.table("rows")
    finally:
        connection.disconnect()


ADAPTERS.append(
    Adapter(
        name="ibis",
        frame=ibis_table,
        marks=(pytest.mark.ibis,),
        # The backend's points in time have no zone of their own, and no nanoseconds.
        unheld=frozenset({"instants in a zone", "instants of nanoseconds", "null type"}),
    )
)
