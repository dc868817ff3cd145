"""Parquet data that Spark reads, in the session there is or in a job's own, which keeps quiet and stops.

Spark's log quotes data: the values it cannot cast, plans with their constants. So what a JVM of ours writes
goes nowhere, and what PySpark itself would log is not logged while a job reads.
"""

from __future__ import annotations

import os
import re
import subprocess
import warnings
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from datetime import date, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pkdp_pipeline.engines.period_engine import OnePeriod
from pkdp_pipeline.errors import ConfigError
from pkdp_pipeline.extras.connect.spark_engine import EPOCH, SparkPeriods
from pkdp_pipeline.jobs.sources.csv_files import CsvSource
from pkdp_pipeline.jobs.sources.files import (
    agreed_parquet_columns,
    check_parquet_columns,
    files_of,
    no_parquet,
    shown,
    states_of,
)
from pkdp_pipeline.jobs.sources.relations import connect, new_name
from pkdp_pipeline.jobs.sources.source import Kind, Needs, Source, newest_kind, period_kind
from pkdp_pipeline.model.wording import INSTALLED

if TYPE_CHECKING:
    import logging

    from pyspark.sql import Column, DataFrame, SparkSession

    from pkdp_pipeline.jobs.source_tables import FileSourceTable
    from pkdp_pipeline.jobs.tables import PeriodTable

#: Settings of a session that a job starts; PYSPARK_SUBMIT_ARGS and a session of the caller's come before them.
_SETTINGS: Mapping[str, str] = {
    "spark.app.name": "pkdp",
    "spark.sql.session.timeZone": "UTC",
    # It shows queries to everybody who reaches its port.
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}
#: Loggers by which PySpark repeats an error's message, which can quote a value, on standard error.
_LOGGERS = ("DataFrameQueryContextLogger", "SQLQueryContextLogger")
#: Variables by which PySpark is told to use a session elsewhere.
_CONNECT = {"SPARK_CONNECT_MODE_ENABLED", "SPARK_REMOTE"}
_KINDS: Mapping[str, Kind] = {
    r"date": "date",
    r"timestamp": "instant",
    r"timestamp_ntz": "timestamp",
    r"float|double": "real",
    r"boolean": "boolean",
    r"byte|short|integer|long|decimal.*": "number",
    r"(string|char|varchar).*": "text",
}
_DAY = 86_400_000_000
"""Microseconds of a day of the calendar."""


def open_files(table: FileSourceTable, needs: Needs) -> Source:
    """Return files that Spark reads, open for reading."""
    return SparkSource(table, needs) if table.format == "parquet" else CsvForSpark(table, needs)


