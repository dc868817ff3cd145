"""Tokens: who may ask the gate's service. Only their sha256 is kept; a token itself is shown once, when it is made."""

from __future__ import annotations

import hashlib
import hmac
import os
import re
import secrets
import stat
from dataclasses import dataclass
from pathlib import Path

from pkdp_pipeline.errors import ArgumentError, ConfigError

__all__ = ["Tokens", "add_token"]

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}", re.ASCII)
_LINE = re.compile(r"(\S+)[ \t]+sha256:([0-9a-f]{64})", re.ASCII)
_HEAD = "# Tokens of pkdp gate serve, one a line: a name and the sha256 of the token. Delete a line to revoke it.\n"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Tokens:
    """The named tokens that a service accepts.

    Attributes
    ----------
    hashes : tuple of (str, bytes)
        Names, each once, and the sha256 of their tokens.
    """

    hashes: tuple[tuple[str, bytes], ...]

    @classmethod
    def made(cls, name: str = "analyst") -> tuple[Tokens, str]:
        """Return one new token, and the `Tokens` that accept it."""
        token = _new()
        return cls(hashes=((_named(name), _hash(token)),)), token

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Tokens:
        """Read a token file.

        Raises
        ------
        ConfigError
            If it cannot be read, others than its owner may write it, or a line is not a name and a hash.
        """
        found = _read(Path(path))
        if not found:
            raise ConfigError(
                f"the token file {os.fspath(path)!r} holds no token. Make one with: "
                f"pkdp gate token NAME --token-file FILE"
            )
        return cls(hashes=tuple(found.items()))

    @property
    def names(self) -> tuple[str, ...]:
        """The names, in the order of the file."""
        return tuple(name for name, _ in self.hashes)

    def name_of(self, token: str) -> str | None:
        """Return whose token it is, or None; how long that takes does not depend on which one matches."""
        given, found = _hash(token), None
        for name, expected in self.hashes:
            if hmac.compare_digest(given, expected):
                found = name
        return found

    def __repr__(self) -> str:
        return f"Tokens(names={self.names!r})"


def add_token(path: str | os.PathLike[str], name: str) -> str:
    """Add a new token to a token file, made with mode 0600 if there is none, and return it.

    Raises
    ------
    ArgumentError
        If the name cannot be one, or has a token.
    ConfigError
        If the file cannot be written or is not a token file.
    """
    named, file, token = _named(name), Path(path), _new()
    if named in (_read(file) if file.exists() else ()):
        raise ArgumentError(f"{named!r} has a token already: choose another name, or delete its line first.")
    try:
        descriptor = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "a", encoding="utf-8") as opened:
            # An editor may have left the last line without its end.
            before = "\n" if os.fstat(descriptor).st_size else _HEAD
            opened.write(f"{before}{named} sha256:{_hash(token).hex()}\n")
            opened.flush()
            os.fsync(descriptor)
    except OSError as error:
        raise ConfigError(f"the token file {str(file)!r} cannot be written: {error.strerror}.") from error
    return token


def _read(file: Path) -> dict[str, bytes]:
    """Return the names and hashes of a token file."""
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
    found: dict[str, bytes] = {}
    for number, line in enumerate(lines, start=1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        where = f"the token file {str(file)!r}, line {number}"
        match = _LINE.fullmatch(line.strip())
        # The line itself is not quoted: somebody may have put a token there.
        if match is None or not _NAME.fullmatch(match[1]):
            raise ConfigError(f"{where}: must be a name and sha256:… of its token, as pkdp gate token writes it.")
        if match[1] in found:
            raise ConfigError(f"{where}: a name is there twice; give each token a name of its own.")
        if (value := bytes.fromhex(match[2])) in found.values():
            raise ConfigError(f"{where}: two names have the same token; give each its own.")
        found[match[1]] = value
    return found


def _new() -> str:
    """Return a token of 256 bits; its beginning tells scanners for leaked secrets what it is."""
    return f"pkdp_{secrets.token_urlsafe(32)}"


def _hash(token: str) -> bytes:
    # No slow hash is needed: nobody guesses 256 random bits.
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()


def _named(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise ArgumentError("a token's name is 1 to 64 letters, digits, '.', '_', '@' or '-', a letter or digit first.")
    return name
