"""Theorem E: a threshold, behind noise or not, against a box: at least so many people unknown, any number more."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import flint
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from oracle.attacks import search
from oracle.laws import BITS, coin_sum, exact_exp, lower_end
from oracle.releases import count_losses, larger_loss
from thorough import ALL, CLOSEST, examples, few, spread, thinned

import pkdp_pipeline as pkdp
from pkdp_pipeline.theorems.boxed_threshold import BoxedThreshold
from pkdp_pipeline.theorems.counting import Counting
from pkdp_pipeline.theorems.theorems import THEOREMS, bounds_of
from pkdp_pipeline.theorems.thresholding import Thresholding
from pkdp_pipeline.theorems.tilted_inversion import MAX_PEOPLE, TwoCoinTails

SLACK = 1.0081
EPSILONS = np.array([0.0, 0.05, 0.3, 1.0, 2.0, 5.0, 40.0])


def bound_of(
    k: int, low: float, high: float, unknown: int, cap: int | None = None, noise: float | None = None
) -> BoxedThreshold:
    return BoxedThreshold(
        theorem="thresholding_in_box", k=k, p_min=low, p_max=high, unknown=unknown, cap=cap, noise=noise
    )


def truth(
    k: int, others: int, low: float, likely: int, high: float, epsilon: float, noise: float | None = None
) -> Fraction:
    """Return the larger divergence of an attacker with so many people at either end, never above it."""
    threshold = {"k": k} if noise is None else {"release": k, "noise": noise}
    return larger_loss([(others, low), (likely, high)], epsilon, **threshold)


def worst(k: int, box: tuple[float, float], numbers: range, epsilon: float, noise: float | None = None) -> Fraction:
    """Return the largest divergence at all vertices with so many people."""
    low, high = box
    at_high = range(1) if low == high else None
    return max(
        truth(k, people - j, low, j, high, epsilon, noise) for people in numbers for j in at_high or range(people + 1)
    )


def box_of(**more: Any) -> pkdp.AttackerModel:
    return pkdp.AttackerModel(p_min=0.2, p_max=0.6, unknown=40, **more)


@examples(quick=8, full=400)
def test_no_attacker_exceeds_the_certificate_of_a_threshold_in_a_box(examples: int) -> None:
    attackers, worst = search("boxed", examples=examples, batch=10)
    assert attackers >= examples * 10 * 45 // 100
    assert worst > CLOSEST[examples >= 250]


def test_what_two_theorems_apart_left_open_is_certified() -> None:
    few_people = pkdp.certify(pkdp.Count(k=20), box_of())
    assert few_people.epsilon(1e-6) == pytest.approx(1.9204, abs=2e-4)
    attained, certified = few_people.delta_bounds(few_people.epsilon(1e-6))
    assert certified <= 1e-6 <= SLACK * attained
    attacker = pkdp.AttackerModel(p_min=0.1, p_max=0.3, unknown=300)
    many = pkdp.certify(pkdp.Count(k=50), attacker)
    assert many.epsilon(1e-6) == pytest.approx(0.6676, abs=2e-4)
    alone = pkdp.certify(pkdp.Count(k=50), pkdp.AttackerModel(p_max=0.3)), pkdp.certify(pkdp.Count(), attacker)
    assert all(certificate.epsilon(1e-6) > 0.85 for certificate in alone)


SHAPES = st.tuples(
    st.integers(2, 8),
    st.sampled_from([0.02, 0.1, 0.3, 0.5, 0.9]),
    st.sampled_from([0.0, 0.3, 1.0]),
    st.integers(1, 9),
).map(lambda drawn: (drawn[0], drawn[1], drawn[1] + (0.97 - drawn[1]) * drawn[2], drawn[3]))


NOISES = st.none() | st.sampled_from([0.1, 0.7, 3.0])
SHARES = st.sampled_from([1e-6, 0.1, 0.5, 0.9])


@settings(max_examples=few(60, 8), deadline=None)
@given(SHAPES, st.sampled_from([0.0, 0.05, 0.3, 1.0, 3.0]))
def test_no_number_of_people_tells_more_and_the_worst_attains(shape: Any, epsilon: float) -> None:
    k, low, high, unknown = shape
    bound = bound_of(*shape)
    attained, certified = (float(side[0]) for side in bound.bracket(np.array([epsilon])))
    assert worst(k, (low, high), range(unknown, unknown + 9), epsilon) <= Fraction(certified)
    assert certified <= SLACK * attained + 1e-250
    likely, others = bound.worst_numbers(epsilon)
    assert likely + others >= unknown
    if likely + others <= 150:
        reached = truth(k, others, low, likely, high, epsilon)
        assert Fraction(attained) <= reached
        assert float(reached) <= attained * (1.0 + 1e-7) + 1e-250


@pytest.mark.parametrize("shape", [(3, 0.1, 0.3, 60), (4, 0.1, 0.2, 50), (3, 0.05, 0.6, 40)])
def test_of_many_people_whoever_is_missing_tells_more(shape: Any) -> None:
    k, low, high, unknown = shape
    attained, certified = (float(side[0]) for side in bound_of(*shape).bracket(np.array([0.5])))
    exact = worst(k, (low, high), range(unknown, unknown + 1), 0.5)
    # The target absent looks likelier: an attacker who waits for many people to be counted learns less.
    with flint.ctx.workprec(BITS):
        right, _ = count_losses([flint.arb(low)] * unknown, 0, 0.5, exact_exp, k=k)
        assert float(lower_end(flint.arb(right))) < 0.9 * float(exact)
    assert Fraction(attained) <= exact <= Fraction(certified)
    assert certified <= SLACK * float(exact)


@settings(max_examples=few(40), deadline=None)
@given(SHAPES, st.sampled_from([0.0, 0.3, 1.0, 3.0]), st.integers(0, 5))
@example((8, 0.05, 0.55, 8), 2.0, 0)
@example((7, 0.05, 0.55, 8), 1.0, 0)
@example((6, 0.05, 0.55, 11), 0.6, 0)
def test_with_at_most_so_many_people_it_is_exact_beside_theorem_a(shape: Any, epsilon: float, more: int) -> None:
    k, low, high, unknown = shape
    attacker = pkdp.AttackerModel(p_min=low, p_max=high, unknown=unknown, unknown_max=unknown + more)
    certified = min(
        float(applied.bound.certified(np.array([epsilon]))[0])
        for applied in bounds_of(pkdp.Count(k=k), attacker, "presence").partial
    )
    attained, _ = bound_of(*shape, cap=unknown + more).bracket(np.array([epsilon]))
    exact = worst(k, (low, high), range(unknown, unknown + more + 1), epsilon)
    assert Fraction(float(attained[0])) <= exact <= Fraction(certified)
    assert certified <= 1.01 * float(exact) + 1e-250


@pytest.mark.slow
@settings(max_examples=few(40, 4), deadline=None)
@given(SHAPES, st.integers(1, 4))
def test_more_knowledge_is_never_certified_less(shape: Any, more: int) -> None:
    k, low, high, unknown = shape
    certified = bound_of(*shape).certified(EPSILONS)
    weaker = [
        bound_of(k + more, low, high, unknown),
        bound_of(k, low, high, unknown + more),
        bound_of(k, low + 0.5 * (high - low), high, unknown),
        bound_of(k, low, high - 0.5 * (high - low), unknown),
        bound_of(*shape, cap=unknown + more),
    ]
    for bound in weaker:
        assert np.all(bound.certified(EPSILONS) <= SLACK * certified + 1e-280), bound
    assert np.all(np.diff(certified) <= (SLACK - 1.0) * certified[:-1])
    without = Counting(theorem="counting", unknown=unknown, p_min=low, p_max=high).certified(EPSILONS)
    alone = Thresholding(theorem="thresholding", k=k, p=high).certified(EPSILONS)
    assert np.all(certified <= SLACK * np.minimum(without, alone) + 1e-280)


@pytest.mark.slow
@settings(max_examples=few(60, 3), deadline=None)
@given(SHAPES, st.sampled_from([0.1, 0.7, 3.0]), SHARES, st.none() | st.integers(0, 4))
@example((3, 0.3, 0.97, 8), 3.0, 0.9, None)
@example((5, 0.02, 0.305, 5), 3.0, 0.001, None)
def test_behind_noise_a_release_threshold_is_as_good_as_more_people(
    shape: Any, noise: float, share: float, more: int | None
) -> None:
    k, low, high, unknown = shape
    epsilon, cap = share * noise, None if more is None else unknown + more
    bound = bound_of(*shape, cap=cap, noise=noise)
    attained, certified = (float(side[0]) for side in bound.bracket(np.array([epsilon])))
    most = unknown + 7 if cap is None else cap
    assert worst(k, (low, high), range(unknown, most + 1), epsilon, noise) <= Fraction(certified)
    without = Counting(theorem="counting", unknown=unknown, p_min=low, p_max=high, noise=noise)
    assert certified <= SLACK * float(without.certified(np.array([epsilon]))[0])
    if cap is None:
        assert certified <= SLACK * attained
        likely, others = bound.worst_numbers(epsilon)
        if likely + others <= 60:
            assert Fraction(attained) <= truth(k, others, low, likely, high, epsilon, noise) <= Fraction(certified)
    assert bound.bracket(np.array([noise]))[1][0] == 0.0


@thinned(3)
@pytest.mark.parametrize(
    ("release", "known", "influence"), spread(4, [0, 1, 2, 9, 12], [0, 3, 9], ["active", "passive"])
)
def test_a_release_threshold_of_at_most_1_forbids_no_cutoff_and_known_people_take_it_down(
    release: int, known: int, influence: str
) -> None:
    mechanism = pkdp.Count(noise=pkdp.GeometricNoise(0.7), release_threshold=release)
    certificate = pkdp.certify(mechanism, replace(box_of(), unknown=16, known=known, influence=influence))
    binds = release - known > 1
    assert ("thresholding_in_box" in certificate.theorems) == binds
    epsilons = np.array([0.0, 1e-3, 0.2, 0.6])
    attained, certified = certificate.delta_bounds(epsilons)
    alone = bound_of(release - known, 0.2, 0.6, 16, noise=0.7) if binds else None
    assert np.all(certified <= (alone or without_threshold()).certified(epsilons))
    if influence == "active" or known == 0:
        assert np.all(certified <= SLACK * attained)
    # Whoever knows people who are counted sees the threshold that is left.
    for j in (0, 16):
        coins = [0.2] * (16 - j) + [0.6] * j
        for epsilon, delta in zip(epsilons.tolist(), certified.tolist(), strict=True):
            sides = count_losses(coins, known, epsilon, np.exp, noise=0.7, release=release)
            assert max(sides) <= delta + 1e-12


def without_threshold() -> Counting:
    return Counting(theorem="noisy_counting", unknown=16, p_min=0.2, p_max=0.6, noise=0.7)


@settings(max_examples=few(60), deadline=None)
@given(SHAPES, st.integers(0, 12), st.sampled_from([0.0, 0.3, 1.0, 3.0]), st.integers(0, 1), NOISES)
def test_fewer_others_are_left_out_where_the_threshold_binds(
    shape: Any, likely: int, epsilon: float, way: int, noise: float | None
) -> None:
    k, low, high, unknown = shape
    epsilon = epsilon if noise is None else epsilon / 3.2 * noise
    bound = bound_of(*shape, noise=noise)
    tails = bound._directions()[way]
    fewest, enough = (
        int(side[0]) for side in bound._others(way, tails, np.array([float(likely)]), np.array([epsilon]))
    )
    assert max(0, unknown - likely) <= fewest <= enough
    growth = exact_exp(epsilon if way == 0 else -epsilon)

    def reached(others: int) -> Any:
        law = [*coin_sum([flint.arb(low)] * others + [flint.arb(high)] * likely), *[flint.arb(0)] * k]
        if noise is not None:
            kernel = exact_exp(-noise)
            law = [sum(mass * kernel ** abs(output - x) for x, mass in enumerate(law)) for output in range(k)]
        return growth * law[k - 1] - law[k - 2]

    with flint.ctx.workprec(BITS):
        # Fewer than `fewest` are not declared, or do not reach it; up to a share of them the two are the same.
        assert fewest == max(0, unknown - likely) or not reached(fewest - 1) > 0
        assert enough > few(400, 150) or not reached(enough) < 0
        assert enough <= fewest + 1 + enough // 10_000


@pytest.mark.parametrize("noise", [None, 0.75, 3.0])
def test_a_tilted_law_turns_where_it_does(noise: float | None) -> None:
    n_low, n_high, epsilon = 13, 6, 0.7
    tails = TwoCoinTails(low=0.2, low_complement=0.8, high=0.7, high_complement=1.0 - 0.7, noise=noise)
    law, first = np.array(coin_sum([0.2] * n_low + [0.7] * n_high)), 0
    if noise is not None:
        law, first = np.convolve(law, np.exp(-noise * np.abs(np.arange(-600, 601)))), -600
    law *= np.exp(epsilon * (np.arange(len(law)) + first))
    mode = int(law.argmax()) + first
    # With noise the law is looked at far away as well, where densities are too small to be told apart.
    for point in range(mode - 4, mode + 4) if noise is None else range(mode - 300, mode + 300, 1 if ALL else 3):
        (slope,) = tails.slopes(*(np.array([value]) for value in (n_low, n_high, epsilon, float(point))))
        assert (bool(slope[0] < 0.0), bool(slope[0] > 0.0)) == (point >= mode, point < mode)
        if np.isfinite(slope[0]) and abs(point - mode) < 4:
            assert slope[0] == pytest.approx(np.log(law[point + 1 - first] / law[point - first]), rel=1e-6, abs=1e-9)


@thinned(2)
@pytest.mark.parametrize(
    "shape",
    [
        pytest.param((1000, 0.1, 0.3, 5000), marks=pytest.mark.slow),
        (300, 0.01, 0.5, 100_000),
        (20, 0.2, 0.6, 10**9),
        (10**6, 0.1, 0.11, 10**7),
        (9, 1e-9, 0.5, 1),
    ],
)
def test_brackets_of_large_numbers_are_narrow_and_far_ends_say_nothing(shape: Any) -> None:
    bound = bound_of(*shape)
    epsilon = bound.smallest_epsilon(1e-6)
    attained, certified = bound.bracket(np.array([min(epsilon, 1.0), 800.0]))
    assert certified[0] <= SLACK * attained[0]
    assert np.all(attained <= certified)
    assert np.all(bound.rounding(np.array([0.1, 800.0])) < 1e-3)
    more = bound_of(*shape[:3], MAX_PEOPLE * 4).bracket(np.array([0.01]))
    assert more[0][0] == 0.0 <= more[1][0]


def test_people_who_are_not_counted_are_the_mirror_image() -> None:
    attacker = pkdp.AttackerModel(p_min=0.25, p_max=0.5, unknown=30)
    mirrored = pkdp.AttackerModel(p_min=0.5, p_max=0.75, unknown=30)
    counted = np.array(pkdp.certify(pkdp.Count(k=12), attacker).delta_bounds(EPSILONS))
    mirror = np.array(pkdp.certify(pkdp.Count(k_complement=12), mirrored).delta_bounds(EPSILONS))
    assert counted == pytest.approx(mirror, rel=1e-6, abs=1e-280)
    both = pkdp.certify(pkdp.Count(k=12, k_complement=9), attacker).delta(EPSILONS)
    better = np.minimum(counted[1], pkdp.certify(pkdp.Count(k_complement=9), attacker).delta(EPSILONS))
    assert np.all(both <= SLACK * better)


def twice(k: int, rest: int, low: float, high: float, unknown: int, cap: int | None = None) -> BoxedThreshold:
    return replace(bound_of(k, low, high, unknown, cap), k_complement=rest)


@settings(max_examples=few(60, 3), deadline=None)
@given(SHAPES, st.integers(2, 8), st.sampled_from([1e-6, 0.1, 0.5, 1.0, 3.0]), st.none() | st.integers(0, 4))
def test_no_number_of_people_tells_more_under_both_thresholds(
    shape: Any, rest: int, epsilon: float, more: int | None
) -> None:
    k, low, high, unknown = shape
    cap = None if more is None else unknown + more
    bound = twice(k, rest, low, high, unknown, cap)
    point = np.array([epsilon])
    certified = float(bound.certified(point)[0])
    for people in range(unknown, unknown + 9 if cap is None else cap + 1):
        for likely in range(people + 1 if low < high else 1):
            crowd = [(people - likely, low), (likely, high)]
            assert larger_loss(crowd, epsilon, k=k, k_complement=rest) <= Fraction(certified)
    attacker = pkdp.AttackerModel(p_min=low, p_max=high, unknown=unknown, unknown_max=cap)
    for mechanism in (pkdp.Count(k=k), pkdp.Count(k_complement=rest)):
        both = pkdp.certify(pkdp.Count(k=k, k_complement=rest), attacker).delta(epsilon)
        assert both <= SLACK * pkdp.certify(mechanism, attacker).delta(epsilon) + 1e-280


@thinned(3)
@pytest.mark.parametrize("way", [0, 1])
@pytest.mark.parametrize(("k", "rest", "low", "high"), [(5, 9, 0.2, 0.6), (7, 3, 0.2, 0.4), (4, 4, 0.5, 0.9)])
def test_under_both_thresholds_as_many_people_are_needed_as_under_either(
    k: int, rest: int, low: float, high: float, way: int
) -> None:
    epsilons = np.array([0.0, 0.01, 0.7, 3.0])
    both = twice(k, rest, low, high, 3)
    for likely in (0, 1, 7):
        high_people = np.full(4, float(likely))
        fewest, enough = both._others(way, both._both()[way], high_people, epsilons)
        fewest_alone, _ = bound_of(k, low, high, 3)._others(way, both._both()[way], high_people, epsilons)
        assert np.all(fewest >= fewest_alone)
        for index, epsilon in enumerate(epsilons.tolist()):
            growth = exact_exp(epsilon if way == 0 else -epsilon)
            for others, free in ((int(enough[index]), True), (int(fewest[index]) - 1, False)):
                if others < 0 or others + likely < 3:
                    continue
                law = coin_sum([flint.arb(low)] * others + [flint.arb(high)] * likely)
                law = [*law, *[flint.arb(0)] * (k + rest)]
                top = others + likely - rest + 1
                before = law[top] if top >= 0 else flint.arb(0)
                reached = growth * law[k - 1] > law[k - 2], top >= 0 and before > growth * law[top + 1]
                assert all(reached) == free


def test_of_both_thresholds_a_declared_attacker_reaches_what_is_certified() -> None:
    box = pkdp.AttackerModel(p_min=0.2, p_max=0.6, unknown=100)
    attained, certified = pkdp.certify(pkdp.Count(k=20, k_complement=20), box).delta_bounds(np.array([0.1, 0.3, 1.0]))
    assert np.all(certified <= SLACK * attained)
    apart = [
        pkdp.certify(pkdp.Count(**thresholds), box).delta(np.array([0.1, 0.3, 1.0]))
        for thresholds in ({"k": 20}, {"k_complement": 20})
    ]
    assert np.all(certified <= SLACK * np.minimum(*apart))
    # Of few people each threshold alone hides less.
    few_people = pkdp.AttackerModel(p_min=0.3, p_max=0.7, unknown=5)
    alone = (
        pkdp.certify(pkdp.Count(**thresholds), few_people).delta(1.0) for thresholds in ({"k": 10}, {"k_complement": 9})
    )
    assert pkdp.certify(pkdp.Count(k=10, k_complement=9), few_people).delta(1.0) < 0.1 * min(alone)


@pytest.mark.parametrize("influence", ["active", "passive"])
def test_known_people_take_the_threshold_down(influence: str) -> None:
    known = pkdp.certify(pkdp.Count(k=23), box_of(known=3, influence=influence))
    fewer = pkdp.certify(pkdp.Count(k=20), box_of())
    certified = known.delta(EPSILONS)
    assert np.all(certified <= fewer.delta(EPSILONS) * (1.0 + 1e-9))
    assert larger_loss([(40, 0.2)], 1.0, known=3, k=23) <= Fraction(float(known.delta(1.0)))


def test_it_is_left_out_where_others_may_be_known() -> None:
    private = pkdp.Leakage("the noised turnout", epsilon=0.1)
    for more in ({"leakage": private}, {"dependent": "household", "secret": "conditional"}):
        theorems = pkdp.certify(pkdp.Count(k=20), box_of(**more)).theorems
        assert not any("box" in key for key in theorems)
    assert THEOREMS["thresholding_in_box"].rests_on == ("known", "p_max", "unknown")


@pytest.mark.slow
def test_a_total_of_days_is_smaller_than_that_of_the_two_theorems_apart() -> None:
    habits, attacker = pkdp.IndependentGivenHabits(), pkdp.AttackerModel(p_min=0.1, p_max=0.3, unknown=300)
    total = pkdp.compose([(pkdp.certify(pkdp.Count(k=50), attacker), 30)], habits)
    apart = pkdp.compose([(pkdp.certify(pkdp.Count(), attacker), 30)], habits)
    assert total.epsilon(1e-6) < 4.34 < 5.0 < apart.epsilon(1e-6)
    # Where the box says next to nothing, a total is that of the threshold alone.
    attacker = pkdp.AttackerModel(p_min=1e-6, p_max=0.1, unknown=1)
    total = pkdp.compose([(pkdp.certify(pkdp.Count(k=50), attacker), 30)], habits)
    alone = pkdp.compose([(pkdp.certify(pkdp.Count(k=50), pkdp.AttackerModel(p_max=0.1)), 30)], habits)
    assert total.epsilon(1e-6) <= alone.epsilon(1e-6) * (1.0 + 1e-9)