class SparkSource(Source):
    """Parquet data, open for reading until `close`; see `Source`.

    `table`: files, folders of files, or addresses that Spark reads, such as ``s3a://…``. Raises `ConfigError` if
    PySpark or Java is missing, there are no Parquet data, or files disagree on what the job needs.
    """

    _announced: Sequence[date] = ()
    _periods: SparkPeriods | None = None

    def __init__(self, table: FileSourceTable, needs: Needs) -> None:
        self._path = shown(table.files)
        # Of folders and addresses nobody knows.
        self._local = () if any("://" in file or Path(file).is_dir() for file in table.files) else files_of(table.files)
        self._opened = states_of(self._local) if self._local else None
        self.broken = no_parquet(self._path, "to its end ")
        local = files_of([file for file in table.files if "://" not in file], folders=True)
        addresses = [file for file in table.files if "://" in file]
        check_parquet_columns([path for path in local if Path(path).is_file()], needs.of, needs.unit)
        agreed: Sequence[str] = ()
        if len(local) > 1 and not addresses and all(Path(path).is_file() for path in local):
            with connect() as connection:
                agreed = agreed_parquet_columns(connection, local, needs, self._path)
        self._session = _QuietSession()
        problem = ""
        try:
            self._frame = self._session.spark.read.parquet(*map(_address, local), *addresses)
            if agreed:
                self._frame = self._frame.select(*map(_column, agreed))
            self.columns = {field.name: _kind(field.dataType.typeName()) for field in self._frame.schema.fields}
        except Exception as error:  # whatever the JVM says could quote the data
            problem = _condition(error)
        if problem:
            self._session.close()
            raise _refusal(self._path, problem)

    def is_one_state(self) -> bool:
        """See `Source.is_one_state`."""
        return self._opened is not None and states_of(self._local) == self._opened

    def close(self) -> None:
        """See `Source.close`; a session that was here before stays."""
        self._session.close()

    def rows(self, period: PeriodTable, first: date, last: date, columns: Collection[str] = ()) -> DataFrame:
        """See `Source.rows`."""
        from pyspark.sql import functions

        column = _column(period.column)
        condition = column.cast("date").between(
            *(functions.lit(bound.isoformat()).cast("date") for bound in (first, last))
        )
        if period_kind(self.columns, period) == "instant":
            clock, (begin, end) = _clock(column, period), ((bound - EPOCH).days * _DAY for bound in (first, last))
            condition = (clock >= functions.lit(begin)) & (clock < functions.lit(end + _DAY))
        return self.guarded(lambda: self._frame.filter(condition))

    def together(self, period: PeriodTable, days: Sequence[date]) -> None:
        """See `Source.together`."""
        self._announced, self._periods = days if len(days) > 1 else (), None

    def day(self, period: PeriodTable, day: date) -> Any:
        """See `Source.day`; a frame of many periods where they are read together."""
        from pyspark.sql import functions

        alone = partial(self.rows, period, *period.span(day))
        if day not in self._announced:
            return alone()
        if self._periods is None:
            rows = self.rows(period, self._announced[0], period.span(self._announced[-1])[1])
            days, name = _days(period.column, self.columns[period.column], period), new_name(self.columns)
            first = days if period.every == "day" else functions.trunc(days, period.every)
            self._periods = SparkPeriods(rows.withColumn(name, functions.unix_date(first)), name)
        return OnePeriod(self._periods, day, alone)

    def counts(self, period: PeriodTable, day: date, unit: Sequence[str]) -> tuple[int, int]:
        """See `Source.counts`."""
        frame = self.day(period, day)
        counted = frame.periods.rows(tuple(unit), day) if isinstance(frame, OnePeriod) else None
        return super().counts(period, day, unit) if counted is None else counted[:2]

    def newest(self, period: PeriodTable, column: str) -> date | None:
        """See `Source.newest`."""
        from pyspark.sql import functions

        days = functions.unix_date(_days(column, newest_kind(self.columns, column, period), period))
        in_python = days.between((date.min - EPOCH).days, (date.max - EPOCH).days)
        newest = functions.max(functions.when(in_python, days))
        latest = self.guarded(lambda: self._frame.agg(newest).collect()[0][0])
        return None if latest is None else EPOCH + timedelta(days=int(latest))


class CsvForSpark(CsvSource):
    """CSV files, read by DuckDB into memory and counted by Spark; see `CsvSource`."""

    def __init__(self, table: FileSourceTable, needs: Needs) -> None:
        self._session = _QuietSession()
        try:
            super().__init__(table, needs.of, needs.period)
        except BaseException:
            self._session.close()
            raise

    def day(self, period: PeriodTable, day: date) -> Any:
        """See `Source.day`."""
        frame = super().day(period, day)
        table = (frame.alone() if isinstance(frame, OnePeriod) else frame).to_arrow_table()
        with suppress(Exception):  # whatever Spark says could quote the data
            from pyspark.sql.pandas.types import from_arrow_schema

            # Else timestamps without a zone would be instants of the session's.
            schema = from_arrow_schema(table.schema, prefer_timestamp_ntz=True)
            return self._session.spark.createDataFrame(table, schema)
        raise ConfigError("the rows of one period cannot be handed to Spark; choose another engine for this source.")

    def close(self) -> None:
        """See `Source.close`; a session that was here before stays."""
        super().close()
        self._session.close()


