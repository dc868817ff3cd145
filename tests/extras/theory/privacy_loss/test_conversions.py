"""Conversions between definitions: their formulas at high precision, and exact readings that must stay below."""

from __future__ import annotations

import inspect
import itertools
import math
from fractions import Fraction

import flint
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import readings
from oracle.losses import noise_pair
from test_explicit_pairs import loss_between, pairs
from thorough import examples

import pkdp_pipeline as pkdp
from pkdp_pipeline.extras.theory.privacy_loss import conversions

UP = 1.0 + 1e-12


def value(formula):
    """Return a formula's value with 300 bits."""
    with flint.ctx.workprec(300):
        return formula(flint.arb)


@pytest.mark.parametrize(
    ("found", "formula"),
    [
        (conversions.pure_to_kl(0.3), lambda x: x(0.3) * (x(0.3) / 2).tanh()),
        (conversions.pure_to_total_variation(0.3), lambda x: (x(0.3).exp() - 1) / (x(0.3).exp() + 1)),
        (conversions.pure_to_zero_concentrated(2.0), lambda x: x(2) * x(1).tanh()),
        (conversions.pure_to_mean_concentrated(2.0)[0], lambda x: x(2) * x(1).tanh()),
        (conversions.pure_to_mean_concentrated(2.0)[1], lambda x: x(2)),
        (
            conversions.pure_to_renyi(0.7, 3.0),
            lambda x: ((x(2.5) * x(0.7)).cosh() / (x(0.5) * x(0.7)).cosh()).log() / 2,
        ),
        (conversions.mean_to_zero_concentrated(0.4, 0.6)[0], lambda x: x(0.4) - x(0.6) * x(0.6) / 2),
        (conversions.mean_to_zero_concentrated(0.4, 0.6)[1], lambda x: x(0.6) * x(0.6) / 2),
        (conversions.zero_concentrated_to_kl(0.1, 0.2), lambda x: x(0.1) + x(0.2)),
        (conversions.zero_concentrated_to_renyi(0.1, 7.0, 0.2), lambda x: x(0.2) + 7 * x(0.1)),
        (conversions.zero_concentrated_of_group(0.1, 3), lambda x: 9 * x(0.1)),
        (conversions.renyi_to_epsilon_simple(5.0, 0.3, 1e-6), lambda x: x(0.3) - x(1e-6).log() / 4),
        (
            conversions.renyi_to_epsilon(5.0, 0.3, 1e-6),
            lambda x: x(0.3) + (x(4) / 5).log() - (x(1e-6).log() + x(5).log()) / 4,
        ),
        (
            conversions.renyi_to_delta(5.0, 0.3, 2.0),
            lambda x: (4 * (x(0.3) - 2)).exp() * (x(4) / 5) ** 4 / 5,
        ),
        (
            conversions.zero_concentrated_to_epsilon_simple(0.1, 1e-6, 0.2),
            lambda x: x(0.1) + x(0.2) + (-4 * x(0.1) * x(1e-6).log()).sqrt(),
        ),
        (conversions.approximate_to_probabilistic(0.5, 1e-3, 1.0), lambda x: x(1e-3) / (1 - (x(-0.5)).exp())),
        (
            conversions.truncated_to_epsilon(0.1, 50.0, 1e-6),
            lambda x: x(0.1) + 2 * (-x(0.1) * x(1e-6).log()).sqrt(),
        ),
        (conversions.truncated_to_epsilon(0.1, 3.0, 1e-6), lambda x: x(0.1) * 3 - x(1e-6).log() / 2),
        (conversions.kl_to_total_variation(0.1), lambda x: (x(0.1) / 2).sqrt()),
        (conversions.kl_to_total_variation(3.0), lambda x: (1 - (-x(3)).exp()).sqrt()),
    ],
)
def test_the_formulas_are_rounded_up(found, formula):
    exact = value(formula)
    assert flint.arb(found) >= exact
    assert found == pytest.approx(float(exact.mid()), rel=1e-15)


