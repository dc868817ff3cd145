"""Tables and queries of PostgreSQL as the ``source`` of a job, by day: asked through ADBC, counted by DuckDB here.

The tables in a job file for such a source are here, and for one of a database that Ibis connects to.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import urlsplit

from pydantic import Field

from pkdp_pipeline.engines.rows import quoted
from pkdp_pipeline.errors import ConfigError, PkdpError
from pkdp_pipeline.jobs.source_tables import DatabaseTable
from pkdp_pipeline.jobs.sources.relations import (
    FetchedSource,
    connect,
    first_day,
    in_period,
    new_name,
    on_day,
    outermost_day,
)
from pkdp_pipeline.jobs.sources.source import (
    Kind,
    Needs,
    check_unique,
    newest_kind,
    period_kind,
)
from pkdp_pipeline.jobs.tables import Address, AnyAddress, refusal
from pkdp_pipeline.ledger.database import public_address, public_url
from pkdp_pipeline.model.wording import INSTALLED

if TYPE_CHECKING:
    import duckdb
    from adbc_driver_postgresql.dbapi import Connection

    from pkdp_pipeline.jobs.tables import PeriodTable


class PostgresSourceTable(DatabaseTable):
    """A table, a view or a query of a PostgreSQL database."""

    reader: ClassVar[str] = "pkdp_pipeline.extras.connect.postgres:PostgresSource"

    postgres: Address = Field(
        repr=False, description='The address, or "${NAME}": an environment variable that holds it.'
    )

    @property
    def postgres_database(self) -> str:
        """See `DatabaseTable`."""
        return public_address(self.postgres)

    @property
    def public_name(self) -> str:
        """Host, database and table."""
        return f"{self.postgres_database}, {self._what}"


class IbisSourceTable(DatabaseTable):
    """A table, a view or a query of a database that Ibis connects to; it is counted there."""

    reader: ClassVar[str] = "pkdp_pipeline.extras.connect.ibis:IbisSource"
    rows_stay: ClassVar[str] = (
        "rows of a source that Ibis connects to stay in its database: remove retention and the expectations of "
        "[checks], and write checks.rows, checks.columns and checks.fresh."
    )
    _levels: ClassVar[int] = 3

    ibis: AnyAddress = Field(
        repr=False, description='The address, as ibis.connect takes it, or "${NAME}": an environment variable.'
    )

    @property
    def scheme(self) -> str:
        """How the address begins: the name of the database's kind."""
        return urlsplit(self.ibis).scheme.replace("postgresql", "postgres")

    @property
    def postgres_database(self) -> str:
        """See `DatabaseTable`."""
        return public_address(self.ibis) if self.scheme == "postgres" else ""

    def counted_by(self, engine: str) -> str:
        """See `SourceTable.counted_by`; the database of the address is not asked by an audit."""
        return "ibis"

    def own_files(self) -> Iterator[Path]:
        """See `SourceTable.own_files`."""
        if self.scheme == "duckdb":
            yield Path(self.ibis.removeprefix("duckdb://").partition("?")[0])

    @property
    def public_name(self) -> str:
        """The kind of the database, its file's name or host and database, and the table."""
        files = [f"duckdb://{file.name}" for file in self.own_files()]
        return f"{(files or [public_url(self.ibis)])[0]}, {self._what}"


_PLAIN: Mapping[str, Kind] = {
    "bool": "boolean",
    "int2": "number",
    "int4": "number",
    "int8": "number",
    "float4": "real",
    "float8": "real",
}
_TIMES: Mapping[str, tuple[Kind, str, str]] = {
    "date": ("date", "DATE", ""),
    "timestamp": ("timestamp", "TIMESTAMP", ""),
    "timestamptz": ("instant", "TIMESTAMPTZ", " 00:00:00+00"),
}
#: Arrow knows them as text, but two spellings of one value are two texts.
_NO_TEXT = ("json", "jsonb", "xml")


@dataclass(frozen=True, slots=True, kw_only=True)
class PostgresColumn:
    """One column of a table or a query.

    Parameters
    ----------
    kind : str
        The kind of its values; "other" where they cannot be fetched.
    fetched : str
        SQL for PostgreSQL.
    counted : str
        SQL for DuckDB, from what was fetched.
    fix : str
        The expression to write in a query where the kind is "other".
    """

    kind: Kind
    fetched: str
    counted: str
    fix: str = ""


