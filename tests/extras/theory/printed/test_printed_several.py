"""Sums as printed: more than is needed, and a misprint that is no danger but no use."""

from __future__ import annotations

import math

import numpy as np
import pytest
from thorough import examples

from pkdp_pipeline.extras.theory import printed


def test_the_sums_are_these():
    assert printed.theorem_6((1.0, 0.1), (0.5, 0.2), (0.25, 0.01)) == pytest.approx((1.75, 0.31))
    assert printed.theorem_6((1.0, 0.1), (0.5, 0.2), (0.25, 0.01), thesis=True)[0] == pytest.approx(2.0)
    assert printed.private_leakage((1.0, 0.1), (0.5, 0.01), 4) == pytest.approx((1.5, 0.15))
    spread = 0.1 * math.sqrt(2 * 100 * math.log(1e6))
    assert printed.advanced_composition((0.1, 0.0), 100, 1e-6)[0] == pytest.approx(spread + 10 * (math.exp(0.1) - 1))


@pytest.mark.parametrize("epsilon", [0.05, 0.3, 1.0, 2.0])
@pytest.mark.parametrize("parts", [3, 40])
def test_advanced_composition_is_sound_with_and_without_the_misprint(epsilon, parts):
    # The worst mechanism: a bit that is right with chance e^ε/(1 + e^ε), `parts` times.
    right = 1 / (1 + math.exp(-epsilon))
    law = np.ones(1)
    for _ in range(parts):
        law = np.convolve(law, [1 - right, right])
    for slack in (0.1, 1e-6):
        for misprint in (False, True):
            total, delta = printed.advanced_composition((epsilon, 0.0), parts, slack, misprint=misprint)
            assert np.maximum(law - math.exp(min(total, 700.0)) * law[::-1], 0.0).sum() <= delta


def test_the_misprint_is_above_the_formula_below_0_46_and_below_it_above():
    for epsilon in (0.01, 0.45, 0.47, 2.0):
        right, wrong = (printed.advanced_composition((epsilon, 0.0), 50, 1e-6, misprint=m)[0] for m in (False, True))
        assert (wrong > right) == (epsilon < -math.log(1 - 1 / math.e))


@examples(quick=300, full=10_000)
def test_a_private_leakage_adds_its_delta_once(examples):
    rng, close = np.random.default_rng(6), 0.0

    def delta_of(first: np.ndarray, second: np.ndarray, epsilon: float) -> float:
        return max(np.maximum(p - math.exp(epsilon) * q, 0.0).sum() for p, q in ((first, second), (second, first)))

    for _ in range(examples):
        values, outputs = int(rng.integers(1, 5)), int(rng.integers(2, 4))
        leak = rng.dirichlet(np.full(values, 0.5), size=2)
        leak[:, : values - 1] *= rng.choice([0.0, 1.0], size=(2, values - 1), p=[0.2, 0.8])
        leak /= np.maximum(leak.sum(axis=1, keepdims=True), 1e-300)
        if not np.allclose(leak.sum(axis=1), 1.0):
            continue
        given = rng.dirichlet(np.full(outputs, 0.5), size=(2, values))
        shared = leak.all(axis=0)
        first_epsilon, second_epsilon = rng.uniform(0, 1.0, size=2)
        first = max((delta_of(given[0, o], given[1, o], first_epsilon) for o in np.flatnonzero(shared)), default=0.0)
        second = delta_of(leak[0], leak[1], second_epsilon)
        true = delta_of(*(leak[life] @ given[life] for life in (0, 1)), first_epsilon + second_epsilon)
        assert true <= first + second + 1e-12
        assert (
            first + second
            <= printed.private_leakage((first_epsilon, first), (second_epsilon, second), int(shared.sum()))[1] + 1e-12
        )
        close = max(close, true / (first + second)) if first + second > 0.01 else close
    assert close > 0.5
