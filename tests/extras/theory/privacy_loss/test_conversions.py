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
from oracle.losses import ball, noise_pair
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
    ("converted", "formula"),
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
        (conversions.kl_to_mutual_information(0.3), lambda x: x(0.3)),
        (conversions.kl_to_mutual_information(0.3, 2), lambda x: x(0.3) / 4),
        (conversions.kl_to_mutual_information(0.3, 5), lambda x: x(0.3) * 4 / 5),
        (conversions.kl_to_mutual_information(30.0, 5), lambda x: x(5).log()),
        (conversions.approximate_to_mutual_information(0.3, 0.0), lambda x: told_by_a_bit(1 / (1 + x(0.3).exp()))),
        (
            conversions.approximate_to_mutual_information(2.0, 0.1),
            lambda x: x(0.1) * x(2).log() + (1 - x(0.1)) * told_by_a_bit(1 / (1 + x(2).exp())),
        ),
        (conversions.approximate_to_mutual_information(1e308, 0.0), lambda x: x(2).log()),
        (conversions.relaxed_to_approximate(0.1, 0.3, 0.2)[1], lambda x: x(0.1) + x(0.2)),
    ],
)
def test_the_formulas_are_rounded_up(converted, formula):
    exact = value(formula)
    assert flint.arb(converted) >= exact
    assert converted == pytest.approx(float(exact.mid()), rel=1e-15)


def told_by_a_bit(wrong):
    """Return the information of a fair bit that is shown wrongly with probability `wrong`, in nats."""
    return flint.arb(2).log() + wrong * wrong.log() + (1 - wrong) * (1 - wrong).log()


def information(laws, prior):
    """Return the mutual information of which law is drawn from and what is drawn, in balls."""
    with flint.ctx.workprec(300):
        total = flint.arb(0)
        for chances in zip(*laws, strict=True):
            mean = sum(share * chance for share, chance in zip(prior, chances, strict=True))
            for share, chance in zip(prior, chances, strict=True):
                if share * chance > 0:
                    total += ball(share * chance) * ball(chance / mean).log()
        return total


@examples(quick=3, full=400)
def test_information_is_never_above_what_is_converted(examples):
    @settings(max_examples=examples)
    @given(pair=pairs(), shares=st.lists(st.integers(1, 9), min_size=2, max_size=2), epsilon=st.floats(0.0, 3.0))
    def check(pair, shares, epsilon):
        loss, laws = loss_between(pair), list(zip(*pair, strict=True))
        bounds = [conversions.approximate_to_mutual_information(epsilon, loss.delta(epsilon))]
        if loss.kl() < math.inf:
            bounds += [conversions.kl_to_mutual_information(loss.kl(), records) for records in (2, 3, None)]
        for prior in ([Fraction(share, sum(shares)) for share in shares], [Fraction(1, 2)] * 2):
            assert all(information(laws, prior) <= flint.arb(bound) * UP for bound in bounds)
        # With fair chances already, no larger total variation goes with this information.
        carried = conversions.mutual_information_to_total_variation(float(information(laws, prior).upper()) * UP)
        assert readings.total_variation(pair) <= Fraction(carried)
        assert carried <= math.sqrt(2.0 * float(information(laws, prior).upper())) * UP * UP
        # The mixture of both as a third value.
        third = [*laws, [(p + 2 * q) / 3 for p, q in pair]]
        if loss.kl() < math.inf:
            bound = conversions.kl_to_mutual_information(loss.kl(), 3)
            assert information(third, [Fraction(1, 3)] * 3) <= flint.arb(bound) * UP

    check()


def test_information_is_attained():
    for epsilon, delta in ((0.1, Fraction(0)), (1.0, Fraction(1, 8)), (6.0, Fraction(1, 2))):
        # R(ε, δ): tells the lives apart with probability δ, and else shows a bit that is right e^ε times as often.
        growth = Fraction(math.exp(epsilon))
        right, wrong = (1 - delta) * growth / (1 + growth), (1 - delta) / (1 + growth)
        laws = [[delta, right, wrong, Fraction(0)], [Fraction(0), wrong, right, delta]]
        attained = float(information(laws, [Fraction(1, 2)] * 2).mid())
        assert conversions.approximate_to_mutual_information(epsilon, float(delta)) == pytest.approx(
            attained, rel=1e-13
        )
        bit = [[Fraction(1, 2) + growth / 1000, Fraction(1, 2) - growth / 1000]]
        bit.append(bit[0][::-1])
        shown = conversions.mutual_information_to_total_variation(float(information(bit, [Fraction(1, 2)] * 2).mid()))
        assert shown == pytest.approx(float(growth) / 500, rel=1e-12)
    # A divergence of two values tells a quarter of itself, of very many values nearly all of it.
    close_laws = [[Fraction(501, 1000), Fraction(499, 1000)], [Fraction(499, 1000), Fraction(501, 1000)]]
    size = readings.kl(list(zip(*close_laws, strict=True)))
    mutual = float(information(close_laws, [Fraction(1, 2)] * 2).mid())
    assert mutual == pytest.approx(conversions.kl_to_mutual_information(size, 2), rel=1e-5)
    rest = 10**30
    size = 0.5 * math.log(rest)  # half of the time the value itself is shown, else one of the others
    mutual = math.log(rest + 1) - math.log(2) - 0.5 * math.log(rest)
    assert 0.97 < mutual / conversions.kl_to_mutual_information(size, rest + 1) < 1.0


