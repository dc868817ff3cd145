"""Records that a service keeps in its owner's files: tokens, and the audit log. No token and no data are in either."""

from __future__ import annotations

import fcntl
import hashlib
import hmac
import json
import os
import re
import secrets
import stat
import threading
import traceback
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from datetime import date, timedelta
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

from pkdp_pipeline.clock import now
from pkdp_pipeline.errors import ArgumentError, ConfigError, TemporaryError

_NAME = r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}"
_LINE = re.compile(rf"({_NAME})[ \t]+sha256:([0-9a-f]{{64}})[ \t]+expires:(\d{{4}}-\d\d-\d\d)", re.ASCII)
_HEAD = (
    "# Tokens of pkdp gate serve, one a line: a name, the sha256 of the token, and its last day (UTC).\n"
    "# Delete a line to revoke it.\n"
)
_MAX_TOKEN_DAYS = 3_650
#: Begins the notes on errors that the gate itself has made, of types alone.
_OURS = "For the curator: "
#: The hash before the first line.
_FIRST = "0" * 64


def check_mode(file: Path, mode: int, others: int, harm: str) -> None:
    """Refuse a file whose mode gives users other than its owner one of these rights."""
    if mode & others:
        raise ConfigError(f"users other than its owner can {harm}: chmod 600 {str(file)!r}.")


def name_of(path: str | os.PathLike[str], token: str) -> str | None:
    """Return whose token it is, None where it is nobody's or has expired.

    The file is read each time, so that a deleted line is a revoked token. How long it takes to compare does not depend
    on which one matches.
    """
    given, owner = _sha256(token), None
    today = now().date()
    for name, (known, expires) in _read(Path(path)).items():
        if hmac.compare_digest(given, known) and expires >= today:
            owner = name
    return owner


def read_tokens(path: str | os.PathLike[str]) -> dict[str, date]:
    """Return the names of a token file with their last days.

    Raises `ConfigError` if it cannot be read, users other than its owner may write it, or a line is not as pkdp gate
    token writes it.
    """
    return {name: expires for name, (_, expires) in _read(Path(path)).items()}


def add_token(path: str | os.PathLike[str], name: str, *, days: int = 90) -> str:
    """Add a new token to a token file, made with mode 0600 if there is none, and return it.

    Raises `ArgumentError` if the name cannot be one, or has a token, or the days are none; `ConfigError` if the file
    cannot be written or is not a token file.
    """
    if not re.fullmatch(_NAME, name, re.ASCII):
        raise ArgumentError("a token's name is 1 to 64 letters, digits, '.', '_', '@' or '-', a letter or digit first.")
    if isinstance(days, bool) or not isinstance(days, int) or not 1 <= days <= _MAX_TOKEN_DAYS:
        raise ArgumentError(
            f"days must be between 1 and {_MAX_TOKEN_DAYS}: after that many a token is no longer valid."
        )
    file = Path(path)
    if file.exists() and name in read_tokens(file):
        raise ArgumentError(f"{name!r} has a token already: choose another name, or delete its line first.")
    # 256 bits; the beginning tells scanners for leaked secrets what it is.
    token = f"pkdp_{secrets.token_urlsafe(32)}"
    expires = now().date() + timedelta(days=days)
    try:
        descriptor = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "a", encoding="utf-8") as opened:
            # An editor may have left the last line without its end.
            before = "\n" if os.fstat(descriptor).st_size else _HEAD
            opened.write(f"{before}{name} sha256:{_sha256(token).hex()} expires:{expires}\n")
            opened.flush()
            os.fsync(descriptor)
    except OSError as error:
        raise ConfigError(f"the token file {str(file)!r} cannot be written: {error.strerror}.") from error
    return token


def _read(file: Path) -> Mapping[str, tuple[bytes, date]]:
    """Return the hash and the last day of every name's token."""
    named = f"the token file {str(file)!r}"
    try:
        mode = file.stat().st_mode
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        problem = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise ConfigError(
            f"{named} cannot be read: {problem}. Make one with: pkdp gate token NAME --token-file FILE"
        ) from None
    check_mode(file, mode, 0o022, "write the token file, and so let themselves in")
    return _tokens_of(text, named)


@lru_cache(maxsize=2)
def _tokens_of(text: str, named: str) -> Mapping[str, tuple[bytes, date]]:
    tokens: dict[str, tuple[bytes, date]] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        try:
            name, sha256, expires = _LINE.fullmatch(line.strip()).groups()  # type: ignore[union-attr]
            token = bytes.fromhex(sha256), date.fromisoformat(expires)
        except (AttributeError, ValueError):
            name, token = "", (b"", date.min)
        if not name or name in tokens or token[0] in (known for known, _ in tokens.values()):
            # The line is not quoted: somebody may have put a token there.
            raise ConfigError(
                f"{named}, line {number}: must be a name, sha256:… and expires:…, as pkdp gate token writes it, each "
                "name and each token once."
            )
        tokens[name] = token
    return MappingProxyType(tokens)


def _sha256(token: str) -> bytes:
    # No slow hash is needed: nobody guesses 256 random bits.
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()


