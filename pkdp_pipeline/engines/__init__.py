"""Counting distinct units: one room per engine, found by the kind of frame it is given."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from types import MappingProxyType
from typing import cast

from pkdp_pipeline.engines.question import CellCounts, Engine, Tally, Units
from pkdp_pipeline.errors import ArgumentError, ConfigError
from pkdp_pipeline.model.question import Selection

__all__ = ["ENGINES", "CellCounts", "Engine", "Selection", "Tally", "Units", "engine_for"]

#: Top-level package and class name of a frame → the module whose ENGINE counts it, imported when first needed.
ENGINES: Mapping[tuple[str, str], str] = MappingProxyType(
    {
        ("pandas", "DataFrame"): "pkdp_pipeline.engines.duckdb.pandas_engine",
        ("duckdb", "DuckDBPyRelation"): "pkdp_pipeline.engines.duckdb.relation_engine",
        ("_duckdb", "DuckDBPyRelation"): "pkdp_pipeline.engines.duckdb.relation_engine",
        ("polars", "DataFrame"): "pkdp_pipeline.engines.narwhals.polars_engine",
        ("polars", "LazyFrame"): "pkdp_pipeline.engines.narwhals.polars_engine",
        ("pyarrow", "Table"): "pkdp_pipeline.engines.narwhals.arrow_engine",
        ("pyspark", "DataFrame"): "pkdp_pipeline.engines.narwhals.spark_engine",
        ("ibis", "Table"): "pkdp_pipeline.engines.narwhals.engine",
        ("narwhals", "DataFrame"): "pkdp_pipeline.engines.narwhals.wrapped",
        ("narwhals", "LazyFrame"): "pkdp_pipeline.engines.narwhals.wrapped",
    }
)


def engine_for(frame: object) -> Engine:
    """Return the engine that counts `frame`.

    Raises
    ------
    ArgumentError
        If no engine does.
    ConfigError
        If the engine needs a package that is not installed.
    """
    for kind in type(frame).__mro__:
        module = ENGINES.get((kind.__module__.split(".")[0], kind.__name__))
        if module is not None:
            try:
                return cast("Engine", import_module(module).ENGINE)
            except ModuleNotFoundError as error:
                raise ConfigError(f"frames of {kind.__module__} need the package {error.name}; install it.") from None
    readable = ", ".join(sorted({f"{package.strip('_')}.{name}" for package, name in ENGINES}))
    raise ArgumentError(f"frame must be one of {readable}, not {type(frame).__module__}.{type(frame).__name__}.")
