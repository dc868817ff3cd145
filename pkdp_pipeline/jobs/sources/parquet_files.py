"""Parquet files as DuckDB reads them: many files are one relation of the columns on which they agree."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pkdp_pipeline.engines.duckdb.statements import quoted
from pkdp_pipeline.jobs.job import Job
from pkdp_pipeline.jobs.source_tables import FileSourceTable
from pkdp_pipeline.jobs.sources.files import agreed_columns, shown
from pkdp_pipeline.jobs.sources.needed import needed_columns
from pkdp_pipeline.jobs.sources.source import not_readable

if TYPE_CHECKING:
    import duckdb

__all__ = ["agreed_parquet_columns", "read_parquet"]


def read_parquet(connection: duckdb.DuckDBPyConnection, files: Sequence[str], job: Job) -> duckdb.DuckDBPyRelation:
    """Return the rows of Parquet files.

    Raises
    ------
    ConfigError
        If one is no Parquet file, or they do not agree on a column that the job needs.
    """
    import duckdb

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
