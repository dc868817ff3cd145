"""Finite models: acceptable attackers and the dependence of releases, held against enumeration and broken models."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import chain, combinations, permutations, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle.dependence import measured_dependence
from oracle.joint import Day, joint_laws
from oracle.laws import losses
from thorough import examples

import pkdp_pipeline as pkdp
from pkdp_pipeline.extras.theory.privacy_loss.side import growth_above, growth_below
from pkdp_pipeline.theory import (
    FiniteModel,
    acceptable,
    bounded_dependence,
    bounded_influence,
    crowd,
    dependency,
    knows_more,
    markov_chain,
)

HALF = Fraction(1, 2)
COIN = {1: HALF, 0: HALF}
WEIGHTS = st.integers(1, 20)


def same(values):
    return values


def nothing(values):
    del values
    return ()


def sticky(repeat, days, start=HALF):
    """Return a person who repeats each day with probability `repeat`."""
    step = {state: {state: repeat, 1 - state: 1 - repeat} for state in (0, 1)}
    return markov_chain({1: start, 0: 1 - start}, step, days)


def counts(days):
    """Return the exact count of each day, of the target's days and the numbers of the others."""
    return [lambda rows, day=day: rows[0][day] + rows[1][day] for day in range(days)]


def model_of(people, days):
    """Return the target, who may do anything, beside these people."""
    target = {trajectory: Fraction(1, 2**days) for trajectory in product((0, 1), repeat=days)}
    return FiniteModel((target, crowd(people)), same)


def target(values):
    return values[0]


@st.composite
def laws(draw, outcomes, lowest=1):
    weights = draw(st.lists(st.integers(lowest, 20), min_size=len(outcomes), max_size=len(outcomes)).filter(any))
    return {outcome: Fraction(weight, sum(weights)) for outcome, weight in zip(outcomes, weights, strict=True)}


def people_of(days, most):
    trajectories = list(product((0, 1), repeat=days))
    return st.lists(laws(trajectories), min_size=1, max_size=most)


# Definitions 7 to 9 ------------------------------------------------------------------------------------------------


def determines(causes, effects):
    return len(set(causes)) == len(set(zip(causes, effects, strict=True)))


def sets_that_serve(model, secret, known):
    """Return (parameter, set of others) of all acceptable ways to read the model, by trying every set."""
    support = [values for values, _ in model.outcomes()]
    knowledge = [known(values) for values in support]
    if not determines([(model.database(values), known(values)) for values in support], support):
        return set()
    numbers = range(len(model.parameters))
    served = set()
    for number in numbers:
        others = [other for other in numbers if other != number]
        for chosen in chain.from_iterable(combinations(others, size) for size in range(len(others) + 1)):
            picked = [tuple(values[other] for other in chosen) for values in support]
            alike = determines(picked, knowledge) and determines(knowledge, picked)
            if alike and determines([values[number] for values in support], [secret(values) for values in support]):
                served.add((number, frozenset(chosen)))
    return served


@examples(quick=15, full=2000)
def test_acceptable_and_knows_more_are_their_definitions(examples):
    @settings(max_examples=examples)
    @given(st.data())
    def check(data):
        # Three parameters, some of them certain; readings and records are any functions of them at all.
        sizes = data.draw(st.lists(st.integers(1, 2), min_size=3, max_size=3))
        support = list(product(*map(range, sizes)))

        def reading(most):
            kinds = [
                st.sampled_from([dict(zip(support, support, strict=True)), dict.fromkeys(support, ())]),
                st.sampled_from(
                    [{v: tuple(v[n] for n in c) for v in support} for c in ((0,), (1,), (2,), (0, 1), (1, 2))]
                ),
                st.lists(st.integers(0, most), min_size=len(support), max_size=len(support)).map(
                    lambda drawn: dict(zip(support, drawn, strict=True))
                ),
            ]
            return data.draw(st.one_of(kinds)).__getitem__

        database, secret, known, other = reading(9), reading(1), reading(2), reading(2)
        laws_of = tuple({value: Fraction(1, size) for value in range(size)} for size in sizes)
        model = FiniteModel(laws_of, database)
        served = [sets_that_serve(model, secret, knowledge) for knowledge in (known, other)]
        assert acceptable(model, secret, known) == bool(served[0])
        contained = {
            (number, chosen, less)
            for number, chosen in served[0]
            for same_number, less in served[1]
            if number == same_number and less <= chosen
        }
        assert knows_more(model, secret, known, other) == bool(contained)

    check()