def column_of(field: Any) -> PostgresColumn:
    """Return a column as the driver describes it: an Arrow field with PostgreSQL's own type in its metadata."""
    import pyarrow as pa

    name = quoted(field.name)
    metadata: Mapping[bytes, bytes] = field.metadata or {}
    sql_type = metadata.get(b"POSTGRESQL:type", b"").decode()
    if sql_type in _PLAIN:
        return PostgresColumn(kind=_PLAIN[sql_type], fetched=name, counted=name)
    if sql_type in _TIMES:
        kind, word, zone = _TIMES[sql_type]
        # Infinity, and years that have no name in Python, are no values: nothing could be published under them.
        limits = f"{word} '0001-01-01{zone}' AND {word} '9999-12-31{zone}'"
        return PostgresColumn(kind=kind, fetched=f"CASE WHEN {name} BETWEEN {limits} THEN {name} END", counted=name)
    if sql_type == "numeric":
        return _numeric(name, int(metadata.get(b"POSTGRESQL:typmod", b"-1")))
    if sql_type == "uuid" or (pa.types.is_string(field.type) and sql_type not in _NO_TEXT):
        return PostgresColumn(kind="text", fetched=f"CAST({name} AS text)", counted=name)
    return PostgresColumn(kind="other", fetched=name, counted=name, fix=f"CAST({name} AS text) AS {name}")


def _numeric(name: str, typmod: int) -> PostgresColumn:
    """Return a column of decimals; the type modifier holds precision and scale."""
    precision, scale = (typmod - 4) >> 16 & 0xFFFF, (typmod - 4) & 0x7FF
    if typmod < 4 or not 0 <= scale <= precision <= 38:
        return PostgresColumn(kind="other", fetched=name, counted=name, fix=f"CAST({name} AS numeric(18, 2)) AS {name}")
    # Arrow has no type for them that keeps every digit, so they travel as text.
    fetched = f"CAST(NULLIF({name}, 'NaN') AS text)"
    return PostgresColumn(kind="number", fetched=fetched, counted=f"CAST({name} AS DECIMAL({precision}, {scale}))")


_SETTINGS = (
    "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY",
    # What the caller's query makes of times and text must not depend on the server's settings.
    "SET LOCAL TimeZone = 'UTC'",
    "SET LOCAL client_encoding = 'UTF8'",
    # Between two days a job may wait for the lock of its ledger.
    "SET LOCAL idle_in_transaction_session_timeout = 0",
)
_OWN = "own.{0}namespace = 11 AND own.{0}name = f.{0}name"
#: SQL for (name, is_first): functions and operators on the search path that may be called in the place of PostgreSQL's.
#: They take types of its own. Where their schema does not come before its own, they are of no extension and take other
#: arguments than its own.
SHADOWING = " UNION ".join(
    f"SELECT f.{short}name AS name, is_first FROM pg_catalog.pg_{kind} AS f JOIN pg_catalog.pg_namespace AS n "
    f"ON n.oid = f.{short}namespace, pg_catalog.current_schemas(true) AS path, LATERAL (SELECT "
    "pg_catalog.array_position(path, n.nspname) < pg_catalog.array_position(path, 'pg_catalog') AS is_first) AS place "
    "WHERE n.nspname = ANY (path) AND n.oid <> 11 AND NOT EXISTS (SELECT FROM pg_catalog.pg_type AS t "
    f"WHERE t.oid = ANY ({types.format('f')}) AND t.typnamespace <> 11) "
    f"AND EXISTS (SELECT FROM pg_catalog.pg_{kind} AS own WHERE {_OWN.format(short)}) "
    f"AND (is_first OR NOT EXISTS (SELECT FROM pg_catalog.pg_{kind} AS own WHERE {_OWN.format(short)} "
    f"AND {types.format('own')} = {types.format('f')}) AND NOT EXISTS (SELECT FROM pg_catalog.pg_depend AS d "
    "WHERE d.classid = f.tableoid AND d.objid = f.oid AND d.deptype = 'e'))"
    for kind, short, types in (
        ("proc", "pro", "{0}.proargtypes"),
        ("operator", "opr", "ARRAY[{0}.oprleft, {0}.oprright]"),
    )
)
_CALLED = frozenset({"count", "date_trunc", "max", "min", "timezone"})
_LOCK_SECONDS = 30
#: How many rows of several periods come over at most.
_MOST_TOGETHER = 1_000_000
_FIXES = {
    "42501": "its user may not read it; grant SELECT on what is read",
    "": "check the names of tables and columns, and that source.query is one SELECT that can be read to its end",
}


