"""AuditLog: who asked the gate what, and what became of it, as JSON lines that are only ever added to."""

from __future__ import annotations

import fcntl
import json
import os
import stat
import threading
import traceback
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pkdp_pipeline.errors import ConfigError, TemporaryError

__all__ = ["AuditLog", "places"]

_OURS = "For the curator: "
"""Begins the notes on errors that the gate itself has made, of types alone."""


class AuditLog:
    """A file of JSON lines, one for each event, for the curator alone.

    Rows of answers and texts of unexpected errors, which may quote the data, never get into it. A line is on
    the disk before `write` returns. The file is opened for every line, so that it can be renamed at any time
    (log rotation); several processes may share one.

    Parameters
    ----------
    path : path-like
        Made with mode 0600 if there is none.

    Raises
    ------
    ConfigError
        If it cannot be written, is not a regular file, or others than its owner can read or write it.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = Path(path).absolute()
        self._lock = threading.Lock()
        try:
            descriptor = self._opened()
            try:
                mode = os.fstat(descriptor).st_mode
            finally:
                os.close(descriptor)
        except OSError as error:
            raise ConfigError(f"the audit log {str(self._path)!r} cannot be written: {error.strerror}.") from error
        if not stat.S_ISREG(mode):
            raise ConfigError(f"the audit log {str(self._path)!r} must be a regular file.")
        if stat.S_IMODE(mode) & 0o077:
            raise ConfigError(
                f"the audit log {str(self._path)!r} holds what every analyst asks, and others than its owner can read "
                f"or write it: chmod 600 it."
            )

    @property
    def path(self) -> Path:
        """Where it is."""
        return self._path

    def write(
        self,
        outcome: str,
        *,
        request: str | None = None,
        token: str | None = None,
        statement: str | None = None,
        releases: Iterable[str] = (),
        error: BaseException | str | None = None,
        incident: bool = False,
        **more: Any,
    ) -> None:
        """Add one line.

        Parameters
        ----------
        outcome : str
            Such as "asked", "answered", "refused", "failed".
        request : str, optional
            The id that the lines of one request share. It is the incident id too.
        token, statement : str, optional
            The name of the token, never the token; what was asked.
        releases : iterable of str
            Ids of the releases that an answer rests on.
        error : BaseException or str, optional
            Its type is written. Its text is not.
        incident : bool, default False
            Whether it was unexpected: then where it arose is written too.
        **more
            Further facts, not about data.

        Raises
        ------
        TemporaryError
            If the line cannot be stored. What it is about must not go out then.
        """
        line: dict[str, Any] = {"time": datetime.now(UTC).isoformat(timespec="microseconds"), "outcome": outcome}
        line |= {"request": request, "token": token, "statement": statement, "releases": list(releases) or None}
        if error is not None:
            line["error"] = error if isinstance(error, str) else type(error).__name__
        if incident:
            line |= {"incident": request, "where": places(error) if isinstance(error, BaseException) else None}
        text = json.dumps({key: value for key, value in (line | more).items() if value is not None})
        try:
            with self._lock:
                self._append(f"{text}\n".encode())
        except OSError:
            raise TemporaryError("the audit log cannot be written; nothing is answered without it.") from None

    def _append(self, line: bytes) -> None:
        descriptor = self._opened()
        try:
            # Closing it gives the lock back. Another writer's line that is half there is not a line cut off.
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            size = os.fstat(descriptor).st_size
            # A line that a crash or a full disk cut off stays alone on its line.
            if size and os.pread(descriptor, 1, size - 1) != b"\n":
                line = b"\n" + line
            if os.write(descriptor, line) != len(line):
                raise OSError("not all of it was written")
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def _opened(self) -> int:
        # Without waiting for a reader, should somebody have put a pipe there.
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
        return os.open(self._path, flags, 0o600)


def places(error: BaseException) -> list[str]:
    """Return where an error and its causes arose, innermost first: types, files and lines, none of their texts."""
    found: list[str] = []
    seen: set[int] = set()
    one: BaseException | None = error
    while one is not None and id(one) not in seen:
        seen.add(id(one))
        frames = traceback.extract_tb(one.__traceback__)
        ours = [frame for frame in frames if "pkdp_pipeline" in frame.filename][-1:] or frames[-1:]
        at = "".join(f" at {Path(frame.filename).name}:{frame.lineno}" for frame in ours)
        found.append(f"{type(one).__name__}{at}")
        found += [note for note in getattr(one, "__notes__", ()) if note.startswith(_OURS)]
        one = one.__cause__ or one.__context__
    return found
