"""The rows of a DuckDB relation by period, a DuckDB file among them; and what other sources need of it."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from datetime import date
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from pkdp_pipeline.engines.memory import connect as private_connection
from pkdp_pipeline.engines.memory import disconnect
from pkdp_pipeline.engines.period_engine import OnePeriod, Periods
from pkdp_pipeline.engines.relation_engine import INSTANTS, in_microseconds, is_fine, is_number
from pkdp_pipeline.engines.rows import literal, quoted
from pkdp_pipeline.errors import ConfigError, PkdpError, TemporaryError
from pkdp_pipeline.jobs.sources.source import Kind, Needs, check_unique, newest_kind, period_kind

if TYPE_CHECKING:
    import duckdb
    import pandas as pd

    from pkdp_pipeline.jobs.source_tables import DuckDBSourceTable
    from pkdp_pipeline.jobs.tables import PeriodTable

Answer = TypeVar("Answer")

_KINDS: Mapping[str, Kind] = {
    "|".join(INSTANTS): "instant",
    r"TIMESTAMP(_\w+)?": "timestamp",
    r"DATE": "date",
    r"FLOAT|DOUBLE": "real",
    r"BOOLEAN": "boolean",
    r"VARCHAR|UUID|(?s:ENUM\(.*\))": "text",
    r"U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?|DECIMAL\(.*\)": "number",
}
#: No zone is further from UTC than a day, and a day has at most two parts that are a day apart.
_MARGIN_DAYS = 2


def connect(*, spill: bool = True) -> duckdb.DuckDBPyConnection:
    """Return a private DuckDB whose clock is UTC's; see `engines.memory.connect`."""
    connection = private_connection(spill=spill)
    connection.execute("SET TimeZone = 'UTC'")
    return connection


class DaySource:
    """A source of whose periods a DuckDB connection of its own makes relations; see `Source`.

    `connection`: closed with the source. `broken`: the error where the rows cannot be read to their end.
    """

    def __init__(self, connection: duckdb.DuckDBPyConnection, columns: Mapping[str, Kind], broken: PkdpError) -> None:
        self._connection, self._broken = connection, broken
        self.columns = columns

    def close(self) -> None:
        """See `Source.close`."""
        disconnect(self._connection)

    def interrupt(self) -> None:
        """See `Source.interrupt`."""
        self._connection.interrupt()

    def relation(self, period: PeriodTable, day: date, columns: Collection[str] = ()) -> duckdb.DuckDBPyRelation:
        """Return the rows of a day's period with the columns that the job needs, and these."""
        raise NotImplementedError

    def together(self, period: PeriodTable, days: Sequence[date]) -> None:
        """See `Source.together`."""

    def day(self, period: PeriodTable, day: date) -> Any:
        """See `Source.day`."""
        return self.relation(period, day)

    def counts(self, period: PeriodTable, day: date, unit: Sequence[str]) -> tuple[int, int]:
        """See `Source.counts`."""
        names = [(quoted(column), self.columns[column]) for column in unit]
        present = [is_number(name) if kind == "real" else f"{name} IS NOT NULL" for name, kind in names]
        missing = f"count(*) FILTER (WHERE NOT ({' AND '.join(['TRUE', *present])}))"
        relation = self.relation(period, day, unit)
        rows, without = self._guarded(lambda: relation.aggregate(f"count(*), {missing}").fetchall()[0])
        return rows, without

    def pandas(self, period: PeriodTable, day: date, columns: Sequence[str]) -> pd.DataFrame:
        """See `Source.pandas`."""
        relation = self.relation(period, day, columns)
        return self._guarded(lambda: pandas_rows(relation.project(", ".join(map(quoted, columns))).to_arrow_table()))

    def _guarded(self, question: Callable[[], Answer]) -> Answer:
        import duckdb

        try:
            return question()
        except duckdb.Error:  # whose words can quote the data
            pass
        raise self._broken


