"""Theorem 17 on small worlds, enumerated: what all studies tell about somebody, given in how many she was."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_pairs import composed_delta, laws
from thorough import examples as examples_of

from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.extras.theory.bounded_leakage import LeakagePair, advanced_composition, big_world

HALF = Fraction(1, 2)


def study(members, growth, delta):
    """Return a noisy answer to "is the number of members with a 1 odd?", told openly with chance δ."""
    truth = sum(members) % 2
    right = growth / (1 + growth)
    law = {("told", truth): delta, ("says", truth): (1 - delta) * right, ("says", 1 - truth): (1 - delta) * (1 - right)}
    return {outcome: chance for outcome, chance in law.items() if chance}


def world(hers, others, studies, growth, delta, leak):
    """Return the joint law of all outputs and what leaks of her participation, for each of her lives.

    `hers` is, for each life, (her bit, law of which studies she is in); `others` the law of which studies the other
    person is in, who has a 1.
    """
    laws_of_lives = {}
    for life, (record, taking) in hers.items():
        law = {}
        for (mine, chance), (theirs, part) in product(taking.items(), others.items()):
            outputs = {(): Fraction(1)}
            for number in range(studies):
                members = [record] * mine[number] + [1] * theirs[number]
                answer = study(members, growth, delta)
                outputs = {(*before, shown): p * q for before, p in outputs.items() for shown, q in answer.items()}
            for leaked, weight in leak(sum(mine)).items():
                for shown, p in outputs.items():
                    law[shown, leaked] = law.get((shown, leaked), Fraction(0)) + chance * part * weight * p
        laws_of_lives[life] = law
    return LeakagePair(laws=laws_of_lives, neighbours=frozenset(combinations(hers, 2)))


def exactly(number):
    return {number: Fraction(1)}


@examples_of(quick=12, full=400)
@pytest.mark.parametrize("absent", [False, True])
def test_theorem_17_is_never_above(examples, absent):
    studies = 3
    vectors = list(product((0, 1), repeat=studies))

    @settings(max_examples=examples, deadline=None)
    @given(
        laws(vectors),
        laws(vectors),
        laws(vectors, most=2),
        st.sampled_from([Fraction(3, 2), Fraction(3)]),
        st.sampled_from([Fraction(0), Fraction(1, 10)]),
        st.integers(0, 1),
    )
    def check(first, second, others, growth, delta, slack):
        second = {(0,) * studies: Fraction(1)} if absent else second
        hers = {"one life": (0, first), "another": (1, second)}

        def leak(number):
            # The exact number, or a bound that is sometimes larger.
            at_most = min(studies, number + slack)
            return {at_most: Fraction(1)} if at_most == number else {number: HALF, at_most: HALF}

        pair = world(hers, others, studies, growth, delta, leak)
        for t in range(studies + 1):
            if pair.is_empty or t not in {o for law in pair.laws.values() for _, o in law}:
                continue
            if any(t not in {o for _, o in law} for law in pair.laws.values()):
                continue
            differing = min(t if absent else 2 * t, studies)
            bound = composed_delta(*[delta] * differing)
            assert pair.delta_given(t, growth**differing) <= bound

    check()


def test_theorem_17_is_attained_with_disjoint_studies():
    # In one life she is in the first study, in the other in the second; what leaks is that she was in one.
    growth, delta = Fraction(2), Fraction(1, 10)
    hers = {"one life": (1, {(1, 0): Fraction(1)}), "another": (1, {(0, 1): Fraction(1)})}
    pair = world(hers, {(0, 0): Fraction(1)}, 2, growth, delta, exactly)
    assert pair.delta_given(1, growth**2) == composed_delta(delta, delta)
    assert pair.delta_given(1, growth**2 * Fraction(999, 1000)) > composed_delta(delta, delta)
    epsilon, total = big_world((math.log(2), 0.1), 1)
    assert epsilon == pytest.approx(2 * math.log(2))
    assert total == pytest.approx(float(composed_delta(delta, delta)))
    # Half of that would be wrong here, and is right where one of the two lives is in no study.
    assert big_world((math.log(2), 0.1), 1, absent_throughout=True)[0] < epsilon


def test_absent_throughout_is_attained_by_a_bound_that_leaks():
    growth, delta = Fraction(2), Fraction(1, 10)
    hers = {"one life": (1, {(1, 1): Fraction(1)}), "another": (0, {(0, 0): Fraction(1)})}
    pair = world(hers, {(0, 0): Fraction(1)}, 2, growth, delta, lambda number: exactly(2))
    assert pair.delta_given(2, growth**2) == composed_delta(delta, delta) == pair.delta(growth**2)
    # With the exact number she is told apart at once, and nothing is promised.
    assert world(hers, {(0, 0): Fraction(1)}, 2, growth, delta, exactly).is_empty


def test_what_breaks_it_others_who_follow_her():
    # Whether the other person is in a study depends on her data: no study has her in it, and her bit is public.
    hers = {"one life": (0, {(0, 0): Fraction(1)}), "another": (1, {(0, 0): Fraction(1)})}
    told_apart = {
        life: world({life: hers[life]}, {others: Fraction(1)}, 2, Fraction(10**6), Fraction(0), exactly).laws[life]
        for life, others in (("one life", (0, 0)), ("another", (1, 1)))
    }
    pair = LeakagePair(laws=told_apart, neighbours=frozenset([("one life", "another")]))
    assert pair.delta_given(0, 1) > Fraction(99, 100)
    assert big_world((math.log(10**6), 0.0), 0) == (0.0, 0.0)


def test_the_numbers_are_those_of_so_many_studies():
    assert big_world((0.5, 0.0), 3) == (3.0, 0.0)
    assert big_world((0.5, 0.0), 3, studies=4) == (2.0, 0.0)
    assert big_world((0.5, 0.0), 3, absent_throughout=True) == (1.5, 0.0)
    assert big_world((0.5, 0.0), 3, absent_throughout=True, studies=2) == (1.0, 0.0)
    assert big_world((0.5, 0.25), 1)[1] == 1 - 0.75**2
    assert big_world((0.5, 0.25), 0) == (0.0, 0.0)
    assert big_world((0.01, 1e-9), 500, slack=1e-6) == advanced_composition((0.01, 1e-9), 1000, 1e-6)
    assert big_world((0.01, 1e-9), 10**7)[0] == pytest.approx(0.01 * 2 * 10**7)


def test_what_is_no_participation_is_refused():
    for bad in (-1, 1.5, True, "2"):
        with pytest.raises(ArgumentError, match="participation"):
            big_world((0.5, 0.0), bad)
    with pytest.raises(ArgumentError, match="studies"):
        big_world((0.5, 0.0), 1, studies=0)
    with pytest.raises(ArgumentError, match="study must be a pair"):
        big_world(0.5, 1)
