"""Linear queries and means: what docs/sensitivity.md certifies of them, and examples for why no more, enumerated."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from thorough import examples, thinned

import pkdp_pipeline as pkdp

HALF = Fraction(1, 2)
GROWTHS = (Fraction(1), Fraction(5, 4), Fraction(2), Fraction(5))


def coin(weight, chance=HALF):
    return {0: 1 - chance, weight: chance}


def law_of(people, contribution=lambda record: record):
    """Return the exact law of the sum of what people's records contribute; contributions may be tuples."""
    law = {None: Fraction(1)}
    for person in people:
        grown = {}
        for total, weight in law.items():
            for record, chance in person.items():
                after = _plus(total, contribution(record))
                grown[after] = grown.get(after, Fraction(0)) + weight * chance
        law = grown
    return law


def _plus(total, more):
    if total is None:
        return more
    return tuple(map(sum, zip(total, more, strict=True))) if isinstance(more, tuple) else total + more


def divergence(people, lives, growth, contribution=lambda record: record):
    """Return the exact δ at ε = ln(growth), the worse order, of what is told about all of them and the target."""
    others = law_of(people, contribution)
    law, other_law = ({_plus(total, contribution(life)): chance for total, chance in others.items()} for life in lives)
    return max(
        sum(max(Fraction(0), p - growth * second.get(o, Fraction(0))) for o, p in first.items())
        for first, second in ((law, other_law), (other_law, law))
    )


def certified(certificate, growth):
    """Return the certified δ at an ε not above ln(growth): not below the truth there, so not below it at ln(growth)."""
    return Fraction(certificate.delta(math.nextafter(math.log(growth), 0.0) if growth > 1 else 0.0))


def drawn_chance(rng, low, high):
    """Return an exact chance in [low, high], often an end of it."""
    return (low, high, low + (high - low) * Fraction(int(rng.integers(0, 9)), 8))[int(rng.integers(3))]


# Proposition 6


@pytest.mark.parametrize("seed", range(5))
def test_whatever_the_known_people_answer_the_divergence_is_the_same(seed):
    rng = np.random.default_rng([6, seed])
    weights = [int(w) for w in rng.integers(1, 6, 5)]
    unknown = [coin(w, drawn_chance(rng, Fraction(1, 10), Fraction(9, 10))) for w in weights[:3]]
    for growth in GROWTHS:
        deltas = {
            divergence([*unknown, {a: Fraction(1)}, {b: Fraction(1)}], (4, 0), growth)
            for a, b in product((0, weights[3]), (0, weights[4]))
        }
        assert len(deltas) == 1
        # It says nothing about how large that is.
        hidden = divergence([*unknown, coin(weights[3]), coin(weights[4])], (4, 0), growth)
        assert hidden <= deltas.pop()


# What holds


@examples(quick=13, full=2_000)
def test_a_sum_with_public_weights_tells_no_more_than_a_count_of_the_targets_own_class(examples):
    rng = np.random.default_rng(11)
    closest = Fraction(0)
    for _ in range(examples):
        low, high = Fraction(int(rng.integers(1, 10)), 20), Fraction(int(rng.integers(10, 20)), 20)
        weights = [int(w) for w in rng.choice([1, 2, 3, 7], size=int(rng.integers(1, 4)), replace=False)]
        classes = {w: int(rng.integers(1, 5)) for w in weights}
        people = [coin(w, drawn_chance(rng, low, high)) for w, many in classes.items() for _ in range(many)]
        known = [{int(rng.integers(2)) * w: Fraction(1)} for w in weights]
        model = {"p_min": float(low), "p_max": float(high)}
        target = weights[0]
        certificate = pkdp.certify(pkdp.Count(), pkdp.AttackerModel(**model, unknown=classes[target]))
        for growth in GROWTHS:
            true = divergence([*people, *known], (target, 0), growth)
            bound = certified(certificate, growth)
            # The ends of the box are floats: a chance of 1/20 is not exactly one.
            assert true <= bound * (1 + Fraction(1, 10**12))
            if bound:
                closest = max(closest, true / bound)
    assert closest > Fraction(95, 100)