class PostgresSource(FetchedSource):
    """A table or a query of a PostgreSQL database, open for reading until `close`; see `Source`.

    All is asked in one read-only transaction, which sees one state of the database; after a failure, which ends it, the
    next question is asked in a new one. The database selects the rows of a day and the columns that the job needs; only
    these come over, into memory: of many days at a time, as long as they have few rows. Raises `ConfigError` if the
    driver is not installed, the server refuses, or there is no such table or query; `TemporaryError` if the server
    cannot be reached.
    """

    _sizes: Mapping[date, int] | None = None

    def __init__(self, table: PostgresSourceTable, needs: Needs) -> None:
        self._rows = f"{table.rows_sql} AS pkdp_rows"
        self._address, self._name = _with_defaults(table.postgres), table.public_name
        self._server: Connection | None = None
        self._states = 0
        self._cursor: Any = None
        # What DuckDB says when it cannot read quotes the data.
        broken = ConfigError("the rows of one period cannot be read: a text in them is no UTF-8, or they are too many.")
        super().__init__(connect(spill=False), {}, broken)
        try:
            # Arguments are of the types that PostgreSQL's own are declared with: nothing comes closer.
            first = self._ask(f"SELECT name FROM ({SHADOWING}) AS shadowing WHERE is_first")["name"].to_pylist()
            refuse_shadowed(name for name in first if name in _CALLED or not name.isidentifier())
            schema = self._ask(f"SELECT * FROM {self._rows} LIMIT 0").schema
            check_unique(schema.names)
            self._described = {field.name: column_of(field) for field in schema}
            self._check(column for key, column in needs.declared if key != "period.column")
        except BaseException:
            self.close()
            raise
        self.columns = {name: column.kind for name, column in self._described.items()}
        self._day = new_name(self.columns)
        self._needed = [name for name in needs.of(self.columns) if self.columns[name] != "other"]

    def close(self) -> None:
        """See `Source.close`."""
        self._end()
        super().close()

    def is_one_state(self) -> bool:
        """See `Source.is_one_state`; after a failure another transaction begins."""
        return self._states <= 1

    def interrupt(self) -> None:
        """See `Source.interrupt`; the question ends at the server, too."""
        cursor = self._cursor
        if cursor is not None:
            cursor.adbc_cancel()
        super().interrupt()

    def outermost(self, period: PeriodTable, column: str, which: str = "max") -> date | None:
        """See `DuckDBSource.outermost`."""
        outermost = outermost_day(quoted(column), newest_kind(self.columns, column, period), period, which)
        day: date | None = self._ask(f"SELECT {outermost} AS day FROM {self._rows}")["day"][0].as_py()
        return day

    def together(self, period: PeriodTable, days: Sequence[date]) -> None:
        """See `Source.together`."""
        super().together(period, days)
        self._sizes = None

    def _read_together(self, period: PeriodTable, days: Sequence[date]) -> None:
        """Read as many periods as have few rows together: counted once, in one scan."""
        if self._sizes is None:
            column, kind = quoted(period.column), period_kind(self.columns, period)
            condition = in_period(column, kind, period, days[0], period.span(days[-1])[1])
            rows = f"SELECT {first_day(column, kind, period)} AS day FROM {self._rows} WHERE {condition}"
            self._sizes = {}
            try:
                sizes = self._ask(f"SELECT day, count(*) AS n FROM ({rows}) AS pkdp_days GROUP BY day")
                self._sizes = dict(zip(sizes["day"].to_pylist(), sizes["n"].to_pylist(), strict=True))
            except ConfigError:  # for a row of another period, perhaps: each is read alone
                if self._stopped:
                    raise
        sizes = accumulate(self._sizes.get(day, 0) for day in days)
        super()._read_together(period, days[: bisect_right([*sizes], _MOST_TOGETHER) if self._sizes else 1])

    def clock(self, period: PeriodTable, relation: duckdb.DuckDBPyRelation) -> tuple[str, Kind]:
        """See `DuckDBSource.clock`; the server has cut the days, whose rules for a zone may be others."""
        return self._day, "date"

    def fetch(self, period: PeriodTable, first: date, last: date, columns: Sequence[str]) -> duckdb.DuckDBPyRelation:
        """See `FetchedSource.fetch`."""
        self._check(columns)
        described = [(quoted(column), self._described[column]) for column in columns]
        fetched = ", ".join(f"{column.fetched} AS {name}" for name, column in described)
        counted = ", ".join(f"{column.counted} AS {name}" for name, column in described)
        clock = quoted(period.column), period_kind(self.columns, period)
        if (first, last) != period.span(first):  # of many periods
            fetched, counted = f"{fetched}, {on_day(*clock, period)} AS {self._day}", f"{counted}, {self._day}"
        condition = in_period(*clock, period, first, last)
        rows, arrow = self._ask(f"SELECT {fetched} FROM {self._rows} WHERE {condition}"), self._connection.from_arrow
        return self.guarded(lambda: arrow(arrow(rows).project(counted).to_arrow_table()))

    def _check(self, columns: Iterable[str]) -> None:
        """Refuse columns that cannot be fetched."""
        for column in columns:
            if column in self._described and self._described[column].kind == "other":
                raise ConfigError(
                    f"column {column!r} has a type that a job cannot read; cast it in source.query: SELECT …, "
                    f"{self._described[column].fix}."
                )

    def _ask(self, sql: str) -> Any:
        """Return the rows of one SELECT as an Arrow table."""
        try:
            from adbc_driver_postgresql import dbapi
        except ImportError:
            raise ConfigError(
                f"a source in PostgreSQL needs its ADBC driver: {INSTALLED.format('postgres')}."
            ) from None
        problem: PkdpError | None = None
        try:
            if self._server is None:
                self._server = dbapi.connect(self._address)
                self._states += 1
                for setting in (*_SETTINGS, f"SET LOCAL lock_timeout = '{_LOCK_SECONDS}s'"):
                    self._run(setting, rows=False)
            return self._run(sql)
        except Exception as error:  # whatever is said could quote the data, or hold the address with its password
            problem = refusal(f"the PostgreSQL source {self._name!r}", error, _FIXES)
        self._end()
        raise problem

    def _run(self, sql: str, *, rows: bool = True) -> Any:
        assert self._server is not None
        with self._server.cursor() as cursor:
            self._cursor = cursor
            try:
                cursor.execute(sql)
                return cursor.fetch_arrow_table() if rows else None
            finally:
                self._cursor = None

    def _end(self) -> None:
        server, self._server = self._server, None
        with suppress(Exception):  # it may be gone, and whatever is said of that does not matter any more
            if server is not None:
                server.close()


def refuse_shadowed(names: Iterable[str]) -> None:
    """Raise `ConfigError` where counting calls functions or operators of these names: which ones, is not sure."""
    if name := min(names, default=""):
        raise ConfigError(
            f"counting calls the database's own {name!r}, and a macro, a function or an operator of that name could "
            "stand in its place: give it another name, drop it, or leave its schema out of the search_path (in "
            "PostgreSQL: ALTER ROLE … SET search_path = …)."
        )


def _with_defaults(address: str) -> str:
    """Return an address as libpq reads it, with a limit to how long connecting may take."""
    scheme, separator, rest = address.partition("://")
    defaults = {"connect_timeout": "10", "application_name": "pkdp_pipeline"}
    added = "&".join(f"{key}={value}" for key, value in defaults.items() if f"{key}=" not in rest)
    joint = "&" if "?" in rest else "?"
    return f"{scheme.partition('+')[0]}{separator}{rest}{joint if added else ''}{added}"
