"""Evidence is one class and one line for its rule: a toy is declared, added up by and said like the others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import pytest

import pkdp_pipeline as pkdp
from pkdp_pipeline.composition import rules
from pkdp_pipeline.composition.schedule import disjoint_units
from pkdp_pipeline.model import evidence
from pkdp_pipeline.model.evidence import Evidence
from pkdp_pipeline.model.mechanisms import Count

PARTS = [pkdp.certify(Count(k=20), pkdp.AttackerModel(p_max=0.5))] * 2


@dataclass(frozen=True, slots=True)
class OddDays(Evidence):
    """Everybody is there on odd days, or on even ones."""

    key: ClassVar[str] = "odd_days"
    if_false: ClassVar[str] = "somebody is there on both"
    holds: ClassVar[str] = "nobody is there on odd and on even days"
    written: ClassVar[tuple[str, ...]] = ("first",)

    first: int = 1

    @property
    def declares(self) -> str:
        return "Nobody is there on odd and on even days."


@pytest.fixture
def toy(monkeypatch):
    monkeypatch.setitem(evidence._REGISTRY, "odd_days", OddDays)
    monkeypatch.setitem(rules._REGISTRY, frozenset({"odd_days"}), disjoint_units)


@pytest.mark.usefixtures("toy")
def test_toy_evidence_adds_certificates_up_and_is_said():
    total = pkdp.compose(PARTS, evidence=OddDays())
    assert total.epsilon(1e-6) == pkdp.compose(PARTS, evidence=pkdp.DisjointUnits()).epsilon(1e-6)
    assert "Nobody is there on odd and on even days." in total.sentence()
    assert evidence.evidence_from_dicts([{"kind": "odd_days", "first": 1}]) == (OddDays(),)


@pytest.mark.usefixtures("toy")
def test_a_refusal_offers_it_as_a_choice():
    with pytest.raises(pkdp.NoEvidenceError, match=r"pkdp\.OddDays\(first\) \(nobody is there on odd"):
        pkdp.compose(PARTS)


def test_without_the_line_it_is_no_evidence():
    with pytest.raises(pkdp.ArgumentError):
        pkdp.compose(PARTS, evidence=OddDays())
