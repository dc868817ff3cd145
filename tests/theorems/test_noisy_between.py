"""Theorem G: two cells behind a threshold and noise, against enumeration."""

from __future__ import annotations

import math

import flint
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle.laws import BITS, exact_exp, lower_end
from oracle.releases import table_losses
from thorough import few, thinned

import pkdp_pipeline as pkdp
from pkdp_pipeline.theorems.noisy_between import NoisyBetween, lives_of
from pkdp_pipeline.theorems.reached import ReachedBetween


def bound(
    p: float, k: int, noise: float, release: int, *, people: int = 40, cap: int | None = None, known: int = 0
) -> NoisyBetween:
    return NoisyBetween(
        theorem="noisy_between", p=p, k=k, noise=noise, release_threshold=release, people=people, cap=cap, known=known
    )


@settings(max_examples=few(60), deadline=None)
@given(
    p=st.sampled_from([0.5, 0.6, 0.9]),
    chances=st.lists(st.floats(0.0, 1.0) | st.sampled_from([0.0, 1.0]), min_size=1, max_size=5),
    k=st.integers(2, 4),
    release=st.integers(0, 8),
    noise=st.sampled_from([0.3, 1.0, 2.5]),
    epsilon=st.floats(0.0, 4.0),
    controlled=st.tuples(st.integers(0, 2), st.integers(0, 2)),
    active=st.booleans(),
)
def test_no_attacker_learns_more(
    p: float,
    chances: list[float],
    k: int,
    release: int,
    noise: float,
    epsilon: float,
    controlled: tuple[int, int],
    active: bool,
) -> None:
    # Within [1 - p, p], in the float that errs inward.
    shares = [min(p, max(1.0 - p, (1.0 - p) + (2.0 * p - 1.0) * chance)) for chance in chances]
    with flint.ctx.workprec(BITS):
        people = [[flint.arb(share), 1 - flint.arb(share), 0] for share in shares]
        # Of those who are known not all need be in the two cells; others merely know some of the people.
        controlled = controlled if sum(controlled) <= k - 2 else (0, 0)
        merely_known = min(k - 2, len(people) - 1)
        unknown, known = (people, controlled) if active else (people[merely_known:], people[:merely_known])
        shape = {"k": k, "noise": noise, "release": release}
        sides = table_losses(unknown, known, epsilon, exact_exp, cells=2, lives=(0, 1), **shape)
        truth = float(max(lower_end(flint.arb(side)) for side in sides))
    for number in range(sum(controlled) if active else merely_known, k - 1):
        assert truth <= bound(p, k, noise, release, people=5, cap=5, known=number).bracket(np.array([epsilon]))[1][0]


@thinned(2)
@pytest.mark.parametrize("known", [1, 3])
def test_controlled_people_lower_the_thresholds_of_the_cells_that_they_are_in(known: int) -> None:
    p, k, noise, release, epsilons = 0.6, 6, 1.0, 12, np.array([0.3, 2.2])
    shape = {"theorem": "attack", "p": p, "k": k, "noise": noise, "release_threshold": release}
    certified = bound(p, k, noise, release, people=60, known=known).bracket(epsilons)[1]
    attained = ReachedBetween(**shape, known=known).bracket(epsilons)[0]
    assert np.all(attained > ReachedBetween(**shape).bracket(epsilons)[0])
    assert np.all((attained <= certified) & (certified <= 2.5 * attained))


@thinned(2)
@pytest.mark.parametrize(("p", "k", "noise", "release"), [(0.6, 5, 1.0, 12), (0.5, 4, 0.5, 4), (0.8, 3, 0.7, 10)])
def test_no_vertex_of_any_size_is_above(p: float, k: int, noise: float, release: int) -> None:
    epsilons = np.array([0.0, 0.3, 1.0, 2.2])
    # What is looked at, what is bounded between two of those, and what is bounded beyond have to cover all.
    certified = bound(p, k, noise, release).bracket(epsilons)[1]
    few_people = bound(p, k, noise, release, people=12).bracket(epsilons)[1]
    for people in (k - 1, k, 2 * k, 15, 31, 60):
        laws = [np.ones(1)] * (people + 1)
        for rather, _ in enumerate(laws):
            for person in range(people):
                chance = p if person < rather else 1.0 - p
                laws[rather] = np.convolve(laws[rather], [1.0 - chance, chance])
        lives = lives_of(np.array(laws), noise, k, release, (0, 0))
        for index, epsilon in enumerate(epsilons.tolist()):
            for first, second in (lives, lives[::-1]):
                truth = np.maximum(0.0, first - math.exp(epsilon) * second).sum(axis=1).max() * (1.0 - 1e-9) - 1e-12
                assert truth <= min(certified[index], few_people[index])


