"""The exponential mechanism with a coupled utility: exactly (ε, 0) given what leaks, and useful as promised."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_pairs import laws, line
from thorough import examples as examples_of
from thorough import few

from pkdp_pipeline.errors import ArgumentError, NotCertifiableError
from pkdp_pipeline.extras.theory.bounded_leakage import (
    ExponentialMechanism,
    growth_above,
    growth_below,
    one_record_apart,
)

growths = st.sampled_from([Fraction(9, 8), Fraction(2), Fraction(7), growth_below(1e-9), growth_below(20.0)])
utilities = st.one_of(st.integers(-4, 4), st.fractions(-2, 2, max_denominator=6))


@st.composite
def mechanisms(draw, databases=3, outputs=3, leaked=2):
    names = range(databases)
    table = {(x, y, o): draw(utilities) for x, y, o in product(names, range(outputs), range(leaked))}
    leakage = {x: draw(laws(list(range(leaked)))) for x in names}
    leakage[1] = {0: Fraction(1, 3), 1: Fraction(2, 3)}
    # A database with a value of its own would be refused.
    return ExponentialMechanism(
        outputs=tuple(range(outputs)),
        utility=lambda x, y, o: table[x, y, o],
        leakage=leakage,
        neighbours=line(names),
        growth=draw(growths),
    )


def shared(mechanism, leaked):
    return [
        (x, z) for x, z in mechanism.neighbours if leaked in mechanism.leakage[x] and leaked in mechanism.leakage[z]
    ]


def values(mechanism):
    return sorted({o for law in mechanism.leakage.values() for o in law if shared(mechanism, o)})


@examples_of(quick=12, full=400)
def test_theorem_36_is_exact(examples):
    @settings(max_examples=examples, deadline=None)
    @given(mechanisms())
    def check(mechanism):
        for leaked in values(mechanism):
            for x, z in shared(mechanism, leaked):
                here, there = mechanism.law(x, leaked), mechanism.law(z, leaked)
                assert sum(here.values()) == 1
                assert all(here[y] <= mechanism.growth * there[y] for y in mechanism.outputs)
        if all(shared(mechanism, o) for law in mechanism.leakage.values() for o in law):
            pair = mechanism.pair()
            assert pair.delta(mechanism.growth) == 0
            assert pair.revealed().delta(mechanism.growth) == 0

    check()


@examples_of(quick=12, full=400)
def test_theorem_38_the_tail_is_never_above(examples):
    @settings(max_examples=examples, deadline=None)
    @given(mechanisms(), st.sampled_from([0.0, 0.3, 1.0, 4.0, 30.0]))
    def check(mechanism, t):
        for leaked in values(mechanism):
            for x in (x for x in range(3) if leaked in mechanism.leakage[x]):
                scores = {y: Fraction(mechanism.utility(x, y, leaked)) for y in mechanism.outputs}
                best = max(scores.values())
                short = Fraction(mechanism.shortfall(x, leaked, t))
                law = mechanism.law(x, leaked)
                low = sum((law[y] for y in mechanism.outputs if scores[y] <= best - short), Fraction(0))
                assert low * growth_below(t) <= 1
                # At most what is printed, with twice the sensitivity, but for the rounding of the base.
                winners = sum(score == best for score in scores.values())
                width = 2 * mechanism.sensitivity(leaked)
                printed = float(width) / math.log(mechanism.growth) * (math.log(3 / winners) + t)
                assert float(short) <= printed * (1 + 1e-6) + 1e-300

    check()


@settings(max_examples=few(25), deadline=None)
@given(mechanisms())
def test_the_spread_is_between_the_sensitivity_and_twice_of_it_or_less(mechanism):
    for leaked in values(mechanism):
        spread, sensitivity = mechanism.spread(leaked), mechanism.sensitivity(leaked)
        assert 0 <= spread <= 2 * sensitivity
        everywhere = max(
            abs(Fraction(mechanism.utility(x, y, leaked)) - Fraction(mechanism.utility(z, y, leaked)))
            for x, z in mechanism.neighbours
            for y in mechanism.outputs
        )
        assert sensitivity <= everywhere


@settings(max_examples=few(25), deadline=None)
@given(mechanisms())
def test_the_ideal_law_is_enclosed_and_the_exact_one_is_close(mechanism):
    for leaked in values(mechanism):
        for x in (x for x in range(3) if leaked in mechanism.leakage[x]):
            ideal, law = mechanism.ideal_law(x, leaked), mechanism.law(x, leaked)
            assert sum(low for low, _ in ideal.values()) <= 1 <= sum(high for _, high in ideal.values())
            for y in mechanism.outputs:
                low, high = ideal[y]
                assert 0 <= low <= high <= low + Fraction(1, 10**40)
                assert abs(law[y] - low) <= Fraction(1, 10**12)


def test_the_ideal_law_has_the_weights_that_are_said():
    mechanism = ExponentialMechanism(
        outputs=("a", "b"),
        utility=lambda x, y, o: Fraction(1, 3) if (x, y) == (1, "a") else 0,
        leakage={x: {"o": Fraction(1)} for x in (0, 1)},
        neighbours=[(0, 1)],
        growth=growth_below(1.0),
    )
    assert mechanism.spread("o") == mechanism.sensitivity("o") == Fraction(1, 3)
    low, high = mechanism.ideal_law(1, "o")["a"]
    right = math.e / (1 + math.e)
    assert float(low) == float(high) == pytest.approx(right, rel=1e-14)
    assert mechanism.law(0, "o") == {"a": Fraction(1, 2), "b": Fraction(1, 2)}


def test_theorem_36_is_attained_where_utilities_move_in_opposite_directions():
    # Many outputs that one neighbour likes and the other does not, and one the other way round.
    outputs = tuple(range(200))
    mechanism = ExponentialMechanism(
        outputs=outputs,
        utility=lambda x, y, o: (1 if y == 0 else -1) * (1 if x else -1),
        leakage={x: {"o": Fraction(1)} for x in (0, 1)},
        neighbours=[(0, 1)],
        growth=Fraction(4),
    )
    assert mechanism.sensitivity("o") == 2
    assert mechanism.spread("o") == 4
    pair = mechanism.pair()
    assert pair.delta(4) == 0
    # e^ε is nearly needed: the normalisers are nearly all of the other outputs.
    assert pair.delta(Fraction(39, 10)) > 0


def test_only_neighbours_that_share_the_value_count():
    # What the utility says of a database that cannot leak the value is of no account, however different it is.
    databases = list(product((0, 1, 2), repeat=2))
    mean = {x: Fraction(sum(x), 2) for x in databases}
    coarse = {x: int(mean[x] >= 1) for x in databases}

    def utility(x, y, o):
        return -abs(y - mean[x]) * (1 if coarse[x] == o else 50)

    mechanism = ExponentialMechanism(
        outputs=(0, 1, 2),
        utility=utility,
        leakage={x: {coarse[x]: Fraction(1)} for x in databases},
        neighbours=one_record_apart(databases),
        growth=Fraction(2),
    )
    for o in (0, 1):
        everywhere = max(
            abs(utility(x, y, o) - utility(z, y, o)) for x, z in mechanism.neighbours for y in mechanism.outputs
        )
        assert mechanism.sensitivity(o) < everywhere
    assert mechanism.pair().delta(2) == 0


def test_where_neighbours_agree_the_best_output_is_drawn():
    mechanism = ExponentialMechanism(
        outputs=("a", "b", "c"),
        utility=lambda x, y, o: x + (1 if y in ("a", "b") else 0),
        leakage={x: {"o": Fraction(1)} for x in (0, 1)},
        neighbours=[(0, 1)],
        growth=2,
    )
    assert mechanism.spread("o") == 0
    assert mechanism.sensitivity("o") == 1
    half = Fraction(1, 2)
    assert mechanism.law(0, "o") == mechanism.law(1, "o") == {"a": half, "b": half, "c": 0}
    assert mechanism.ideal_law(1, "o") == {"a": (half, half), "b": (half, half), "c": (0, 0)}
    assert mechanism.pair().delta(1) == 0
    assert 0 < mechanism.shortfall(0, "o", 50.0) < 1e-300


def test_a_value_that_no_two_neighbours_share_is_refused():
    mechanism = ExponentialMechanism(
        outputs=("a", "b"),
        utility=lambda x, y, o: int(x == 1 and y == "a"),
        leakage={x: {x % 2: Fraction(1)} for x in range(3)},
        neighbours=[(0, 1), (1, 2)],
        growth=2,
    )
    for ask in (mechanism.spread, mechanism.sensitivity, lambda o: mechanism.law(1, o)):
        with pytest.raises(NotCertifiableError, match="nothing is promised, whatever is drawn"):
            ask(1)
    with pytest.raises(NotCertifiableError):
        mechanism.pair()


def test_what_is_no_such_mechanism_is_refused():
    good = {
        "outputs": ("a", "b"),
        "utility": lambda x, y, o: 0.5 if x == 2 else 1,
        "leakage": {x: {"o": Fraction(1)} for x in (0, 1)},
        "neighbours": [(0, 1)],
        "growth": Fraction(2),
    }
    for name, bad, words in [
        ("outputs", (), "at least one"),
        ("outputs", ("a", "a"), "different outputs"),
        ("outputs", ["a"], "tuple"),
        ("utility", 3, "function of database"),
        ("leakage", {}, "mapping"),
        ("leakage", {0: {"o": 1.0}}, "exact"),
        ("neighbours", [(0, 5)], "neighbours must be pairs"),
        ("growth", Fraction(1), "above 1"),
        ("growth", 1.5, "exact number"),
    ]:
        with pytest.raises(ArgumentError, match=words):
            ExponentialMechanism(**{**good, name: bad})
    mechanism = ExponentialMechanism(**{**good, "leakage": {x: {"o": Fraction(1)} for x in (0, 1, 2)}})
    with pytest.raises(ArgumentError, match="int or a Fraction"):
        mechanism.law(2, "o")
    mechanism = ExponentialMechanism(**good)
    with pytest.raises(ArgumentError, match="can leak this value"):
        mechanism.law(0, "p")
    for t in (-1.0, math.inf, math.nan):
        with pytest.raises(ArgumentError, match="t must be"):
            mechanism.shortfall(0, "o", t)


def test_large_t_and_small_growth_stay_finite():
    mechanism = ExponentialMechanism(
        outputs=("a", "b"),
        utility=lambda x, y, o: 1000 if (x, y) == (1, "a") else Fraction(1, 7),
        leakage={x: {"o": Fraction(1)} for x in (0, 1)},
        neighbours=[(0, 1)],
        growth=growth_above(1e-12),
    )
    assert mechanism.pair().delta(mechanism.growth) == 0
    expected = float(mechanism.spread("o")) / 1e-12 * (math.log(2) + 100.0)
    assert mechanism.shortfall(1, "o", 100.0) == pytest.approx(expected, rel=1e-6)
