"""SqliteDatabase: the ledger in one SQLite file, safe for the processes and threads of one machine."""

from __future__ import annotations

import os
import re
import sqlite3
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

from pkdp_pipeline.errors import ArgumentError, LedgerError, TemporaryError
from pkdp_pipeline.ledger import database
from pkdp_pipeline.ledger.database import SCHEMA_VERSION, NoLedgerError, schema_script

APPLICATION_ID = int.from_bytes(b"pkdp", "big")
_MIN_VERSION = (3, 35, 0)


class SqliteDatabase:
    """One SQLite file: write-ahead log, ``synchronous=FULL``, one writer at a time; see `Database`.

    Raises `LedgerError` if the file is not a ledger this version knows or cannot be used, `TemporaryError` if another
    process holds the file locked for longer than `database.LOCK_SECONDS`.

    Parameters
    ----------
    path : str
        A file on a local disk, or ``:memory:``.
    create : bool, default True
        Create a file that does not exist. False: read one that does, and leave its journal mode as it is.
    copy : bool, default False
        Work with a copy of the file in memory, new where there is no file, and create nothing beside it.

    Notes
    -----
    **Not on a network file system.** The write-ahead log needs memory shared by all processes that use the
    file, and locks that work; NFS, SMB and most cluster file systems give neither, and two machines would
    overwrite each other's charges. For several machines use PostgreSQL.

    The log lies beside the file (``-wal`` and ``-shm``) and belongs to it. Copy a ledger in use with SQLite's
    ``.backup``, not file by file.

    Threads may share an object: one at a time works with it. A process made by ``fork`` must open its own.
    """

    def __init__(self, path: str, *, create: bool = True, copy: bool = False) -> None:
        self._path, self._may_change, self._copies = path, create, copy and os.path.exists(path)
        self._file = ":memory:" if copy else path
        self._lock = threading.RLock()
        self._busy, self._errors = False, _Errors(path)
        self._process = os.getpid()
        if not create and not os.path.exists(path):
            raise NoLedgerError(f"there is no ledger at {path!r}; give the path of one, or a postgresql:// URL.")
        if sqlite3.sqlite_version_info < _MIN_VERSION:
            needed = ".".join(map(str, _MIN_VERSION))
            raise LedgerError(f"a ledger needs SQLite {needed}, this Python has {sqlite3.sqlite_version}: update it.")
        if self._file != ":memory:":
            self._file = resolved_file(path)
            if not os.path.exists(self._file):
                self._make_file(Path(os.path.realpath(self._file)))
        with self._errors:
            # Short tries, so that `waiting` is called between them; see `_pause`.
            seconds = min(database.WAIT_SECONDS, database.LOCK_SECONDS)
            self._connection = sqlite3.connect(
                self._file, timeout=seconds, isolation_level=None, check_same_thread=False
            )
        try:
            with self._errors:
                self._prepare()
            self._identity = self._file_identity()
        except BaseException:
            self._connection.close()
            raise

    @property
    def location(self) -> str:
        """The path."""
        return self._path

    def close(self) -> None:
        """Close the file; a closed database cannot be used."""
        if os.getpid() == self._process:
            with self._lock:
                self._connection.close()

    def execute(self, sql: str, /, **parameters: Any) -> list[tuple[Any, ...]]:
        """Run one statement with ``:name`` placeholders and return its rows."""
        self._check_process()
        with self._lock, self._errors:
            return self._patiently(sql, parameters)

    @contextmanager
    def transaction(self, dataset: str) -> Iterator[None]:
        """Hold the write lock of the whole file: all that happens inside is committed at the end, or nothing is.

        `dataset` is not needed here: SQLite has one writer at a time for all data sets of a file.
        """
        # IMMEDIATE takes the write lock before the first read, so nothing read inside is outdated when it is written.
        with self._begun("BEGIN IMMEDIATE"):
            self._check_identity()
            yield

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """See one state of the ledger throughout, and write nothing; writers are not held up."""
        with self._begun("BEGIN"):
            self.execute("PRAGMA query_only = ON")
            try:
                yield
            finally:
                self.execute("PRAGMA query_only = OFF")

    def check(self) -> None:
        """Check pages and indexes, and that tables and triggers are those of the schema."""
        (result,) = self.execute("PRAGMA integrity_check(1)")
        if result != ("ok",):
            raise LedgerError(
                f"the ledger {self._path!r} is damaged: {result[0]}. Restore it from a backup, with a head that a "
                "release names."
            )
        ((numbered, stored),) = self.execute(
            "SELECT (SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'event'), "
            "(SELECT coalesce(max(sequence), 0) FROM event)"
        )
        if numbered != stored:
            raise LedgerError(
                f"the ledger {self._path!r} has numbered more events than it holds: its end was cut off. Restore it "
                "from a backup, with a head that a release names."
            )
        # SQLite's own objects are compared as well, so that nothing hides under a name like theirs; ANALYZE adds these.
        listed = "SELECT type, name, sql FROM sqlite_master WHERE type <> 'table' OR name NOT GLOB 'sqlite_stat[134]'"
        with sqlite3.connect(":memory:") as fresh:
            for statement in split_statements(schema_script("sqlite")):
                fresh.execute(statement)
            expected = fresh.execute(listed).fetchall()
        fresh.close()
        changed = sorted({name for _, name, _ in _plain(expected) ^ _plain(self.execute(listed))})
        if changed:
            raise LedgerError(
                f"the ledger {self._path!r} has another schema than it was made with: {', '.join(changed)} was "
                "changed, added or removed. Somebody has worked on the file; restore it from a backup."
            )

    def _prepare(self) -> None:
        self._connection.execute("PRAGMA foreign_keys = ON")
        if self._copies:
            _copy(self._path, self._connection)
        elif self._file == ":memory:":
            with self._begun("BEGIN IMMEDIATE"):
                self._create()
        if self._pragma("application_id") != APPLICATION_ID:
            if not self._connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
                raise LedgerError(
                    f"{self._path!r} is an empty file, not a ledger: what it held, if anything, is lost. Restore it "
                    "from a backup, with a head that a release names; for a new one remove it, or give another path."
                )
            raise LedgerError(
                f"{self._path!r} is a SQLite file but not a ledger; give the path of a ledger or a new file."
            )
        if self._may_change:
            self._use_write_ahead_log()
        self._connection.execute("PRAGMA synchronous = FULL")  # a commit returns when the log is on the disk
        self._connection.execute("PRAGMA fullfsync = ON")  # macOS: a plain fsync does not reach the disk there
        version = self._pragma("user_version")
        if version != SCHEMA_VERSION:
            raise LedgerError(
                f"the ledger {self._path!r} has schema {version}, this version of pkdp_pipeline reads schema "
                f"{SCHEMA_VERSION}: use the version that wrote it, or a newer one."
            )

    def _create(self) -> None:
        for statement in split_statements(schema_script("sqlite")):
            self._connection.execute(statement)

    def _make_file(self, file: Path) -> None:
        """Make a new ledger under another name, so that it appears whole or not at all; one that is there stays."""
        try:
            with tempfile.TemporaryDirectory(prefix=f".{file.name}.", dir=file.parent) as folder:
                new_file = os.path.join(folder, "new.sqlite")
                with self._errors, closing(sqlite3.connect(new_file, isolation_level=None)) as self._connection:
                    self._connection.execute("BEGIN IMMEDIATE")
                    self._create()
                    self._connection.execute("COMMIT")
                with suppress(FileExistsError):  # another process has created it meanwhile
                    _place(new_file, file)
        except OSError as error:
            fix = _FIXES[sqlite3.SQLITE_CANTOPEN]
            raise LedgerError(f"the ledger {self._path!r} cannot be created: {error.strerror}.{fix}") from error

    def _use_write_ahead_log(self) -> None:
        # Two processes that switch a new file at once meet a lock that SQLite itself does not wait for.
        ((mode,),) = self._patiently("PRAGMA journal_mode = WAL")
        if mode not in ("wal", "memory"):
            raise LedgerError(
                f"the ledger {self._path!r} cannot keep a write-ahead log where it is; put it on a local, "
                "writable disk."
            )

    def _pragma(self, name: str) -> int:
        return int(self._patiently(f"PRAGMA {name}")[0][0])

    def _patiently(self, sql: str, parameters: Mapping[str, Any] | tuple[()] = ()) -> list[tuple[Any, ...]]:
        """Run a statement that may have to wait for another process."""
        deadline = time.monotonic() + database.LOCK_SECONDS
        while (rows := self._tried(sql, parameters, deadline=deadline)) is None:
            _pause()
        return rows

    def _tried(
        self, sql: str, parameters: Mapping[str, Any] | tuple[()] = (), *, deadline: float
    ) -> list[tuple[Any, ...]] | None:
        """Run a statement; None where another process holds the lock, until the deadline."""
        try:
            return self._connection.execute(sql, parameters).fetchall()
        except sqlite3.OperationalError as error:
            if _primary(error) not in _LOCKED or time.monotonic() >= deadline:
                raise
        return None

    @contextmanager
    def _begun(self, begin: str) -> Iterator[None]:
        self._check_process()
        deadline = time.monotonic() + database.LOCK_SECONDS
        # The lock is given back between the tries: threads that only read do not wait for another process.
        while True:
            with self._lock:
                if self._busy:
                    raise ArgumentError("a ledger cannot be changed from inside one of its own transactions.")
                with self._errors:
                    begun = self._tried(begin, deadline=deadline) is not None
                if begun:
                    with self._ended():
                        yield
                    return
            _pause()

    @contextmanager
    def _ended(self) -> Iterator[None]:
        self._busy = True
        try:
            yield
            with self._errors:
                self._patiently("COMMIT")
        except BaseException:
            # A rollback that fails too must not hide what went wrong; SQLite then rolls back when it closes.
            with suppress(sqlite3.Error):
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
            raise
        finally:
            self._busy = False

    def _file_identity(self) -> tuple[int, int] | None:
        if self._file == ":memory:":
            return None
        try:
            status = os.stat(self._file)
        except OSError:
            return (0, 0)
        return status.st_dev, status.st_ino

    def _check_identity(self) -> None:
        # SQLite goes on writing to a file that is no longer there under its name: a charge that nobody would see.
        if self._file_identity() != self._identity:
            raise LedgerError(
                f"the ledger {self._path!r} was removed or replaced while it was open; this call changed nothing: "
                "put it back, and open it again."
            )

    def _check_process(self) -> None:
        if os.getpid() != self._process:
            raise ArgumentError(
                "this ledger was opened by the parent of this process: SQLite files cannot be carried over a fork. "
                "Open it again in each process."
            )


