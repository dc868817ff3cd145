"""What the ledger's tests publish: small standings, their certificates, and real releases."""

from __future__ import annotations

import functools

import pandas as pd

from pkdp_pipeline.certificates.release_certificate import ReleaseCertificate, certify
from pkdp_pipeline.ledger import Ledger, Reservation
from pkdp_pipeline.model.attacker import AttackerModel
from pkdp_pipeline.model.context import Facts
from pkdp_pipeline.model.mechanisms import GeometricNoise, Histogram
from pkdp_pipeline.releases.release import Release

NOISELESS = Histogram(k=50)
NOISED = Histogram(noise=GeometricNoise(epsilon=0.1))


def standing(label="by carrier", *, period="2013-01-02", noised=False, unit=("tailnum",)):
    mechanism = NOISED if noised else NOISELESS
    return Facts(unit=unit, period=period, label=label, mechanism=mechanism, by=("carrier",))


@functools.cache
def certificate(mechanism=NOISELESS) -> ReleaseCertificate:
    return certify(mechanism, AttackerModel(p_max=0.1))


def offer_for(what):
    offered = certificate(what.mechanism)
    return lambda admission, head: (
        offered if admission.claims or not offered.has_partial_knowledge else offered.worst_case_only()
    )


def reserve(ledger, key="key", what=None, *, revise=False):
    what = what or standing()
    return ledger.reserve(key, what, offer_for(what), revise=revise)


def publish(ledger, key="key", what=None, content=b"bytes", *, release_id="release", revise=False):
    reservation = reserve(ledger, key, what, revise=revise)
    if not isinstance(reservation, Reservation):
        return reservation, True
    return ledger.publish(reservation, content, release_id)


def sealed(text: str, count: int = 60) -> Release:
    """Return a release of one cell with the certificate of this JSON text."""
    table = pd.DataFrame({"carrier": pd.array(["AA"], dtype="string"), "count": pd.array([count], dtype="Int64")})
    return Release.seal(table, ReleaseCertificate.from_json(text))


def publish_release(ledger: Ledger, key="key", what=None, *, count=60):
    """Publish a real release, whose bytes carry the certificate that was charged."""
    reservation = reserve(ledger, key, what)
    release = sealed(reservation.certificate.to_json(), count)
    return ledger.publish(reservation, release.to_bytes(), release.id)[0]
