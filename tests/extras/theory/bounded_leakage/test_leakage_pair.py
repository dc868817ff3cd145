"""Exact pairs on small universes: what they compute, what is preserved, and what is refused."""

from __future__ import annotations

from dataclasses import FrozenInstanceError
from fractions import Fraction
from itertools import pairwise, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_pairs import apart, coin, growths, laws, line, pairs
from thorough import few

from pkdp_pipeline.errors import ArgumentError, NotCertifiableError
from pkdp_pipeline.extras.theory.bounded_leakage import LeakagePair, one_record_apart

HALF = Fraction(1, 2)


def given_by_hand(pair, database, leaked):
    """Return the law of the output given what leaked, or None."""
    here = {y: p for (y, o), p in pair.laws[database].items() if o == leaked}
    total = sum(here.values(), Fraction(0))
    return {y: p / total for y, p in here.items()} if total else None


@settings(max_examples=few(40), deadline=None)
@given(pairs(databases=3, outputs=3, leaked=2), growths)
def test_numbers_are_those_of_their_definitions_over_all_events(pair, growth):
    bounded, independent = [], []
    for first, second in pair.neighbours:
        for leaked in (0, 1):
            sides = given_by_hand(pair, first, leaked), given_by_hand(pair, second, leaked)
            if all(sides):
                bounded.append(apart(*sides, growth))
    for x in range(3):
        alone = {}
        for (y, _), p in pair.laws[x].items():
            alone[y] = alone.get(y, Fraction(0)) + p
        for leaked in (0, 1):
            law = given_by_hand(pair, x, leaked)
            if law:
                independent += [apart(law, alone, growth), apart(alone, law, growth)]
    assert pair.delta(growth) == max(bounded)
    assert pair.independence(growth) == max(independent)
    joint = max(apart(pair.laws[first], pair.laws[second], growth) for first, second in pair.neighbours)
    assert pair.joint_delta(growth) == joint >= max(pair.mechanism_delta(growth), pair.leakage_delta(growth))


@settings(max_examples=40, deadline=None)
@given(pairs(databases=3, outputs=2, leaked=3), growths)
def test_one_leaked_value_at_a_time(pair, growth):
    deltas = []
    for leaked in range(3):
        try:
            deltas.append(pair.delta_given(leaked, growth))
        except NotCertifiableError as refusal:
            assert "share this leaked value" in str(refusal)  # noqa: PT017
    assert max(deltas) == pair.delta(growth)


@settings(max_examples=40, deadline=None)
@given(pairs(databases=3, outputs=4, leaked=2), growths, st.lists(st.integers(0, 2), min_size=4, max_size=4))
def test_theorem_11_post_processing_never_tells_more(pair, growth, table):
    after = pair.processed(lambda y: table[y])
    assert after.delta(growth) <= pair.delta(growth)
    assert after.leakage_delta(growth) == pair.leakage_delta(growth)
    if len(set(table)) == 4:
        assert after.delta(growth) == pair.delta(growth)
    # It may see the leaked value as well (Theorem 12).
    both = pair.revealed().processed(lambda outcome: (table[outcome[0]] + outcome[1]) % 2)
    assert both.delta(growth) <= pair.delta(growth)


@settings(max_examples=few(40), deadline=None)
@given(st.data(), growths, st.integers(0, 4))
def test_lemma_10_mixtures_never_tell_more(data, growth, weight):
    leaks = {x: data.draw(laws([0, 1])) for x in range(2)}
    if not set(leaks[0]) & set(leaks[1]):
        leaks[1] = leaks[0]
    parts = []
    for _ in range(2):
        law = {
            x: {(y, o): p * q for o, q in leaks[x].items() for y, p in data.draw(laws([0, 1, 2])).items()}
            for x in range(2)
        }
        parts.append(LeakagePair(laws=law, neighbours=line(range(2))))
    weights = [Fraction(weight, 4), 1 - Fraction(weight, 4)]
    mixed = parts[0].mixed(parts[1:], weights)
    deltas = [pair.delta(growth) for pair in parts]
    # δ of a mixture is at most the mixture of the δ, for every one of the leaked values.
    assert mixed.delta(growth) <= sum(w * d for w, d in zip(weights, deltas, strict=True))
    assert mixed.leakage_delta(growth) == parts[0].leakage_delta(growth)
    if weight == 4:
        assert mixed.delta(growth) == deltas[0]


