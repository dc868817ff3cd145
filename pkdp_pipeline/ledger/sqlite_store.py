"""SqliteStore: the ledger's rows in one SQLite file, safe for many processes of one machine."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from pkdp_pipeline.errors import LedgerError, TemporaryError
from pkdp_pipeline.ledger.entry import Entry
from pkdp_pipeline.ledger.schema import APPLICATION_ID, SCHEMA_VERSION, schema_statements
from pkdp_pipeline.ledger.standing import Standing

__all__ = ["BUSY_SECONDS", "SqliteStore"]

BUSY_SECONDS = 5.0
"""How long a statement waits for another process's transaction before it is a `TemporaryError`."""

_COLUMNS = "sequence, key, dataset, unit, period, label, noiseless, state, release_id, certificate, content, created_at"


class SqliteStore:
    """One SQLite file: write-ahead log, ``synchronous=FULL``, one writer at a time.

    Write-ahead logging needs shared memory between the processes, so the file must not be on a network file
    system.

    Parameters
    ----------
    path : str
        A file, created when it does not exist, or ``:memory:``.

    Raises
    ------
    LedgerError
        If the file is not a ledger of this schema or cannot be used.
    TemporaryError
        If another process holds the file locked for longer than `BUSY_SECONDS`.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        if path != ":memory:" and not Path(path).parent.is_dir():
            raise LedgerError(f"the ledger {path!r} cannot be opened: its folder does not exist; create it.")
        with self._errors():
            self._connection = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None)
        try:
            with self._errors():
                self._prepare()
        except BaseException:
            self._connection.close()
            raise

    def close(self) -> None:
        """Close the file; a closed store cannot be used."""
        self._connection.close()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Hold the write lock: all that happens inside is committed at the end, or nothing is."""
        with self._errors():
            self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield
            with self._errors():
                self._connection.execute("COMMIT")
        except BaseException:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise

    def find(self, key: str) -> Entry | None:
        """Return the entry of this key, or None."""
        with self._errors():
            row = self._connection.execute(f"SELECT {_COLUMNS} FROM entry WHERE key = ?", (key,)).fetchone()
        return None if row is None else _entry(row)

    def read(self, sequence: int) -> Entry:
        """Return the entry at this position of the ledger."""
        with self._errors():
            row = self._connection.execute(f"SELECT {_COLUMNS} FROM entry WHERE sequence = ?", (sequence,)).fetchone()
        if row is None:
            raise LedgerError(f"the ledger {self._path!r} has no entry {sequence}.")
        return _entry(row)

    def standings(self, dataset: str) -> dict[int, Standing]:
        """Return what stands published about one data set, by position, without the released bytes."""
        with self._errors():
            rows = self._connection.execute(
                "SELECT sequence, unit, period, label, noiseless FROM entry WHERE dataset = ? ORDER BY sequence",
                (dataset,),
            ).fetchall()
        return {
            sequence: Standing(unit=tuple(json.loads(unit)), period=period, label=label, noiseless=bool(noiseless))
            for sequence, unit, period, label, noiseless in rows
        }

    def entries(self, dataset: str) -> Iterator[Entry]:
        """Yield one data set's entries in order, each read when it is asked for."""
        query = f"SELECT {_COLUMNS} FROM entry WHERE dataset = ? AND sequence > ? ORDER BY sequence LIMIT 1"
        sequence = 0
        while True:
            with self._errors():
                row = self._connection.execute(query, (dataset, sequence)).fetchone()
            if row is None:
                return
            entry = _entry(row)
            sequence = entry.sequence
            yield entry

    def insert(
        self, *, key: str, dataset: str, standing: Standing, certificate: str, content: bytes, release_id: str
    ) -> None:
        """Append one published entry; call it inside `transaction`."""
        values = {
            "key": key,
            "dataset": dataset,
            "unit": json.dumps(list(standing.unit)),
            "period": standing.period,
            "label": standing.label,
            "noiseless": int(standing.noiseless),
            "state": "published",
            "release_id": release_id,
            "certificate": certificate,
            "content": content,
            "created_at": datetime.now(UTC).isoformat(timespec="seconds"),
        }
        names = ", ".join(values)
        marks = ", ".join(f":{name}" for name in values)
        with self._errors():
            self._connection.execute(f"INSERT INTO entry ({names}) VALUES ({marks})", values)

    def _prepare(self) -> None:
        if self._is_new():
            with self.transaction():
                if self._is_new():  # another process may have created it meanwhile
                    for statement in schema_statements():
                        self._connection.execute(statement)
        application, version = self._pragma("application_id"), self._pragma("user_version")
        if application != APPLICATION_ID:
            raise LedgerError(
                f"{self._path!r} is a SQLite file but not a ledger; give the path of a ledger or a new file."
            )
        if version != SCHEMA_VERSION:
            raise LedgerError(
                f"the ledger {self._path!r} has schema {version}, this version of pkdp_pipeline reads schema "
                f"{SCHEMA_VERSION}: use the version that wrote it, or a newer one."
            )
        self._use_write_ahead_log()
        self._connection.execute("PRAGMA synchronous = FULL")

    def _is_new(self) -> bool:
        if self._pragma("application_id") != 0 or self._pragma("user_version") != 0:
            return False
        return bool(self._connection.execute("SELECT count(*) = 0 FROM sqlite_master").fetchone()[0])

    def _use_write_ahead_log(self) -> None:
        # Two processes that switch a new file at once meet a lock that SQLite does not wait for.
        deadline = time.monotonic() + BUSY_SECONDS
        while True:
            try:
                mode = self._connection.execute("PRAGMA journal_mode = WAL").fetchone()[0]
                break
            except sqlite3.OperationalError as error:
                if not _is_locked(error) or time.monotonic() > deadline:
                    raise
                time.sleep(0.02)
        if mode not in ("wal", "memory"):
            raise LedgerError(
                f"the ledger {self._path!r} cannot keep a write-ahead log where it is; put it on a local, "
                "writable disk."
            )

    def _pragma(self, name: str) -> int:
        return int(self._connection.execute(f"PRAGMA {name}").fetchone()[0])

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Turn SQLite's errors into ours."""
        try:
            yield
        except sqlite3.Error as error:
            if _is_locked(error):
                raise TemporaryError(
                    f"the ledger {self._path!r} is locked by another process; nothing was charged: try again later."
                ) from error
            raise LedgerError(f"the ledger {self._path!r} cannot be used: {error}.") from error


def _is_locked(error: sqlite3.Error) -> bool:
    # The low byte is the primary code; extended codes such as SQLITE_BUSY_SNAPSHOT share it.
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def _entry(row: tuple[object, ...]) -> Entry:
    fields = dict(zip(_COLUMNS.split(", "), row, strict=True))
    fields["unit"] = tuple(json.loads(str(fields["unit"])))
    fields["noiseless"] = bool(fields["noiseless"])
    return Entry(**fields)  # type: ignore[arg-type]
