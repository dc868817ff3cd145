"""PostgresSource: a table or a query of a PostgreSQL database by day, counted by DuckDB in this process."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import date
from typing import TYPE_CHECKING, Any, TypeVar

from pkdp_pipeline.engines.duckdb.statements import quoted
from pkdp_pipeline.errors import ConfigError
from pkdp_pipeline.jobs.source_tables import PostgresSourceTable
from pkdp_pipeline.jobs.sources.postgres_snapshot import PostgresSnapshot
from pkdp_pipeline.jobs.sources.postgres_types import column_of
from pkdp_pipeline.jobs.sources.relations import connect, disconnect, newest_day, on_day, pandas_rows
from pkdp_pipeline.jobs.sources.source import Kind, Rows, check_unique, needed_columns, newest_kind, period_kind

if TYPE_CHECKING:
    import duckdb
    import pandas as pd

    from pkdp_pipeline.jobs.job import Job, PeriodTable

__all__ = ["PostgresSource"]

Answer = TypeVar("Answer")


class PostgresSource:
    """A table or a query of a PostgreSQL database, open for reading until `close`; see `Source`.

    The database selects the rows of a day and the columns that the job needs; only these come over, into memory.

    Parameters
    ----------
    job : Job

    Raises
    ------
    ConfigError
        If the driver is not installed, the server refuses, or there is no such table or query.
    TemporaryError
        If the server cannot be reached.
    """

    def __init__(self, job: Job) -> None:
        assert isinstance(job.source, PostgresSourceTable)
        self._rows = f"{job.source.rows_sql} AS pkdp_rows"
        self._snapshot = PostgresSnapshot(job.source.address, job.source.public_name)
        self._connection = connect(spill=False)
        try:
            schema = self._snapshot.ask(f"SELECT * FROM {self._rows} LIMIT 0").schema
            check_unique(schema.names)
            self._described = {field.name: column_of(field) for field in schema}
            keys = [*job.unit, *(job.order_by or ())]
            for release in job.release:
                keys += [*(release.by or ()), *(release.order_by or ())]
            self._check([column for column in keys if column in self._described])
        except BaseException:
            self.close()
            raise
        self._columns = {name: column.kind for name, column in self._described.items()}
        self._needed = [name for name in needed_columns(job, self._columns) if self._columns[name] != "other"]
        self._day: tuple[PeriodTable, date, Any] | None = None

    def close(self) -> None:
        """See `Source.close`."""
        self._snapshot.close()
        disconnect(self._connection)

    def interrupt(self) -> None:
        """See `Source.interrupt`."""
        self._snapshot.interrupt()
        self._connection.interrupt()

    @property
    def columns(self) -> Mapping[str, Kind]:
        """See `Source.columns`."""
        return self._columns

    def day(self, period: PeriodTable, day: date) -> duckdb.DuckDBPyRelation:
        """See `Source.day`."""
        if self._day is None or self._day[:2] != (period, day):
            self._day = (period, day, self._fetched(period, day, self._needed))
        return self._counted(self._day[2], self._needed)

    def counts(self, period: PeriodTable, day: date, rows: Sequence[Rows]) -> list[int]:
        """See `Source.counts`."""

        def counted(sort: Rows) -> str:
            condition = " AND ".join(["TRUE", *(self._described[column].present() for column in sort.present)])
            return f"count(*) FILTER (WHERE {f'NOT ({condition})' if sort.negated else condition})"

        numbered = ", ".join(f"{counted(sort)} AS n{position}" for position, sort in enumerate(rows))
        answer = self._snapshot.ask(f"SELECT {numbered} FROM {self._rows} WHERE {self._on(period, day)}")
        return [int(column[0].as_py()) for column in answer.columns]

    def newest(self, period: PeriodTable, column: str) -> date | None:
        """See `Source.newest`."""
        kind = newest_kind(self._columns, column)
        answer = self._snapshot.ask(f"SELECT {newest_day(quoted(column), kind, period)} AS day FROM {self._rows}")
        found: date | None = answer["day"][0].as_py()
        return found

    def pandas(self, period: PeriodTable, day: date, columns: Sequence[str]) -> pd.DataFrame:
        """See `Source.pandas`."""
        self._check(columns)
        fetched = self._fetched(period, day, columns)
        return pandas_rows(_asked(lambda: self._counted(fetched, columns).to_arrow_table()))

    def _on(self, period: PeriodTable, day: date) -> str:
        return on_day(quoted(period.column), period_kind(self._columns, period), period, day)

    def _fetched(self, period: PeriodTable, day: date, columns: Sequence[str]) -> Any:
        selected = ", ".join(f"{self._described[column].fetched} AS {quoted(column)}" for column in columns)
        return self._snapshot.ask(f"SELECT {selected} FROM {self._rows} WHERE {self._on(period, day)}")

    def _counted(self, fetched: Any, columns: Sequence[str]) -> duckdb.DuckDBPyRelation:
        selected = ", ".join(f"{self._described[column].counted} AS {quoted(column)}" for column in columns)
        return _asked(lambda: self._connection.from_arrow(fetched).project(selected))

    def _check(self, columns: Sequence[str]) -> None:
        """Refuse columns that cannot be fetched."""
        for column in columns:
            if self._described[column].kind == "other":
                raise ConfigError(
                    f"column {column!r} has a type that a job cannot read; cast it in source.query: SELECT …, "
                    f"{self._described[column].fix}."
                )


def _asked(question: Callable[[], Answer]) -> Answer:
    """Return what DuckDB answers; what it says when it cannot quotes the data, and is not passed on."""
    import duckdb

    try:
        return question()
    except duckdb.Error:
        pass
    raise ConfigError("the rows of one day cannot be read: a text in them is no UTF-8, or they are too many.")
