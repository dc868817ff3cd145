"""Binomial tails and theorem A against ball arithmetic: lower ≤ exact ≤ upper, and narrow."""

from __future__ import annotations

import math
from fractions import Fraction

import flint
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from thorough import few

from pkdp_pipeline.theorems.numerics import (
    binomial_below,
    binomial_weights,
    left_tails,
    likely_counts,
    right_tails,
)
from pkdp_pipeline.theorems.thresholding import Thresholding

BITS = 400
LEFT_OUT = flint.arb(2) ** -BITS


def odds(p):
    return (1 - flint.arb(p)) / flint.arb(p)


def whole(ball):
    return int(ball.floor().unique_fmpz())


def mass(m, s, p):
    """P[Bin(m, p) = s], by its definition."""
    if not 0 <= s <= m:
        return flint.arb(0)
    ways = (flint.arb(m + 1).lgamma() - flint.arb(s + 1).lgamma() - flint.arb(m - s + 1).lgamma()).exp()
    return ways * flint.arb(p) ** s * (1 - flint.arb(p)) ** (m - s)


def at_least(m, s, p):
    """P[Bin(m, p) ≥ s] for s above the mean, summed upward until nothing is left."""
    if s > m:
        return flint.arb(0)
    term = total = mass(m, s, p)
    ratio = 1 / odds(p)
    while s < m:
        factor = ratio * (m - s) / (s + 1)
        term, s = term * factor, s + 1
        total += term
        if factor < 1 and term < total * LEFT_OUT:
            rest = term * factor / (1 - factor)
            return total + flint.arb(0).union(rest)
    return total


def at_most(m, s, p):
    """P[Bin(m, p) ≤ s] for s below the mean, summed downward."""
    if s < 0:
        return flint.arb(0)
    term = total = mass(m, s, p)
    while s > 0:
        factor = odds(p) * s / (m - s + 1)
        term, s = term * factor, s - 1
        total += term
        if factor < 1 and term < total * LEFT_OUT:
            rest = term * factor / (1 - factor)
            return total + flint.arb(0).union(rest)
    return total


def largest(balls):
    best = flint.arb(0)
    for ball in balls:
        best = best.max(ball)
    return best


def exact_right(t, p, epsilon, cap=None):
    """The largest P[S ≥ t] - e^ε P[S ≥ t+1] over m: one more coin helps while its likelihood ratio is above e^ε."""
    growth = flint.arb(epsilon).exp()
    worst = t + whole(t * odds(p) / growth)
    candidates = {min(m, cap) if cap is not None else m for m in (worst - 1, worst, worst + 1)}
    return largest(at_least(m, t, p) - growth * at_least(m, t + 1, p) for m in candidates if m >= t)


def exact_left(t, p, epsilon, cap=None):
    growth = flint.arb(epsilon).exp()
    worst = t + whole(growth * t * odds(p))
    candidates = {min(m, cap) if cap is not None else m for m in (worst - 1, worst, worst + 1)}
    return largest(at_most(m, t, p) - growth * at_most(m, t - 1, p) for m in candidates if m >= t)


def assert_around(sides, exact, width, floor=0.0):
    """lower ≤ exact ≤ upper, and both within `width` of it where it is above `floor`."""
    lower, upper = (flint.arb(float(side)) for side in sides)
    assert math.isfinite(float(sides[0]))
    assert math.isfinite(float(sides[1]))
    assert not lower > exact
    assert not upper < exact
    assert not (exact > floor and upper > exact * (1 + flint.arb(width)))
    assert not (exact > floor and lower < exact * (1 - flint.arb(width)))