def test_readings_of_records_and_broken_models():
    model = FiniteModel((COIN, COIN), same)
    assert acceptable(model, model.records(0), model.records(1))
    assert acceptable(model, model.records(0), model.records())
    assert not acceptable(model, model.records(0), model.records(0, 1))
    assert knows_more(model, model.records(0), model.records(1), model.records())
    assert not knows_more(model, model.records(0), model.records(), model.records(1))
    assert sum(chance for _, chance in model.outcomes()) == 1
    # A parameter that neither data nor knowledge show makes no normalisation.
    assert not acceptable(FiniteModel((COIN, COIN), lambda values: values[:1]), target, nothing)
    for law in ({1: 0.5, 0: 0.5}, {1: HALF}, {1: Fraction(3, 2), 0: -HALF}, [HALF, HALF]):
        with pytest.raises(pkdp.ArgumentError, match="parameter"):
            FiniteModel((law,), same)


# Definition 17, and the main equation of Theorem 6 -----------------------------------------------------------------


def pushed(law, part):
    sums = {}
    for outputs, chance in law.items():
        sums[part(outputs)] = sums.get(part(outputs), 0) + chance
    return sums


@examples(quick=15, full=2000)
def test_the_loss_is_the_sum_of_losses_and_dependences(examples):
    outputs = list(product((0, 1), (0, 1), (0, 1, 2)))

    @settings(max_examples=examples)
    @given(laws(outputs, lowest=0), laws(outputs, lowest=0))
    def check(first, second):
        added = [dependency(first, second, number) for number in (0, 1, 2)]
        assert set(added[0].values()) == {1}
        own = [[pushed(law, lambda o, n=n: o[n]) for n in range(3)] for law in (first, second)]
        for drawn, chance in first.items():
            if chance == 0:
                continue
            ratios = [(own[0][n][o], own[1][n][o]) for n, o in enumerate(drawn)]
            factors = [added[number][drawn[: number + 1]] for number in (0, 1, 2)]
            if second[drawn] == 0:
                # Where the lives are told apart, some release alone or some dependence is infinite.
                assert math.inf in factors or any(q == 0 for _, q in ratios)
            else:
                assert chance / second[drawn] == math.prod([p / q for p, q in ratios] + factors)

    check()


# Definition 18 and Theorem 6 ---------------------------------------------------------------------------------------


@examples(quick=6, full=300)
def test_what_is_computed_is_the_dependence_there_is_and_the_total_holds(examples):
    @settings(max_examples=examples)
    @given(st.sampled_from([2, 2, 3]), st.data(), st.sampled_from([0.0, 0.02, 0.2]))
    def check(days, data, delta):
        people = data.draw(people_of(days, 3))
        lives = data.draw(st.sampled_from(list(permutations(product((0, 1), repeat=days), 2))))
        model = model_of(people, days)
        try:
            evidence = bounded_dependence(model, counts(days), target, delta=delta, lives=[lives])
        except pkdp.NotCertifiableError:
            evidence = None
        # The oracle counts cells and absences, in floats, person by person.
        cells = [{tuple(0 if day else None for day in life): float(p) for life, p in law.items()} for law in people]
        there = tuple(tuple(0 if day else None for day in life) for life in lives)
        sides = joint_laws(cells, [Day()] * days, there, math.exp)
        measured = max(
            measured_dependence(*order, number, delta) for order in (sides, sides[::-1]) for number in range(1, days)
        )
        if evidence is None:
            assert measured == math.inf
            return
        assert evidence.epsilon == pytest.approx(measured, rel=1e-9, abs=1e-9)
        assert evidence.delta <= delta
        # Each release has the exact profile of its own day; Theorem 6 adds them up, in every split of ε.
        exact = [{}, {}]
        for (_, others), chance in FiniteModel((COIN, crowd(people)), same).outcomes():
            for life, law in zip(lives, exact, strict=True):
                shown = tuple(map(int.__add__, life, others))
                law[shown] = law.get(shown, 0) + chance
        own = [[pushed(law, lambda o, n=n: o[n]) for n in range(days)] for law in exact]
        for share in (0.0, 0.3, 1.0):
            parts = sum(max(losses(own[0][n], own[1][n], growth_below(share))) for n in range(days))
            growth = growth_above(share) ** days * growth_above(evidence.epsilon) ** (days - 1)
            assert max(losses(*exact, growth)) <= parts + (days - 1) * Fraction(evidence.delta)

    check()


