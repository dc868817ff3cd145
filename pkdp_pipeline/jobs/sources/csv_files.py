"""CSV files by day: read by DuckDB for every engine, as text, under declared types and nothing guessed.

DuckDB's own casts read more than one way of writing a value (1.7 as a whole number, 2.1e3, a blank around it), and
look at the rows of other days, so types are read here, from its texts.
"""

from __future__ import annotations

import csv
import gzip
import re
import zlib
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Any, TypeVar

from pkdp_pipeline.engines.rows import literal, quoted
from pkdp_pipeline.errors import ConfigError, PkdpError
from pkdp_pipeline.jobs.sources.files import agreed_columns, escaped, files_of, shown
from pkdp_pipeline.jobs.sources.relations import FetchedSource, connect, in_period, newest_day
from pkdp_pipeline.jobs.sources.source import (
    Kind,
    check_unique,
    needed_columns,
    newest_kind,
    no_such_column,
    period_kind,
)

if TYPE_CHECKING:
    import duckdb

    from pkdp_pipeline.jobs.job import Job
    from pkdp_pipeline.jobs.source_tables import FileSourceTable
    from pkdp_pipeline.jobs.tables import PeriodTable

Answer = TypeVar("Answer")

_KEPT = "pkdp_kept"
_MARK = "pkdp_mistyped_"
_TIME = r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-2][0-9]:[0-5][0-9](:[0-5][0-9](\.[0-9]{1,6})?)?"


@dataclass(frozen=True, slots=True)
class _Form:
    """How values of a kind are written, under which type they are read, and how to say so."""

    pattern: str
    sql_type: str
    words: str


