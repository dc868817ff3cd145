"""Addresses with passwords: read from the environment, kept out of whatever shows a job."""

from __future__ import annotations

import os
import re
from typing import Annotated
from urllib.parse import SplitResult, unquote, urlsplit

from pydantic import BeforeValidator, Field, PlainSerializer, StringConstraints

from pkdp_pipeline.releases.options import local

__all__ = ["Address", "LedgerName", "from_environment", "public_address"]

_SCHEMES = ("postgresql", "postgres")
_NO_FILE = re.compile(r"\s*postgres(ql)?(\+\w+)?:|.*\b(password|passwd|pwd|sslpassword|host|dbname)\s*=", re.I | re.S)
"""What is meant for a PostgreSQL server and is no address; as a file's name it would show its password."""

_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_ENCODE = (
    "write postgresql://user@host:5432/database, and percent-encode what is not a letter or a digit in user and "
    "password."
)


def from_environment(value: object) -> object:
    """Return the environment variable that ``${NAME}`` names; anything else as it is.

    Raises
    ------
    ValueError
        If it is not set, or is only a part of the value. The message never holds what it is set to.
    """
    if isinstance(value, str) and re.fullmatch(r"\$\w+", value):
        raise ValueError('an environment variable is written with braces, such as "${PKDP_DATABASE}".')
    if not isinstance(value, str) or "${" not in value:
        return value
    found = _VARIABLE.fullmatch(value)
    if found is None:
        raise ValueError('an environment variable must be the whole value, such as "${PKDP_DATABASE}".')
    content = os.environ.get(found[1], "")
    if not content:
        raise ValueError(f"the environment variable {found[1]} is not set; set it where the job runs.")
    return content


def public_address(address: str) -> str:
    """Return ``host:port/database`` of a PostgreSQL address: no user, no password, no options."""
    parts = urlsplit(address)
    host = parts.hostname or "local"
    if ":" in host:
        host = f"[{host}]"
    port = "" if parts.port is None else f":{parts.port}"
    return f"{host}{port}{unquote(parts.path)}"


def _postgres(value: object) -> object:
    value = from_environment(value)
    if isinstance(value, str):
        _check(value)
    return value


def _ledger(value: object) -> object:
    value = from_environment(value)
    if isinstance(value, str) and "://" in value:
        _check(value)
        return value
    if isinstance(value, str) and _NO_FILE.match(value):
        raise ValueError(f"is neither a file nor an address of a PostgreSQL database: {_ENCODE}")
    return local(value)


def _check(address: str) -> None:
    parts: SplitResult | None = None
    try:
        parts = urlsplit(address)
        readable = parts.port is None or parts.port > 0
    except ValueError:
        readable = False
    if parts is not None and parts.scheme.partition("+")[0] not in _SCHEMES:
        raise ValueError("must be the address of a PostgreSQL database: postgresql://user@host:5432/database.")
    # An @ further on, or a fragment, is the rest of a password that was cut at one of its characters.
    if parts is None or not readable or parts.fragment or "@" in parts.path + parts.query:
        raise ValueError(f"the address cannot be read: {_ENCODE}")


def _shown(value: str) -> str:
    return public_address(value) if "://" in value else value


Address = Annotated[
    str,
    StringConstraints(min_length=1),
    BeforeValidator(_postgres),
    PlainSerializer(_shown),
    Field(examples=["${PKDP_DATABASE}", "postgresql://statistics@db.example.org/warehouse"]),
]
"""The address of a PostgreSQL database; shown and written without user and password."""

LedgerName = Annotated[
    str,
    StringConstraints(min_length=1),
    BeforeValidator(_ledger),
    PlainSerializer(_shown),
    Field(examples=["ledger.sqlite", "${PKDP_LEDGER}"]),
]
"""A file, or the address of a PostgreSQL database."""
