"""What bounds the work of the gate's service: places for running statements, and how often a login may fail."""

from __future__ import annotations

import threading
from collections import OrderedDict, deque
from time import monotonic

__all__ = ["Failures", "Slots"]

_WINDOW = 60.0
_ADDRESSES = 1024


class Slots:
    """Places for statements that run: one for each token, and so many in all.

    Parameters
    ----------
    most : int
        How many may run at once.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._running: set[str] = set()

    def take(self, name: str) -> str | None:
        """Take a place; otherwise return what is in the way: "token", one of its own, or "all" of them."""
        with self._lock:
            if name in self._running:
                return "token"
            if len(self._running) >= self._most:
                return "all"
            self._running.add(name)
            return None

    def give_back(self, name: str) -> None:
        """Give the place back, from any thread."""
        with self._lock:
            self._running.discard(name)


class Failures:
    """How often logins from each address failed within a minute.

    A right token is let in all the same: 256 random bits need no lock against guessing, and a lock would let
    anybody who can connect shut the analysts out. What is bounded is how much a guesser can make the audit log grow.

    Parameters
    ----------
    most : int
        So many failures a minute are told "wrong", and are written down; those beyond are told to wait. From all
        addresses together, which a guesser may have many of, ten times as many.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._found: OrderedDict[str, deque[float]] = OrderedDict()
        self._all: deque[float] = deque()

    def wait(self, address: str) -> int | None:
        """Count one failure, and return how many seconds to wait, or None while there are not too many."""
        now = monotonic()
        times = self._found.setdefault(address, deque())
        self._found.move_to_end(address)
        while len(self._found) > _ADDRESSES:
            self._found.popitem(last=False)
        for counted, most in ((times, self._most), (self._all, 10 * self._most)):
            while counted and counted[0] <= now - _WINDOW:
                counted.popleft()
            if len(counted) >= most:
                return int(counted[0] + _WINDOW - now) + 1
        times.append(now)
        self._all.append(now)
        return None
