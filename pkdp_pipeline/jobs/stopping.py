"""Stopping: a job that is told to stop does so where nothing is left half done."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from types import FrameType
from typing import TypeVar

from pkdp_pipeline.ledger.database import while_waiting

Answer = TypeVar("Answer")

_SIGNALS = (signal.SIGTERM, signal.SIGINT)


class Stopped(BaseException):
    """SIGTERM or Ctrl-C; no `Exception`, so that nothing takes it for an error and goes on."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.signal = signal.Signals(number)

    @property
    def exit_code(self) -> int:
        """The exit status a shell reports: 128 plus the number of the signal."""
        return 128 + self.signal


class Stopping:
    """Decides where a signal takes effect.

    While data are checked and counted it does at once, as nothing is charged yet, and so it does while the ledger is
    locked by others. Elsewhere the step that has begun is finished first, such as a transaction of the ledger or a
    file. A second signal takes effect at once everywhere.

    Notes
    -----
    Without `listening` nothing is changed: signals do what the surrounding program has decided, and a release
    that they interrupt gives its charge back as well.
    """

    def __init__(self) -> None:
        self._received: int | None = None
        self._at_once = False

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Take SIGTERM and Ctrl-C over; outside the main thread, which alone gets signals, nothing happens."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        former = {number: signal.signal(number, self._stop) for number in _SIGNALS}
        try:
            with while_waiting(self.check):
                yield
        finally:
            for number, handler in former.items():
                signal.signal(number, handler)

    def check(self) -> None:
        """Raise `Stopped` when a signal has come; called between steps."""
        if self._received is not None:
            raise Stopped(self._received)

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Let a signal take effect at once."""
        try:
            self._at_once = True
            self.check()
            yield
        except Exception:
            # A library may have made an error of its own out of it.
            if self._received is not None:
                raise Stopped(self._received) from None
            raise
        finally:
            self._at_once = False

    def _stop(self, number: int, frame: FrameType | None) -> None:
        first, self._received = self._received is None, number
        if self._at_once or not first:
            raise Stopped(number)


def interruptible(work: Callable[[], Answer], cancel: Callable[[], None]) -> Answer:
    """Wait for `work`, done in another thread, and cancel it when a signal comes.

    One that waits inside a driver or an engine learns of a signal only when it is over.
    """
    with ThreadPoolExecutor(1) as other:
        future = other.submit(work)
        try:
            return future.result()
        except BaseException:
            if not future.done():
                with suppress(Exception):
                    cancel()
            raise
