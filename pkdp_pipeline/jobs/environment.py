"""Paths, which are relative to the job file, and addresses with passwords, kept out of whatever shows a job."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field, PlainSerializer, StringConstraints, ValidationInfo

from pkdp_pipeline.errors import ConfigError, PkdpError, TemporaryError
from pkdp_pipeline.ledger.database import is_misspelt_address, public_address, public_url, trouble_of

_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_ENCODE = (
    "write postgresql://user@host:5432/database, and percent-encode what is not a letter or a digit in user and "
    "password."
)


def from_environment(value: object) -> object:
    """Return the environment variable that ``${NAME}`` names; anything else as it is.

    Raises `ValueError` if it is not set, or is only a part of the value. The message never holds what it is set to.
    """
    if not isinstance(value, str) or ("${" not in value and not re.fullmatch(r"\$\w+", value)):
        return value
    match = _VARIABLE.fullmatch(value)
    if match is None:
        raise ValueError('an environment variable must be the whole value, in braces, such as "${PKDP_DATABASE}".')
    content = os.environ.get(match[1], "")
    if not content:
        raise ValueError(f"the environment variable {match[1]} is not set; set it where the job runs.")
    return content


def local(path: object) -> object:
    """Return a path on this machine as it is.

    Raises `ValueError` if it is an address, or something that a shell would replace and this library does not.
    """
    if isinstance(path, str) and (path.startswith("~") or any(mark in path for mark in ("://", "${", "\x00"))):
        raise ValueError(
            "must be a path on this machine, whole or relative to the job file: not an address; ~ is not replaced, and "
            "environment variables are read in ledger, postgres and ibis only."
        )
    return path


def refusal(place: str, error: Exception, fixes: Mapping[str, str]) -> PkdpError:
    """Return our own error of one of PostgreSQL's, whose words can quote the data or hold the address.

    `fixes` says what to do by SQLSTATE or its class, and after "" about all others.
    """
    state = str(getattr(error, "sqlstate", None) or "")
    lost = not state and type(error).__name__ in ("OperationalError", "ConnectionTimeout")
    trouble = trouble_of(state, str(error), lost=lost)
    if trouble == "passing":
        return TemporaryError(f"{place} cannot be reached, has no room for one more, or is locked: try again later.")
    if trouble != "other" or not state:
        return ConfigError(f"{place} refuses the connection: check user, password, host, database and options.")
    known = {"53": "its server has run out of room: make room", "58": "its server's disk fails: mend it", **fixes}
    fix = known.get(state) or known.get(state[:2]) or known[""]
    return ConfigError(f"{place} cannot be used (SQLSTATE {state}): {fix}.")


def _read(value: object, *, file: bool) -> object:
    """Return an address, out of the environment where it is there, or the path of a file where one may be given."""
    value = from_environment(value)
    if not isinstance(value, str):
        return value
    if file and "://" not in value:
        if is_misspelt_address(value):
            raise ValueError(f"is neither a file nor an address of a PostgreSQL database: {_ENCODE}")
        return local(value)
    scheme, readable = _scheme(value)
    if scheme is not None and scheme.partition("+")[0] not in ("postgresql", "postgres"):
        raise ValueError("must be the address of a PostgreSQL database: postgresql://user@host:5432/database.")
    if not readable:
        raise ValueError(f"the address cannot be read: {_ENCODE}")
    return value


def _read_any(value: object, info: ValidationInfo) -> object:
    """Return an address that Ibis connects to, out of the environment where it is there; a file's path is placed."""
    value = from_environment(value)
    if not isinstance(value, str):
        return value
    scheme, readable = _scheme(value) if "://" in value else ("", False)
    if scheme in ("", "file", "sqlite"):
        raise ValueError(
            'must be the address of a database, such as "snowflake://user@account/database/schema"; files are read '
            'with source = "data/*.parquet" or { duckdb = … }.'
        )
    if not readable:
        raise ValueError(
            "the address cannot be read: percent-encode what is not a letter or a digit in user and password."
        )
    if scheme == "duckdb":
        path, question, options = value.removeprefix("duckdb://").partition("?")
        return f"duckdb://{placed(path, info)}{question}{options}"
    return value


def _scheme(value: str) -> tuple[str | None, bool]:
    """Return how an address begins, None where that cannot be told, and whether all of it can be read."""
    try:
        parts = urlsplit(value)
        good = parts.port is None or parts.port > 0
    except ValueError:
        return None, False
    # An @ further on, or a fragment, is the rest of a password that was cut at one of its characters.
    return parts.scheme, good and not parts.fragment and "@" not in parts.path + parts.query


def _shown(value: str) -> str:
    return public_address(value) if "://" in value else value


def _shown_any(value: str) -> str:
    return public_url(value) if "://" in value else value


def placed(path: str, info: ValidationInfo) -> str:
    """Return a path from the folder that is the context of a validation; as it is written where there is none."""
    return path if info.context is None or "://" in path else str(Path(info.context, path))


PathName = Annotated[str, StringConstraints(min_length=1), BeforeValidator(local), AfterValidator(placed)]
"""A path on this machine, relative to the job file."""

Address = Annotated[
    str,
    StringConstraints(min_length=1),
    BeforeValidator(partial(_read, file=False)),
    PlainSerializer(_shown),
    Field(examples=["${PKDP_DATABASE}", "postgresql://statistics@db.example.org/warehouse"]),
]
"""The address of a PostgreSQL database; shown and written without user and password."""

AnyAddress = Annotated[
    str,
    StringConstraints(min_length=1),
    BeforeValidator(_read_any),
    PlainSerializer(public_url),
    Field(examples=["${PKDP_SOURCE}", "snowflake://statistics@account/database/schema?warehouse=small"]),
]
"""The address of a database that Ibis connects to; shown and written without user, password and options."""

PluginText = Annotated[
    str, StringConstraints(min_length=1), BeforeValidator(from_environment), PlainSerializer(_shown_any)
]
"""A text that a plugin reads; an address is shown and written without user, password and options."""

LedgerName = Annotated[
    str,
    StringConstraints(min_length=1),
    BeforeValidator(partial(_read, file=True)),
    AfterValidator(placed),
    PlainSerializer(_shown),
    Field(examples=["ledger.sqlite", "${PKDP_LEDGER}"]),
]
"""A file, or the address of a PostgreSQL database."""