ORDINARY = [
    (1, 0.5, 0.5),
    (4, 0.1, 1.0),
    (19, 0.1, 1.0),
    (49, 0.1, 0.0),
    (49, 0.1, 1.0),
    (99, 0.5, 0.5),
    (199, 0.01, 0.25),
    (9, 0.9, 2.0),
    (999, 0.25, 0.01),
    (9_999, 0.1, 0.1),
    (9_999, 0.5, 0.001),
]
TINY_DELTA = [
    (299, 0.1, 1.0),
    (300, 0.3, 1.3),
    (1_000, 0.1, 1.0),
    (9_999, 0.1, 0.3),
    (9_999, 0.01, 0.2),
    (400, 0.5, 2.0),
    (999, 0.1, 1.5),
]
EXTREME = [
    (1, 1e-12, 0.3),
    (49, 1e-12, 1.0),
    (49, 1e-150, 1.0),
    (19, 1e-300, 0.5),
    (19, 5e-324, 0.5),
    (49, 1 - 2**-53, 0.5),
    (999, 1 - 2**-53, 1.0),
    (5, 0.999, 3.0),
    (5, 0.5, 20.0),
    (3, 0.01, 40.0),
    (2, 1e-6, 300.0),
    (2, 0.5, 100.0),
]


@pytest.mark.parametrize(("t", "p", "epsilon"), ORDINARY + TINY_DELTA + EXTREME)
def test_tails_enclose_the_exact_ones(t, p, epsilon):
    with flint.ctx.workprec(BITS + 2 * int(abs(math.log2(p))) + 200):
        right, left = exact_right(t, p, epsilon), exact_left(t, p, epsilon)
        for tails, exact in ((right_tails, right), (left_tails, left)):
            lower, upper = tails([t], p, np.array([epsilon]))
            if p >= 1e-200:
                assert_around((lower[0], upper[0]), exact, 1e-9, floor=1e-300)
            else:
                assert not flint.arb(float(upper[0])) < exact


def test_some_tails_are_as_small_as_the_promise_says():
    with flint.ctx.workprec(BITS + 200):
        values = [exact_right(*case).log() / flint.arb(10).log() for case in TINY_DELTA]
    assert any(-80 < value < -50 for value in values)
    assert any(value < -195 for value in values)


