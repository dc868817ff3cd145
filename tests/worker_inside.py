"""A gate's worker inside the test's process, for tests that do not look at processes: to start one takes seconds."""

from __future__ import annotations

import importlib
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import duckdb
import pytest

from pkdp_pipeline.extras.gate import worker

__all__ = ["Inside", "workers_inside"]


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


@pytest.fixture(scope="module")
def workers_inside() -> Iterator[None]:
    """Let gates of a module start no processes: each takes longer than what it is asked."""
    importlib.import_module("opendp.prelude")  # takes longer than any question that needs it
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(worker, "Worker", Inside)
        yield
