"""Totals of several releases, each beside its own exact total: never exceeded by the joint law of all of it."""

from __future__ import annotations

import math

import numpy as np
import pytest
from oracle.joint import Day, crowd, independent
from oracle.laws import losses
from thorough import thinned

import pkdp_pipeline as pkdp

TOTAL = pkdp.Leakage.total()


def larger_divergence(people, k, lives, epsilon):
    """Return the larger divergence of all days' tables from k on, and of all days' totals."""
    law = crowd(people, [Day(cells=2)] * len(lives[0]))
    sides = []
    for life in lives:
        shown_law = {}
        for counts, weight in law.items():
            days = [[x + (cell == v) for v, x in enumerate(day)] for day, cell in zip(counts, life, strict=True)]
            output = tuple((tuple(x if x >= k else None for x in day), sum(day)) for day in days)
            shown_law[output] = shown_law.get(output, 0.0) + weight
        sides.append(shown_law)
    return max(losses(*sides, math.exp(epsilon)))


def between(rng, most):
    """Return the chances of two cells, one at most `most` sure given both; anybody may be absent."""
    share = float(rng.choice([most, 1 - most, rng.uniform(1 - most, most)]))
    there = float(rng.choice([1.0, rng.random()]))
    return [there * share, there * (1 - share)]


@thinned(4)
@pytest.mark.parametrize("seed", range(15))
def test_days_that_are_independent_given_habits_beside_each_days_total(seed):
    rng = np.random.default_rng([seed, 9])
    most, k = float(rng.uniform(0.5, 0.8)), int(rng.integers(2, 4))
    part = pkdp.certify(pkdp.Histogram(k=k), pkdp.AttackerModel(p_max_between=most, leakage=TOTAL), protects="value")
    total = pkdp.compose([part, part], pkdp.IndependentGivenHabits())
    people = [independent([between(rng, most * (1 - 1e-12)) for _ in range(2)]) for _ in range(int(rng.integers(1, 5)))]
    for lives in (((0, 0), (1, 1)), ((0, 1), (1, 0)), ((0, None), (1, None))):
        for epsilon in (0.0, 0.4, 1.2):
            assert larger_divergence(people, k, lives, epsilon) <= total.delta(epsilon) * (1 + 1e-9) + 1e-12


def test_what_the_total_does_not_promise_is_not_there():
    # Whether she was there: the day's total says it.
    part = pkdp.certify(pkdp.Histogram(k=3), pkdp.AttackerModel(p_max_between=0.5, leakage=TOTAL), protects="value")
    total = pkdp.compose([part, part], pkdp.IndependentGivenHabits())
    assert larger_divergence([], 3, ((0, 0), (None, 0)), 50.0) == 1.0
    assert "does not protect in which releases she is included" in total.sentence()
    # And one person on one of two days, once: the days' totals say on which.
    assert larger_divergence([], 3, ((0, None), (None, 0)), 50.0) == 1.0
    with pytest.raises(pkdp.NoEvidenceError):
        pkdp.compose([part, part], pkdp.OncePerUnit())


def test_what_hides_a_cell_given_the_total_is_no_part_of_hiding_presence():
    noise = pkdp.GeometricNoise(1.0)
    beside = pkdp.certify(pkdp.Histogram(noise=noise), pkdp.AttackerModel(leakage=TOTAL), protects="value")
    count = pkdp.certify(pkdp.Count(noise=noise), pkdp.AttackerModel())
    try:
        total = pkdp.compose([beside, count])
    except pkdp.NoEvidenceError:
        return
    assert total.protects == "value"


def test_an_exact_total_costs_nothing_beside_what_was_certified_given_it():
    part = pkdp.certify(pkdp.Histogram(k=9), pkdp.AttackerModel(p_max_between=0.6, leakage=TOTAL), protects="value")
    plain = pkdp.certify(pkdp.Histogram(k=9), pkdp.AttackerModel(p_max_between=0.6), protects="value")
    itself = pkdp.certify(pkdp.Count(), pkdp.AttackerModel(leakage=TOTAL), protects="value")
    total = pkdp.compose([part, itself], None)
    assert total.delta(1.0) == pytest.approx(part.delta(1.0), rel=1e-9)
    with pytest.raises(pkdp.NoEvidenceError, match="certified without it"):
        pkdp.compose([plain, itself], None)


def test_a_secret_given_the_household_is_said_with_the_total_too():
    part = pkdp.certify(
        pkdp.Count(),
        pkdp.AttackerModel(p_min=0.2, p_max=0.6, unknown=50, dependent="household", secret="conditional"),
    )
    total = pkdp.compose([part, part], pkdp.IndependentGivenHabits())
    for certificate in (part, total):
        assert "given those of all others of her household" in certificate.sentence()
    assert any("the same in all of them" in text for text in total.assumptions)
    assert not any("the same in all of them" in text for text in pkdp.compose([part], None).assumptions)


def test_a_partners_record_of_another_day_is_a_record_of_the_household():
    # B repeats a day later what A did. Given B's record of the same day A's is a coin, and so is each person's habit;
    # given all of B's records it is certain, and the two counts give A away.
    part = pkdp.certify(
        pkdp.Count(),
        pkdp.AttackerModel(p_min=0.5, p_max=0.5, unknown=20, dependent="household", secret="conditional"),
    )
    total = pkdp.compose([part, part], pkdp.IndependentGivenHabits())
    others = np.array([math.comb(20, s) / 2.0**20 for s in range(21)])
    # First day A and 20 others; second day A's copy and people who are known: their number is read off it.
    first, second = ({(s + a, a): weight for s, weight in enumerate(others.tolist())} for a in (1, 0))
    assert max(losses(first, second, math.exp(1.0))) == pytest.approx(1.0)
    assert total.delta(1.0) < 0.2
