"""Database: what the ledger needs of SQLite and PostgreSQL, and the one function that opens either."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any, Protocol

from pkdp_pipeline.errors import LedgerError

SCHEMA_VERSION = 1

LOCK_SECONDS = 30.0
"""How long a transaction waits for those of other processes before it is a `TemporaryError`."""

WAIT_SECONDS = 0.25
"""How long it waits before it looks up; see `while_waiting`."""

_LOOKS: ContextVar[Callable[[], None] | None] = ContextVar("_LOOKS", default=None)


@contextmanager
def while_waiting(look: Callable[[], None]) -> Iterator[None]:
    """Call `look` again and again while a transaction waits for those of others; what it raises ends the wait.

    It is called only where nothing has been changed yet.
    """
    before = _LOOKS.set(look)
    try:
        yield
    finally:
        _LOOKS.reset(before)


def waiting() -> None:
    """Call what `while_waiting` has given; a database calls it between its tries to get a lock."""
    look = _LOOKS.get()
    if look is not None:
        look()


class NoLedgerError(LedgerError):
    """There is no ledger, and none is to be created."""


class Database(Protocol):
    """One database that holds a ledger, safe for many processes and for the threads of each.

    Every method raises `TemporaryError` when the database is locked or unreachable and `LedgerError` when it
    cannot be used otherwise; messages name no password.
    """

    @property
    def location(self) -> str:
        """Where it is, for messages."""

    def execute(self, sql: str, /, **parameters: Any) -> list[tuple[Any, ...]]:
        """Run one statement with ``:name`` placeholders and return its rows.

        Outside `transaction` and `snapshot` the statement is a transaction of its own.
        """

    def transaction(self, dataset: str) -> AbstractContextManager[None]:
        """Hold the data set's write lock: all that happens inside is committed at the end, or nothing is."""

    def snapshot(self) -> AbstractContextManager[None]:
        """See one state of the ledger throughout, and write nothing; writers are not held up."""

    def check(self) -> None:
        """Check what the database itself knows to be wrong: damaged pages, a schema that was changed."""

    def close(self) -> None:
        """Close it; a closed database cannot be used."""


def schema_script(dialect: str) -> str:
    """Return the SQL text that creates the tables, which is kept in ``sql/ledger``."""
    package = Path(__file__).resolve().parents[1]
    # A wheel carries sql/ inside the package; an editable install reads it beside the package.
    for folder in (package / "sql", package.parent / "sql"):
        file = folder / "ledger" / f"{dialect}.sql"
        if file.is_file():
            return file.read_text(encoding="utf-8")
    raise LedgerError(
        f"the installation is incomplete: sql/ledger/{dialect}.sql is missing; install the package again."
    )
