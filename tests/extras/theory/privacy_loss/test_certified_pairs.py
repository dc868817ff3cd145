"""Readings of certificates: the pairs they stand on, and releases of declared attackers that must stay below."""

from __future__ import annotations

import math
from fractions import Fraction

import flint
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import readings
from oracle.losses import noise_pair, reversed_pair, shown_count, waiting_times
from test_explicit_pairs import assert_just_above, loss_between
from test_relations import TRANSFERABLE
from thorough import examples, thinned

import pkdp_pipeline as pkdp
from pkdp_pipeline.extras.theory.privacy_loss import CHI_SQUARED, HELLINGER, JENSEN_SHANNON

GRID = np.concatenate([np.linspace(0.0, 2.0, 21), [3.0, 5.0]])
NOISY = pkdp.Count(noise=pkdp.GeometricNoise(1.0))
HISTOGRAM = pkdp.Histogram(k=20)
CERTIFICATES = {
    "noise": lambda: pkdp.certify(NOISY, pkdp.AttackerModel()),
    "value of noise": lambda: pkdp.certify(
        pkdp.Histogram(noise=pkdp.GeometricNoise(0.5)), pkdp.AttackerModel(), protects="value"
    ),
    "threshold": lambda: pkdp.certify(pkdp.Count(k=20), pkdp.AttackerModel(p_max=0.3)),
    "threshold, few people": lambda: pkdp.certify(pkdp.Count(k=10), pkdp.AttackerModel(p_max=0.3, unknown_max=25)),
    "threshold, known people": lambda: pkdp.certify(pkdp.Count(k=20), pkdp.AttackerModel(p_max=0.3, known=4)),
    "both thresholds": lambda: pkdp.certify(
        pkdp.Count(k=20, k_complement=15), pkdp.AttackerModel(p_min=0.2, p_max=0.3)
    ),
    "presence": lambda: pkdp.certify(HISTOGRAM, pkdp.AttackerModel(p_max=0.1)),
    "value": lambda: pkdp.certify(HISTOGRAM, pkdp.AttackerModel(p_max=0.1), protects="value"),
    "between": lambda: pkdp.certify(HISTOGRAM, pkdp.AttackerModel(p_max_between=0.6), protects="value"),
    "count": lambda: pkdp.certify(pkdp.Count(), pkdp.AttackerModel(unknown=60, p_min=0.2, p_max=0.7)),
    "noisy count": lambda: pkdp.certify(NOISY, pkdp.AttackerModel(unknown=60, p_min=0.2, p_max=0.7)),
    "noise after k": lambda: pkdp.certify(
        pkdp.Histogram(k=10, noise=pkdp.GeometricNoise(1.0), release_threshold=25), pkdp.AttackerModel()
    ),
    "a year of noise": lambda: pkdp.compose([(pkdp.certify(NOISY, pkdp.AttackerModel()), 365)]),
    "one of two parts": lambda: pkdp.compose(
        [(pkdp.certify(NOISY, pkdp.AttackerModel()), 1), (pkdp.certify(HISTOGRAM, pkdp.AttackerModel(p_max=0.1)), 1)],
        pkdp.DisjointUnits(),
    ),
    "a month": lambda: pkdp.compose(
        [(pkdp.certify(HISTOGRAM, pkdp.AttackerModel(p_max=0.1)), 30)], pkdp.IndependentGivenHabits()
    ),
    "nothing": lambda: pkdp.compose([]),
}


@thinned(4)
@pytest.mark.parametrize("name", CERTIFICATES)
def test_the_pair_gives_the_certified_curve_again(name):
    certificate = CERTIFICATES[name]()
    loss = pkdp.PrivacyLoss.of(certificate)
    attained, certified = certificate.delta_bounds(GRID)
    deltas = np.array([loss.delta(epsilon) for epsilon in GRID.tolist()])
    assert (deltas >= attained * (1.0 - 1e-12)).all()
    # A chord between two points of a hull is at most the curve a little to the left.
    shown = certified > 1e-5
    # Beside people merely known the pair is that of the worst unknown people for each number of known ones who count.
    # For the value it is that of waiting times in both cells; certified is the worst crowd in one of them.
    above = {"threshold, known people": 1.3, "value": 2.2}.get(name, 1.001)
    assert (deltas[shown] <= certificate.delta(np.maximum(0.0, GRID - 0.03))[shown] * above).all()
    assert loss.dominating
    assert loss == pkdp.PrivacyLoss.of(CERTIFICATES[name]())
    # A hull does not know where the largest of several parts has its kinks.
    close = {"one of two parts": 0.1, "threshold, known people": 0.05, "value": 0.1}.get(name, 5e-3)
    for delta in (0.05, 1e-3):
        assert loss.epsilon(delta) == pytest.approx(certificate.epsilon(delta), rel=close, abs=1e-6)


