"""Simulated attackers: their lower bounds hold as often as promised, and come close to what is true."""

from __future__ import annotations

import numpy as np
import pytest
from attack_cases import certified
from thorough import one_in, thinned

import pkdp_pipeline as pkdp
from pkdp_pipeline.extras.assurance.attacks.crowd import Crowd, Group
from pkdp_pipeline.extras.assurance.attacks.enumeration import enumerated
from pkdp_pipeline.extras.assurance.attacks.matching import matching
from pkdp_pipeline.extras.assurance.attacks.simulation import simulated


def _strongest(name: str, epsilon: float) -> tuple[pkdp.Certificate, Crowd, float]:
    certificate = certified(name)
    found = [(enumerated(certificate.mechanism, crowd, epsilon), crowd) for crowd in matching(certificate, epsilon)]
    truth, crowd = max(((float(one.lower), crowd) for one, crowd in found if one is not None), key=lambda each: each[0])
    return certificate, crowd, truth


@pytest.mark.parametrize(
    ("name", "epsilon", "share"),
    one_in(
        3,
        [
            ("two_sided", 1.0, 0.9),
            ("large", 0.3, 0.85),
            ("histogram", 1.0, 0.9),
            ("complement", 1.0, 0.9),
            ("between", 0.5, 0.85),
            ("thresholding", 1.0, 0.9),
            ("noised_below", 1.0, 0.9),
        ],
    ),
)
def test_a_simulation_attains_an_exact_theorem_and_finds_a_lowered_number(
    name: str, epsilon: float, share: float
) -> None:
    certificate, crowd, truth = _strongest(name, epsilon)
    found = simulated(
        certificate.mechanism, crowd, epsilon, draws=80_000, error=1e-6, generator=np.random.default_rng(7)
    )
    assert share * certificate.delta(epsilon) < found <= truth


def test_a_tail_of_6e_10_is_shown_by_simulation() -> None:
    certificate, _, truth = _strongest("thresholding", 1.0)
    assert certificate.delta(1.0) == pytest.approx(6.2e-10, rel=0.01)
    assert truth > 6.1e-10


_SHARED = (Group(people=30, chances=(0.1, 0.2)),)
_APART = (Group(people=60, chances=(0.1, 0.0)), Group(people=90, chances=(0.0, 0.1)))
_CASES = [
    (pkdp.Count(k=8), Crowd(cells=1, unknown=(Group(people=20, chances=(0.3,)),)), 0.5),
    (pkdp.Count(k=8), Crowd(cells=1, unknown=(Group(people=28, chances=(0.3,)),), second=0, first=None), 0.1),
    (pkdp.Count(), Crowd(cells=1, unknown=(Group(people=9, chances=(0.3,)), Group(people=6, chances=(0.7,)))), 0.4),
    (pkdp.Count(k=4, k_complement=5), Crowd(cells=1, unknown=(Group(people=12, chances=(0.5,)),)), 0.3),
    (
        pkdp.Count(k=9),
        Crowd(cells=1, unknown=(Group(people=20, chances=(0.3,)),), known=(Group(people=5, chances=(0.3,)),)),
        0.8,
    ),
    (
        pkdp.Count(k=6, noise=pkdp.GeometricNoise(0.8), release_threshold=8),
        Crowd(cells=1, unknown=(Group(people=15, chances=(0.3,)),)),
        0.3,
    ),
    (
        pkdp.Count(noise=pkdp.GeometricNoise(0.8)),
        Crowd(cells=1, unknown=(Group(people=15, chances=(0.3,)),), first=None, second=0),
        0.3,
    ),
    (
        pkdp.Count(k=4, noise=pkdp.GeometricNoise(0.8), below="noise"),
        Crowd(cells=1, unknown=(Group(people=15, chances=(0.3,)),)),
        0.3,
    ),
    (pkdp.Histogram(k=4), Crowd(cells=2, unknown=_SHARED, first=0, second=1), 0.5),
    (pkdp.Histogram(k=10), Crowd(cells=2, unknown=_APART, first=1, second=0), 0.7),
    (pkdp.Histogram(k=3), Crowd(cells=2, controlled=(2, 0), first=0, second=1), 0.7),
]


@thinned(2)
@pytest.mark.parametrize(("mechanism", "crowd", "epsilon"), one_in(3, _CASES))
def test_lower_bounds_hold_as_often_as_promised(mechanism: object, crowd: Crowd, epsilon: float) -> None:
    truth = enumerated(mechanism, crowd, epsilon)
    assert truth is not None
    failed, close = 0, 0.0
    for seed in range(3):
        found = simulated(mechanism, crowd, epsilon, draws=4_000, error=0.1, generator=np.random.default_rng([3, seed]))
        failed += found > float(truth.upper)
        close = max(close, found)
    # At most one in ten fails on average: two of three would, with probability 2.8 % at most.
    assert failed <= 1
    assert close > 0.3 * float(truth.lower)


def test_huge_crowds_are_simulated() -> None:
    attacker = pkdp.AttackerModel(p_min=0.3, p_max=0.3, unknown=10**6)
    certificate = pkdp.certify(pkdp.Count(), attacker)
    best = 0.0
    for crowd in matching(certificate, 0.02)[:2]:
        assert enumerated(pkdp.Count(), crowd, 0.02) is None
        found = simulated(pkdp.Count(), crowd, 0.02, draws=20_000, error=1e-3, generator=np.random.default_rng(1))
        best = max(best, found)
    assert 0.8 * certificate.delta(0.02) < best <= certificate.delta(0.02)
