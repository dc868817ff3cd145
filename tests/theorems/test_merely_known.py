"""Theorem A beside people merely known: against every number of unknown people, and against all kinds of people."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import flint
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle.laws import BITS, exact_exp, lower_end
from oracle.releases import count_losses
from thorough import few, thinned

import pkdp_pipeline as pkdp
from pkdp_pipeline.theorems.merely_known import SLACK, PassiveSearch, between
from pkdp_pipeline.theorems.thresholding import Thresholding
from pkdp_pipeline.theorems.waiting_pair import averaged_pair, product_above, waiting_pair


def bound_of(k: int, p: float, known: int, cap: int | None = None, least: int = 0) -> Thresholding:
    return Thresholding(theorem="thresholding", k=k, p=p, known=known, cap=cap, least_unknown=least)


def truth(k: int, unknown: list[float], known: list[float], epsilon: float) -> Fraction:
    """Return the larger divergence of one attacker, in ball arithmetic, never above it."""
    with flint.ctx.workprec(BITS):
        unknown_coins, known_coins = ([flint.arb(chance) for chance in chances] for chances in (unknown, known))
        return max(
            Fraction(0),
            *(lower_end(flint.arb(side)) for side in count_losses(unknown_coins, known_coins, epsilon, exact_exp, k=k)),
        )


SHAPES = st.tuples(st.integers(2, 8), st.sampled_from([0.05, 0.3, 0.5, 0.9]) | st.floats(0.01, 0.99), st.integers(1, 9))
EPSILONS = st.sampled_from([0.0, 0.01, 0.3, 1.0, 3.0, 30.0, 400.0]) | st.floats(0.0, 5.0)


@settings(max_examples=few(120, 12))
@given(SHAPES, EPSILONS, st.integers(0, 12))
def test_a_cap_is_exact(shape: tuple[int, float, int], epsilon: float, cap: int) -> None:
    k, p, known = shape
    attained, certified = (float(side[0]) for side in bound_of(k, p, known, cap).bracket(np.array([epsilon])))
    exact = max(truth(k, [p] * people, [p] * known, epsilon) for people in range(cap + 1))
    assert Fraction(attained) <= exact <= Fraction(certified)
    assert certified <= (1.0 + 1.1 * SLACK) * float(exact) + 1e-280
    assert attained >= (1.0 - 1e-8) * float(exact) / (1.0 + SLACK)


@settings(max_examples=few(200, 20))
@given(SHAPES, EPSILONS, st.data())
def test_nobody_who_knows_other_people_is_told_more(
    shape: tuple[int, float, int], epsilon: float, data: st.DataObject
) -> None:
    k, p, known = shape
    chances = st.lists(st.sampled_from([0.0, p]) | st.floats(0.0, p), max_size=known)
    unknown = data.draw(st.lists(st.sampled_from([0.0, p]) | st.floats(0.0, p), max_size=12))
    divergence = truth(k, unknown, data.draw(chances), epsilon)
    for cap in (len(unknown), None):
        assert divergence <= Fraction(float(bound_of(k, p, known, cap).certified(np.array([epsilon]))[0]))


@thinned(4)
@pytest.mark.parametrize("epsilon", [0.0, 0.2, 1.0, 4.0])
@pytest.mark.parametrize(("k", "p", "known"), [(4, 0.3, 2), (6, 0.2, 9), (3, 0.7, 1), (9, 0.5, 4)])
def test_every_number_between_two_ends_is_covered(k: int, p: float, known: int, epsilon: float) -> None:
    search = PassiveSearch(k, p, known, np.array([epsilon]))
    people = np.arange(40)
    with flint.ctx.workprec(BITS):
        losses = [
            [float(lower_end(flint.arb(side))) for side in sides]
            for m in people.tolist()
            for sides in [count_losses([flint.arb(p)] * m, [flint.arb(p)] * known, epsilon, exact_exp, k=k)]
        ]
    for column in (0, 1):
        bounds, exact = search.places(np.full(40, column), people.astype(float)), np.array(losses)[:, column]
        assert np.all(bounds.lower <= exact)
        assert np.all(exact <= bounds.upper)
        assert np.all(bounds.upper <= exact * (1.0 + 1e-9) + 1e-280)
        # The exact count's divergence never rises, and is no smaller.
        assert np.all(np.diff(bounds.exact_lower) <= bounds.exact_upper[1:] - bounds.exact_lower[1:])
        assert np.all(bounds.exact_upper >= exact)
        for a in range(0, 39, 2):
            for b in range(a + 1, 40):
                ends = (type(bounds)(*(part[[index]] for part in bounds)) for index in (a, b))
                assert exact[a : b + 1].max() <= between(*ends)[0]
        enough = search.enough(column)
        if enough < 40:
            assert np.all(exact[enough:] <= bounds.upper[enough])


@pytest.mark.parametrize(
    ("k", "p", "known", "people", "epsilon"),
    [
        (300, 0.1, 40, 900, 1.0),
        pytest.param(300, 0.1, 400, 1_500, 0.9, marks=pytest.mark.slow),
        (60, 0.01, 9, 700, 2.0),
        (120, 0.9, 30, 60, 0.5),
    ],
)
def test_small_chances_are_summed_to_their_last_digits(
    k: int, p: float, known: int, people: int, epsilon: float
) -> None:
    bounds = PassiveSearch(k, p, known, np.array([epsilon])).places(
        np.array([0, 1]), np.array([people, people], dtype=float)
    )
    with flint.ctx.workprec(600):
        share, growth = flint.arb(p), flint.arb(epsilon).exp()

        def law(number: int) -> list[Any]:
            ways = [flint.fmpz.bin_uiui(number, x) for x in range(number + 1)]
            return [way * share**x * (1 - share) ** (number - x) for x, way in enumerate(ways)]

        unknown, zero = [flint.arb(0), *law(people), flint.arb(0)], flint.arb(0)
        totals = [zero, zero]
        for b, weight in enumerate(law(known)):
            cut = max(0, k - b)
            # Counted from one on: with the target at x, without at x + 1.
            pairs = [(sum(unknown[:cut], zero), sum(unknown[1 : cut + 1], zero))]
            pairs += list(zip(unknown[cut:-1], unknown[cut + 1 :], strict=True))
            for order in (0, 1):
                gaps = [pair[order] - growth * pair[1 - order] for pair in pairs]
                totals[order] += weight * sum((gap for gap in gaps if gap > 0), zero)
        for order in (0, 1):
            assert flint.arb(float(bounds.lower[order])) <= totals[order] <= flint.arb(float(bounds.upper[order]))
            if totals[order] > 1e-270:
                assert bounds.upper[order] <= bounds.lower[order] * (1.0 + 1e-7)
        assert totals[0] < 1e-12


@settings(max_examples=few(80, 6))
@given(
    st.integers(2, 40), st.floats(0.01, 0.95), st.integers(1, 60), st.lists(st.floats(0.0, 4.0), min_size=1, max_size=3)
)
def test_more_knowledge_is_never_certified_less(k: int, p: float, known: int, epsilons: list[float]) -> None:
    points = np.array(sorted(epsilons))
    certified = bound_of(k, p, known).certified(points) * (1.0 + SLACK) + 1e-280
    weaker = [
        bound_of(k, p, known - 1),
        bound_of(k, 0.8 * p, known),
        bound_of(k, p, known, 9),
        bound_of(k + 1, p, known),
    ]
    for bound in weaker:
        assert np.all(bound.certified(points) <= certified)
    assert np.all(np.diff(certified) <= SLACK * certified[:-1])
    # Who controls them tells them more, and so do the averages over the worst number for each of them.
    controlled = Thresholding(theorem="thresholding", k=k, p=p, known=known, active=True)
    assert np.all(bound_of(k, p, known).certified(points) <= controlled.certified(points) * (1.0 + SLACK))


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 2.0])
def test_it_is_less_than_the_average_of_each_ones_worst_number(epsilon: float) -> None:
    pair, alone = averaged_pair(20, 0.1, None, (5, 0.1), 1e-60, 6), waiting_pair(1, 0.0, None, 1e-60)
    before = product_above(pair, alone, epsilon)
    attained, certified = (float(side[0]) for side in bound_of(20, 0.1, 5).bracket(np.array([epsilon])))
    assert certified <= (1.0 + SLACK) * attained < 0.98 * before


@thinned(4)
@pytest.mark.parametrize("p", [1e-12, 1e-100, 5e-324, 1.0 - 2.0**-53])
@pytest.mark.parametrize("cap", [None, 10**9, 10**30])
@pytest.mark.filterwarnings("error")
def test_extreme_chances_and_numbers_of_people(p: float, cap: int | None) -> None:
    for known in (1, 5, 10**7):
        attained, certified = bound_of(20, p, known, cap).bracket(np.array([0.0, 1e-9, 0.5, 20.0, 1e5]))
        assert np.all((attained >= 0.0) & (attained <= certified) & (certified <= 1.0))
        assert np.all(np.diff(certified) <= SLACK * certified[:-1] + 1e-280)


def test_what_is_attained_is_attained_by_as_many_unknown_people_as_are_declared() -> None:
    k, p, known, epsilon = 6, 0.3, 3, 0.5
    for least in (0, 5, 25):
        attained, certified = (float(x[0]) for x in bound_of(k, p, known, None, least).bracket(np.array([epsilon])))
        exact = [truth(k, [p] * people, [p] * known, epsilon) for people in range(least, 40)]
        assert Fraction(attained) <= max(exact)
        assert attained >= 0.998 * float(max(exact))
        assert certified >= float(max(exact))


def test_certificates_and_histograms_use_it() -> None:
    attacker = pkdp.AttackerModel(p_max=0.1, known=5)
    for release in (pkdp.Count(k=20), pkdp.Histogram(k=20)):
        certificate = pkdp.certify(release, attacker)
        for epsilon in (0.3, 1.0, 2.0):
            attained, certified = certificate.delta_bounds(epsilon)
            assert attained <= certified <= (1.0 + SLACK) * attained
        assert certificate.delta(certificate.epsilon(1e-6)) <= 1e-6
    # So many known people may all count, and then the target is seen; seldom do four of them.
    many = pkdp.certify(pkdp.Count(k=5), pkdp.AttackerModel(p_max=0.01, known=10))
    assert math.isclose(many.delta(400.0), float(truth(5, [], [0.01] * 10, 400.0)), rel_tol=1e-9)
