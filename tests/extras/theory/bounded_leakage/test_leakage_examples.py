"""The examples that show what a promise given a leakage does not say."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import pytest

from pkdp_pipeline.errors import NotCertifiableError
from pkdp_pipeline.extras.theory.bounded_leakage import LeakagePair, beside_private_leakage, one_record_apart

HALF = Fraction(1, 2)
BITS = (0, 1)


def databases(people):
    return list(product(BITS, repeat=people))


def noiseless(mechanism, leakage, people=3):
    listed = databases(people)
    return LeakagePair.from_functions(
        databases=listed,
        mechanism=lambda x, r: mechanism(x),
        leakage=lambda x, r: leakage(x),
        randomness={0: Fraction(1)},
        neighbours=one_record_apart(listed),
    )


def test_example_3_perfect_given_the_leakage_and_no_differential_privacy():
    # M leaks itself: whether anybody has a 1.
    pair = noiseless(lambda x: max(x), lambda x: max(x))
    assert not pair.is_empty
    assert pair.delta(1) == 0
    assert pair.mechanism_delta(1000) == 1
    # Theorem 4 is not for this leakage: it is not private itself.
    assert pair.leakage_delta(1000) == 1


def test_example_5_perfect_differential_privacy_and_nothing_given_the_leakage():
    # M publishes x XOR r, and r leaks.
    listed = databases(2)
    pair = LeakagePair.from_functions(
        databases=listed,
        mechanism=lambda x, r: tuple(a ^ b for a, b in zip(x, r, strict=True)),
        leakage=lambda x, r: r,
        randomness={r: Fraction(1, 4) for r in listed},
        neighbours=one_record_apart(listed),
    )
    assert pair.mechanism_delta(1) == 0
    assert pair.leakage_delta(1) == 0
    assert not pair.is_empty
    assert pair.delta(1000) == 1
    # What breaks Lemma 7: output and leakage are as dependent as can be.
    assert pair.independence(1000) > Fraction(2, 3)


@pytest.mark.parametrize("what", ["nothing of r leaks", "the leakage has its own r", "M does not use it"])
def test_example_5_without_one_of_its_three_properties_is_perfect_again(what):
    listed = databases(1)
    pair = LeakagePair.from_functions(
        databases=listed,
        mechanism=lambda x, r: 0 if what == "M does not use it" else x[0] ^ r[0],
        leakage=lambda x, r: 0 if what == "nothing of r leaks" else r[1 if what == "the leakage has its own r" else 0],
        randomness={r: Fraction(1, 4) for r in databases(2)},
        neighbours=one_record_apart(listed),
    )
    assert pair.independence(1) == 0
    assert pair.delta(1) == pair.mechanism_delta(1) == 0


def test_example_18_parity_is_empty_for_neighbours_and_promises_no_group_anything():
    pair = noiseless(lambda x: x, lambda x: sum(x) % 2)
    assert pair.is_empty
    assert pair.told_apart == pair.neighbours
    with pytest.raises(NotCertifiableError, match="no two neighbours share any leaked value"):
        pair.delta(1)
    with pytest.raises(NotCertifiableError, match="says nothing"):
        pair.certified_delta(1.0)
    # Two records apart: the same parity, no path of it, and told apart with certainty.
    assert pair.path((0, 0, 0), (1, 1, 0), 0) is None
    assert pair.divergence((0, 0, 0), (1, 1, 0), 0, 1000) == 1


def test_remark_19_noise_on_the_parity_makes_it_say_something():
    listed = databases(2)
    flipped = Fraction(1, 100)
    pair = LeakagePair.from_functions(
        databases=listed,
        mechanism=lambda x, r: x,
        leakage=lambda x, r: (sum(x) + r) % 2,
        randomness={0: 1 - flipped, 1: flipped},
        neighbours=one_record_apart(listed),
    )
    assert not pair.is_empty
    assert not pair.told_apart
    assert pair.delta(1000) == 1
    assert pair.path((0, 0), (1, 1), 0) is not None


def test_an_exact_total_is_empty_for_presence_and_not_for_values():
    # Records: absent, or in cell a or b. The number of people present leaks exactly.
    listed = list(product((None, "a", "b"), repeat=2))

    def total(x, r):
        return sum(record is not None for record in x)

    def randomised(x, r):
        return tuple(record if kept else None for record, kept in zip(x, r, strict=True))

    def seen_by(keep):
        adjacent = one_record_apart(listed)
        return LeakagePair.from_functions(
            databases=listed,
            mechanism=randomised,
            leakage=total,
            randomness={r: Fraction(1, 4) for r in product((True, False), repeat=2)},
            neighbours=[pair for pair in adjacent if keep(sum(r is None for x in pair for r in x) % 2)],
        )

    presence, value = seen_by(lambda odd: odd), seen_by(lambda odd: not odd)
    assert presence.is_empty
    assert not value.is_empty
    assert not value.told_apart
    both = seen_by(lambda odd: True)
    # With both kinds of neighbours something is promised, and the presence pairs are named as told apart.
    assert not both.is_empty
    assert both.told_apart == presence.neighbours
    assert both.delta(2) == value.delta(2)


def test_a_promise_given_a_private_leakage_is_unconditional():
    # A randomised total beside a constant output: nothing given the leakage, and the leakage's own ε in all.
    listed = databases(1)
    right = Fraction(3, 4)
    pair = LeakagePair.from_functions(
        databases=listed,
        mechanism=lambda x, r: 0,
        leakage=lambda x, r: x[0] ^ r,
        randomness={0: right, 1: 1 - right},
        neighbours=one_record_apart(listed),
    )
    assert pair.delta(1) == 0
    assert pair.joint_delta(3) == 0
    assert pair.joint_delta(Fraction(29, 10)) > 0
    assert beside_private_leakage((0.0, 0.0), (1.0987, 0.0)) == (1.0987, 0.0)