@pytest.mark.parametrize("weight", [1, 3, Fraction(1, 7)])
def test_one_class_is_as_private_as_its_count_and_no_more(weight):
    certificate = pkdp.certify(pkdp.Count(), pkdp.AttackerModel(p_min=0.5, p_max=0.5, unknown=8))
    for growth in GROWTHS:
        true = divergence([coin(weight)] * 8, (weight, 0), growth)
        assert true <= certified(certificate, growth) <= true * (1 + Fraction(1, 100)) + Fraction(1, 10**15)


@thinned(3)
@pytest.mark.parametrize("seed", range(6))
def test_counts_by_weight_class_together_tell_no_more_than_the_smallest_class(seed):
    rng = np.random.default_rng([12, seed])
    sizes = {1: 2, 5: 3, 20: 4}
    people = [{(w, 0): 1 - p, (w, 1): p} for w, n in sizes.items() for p in [drawn_chance(rng, HALF / 2, HALF)] * n]

    def by_class(record):
        return tuple(record[1] if record[0] == w else 0 for w in sizes)

    def weighted(record):
        return record[0] * record[1]

    parts = [pkdp.certify(pkdp.Count(), pkdp.AttackerModel(p_min=0.25, p_max=0.5, unknown=n)) for n in sizes.values()]
    total = pkdp.compose(parts, pkdp.DisjointUnits())
    for growth in GROWTHS:
        for weight in sizes:
            lives = ((weight, 1), (weight, 0))
            delta_by_class = divergence(people, lives, growth, by_class)
            assert divergence(people, lives, growth, weighted) <= delta_by_class <= certified(total, growth)


def test_the_sum_follows_from_the_counts_by_class():
    import pandas as pd

    rng = np.random.default_rng(3)
    frame = pd.DataFrame({"id": range(600), "shares": np.repeat([1, 5, 20], 200), "yes": rng.random(600) < 0.4})
    attacker = pkdp.AttackerModel(p_min=0.2, p_max=0.8, unknown=150)
    releases = {w: frame.pkdp.count(f"yes and shares == {w}", unit="id", attacker=attacker) for w in (1, 5, 20)}
    weighted = sum(w * int(release.table["count"].iloc[0]) for w, release in releases.items())
    assert weighted == (frame["shares"] * frame["yes"]).sum()
    total = pkdp.compose([release.certificate for release in releases.values()], pkdp.DisjointUnits())
    assert total.epsilon(1e-6) == releases[1].certificate.epsilon(1e-6)
    with pytest.raises(pkdp.NotCertifiableError, match="unknown = 0"):
        pkdp.certify(pkdp.Count(), pkdp.AttackerModel(p_min=0.2, p_max=0.8, unknown=0))


MEANS = {
    "arithmetic": lambda value: Fraction(value),
    "quadratic": lambda value: Fraction(value * value),
    "harmonic": lambda value: Fraction(1, value),
    # Exponents of 2, 3 and 5: the product of all values.
    "geometric": lambda value: tuple(_exponent(value, prime) for prime in (2, 3, 5)),
}


def _exponent(value, prime):
    exponent = 0
    while value % prime == 0:
        value, exponent = value // prime, exponent + 1
    return exponent


