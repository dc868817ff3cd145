"""Frames of PySpark, and Parquet data that a job reads with Spark: in the session there is, or in one of its own.

Units are counted by a hash of their cell. A session of the job's own keeps quiet, and is stopped. Spark's log quotes
data: the values it cannot cast, plans with their constants. So what a JVM of ours writes goes nowhere, and what PySpark
itself would log is not logged while a job reads.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import narwhals.stable.v2 as nw

from pkdp_pipeline.engines import NO_DOUBTS, SPACES, CellCounts, Doubts, Tally, numbered
from pkdp_pipeline.engines.narwhals_columns import to_public
from pkdp_pipeline.engines.narwhals_engine import FrameColumns, NarwhalsEngine, collected, guarded
from pkdp_pipeline.engines.narwhals_queries import as_number, doubted, is_missing
from pkdp_pipeline.engines.period_engine import OnePeriod
from pkdp_pipeline.errors import ConfigError, PkdpError
from pkdp_pipeline.extras.connect.postgres import refuse_shadowed
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
from pkdp_pipeline.model.columns import Selection
from pkdp_pipeline.model.wording import INSTALLED

if TYPE_CHECKING:
    import logging

    from pyspark.sql import Column, DataFrame, SparkSession

    from pkdp_pipeline.jobs.source_tables import FileSourceTable
    from pkdp_pipeline.jobs.tables import PeriodTable

EPOCH = date(1970, 1, 1)
#: With "first" for it a session's functions come before Spark's own.
_ORDER = "spark.sql.functionResolution.sessionOrder"


class SparkEngine(NarwhalsEngine):
    """Counts the distinct units of a `pyspark.sql.DataFrame`; only counted cells leave Spark."""

    def _source(self, frame: Any, question: Selection) -> FrameColumns:
        guarded(lambda: _check_own_functions(frame.sparkSession))
        empty = guarded(lambda: [field.name for field in frame.schema if field.dataType.typeName() == "void"])
        return FrameColumns(guarded(partial(_plain, frame, empty)), empty=empty)

    def _counted(self, rows: Any, question: Selection, frame: Any, doubts: Doubts = NO_DOUBTS) -> Any:
        if question.unit and question.counts_in_one_cell:
            answer = _by_code(rows.to_native(), units=len(question.unit), keys=len(question.by), doubts=doubts)
            if answer is not None:
                return answer
        return super()._counted(rows, question, frame, doubts)


def _check_own_functions(session: Any) -> None:
    """Refuse a session in which functions stand for Spark's own: a `ConfigError`."""
    if session.conf.get(_ORDER, "second").lower() == "first":
        own, users = (
            {row[0] for row in session.sql(f"SHOW {kind} FUNCTIONS").collect()} for kind in ("SYSTEM", "USER")
        )
        refuse_shadowed(own & users)


@dataclass(slots=True, eq=False)
class SparkPeriods:
    """The rows of many periods, asked about once; see `engines.period_engine.Periods`.

    `day` names a column of whole numbers: the first day of the period that a row is of, in days from 1970. With it
    before the unit and before the cell, one question is that of each period; a hash would draw other cells.
    """

    frame: Any
    day: str
    engine: SparkEngine = field(default_factory=SparkEngine)
    _answers: dict[str, Any] = field(default_factory=dict)

    def rows(self, unit: tuple[str, ...], first: date) -> tuple[int, int, bool] | None:
        """See `Periods.rows`."""

        def ask() -> Any:
            names = (self.day, *unit)
            source = self.engine._source(self.frame, Selection(unit=names))
            rows, doubts = source.selected(Selection(unit=names)), doubted(source.doubts(names))
            without = as_number(is_missing(numbered("u", len(names))))
            marked = rows.select("u0", without=without, **{name: as_number(doubt) for name, doubt in doubts.items()})
            added = (nw.col(name).sum() for name in ("without", *doubts))
            return guarded(lambda: collected(marked.group_by("u0").agg(nw.len().alias("n"), *added)))

        answer = self._once(f"rows {unit}", ask, "u0", first)
        if answer is None:
            return None
        own = (answer.to_pylist() or [{"n": 0, "without": 0}])[0]
        return own["n"], own["without"], bool(own.get("spaced") or own.get("rounded"))

    def cells(self, question: Selection, first: date) -> CellCounts | None:
        """See `Periods.cells`, and of sums `Periods.sums`."""
        unit = question.unit and (self.day, *question.unit)
        joined = replace(question, unit=unit, by=(self.day, *question.by))
        source = self.engine._source(self.frame, joined)

        def ask() -> Any:
            rows = source.selected(joined)
            # The hash of a cell is that of its period, too: each row says what is so in its own.
            return guarded(lambda: self.engine._counted(rows, joined, self.frame))

        same = unit, joined.by, joined.bounds, joined.summed, joined.bins, joined.where
        answer = self._once(repr(same), ask, "b0", first)
        if answer is None:
            return None
        own = answer.drop_columns("b0").rename_columns(
            [f"b{int(x[1:]) - 1}" if x[0] == "b" else x for x in answer.column_names[1:]]
        )
        return CellCounts.of(own, question.by, lambda keys, name: to_public(keys, source.key_type(question, name)))

    sums = cells

    def tally(self, question: Selection, first: date) -> Tally | None:
        """See `Periods.tally`: each period is asked alone."""
        return None

    def _once(self, question: str, ask: Callable[[], Any], day: str, first: date) -> Any:
        import pyarrow.compute as pc

        if question not in self._answers:
            self._answers[question] = None  # where it fails, for a row of another period perhaps
            with suppress(PkdpError):
                self._answers[question] = ask()
        answer = self._answers[question]
        return None if answer is None else answer.filter(pc.equal(answer[day], (first - EPOCH).days))


