"""The dominating pair of thresholding and products of two such pairs, against direct double sums."""

from __future__ import annotations

import math
from fractions import Fraction

import flint
import numpy as np
import pytest
from thorough import one_in, thinned

from pkdp_pipeline.theorems.thresholding import Thresholding, ValueThroughAbsence
from pkdp_pipeline.theorems.waiting_pair import mixed, product_above, reaching_pair, waiting_pair


def waiting_laws(t, p, cap):
    """The laws of min(W_t, cap + 1) and min(W_{t+1}, cap + 1) as exact fractions."""
    exact = Fraction(p)
    first, second, nothing = [], [], Fraction(0)
    for m in range(t, cap + 1):
        tail = (1 - exact) ** (m - t)
        first.append(Fraction(math.comb(m - 1, t - 1)) * exact**t * tail)
        second.append(
            Fraction(math.comb(m - 1, t)) * exact ** (t + 1) * (1 - exact) ** (m - t - 1) if m > t else nothing
        )
    return [*first, 1 - sum(first, nothing)], [*second, 1 - sum(second, nothing)]


@pytest.mark.parametrize(
    ("t1", "t2", "p", "cap"), [(1, 1, 0.3, 12), (3, 5, 0.4, 25), (6, 2, 0.2, 18), (4, 4, 0.7, 8), (2, 2, 0.5, 1)]
)
def test_the_product_of_two_pairs_with_a_cap(t1, t2, p, cap):
    for epsilon in (0.0, 0.1, 0.7, 2.0):
        certified = product_above(waiting_pair(t1, p, cap, 1e-20), waiting_pair(t2, p, cap, 1e-20), epsilon)
        with flint.ctx.workprec(300):
            growth, exact = flint.arb(epsilon).exp(), flint.arb(0)
            for p1, q1 in zip(*waiting_laws(t1, p, cap), strict=True):
                for p2, q2 in zip(*waiting_laws(t2, p, cap), strict=True):
                    here = ball(p1 * q2) - growth * ball(q1 * p2)
                    exact += here if here > 0 else 0
            assert not flint.arb(certified) < exact
            assert flint.arb(certified) <= exact * (1 + flint.arb(1e-9)) + flint.arb(1e-13)


def ball(fraction):
    return flint.arb(flint.fmpq(fraction.numerator, fraction.denominator))


@pytest.mark.parametrize(("t1", "t2", "p", "epsilon"), [(9, 9, 0.3, 1.0), (19, 15, 0.5, 0.8), (40, 40, 0.4, 2.0)])
def test_the_product_of_two_pairs_against_the_direct_double_sum(t1, t2, p, epsilon):
    certified = product_above(waiting_pair(t1, p, None, 1e-40), waiting_pair(t2, p, None, 1e-40), epsilon)
    with flint.ctx.workprec(200):
        laws = []
        for t in (t1, t2):
            first, second = flint.arb(p) ** t, flint.arb(0)
            atoms = []
            for m in range(t, t + 420):
                atoms.append((first, second))
                first = first * m * (1 - flint.arb(p)) / (m + 1 - t)
                second = first * (m + 1 - t) * flint.arb(p) / (t * (1 - flint.arb(p)))
            laws.append(atoms)
        growth, exact = flint.arb(epsilon).exp(), flint.arb(0)
        for p1, q1 in laws[0]:
            for p2, q2 in laws[1]:
                here = p1 * q2 - growth * q1 * p2
                if here > 0:
                    exact += here
        assert flint.arb(certified) >= exact
        assert flint.arb(certified) <= exact * (1 + flint.arb(1e-8)) + flint.arb(1e-25)


@pytest.mark.parametrize(("t", "p", "cap"), [(0, 0.3, None), (-3, 0.3, None), (2, 1.0, None), (2, 1.0, 5)])
def test_pairs_that_hide_nothing_are_disjoint(t, p, cap):
    pair = waiting_pair(t, p, cap, 1e-20)
    assert (pair.first_only, pair.second_only, len(pair.weight)) == (1.0, 1.0, 0)
    assert product_above(pair, waiting_pair(5, 0.3, None, 1e-20), 3.0) == 1.0


@pytest.mark.parametrize(("t", "p", "cap"), [(3, 0.0, None), (3, 0.5, 2), (3, 1.0, 2), (1, 0.5, 0)])
def test_pairs_nobody_can_reach_are_one_law(t, p, cap):
    pair = waiting_pair(t, p, cap, 1e-20)
    assert pair.weight.tolist() == pair.ratio.tolist() == [1.0]
    assert product_above(pair, pair, 0.1) <= 1e-300


