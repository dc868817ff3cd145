"""SparkSource: Parquet data read through Spark, in the session there is or in one of its own."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pkdp_pipeline.errors import ConfigError
from pkdp_pipeline.jobs.job import PeriodTable
from pkdp_pipeline.jobs.sources.source import (
    Kind,
    Rows,
    check_exists,
    not_readable,
    not_readable_to_its_end,
    not_selectable,
    period_kind,
)
from pkdp_pipeline.jobs.sources.spark_session import QuietSession

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = ["SparkSource", "open_source"]

_DAY = 86_400_000_000
"""Microseconds of a day of the calendar."""

_EPOCH = date(1970, 1, 1)


def open_source(path: str) -> SparkSource:
    """Return the Parquet data at `path`, open for reading."""
    return SparkSource(path)


class SparkSource:
    """Parquet data, open for reading until `close`; see `Source`.

    Parameters
    ----------
    path : str
        A file, a folder of files, or an address that Spark reads, such as ``s3a://…``.

    Raises
    ------
    ConfigError
        If PySpark or Java is missing, or there are no Parquet data at `path`.
    """

    def __init__(self, path: str) -> None:
        if "://" not in path:
            check_exists(path, folders=True)
        self._path = path
        self._session = QuietSession()
        problem = ""
        try:
            self._frame = self._session.spark.read.parquet(_address(path))
            self._columns = {field.name: _kind(field.dataType.typeName()) for field in self._frame.schema.fields}
        except Exception as error:  # whatever the JVM says could quote the data
            problem = _condition(error)
        if problem:
            self._session.close()
            raise _refusal(path, problem)

    def close(self) -> None:
        """See `Source.close`; a session that was here before stays."""
        self._session.close()

    @property
    def columns(self) -> Mapping[str, Kind]:
        """See `Source.columns`."""
        return self._columns

    def day(self, period: PeriodTable, day: date) -> DataFrame:
        """See `Source.day`."""
        from pyspark.sql import functions

        kind = period_kind(self._columns, period)
        column = _column(period.column)
        try:
            if kind == "instant":
                # As on the clocks of the zone; read in microseconds, the session's own time zone has no part in it.
                clock = functions.unix_micros(functions.from_utc_timestamp(column, str(period.time_zone)))
                begin = (day - _EPOCH).days * _DAY
                return self._frame.filter((clock >= functions.lit(begin)) & (clock < functions.lit(begin + _DAY)))
            return self._frame.filter(column.cast("date") == functions.lit(day.isoformat()).cast("date"))
        except Exception:  # whatever the JVM says could quote the data
            raise not_selectable(period) from None

    def counts(self, period: PeriodTable, day: date, rows: Sequence[Rows]) -> list[int]:
        """See `Source.counts`."""
        from pyspark.sql import functions

        frame = self.day(period, day)
        try:
            return list(frame.agg(*(functions.count_if(self._matching(one)) for one in rows)).collect()[0])
        except Exception:  # whatever the JVM says could quote the data
            raise not_readable_to_its_end(self._path) from None

    def _matching(self, rows: Rows) -> Column:
        from pyspark.sql import functions

        matching = functions.lit(True)
        for name in rows.present:
            column = _column(name)
            matching &= column.isNotNull()
            if self._columns[name] == "real":
                matching &= ~functions.isnan(column)
        return ~matching if rows.negated else matching


def _column(name: str) -> Column:
    """Return a column by its name; Spark reads dots and stars outside of backticks as something else."""
    from pyspark.sql import functions

    return functions.col("`" + name.replace("`", "``") + "`")


def _address(path: str) -> str:
    """Return a path as Spark reads it: on this machine, and no pattern."""
    if "://" in path:
        return path
    return "file://" + re.sub(r"([\\*?\[\]{}])", r"\\\1", str(Path(path).resolve()))


def _kind(type_name: str) -> Kind:
    kinds: Mapping[str, Kind] = {
        "date": "date",
        "timestamp": "instant",
        "timestamp_ntz": "timestamp",
        "float": "real",
        "double": "real",
        "boolean": "boolean",
        "byte": "number",
        "short": "number",
        "integer": "number",
        "long": "number",
    }
    if type_name.startswith("decimal"):
        return "number"
    if re.match(r"string|char|varchar", type_name):
        return "text"
    return kinds.get(type_name, "other")


def _condition(error: Any) -> str:
    """Return what Spark calls the error, which says nothing about the data."""
    condition = getattr(error, "getCondition", None)
    return str(condition() if callable(condition) else type(error).__name__)


def _refusal(path: str, problem: str) -> ConfigError:
    if problem in ("PARQUET_TYPE_ILLEGAL", "PARQUET_TYPE_NOT_SUPPORTED", "PARQUET_TYPE_NOT_RECOGNIZED"):
        return ConfigError(
            f"source {path!r} has a column of a type that Spark does not read, such as timestamps in nanoseconds; "
            "store it in microseconds, or choose another engine."
        )
    if problem == "PATH_NOT_FOUND":
        return ConfigError(f"source {path!r} does not exist or is not a file; correct the path in the job file.")
    return not_readable(path)