_FORMS: Mapping[Kind, _Form] = {
    "number": _Form(r"[+-]?[0-9]+", "BIGINT", "whole numbers of at most 64 bits"),
    "real": _Form(
        r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?", "DOUBLE", "numbers such as 1.5, with a point"
    ),
    "boolean": _Form(r"(?i)true|false", "BOOLEAN", "true or false"),
    "date": _Form(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", "DATE", "dates such as 2013-01-31"),
    "timestamp": _Form(_TIME, "TIMESTAMP", "timestamps such as 2013-01-31T23:59:00, without a time zone"),
    "instant": _Form(
        _TIME + r" ?(Z|[+-][0-9]{2}(:?[0-9]{2})?)",
        "TIMESTAMP WITH TIME ZONE",
        "timestamps with an offset, such as 2013-01-31T23:59:00+01:00",
    ),
}


class CsvSource(FetchedSource):
    """CSV files, open for reading until `close`; see `Source`.

    The first day is read from the files, and kept. With the second it is clear that more than one is asked for:
    what the job needs of the files is kept in memory, as text, where it fits.

    Parameters
    ----------
    job : Job
    table : FileSourceTable
    spark : object, optional
        The Spark session that counts the rows.

    Raises
    ------
    ConfigError
        If the files cannot be read as CSV.
    """

    def __init__(self, job: Job, table: FileSourceTable, spark: Any = None) -> None:
        if any("://" in file for file in table.files):
            raise ConfigError(
                "source: CSV is read from files of this machine, not from addresses; store it as Parquet."
            )
        self._table, self._spark = table, spark
        self._files, self._name = files_of(table.files), shown(table.files)
        self._headers = {file: _header(file, table.delimiter) for file in self._files}
        somewhere = {column for header in self._headers.values() for column in header}
        if undefined := [column for column in table.types if column not in somewhere]:
            raise no_such_column(dict.fromkeys(undefined, "source.types"), somewhere)
        schemas = {file: dict.fromkeys(header, "text") for file, header in self._headers.items()}
        columns: dict[str, Kind] = dict.fromkeys(agreed_columns(schemas, job, self._name), "text")
        declared: dict[str, Kind] = {job.period.column: "date" if job.period.time_zone is None else "instant"}
        columns |= {name: kind for name, kind in (declared | table.types).items() if name in columns}
        too_many = ConfigError(
            f"source {self._name!r}: the rows of one period do not fit into memory; store the files as Parquet."
        )
        super().__init__(connect(spill=False), columns, too_many)
        self._needed = needed_columns(job, self.columns)
        self._period = job.period.column
        self._clock = _new_name(self.columns)
        self._kept: duckdb.DuckDBPyRelation | None = None
        self._tried_to_keep = False

    def day(self, period: PeriodTable, day: date) -> Any:
        """See `Source.day`."""
        if self._spark is None:
            return self.relation(period, day)
        table = self.table(period, day)
        with suppress(Exception):  # whatever Spark says could quote the data
            return self._spark.createDataFrame(table)
        raise ConfigError("the rows of one period cannot be handed to Spark; choose another engine for this source.")

    def newest(self, period: PeriodTable, column: str) -> date | None:
        """See `Source.newest`."""
        newest = newest_day(quoted(column), newest_kind(self.columns, column), period)
        typed = self._typed([column])
        found: date | None = self._of_texts(lambda texts: texts.project(typed).aggregate(newest).fetchall()[0][0])
        return found

    def fetch(self, period: PeriodTable, day: date, columns: Sequence[str]) -> Any:
        """See `FetchedSource.fetch`."""
        condition = in_period(quoted(self._clock), period_kind(self.columns, period), period, day)
        if self._day is not None and self._day[1] != day:
            self._keep()

        def read(texts: duckdb.DuckDBPyRelation) -> Any:
            kept = self._kept if period.column == self._period and {*columns} <= {*self._needed} else None
            rows = self._with_clock(texts, columns, period.column) if kept is None else kept
            # In two steps: what is wrong on another day does not matter on this one.
            found = rows.filter(condition).project(", ".join(map(quoted, columns))).to_arrow_table()
            return self._connection.from_arrow(found).project(self._typed(columns)).to_arrow_table()

        return self._of_texts(read)

    def _keep(self) -> None:
        """Keep what the job needs in memory, where it fits; else each day is read from the files."""
        import duckdb

        if self._tried_to_keep or self._period not in self._needed:
            return
        self._tried_to_keep = True

        def keep(texts: duckdb.DuckDBPyRelation) -> None:
            rows = self._with_clock(texts, self._needed, self._period)
            with suppress(duckdb.OutOfMemoryException):
                self._connection.execute(f"CREATE OR REPLACE TABLE {_KEPT} AS {rows.sql_query()}")
                self._kept = self._connection.table(_KEPT)

        self._of_texts(keep)

    def _with_clock(
        self, texts: duckdb.DuckDBPyRelation, columns: Sequence[str], period: str
    ) -> duckdb.DuckDBPyRelation:
        names = [*map(quoted, columns), f"{self._reading(period)} AS {quoted(self._clock)}"]
        return texts.project(", ".join(names))

    def _texts(self, files: Sequence[str]) -> duckdb.DuckDBPyRelation:
        """Return the rows of files, every column as text and the declared texts as NULL."""
        alike: dict[tuple[tuple[str, ...], bool], list[str]] = {}
        for file in files:
            alike.setdefault((self._headers[file], _is_compressed(file)), []).append(file)
        null = ", ".join(map(literal, self._table.null)) or "NULL"
        selected = ", ".join(
            # What is read is NULL where nothing is written; whether that is a missing value, the job says.
            f"CASE WHEN coalesce({name}, '') IN ({null}) THEN NULL ELSE coalesce({name}, '') END AS {name}"
            for name in map(quoted, self.columns)
        )
        groups = []
        for (header, compressed), members in alike.items():
            paths = ", ".join(literal(escaped(file)) for file in members)
            columns = ", ".join(f"{literal(column)}: 'VARCHAR'" for column in header)
            groups.append(
                f"SELECT {selected} FROM read_csv([{paths}], columns = {{{columns}}}, quote = '\"', escape = '\"', "
                f"delim = {literal(self._table.delimiter)}, header = true, auto_detect = false, strict_mode = true, "
                "null_padding = false, encoding = 'utf-8', hive_partitioning = false, "
                f"compression = '{'gzip' if compressed else 'none'}')"
            )
        return self._connection.sql(" UNION ALL ".join(groups))

    def _typed(self, columns: Sequence[str]) -> str:
        return ", ".join(f"{self._reading(column)} AS {quoted(column)}" for column in columns)

    def _reading(self, column: str) -> str:
        """Return SQL that reads a column of texts under its type; anything else in it ends the statement."""
        kind, name = self.columns[column], quoted(column)
        if kind == "text":
            return name
        form, written = _FORMS[kind], name
        if kind in ("timestamp", "instant"):  # with seconds, and a colon in the offset: every version reads that
            written = rf"regexp_replace({written}, '^([^ T]+[T ][0-9]{{2}}:[0-9]{{2}})([^:]|$)', '\1:00\2')"
        if kind == "instant":
            written = rf"regexp_replace({written}, '([+-][0-9]{{2}})([0-9]{{2}})$', '\1:\2')"
        # That a value is named in it keeps the error from being raised before there is one.
        mark = f"error({literal(_MARK + str(list(self.columns).index(column)))} || left({name}, 0))"
        fits = f"regexp_full_match({name}, {literal(form.pattern)})"
        good = f"CASE WHEN {fits} THEN TRY_CAST({written} AS {form.sql_type}) END"
        return f"CASE WHEN {name} IS NOT NULL THEN coalesce({good}, {mark}) END"

    def _of_texts(self, question: Callable[[duckdb.DuckDBPyRelation], Answer]) -> Answer:
        """Return what DuckDB answers about the texts; what it says when it cannot is not passed on."""
        import duckdb

        complaint: PkdpError
        try:
            return question(self._texts(self._files))
        except duckdb.OutOfMemoryException:
            complaint = self._broken
        except duckdb.Error as error:
            complaint = self._complaint(error, self._name)
            if not isinstance(error, duckdb.InterruptException):
                complaint = self._of_one_file(question) or complaint
        raise complaint

    def _of_one_file(self, question: Callable[[duckdb.DuckDBPyRelation], object]) -> ConfigError | None:
        """Ask about one file after another, and return what is wrong with the first that is."""
        import duckdb

        self._kept, self._tried_to_keep = None, False  # what is kept is of all files
        for file in self._files if len(self._files) > 1 else ():
            try:
                question(self._texts([file]))
            except duckdb.Error as error:
                return self._complaint(error, file)
        return None

    def _complaint(self, error: duckdb.Error, file: str) -> ConfigError:
        """Return what is wrong with a file: column and rule, never the value."""
        found = re.search(rf"{_MARK}(\d+)", str(error))
        if found is None:
            return _no_csv(file)
        column = list(self.columns)[int(found[1])]
        kind = self.columns[column]
        other = f'declare another type (types = {{ {column} = "{"real" if kind == "number" else "text"}" }} in source)'
        if column == self._period:
            other = (
                f'declare what it holds (types = {{ {column} = "timestamp" }} in source for times without an offset, '
                "no type for dates, and period.time_zone for times with one alone)"
            )
        return ConfigError(
            f"column {column!r} must hold {_FORMS[kind].words}, and holds something else; correct the file {file!r}, "
            f"{other}, or add what stands for a missing value to null."
        )


def _no_csv(file: str) -> ConfigError:
    return ConfigError(
        f"source {file!r} cannot be read to its end as CSV: a file must be UTF-8 text with a header that names every "
        'column, the declared delimiter, " around texts that hold a delimiter, a quote or a line break, and in every '
        "line as many values as the header has names."
    )


def _is_compressed(file: str) -> bool:
    return file.lower().endswith(".gz")


def _header(file: str, delimiter: str) -> tuple[str, ...]:
    header: list[str] = []
    opened: Any = gzip.open if _is_compressed(file) else open
    with (
        suppress(OSError, EOFError, UnicodeDecodeError, csv.Error, zlib.error),
        opened(file, "rt", encoding="utf-8-sig", newline="") as lines,
    ):
        header = next(csv.reader(lines, delimiter=delimiter, strict=True), [])
    if not header or not all(header):
        raise _no_csv(file)
    check_unique(header, f"source {file!r}")
    return tuple(header)


def _new_name(columns: Collection[str]) -> str:
    """Return a name that no column has."""
    name = "pkdp_clock"
    while any(column.casefold() == name for column in columns):
        name += "_"
    return name
