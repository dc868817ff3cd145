"""Theorem D in a box: a threshold with noise after it, against everybody who is uncertain about enough people."""

from __future__ import annotations

import math
from typing import Any

import flint
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle.attacks import search
from oracle.laws import BITS, coin_sum, exact_exp, losses, lower_end, pushed
from oracle.releases import count_losses, noisy_cell
from thorough import CLOSEST, examples, few, thinned

import pkdp_pipeline as pkdp
from pkdp_pipeline.theorems.boxed_threshold import _passed
from pkdp_pipeline.theorems.channel import row_of
from pkdp_pipeline.theorems.counting import Counting
from pkdp_pipeline.theorems.noisy_blocks import Blocks, _Block, between
from pkdp_pipeline.theorems.noisy_search import SLACK_IN_BOX
from pkdp_pipeline.theorems.noisy_threshold import NoisyThreshold

SLACK = 1.001 + SLACK_IN_BOX


def bound_of(
    k: int, low: float, high: float, noise: float, release: int | None, unknown: int, cap: int | None = None
) -> NoisyThreshold:
    return NoisyThreshold(
        theorem="noisy_thresholding_in_box",
        k=k,
        p=high,
        p_min=low,
        unknown=unknown,
        cap=cap,
        noise=noise,
        release_threshold=release,
    )


def truth(shape: Any, others: int, likely: int, epsilon: float) -> float:
    """Return the larger divergence of an attacker with so many people at either end, never above it."""
    k, low, high, noise, release = shape
    with flint.ctx.workprec(BITS):
        coins = [flint.arb(low)] * others + [flint.arb(high)] * likely
        sides = count_losses(coins, 0, epsilon, exact_exp, k=k, noise=noise, release=release)
        return float(max(lower_end(flint.arb(side)) for side in sides))


SHAPES = st.tuples(
    st.integers(2, 6),
    st.sampled_from([0.02, 0.1, 0.3, 0.5, 0.9]),
    st.sampled_from([0.1, 0.5, 1.0]),
    st.sampled_from([0.2, 0.5, 1.0, 3.0]),
    st.one_of(st.none(), st.integers(-1, 12)),
).map(lambda drawn: (drawn[0], drawn[1], drawn[1] + (0.97 - drawn[1]) * drawn[2], drawn[3], drawn[4]))
INFLUENCE: Any = ("passive", "active")
EPSILONS = st.sampled_from([0.05, 0.3, 0.5, 0.9, 1.0, 2.0])


@examples(quick=4, full=400)
def test_no_attacker_exceeds_the_certificate_of_noise_behind_a_threshold_in_a_box(examples: int) -> None:
    attackers, worst = search("noisy_boxed", examples=examples, batch=6)
    assert attackers >= examples * 6 * 45 // 100
    assert worst > CLOSEST[examples >= 200]


@settings(max_examples=few(25), deadline=None)
@given(SHAPES, EPSILONS, st.integers(1, 6), st.integers(0, 4))
def test_with_at_most_so_many_people_all_corners_of_the_box_are_covered(
    shape: Any, epsilon: float, unknown: int, more: int
) -> None:
    attained, certified = (
        float(side[0]) for side in bound_of(*shape, unknown, unknown + more).bracket(np.array([epsilon]))
    )
    exact = max(
        truth(shape, people - likely, likely, epsilon)
        for people in range(unknown, unknown + more + 1)
        for likely in range(people + 1)
    )
    assert attained <= exact * (1.0 + 1e-15) <= max(certified, 1e-300)
    assert certified <= SLACK * exact + 1e-11


@settings(max_examples=few(20, 6), deadline=None)
@given(SHAPES, EPSILONS, st.integers(1, 5), st.integers(0, 3), st.integers(1, 4), st.booleans())
def test_of_known_people_any_number_may_be_counted(
    shape: Any, epsilon: float, unknown: int, more: int, known: int, active: bool
) -> None:
    k, low, high, noise, release = shape
    k, known = k + 1, min(known, k - 1)
    mechanism = pkdp.Count(k=k, noise=pkdp.GeometricNoise(noise), release_threshold=release)
    attacker = pkdp.AttackerModel(
        p_min=low, p_max=high, unknown=unknown, unknown_max=unknown + more, known=known, influence=INFLUENCE[active]
    )
    certificate = pkdp.certify(mechanism, attacker)
    bound = next(
        partial_bound.bound
        for partial_bound in certificate.partial_bounds
        if partial_bound.bound.theorem == "noisy_thresholding_in_box"
    )
    attained, certified = (float(side[0]) for side in bound.bracket(np.array([epsilon])))
    exact = max(
        truth((k - counted, low, high, noise, release and release - counted), people - likely, likely, epsilon)
        for counted in range(known + 1)
        for people in range(unknown, unknown + more + 1)
        for likely in range(people + 1)
    )
    assert attained <= exact * (1.0 + 1e-15) <= max(certified, 1e-300)
    assert certified <= SLACK * exact + 1e-11
    attained, certified = certificate.delta_bounds(epsilon)
    assert attained <= exact * (1.0 + 1e-15)
    assert exact <= certified * (1.0 + 1e-15) or not active


