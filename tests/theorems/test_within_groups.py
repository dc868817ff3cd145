"""Theorem C within groups: the joint law of a table and of exact totals of its groups, enumerated in fractions."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations, product

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle.laws import losses
from oracle.leaking import joint_losses_with, joint_with, shown_table, total_present
from thorough import examples

import pkdp_pipeline as pkdp
from pkdp_pipeline.model.evidence import IndependentGivenHabits

BY_REGION = pkdp.Leakage.totals(by="region")
EPSILONS = (0.0, 0.3, 1.0, 2.0)


def growth(epsilon):
    """Return a rational at or below e^ε, within one part in 2^50."""
    return Fraction(math.exp(epsilon)) * (1 - Fraction(1, 2**50))


def totals_of(sizes):
    """Leak how many people are in each group of so many cells, one group after the other."""

    def leaked(counts):
        starts = [sum(sizes[:number]) for number in range(len(sizes))]
        return {tuple(sum(counts[start : start + size]) for start, size in zip(starts, sizes, strict=True)): 1}

    return leaked


def pairs_within(sizes):
    """Return the pairs of cells of one group, as places in the flat table."""
    starts = [sum(sizes[:number]) for number in range(len(sizes))]
    return [
        pair for start, size in zip(starts, sizes, strict=True) for pair in combinations(range(start, start + size), 2)
    ]


@st.composite
def crowds(draw, most=6, least=Fraction(0)):
    """Draw sizes of groups, a bound between two cells of a group, and people who keep to it and differ.

    Where somebody is in which group, or absent, may be known or not. With `least`, nobody is absent and each cell of
    each person has at least that chance.
    """
    sizes = draw(st.sampled_from([(2, 2), (2, 1), (3, 2), (2, 2, 1), (1, 3)]))
    p = draw(st.sampled_from([Fraction(1, 2), Fraction(9, 16), Fraction(5, 8), Fraction(3, 4), Fraction(7, 8)]))
    odds = p / (1 - p)
    people = []
    for _ in range(draw(st.integers(0, most))):
        weights = []
        for size in sizes:
            chosen = draw(st.lists(st.sampled_from([Fraction(1), odds, (1 + odds) / 2]), min_size=size, max_size=size))
            mass = draw(st.sampled_from([0, 1, 1, 3])) if not least else draw(st.integers(1, 2))
            weights += [mass * weight / sum(chosen) for weight in chosen]
        weights.append(Fraction(0) if least else Fraction(draw(st.sampled_from([0, 0, 1]))))
        whole = sum(weights)
        people.append([weight / whole for weight in weights] if whole else [*([0] * sum(sizes)), 1])
    return sizes, p, people


@examples(quick=20, full=3000)
def test_no_attacker_who_is_told_the_totals_learns_more_than_theorem_c_says(examples):
    closest = [0.0]

    @settings(max_examples=examples, deadline=None, derandomize=True, database=None)
    @given(crowds(), st.integers(2, 4), st.sampled_from([0, 0, 1]), st.sampled_from(EPSILONS), st.data())
    def holds(crowd, k, known, epsilon, data):
        sizes, p, people = crowd
        fixed = [0] * sum(sizes)
        fixed[data.draw(st.integers(0, len(fixed) - 1))] = known
        attacker = pkdp.AttackerModel(p_max_between=float(p), known=known, leakage=BY_REGION)
        if k - known <= 1:
            with pytest.raises(pkdp.NotCertifiableError):
                pkdp.certify(pkdp.Histogram(k=k), attacker, protects="value")
            return
        claimed = pkdp.certify(pkdp.Histogram(k=k), attacker, protects="value").delta(epsilon)
        lives = data.draw(st.sampled_from(pairs_within(sizes)))
        shown, leaked = shown_table(k), totals_of(sizes)
        truth = max(joint_losses_with(people, tuple(fixed), lives, growth(epsilon), shown, leaked))
        assert truth <= Fraction(claimed)
        if claimed:
            closest[0] = max(closest[0], float(truth) / claimed)

    holds()
    assert closest[0] > 0.5


@examples(quick=8, full=500)
def test_no_attacker_who_is_told_the_totals_learns_more_of_several_options(examples):
    @settings(max_examples=examples, deadline=None, derandomize=True, database=None)
    @given(crowds(most=4, least=Fraction(1, 100)), st.sampled_from([None, 2]), st.sampled_from(EPSILONS), st.data())
    def holds(crowd, k, epsilon, data):
        sizes, _, people = crowd
        if not people:
            return
        # A float at or below the smallest chance.
        least = math.nextafter(float(min(min(person[:-1]) for person in people)), 0.0)
        attacker = pkdp.AttackerModel(p_min=least, unknown=len(people), leakage=BY_REGION)
        claimed = pkdp.certify(pkdp.Histogram(k=k), attacker, protects="value").delta(epsilon)
        lives = data.draw(st.sampled_from(pairs_within(sizes)))
        nobody = (0,) * sum(sizes)
        sides = joint_losses_with(people, nobody, lives, growth(epsilon), shown_table(k), totals_of(sizes))
        assert max(sides) <= Fraction(claimed)

    holds()


@settings(max_examples=20, deadline=None)
@given(
    st.lists(st.integers(2, 10).map(lambda part: Fraction(part, 12)), min_size=1, max_size=5),
    st.integers(0, 3),
    st.sampled_from(EPSILONS),
)
def test_several_options_hide_people_among_those_of_their_group(shares, south, epsilon):
    least = math.nextafter(float(min(min(share, 1 - share) for share in shares)), 0.0)
    attacker = pkdp.AttackerModel(p_min=least, unknown=len(shares), leakage=BY_REGION)
    claimed = pkdp.certify(pkdp.Histogram(), attacker, protects="value").delta(epsilon)
    north = [[share, 1 - share, 0, 0, 0] for share in shares]
    half = [[0, 0, Fraction(1, 2), Fraction(1, 2), 0]]

    def truth(people):
        return max(joint_losses_with(people, (0,) * 4, (0, 1), growth(epsilon), shown_table(0), totals_of((2, 2))))

    assert truth(north + half * south) <= Fraction(claimed)
    assert truth(half * len(shares)) == 1


@pytest.mark.parametrize("epsilon", [0.2, 0.5])
def test_people_of_one_group_reach_it_beside_the_totals(epsilon):
    k, p = 3, Fraction(3, 5)
    certificate = pkdp.certify(
        pkdp.Histogram(k=k), pkdp.AttackerModel(p_max_between=0.6, leakage=BY_REGION), protects="value"
    )
    best = Fraction(0)
    for m in range(2, 9):
        people = [[p, 1 - p, 0, 0, 0]] * m + [[0, 0, Fraction(1, 2), Fraction(1, 2), 0]] * 2
        sides = joint_losses_with(people, (0,) * 4, (0, 1), growth(epsilon), shown_table(k), totals_of((2, 2)))
        assert max(sides) <= Fraction(certificate.delta(epsilon))
        best = max(best, *sides)
    assert float(best) == pytest.approx(certificate.delta(epsilon), rel=0.02)


def by_answer(counts):
    """Leak how many people gave each of two answers, in a table of two regions."""
    return {(counts[0] + counts[2], counts[1] + counts[3]): 1}


def test_totals_by_answer_would_break_it_and_so_would_lives_in_two_groups():
    """Nobody else lives in the north. What is shown of the south, taken from the totals, is the target's answer."""
    k, p, half = 2, Fraction(3, 5), Fraction(1, 2)
    attacker = pkdp.AttackerModel(p_max_between=0.6, leakage=BY_REGION)
    claimed = pkdp.certify(pkdp.Histogram(k=k), attacker, protects="value").delta(0.5)
    south = [[0, 0, p, 1 - p, 0]] * 4 + [[0, 0, half, half, 0]] * 2

    def truth(lives, leaked):
        return float(max(joint_losses_with(south, (0,) * 4, lives, growth(0.5), shown_table(k), leaked)))

    assert truth((0, 1), totals_of((2, 2))) <= claimed
    assert truth((0, 1), by_answer) > 1.2 * claimed
    assert truth((0, 2), totals_of((2, 2))) == 1.0 > claimed
    assert truth((0, 1), total_present) <= claimed


