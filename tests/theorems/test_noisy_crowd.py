"""One crowd in one of two cells behind a threshold and noise, beside the other cell: against plain enumeration."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from thorough import few

import pkdp_pipeline as pkdp
from pkdp_pipeline.theorems.hull import hull_atoms
from pkdp_pipeline.theorems.kernel_search import Coins
from pkdp_pipeline.theorems.noisy_crowd import (
    SLACK,
    CrowdSearch,
    NoisyTwoCells,
    OneOrder,
    ReachedThroughAbsence,
    Suppressed,
)

CASES = st.tuples(
    st.integers(2, 6), st.integers(0, 12), st.sampled_from([0.3, 1.0, 3.0]), st.sampled_from([0.05, 0.3, 0.7])
)


def shown(kernel: Suppressed, counts: int) -> Any:
    """Return what is published of each count up to this one, straight from the definition; far values are left out."""
    alpha, release = math.exp(-kernel.noise), -60 if kernel.release is None else kernel.release
    rows = []
    for count in range(counts + 1):
        chances = [(1 - alpha) / (1 + alpha) * alpha ** abs(y - count) for y in range(release, counts + 120)]
        rows.append([*(chance * (count >= kernel.k) for chance in chances), 0.0, 0.0])
        if count >= kernel.k:
            rows[-1][-1] = max(0.0, 1.0 - sum(chances))
        else:
            rows[-1][-2:] = kernel.told_apart, 1.0 - kernel.told_apart
    return np.array(rows)


def lives(kernel: Suppressed, m: int, p: float) -> tuple[Any, Any]:
    """Return what is published with the target and without her, beside m people."""
    law = np.array([math.comb(m, x) * p**x * (1.0 - p) ** (m - x) for x in range(m + 1)])
    published = shown(kernel, m + 1)
    return law @ published[1:], law @ published[:-1]


def divergence(first: Any, second: Any, growth: float) -> float:
    return float(np.maximum(0.0, first - growth * second).sum())


def two_cells(k: int, release: int, noise: float, p: float, **people: Any) -> NoisyTwoCells:
    mechanism = pkdp.Histogram(k=k, noise=pkdp.GeometricNoise(noise), release_threshold=release)
    certificate = pkdp.certify(mechanism, pkdp.AttackerModel(p_max=p, **people), protects="value")
    bound = next(applied.bound for applied in certificate.partial_bounds if applied.bound.theorem == "noisy_value")
    assert isinstance(bound, NoisyTwoCells)
    return bound


@settings(max_examples=few(100, 8), deadline=None)
@given(CASES, st.integers(0, 15), st.sampled_from([0.0, 0.4]))
def test_what_is_published_is_what_the_definition_says(case: Any, m: int, told_apart: float) -> None:
    (k, release, noise, p), epsilon = case, 0.4
    kernel = Suppressed(k, release, noise, told_apart)
    law = np.array([math.comb(m, x) * p**x * (1.0 - p) ** (m - x) for x in range(m + 1)])
    counts = np.zeros((2, m + 3))
    counts[0, 1:-1], counts[1, :-2] = law, law
    for pair in (kernel.published(counts), np.stack(lives(kernel, m, p))):
        assert pair.sum(axis=1) == pytest.approx([1.0, 1.0], abs=1e-9)
    for growth in (1.0, math.exp(epsilon)):
        for order in (1, -1):
            expected = divergence(*lives(kernel, m, p)[::order], growth)
            assert divergence(*kernel.published(counts)[::order], growth) == pytest.approx(expected, abs=1e-9)


@settings(max_examples=few(40, 4), deadline=None)
@given(CASES, st.sampled_from([0.05, 0.3, 0.7, 1.5, 4.0]), st.integers(0, 40))
def test_each_order_is_dominated_by_itself(case: Any, epsilon: float, m: int) -> None:
    k, release, noise, p = case
    kernel, coins = Suppressed(k, release, noise), Coins(p, 40)
    absent, present = (OneOrder(theorem="", kernel=kernel, coins=coins, order=order) for order in (-1, 1))
    losses, masses, infinite = hull_atoms((absent,), (present,))
    with_her, without = lives(kernel, m, p)
    for growth in (math.exp(epsilon), math.exp(-epsilon)):
        hull = divergence(masses, masses * np.exp(-losses), growth) + infinite
        assert divergence(without, with_her, growth) <= hull * (1.0 + 1e-12) + 1e-13
    for order, bound in ((1, present), (-1, absent)):
        assert divergence(*(with_her, without)[::order], math.exp(epsilon)) <= bound.certified(np.array([epsilon]))[0]


@settings(max_examples=few(60, 5), deadline=None)
@given(CASES, st.sampled_from([0.0, 0.3, 1.2]), st.tuples(st.integers(0, 20), st.integers(2, 12)))
def test_every_crowd_of_a_block_is_bounded(case: Any, epsilon: float, block: tuple[int, int]) -> None:
    k, release, noise, p = case
    kernel, (low, size) = Suppressed(k, release, noise, 0.1), block
    second = np.array([-0.7, 0.2, 0.9]), np.array([0.2, 0.5, 0.3]), 0.0
    search = CrowdSearch(kernel, Coins(p), epsilon, second, 60.0)
    exact = []
    for m in range(low, low + size + 1):
        first = lives(kernel, m, p)
        exact.append(
            sum(mass * divergence(*first, math.exp(epsilon - loss)) for loss, mass in zip(*second[:2], strict=True))
        )
        least, most = search.exact(m)
        assert least[0] <= exact[-1] * (1.0 + 1e-9) + 1e-12
        assert exact[-1] <= most[0] * (1.0 + 1e-9) + 1e-12
    bound = search.between(low, low + size, np.array([0]))[0]
    assert max(exact) <= bound * (1.0 + 1e-9) + 1e-12
    assert all(value <= search._beyond(low)[0] * (1.0 + 1e-9) + 1e-12 for value in exact)
    optimum = search.sides()
    assert max(exact) * (1.0 - 1e-9) - 1e-12 <= optimum.top[0]
    assert optimum.top[0] <= max(optimum.best[0] * (1.0 + SLACK), 1e-15) * (1.0 + 1e-9)


def test_one_crowd_beside_the_other_cell_is_nearly_reached() -> None:
    bound, epsilons = two_cells(5, 12, 1.0, 0.3), np.array([0.5, 2.5])
    attack = ReachedThroughAbsence(theorem="", presence=bound.presence)
    certified, attained = bound.certified(epsilons), attack.bracket(epsilons)[0]
    assert (attained <= certified).all()
    assert (certified <= 1.07 * attained).all()
    # Without the search it is far more.
    assert (certified <= 0.8 * bound.quick.certified(epsilons)).all()


def test_an_inversion_ends_where_delta_is_certified() -> None:
    bound = two_cells(5, 12, 1.0, 0.3, unknown_max=25)
    epsilon = bound.smallest_epsilon(1e-3)
    assert 0.99e-3 <= bound.certified(np.array([epsilon]))[0] <= 1e-3
    # Where no crowd is looked for the first bound is left.
    assert bound.smallest_epsilon(0.0) == math.inf
    assert two_cells(300, 400, 1.0, 0.3).crowds(1.0) is None
