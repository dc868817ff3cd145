"""Effort: how many points of a certificate are worth their time; by theorem and size, never by a clock."""

from __future__ import annotations

from pkdp_pipeline.certificate import Certificate
from pkdp_pipeline.composition.composed import ComposedCertificate
from pkdp_pipeline.release_certificate import ReleaseCertificate

__all__ = ["SLOW", "affordable", "effort", "slowness"]

SLOW = 4
"""From here on an evaluation takes a large part of a second."""

_MANY_KNOWN = 100
_LARGE = 500
_MANY_UNKNOWN = 100_000
_UNCERTAIN = ("counting", "noisy_counting", "options")


def effort(certificate: Certificate) -> int:
    """Return how much one evaluation costs: 1 for a few milliseconds, 2 for some tens, 4 for more."""
    if isinstance(certificate, ComposedCertificate):
        mixed = 2 if len({part for part, _ in certificate.parts}) > 1 else 1
        return max((mixed, *(effort(part) for part, _ in certificate.parts)))
    if not isinstance(certificate, ReleaseCertificate):
        return SLOW
    keys, known = certificate.theorems, certificate.attacker.known
    if known > 0 and ("histogram_value" in keys or known > _MANY_KNOWN) and slowness(certificate) > 1:
        return SLOW
    if any(key in keys for key in _UNCERTAIN):
        return SLOW if (certificate.attacker.unknown or 0) > _MANY_UNKNOWN else 2
    return 1


def slowness(leaf: ReleaseCertificate) -> int:
    """Return how much slower one release's certificate is with merely known people, who count or do not: 1 to 4."""
    thresholds = (leaf.mechanism.k, getattr(leaf.mechanism, "k_complement", None))
    if leaf.attacker.influence == "active" or thresholds == (None, None):
        return 1
    return SLOW if "histogram_value" in leaf.theorems or max(k or 0 for k in thresholds) > _LARGE else 2


def affordable(certificate: Certificate, points: int, least: int) -> int:
    """Return how many of `points` evaluations to make, at least `least` of them."""
    return max(min(points, least), points // effort(certificate))
