"""Theorem 4 as printed: sound for every crowd it is about, and what it could say instead."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from oracle.laws import coin_sum, exact_exp
from oracle.releases import count_losses
from scipy import stats
from thorough import examples

import pkdp_pipeline as pkdp
from pkdp_pipeline.extras.theory import printed


def truth(unknown: list[float], known: list[float], epsilon: float, k: int) -> float:
    return float(max(count_losses(unknown, known, epsilon, math.exp, k=k)))


@examples(quick=150, full=5000)
def test_theorem_4_is_sound(examples):
    rng, used = np.random.default_rng(4), 0
    for _ in range(examples):
        n, p, threshold = int(rng.integers(2, 12)), float(rng.uniform(0.01, 0.4)), int(rng.integers(1, 8))
        epsilon, delta = printed.theorem_4(n, p, threshold)
        if delta == 1.0:
            continue
        chances = (p * rng.choice([0.0, 0.5, 1.0], size=n - 1, p=[0.1, 0.2, 0.7])).tolist()
        assert truth(chances, [], epsilon, threshold + 1) <= delta * (1 + 1e-12)
        # Nothing is lost with ε = 0, nor by the pmf alone.
        at_zero = float(stats.binom.pmf(threshold, n - 1, p))
        assert truth(chances, [], 0.0, threshold + 1) <= at_zero + 1e-14
        assert at_zero <= delta * (1 + 1e-9)
        used += 1
    assert used > examples / 5


@examples(quick=60, full=2000)
def test_theorem_4_against_a_passive_attacker_is_sound(examples):
    rng, used = np.random.default_rng(5), 0
    for _ in range(examples):
        n, p, threshold = int(rng.integers(4, 12)), float(rng.uniform(0.01, 0.2)), int(rng.integers(2, 7))
        known, split = int(rng.integers(1, n - 1)), int(rng.integers(1, threshold))
        epsilon, delta = printed.theorem_4_passive(n, p, threshold, known, split)
        if delta == 1.0:
            continue
        true = truth([p] * (n - 1 - known), [p] * known, epsilon, threshold + 1)
        assert true <= delta * (1 + 1e-12)
        assert printed.theorem_4_passive_delta(epsilon, n, p, threshold, known) <= delta
        used += 1
    assert used > examples / 5


def test_theorem_4_by_hand():
    # Four others, p = 1/10, T = 2: f = 6 · 0.01 · 0.81 and r = 0.4/(0.9 · 2).
    f, r = Fraction(6 * 81, 10_000), Fraction(4, 18)
    epsilon, delta = printed.theorem_4(5, 0.1, 2)
    assert delta == pytest.approx(float(f / (1 - r)))
    assert epsilon == pytest.approx(-math.log(1 - float(f / (1 - r))))
    tail = sum(coin_sum([Fraction(1, 10)] * 4)[2:])
    assert tail < f / (1 - r)
    assert printed.theorem_4(5, 0.5, 1) == (math.inf, 1.0)


def test_the_exact_bound_for_the_same_crowd_is_smaller():
    for threshold in (15, 20, 30):
        epsilon, delta = printed.theorem_4(1000, 0.01, threshold)
        exact = pkdp.certify(pkdp.Count(k=threshold + 1), pkdp.AttackerModel(p_max=0.01, unknown_max=999))
        assert exact.delta(epsilon) <= exact.delta(0.0) < delta
        assert exact.delta(0.0) == pytest.approx(stats.binom.pmf(threshold, 999, 0.01), rel=1e-9)
        passive = pkdp.AttackerModel(p_max=0.01, unknown_max=899, known=100)
        assert pkdp.certify(pkdp.Count(k=threshold + 1), passive).delta(0.5) < printed.theorem_4_passive_delta(
            0.5, 1000, 0.01, threshold, 100
        )


def test_thresholding_needs_no_rare_predicate():
    # "This privacy property only holds if the expected value of the count is lower than the threshold": it does not.
    assert printed.theorem_4(1000, 0.5, 99) == (math.inf, 1.0)
    certified = pkdp.certify(pkdp.Count(k=100), pkdp.AttackerModel(p_max=0.5)).delta(1.0)
    assert certified < 1.2e-9
    others = max(count_losses([0.5] * m, 0, 1.0, exact_exp, k=100)[0] for m in (134, 135, 136))
    assert float(others) == pytest.approx(certified, rel=0.05)