@thinned(4)
@pytest.mark.parametrize("mean", MEANS)
@pytest.mark.parametrize("seed", range(4))
def test_no_mean_of_numbers_from_a_list_tells_more_than_their_histogram_is_certified_to(mean, seed):
    rng = np.random.default_rng([13, seed])
    values = [1, 2, 3, 4, 5][: int(rng.integers(2, 6))]
    unit = 16
    floor = int(rng.integers(1, unit // len(values) + 1))
    people = []
    unknown = int(rng.integers(2, 5))
    for _ in range(unknown):
        extra = rng.multinomial(unit - floor * len(values), rng.dirichlet([0.3] * len(values)))
        people.append({v: Fraction(floor + int(e), unit) for v, e in zip(values, extra, strict=True)})
    known = [{int(rng.choice(values)): Fraction(1)}]
    attacker = pkdp.AttackerModel(p_min=floor / unit, unknown=unknown)
    certificate = pkdp.certify(pkdp.Histogram(), attacker, protects="value")

    def histogram(value):
        return tuple(int(value == number) for number in values)

    lives = (values[0], values[-1])
    for growth in GROWTHS:
        table = divergence([*people, *known], lives, growth, histogram)
        assert divergence([*people, *known], lives, growth, MEANS[mean]) <= table <= certified(certificate, growth)


def test_a_geometric_mean_may_be_the_histogram():
    people = [{2: Fraction(1, 4), 3: Fraction(1, 4), 5: HALF}] * 4
    for growth in GROWTHS:
        for lives in ((2, 3), (2, 5), (3, 5)):
            table = divergence(people, lives, growth, lambda value: (value == 2, value == 3, value == 5))
            assert divergence(people, lives, growth, MEANS["geometric"]) == table


# What does not hold


@pytest.mark.parametrize("people", [3, 8, 12])
def test_distinct_weights_tell_everything_however_close_they_are(people):
    for base in (0, 2**people):
        weights = [base + 2**i for i in range(people)]
        others = [coin(w) for w in weights[1:]]
        assert divergence(others, (weights[0], 0), Fraction(10**9)) == 1
    # A second person of each weight hides as one coin does: not at all at a large ε, by half at ε = 0.
    assert divergence([*others, coin(weights[0])], (weights[0], 0), Fraction(1)) == HALF


@pytest.mark.parametrize("people", [1, 5, 20])
def test_no_bound_on_probabilities_from_above_suffices_for_a_mean(people):
    even = {0: Fraction(1, 3), 2: Fraction(1, 3), 4: Fraction(1, 3)}
    assert divergence([even] * people, (0, 1), Fraction(10**9)) == 1
    # Where every value is possible, the same target is hidden.
    whole = {value: Fraction(1, 5) for value in range(5)}
    attacker = pkdp.AttackerModel(p_min=0.2, unknown=people)
    certificate = pkdp.certify(pkdp.Histogram(), attacker, protects="value")
    for growth in GROWTHS:
        assert divergence([whole] * people, (0, 1), growth) <= certified(certificate, growth)


@pytest.mark.parametrize("most", [1, 10, 100])
def test_a_log_concave_sum_of_any_variance_tells_at_its_ends(most):
    law = {value: Fraction(1, most + 1) for value in range(most + 1)}
    for growth in (*GROWTHS, Fraction(10**9)):
        assert divergence([law, {7: Fraction(1)}], (1, 0), growth) == Fraction(1, most + 1)
    variance = sum(chance * value * value for value, chance in law.items()) - Fraction(most, 2) ** 2
    assert variance == Fraction((most + 1) ** 2 - 1, 12)
    # Fair coins with the same variance promise far less than these ends tell.
    coins = pkdp.certify(pkdp.Count(), pkdp.AttackerModel(p_min=0.5, p_max=0.5, unknown=math.floor(4 * variance)))
    assert (coins.delta(0.5) < Fraction(1, most + 1)) == (most > 1)


def test_sums_of_numbers_without_a_common_step_do_not_meet():
    # a + b·√2, as the pair (a, b).
    assert divergence([{(0, 0): HALF, (1, 0): HALF}] * 12, ((0, 1), (0, 0)), Fraction(10**9)) == 1
    assert divergence([{100 * v: Fraction(1, 20) for v in range(20)}] * 3, (150, 200), Fraction(10**9)) == 1


@pytest.mark.parametrize("steps", [1, 2, 3])
def test_neighbouring_coins_hide_as_a_group_of_a_count_does(steps):
    # "What would suffice": coins between neighbours, wherever they are, and a target who moves the sum by some steps.
    people = [{c: HALF, c + 1: HALF} for c in (0, 3, 3, 8, -2, 5, 0, 1)]
    certificate = pkdp.certify(pkdp.Count(), pkdp.AttackerModel(p_min=0.5, p_max=0.5, unknown=len(people)))
    for growth in (Fraction(1), Fraction(2)):
        true = divergence(people, (steps, 0), growth**steps)
        assert true <= sum(growth**step for step in range(steps)) * certified(certificate, growth)
