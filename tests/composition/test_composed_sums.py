"""Sums beside other releases about the same people: their pairs multiply, or the largest of them holds."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from pkdp_pipeline import (
    AttackerModel,
    BoundedSensitivity,
    Count,
    DisjointUnits,
    GeometricNoise,
    Histogram,
    NoEvidenceError,
    OncePerUnit,
    SamePeople,
    Sum,
    certify,
    compose,
)
from pkdp_pipeline.ledger.totals import drawn
from pkdp_pipeline.theorems.worst_case import SumCurve

NOISE = GeometricNoise(1.0)
EPSILONS = np.linspace(0.0, 4.1, 30)
VISITS, COUNTS = certify(Sum((0, 5), NOISE)), certify(Histogram(noise=NOISE))


@pytest.mark.parametrize("bounds", [(0, 1), (0, 5), (-40, 7)])
def test_sums_of_the_same_people_are_a_product(bounds):
    total = compose([(certify(Sum(bounds, NOISE)), 4)])
    exact = SumCurve(theorem="sums", noise=1.0, bounds=bounds, cells=4).bracket(EPSILONS)[0]
    certified = total.delta(EPSILONS)
    assert (certified >= exact * (1 - 1e-9)).all()
    np.testing.assert_allclose(certified, exact, rtol=0.02, atol=1e-12)
    assert total.worst_case.parameters == (4.0, 0.0)


def test_a_sum_beside_counts_tells_less_than_a_count_more():
    mixed, counts = compose([VISITS, COUNTS], SamePeople()), compose([COUNTS, COUNTS], SamePeople())
    assert (mixed.delta(EPSILONS) <= counts.delta(EPSILONS) * (1 + 1e-9)).all()
    assert mixed.worst_case.parameters == (2.0, 0.0)
    exact = compose([certify(Count(), AttackerModel(p_min=0.2, p_max=0.8, unknown=100_000)), VISITS], SamePeople())
    # A replaced record changes the sums that it leaves and enters; the target's own record costs as much again.
    assert 4.0 < exact.epsilon(1e-6) < 4.2


@pytest.mark.parametrize("evidence", [DisjointUnits(), OncePerUnit()])
def test_of_people_in_one_part_the_largest_holds(evidence):
    over_found_cells = certify(Sum((0, 5), NOISE, release_threshold=60).of_found_cells())
    total = compose([VISITS, over_found_cells, COUNTS], evidence)
    each = [part.worst_case.delta(EPSILONS) for part in (VISITS, over_found_cells, COUNTS)]
    np.testing.assert_allclose(total.delta(EPSILONS), np.max(each, axis=0), rtol=1e-9)


@pytest.mark.parametrize("cells", [None, 1, 2])
@pytest.mark.parametrize("bounds", [(0, 5), (-5, 5)])
def test_a_move_between_two_sums_changes_both_by_a_presence(bounds, cells):
    single = certify(Sum(bounds, NOISE), protects="value", cells=cells)
    assert compose([single, single, certify(Sum((0, 2), NOISE), protects="value")], OncePerUnit()).epsilon(0.0) == 2.0
    assert compose([(single, 7)], OncePerUnit()).worst_case.parameters == (2.0, 0.0)


def test_a_total_of_sums_says_that_it_does_not_hide_what_is_added():
    for parts in ([VISITS, COUNTS], [compose([VISITS, VISITS]), COUNTS]):
        assert "not protect what she adds, and to which cells, once" in compose(parts, SamePeople()).sentence()
    assert "adds" not in compose([COUNTS, COUNTS], SamePeople()).sentence()


def test_what_a_record_changes_by_one_is_not_said_of_sums():
    with pytest.raises(NoEvidenceError, match="counts and histograms by their noise"):
        compose([VISITS, COUNTS], BoundedSensitivity(2))


def test_the_noise_of_sums_is_counted_as_it_is_drawn():
    tenth = certify(Sum((0, 5), GeometricNoise(0.1), cells_per_unit=2))
    epsilon, delta = drawn([(tenth, 5)])
    assert epsilon <= 1 < Fraction(0.1) * 10
    assert delta == 0
