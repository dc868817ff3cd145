"""Schemas: the JSON schemas of what this library writes and reads, by name and version, and what fields say."""

from __future__ import annotations

import ast
import inspect
import json
import sys
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

from pkdp_pipeline.errors import ArgumentError

__all__ = ["VERSION", "field_texts", "schema", "schema_file", "schema_names"]

#: The version of the library, as written into certificates.
VERSION = "0.3.0"

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


def field_texts(kind: type) -> dict[str, str]:
    """Return the docstring under each field of a declared value, on one line: what files, flags and schemas say of it.

    Empty where the package lies without its source.
    """
    body = _classes(kind.__module__).get(kind.__name__, [])
    return {
        field.target.id: " ".join(text.value.value.split())
        for field, text in pairwise(body)
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)
        if isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant) and isinstance(text.value.value, str)
    }


@cache
def _classes(module: str) -> dict[str, list[ast.stmt]]:
    """Return what stands in the classes of a module, by their names."""
    try:
        tree = ast.parse(inspect.getsource(sys.modules[module]))
    except OSError:
        return {}
    return {node.name: node.body for node in tree.body if isinstance(node, ast.ClassDef)}