@settings(max_examples=few(60), deadline=None)
@given(
    p=st.floats(0.5, 0.95),
    people=st.integers(1, 4),
    rather=st.integers(0, 4),
    k=st.none() | st.integers(2, 4),
    release=st.none() | st.integers(-2, 8),
    noise=st.sampled_from([0.3, 1.0, 2.5]),
    epsilon=st.floats(0.0, 4.0),
)
def test_two_looks_are_those_of_the_enumeration(
    p: float, people: int, rather: int, k: int | None, release: int | None, noise: float, epsilon: float
) -> None:
    chances = [p if person < rather else 1.0 - p for person in range(people)]
    with flint.ctx.workprec(BITS):
        crowd = [[flint.arb(chance), 1 - flint.arb(chance), 0] for chance in chances]
        shape = {"k": k, "noise": noise, "release": release}
        sides = table_losses(crowd, (0, 0), epsilon, exact_exp, cells=2, lives=(0, 1), **shape)
        exact = [float(lower_end(flint.arb(side))) for side in sides]
    law = np.ones(1)
    for chance in chances:
        law = np.convolve(law, [1.0 - chance, chance])
    lives = lives_of(law[None], noise, k or 0, release, (0, 0))
    assert [life.sum() for life in lives] == pytest.approx([1.0, 1.0], abs=1e-12)
    growth = math.exp(epsilon)
    gains = [float(np.maximum(0.0, first - growth * second).sum()) for first, second in (lives, lives[::-1])]
    assert gains == pytest.approx(exact, rel=1e-9, abs=1e-12)


@settings(max_examples=few(20), deadline=None)
@given(
    p=st.floats(0.5, 0.9),
    surer=st.floats(0.0, 0.09),
    k=st.integers(2, 5),
    noise=st.floats(0.3, 2.0),
    cap=st.integers(1, 12),
)
def test_whoever_is_surer_is_told_no_less(p: float, surer: float, k: int, noise: float, cap: int) -> None:
    epsilons = np.array([0.1, 1.0, 2.0])
    less = bound(p, k, noise, k + 4, people=cap, cap=cap).bracket(epsilons)[1]
    more = bound(p + surer, k, noise, k + 4, people=cap + 1, cap=cap + 1).bracket(epsilons)[1]
    assert np.all(less <= more * (1.0 + 1e-9) + 1e-15)


@pytest.mark.parametrize(("p", "known"), [(0.5, 0), (0.6, 0), (0.6, 1)])
def test_it_is_reached(p: float, known: int) -> None:
    mechanism = pkdp.Histogram(k=4, noise=pkdp.GeometricNoise(1.0), release_threshold=12)
    attacker = pkdp.AttackerModel(p_max_between=p, known=known, influence="active")
    certificate = pkdp.certify(mechanism, attacker, protects="value")
    attained, certified = certificate.delta_bounds(np.array([0.3, 2.2, 3.0]))
    assert np.all((attained > 0.0) & (attained <= certified) & (certified <= 1.0002 * attained))


def test_chances_that_underflow_do_not_lower_it() -> None:
    # In a life the first cell is shown with 2^-65 α/(1 + α) or more, in the other with α (1 + α)^65 times that, which
    # a float rounds to a multiple of 2^-1074, to nearly twice as much.
    noise, delta = 350.0, 2.0**-65 * math.exp(-350.0) * -math.expm1(-0.5)
    attained, certified = bound(0.5, 2, noise, 67, people=65, cap=65).bracket(np.array([noise - 0.5]))
    assert attained[0] <= delta <= certified[0] * (1.0 + 1e-12)
    # From ε0 on nothing is seen that has such a chance.
    assert bound(0.999, 2, noise, 6, people=4, cap=4).bracket(np.array([noise]))[0][0] < 1e-250


def test_an_epsilon_is_the_smallest() -> None:
    two_cells = bound(0.6, 4, 1.0, 12)
    epsilon = two_cells.smallest_epsilon(1e-3)
    deltas = two_cells.certified(np.array([epsilon, 0.999 * epsilon]))
    assert deltas[0] <= 1e-3 < deltas[1]
