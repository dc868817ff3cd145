"""Copying: a ledger in memory that says what the real one would say, while that one stays as it is."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

from pkdp_pipeline.errors import LedgerError
from pkdp_pipeline.ledger import accounts
from pkdp_pipeline.ledger.database import Database, open_database
from pkdp_pipeline.ledger.entries import Entries
from pkdp_pipeline.ledger.journal import Journal
from pkdp_pipeline.ledger.ledger import Ledger
from pkdp_pipeline.ledger.sqlite_database import SqliteDatabase
from pkdp_pipeline.ledger.standing import Standing

__all__ = ["copied", "replay"]


@contextmanager
def copied(location: str, *, dataset: str, budget: Any = None, evidence: Any = None) -> Iterator[Ledger]:
    """Yield a copy of a ledger, in memory: a new one where there is none.

    An SQLite file is read as it is, page by page, and nothing is created beside it. Of a PostgreSQL database the
    data set's events are read, in one read-only transaction, and the copy is made from them.

    Raises
    ------
    LedgerError, TemporaryError
        If there is a ledger that cannot be read.
    """
    if "://" not in location:
        database: SqliteDatabase = _Copy(location)
    else:
        database = SqliteDatabase(":memory:")
        with closing(open_database(location)) as source, source.snapshot():
            replay(source, database, dataset)
    with Ledger(database, dataset=dataset, budget=budget, evidence=evidence) as ledger:
        yield ledger


def replay(source: Database, target: Database, dataset: str) -> None:
    """Charge in an empty ledger what the events of a data set say, held to no budget; its chain is the same."""
    name = Entries(source).spelled(dataset)
    if name is None:
        return
    journal, entries = Journal(target), Entries(target)
    with target.transaction(name):
        entries.register(name)
        made: dict[tuple[str, int], int] = {}
        for event in Journal(source).events(name):
            # An event that only a later version knows must not be overlooked.
            if event.kind not in ("reserved", "published", "given_back", "recertified", "unreadable"):
                raise LedgerError(f"event {event.sequence} of {name!r} is of an unknown kind: use a newer version.")
            sequence = journal.append(
                dataset=name,
                kind=event.kind,
                key=event.key,
                revision=event.revision,
                standing=event.standing,
                certificate=event.certificate,
                terms=event.terms,
                release_id=event.release_id,
                content=event.content,
                created_at=event.created_at,
            )
            if event.kind == "reserved":
                made[event.key, event.revision] = sequence
                standing = Standing.from_dict(json.loads(event.standing or ""))
                entries.reserved(sequence, dataset=name, key=event.key, revision=event.revision, standing=standing)
                accounts.charge(target, name, standing, event.certificate or "", None, sequence)
                continue
            if event.kind == "unreadable":
                continue
            entry = made[event.key, event.revision]
            if event.kind == "published":
                entries.published_by(entry, sequence)
            elif event.kind == "given_back":
                entries.given_back(entry)
                accounts.withdraw(target, name, entry)
            else:
                entries.recertified_by(entry, sequence)
                accounts.recertified(target, name, entry, event.certificate or "")


class _Copy(SqliteDatabase):
    """An SQLite ledger copied into memory."""

    def __init__(self, path: str) -> None:
        self._original = path
        super().__init__(":memory:")

    def _prepare(self) -> None:
        self._path = self._original
        if Path(self._original).exists():
            with self._errors():
                _copy(self._original, self._connection)
        super()._prepare()

    def _is_new(self) -> bool:
        return not Path(self._original).exists()

    def _file_identity(self) -> tuple[int, int] | None:
        return None


def _copy(path: str, target: sqlite3.Connection) -> None:
    """Copy the pages of a file that other processes may be writing to."""
    address = f"file:{quote(str(Path(path).absolute()))}?mode=ro"
    # Where there is no log, SQLite would create one to read; with immutable it does not, and relies on nobody writing.
    quiet = _state(path)
    if quiet is not None:
        with closing(sqlite3.connect(f"{address}&immutable=1", uri=True)) as source:
            source.backup(target)
        if _state(path) == quiet:
            return
    with closing(sqlite3.connect(address, uri=True)) as source:
        source.backup(target)


def _state(path: str) -> tuple[int, int] | None:
    """Return size and time of a file without a write-ahead log; None where there is one."""
    if Path(f"{path}-wal").exists():
        return None
    status = os.stat(path)
    return status.st_size, status.st_mtime_ns
