"""The JSON form of certificates, read strictly."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.model.version import VERSION

if TYPE_CHECKING:
    from pkdp_pipeline.certificates.certificate import Certificate

__all__ = ["READERS", "SCHEMA", "parsed", "reads", "written_here"]

Reader = Callable[[Mapping[str, Any]], "Certificate"]

READERS: dict[str, Reader] = {}
"""The field that tells a kind of certificate → what makes one of a document; each kind adds its own."""

SCHEMA = "pkdp-certificate/2"
"""Name and version of the JSON form; `pkdp_pipeline/schemas/certificate.v2.json` describes it."""

_FIRST = "pkdp-certificate/1"
"""The form before contexts and composed certificates; it can be read, not verified word by word."""


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
    if not isinstance(document, dict) or document.get("schema") not in (SCHEMA, _FIRST):
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


def written_here(document: object) -> bool:
    """Return whether this version of the library wrote a certificate, so that its words can be compared."""
    library = document.get("library") if isinstance(document, Mapping) else None
    return library == {"name": "pkdp_pipeline", "version": VERSION}
