"""Budgets: what they may say, and that noise written in decimals adds up in decimals."""

from __future__ import annotations

import json
import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pkdp_pipeline.certificates.release_certificate import certify
from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.ledger.chain import Budget
from pkdp_pipeline.ledger.charging import drawn
from pkdp_pipeline.model.attacker import AttackerModel
from pkdp_pipeline.model.mechanisms import Count, GeometricNoise, Histogram, noise_scale


def test_a_budget_holds_both_totals_unless_it_says_which():
    assert Budget(1, 1e-6).measures == ("partial_knowledge", "worst_case")
    assert Budget(1, 0, part="worst_case").measures == ("worst_case",)
    assert Budget(0, 0.5, window_days=7) == Budget(0.0, 0.5, window_days=7)


@pytest.mark.parametrize("budget", [Budget(1, 1e-6), Budget(0.1, 0, part="worst_case", window_days=30)])
def test_a_budget_survives_json(budget):
    assert Budget.from_dict(json.loads(json.dumps(budget.to_dict()))) == budget


@pytest.mark.parametrize(
    ("arguments", "options"),
    [
        ((-0.1, 0), {}),
        ((math.inf, 0), {}),
        ((math.nan, 0), {}),
        (("1", 0), {}),
        ((True, 0), {}),
        ((1, 1), {}),
        ((1, -1e-9), {}),
        ((1, None), {}),
        ((1, 0), {"part": "both"}),
        ((1, 0), {"window_days": 0}),
        ((1, 0), {"window_days": 1.5}),
        ((1, 0), {"window_days": 10**7}),
    ],
)
def test_a_malformed_budget_is_an_argument_error(arguments, options):
    with pytest.raises(ArgumentError):
        Budget(*arguments, **options)


@pytest.mark.parametrize("fields", [{}, {"epsilon": 1, "delta": 0}, Budget(1, 0).to_dict() | {"more": 1}, None])
def test_a_malformed_document_is_an_argument_error(fields):
    with pytest.raises(ArgumentError):
        Budget.from_dict(fields)


def test_ten_tenths_are_drawn_as_one():
    tenth = certify(Count(noise=GeometricNoise(0.1)), AttackerModel())
    assert 10 * Fraction(0.1) > 1
    assert drawn([(tenth, 10)]) == (1, 0)


def test_two_cells_count_twice_and_a_threshold_costs_its_delta():
    both = certify(Histogram(noise=GeometricNoise(0.25)), AttackerModel(), protects="value")
    cut = certify(Count(k=5, noise=GeometricNoise(0.5), release_threshold=20), AttackerModel())
    assert drawn([(both, 3)]) == (Fraction(3, 2), 0)
    assert drawn([(both, 1), (cut, 2)]) == (Fraction(3, 2), 2 * Fraction(cut.worst_case.parameters[1]))
    assert cut.worst_case.parameters[1] > 0
    assert drawn([(certify(Histogram(k=5), AttackerModel(p_max=0.1)), 1)]) is None
    assert drawn([]) == (0, 0)


@given(st.floats(min_value=1e-3, max_value=10), st.integers(1, 400))
def test_what_is_drawn_is_never_more_than_declared(epsilon, times):
    exact = drawn([(certify(Count(noise=GeometricNoise(epsilon)), AttackerModel()), times)])
    assert exact == (times / Fraction(noise_scale(GeometricNoise(epsilon))), 0)
    assert exact[0] <= times * Fraction(epsilon)
