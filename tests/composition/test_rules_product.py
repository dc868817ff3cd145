"""Rules 2 and 5: days that are independent given habits, and the few days in which lives can differ."""

from __future__ import annotations

import math
from itertools import combinations, pairwise, product

import numpy as np
import pytest
from oracle.joint import Day, capped, independent, joint_losses, mixed, once, sticky, worst
from oracle.laws import coin_sum
from oracle.pairs import capped_pair, divergences, product_divergence, reversed_pair, spread_pair

import pkdp_pipeline as pkdp
from pkdp_pipeline.model.evidence import BoundedParticipation, IndependentGivenHabits

HABITS = IndependentGivenHabits()


def thresholded(k, p, **more):
    return pkdp.certify(pkdp.Count(k=k), pkdp.AttackerModel(p_max=p, **more))


def exact(low, high, unknown):
    return pkdp.certify(pkdp.Count(), pkdp.AttackerModel(p_min=low, p_max=high, unknown=unknown))


def table(k, protects="value", **attacker):
    return pkdp.certify(pkdp.Histogram(k=k), pkdp.AttackerModel(**attacker), protects=protects)


# Rule 2


@pytest.mark.parametrize(
    "days",
    [
        [(3, 0.4, 6), (3, 0.4, 6)],
        [(3, 0.4, 6), (2, 0.7, 4)],
        [(2, 0.5, 3), (3, 0.3, 5), (4, 0.8, 5)],
        [(5, 0.9, 4), (2, 0.1, 9), (2, 0.1, 9)],
    ],
)
@pytest.mark.parametrize("epsilon", [0.0, 0.07, 0.5, 1.0, 2.5])
def test_a_total_of_thresholds_is_the_worst_product_of_waiting_times(days, epsilon):
    parts = [thresholded(k, p, unknown_max=most) for k, p, most in days]
    certified = pkdp.compose(parts, HABITS).delta(epsilon)
    pairs = [capped_pair(k, p, most) for k, p, most in days]
    patterns = product((False, True), repeat=len(days))
    true = max(
        product_divergence([reversed_pair(pair) if back else pair for pair, back in zip(pairs, way, strict=True)], g)
        for way in patterns
        for g in [math.exp(epsilon)]
    )
    assert true * (1 - 1e-12) <= certified
    # Where the directions differ from day to day the symmetric envelope may be used; equal days are exact.
    assert certified <= true * (1.01 if len(set(days)) == 1 else 1.06)


@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.0, 3.0])
@pytest.mark.parametrize("days", [[(2, 0.6), (2, 0.6)], [(3, 0.5), (2, 0.3)], [(2, 0.4), (3, 0.8), (4, 0.9)]])
def test_a_total_of_thresholds_is_attained(days, epsilon):
    # With just as many people as it takes, whether the count is published is all there is to see.
    parts = [thresholded(k, p, unknown_max=k - 1) for k, p in days]
    certified = pkdp.compose(parts, HABITS).delta(epsilon)
    most = max(k for k, _ in days) - 1
    people = [independent([[p if j < k - 1 else 0.0] for k, p in days]) for j in range(most)]
    lives = product((0, None), repeat=len(days))
    true = max(
        worst(people, [Day(k=k) for k, _ in days], (life, tuple(0 if x is None else None for x in life)), epsilon)
        for life in lives
    )
    assert true * (1 - 1e-12) <= certified <= true * 1.06


@pytest.mark.parametrize(("people", "days"), [(3, 2), (6, 2), (4, 3), (12, 2)])
@pytest.mark.parametrize("epsilon", [0.0, 0.25, 0.5, 1.5])
def test_a_total_of_exact_counts_of_fair_coins_is_exact(people, days, epsilon):
    certified = pkdp.compose([(exact(0.5, 0.5, people), days)], HABITS).delta(epsilon)
    crowd = [independent([[0.5]] * days)] * people
    true = max(
        worst(crowd, [Day()] * days, ((0,) * days, (None,) * days), epsilon),
        worst(crowd, [Day()] * days, ((0,) * (days - 1) + (None,), (None,) * (days - 1) + (0,)), epsilon),
    )
    assert true * (1 - 1e-12) <= certified <= true * 1.03 + 1e-6