class RelationSource(DaySource):
    """A relation with the rows of all periods; see `DaySource`."""

    def __init__(
        self, connection: duckdb.DuckDBPyConnection, relation: duckdb.DuckDBPyRelation, broken: PkdpError
    ) -> None:
        self._relation = relation
        self._types = dict(zip(relation.columns, map(str, relation.types), strict=True))
        self._together: Sequence[date] = ()
        self._periods: Periods | None = None
        self._newest: dict[str, date | None] = {}
        super().__init__(connection, {name: kind_of(sql_type) for name, sql_type in self._types.items()}, broken)

    def together(self, period: PeriodTable, days: Sequence[date]) -> None:
        """See `Source.together`; one period is read alone."""
        self._together, self._periods, self._newest = days if len(days) > 1 else (), None, {}

    def interrupt(self) -> None:
        """See `Source.interrupt`."""
        if self._periods is not None:
            self._periods.stopped = True
        self._together = ()
        super().interrupt()

    def day(self, period: PeriodTable, day: date) -> Any:
        """See `Source.day`; a frame of many periods where they are read together."""
        if day not in self._together:
            return self.relation(period, day)
        if self._periods is None:
            kind = period_kind(self.columns, period)
            rows = self.relation(period, self._together[0], until=self._together[-1])
            self._periods = Periods(rows, first_day(self._moments(period.column), kind, period))
        return OnePeriod(self._periods, day, partial(self.relation, period, day))

    def counts(self, period: PeriodTable, day: date, unit: Sequence[str]) -> tuple[int, int]:
        """See `Source.counts`."""
        rows = self.day(period, day)
        counted = rows.periods.rows(tuple(unit), day) if isinstance(rows, OnePeriod) else None
        return super().counts(period, day, unit) if counted is None else counted[:2]

    def relation(
        self, period: PeriodTable, day: date, columns: Collection[str] = (), *, until: date | None = None
    ) -> duckdb.DuckDBPyRelation:
        """See `DaySource.relation`; all columns, read where they are asked for, and all periods to that of `until`."""
        kind, stored = period_kind(self.columns, period), self._types[period.column]
        condition = in_period(quoted(period.column), kind, period, day, until=until, stored=stored)
        return self._guarded(lambda: self._relation.filter(condition))

    def _moments(self, column: str) -> str:
        """Return SQL for a column that days are cut from: not from nanoseconds, which DuckDB would round first."""
        return in_microseconds(quoted(column), self._types[column])

    def newest(self, period: PeriodTable, column: str) -> date | None:
        """See `Source.newest`; asked once where periods are read together."""
        if column in self._newest:
            return self._newest[column]
        latest = self.outermost(period, column)
        if self._together:
            self._newest[column] = latest
        return latest

    def outermost(self, period: PeriodTable, column: str, which: str = "max") -> date | None:
        """Return the latest day as `newest` does, or with ``"min"`` the earliest."""
        kind = newest_kind(self.columns, column, period)  # which refuses a column that is not there
        day = outermost_day(self._moments(column), kind, period, which)
        latest: date | None = self._guarded(lambda: self._relation.aggregate(day).fetchall()[0][0])
        return latest


class FetchedSource(DaySource):
    """A source whose periods are fetched into memory, one at a time; see `DaySource`."""

    _needed: Sequence[str] = ()
    _day: tuple[PeriodTable, date, Any] | None = None

    def fetch(self, period: PeriodTable, day: date, columns: Sequence[str]) -> Any:
        """Return these columns of the rows of a day's period as an Arrow table."""
        raise NotImplementedError

    def relation(self, period: PeriodTable, day: date, columns: Collection[str] = ()) -> duckdb.DuckDBPyRelation:
        """See `DaySource.relation`."""
        table = self.table(period, day, columns)
        return self._guarded(lambda: self._connection.from_arrow(table))

    def table(self, period: PeriodTable, day: date, columns: Collection[str] = ()) -> Any:
        """Return `relation` as an Arrow table, fetched unless it is what was asked for last."""
        wanted = [column for column in self.columns if column in {*columns, *self._needed}]
        if self._day is None or self._day[:2] != (period, day) or not {*wanted} <= {*self._day[2].column_names}:
            self._day = (period, day, self.fetch(period, day, wanted))
        return self._day[2]


