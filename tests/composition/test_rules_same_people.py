"""Rule 7: another question about the same people, and its one exception."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from oracle.joint import Day, worst
from thorough import one_in, thinned

import pkdp_pipeline as pkdp
from pkdp_pipeline.model.evidence import IndependentGivenHabits, SamePeople

SAME = SamePeople()


def exact(low=0.5, high=0.5, unknown=20):
    return pkdp.certify(pkdp.Count(), pkdp.AttackerModel(p_min=low, p_max=high, unknown=unknown))


def noised(epsilon, count=True, protects="presence", **more):
    kind = pkdp.Count if count else pkdp.Histogram
    return pkdp.certify(kind(noise=pkdp.GeometricNoise(epsilon), **more), pkdp.AttackerModel(), protects=protects)


#: Everybody counted exactly and, as "the other question", counted once more with noise.
TWICE = [{(0, 0): 0.5, (None, None): 0.5}] * 20


def test_a_little_noise_on_the_others_undoes_an_exact_count():
    # S + a exactly, beside a noised S that never depended on the target.
    alone = worst(TWICE, [Day()] * 2, ((0, None), (None, None)), 1.0)
    assert alone == 1.0  # The same count twice, once with the target: the difference is her.
    days = [Day(), Day(noise=2.0, others_only=True)]
    beside = worst(TWICE, days, ((0, None), (None, None)), 1.0)
    assert beside == pytest.approx(0.558, abs=5e-4)
    assert exact().delta(1.0) == pytest.approx(0.0046, abs=5e-5)
    # The noised release is perfectly private on its own, and no rule adds the two up for nothing.
    with pytest.raises(pkdp.NoEvidenceError):
        pkdp.compose([exact(), noised(2.0)])
    assert pkdp.compose([exact(), noised(2.0)], SAME).delta(1.0) >= beside


@pytest.mark.parametrize(
    "parts",
    [
        [exact(), exact(0.4, 0.5)],
        [(exact(), 2)],
        [exact(), (noised(0.1), 2), exact(0.3, 0.5)],
        [pkdp.certify(pkdp.Count(k=5), pkdp.AttackerModel(p_max=0.3)), noised(0.1)],
        [pkdp.certify(pkdp.Count(k_complement=5), pkdp.AttackerModel(p_min=0.3)), noised(0.1)],
        [pkdp.certify(pkdp.Histogram(k=5), pkdp.AttackerModel(p_max=0.3)), noised(0.1)],
        [exact(), noised(0.1, k=3, release_threshold=9)],
        [exact(), pkdp.certify(pkdp.Count(k=3, noise=pkdp.GeometricNoise(0.1)), pkdp.AttackerModel(p_max=0.2))],
        [exact(), pkdp.compose([noised(0.1), noised(0.1)])],
    ],
)
def test_all_else_is_refused_with_three_ways_out(parts):
    with pytest.raises(pkdp.NoEvidenceError) as refused:
        pkdp.compose(parts, SAME)
    assert all(way in str(refused.value) for way in ("cross-tabulated", "noise on all", "BoundedDependence"))


@thinned(2)
@pytest.mark.parametrize(
    ("beside", "cost"),
    one_in(
        2,
        [
            ([noised(0.05)], 0.1),
            ([(noised(0.05), 3)], 0.3),
            ([noised(0.05, count=False, protects="value")], 0.2),
            ([noised(0.05, count=False)], 0.2),
            ([noised(0.05), noised(0.1, release_threshold=4)], 0.3),
        ],
    ),
)
def test_the_exception_costs_twice_a_replaced_record(beside, cost):
    part = exact(0.3, 0.7, 100)
    total = pkdp.compose([part, *beside], SAME)
    for epsilon in (cost + 0.01, cost + 0.1, cost + 0.3):
        assert total.delta(epsilon) == pytest.approx(part.delta(epsilon - cost), rel=1e-6)
        assert total.delta(epsilon) >= part.delta(epsilon - cost) * (1 - 1e-12)
    assert total.worst_case.delta(5.0) == 1.0
    # Below the cost: the count's profile on the other side of 0, never below the value at the cost.
    below = total.delta(np.linspace(0.0, cost, 5))
    for epsilon, value in zip(np.linspace(0.0, cost, 5).tolist()[:-1], below.tolist(), strict=False):
        other = 1.0 - math.exp(epsilon - cost) * (1.0 - part.delta(cost - epsilon))
        assert other * (1 - 1e-9) <= value <= other * (1 + 1e-6)
    assert (np.diff(below) <= 0).all()
    assert below[-1] >= part.delta(0.0) * (1 - 1e-6)


@pytest.mark.parametrize(("chance", "people"), [(0.5, 10), (0.3, 12)])
def test_a_histogram_beside_a_count_costs_its_noise_four_times(chance, people):
    # Counted people sit in the first cell, the others in the second; the target just the other way round.
    noise = 0.6
    crowd = [{(0, 0): chance, (None, 1): 1 - chance}] * people
    days, lives = [Day(), Day(cells=2, noise=noise)], ((0, 1), (None, 0))
    part = exact(chance, chance, people)
    total = pkdp.compose([part, noised(noise, count=False)], SAME)
    for epsilon in (0.6, 1.2, 1.8, 2.4, 3.0, 3.6):
        true = worst(crowd, days, lives, epsilon)
        assert true <= total.delta(epsilon) * (1 + 1e-12)
    # Charging the histogram as if a replaced record changed one cell would be far too little.
    assert worst(crowd, days, lives, 2.4) > 2 * part.delta(2.4 - 2 * noise)


def test_noise_on_all_of_them_is_the_second_way_out():
    total = pkdp.compose([noised(0.5), noised(0.2), noised(0.3, count=False)], SAME)
    assert total.worst_case.parameters == pytest.approx((1.0, 0.0))
    assert not total.has_partial_knowledge


def test_overlapping_windows_are_the_same_people():
    # A two-day count published on two days in a row, then the middle day's exact count: all is told.
    person = {}
    for a, b, c in product((False, True), repeat=3):
        trajectory = tuple(0 if there else None for there in (a or b, b or c, b))
        person[trajectory] = person.get(trajectory, 0.0) + 0.125
    # Independence of the windows is false, and the product it would give is exceeded.
    windows = [exact(0.75, 0.75), exact(0.75, 0.75), exact(0.5, 0.5)]
    misled = pkdp.compose(windows, IndependentGivenHabits()).delta(0.5)
    true = worst([person] * 20, [Day()] * 3, ((0, None, None), (None, 0, None)), 0.5)
    assert true == pytest.approx(0.2011, abs=5e-5)
    assert misled < true
    with pytest.raises(pkdp.NoEvidenceError):
        pkdp.compose(windows, SAME)


def test_one_part_is_itself():
    assert pkdp.compose([exact()], SAME).delta(1.0) == exact().delta(1.0)
    assert math.isinf(pkdp.compose([exact()], SAME).worst_case.epsilon(1e-6))