@settings(max_examples=40, deadline=None)
@given(pairs(databases=4, outputs=2, leaked=2), growths, st.integers(0, 3), st.integers(0, 3), st.integers(0, 2))
def test_propositions_23_and_24_the_reduction_to_no_leakage(pair, growth, first, second, leaked):
    reduced = pair.reduced(first, second, leaked)
    sides = {first: given_by_hand(pair, first, leaked), second: given_by_hand(pair, second, leaked)}
    for x in range(4):
        law = {y: p for (y, _), p in reduced.laws[x].items()}
        if not all(sides.values()):
            assert law == {None: 1}
        else:
            assert law == sides[first if x == first else second]
    if (first, second) in pair.neighbours:
        assert reduced.mechanism_delta(growth) <= pair.delta(growth)
    assert reduced.delta(growth) == reduced.mechanism_delta(growth)


@settings(max_examples=40, deadline=None)
@given(
    st.sets(st.tuples(st.integers(0, 4), st.integers(0, 4)).filter(lambda p: p[0] < p[1])), st.sets(st.integers(0, 4))
)
def test_paths_are_shortest_and_inside_what_can_leak(neighbours, can):
    sure_laws = {x: {("y", "o" if x in can else "other"): Fraction(1)} for x in range(5)}
    pair = LeakagePair(laws=sure_laws, neighbours=neighbours)
    # How many steps it takes, by Bellman and Ford.
    steps = {(x, y): 0 if x == y else 99 for x in can for y in can}
    for _ in range(5):
        for x, y, z in product(can, repeat=3):
            if (y, z) in pair.neighbours:
                steps[x, z] = min(steps[x, z], steps[x, y] + 1)
    for x, y in product(range(5), repeat=2):
        path = pair.path(x, y, "o")
        if x not in can or y not in can or steps[x, y] == 99:
            assert path is None
        else:
            assert path is not None
            assert len(path) == steps[x, y] + 1
            assert path[0] == x
            assert path[-1] == y
            assert set(path) <= can
            assert all(each in pair.neighbours for each in pairwise(path))


def test_databases_of_several_people_are_neighbours_in_one_record():
    neighbours = one_record_apart(product((0, 1, 2), repeat=2))
    assert ((0, 1), (0, 2)) in neighbours
    assert ((0, 2), (0, 1)) in neighbours
    assert ((0, 1), (1, 2)) not in neighbours
    assert len(neighbours) == 9 * 4
    assert one_record_apart([]) == frozenset()
    for bad in ([(0,), (0, 1)], [1, 2]):
        with pytest.raises(ArgumentError, match="tuples of the same length"):
            one_record_apart(bad)


def test_functions_of_the_same_random_input():
    pair = LeakagePair.from_functions(
        databases=[0, 1],
        mechanism=lambda x, r: x ^ r[0],
        leakage=lambda x, r: r[0] | r[1],
        randomness={r: Fraction(1, 4) for r in product((0, 1), repeat=2)},
        neighbours=[(0, 1)],
    )
    assert pair.laws[0] == {(0, 0): Fraction(1, 4), (0, 1): Fraction(1, 4), (1, 1): HALF}
    assert pair.neighbours == {(0, 1), (1, 0)}
    assert pair.delta_given(0, 1) == 1
    assert pair.delta_given(1, 1) == Fraction(1, 3)
    assert pair.delta_given(1, 2) == 0
    assert pair.certified_delta(0.5) == 1.0
    assert pair.certified_delta(0.0) == 1.0
    with pytest.raises(ArgumentError, match="different from one another"):
        LeakagePair.from_functions(
            databases=[0, 0], mechanism=max, leakage=max, randomness={0: Fraction(1)}, neighbours=[]
        )


