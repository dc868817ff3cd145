"""A table or a query of a DuckDB file, which is opened read-only."""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from pkdp_pipeline.engines.duckdb.statements import literal
from pkdp_pipeline.errors import ConfigError, PkdpError, TemporaryError
from pkdp_pipeline.jobs.job import Job
from pkdp_pipeline.jobs.source_tables import DuckDBSourceTable
from pkdp_pipeline.jobs.sources.needed import check_unique
from pkdp_pipeline.jobs.sources.relation_source import RelationSource, connect
from pkdp_pipeline.jobs.sources.tables import rows_sql

if TYPE_CHECKING:
    import duckdb

__all__ = ["open_source"]

_MAGIC = slice(8, 12)


def open_source(job: Job) -> RelationSource:
    """Return the table or the query, open for reading; nobody writes to the file until it is closed.

    Raises
    ------
    ConfigError
        If there is no such file or table, or the query cannot be answered.
    TemporaryError
        If another process writes to the file.
    """
    assert isinstance(job.source, DuckDBSourceTable)
    table, path = job.source, job.source.duckdb
    rows = rows_sql(table)
    _check_file(path)
    connection = connect()
    try:
        _attach(connection, path)
        relation = _relation(connection, table, rows)
        check_unique(relation.columns)
        _warn(connection, table, rows)
        return RelationSource(
            connection, relation, lambda: ConfigError(f"source {path!r}: {_what(table)} cannot be read to its end.")
        )
    except BaseException:
        connection.close()
        raise


def _check_file(path: str) -> None:
    is_database: bool | None = None
    try:
        with Path(path).open("rb") as file:
            is_database = file.read(_MAGIC.stop)[_MAGIC] == b"DUCK"
    except OSError:
        pass
    if is_database is None:
        raise ConfigError(f"source {path!r} does not exist or cannot be read; correct the path in the job file.")
    if not is_database:
        raise ConfigError(f"source {path!r} is no DuckDB file.")


def _attach(connection: duckdb.DuckDBPyConnection, path: str) -> None:
    import duckdb

    problem: PkdpError | None = None
    try:
        connection.execute(f"ATTACH {literal(path)} AS pkdp_source (READ_ONLY)")
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
            problem = ConfigError(f"source {path!r} cannot be opened as a DuckDB file.")
    raise problem


def _relation(connection: duckdb.DuckDBPyConnection, table: DuckDBSourceTable, rows: str) -> duckdb.DuckDBPyRelation:
    import duckdb

    if table.query is not None:
        kinds: list[object] = []
        with suppress(duckdb.Error):
            kinds = [statement.type for statement in connection.extract_statements(table.query)]
        if kinds != [duckdb.StatementType.SELECT]:
            raise ConfigError("source.query must be one SELECT statement that DuckDB can read.")
    try:
        # Around a query, DuckDB would rename a second column of one name.
        return connection.sql(table.query or f"FROM {rows}")
    except duckdb.Error:
        pass
    raise ConfigError(f"source {table.duckdb!r}: {_what(table)} cannot be read; check the names of tables and columns.")


def _warn(connection: duckdb.DuckDBPyConnection, table: DuckDBSourceTable, rows: str) -> None:
    """Say to the curator what in the query, or in views that it reads, makes rows depend on other rows."""
    from pkdp_pipeline.duckdb.views import link_warning, linking_parts

    parts = linking_parts(connection, table.query or f"FROM {rows}")
    if parts:
        print(f"warning: source {table.duckdb!r}: {link_warning(_what(table), parts)}", file=sys.stderr)


def _what(table: DuckDBSourceTable) -> str:
    return "the query" if table.table is None else f"table {table.table!r}"
