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
from pkdp_pipeline.theorems.noisy_between import NoisyBetween, _looks, _pairs
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
    shares = [min(p, max(1.0 - p, (1.0 - p) + (2.0 * p - 1.0) * at)) for at in chances]
    with flint.ctx.workprec(BITS):
        people = [[flint.arb(share), 1 - flint.arb(share), 0] for share in shares]
        # Of those who are known not all need be in the two cells; others merely know some of the people.
        controlled = controlled if sum(controlled) <= k - 2 else (0, 0)
        seen = min(k - 2, len(people) - 1)
        unknown, known = (people, controlled) if active else (people[seen:], people[:seen])
        shape = {"k": k, "noise": noise, "release": release}
        sides = table_losses(unknown, known, epsilon, exact_exp, cells=2, lives=(0, 1), **shape)
        truth = float(max(lower_end(flint.arb(side)) for side in sides))
    for number in range(sum(controlled) if active else seen, k - 1):
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
def test_any_number_of_equal_people_stays_below(p: float, k: int, noise: float, release: int) -> None:
    epsilons = np.array([0.0, 0.3, 1.0, 2.2])
    # What is looked at one by one, and what is bounded beyond, have to cover the same attackers.
    certified = bound(p, k, noise, release).bracket(epsilons)[1]
    few_people = bound(p, k, noise, release, people=12).bracket(epsilons)[1]
    for people in (k - 1, k, 2 * k, 15, 30, 60):
        first, second = ReachedBetween(theorem="attack", p=p, k=k, noise=noise, release_threshold=release).laws(people)
        for at, epsilon in enumerate(epsilons.tolist()):
            for one, other in ((first, second), (second, first)):
                truth = np.maximum(0.0, one - math.exp(epsilon) * other).sum() * (1.0 - 1e-9) - 1e-12
                assert truth <= min(certified[at], few_people[at])


def test_what_is_shown_is_a_law() -> None:
    for noise in (0.3, 1.0):
        law = _pairs(noise)
        assert law.sum() == pytest.approx(1.0, abs=1e-12)
        # Seen from the number itself each look is the noise: the one look is 2 ε0 away from it.
        steps = np.arange(-(len(law) // 2), len(law) // 2 + 1)
        look = np.exp(-2.0 * noise * np.abs(steps)) * math.tanh(noise)
        one = np.convolve(law.sum(axis=1), look, mode="same")
        assert one == pytest.approx(np.exp(-noise * np.abs(steps)) * math.tanh(noise / 2.0), abs=1e-12)
    for life in _looks(0.7, 4, 0.8, 6, 9):
        assert life.min() >= 0.0
        assert life.sum(axis=1) == pytest.approx(1.0, abs=1e-12)


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


def test_it_is_close_where_the_threshold_decides() -> None:
    mechanism = pkdp.Histogram(k=6, noise=pkdp.GeometricNoise(1.0), release_threshold=16)
    certificate = pkdp.certify(mechanism, pkdp.AttackerModel(p_max_between=0.6), protects="value")
    attained, certified = certificate.delta_bounds(np.array([2.2, 3.0]))
    assert np.all((attained > 0.0) & (attained <= certified) & (certified <= 2.0 * attained))
    epsilon = certificate.epsilon(1e-5)
    assert certificate.delta(epsilon) <= 1e-5 < certificate.delta(0.98 * epsilon)
