"""An exact total is given where it is of the very same people; another day's, or table's, takes the table's promise."""

from __future__ import annotations

import math

import numpy as np
import pytest
from oracle.joint import Day, crowd
from oracle.laws import losses

import pkdp_pipeline as pkdp
from pkdp_pipeline.model.context import Context

TOLD = pkdp.AttackerModel(p_max_between=0.6, leakage=pkdp.Leakage.total())
TABLE = pkdp.certify(pkdp.Histogram(k=9), TOLD, protects="value")
NOISED = pkdp.certify(pkdp.Histogram(k=9, noise=pkdp.GeometricNoise(0.5), release_threshold=30), TOLD, protects="value")
TOTAL = pkdp.certify(pkdp.Count(), TOLD, protects="value")


def on(certificate, period, table=None):
    return certificate.in_context(Context(unit=("id",), period=period, dataset="census", table=table))


@pytest.mark.parametrize("evidence", [None, pkdp.SamePeople()])
@pytest.mark.parametrize("other", [("2021", None), ("2020", "births")])
def test_a_total_that_is_known_to_be_of_others_leaves_only_the_noise(evidence, other):
    same = pkdp.compose([on(NOISED, "2020"), on(TOTAL, "2020")], evidence)
    assert same.delta(1.0) == NOISED.delta(1.0)
    assert same.has_partial_knowledge
    total = pkdp.compose([on(NOISED, "2020"), on(TOTAL, *other)], evidence)
    assert not total.has_partial_knowledge
    assert total.worst_case.delta(1.0) == same.worst_case.delta(1.0)
    nested = pkdp.compose([pkdp.compose([on(NOISED, "2020"), on(TOTAL, "2020")]), on(TOTAL, *other)], evidence)
    assert not nested.has_partial_knowledge
    with pytest.raises(pkdp.NoEvidenceError, match="another period or table"):
        pkdp.compose([on(TABLE, "2020"), on(TOTAL, *other)], evidence)


def test_evidence_about_periods_covers_the_totals_of_others():
    total = pkdp.compose([on(TABLE, "2020"), on(TOTAL, "2021")], pkdp.OneDayProtected())
    assert total.delta(1.0) == TABLE.delta(1.0)


@pytest.mark.parametrize("seed", range(8))
def test_the_days_own_total_adds_nothing_and_the_next_days_may_tell_the_cell(seed):
    """Everybody is in one of two cells, or absent; the chance to come again depends on the cell."""
    rng = np.random.default_rng([seed, 77])
    most, k = float(rng.uniform(0.5, 0.9)), int(rng.integers(2, 4))
    certificate = pkdp.certify(
        pkdp.Histogram(k=k), pkdp.AttackerModel(p_max_between=most, leakage=pkdp.Leakage.total()), protects="value"
    )
    law = crowd(
        [_person(rng, most * (1 - 1e-12)) for _ in range(int(rng.integers(2, 6)))], [Day(cells=2), Day(cells=1)]
    )
    for epsilon in (0.0, 0.4, 1.2):
        promised = certificate.delta(epsilon) * (1 + 1e-9) + 1e-12
        for life in ((0, 0), (1, 0)), ((0, None), (1, None)):
            assert _larger_divergence(law, k, life, epsilon, lambda today, after: None) <= promised
            assert _larger_divergence(law, k, life, epsilon, lambda today, after: sum(today)) <= promised
    lives = ((0, 0), (1, 0))
    crowded = crowd([_returning() for _ in range(4)], [Day(cells=2), Day(cells=1)])
    assert _larger_divergence(crowded, 2, lives, 1.0, lambda today, after: sum(today)) < 0.9
    assert _larger_divergence(crowded, 2, lives, 1.0, lambda today, after: sum(after)) == 1.0


def _person(rng, most):
    share, there = float(rng.uniform(1 - most, most)), float(rng.choice([1.0, rng.random()]))
    again = rng.random(3)
    law = {}
    for cell, chance in ((0, there * share), (1, there * (1 - share)), (None, 1 - there)):
        which = 2 if cell is None else cell
        law[cell, 0], law[cell, None] = chance * float(again[which]), chance * float(1 - again[which])
    return law


def _returning():
    return {(0, 0): 0.5, (1, None): 0.5}


def _larger_divergence(law, k, lives, epsilon, known):
    """Return the larger divergence of the first day's table from k on, beside what is known of both days."""
    sides = []
    for life in lives:
        shown_law = {}
        for counts, weight in law.items():
            days = [[x + (cell == v) for v, x in enumerate(day)] for day, cell in zip(counts, life, strict=True)]
            output = (tuple(x if x >= k else None for x in days[0]), known(*days))
            shown_law[output] = shown_law.get(output, 0.0) + weight
        sides.append(shown_law)
    return max(losses(*sides, math.exp(epsilon)))