@thinned(2)
@pytest.mark.parametrize("noise", [0.01, 0.5, 1.0, 4.0])
def test_noise_is_read_as_randomised_response(noise):
    loss = pkdp.PrivacyLoss.of(pkdp.certify(pkdp.Count(noise=pkdp.GeometricNoise(noise)), pkdp.AttackerModel()))
    pair, middle = noise_pair(noise, 1), math.tanh(noise / 2.0)
    assert_just_above(loss.total_variation(), middle, 1e-12)
    assert_just_above(loss.kl(), noise * middle, 1e-12)
    assert_just_above(loss.zero_concentrated(), noise * middle, 2e-7)
    assert_just_above(loss.renyi(3.0), readings.renyi(pair, 3.0), 1e-11)
    assert loss.renyi(math.inf) == noise
    assert loss.delta(noise) == loss.exceeding(noise) == loss.pair_exceeding(noise) == 0.0
    assert_just_above(loss.pair_exceeding(noise * 0.999), 1.0 / (1.0 + math.exp(-noise)), 1e-12)
    assert loss.divergence(HELLINGER) == pytest.approx(1.0 - 1.0 / math.cosh(noise / 2.0), rel=1e-9)
    assert_just_above(loss.pair_mean_concentrated()[1], readings.tau_at_least(pair), 0.02)


def test_a_year_of_noisy_counts_adds_up():
    day = pkdp.certify(NOISY, pkdp.AttackerModel())
    of_day, year = pkdp.PrivacyLoss.of(day), pkdp.PrivacyLoss.of(pkdp.compose([(day, 365)]))
    assert year.renyi(math.inf) == 365.0
    for alpha in (1.0, 1.5, 20.0):
        assert year.renyi(alpha) == pytest.approx(365.0 * of_day.renyi(alpha), rel=1e-10)
    assert year.zero_concentrated() == pytest.approx(365.0 * of_day.zero_concentrated(), rel=1e-6)


def test_different_noise_adds_up():
    days = [
        (pkdp.certify(pkdp.Count(noise=pkdp.GeometricNoise(noise)), pkdp.AttackerModel()), times)
        for noise, times in ((0.1, 40), (0.37, 25), (1.0, 9))
    ]
    total = pkdp.PrivacyLoss.of(pkdp.compose(days))
    for alpha in (1.0, 2.0, 6.0):
        apart = sum(n * pkdp.PrivacyLoss.of(certificate).renyi(alpha) for certificate, n in days)
        assert apart * (1.0 - 1e-12) <= total.renyi(alpha) <= apart * (1.0 + 2e-3)


@examples(quick=1, full=500)
def test_small_products_of_noise_are_exact(examples):
    @settings(max_examples=examples)
    @given(noise=st.lists(st.sampled_from([0.25, 0.3, 1.0, 2.0]), min_size=1, max_size=5), epsilon=st.floats(0.0, 3.0))
    def check(noise, epsilon):
        parts = [pkdp.certify(pkdp.Count(noise=pkdp.GeometricNoise(each)), pkdp.AttackerModel()) for each in noise]
        loss = pkdp.PrivacyLoss.of(pkdp.compose(parts))
        pair = noise_pair(noise[0], 1)
        with flint.ctx.workprec(320):
            for each in noise[1:]:
                pair = readings.products(pair, noise_pair(each, 1))
        assert_just_above(loss.kl(), readings.kl(pair), 1e-10)
        assert_just_above(loss.renyi(2.5), readings.renyi(pair, 2.5), 1e-10)

    check()


@pytest.mark.parametrize(("k", "p", "unknown_max"), [(4, 0.3, 9), (7, 0.6, 14), (3, 0.05, 12)])
def test_thresholds_are_read_as_their_waiting_times(k, p, unknown_max):
    loss = pkdp.PrivacyLoss.of(pkdp.certify(pkdp.Count(k=k), pkdp.AttackerModel(p_max=p, unknown_max=unknown_max)))
    pair = waiting_times(k - 1, p, unknown_max)
    exact = loss_between(pair)
    for reading in (
        lambda privacy_loss: privacy_loss.delta(0.7),
        lambda privacy_loss: privacy_loss.total_variation(),
        lambda privacy_loss: privacy_loss.divergence(HELLINGER),
        lambda privacy_loss: privacy_loss.divergence(JENSEN_SHANNON),
        lambda privacy_loss: privacy_loss.approximately_zero_concentrated(float(Fraction(p) ** (k - 1)) * 1.5),
        lambda privacy_loss: privacy_loss.pair_exceeding(0.7),
        lambda privacy_loss: privacy_loss.divergence(CHI_SQUARED, order="second"),
        lambda privacy_loss: privacy_loss.renyi(2.0, order="second"),
    ):
        assert_just_above(reading(loss), reading(exact), 1e-6)
    # k - 1 others are all there, for certain: published or not tells the target.
    assert loss.infinite == pytest.approx(p ** (k - 1))
    assert loss.kl() == loss.renyi(2.0) == loss.zero_concentrated() == math.inf
    assert loss.approximately_zero_concentrated(0.5 * p ** (k - 1)) == math.inf