class _Errors:
    """Turns SQLite's errors into ours. Entered for each statement, which a generator would make dearer."""

    def __init__(self, path: str) -> None:
        self._path = path

    def __enter__(self) -> None:
        pass

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, sqlite3.Error):
            code = _primary(error)
            if code in _LOCKED:
                raise TemporaryError(
                    f"the ledger {self._path!r} is locked by another process; this call changed nothing: try "
                    "again later."
                ) from error
            fix = _FIXES.get(code, "")
            raise LedgerError(f"the ledger {self._path!r} cannot be used: {error}.{fix}") from error
        if isinstance(error, UnicodeDecodeError):  # even SQLite's own words may quote damaged bytes
            raise LedgerError(
                f"the ledger {self._path!r} cannot be used: its text is damaged.{_FIXES[sqlite3.SQLITE_CORRUPT]}"
            ) from error
        if isinstance(error, OverflowError | UnicodeEncodeError):
            raise LedgerError(f"the ledger {self._path!r} cannot hold what it was given: {error}.") from error


_LOCKED = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)

_AGAIN = " The same call, run again, continues where this one stopped; nothing is charged twice."

_FIXES = {
    sqlite3.SQLITE_READONLY: " It is read-only: let this process write to the file and to its folder, where the "
    "write-ahead log lies.",
    sqlite3.SQLITE_CANTOPEN: " Let this process read and write the file and its folder, where the write-ahead log "
    "lies.",
    sqlite3.SQLITE_FULL: " The disk, or the room allowed on it, is full: make room." + _AGAIN,
    sqlite3.SQLITE_IOERR: " The disk failed, or the room allowed on it is full: check it." + _AGAIN,
    sqlite3.SQLITE_CORRUPT: " It is damaged or was cut off: restore it from a backup, and check it with "
    "verify(head=…) and a head that a release names.",
    sqlite3.SQLITE_NOTADB: " It is no ledger, or it is damaged: give the path of a ledger or of a new file, or "
    "restore it from a backup.",
    sqlite3.SQLITE_CONSTRAINT: " It refuses the entry: it was changed by something else, or the entry is malformed. "
    "This call changed nothing; check the ledger with verify().",
}


