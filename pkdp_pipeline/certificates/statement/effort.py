"""Effort: how many points of a certificate are worth their time; by theorem and size, never by a clock."""

from __future__ import annotations

from pkdp_pipeline.certificates.certificate import Certificate
from pkdp_pipeline.certificates.composed import ComposedCertificate
from pkdp_pipeline.certificates.release_certificate import ReleaseCertificate
from pkdp_pipeline.certificates.statement.stronger import UNCERTAIN, are_surely_there

__all__ = ["SLOW", "affordable", "effort", "slowness"]

SLOW = 4
"""From here on an evaluation takes a large part of a second."""

_MANY_KNOWN = 100
_SMALL = 100
_LARGE = 500
_MANY_UNKNOWN = 100_000


def effort(certificate: Certificate) -> int:
    """Return how much one evaluation costs: 1 for a few milliseconds, 2 and 3 for some tens, 4 for more."""
    if isinstance(certificate, ComposedCertificate):
        mixed = 2 if len({part for part, _ in certificate.parts}) > 1 else 1
        return max((mixed, *(effort(part) for part, _ in certificate.parts)))
    if not isinstance(certificate, ReleaseCertificate):
        return SLOW
    keys, known = certificate.theorems, certificate.attacker.known
    if not are_surely_there((certificate,)) and ("histogram_value" in keys or known > _MANY_KNOWN):
        return SLOW
    if any(key in keys for key in UNCERTAIN):
        if (certificate.attacker.unknown or 0) > _MANY_UNKNOWN:
            return SLOW
        return 3 if "noisy_counting" in keys else 2
    return 1


def slowness(leaf: ReleaseCertificate, *, surely: bool) -> int:
    """Return how much slower one release's certificate is with more known people: 1 to 4.

    Those who are `surely` there lower the threshold; with others it is an average over how many of them are.
    """
    is_value = "histogram_value" in leaf.theorems
    if surely:
        return SLOW if is_value else 1
    thresholds = (leaf.mechanism.k, getattr(leaf.mechanism, "k_complement", None))
    largest = max(k or 0 for k in thresholds)
    if is_value or largest > _LARGE:
        return SLOW
    return 3 if largest > _SMALL else 2


def affordable(certificate: Certificate, points: int, least: int) -> int:
    """Return how many of `points` evaluations to make, at least `least` of them."""
    return max(min(points, least), points // effort(certificate))