@examples(quick=4, full=150)
def test_what_is_converted_holds(examples):
    @settings(max_examples=examples)
    @given(pair=pairs(), alpha=st.floats(1.05, 40.0), delta=st.floats(1e-9, 0.5), epsilon=st.floats(0.0, 2.5))
    def check(pair, alpha, delta, epsilon):
        loss = loss_between(pair)
        pure, concentrated = loss.renyi(math.inf), loss.zero_concentrated()
        if pure < math.inf:
            assert loss.kl() <= conversions.pure_to_kl(pure) * UP
            assert loss.total_variation() <= conversions.pure_to_total_variation(pure) * UP
            assert loss.renyi(alpha) <= conversions.pure_to_renyi(pure, alpha) * UP
            assert concentrated <= conversions.pure_to_zero_concentrated(pure) * (1.0 + 2e-7)
            mean, deviation = loss.mean_concentrated()
            most_mean, most_deviation = conversions.pure_to_mean_concentrated(pure)
            assert mean <= most_mean * UP
            assert deviation <= most_deviation * (1.0 + 1e-4) + 1e-9
            xi, rho = conversions.mean_to_zero_concentrated(mean, deviation)
            assert loss.renyi(alpha) <= (xi + rho * alpha) * UP + 1e-12
            for given_delta in (delta, delta**3):
                exact = loss.epsilon(given_delta)
                divergence = loss.renyi(alpha)
                sharp = conversions.renyi_to_epsilon(alpha, divergence, given_delta)
                assert exact <= sharp * UP
                assert sharp <= conversions.renyi_to_epsilon_simple(alpha, divergence, given_delta) * UP
                best = conversions.zero_concentrated_to_epsilon(concentrated, given_delta)
                assert exact <= best * UP
                assert best <= conversions.zero_concentrated_to_epsilon_simple(concentrated, given_delta) * UP
                assert exact <= conversions.truncated_to_epsilon(concentrated, 1.0 + alpha, given_delta) * UP
            assert loss.delta(epsilon) <= conversions.renyi_to_delta(alpha, loss.renyi(alpha), epsilon) * UP
            assert loss.delta(epsilon) <= conversions.zero_concentrated_to_delta(concentrated, epsilon) * UP
            assert loss.kl() <= conversions.zero_concentrated_to_kl(concentrated) * UP
            assert loss.renyi(alpha) <= conversions.zero_concentrated_to_renyi(concentrated, alpha) * UP
            assert loss.total_variation() <= conversions.kl_to_total_variation(loss.kl()) * UP
        at = loss.delta(epsilon)
        dropped, rho = conversions.approximate_to_approximately_zero_concentrated(epsilon, at)
        assert loss.approximately_zero_concentrated(dropped) <= rho * (1.0 + 2e-7)
        assert (
            loss.pair_exceeding(epsilon + 0.5)
            <= conversions.approximate_to_probabilistic(epsilon, at, epsilon + 0.5) * UP
        )
        kept, same = conversions.probabilistic_to_approximate(epsilon, loss.pair_exceeding(epsilon))
        assert loss.delta(kept) <= same * UP
        part = loss.approximately_zero_concentrated(delta)
        if part < math.inf:
            assert at <= conversions.approximately_zero_concentrated_to_delta(delta, part, epsilon) * UP

    check()


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
def test_randomised_response_attains_what_pure_privacy_gives(epsilon):
    pair = noise_pair(epsilon, 1)
    assert conversions.pure_to_kl(epsilon) == pytest.approx(readings.kl(pair), rel=1e-14)
    assert conversions.pure_to_renyi(epsilon, 2.5) == pytest.approx(readings.renyi(pair, 2.5), rel=1e-14)
    assert conversions.pure_to_zero_concentrated(epsilon) == pytest.approx(readings.rho_at_least(pair), rel=1e-5)


def test_what_is_printed_is_not_smaller():
    for epsilon in (0.01, 0.3, 1.0, 4.0):
        assert conversions.pure_to_zero_concentrated(epsilon) <= epsilon**2 / 2.0
        assert conversions.pure_to_mean_concentrated(epsilon)[0] <= epsilon * math.expm1(epsilon) / 2.0
        assert conversions.pure_to_kl(epsilon) <= epsilon * math.expm1(epsilon)


def test_approximate_privacy_is_not_probabilistic_privacy():
    """The direction that is printed without a change of parameters fails; the other one holds."""
    pair = [(Fraction(1, 2), Fraction(1, 4)), (Fraction(1, 2), Fraction(3, 4))]
    loss = loss_between(pair)
    epsilon = 0.5
    delta = loss.delta(epsilon)
    assert delta < 0.09
    assert loss.pair_exceeding(epsilon) == pytest.approx(0.5)
    with pytest.raises(pkdp.ArgumentError, match="threshold must be above epsilon"):
        conversions.approximate_to_probabilistic(epsilon, delta, epsilon)


