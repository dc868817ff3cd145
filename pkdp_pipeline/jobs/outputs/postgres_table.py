"""Public tables in a PostgreSQL database, through psycopg."""

from __future__ import annotations

import hashlib
import importlib.util
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from typing import TYPE_CHECKING, Any

import pandas as pd

from pkdp_pipeline.engines.rows import quoted
from pkdp_pipeline.errors import ConfigError, PkdpError
from pkdp_pipeline.jobs.environment import public_address, refusal
from pkdp_pipeline.jobs.outputs.tables import PublicColumn, TableStore, check_names

if TYPE_CHECKING:
    import psycopg

    from pkdp_pipeline.jobs.job import Job

_KEY = "output.postgres"
_LEDGER = "pkdp"
_LONGEST = 63
_LOCK_SECONDS = 30
_SYSTEM = ("cmax", "cmin", "ctid", "tableoid", "xmax", "xmin")
_MOMENTS = ("timestamp without time zone", "timestamp with time zone")
_TYPES = {
    "text": "text",
    "boolean": "boolean",
    "integer": "bigint",
    "natural": "numeric",
    "decimal": "numeric",
    "real": "double precision",
    "date": "DATE",
    "timestamp": _MOMENTS[0],
    "instant": _MOMENTS[1],
}
_NUMBERS = ("bigint", "numeric", "double precision")
"""From the narrowest to the widest; a change to the last is checked value by value."""

_FIXES = {
    "42501": "grant its user the right to create and change tables in the schema",
    "25006": "the server is read-only, a standby perhaps: connect to the primary",
    "22P05": "a key holds a character that the database's encoding lacks: use a database in UTF-8",
    "": "check user, rights and schema",
}


def in_postgres(job: Job, work: Callable[[TableStore], None], *, writing: bool) -> None:
    """Do `work` in one transaction of the job's PostgreSQL database."""
    if importlib.util.find_spec("psycopg") is None:
        raise ConfigError(f"{_KEY} needs psycopg, which is not installed: pip install 'pkdp-pipeline[postgres]'.")
    if job.output.schema_ == _LEDGER:
        raise ConfigError(f"output.schema {_LEDGER!r} is where ledgers are kept in PostgreSQL: choose another.")
    check_names(job, _KEY, longest=_LONGEST, reserved=_SYSTEM)
    import psycopg

    assert job.output.postgres is not None
    location = public_address(job.output.postgres)
    scheme, mark, rest = job.output.postgres.partition("://")
    address = f"{scheme.partition('+')[0]}{mark}{rest}"
    problem: PkdpError | None = None
    connection: psycopg.Connection[Any] | None = None
    try:
        given = psycopg.conninfo.conninfo_to_dict(address)
        defaults = {"connect_timeout": "10", "application_name": "pkdp_pipeline"}
        connection = psycopg.connect(
            psycopg.conninfo.make_conninfo("", **{**defaults, **given, "client_encoding": "utf8"}),
            prepare_threshold=None,  # prepared statements do not survive a pooling proxy
            cursor_factory=psycopg.RawCursor,
        )
        work(_PostgresStore(connection, job.output.schema_ or "public", writing=writing))
        connection.commit()
    except psycopg.Error as error:
        problem = refusal(f"{_KEY}, the database {location},", error, _FIXES)
    finally:
        if connection is not None:
            connection.close()  # what is not committed is rolled back
    if problem is not None:
        raise problem


class _PostgresStore:
    """See `TableStore`."""

    key = _KEY
    text = "text"
    whole = "bigint"

    def __init__(self, connection: psycopg.Connection[Any], schema: str, *, writing: bool) -> None:
        self._connection = connection
        self._schema = schema
        self.run("SELECT set_config('lock_timeout', $1, true)", f"{_LOCK_SECONDS}s")
        if writing:  # to one schema one after another, also while there is no table yet
            digest = hashlib.sha256(b"pkdp outputs:" + schema.encode()).digest()
            self.run("SELECT pg_advisory_xact_lock($1)", int.from_bytes(digest[:8], "big", signed=True))

    def run(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        cursor = self._connection.execute(sql.encode(), values or None)
        return cursor.fetchall() if cursor.description is not None else []

    def place(self, table: str) -> str:
        return f"{quoted(self._schema)}.{quoted(table)}"

    def make_schema(self) -> None:
        # Asked first: IF NOT EXISTS needs the right to create schemas, also where there is one.
        if not self.run("SELECT 1 FROM pg_namespace WHERE nspname = $1", self._schema):
            self.run(f"CREATE SCHEMA {quoted(self._schema)}")

    def columns(self, table: str) -> Mapping[str, str] | None:
        found = self.run(
            "SELECT c.oid, c.relkind FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace "
            "WHERE n.nspname = $1 AND c.relname = $2",
            *(self._schema, table),
        )
        if not found:
            return None
        table_id, kind = found[0]
        if kind not in (b"r", b"p", "r", "p"):
            return {}
        columns = self.run(
            "SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute "
            "WHERE attrelid = $1 AND attnum > 0 AND NOT attisdropped ORDER BY attnum",
            table_id,
        )
        return {name: "DATE" if held == "date" else held for name, held in columns}

    def type_of(self, column: PublicColumn) -> str:
        problem = None
        if column.nanoseconds:
            problem = "have nanoseconds"
        elif column.kind == "text" and any(value is not None and "\x00" in value for value in column.values):
            problem = "hold a character, U+0000,"
        if problem is not None:
            raise ConfigError(
                f"{_KEY}: the keys of {column.name!r} {problem} that PostgreSQL cannot hold: remove {_KEY}, or change "
                "them in the source."
            )
        return _TYPES[column.kind]

    def wider(self, held: str, wanted: str) -> str | None:
        if held == wanted:
            return held if held in _TYPES.values() else None
        if held in _NUMBERS and wanted in _NUMBERS:
            return max(held, wanted, key=_NUMBERS.index)
        return None

    def is_real(self, kind: str) -> bool:
        return kind == _NUMBERS[-1]

    def insert(
        self,
        table: str,
        period: date,
        columns: Sequence[tuple[PublicColumn, str]],
        counts: Sequence[int | None],
        release_id: str,
    ) -> None:
        keys = [map(_plain, column.values) for column, _ in columns]
        statement = f"COPY {self.place(table)} FROM STDIN".encode()
        with self._connection.cursor() as cursor, cursor.copy(statement) as copy:
            for *cell, counted in zip(*keys, counts, strict=True):
                copy.write_row((period, *cell, counted, release_id))


def _plain(value: Any) -> Any:
    """Return a key as psycopg writes it: it knows datetimes, and not those of pandas."""
    return value.to_pydatetime() if isinstance(value, pd.Timestamp) else value
