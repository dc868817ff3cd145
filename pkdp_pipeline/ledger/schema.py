"""The ledger's tables, kept as plain SQL files in ``sql/ledger``."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

from pkdp_pipeline.errors import LedgerError

__all__ = ["APPLICATION_ID", "SCHEMA_VERSION", "schema_statements"]

APPLICATION_ID = int.from_bytes(b"pkdp", "big")
SCHEMA_VERSION = 1


def schema_statements() -> Iterator[str]:
    """Yield the statements that create the current schema, in order."""
    statement = ""
    for line in _schema_text().splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement.strip()
            statement = ""


def _schema_text() -> str:
    package = Path(__file__).resolve().parents[1]
    name = f"ledger/schema_{SCHEMA_VERSION}.sql"
    # A wheel carries sql/ inside the package; an editable install reads it beside the package.
    for folder in (package / "sql", package.parent / "sql"):
        if (folder / name).is_file():
            return (folder / name).read_text(encoding="utf-8")
    raise LedgerError(f"the installation is incomplete: sql/{name} is missing; install the package again.")
