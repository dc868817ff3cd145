"""Tokens: who may ask the gate's service, and until when. Only their sha256 is kept; a token is shown once."""

from __future__ import annotations

import hashlib
import hmac
import os
import re
import secrets
import stat
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

from pkdp_pipeline.errors import ArgumentError, ConfigError

__all__ = ["add_token", "name_of", "read_tokens"]

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}", re.ASCII)
_LINE = re.compile(r"(\S+)[ \t]+sha256:([0-9a-f]{64})[ \t]+expires:(\d{4}-\d\d-\d\d)", re.ASCII)
_HEAD = (
    "# Tokens of pkdp gate serve, one a line: a name, the sha256 of the token, and its last day (UTC).\n"
    "# Delete a line to revoke it.\n"
)
_LONGEST = 3_650


@dataclass(frozen=True, slots=True, kw_only=True)
class _Token:
    name: str
    sha256: bytes
    expires: date


def name_of(path: str | os.PathLike[str], token: str) -> str | None:
    """Return whose token it is, None where it is nobody's or has expired.

    The file is read each time, so that a deleted line is a revoked token. How long it takes to compare does not depend
    on which one matches.

    Raises
    ------
    ConfigError
        As of `read_tokens`.
    """
    given, found = _hash(token), None
    today = datetime.now(UTC).date()
    for known in _read(Path(path)):
        if hmac.compare_digest(given, known.sha256) and known.expires >= today:
            found = known.name
    return found


def read_tokens(path: str | os.PathLike[str]) -> dict[str, date]:
    """Return the names of a token file with their last days.

    Raises
    ------
    ConfigError
        If it cannot be read, others than its owner may write it, or a line is none that pkdp gate token writes.
    """
    return {token.name: token.expires for token in _read(Path(path))}


def add_token(path: str | os.PathLike[str], name: str, *, days: int = 90) -> str:
    """Add a new token to a token file, made with mode 0600 if there is none, and return it.

    Raises
    ------
    ArgumentError
        If the name cannot be one, or has a token, or the days are none.
    ConfigError
        If the file cannot be written or is not a token file.
    """
    if not _NAME.fullmatch(name):
        raise ArgumentError("a token's name is 1 to 64 letters, digits, '.', '_', '@' or '-', a letter or digit first.")
    if isinstance(days, bool) or not isinstance(days, int) or not 1 <= days <= _LONGEST:
        raise ArgumentError(f"days must be between 1 and {_LONGEST}: after so many a token is not valid any more.")
    file = Path(path)
    if file.exists() and name in read_tokens(file):
        raise ArgumentError(f"{name!r} has a token already: choose another name, or delete its line first.")
    # 256 bits; the beginning tells scanners for leaked secrets what it is.
    token = f"pkdp_{secrets.token_urlsafe(32)}"
    expires = datetime.now(UTC).date() + timedelta(days=days)
    try:
        descriptor = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "a", encoding="utf-8") as opened:
            # An editor may have left the last line without its end.
            before = "\n" if os.fstat(descriptor).st_size else _HEAD
            opened.write(f"{before}{name} sha256:{_hash(token).hex()} expires:{expires}\n")
            opened.flush()
            os.fsync(descriptor)
    except OSError as error:
        raise ConfigError(f"the token file {str(file)!r} cannot be written: {error.strerror}.") from error
    return token


def _read(file: Path) -> list[_Token]:
    try:
        mode = file.stat().st_mode
        lines = file.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise ConfigError(
            f"the token file {str(file)!r} cannot be read: {error.strerror}. Make one with: "
            f"pkdp gate token NAME --token-file FILE"
        ) from error
    except UnicodeDecodeError:
        raise ConfigError(f"the token file {str(file)!r} is not UTF-8 text.") from None
    if stat.S_IMODE(mode) & (stat.S_IWGRP | stat.S_IWOTH):
        raise ConfigError(
            f"others than the owner may write the token file {str(file)!r}, and so let themselves in: chmod 600 it."
        )
    found: list[_Token] = []
    for number, line in enumerate(lines, start=1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        where = f"the token file {str(file)!r}, line {number}"
        token = _token(line.strip())
        if token is None:  # the line is not quoted: somebody may have put a token there
            raise ConfigError(f"{where}: must be a name, sha256:… and expires:…, as pkdp gate token writes it.")
        if any(token.name == known.name or token.sha256 == known.sha256 for known in found):
            raise ConfigError(f"{where}: a name or a token is there twice; give each name a token of its own.")
        found.append(token)
    return found


def _token(line: str) -> _Token | None:
    match = _LINE.fullmatch(line)
    if match is None or not _NAME.fullmatch(match[1]):
        return None
    try:
        return _Token(name=match[1], sha256=bytes.fromhex(match[2]), expires=date.fromisoformat(match[3]))
    except ValueError:
        return None


def _hash(token: str) -> bytes:
    # No slow hash is needed: nobody guesses 256 random bits.
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()
