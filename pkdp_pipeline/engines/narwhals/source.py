"""A frame as Narwhals reads it: its schema, the rows that are counted, and answers without the engine's words."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import narwhals.stable.v2 as nw

from pkdp_pipeline.engines.narwhals.columns import comparable, condition, family, nameable, opened
from pkdp_pipeline.engines.question import not_counted, numbered
from pkdp_pipeline.errors import PkdpError
from pkdp_pipeline.model.predicate.columns import check_columns
from pkdp_pipeline.model.question import Selection

Answer = TypeVar("Answer")


class Source:
    """A frame's columns as expressions, and the rows they make.

    Parameters
    ----------
    frame : a frame that Narwhals can read
    """

    def __init__(self, frame: Any) -> None:
        self._lazy, self.schema = asked(lambda: opened(frame))

    def texts(self, unit: tuple[str, ...]) -> list[str]:
        """Return which of u0, u1, … hold text."""
        named = zip(numbered("u", len(unit)), unit, strict=True)
        return [short for short, name in named if family(self.schema[name]) == "text"]

    def columns(self, question: Selection) -> dict[str, nw.Expr]:
        """Return u0, u1, … (unit), b0, b1, … (by) and o0, o1, … (order_by).

        Raises
        ------
        ArgumentError
            If the frame does not have a column, or not under a type that can be counted.
        """
        named = {"u": ("unit", question.unit), "b": ("by", question.by), "o": ("order_by", question.order_by)}
        for argument, names in named.values():
            check_columns(argument, names, list(self.schema))
        return {
            short: nameable(name, self.schema[name]) if letter == "b" else comparable(argument, name, self.schema[name])
            for letter, (argument, names) in named.items()
            for short, name in zip(numbered(letter, len(names)), names, strict=True)
        }

    def _condition(self, question: Selection) -> nw.Expr | None:
        return condition(question.where, self.schema, spark=self._lazy.implementation.is_spark_like())

    def selected(self, question: Selection) -> nw.LazyFrame[Any]:
        """Return `columns` of the rows that satisfy ``where``."""
        columns, satisfied = self.columns(question), self._condition(question)
        return asked(lambda: (self._lazy if satisfied is None else self._lazy.filter(satisfied)).select(**columns))

    def marked(self, question: Selection) -> nw.LazyFrame[Any]:
        """Return `columns` of all rows, and ``hit``: whether a row satisfies ``where``."""
        columns, satisfied = self.columns(question), self._condition(question)
        if satisfied is not None:
            return asked(lambda: self._lazy.select(**columns, hit=satisfied))
        if not columns:
            return asked(lambda: self._lazy.with_columns(hit=nw.lit(True)).select("hit"))
        return asked(lambda: self._lazy.select(**columns).with_columns(hit=nw.lit(True)))


def asked(question: Callable[[], Answer]) -> Answer:
    """Return what the engine answers; what it says when it cannot could quote the data, and is not passed on."""
    problem = ""
    try:
        with quiet():
            return question()
    except (PkdpError, KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except BaseException as error:  # some engines' failures are no Exception
        problem = type(error).__name__
    raise not_counted(problem)


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