class AuditLog:
    """A file of JSON lines, one for each event, for the curator alone.

    Rows of answers and texts of unexpected errors, which may quote the data, never get into it. A line is on
    the disk before `write` returns; lines of threads that wait get there together. The file is opened each time, so
    that it can be renamed (log rotation); several processes may share one. `path`: made with mode 0600 if there is
    none. Raises `ConfigError` if it cannot be written, is not a regular file, or users other than its owner can read or
    write it.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = Path(path).absolute()
        self._turn, self._writing = threading.Condition(), False
        self._waiting: list[tuple[Sequence[str], Future[bool]]] = []
        self._last, self._end = _FIRST, (0, 0, 0)
        try:
            with os.fdopen(self._opened(), "rb") as file:
                mode = os.fstat(file.fileno()).st_mode
        except OSError as error:
            raise ConfigError(f"the audit log {str(self._path)!r} cannot be written: {error.strerror}.") from error
        if not stat.S_ISREG(mode):
            raise ConfigError(f"the audit log {str(self._path)!r} must be a regular file.")
        check_mode(self._path, mode, 0o077, "read or write the audit log, which holds what every analyst asks")

    @property
    def path(self) -> Path:
        """Where it is."""
        return self._path

    def write(self, outcome: str, **facts: Any) -> None:
        """Add one line of this moment; see `line` and `store`."""
        self.store(self.line(outcome, **facts))

    @staticmethod
    def line(outcome: str, *, error: BaseException | str | None = None, **facts: Any) -> str:
        """Return a line of this moment, to be stored.

        Parameters
        ----------
        error : BaseException or str, optional
            Its type is written, and of an incident where it arose. Its text is not.
        **facts
            Further facts, not about data: the request, the name of the token, the question, the release.
        """
        line: dict[str, Any] = {"time": now().isoformat(timespec="microseconds"), "outcome": outcome}
        line |= {key: value for key, value in facts.items() if value is not None}
        if error is not None:
            line["error"] = error if isinstance(error, str) else type(error).__name__
        if "incident" in line and isinstance(error, BaseException):
            line["where"] = _places(error)
        return json.dumps(line)

    def store(self, *lines: str) -> None:
        """Add lines, one after the other.

        Raises `TemporaryError` if they cannot be stored. Their subject must not go out then.
        """
        own = Future[bool]()
        with self._turn:
            self._waiting.append((lines, own))
            self._turn.wait_for(lambda: own.done() or not self._writing)
            if not own.done():
                # Group commit: the thread whose turn it is stores what all wait for, with one sync.
                batch, self._waiting, self._writing = self._waiting, [], True
        if not own.done():
            stored = False
            try:
                self._append([line for waiting, _ in batch for line in waiting])
                stored = True
            except OSError:
                pass
            finally:
                with self._turn:
                    self._writing = False
                    for _, outcome in batch:
                        outcome.set_result(stored)
                    self._turn.notify_all()
        if not own.result():
            raise TemporaryError("the audit log cannot be written; nothing is answered without it.")

    def _append(self, lines: Sequence[str]) -> None:
        descriptor = self._opened()
        try:
            # Closing it gives the lock back. Another writer's line that is half there is not a line cut off.
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            status = os.fstat(descriptor)
            place, size = (status.st_dev, status.st_ino), status.st_size
            if size and (*place, size) != self._end:  # of another process, from before, or in another file
                with os.fdopen(os.dup(descriptor), "rb") as file:
                    file.seek(0)
                    for line in file:
                        self._last = _hash(line)
            # A line that a crash or a full disk cut off stays alone on its line.
            cut = size and os.pread(descriptor, 1, size - 1) != b"\n"
            written, last = b"\n" if cut else b"", self._last
            for text in lines:
                line = f'{{"previous": "{last}", {text[1:]}\n'.encode()
                written, last = written + line, _hash(line)
            self._end = (0, 0, 0)
            if os.write(descriptor, written) != len(written):
                raise OSError("not all of it was written")
            os.fsync(descriptor)
            self._last, self._end = last, (*place, size + len(written))
        finally:
            os.close(descriptor)

    def _opened(self) -> int:
        # Without waiting for a reader, should somebody have put a pipe there.
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
        return os.open(self._path, flags, 0o600)


def verify_audit_log(path: str | os.PathLike[str]) -> tuple[int, str]:
    """Check that no line was changed, removed or put in between, and return how many there are and the last hash.

    The first line follows the last one of the file before it, if there was one. That lines at the end are missing can
    only be seen from outside, by a hash known to be in it. Raises `ConfigError` if the file cannot be read, or a line
    does not follow the one before.
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
    places: list[str] = []
    visited: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in visited:
        visited.add(id(current))
        frames = traceback.extract_tb(current.__traceback__)
        ours = [frame for frame in frames if "pkdp_pipeline" in frame.filename][-1:] or frames[-1:]
        position = "".join(f" at {Path(frame.filename).name}:{frame.lineno}" for frame in ours)
        places.append(f"{type(current).__name__}{position}")
        places += [note for note in getattr(current, "__notes__", ()) if note.startswith(_OURS)]
        current = current.__cause__ or current.__context__
    return places
