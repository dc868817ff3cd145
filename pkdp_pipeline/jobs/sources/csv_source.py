"""CsvSource: CSV files by day; read by DuckDB, handed to the job's engine in memory."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from datetime import date
from typing import TYPE_CHECKING, Any, TypeVar

from pkdp_pipeline.engines.duckdb.statements import quoted
from pkdp_pipeline.errors import ConfigError
from pkdp_pipeline.jobs.job import Job, PeriodTable
from pkdp_pipeline.jobs.source_tables import FileSourceTable
from pkdp_pipeline.jobs.sources.csv_text import csv_not_readable, text_rows
from pkdp_pipeline.jobs.sources.csv_types import CsvTypes
from pkdp_pipeline.jobs.sources.day_sql import newest_day, on_day
from pkdp_pipeline.jobs.sources.files import shown
from pkdp_pipeline.jobs.sources.homes import home_of
from pkdp_pipeline.jobs.sources.needed import needed_columns
from pkdp_pipeline.jobs.sources.pandas_rows import pandas_rows
from pkdp_pipeline.jobs.sources.relation_source import connect, count_rows, disconnect
from pkdp_pipeline.jobs.sources.source import Kind, Rows, day_kind, period_kind

if TYPE_CHECKING:
    import duckdb
    import pandas as pd

__all__ = ["CsvSource", "open_source"]

Answer = TypeVar("Answer")

_KEPT = "pkdp_kept"


def open_source(job: Job) -> CsvSource:
    """Return the job's CSV files, open for reading."""
    return CsvSource(job)


