"""No rule is looser than the plain sum of its parts' ε and δ, where that sum is a bound for the same lives."""

from __future__ import annotations

import pytest
from oracle.joint import Day, worst
from thorough import few, spread, thinned

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


@thinned(3)
@pytest.mark.parametrize(("kind", "times"), spread(3, sorted(PARTS), [1, 2, 5]))
def test_independent_days(kind, times):
    parts = [(part, times * n) for part, n in ((p, 1) if isinstance(p, pkdp.Certificate) else p for p in PARTS[kind])]
    for delta in (1e-3, 1e-6, 1e-9):
        assert pkdp.compose(parts, HABITS).epsilon(delta) <= plain_sum(parts, delta) * GRID


@thinned(6)
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
    ids=lambda evidence: "+".join(x.key for x in (evidence if isinstance(evidence, list) else [evidence])),
)
def test_every_rule_for_numbers(kind, evidence):
    if kind == "a dependent pair" and isinstance(evidence, BoundedDependence):
        pytest.skip("sums of sums split ε twice")
    parts = PARTS[kind]
    # The sum of rule 4 itself is read off a table.
    spare = 1.02 if isinstance(evidence, BoundedDependence) else GRID
    for delta in (1e-3, 1e-6):
        assert pkdp.compose(parts, evidence).epsilon(delta) <= plain_sum(parts, delta) * spare