@thinned(6)
@pytest.mark.parametrize(("t", "p"), [(1, 0.5), (20, 0.1), (500, 0.01), (9_999, 0.5), (30, 0.999), (30, 1e-300)])
@pytest.mark.parametrize("cap", [None, 0.9, 1.0, 1.3])
def test_a_pair_is_made_of_two_laws(t, p, cap):
    coins = None if cap is None else min(int(cap * t / p), 2**60)
    pair = waiting_pair(t, p, coins, 1e-20)
    assert np.all(np.isfinite(pair.weight))
    assert np.all(np.diff(pair.ratio) >= 0)
    assert math.fsum(pair.weight) + pair.first_only == pytest.approx(1.0, abs=1e-7)
    assert math.fsum(pair.weight * pair.ratio) + pair.second_only == pytest.approx(1.0, abs=1e-7)
    if cap is None:
        assert pair.first_only < 1e-12


def test_a_pair_next_to_one_law_gives_theorem_a():
    # Where the other cell tells nothing, leaving one cell is all that is seen.
    nothing = waiting_pair(3, 0.0, None, 1e-20)
    for epsilon in (0.0, 0.3, 1.0):
        pair = waiting_pair(19, 0.2, None, 1e-30)
        both = max(product_above(pair, nothing, epsilon), product_above(nothing, pair, epsilon))
        exact = Thresholding(theorem="thresholding", k=20, p=0.2).bracket(np.array([epsilon]))[1][0]
        assert both == pytest.approx(exact, rel=1e-9, abs=1e-13)
        assert both >= exact * (1 - 1e-12)


def test_a_public_coin_mixes_products():
    first, second, other = (waiting_pair(t, 0.3, None, 1e-30) for t in (9, 14, 11))
    certified = product_above(mixed([0.25, 0.75], [first, second], 0.0), other, 0.7)
    apart = 0.25 * product_above(first, other, 0.7) + 0.75 * product_above(second, other, 0.7)
    assert certified == pytest.approx(apart, rel=1e-9)
    assert certified >= apart * (1 - 1e-12)
    disclosed = product_above(mixed([0.2, 0.7], [first, second], 0.1), other, 0.7)
    assert disclosed >= 0.1


def direct(t1, t2, p, epsilon):
    """H_ε of the product of two uncapped waiting pairs, in floats, with everything summed directly."""
    steps = np.arange(4_000.0)

    def law(t):
        logs = np.array([math.lgamma(t + i) - math.lgamma(t) - math.lgamma(i + 1.0) for i in steps])
        return np.exp(logs + t * math.log(p) + steps * math.log1p(-p))

    first, second = law(t1), law(t2)
    ratio1, ratio2 = steps * p / (t1 * (1 - p)), steps * p / (t2 * (1 - p))
    total = 0.0
    for weight, ratio in zip(first, ratio1, strict=True):
        total += weight * float((second * np.maximum(ratio2 - math.exp(epsilon) * ratio, 0.0)).sum())
    return total


def thresholded(people: int, p: Fraction, k: int) -> list[tuple[Fraction, Fraction]]:
    """Return the chances of what is published of a count, with the target and without."""
    law = [math.comb(people, s) * p**s * (1 - p) ** (people - s) for s in range(people + 1)]
    lives = [Fraction(0), *law], [*law, Fraction(0)]
    (present, absent) = ([sum(life[:k], Fraction(0)), *life[k:]] for life in lives)
    return list(zip(present, absent, strict=True))


@pytest.mark.parametrize(
    ("k", "p", "low", "high"), [(2, 0.25, 0, 9), (4, 0.5, 5, 8), (5, 0.25, 12, 13), (3, 0.5, 7, 7)]
)
@pytest.mark.parametrize("epsilon", [0.0, 0.5, 1.5])
def test_tosses_tell_what_the_worst_number_of_them_tells(k, p, low, high, epsilon):
    growth, nothing = Fraction(math.exp(epsilon)), waiting_pair(3, 0.0, None, 1e-30)
    pair = reaching_pair(k, p, low, high, 1e-30)
    sizes = range(low if low >= k - 1 else 0, high + 1)
    for order, certified in ((1, product_above(pair, nothing, epsilon)), (-1, product_above(nothing, pair, epsilon))):
        worst = max(
            sum(max(Fraction(0), life[0] - growth * life[1]) for life in (chances[::order] for chances in laws))
            for laws in (thresholded(people, Fraction(p), k) for people in sizes)
        )
        assert float(worst) * (1.0 - 1e-12) <= certified <= float(worst) * (1.0 + 1e-10) + 1e-28


