"""Confidence bounds fail no more often than they say."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binom

from pkdp_pipeline.extras.assurance.attacks.days import mean_below
from pkdp_pipeline.extras.assurance.audit.findings import clopper_pearson, difference_below


@pytest.mark.parametrize("p", [0.0, 0.01, 0.3, 0.97, 1.0])
@pytest.mark.parametrize("draws", [1, 20, 200])
def test_clopper_pearson_covers_exactly(p: float, draws: int) -> None:
    # Not simulated: the chance of every outcome whose bound is wrong, added up.
    weights = binom.pmf(np.arange(draws + 1), draws, p)
    for error in (0.1, 1e-3):
        sides = [clopper_pearson(successes, draws, error) for successes in range(draws + 1)]
        assert sum(w for w, (low, _) in zip(weights, sides, strict=True) if low > p) <= error + 1e-12
        assert sum(w for w, (_, high) in zip(weights, sides, strict=True) if high < p) <= error + 1e-12


def test_clopper_pearson_is_the_known_one() -> None:
    low, high = clopper_pearson(0, 100, 0.05)
    assert (low, high) == (0.0, pytest.approx(1 - 0.05**0.01, rel=1e-9))
    assert clopper_pearson(100, 100, 0.05) == (pytest.approx(0.05**0.01, rel=1e-9), 1.0)


@pytest.mark.parametrize(("p", "q"), [(0.3, 0.1), (0.02, 0.02), (0.9, 0.5)])
def test_differences_cover(p: float, q: float) -> None:
    rng, epsilon, draws = np.random.default_rng(4), 0.4, 500
    truth = p - math.exp(epsilon) * q
    ones, others = rng.binomial(draws, p, 400), rng.binomial(draws, q, 400)
    pairs = [((int(a), draws), (int(b), draws)) for a, b in zip(ones, others, strict=True)]
    assert sum(difference_below(a, b, epsilon, 0.05) > truth for a, b in pairs) <= 30
    assert difference_below(pairs[0][0], pairs[0][1], epsilon, 0.05) > truth - 0.3


def test_the_bernstein_bound_covers_and_uses_a_small_variance() -> None:
    rng = np.random.default_rng(5)
    failed = 0
    for _ in range(400):
        values = rng.choice([0.0, 0.2, 1.0], 300, p=[0.9, 0.09, 0.01])
        failed += mean_below(values, 0.0, 1.0, 0.05) > 0.028
    assert failed <= 40
    calm = rng.uniform(0.49, 0.51, 100_000)
    assert float(calm.mean()) - 0.001 < mean_below(calm, 0.0, 1.0, 1e-6) < float(calm.mean())
