"""PySpark repeats the message of an error on standard error; while units are counted, it does not."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["quiet"]

#: Loggers by which PySpark writes what the JVM said, which can quote a value.
_LOGGERS = ("DataFrameQueryContextLogger", "SQLQueryContextLogger")


@contextmanager
def quiet() -> Iterator[None]:
    """Keep these loggers from writing; nothing happens where PySpark is not in use."""
    silenced = [logger for logger in _loggers() if not logger.disabled]
    for logger in silenced:
        logger.disabled = True
    try:
        yield
    finally:
        for logger in silenced:
            logger.disabled = False


def _loggers() -> list[Any]:
    if sys.modules.get("pyspark") is None:
        return []
    try:
        from pyspark.logger import PySparkLogger
    except ImportError:  # before PySpark 4, which does not log them
        return []
    return [PySparkLogger.getLogger(name) for name in _LOGGERS]