def test_one_person_more_costs_the_square():
    """Neighbours of neighbours: three laws in a row, each ρ-close to the next."""
    laws = [[0.5, 0.3, 0.2], [0.4, 0.35, 0.25], [0.32, 0.36, 0.32]]
    steps = [pkdp.PrivacyLoss.between(one, other).zero_concentrated() for one, other in itertools.pairwise(laws)]
    whole = pkdp.PrivacyLoss.between(laws[0], laws[2]).zero_concentrated()
    assert whole <= conversions.zero_concentrated_of_group(max(steps), 2)


def test_the_ends_of_the_ranges():
    assert conversions.pure_to_kl(0.0) == conversions.pure_to_total_variation(0.0) == 0.0
    assert conversions.zero_concentrated_to_epsilon(0.0, 1e-9) == 0.0
    assert conversions.zero_concentrated_to_delta(50.0, 0.0) == 1.0
    assert conversions.zero_concentrated_to_delta(0.0, 1.0) <= 1e-9
    assert conversions.renyi_to_epsilon(2.0, 0.0, 0.9) == 0.0
    assert conversions.kl_to_total_variation(0.0) == 0.0
    assert conversions.kl_to_total_variation(1e6) == 1.0
    assert conversions.truncated_to_epsilon(0.0, 2.0, 1.0) >= 0.0


def test_every_conversion_says_what_it_needs():
    own = {
        name: function
        for name, function in inspect.getmembers(conversions, inspect.isfunction)
        if function.__module__ == conversions.__name__ and name[0] != "_"
    }
    assert len(own) > 10
    for name, function in own.items():
        assert "Return" in inspect.getdoc(function), name
        numbers = [1.5] * len(inspect.signature(function).parameters)
        for at, key in enumerate(inspect.signature(function).parameters):
            # ξ alone may be below 0.
            for wrong in (-math.inf if key == "xi" else -1.0, math.nan, math.inf, True, "1"):
                asked = [*numbers[:at], wrong, *numbers[at + 1 :]]
                asked = [
                    0.5 if key in ("delta", "dropped") and one == 1.5 else one for key, one in named(function, asked)
                ]
                asked = [2 if key == "size" and one == 1.5 else one for key, one in named(function, asked)]
                with pytest.raises(pkdp.ArgumentError):
                    function(*asked)


def named(function, values):
    return zip(inspect.signature(function).parameters, values, strict=True)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_what_is_concentrated_below_its_mean_is_converted_too(epsilon):
    xi, rho = conversions.mean_to_zero_concentrated(*conversions.pure_to_mean_concentrated(epsilon))
    assert xi < 0.0
    loss = pkdp.PrivacyLoss.of(pkdp.certify(pkdp.Count(noise=pkdp.GeometricNoise(epsilon)), pkdp.AttackerModel()))
    assert loss.kl() * (1.0 - 1e-12) <= conversions.zero_concentrated_to_kl(rho, xi)
    for alpha in (1.001, 2.0, 50.0):
        assert loss.renyi(alpha) * (1.0 - 1e-12) <= conversions.zero_concentrated_to_renyi(rho, alpha, xi)
    for delta in (0.2, 1e-2, 1e-6):
        found = conversions.zero_concentrated_to_epsilon(rho, delta, xi)
        assert loss.epsilon(delta) <= found <= conversions.zero_concentrated_to_epsilon(rho, delta)
        assert conversions.zero_concentrated_to_epsilon_simple(rho, delta, xi) >= found
    for at in (0.0, 0.05, 0.5, 3.0):
        found = conversions.zero_concentrated_to_delta(rho, at, xi)
        assert loss.delta(at) * (1.0 - 1e-12) <= found <= conversions.zero_concentrated_to_delta(rho, at)
    assert conversions.zero_concentrated_to_epsilon_simple(0.0, 0.5, -1.0) == 0.0


def test_conversions_stay_in_their_ranges():
    assert conversions.pure_to_total_variation(1e308) == 1.0
    assert conversions.pure_to_renyi(1e308, 1e308) == 1e308
    assert conversions.pure_to_renyi(0.5, 1e300) == 0.5
    for xi in (math.nan, math.inf, "0", True):
        with pytest.raises(pkdp.ArgumentError, match="xi"):
            conversions.zero_concentrated_to_epsilon(0.1, 1e-6, xi)
