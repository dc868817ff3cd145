from __future__ import annotations

import pytest

from pkdp_pipeline.errors import ArgumentError, DifferencingError
from pkdp_pipeline.ledger import check_differencing
from pkdp_pipeline.model.context import Facts
from pkdp_pipeline.model.display import Bands, Rounding
from pkdp_pipeline.model.evidence import (
    BoundedDependence,
    BoundedParticipation,
    DisjointUnits,
    IndependentGivenHabits,
    OncePerUnit,
    OneDayProtected,
)
from pkdp_pipeline.model.mechanisms import Count, GeometricNoise, Histogram, Sum

NOISE = GeometricNoise(0.5)
TABLE, NOISED = Histogram(k=50), Histogram(noise=NOISE)
ROUNDED, BANDED = (Histogram(k=50, display=rule) for rule in (Rounding(7), Bands([0, 60])))
SUM = Sum((0, 5), NOISE)
THRESHOLDED = Histogram(k=5, noise=NOISE, release_threshold=20)
HABITS = IndependentGivenHabits()


def standing(label="by carrier", mechanism=TABLE, *, period="2013-01-02", **fields):
    by = ("carrier",) if isinstance(mechanism, Histogram) else None
    return Facts(**{"unit": ("tailnum",), "by": by, **fields}, period=period, label=label, mechanism=mechanism)


def check(new, *others, evidence=None):
    check_differencing(new, others, dataset="flights", evidence=evidence)


def refusal(new, *others, evidence=None):
    with pytest.raises(DifferencingError) as caught:
        check(new, *others, evidence=evidence)
    return str(caught.value)


def test_a_first_release_stands():
    check(standing())


@pytest.mark.parametrize(("new", "old"), [(TABLE, TABLE), (TABLE, NOISED), (NOISED, TABLE), (THRESHOLDED, TABLE)])
def test_one_noiseless_release_of_two_is_refused_with_the_three_ways_out(new, old):
    message = refusal(standing("new view", new), standing("old view", old))
    for words in ("new view", "old view", "flights", "cross-tabulated", "noise", "bounded dependence"):
        assert words in message


@pytest.mark.parametrize(
    ("new", "old", "case", "repair"),
    [
        ({}, {}, "a revision of the same query", "let the first release stand"),
        ({"period": "2013-01-02/2013-01-08"}, {"period": "2013-01-01/2013-01-07"}, "rolling windows", "without over"),
        ({"period": "2013-W01"}, {}, "a week beside its days", "add up what is published"),
        ({"period": "2013"}, {"period": "2013-01-02"}, "running totals", "without overlaps"),
        ({"where": "delay > 5"}, {}, "one has a filter", "the filters' columns"),
        ({}, {"where": "delay > 5"}, "one has a filter", "its cells declared in domain"),
        ({"where": "delay > 5"}, {"where": "delay > 15"}, "filters may overlap", "release.rollup"),
        ({"where": "(delay>5)"}, {"where": "delay > 5"}, "however they are spelled", "release.rollup"),
        ({"where": "c == 'a'"}, {"where": 'c == "a"'}, "predicates are not compared", "release.rollup"),
        ({"opaque": True}, {}, "counts as overlapping everything", "the columns the predicates read"),
        ({"opaque": True, "label": "a"}, {"opaque": True, "label": "b"}, "overlapping everything", "rollup"),
        ({"opaque": True}, {"opaque": True}, "a revision of the same query", "let the first release stand"),
        ({"mechanism": Count(k=9)}, {}, "a total beside its histogram", "derive the total from it"),
        ({"mechanism": SUM}, {"where": "delay > 5"}, "neither is derived from the other", "publish one of them alone"),
        ({"mechanism": Count()}, {}, "a total beside its histogram", "its cells declared in domain"),
        ({"by": ("origin",)}, {}, "counted by other columns", "origin, carrier"),
        ({"mechanism": Histogram(k=20)}, {}, "other thresholds", "publish one of them"),
        ({"mechanism": NOISED}, {}, "other noise", "publish one of them"),
        ({"mechanism": ROUNDED}, {"mechanism": BANDED}, "does not follow", "the finest of several displays first"),
        ({"table": "events"}, {"table": "visits"}, "two tables of one data set", "joins them"),
        ({"unit": ("owner",)}, {}, "different units of one data set", "count by one unit"),
        ({"period": "wave 1"}, {}, "a label without dates", "calendar periods"),
        ({"period": "Wave 1"}, {"period": "wave  1"}, "a revision of the same query", "let the first release stand"),
    ],
)
def test_the_message_names_the_case_and_the_repair(new, old, case, repair):
    message = refusal(standing(**new), standing(**old))
    assert case in message
    assert repair in message
    for evidence in (HABITS, OneDayProtected(), OncePerUnit(), DisjointUnits(), BoundedParticipation(1)):
        assert case in refusal(standing(**new), standing(**old), evidence=evidence)
    check(standing(**new), standing(**old), evidence=BoundedDependence(0.1))


