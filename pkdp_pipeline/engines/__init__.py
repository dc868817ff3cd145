"""Counting distinct units: one room per engine, found by the kind of frame it is given."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from types import MappingProxyType
from typing import cast

from pkdp_pipeline.engines.question import CellCounts, Engine, Question, Tally
from pkdp_pipeline.errors import ArgumentError

__all__ = ["ENGINES", "CellCounts", "Engine", "Question", "Tally", "engine_for"]

#: Top-level package and class name of a frame → the module whose ENGINE counts it, imported when first needed.
ENGINES: Mapping[tuple[str, str], str] = MappingProxyType(
    {
        ("pandas", "DataFrame"): "pkdp_pipeline.engines.duckdb.pandas_engine",
        ("duckdb", "DuckDBPyRelation"): "pkdp_pipeline.engines.duckdb.relation_engine",
        ("_duckdb", "DuckDBPyRelation"): "pkdp_pipeline.engines.duckdb.relation_engine",
    }
)


def engine_for(frame: object) -> Engine:
    """Return the engine that counts `frame`.

    Raises
    ------
    ArgumentError
        If no engine does.
    """
    for kind in type(frame).__mro__:
        module = ENGINES.get((kind.__module__.split(".")[0], kind.__name__))
        if module is not None:
            return cast("Engine", import_module(module).ENGINE)
    readable = ", ".join(sorted({f"{package.strip('_')}.{name}" for package, name in ENGINES}))
    raise ArgumentError(f"frame must be one of {readable}, not {type(frame).__module__}.{type(frame).__name__}.")
