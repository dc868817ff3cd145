"""Frames of PySpark, and Parquet data that a job reads with Spark: in the session there is, or in one of its own.

Units are counted by a code of their cell: the number it is, or a hash. A session of the job's own keeps quiet, and is
stopped. Spark's log quotes data: the values it cannot cast, plans with their constants. So what a JVM of ours writes
goes nowhere, and what PySpark itself would log is not logged while a job reads.
"""

from __future__ import annotations

import os
import re
import subprocess
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import narwhals.stable.v2 as nw
import numpy as np

from pkdp_pipeline.engines import NO_DOUBTS, CellCounts, Doubts, Tally, answered, numbered
from pkdp_pipeline.engines.narwhals_columns import to_public
from pkdp_pipeline.engines.narwhals_engine import FrameColumns, NarwhalsEngine, collected, guarded
from pkdp_pipeline.engines.narwhals_queries import as_number, cells_query, doubted, is_missing
from pkdp_pipeline.engines.period_engine import OnePeriod
from pkdp_pipeline.engines.statements import MAX_CODES, counted_by_code, joinable
from pkdp_pipeline.errors import ConfigError, PkdpError
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


class SparkEngine(NarwhalsEngine):
    """Counts the distinct units of a `pyspark.sql.DataFrame`; only counted cells leave Spark."""

    def _source(self, frame: Any, question: Selection) -> FrameColumns:
        empty = guarded(lambda: [field.name for field in frame.schema if field.dataType.typeName() == "void"])
        return FrameColumns(guarded(partial(_plain, frame, empty)), empty=empty)

    def _counted(self, rows: Any, question: Selection, frame: Any, doubts: Doubts = NO_DOUBTS) -> Any:
        if question.unit and question.counts_in_one_cell:
            answer = _by_code(rows.to_native(), units=len(question.unit), keys=len(question.by), doubts=doubts)
            if answer is not None:
                return answer
        return super()._counted(rows, question, frame, doubts)


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
            answer = guarded(lambda: self.engine._counted(rows, joined, self.frame))
            # By code it is not known which period lacks a unit.
            lacks = any(answer["missing_unit"].to_pylist())
            return guarded(lambda: collected(cells_query(rows, joined))) if lacks else answer

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
    return frame.withColumns(plain | dict.fromkeys(empty, functions.lit(None).cast("string")))


#: The nodes of a plan that reads stored rows once, one by one; of files, those that store columns.
_SCANS = frozenset({"Project", "Filter", "InMemoryRelation", "LocalRelation", "LogicalRelation"})
_COLUMNAR = frozenset({"parquet", "orc"})
#: A whole number of Spark in 31 bits and a sign, and the one that stands for a missing key; larger ones have no code.
_MAX_CODE, _MISSING = 2**30, 2**31 - 1
_MASK = 2**32 - 1


def _by_code(rows: Any, *, units: int, keys: int, doubts: Doubts = NO_DOUBTS) -> Any:
    """Return the answer of `cells_query`, or None where a unit might have several cells or a code does not help.

    An aggregate of numbers has a hash table in Spark; the smallest and largest text of a unit would need a sort. The
    cells and their hashes are listed by the same action.
    """
    import pyarrow.compute as pc
    from pyspark.sql import functions
    from pyspark.sql.types import ByteType, IntegerType, LongType, ShortType

    cell = numbered("b", keys)
    if keys == 1 and isinstance(rows.schema["b0"].dataType, (ByteType, ShortType, IntegerType, LongType)):
        return _by_number(rows, units, doubts)
    if not _is_stored(rows):
        return None
    # A missing key leaves a hash as it was: that it is missing is hashed too.
    code = functions.xxhash64(*cell, *(functions.col(name).isNull() for name in cell)).alias("code")
    listed = rows.groupBy(*cell).agg(functions.lit(1)).select(*cell, code)
    most = 2 * MAX_CODES + 1
    answer = listed.unionByName(_homes(rows, units, code, doubts), allowMissingColumns=True).limit(most + 1).toArrow()
    if len(answer) > most:
        return None
    cells, homes = answer.filter(pc.is_null(answer["n"])), answer.filter(pc.is_valid(answer["n"]))
    codes = cells["code"].to_numpy().view(np.uint64)
    often, asides = _read(homes, doubts)
    if not joinable(codes):
        return None
    counts = counted_by_code(codes, {home % 2**64: n for home, n in often.items()})  # Spark's numbers have a sign
    return None if counts is None else answered(cells.select(cell), counts, **asides)


