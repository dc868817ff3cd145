"""A database with people in it, a policy for analysts, and what may not change when an analyst tries something."""

from __future__ import annotations

import hashlib
import pickle
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

import duckdb

from pkdp_pipeline.extras.gate import worker
from pkdp_pipeline.extras.gate.gate import Gate
from pkdp_pipeline.ledger import Ledger
from pkdp_pipeline.releases.release import Release

PEOPLE = """
CREATE TABLE events AS
SELECT i AS uid, ['US', 'NO', 'DE', 'SE'][1 + i % 4] AS country, i % 3 = 0 AS flag, (i % 7)::TINYINT AS age,
    DATE '2020-01-01' + (i % 2)::INT AS day, 'secret' || i AS note
FROM range(400) t(i);
CREATE TABLE hidden AS FROM events;
CREATE VIEW adults AS FROM events WHERE age > 2;
"""


def policy(**further: Any) -> dict[str, Any]:
    """Return the policy of the public interface, with what a test adds."""
    table = {"unit": "uid", "columns": ["country", "flag"], "k": 20, "domains": {"country": ["US", "NO", "DE"]}}
    return {"attacker": {"p_max": 0.1}, "tables": {"events": table}, **further}


@cache
def _people() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "people.duckdb"
        with duckdb.connect(str(path)) as connection:
            connection.execute(PEOPLE)
        return path.read_bytes()


def database(folder: Path) -> Path:
    """Make the database."""
    path = folder / "people.duckdb"
    path.write_bytes(_people())
    path.chmod(0o600)
    return path


class Inside(worker.Worker):
    """A worker without a process of its own: jobs reach it as bytes, and so do answers come back.

    What a file's rows were read for without a failure is not read again for another gate; questions are counted each.
    """

    _read: ClassVar[set[tuple[object, ...]]] = set()

    def __init__(self, database: Path, memory: str) -> None:
        status = database.stat()
        self._file = (database, status.st_ino, status.st_mtime_ns, status.st_size)
        self._vault: duckdb.DuckDBPyConnection | None = None
        self._ended = False
        self._connection, self._answer = self, b""  # type: ignore[assignment]

    def send(self, job: Any) -> None:
        if self._ended:
            raise BrokenPipeError
        sent = pickle.dumps(job)
        again = isinstance(job, worker.Job) and job.task != "count"
        if again and (*self._file, sent) in self._read:
            self._answer = pickle.dumps(("done", None))
            return
        self._vault = self._vault or worker.open_vault(self._file[0])
        self._answer = worker._outcome(self._vault, pickle.loads(sent))
        if again and pickle.loads(self._answer)[0] == "done":
            self._read.add((*self._file, sent))

    def poll(self, seconds: float | None) -> bool:
        return True

    def recv_bytes(self, most: int) -> bytes:
        return self._answer

    @property
    def alive(self) -> bool:
        return not self._ended

    def end(self) -> None:
        self._ended = True
        if self._vault is not None:
            self._vault.close()


def histogram(by: Any = "country", **further: Any) -> dict[str, Any]:
    """Return a question for a histogram of the people."""
    return {"table": "events", "histogram": by, **further}


def count(**further: Any) -> dict[str, Any]:
    """Return a question for a count of the people."""
    return {"table": "events", "count": True, **further}


def rows(release: Release) -> list[tuple[Any, ...]]:
    """Return a release's rows; None where suppressed."""
    table = release.table.astype(object).where(release.table.notna(), None)
    return list(table.itertuples(index=False, name=None))


@dataclass(frozen=True, kw_only=True)
class Scene:
    """A gate, and the files around it."""

    gate: Gate
    folder: Path
    ledger: Ledger

    def state(self) -> tuple[object, ...]:
        """Return what a refused question leaves as it was: files, data and ledger."""
        files = sorted(path for path in self.folder.rglob("*") if "ledger" not in path.name)
        contents = [hashlib.sha256(path.read_bytes()).hexdigest() for path in files if path.is_file()]
        return files, contents, self.ledger.head(), len(list(self.ledger.entries(given_back=True)))