def test_no_smaller_number_will_do_and_one_parameter_for_each_person_gives_the_same():
    people = [
        sticky(Fraction(4, 5), 2),
        {(1, 0): Fraction(1, 3), (0, 1): Fraction(1, 6), (0, 0): HALF / 2, (1, 1): HALF / 2},
    ]
    days = {trajectory: Fraction(1, 4) for trajectory in product((0, 1), repeat=2)}
    apart = FiniteModel((days, *people), same)
    totals = [lambda rows, day=day: sum(row[day] for row in rows) for day in (0, 1)]
    for delta in (0.05, 0.3):
        evidence = bounded_dependence(apart, totals, target, delta=delta)
        assert evidence == bounded_dependence(model_of(people, 2), counts(2), target, delta=delta)
        joint = {life: {} for life in days}
        for values, chance in apart.outcomes():
            shown = tuple(total(values) for total in totals)
            joint[values[0]][shown] = joint[values[0]].get(shown, 0) + 4 * chance
        chances = [
            [
                (factor, pushed(joint[life], same)[o])
                for o, factor in dependency(joint[life], joint[other_life], 1).items()
            ]
            for life, other_life in permutations(joint, 2)
        ]

        def beyond(growth, chances=chances):
            return max(sum(chance for factor, chance in listed if factor > growth) for listed in chances)

        assert beyond(growth_above(evidence.epsilon)) <= Fraction(evidence.delta) <= Fraction(delta)
        assert beyond(growth_below(evidence.epsilon * (1 - 1e-12))) > Fraction(delta)


def test_the_total_is_attained():
    # One other person, on one of two days or on none: shown from 2 on, a count says that she and the target are there.
    chance = Fraction(7, 20)
    model = model_of([{(1, 0): chance, (0, 1): chance, (0, 0): 1 - 2 * chance}], 2)
    shown = [lambda rows, count=count: count(rows) if count(rows) >= 2 else None for count in counts(2)]
    evidence = bounded_dependence(model, shown, target, lives=[((1, 1), (0, 0))])
    assert evidence.epsilon == pytest.approx(math.log((1 - chance) ** 2 / (1 - 2 * chance)), rel=1e-15)
    part = pkdp.certify(pkdp.Count(k=2), pkdp.AttackerModel(p_max=0.35))
    total = pkdp.compose([part, part], evidence).delta(40.0)
    assert 0.7 <= total <= 0.7 * (1 + 1e-6)


def test_noise_and_knowledge_are_parts_of_the_model():
    # Two noised looks at one count: noise is drawn twice, known people are told, and everybody's days are the same.
    noise = {-1: Fraction(1, 4), 0: HALF, 1: Fraction(1, 4)}
    model = FiniteModel((COIN, {0: HALF, 1: Fraction(1, 4), 2: Fraction(1, 4)}, noise, noise, COIN), same)
    looks = [lambda v, day=day: v[0] + v[1] + v[2 + day] + v[4] for day in (0, 1)]
    unknowing, knowing = (
        bounded_dependence(model, looks, target, known, delta=0.3) for known in (nothing, lambda values: values[4])
    )
    assert unknowing.epsilon > 0.0
    assert knowing == bounded_dependence(
        FiniteModel(model.parameters[:4], same),
        [lambda v, day=day: v[0] + v[1] + v[2 + day] for day in (0, 1)],
        target,
        delta=0.3,
    )


# Example 9 ---------------------------------------------------------------------------------------------------------