class _QuietSession:
    """A Spark session, open until `close`, which stops it only if it was started here."""

    def __init__(self) -> None:
        with warnings.catch_warnings():
            # PySpark says which versions of other packages it was not made for.
            warnings.simplefilter("ignore", FutureWarning)
            self.spark, self._started = _session()
        from pyspark.logger import PySparkLogger

        self._disabled: list[logging.Logger] = []
        for name in _LOGGERS:
            logger = PySparkLogger.getLogger(name)
            if not logger.disabled:
                logger.disabled = True
                self._disabled.append(logger)

    def close(self) -> None:
        """Stop the session if it was started here, and let PySpark log again."""
        for logger in self._disabled:
            logger.disabled = False
        self._disabled.clear()
        if self._started:
            self._started = False
            self.spark.stop()


def _session() -> tuple[SparkSession, bool]:
    """Return a session, and whether it was started for this."""
    try:
        from pyspark.errors import PySparkRuntimeError
        from pyspark.sql import SparkSession
        from pyspark.util import is_remote_only
    except ImportError:
        raise ConfigError(
            f'engine = "spark" needs PySpark: {INSTALLED.format("spark")}, or choose another engine.'
        ) from None
    with suppress(PySparkRuntimeError):
        return SparkSession.active(), False
    try:
        # A session elsewhere (Spark Connect) needs no JVM here.
        if not is_remote_only() and not _CONNECT & os.environ.keys():
            _start_here()
        return SparkSession.builder.getOrCreate(), True
    except Exception as error:  # the JVM, the cluster or the network: anything can be in the way
        problem = _condition(error)
    if problem == "JAVA_GATEWAY_EXITED":
        raise ConfigError(
            'engine = "spark" needs Java 17 or newer, found by JAVA_HOME or on the PATH: install it (on Debian: '
            "openjdk-17-jre-headless), correct JAVA_HOME, or choose another engine."
        )
    raise ConfigError(
        f"Spark did not start ({problem}); start a session with SparkSession.builder to see why, or choose another "
        "engine."
    )


def _start_here() -> None:
    """Start a JVM that writes nowhere, unless one runs already: that one is not ours to set up."""
    from pyspark import SparkConf, SparkContext, java_gateway

    if SparkContext._gateway is None:
        settings = SparkConf(loadDefaults=False).setAll(list(_SETTINGS.items()))
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        launch: Any = java_gateway.launch_gateway  # without types of its own
        SparkContext(gateway=launch(settings, popen_kwargs=quiet))


def _column(name: str) -> Column:
    """Return a column by its name; Spark reads dots and stars outside of backticks as something else."""
    from pyspark.sql import functions

    return functions.col("`" + name.replace("`", "``") + "`")


def _days(name: str, kind: Kind, period: PeriodTable) -> Column:
    """Return the days of a column of dates or times, of instants on the clocks of the period's zone."""
    from pyspark.sql import functions

    if kind != "instant":
        return _column(name).cast("date")
    clock, day = _clock(_column(name), period), functions.lit(_DAY)
    # A multiple of a day: as a quotient of floats it would be rounded to the next day, centuries from now.
    return functions.date_from_unix_date(((clock - functions.pmod(clock, day)) / day).cast("int"))


def _clock(column: Column, period: PeriodTable) -> Column:
    """Return what the clocks of the zone show, in microseconds: the session's own time zone has no part in it."""
    from pyspark.sql import functions

    return functions.unix_micros(functions.from_utc_timestamp(column, str(period.time_zone)))


def _address(path: str) -> str:
    """Return a path as Spark reads it: on this machine, and no pattern."""
    return "file://" + re.sub(r"([\\*?\[\]{}])", r"\\\1", str(Path(path).resolve()))


def _kind(type_name: str) -> Kind:
    return next((kind for pattern, kind in _KINDS.items() if re.fullmatch(pattern, type_name)), "other")


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
        return ConfigError(f"source {path!r} does not exist or is not a file; correct the path.")
    return no_parquet(path)
