"""Rules 1, 3 and 8: totals that are the largest part, what they need, and what breaks it."""

from __future__ import annotations

import math
from itertools import permutations

import numpy as np
import pytest
from oracle.joint import Day, independent, once, sticky, worst

import pkdp_pipeline as pkdp
from pkdp_pipeline.model.evidence import BoundedParticipation, DisjointUnits, OncePerUnit, OneDayProtected

GRID = np.array([0.0, 0.1, 0.5, 1.0, 2.0, 4.0])


def thresholded(k, p, **more):
    return pkdp.certify(pkdp.Count(k=k), pkdp.AttackerModel(p_max=p, **more))


def table(k, protects="presence", **attacker):
    return pkdp.certify(pkdp.Histogram(k=k), pkdp.AttackerModel(**attacker), protects=protects)


# Rule 1


def test_parts_about_different_people_cost_the_largest():
    parts = [thresholded(5, 0.3), thresholded(20, 0.6), thresholded(3, 0.05)]
    total = pkdp.compose([*parts, (parts[0], 50)], DisjointUnits())
    largest = np.max([part.delta(GRID) for part in parts], axis=0)
    assert total.delta(GRID) == pytest.approx(largest, rel=1e-12)
    assert (total.delta(GRID) >= largest).all()


def test_disjoint_units_are_attained():
    # Part 2's people are part 2's alone: whatever they do, the target in part 1 is where she was.
    total = pkdp.compose([thresholded(3, 0.5, unknown_max=4), thresholded(3, 0.4, unknown_max=4)], DisjointUnits())
    people = [independent([[0.5], [0.0]])] * 4 + [independent([[0.0], [0.4]])] * 4
    for epsilon in (0.0, 0.3, 1.0):
        true = worst(people, [Day(k=3)] * 2, ((0, None), (None, None)), epsilon)
        assert true <= total.delta(epsilon) * (1 + 1e-12)
        alone = pkdp.certify(pkdp.Count(k=3), pkdp.AttackerModel(p_max=0.5, unknown_max=4)).delta(epsilon)
        assert total.delta(epsilon) == pytest.approx(alone, rel=1e-12)


def test_a_part_that_is_itself_data_is_no_disjoint_part():
    # 20 people who each register on one of two days: both exact counts together give the target away.
    registering = [once([[0.5], [0.5]])] * 20
    alone = worst([independent([[0.5]])] * 20, [Day()], ((0,), (None,)), 1.0)
    assert alone == pytest.approx(0.0046, abs=5e-5)
    part = pkdp.certify(pkdp.Count(), pkdp.AttackerModel(p_min=0.5, p_max=0.5, unknown=20))
    misled = pkdp.compose([(part, 2)], DisjointUnits())
    assert misled.delta(1.0) == pytest.approx(0.0046, abs=5e-5)
    assert worst(registering, [Day()] * 2, ((0, None), (None, None)), 1.0) == pytest.approx(1.0, abs=1e-12)
    # Nothing in the numbers shows it: the declaration has to say what would be wrong.
    assert "fixed in advance" in DisjointUnits().declares
    assert "does not depend on anybody's data" in DisjointUnits().declares
    assert "new users today" in (DisjointUnits.__doc__ or "")
    assert "OncePerUnit" in (DisjointUnits.__doc__ or "")
    assert DisjointUnits().declares in misled.sentence()


# Rule 3


def test_one_day_is_the_largest_day_and_is_attained():
    parts = [thresholded(3, 0.5, unknown_max=3), thresholded(4, 0.3, unknown_max=3)]
    total = pkdp.compose(parts, OneDayProtected())
    largest = np.max([part.delta(GRID) for part in parts], axis=0)
    assert total.delta(GRID) == pytest.approx(largest, rel=1e-12)
    people = [independent([[0.5], [0.3]])] * 3
    true = worst(people, [Day(k=3), Day(k=4)], ((0, 0), (None, 0)), 0.5)
    assert true == pytest.approx(parts[0].delta(0.5), rel=1e-9)
    assert "in any one of these releases, whatever her other records are" in total.sentence()
    assert "It does not protect what several releases together tell about her." in total.sentence()


def test_given_the_past_is_not_given_the_past_and_the_future():
    # The first of two sticky days is a fair coin given the past, and the second day tells about it.
    part = pkdp.certify(pkdp.Count(), pkdp.AttackerModel(p_min=0.5, p_max=0.5, unknown=12))
    misled = pkdp.compose([(part, 2)], OneDayProtected())
    true = worst([sticky(0.5, 0.8, 2)] * 12, [Day()] * 2, ((0, None), (None, None)), 1.0)
    assert misled.delta(1.0) == pytest.approx(0.0206, abs=1e-4)
    assert true == pytest.approx(0.0424, abs=1e-4)
    # Given both neighbours in time the chances lie in [0.2, 0.8], and the same evidence is enough.
    wide = pkdp.certify(pkdp.Count(), pkdp.AttackerModel(p_min=0.2, p_max=0.8, unknown=12))
    assert pkdp.compose([(wide, 2)], OneDayProtected()).delta(1.0) >= true
    assert "earlier and later" in OneDayProtected().declares