@settings(max_examples=few(15, 2), deadline=None)
@given(SHAPES, EPSILONS, st.integers(1, 6))
def test_no_number_of_people_tells_more_and_the_worst_attains(shape: Any, epsilon: float, unknown: int) -> None:
    bound = bound_of(*shape, unknown)
    attained, certified = (float(side[0]) for side in bound.bracket(np.array([epsilon])))
    for people in range(unknown, unknown + 9):
        assert max(truth(shape, people - likely, likely, epsilon) for likely in range(0, people + 1, 2)) <= certified
    others, likely = bound.worst_numbers(epsilon)
    assert attained == 0.0 or others + likely >= unknown
    if attained > 0.0 and others + likely <= 60:
        reached = truth(shape, others, likely, epsilon)
        assert attained <= reached * (1.0 + 1e-15)
        assert reached <= attained * (1.0 + 1e-7) + 1e-40


def divergence(shape: Any, others: int, likely: int, epsilon: float) -> float:
    """Return the larger divergence in floating point, for many places."""
    k, low, high, noise, release = shape
    coins = np.ones(1)
    for chance in [low] * others + [high] * likely:
        coins = np.convolve(coins, [1.0 - chance, chance])
    reach, alpha = math.ceil(45.0 / noise), math.exp(-noise)
    values = np.arange(-reach, len(coins) + reach + 1)
    counts = np.arange(len(coins) + 1)
    kernel = (1.0 - alpha) / (1.0 + alpha) * alpha ** np.abs(values - counts[:, None])
    shown = (counts >= k)[:, None] & (values >= (-math.inf if release is None else release))
    published = [law @ (kernel * shown) for law in (np.append(0.0, coins), np.append(coins, 0.0))]
    first, second = (np.append(law, 1.0 - law.sum()) for law in published)
    growth = math.exp(epsilon)
    return float(max(np.maximum(0.0, p - growth * q).sum() for p, q in ((first, second), (second, first))))


@settings(max_examples=few(80, 10), deadline=None)
@given(
    SHAPES,
    st.sampled_from([0.02, 0.2, 0.5, 0.8, 0.97, 1.0 - 1e-3, 1.0 - 1e-5, 1.0, 1.1, 2.0]),
    st.tuples(st.integers(0, 25), st.integers(0, 15), st.integers(1, 12), st.integers(0, 10), st.integers(0, 1)),
)
def test_the_corners_of_a_block_bound_all_of_it(shape: Any, share: float, place: Any) -> None:
    k, noise, (others, likely, first, second, slanted) = shape[0], shape[3], place
    others = max(others + slanted * second, k - 1 - likely)
    epsilon = share * noise
    blocks = Blocks(*(np.array([value]) for value in (0, others, likely, first, second, slanted)))
    part = bound_of(*shape, 1).search(np.array([epsilon])).parts[0][0]
    corners = np.stack([part.orders(blocks.column, *corner)[2] for corner in blocks.corners])
    exact = max(
        divergence(shape, others + step - slanted * more, likely + more, epsilon)
        for step in range(first + 1)
        for more in range(second + 1)
    )
    for enough in (1e-9, 0.3 * float(corners.max()), 1.05 * float(corners.max())):
        assert exact <= float(between(part, blocks, corners, np.array([enough])).max()) * (1.0 + 1e-9) + 1e-12


