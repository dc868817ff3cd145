"""Rule 5 by periods: releases that are, or may be, about one period count together, at their joint cost."""

from __future__ import annotations

import itertools
import math

import pytest
from oracle.joint import Day, worst
from thorough import one_in, thinned

import pkdp_pipeline as pkdp
from pkdp_pipeline.model.context import Context
from pkdp_pipeline.model.evidence import BoundedParticipation, IndependentGivenHabits, OneDayProtected

ONCE = BoundedParticipation(times=1)
NOISES = (0.3, 0.5)


def noised(epsilon, *, histogram=False, attacker=None):
    kind = pkdp.Histogram if histogram else pkdp.Count
    return pkdp.certify(kind(noise=pkdp.GeometricNoise(epsilon)), attacker or pkdp.AttackerModel())


def on(part, *periods):
    return [part.in_context(Context(period=period)) for period in periods]


def true_delta(epsilon, days=3):
    """Return the true δ of a count and a histogram with noise on each of some days, for everybody on one at most."""
    releases = [Day(noise=noise) for _ in range(days) for noise in NOISES]
    lives = [tuple(0 if index // len(NOISES) == day else None for index in range(len(releases))) for day in range(days)]
    lives.append((None,) * len(releases))
    return max(worst([], releases, pair, epsilon) for pair in itertools.permutations(lives, 2))


@thinned(2)
@pytest.mark.parametrize("epsilon", one_in(2, [0.0, 0.5, 1.0, 1.5]))
def test_a_daily_count_beside_a_daily_histogram_costs_both(epsilon):
    parts = [(noised(NOISES[0]), 3), (noised(NOISES[1], histogram=True), 3)]
    dated = [
        release
        for noise, histogram in zip(NOISES, (False, True), strict=True)
        for release in on(noised(noise, histogram=histogram), "2021-03-01", "2021-03-02", "2021-03-03")
    ]
    true = true_delta(epsilon)
    assert true > 0.0
    for total in (pkdp.compose(parts, ONCE), pkdp.compose(dated, ONCE)):
        assert total.worst_case.parameters == (pytest.approx(2 * sum(NOISES)), 0.0)
        assert true * (1 - 1e-12) <= total.delta(epsilon)
    joint = pkdp.compose([noised(NOISES[0]), noised(NOISES[1], histogram=True)])
    assert true * (1 - 1e-12) <= pkdp.compose([(joint, 3)], ONCE).delta(epsilon)


def test_what_is_known_about_periods_is_used():
    cheap, dear = noised(0.1), noised(0.5)
    days = [*on(cheap, "2021-03-01", "2021-03-02", "2021-03-03"), *on(dear, "2021-03-01", "2021-03-04")]
    assert pkdp.compose(days, ONCE).worst_case.parameters[0] == pytest.approx(1.1)
    # Different parts that name no period may be about the same.
    assert pkdp.compose([(cheap, 3), (dear, 2)], ONCE).worst_case.parameters[0] == pytest.approx(1.2)
    assert pkdp.compose([(cheap, 3), *on(dear, "2021-03-01", "2021-03-04")], ONCE).worst_case.parameters[
        0
    ] == pytest.approx(1.2)
    # Totals are about periods of their own, and it is said so.
    totals = pkdp.compose([(pkdp.compose([cheap]), 3), (pkdp.compose([dear]), 2)], ONCE)
    assert totals.worst_case.parameters[0] == pytest.approx(1.0)
    assert any("about different periods" in text for text in totals.assumptions)
    assert not any("about different periods" in text for text in pkdp.compose(days, ONCE).assumptions)
    # A total of some days meets the days it is about.
    week = pkdp.compose(on(dear, "2021-03-01", "2021-03-02"))
    with_days = pkdp.compose([week, *on(cheap, "2021-03-02", "2021-03-03")], ONCE)
    assert with_days.worst_case.parameters[0] == pytest.approx(1.2)


@pytest.mark.parametrize("other", ["2021-03", "2021-03-01/2021-03-07", "wave 1"])
def test_periods_that_may_overlap_are_one(other):
    days = on(noised(0.1), "2021-03-01", "2021-03-02", "2021-03-03", other)
    assert pkdp.compose(days, ONCE).worst_case.parameters[0] == pytest.approx(0.4)
    months = on(noised(0.1), "2021-01", "2021-02", "2021-03")
    assert pkdp.compose(months, ONCE).worst_case.parameters[0] == pytest.approx(0.2)


def test_the_same_release_twice_about_one_period_counts_twice():
    (part,) = on(noised(0.1), "2021-03-01")
    assert pkdp.compose([(part, 2)], ONCE).worst_case.parameters[0] == pytest.approx(0.2)


def test_few_periods_never_cost_more_than_all_releases():
    parts = [(noised(0.01), 60), (noised(1.0), 2)]
    days = [
        *on(noised(0.01), *(f"2021-{m:02d}-{d:02d}" for m in (1, 2) for d in range(1, 29))),
        *on(noised(1.0), "2021-03-01"),
    ]
    for listed in (parts, days):
        few, everything = pkdp.compose(listed, BoundedParticipation(times=40)), pkdp.compose(listed)
        for delta in (0.0, 1e-6, 1e-2):
            assert few.worst_case.epsilon(delta) <= everything.worst_case.epsilon(delta) * (1 + 1e-9)


def test_habits_with_a_known_common_period_count_every_release_of_it():
    attacker = pkdp.AttackerModel(p_max=0.3)
    count, table = pkdp.certify(pkdp.Count(k=20), attacker), pkdp.certify(pkdp.Histogram(k=30), attacker)
    days = ("2021-03-01", "2021-03-02", "2021-03-03")
    both = [*on(count, *days), *on(table, *days)]
    habits = [IndependentGivenHabits(), ONCE]
    joint = pkdp.compose(both, habits)
    apart = pkdp.compose([(count, 3), (table, 3)], habits)
    assert joint.delta(0.5) > apart.delta(0.5)
    one_day = [OneDayProtected(), ONCE]
    assert pkdp.compose(both, one_day).delta(2.0) >= pkdp.compose([(count, 3), (table, 3)], one_day).delta(2.0)


@pytest.mark.parametrize("rule", [IndependentGivenHabits(), OneDayProtected()])
def test_what_names_no_period_may_be_beside_noise_that_names_one(rule):
    noise, count = noised(0.5), pkdp.certify(pkdp.Count(k=50), pkdp.AttackerModel(p_max=0.5))
    days = [f"2021-03-{day:02d}" for day in range(1, 11)]
    for listed in ([*on(noise, *days), (count, 10)], [(noise, 10), *on(count, *days)]):
        total = pkdp.compose(listed, [rule, ONCE])
        assert total.delta(2.0) >= pkdp.compose([*on(noise, *days), *on(count, *days)], [rule, ONCE]).delta(2.0)


def test_a_single_release_is_what_it_is():
    part = pkdp.certify(pkdp.Histogram(k=20), pkdp.AttackerModel(p_max=0.1))
    total = pkdp.compose([part], BoundedParticipation(times=3))
    assert (total.rule, total.delta(1.0)) == ("single", part.delta(1.0))
    assert total.sentence() == part.sentence()
    with pytest.raises(pkdp.NoEvidenceError, match="bounded participation alone"):
        pkdp.compose([(part, 2)], BoundedParticipation(times=3))
    assert math.isinf(total.worst_case.epsilon(1e-6))


def test_totals_by_periods_are_read_back():
    days = [*on(noised(0.1), "2021-03-01", "2021-03-02"), *on(noised(0.5), "2021-03-01")]
    total = pkdp.compose(days, ONCE)
    again = pkdp.Certificate.from_json(total.to_json())
    assert again == total
    assert again.verify()
