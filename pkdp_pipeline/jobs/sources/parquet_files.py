"""Parquet files as DuckDB reads them: many files are one relation of the columns on which they agree."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from pkdp_pipeline.engines.duckdb.statements import quoted
from pkdp_pipeline.errors import ConfigError
from pkdp_pipeline.jobs.job import Job
from pkdp_pipeline.jobs.source_tables import FileSourceTable
from pkdp_pipeline.jobs.sources.files import agreed_columns, shown
from pkdp_pipeline.jobs.sources.needed import needed_columns, two_columns
from pkdp_pipeline.jobs.sources.source import not_readable
from pkdp_pipeline.model.predicate.columns import twins

if TYPE_CHECKING:
    import duckdb

__all__ = ["agreed_parquet_columns", "check_parquet_columns", "read_parquet"]

_DIGITS = 38


def check_parquet_columns(files: Sequence[str], job: Job) -> None:
    """Refuse files whose columns an engine would read as others, or as other values.

    Raises
    ------
    ConfigError
        If two columns have one name, letter case aside, or one that the job needs holds decimals of more than 38
        digits, which DuckDB reads as floating-point numbers: several would be one.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    for file in files:
        schema = None
        with suppress(pa.ArrowException, OSError):  # what cannot be read, the engine says
            schema = pq.read_schema(file)
        if schema is None:
            continue
        if (found := twins(schema.names)) is not None:
            raise ConfigError(two_columns(f"source {file!r}", found))
        for column in needed_columns(job, schema.names):
            kind = schema.field(column).type
            if pa.types.is_decimal(kind) and kind.precision > _DIGITS:
                raise ConfigError(
                    f"column {column!r} of source {file!r} holds decimals of up to {kind.precision} digits, and more "
                    f"than {_DIGITS} are not told apart; store it as text, or as decimals of at most {_DIGITS} digits."
                )


def read_parquet(connection: duckdb.DuckDBPyConnection, files: Sequence[str], job: Job) -> duckdb.DuckDBPyRelation:
    """Return the rows of Parquet files.

    Raises
    ------
    ConfigError
        If one is no Parquet file, or they do not agree on a column that the job needs.
    """
    import duckdb

    check_parquet_columns(files, job)
    columns = agreed_parquet_columns(connection, files, job)
    try:
        relation = _read(connection, files)
        return relation.project(", ".join(map(quoted, columns))) if len(files) > 1 else relation
    except duckdb.Error:
        pass
    raise not_readable(shown(files))


def agreed_parquet_columns(connection: duckdb.DuckDBPyConnection, files: Sequence[str], job: Job) -> tuple[str, ...]:
    """Return the columns that all files have under one type.

    Raises
    ------
    ConfigError
        As `read_parquet` does.
    """
    import duckdb

    assert isinstance(job.source, FileSourceTable)
    schemas: dict[str, dict[str, str]] = {}
    for file in files:
        try:
            relation = _read(connection, [file])
            schemas[file] = dict(zip(relation.columns, map(str, relation.types), strict=True))
        except duckdb.Error:
            pass
        if file not in schemas:
            raise not_readable(file)
    somewhere = list(dict.fromkeys(column for schema in schemas.values() for column in schema))
    named = needed_columns(job, somewhere)
    return agreed_columns(schemas, named, source=shown(job.source.files))


def _read(connection: duckdb.DuckDBPyConnection, files: Sequence[str]) -> duckdb.DuckDBPyRelation:
    # Each path is one file's name, not a pattern, and says nothing about columns.
    names = [re.sub(r"([*?\[])", r"[\1]", file) for file in files]
    return connection.read_parquet(names, hive_partitioning=False)