@pytest.mark.parametrize(
    ("shape", "share", "others", "steps"),
    [((7, 0.0864, 0.0864, 0.3557, None), 1.0 - 2e-5, 84, 24), ((2, 0.318, 0.318, 0.938, 1), 1.0 - 7e-5, 6, 2)],
)
def test_next_to_the_end_of_the_noise_what_k_minus_1_people_gain_is_not_left_out(
    shape: Any, share: float, others: int, steps: int
) -> None:
    epsilon, none = share * shape[3], np.zeros(1, dtype=np.int64)
    blocks = Blocks(none, none + others, none, none + steps, none, none)
    part = bound_of(*shape, 1).search(np.array([epsilon])).parts[0][0]
    corners = np.stack([part.orders(none, *corner)[2] for corner in blocks.corners[::2]])
    exact = max(divergence(shape, others + step, 0, epsilon) for step in range(steps + 1))
    assert exact > 1.02 * float(corners.max())
    for enough in (0.9 * exact, 1.001 * exact):
        assert exact <= float(between(part, blocks, corners, np.array([enough])).max())


def test_next_to_the_end_of_the_noise_no_number_of_people_is_missed() -> None:
    shape = (7, 0.086, 0.0864, 0.3557637496585856, None)
    epsilon = shape[3] * (1.0 - 1e-6)
    assert truth(shape, 0, 96, epsilon) <= bound_of(*shape, 70).certified(np.array([epsilon]))[0]


@settings(max_examples=few(40), deadline=None)
@given(SHAPES, st.sampled_from([0.3, 0.9, 1.0, 1.5]), st.integers(0, 12), st.integers(0, 12))
def test_more_people_than_some_are_bounded_by_these(shape: Any, share: float, others: int, likely: int) -> None:
    epsilon = share * shape[3]
    search = bound_of(*shape, 1).search(np.array([epsilon]))
    most = float(search.beyond(np.zeros(1, dtype=np.int64), others, likely).max())
    for more, further in ((0, 0), (1, 0), (0, 1), (4, 2), (2, 9), (15, 0)):
        assert divergence(shape, others + more, likely + further, epsilon) <= most * (1.0 + 1e-9) + 1e-12


@thinned(3)
@pytest.mark.parametrize(
    ("shape", "unknown", "epsilon"),
    [
        ((20, 0.2, 0.6, 0.5, 40), 40, 0.3),
        ((20, 0.2, 0.6, 0.5, 40), 40, 0.5),
        ((20, 0.2, 0.6, 0.5, 40), 40, 1.0),
        ((20, 0.01, 0.6, 0.5, 40), 40, 2.0),
        ((20, 0.28, 0.3, 0.5, None), 40, 0.7),
        ((50, 0.1, 0.3, 0.5, 70), 300, 0.5),
        pytest.param((50, 0.1, 0.3, 0.5, 70), 2000, 0.3, marks=pytest.mark.slow),
    ],
)
def test_the_bracket_is_narrow(shape: Any, unknown: int, epsilon: float) -> None:
    attained, certified = bound_of(*shape, unknown).bracket(np.array([epsilon]))
    assert 0.0 < attained[0] <= certified[0] <= SLACK * attained[0]


def test_where_enough_people_are_unknown_nothing_is_told_from_some_epsilon_on() -> None:
    attained, certified = bound_of(20, 0.2, 0.6, 0.5, 40, 40).bracket(np.array([2.0]))
    assert attained[0] == certified[0] == 0.0
    assert truth((20, 0.2, 0.6, 0.5, 40), 40, 0, 2.0) == 0.0


def test_equal_people_in_a_box_are_those_of_one_kind() -> None:
    points, parameters = np.array([0.2, 0.8, 1.5]), (5, 0.3, 0.3, 1.0, 8)
    for unknown in (1, 30):
        attained, certified = bound_of(*parameters, unknown).bracket(points)
        attained_wider, _ = bound_of(5, 0.3, 0.3 + 1e-9, 1.0, 8, unknown).bracket(points)
        assert np.all(attained_wider <= certified * (1.0 + 1e-5) + 1e-40)
        assert np.all(certified <= 1.011 * attained + 1e-200)


@settings(max_examples=few(15, 2), deadline=None)
@given(SHAPES, EPSILONS, st.integers(1, 6), st.integers(1, 4))
def test_more_knowledge_is_never_certified_less(shape: Any, epsilon: float, unknown: int, more: int) -> None:
    k, low, high, noise, release = shape
    points = np.array([epsilon])
    certified = float(bound_of(*shape, unknown).certified(points)[0]) * SLACK + 1e-11
    half = low + 0.5 * (high - low)
    for weaker in (
        bound_of(*shape, unknown + more),
        bound_of(k, half, high, noise, release, unknown),
        bound_of(k, low, half, noise, release, unknown),
        bound_of(*shape, unknown, cap=unknown + more),
    ):
        assert float(weaker.certified(points)[0]) <= certified
    free = NoisyThreshold(theorem="noisy_thresholding", k=k, p=high, noise=noise, release_threshold=release)
    assert float(bound_of(*shape, unknown).bracket(points)[0][0]) <= float(free.certified(points)[0])