class CsvSource:
    """CSV files, open for reading until `close`; see `Source`.

    The first day is read from the files, and kept. With the second it is clear that more than one is asked for:
    what the job needs of the files is kept in memory, as text, where it fits.

    Parameters
    ----------
    job : Job

    Raises
    ------
    ConfigError
        If the files cannot be read as CSV, or the engine is not installed.
    """

    def __init__(self, job: Job) -> None:
        assert isinstance(job.source, FileSourceTable)
        self._name = shown(job.source.files)
        self._home = home_of(job.engine)
        self._connection = connect(spill=False)
        try:
            texts = text_rows(self._connection, job)
        except BaseException:
            self.close()
            raise
        self._relation, self._of_file = texts.all, texts.of_file
        undeclared: Kind = "date" if job.period.time_zone is None else "instant"
        kinds: dict[str, Kind] = dict.fromkeys(self._relation.columns, "text")
        if job.period.column in kinds:
            kinds[job.period.column] = undeclared
        kinds |= {column: kind for column, kind in job.source.types.items() if column in kinds}
        self._types = CsvTypes(kinds=kinds, period=job.period.column)
        self._needed = needed_columns(job, kinds)
        self._period = job.period.column
        self._clock = _new_name(kinds)
        self._day: tuple[PeriodTable, date, Any] | None = None
        self._kept: duckdb.DuckDBPyRelation | None = None
        self._tried_to_keep = False

    def close(self) -> None:
        """See `Source.close`."""
        disconnect(self._connection)
        self._home.close()

    def interrupt(self) -> None:
        """See `Source.interrupt`."""
        self._connection.interrupt()

    @property
    def columns(self) -> Mapping[str, Kind]:
        """See `Source.columns`."""
        return self._types.kinds

    def day(self, period: PeriodTable, day: date) -> Any:
        """See `Source.day`."""
        return self._home.frame(self._connection, self._rows(period, day))

    def counts(self, period: PeriodTable, day: date, rows: Sequence[Rows]) -> list[int]:
        """See `Source.counts`."""
        named = {column for sort in rows for column in sort.present}
        table = self._rows(period, day, named)
        return self._asked(lambda _: count_rows(self._connection.from_arrow(table), rows, self.columns))

    def newest(self, period: PeriodTable, column: str) -> date | None:
        """See `Source.newest`."""
        kind = day_kind(self.columns, column)
        typed = f"{self._types.typed(column)} AS {quoted(column)}"
        found: date | None = self._asked(
            lambda texts: texts.project(typed).aggregate(newest_day(quoted(column), kind, period)).fetchall()[0][0]
        )
        return found

    def pandas(self, period: PeriodTable, day: date, columns: Sequence[str]) -> pd.DataFrame:
        """See `Source.pandas`."""
        return pandas_rows(self._rows(period, day, columns).select(list(columns)))

    def _rows(self, period: PeriodTable, day: date, columns: Collection[str] = ()) -> Any:
        """Return an Arrow table of one day with the columns that the job needs, and these."""
        period_kind(self.columns, period)
        if self._day is not None and self._day[:2] == (period, day) and set(columns) <= set(self._day[2].column_names):
            return self._day[2]
        if self._day is not None and self._day[1] != day:
            self._keep()
        wanted = [column for column in self.columns if column in {*columns, *self._needed}]
        table = self._asked(lambda texts: self._read(texts, period, day, wanted))
        self._day = (period, day, table)
        return table

    def _read(self, texts: duckdb.DuckDBPyRelation, period: PeriodTable, day: date, columns: Sequence[str]) -> Any:
        names = [quoted(column) for column in columns]
        kept = self._kept if texts is self._relation and period.column == self._period else None
        if kept is not None and {*columns} <= {*self._needed}:
            rows = kept
        else:
            rows = texts.project(", ".join([*names, self._with_clock(period.column)]))
        clock, kind = quoted(self._clock), self.columns[period.column]
        # In two steps: what is wrong on another day does not matter on this one.
        found = rows.filter(on_day(clock, kind, period, day)).project(", ".join(names)).to_arrow_table()
        return self._connection.from_arrow(found).project(self._types.select(columns)).to_arrow_table()

    def _keep(self) -> None:
        """Keep what the job needs in memory, where it fits; else each day is read from the files."""
        import duckdb

        if self._tried_to_keep or self._period not in self._needed:
            return
        self._tried_to_keep = True
        names = [quoted(column) for column in self._needed]

        def keep(texts: duckdb.DuckDBPyRelation) -> None:
            rows = texts.project(", ".join([*names, self._with_clock(self._period)]))
            if texts is not self._relation:
                rows.to_arrow_table()  # one file, to see whether it is the one that is wrong
                return
            with suppress(duckdb.OutOfMemoryException):
                rows.create(_KEPT)
                self._kept = self._connection.table(_KEPT)

        self._asked(keep)

    def _with_clock(self, column: str) -> str:
        return f"{self._types.typed(column)} AS {quoted(self._clock)}"

    def _asked(self, question: Callable[[duckdb.DuckDBPyRelation], Answer]) -> Answer:
        """Return what DuckDB answers about the texts; its words when it cannot quote them, and are not passed on."""
        import duckdb

        complaint: ConfigError | None = None
        try:
            return question(self._relation)
        except duckdb.OutOfMemoryException:
            complaint = ConfigError(
                f"source {self._name!r}: the rows of one day do not fit into memory; store the files as Parquet."
            )
        except duckdb.InterruptException:
            complaint = csv_not_readable(self._name)
        except duckdb.Error as error:
            complaint = self._types.mistyped(error) or csv_not_readable(self._name)
            for name, texts in self._of_file.items():
                found = self._wrong_with(name, texts, question)
                if found is not None:
                    complaint = found
                    break
        raise complaint

    def _wrong_with(
        self,
        name: str,
        texts: Callable[[], duckdb.DuckDBPyRelation],
        question: Callable[[duckdb.DuckDBPyRelation], object],
    ) -> ConfigError | None:
        """Ask about one of several files, and return what is wrong with it."""
        import duckdb

        try:
            question(texts())
        except (duckdb.OutOfMemoryException, duckdb.InterruptException):
            return csv_not_readable(self._name)
        except duckdb.Error as error:
            return self._types.mistyped(error, name) or csv_not_readable(self._name, name)
        return None


def _new_name(columns: Collection[str]) -> str:
    """Return a name that no column has."""
    name = "pkdp_clock"
    while any(column.casefold() == name for column in columns):
        name += "_"
    return name
