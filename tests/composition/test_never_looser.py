"""No rule is looser than the plain sum of its parts' ε and δ, where that sum is a bound for the same lives."""

from __future__ import annotations

import pytest
from oracle.joint import Day, worst
from thorough import spread

import pkdp_pipeline as pkdp
from pkdp_pipeline.composition.rules import RULES
from pkdp_pipeline.model.evidence import (
    BoundedDependence,
    BoundedParticipation,
    BoundedSensitivity,
    DisjointUnits,
    IndependentGivenHabits,
    OncePerUnit,
    OneDayProtected,
    SamePeople,
)

HABITS = IndependentGivenHabits()
GRID = 1 + 1e-3
"""Losses are rounded up to a grid, by about 0.05 % in ε."""


def noised(epsilon, protects="presence", **more):
    return pkdp.certify(
        pkdp.Histogram(noise=pkdp.GeometricNoise(epsilon), **more), pkdp.AttackerModel(), protects=protects
    )


def exact(unknown=20_000):
    return pkdp.certify(pkdp.Count(), pkdp.AttackerModel(p_min=0.5, p_max=0.5, unknown=unknown))


def beside_noise(epsilon=0.005):
    """Return an exact count beside noise, as a ledger adds up one day of both."""
    return pkdp.compose([exact(), noised(epsilon)], SamePeople())


CROWD = pkdp.certify(pkdp.Histogram(k=50), pkdp.AttackerModel(p_max=0.1))
SMALL = pkdp.certify(pkdp.Count(k=3), pkdp.AttackerModel(p_max=0.9))
DEPENDENT = pkdp.compose([(exact(), 2)], BoundedDependence(0.01))
UNLIKE = [noised(1.0, k=5, release_threshold=15), noised(0.3, k=5, release_threshold=8), noised(0.2)]
PARTS = {
    "an exact count beside noise": [beside_noise()],
    "several of these": [beside_noise(), (beside_noise(0.02), 2)],
    "a dependent pair": [DEPENDENT],
    "a crowd": [CROWD],
    "few people": [SMALL],
    "noise": [noised(0.1), noised(0.4)],
    "noise and thresholds": UNLIKE,
    "all kinds": [beside_noise(), CROWD, noised(0.1)],
}


def pairs(parts):
    return [(part, 1) if isinstance(part, pkdp.Certificate) else part for part in parts]


def plain_sum(parts, delta):
    """Return Σ ε_i where every part has the same share of δ: one of the ways in which ε and δ add up."""
    share = delta / sum(times for _, times in pairs(parts))
    return sum(times * part.epsilon(share) for part, times in pairs(parts))


@pytest.mark.parametrize(("kind", "times"), spread(3, sorted(PARTS), [1, 2, 5]))
def test_independent_days(kind, times):
    parts = [(part, times * n) for part, n in ((p, 1) if isinstance(p, pkdp.Certificate) else p for p in PARTS[kind])]
    for delta in (1e-3, 1e-6, 1e-9):
        assert pkdp.compose(parts, HABITS).epsilon(delta) <= plain_sum(parts, delta) * GRID


@pytest.mark.parametrize("kind", sorted(PARTS))
@pytest.mark.parametrize(
    "evidence",
    [
        DisjointUnits(),
        [HABITS, BoundedParticipation(1)],
        [HABITS, BoundedParticipation(9)],
        OneDayProtected(),
        BoundedDependence(0.0),
    ],
    ids=lambda one: "+".join(x.key for x in (one if isinstance(one, list) else [one])),
)
def test_every_rule_for_numbers(kind, evidence):
    if kind == "a dependent pair" and isinstance(evidence, BoundedDependence):
        pytest.skip("sums of sums split ε twice")
    parts = PARTS[kind]
    # The sum of rule 4 itself is read off a table.
    spare = 1.02 if isinstance(evidence, BoundedDependence) else GRID
    for delta in (1e-3, 1e-6):
        assert pkdp.compose(parts, evidence).epsilon(delta) <= plain_sum(parts, delta) * spare


@pytest.mark.parametrize("evidence", sorted(map(sorted, RULES)))
@pytest.mark.parametrize("protects", ["presence", "value"])
def test_every_rule_for_noise(evidence, protects):
    declared = {
        one.key: one
        for one in (
            DisjointUnits(),
            HABITS,
            OneDayProtected(),
            BoundedDependence(0.1),
            BoundedParticipation(1),
            OncePerUnit(),
            SamePeople(),
            BoundedSensitivity(2, protects=protects),
        )
    }
    for noises in (
        [noised(0.1, protects), noised(0.4, protects)],
        [noised(1.0, protects, k=5, release_threshold=15), noised(0.3, protects, k=5, release_threshold=8)],
        [(noised(0.01, protects), 30), noised(1.0, protects)],
    ):
        total = pkdp.compose(noises, [declared[key] for key in evidence] or None)
        everything = pkdp.compose(noises)
        epsilon, delta = everything.worst_case.parameters
        assert total.delta(epsilon) <= delta
        for target in (1e-9, 1e-6, 1e-3):
            assert total.epsilon(target) <= everything.epsilon(target) * GRID


def test_two_days_of_an_exact_count_beside_noise():
    day = pkdp.compose(
        [exact(), pkdp.certify(pkdp.Count(noise=pkdp.GeometricNoise(0.025)), pkdp.AttackerModel())], SamePeople()
    )
    two = pkdp.compose([(day, 2)], HABITS)
    assert plain_sum([(day, 2)], 1e-6) == pytest.approx(0.21, abs=0.02)
    assert two.epsilon(1e-6) < 0.2


@pytest.mark.parametrize("epsilon", [0.0, 0.1, 0.3, 0.6, 1.0, 2.0])
def test_an_exact_count_beside_noise_below_its_cost(epsilon):
    """The profile below 2 ε0 is read on the other side of 0; enumerated for few people, on one day and on two."""
    crowd, noise = [{(0, 0): 0.5, (None, None): 0.5}] * 6, 0.4
    part = pkdp.certify(pkdp.Count(), pkdp.AttackerModel(p_min=0.5, p_max=0.5, unknown=6))
    beside = pkdp.certify(pkdp.Count(noise=pkdp.GeometricNoise(noise)), pkdp.AttackerModel())
    total = pkdp.compose([part, beside], SamePeople())
    true = worst(crowd, [Day(), Day(noise=noise)], ((0, 0), (None, None)), epsilon)
    assert 0.0 < true <= total.delta(epsilon) * (1 + 1e-12)
    if epsilon < 2 * noise:
        assert total.delta(epsilon) < 1.0
