"""Theorem D for two cells, where absence is possible: against enumeration, and the step that its proof adds."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from typing import Any

import flint
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle.laws import BITS, exact_exp, lower_end
from oracle.releases import table_losses
from thorough import few

import pkdp_pipeline as pkdp
from pkdp_pipeline.theorems.hull import told_apart
from pkdp_pipeline.theorems.noisy_crowd import ReachedThroughAbsence


def bounds(attacker: pkdp.AttackerModel, k: int, noise: float, release: int) -> Any:
    mechanism = pkdp.Histogram(k=k, noise=pkdp.GeometricNoise(noise), release_threshold=release)
    certificate = pkdp.certify(mechanism, attacker, protects="value")
    return next(applied for applied in certificate.partial_bounds if applied.bound.theorem == "noisy_value")


def truth(people: Any, known: Any, epsilon: float, k: int, noise: float, release: int) -> float:
    """Return the larger divergence of an attacker whose people are in either cell with these odds, never above it."""
    with flint.ctx.workprec(BITS):
        chances = [
            [flint.arb(odds) / (1 + sum(map(flint.arb, person))) for odds in (*person, 1.0)] for person in people
        ]
        shape = {"k": k, "noise": noise, "release": release}
        sides = table_losses(chances, known, epsilon, exact_exp, cells=2, lives=(0, 1), **shape)
        return float(max(lower_end(flint.arb(side)) for side in sides))


SHARES = st.floats(0.0, 1.0) | st.sampled_from([0.0, 1.0])


@settings(max_examples=few(60, 15), deadline=None)
@given(
    p=st.sampled_from([0.1, 0.5, 0.8]),
    shares=st.lists(st.tuples(SHARES, SHARES), max_size=4),
    k=st.integers(2, 4),
    noise=st.sampled_from([0.1, 0.5, 1.0, 2.5]),
    release=st.integers(0, 8),
    epsilon=st.floats(0.0, 3.0),
    controlled=st.tuples(st.integers(0, 1), st.integers(0, 1)),
)
def test_no_attacker_learns_more(
    p: float,
    shares: list[tuple[float, float]],
    k: int,
    noise: float,
    release: int,
    epsilon: float,
    controlled: tuple[int, int],
) -> None:
    most = p / (1.0 - p) * (1.0 - 1e-12)
    people = [[most * share for share in person] for person in shares]
    known = controlled if sum(controlled) <= k - 2 else (0, 0)
    attacker = pkdp.AttackerModel(p_max=p, unknown_max=4, known=sum(known), influence="active")
    bound = bounds(attacker, k, noise, release).bound
    assert truth(people, known, epsilon, k, noise, release) <= bound.certified(np.array([epsilon]))[0]


@pytest.mark.parametrize("noise", [0.01, 0.3, math.log(2.0), 1.0, 3.0, 30.0, 40.0])
def test_the_rest_of_what_suppresses_a_count_is_likelier_for_smaller_ones(noise: float) -> None:
    with flint.ctx.workprec(3000):
        alpha = (-flint.arb(noise)).exp()

        def below(step: int) -> Any:
            return 1 - alpha**step / (1 + alpha) if step >= 1 else alpha ** (1 - step) / (1 + alpha)

        for above in (-140, -28, *range(-4, 40)):
            rest = 1 - flint.arb(told_apart(noise, above))
            # From count to count the chance of "suppressed" falls by these factors, which have to grow.
            # Where the rest is 0 no smaller count than k is suppressed in this way.
            least = flint.arb(int(rest > 0))
            factors = [least, rest / below(above), *(below(above - j) / below(above - j - 1) for j in range(9))]
            assert all(less <= more * (1 + flint.arb(2) ** -200) for less, more in pairwise(factors)), above


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 0.9, 1.3])
def test_two_crowds_reach_what_is_said_and_no_more(epsilon: float) -> None:
    k, noise, release, p, cap = 3, 0.5, 5, 0.4, 6
    applied = bounds(pkdp.AttackerModel(p_max=p, unknown_max=cap), k, noise, release)
    assert isinstance(applied.attack, ReachedThroughAbsence)
    odds = 0.4 / 0.6
    exact = max(
        truth([[odds, 0.0]] * first + [[0.0, odds]] * second, (0, 0), epsilon, k, noise, release)
        for first in range(cap + 1)
        for second in range(cap + 1 - first)
    )
    attained = float(applied.attack.bracket(np.array([epsilon]))[0][0])
    assert 0.9 * exact <= attained <= exact * (1.0 + 1e-9)
    assert exact <= applied.bound.certified(np.array([epsilon]))[0]


@pytest.mark.slow
def test_noise_behind_a_threshold_costs_less_than_either_alone() -> None:
    mechanism = pkdp.Histogram(k=20, noise=pkdp.GeometricNoise(0.5), release_threshold=40)
    certificate = pkdp.certify(mechanism, pkdp.AttackerModel(p_max=0.1), protects="value")
    assert certificate.epsilon(1e-6) < 0.806 < 1.59
    attained, certified = certificate.delta_bounds(np.array([0.3, 0.5, 1.0]))
    assert np.all((attained <= certified) & (certified <= 1.12 * attained))


def test_a_cell_without_a_row_has_to_tell_of_its_being_empty_and_that_is_added() -> None:
    # α = 3/4: "no row" at 0 people is surer than at few, so that the others of the first life may be the fewer ones.
    release, k, noise = 8, 8, math.log(4 / 3)
    silent = [Fraction(1), *(1 - Fraction(3, 4) ** (release - s) / Fraction(7, 4) for s in range(1, k))]
    law = [Fraction(math.comb(9, s) * 4 ** (9 - s), 5**9) for s in range(k)]

    def empty(hidden: list[Fraction], life: int) -> Fraction:
        weights = [law[s] * hidden[s + life] for s in range(k - life)]
        return weights[0] / sum(weights)

    assert empty(silent, 0) > empty(silent, 1)
    added = told_apart(noise, release - 1)
    assert empty([1 - Fraction(added), *silent[1:]], 0) <= empty(silent, 1)
    mechanism = pkdp.Histogram(k=k, noise=pkdp.GeometricNoise(noise), release_threshold=release, below="noise_from_1")
    (applied,) = pkdp.certify(mechanism, pkdp.AttackerModel(p_max=0.2), protects="value").partial_bounds
    points = np.array([0.5, 1.0, 2.0])
    without = replace(applied.bound, added=0.0).certified(points)
    assert np.all(applied.bound.certified(points) >= np.minimum(1.0, without + added))
    assert 0.0 < added < Fraction(3, 4) ** (release - 1) / Fraction(7, 4)
