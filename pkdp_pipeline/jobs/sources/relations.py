"""The rows of a DuckDB relation by period, a DuckDB file among them; and what other sources need of it."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import date
from functools import partial
from typing import TYPE_CHECKING, Any

from pkdp_pipeline.engines.period_engine import OnePeriod, Periods
from pkdp_pipeline.engines.relation_engine import INSTANTS, in_microseconds, is_fine, is_number
from pkdp_pipeline.engines.rows import built_in, disconnect, literal, quoted
from pkdp_pipeline.engines.rows import connect as private_connection
from pkdp_pipeline.errors import ConfigError, PkdpError, TemporaryError
from pkdp_pipeline.jobs.sources.source import (
    Kind,
    Needs,
    Source,
    check_unique,
    newest_kind,
    period_kind,
)

if TYPE_CHECKING:
    import duckdb

    from pkdp_pipeline.jobs.source_tables import DuckDBSourceTable
    from pkdp_pipeline.jobs.tables import PeriodTable

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
#: The leaves of DuckDB's plans that read nothing but tables of DuckDB files.
_IN_FILE = frozenset(("SEQ_SCAN", "DUMMY_SCAN", "COLUMN_DATA_SCAN", "CTE_SCAN", "DELIM_SCAN", "EMPTY_RESULT"))


def connect(*, spill: bool = True) -> duckdb.DuckDBPyConnection:
    """Return a private DuckDB whose clock is UTC's; see `engines.rows.connect`."""
    connection = private_connection(spill=spill)
    connection.execute("SET TimeZone = 'UTC'")
    return connection


