"""CSV files and workbooks, by period or whole: read by DuckDB for every engine, as text, with nothing guessed.

DuckDB's own casts read more than one way of writing a value (1.7 as a whole number, 2.1e3, a blank around it), and
look at the rows of other periods, so types are read here, from its texts.

A whole file as one table, for a release of its own: Parquet as it is, CSV as a job reads it.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from pkdp_pipeline.engines.rows import literal, quoted
from pkdp_pipeline.errors import ArgumentError, ConfigError
from pkdp_pipeline.jobs.source_tables import FileSourceTable
from pkdp_pipeline.jobs.sources.files import (
    DATE_FORMATS,
    DECIMAL_COMMA,
    ENCODED,
    FORMS,
    MIDNIGHT,
    Utf8,
    agreed_columns,
    as_iso,
    check_parquet_columns,
    date_pattern,
    ends_differ,
    escaped,
    files_of,
    no_csv,
    no_parquet,
    other_order,
    shown,
    states_of,
)
from pkdp_pipeline.jobs.sources.relations import FetchedSource, connect, in_period, kind_of, new_name, outermost_day
from pkdp_pipeline.jobs.sources.source import (
    DAYS,
    Kind,
    newest_kind,
    no_such_column,
    period_kind,
)

if TYPE_CHECKING:
    import duckdb

    from pkdp_pipeline.jobs.tables import PeriodTable

Answer = TypeVar("Answer")

_FETCHED, _REJECTED, _SCANS = "pkdp_fetched", "pkdp_rejected", "pkdp_scans"
_MAX_REJECTED = 1000
_MISSHAPEN = ("MISSING COLUMNS", "TOO MANY COLUMNS")
_MARK = "pkdp_mistyped_"


class CsvSource(FetchedSource):
    """CSV files, open for reading until `close`; see `Source`.

    The rows that are fetched are kept in memory under their types: one period, or as many as are read together and fit.
    Raises `ConfigError` if the files cannot be read as CSV.

    Parameters
    ----------
    needed : callable
        Returns which of the columns that it is given are needed.
    period : PeriodTable, optional
        Without one the files are only read `whole`.
    """

    def __init__(
        self,
        table: FileSourceTable,
        needed: Callable[[Collection[str]], Sequence[str]],
        period: PeriodTable | None = None,
    ) -> None:
        if any("://" in file for file in table.files):
            raise ConfigError(
                "source: CSV is read from files of this machine, not from addresses; store it as Parquet."
            )
        self._table = table
        self._files, self._name = files_of(table.files), shown(table.files)
        self._opened = states_of(self._files)
        self._utf8 = Utf8(table)
        try:
            columns = self._agreed(needed, period)
        except BaseException:
            self._utf8.close()  # what was read of workbooks does not stay in memory
            raise
        too_many = ConfigError(
            f"source {self._name!r}: the rows of one period, or of the whole file, do not fit into memory; store the "
            "files as Parquet."
        )
        super().__init__(connect(spill=False), columns, too_many)
        self._needed = needed(self.columns)
        self._period = "" if period is None else period.column  # no column is named ""
        self._clock = new_name(self.columns)
        self._fetches = 0

    def _agreed(
        self, needed: Callable[[Collection[str]], Sequence[str]], period: PeriodTable | None
    ) -> dict[str, Kind]:
        """Read the headers; return the columns that the files have in common, with their declared kinds."""
        self._headers = {file: self._utf8.header(file) for file in self._files}
        somewhere = {column for header in self._headers.values() for column in header}
        if undefined := [column for column in self._table.types if column not in somewhere]:
            raise no_such_column(dict.fromkeys(undefined, "source.types"), somewhere)
        schemas = {file: dict.fromkeys(header, "text") for file, header in self._headers.items()}
        columns: dict[str, Kind] = dict.fromkeys(agreed_columns(schemas, needed, self._name), "text")
        declared: dict[str, Kind] = {}
        if period is not None:
            declared = {period.column: "date" if period.time_zone is None else "instant"}
        return columns | {name: kind for name, kind in (declared | self._table.types).items() if name in columns}

    def outermost(self, period: PeriodTable, column: str, which: str = "max") -> date | None:
        """See `DuckDBSource.outermost`."""
        newest = outermost_day(quoted(column), newest_kind(self.columns, column, period), period, which)
        typed = self._typed([column])

        def day(texts: duckdb.DuckDBPyRelation) -> date | None:
            return cast("date | None", texts.project(typed).aggregate(newest).fetchall()[0][0])

        return self._of_texts(day, "FALSE")

    def whole(self) -> Any:
        """Return all rows, with all columns, as an Arrow table.

        Raises `ConfigError` if the files cannot be read to their end; the message holds no value.
        """
        typed = self._typed(list(self.columns))
        return self._of_texts(lambda texts: texts.project(typed).to_arrow_table(), "TRUE")

    def first_texts(self, rows: int) -> dict[str, list[str]]:
        """Return what stands in the first rows of each column, as it is written; missing values are left out."""
        rows_read = self._of_texts(lambda texts: texts.limit(rows).fetchall())
        columns = zip(*rows_read, strict=True) if rows_read else ((),) * len(self.columns)
        return {
            name: [text for text in texts if text is not None]
            for name, texts in zip(self.columns, columns, strict=True)
        }

    def is_one_state(self) -> bool:
        """See `Source.is_one_state`."""
        return self._opened is not None and states_of(self._files) == self._opened

    def close(self) -> None:
        """See `Source.close`."""
        super().close()
        self._utf8.close()

    def fetch(self, period: PeriodTable, first: date, last: date, columns: Sequence[str]) -> duckdb.DuckDBPyRelation:
        """See `FetchedSource.fetch`."""
        condition = in_period(quoted(self._clock), period_kind(self.columns, period), period, first, last)
        # Another name each time: a frame of what was fetched before must not be one of what is fetched now.
        before, self._fetches = f"{_FETCHED}_{self._fetches}", self._fetches + 1
        table = f"{_FETCHED}_{self._fetches}"

        def read(texts: duckdb.DuckDBPyRelation) -> None:
            rows = self._with_clock(texts, columns, period.column).filter(condition)
            # In two steps: what is wrong in another period does not matter in this one.
            selected = rows.project(", ".join(map(quoted, columns))).sql_query()
            self._connection.execute(
                f"CREATE OR REPLACE TEMP TABLE {table} AS WITH selected AS MATERIALIZED ({selected}) "
                f"SELECT {self._typed(columns)} FROM selected"
            )

        self._connection.execute(f"DROP TABLE IF EXISTS {before}")
        self._of_texts(read, condition)
        return self._connection.table(table)

    def _check_left_out(self, condition: str | None) -> None:
        """Refuse rows that DuckDB has left out: all but those with too few or too many values of another period.

        `condition`: of the rows that were asked for; None where it does not matter which rows have so many values.
        """
        if not self._connection.sql(f"SELECT 1 FROM duckdb_tables() WHERE table_name = {literal(_SCANS)}").fetchall():
            return
        left_out = f"SELECT file_path, error_type, csv_line FROM {_REJECTED} JOIN {_SCANS} USING (scan_id, file_id)"
        rejected = self._connection.execute(left_out).fetchall()
        for table in (_REJECTED, _SCANS):
            self._connection.execute(f"DELETE FROM {table}")
        misshapen: dict[tuple[str, str | None], None] = {}
        for path, kind, line in rejected:
            file = self._utf8.file(path)
            if kind not in _MISSHAPEN or len(rejected) >= _MAX_REJECTED:
                raise self._no_csv(file, "" if kind in _MISSHAPEN else ENCODED)
            rows: list[list[str]] = [[]]
            with suppress(csv.Error):
                rows = list(csv.reader([line.strip("\r\n")], delimiter=self._table.delimiter, strict=True)) or rows
            named = dict(zip(self._headers[file], rows[0], strict=False))
            misshapen[file, named.get(self._period)] = None
        for file, text in misshapen:
            if condition is not None and self._may_be_of(text, condition):
                raise self._no_csv(file)

    def _may_be_of(self, text: str | None, condition: str) -> bool:
        """Return whether a row may be one that was asked for, by what its period column holds; None: nothing says."""
        import duckdb

        with suppress(duckdb.Error):  # a period that cannot be read
            if text is not None:
                rows = self._connection.sql(f"SELECT unnest([{literal(text)}]) AS {quoted(self._period)}")
                clock = self._with_clock(rows, [self._period], self._period)
                return text not in self._table.null and bool(clock.filter(condition).fetchall())
        return True

    def _with_clock(
        self, texts: duckdb.DuckDBPyRelation, columns: Sequence[str], period: str
    ) -> duckdb.DuckDBPyRelation:
        names = [*map(quoted, columns), f"{self._reading(period)} AS {quoted(self._clock)}"]
        return texts.project(", ".join(names))

    def _texts(self, files: Sequence[str]) -> duckdb.DuckDBPyRelation:
        """Return the rows of files, every column as text and the declared texts as NULL."""
        alike: dict[tuple[tuple[str, ...], bool], list[str]] = {}
        for file in files:
            path, compressed = self._utf8.path(file)
            alike.setdefault((self._headers[file], compressed), []).append(path)
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
                "null_padding = false, encoding = 'utf-8', hive_partitioning = false, store_rejects = true, "
                f"rejects_table = '{_REJECTED}', rejects_scan = '{_SCANS}', rejects_limit = {_MAX_REJECTED}, "
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
        form, stated = FORMS[kind], name
        if kind in DAYS and self._table.date_format is not None:
            stated = as_iso(name, self._table.date_format)
        elif kind == "real" and self._table.decimal == ",":
            stated = f"CASE WHEN NOT contains({name}, '.') THEN replace({name}, ',', '.') END"
        written = stated
        if kind in ("timestamp", "instant"):  # with seconds, and a colon in the offset: every version reads that
            written = rf"regexp_replace({written}, '^([^ T]+[T ][0-9]{{2}}:[0-9]{{2}})([^:]|$)', '\1:00\2')"
        if kind == "instant":
            written = rf"regexp_replace({written}, '([+-][0-9]{{2}})([0-9]{{2}})$', '\1:\2')"
        # That a value is named in it keeps the error from being raised before there is one.
        mark = f"error({literal(_MARK + str(list(self.columns).index(column)))} || left({name}, 0))"
        fits = f"regexp_full_match({stated}, {literal(form.pattern)})"
        good = f"CASE WHEN {fits} THEN TRY_CAST({written} AS {form.sql_type}) END"
        return f"CASE WHEN {name} IS NOT NULL THEN coalesce({good}, {mark}) END"

    def _of_texts(self, question: Callable[[duckdb.DuckDBPyRelation], Answer], condition: str | None = None) -> Answer:
        """Return what DuckDB answers about the texts, see `_check_left_out`; what it says when it cannot is dropped."""
        import duckdb

        complaint: Exception
        try:
            answer = question(self._texts(self._files))
            self._check_left_out(condition)
            return answer
        except duckdb.OutOfMemoryException:
            complaint = self.broken
        except duckdb.Error as error:
            complaint = self._complaint(error, self._name)
            if not isinstance(error, duckdb.InterruptException):
                complaint = self._of_one_file(question) or complaint
        raise complaint

    def _of_one_file(self, question: Callable[[duckdb.DuckDBPyRelation], object]) -> ConfigError | None:
        """Ask about one file after another, and return what is wrong with the first that is."""
        import duckdb

        for file in self._files if len(self._files) > 1 else ():
            try:
                question(self._texts([file]))
            except duckdb.Error as error:
                return self._complaint(error, file)
        return None

    def _complaint(self, error: duckdb.Error, file: str) -> ConfigError:
        """Return what is wrong with a file: column, rule and the key that helps, never the value."""
        match = re.search(rf"{_MARK}(\d+)", str(error))
        if match is None:
            return self._no_csv(file)
        column = list(self.columns)[int(match[1])]
        kind = self.columns[column]
        words = FORMS[kind].words(self._table.date_format)
        if kind == "real" and self._table.decimal == ",":
            words = "numbers such as 1,5, with a comma"
        if (advice := self._elsewhere(column, kind)) is not None:
            return ConfigError(
                f"column {column!r} must hold {words}; the file {file!r} writes them in another form: write {advice}."
            )
        kinds = f'types = {{ {column} = "{"real" if kind == "number" else "text"}" }} in source'
        other = f"declare another type ({kinds})"
        if column == self._period:
            days, times = (f'types = {{ {column} = "{kind}" }} in source' for kind in ("date", "timestamp"))
            other = (
                f"declare what it holds ({days} for dates, {times} for times without an offset, no type but "
                "period.time_zone for times with an offset)"
            )
        if kind in DAYS and (turned := other_order(self._table.date_format)) is not None:
            other += f", write {turned} where that is the order of day and month"
        return ConfigError(
            f"column {column!r} must hold {words}, and holds something else; correct the file {file!r}, {other}, or "
            'say what stands for a missing value (null = ["", "NA"] in source).'
        )

    def _no_csv(self, file: str, why: str = "") -> ConfigError:
        """Return what to say of a file that is no CSV as declared, by what is wrong with it if that can be told."""
        if file in self._files and self._table.format != "excel" and ends_differ(file, self._table):
            return ConfigError(
                f"source {file!r} ends its lines in different ways, some with CRLF, as on Windows, and some with LF or "
                "CR alone: save it with one line end."
            )
        return no_csv(file, why)

    def _elsewhere(self, column: str, kind: Kind) -> str | None:
        """Return the key by which values are read that are written as elsewhere; None where there are none.

        Where day and month can be told apart by values alone, both orders are named.
        """
        import duckdb

        def writes(pattern: str) -> bool:
            with suppress(duckdb.Error):
                texts = self._texts(self._files)
                match = f"regexp_full_match({quoted(column)}, {literal(pattern)})"
                return bool(texts.filter(match).limit(1).fetchall())
            return False

        keys = {"00:00 of the next day instead of 24:00": MIDNIGHT} if kind in ("timestamp", "instant") else {}
        given = self._table.date_format
        if kind in DAYS and not (given and writes(f"{date_pattern(given)}([T ].*)?")):
            for form in (*(["%Y-%m-%d"] if given else []), *DATE_FORMATS):
                turned = other_order(form)
                key = f"date_format = {json.dumps(form)} in source"
                key += "" if turned is None else f" where the day comes first, or {turned} where the month does"
                keys[key] = f"{date_pattern(form)}([T ].*)?"
        elif kind == "real" and self._table.decimal == ".":
            keys = {'decimal = "," in source': DECIMAL_COMMA}
        return next((key for key, pattern in keys.items() if writes(pattern)), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class WholeFile:
    """One file, and how it is read.

    `table`: of one Parquet, CSV or Excel file. `columns`: its columns and what they hold; no row was read to find out.
    """

    table: FileSourceTable
    columns: Mapping[str, Kind]
    _path: str = field(repr=False)

    @classmethod
    def of(cls, path: Path, **keys: Any) -> WholeFile:
        """Return a file by its path and the keys of a job's `source`; no row is read, but of a workbook.

        Raises `ArgumentError` if a key is not one of a file, or has a value that it cannot have; `ConfigError` if the
        file cannot be read, or has no such columns.
        """
        from pydantic import ValidationError

        from pkdp_pipeline.releases.options import complaints

        said = ""
        try:
            table = FileSourceTable.model_validate({"files": str(path.absolute()), **keys})
            table.check_engine("duckdb")
        except ValidationError as error:
            said = "; ".join(complaints(error, tuple(FileSourceTable.model_fields)))
        except ValueError as error:
            said = str(error)
        if said:
            raise ArgumentError(f"the file {path.name!r} cannot be read like this: {said}")
        file, *others = files_of([str(path.absolute())])
        if others:
            raise ArgumentError(f"the pattern {path.name!r} fits several files: name one; a job takes them all.")
        if table.format != "parquet":
            with closing(CsvSource(table, tuple)) as source:
                return cls(table=table, columns=source.columns, _path=file)
        check_parquet_columns([file], lambda names: (), ())
        relation = _parquet(file)
        kinds = map(kind_of, map(str, relation.types))
        return cls(table=table, columns=dict(zip(relation.columns, kinds, strict=True)), _path=file)

    def first_texts(self, rows: int = 100) -> Mapping[str, list[str]]:
        """Return what is written in the first rows of each column; of Parquet, whose types say it, nothing.

        Raises `ConfigError` if the file cannot be read; the message holds no value.
        """
        if self.table.format == "parquet":
            return {name: [] for name in self.columns}
        with closing(CsvSource(self.table, tuple)) as source:
            return source.first_texts(rows)

    def rows(self, named: Collection[str] = (), unit: Collection[str] = ()) -> Any:
        """Return all rows: a DuckDB relation of Parquet, an Arrow table of others.

        Raises `ConfigError` if the file cannot be read to its end, or one of the columns that are `named`, those of
        `unit` among them, is not read as it is; the message holds no value.
        """
        if self.table.format != "parquet":
            with closing(CsvSource(self.table, tuple)) as source:
                return source.whole()
        check_parquet_columns([self._path], lambda names: [name for name in names if name in {*named, *unit}], unit)
        return _parquet(self._path)


def _parquet(file: str) -> duckdb.DuckDBPyRelation:
    import duckdb

    with suppress(duckdb.Error):  # whose words could quote the file
        return connect().read_parquet(file, hive_partitioning=False)
    raise no_parquet(file)
