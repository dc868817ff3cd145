"""Certificates are not just safe: declared attackers reach them, and `delta_bounds` says how nearly."""

from __future__ import annotations

import math
from typing import Any

import flint
import numpy as np
import pytest
from oracle.laws import BITS, exact_exp, lower_end
from oracle.releases import count_losses, larger_loss, table_losses
from thorough import thinned

import pkdp_pipeline as pkdp

PAIRS = [(2, 0.5), (5, 0.1), (12, 0.3), (8, 0.9), (25, 0.4)]
EPSILONS = [0.0, 0.4, 1.0, 3.0]


def worst_numbers(k: int, p: float, epsilon: float) -> set[int]:
    """Return how many p-coins are worst for the right and for the left tail, give or take one."""
    right = (k - 1) + math.floor((k - 1) * (1 - p) / (p * math.exp(epsilon)))
    left = math.ceil((k - 1) + math.exp(epsilon) * (k - 1) * (1 - p) / p) - 1
    return {m + step for m in (right, *([left] if left < 150 else [])) for step in (-1, 0, 1) if m + step >= 0}


def ball(x: float) -> Any:
    return flint.arb(x)


def larger(sides: tuple[Any, Any]) -> float:
    return float(max(lower_end(flint.arb(side)) for side in sides))


def assert_reached(certificate: Any, epsilon: float, truth: float) -> None:
    attained, certified = certificate.delta_bounds(epsilon)
    assert truth * (1 - 1e-15) <= certified <= truth * (1 + 1e-9)
    assert certified * (1 - 1e-9) <= attained <= truth * (1 + 1e-15)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize(("k", "p"), PAIRS)
def test_coins_reach_theorem_a(k: int, p: float, epsilon: float) -> None:
    with flint.ctx.workprec(BITS):
        truth = max(
            larger(count_losses([ball(p)] * m, 0, epsilon, exact_exp, k=k)) for m in worst_numbers(k, p, epsilon)
        )
    assert_reached(pkdp.certify(pkdp.Count(k=k), pkdp.AttackerModel(p_max=p)), epsilon, truth)


@pytest.mark.parametrize("k", [3, 9])
@pytest.mark.parametrize("cap", [2, 8, 14])
def test_coins_reach_theorem_a_with_a_cap_and_controlled_people(k: int, cap: int) -> None:
    p, epsilon, controlled = 0.2, 0.3, 3
    attacker = pkdp.AttackerModel(p_max=p, unknown_max=cap, known=controlled, influence="active")
    certificate = pkdp.certify(pkdp.Count(k=k + controlled), attacker)
    with flint.ctx.workprec(BITS):
        truth = max(
            larger(count_losses([ball(p)] * m, controlled, epsilon, exact_exp, k=k + controlled))
            for m in range(cap + 1)
        )
    assert_reached(certificate, epsilon, truth)


@thinned(4)
@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize(("k", "p"), PAIRS[:4])
def test_a_published_rest_of_the_table_reaches_presence(k: int, p: float, epsilon: float) -> None:
    # All other cells are published and everybody's number is public: who is in this cell or absent is known.
    with flint.ctx.workprec(BITS):
        truth = 0.0
        for m in worst_numbers(k, p, epsilon):
            people = [[ball(p), 0, 0, 1 - ball(p)]] * m + [[0, 1, 0, 0]] * k + [[0, 0, 1, 0]] * k
            sides = table_losses(people, (0, 0, 0), epsilon, exact_exp, cells=3, lives=(0, 3), k=k)
            truth = max(truth, larger(sides))
    assert_reached(pkdp.certify(pkdp.Histogram(k=k), pkdp.AttackerModel(p_max=p)), epsilon, truth)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize(("k", "p"), [(2, 0.5), (6, 0.6), (10, 0.9), (15, 0.75)])
def test_two_cells_with_a_total_reach_theorem_c(k: int, p: float, epsilon: float) -> None:
    with flint.ctx.workprec(BITS):
        truth = 0.0
        for m in worst_numbers(k, p, epsilon):
            people = [[ball(p), 1 - ball(p), 0]] * m
            sides = table_losses(people, (0, 0), epsilon, exact_exp, cells=2, lives=(0, 1), k=k, total=True)
            truth = max(truth, larger(sides))
    certificate = pkdp.certify(pkdp.Histogram(k=k), pkdp.AttackerModel(p_max_between=p), protects="value")
    assert_reached(certificate, epsilon, truth)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize(("least", "people"), [(0.05, 10), (0.2, 14), (1 / 3, 12), (0.5, 20)])
def test_a_third_option_reaches_the_bound_of_options(least: float, people: int, epsilon: float) -> None:
    with flint.ctx.workprec(BITS):
        share = ball(least)
        rest = 1 - 2 * share
        person = [share, share, rest, 0] if least < 0.5 else [share, share, 0, 0]
        sides = table_losses([person] * people, (0, 0, 0), epsilon, exact_exp, cells=3, lives=(0, 1))
        truth = larger(sides)
    certificate = pkdp.certify(pkdp.Histogram(), pkdp.AttackerModel(p_min=least, unknown=people), protects="value")
    attained, certified = certificate.delta_bounds(epsilon)
    assert attained <= truth * (1 + 1e-15)
    assert truth * (1 - 1e-15) <= certified <= truth * (1 + 1e-9)


