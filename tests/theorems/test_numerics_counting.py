"""Counting by inversion against exact convolutions in ball arithmetic: lower ≤ exact ≤ upper, and narrow."""

from __future__ import annotations

import functools
import math
import random

import flint
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from thorough import ALL, one_in, spread, thinned

from pkdp_pipeline.theorems.counting import Counting
from pkdp_pipeline.theorems.numerics import chord
from pkdp_pipeline.theorems.tilted_inversion import TwoCoinTails, inverted
from pkdp_pipeline.theorems.without_suppression import Options

BITS = 400


def binomial(n, p):
    """The law of Bin(n, p) in balls."""
    p = flint.arb(p)
    return [flint.arb(math.comb(n, s)) * p**s * (1 - p) ** (n - s) for s in range(n + 1)]


def convolved(first, second):
    return (flint.arb_poly(first) * flint.arb_poly(second)).coeffs()


@functools.lru_cache(maxsize=256)
def two_coins(n_low, low, n_high, high):
    law = convolved(binomial(n_low, low), binomial(n_high, high))
    return law + [flint.arb(0)] * (n_low + n_high + 1 - len(law))


def right_divergence(law, epsilon):
    """H_ε of the law against the law shifted up by one: Σ max(0, P(s) - e^ε P(s-1)), mirrored to right tails."""
    growth, total = flint.arb(epsilon).exp(), flint.arb(0)
    for s in range(len(law)):
        here = law[s] - growth * (law[s + 1] if s + 1 < len(law) else 0)
        total += here.max(flint.arb(0))
    return total


def divergence(law, epsilon):
    """Both orders."""
    return right_divergence(law, epsilon).max(right_divergence(law[::-1], epsilon))


def noised(law, noise, epsilon):
    """The law of S + Z on a window, and its exact right divergence: outside it both tails are geometric."""
    alpha = (-flint.arb(noise)).exp()
    norm = (1 - alpha) / (1 + alpha)
    size = len(law)
    # Below 0 and above m the law of S + Z is exactly geometric, in closed form.
    forward, backward = [flint.arb(0)] * size, [flint.arb(0)] * size
    for s in range(size):
        forward[s] = law[s] + (alpha * forward[s - 1] if s else 0)
    for s in reversed(range(size)):
        backward[s] = law[s] + (alpha * backward[s + 1] if s + 1 < size else 0)
    inside = [norm * (forward[s] + backward[s] - law[s]) for s in range(size)]
    growth = flint.arb(epsilon).exp()
    total = flint.arb(0)
    for s in range(size - 1):
        total += (inside[s] - growth * inside[s + 1]).max(flint.arb(0))
    # Above m: P(s+1) = α P(s), so what is left is P(m)/(1-α) times 1 - α e^ε.
    return total + inside[-1] / (1 - alpha) * (1 - alpha * growth).max(flint.arb(0))


def assert_around(sides, exact, width, floor=1e-300):
    lower, upper = (flint.arb(float(side)) for side in sides)
    assert math.isfinite(float(sides[0]))
    assert math.isfinite(float(sides[1]))
    assert not lower > exact
    assert not upper < exact
    if exact > floor:
        assert not upper > exact * (1 + flint.arb(width))
        assert not lower < exact * (1 - flint.arb(width))


def tails(low, high, noise=None):
    return TwoCoinTails(low=low, low_complement=1 - low, high=high, high_complement=1 - high, noise=noise)


def right_tail(low, high, n_low, n_high, epsilon, noise=None):
    lower, upper = tails(low, high, noise).right_tails(
        np.array([float(n_low)]), np.array([float(n_high)]), np.array([epsilon])
    )
    return lower[0], upper[0]