def kind_of(sql_type: str) -> Kind:
    """Return what a column of a type of DuckDB holds."""
    return next((kind for pattern, kind in _KINDS.items() if re.fullmatch(pattern, sql_type)), "other")


def in_period(
    column: str, kind: Kind, period: PeriodTable, day: date, *, until: date | None = None, stored: str = "TIMESTAMP"
) -> str:
    """Return SQL, for DuckDB and PostgreSQL, for whether a quoted column lies in the period of a day.

    Or in one up to that of `until`. It says the same once more, roughly, in a way that indexes and the statistics of
    files answer. `stored`: DuckDB's type of the column.
    """
    first, last = period.span(day)[0], period.span(until or day)[1]
    on_day = f"CAST({_clock(in_microseconds(column, stored), kind, period)} AS DATE)"
    condition = f"{on_day} BETWEEN DATE '{first.isoformat()}' AND DATE '{last.isoformat()}'"
    exactly = stored in ("TIMESTAMP_S", "TIMESTAMP_MS") or (
        is_fine(stored) and not 1678 < first.year <= last.year < 2262
    )
    if kind == "date" or exactly:  # bounds are microseconds, which not every unit can hold
        return condition
    about = max(first.toordinal() - _MARGIN_DAYS, 1), min(last.toordinal() + _MARGIN_DAYS, date.max.toordinal())
    name, zone = ("TIMESTAMPTZ", "+00") if kind == "instant" else ("TIMESTAMP", "")
    name = stored if is_fine(stored) else name
    begin, end = (f"{name} '{date.fromordinal(ordinal).isoformat()} 00:00:00{zone}'" for ordinal in about)
    return f"{column} >= {begin} AND {column} <= {end} AND {condition}"


def first_day(column: str, kind: Kind, period: PeriodTable) -> str:
    """Return SQL for DuckDB for the first day of the period that a quoted column lies in."""
    day = f"CAST({_clock(column, kind, period)} AS DATE)"
    return day if period.every == "day" else f"CAST(date_trunc({literal(period.every)}, {day}) AS DATE)"


def outermost_day(column: str, kind: Kind, period: PeriodTable, which: str = "max") -> str:
    """Return SQL for the latest, or with ``"min"`` the earliest, day of a quoted column that has a name in Python."""
    day = f"CAST({_clock(column, kind, period)} AS DATE)"
    return f"{which}(CASE WHEN {day} BETWEEN DATE '0001-01-01' AND DATE '9999-12-31' THEN {day} END)"


def _clock(column: str, kind: Kind, period: PeriodTable) -> str:
    return f"timezone({literal(str(period.time_zone))}, {column})" if kind == "instant" else column


def pandas_rows(table: Any) -> pd.DataFrame:
    """Return an Arrow table as a frame whose dtypes depend on its types alone, never on the rows.

    They are text, nullable whole numbers and booleans, times in microseconds.
    """
    import pandas as pd
    import pyarrow as pa
    import pyarrow.compute as pc

    for position, field in enumerate(table.schema):
        kind = _plain(field.type)
        if kind != field.type:
            column = table.column(position)
            if pa.types.is_timestamp(field.type) and field.type.unit == "ns":
                # A cast would cut those before 1970 the other way.
                column = pc.floor_temporal(column.cast(pa.timestamp("ns", kind.tz)), unit="microsecond")
            table = table.set_column(position, field.name, column.cast(kind, safe=False))
    whole = ("Int8", "Int16", "Int32", "Int64", "UInt8", "UInt16", "UInt32", "UInt64")
    dtypes: dict[Any, Any] = {
        **{getattr(pa, name.lower())(): getattr(pd, f"{name}Dtype")() for name in whole},
        pa.bool_(): pd.BooleanDtype(),
        pa.string(): pd.StringDtype(na_value=float("nan")),
    }
    frame: pd.DataFrame = table.to_pandas(types_mapper=dtypes.get, date_as_object=False)
    return frame