def _plain(frame: Any, empty: list[str]) -> Any:
    """Return a frame whose text is compared by its bytes, and so are the columns that have no type, all missing.

    Spark 4 may give a column another order.
    """
    from pyspark.sql import functions

    binary = "UTF8_BINARY"
    collated = [field.name for field in frame.schema if getattr(field.dataType, "collation", binary) != binary]
    quoted = {name: functions.col(f"`{name.replace('`', '``')}`") for name in collated}
    plain = {name: functions.collate(column, binary) for name, column in quoted.items()}
    plain |= {name: functions.lit(None).cast("string") for name in empty}
    return frame.withColumns(plain) if plain else frame


#: The signs of `SPACES` as SQL writes them.
_SPACES = ", ".join(f"'{sign}'" for sign in SPACES)


def _by_code(rows: Any, *, units: int, keys: int, doubts: Doubts = NO_DOUBTS) -> Any:
    """Return the answer of `cells_query`, or None where two cells have one hash.

    Rows are read once and grouped by unit and by cell, both with the smallest and the largest hash of their cells: an
    aggregate of numbers has a hash table in Spark, the smallest and largest text of a unit would need a sort. Units
    are counted by the hash of their cell, and the cells are listed with theirs. Few calls build the plan, since Spark
    analyses it anew in each.
    """
    import pyarrow as pa
    import pyarrow.compute as pc
    from pyspark.sql.functions import expr

    unit, cell = numbered("u", units), numbered("b", keys)
    nobody = " OR ".join(f"{name} IS NULL" for name in unit)
    answers = {
        "n": f"count_if(NOT ({nobody}))",
        "missing_unit": f"bool_or({nobody})",
        "several_cells": f"bool_or(code <> largest AND NOT ({nobody}))",
    }
    ends = (f"{end}({name}, 1) IN ({_SPACES})" for name in doubts.texts for end in ("left", "right"))
    large = (f"abs({name}) BETWEEN {least!r}D AND {sys.float_info.max!r}D" for name, least in doubts.reals.items())
    looks = {"spaced": " OR ".join(ends), "rounded": " OR ".join(large)}
    answers |= {name: f"bool_or({look})" for name, look in looks.items() if look}
    # A missing key leaves a hash as it was: that it is missing is hashed too.
    code = f"xxhash64({', '.join(cell)}, {', '.join(f'{name} IS NULL' for name in cell)}) AS code"
    groups = rows.selectExpr(*unit, *cell, code).groupingSets([unit, cell], *unit, *cell)
    listed = groups.agg(expr("min(code) AS code"), expr("max(code) AS largest"), expr("grouping(u0) AS listed"))
    counted = listed.groupBy("listed", *cell, "code").agg(*(expr(f"{answers[name]} AS {name}") for name in answers))
    answer = counted.toArrow()
    cells, homes = (answer.filter(pc.equal(answer["listed"], number)) for number in (1, 0))
    if len(cells["code"].unique()) < len(cells):
        return None
    # Nobody is at home where a cell is only listed: its n is missing.
    homes = homes.take(pc.index_in(cells["code"], homes["code"].combine_chunks()))
    return pa.table({name: cells[name] for name in cell} | {name: homes[name] for name in answers})


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