@pytest.mark.slow
def test_a_certificate_is_smaller_than_those_of_what_it_rests_on_apart() -> None:
    noise, attacker = pkdp.GeometricNoise(0.5), pkdp.AttackerModel(p_min=0.2, p_max=0.6, unknown=40)
    certificate = pkdp.certify(pkdp.Count(k=20, noise=noise, release_threshold=40), attacker)
    attained, certified = certificate.delta_bounds(1.0)
    assert 0.0 < attained <= certified <= SLACK * attained
    apart = (
        pkdp.certify(pkdp.Count(k=20, noise=noise, release_threshold=40), pkdp.AttackerModel(p_max=0.6)),
        pkdp.certify(pkdp.Count(k=20), attacker),
    )
    assert certified * 10 < min(part.delta(1.0) for part in apart)
    assert certificate.epsilon(1e-6) < 0.63 < 0.7 < min(part.epsilon(1e-6) for part in apart)


@pytest.mark.parametrize("influence", ["active", "passive"])
def test_a_known_person_who_is_not_counted_may_be_worse(influence: str) -> None:
    mechanism = pkdp.Count(k=3, noise=pkdp.GeometricNoise(0.5))
    attacker = pkdp.AttackerModel(p_min=0.5, p_max=0.5, unknown=4, known=1, influence=influence)
    shape = (0.5, 0.5, 0.5, None)
    worst = truth((3, *shape), 4, 0, 0.0)
    assert bound_of(2, *shape, 4).certified(np.zeros(1))[0] < worst <= pkdp.certify(mechanism, attacker).delta(0.0)


@pytest.mark.parametrize("slanted", [0, 1])
def test_what_floats_do_not_hold_of_the_smallest_counts_bounds_nothing(slanted: int) -> None:
    k, high = 38, 0.5
    shape = (k, 1e-9, high, 0.5, None)
    blocks = Blocks(*(np.array([value]) for value in (0, k - 1, 0, 1, k - 1, slanted)))
    part = bound_of(*shape, 1).search(np.array([0.3])).parts[0][0]
    corners = np.stack([part.orders(blocks.column, *corner)[2] for corner in blocks.corners])
    block = _Block(part, blocks, corners, np.zeros(1))
    # k - 1 people are no rarer than this with everybody at the larger chance; no float holds them at the smaller one.
    assert float(row_of(part.channel, k - 1, 0).law[k - 1]) == 0.0
    assert high ** (k - 1) <= block.just[0, 0] <= 1.0
    (_, added), (_, further) = block.directions
    unknown = np.isinf(added.most[0])
    assert unknown[int(k - 1 - block.counts[0])]
    assert np.all(further.most[0, unknown] == (pytest.approx(math.log(high / 1e-9)) if slanted else math.inf))
    exact = max(divergence(shape, k - 1 + slanted * (1 - step), step, 0.3) for step in (0, k - 1))
    for enough in (0.0, 0.5 * exact):
        assert exact <= float(between(part, blocks, corners, np.array([enough])).max())


def test_the_chance_to_stay_hidden_keeps_its_digits_where_it_is_small() -> None:
    for noise, release in ((15.0, 0), (30.0, 1)):
        k, p, people, epsilon = 1, 0.7, 10, noise * (1.0 - 1e-4)
        part = bound_of(k, p, p, noise, release, 1).search(np.array([epsilon])).parts[0][0]
        least, most, _ = part.orders(np.zeros(1, dtype=np.int64), np.array([people]), np.zeros(1, dtype=np.int64))
        with flint.ctx.workprec(BITS):
            crowd = [flint.arb(p)] * people
            sides = count_losses(crowd, 0, epsilon, exact_exp, k=k, noise=noise, release=release)
            exact = sorted(float(lower_end(flint.arb(side))) for side in sides)
        assert np.all(np.sort(least[:, 0]) <= np.array(exact) * (1.0 + 1e-15))
        assert np.all(np.array(exact) <= np.sort(most[:, 0]))