@thinned(2)
@pytest.mark.parametrize(("k", "p", "known"), [(12, 0.2, 0), (15, 0.3, 3), (9, 0.5, 4)])
def test_value_takes_the_worst_way_to_spread_controlled_people(k, p, known):
    bound = ValueThroughAbsence(theorem="histogram_value", k=k, p=p, known=known, active=True)
    for epsilon in (0.2, 1.0):
        ways = [(k - c, k - known + c) for c in range(known + 1)]
        worst = max(
            product_above(
                reaching_pair(first, p, people, people, 1e-30), waiting_pair(second - 1, p, None, 1e-30), epsilon
            )
            for first, second in ways
            for people in range(first - 1, round(3 * k / p))
        )
        certified = bound.certified(np.array([epsilon]))[0]
        assert worst * (1.0 - 1e-9) <= certified <= worst * (1.0 + 2.1e-3)
        assert certified <= max(direct(first - 1, second - 1, p, epsilon) for first, second in ways)


@pytest.mark.parametrize(("k", "p", "known"), one_in(2, [(14, 0.1, 2), (10, 0.05, 3), (10, 0.3, 1)]))
def test_value_averages_over_passive_people_at_the_larger_chance(k, p, known):
    bound = ValueThroughAbsence(theorem="histogram_value", k=k, p=p, known=known)
    chance, epsilon = 2 * p / (1 + p), 0.5

    def law(n):
        return [math.comb(n, b) * chance**b * (1 - chance) ** (n - b) for b in range(n + 1)]

    # The average of products: a public coin per cell decides how many known people are in it.
    worst = 0.0
    for c in range(known + 1):
        total = sum(
            v * w * direct(k - 1 - b, k - 1 - d, p, epsilon)
            for b, v in enumerate(law(c))
            for d, w in enumerate(law(known - c))
        )
        worst = max(worst, total)
    certified = bound.bracket(np.array([epsilon]))[1][0]
    # Beside one or two all sizes of a crowd are looked at, which tells less.
    assert 0.8 * worst < certified < 0.96 * worst if known < 3 else certified == pytest.approx(worst, rel=1e-7)


def exact_product(t, p, epsilon, atoms):
    """H_ε(P ⊗ Q ‖ Q ⊗ P) of the uncapped pair, in balls, over the first atoms only (a lower bound)."""
    p, growth = flint.arb(p), flint.arb(epsilon).exp()
    first = [p**t]
    for i in range(atoms):
        first.append(first[-1] * (t + i) * (1 - p) / (i + 1))
    ratio = [i * p / (t * (1 - p)) for i in range(atoms + 1)]
    mass, weighted = [flint.arb(0)], [flint.arb(0)]
    for i in reversed(range(atoms + 1)):
        mass.append(mass[-1] + first[i])
        weighted.append(weighted[-1] + first[i] * ratio[i])
    mass, weighted = mass[::-1], weighted[::-1]
    total, start = flint.arb(0), 0
    for i in range(atoms + 1):
        level = growth * ratio[i]
        while start <= atoms and not ratio[start] > level:
            start += 1
        total += first[i] * (weighted[start] - level * mass[start])
    return total


@pytest.mark.parametrize(
    ("k", "p", "epsilon"), [(30, 0.2, 1.0), (120, 0.2, 3.0), (150, 0.2, 6.0), (100, 0.5, 3.0), (100, 0.5, 0.0)]
)
def test_value_is_relative_down_to_tiny_delta(k, p, epsilon):
    pair = waiting_pair(k - 1, p, None, 1e-250)
    certified = product_above(pair, pair, epsilon)
    value = ValueThroughAbsence(theorem="histogram_value", k=k, p=p).certified(np.array([epsilon]))[0]
    assert 0.2 * certified < value < certified
    with flint.ctx.workprec(900):
        exact = exact_product(k - 1, p, epsilon, 4_000)
        assert flint.arb(float(certified)) >= exact
        assert flint.arb(float(certified)) <= exact * (1 + flint.arb(1e-8))
        assert k < 120 or p == 0.5 or exact < 1e-40