@thinned(4)
@pytest.mark.parametrize(
    "evidence", sorted(sorted(keys) for keys in RULES if not keys & {"same_table", "independent_draws"})
)
@pytest.mark.parametrize("protects", ["presence", "value"])
def test_every_rule_for_noise(evidence, protects):
    declared = {
        kind.key: kind
        for kind in (
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


def certified(mechanism, protects="presence", **attacker):
    return pkdp.certify(mechanism, pkdp.AttackerModel(**attacker), protects=protects)


NOISE = pkdp.GeometricNoise(0.5)
KINDS = {
    "count, exact": exact(100),
    "count, in a box": certified(pkdp.Count(), p_min=0.1, p_max=0.5, unknown=60),
    "count, noised in a box": certified(pkdp.Count(noise=NOISE), p_min=0.2, p_max=0.5, unknown=12),
    "count, k": certified(pkdp.Count(k=10), p_max=0.3),
    "count, k, capped": certified(pkdp.Count(k=6), p_max=0.3, unknown_max=12),
    "count, k, controlled": certified(pkdp.Count(k=6), p_max=0.2, known=3, influence="active"),
    "count, k, merely known": certified(pkdp.Count(k=4), p_max=0.2, known=3),
    "count, k, many merely known": certified(pkdp.Count(k=10), p_max=0.1, known=15),
    "count, k in a box": certified(pkdp.Count(k=4), p_min=0.3, p_max=0.3, unknown=8),
    "count, both thresholds": certified(pkdp.Count(k=5, k_complement=8), p_min=0.1, p_max=0.6),
    "count, k and noise": certified(pkdp.Count(k=6, noise=NOISE, release_threshold=12), p_max=0.1),
    "count, k and noise, merely known": certified(
        pkdp.Count(k=6, noise=NOISE, release_threshold=12), p_max=0.1, known=2
    ),
    "cells": CROWD,
    "cells, merely known": certified(pkdp.Histogram(k=8), p_max=0.2, known=6),
    "cells, value": certified(pkdp.Histogram(k=20), "value", p_max=0.3),
    "cells, value, k and noise": certified(pkdp.Histogram(k=10, noise=NOISE, release_threshold=20), "value", p_max=0.1),
    "cells, value, merely known": certified(pkdp.Histogram(k=8), "value", p_max=0.2, known=3),
    "cells, value, between": certified(pkdp.Histogram(k=30), "value", p_max_between=0.7),
    "cells, exact": certified(pkdp.Histogram(), p_min=0.1, p_max=0.5, unknown=30),
    "cells, options": certified(pkdp.Histogram(), "value", p_min=0.1, unknown=80),
    "several cells, merely known": certified(
        pkdp.Histogram(k=8, cells_per_unit=2), p_max=0.2, known=3, independent_cells=True
    ),
    "several cells, noised": noised(0.3, "value", k=3, release_threshold=12, cells_per_unit=3),
}
"""Every kind of certificate: mechanisms × attackers."""

ADDED_UP = {
    "habits": (HABITS, 1.0),
    "participation": ([HABITS, BoundedParticipation(1)], 1.0),
    "dependence": (BoundedDependence(0.01, 1e-7), 1.02),
}
"""Evidence under which ε and δ of all parts may be added up, and how far tables of profiles widen ε."""


@thinned(4)
@pytest.mark.parametrize(("kind", "evidence"), spread(3, sorted(KINDS), sorted(ADDED_UP)))
def test_a_total_is_not_above_any_plain_sum(kind, evidence):
    """δ(Σ ε_i) is at most Σ δ_i(ε_i), and what dependence adds, however ε is split over the parts."""
    part, other = KINDS[kind], KINDS["cells, value" if KINDS[kind].protects == "value" else "count, k"]
    declared, spare = ADDED_UP[evidence]
    for parts in ([(part, 2)], [part, other]):
        total, listed = (
            pkdp.compose(parts, declared),
            [release for release, times in pairs(parts) for _ in range(times)],
        )
        extra = (0.01, 1e-7) if evidence == "dependence" else (0.0, 0.0)
        for first, second in ((1.0, 1.0), (2.0, 0.5), (4.0, 4.0), (0.2, 0.1))[: few(4, 2)]:
            if evidence == "dependence" and (first != second or part is not listed[1]):
                continue  # of all splits the one with equal δ is taken
            summed = listed[0].delta(first) + listed[1].delta(second) + extra[1]
            certain = total.delta((first + second) * spare * GRID + extra[0])
            assert certain <= summed * (1 + 1e-6) + 1e-12, (first, second)


LARGEST = {"disjoint": DisjointUnits(), "one day": OneDayProtected()}


@thinned(4)
@pytest.mark.parametrize(("kind", "evidence"), spread(2, sorted(KINDS), sorted(LARGEST)))
def test_a_total_of_which_one_part_concerns_a_person_is_the_largest_part(kind, evidence):
    part, other = KINDS[kind], KINDS["cells, value" if KINDS[kind].protects == "value" else "count, k"]
    total = pkdp.compose([(part, 3), other], LARGEST[evidence])
    for epsilon in (0.0, 0.5, 2.0):
        assert total.delta(epsilon) == max(part.delta(epsilon), other.delta(epsilon))


EVIDENCE = {
    "none": None,
    "disjoint": DisjointUnits(),
    "habits": HABITS,
    "one day": OneDayProtected(),
    "one day, participation": [OneDayProtected(), BoundedParticipation(2)],
    "habits, participation": [HABITS, BoundedParticipation(1)],
    "participation": BoundedParticipation(1),
    "dependence": BoundedDependence(0.1, 1e-6),
    "same people": SamePeople(),
}


@thinned(6)
@pytest.mark.parametrize(("kind", "evidence"), spread(7, sorted(KINDS), sorted(EVIDENCE)))
def test_one_release_has_one_number(kind, evidence):
    part, points = KINDS[kind], [0.0, 0.1, 0.7, 2.0]
    total = pkdp.compose([part], EVIDENCE[evidence])
    for mine, own in ((total, part), (total.worst_case, part.worst_case)):
        assert list(mine.delta(points)) == list(own.delta(points))
        assert mine.epsilon(1e-4) == own.epsilon(1e-4)
    assert list(map(list, total.delta_bounds(points))) == list(map(list, part.delta_bounds(points)))


def test_days_with_people_merely_known_are_not_above_the_sum_of_the_days():
    day = KINDS["count, k, merely known"]
    two = pkdp.compose([(day, 2)], HABITS)
    # What is disclosed on either day: 1 - (1 - δ)², δ being the same at every large ε.
    assert day.delta(4.0) == pytest.approx(0.0208)
    assert two.delta(8.0) == pytest.approx(1 - (1 - 0.0208) ** 2, rel=1e-6)


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
