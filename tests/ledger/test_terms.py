from __future__ import annotations

import json

import pytest

from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.ledger.chain import Budget, Terms, given
from pkdp_pipeline.model.evidence import (
    BoundedDependence,
    BoundedParticipation,
    IndependentGivenHabits,
    OneDayProtected,
    SamePeople,
    SameTable,
)


def test_nothing_is_declared_by_default():
    assert (Terms().evidence, Terms().budgets) == ((), ())


@pytest.mark.parametrize(
    "terms",
    [
        Terms(),
        Terms(evidence=(BoundedDependence(0.1, 1e-9),), budgets=(Budget(1, 1e-6), Budget(0.2, 0, window_days=30))),
        Terms(evidence=(BoundedParticipation(3), IndependentGivenHabits())),
    ],
)
def test_terms_survive_json(terms):
    assert Terms.from_dict(json.loads(json.dumps(terms.to_dict()))) == terms


def test_what_is_given_is_read_and_none_stays_none():
    assert given(None, None) == (None, None)
    assert given(Budget(1, 0), OneDayProtected()) == ((Budget(1, 0),), (OneDayProtected(),))
    assert given([], []) == ((), ())
    assert given([Budget(1, 0), Budget(1.0, 0.0)], None)[0] == (Budget(1, 0),)


@pytest.mark.parametrize("budget", ["1", 1.0, {"epsilon": 1}, [1.0], b"x", (Budget(1, 0), None)])
def test_a_budget_is_a_budget(budget):
    with pytest.raises(ArgumentError, match="budget"):
        given(budget, None)


@pytest.mark.parametrize("evidence", ["habits", OneDayProtected, [1], (OneDayProtected(), IndependentGivenHabits())])
def test_evidence_is_evidence(evidence):
    with pytest.raises(ArgumentError):
        given(None, evidence)


@pytest.mark.parametrize("kind", [SamePeople, SameTable])
def test_a_ledger_finds_out_itself_what_is_the_same(kind):
    with pytest.raises(ArgumentError, match=kind.__name__):
        given(None, kind())


@pytest.mark.parametrize(
    "fields", [{}, {"evidence": []}, {"evidence": [], "budgets": {}}, {"evidence": [], "budgets": [], "leakages": []}]
)
def test_other_fields_are_argument_errors(fields):
    with pytest.raises(ArgumentError):
        Terms.from_dict(fields)