# Several days, in a ledger -----------------------------------------------------------------------------------------

CELLS = {"region": ["north", "south"], "answer": ["a", "b"]}


def published(days, k, p, evidence=None):
    """Return the ledger's total of tables and their totals on so many days, and that of the tables alone."""
    frame = pd.DataFrame({"id": range(4), "region": ["north"] * 4, "answer": ["a", "b"] * 2})
    whom = pkdp.AttackerModel(p_max_between=p, leakage=BY_REGION)
    totals = []
    for beside in (True, False):
        with pkdp.Ledger.open(":memory:", dataset="d", evidence=evidence) as ledger:
            for day in range(1, days + 1):
                arguments = {"unit": "id", "attacker": whom, "protects": "value", "ledger": ledger}
                arguments["period"] = f"2021-03-{day:02}"
                if beside:
                    frame.pkdp.histogram("region", domain=CELLS["region"], **arguments)
                frame.pkdp.histogram(["region", "answer"], k=k, domain=CELLS, **arguments)
            totals.append(ledger.total())
            ledger.verify()
    return totals


def test_days_add_up_beside_their_totals_and_no_attacker_learns_more():
    k, p = 2, Fraction(3, 5)
    beside, alone = published(2, k, 0.6, IndependentGivenHabits())
    sizes, shown, leaked = (2, 2), shown_table(k), totals_of((2, 2))
    north, south = [p, 1 - p, 0, 0], [0, 0, 1 - p, p]
    days = (
        [north] * 3 + [south],
        [[0, 0, Fraction(1, 2), Fraction(1, 2)], [Fraction(1, 2) * x for x in (p, 1 - p, p, 1 - p)], south],
    )
    for first_pair, second_pair in product(pairs_within(sizes), repeat=2):
        for turned in (False, True):
            laws = [[], []]
            for people, pair in ((days[0], first_pair), (days[1], second_pair[::-1] if turned else second_pair)):
                for life, cell in enumerate(pair):
                    laws[life].append(joint_with([[*person, 0] for person in people], (0,) * 4, cell, shown, leaked))
            first, second = (
                {(x, y): chance * weight for x, chance in a.items() for y, weight in b.items()} for a, b in laws
            )
            for epsilon in EPSILONS:
                assert max(losses(first, second, growth(epsilon))) <= Fraction(beside.delta(epsilon))
    for epsilon in EPSILONS:
        assert beside.delta(epsilon) == alone.delta(epsilon)


def test_a_person_within_one_group_is_what_its_words_are_about():
    (beside, alone), leak = published(1, 2, 0.6), "the number of people present by 'region'"
    certificate = pkdp.certify(
        pkdp.Histogram(k=2), pkdp.AttackerModel(p_max_between=0.6, leakage=BY_REGION), protects="value"
    )
    assert "cells with the same 'region'" in certificate.protection()
    for guarantee in (beside, alone, certificate):
        words = guarantee.sentence()
        assert "told that another person is in one of two cells with the same 'region'" in words
        assert "a person's 'region' is not protected" in words
        assert leak in words
    assert pkdp.Certificate.from_json(certificate.to_json()) == certificate
    assert pkdp.Certificate.from_json(beside.to_json()).verify()