@thinned(6)
@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize(("least", "most", "people"), [(0.125, 0.5, 12), (0.0625, 0.25, 10), (0.25, 0.25, 14)])
@pytest.mark.parametrize("noise", [None, 0.8])
def test_people_in_any_cell_reach_theorem_f(
    least: float, most: float, people: int, epsilon: float, noise: float | None
) -> None:
    # All other cells are shown as one: what they tell is how many people are in the one cell or absent.
    elsewhere = 1.0 - least / most
    person = [least, elsewhere, 1.0 - least - elsewhere]
    mechanism = pkdp.Histogram(noise=None if noise is None else pkdp.GeometricNoise(noise))
    attacker = pkdp.AttackerModel(p_min=least, p_max=most, unknown=people)
    attained, certified = pkdp.certify(mechanism, attacker).delta_bounds(epsilon)
    with flint.ctx.workprec(BITS):
        law = flint.arb_poly([1 - ball(least / most), ball(least / most)]) ** people
        sides = [
            [chance * side for side in count_losses([ball(most)] * coins, 0, epsilon, exact_exp, noise=noise)]
            for coins, chance in enumerate(law.coeffs())
        ]
        truth = larger([sum(order) for order in zip(*sides, strict=True)])
        if noise is None:
            exact_sides = table_losses(
                [[*map(ball, person)]] * people, (0, 0), epsilon, exact_exp, cells=2, lives=(0, 2)
            )
            assert larger(exact_sides) == pytest.approx(truth, rel=1e-12)
    assert attained <= truth * (1 + 1e-15)
    assert truth * (1 - 1e-15) <= certified <= truth * 1.005
    # Noised, the other cells do not show how many people are coins.
    assert noise is not None or certified <= 1.01 * attained


@pytest.mark.parametrize("people", [1_000, 1_000_000])
@pytest.mark.parametrize("least", [0.01, 0.3])
def test_the_bracket_of_options_is_narrow(people: int, least: float) -> None:
    certificate = pkdp.certify(pkdp.Histogram(), pkdp.AttackerModel(p_min=least, unknown=people), protects="value")
    scale = 1.0 / math.sqrt(people * least)
    attained, certified = certificate.delta_bounds(np.array([0.0, scale, 4.0 * scale]))
    assert np.all((attained > 0.0) & (attained <= certified) & (certified <= 1.01 * attained))


@thinned(6)
@pytest.mark.parametrize("people", [10, 3_000, 1_000_000, 10**9])
@pytest.mark.parametrize("box", [(0.5, 0.5), (0.2, 0.8), (0.05, 0.3), (0.001, 0.999)])
@pytest.mark.parametrize("width", [0.0, 1.0, 5.0])
def test_the_bracket_of_a_count_is_narrow(people: int, box: tuple[float, float], width: float) -> None:
    attacker = pkdp.AttackerModel(p_min=box[0], p_max=box[1], unknown=people)
    epsilon = width / math.sqrt(people * box[0] * (1 - box[0]))
    attained, certified = pkdp.certify(pkdp.Count(), attacker).delta_bounds(epsilon)
    assert 0.0 < attained <= certified <= 1.01 * attained


@thinned(4)
@pytest.mark.parametrize("noise", [None, 0.5, 2.0])
@pytest.mark.parametrize(("people", "low", "high"), [(1, 0.3, 0.6), (7, 0.1, 0.9), (25, 0.02, 0.4), (40, 0.45, 0.55)])
def test_what_is_attained_is_never_above_the_truth(people: int, low: float, high: float, noise: float | None) -> None:
    mechanism = pkdp.Count(noise=None if noise is None else pkdp.GeometricNoise(noise))
    certificate = pkdp.certify(mechanism, pkdp.AttackerModel(p_min=low, p_max=high, unknown=people))
    for epsilon in (0.0, 0.3, 1.2):
        all_vertices = people < 10 or noise is None
        steps = range(people + 1) if all_vertices else (0, 1, people // 2, people - 1, people)
        every = [float(larger_loss([(people - j, low), (j, high)], epsilon, noise=noise)) for j in steps]
        attained, certified = certificate.delta_bounds(epsilon)
        assert certified >= max(every) * (1 - 1e-15)
        if all_vertices:
            assert attained <= max(every) * (1 + 1e-15)
            assert certified <= max(every) * 1.01 + 1e-300
        assert attained >= 0.99 * certified


def test_theorem_b_for_the_value_is_near_the_best_attack_found() -> None:
    certificate = pkdp.certify(pkdp.Histogram(k=6), pkdp.AttackerModel(p_max=0.3), protects="value")
    for epsilon in (0.2, 1.0, 2.0):
        odds = 0.3 / 0.7
        person = [odds / (1 + 2 * odds), odds / (1 + 2 * odds), 1 / (1 + 2 * odds)]
        best = max(
            max(table_losses([person] * m, (0, 0), epsilon, np.exp, cells=2, lives=(0, 1), k=6))
            for m in range(4, 40, 3)
        )
        attained, certified = certificate.delta_bounds(epsilon)
        # Two crowds, each of which can be in one of the cells, are better than one that can be in both.
        assert best <= attained
        assert certified <= 1.6 * attained