def test_relaxed_privacy_is_what_is_left_and_what_was_left_out():
    dropped, rare, growth = Fraction(1, 8), Fraction(1, 4), Fraction(math.exp(0.5))
    right, wrong = (1 - dropped - rare) * growth / (1 + growth), (1 - dropped - rare) / (1 + growth)
    first, second = [dropped, rare, right, wrong, 0, 0], [0, 0, wrong, right, rare, dropped]
    epsilon, delta = conversions.relaxed_to_approximate(0.125, 0.5, 0.25)
    assert (epsilon, delta) == (0.5, 0.375)
    attained = sum(max(p - growth * q, Fraction(0)) for p, q in zip(first, second, strict=True))
    assert float(attained) == pytest.approx(delta, rel=1e-15)
    # Every set of outcomes may be left out; what is left has some δ, and both together are never too little.
    pair = [(Fraction(5, 12), Fraction(1, 12)), (Fraction(1, 4), Fraction(1, 3)), (Fraction(1, 3), Fraction(7, 12))]
    for chosen in itertools.product((True, False), repeat=3):
        out = max(sum(both[side] for both, left in zip(pair, chosen, strict=True) if left) for side in (0, 1))
        kept = [both for both, left in zip(pair, chosen, strict=True) if not left]
        excess = max(sum(max(both[side] - growth * both[1 - side], Fraction(0)) for both in kept) for side in (0, 1))
        bound = conversions.relaxed_to_approximate(float(out), 0.5, float(excess))[1]
        assert loss_between(pair).delta(0.5) <= bound * UP
    assert conversions.relaxed_to_approximate(0.7, 0.0, 0.7) == (0.0, 1.0)


@examples(quick=2, full=150)
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
        certified_delta = loss.delta(epsilon)
        dropped, rho = conversions.approximate_to_approximately_zero_concentrated(epsilon, certified_delta)
        assert loss.approximately_zero_concentrated(dropped) <= rho * (1.0 + 2e-7)
        assert (
            loss.pair_exceeding(epsilon + 0.5)
            <= conversions.approximate_to_probabilistic(epsilon, certified_delta, epsilon + 0.5) * UP
        )
        kept, same = conversions.probabilistic_to_approximate(epsilon, loss.pair_exceeding(epsilon))
        assert loss.delta(kept) <= same * UP
        part = loss.approximately_zero_concentrated(delta)
        if part < math.inf:
            assert certified_delta <= conversions.approximately_zero_concentrated_to_delta(delta, part, epsilon) * UP

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
    steps = [pkdp.PrivacyLoss.between(law, next_law).zero_concentrated() for law, next_law in itertools.pairwise(laws)]
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
    assert conversions.mutual_information_to_total_variation(0.0) == 0.0
    assert conversions.mutual_information_to_total_variation(math.log(2.0)) == 1.0
    assert conversions.approximate_to_mutual_information(0.0, 0.0) == 0.0


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
        for index, key in enumerate(inspect.signature(function).parameters):
            # ξ alone may be below 0.
            for wrong in (-math.inf if key == "xi" else -1.0, math.nan, math.inf, True, "1"):
                arguments = [*numbers[:index], wrong, *numbers[index + 1 :]]
                arguments = [
                    0.5 if key in ("delta", "dropped") and number == 1.5 else number
                    for key, number in named(function, arguments)
                ]
                arguments = [
                    2 if key in ("size", "records") and number == 1.5 else number
                    for key, number in named(function, arguments)
                ]
                with pytest.raises(pkdp.ArgumentError):
                    function(*arguments)


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
        converted = conversions.zero_concentrated_to_epsilon(rho, delta, xi)
        assert loss.epsilon(delta) <= converted <= conversions.zero_concentrated_to_epsilon(rho, delta)
        assert conversions.zero_concentrated_to_epsilon_simple(rho, delta, xi) >= converted
    for point in (0.0, 0.05, 0.5, 3.0):
        converted = conversions.zero_concentrated_to_delta(rho, point, xi)
        assert loss.delta(point) * (1.0 - 1e-12) <= converted <= conversions.zero_concentrated_to_delta(rho, point)
    assert conversions.zero_concentrated_to_epsilon_simple(0.0, 0.5, -1.0) == 0.0


def test_conversions_stay_in_their_ranges():
    assert conversions.pure_to_total_variation(1e308) == 1.0
    assert conversions.pure_to_renyi(1e308, 1e308) == 1e308
    assert conversions.pure_to_renyi(0.5, 1e300) == 0.5
    for xi in (math.nan, math.inf, "0", True):
        with pytest.raises(pkdp.ArgumentError, match="xi"):
            conversions.zero_concentrated_to_epsilon(0.1, 1e-6, xi)
