"""SparkSource: Parquet data read through Spark, in the session there is or in one of its own."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pkdp_pipeline.errors import ConfigError
from pkdp_pipeline.jobs.job import Job, PeriodTable
from pkdp_pipeline.jobs.source_tables import FileSourceTable
from pkdp_pipeline.jobs.sources.files import files_of, shown
from pkdp_pipeline.jobs.sources.pandas_rows import pandas_rows
from pkdp_pipeline.jobs.sources.parquet_files import agreed_parquet_columns, check_parquet_columns
from pkdp_pipeline.jobs.sources.relation_source import connect
from pkdp_pipeline.jobs.sources.source import (
    Kind,
    Rows,
    day_kind,
    not_readable,
    not_readable_to_its_end,
    not_selectable,
    period_kind,
)
from pkdp_pipeline.jobs.sources.spark_session import QuietSession

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql import Column, DataFrame

__all__ = ["SparkSource", "open_source"]

_DAY = 86_400_000_000
"""Microseconds of a day of the calendar."""

_EPOCH = date(1970, 1, 1)


def open_source(job: Job) -> SparkSource:
    """Return the job's Parquet data, open for reading."""
    return SparkSource(job)


class SparkSource:
    """Parquet data, open for reading until `close`; see `Source`.

    Parameters
    ----------
    job : Job
        Its files are files, folders of files, or addresses that Spark reads, such as ``s3a://…``.

    Raises
    ------
    ConfigError
        If PySpark or Java is missing, there are no Parquet data, or files disagree on what the job needs.
    """

    def __init__(self, job: Job) -> None:
        assert isinstance(job.source, FileSourceTable)
        self._path = shown(job.source.files)
        local = files_of([file for file in job.source.files if "://" not in file], folders=True)
        addresses = [file for file in job.source.files if "://" in file]
        check_parquet_columns([path for path in local if Path(path).is_file()], job)
        agreed: Sequence[str] | None = None
        if len(local) > 1 and not addresses and all(Path(path).is_file() for path in local):
            with connect() as connection:
                agreed = agreed_parquet_columns(connection, local, job)
        self._session = QuietSession()
        problem = ""
        try:
            self._frame = self._session.spark.read.parquet(*map(_address, local), *addresses)
            if agreed is not None:
                self._frame = self._frame.select(*map(_column, agreed))
            self._columns = {field.name: _kind(field.dataType.typeName()) for field in self._frame.schema.fields}
        except Exception as error:  # whatever the JVM says could quote the data
            problem = _condition(error)
        if problem:
            self._session.close()
            raise _refusal(self._path, problem)

    def close(self) -> None:
        """See `Source.close`; a session that was here before stays."""
        self._session.close()

    def interrupt(self) -> None:
        """See `Source.interrupt`; a job of Spark ends by itself: the session may be another program's."""

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
                clock, begin = _clock(column, period), (day - _EPOCH).days * _DAY
                return self._frame.filter((clock >= functions.lit(begin)) & (clock < functions.lit(begin + _DAY)))
            return self._frame.filter(column.cast("date") == functions.lit(day.isoformat()).cast("date"))
        except Exception:  # whatever the JVM says could quote the data
            pass
        raise not_selectable(period)

    def counts(self, period: PeriodTable, day: date, rows: Sequence[Rows]) -> list[int]:
        """See `Source.counts`."""
        from pyspark.sql import functions

        frame = self.day(period, day)
        try:
            return list(frame.agg(*(functions.count_if(self._matching(one)) for one in rows)).collect()[0])
        except Exception:  # whatever the JVM says could quote the data
            pass
        raise not_readable_to_its_end(self._path)

    def newest(self, period: PeriodTable, column: str) -> date | None:
        """See `Source.newest`."""
        from pyspark.sql import functions

        kind = day_kind(self._columns, column)
        try:
            if kind == "instant":
                days = functions.floor(_clock(_column(column), period) / functions.lit(_DAY))
            else:
                days = functions.unix_date(_column(column).cast("date"))
            named = days.between((date.min - _EPOCH).days, (date.max - _EPOCH).days)
            newest = self._frame.agg(functions.max(functions.when(named, days))).collect()[0][0]
            return None if newest is None else _EPOCH + timedelta(days=int(newest))
        except Exception:  # whatever the JVM says could quote the data
            pass
        raise not_readable_to_its_end(self._path)

    def pandas(self, period: PeriodTable, day: date, columns: Sequence[str]) -> pd.DataFrame:
        """See `Source.pandas`."""
        frame = self.day(period, day)
        try:
            return pandas_rows(frame.select(*map(_column, columns)).toArrow())
        except Exception:  # whatever the JVM says could quote the data
            pass
        raise not_readable_to_its_end(self._path)

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


def _clock(column: Column, period: PeriodTable) -> Column:
    """Return what the clocks of the zone show, in microseconds: the session's own time zone has no part in it."""
    from pyspark.sql import functions

    return functions.unix_micros(functions.from_utc_timestamp(column, period.time_zone or "UTC"))


def _address(path: str) -> str:
    """Return a path as Spark reads it: on this machine, and no pattern."""
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