def closeness(law):
    """Return the least e^c with every chance of day 2 given day 1 within e^±c of its own value."""
    days = [pushed(law, lambda o, n=n: o[n]) for n in (0, 1)]
    ratios = [chance / (days[0][first] * days[1][second]) for (first, second), chance in law.items()]
    return max(max(ratio, 1 / ratio) for ratio in ratios)


@examples(quick=8, full=500)
def test_example_9_any_number_of_people_stay_below_four_times_c(examples):
    @settings(max_examples=examples)
    @given(people_of(2, 4), st.sampled_from([(None, None), (None, 2), (2, 2), (3, None)]))
    def check(people, thresholds):
        growth = max(map(closeness, people))
        bounds = {both: bounded_influence(people, both_days=both) for both in (True, False)}
        for both, bound in bounds.items():
            assert growth_below(bound.epsilon) <= growth ** (4 if both else 2)
        shown = [
            count if k is None else lambda rows, count=count, k=k: count(rows) if count(rows) >= k else None
            for count, k in zip(counts(2), thresholds, strict=True)
        ]
        model = model_of(people, 2)
        for lives in permutations(product((0, 1), repeat=2), 2):
            differ = sum(first != second for first, second in zip(*lives, strict=True))
            computed = bounded_dependence(model, shown, target, lives=[lives])
            assert computed.epsilon <= bounds[differ == 2].epsilon

    check()


def test_example_9_four_times_c_is_nearly_reached_and_twice_c_is_exceeded():
    person = markov_chain(
        COIN, {1: {1: Fraction(11, 20), 0: Fraction(9, 20)}, 0: {1: Fraction(9, 20), 0: Fraction(11, 20)}}, 2
    )
    c = math.log(10 / 9)
    bound = bounded_influence([person]).epsilon
    assert 3.79 * c < bound < 4 * c
    computed = bounded_dependence(model_of([person] * 15, 2), counts(2), target, lives=[((1, 0), (0, 1))]).epsilon
    assert 2 * c < 0.94 * bound < computed < bound
    assert bounded_influence([person], both_days=False).epsilon <= 2 * c
    # Lives that differ on the first day only: the other person was there, or was not, and is twice as likely to come.
    rare = markov_chain(
        COIN, {1: {1: Fraction(1, 5), 0: Fraction(4, 5)}, 0: {1: Fraction(1, 10), 0: Fraction(9, 10)}}, 2
    )
    reached = bounded_dependence(model_of([rare], 2), counts(2), target, lives=[((1, 0), (0, 0))]).epsilon
    assert reached == bounded_influence([rare], both_days=False).epsilon == pytest.approx(math.log(2.0), rel=1e-15)
    assert bounded_influence([sticky(HALF, 2)]).epsilon == 0.0


def test_what_people_do_given_their_own_past_is_no_evidence_for_three_days():
    past = sticky(Fraction(11, 20), 3)
    with pytest.raises(pkdp.NotCertifiableError, match="bounded_dependence"):
        bounded_influence([sticky(Fraction(11, 20), 2), past])
    # All three days of the model together are another matter.
    three = bounded_dependence(model_of([past] * 4, 3), counts(3), target)
    two = bounded_dependence(model_of([sticky(Fraction(11, 20), 2)] * 4, 2), counts(2), target)
    assert three.epsilon >= two.epsilon > 0.0
    # A third day on its own adds nothing: the second still depends on the first.
    alone = {(*days, last): chance / 2 for days, chance in sticky(Fraction(11, 20), 2).items() for last in (0, 1)}
    assert bounded_dependence(model_of([alone] * 4, 3), counts(3), target).epsilon == two.epsilon
    # Two coins and whether they differ: every two days are independent, three exact counts give the target away.
    parity = {(first, second, first ^ second): Fraction(1, 4) for first, second in product((0, 1), repeat=2)}
    model = model_of([parity] * 3, 3)
    for pair in combinations(range(3), 2):
        evidence = bounded_dependence(model, [counts(3)[day] for day in pair], target, lives=[((1, 0, 0), (0, 0, 0))])
        assert evidence.epsilon == 0.0
    for delta in (0.0, 0.5):
        with pytest.raises(pkdp.NotCertifiableError, match="together"):
            bounded_dependence(model, counts(3), target, delta=delta, lives=[((1, 0, 0), (0, 0, 0))])