def test_mixed_directions_are_covered():
    growth, first, second = math.exp(0.03), spread_pair(10, 0.895, 60), spread_pair(400, 0.5, 1_400)
    same = divergences([first, second], growth)
    turned = divergences([first, second[::-1]], growth)
    assert same == pytest.approx(0.38289, abs=5e-6)
    assert turned == pytest.approx(0.38300, abs=5e-6)
    assert turned <= pkdp.compose([thresholded(10, 0.895), thresholded(400, 0.5)], HABITS).delta(0.03) <= 1.02 * turned


def test_the_left_direction_alone_is_far_below():
    right, left = spread_pair(20, 0.1, 8_000), spread_pair(20, 0.1, 8_000)[::-1]
    assert divergences([right], math.e) > 100 * divergences([left], math.e)
    assert pkdp.compose([(thresholded(20, 0.1), 2)], HABITS).delta(1.0) >= thresholded(20, 0.1).delta(1.0)


def test_one_day_costs_one_day_and_more_days_cost_more():
    part = thresholded(12, 0.3)
    grid = np.array([0.0, 0.2, 1.0, 3.0])
    totals = [pkdp.compose([(part, days)], HABITS).delta(grid) for days in (1, 2, 5, 20)]
    assert totals[0] == pytest.approx(part.delta(grid), rel=2e-3)
    assert all((fewer <= more).all() for fewer, more in pairwise(totals))
    split = pkdp.compose([part] * 5, HABITS)
    assert split.delta(grid) == pytest.approx(totals[2], rel=1e-12)


def test_a_value_total_covers_presence_on_any_day_and_cells():
    # Two histograms: the target moves on one day, and comes or goes on the other.
    parts = [table(3, p_max=0.5), table(2, p_max=0.4)]
    total = pkdp.compose(parts, HABITS)
    presence = pkdp.compose([table(3, "presence", p_max=0.5), table(2, "presence", p_max=0.4)], HABITS)
    odds = [0.5 / 0.5, 0.4 / 0.6]
    chances = [[o / (1 + 2 * o)] * 2 for o in odds]
    days = [Day(cells=2, k=3), Day(cells=2, k=2)]
    for epsilon in (0.0, 0.4, 1.0):
        for first, second in product([(0, 1), (0, None), (None, 1)], repeat=2):
            lives = ((first[0], second[0]), (first[1], second[1]))
            assert worst([independent(chances)] * 3, days, lives, epsilon) <= total.delta(epsilon) * (1 + 1e-12)
        assert presence.delta(epsilon) <= total.delta(epsilon) * (1 + 1e-6)


def test_what_a_total_protects_is_said():
    between = pkdp.compose([(table(5, p_max_between=0.6), 3)], HABITS)
    assert "does not protect in which releases she is included" in between.sentence()
    presence = pkdp.compose([(table(5, "presence", p_max=0.3), 3)], HABITS)
    assert "does not protect which cell" in presence.sentence()
    assert pkdp.compose([table(5, p_max=0.3), table(5, "presence", p_max=0.3)], HABITS).protects == "presence"
    with pytest.raises(pkdp.NoEvidenceError):
        # Theorem C says nothing about presence.
        pkdp.compose([table(5, p_max_between=0.6), table(5, "presence", p_max=0.3)], HABITS)


def test_drawn_habits_are_no_more_than_known_ones():
    # A habit drawn once makes a person's days dependent; the bounds hold given the habit, and that is enough.
    people = [mixed([(0.5, independent([[0.3]] * 2)), (0.5, independent([[0.05]] * 2))])] * 5
    total = pkdp.compose([(thresholded(3, 0.3), 2)], HABITS)
    for epsilon in (0.0, 0.5, 1.5):
        for life in ((0, 0), (0, None)):
            other = tuple(0 if x is None else None for x in life)
            assert worst(people, [Day(k=3)] * 2, (life, other), epsilon) <= total.delta(epsilon)


