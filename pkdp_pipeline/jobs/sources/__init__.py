"""Sources: the rows of one day of a job's Parquet data, one file per engine, imported when a job names it."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from types import MappingProxyType
from typing import cast

from pkdp_pipeline.jobs.sources.source import Rows, Source

__all__ = ["SOURCES", "Rows", "Source", "open_source"]

#: What a job file calls an engine → the module whose `open_source` reads with it.
SOURCES: Mapping[str, str] = MappingProxyType(
    {
        "duckdb": "pkdp_pipeline.jobs.sources.duckdb_source",
        "polars": "pkdp_pipeline.jobs.sources.polars_source",
        "spark": "pkdp_pipeline.jobs.sources.spark_source",
    }
)


def open_source(engine: str, path: str) -> Source:
    """Return the Parquet data at `path`, open for reading with `engine`.

    Raises
    ------
    ConfigError
        If the data cannot be read as Parquet, or the engine is not installed.
    """
    return cast("Source", import_module(SOURCES[engine]).open_source(path))
