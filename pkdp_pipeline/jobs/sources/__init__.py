"""Sources: the rows of one day of a job's data, one file for each way of reading, imported when a job needs it."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from types import MappingProxyType
from typing import cast

from pkdp_pipeline.jobs.job import Job
from pkdp_pipeline.jobs.source_tables import DuckDBSourceTable, PostgresSourceTable
from pkdp_pipeline.jobs.sources.needed import needed_columns
from pkdp_pipeline.jobs.sources.source import Kind, Rows, Source

__all__ = ["SOURCES", "Kind", "Rows", "Source", "needed_columns", "open_source"]

#: What a job file calls an engine → the module whose `open_source` reads Parquet files with it.
SOURCES: Mapping[str, str] = MappingProxyType(
    {
        "duckdb": "pkdp_pipeline.jobs.sources.duckdb_source",
        "spark": "pkdp_pipeline.jobs.sources.spark_source",
    }
)


def open_source(job: Job) -> Source:
    """Return what the job reads from, open for reading; it is one state of the data until it is closed.

    Raises
    ------
    ConfigError
        If the data cannot be read, or what reads them is not installed.
    TemporaryError
        If the database is locked or cannot be reached.
    """
    if isinstance(job.source, DuckDBSourceTable):
        module = "pkdp_pipeline.jobs.sources.duckdb_file_source"
    elif isinstance(job.source, PostgresSourceTable):
        module = "pkdp_pipeline.jobs.sources.postgres_source"
    elif job.source.format == "csv":
        module = "pkdp_pipeline.jobs.sources.csv_source"
    else:
        module = SOURCES[job.engine]
    return cast("Source", import_module(module).open_source(job))
