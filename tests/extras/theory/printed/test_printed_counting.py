"""Printed bounds of an exact count: what they say, and that it is sound, or wrong, as the docstrings claim."""

from __future__ import annotations

import math

import numpy as np
import pytest
from oracle.laws import coin_sum
from thorough import examples

import pkdp_pipeline as pkdp
from pkdp_pipeline.extras.theory import printed


def exact_delta(chances: list[float], epsilon: float) -> float:
    """Return the δ of an exact count among these others, by floats."""
    others = np.array(coin_sum(chances))
    absent, present = np.append(others, 0.0), np.append(0.0, others)
    growth = math.exp(epsilon)
    return max(np.maximum(a - growth * b, 0.0).sum() for a, b in ((absent, present), (present, absent)))


@pytest.mark.parametrize(("epsilon", "n", "success"), [(0.0, 4, 0.3), (0.7, 7, 0.5), (math.log(2), 6, 0.2)])
def test_the_condition_of_theorem_3_is_the_sum_it_names(epsilon, n, success):
    law = coin_sum([success] * (n - 1))
    growth = round(math.exp(epsilon), 12)
    direct = sum(law[x] * law[y] for x in range(n) for y in range(n) if x >= growth * y)
    assert printed.theorem_3_condition(math.log(growth), n, success) == pytest.approx(direct, rel=1e-12)


def test_the_condition_of_theorem_3_is_below_the_truth():
    true = exact_delta([0.5] * 999, 0.316)
    assert true == pytest.approx(4.8e-9, rel=0.02)
    assert printed.theorem_3_condition(0.316, 1000, 0.5) < true / 1000
    # With 2λ, as an earlier version has it, X and Y are both n - 1 for fair coins.
    assert printed.theorem_3_condition(0.316, 1000, 0.5, success=1.0) == 0.0


def test_the_condition_of_theorem_3_has_a_floor_that_the_truth_has_not():
    for epsilon in (5.0, 50.0):
        assert printed.theorem_3_condition(epsilon, 100, 0.05) >= 0.95**99
    box = pkdp.AttackerModel(p_min=0.05, p_max=0.95, unknown=99)
    assert pkdp.certify(pkdp.Count(), box).delta(5.0) < 0.95**99 * 1.01
    box = pkdp.AttackerModel(p_min=0.5, p_max=0.5, unknown=99)
    assert pkdp.certify(pkdp.Count(), box).delta(5.0) < 0.95**99 / 1e6


@examples(quick=40, full=1000)
def test_closed_form_and_normal_approximation_are_sound(examples):
    rng, used = np.random.default_rng(3), [0, 0]
    for _ in range(examples):
        n, least = int(rng.integers(60, 260)), float(rng.uniform(0.1, 0.5))
        chances = rng.choice([least, 1 - least, 0.5], size=n - 1).tolist()
        if rng.random() < 0.5:
            chances = rng.uniform(least, 1 - least, size=n - 1).tolist()
        epsilon = float(rng.uniform(0.05, 1.0))
        true = exact_delta(chances, epsilon)
        bounds = printed.theorem_3_closed_form_delta(epsilon, n, least), printed.proposition_7_delta(epsilon, chances)
        for which, bound in enumerate(bounds):
            assert true <= bound
            used[which] += bound < 1.0
        assert printed.proposition_7_delta(epsilon, chances, power=3.0) >= bounds[1]
    assert min(used) > 5


@pytest.mark.parametrize(("n", "least", "delta"), [(1000, 0.5, 1e-6), (5000, 0.1, 1e-3), (60, 0.5, 0.9)])
def test_both_sides_of_the_closed_form_agree(n, least, delta):
    epsilon = printed.theorem_3_closed_form(delta, n, least)
    blanket = least * (n - 1)
    assert epsilon == max(math.sqrt(14 * math.log(2 / delta) / blanket), 27 / blanket) <= 1.0
    assert printed.theorem_3_closed_form_delta(epsilon, n, least) <= delta * (1 + 1e-9)
    assert printed.theorem_3_closed_form(delta, n, least, numerator=1) <= epsilon
    assert printed.theorem_3_closed_form_delta(30.0, n, least) == printed.theorem_3_closed_form_delta(1.0, n, least)


def test_where_the_closed_form_says_nothing():
    assert printed.theorem_3_closed_form(1e-6, 100, 0.1) == math.inf
    assert printed.theorem_3_closed_form_delta(0.9, 100, 0.1) == 1.0


def test_proposition_7_by_hand():
    # Fair coins: μ2 = 1/4 and μ3 = 1/8, so the error is 1.12/√n (1 + e^ε).
    epsilon, delta = printed.proposition_7([0.5] * 400, 1e-3)
    assert epsilon == pytest.approx(math.sqrt(2 * math.log(1250) / 100))
    assert delta == pytest.approx(1.12 / 20 * (1 + math.exp(epsilon)) + 1e-3)
    assert printed.proposition_7([0.5] * 40, 1e-9) == (math.inf, 1.0)
    assert printed.proposition_7_delta(1.0, [0.5] * 10**6) > 1e-3
