"""A table or a query of a DuckDB file, which is opened read-only."""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import TYPE_CHECKING

from pkdp_pipeline.engines.duckdb.statements import literal
from pkdp_pipeline.errors import ConfigError, PkdpError, TemporaryError
from pkdp_pipeline.jobs.sources.relations import RelationSource, connect
from pkdp_pipeline.jobs.sources.source import check_unique

if TYPE_CHECKING:
    import duckdb

    from pkdp_pipeline.jobs.source_tables import DuckDBSourceTable

__all__ = ["open_duckdb"]


def open_duckdb(table: DuckDBSourceTable) -> RelationSource:
    """Return the table or the query, open for reading; nobody writes to the file until it is closed.

    Raises
    ------
    ConfigError
        If there is no such file or table, or the query cannot be answered.
    TemporaryError
        If another process writes to the file.
    """
    what = "the query" if table.table is None else f"table {table.table!r}"
    connection = connect()
    try:
        _attach(connection, table.duckdb)
        relation = _relation(connection, table, what)
        check_unique(relation.columns)
        _warn(connection, table, what)
        broken = ConfigError(f"source {table.duckdb!r}: {what} cannot be read to its end.")
        return RelationSource(connection, relation, broken)
    except BaseException:
        connection.close()
        raise


def _attach(connection: duckdb.DuckDBPyConnection, path: str) -> None:
    import duckdb

    problem: PkdpError
    try:
        # Under its type: what is no DuckDB file is not a matter for an extension.
        connection.execute(f"ATTACH {literal(path)} AS pkdp_source (READ_ONLY, TYPE duckdb)")
        connection.execute("USE pkdp_source")
        return
    except duckdb.Error as error:
        said = str(error)
        if "Could not set lock" in said or "file handle conflict" in said:
            problem = TemporaryError(
                f"source {path!r} is in use by something that may write to it; run again when that has closed it."
            )
        elif "version" in said:
            problem = ConfigError(
                f"source {path!r} was written by another version of DuckDB than {duckdb.__version__} can read; install "
                "the version that wrote it, or write the file with an older storage version."
            )
        else:
            problem = ConfigError(
                f"source {path!r} does not exist, or cannot be opened as a DuckDB file; correct the path in the job "
                "file."
            )
    raise problem


def _relation(connection: duckdb.DuckDBPyConnection, table: DuckDBSourceTable, what: str) -> duckdb.DuckDBPyRelation:
    import duckdb

    if table.query is not None:
        kinds: list[object] = []
        with suppress(duckdb.Error):
            kinds = [statement.type for statement in connection.extract_statements(table.query)]
        if kinds != [duckdb.StatementType.SELECT]:
            raise ConfigError("source.query must be one SELECT statement that DuckDB can read.")
    with suppress(duckdb.Error):
        # Around a query, DuckDB would rename a second column of one name.
        return connection.sql(table.query or f"FROM {table.rows_sql}")
    raise ConfigError(f"source {table.duckdb!r}: {what} cannot be read; check the names of tables and columns.")


def _warn(connection: duckdb.DuckDBPyConnection, table: DuckDBSourceTable, what: str) -> None:
    """Say to the curator what in the query, or in views that it reads, makes rows depend on other rows."""
    from pkdp_pipeline.duckdb.views import link_warning, linking_parts

    parts = linking_parts(connection, table.query or f"FROM {table.rows_sql}")
    if parts:
        print(f"warning: source {table.duckdb!r}: {link_warning(what, parts)}", file=sys.stderr)