@pytest.mark.parametrize(
    ("mechanism", "listed"), [(TABLE, True), (Histogram(k=20, cells_per_unit=2), False), (Count(k=20), False)]
)
def test_the_repair_names_evidence_by_which_such_releases_add_up(mechanism, listed):
    message = refusal(standing(mechanism=mechanism), standing(mechanism=mechanism, period="2013-06-01"))
    assert ("pkdp.OncePerUnit()" in message) == listed
    assert "pkdp.OneDayProtected()" in message


def test_noised_releases_stand_together():
    check(standing(mechanism=NOISED), *[standing("b", THRESHOLDED, unit=("owner",))] * 3)
    check(standing(mechanism=NOISED, period="2013"), standing(mechanism=NOISED), standing(period="w", mechanism=NOISED))


@pytest.mark.parametrize("exact_first", [True, False])
def test_one_exact_count_may_stand_beside_pure_noise(exact_first):
    exact, noised = (
        standing("n", Count()),
        [standing("b", NOISED), standing("c", Count(noise=NOISE), period="2013-W01")],
    )
    if exact_first:
        check(noised[0], exact)
        check(noised[1], exact, noised[0])
    else:
        check(noised[1], noised[0])
        check(exact, *noised)


@pytest.mark.parametrize(
    ("count", "noised"),
    [
        (Count(k=5), {"mechanism": NOISED}),
        (Count(k_complement=5), {"mechanism": NOISED}),
        (Count(), {"mechanism": THRESHOLDED}),
        (Count(), {"mechanism": NOISED, "unit": ("owner",)}),
        (Count(), {"mechanism": Histogram(k=5, noise=NOISE)}),
    ],
)
@pytest.mark.parametrize("exact_first", [True, False])
def test_the_exception_is_for_an_exact_count_and_pure_noise_about_one_unit(count, noised, exact_first):
    pair = [standing("n", count), standing("noised", **noised)]
    message = refusal(*(pair if exact_first else pair[::-1]))
    assert "a single exact count" in message


def test_a_second_exact_count_is_one_too_many():
    assert "'m'" in refusal(standing("n", Count()), standing("b", NOISED), standing("m", Count(), where="a"))


def test_what_a_period_in_between_connects_counts_as_one():
    week, first, last = (
        standing("week", NOISED, period="2013-01-01/2013-01-07"),
        standing("first", Count(), period="2013-01-01"),
        standing("last", Count(), period="2013-01-07"),
    )
    check(week, first)
    message = refusal(last, week, first, evidence=HABITS)
    assert "'last'" in message
    assert "'first'" in message
    assert "'week' (noised, period 2013-01-01/2013-01-07) connects" in message
    threshold = standing("threshold", THRESHOLDED, period="2013-01-07")
    assert "connects" in refusal(threshold, week, first, evidence=HABITS)
    check(threshold, week)
    check(last, first, evidence=HABITS)


def test_one_bad_neighbour_among_many_is_found():
    assert "'bad'" in refusal(standing(mechanism=NOISED), *[standing("good", NOISED)] * 5, standing("bad"))


@pytest.mark.parametrize(
    ("new", "old"), [(TABLE, TABLE), (TABLE, NOISED), (NOISED, TABLE), (Count(), NOISED), (Count(), Count())]
)
def test_another_day_needs_evidence_where_one_is_noiseless(new, old):
    pair = standing("new", new), standing("old", old, period="2013-01-03")
    message = refusal(*pair)
    for words in (
        "one after the other",
        "crosses k",
        "'new'",
        "'old'",
        "IndependentGivenHabits",
        "noise",
    ):
        assert words in message
    assert ("OncePerUnit" in message) == all(isinstance(mechanism, Histogram) for mechanism in (new, old))
    assert "one after the other" in refusal(*pair, evidence=BoundedParticipation(3))
    for evidence in (
        HABITS,
        OneDayProtected(),
        DisjointUnits(),
        OncePerUnit(),
        BoundedDependence(0.1),
        [BoundedParticipation(3), HABITS],
        [BoundedParticipation(3), OneDayProtected()],
    ):
        check(*pair, evidence=evidence)


def test_noised_releases_of_other_days_need_no_evidence():
    check(standing(mechanism=NOISED), standing(mechanism=THRESHOLDED, period="2013-01-03"))


def test_a_release_beside_an_exact_count_of_another_day_needs_evidence():
    count, noise = standing("n", Count()), standing("b", NOISED, period="2013-01-09")
    assert "one after the other" in refusal(standing("c", NOISED), count, noise)
    check(standing("c", NOISED), count, noise, evidence=HABITS)


def test_different_labels_are_different_periods():
    waves = standing(period="wave 1"), standing(period="wave 2")
    assert "one after the other" in refusal(*waves)
    check(*waves, evidence=OneDayProtected())


def test_malformed_evidence_is_an_argument_error():
    with pytest.raises(ArgumentError, match="evidence"):
        check(standing(), evidence="habits")