def test_the_trap_of_bounds_given_the_past():
    # Twelve people toss a coin and repeat it with 0.9; the target is there on one of the two days.
    true = worst([sticky(0.5, 0.9, 2)] * 12, [Day()] * 2, ((0, None), (None, 0)), 0.5)
    assert true == pytest.approx(0.578, abs=5e-4)
    given_past = pkdp.compose([(exact(0.1, 0.9, 12), 2)], HABITS).delta(0.5)
    marginal = pkdp.compose([(exact(0.5, 0.5, 12), 2)], HABITS).delta(0.5)
    laws = [np.array(coin_sum([0.1] * (12 - j) + [0.9] * j)) for j in range(13)]
    counts = [(np.append(0.0, law), np.append(law, 0.0)) for law in laws]
    promised = max(divergences([a, b[::d]], math.exp(0.5)) for a in counts for b in counts for d in (1, -1))
    assert promised == pytest.approx(0.495, abs=5e-4)
    assert promised <= given_past <= 1.1 * promised
    assert marginal == pytest.approx(0.166, abs=0.002)
    assert marginal < given_past < true
    # The declaration is about habits, and says that the past is not enough.
    assert "Given everybody's habits" in HABITS.declares
    assert "given the past" in " ".join((IndependentGivenHabits.__doc__ or "").split())


# Rule 5


@pytest.mark.parametrize("times", [1, 2])
def test_participation_covers_every_choice_of_days(times):
    days = [(2, 0.5, 3), (3, 0.6, 4), (2, 0.2, 4)]
    pairs = [capped_pair(*day) for day in days]
    parts = [thresholded(k, p, unknown_max=most) for k, p, most in days]
    total = pkdp.compose(parts, [HABITS, BoundedParticipation(times=times)])
    for epsilon in (0.0, 0.3, 1.0, 2.0):
        true = 0.0
        for size in range(times + 1):
            for mine in combinations(range(3), size):
                for other_size in range(times + 1):
                    for hers in combinations(range(3), other_size):
                        shown_pairs = [pairs[t] for t in mine if t not in hers]
                        shown_pairs += [reversed_pair(pairs[t]) for t in hers if t not in mine]
                        true = max(true, product_divergence(shown_pairs, math.exp(epsilon)))
        assert true <= total.delta(epsilon) * (1 + 1e-12)
    everything = pkdp.compose(parts, HABITS)
    if times == 2:
        assert total.delta(1.0) >= everything.delta(1.0) * 0.9


@pytest.mark.parametrize("times", [1, 2, 3])
def test_equal_days_with_bounded_participation_are_exact(times):
    pair = capped_pair(3, 0.5, 5)
    total = pkdp.compose([(thresholded(3, 0.5, unknown_max=5), 4)], [HABITS, BoundedParticipation(times=times)])
    for epsilon in (0.0, 0.4, 1.2):
        true = max(
            product_divergence([pair] * mine + [reversed_pair(pair)] * hers, math.exp(epsilon))
            for mine in range(times + 1)
            for hers in range(min(times, 4 - mine) + 1)
        )
        assert true * (1 - 1e-12) <= total.delta(epsilon) <= true * 1.02


def test_what_capping_does_to_habits():
    # Everybody on exactly one of two days, k = 5: bounded participation holds, and the days are not independent.
    people = [once([[0.5], [0.5]])] * 20
    present, absent = joint_losses(people, [Day(k=5)] * 2, ((0, None), (None, None)), 1.0, math.exp)
    assert present == pytest.approx(0.9952, abs=5e-5)
    assert absent == pytest.approx(0.9974, abs=5e-5)
    part = thresholded(5, 0.5)
    assert part.delta(1.0) == pytest.approx(0.103, abs=5e-4)
    misled = pkdp.compose([(part, 2)], [HABITS, BoundedParticipation(times=1)])
    assert misled.delta(1.0) < 0.2 < present
    assert "after" in (BoundedParticipation.__doc__ or "")
    assert "capping" in (BoundedParticipation.__doc__ or "")


def test_a_cap_that_keeps_the_first_days_links_them():
    free = independent([[0.5]] * 2)
    kept = capped(free, 1)
    assert kept == {(0, None): 0.5, (None, 0): 0.25, (None, None): 0.25}
    # What one day tells, at the chances that are left, is not all that is told about one day of the target.
    true = worst([kept] * 10, [Day()] * 2, ((0, None), (None, None)), 0.5)
    assert true > 1.2 * exact(0.5, 0.5, 10).delta(0.5)
    assert true > exact(0.25, 0.25, 10).delta(0.5)


def test_participation_alone_gives_noiseless_parts_nothing():
    with pytest.raises(pkdp.NoEvidenceError, match="IndependentGivenHabits"):
        pkdp.compose([(thresholded(9, 0.2), 3)], BoundedParticipation(times=1))
