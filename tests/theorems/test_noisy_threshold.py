"""Theorem D: a threshold with noise after it, against everybody who may be any number of people's coins."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle.attacks import search
from oracle.releases import larger_loss
from thorough import CLOSEST, examples, few, spread, thinned

import pkdp_pipeline as pkdp
from pkdp_pipeline.theorems.noisy_blocks import Blocks, least_ratio
from pkdp_pipeline.theorems.noisy_threshold import NoisyThreshold
from pkdp_pipeline.theorems.numerics import binomial_weights

VECTORS: list[dict[str, Any]] = json.loads(
    (Path(__file__).parents[1] / "data" / "noisy_threshold.json").read_text(encoding="utf-8")
)["rows"]


def bound_of(k: int, p: float, noise: float, release: int | None, cap: int | None = None, known: int = 0) -> Any:
    return NoisyThreshold(
        theorem="noisy_thresholding", k=k, p=p, noise=noise, release_threshold=release, cap=cap, known=known
    )


def truth(k: int, p: float, noise: float, release: int | None, people: int, epsilon: float, known: int = 0) -> float:
    """Return the larger divergence of an attacker with so many equal people, in ball arithmetic, never above it."""
    crowd, others = [(people, p)], [p] * known or 0
    return float(larger_loss(crowd, epsilon, known=others, k=k, noise=noise, release=release))


@examples(quick=8, full=400)
def test_no_attacker_exceeds_the_certificate_of_a_threshold_with_noise_after_it(examples: int) -> None:
    attackers, worst = search("noisy_threshold", examples=examples, batch=8)
    assert attackers >= examples * 8 * 45 // 100
    assert worst > CLOSEST[examples >= 200]


@pytest.mark.parametrize("row", VECTORS, ids=str)
def test_numbers_computed_elsewhere_are_reproduced(row: dict[str, Any]) -> None:
    noise = pkdp.GeometricNoise(row["noise"])
    for kind in (pkdp.Count, pkdp.Histogram):
        mechanism = kind(k=row["k"], noise=noise, release_threshold=row["release_threshold"])
        certificate = pkdp.certify(mechanism, pkdp.AttackerModel(p_max=row["p_max"]))
        attained, certified = certificate.delta_bounds(row["epsilon"])
        assert attained == pytest.approx(row["delta"], rel=1e-9, abs=0.0)
        assert row["delta"] * (1.0 - 1e-9) <= certified <= 1.011 * row["delta"]


def test_noise_behind_a_threshold_no_longer_costs_what_either_alone_does() -> None:
    attacker = pkdp.AttackerModel(p_max=0.1)
    for k, release, most, before in ((20, 40, 0.5278, 1.30), (10, 30, 0.6414, 2.38), (20, 60, 0.474, 0.499)):
        noisy = pkdp.certify(pkdp.Count(k=k, noise=pkdp.GeometricNoise(0.5), release_threshold=release), attacker)
        alone = min(pkdp.certify(pkdp.Count(k=k), attacker).epsilon(1e-6), noisy.worst_case.epsilon(1e-6))
        assert noisy.epsilon(1e-6) < most < before < alone


SHAPES = st.tuples(
    st.integers(1, 6),
    st.sampled_from([0.05, 0.2, 0.5, 0.8, 0.97]),
    st.sampled_from([0.1, 0.5, 1.0, 4.0]),
    st.one_of(st.none(), st.integers(-3, 14)),
)


@settings(max_examples=25, deadline=None)
@given(SHAPES, st.sampled_from([0.0, 1e-5, 0.05, 0.3, 0.5, 0.999, 1.0, 1.2, 4.0]), st.integers(0, 12))
def test_equal_people_stay_below_and_the_worst_number_attains(shape: Any, epsilon: float, people: int) -> None:
    k, p, noise, release = shape
    bound, points = bound_of(k, p, noise, release), np.array([epsilon])
    attained, certified = (float(side[0]) for side in bound.bracket(points))
    assert truth(k, p, noise, release, people, epsilon) <= certified
    _, worst = bound.worst_numbers(epsilon)
    if worst <= 60 and epsilon >= 0.05:
        reached = truth(k, p, noise, release, worst, epsilon)
        assert attained <= reached * (1.0 + 1e-15)
        assert reached <= attained * (1.0 + 1e-7) + 1e-250
    if epsilon >= 0.05 and epsilon != 0.999 * noise:
        assert certified <= 1.011 * attained + 1e-200


@settings(max_examples=25, deadline=None)
@given(SHAPES, st.sampled_from([0.05, 0.3, 0.9, 2.0]), st.integers(0, 10), st.integers(0, 9))
def test_a_cap_is_exact_for_people_merely_known(shape: Any, epsilon: float, cap: int, most: int) -> None:
    k, p = shape[:2]
    known = min(most, max(0, k - 2, int((k - 1) / p - 1e-9)))
    attained, certified = bound_of(*shape, cap, known).bracket(np.array([epsilon]))
    exact = max(truth(*shape, people, epsilon, known) for people in range(cap + 1))
    assert exact <= float(certified[0]) <= 1.011 * exact + 1e-200
    assert float(attained[0]) <= exact
    # Fewer known people, with one more unknown each, tell no more.
    assert all(truth(*shape, cap, epsilon, fewer) <= float(certified[0]) for fewer in range(known)) or k <= 2


@thinned(3)
@pytest.mark.parametrize("p", [0.02, 0.2])
@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.5])
def test_numbers_of_known_people_that_add_little_are_bounded_together(p: float, epsilon: float) -> None:
    k, known, cap, points = 14, 12, 24, np.array([epsilon])
    bound = bound_of(k, p, 0.5, 22, cap, known)
    search = bound.search(points)
    searched, chances = {channel.k for channel in search.channels}, binomial_weights(known, p, 0, known)
    left_out = [b for b in range(known + 1) if k - b not in searched]
    assert left_out
    divergences = {b: max(truth(k - b, p, 0.5, 22 - b, people, epsilon) for people in range(cap + 1)) for b in left_out}
    assert 0.0 < sum(chances[b] * divergences[b] for b in left_out) <= search.others[0]
    exact = max(truth(k, p, 0.5, 22, people, epsilon, known) for people in range(cap + 1))
    attained, certified = (float(side[0]) for side in bound.bracket(points))
    assert attained <= exact <= certified <= 1.012 * exact


@settings(max_examples=few(30, 4), deadline=None)
@given(SHAPES, st.lists(st.floats(0.0, 6.0), min_size=1, max_size=4))
def test_more_knowledge_is_never_certified_less(shape: Any, epsilons: list[float]) -> None:
    k, p, noise, release = shape
    points, slack = np.array(sorted(epsilons)), 1.0 + bound_of(k, p, noise, release).slack
    certified = bound_of(k, p, noise, release).certified(points)
    assert np.all(bound_of(k, p * 0.7, noise, release).certified(points) <= certified * slack)
    assert np.all(bound_of(k, p, noise, release, 7).certified(points) <= certified * slack)
    assert np.all(
        bound_of(k + 1, p, noise, None if release is None else release + 1).certified(points) <= certified * slack
    )
    assert np.all(np.diff(certified) <= certified[:-1] * (slack - 1.0))


@thinned(3)
@pytest.mark.parametrize(
    ("shape", "epsilon"),
    spread(
        2, [(3, 0.3, 0.5, 9), (3, 0.3, 0.5, None), (6, 0.9, 2.0, 4), (1, 0.2, 1.0, 5)], [0.01, 0.3, 0.499, 0.5, 1.5]
    ),
)
def test_every_number_between_two_ends_is_covered(shape: Any, epsilon: float) -> None:
    bound = bound_of(*shape)
    k, p = shape[:2]
    exact = [truth(*shape, people, epsilon) for people in range(k - 1, 40)]
    search = bound.search(np.array([epsilon]))
    firsts, lasts = np.array([(a, b) for a in range(k - 1, 38) for b in (a + 2, a + 5, a + 20) if b < 40]).T
    zeros = np.zeros(len(firsts), dtype=np.int64)
    blocks = Blocks(zeros, firsts, zeros, lasts - firsts, zeros, zeros)
    corners = np.stack([search._exact(zeros, people, zeros)[2] for people in (firsts, lasts)], axis=1)
    # From one end, and from both.
    for from_ends in (True, False):
        bounds = search._between(blocks, corners, zeros.astype(float), from_ends).max(axis=0)
        for a, b, most in zip(firsts.tolist(), lasts.tolist(), bounds.tolist(), strict=True):
            assert max(exact[a - k + 1 : b - k + 2]) <= most, (a, b)
    for people in range(int(k / p) + 1, 38):
        assert max(exact[people - k + 1 :]) <= float(search.beyond(zeros[:1], people, 0).max())


def test_controlled_people_take_both_thresholds_down() -> None:
    noise = pkdp.GeometricNoise(0.8)
    attacker = pkdp.AttackerModel(p_max=0.3, known=2, influence="active", unknown_max=9)
    attained, certified = pkdp.certify(pkdp.Count(k=5, noise=noise, release_threshold=9), attacker).delta_bounds(0.4)
    shape = {"known": 2, "k": 5, "noise": 0.8, "release": 9}
    exact = max(float(larger_loss([(people, 0.3)], 0.4, **shape)) for people in range(10))
    assert attained <= exact <= certified <= 1.011 * exact


@pytest.mark.slow
def test_people_merely_known_cost_little_more_than_nobody() -> None:
    mechanism = pkdp.Count(k=12, noise=pkdp.GeometricNoise(0.5), release_threshold=30)
    nobody = pkdp.certify(mechanism, pkdp.AttackerModel(p_max=0.1)).epsilon(1e-6)
    few = pkdp.certify(mechanism, pkdp.AttackerModel(p_max=0.1, known=3))
    controlled = pkdp.certify(mechanism, pkdp.AttackerModel(p_max=0.1, known=3, influence="active")).epsilon(1e-6)
    assert nobody < few.epsilon(1e-6) < 1.02 * nobody < controlled
    for epsilon in (0.3, 1.0, 2.0):
        attained, certified = few.delta_bounds(epsilon)
        assert 0.0 < attained <= certified <= 1.011 * attained


def test_people_merely_known_may_be_more_than_the_threshold() -> None:
    mechanism = pkdp.Count(k=10, noise=pkdp.GeometricNoise(0.5), release_threshold=30)
    certificate = pkdp.certify(mechanism, pkdp.AttackerModel(p_max=0.05, known=20))
    attained, certified = certificate.delta_bounds(np.array([0.3, 1.0, 2.0]))
    assert np.all((attained > 0.0) & (certified <= 1.011 * attained))
    assert certificate.epsilon(1e-6) < 0.631 < 2.5


@thinned(3)
@pytest.mark.parametrize(
    ("known", "epsilon"),
    spread(3, [1, 3, 4, 5, 6, 9, pytest.param(16, id="16", marks=pytest.mark.slow)], [0.05, 0.3, 0.8, 2.0]),
)
def test_no_number_of_people_beside_those_merely_known_exceeds_the_certificate(known: int, epsilon: float) -> None:
    shape = (6, 0.3, 0.7, 9)
    attained, certified = (float(side[0]) for side in bound_of(*shape, known=known).bracket(np.array([epsilon])))
    exact = [truth(*shape, people, epsilon, fewer) for people in range(45) for fewer in range(known + 1)]
    assert attained <= max(exact) * (1.0 + 1e-12) <= certified <= 1.011 * max(exact)


@thinned(2)
@pytest.mark.parametrize(
    ("days", "shape"),
    [
        *spread(2, [2, 30], [(6, 6, 5.0, 0.1), (6, 12, 0.5, 0.1), (9, 9, 10.0, 0.3)]),
        *(
            pytest.param(days, shape, marks=pytest.mark.slow)
            for days in (2, 30)
            for shape in ((20, 20, 5.0, 0.1), (20, 40, 0.5, 0.1), (50, 50, 10.0, 0.3))
        ),
    ],
)
def test_a_total_is_never_above_that_of_the_threshold_alone(days: int, shape: Any) -> None:
    k, release, noise, p = shape
    attacker, habits = pkdp.AttackerModel(p_max=p), pkdp.IndependentGivenHabits()
    noisy = pkdp.certify(pkdp.Histogram(k=k, noise=pkdp.GeometricNoise(noise), release_threshold=release), attacker)
    alone = pkdp.compose([(pkdp.certify(pkdp.Histogram(k=k), attacker), days)], habits)
    total = pkdp.compose([(noisy, days)], habits)
    for delta in (1e-3, 1e-6, 1e-9):
        assert total.epsilon(delta) <= alone.epsilon(delta) * (1.0 + 1e-9)


def test_a_threshold_out_of_reach_tells_nothing() -> None:
    points = np.array([0.0, 0.5, 1e6])
    for bound in (bound_of(4, 0.0, 1.0, 6), bound_of(4, 0.5, 1.0, 6, 2)):
        assert np.all(np.array(bound.bracket(points)) == 0.0)
        assert bound.smallest_epsilon(0.0) == 0.0


@pytest.mark.parametrize("p", [1e-200, 1e-12])
def test_of_many_people_any_p_makes_the_threshold_likely(p: float) -> None:
    points = np.array([0.0, 0.5, 1e6])
    attained, certified = bound_of(4, p, 1.0, 6).bracket(points)
    assert np.all(attained <= certified)
    assert np.all(certified[:2] == pytest.approx(bound_of(4, 1e-6, 1.0, 6).certified(points[:2]), rel=0.02))


@pytest.mark.parametrize("p", [1e-300, 1e-10])
def test_what_is_attained_at_a_larger_p_is_not_said_of_a_smaller_one(p: float) -> None:
    attained, certified = pkdp.certify(
        pkdp.Count(k=2, noise=pkdp.GeometricNoise(1.0), release_threshold=2),
        pkdp.AttackerModel(p_max=p, unknown_max=1),
    ).delta_bounds(1.0)
    assert attained <= p / (1.0 + math.exp(-1.0)) <= certified


def test_a_block_of_one_number_is_compared_without_a_warning() -> None:
    x, y = np.array([4.0]), np.array([3.0])
    with np.errstate(all="raise"):
        assert least_ratio(0.3, x, y, y)[0] == 0.0
        assert least_ratio(0.3, y, y, y)[0] == pytest.approx(1.0)
        assert least_ratio(0.3, y, y, y + 1.0)[0] == pytest.approx(0.25 / 0.7)
