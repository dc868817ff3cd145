"""Readings of very small and very large losses, at the ends of floats: never below, never not a number."""

from __future__ import annotations

import math
import warnings

import flint
import pytest

import pkdp_pipeline as pkdp
from pkdp_pipeline.privacy_loss import CHI_SQUARED, HELLINGER, KULLBACK_LEIBLER


def noise(epsilon):
    return pkdp.certify(pkdp.Count(noise=pkdp.GeometricNoise(epsilon)), pkdp.AttackerModel())


@pytest.mark.parametrize("epsilon", [1e-300, 1e-170, 3e-162, 1e-155, 1e-12])
def test_tiny_losses_are_not_rounded_to_nothing(epsilon):
    loss = pkdp.PrivacyLoss.of(noise(epsilon))
    with flint.ctx.workprec(300):
        exact = flint.arb(epsilon) * (flint.arb(epsilon) / 2).tanh()
        assert loss.divergence(KULLBACK_LEIBLER) >= exact
        assert loss.divergence(HELLINGER) > 0.0
        assert loss.divergence(CHI_SQUARED) > 0.0
        for order in (1.0, 1.0 + 2.0**-52, 1.0 + 1e-9, 1.5):
            assert loss.renyi(order) >= exact
        assert loss.kl() <= float(exact) * (1.0 + 1e-9) + 1e-322
        assert exact <= loss.zero_concentrated() <= float(exact) * (1.0 + 1e-3) + 1e-300
    mean, deviation = loss.mean_concentrated()
    assert mean >= exact
    assert deviation == epsilon
    assert epsilon * (1.0 - 1e-9) <= loss.pair_mean_concentrated()[1] <= epsilon * (1.0 + 5e-5)


@pytest.mark.parametrize("epsilon", [1e-300, 1e-12, 0.7, 30.0, 700.0, 2000.0, 1e9])
@pytest.mark.parametrize("alpha", [1e9, 1e17, 1e290, 1.7e308])
def test_huge_orders_end_at_the_largest_loss(epsilon, alpha):
    loss = pkdp.PrivacyLoss.of(noise(epsilon))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = loss.renyi(alpha)
    with flint.ctx.workprec(300):
        one, order = flint.arb(epsilon), flint.arb(alpha)
        # The larger of the two terms alone.
        assert found >= one + (-(-one).exp().log1p() / (order - 1)) - flint.arb(10) ** -80
    assert found <= epsilon


def test_losses_beyond_all_bounds_are_infinite_or_large():
    loss = pkdp.PrivacyLoss.of(noise(1e300))
    assert loss.renyi(1e300) == loss.kl() == 1e300
    assert loss.pair_mean_concentrated()[1] >= 1e300
    assert loss.divergence(CHI_SQUARED) == math.inf