def _by_number(rows: Any, units: int, doubts: Doubts) -> Any:
    """Do what `_by_code` does for cells that are whole numbers: the number and its complement are the code.

    Of two numbers one has a bit that the other lacks: joined, the bit is in both halves. So no list of the cells is
    needed, and the rows are read once.
    """
    import pyarrow as pa
    from pyspark.sql import functions

    key = functions.col("b0").cast("long")
    number = functions.when(key.isNull(), _MISSING).otherwise(key)
    halves = functions.shiftleft(functions.bitwise_not(number).bitwiseAND(_MASK), 32).bitwiseOR(
        number.bitwiseAND(_MASK)
    )
    coded = functions.when(key.isNull() | key.between(-_MAX_CODE, _MAX_CODE), halves).otherwise(-1)
    counts, asides = _read(_homes(rows, units, coded.alias("code"), doubts).limit(MAX_CODES + 2).toArrow(), doubts)
    cells = {home & _MASK: n for home, n in counts.items() if (home ^ (home >> 32)) & _MASK == _MASK}
    if not counts or len(cells) < len(counts) or len(counts) > MAX_CODES:
        return None
    numbers = [None if low == _MISSING else low - (low >> 31 << 32) for low in cells]
    types = {"tinyint": pa.int8(), "smallint": pa.int16(), "int": pa.int32(), "bigint": pa.int64()}
    named = pa.table({"b0": pa.array(numbers, types[rows.schema["b0"].dataType.simpleString()])})
    return answered(named, np.array(list(cells.values())), **asides)


def _homes(rows: Any, units: int, code: Any, doubts: Doubts) -> Any:
    """Return a frame of (code, n, …): how many units have each joined code, NULL for what is no unit; see `doubted`."""
    from pyspark.sql import functions

    unit = numbered("u", units)
    joined = rows.select(*unit, code).groupBy(*unit).agg(functions.bit_or("code").alias("code"))
    homes = nw.from_native(joined).lazy()
    home = nw.when(~is_missing(unit)).then(nw.col("code"))
    marked = homes.select(code=home, **doubted(doubts)).to_native()
    looks = (functions.bool_or(name).alias(name) for name in doubted(doubts))
    return marked.groupBy("code").agg(functions.count(functions.lit(1)).alias("n"), *looks)


def _read(homes: Any, doubts: Doubts) -> tuple[dict[int, int], dict[str, bool]]:
    """Return how many units have each joined code, and, of all rows, whether a unit is missing or doubted."""
    counts = dict(zip(homes["code"].to_pylist(), homes["n"].to_pylist(), strict=True))
    missing = counts.pop(None, None) is not None
    return counts, {"missing_unit": missing} | {name: any(homes[name].to_pylist()) for name in doubted(doubts)}


def _is_stored(rows: Any) -> bool:
    """Return whether reading the rows twice is cheap, as far as the plan is known; a plan kept by a server is not."""
    nodes = [rows._jdf.queryExecution().optimizedPlan()] if hasattr(rows, "_jdf") else []
    stored = bool(nodes) and nodes[0].deterministic()
    while nodes and stored:
        node = nodes.pop()
        kind = node.nodeName()
        stored = kind in _SCANS and (kind != "LogicalRelation" or node.relation().toString().lower() in _COLUMNAR)
        nodes.extend(node.children().apply(index) for index in range(node.children().size()))
    return stored


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