@pytest.mark.parametrize("k", [3, 5, 10])
def test_given_the_past_is_not_enough_with_a_threshold_either(k):
    misled = pkdp.compose([(thresholded(k, 0.5), 2)], OneDayProtected()).delta(1.0)
    honest = pkdp.compose([(thresholded(k, 0.9), 2)], OneDayProtected()).delta(1.0)
    true = max(
        worst([sticky(0.5, 0.9, 2)] * people, [Day(k=k)] * 2, ((0, 0), (None, 0)), 1.0) for people in range(k, k + 8)
    )
    assert misled < true <= honest


def test_a_whole_trajectory_from_single_days_is_group_privacy():
    part = thresholded(12, 0.3)
    total = pkdp.compose([(part, 4)], [OneDayProtected(), BoundedParticipation(times=1)])
    for epsilon in (0.5, 1.0, 3.0):
        half = epsilon / 2
        expected = part.delta(half) * (math.exp(epsilon) - 1) / (math.exp(half) - 1)
        assert total.delta(epsilon) == pytest.approx(min(1.0, expected), rel=1e-6)
        assert total.delta(epsilon) >= min(1.0, expected) * (1 - 1e-12)


def test_one_day_cannot_be_added_to_whole_trajectories():
    one_day = pkdp.compose([(thresholded(9, 0.2), 3)], OneDayProtected())
    from pkdp_pipeline.model.evidence import IndependentGivenHabits

    with pytest.raises(pkdp.NoEvidenceError, match="one day"):
        pkdp.compose([one_day, thresholded(9, 0.2)], IndependentGivenHabits())


# Rule 8


def test_a_year_of_registrations_costs_one_release():
    part = table(10, p_max=0.2)
    for protects in ("presence", "value"):
        part = table(10, protects, p_max=0.2)
        total = pkdp.compose([(part, 365)], OncePerUnit())
        assert total.delta(GRID) == pytest.approx(part.delta(GRID), rel=1e-12)
        assert (total.delta(GRID) >= part.delta(GRID) * (1 - 1e-15)).all()


@pytest.mark.parametrize("epsilon", [0.0, 0.4, 1.0])
def test_presence_once_per_unit_is_attained(epsilon):
    # Two days of one cell; the attackers of theorem A are people who are in the first cell or never there.
    total = pkdp.compose([table(3, p_max=0.5), table(5, p_max=0.5)], OncePerUnit())
    true = max(
        worst([once([[0.5], [0.0]])] * people, [Day(k=3), Day(k=5)], ((0, None), (None, None)), epsilon)
        for people in range(2, 14)
    )
    assert true == pytest.approx(total.delta(epsilon), rel=1e-9)


@pytest.mark.parametrize("epsilon", [0.0, 0.4, 1.0])
def test_which_day_once_per_unit_is_attained_without_absence(epsilon):
    total = pkdp.compose([table(3, "value", p_max_between=0.6), table(5, "value", p_max_between=0.6)], OncePerUnit())
    true = max(
        worst([once([[p], [1 - p]])] * people, [Day(k=3), Day(k=5)], lives, epsilon)
        for people in range(2, 16)
        for p in (0.4, 0.6)
        for lives in permutations([(0, None), (None, 0)])
    )
    assert true == pytest.approx(total.delta(epsilon), rel=1e-9)


def test_the_p_max_of_a_day_is_not_the_p_max_of_the_schedule():
    # Everybody registers on one of two days. "Today or not today" is a coin; "today or never" is sure.
    registering = [once([[0.5], [0.5]])] * 8
    true = worst(registering, [Day(k=3)] * 2, ((0, None), (None, None)), 1.0)
    assert pkdp.compose([(table(3, p_max=0.5), 2)], OncePerUnit()).delta(1.0) < true
    with pytest.raises(pkdp.NotCertifiableError):
        table(3, p_max=1.0)
    # Which of the two days it was is protected all the same.
    honest = pkdp.compose([(table(3, "value", p_max_between=0.5), 2)], OncePerUnit())
    assert honest.delta(1.0) >= worst(registering, [Day(k=3)] * 2, ((0, None), (None, 0)), 1.0)
    assert "absent means in none of them" in OncePerUnit().declares


def test_counts_are_not_parts_of_one_histogram():
    with pytest.raises(pkdp.NoEvidenceError, match="Histogram"):
        pkdp.compose([(thresholded(5, 0.2), 3)], OncePerUnit())
    options = pkdp.certify(pkdp.Histogram(), pkdp.AttackerModel(p_min=0.3, unknown=50), protects="value")
    with pytest.raises(pkdp.NoEvidenceError):
        pkdp.compose([(options, 3)], OncePerUnit())


def test_noise_on_one_histogram_of_many_days():
    # The target moves from a cell with much noise to a cell with little: neither part's own value curve is enough.
    curves = [(0.5, None, None), (1.2, 2, 4)]
    parts = [
        pkdp.certify(
            pkdp.Histogram(k=k, noise=pkdp.GeometricNoise(noise), release_threshold=release),
            pkdp.AttackerModel(),
            protects="value",
        )
        for noise, k, release in curves
    ]
    total = pkdp.compose(parts, OncePerUnit())
    days = [Day(k=k, noise=noise, release=release) for noise, k, release in curves]
    for epsilon in (0.0, 0.6, 1.1, 1.6, 2.2):
        known = [[{(0, None): 1.0}] * a + [{(None, 0): 1.0}] * b for a in range(3) for b in range(4)]
        true = max(worst(people, days, ((0, None), (None, 0)), epsilon) for people in known)
        assert true <= total.worst_case.delta(epsilon) * (1 + 1e-12)
