"""A theorem is one record of the registry: a toy is tried, certified, said and published like the others."""

from __future__ import annotations

import pandas as pd
import pytest

import pkdp_pipeline as pkdp
from pkdp_pipeline.certificates import advice
from pkdp_pipeline.composition import rules
from pkdp_pipeline.model.mechanisms import Count
from pkdp_pipeline.theorems import theorems as registry
from pkdp_pipeline.theorems.bound import Applied, Theorem
from pkdp_pipeline.theorems.theorems import bounds_of
from pkdp_pipeline.theorems.thresholding import Thresholding

PEOPLE = pd.DataFrame({"person": range(60)})
ATTACKER = pkdp.AttackerModel(p_max=0.5)
HALF = pkdp.certify(Count(k=20), pkdp.AttackerModel(p_max=0.25)).epsilon(1e-6)


def half_as_sure(mechanism, attacker, left):
    """No theorem: attackers of a toy are half as sure as they say."""
    if mechanism.k is None or mechanism.k < 10:
        return "the toy needs k = 10"
    bound = Thresholding(
        theorem="toy", k=mechanism.k, p=attacker.p_max / 2, cap=None, known=0, active=False, least_unknown=0
    )
    return Applied(bound=bound, attack=None)


TOY = Theorem(
    key="toy",
    title="A toy",
    citation="docs/mathematics.md, section 4",
    against=lambda attacker: "anyone who plays",
    rests_on=("p_max",),
    about=(Count, "presence"),
    rule=half_as_sure,
)


@pytest.fixture(autouse=True)
def toy(monkeypatch):
    monkeypatch.setitem(registry._REGISTRY, "toy", TOY)
    remembered = (bounds_of, rules.bounds_of, advice._least)
    for function in remembered:
        function.cache_clear()
    yield
    for function in remembered:
        function.cache_clear()


def test_a_toy_theorem_is_certified_said_and_published():
    release = pkdp.count(PEOPLE, unit="person", k=20, attacker=ATTACKER, target=None)
    certificate = release.certificate
    assert certificate.theorems == ("thresholding", "toy")
    assert "anyone who plays" in certificate.sentence()
    assert certificate.epsilon(1e-6) == HALF
    assert certificate.verify()


def test_its_obstacle_is_said_where_it_does_not_hold():
    assert "the toy needs k = 10" in bounds_of(Count(k=5), ATTACKER, "presence").obstacles
