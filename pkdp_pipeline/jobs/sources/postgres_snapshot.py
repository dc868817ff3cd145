"""PostgresSnapshot: one state of a PostgreSQL database, asked through ADBC, answered in Arrow."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from pkdp_pipeline.errors import ConfigError, PkdpError, TemporaryError
from pkdp_pipeline.ledger.postgres_errors import trouble_of

if TYPE_CHECKING:
    from adbc_driver_postgresql.dbapi import Connection

__all__ = ["PostgresSnapshot"]

_SETTINGS = (
    "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY",
    # What the caller's query makes of times and text must not depend on the server's settings.
    "SET LOCAL TimeZone = 'UTC'",
    "SET LOCAL client_encoding = 'UTF8'",
    # Between two days a job may wait for the lock of its ledger.
    "SET LOCAL idle_in_transaction_session_timeout = 0",
)
_LOCK_SECONDS = 30


class PostgresSnapshot:
    """A read-only transaction that sees one state of the database until `close`.

    After a failure the next question is asked in a new one: nothing more can be asked in the old.

    Parameters
    ----------
    address : str
        ``postgresql://user@host:5432/database``.
    name : str
        What may be shown of it.

    Raises
    ------
    ConfigError
        If the extra ``pkdp-pipeline[postgres]`` is not installed, or the server refuses the user or the database.
    TemporaryError
        If the server cannot be reached.
    """

    def __init__(self, address: str, name: str) -> None:
        self._address = _with_defaults(address)
        self._name = name
        self._connection: Connection | None = None
        self._cursor: Any = None
        self._begin()

    def close(self) -> None:
        """End the transaction and the connection."""
        connection, self._connection = self._connection, None
        if connection is not None:
            # It may be gone, and whatever is said of that does not matter any more.
            with suppress(Exception):
                connection.close()

    def ask(self, sql: str) -> Any:
        """Return the rows of one SELECT as an Arrow table.

        Raises
        ------
        ConfigError
            If the server does not accept it.
        TemporaryError
            If the connection is lost, or the server gives up.
        """
        if self._connection is None:
            self._begin()
        problem: PkdpError | None = None
        try:
            return self._run(sql)
        except Exception as error:  # whatever the server says could quote the data
            problem = self._complaint(error)
        self.close()
        raise problem

    def _begin(self) -> None:
        try:
            from adbc_driver_postgresql import dbapi
        except ImportError:
            raise ConfigError(
                'a source in PostgreSQL needs its ADBC driver: pip install "pkdp-pipeline[postgres]".'
            ) from None
        problem: PkdpError | None = None
        try:
            self._connection = dbapi.connect(self._address)
            for setting in (*_SETTINGS, f"SET LOCAL lock_timeout = '{_LOCK_SECONDS}s'"):
                self._run(setting, rows=False)
        except Exception as error:  # whatever is said could hold the address with its password
            problem = self._complaint(error)
        if problem is not None:
            self.close()
            raise problem

    def _run(self, sql: str, *, rows: bool = True) -> Any:
        assert self._connection is not None
        with self._connection.cursor() as cursor:
            self._cursor = cursor
            try:
                cursor.execute(sql)
                return cursor.fetch_arrow_table() if rows else None
            finally:
                self._cursor = None

    def interrupt(self) -> None:
        """Make a question that another thread has asked end, also at the server."""
        cursor = self._cursor
        if cursor is not None:
            cursor.adbc_cancel()

    def _complaint(self, error: Exception) -> PkdpError:
        state = str(getattr(error, "sqlstate", None) or "")
        trouble = trouble_of(state, str(error), lost=not state and type(error).__name__ == "OperationalError")
        if trouble == "passing":
            return TemporaryError(
                f"the PostgreSQL source {self._name!r} cannot be reached, or has no room for one more, or is locked: "
                "try again later."
            )
        if state.startswith("42501"):
            return ConfigError(
                f"the PostgreSQL source {self._name!r} cannot be read: its user may not; grant SELECT on what is read."
            )
        if trouble != "other" or not state:
            return ConfigError(
                f"the PostgreSQL source {self._name!r} refuses the connection; check user, password, host and database "
                "of its address."
            )
        if state.startswith(("53", "58")):
            return ConfigError(f"the PostgreSQL source {self._name!r} has run out of room: make room on its server.")
        return ConfigError(
            f"the PostgreSQL source {self._name!r} cannot be read: the server does not accept what is asked "
            f"(SQLSTATE {state}); check the names of tables and columns, and that source.query is one SELECT that can "
            "be read to its end."
        )


def _with_defaults(address: str) -> str:
    """Return an address as libpq reads it, with a limit to how long connecting may take."""
    scheme, separator, rest = address.partition("://")
    defaults = {"connect_timeout": "10", "application_name": "pkdp_pipeline"}
    added = "&".join(f"{key}={value}" for key, value in defaults.items() if f"{key}=" not in rest)
    joint = "&" if "?" in rest else "?"
    return f"{scheme.partition('+')[0]}{separator}{rest}{joint if added else ''}{added}"
