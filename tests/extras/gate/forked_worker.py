"""A gate's worker in a process that is forked from one that has imported what workers need, which takes a second."""

from __future__ import annotations

import multiprocessing
import subprocess
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from pkdp_pipeline.extras.gate import worker

__all__ = ["Forked"]

_FORKING = multiprocessing.get_context("forkserver")
_FORKING.set_forkserver_preload(
    [worker.__name__, "duckdb", "opendp.prelude", "pandas", "pkdp_pipeline.releases.public_table"]
)


class Forked(worker.Worker):
    """A worker with a process of its own, as those of gates have, but for how it starts."""

    def __init__(self, database: Path, memory: str) -> None:
        own_end, worker_end = _FORKING.Pipe()
        with worker_end:
            self._process = _Process(worker_end, str(database), memory)  # type: ignore[assignment]
        self._connection = own_end
        self._received(60.0)


class _Process:
    """A forked process, with those methods of `subprocess.Popen` that a worker calls."""

    def __init__(self, *arguments: Any) -> None:
        self._forked = _FORKING.Process(target=_serve, args=arguments, daemon=True)
        self._forked.start()
        self.pid, self.kill = self._forked.pid, self._forked.kill

    @property
    def returncode(self) -> int | None:
        return self._forked.exitcode

    def poll(self) -> int | None:
        return self.returncode

    def wait(self, timeout: float | None = None) -> int | None:
        self._forked.join(timeout)
        if self.returncode is None:
            raise subprocess.TimeoutExpired("worker", timeout or 0.0)
        return self.returncode


def _serve(connection: Connection[Any, Any], database: str, memory: str) -> None:
    worker.serve(str(connection.fileno()), database, memory)