class DuckDBSource(Source):
    """A source whose `rows` are relations of a DuckDB connection of its own; see `Source`.

    `connection`: closed with the source. `broken`: the error where the rows cannot be read to their end.
    """

    reads_together = True
    """Whether many periods are best read at once; otherwise each is read when it is asked for."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, columns: Mapping[str, Kind], broken: PkdpError) -> None:
        self._connection, self.broken = connection, broken
        self.columns = columns
        self._announced: Sequence[date] = ()
        self._together: Sequence[date] = ()
        self._periods: Periods | None = None
        self._most = 0
        self._stopped = False
        self._newest: dict[str, date | None] = {}

    def close(self) -> None:
        """See `Source.close`."""
        disconnect(self._connection)

    def interrupt(self) -> None:
        """See `Source.interrupt`."""
        self._announced, self._together, self._stopped = (), (), True
        if self._periods is not None:
            self._periods.stopped = True
        self._connection.interrupt()

    def outermost(self, period: PeriodTable, column: str, which: str = "max") -> date | None:
        """Return the latest day as `newest` does, or with ``"min"`` the earliest."""
        raise NotImplementedError

    def together(self, period: PeriodTable, days: Sequence[date]) -> None:
        """See `Source.together`; one period is read alone."""
        self._announced = days if len(days) > 1 and self.reads_together else ()
        self._together, self._periods, self._most = (), None, len(days)
        self._stopped, self._newest = False, {}

    def day(self, period: PeriodTable, day: date) -> Any:
        """See `Source.day`; a frame of many periods where they are read together."""
        if day in self._announced and day not in self._together:
            self._read_together(period, self._announced[self._announced.index(day) :])
        if day not in self._together or self._periods is None:
            return self.rows(period, *period.span(day))
        return OnePeriod(self._periods, day, partial(self.rows, period, *period.span(day)))

    def _read_together(self, period: PeriodTable, days: Sequence[date]) -> None:
        """Read these periods, or as many of the first as can be read together: one of the others may be malformed."""
        while len(days := days[: self._most]) > 1:
            try:
                relation = self.rows(period, days[0], period.span(days[-1])[1])
            except PkdpError:
                if self._stopped:
                    raise
                self._most = len(days) // 2
                continue
            self._together, self._periods = days, Periods(relation, first_day(*self.clock(period, relation), period))
            return

    def clock(self, period: PeriodTable, relation: duckdb.DuckDBPyRelation) -> tuple[str, Kind]:
        """Return SQL for what tells the day of a row of many periods, and its kind."""
        stored = dict(zip(relation.columns, map(str, relation.types), strict=True))[period.column]
        return in_microseconds(quoted(period.column), stored), period_kind(self.columns, period)

    def counts(self, period: PeriodTable, day: date, unit: Sequence[str]) -> tuple[int, int]:
        """See `Source.counts`."""
        frame = DuckDBSource.day(self, period, day)
        counted = frame.periods.rows(tuple(unit), day) if isinstance(frame, OnePeriod) else None
        if counted is not None:
            return counted[:2]
        names = [(quoted(column), self.columns[column]) for column in unit]
        present = [is_number(name) if kind == "real" else f"{name} IS NOT NULL" for name, kind in names]
        missing = f"count(*) FILTER (WHERE NOT ({' AND '.join(['TRUE', *present])}))"
        relation = self.rows(period, *period.span(day), unit)
        rows, without = self.guarded(lambda: relation.aggregate(built_in(f"count(*), {missing}")).fetchall()[0])
        return rows, without

    def newest(self, period: PeriodTable, column: str) -> date | None:
        """See `Source.newest`; asked once of periods that are read together."""
        if column not in self._newest:
            self._newest[column] = self.outermost(period, column)
        return self._newest[column] if self._announced else self._newest.pop(column)


class RelationSource(DuckDBSource):
    """A relation with the rows of all periods; see `DuckDBSource`. `is_one_state`: see `Source.is_one_state`."""

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        relation: duckdb.DuckDBPyRelation,
        broken: PkdpError,
        is_one_state: Callable[[], bool] = lambda: False,
    ) -> None:
        self._relation, self._is_one_state = relation, is_one_state
        self._types = dict(zip(relation.columns, map(str, relation.types), strict=True))
        super().__init__(connection, {name: kind_of(sql_type) for name, sql_type in self._types.items()}, broken)

    def is_one_state(self) -> bool:
        """See `Source.is_one_state`."""
        return self._is_one_state()

    def rows(self, period: PeriodTable, first: date, last: date, columns: Collection[str] = ()) -> Any:
        """See `Source.rows`; all columns, read where they are asked for."""
        kind, stored = period_kind(self.columns, period), self._types[period.column]
        condition = built_in(in_period(quoted(period.column), kind, period, first, last, stored=stored))
        return self.guarded(lambda: self._relation.filter(condition))

    def outermost(self, period: PeriodTable, column: str, which: str = "max") -> date | None:
        """See `DuckDBSource.outermost`."""
        kind = newest_kind(self.columns, column, period)
        day = built_in(outermost_day(in_microseconds(quoted(column), self._types[column]), kind, period, which))
        outermost: date | None = self.guarded(lambda: self._relation.aggregate(day).fetchall()[0][0])
        return outermost


class FetchedSource(DuckDBSource):
    """A source whose rows are fetched into memory; see `DuckDBSource`."""

    _needed: Sequence[str] = ()
    _fetched: tuple[PeriodTable, date, date, duckdb.DuckDBPyRelation] | None = None

    def fetch(self, period: PeriodTable, first: date, last: date, columns: Sequence[str]) -> duckdb.DuckDBPyRelation:
        """Return these columns of the rows of some days, in memory."""
        raise NotImplementedError

    def rows(self, period: PeriodTable, first: date, last: date, columns: Collection[str] = ()) -> Any:
        """See `Source.rows`; what was fetched last is not fetched again."""
        wanted = [column for column in self.columns if column in {period.column, *columns, *self._needed}]
        known = self._fetched
        if known is None or not (
            known[0] == period and known[1] <= first and last <= known[2] and {*wanted} <= {*known[3].columns}
        ):
            self._fetched = None
            known = self._fetched = period, first, last, self.fetch(period, first, last, wanted)
        _, begin, end, relation = known
        if (begin, end) == (first, last):
            return relation
        condition = in_period(*self.clock(period, relation), period, first, last)
        return self.guarded(lambda: relation.filter(condition))


def kind_of(sql_type: str) -> Kind:
    """Return what a column of a type of DuckDB holds."""
    return next((kind for pattern, kind in _KINDS.items() if re.fullmatch(pattern, sql_type)), "other")


def in_period(
    column: str, kind: Kind, period: PeriodTable, first: date, last: date, *, stored: str = "TIMESTAMP"
) -> str:
    """Return SQL, for DuckDB and PostgreSQL, for whether a quoted column lies between two days, both included.

    It says the same once more, roughly, in a way that indexes and the statistics of files answer. `stored`: DuckDB's
    type of the column.
    """
    day = on_day(in_microseconds(column, stored), kind, period)
    condition = f"{day} BETWEEN DATE '{first.isoformat()}' AND DATE '{last.isoformat()}'"
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
    """Return SQL, for DuckDB and PostgreSQL, for the first day of the period that a quoted column lies in."""
    day = on_day(column, kind, period)
    return day if period.every == "day" else f"CAST(date_trunc({literal(period.every)}, {day}) AS DATE)"


def outermost_day(column: str, kind: Kind, period: PeriodTable, which: str = "max") -> str:
    """Return SQL for the latest, or with ``"min"`` the earliest, day of a quoted column that has a name in Python."""
    day = on_day(column, kind, period)
    return f"{which}(CASE WHEN {day} BETWEEN DATE '0001-01-01' AND DATE '9999-12-31' THEN {day} END)"


def on_day(column: str, kind: Kind, period: PeriodTable) -> str:
    """Return SQL, for DuckDB and PostgreSQL, for the day of a quoted column on the clocks of the period."""
    clock = f"timezone({literal(str(period.time_zone))}, {column})" if kind == "instant" else column
    return f"CAST({clock} AS DATE)"


def new_name(columns: Collection[str]) -> str:
    """Return a name that no column has."""
    name = "pkdp_clock"
    while any(column.casefold() == name for column in columns):
        name += "_"
    return name


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
        parts = _linking_parts(connection, table, what)
        fixed = not parts and _reads_tables(connection, relation)
        broken = ConfigError(f"source {table.duckdb!r}: {what} cannot be read to its end.")
        return RelationSource(connection, relation, broken, lambda: fixed)
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


def _reads_tables(connection: duckdb.DuckDBPyConnection, relation: duckdb.DuckDBPyRelation) -> bool:
    """Return whether all rows come from tables in DuckDB files, which are locked while they are open, and no others."""
    connection.execute("PRAGMA disable_optimizer")  # which leaves out what statistics of today exclude
    try:
        ((_, plan),) = connection.execute(f"EXPLAIN (FORMAT json) {relation.sql_query()}").fetchall()
    finally:
        connection.execute("PRAGMA enable_optimizer")

    def leaves(nodes: Sequence[Mapping[str, Any]]) -> Iterator[str]:
        for node in nodes:
            yield from leaves(node["children"]) if node.get("children") else (node["name"].strip(),)

    return {*leaves(json.loads(plan))} <= _IN_FILE


def _linking_parts(connection: duckdb.DuckDBPyConnection, table: DuckDBSourceTable, what: str) -> Sequence[str]:
    """Return what in the query, or in views that it reads, makes rows depend on other rows, and tell the curator."""
    from pkdp_pipeline.sql.tables import link_warning, linking_parts

    parts = linking_parts(connection, table.query or f"FROM {table.rows_sql}")
    if parts:
        print(f"warning: source {table.duckdb!r}: {link_warning(what, parts)}", file=sys.stderr)
    return parts
