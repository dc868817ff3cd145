"""Recomputing: the numbers of a stored certificate, each at its own ε, whatever its wording and its version."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import numpy as np

from pkdp_pipeline.assurance.verification.reading_words import read_pairs
from pkdp_pipeline.certificates.certificate import Certificate
from pkdp_pipeline.certificates.composed import ComposedCertificate
from pkdp_pipeline.certificates.differences import SEARCHED, Difference, differences
from pkdp_pipeline.model.version import VERSION

__all__ = ["Nested", "Recomputed", "other_words", "read_certificate", "recompute", "sentence_pairs"]

_NUMBERS = ("grid", "worst_case")
_TEXTS = ("sentence", "assumptions", "steps", "theorems")
_SPARE = 1.0 + SEARCHED
_FARTHEST = 1e300


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Nested:
    """A certificate of a file: the one that it is, or one of its parts.

    Parameters
    ----------
    path : str
        ``certificate``, ``certificate.parts[2].certificate`` …
    document : mapping
        As it is stored.
    certificate : Certificate
        Made again from what it is about.
    """

    path: str
    document: dict[str, Any]
    certificate: Certificate

    @property
    def ours(self) -> bool:
        """Whether this very version wrote it, so that its wording can be compared."""
        return self.document.get("library") == {"name": "pkdp_pipeline", "version": VERSION}


@dataclass(frozen=True, slots=True, kw_only=True)
class Recomputed:
    """What recomputing a certificate and its parts has found.

    Parameters
    ----------
    certificates : int
        How many were recomputed, parts included.
    points : int
        How many numbers.
    numbers, words : tuple of Difference
    foreign : tuple of str
        Versions whose wording cannot be compared.
    """

    certificates: int
    points: int
    numbers: tuple[Difference, ...]
    words: tuple[Difference, ...]
    foreign: tuple[str, ...]


def read_certificate(document: dict[str, Any], path: str = "certificate") -> list[Nested]:
    """Return the certificate of a document and, before it, all its parts, each made again.

    Raises
    ------
    PkdpError
        If nothing can be certified for what one of them names, or it is malformed.
    """
    found: list[Nested] = []
    for place, part in enumerate(document.get("parts", ())):
        found += read_certificate(part["certificate"], f"{path}.parts[{place}].certificate")
    made = Certificate.from_json(json.dumps(document))
    return [*found, Nested(path=path, document=document, certificate=made)]


def recompute(nested: list[Nested]) -> Recomputed:
    """Compare every stored number, and every word of this version, with what the certificates give."""
    numbers: list[Difference] = []
    words: list[Difference] = []
    points, foreign = 0, []
    known: dict[str, dict[str, Any]] = {}
    for one in nested:
        if one.ours:
            points += _size(one.document)
            found = one.certificate.differences(one.document, skip={"certificate"}, path=one.path)
            numbers += [each for each in found if each.direction != "words" or each.path == f"{one.path}.rule"]
            words += [each for each in found if each.direction == "words" and each.path != f"{one.path}.rule"]
        else:
            # Another version may state its numbers at other ε, in other words: each is recomputed where it stands.
            fresh = _numbers(one, known)
            points += _size(fresh)
            stored = {name: one.document.get(name) for name in fresh}
            numbers += differences(one.path, stored, fresh, rounding=one.certificate.rounding_of(fresh))
            foreign.append(_version(one.document))
    return Recomputed(
        certificates=len(nested),
        points=points,
        numbers=tuple(numbers),
        words=tuple(words),
        foreign=tuple(dict.fromkeys(foreign)),
    )


def sentence_pairs(one: Nested) -> tuple[tuple[tuple[float, float, bool], ...], bool]:
    """Return the (ε, δ) that a sentence names, and whether each is certified; and whether it names no others.

    A sentence in another version's words is not compared, but its numbers can be.
    """
    read = read_pairs(str(one.document.get("sentence", "")))
    declared = {
        pair[:2]
        for evidence in getattr(one.certificate, "evidence", ())
        for pair in read_pairs(evidence.declares).pairs
    }
    found: list[tuple[float, float, bool]] = []
    for epsilon, delta, before, after in read.pairs:
        if before.endswith("at most ") and (epsilon, delta) in declared:
            continue  # what is declared about dependence, no guarantee
        anyone = after.lstrip().startswith("against anyone at all") or "noise alone" in before[-60:].rpartition(".")[2]
        guarantee = one.certificate.worst_case if anyone else one.certificate
        found.append((epsilon, delta, epsilon < _FARTHEST and guarantee.delta(epsilon * _SPARE) <= delta * _SPARE))
    return tuple(found), read.whole


def other_words(one: Nested) -> tuple[str, ...]:
    """Return which of the texts of another version's certificate are not what this version would write."""
    whole = json.loads(one.certificate.with_caveats().to_json())
    return tuple(name for name in _TEXTS if name in one.document and one.document[name] != whole.get(name))


def _numbers(one: Nested, known: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Return the numbers again, at the ε that the document names."""
    grid = [point["epsilon"] for point in one.document["grid"]]
    stored_worst = one.document["worst_case"]
    worst_grid = grid if stored_worst is None else [point["epsilon"] for point in stored_worst.get("grid", ())]
    about = [one.document.get(name) for name in ("mechanism", "attacker", "protects", "evidence", "parts")]
    same = json.dumps([about, grid, worst_grid], sort_keys=True)
    if same not in known:
        known[same] = _evaluated(
            one.certificate, grid, worst_grid, curve=stored_worst is None or "grid" in stored_worst
        )
    return known[same]


def _evaluated(certificate: Certificate, grid: list[float], worst_grid: list[float], *, curve: bool) -> dict[str, Any]:
    lower, upper = certificate.delta_bounds(np.array(grid, dtype=np.float64))
    worst: dict[str, Any] | None = None
    if certificate.worst_case_bound is not None:
        epsilon, delta = certificate.worst_case_bound.parameters
        worst = {"epsilon": epsilon, "delta": delta}
        if curve:
            deltas = certificate.worst_case.delta(np.array(worst_grid, dtype=np.float64)).tolist()
            worst["grid"] = [{"epsilon": at, "delta": most} for at, most in zip(worst_grid, deltas, strict=True)]
    fresh: dict[str, Any] = {
        "grid": [
            {"epsilon": at, "attained": low, "delta": high}
            for at, low, high in zip(grid, lower.tolist(), upper.tolist(), strict=True)
        ],
        "worst_case": worst,
    }
    if isinstance(certificate, ComposedCertificate):
        fresh["rule"] = certificate.rule
    return fresh


def _size(fresh: dict[str, Any]) -> int:
    worst = fresh["worst_case"]
    return 2 * len(fresh["grid"]) + (0 if worst is None else 2 + len(worst.get("grid", ())))


def _version(document: dict[str, Any]) -> str:
    library = document.get("library")
    named = library.get("version") if isinstance(library, dict) else None
    return f"version {named}"