def test_chances_that_are_nearly_equal_do_not_put_rates_out_of_order() -> None:
    shape = (6, 0.4450015330502831, 0.4450015330502836, 0.35, 7)
    blocks = Blocks(*(np.array([value]) for value in (0, 5, 0, 1, 2, 1)))
    part = bound_of(*shape, 1).search(np.array([0.24772526924780333])).parts[0][0]
    corners = np.stack([part.orders(blocks.column, *corner)[2] for corner in blocks.corners])
    exact = max(
        divergence(shape, 5 + first - second, second, part.epsilons[0]) for first in (0, 1) for second in range(3)
    )
    # Presence tells as much in the first order.
    assert exact <= float(between(part, blocks, corners, np.array([1e-9]))[0, 0]) * (1.0 + 1e-9)


# Thresholds that enough people are unknown for ---------------------------------------------------------------------


def behind_both(mechanism: pkdp.Count, chances: Any, counted: int, others: int, epsilon: float) -> float:
    """Return the larger divergence beside so many known people who count, and who do not; never above it."""
    n, unknown = len(chances) + counted + others + 1, len(chances)
    assert mechanism.noise is not None
    with flint.ctx.workprec(BITS):
        alpha, law = (-flint.arb(mechanism.noise.epsilon)).exp(), coin_sum(list(map(flint.arb, chances)))

        def cell(count: int) -> Any:
            if mechanism.k_complement is not None and n - count < mechanism.k_complement:
                return {None: flint.arb(1)}
            return noisy_cell(count, alpha, unknown + counted + 1, mechanism.k, mechanism.release_threshold)

        lives = [pushed({s + counted + here: weight for s, weight in enumerate(law)}, cell) for here in (1, 0)]
        return float(max(lower_end(flint.arb(side)) for side in losses(*lives, exact_exp(epsilon))))


@settings(max_examples=few(40), deadline=None)
@given(
    st.tuples(st.sampled_from([None, 1, 2, 4]), st.sampled_from([None, 1, 3])),
    st.tuples(st.sampled_from([0.1, 0.3, 0.6]), st.sampled_from([0.0, 0.5, 1.0])),
    st.tuples(st.sampled_from([0.2, 0.7, 1.5]), st.sampled_from([None, 0, 3, 9])),
    st.tuples(st.integers(1, 9), st.integers(0, 2), st.integers(0, 9), st.integers(0, 4), st.integers(0, 4)),
    EPSILONS,
)
def test_thresholds_that_unknown_people_pass_add_no_more_than_they_hide(
    thresholds: Any, box: Any, noised: Any, people: Any, epsilon: float
) -> None:
    (k, other), (low, share), (noise, release), (unknown, more, high, counted, others) = thresholds, box, noised, people
    if k is None and other is None:
        k = 2
    p_max = low + (0.95 - low) * share
    mechanism = pkdp.Count(k=k, k_complement=other, noise=pkdp.GeometricNoise(noise), release_threshold=release)
    bound = _passed(mechanism, Counting(theorem="", unknown=unknown, p_min=low, p_max=p_max, noise=noise))
    chances = [p_max] * min(high, unknown + more) + [low] * max(0, unknown + more - high)
    assert behind_both(mechanism, chances, counted, others, epsilon) <= bound.certified(np.array([epsilon]))[0]


def test_of_many_people_they_add_next_to_nothing_whoever_is_known() -> None:
    noise, points = pkdp.GeometricNoise(0.3), (0.05, 0.15, 0.25)
    for more in ({"k": 4}, {"k": 4, "k_complement": 4}, {"k_complement": 4, "release_threshold": 20}):
        mechanism = pkdp.Count(noise=noise, **more)
        attacker = pkdp.AttackerModel(p_min=0.4, p_max=0.4, unknown=60, known=9, influence="active")
        certificate = pkdp.certify(mechanism, attacker)
        for epsilon in points:
            attained = behind_both(mechanism, [0.4] * 60, 9, 0, epsilon)
            assert attained <= certificate.delta(epsilon) <= 1.02 * attained + 1e-6
        assert certificate.epsilon(1e-6) <= 0.3
        # The same without noise: nothing else was certified of a k that known people pass.
        assert pkdp.certify(pkdp.Count(), attacker).epsilon(1e-6) > 0.9
    assert "noisy_counting" not in pkdp.certify(pkdp.Count(k=20, noise=noise), attacker).theorems
