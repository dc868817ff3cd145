"""Schemas: the JSON schemas of what this library writes and reads, by name and version."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

from pkdp_pipeline.errors import ArgumentError

__all__ = ["schema", "schema_file", "schema_names"]

_FOLDER = Path(__file__).parent
_SUFFIX = ".json"


@cache
def schema_names() -> tuple[str, ...]:
    """Return the names of all schemas, such as ``certificate.v1``; newer versions of one come after older ones."""
    return tuple(sorted(path.name.removesuffix(_SUFFIX) for path in _FOLDER.glob(f"*.v*{_SUFFIX}")))


def schema_file(name: str) -> Path:
    """Return where a schema lies.

    `name`: with its version, as in ``certificate.v1``; without one, the newest version there is.
    """
    known = schema_names()
    named = {versioned.rpartition(".v")[0]: versioned for versioned in known} | {
        versioned: versioned for versioned in known
    }
    if name not in named:
        raise ArgumentError(f"there is no schema {name!r}; there are {', '.join(known)}.")
    return _FOLDER / f"{named[name]}{_SUFFIX}"


def schema(name: str) -> dict[str, Any]:
    """Return a schema, as JSON Schema of 2020-12; see `schema_file` for its name."""
    read: dict[str, Any] = json.loads(schema_file(name).read_text(encoding="utf-8"))
    return read
