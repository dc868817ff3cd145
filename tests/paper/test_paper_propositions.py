"""Propositions 1 to 4, 6 and 8, and Theorems 1 and 2 of the paper, on all values of small models."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest
from paper_models import (
    Model,
    active_delta,
    causal_delta,
    coin,
    deltas_by_knowledge,
    noiseless_delta,
    nothing,
    passive_delta,
    record,
    records,
)
from thorough import one_in, thinned

import pkdp_pipeline as pkdp
from pkdp_pipeline.theory import acceptable, knows_more

GROWTHS = (Fraction(1), Fraction(5, 4), Fraction(2), Fraction(7))
OWN = lambda values: values  # noqa: E731


def drawn_law(rng, values):
    weights = rng.integers(1, 9, len(values))
    return {value: Fraction(int(weight), int(weights.sum())) for value, weight in zip(values, weights, strict=True)}


def drawn_table(rng, laws):
    """Return any mechanism at all: an output for every database."""
    outputs = {database: int(rng.integers(0, 4)) for database in product(*laws)}
    return outputs.__getitem__


@thinned(3)
@pytest.mark.parametrize("seed", range(12))
def test_propositions_2_and_4_causal_and_noiseless_privacy_agree_where_records_are_independent(seed):
    rng = np.random.default_rng([seed, 2])
    laws = tuple(drawn_law(rng, range(int(rng.integers(2, 4)))) for _ in range(3))
    model, mechanism = Model(laws, OWN), drawn_table(rng, laws)
    for known in (nothing, records(model, [1]), records(model, [1, 2])):
        assert acceptable(model, record(model, 0), known)
        for growth in GROWTHS:
            noiseless = noiseless_delta(model, mechanism, record(model, 0), known, growth)
            assert noiseless == causal_delta(model, mechanism, 0, known, growth, list(laws[0]))


@thinned(4)
@pytest.mark.parametrize("seed", range(12))
def test_proposition_3_more_acceptable_knowledge_is_stronger(seed):
    # Records are sums of parameters that several of them share: dependent, but normalised.
    rng = np.random.default_rng([seed, 3])
    laws = tuple(drawn_law(rng, range(2)) for _ in range(4))

    def database(values):
        return (values[0], values[1] + values[2], values[2] + 2 * values[3], values[3])

    model = Model(laws, database)
    outputs = {database(values): int(rng.integers(0, 4)) for values, _ in model.outcomes()}
    sets = [chosen for size in range(4) for chosen in combinations((1, 2, 3), size)]
    for growth in GROWTHS:
        deltas = {}
        for chosen in sets:
            known = lambda values, chosen=chosen: tuple(values[place] for place in chosen)  # noqa: E731
            assert acceptable(model, record(model, 0), known)
            deltas[chosen] = noiseless_delta(model, outputs.__getitem__, record(model, 0), known, growth)
        for first, second in product(sets, repeat=2):
            readings = [
                lambda values, chosen=chosen: tuple(values[place] for place in chosen) for chosen in (second, first)
            ]
            stronger = knows_more(model, record(model, 0), *readings)
            assert stronger == (set(first) <= set(second))
            assert not stronger or deltas[first] <= deltas[second]


@pytest.mark.parametrize("seed", range(12))
def test_theorem_1_passive_is_the_average_of_active_and_both_agree_at_zero(seed):
    rng = np.random.default_rng([seed, 1])
    laws = tuple(drawn_law(rng, range(2)) for _ in range(4))
    model, mechanism = Model(laws, OWN), drawn_table(rng, laws)
    target, known = record(model, 0), records(model, [2, 3])
    for growth in GROWTHS:
        active, passive = (delta(model, mechanism, target, known, growth) for delta in (active_delta, passive_delta))
        assert passive <= active
        assert (passive == 0) == (active == 0)
        parts = deltas_by_knowledge(model, mechanism, target, known, growth, (0, 1))
        assert sum(weight * delta for weight, delta in parts.values()) <= passive


# Proposition 6: φ-reducible mechanisms ------------------------------------------------------------

WEIGHTS = (Fraction(1), Fraction(-2), Fraction(1, 3), Fraction(5))


def geometric(values):
    # A strictly increasing function of the geometric mean, which is no rational number.
    return math.prod(values)


def harmonic(values):
    return Fraction(len(values)) / sum(Fraction(1) / value for value in values)


def quadratic(values):
    # The square of the quadratic mean, likewise.
    return Fraction(sum(value * value for value in values), len(values))


REDUCIBLE = {
    "counting": lambda values: sum(value >= 2 for value in values),
    "linear": lambda values: sum(weight * value for weight, value in zip(WEIGHTS, values, strict=True)),
    "arithmetic mean": lambda values: Fraction(sum(values), len(values)),
    "geometric mean": geometric,
    "harmonic mean": harmonic,
    "quadratic mean": quadratic,
}


@thinned(3)
@pytest.mark.parametrize("name", REDUCIBLE)
@pytest.mark.parametrize("seed", one_in(2, range(2)))
def test_proposition_6_active_and_passive_attackers_agree(name, seed):
    # Everybody has a law of her own on positive values.
    rng = np.random.default_rng([seed, 6])
    model = Model(tuple(drawn_law(rng, (1, 2, 4)) for _ in WEIGHTS), OWN)
    mechanism, target = REDUCIBLE[name], record(model, 0)
    for places in ((3,), (1, 3)):
        known = records(model, places)
        for growth in GROWTHS:
            for lives in ((1, 2), (4, 1)):
                # The same for every value of the background, not only on average: that is what φ gives.
                divergences = {
                    delta for _, delta in deltas_by_knowledge(model, mechanism, target, known, growth, lives).values()
                }
                assert len(divergences) == 1
            assert active_delta(model, mechanism, target, known, growth) == passive_delta(
                model, mechanism, target, known, growth
            )


def test_proposition_6_the_bijection_is_there():
    # Definition 14 itself, for a linear query: the law given one background is that given another, moved.
    model = Model(tuple(drawn_law(np.random.default_rng(6), (1, 2, 4)) for _ in WEIGHTS), OWN)
    laws = {}
    for values, weight in model.outcomes():
        law = laws.setdefault((values[3], values[0]), {})
        output = REDUCIBLE["linear"](values)
        law[output] = law.get(output, Fraction(0)) + weight
    for life, background in product((1, 2, 4), (2, 4)):
        law_of_first, law_of_background = laws[1, life], laws[background, life]
        moved = {output + WEIGHTS[3] * (background - 1): weight for output, weight in law_of_first.items()}
        masses = sum(moved.values()), sum(law_of_background.values())
        assert {o: w / masses[0] for o, w in moved.items()} == {o: w / masses[1] for o, w in law_of_background.items()}


@pytest.mark.parametrize("k", [2, 3, 4])
def test_proposition_6_does_not_extend_to_thresholds(k):
    model = Model((coin(Fraction(1, 10)),) * 6, OWN)
    target, known = record(model, 0), records(model, [4, 5])
    shown = lambda votes: sum(votes) if sum(votes) >= k else None  # noqa: E731
    for growth in (Fraction(1), Fraction(2)):
        active, passive = (delta(model, shown, target, known, growth) for delta in (active_delta, passive_delta))
        assert passive < active
        parts = deltas_by_knowledge(model, shown, target, known, growth, (1, 0))
        # By how many of the two known people vote yes: who reaches the threshold with them sees every count.
        assert len({delta for _, delta in parts.values()}) == min(3, k)


def test_proposition_6_needs_to_say_which_records_are_known():
    # To know one record is not to know another: these two have different laws.
    model = Model((coin(Fraction(1, 2)), coin(Fraction(1, 2)), coin(Fraction(1, 50))), OWN)
    first, second = (
        active_delta(model, sum, record(model, 0), records(model, [place]), Fraction(2)) for place in (1, 2)
    )
    assert first > second


def test_the_library_takes_both_attackers_for_the_same_where_they_are():
    fields = {"p_min": 0.2, "p_max": 0.7, "unknown": 30, "known": 12}
    passive, active = (
        pkdp.certify(pkdp.Count(), pkdp.AttackerModel(**fields, influence=influence))
        for influence in ("passive", "active")
    )
    none = pkdp.certify(pkdp.Count(), pkdp.AttackerModel(p_min=0.2, p_max=0.7, unknown=30))
    for epsilon in (0.0, 0.3, 1.0):
        assert passive.delta(epsilon) == active.delta(epsilon) == none.delta(epsilon)
    fields = {"p_max": 0.2, "known": 3}
    passive, active = (
        pkdp.certify(pkdp.Count(k=9), pkdp.AttackerModel(**fields, influence=influence))
        for influence in ("passive", "active")
    )
    assert passive.delta(1.0) < active.delta(1.0)


# Proposition 8: who is known moves the threshold ----------------------------------------------------


@thinned(2)
@pytest.mark.parametrize(("people", "known", "k"), [(7, 2, 4), (7, 3, 5), (8, 1, 3)])
def test_proposition_8_known_records_move_the_threshold(people, known, k):
    p = Fraction(1, 5)
    model, fewer = Model((coin(p),) * people, OWN), Model((coin(p),) * (people - known), OWN)
    target, background = record(model, 0), records(model, range(1, 1 + known))

    def shown(least):
        return lambda votes: sum(votes) if sum(votes) >= least else None

    for growth in GROWTHS:
        for lives in ((1, 0), (0, 1)):
            with_them = deltas_by_knowledge(model, shown(k), target, background, growth, lives)
            for state, (_, delta) in with_them.items():
                left = k - sum(state)
                alone = deltas_by_knowledge(fewer, shown(left), record(fewer, 0), nothing, growth, lives)
                assert delta == alone[()][1]
        # A lower threshold leaves more to look at, so those who control records let all of them be counted.
        active = active_delta(model, shown(k), target, background, growth)
        assert active == passive_delta(fewer, shown(k - known), record(fewer, 0), nothing, growth)
        assert active >= passive_delta(model, shown(k), target, background, growth)
        attacker = {"p_max": float(p), "known": known, "influence": "active", "unknown_max": people - known - 1}
        certificate = pkdp.certify(pkdp.Count(k=k), pkdp.AttackerModel(**attacker))
        assert active <= Fraction(certificate.delta(math.log(growth) * (1 - 1e-15)))
