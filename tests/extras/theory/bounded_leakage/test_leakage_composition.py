"""Composition given leakages: every adaptive adversary of a small family enumerated, and the best possible attained."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_pairs import bit, coin, composed_delta, growths, line, pairs
from thorough import examples as examples_of
from thorough import thinned

from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.extras.theory import printed as as_printed
from pkdp_pipeline.extras.theory.bounded_leakage import (
    LeakagePair,
    advanced_composition,
    basic_composition,
    best_composition,
    growth_above,
    growth_below,
)
from pkdp_pipeline.extras.theory.privacy_loss.side import divergence
from pkdp_pipeline.theorems.numerics import float_above, sum_above


def randomised(growth, delta):
    """Return the most telling pair of its numbers, beside a leakage of its own randomness."""
    leaks = {0: Fraction(1, 3), 1: Fraction(2, 3)}
    return LeakagePair(laws={x: coin(bit(x, growth, delta), leaks) for x in (0, 1)}, neighbours=line((0, 1)))


# Theorem 26, Corollary 28


@settings(max_examples=40, deadline=None)
@given(pairs(databases=2, outputs=2, leaked=2), pairs(databases=2, outputs=2, leaked=2), growths, growths)
def test_corollary_28_is_never_above(first, second, first_growth, second_growth):
    both = first.composed(second)
    bound = composed_delta(first.delta(first_growth), second.delta(second_growth))
    if both.is_empty:  # pragma: no cover - a value that each shares makes one that both share
        pytest.fail("a composition of pairs that say something says something")
    assert both.delta(first_growth * second_growth) <= bound
    assert bound <= first.delta(first_growth) + second.delta(second_growth)
    assert both.leakage_delta(first_growth * second_growth) <= composed_delta(
        first.leakage_delta(first_growth), second.leakage_delta(second_growth)
    )


@settings(max_examples=40, deadline=None)
@given(pairs(databases=2, outputs=2, leaked=2), pairs(databases=2, outputs=2, leaked=2), growths)
def test_theorem_26_a_composition_given_what_leaks_is_the_product_of_reductions(first, second, growth):
    both = first.composed(second)
    for leaks in product((0, 1), repeat=2):
        try:
            whole = both.divergence(0, 1, leaks, growth)
        except ArgumentError:
            continue
        apart = first.reduced(0, 1, leaks[0]).composed(second.reduced(0, 1, leaks[1]))
        assert apart.mechanism_delta(growth) == max(whole, both.divergence(1, 0, leaks, growth))


@thinned(3)
@pytest.mark.parametrize("growth", [Fraction(3, 2), Fraction(4)])
@pytest.mark.parametrize("delta", [Fraction(0), Fraction(1, 20)])
@pytest.mark.parametrize("times", [1, 2, 3])
def test_compositions_are_attained(growth, delta, times):
    single = randomised(growth, delta)
    whole = single
    for _ in range(times - 1):
        whole = whole.composed(single)
    part = (math.log(growth), float_above(delta))
    epsilon, total = basic_composition([part] * times)
    true = whole.delta(growth**times)
    assert true == composed_delta(*[delta] * times)
    assert true <= Fraction(total) <= true + Fraction(1, 10**15)
    assert epsilon == pytest.approx(times * part[0])
    for point in (Fraction(1), Fraction(5, 4), growth, growth ** (times - 1), growth**times * Fraction(999, 1000)):
        best = best_composition(part, times, math.log(max(point, 1)))
        assert best == pytest.approx(float(whole.delta(max(point, Fraction(1)))), rel=1e-9, abs=1e-12)


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from([0.0, 0.1, 0.7, 2.0, 20.0]),
    st.sampled_from([0.0, 1e-40, 1e-3, 0.3]),
    st.integers(1, 6),
    st.sampled_from([0.0, 0.05, 0.7, 3.0, 150.0]),
)
def test_the_best_composition_is_rounded_up_and_closely(epsilon, delta, times, target_epsilon):
    """By hand, in rational numbers on either side."""
    sides = []
    for rate, target in (
        (growth_above(epsilon), growth_below(target_epsilon)),
        (growth_below(epsilon), growth_above(target_epsilon)),
    ):
        # A larger e^ε of the parts and a smaller one of the target can only raise the sum.
        told_by_bits = (
            sum(
                (
                    math.comb(times, wrong) * max(Fraction(0), rate ** (times - wrong) - target * rate**wrong)
                    for wrong in range(times + 1)
                ),
                Fraction(0),
            )
            / (1 + rate) ** times
        )
        sides.append(composed_delta(told_by_bits, *[Fraction(delta)] * times))
    high, low = sides
    got = Fraction(best_composition((epsilon, delta), times, target_epsilon))
    assert got >= low
    assert got <= high * (1 + Fraction(1, 10**12)) + Fraction(1, 10**55)


def test_compositions_are_at_most_what_is_printed_and_what_is_known():
    for epsilon, delta, times, slack in [(0.1, 1e-9, 100, 1e-6), (0.6, 0.0, 50, 1e-9), (2.0, 1e-6, 8, 1e-3)]:
        total, told_by_any = advanced_composition((epsilon, delta), times, slack)
        known = as_printed.advanced_composition((epsilon, delta), times, slack)
        assert total <= known[0]
        assert told_by_any <= known[1]
        # As printed, with e^{ε-1}: a misprint, and still no smaller than what is proved.
        printed = epsilon * math.sqrt(2 * times * math.log(1 / slack)) + times * epsilon * math.exp(epsilon - 1)
        assert total <= printed
        # The best composition is below both.
        assert best_composition((epsilon, delta), times, total) <= told_by_any
        assert basic_composition([(epsilon, delta)] * times) <= (sum_above([epsilon] * times), times * delta)


def test_the_misprint_is_below_the_textbook_form_and_not_below_the_truth():
    """The mean of one loss is ε tanh(ε/2): e^{ε-1} ≥ ε ≥ tanh(ε/2) in place of e^ε - 1 is enough."""
    for step in range(1, 400):
        epsilon = step / 50
        assert math.exp(epsilon - 1) > math.tanh(epsilon / 2)
        assert (math.exp(epsilon - 1) < math.expm1(epsilon)) == (epsilon > -math.log(1 - 1 / math.e))


def test_advanced_composition_is_at_least_the_best_one():
    for epsilon, delta, times, slack in [
        (0.05, 1e-8, 400, 1e-6),
        (1.0, 0.0, 30, 1e-3),
        (0.3, 1e-3, 12, 0.5),
        (2.0, 0.0, 400, 0.4),
    ]:
        total, told_by_any = advanced_composition((epsilon, delta), times, slack)
        assert best_composition((epsilon, delta), times, total) <= told_by_any
        assert total <= times * epsilon * (1 + 1e-15)
    assert advanced_composition((0.5, 1e-6), 3, 1e-9) == basic_composition([(0.5, 1e-6)] * 3)


# Theorem 31


def views(adversary, life, family):
    """Return the law of what an adversary sees of a life: its first answer, and the answer to what it asks next."""
    first, then = adversary
    law = {}
    for answer, chance in answers(first, life, family).items():
        for more, part in answers(then[answer], life, family).items():
            law[answer, more] = law.get((answer, more), Fraction(0)) + chance * part
    return law


def answers(query, life, family):
    """Return the law of the answer to (databases, pair, leaked): null where the two do not share the value."""
    databases, which, leaked = query
    pair = family[which]
    laws = []
    for x in databases:
        here = {y: p for (y, o), p in pair.laws[x].items() if o == leaked}
        laws.append({y: p / sum(here.values()) for y, p in here.items()})
    return laws[life] if all(laws) else {"null": Fraction(1)}


def adversaries(queries, replies):
    for first in queries:
        for then in product(queries, repeat=len(replies)):
            yield first, dict(zip(replies, then, strict=True))


@examples_of(quick=2, full=100)
def test_theorem_31_every_adaptive_adversary_of_a_family(examples):
    @settings(max_examples=examples, deadline=None)
    @given(pairs(databases=2, outputs=2, leaked=2), pairs(databases=2, outputs=2, leaked=2), growths)
    def check(first, second, growth):
        family = (first, second)
        delta = max(pair.delta(growth) for pair in family)
        queries = [(order, which, leaked) for order in ((0, 1), (1, 0)) for which in (0, 1) for leaked in (0, 1)][:6]
        part = (math.log(growth), float_above(delta))
        tried = 0
        for adversary in adversaries(queries, [0, 1, "null"]):
            tried += 1
            laws = [views(adversary, life, family) for life in (0, 1)]
            assert divergence(laws[0], laws[1], growth**2) <= composed_delta(delta, delta)
            if tried % 40 == 0:
                root = float(growth) ** 0.5
                best = best_composition((part[0] * (1 + 1e-12), part[1]), 2, math.log(root))
                assert float(divergence(laws[0], laws[1], Fraction(root))) <= best * (1 + 1e-9) + 1e-12
        assert tried == 6**4

    check()


def test_theorem_31_is_attained_by_an_adversary_that_adapts():
    # Which pair is asked next, and given what, depends on the first answer; the bound is reached all the same.
    growth, delta = Fraction(2), Fraction(1, 10)
    family = (randomised(growth, delta), randomised(growth, delta))
    ask = ((0, 1), 0, 0)
    replies = list(family[0].laws[0])
    adversary = (ask, {answer: ((0, 1), number % 2, number % 2) for number, (answer, _) in enumerate(replies)})
    adversary[1].update({("told", 1): ask})
    laws = [views(adversary, life, family) for life in (0, 1)]
    assert divergence(laws[0], laws[1], growth**2) == composed_delta(delta, delta)
    assert divergence(laws[0], laws[1], growth**2 * Fraction(99, 100)) > composed_delta(delta, delta)


def test_what_cannot_be_composed_is_refused():
    with pytest.raises(ArgumentError, match="a part must be a pair"):
        basic_composition([1.0])
    with pytest.raises(ArgumentError, match="finite"):
        advanced_composition((math.inf, 0.0), 2, 0.1)
    with pytest.raises(ArgumentError, match="slack must be above 0"):
        advanced_composition((1.0, 0.0), 2, 0.0)
    with pytest.raises(ArgumentError, match="times"):
        best_composition((1.0, 0.0), 0, 1.0)
    with pytest.raises(ArgumentError, match="at most"):
        best_composition((1.0, 0.0), 10**6, 1.0)
    with pytest.raises(ArgumentError, match="times"):
        basic_composition([(1.0, 0.0)], [1, 2])


def test_compositions_of_extreme_parts():
    assert basic_composition([]) == (0.0, 0.0)
    assert basic_composition([(math.inf, 0.5), (1.0, 1.0)]) == (math.inf, 1.0)
    many = basic_composition([(1e-3, 1e-9)], [10**6])
    assert many[1] == pytest.approx(-math.expm1(10**6 * math.log1p(-1e-9)), rel=1e-12)
    assert many[1] <= 1e-3
    assert best_composition((1e300, 0.0), 3, 5.0) == 1.0
    assert best_composition((700.0, 1e-300), 3, 5.0) <= 1.0
    assert best_composition((0.0, 0.0), 1000, 0.0) == 0.0
    assert best_composition((0.5, 1.0), 2, 0.1) == 1.0
    assert best_composition((0.5, 1e-60), 2, math.inf) == pytest.approx(2e-60)
