"""The JSON form of certificates: reading it strictly, and comparing a stored one with a fresh one."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.version import VERSION

__all__ = ["SCHEMA", "compare", "parsed", "same_number", "written_here"]

SCHEMA = "pkdp-certificate/2"
"""Name and version of the JSON form; `pkdp_pipeline/schemas/certificate.v2.json` describes it."""

_FIRST = "pkdp-certificate/1"
"""The form before contexts and composed certificates; it can be read, not verified word by word."""

_SAME = 1e-9
"""Relative difference at which two evaluations of the same number, on different machines, are the same."""


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


def compare(path: str, stored: object, fresh: object) -> None:
    """Raise `ArgumentError` where a stored document differs from a fresh one, in a number or in a word."""
    if path == "certificate" and _library(stored) != _library(fresh):
        raise ArgumentError(
            "the certificate was written by another version of pkdp_pipeline, whose wording this one cannot check: "
            "verify it with the version that its field 'library' names."
        )
    if isinstance(fresh, Mapping) and isinstance(stored, Mapping) and set(fresh) == set(stored):
        for key in sorted(fresh):
            compare(f"{path}.{key}", stored[key], fresh[key])
        return
    if isinstance(fresh, list) and isinstance(stored, list) and len(fresh) == len(stored):
        for index, (mine, other) in enumerate(zip(stored, fresh, strict=True)):
            compare(f"{path}[{index}]", mine, other)
        return
    if isinstance(fresh, float) and isinstance(stored, int | float) and not isinstance(stored, bool):
        if same_number(stored, fresh):
            return
    elif type(stored) is type(fresh) and stored == fresh:
        return
    raise ArgumentError(
        f"{path} is not what the mechanism and the attacker give: the certificate was altered or is not ours. "
        "Certify again with pkdp.certify."
    )


def written_here(document: object) -> bool:
    """Return whether this version of the library wrote a certificate, so that its words can be compared."""
    return _library(document) == {"name": "pkdp_pipeline", "version": VERSION}


def _library(document: object) -> object:
    return document.get("library") if isinstance(document, Mapping) else None


def same_number(stored: int | float, fresh: float) -> bool:
    """Say whether two finite numbers, the stored one of any size, differ by no more than rounding elsewhere."""
    if isinstance(stored, float) and not math.isfinite(stored):
        return False
    return abs(Fraction(stored) - Fraction(fresh)) <= Fraction(_SAME) * abs(Fraction(fresh))