def test_a_certified_delta_is_above_the_exact_one_and_close():
    pair = LeakagePair(
        laws={0: coin({0: HALF, 1: HALF}, {0: Fraction(1)}), 1: coin({0: Fraction(1)}, {0: Fraction(1)})},
        neighbours=[(0, 1)],
    )
    # δ = 1 - e^ε / 2.
    for epsilon in (0.0, 0.1, 0.5):
        certified = pair.certified_delta(epsilon)
        assert certified == pytest.approx(max(0.5, 1 - 2.718281828459045**epsilon / 2), rel=1e-14)
    assert pair.certified_delta(0.7) == 0.5


def test_what_is_not_a_pair_is_refused():
    good = {0: {("y", "o"): Fraction(1)}, 1: {("y", "o"): Fraction(1)}}

    def build(laws=good, neighbours=((0, 1),)):
        return LeakagePair(laws=laws, neighbours=neighbours)

    for bad, words in [
        ({}, "laws must be a mapping"),
        ({0: {("y", "o"): 1.0}}, "exact probabilities"),
        ({0: {("y", "o"): Fraction(1, 2)}}, "add up to exactly 1"),
        ({0: {("y", "o"): Fraction(3, 2), ("z", "o"): Fraction(-1, 2)}}, "at least 0"),
        ({0: {"y": Fraction(1)}}, r"pairs \(output, leaked\)"),
        ({0: [("y", "o")]}, "must be a mapping from outcomes"),
    ]:
        with pytest.raises(ArgumentError, match=words):
            build(bad, ())
    for wrong in ([(0, 2)], [(0, 0)], [0], "01", 5):
        with pytest.raises(ArgumentError, match="neighbours must be pairs"):
            build(neighbours=wrong)
    pair = build()
    for growth in (0.5, Fraction(1, 2), True, "2"):
        with pytest.raises(ArgumentError, match="growth"):
            pair.delta(growth)
    with pytest.raises(ArgumentError, match="can leak this value"):
        pair.divergence(0, 1, "another", 1)
    with pytest.raises(ArgumentError, match="can leak this value"):
        pair.divergence(0, 7, "o", 1)
    with pytest.raises(ArgumentError, match="that have a law"):
        pair.reduced(0, 7, "o")
    with pytest.raises(FrozenInstanceError):
        pair.neighbours = frozenset()
    with pytest.raises(TypeError):
        pair.laws[0] = {}
    with pytest.raises(TypeError):
        pair.laws[0]["y", "o"] = Fraction(0)
    assert build(neighbours=()).is_empty


def test_pairs_that_do_not_fit_together_are_refused():
    pair = LeakagePair(laws={0: {("y", "o"): Fraction(1)}, 1: {("y", "o"): Fraction(1)}}, neighbours=[(0, 1)])
    elsewhere = LeakagePair(laws={0: {("y", "o"): Fraction(1)}}, neighbours=[])
    leaks_more = LeakagePair(laws={0: {("y", "p"): Fraction(1)}, 1: {("y", "o"): Fraction(1)}}, neighbours=[(0, 1)])
    apart_again = LeakagePair(laws=dict(pair.laws), neighbours=[])
    with pytest.raises(ArgumentError, match="the same databases"):
        pair.composed(elsewhere)
    with pytest.raises(ArgumentError, match="the same databases"):
        pair.composed("y")
    with pytest.raises(ArgumentError, match="the same neighbours"):
        pair.composed(apart_again)
    with pytest.raises(ArgumentError, match="leak what this pair leaks"):
        pair.mixed([leaks_more], [HALF, HALF])
    with pytest.raises(ArgumentError, match="one number for this pair"):
        pair.mixed([pair], [Fraction(1)])
    with pytest.raises(ArgumentError, match="add up to exactly 1"):
        pair.mixed([pair], [HALF, Fraction(1, 3)])
    assert pair.mixed([pair], [HALF, HALF]).laws == pair.laws
