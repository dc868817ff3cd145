"""The JSON form of certificates, read strictly."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.model import VERSION

Reader = Callable[[Mapping[str, Any]], Any]

READERS: dict[str, Reader] = {}
"""The field that tells a kind of certificate → what makes one of a document; each kind adds its own."""

SCHEMA = "pkdp-certificate/1"
"""Name and version of the JSON form; `pkdp_pipeline/schemas/certificate.v1.json` describes it."""


LIBRARY = {"name": "pkdp_pipeline", "version": VERSION}
"""The version that writes documents here."""


def is_ours(document: Mapping[str, Any]) -> bool:
    """Return whether a certificate's document says that this version wrote it, whose words can be compared."""
    return bool(document.get("library") == LIBRARY)


def points(**columns: Sequence[float]) -> list[dict[str, float]]:
    """Return columns of numbers as a list of points."""
    return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]


def reads(field: str) -> Callable[[Reader], Reader]:
    """Return a decorator for what reads the documents that have this field."""

    def register(reader: Reader) -> Reader:
        READERS[field] = reader
        return reader

    return register


def parsed(text: str) -> dict[str, Any]:
    """Return the document of a certificate's JSON text, or raise `ArgumentError` where its shape is wrong."""
    try:
        document = json.loads(text)
    except (TypeError, ValueError, RecursionError):
        raise ArgumentError("a certificate must be JSON text as written by Certificate.to_json.") from None
    if not isinstance(document, dict) or document.get("schema") != SCHEMA:
        raise ArgumentError(f"not a certificate this version reads: its schema must be {SCHEMA!r}.")
    if not isinstance(document.get("context"), dict | None):
        raise ArgumentError("the certificate's field 'context' is malformed.")
    about: dict[str, type] = {"mechanism": dict, "attacker": dict}
    if "parts" in document:
        about = {"parts": list, "evidence": list}
    kinds = {**about, "protects": str, "caveats": list, "grid": list, "library": dict}
    for name, kind in kinds.items():
        if not isinstance(document.get(name), kind):
            raise ArgumentError(f"the certificate's field {name!r} is missing or malformed.")
    return document