def _plain(listed: list[tuple[Any, ...]]) -> set[tuple[str, str, str]]:
    """Return what a schema lists, without the comments and the layout that SQLite keeps."""
    return {
        (str(kind), str(name), " ".join(re.sub(r"--[^\n]*", "", str(statement)).split()))
        for kind, name, statement in listed
    }


def resolved_file(path: str) -> str:
    """Return the path from the root, so that it stays the same file when the process changes its folder.

    Raises `LedgerError` if its folder does not exist, or it is a folder itself. Nothing is written.
    """
    start = f"the ledger {path!r} cannot be opened: "
    try:
        file = Path(path).absolute()
        if not file.parent.is_dir():
            raise LedgerError(start + "its folder does not exist; create it.")
        if file.is_dir():
            raise LedgerError(start + "it is a folder; give the path of a file.")
    except OSError as error:
        raise LedgerError(f"{start}{error.strerror or type(error).__name__}; give another path.") from error
    return str(file)


def _place(new_file: str, file: Path) -> None:
    """Give a new file its name; one that has it already stays, which is a `FileExistsError`."""
    try:
        os.link(new_file, file)
    except FileExistsError:
        raise
    except OSError:  # a file system without links: exclusive creation decides who comes first
        os.close(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL))
        os.replace(new_file, file)


def _copy(path: str, target: sqlite3.Connection) -> None:
    """Copy the pages of a file that other processes may be writing to."""
    address = f"file:{quote(str(Path(path).absolute()))}?mode=ro"
    # Where there is no log, SQLite would create one to read; with immutable it does not, and relies on nobody writing.
    quiet = _state(path)
    if quiet is not None:
        with closing(sqlite3.connect(f"{address}&immutable=1", uri=True)) as source:
            source.backup(target)
        if _state(path) == quiet:  # nobody has written meanwhile
            return
    with closing(sqlite3.connect(address, uri=True)) as source:
        source.backup(target)


def _state(path: str) -> tuple[int, int] | None:
    """Return size and time of a file without a write-ahead log; None where there is one."""
    if Path(f"{path}-wal").exists():
        return None
    status = os.stat(path)
    return status.st_size, status.st_mtime_ns


def _pause() -> None:
    """Wait a moment for another process; who waits can be told to stop."""
    database.waiting()
    time.sleep(0.02)


def _primary(error: sqlite3.Error) -> int:
    # The low byte is the primary code; extended codes such as SQLITE_BUSY_SNAPSHOT share it.
    return int(getattr(error, "sqlite_errorcode", 0)) & 0xFF


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
