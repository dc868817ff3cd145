"""Where rows go that were read into memory: a frame of the job's engine."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from pkdp_pipeline.errors import ConfigError
from pkdp_pipeline.jobs.sources.spark_session import QuietSession

if TYPE_CHECKING:
    import duckdb

__all__ = ["Home", "home_of"]


class Home(Protocol):
    """An engine that counts rows that were read by DuckDB."""

    def frame(self, connection: duckdb.DuckDBPyConnection, table: Any) -> Any:
        """Return an Arrow table as a frame of the engine; `connection` is the reader's."""
        ...

    def close(self) -> None:
        """Close what was opened for it."""
        ...


def home_of(engine: str) -> Home:
    """Return the home of rows for an engine of a job file.

    Raises
    ------
    ConfigError
        If the engine is not installed or does not start.
    """
    homes: Mapping[str, Callable[[], Home]] = {"duckdb": _DuckDB, "spark": _Spark}
    return homes[engine]()


class _DuckDB:
    def frame(self, connection: duckdb.DuckDBPyConnection, table: Any) -> Any:
        return connection.from_arrow(table)

    def close(self) -> None:
        pass


class _Spark:
    def __init__(self) -> None:
        self._session = QuietSession()

    def frame(self, connection: duckdb.DuckDBPyConnection, table: Any) -> Any:
        try:
            return self._session.spark.createDataFrame(table)
        except Exception:  # whatever Spark says could quote the data
            pass
        raise ConfigError("the rows of one day cannot be handed to Spark; choose another engine for this source.")

    def close(self) -> None:
        self._session.close()
