"""Rules 5 and 6: guarantees against anyone at all."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest
from oracle.joint import Day, worst
from oracle.pairs import product_divergence
from thorough import thinned

import pkdp_pipeline as pkdp
from pkdp_pipeline.extras.theory.bounded_leakage import advanced_composition
from pkdp_pipeline.model.context import Context
from pkdp_pipeline.model.evidence import BoundedParticipation
from pkdp_pipeline.theorems.numerics import sum_above


def noised(epsilon, protects="presence", k=None, release=None):
    mechanism = pkdp.Histogram(k=k, noise=pkdp.GeometricNoise(epsilon), release_threshold=release)
    return pkdp.certify(mechanism, pkdp.AttackerModel(), protects=protects)


def noise_pair(epsilon):
    """Return the two atoms of one noised cell."""
    alpha = math.exp(-epsilon)
    return [(1 / (1 + alpha), alpha / (1 + alpha)), (alpha / (1 + alpha), 1 / (1 + alpha))]


@pytest.mark.parametrize("noises", [(0.5, 0.5), (0.5, 1.0), (0.2, 0.2, 0.2, 0.2), (0.3, 0.6, 0.9), (1.0, 0.25, 0.5)])
@pytest.mark.parametrize("protects", ["presence", "value"])
def test_noise_on_a_lattice_adds_up_exactly(noises, protects):
    total = pkdp.compose([noised(epsilon, protects) for epsilon in noises]).worst_case
    cells = 2 if protects == "value" else 1
    pairs = [noise_pair(epsilon) for epsilon in noises for _ in range(cells)]
    for epsilon in (0.0, 0.1, 0.37, 0.9, 1.4):
        exact = product_divergence(pairs, math.exp(epsilon))
        assert exact * (1 - 1e-12) <= total.delta(epsilon) <= exact * (1 + 1e-9) + 1e-15
    assert total.parameters == pytest.approx((cells * sum(noises), 0.0))
    assert total.delta(total.parameters[0]) == 0.0


@pytest.mark.parametrize("epsilon", [0.0, 0.2, 0.7, 1.1])
def test_noise_adds_up_to_what_somebody_who_knows_all_learns(epsilon):
    total = pkdp.compose([noised(0.6), noised(0.6)]).worst_case.delta(epsilon)
    days = [Day(noise=0.6)] * 2
    # The merged tails of the oracle's noise hold all of it beyond a few people; ratios there are constant.
    truths = [worst([], days, lives, epsilon) for lives in (((0, 0), (None, None)), ((0, None), (None, 0)))]
    assert max(truths) == pytest.approx(total, rel=1e-9)


def test_uneven_noise_is_certified_above_the_truth():
    noises = (0.31, 0.77, 0.4142)
    total = pkdp.compose([noised(epsilon) for epsilon in noises]).worst_case
    pairs = [noise_pair(epsilon) for epsilon in noises]
    for epsilon in (0.0, 0.2, 0.6, 1.3, 1.48):
        exact = product_divergence(pairs, math.exp(epsilon))
        assert exact * (1 - 1e-12) <= total.delta(epsilon) <= 1.02 * exact + 1e-4
    assert total.delta(sum(noises) + 1e-9) == 0.0


@thinned(3)
@pytest.mark.parametrize("protects", ["presence", "value"])
@pytest.mark.parametrize("epsilon", [0.0, 0.5, 1.2, 2.5])
def test_suppression_and_noise_on_two_days(protects, epsilon):
    days = [Day(cells=2, k=2, noise=0.8, release=3), Day(cells=2, k=1, noise=0.5, release=2)]
    total = pkdp.compose([noised(0.8, protects, 2, 3), noised(0.5, protects, 1, 2)]).worst_case
    moves = [(0, 1), (1, 0)] if protects == "value" else [(0, None), (None, 0)]
    for a, b in product(range(3), repeat=2):
        people = [{(0, 0): 1.0}] * a + [{(1, 1): 1.0}] * b
        for first, second in product(moves, repeat=2):
            lives = ((first[0], second[0]), (first[1], second[1]))
            assert worst(people, days, lives, epsilon) <= total.delta(epsilon) * (1 + 1e-12)


# Rule 5, noised parts


def on(part, period):
    return part.in_context(Context(period=period))


def test_few_days_of_many_cost_the_worst_few():
    noises = (0.2, 0.4, 0.4, 0.9, 0.1)
    days = [on(noised(epsilon), f"2021-03-0{day}") for day, epsilon in enumerate(noises, start=1)]
    total = pkdp.compose(days, BoundedParticipation(times=1)).worst_case
    assert total.parameters == pytest.approx((1.3, 0.0))
    for epsilon in (0.0, 0.3, 0.8, 1.2):
        pairs = (
            product_divergence([noise_pair(a), noise_pair(b)], math.exp(epsilon)) for a, b in combinations(noises, 2)
        )
        assert max(pairs) * (1 - 1e-12) <= total.delta(epsilon)
    assert pkdp.compose([noised(epsilon) for epsilon in noises]).worst_case.parameters == pytest.approx((2.0, 0.0))
    many = pkdp.compose([(noised(0.1), 365)], BoundedParticipation(times=3)).worst_case
    assert many.parameters == pytest.approx((0.6, 0.0))


def test_the_worst_few_when_no_part_is_the_worst():
    # One part has the larger ε, the other the larger δ: the total must pay for either.
    parts = [noised(1.0, k=2, release=12), noised(0.3, k=2, release=3), noised(0.2)]
    total = pkdp.compose(parts, BoundedParticipation(times=1)).worst_case
    days = [Day(k=2, noise=1.0, release=12), Day(k=2, noise=0.3, release=3), Day(noise=0.2)]
    for people in range(4):
        crowd = [{(0, 0, 0): 1.0}] * people
        for there in product((0, None), repeat=3):
            for other in product((0, None), repeat=3):
                if max(sum(x is not None for x in life) for life in (there, other)) <= 1 and there != other:
                    for epsilon in (0.0, 0.4, 1.0, 1.31):
                        assert worst(crowd, days, (there, other), epsilon) <= total.delta(epsilon) * (1 + 1e-12)


# Rule 6, numbers only


def responses(epsilon, times):
    """Return exact (loss, chance) of `times` right-or-wrong bits."""
    right = Fraction(math.exp(epsilon) / (1 + math.exp(epsilon)))
    return [
        ((2 * wins - times) * epsilon, math.comb(times, wins) * right**wins * (1 - right) ** (times - wins))
        for wins in range(times + 1)
    ]


@pytest.mark.parametrize("epsilon", [0.05, 0.3, 0.7, 1.0, 2.0])
@pytest.mark.parametrize("times", [1, 5, 40, 120])
def test_the_advanced_sum_covers_the_worst_mechanism(epsilon, times):
    for slack in (0.3, 1e-3, 1e-8):
        bound, delta = advanced_composition((epsilon, 0.0), times, slack)
        true = sum(float(p) * -math.expm1(min(0.0, bound - loss)) for loss, p in responses(epsilon, times))
        assert true <= delta


@pytest.mark.parametrize("epsilon", [0.05, 0.5, 1.0, 2.0, 4.0])
def test_the_misprint_is_below_the_formula_but_not_below_the_truth(epsilon):
    # e^(ε-1) is at least ε, and the mean loss of any ε-private mechanism is at most ε tanh(ε/2).
    assert math.exp(epsilon - 1) >= epsilon >= math.tanh(epsilon / 2)
    for times in (1, 10, 100):
        for slack in (0.5, 1e-4, 1e-9):
            misprint = epsilon * math.sqrt(2 * times * math.log(1 / slack)) + times * epsilon * math.exp(epsilon - 1)
            assert sum(p for loss, p in responses(epsilon, times) if loss > misprint) <= Fraction(slack)


def test_the_basic_sum_is_attained_by_leaks_that_never_meet():
    # Releases that tell all with probability δ each, on disjoint events, tell all with probability Σ δ.
    assert sum_above([0.25], [3]) == 0.75
    parts = [noised(0.5, k=2, release=4), noised(0.25, k=3, release=5)]
    sums = tuple(sum_above(numbers) for numbers in zip(*(part.worst_case.parameters for part in parts), strict=True))
    total = pkdp.compose(parts).worst_case
    assert total.parameters == sums
    assert total.delta(sums[0]) <= sums[1]


def test_parts_without_a_worst_case_do_not_add_up():
    quiet = pkdp.certify(pkdp.Count(k=9), pkdp.AttackerModel(p_max=0.2))
    # A hard k with noise after it and no release threshold has no worst case either.
    hard = pkdp.certify(pkdp.Count(k=9, noise=pkdp.GeometricNoise(1.0)), pkdp.AttackerModel(p_max=0.2))
    for parts in ([quiet, quiet], [quiet, noised(0.5)], [hard, noised(0.5)]):
        with pytest.raises(pkdp.NoEvidenceError) as refused:
            pkdp.compose(parts)
        assert all(way in str(refused.value) for way in ("cross-tabulated", "noise on all", "BoundedDependence"))
    # Partial knowledge is not carried into a sum that rests on nothing.
    both = pkdp.certify(
        pkdp.Count(noise=pkdp.GeometricNoise(1.0)), pkdp.AttackerModel(p_min=0.5, p_max=0.5, unknown=99)
    )
    total = pkdp.compose([both, both])
    assert not total.has_partial_knowledge
    assert total.delta(0.5) == total.worst_case.delta(0.5) > both.delta(0.5)
    assert np.isfinite(total.worst_case.epsilon(1e-9))


def test_the_total_of_nothing():
    total = pkdp.compose([])
    assert total.delta(0.0) == 0.0
    assert total.worst_case.delta(0.0) == 0.0
    assert total.epsilon(0.0) == 0.0