def _plain(kind: Any) -> Any:
    """Return the one Arrow type under which all engines give a column."""
    import pyarrow as pa

    if pa.types.is_dictionary(kind):
        return _plain(kind.value_type)
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind) or pa.types.is_null(kind):
        return pa.string()
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", tz=None if kind.tz is None else "UTC")
    return pa.timestamp("us") if pa.types.is_date(kind) else kind


def open_duckdb(table: DuckDBSourceTable, needs: Needs) -> RelationSource:
    """Return the table or the query, open for reading; nobody writes to the file until it is closed.

    Raises `ConfigError` if there is no such file or table, or the query cannot be answered; `TemporaryError` if another
    process writes to the file.
    """
    what = "the query" if table.table is None else f"table {table.table!r}"
    connection = connect()
    try:
        _attach(connection, table.duckdb)
        relation = _relation(connection, table, what)
        check_unique(relation.columns)
        _warn(connection, table, what)
        broken = ConfigError(f"source {table.duckdb!r}: {what} cannot be read to its end.")
        return RelationSource(connection, relation, broken)
    except BaseException:
        connection.close()
        raise


def _attach(connection: duckdb.DuckDBPyConnection, path: str) -> None:
    import duckdb

    problem: PkdpError
    try:
        # Under its type: what is no DuckDB file is not a matter for an extension.
        connection.execute(f"ATTACH {literal(path)} AS pkdp_source (READ_ONLY, TYPE duckdb)")
        connection.execute("USE pkdp_source")
        return
    except duckdb.Error as error:
        said = str(error)
        if "Could not set lock" in said or "file handle conflict" in said:
            problem = TemporaryError(
                f"source {path!r} is in use by something that may write to it; run again when that has closed it."
            )
        elif "version" in said:
            problem = ConfigError(
                f"source {path!r} was written by another version of DuckDB than {duckdb.__version__} can read; install "
                "the version that wrote it, or write the file with an older storage version."
            )
        else:
            problem = ConfigError(
                f"source {path!r} does not exist, or cannot be opened as a DuckDB file; correct the path in the job "
                "file."
            )
    raise problem


def _relation(connection: duckdb.DuckDBPyConnection, table: DuckDBSourceTable, what: str) -> duckdb.DuckDBPyRelation:
    import duckdb

    if table.query is not None:
        kinds: list[object] = []
        with suppress(duckdb.Error):
            kinds = [statement.type for statement in connection.extract_statements(table.query)]
        if kinds != [duckdb.StatementType.SELECT]:
            raise ConfigError("source.query must be one SELECT statement that DuckDB can read.")
    with suppress(duckdb.Error):
        # Around a query, DuckDB would rename a second column of one name.
        return connection.sql(table.query or f"FROM {table.rows_sql}")
    raise ConfigError(f"source {table.duckdb!r}: {what} cannot be read; check the names of tables and columns.")


def _warn(connection: duckdb.DuckDBPyConnection, table: DuckDBSourceTable, what: str) -> None:
    """Say to the curator what in the query, or in views that it reads, makes rows depend on other rows."""
    from pkdp_pipeline.sql.tables import link_warning, linking_parts

    parts = linking_parts(connection, table.query or f"FROM {table.rows_sql}")
    if parts:
        print(f"warning: source {table.duckdb!r}: {link_warning(what, parts)}", file=sys.stderr)
