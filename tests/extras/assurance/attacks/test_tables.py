"""Attackers by tables of floats: what they attain is below what is true, and next to it."""

from __future__ import annotations

import math

import flint
import pytest
from attack_cases import certified
from scipy.stats import binom

import pkdp_pipeline as pkdp
from pkdp_pipeline.extras.assurance.attacks import days as tables
from pkdp_pipeline.extras.assurance.attacks.crowd import Crowd, Group
from pkdp_pipeline.extras.assurance.attacks.days import tabulated
from pkdp_pipeline.extras.assurance.attacks.enumeration import enumerated
from pkdp_pipeline.extras.assurance.attacks.matching import matching


def _strongest(name: str, epsilon: float) -> tuple[pkdp.Certificate, Crowd, float]:
    certificate = certified(name)
    attained = [(enumerated(certificate.mechanism, crowd, epsilon), crowd) for crowd in matching(certificate, epsilon)]
    truth, crowd = max(
        ((float(each.lower), crowd) for each, crowd in attained if each is not None), key=lambda each: each[0]
    )
    return certificate, crowd, truth


@pytest.mark.parametrize(
    ("name", "epsilon"),
    [
        ("two_sided", 1.0),
        ("large", 0.3),
        ("histogram", 1.0),
        ("complement", 1.0),
        ("between", 0.5),
        ("thresholding", 1.0),
        ("noised_below", 1.0),
    ],
)
def test_tables_attain_an_exact_theorem_and_find_a_lowered_number(name: str, epsilon: float) -> None:
    certificate, crowd, truth = _strongest(name, epsilon)
    attained = tabulated(certificate.mechanism, crowd, epsilon)
    assert 0.999 * certificate.delta(epsilon) < attained <= truth


def test_a_tail_of_6e_10_is_shown() -> None:
    certificate, crowd, truth = _strongest("thresholding", 1.0)
    assert certificate.delta(1.0) == pytest.approx(6.2e-10, rel=0.01)
    assert truth >= tabulated(certificate.mechanism, crowd, 1.0) > 6.1e-10


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


@pytest.mark.parametrize(("mechanism", "crowd", "epsilon"), _CASES)
def test_tables_are_next_to_the_truth_and_below(mechanism: pkdp.Count, crowd: Crowd, epsilon: float) -> None:
    for lives in (crowd, crowd.reversed()):
        truth = enumerated(mechanism, lives, epsilon)
        assert truth is not None
        assert (1.0 - 1e-6) * float(truth.lower) <= tabulated(mechanism, lives, epsilon) <= float(truth.upper)


def test_what_is_known_is_forgotten_where_it_is_too_much(monkeypatch: pytest.MonkeyPatch) -> None:
    mechanism, crowd, epsilon = next(case for case in _CASES if case[1].known)
    whole = tabulated(mechanism, crowd, epsilon)
    monkeypatch.setattr(tables, "_MAX_KNOWN", 5)  # of five people there are six numbers
    assert 0.0 < tabulated(mechanism, crowd, epsilon) < whole
    monkeypatch.setattr(tables, "_MAX_PRODUCTS", 20)
    assert tabulated(mechanism, crowd, epsilon) == 0.0


def test_noise_in_two_cells_is_tried_in_either_of_them() -> None:
    mechanism = pkdp.Histogram(noise=pkdp.GeometricNoise(0.8))
    crowd = Crowd(cells=2, unknown=(Group(people=30, chances=(0.1, 0.2)),), second=1)
    truth = enumerated(mechanism, crowd, 0.3)
    assert truth is not None
    assert 0.2 * float(truth.lower) < tabulated(mechanism, crowd, 0.3) < float(truth.upper)


@pytest.mark.parametrize(("people", "chance"), [(10**7, 0.5), (10**7, 1e-5), (10**6, 0.999), (10**9, 0.1)])
def test_binomial_probabilities_err_by_less_than_is_allowed_for(people: int, chance: float) -> None:
    deviation = math.sqrt(people * chance * (1.0 - chance))
    with flint.ctx.workprec(300):
        whole, success = flint.arb(people), flint.arb(chance)
        for place in (-9.0, -3.0, 0.0, 5.0, 11.0):
            number = min(people, max(0, round(people * chance + place * deviation)))
            ways = (whole + 1).lgamma() - flint.arb(number + 1).lgamma() - (whole - number + 1).lgamma()
            exact = (ways + number * success.log() + (whole - number) * (1 - success).log()).exp()
            ratio = flint.arb(float(binom.pmf(number, people, chance))) / exact
            assert abs(float(ratio) - 1.0) < 1e-10


def test_huge_crowds_are_tabulated() -> None:
    attacker = pkdp.AttackerModel(p_min=0.3, p_max=0.3, unknown=10**6)
    certificate = pkdp.certify(pkdp.Count(), attacker)
    crowds = matching(certificate, 0.02)[:2]
    assert all(enumerated(pkdp.Count(), crowd, 0.02) is None for crowd in crowds)
    best = max(tabulated(pkdp.Count(), crowd, 0.02) for crowd in crowds)
    assert 0.999 * certificate.delta(0.02) < best <= certificate.delta(0.02)
