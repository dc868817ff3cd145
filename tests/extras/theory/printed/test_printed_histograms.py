"""Theorem 5 as printed: its first step is sound, its last one is none; with it, what the first step gives."""

from __future__ import annotations

import math

import numpy as np
import pytest
from oracle.laws import coin_sum

import pkdp_pipeline as pkdp
from pkdp_pipeline.extras.theory import printed


def both(first: np.ndarray, second: np.ndarray, epsilon: float) -> float:
    growth = math.exp(epsilon)
    return max(np.maximum(p - growth * q, 0.0).sum() for p, q in ((first, second), (second, first)))


def test_two_steps_at_epsilon_and_delta_are_no_pair_at_twice_both():
    epsilon, delta = 1.0, 0.1
    growth = math.exp(epsilon)
    # δ is spent once in the first step and, in the second, on what the first has made likelier by e^ε.
    last = np.array([0.01, 0.99])
    middle = np.array([growth * last[0] + delta, 0.0])
    first = np.array([growth * middle[0] + delta, 0.0])
    middle[1], first[1] = 1 - middle[0], 1 - first[0]
    assert both(first, middle, epsilon) == pytest.approx(delta)
    assert both(middle, last, epsilon) == pytest.approx(delta)
    assert both(first, last, 2 * epsilon) == pytest.approx((1 + growth) * delta)
    assert both(first, last, 2 * epsilon) > 1.5 * (2 * delta)


def test_the_two_forms_of_theorem_5_differ_by_the_chain():
    n, least, threshold = 10_000, 0.1, 1_199
    presence = printed.theorem_5_presence(0.5, n, least, threshold)
    assert 0.0 < presence < 1e-7
    assert printed.theorem_5(0.5, n, least, threshold) == (1.0, 2 * presence)
    assert printed.theorem_5_chained(0.5, n, least, threshold) == (1.0, (1 + math.exp(0.5)) * presence)


def test_theorem_5_says_nothing_below_theorem_4():
    rare, _ = printed.theorem_4(1_000, 0.1, 140)
    assert printed.theorem_5_presence(rare / 2, 1_000, 0.1, 140) == 1.0
    assert printed.theorem_5_presence(1.0, 1_000, 0.1, 140) < 0.01


def test_its_numeric_condition_makes_it_wrong():
    # Everybody is in the one cell with chance 0.6, or absent with 0.4: the table is one thresholded count.
    n, least, threshold, epsilon = 100, 0.4, 80, 1.0
    others = np.array(coin_sum([1 - least] * (n - 1)))
    absent, present = np.append(others, 0.0), np.append(0.0, others)
    laws = [np.append(counts[: threshold + 1].sum(), counts[threshold + 1 :]) for counts in (absent, present)]
    bound = printed.theorem_5_presence(epsilon, n, least, threshold, numeric=True)
    assert bound < both(*laws, epsilon) / 2
    assert both(*laws, epsilon) < printed.theorem_5_presence(epsilon, n, least, threshold)


@pytest.mark.parametrize(("rare", "common"), [(0.1, 0.3), (0.02, 0.6)])
def test_presence_and_value_are_sound_by_enumeration(rare, common):
    # Two cells, one of them at λ at most, and the number of people public; the table of both counts is enumerated.
    n, least, threshold = 300, 0.1, 60
    law = np.zeros((n + 1, n + 1))
    law[0, 0] = 1.0
    absent = 1 - rare - common
    for _ in range(n - 1):
        law = absent * law + rare * np.roll(law, 1, axis=0) + common * np.roll(law, 1, axis=1)
    lives = {"rare": np.roll(law, 1, axis=0), "common": np.roll(law, 1, axis=1), "absent": law}

    def shown(counts: np.ndarray) -> np.ndarray:
        for axis in (0, 1):
            low, high = np.split(counts, [threshold + 1], axis=axis)
            counts = np.concatenate([low.sum(axis=axis, keepdims=True), high], axis=axis)
        return counts

    tables = {name: shown(counts) for name, counts in lives.items()}
    for epsilon in (0.95, 1.0):
        bound = printed.theorem_5_presence(epsilon, n, least, threshold)
        assert bound < 0.5
        for cell in ("rare", "common"):
            assert both(tables[cell], tables["absent"], epsilon) <= bound
        twice, value = printed.theorem_5_chained(epsilon, n, least, threshold)
        assert both(tables["rare"], tables["common"], twice) <= value
        model = pkdp.AttackerModel(p_max=1 - least)
        certified = pkdp.certify(pkdp.Histogram(k=threshold + 1), model, protects="value").delta(twice)
        assert both(tables["rare"], tables["common"], twice) <= certified
