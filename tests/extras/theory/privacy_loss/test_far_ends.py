"""Readings of very small and very large losses, at the ends of floats: never below, never not a number."""

from __future__ import annotations

import math
import warnings
from fractions import Fraction

import flint
import numpy as np
import pytest
import thorough
from thorough import examples, one_in

import pkdp_pipeline as pkdp
from pkdp_pipeline.extras.theory.privacy_loss import CHI_SQUARED, HELLINGER, KULLBACK_LEIBLER, conversions
from pkdp_pipeline.extras.theory.privacy_loss.side import LossSide, thinned


def noise(epsilon):
    return pkdp.certify(pkdp.Count(noise=pkdp.GeometricNoise(epsilon)), pkdp.AttackerModel())


@thorough.thinned(2)
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
        divergence = loss.renyi(alpha)
    with flint.ctx.workprec(300):
        exact_epsilon, order = flint.arb(epsilon), flint.arb(alpha)
        # The larger of the two terms alone.
        assert divergence >= exact_epsilon + (-(-exact_epsilon).exp().log1p() / (order - 1)) - flint.arb(10) ** -80
    assert divergence <= epsilon


def test_losses_beyond_all_bounds_are_infinite_or_large():
    loss = pkdp.PrivacyLoss.of(noise(1e300))
    assert loss.renyi(1e300) == loss.kl() == 1e300
    assert loss.pair_mean_concentrated()[1] >= 1e300
    assert loss.divergence(CHI_SQUARED) == math.inf


def test_a_rare_loss_beside_an_infinite_one_counts():
    infinite, rare, common = Fraction(1, 3), Fraction(1, 10**30), Fraction(1, 4)
    first = [infinite, rare, common, 1 - infinite - rare - common, Fraction(0)]
    second = [Fraction(0), rare / 100, common, Fraction(1, 4), 1 - rare / 100 - common - Fraction(1, 4)]
    loss = pkdp.PrivacyLoss.between(first, second)
    for epsilon in (1.0, 4.0):
        assert Fraction(loss.exceeding(epsilon, order="first")) >= infinite + rare
        assert Fraction(loss.delta(epsilon, order="first")) > infinite


@thorough.thinned(2)
@pytest.mark.parametrize(
    ("parts", "close"),
    one_in(
        2,
        [
            ([(0.1, 500), (0.2, 500)], 1e-6),
            ([(0.1234, 700), (0.2718, 900)], 2e-4),
            ([(0.1234, 9000), (0.2718, 9000)], 7e-3),
            ([(0.3, 200), (0.17, 200), (0.031, 200)], 2e-4),
            ([(1e-12, 3000), (2.1, 3000)], 1e-3),
            ([(700.0, 5000), (701.0, 5000)], 1e-9),
        ],
    ),
)
def test_many_different_noisy_counts_keep_their_rare_losses(parts, close):
    loss = pkdp.PrivacyLoss.of(pkdp.compose([(noise(epsilon), times) for epsilon, times in parts]))
    assert len(loss.first.losses) < 5_000
    exact = sum(times * epsilon * math.tanh(epsilon / 2.0) for epsilon, times in parts)
    assert exact * (1.0 - 1e-12) <= loss.kl() <= exact * (1.0 + close)
    assert exact * (1.0 - 1e-12) <= loss.zero_concentrated() <= exact * (1.0 + close)
    for alpha in (2.0, 9.0):
        each = sum(times * conversions.pure_to_renyi(epsilon, alpha) for epsilon, times in parts)
        assert each * (1.0 - 1e-12) <= loss.renyi(alpha) <= each * (1.0 + 3.0 * close)
    largest = sum(times * Fraction(epsilon) for epsilon, times in parts)
    assert largest <= Fraction(loss.renyi(math.inf)) <= largest * Fraction(1 + 1e-15)


def summed(losses, logs, epsilon):
    """Return the sum of ``(P - e^ε Q)_+`` in balls."""
    total, growth = flint.arb(0), flint.arb(epsilon).exp()
    for loss, log in zip(losses.tolist(), logs.tolist(), strict=True):
        more = flint.arb(log).exp() - growth * (flint.arb(log) - loss).exp()
        total += more if more > 0 else 0
    return total


@examples(quick=12, full=400)
def test_fewer_atoms_never_lower_the_profile(examples):
    rng = np.random.default_rng(8)
    with flint.ctx.workprec(200):
        for _ in range(examples):
            size = float(rng.choice([1e-9, 0.5, 30.0, 3000.0]))
            losses = np.sort(rng.uniform(-size, size, 60))
            if rng.random() < 0.5:
                losses = np.sort(np.repeat(losses[::4], 4) + size * 1e-15 * rng.integers(0, 3, 60))
            logs = -rng.uniform(0.0, 1.0, 60) * float(rng.choice([1.0, 50.0, 1000.0])) - 8.0
            fewer, masses = thinned(losses, logs, 16)
            assert len(fewer) <= 18
            side = LossSide(losses=losses[losses > 0], log_masses=logs[losses > 0], infinite=0.0)
            short = side.shorter(8)
            # Below 0 too: factors of a product are met at every ε.
            for epsilon in (-0.7 * size, -0.2 * size, 0.0, 0.1 * size, 0.5 * size, 0.9 * size):
                assert not summed(fewer, masses, epsilon) < summed(losses, logs, epsilon)
                if epsilon >= 0.0:
                    shown = summed(short.losses, short.log_masses, epsilon)
                    assert not shown < summed(side.losses, side.log_masses, epsilon)
