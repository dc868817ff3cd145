"""Effort: how many points of a certificate are worth their time; by theorem and size, never by a clock."""

from __future__ import annotations

from pkdp_pipeline.certificate import Certificate
from pkdp_pipeline.composition.composed import ComposedCertificate
from pkdp_pipeline.release_certificate import ReleaseCertificate

__all__ = ["affordable", "effort"]

_MANY_KNOWN = 100
_MANY_UNKNOWN = 100_000
_UNCERTAIN = ("counting", "noisy_counting", "options")


def effort(certificate: Certificate) -> int:
    """Return how much one evaluation costs: 1 for a few milliseconds, 2 for some tens, 4 for more."""
    if isinstance(certificate, ComposedCertificate):
        mixed = 2 if len({part for part, _ in certificate.parts}) > 1 else 1
        return max((mixed, *(effort(part) for part, _ in certificate.parts)))
    if not isinstance(certificate, ReleaseCertificate):
        return 4
    keys, known = certificate.theorems, certificate.attacker.known
    if "histogram_value" in keys and known > 0:
        return 4
    if known > _MANY_KNOWN and certificate.attacker.influence == "passive":
        return 4
    if any(key in keys for key in _UNCERTAIN):
        return 4 if (certificate.attacker.unknown or 0) > _MANY_UNKNOWN else 2
    return 1


def affordable(certificate: Certificate, points: int, least: int) -> int:
    """Return how many of `points` evaluations to make, at least `least` of them."""
    return max(min(points, least), points // effort(certificate))
