"""Parts: a release's certificate without the facts of its publication, stored once however often it occurs."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from functools import lru_cache
from typing import Literal

import numpy as np

from pkdp_pipeline.certificates.codec import parsed
from pkdp_pipeline.certificates.release_certificate import ReleaseCertificate, certify
from pkdp_pipeline.errors import LedgerError
from pkdp_pipeline.model.attacker import AttackerModel
from pkdp_pipeline.model.mechanisms import mechanism_from_dict

_EPSILONS = np.array([0.0, 0.01, 0.03, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 5.0, 8.0, 12.0, 20.0])
"""Where the certificates of one table are compared."""

_ALIKE = 1e-9
"""Numbers this close, relatively, count as equal."""


def sha256(text: str) -> str:
    """Return the sha256 of a text, in hex."""
    return hashlib.sha256(text.encode()).hexdigest()


def describe(certificate: str) -> str:
    """Return what a release certificate, given as JSON text, follows from: mechanism, attacker, what is protected.

    Raises
    ------
    ArgumentError, LedgerError
        If it is not the certificate of one release.
    """
    document = parsed(certificate)
    if "mechanism" not in document or "attacker" not in document:
        raise LedgerError("the ledger charges releases one by one: the certificate must be that of one release.")
    content = {name: document[name] for name in ("mechanism", "attacker", "protects")}
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
