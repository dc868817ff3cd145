"""Certificates that are tried: one for every theorem, and random small ones."""

from __future__ import annotations

import numpy as np
from oracle.attacks import certificate_of
from oracle.families import FAMILIES, RandomDice

import pkdp_pipeline as pkdp
from pkdp_pipeline.certificates.release_certificate import ReleaseCertificate
from pkdp_pipeline.extras.assurance.attacks.crowd import Crowd, vertices
from pkdp_pipeline.extras.assurance.attacks.matching import matching

_NOISE = pkdp.GeometricNoise(1.0)

#: Theorems that are attained: mechanism, attacker, what is protected.
EXACT = {
    "thresholding": (pkdp.Count(k=50), {"p_max": 0.1}, "presence"),
    "large": (pkdp.Count(k=300), {"p_max": 0.3}, "presence"),
    "capped": (pkdp.Count(k=10), {"p_max": 0.3, "unknown_max": 12}, "presence"),
    "controlled": (pkdp.Count(k=10), {"p_max": 0.3, "known": 3, "influence": "active"}, "presence"),
    "two_sided": (pkdp.Count(k=5, k_complement=4), {"p_max": 0.6}, "presence"),
    "complement": (pkdp.Count(k_complement=6), {"p_min": 0.3}, "presence"),
    "complement_controlled": (
        pkdp.Count(k_complement=9),
        {"p_min": 0.3, "known": 2, "influence": "active"},
        "presence",
    ),
    "in_box": (pkdp.Count(k=20), {"p_min": 0.2, "p_max": 0.6, "unknown": 40}, "presence"),
    "noisy_in_box": (
        pkdp.Count(k=8, noise=pkdp.GeometricNoise(0.8), release_threshold=10),
        {"p_min": 0.2, "p_max": 0.6, "unknown": 12},
        "presence",
    ),
    "complement_in_box": (pkdp.Count(k_complement=9), {"p_min": 0.25, "p_max": 0.5, "unknown": 9}, "presence"),
    "released_in_box": (
        pkdp.Count(noise=pkdp.GeometricNoise(3.0), release_threshold=9),
        {"p_min": 0.2, "p_max": 0.6, "unknown": 12},
        "presence",
    ),
    "twice_in_box": (
        pkdp.Count(k=20, k_complement=20),
        {"p_min": 0.2, "p_max": 0.6, "unknown": 100},
        "presence",
    ),
    "counting": (pkdp.Count(), {"p_min": 0.1, "p_max": 0.3, "unknown": 20}, "presence"),
    "noise": (pkdp.Count(noise=pkdp.GeometricNoise(3.0)), {"p_min": 0.1, "p_max": 0.3, "unknown": 20}, "presence"),
    "anybody": (pkdp.Count(k=5, noise=_NOISE, release_threshold=8), {}, "presence"),
    "anybody_value": (pkdp.Histogram(k=5, noise=_NOISE, release_threshold=8), {}, "value"),
    "histogram": (pkdp.Histogram(k=50), {"p_max": 0.1}, "presence"),
    "between": (pkdp.Histogram(k=20), {"p_max_between": 0.6}, "value"),
    "between_controlled": (
        pkdp.Histogram(k=20),
        {"p_max_between": 0.6, "known": 4, "influence": "active"},
        "value",
    ),
    "noised_below": (pkdp.Count(k=20, noise=pkdp.GeometricNoise(0.25), below="noise"), {"p_max": 0.1}, "presence"),
    "noised_below_controlled": (
        pkdp.Histogram(k=12, noise=pkdp.GeometricNoise(0.2), release_threshold=3, below="noise"),
        {"p_max": 0.3, "known": 2, "influence": "active"},
        "presence",
    ),
    "noised_below_known": (
        pkdp.Count(k=12, noise=pkdp.GeometricNoise(0.2), below="noise"),
        {"p_max": 0.1, "known": 3},
        "presence",
    ),
    "noised_below_between": (
        pkdp.Histogram(k=8, noise=pkdp.GeometricNoise(0.1), below="noise"),
        {"p_max_between": 0.6},
        "value",
    ),
    "options": (pkdp.Histogram(), {"p_min": 0.2, "unknown": 10}, "value"),
}


def certified(name: str) -> ReleaseCertificate:
    mechanism, attacker, protects = EXACT[name]
    return pkdp.certify(mechanism, pkdp.AttackerModel(**attacker), protects=protects)


def crowds(certificate: ReleaseCertificate, epsilon: float) -> tuple[Crowd, ...]:
    """Return the attackers by whom a certificate is tried: the strongest that are known, then all vertices."""
    return tuple(dict.fromkeys((*matching(certificate, epsilon), *vertices(certificate))))


def drawn(family: str, seed: int) -> ReleaseCertificate:
    """Return the certificate of a random small declaration of one of the oracle's families."""
    dice = RandomDice(np.random.default_rng([seed, sorted(FAMILIES).index(family)]))
    while True:
        try:
            certificate: ReleaseCertificate = certificate_of(FAMILIES[family](dice, 1))
        except pkdp.NotCertifiableError:
            continue
        return certificate
