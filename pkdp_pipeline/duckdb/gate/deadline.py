"""Deadline: stops what DuckDB computes for one statement when its time is over."""

from __future__ import annotations

import threading
import time
from types import TracebackType
from typing import TYPE_CHECKING

from pkdp_pipeline.errors import ArgumentError

if TYPE_CHECKING:
    import duckdb

__all__ = ["Deadline"]

#: DuckDB forgets an interrupt that comes between two of its steps, so it is repeated.
_AGAIN_SECONDS = 0.02


class Deadline:
    """A context in which a connection is interrupted once `seconds` have passed.

    DuckDB cannot interrupt functions written in Python; these call `check` before each piece of work.
    """

    def __init__(self, connection: duckdb.DuckDBPyConnection, seconds: float) -> None:
        self._connection, self._seconds = connection, seconds
        self._ends = time.monotonic() + seconds
        self._done = threading.Event()
        self._watch = threading.Thread(target=self._interrupt, name="pkdp-gate-deadline", daemon=True)

    @property
    def passed(self) -> bool:
        """Whether the time is over."""
        return time.monotonic() >= self._ends

    def check(self) -> None:
        """Raise `ArgumentError` when the time is over."""
        if self.passed:
            raise ArgumentError(
                f"the statement takes longer than the {self._seconds:g} seconds that the policy allows; ask for less."
            )

    def __enter__(self) -> Deadline:
        self._watch.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._done.set()
        self._watch.join()

    def _interrupt(self) -> None:
        if self._done.wait(self._seconds):
            return
        while True:
            self._connection.interrupt()
            if self._done.wait(_AGAIN_SECONDS):
                return
