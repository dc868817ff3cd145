"""Counting distinct units: one engine for each kind of frame, imported when it is given one.

All kinds of frames become the same rows: ``u0, u1, …`` (the unit), ``b0, b1, …`` (the cell), and what the one-cell
rule needs. They are aggregated where they are, or in memory: only counted cells leave the engine.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from types import MappingProxyType
from typing import cast

from pkdp_pipeline.engines.question import CellCounts, Engine, Tally, Units
from pkdp_pipeline.errors import ArgumentError, ConfigError
from pkdp_pipeline.model.selection import Selection
from pkdp_pipeline.plugins import hooks

__all__ = ["ENGINES", "CellCounts", "Engine", "Selection", "Tally", "Units", "engine_for"]

_OURS = "pkdp_pipeline"
#: Top-level package and class name of a frame → the class that counts it, imported when first needed.
ENGINES: Mapping[tuple[str, str], str] = MappingProxyType(
    {
        ("pandas", "DataFrame"): "pkdp_pipeline.engines.pandas_engine:PandasEngine",
        ("duckdb", "DuckDBPyRelation"): "pkdp_pipeline.engines.relation_engine:RelationEngine",
        ("_duckdb", "DuckDBPyRelation"): "pkdp_pipeline.engines.relation_engine:RelationEngine",
        (_OURS, "OnePeriod"): "pkdp_pipeline.engines.period_engine:PeriodEngine",
        ("polars", "DataFrame"): "pkdp_pipeline.engines.polars_engine:PolarsEngine",
        ("polars", "LazyFrame"): "pkdp_pipeline.engines.polars_engine:PolarsEngine",
        ("pyarrow", "Table"): "pkdp_pipeline.engines.narwhals_engine:ArrowEngine",
        ("narwhals", "DataFrame"): "pkdp_pipeline.engines.narwhals_engine:WrappedEngine",
        ("narwhals", "LazyFrame"): "pkdp_pipeline.engines.narwhals_engine:WrappedEngine",
    }
)


def engine_for(frame: object) -> Engine:
    """Return the engine that counts `frame`.

    Raises `ArgumentError` if no engine does, `ConfigError` if the engine needs a package that is not installed.
    """
    kinds = type(frame).__mro__
    names = [(kind.__module__.split(".")[0], kind.__name__) for kind in kinds]
    places = [ENGINES.get(name) for name in names]
    if not any(places):
        others = dict(hooks("engines"))
        places = [others.get(f"{package}.{name}") for package, name in names]
    for kind, place in zip(kinds, places, strict=True):
        module, _, engine = (place or "").partition(":")
        if engine:
            try:
                return cast("Engine", getattr(import_module(module), engine)())
            except ModuleNotFoundError as error:
                raise ConfigError(f"frames of {kind.__module__} need the package {error.name}; install it.") from None
    own = {f"{package.strip('_')}.{name}" for package, name in ENGINES if package != _OURS}
    readable = ", ".join(sorted(own | others.keys()))
    raise ArgumentError(f"frame must be one of {readable}, not {type(frame).__module__}.{type(frame).__name__}.")