@pytest.mark.parametrize(("t", "p", "epsilon"), [(19, 0.1, 0.3), (49, 0.1, 1.0), (199, 0.4, 0.5), (4, 0.9, 0.2)])
def test_tails_with_few_unknown_people(t, p, epsilon):
    with flint.ctx.workprec(BITS + 200):
        growth = flint.arb(epsilon).exp()
        worst_right, worst_left = t + whole(t * odds(p) / growth), t + whole(growth * t * odds(p))
        caps = {t - 1, t, t + 1, (t + worst_right) // 2, worst_right - 1, worst_right, worst_right + 1}
        caps |= {worst_left - 1, worst_left, worst_left + 1, worst_left * 9 // 10, 3 * worst_left}
        for cap in caps:
            lower, upper = right_tails([t], p, np.array([epsilon]), cap=cap)
            assert_around((lower[0], upper[0]), exact_right(t, p, epsilon, cap), 1e-9)
            exact, (lower, upper) = exact_left(t, p, epsilon, cap), left_tails([t], p, np.array([epsilon]), cap=cap)
            assert_around((lower[0], upper[0]), exact, 1e-9, floor=mass(cap, t, p) * 1e-2)
            bracket = Thresholding(theorem="thresholding", k=t + 1, p=p, cap=cap).bracket(np.array([epsilon]))
            whole_exact = largest([exact, exact_right(t, p, epsilon, cap)])
            assert_around((bracket[0][0], bracket[1][0]), whole_exact, 1e-9)


@given(
    st.integers(1, 60),
    st.floats(1e-6, 0.999),
    st.floats(0.0, 6.0),
    st.one_of(st.none(), st.integers(0, 300)),
)
@settings(max_examples=few(120))
def test_random_tails(t, p, epsilon, cap):
    with flint.ctx.workprec(BITS + 200):
        exact = largest([exact_right(t, p, epsilon, cap), exact_left(t, p, epsilon, cap)])
        lower, upper = Thresholding(theorem="thresholding", k=t + 1, p=p, cap=cap).bracket(np.array([epsilon]))
        assert_around((lower[0], upper[0]), exact, 1e-9, floor=1e-300)


@pytest.mark.parametrize(("people", "t", "p", "epsilon"), [(30, 4, 0.1, 0.5), (200, 19, 0.05, 0.2), (12, 10, 0.6, 0.1)])
def test_tails_at_a_fixed_number_of_people_bound_from_below(people, t, p, epsilon):
    with flint.ctx.workprec(BITS + 200):
        exact = at_least(people, t, p) - flint.arb(epsilon).exp() * at_least(people, t + 1, p)
        lower, _ = right_tails([t], p, np.array([epsilon]), trials=people)
        assert not flint.arb(float(lower[0])) > largest([exact])
        assert lower[0] == 0.0 or flint.arb(float(lower[0])) > exact * (1 - flint.arb(1e-9))


def test_many_epsilons_are_the_same_as_one_by_one():
    epsilons = np.array([0.0, 1e-3, 0.1, 0.5, 1.0, 3.0, 10.0])
    together = Thresholding(theorem="thresholding", k=50, p=0.1).bracket(epsilons)
    for index, epsilon in enumerate(epsilons):
        alone = Thresholding(theorem="thresholding", k=50, p=0.1).bracket(np.array([epsilon]))
        assert together[1][index] == pytest.approx(alone[1][0], rel=1e-11)


@pytest.mark.parametrize("epsilon", [0.0, 0.5, 2.0, 50.0, 1000.0])
def test_certainty_keeps_its_mass_however_large_epsilon_is(epsilon):
    # k - 1 people, all of whom count: the loss is infinite with mass p^(k-1).
    certified = Thresholding(theorem="thresholding", k=4, p=0.3).bracket(np.array([epsilon]))[1][0]
    assert Fraction(certified) >= Fraction(0.3) ** 3


@pytest.mark.parametrize(
    ("trials", "p", "low", "high"),
    [
        (10, 0.3, 0, 10),
        (200, 0.5, 60, 140),
        (1000, 0.01, 0, 60),
        (5000, 0.97, 4700, 5000),
        (7, 1.0, 0, 7),
        (7, 0.0, 0, 7),
    ],
)
def test_weights_of_known_people(trials, p, low, high):
    weights = binomial_weights(trials, p, low, high)
    with flint.ctx.workprec(400):
        for index, s in enumerate(range(low, high + 1)):
            exact = flint.arb(s == p * trials) if p in (0.0, 1.0) else mass(trials, s, p)
            assert_around((0.0, weights[index]), exact, 1.0, floor=2.0)
            assert flint.arb(float(weights[index])) <= exact * (1 + flint.arb(1e-9)) + flint.arb(1e-280)


@pytest.mark.parametrize(
    ("trials", "p", "bound"),
    [(10, 0.5, 3), (100, 0.5, 20), (1000, 0.9, 850), (50, 0.2, 0), (50, 0.2, 40), (8, 1.0, 8)],
)
def test_the_chernoff_bound_of_the_lower_tail(trials, p, bound):
    above = binomial_below(trials, p, bound)
    if p == 1.0:
        assert above >= 0.0
        return
    with flint.ctx.workprec(BITS):
        exact = sum((mass(trials, s, p) for s in range(bound)), flint.arb(0))
        assert flint.arb(above) >= exact
    assert bound >= trials * p or bound == 0 or above < 1.0


@pytest.mark.parametrize(("trials", "p"), [(0, 0.3), (5, 0.3), (300, 0.01), (5_000, 0.4), (100_000, 0.5), (3, 1.0)])
def test_likely_counts_err_upward_for_what_grows(trials, p):
    low, weights, above = likely_counts(trials, p)
    assert len(weights) >= 1
    assert math.fsum(weights) + above >= 1.0 - 1e-12
    if trials > 300 or p == 1.0:
        return
    # P[at least b] is at most what the moved law says, for every b.
    with flint.ctx.workprec(BITS):
        moved, exact = flint.arb(above), flint.arb(0)
        for b in range(trials, -1, -1):
            exact += mass(trials, b, p)
            moved += float(weights[b - low]) if 0 <= b - low < len(weights) else 0.0
            assert not moved < exact
