"""Evidence: what can be declared, how it is read, and how it is written down."""

from __future__ import annotations

import pytest

import pkdp_pipeline as pkdp
from pkdp_pipeline.composition.rules import RULES
from pkdp_pipeline.model.evidence import evidence_from_dicts, evidence_to_dicts, read_evidence

ALL = (
    pkdp.DisjointUnits(),
    pkdp.IndependentGivenHabits(),
    pkdp.IndependentDraws(),
    pkdp.OneDayProtected(),
    pkdp.BoundedDependence(0.5, 1e-6),
    pkdp.BoundedParticipation(3),
    pkdp.OncePerUnit(),
    pkdp.SamePeople(),
    pkdp.SameTable(),
    pkdp.BoundedSensitivity(2, "value"),
)


def test_none_one_and_several_are_read():
    assert read_evidence(None) == ()
    assert read_evidence([]) == ()
    for evidence in ALL:
        assert read_evidence(evidence) == read_evidence([evidence]) == (evidence,)
    both = (pkdp.IndependentGivenHabits(), pkdp.BoundedParticipation(3))
    assert read_evidence(list(both)) == read_evidence(reversed(both)) == both


def test_whatever_can_be_declared_has_a_rule():
    for evidence in ALL:
        assert frozenset({evidence.key}) in RULES
    for keys in RULES:
        kinds = [evidence for evidence in ALL if evidence.key in keys]
        assert {evidence.key for evidence in read_evidence(kinds)} == keys


@pytest.mark.parametrize("evidence", ALL, ids=lambda evidence: evidence.key)
def test_it_comes_back_from_a_dictionary_and_says_what_it_declares(evidence):
    (document,) = evidence_to_dicts([evidence])
    assert evidence_from_dicts([document]) == (evidence,)
    assert evidence.declares.endswith(".")
    assert len(evidence.declares) > 40


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (pkdp.OneDayProtected, r"write pkdp\.OneDayProtected\(\)"),
        ("one_day_protected", "one of pkdp.DisjointUnits"),
        (1, "one of pkdp.DisjointUnits"),
        ([None], "one of pkdp.DisjointUnits"),
        ([pkdp.OneDayProtected(), pkdp.OneDayProtected()], "twice"),
        ([pkdp.OneDayProtected(), pkdp.OncePerUnit()], "no rule takes"),
        ([pkdp.DisjointUnits(), pkdp.BoundedParticipation(1)], "no rule takes"),
    ],
)
def test_anything_else_is_an_error_that_says_what_can_be_declared(given, words):
    with pytest.raises(pkdp.ArgumentError, match=words):
        read_evidence(given)


@pytest.mark.parametrize(
    "make",
    [
        lambda: pkdp.BoundedDependence(-0.1),
        lambda: pkdp.BoundedDependence(float("inf")),
        lambda: pkdp.BoundedDependence(float("nan")),
        lambda: pkdp.BoundedDependence(True),
        lambda: pkdp.BoundedDependence("1"),
        lambda: pkdp.BoundedDependence(0.1, 1.1),
        lambda: pkdp.BoundedParticipation(0),
        lambda: pkdp.BoundedParticipation(1.5),
        lambda: pkdp.BoundedParticipation(True),
    ],
)
def test_numbers_out_of_range_are_errors(make):
    with pytest.raises(pkdp.ArgumentError):
        make()


@pytest.mark.parametrize(
    "documents",
    [
        None,
        {},
        [1],
        [{"kind": "unheard_of"}],
        [{"kind": "one_day_protected", "times": 3}],
        [{"kind": "bounded_participation"}],
        [{"kind": "bounded_participation", "times": 0}],
        [{"times": 3}],
    ],
)
def test_malformed_dictionaries_are_errors(documents):
    with pytest.raises(pkdp.ArgumentError):
        evidence_from_dicts(documents)
