"""Parts: a release's certificate without the facts of its publication, stored once however often it occurs."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Literal

import numpy as np

from pkdp_pipeline.certificates.certificate import Certificate
from pkdp_pipeline.certificates.codec import parsed
from pkdp_pipeline.certificates.release_certificate import ReleaseCertificate, certify
from pkdp_pipeline.errors import LedgerError
from pkdp_pipeline.ledger.database import Database
from pkdp_pipeline.model.attacker import AttackerModel
from pkdp_pipeline.model.mechanisms import mechanism_from_dict, mechanism_to_dict

__all__ = ["certificate_of", "compared", "counted", "describe", "read_parts", "sha256", "store_part"]

Parts = Mapping[str, ReleaseCertificate]

_EPSILONS = np.array([0.0, 0.01, 0.03, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 5.0, 8.0, 12.0, 20.0])
"""Where the certificates of one table are compared."""

_ALIKE = 1e-9
"""Numbers this close, relatively, count as equal."""


def sha256(text: str) -> str:
    """Return the sha256 of a text, in hex."""
    return hashlib.sha256(text.encode()).hexdigest()


def describe(certificate: Certificate | str) -> str:
    """Return what a release certificate follows from, as canonical JSON: mechanism, attacker, what is protected.

    Parameters
    ----------
    certificate : Certificate or str
        A release certificate, or the JSON text of one; a text is not certified again.

    Raises
    ------
    ArgumentError, LedgerError
        If it is not the certificate of one release.
    """
    if isinstance(certificate, ReleaseCertificate):
        mechanism, attacker = mechanism_to_dict(certificate.mechanism), certificate.attacker.to_dict()
        protects: str = certificate.protects
    elif isinstance(certificate, str):
        document = parsed(certificate)
        if "mechanism" not in document or "attacker" not in document:
            raise LedgerError("the ledger charges releases one by one: the certificate must be that of one release.")
        mechanism, attacker, protects = document["mechanism"], document["attacker"], document["protects"]
    else:
        raise LedgerError("the ledger charges releases one by one: the certificate must be that of one release.")
    content = {"mechanism": mechanism, "attacker": attacker, "protects": protects}
    return json.dumps(content, sort_keys=True, separators=(",", ":"))


@lru_cache(maxsize=4096)
def certificate_of(description: str) -> ReleaseCertificate:
    """Certify again what `describe` returned; the certificate belongs to no publication."""
    content = json.loads(description)
    return certify(
        mechanism_from_dict(content["mechanism"]),
        AttackerModel.from_dict(content["attacker"]),
        protects=content["protects"],
    )


def counted(descriptions: Iterable[str]) -> str:
    """Return which of a release's certificates its totals count with: the newest that is not milder than one before.

    Parameters
    ----------
    descriptions : iterable of str
        What `describe` returned of all certificates it ever had, the first one first.
    """
    first, *later = descriptions
    for description in later:
        if compared(description, first) != "milder":
            first = description
    return first


@lru_cache(maxsize=4096)
def compared(description: str, other: str) -> Literal["milder", "bolder", "neither", "as bold"]:
    """Return how the certificate of a `description` compares with another one of the same table.

    A milder one certifies at most the other's δ at every ε, both against its attacker and against anyone, and less
    somewhere: it is about an attacker who knows less, or protects less.
    """
    one, former = certificate_of(description), certificate_of(other)
    mine = np.concatenate([one.delta(_EPSILONS), one.worst_case.delta(_EPSILONS)])
    theirs = np.concatenate([former.delta(_EPSILONS), former.worst_case.delta(_EPSILONS)])
    less, more = (mine < theirs * (1.0 - _ALIKE)).any(), (mine > theirs * (1.0 + _ALIKE)).any()
    if less and more:
        return "neither"
    return "milder" if less else "bolder" if more else "as bold"


def store_part(db: Database, description: str) -> str:
    """Store a description unless it is there, and return its sha256."""
    key = sha256(description)
    db.execute(
        "INSERT INTO part (sha256, description) VALUES (:key, :description) ON CONFLICT (sha256) DO NOTHING",
        key=key,
        description=description,
    )
    return key


def read_parts(db: Database, bundles: Iterable[tuple[object, Iterable[tuple[str, int]]]]) -> Parts:
    """Return the certificates of bundles' parts.

    Raises
    ------
    LedgerError
        If one is missing, or is not what its key says.
    """
    found = {}
    for key in sorted({key for _, parts in bundles for key, _ in parts}):
        rows = db.execute("SELECT description FROM part WHERE sha256 = :key", key=key)
        if not rows or sha256(rows[0][0]) != key:
            raise LedgerError("the ledger's account refers to a certificate it does not hold: it was altered.")
        found[key] = certificate_of(rows[0][0])
    return found
