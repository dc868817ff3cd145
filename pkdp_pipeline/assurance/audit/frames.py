"""The engines whose frames are audited, and the frame of each that holds the same rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from importlib.util import find_spec
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from pkdp_pipeline.errors import ArgumentError

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["ENGINES", "PACE", "SQL", "STANDARD", "check_engine", "engine_frame", "installed"]

SQL = "sql"
"""DuckDB's macros: no frame is given, a statement is run."""


def _same(frame: pd.DataFrame) -> Any:
    return frame


def _relation(frame: pd.DataFrame) -> Any:
    return _connection().from_df(frame)


@cache
def _connection() -> Any:
    import duckdb

    return duckdb.connect()


def _polars(frame: pd.DataFrame) -> Any:
    import polars

    return polars.from_pandas(frame)


def _arrow(frame: pd.DataFrame) -> Any:
    import pyarrow

    return pyarrow.Table.from_pandas(frame, preserve_index=False)


def _ibis(frame: pd.DataFrame) -> Any:
    import ibis

    return ibis.memtable(frame.reset_index(drop=True))


def _spark(frame: pd.DataFrame) -> Any:
    return _session().createDataFrame(frame.astype(object).where(frame.notna(), None))


@cache
def _session() -> Any:
    from pyspark.sql import SparkSession

    return SparkSession.builder.master("local[1]").getOrCreate()


_MAKERS: Mapping[str, tuple[str, Callable[[pd.DataFrame], Any]]] = MappingProxyType(
    {
        "pandas": ("pandas", _same),
        "duckdb": ("duckdb", _relation),
        "polars": ("polars", _polars),
        "pyarrow": ("pyarrow", _arrow),
        "ibis": ("ibis", _ibis),
        "spark": ("pyspark", _spark),
    }
)

STANDARD = ("pandas", "duckdb", SQL, "polars", "pyarrow")
"""What a battery audits where no engine is named; the others take long to start."""
ENGINES = (*STANDARD, "ibis", "spark")

PACE: Mapping[str, float] = MappingProxyType({"duckdb": 0.4, "pyarrow": 0.15, SQL: 0.07, "ibis": 0.05, "spark": 0.05})
"""Of a battery, slower engines get this share of the samples; what differs between engines is only how they count."""


def installed(engines: tuple[str, ...]) -> tuple[str, ...]:
    """Return those of `engines` whose package is there."""
    return tuple(name for name in engines if find_spec("duckdb" if name == SQL else _MAKERS[name][0]) is not None)


def check_engine(engine: str) -> str:
    """Return the name of an engine, if it is one and installed.

    Raises
    ------
    ArgumentError
        If it is not.
    """
    if engine not in ENGINES:
        raise ArgumentError(f"engine must be one of {', '.join(ENGINES)}, not {engine!r}.")
    if not installed((engine,)):
        raise ArgumentError(f"engine {engine!r} needs the package {_MAKERS[engine][0]}; install it.")
    return engine


def engine_frame(engine: str, frame: pd.DataFrame) -> Any:
    """Return a frame of `engine` with the rows of a pandas frame, in their order."""
    return _MAKERS[engine][1](frame)