def cases(count, seed):
    draw = random.Random(seed)
    for _ in range(count):
        low = draw.choice([draw.uniform(0.001, 0.5), 10 ** draw.uniform(-12, -1), 0.5])
        high = draw.choice([draw.uniform(low, 1.0 - 1e-9), 1 - 10 ** draw.uniform(-9, -1), 0.5])
        people = draw.choice([0, 1, 2, 3, draw.randrange(4, 40), draw.randrange(40, 200)])
        yield draw, min(low, high), max(low, high), people


def test_random_vertices_without_noise():
    with flint.ctx.workprec(BITS):
        for draw, low, high, people in cases(120, 1):
            epsilon = draw.choice([0.0, 1e-9, draw.uniform(0, 0.3), draw.uniform(0.3, 3), draw.uniform(3, 12)])
            at_high = draw.choice([0, people, people // 2, draw.randrange(people + 1)])
            exact = right_divergence(two_coins(people - at_high, low, at_high, high), epsilon)
            assert_around(right_tail(low, high, people - at_high, at_high, epsilon), exact, 1e-7)


def test_random_vertices_with_noise():
    with flint.ctx.workprec(BITS):
        for draw, low, high, people in cases(80, 2):
            noise = draw.choice([3e-4, 0.002, 0.05, 0.2, 0.5, 1.0, 3.0, 20.0])
            epsilon = noise * draw.choice([0.0, 0.01, 0.5, 0.9, 0.979, 0.9999, draw.random() * 0.98])
            at_high = draw.choice([0, people, people // 2, draw.randrange(people + 1)])
            exact = noised(two_coins(people - at_high, low, at_high, high), noise, epsilon)
            width = 1e-6 if epsilon < 0.98 * noise else math.inf
            assert_around(right_tail(low, high, people - at_high, at_high, epsilon, noise), exact, width)


@settings(max_examples=60, deadline=None)
@given(
    people=st.integers(0, 60),
    shares=st.tuples(st.floats(1e-9, 1 - 1e-9), st.floats(1e-9, 1 - 1e-9)),
    at_high=st.floats(0, 1),
    noise=st.floats(-16, 3).map(math.exp),
    part=st.one_of(st.just(0.0), st.floats(1e-12, 0.9999)),
)
def test_no_noise_and_no_people_break_either_side(people, shares, at_high, noise, part):
    """However wide the noise is beside the window of the coins, and however near ε0."""
    (low, high), at_high = sorted(shares), round(people * at_high)
    with flint.ctx.workprec(BITS):
        exact = noised(two_coins(people - at_high, low, at_high, high), noise, part * noise)
        assert_around(right_tail(low, high, people - at_high, at_high, part * noise, noise), exact, math.inf)


@thinned(3)
@pytest.mark.parametrize("noise", one_in(3, [None, 0.5, 0.02, 0.005]))
@pytest.mark.parametrize(("people", "low", "high"), [(10**6, 0.1, 0.9), (100, 0.05, 0.95), (10**6, 0.3, 0.3)])
def test_an_inversion_ends_at_the_smallest_epsilon(people, low, high, noise):
    bound = Counting(theorem="counting", unknown=people, p_min=low, p_max=high, noise=noise)
    for target in (0.3, 1e-3, 1e-6, 1e-9) if ALL else (0.3, 1e-6):
        epsilon = bound.smallest_epsilon(target)
        if math.isinf(epsilon):
            assert bound.bracket(np.array([100.0]))[0][0] > target
            continue
        assert bound.certified(np.array([epsilon]))[0] <= target
        # Searches end within their slack.
        assert epsilon == 0.0 or bound.certified(np.array([0.999 * epsilon]))[0] > 0.9995 * target


@thinned(6)
@pytest.mark.parametrize("people", [1, 2, 3, 4, 5, 8])
@pytest.mark.parametrize("share", [0.5, 0.5 - 1e-9, 0.49, 0.51])
def test_few_people_near_one_half(people, share):
    with flint.ctx.workprec(BITS):
        for epsilon in (0.0, 1e-12, 0.1, 1.0, 5.0, 30.0):
            exact = right_divergence(two_coins(people, share, 0, share), epsilon)
            assert_around(right_tail(share, share, people, 0, epsilon), exact, 1e-7)
            noisy = noised(two_coins(people, share, 0, share), 2.0, min(epsilon, 1.9))
            assert_around(right_tail(share, share, people, 0, min(epsilon, 1.9), 2.0), noisy, 1e-7)


@thinned(2)
@pytest.mark.parametrize(("low", "high", "at_high"), [(0.3, 0.3, 0), (0.1, 0.9, 1000), (0.2, 0.8, 1), (0.1, 0.9, 2000)])
def test_two_thousand_people_at_tiny_delta(low, high, at_high):
    with flint.ctx.workprec(900):
        law = two_coins(2000 - at_high, low, at_high, high)
        divergences = []
        for epsilon in (0.1, 0.5, 0.8, 1.2, 3.0):
            exact = right_divergence(law, epsilon)
            divergences.append(exact)
            assert_around(right_tail(low, high, 2000 - at_high, at_high, epsilon), exact, 1e-6)
        assert any(1e-90 < exact < 1e-40 for exact in divergences)


def every_vertex(people, low, high, epsilon, noise=None):
    best = flint.arb(0)
    for at_high in range(people + 1):
        law = two_coins(people - at_high, low, at_high, high)
        if noise is None:
            best = best.max(divergence(law, epsilon))
        else:
            best = best.max(noised(law, noise, epsilon)).max(noised(law[::-1], noise, epsilon))
    return best


BOXES = [
    (0, 0.2, 0.8),
    (1, 0.3, 0.4),
    (2, 0.05, 0.95),
    (30, 0.2, 0.6),
    (100, 0.05, 0.95),
    (60, 0.01, 0.02),
    (40, 0.97, 0.99),
]


@thinned(3)
@pytest.mark.parametrize(
    ("people", "low", "high", "noise"),
    spread(3, [pytest.param(*box, id=" ".join(map(str, box))) for box in BOXES], [None, 0.3, 2.0]),
)
def test_every_vertex_is_covered(people, low, high, noise):
    points = np.array([0.0, 0.2, 0.5, 1.0, 2.5])
    lower, upper = Counting(theorem="counting", unknown=people, p_min=low, p_max=high, noise=noise).bracket(points)
    with flint.ctx.workprec(BITS):
        for index, epsilon in enumerate(points.tolist()):
            if noise is not None and epsilon >= noise:
                assert (lower[index], upper[index]) == (0.0, 0.0)
            else:
                exact = every_vertex(people, low, high, epsilon, noise)
                assert_around((lower[index], upper[index]), exact, 0.01)


def test_close_to_the_noise_a_chord_bounds():
    points = np.array([0.985, 0.995, 0.999999, math.nextafter(1.0, 0.0)])
    _, upper = Counting(theorem="noisy_counting", unknown=20, p_min=0.2, p_max=0.7, noise=1.0).bracket(points)
    with flint.ctx.workprec(BITS):
        for index, epsilon in enumerate(points.tolist()):
            assert flint.arb(float(upper[index])) >= every_vertex(20, 0.2, 0.7, epsilon, 1.0)
    assert np.all(np.diff(upper) <= 0)


def test_the_chord_is_the_line_in_the_exponential():
    ends = (0.5, 0.25), (1.0, 0.0)
    assert chord(0.5, *ends) == pytest.approx(0.25, rel=1e-14)
    assert chord(1.0, *ends) <= 1e-15
    middle = 0.25 * (math.e - math.exp(0.75)) / (math.e - math.exp(0.5))
    assert chord(0.75, *ends) == pytest.approx(middle, rel=1e-12)


@pytest.mark.parametrize("people", [10**4, 10**6, 10**9])
def test_the_bracket_proves_one_percent(people):
    sigma = math.sqrt(people * 0.2 * 0.8)
    points = np.array([1.0 / sigma, 5.0 / sigma, 15.0 / sigma])
    lower, upper = Counting(theorem="counting", unknown=people, p_min=0.2, p_max=0.7).bracket(points)
    assert np.all(upper <= 1.01 * lower)
    assert 1e-60 < upper[2] < 1e-40


def test_more_unknown_people_than_are_looked_at_is_still_sound():
    few = Counting(theorem="counting", unknown=2**34, p_min=0.3, p_max=0.3).bracket(np.array([1e-5]))
    many = Counting(theorem="counting", unknown=10**30, p_min=0.3, p_max=0.3).bracket(np.array([1e-5]))
    assert many[1][0] == few[1][0]
    assert many[0][0] == 0.0


@thinned(2)
@pytest.mark.parametrize(
    ("people", "share"), [(0, 0.2), (1, 0.5), (12, 0.1), (60, 0.3), (110, 0.5), (110, 0.02), (130, 0.25)]
)
def test_several_options_average_over_fair_coins(people, share):
    points = [0.0, 0.1, 0.7, 2.0]
    lower, upper = Options(theorem="options", unknown=people, p_min=share).bracket(np.array(points))
    with flint.ctx.workprec(BITS):
        for index, epsilon in enumerate(points):
            exact = flint.arb(0)
            for n, chance in enumerate(binomial(people, 2.0 * share)):
                exact += chance * right_divergence(binomial(n, 0.5), epsilon)
            assert_around((lower[index], upper[index]), exact, 0.01)


@thinned(3)
@pytest.mark.parametrize("noise", [None, 0.9])
@pytest.mark.parametrize(("people", "share", "p"), [(1, 0.1, 0.3), (40, 0.2, 0.9), (90, 0.02, 0.1), (90, 0.25, 0.6)])
def test_coins_of_another_chance_are_averaged_in_both_orders(people, share, p, noise):
    points = [0.0, 0.1, 0.7]
    bound = Options(theorem="cell_counting", unknown=people, p_min=share, p=p, noise=noise)
    lower, upper = bound.bracket(np.array(points))
    with flint.ctx.workprec(BITS):
        chances = binomial(people, flint.arb(share) / flint.arb(p))
        for index, epsilon in enumerate(points):
            orders = [flint.arb(0), flint.arb(0)]
            for n, chance in enumerate(chances):
                law = binomial(n, p)
                for way, ordered_law in enumerate((law, law[::-1])):
                    divergence = (
                        right_divergence(ordered_law, epsilon) if noise is None else noised(ordered_law, noise, epsilon)
                    )
                    orders[way] += chance * divergence
            assert_around((lower[index], upper[index]), orders[0].max(orders[1]), 0.01)


@thinned(4)
@pytest.mark.parametrize(
    ("people", "noise"), [(n, e) for n in (1, 7, 300, 10**4, 10**6) for e in (None, 0.5, 3.0)] + [(10**9, None)]
)
def test_the_width_of_a_bracket_is_what_certificates_may_differ_by(people, noise):
    draw = random.Random(people)
    for _ in range(12):
        low, high = sorted(10 ** draw.uniform(-4, -0.01) for _ in range(2))
        at_high = draw.choice([0, draw.randrange(people + 1), people])
        tails = TwoCoinTails(low=low, low_complement=1 - low, high=high, high_complement=1 - high, noise=noise)
        deviation = math.sqrt(people * min(low * (1 - low), high * (1 - high))) + 1
        points = np.array([draw.uniform(0, 30) / deviation for _ in range(6)])
        points = np.array([point for point in points if noise is None or point < noise])
        many = np.full(len(points), float(people))
        below, above = tails.right_tails(many - at_high, np.full(len(points), float(at_high)), points)
        measurable = above > 1e-285
        assert np.all((above - below)[measurable] <= inverted(people) * above[measurable])
