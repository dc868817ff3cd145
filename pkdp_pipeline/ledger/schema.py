"""The ledger's tables, kept as plain SQL files in ``sql/ledger``."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from pkdp_pipeline.errors import LedgerError

__all__ = ["APPLICATION_ID", "SCHEMA_VERSION", "schema_script", "split_statements"]

APPLICATION_ID = int.from_bytes(b"pkdp", "big")
SCHEMA_VERSION = 1


def schema_script(dialect: str) -> str:
    """Return the SQL text that creates the tables."""
    return _read(f"{dialect}.sql")


def split_statements(script: str) -> list[str]:
    """Return the statements of an SQLite script, in order.

    The sqlite3 module's own `executescript` commits what is open, so a script cannot be run in a transaction.
    """
    statements, statement = [], ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            statements.append(statement.strip())
            statement = ""
    return statements


def _read(name: str) -> str:
    package = Path(__file__).resolve().parents[1]
    # A wheel carries sql/ inside the package; an editable install reads it beside the package.
    for folder in (package / "sql", package.parent / "sql"):
        file = folder / "ledger" / name
        if file.is_file():
            return file.read_text(encoding="utf-8")
    raise LedgerError(f"the installation is incomplete: sql/ledger/{name} is missing; install the package again.")
