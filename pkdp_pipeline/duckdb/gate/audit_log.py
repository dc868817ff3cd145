"""AuditLog: who asked the gate what, and what became of it, as JSON lines, each with the hash of the one before."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import stat
import threading
import traceback
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pkdp_pipeline.errors import ConfigError, TemporaryError

__all__ = ["AuditLog", "verify_audit_log"]

_OURS = "For the curator: "
"""Begins the notes on errors that the gate itself has made, of types alone."""
_FIRST = "0" * 64


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
        self._last, self._size = _FIRST, 0
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

    def write(self, outcome: str, *, error: BaseException | str | None = None, **facts: Any) -> None:
        """Add one line.

        Parameters
        ----------
        outcome : str
        error : BaseException or str, optional
            Its type is written, and of an incident where it arose. Its text is not.
        **facts
            Further facts, not about data: the request, the name of the token, the question, the release.

        Raises
        ------
        TemporaryError
            If the line cannot be stored. What it is about must not go out then.
        """
        line: dict[str, Any] = {"time": datetime.now(UTC).isoformat(timespec="microseconds"), "outcome": outcome}
        line |= {key: value for key, value in facts.items() if value is not None}
        if error is not None:
            line["error"] = error if isinstance(error, str) else type(error).__name__
        if "incident" in line and isinstance(error, BaseException):
            line["where"] = _places(error)
        try:
            with self._lock:
                self._append(line)
        except OSError:
            raise TemporaryError("the audit log cannot be written; nothing is answered without it.") from None

    def _append(self, line: dict[str, Any]) -> None:
        descriptor = self._opened()
        try:
            # Closing it gives the lock back. Another writer's line that is half there is not a line cut off.
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            size = os.fstat(descriptor).st_size
            if size and size != self._size:  # of another process, or from before
                with os.fdopen(os.dup(descriptor), "rb") as file:
                    file.seek(0)
                    for last in file:
                        self._last = _hash(last)
            # A line that a crash or a full disk cut off stays alone on its line.
            cut = size and os.pread(descriptor, 1, size - 1) != b"\n"
            text = json.dumps({"previous": self._last} | line).encode() + b"\n"
            written = b"\n" + text if cut else text
            self._size = -1
            if os.write(descriptor, written) != len(written):
                raise OSError("not all of it was written")
            os.fsync(descriptor)
            self._last, self._size = _hash(text), size + len(written)
        finally:
            os.close(descriptor)

    def _opened(self) -> int:
        # Without waiting for a reader, should somebody have put a pipe there.
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
        return os.open(self._path, flags, 0o600)


def verify_audit_log(path: str | os.PathLike[str]) -> tuple[int, str]:
    """Check that no line was changed, removed or put in between, and return how many there are and the last hash.

    The first line follows the last one of the file before it, if there was one. That lines at the end are missing can
    only be seen from outside, by a hash known to be in it.

    Raises
    ------
    ConfigError
        If the file cannot be read, or a line does not follow the one before.
    """
    file = Path(path)
    try:
        lines = file.read_bytes().removesuffix(b"\n").split(b"\n")
    except OSError as error:
        raise ConfigError(f"the audit log {str(file)!r} cannot be read: {error.strerror}.") from error
    last = None
    if lines == [b""]:
        return 0, _FIRST
    for number, line in enumerate(lines, start=1):
        expected = b'{"previous": "' if last is None else f'{{"previous": "{last}"'.encode()
        # What was cut off may be shorter; that it was changed shows in the line after it.
        if not line.startswith(expected) and not expected.startswith(line):
            raise ConfigError(f"line {number} of the audit log {str(file)!r} does not follow the one before it.")
        last = _hash(line)
    return len(lines), last or _FIRST


def _hash(line: bytes) -> str:
    return hashlib.sha256(line.rstrip(b"\n")).hexdigest()


def _places(error: BaseException) -> list[str]:
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