def test_twelve_people_who_repeat_their_first_day():
    # A product of what holds given everybody's past says 0.495 at ε = 0.5, where two days have 0.578.
    lives, people = ((1, 0), (0, 1)), [sticky(Fraction(9, 10), 2)] * 12
    joint = [
        {tuple(map(int.__add__, life, others)): chance for others, chance in crowd(people).items()} for life in lives
    ]
    true = max(losses(*joint, growth_above(0.5)))
    assert float(true) == pytest.approx(0.578, abs=1e-3)
    part = pkdp.certify(pkdp.Count(), pkdp.AttackerModel(p_min=0.5, p_max=0.5, unknown=12))
    for delta in (0.0, 0.05, 0.3):
        evidence = bounded_dependence(model_of(people, 2), counts(2), target, delta=delta, lives=[lives])
        total = pkdp.compose([part, part], evidence)
        for epsilon in (0.5, 2.0, 6.0):
            assert max(losses(*joint, growth_above(epsilon))) <= Fraction(total.delta(epsilon))


# Refusals ----------------------------------------------------------------------------------------------------------


def repeated(units, times):
    return FiniteModel((COIN,) * units, lambda values: tuple(value for value in values for _ in range(times)))


@pytest.mark.parametrize(
    ("model", "known"),
    [
        pytest.param(repeated(3, 2), (1,), id="example 2: the twin is known"),
        pytest.param(repeated(4, 2), (1, 2), id="example 4: and somebody else"),
        pytest.param(repeated(2, 3), (1, 2), id="example 5: the triple is known"),
        pytest.param(
            FiniteModel((COIN, {1: Fraction(3, 4), 0: Fraction(1, 4)}), lambda v: (v[0], 1 - v[0] ^ v[1])),
            (0,),
            id="example 6: the partner is known",
        ),
        pytest.param(FiniteModel((COIN, COIN), lambda v: (v[0] ^ v[1], v[0])), (), id="two parameters hold the secret"),
    ],
)
def test_models_that_are_not_acceptable_have_no_dependence(model, known):
    secret = model.records(1) if known == (0,) else model.records(0)
    assert not acceptable(model, secret, model.records(*known))
    with pytest.raises(pkdp.NotCertifiableError, match="larger privacy unit"):
        bounded_dependence(model, [sum, sum], secret, model.records(*known))


def test_bad_arguments_are_named():
    model = model_of([sticky(HALF, 2)], 2)
    chain_of = {1: COIN, 0: COIN}
    calls = [
        (lambda: bounded_dependence(model, counts(2)[:1], target), "releases"),
        (lambda: bounded_dependence(model, counts(2), target, delta=2.0), "delta"),
        (lambda: bounded_dependence(model, counts(2), target, lives=[((1, 0), (2, 0))]), "lives"),
        (lambda: bounded_dependence(model, counts(2), target, lives=[((1, 0), (1, 0))]), "lives"),
        (lambda: bounded_dependence(model, counts(2), target, lives=[]), "lives"),
        (lambda: bounded_dependence(model, counts(2), nothing), "secret"),
        (lambda: bounded_influence([{(1,): Fraction(1)}]), "two days"),
        (lambda: bounded_influence([{(1, 2): Fraction(1)}]), "people"),
        (lambda: markov_chain(COIN, {1: COIN}, 2), "transition"),
        (lambda: markov_chain(COIN, chain_of, 0), "days"),
        (lambda: crowd([]), "people"),
        (lambda: crowd([sticky(HALF, 2), sticky(HALF, 3)]), "people"),
        (lambda: dependency({(1,): Fraction(1)}, {(1,): Fraction(1)}, 1), "first and second"),
        (lambda: dependency({(1,): 1.0}, {(1,): Fraction(1)}, 0), "first"),
    ]
    for call, name in calls:
        with pytest.raises(pkdp.ArgumentError, match=name):
            call()
    with pytest.raises(pkdp.NotCertifiableError, match="bounded_dependence with a delta"):
        bounded_influence([{(1, 0): HALF, (0, 1): HALF}])
