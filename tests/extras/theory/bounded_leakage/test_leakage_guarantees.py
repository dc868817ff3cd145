"""The theorems of bounded leakage on random small mechanisms, enumerated: never above, and attained where said so."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise

import flint
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_pairs import apart, binary, bit, coin, composed_delta, growths, line, pairs, step
from thorough import examples as examples_of
from thorough import few

from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.extras.theory.bounded_leakage import (
    LeakagePair,
    _after,
    along_path,
    beside_private_leakage,
    chained,
    given_leakage,
    growth_above,
    growth_below,
)
from pkdp_pipeline.extras.theory.privacy_loss.side import exact_end
from pkdp_pipeline.theorems.numerics import float_above

EPSILONS = st.sampled_from([0.0, 0.125, 0.4, 1.0, 2.5])
DELTAS = st.sampled_from([0.0, 1e-9, 0.01, 0.2, 0.6])


def holds(pair, epsilon, delta, true):
    """Say whether what is true of `pair` at a growth is at most δ at ε; e^ε is enclosed to 50 digits."""
    return true(growth_above(min(epsilon, 700.0))) <= Fraction(delta)


# Theorem 4


@examples_of(quick=60, full=2000)
def test_theorem_4_is_never_above_for_output_and_leakage_together(examples):
    @settings(max_examples=examples, deadline=None)
    @given(pairs(databases=2, outputs=2, leaked=3), EPSILONS, EPSILONS)
    def check(pair, first, second):
        given_it = (first, pair.certified_delta(first))
        leaks = (second, float_above(pair.leakage_delta(growth_below(second))))
        epsilon, delta = beside_private_leakage(given_it, leaks)
        assert holds(pair, epsilon, delta, pair.joint_delta)
        assert pair.mechanism_delta(3) <= pair.joint_delta(3)

    check()


@settings(max_examples=few(50), deadline=None)
@given(pairs(databases=3, outputs=2, leaked=3), growths, growths)
def test_theorem_4_in_rational_numbers_without_any_rounding(pair, first, second):
    bound = composed_delta(pair.delta(first), pair.leakage_delta(second))
    assert pair.joint_delta(first * second) <= bound


@pytest.mark.parametrize(
    "first", [(Fraction(3, 2), Fraction(1, 10)), (Fraction(1), Fraction(0)), (Fraction(4), Fraction(0))]
)
@pytest.mark.parametrize("second", [(Fraction(2), Fraction(1, 5)), (Fraction(3), Fraction(0))])
def test_theorem_4_is_attained(first, second):
    laws = {x: coin(bit(x, *first), bit(x, *second)) for x in (0, 1)}
    pair = LeakagePair(laws=laws, neighbours=line((0, 1)))
    assert pair.delta(first[0]) == first[1]
    assert pair.leakage_delta(second[0]) == second[1]
    bound = composed_delta(first[1], second[1])
    growth = first[0] * second[0]
    assert pair.joint_delta(growth) == bound
    if first[0] * second[0] > 1:
        # And at no smaller ε.
        assert pair.joint_delta(growth * Fraction(999, 1000)) > bound
    _, delta = beside_private_leakage((1.0, float_above(first[1])), (1.0, float_above(second[1])))
    assert bound <= Fraction(delta) <= bound + Fraction(1, 10**15)


def test_the_output_alone_can_attain_theorem_4_too():
    # The output contains the leaked value, so this is the pure case as it is printed.
    laws = {
        x: {
            ((y, o), o): p
            for (y, o), p in coin(bit(x, Fraction(2), Fraction(0)), bit(x, Fraction(3), Fraction(0))).items()
        }
        for x in (0, 1)
    }
    pair = LeakagePair(laws=laws, neighbours=line((0, 1)))
    assert pair.delta(2) == 0
    assert pair.leakage_delta(3) == 0
    assert pair.mechanism_delta(6) == 0
    assert pair.mechanism_delta(Fraction(599, 100)) > 0


def test_the_printed_remark_grows_with_the_number_of_leaked_values_and_the_theorem_does_not():
    # Ten values can leak; the remark charges 11 δ2, the truth is δ2.
    small = Fraction(1, 50)
    values = range(10)
    laws = {}
    for x in (0, 1):
        told_values = {("told", x): small, **dict.fromkeys(values, (1 - small) / 10)}
        laws[x] = coin({"nothing": Fraction(1)}, told_values)
    pair = LeakagePair(laws=laws, neighbours=line((0, 1)))
    assert pair.delta(1) == 0
    assert pair.leakage_delta(1) == pair.joint_delta(1) == small
    assert beside_private_leakage((0.0, 0.0), (0.0, 0.02))[1] == 0.02 < (1 + 10) * 0.02


# Theorems 9 and 12, Lemma 7, Corollaries 13 and 14


@examples_of(quick=60, full=2000)
def test_theorem_9_is_never_above_also_when_the_leaked_value_is_revealed(examples):
    @settings(max_examples=examples, deadline=None)
    @given(pairs(databases=2, outputs=3, leaked=2), EPSILONS, EPSILONS)
    def check(pair, alone, dependence):
        private = (alone, float_above(pair.mechanism_delta(growth_below(alone))))
        depends = (dependence, float_above(pair.independence(growth_below(dependence))))
        epsilon, delta = given_leakage(private, depends)
        assert holds(pair, epsilon, delta, pair.delta)
        assert holds(pair, epsilon, delta, pair.revealed().delta)

    check()


@settings(max_examples=50, deadline=None)
@given(pairs(databases=3, outputs=2, leaked=2), growths, growths)
def test_theorem_9_in_rational_numbers_without_any_rounding(pair, alone, dependence):
    delta, extra = pair.mechanism_delta(alone), pair.independence(dependence)
    bound = step(step(step(Fraction(0), dependence, extra), alone, delta), dependence, extra)
    assert pair.delta(alone * dependence**2) <= bound
    printed = (dependence * alone + 1) * extra + dependence * delta
    assert bound <= min(1, printed)


@settings(max_examples=50, deadline=None)
@given(
    st.tuples(growths, st.fractions(0, Fraction(1, 3), max_denominator=50)),
    st.tuples(growths, st.fractions(0, Fraction(1, 3), max_denominator=50)),
)
def test_theorem_9_is_attained_whatever_the_numbers(private, dependence):
    """Two databases, two outputs, two leaked values of which one is as rare as it must be."""
    (growth, delta), (loose, extra) = private, dependence
    if loose == 1 and extra == 0:
        return  # perfectly independent: Lemma 7, below
    given_second = Fraction(0)
    alone_second = step(given_second, loose, extra)
    alone_first = step(alone_second, growth, delta)
    given_first = step(alone_first, loose, extra)
    rare = Fraction(1, 1000)
    laws = {}
    for x, alone, given_it in ((0, alone_first, given_first), (1, alone_second, given_second)):
        other = (alone - rare * given_it) / (1 - rare)
        laws[x] = {(y, "rare"): rare * p for y, p in binary(given_it).items()} | {
            (y, "often"): (1 - rare) * p for y, p in binary(other).items()
        }
    pair = LeakagePair(laws=laws, neighbours=line((0, 1)))
    assert pair.mechanism_delta(growth) <= delta
    assert pair.independence(loose) <= extra
    assert pair.delta_given("rare", growth * loose**2) == given_first
    epsilons = [math.log(growth), math.log(loose)]
    certified = given_leakage((epsilons[0], float_above(delta)), (epsilons[1], float_above(extra)))[1]
    assert certified == pytest.approx(float(given_first), rel=1e-12)


def test_the_printed_delta_of_theorem_9_is_the_same_while_it_is_small():
    for epsilon, delta, loose, extra in [(1.0, 1e-6, 0.25, 1e-5), (0.5, 0.0, 0.1, 1e-3), (2.0, 1e-9, 0.0, 1e-9)]:
        printed = (math.exp(loose + epsilon) + 1) * extra + math.exp(loose) * delta
        got = given_leakage((epsilon, delta), (loose, extra))
        assert got == (pytest.approx(epsilon + 2 * loose), pytest.approx(printed, rel=1e-12))
    # Where it is not, the printed one is above 1 and says nothing.
    assert (math.exp(1.5) + 1) * 0.2 + math.exp(0.5) * 0.01 > 1.1
    assert given_leakage((1.0, 0.01), (0.5, 0.2))[1] < 0.9


@settings(max_examples=few(60), deadline=None)
@given(st.data(), growths)
def test_lemma_7_keeps_the_numbers_exactly(data, growth):
    # Independent: what leaks has randomness of its own, or is a function of the database.
    base = data.draw(pairs(databases=3, outputs=3, leaked=1))
    alone = {x: {y: p for (y, _), p in law.items()} for x, law in base.laws.items()}
    leaks = data.draw(st.sampled_from([{0: Fraction(1)}, {0: Fraction(1, 3), 1: Fraction(2, 3)}]))
    pair = LeakagePair(laws={x: coin(law, leaks) for x, law in alone.items()}, neighbours=base.neighbours)
    assert pair.independence(1) == 0
    assert pair.delta(growth) == pair.mechanism_delta(growth) == base.mechanism_delta(growth)
    # A function of the database: it can only take neighbours away.
    grouped = LeakagePair(
        laws={x: coin(law, {x // 2: Fraction(1)}) for x, law in alone.items()}, neighbours=base.neighbours
    )
    assert grouped.independence(1) == 0
    assert grouped.delta(growth) <= grouped.mechanism_delta(growth)


@given(EPSILONS, DELTAS)
def test_lemma_7_is_the_default(epsilon, delta):
    assert given_leakage((epsilon, delta)) == (epsilon, delta)


@settings(max_examples=few(60), deadline=None)
@given(pairs(databases=3, outputs=2, leaked=3), growths)
def test_theorem_12_revealing_what_leaks_changes_nothing(pair, growth):
    assert pair.revealed().delta(growth) == pair.delta(growth)
    assert pair.revealed().mechanism_delta(growth) == pair.joint_delta(growth)


# Theorem 22


@examples_of(quick=50, full=1000)
def test_theorem_22_is_never_above_along_any_path(examples):
    @settings(max_examples=examples, deadline=None)
    @given(pairs(databases=4, outputs=2, leaked=2), EPSILONS)
    def check(pair, epsilon):
        promised = (epsilon, pair.certified_delta(epsilon))
        for leaked in (0, 1):
            for first in range(4):
                for last in range(4):
                    path = pair.path(first, last, leaked)
                    if path is None or len(path) < 2:
                        continue
                    assert all(leaked in {o for _, o in pair.laws[x]} for x in path)
                    assert all(each in pair.neighbours for each in pairwise(path))
                    total, delta = along_path(promised, len(path) - 1)
                    true = pair.divergence(first, last, leaked, growth_above(total))
                    assert true <= Fraction(delta)

    check()


@pytest.mark.parametrize("growth", [Fraction(1), Fraction(3, 2), Fraction(3)])
@pytest.mark.parametrize("delta", [Fraction(0), Fraction(1, 100), Fraction(1, 7)])
def test_theorem_22_is_attained(growth, delta):
    # Databases in a row, one more step of the same event each.
    chances = [Fraction(0)]
    for _ in range(4):
        chances.append(step(chances[-1], growth, delta))
    laws = {x: coin(binary(chance), {"o": Fraction(1)}) for x, chance in enumerate(reversed(chances))}
    pair = LeakagePair(laws=laws, neighbours=line(range(5)))
    assert pair.delta(growth) <= delta
    for steps in range(1, 5):
        printed = delta * (growth**steps - 1) / (growth - 1) if growth > 1 else delta * steps
        true = pair.divergence(4 - steps, 4, "o", growth**steps)
        assert true == chances[steps] <= min(1, printed)
        certified = along_path((math.log(growth), float_above(delta)), steps)[1]
        assert certified == pytest.approx(float(true), rel=1e-12)
        assert certified <= float_above(printed) * (1 + 1e-12)


def test_long_paths_use_the_printed_form():
    assert along_path((1e-6, 1e-12), 5000)[1] == pytest.approx(1e-12 * math.expm1(5e-3) / math.expm1(1e-6), rel=1e-12)
    assert along_path((0.0, 1e-9), 2000) == (0.0, float_above(Fraction(1e-9) * 2000))
    assert along_path((2.0, 0.0), 10**9)[1] == 0.0
    assert along_path((2.0, 1e-9), 10**9) == (2e9, 1.0)
    before, after = along_path((1e-3, 1e-9), 1000)[1], along_path((1e-3, 1e-9), 1001)[1]
    assert before < after


# Steps in general


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(EPSILONS, DELTAS), max_size=5))
def test_chains_are_rounded_up_and_closely(steps):
    epsilon, delta = chained(steps)
    low = high = Fraction(0)
    for step_epsilon, extra in reversed(steps):
        enclosed = sorted(
            step(t, g, Fraction(extra))
            for t in (low, high)
            for g in (growth_below(step_epsilon), growth_above(step_epsilon))
        )
        low, high = enclosed[0], enclosed[-1]
    # The smallest of three lines need not be enclosed by its ends' values, but it is to 40 digits.
    assert Fraction(delta) >= low - Fraction(1, 10**40)
    assert Fraction(delta) <= high * (1 + Fraction(1, 10**15)) + Fraction(1, 10**40)
    assert Fraction(epsilon) >= sum(Fraction(step_epsilon) for step_epsilon, _ in steps)


@pytest.mark.parametrize("reached", [Fraction(1, 3), Fraction(9, 10), Fraction(1, 10**20)])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.3])
def test_every_step_is_rounded_up_before_it_becomes_a_float(reached, epsilon):
    with flint.ctx.workprec(1000):
        ball = flint.arb(epsilon).exp()
        low, high = exact_end(ball.lower()), exact_end(ball.upper())
    delta = Fraction(0.01)
    # Below the truth by 1e-290 or so: nearer to it than anything that is computed with 192 bits.
    true = min(low * reached + delta, 1 - (1 - delta - reached) / low)
    got = _after(reached, epsilon, 0.01)
    assert true < got < true + Fraction(1, 10**50)
    assert low < high


def test_chains_of_nothing_and_of_infinite_steps():
    assert chained([]) == (0.0, 0.0)
    assert chained([(math.inf, 0.25)]) == (math.inf, 0.25)
    assert chained([(math.inf, 0.25), (1.0, 0.125)]) == (math.inf, 1.0)
    assert chained([(1e300, 0.25), (1e300, 0.125)]) == (2e300, 1.0)
    assert chained([(3.0, 1.0)]) == (3.0, 1.0)
    assert chained([(700.0, 1e-308)] * 3)[1] <= 1.0


def test_what_is_no_guarantee_is_refused():
    for bad in [(-1.0, 0.0), (1.0, 2.0), (math.nan, 0.0), (1.0,), 1.0, ("1", 0), (True, 0.0)]:
        with pytest.raises(ArgumentError, match="must be"):
            given_leakage(bad)
        with pytest.raises(ArgumentError, match="must be"):
            beside_private_leakage((1.0, 0.0), bad)
        with pytest.raises(ArgumentError, match="must be"):
            chained([bad])
    with pytest.raises(ArgumentError, match="steps must be at least 1"):
        along_path((1.0, 0.0), 0)


def test_a_growth_is_on_its_side_of_the_exponential():
    assert growth_below(0.0) == growth_above(0.0) == 1
    for epsilon in (1e-300, 1e-9, 0.1, 1.0, 37.5, 700.0):
        low, high = growth_below(epsilon), growth_above(epsilon)
        assert 1 <= low < high < low * (1 + Fraction(1, 10**50))
        assert float(low) == pytest.approx(math.exp(epsilon))
        # e^ε is above every partial sum of its series.
        assert high > sum(Fraction(epsilon) ** n / math.factorial(n) for n in range(5))
    for bad in (-0.1, 701.0, math.inf, math.nan, True, "1"):
        with pytest.raises(ArgumentError, match="epsilon must be"):
            growth_below(bad)


@given(pairs(databases=2, outputs=2, leaked=2), growths)
def test_the_divergence_is_the_largest_over_all_events(pair, growth):
    for leaked in (0, 1):
        laws = []
        for x in (0, 1):
            here = {y: p for (y, o), p in pair.laws[x].items() if o == leaked}
            total = sum(here.values(), Fraction(0))
            if total:
                laws.append({y: p / total for y, p in here.items()})
        if len(laws) == 2:
            assert pair.divergence(0, 1, leaked, growth) == apart(*laws, growth)
