"""Secrets given a household: random households, every choice of whom the attacker does not know, exact counts."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle.laws import coin_sum, losses
from paper_models import Model, growth_above, noiseless_delta
from thorough import examples

import pkdp_pipeline as pkdp

WEIGHTS = st.integers(1, 40)


def household(size, weights):
    """Return a joint law of the records of a household, any dependence at all."""
    total = sum(weights)
    return {votes: Fraction(weight, total) for votes, weight in zip(product((0, 1), repeat=size), weights, strict=True)}


@st.composite
def households(draw):
    sizes = draw(st.lists(st.integers(1, 3), min_size=2, max_size=3).filter(lambda drawn_sizes: sum(drawn_sizes) <= 6))
    return [household(size, draw(st.lists(WEIGHTS, min_size=2**size, max_size=2**size))) for size in sizes]


def chance_given(law, place, others):
    """Return a person's probability given all others of her household; `others` has her place left out."""
    yes, no = ((*others[:place], vote, *others[place:]) for vote in (1, 0))
    return law[yes] / (law[yes] + law[no])


def extremes(laws, unknown):
    """Return the least and the largest probability that an unknown person has, given all others of her household."""
    chances = [
        chance_given(law, place, others)
        for law, place in zip(laws, unknown, strict=True)
        for others in product((0, 1), repeat=len(next(iter(law))) - 1)
    ]
    return min(chances), max(chances)


def certified(laws, unknown, mechanism):
    low, high = extremes(laws[1:], unknown[1:])
    attacker = pkdp.AttackerModel(
        p_min=math.nextafter(float(low), 0.0),
        p_max=math.nextafter(float(high), 1.0),
        unknown=len(laws) - 1,
        dependent="household",
        secret="conditional",
    )
    return pkdp.certify(mechanism, attacker)


@examples(quick=13, full=400)
def test_nobody_exceeds_what_is_certified_given_the_household(examples):
    @settings(max_examples=examples)
    @given(households(), st.data(), st.floats(0.0, 2.0))
    def attack(laws, data, epsilon):
        # The first household has the target; the unknown person of every household is anyone.
        sizes = [len(next(iter(law))) for law in laws]
        unknown = [data.draw(st.integers(0, size - 1)) for size in sizes]
        bound = Fraction(certified(laws, unknown, pkdp.Count()).delta(epsilon))
        growth, worst = growth_above(epsilon), Fraction(0)
        # Whoever knows everybody but these sees a sum of independent people, whatever the households are like.
        for others in product(*(product((0, 1), repeat=size - 1) for size in sizes[1:])):
            people = zip(laws[1:], unknown[1:], others, strict=True)
            law = coin_sum([chance_given(law, place, rest) for law, place, rest in people])
            with_her, without = ({s + a: weight for s, weight in enumerate(law)} for a in (1, 0))
            worst = max(worst, *losses(with_her, without, growth))
        assert worst <= bound
        # Who knows her household only, and of the other households nothing, is told no more.
        model = Model(tuple(laws[1:]), lambda values: tuple(vote for votes in values for vote in votes))
        sums = {}
        for values, weight in model.outcomes():
            number = sum(model.database(values))
            sums[number] = sums.get(number, Fraction(0)) + weight
        less = ({s + a: weight for s, weight in sums.items()} for a in (1, 0))
        assert max(losses(*less, growth)) <= worst

    attack()


def test_the_certificate_is_reached_where_all_households_are_alike():
    same = Fraction(3, 4)
    law = {(1, 1): same / 2, (0, 0): same / 2, (1, 0): (1 - same) / 2, (0, 1): (1 - same) / 2}
    certificate = certified([law] * 7, [1] * 7, pkdp.Count())
    growth = growth_above(0.5)
    reached = Fraction(0)
    for ones in range(7):
        others = coin_sum([same if person < ones else 1 - same for person in range(6)])
        reached = max(reached, *losses(dict(enumerate([0, *others])), dict(enumerate(others)), growth))
    assert Fraction(99, 100) * Fraction(certificate.delta(0.5)) < reached <= Fraction(certificate.delta(0.5))


def test_two_unknown_people_of_one_household_are_too_many():
    # Six people in three households whose two members nearly always agree: declared as six unknown people, the
    # bounds given the household are true, and the count tells more than is certified. One of each counts.
    same = Fraction(5, 8)
    law = {(1, 1): same / 2, (0, 0): same / 2, (1, 0): (1 - same) / 2, (0, 1): (1 - same) / 2}
    model = Model((law,) * 4, lambda values: tuple(vote for votes in values for vote in votes))
    bounds = {"p_min": float(1 - same), "p_max": float(same), "dependent": "household", "secret": "conditional"}
    right, wrong = (
        pkdp.certify(pkdp.Count(), pkdp.AttackerModel(**bounds, unknown=number)).delta(0.0) for number in (3, 6)
    )
    law_given_yes = {}
    for votes, weight in model.outcomes():
        (first, _), *others = votes
        if first == 1:
            law_given_yes[votes[0][1], sum(map(sum, others))] = (
                law_given_yes.get((votes[0][1], sum(map(sum, others))), 0) + weight
            )
    # Her own household's other record is known; of the other households nobody's.
    for partner in (0, 1):
        mass = sum(weight for (vote, _), weight in law_given_yes.items() if vote == partner)
        law_of_others = {s: weight / mass for (vote, s), weight in law_given_yes.items() if vote == partner}
        true = max(losses({s + 1: w for s, w in law_of_others.items()}, law_of_others, Fraction(1)))
        assert true <= Fraction(right)
    assert wrong < right
    # Somebody who knows one of each household leaves three unknown people, not six.
    seconds = lambda values: tuple(votes[1] for votes in values)  # noqa: E731
    one_each = noiseless_delta(model, sum, lambda values: values[0][0], seconds, Fraction(1))
    assert Fraction(wrong) < one_each <= Fraction(right)


def test_one_of_several_options_given_the_household_is_never_exceeded():
    cells = (0, 1, 2)
    for seed in range(12):
        rng = np.random.default_rng([seed, 11])
        laws = []
        for _ in range(2):
            weights = rng.integers(1, 12, (3, 3))
            laws.append([[Fraction(int(w), int(row.sum())) for w in row] for row in weights])
        # laws[h][partner's choice] is the law of the unknown person of household h.
        least = min(chance for law in laws for row in law for chance in row)
        attacker = pkdp.AttackerModel(
            p_min=math.nextafter(float(least), 0.0), unknown=2, dependent="household", secret="conditional"
        )
        certificate = pkdp.certify(pkdp.Histogram(), attacker, protects="value")
        for epsilon in (0.0, 0.5, 1.5):
            growth, worst = growth_above(epsilon), Fraction(0)
            for partners in product(cells, repeat=2):
                rows = [law[partner] for law, partner in zip(laws, partners, strict=True)]
                for lives in ((0, 1), (2, 0)):
                    sides = ({}, {})
                    for chosen in product(cells, repeat=2):
                        weight = rows[0][chosen[0]] * rows[1][chosen[1]]
                        for life, side in zip(lives, sides, strict=True):
                            table = tuple((*chosen, life).count(cell) for cell in cells)
                            side[table] = side.get(table, Fraction(0)) + weight
                    worst = max(worst, *losses(*sides, growth))
            assert worst <= Fraction(certificate.delta(epsilon))