@examples(quick=1, full=120)
def test_thresholded_counts_of_declared_attackers_stay_below(examples):
    @settings(max_examples=examples)
    @given(k=st.integers(2, 7), p=st.sampled_from([0.1, 0.3, 0.5]), people=st.integers(0, 14), epsilon=st.floats(0, 2))
    def check(k, p, people, epsilon):
        loss = pkdp.PrivacyLoss.of(pkdp.certify(pkdp.Count(k=k), pkdp.AttackerModel(p_max=p)))
        own = loss_between(shown_count(k, p, people))
        for name in TRANSFERABLE:
            assert TRANSFERABLE[name](own) <= TRANSFERABLE[name](loss) * (1.0 + 1e-6), name
        assert own.pair_exceeding(epsilon) <= loss.exceeding(epsilon) * (1.0 + 1e-9)

    check()


@examples(quick=1, full=20)
def test_noisy_counts_of_declared_attackers_stay_below(examples):
    """Different people, of whom one coin each is known within a box, and geometric noise cut far out."""

    @settings(max_examples=examples)
    @given(chances=st.lists(st.sampled_from([0.2, 0.45, 0.7]), min_size=12, max_size=13))
    def check(chances):
        certificate = pkdp.certify(
            pkdp.Count(noise=pkdp.GeometricNoise(1.0)), pkdp.AttackerModel(unknown=12, p_min=0.2, p_max=0.7)
        )
        loss = pkdp.PrivacyLoss.of(certificate)
        own = loss_between(noisy_count(chances, 1.0, 18))
        for name in TRANSFERABLE:
            assert TRANSFERABLE[name](own) <= TRANSFERABLE[name](loss) * (1.0 + 1e-6), name
        assert own.pair_exceeding(0.3) <= loss.exceeding(0.3) * (1.0 + 1e-9)
        assert own.mean_concentrated()[1] <= loss.mean_concentrated()[1] * (1.0 + 1e-4)

    check()


def noisy_count(chances, noise, reach):
    """Return the laws of count plus noise with and without the target, both ends put together beyond `reach`."""
    alpha = Fraction(math.exp(-noise))
    law = [Fraction(1)]
    for chance in map(Fraction, chances):
        law = [
            (law[x] if x < len(law) else 0) * (1 - chance) + (law[x - 1] if x else 0) * chance
            for x in range(len(law) + 1)
        ]

    def shown(target):
        cells = [Fraction(0)] * (2 * reach + 1)
        for x, weight in enumerate(law):
            for value in range(-reach + 1, reach):
                cells[value + reach] += weight * (1 - alpha) / (1 + alpha) * alpha ** abs(value - x - target)
            cells[0] += weight * alpha ** (x + target + reach) / (1 + alpha)
            cells[-1] += weight * alpha ** (reach - x - target) / (1 + alpha)
        return cells

    return list(zip(shown(1), shown(0), strict=True))


def test_a_certificate_with_a_finite_end_has_finite_readings():
    """A combined profile falls to 0 at ε0, so nothing may count as disclosed, although its hull is cut off."""
    loss = pkdp.PrivacyLoss.of(CERTIFICATES["noisy count"]())
    worst = pkdp.PrivacyLoss.of(CERTIFICATES["noise"]())
    assert loss.renyi(math.inf) <= 1.0
    assert loss.kl() < worst.kl()
    assert loss.zero_concentrated() < worst.zero_concentrated()


def test_a_pair_that_is_its_own_mirror_image_is_read_once():
    loss = pkdp.PrivacyLoss.of(CERTIFICATES["value"]())
    assert loss.first is loss.second
    assert loss.delta(0.5) == loss.delta(0.5, order="second")


def test_waiting_times_differ_by_order():
    loss = pkdp.PrivacyLoss.of(CERTIFICATES["presence"]())
    assert loss.delta(1.0, order="first") != loss.delta(1.0, order="second")
    assert loss.infinite == pytest.approx(0.1**19)
    assert reversed_pair([(1, 2)]) == [(2, 1)]
