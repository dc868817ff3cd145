"""Readings of two explicit laws against the definitions, evaluated exactly or with 320 bits."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import readings
from oracle.losses import profile, reversed_pair
from thorough import examples, thinned

import pkdp_pipeline as pkdp
from pkdp_pipeline.extras.theory.privacy_loss import (
    CHI_SQUARED,
    HELLINGER,
    JENSEN_SHANNON,
    KULLBACK_LEIBLER,
    TOTAL_VARIATION,
    ConvexFunction,
    alpha_divergence,
)

CLOSE = 1e-10


@st.composite
def pairs(draw, positive=False):
    """Two laws on up to six outcomes; some have none of an outcome, unless `positive`."""
    size = draw(st.integers(2, 6))
    least = 1 if positive else 0
    weights = st.lists(st.integers(least, 40) | st.integers(least, 3), min_size=size, max_size=size)
    first, second = draw(weights.filter(any)), draw(weights.filter(any))
    # The smallest mass may be very small.
    grown = [w * draw(st.sampled_from([1, 1, 10**6])) for w in first]
    return [(Fraction(p, sum(grown)), Fraction(q, sum(second))) for p, q in zip(grown, second, strict=True)]


def loss_between(pair):
    return pkdp.PrivacyLoss.between([p for p, _ in pair], [q for _, q in pair])


def assert_just_above(reported, exact, close=CLOSE):
    """Never below; an infinite one is infinite; not far above."""
    if math.isinf(exact):
        assert math.isinf(reported)
    else:
        # The oracle's value is the nearest float.
        assert exact * (1.0 - 1e-15) <= reported <= exact * (1.0 + close) + 1e-14


@examples(quick=12, full=2000)
def test_epsilon_and_delta(examples):
    @settings(max_examples=examples)
    @given(pair=pairs(), epsilon=st.sampled_from([0.0, 0.05, 0.5, 1.0, 3.0]), target=st.floats(1e-9, 0.9))
    def check(pair, epsilon, target):
        loss = loss_between(pair)
        for order, ordered in (("first", pair), ("second", reversed_pair(pair))):
            assert_just_above(loss.delta(epsilon, order=order), max(0.0, float(profile(ordered, epsilon).lower())))
            assert_just_above(loss.pair_exceeding(epsilon, order=order), float(readings.exceeding(ordered, epsilon)))
        assert loss.exceeding(epsilon) == loss.pair_exceeding(epsilon)
        assert loss.delta(epsilon) == max(loss.delta(epsilon, order=order) for order in ("first", "second"))
        smallest = loss.epsilon(target)
        if math.isinf(smallest):
            assert max(loss.infinite, loss.other_only) > target
        else:
            assert loss.delta(smallest) <= target
            assert smallest == 0.0 or loss.delta(smallest * (1.0 - 1e-9)) > target * (1.0 - 1e-6)
        assert_just_above(loss.total_variation(), float(readings.total_variation(pair)))

    check()


@examples(quick=20, full=2000)
def test_averages(examples):
    @settings(max_examples=examples)
    @given(pair=pairs(), alpha=st.floats(1.0 + 1e-6, 1.01) | st.floats(1.01, 3.0) | st.floats(3.0, 500.0))
    def check(pair, alpha):
        loss = loss_between(pair)
        for order, ordered in (("first", pair), ("second", reversed_pair(pair))):
            assert_just_above(loss.kl(order=order), readings.kl(ordered))
            assert_just_above(loss.renyi(alpha, order=order), readings.renyi(ordered, alpha), 1e-9)

    check()


@thinned(3)
@pytest.mark.parametrize(
    "function",
    [
        HELLINGER,
        JENSEN_SHANNON,
        CHI_SQUARED,
        KULLBACK_LEIBLER,
        TOTAL_VARIATION,
        *map(alpha_divergence, (0.5, 2.0, 3.5)),
    ],
    ids=lambda function: function.name,
)
@examples(quick=12, full=500)
def test_f_divergences(examples, function):
    @settings(max_examples=examples)
    @given(pair=pairs())
    def check(pair):
        loss = loss_between(pair)
        for order, ordered in (("first", pair), ("second", reversed_pair(pair))):
            exact = readings.divergence(ordered, function.value, function.at_zero, function.growth)
            assert_just_above(loss.divergence(function, order=order), exact)

    check()


def test_a_slope_changes_no_divergence():
    pair = [(Fraction(1, 2), Fraction(1, 5)), (Fraction(1, 2), Fraction(4, 5))]
    plain = ConvexFunction(
        name="t log t", value=lambda ratio: ratio * ratio.log(), at_zero=0.0, growth=math.inf, slope=1.0
    )
    assert loss_between(pair).divergence(plain) == pytest.approx(loss_between(pair).kl(), rel=1e-12)


@examples(quick=12, full=400)
def test_zero_concentration_holds_for_every_order(examples):
    @settings(max_examples=examples)
    @given(pair=pairs(positive=True), xi=st.sampled_from([0.0, 0.0, 0.1, 1.0]))
    def check(pair, xi):
        loss = loss_between(pair)
        for order, ordered in (("first", pair), ("second", reversed_pair(pair))):
            rho, least = loss.zero_concentrated(xi, order=order), readings.rho_at_least(ordered, xi)
            assert rho >= least * (1.0 - 1e-14)
            # The grid of the oracle is coarse; the maximum is flat.
            assert rho <= max(least * 1.01, 1e-9)

    check()


@examples(quick=2, full=100)
def test_mean_concentration_holds_for_every_exponent(examples):
    @settings(max_examples=examples)
    @given(pair=pairs(positive=True))
    def check(pair):
        loss = loss_between(pair)
        for order, ordered in (("first", pair), ("second", reversed_pair(pair))):
            mean, deviation = loss.mean_concentrated(order=order)
            assert_just_above(mean, readings.kl(ordered))
            least = readings.tau_at_least(ordered)
            assert deviation >= least * (1.0 - 1e-14)
            assert deviation <= max(least * 1.03, 1e-6)

    check()


@examples(quick=10, full=300)
def test_what_is_set_aside_leaves_a_concentrated_pair(examples):
    @settings(max_examples=examples)
    @given(pair=pairs(), delta=st.sampled_from([Fraction(1, 1000), Fraction(1, 20), Fraction(1, 3)]))
    def check(pair, delta):
        rho = loss_between(pair).approximately_zero_concentrated(float(delta))
        both = [cut_to(ordered, delta) for ordered in (pair, reversed_pair(pair))]
        if None in both:
            assert math.isinf(rho)
            return
        cut, gone, other_gone = readings.clipped(pair, *both)
        assert max(gone, other_gone) <= delta
        # Take uniformly what is left over, so that the same mass is gone from both.
        left = [(p * (1 - delta) / (1 - gone), q * (1 - delta) / (1 - other_gone)) for p, q in cut]
        left = [(p / (1 - delta), q / (1 - delta)) for p, q in left]
        least = max(readings.rho_at_least(ordered) for ordered in (left, reversed_pair(left)))
        exact = gone == other_gone == delta
        assert rho >= least * (1.0 - 1e-14) or not exact
        whole = max(readings.rho_at_least(ordered) for ordered in (pair, reversed_pair(pair)))
        if exact:
            assert rho <= max(least * 1.01, 1e-9)
        assert rho <= max(whole * 1.01, 1e-9)

    check()


def cut_to(pair, delta):
    """Return the growth z ≥ 1 with ``Σ (P - zQ)_+ = delta``, 1 where it is less there, None where it stays above."""
    if sum(p for p, q in pair if q == 0) > delta:
        return None
    kinks = sorted({p / q for p, q in pair if q > 0 and p > q} | {Fraction(1)})
    if excess(pair, kinks[0]) <= delta:
        return kinks[0]
    for low, high in itertools.pairwise(kinks):
        if excess(pair, high) <= delta:
            share = (excess(pair, low) - delta) / (excess(pair, low) - excess(pair, high))
            return low + share * (high - low)
    raise AssertionError("the excess over the largest ratio is the infinite mass")


def excess(pair, growth):
    return sum((max(p - growth * q, Fraction(0)) for p, q in pair), Fraction(0))


def test_no_events_leave_a_better_concentrated_pair():
    """Any other way to take δ from both laws of a small pair, tried on a grid, leaves a larger ρ."""
    pair = [(Fraction(6, 10), Fraction(1, 10)), (Fraction(3, 10), Fraction(3, 10)), (Fraction(1, 10), Fraction(6, 10))]
    delta = Fraction(1, 10)
    rho = loss_between(pair).approximately_zero_concentrated(float(delta))
    for cut in ((10, 0, 0), (8, 2, 0), (8, 0, 2), (0, 10, 0), (6, 2, 2), (9, 1, 0)):
        taken = [Fraction(part, 100) for part in cut]
        left = [
            ((p - from_first) / (1 - delta), (q - from_second) / (1 - delta))
            for (p, q), from_first, from_second in zip(pair, taken, taken[::-1], strict=True)
        ]
        assert rho <= max(readings.rho_at_least(ordered) for ordered in (left, reversed_pair(left))) * (1.0 + 1e-6)


def test_the_atoms_are_the_pair():
    loss = pkdp.PrivacyLoss.between({"a": 0.5, "b": 0.25, "c": 0.25}, {"a": 0.25, "b": 0.5, "d": 0.25})
    assert loss.losses.tolist() == pytest.approx([-math.log(2.0), 0.0, math.log(2.0)])
    assert loss.masses.tolist() == pytest.approx([0.25, 0.0, 0.5], abs=1e-13)
    assert (loss.infinite, loss.other_only) == (0.25, 0.25)
    assert loss.reversed().first == loss.second
    assert loss == pkdp.PrivacyLoss.between([0.5, 0.25, 0.25, 0.0], [0.25, 0.5, 0.0, 0.25])
    assert hash(loss) == hash(loss.reversed().reversed())
    assert repr(loss) == "<PrivacyLoss, exact: 1 losses up to inf / 1 losses up to inf>"
    assert pkdp.PrivacyLoss.between(np.array([0.1] * 10), np.array([0.1] * 10)).kl() == 0.0


def test_equal_laws_lose_nothing():
    loss = pkdp.PrivacyLoss.between([0.3, 0.7], [0.3, 0.7])
    assert loss.delta(0.0) == loss.epsilon(0.0) == loss.kl() == loss.renyi(7.0) == loss.renyi(math.inf) == 0.0
    assert loss.zero_concentrated() == loss.approximately_zero_concentrated(0.1) == loss.divergence(HELLINGER) == 0.0
    assert loss.mean_concentrated() == pytest.approx((0.0, 0.0), abs=1e-6)


def test_laws_that_exclude_each_other_lose_everything():
    loss = pkdp.PrivacyLoss.between([1, 0], [0, 1])
    assert loss.delta(50.0) == loss.total_variation() == loss.exceeding(50.0) == 1.0
    assert loss.epsilon(0.999) == loss.kl() == loss.renyi(2.0) == loss.zero_concentrated() == math.inf
    assert loss.approximately_zero_concentrated(0.5) == loss.divergence(CHI_SQUARED) == math.inf
    assert loss.approximately_zero_concentrated(1.0) == 0.0
    assert loss.mean_concentrated() == (math.inf, math.inf)
    assert loss.divergence(HELLINGER) == 1.0
    assert loss.divergence(JENSEN_SHANNON) == pytest.approx(math.log(2.0))


def test_tiny_masses_and_large_losses_count():
    """A loss of 900 with probability e^-800 decides the Rényi divergence and underflows every float."""
    rare, rarer = Fraction(1, 2**1154), Fraction(1, 2**2452)
    loss = pkdp.PrivacyLoss.between([rare, 1 - rare], [rarer, 1 - rarer])
    exact = readings.renyi([(rare, rarer), (1 - rare, 1 - rarer)], 3.0)
    assert exact > 400.0
    assert_just_above(loss.renyi(3.0), exact)
    assert loss.delta(1.0) > 0.0


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        ([0.5, 0.4], [0.5, 0.5], "add up"),
        ([Fraction(1, 2), Fraction(1, 2) + Fraction(1, 10**12)], [0.5, 0.5], "add up"),
        ([0.5, 0.5], [0.5, 0.25, 0.25], "differ in length"),
        ([0.5, 0.5], {"a": 1.0}, "both be lists"),
        ([1.5, -0.5], [0.5, 0.5], "at least 0"),
        ([math.nan, 1.0], [0.5, 0.5], "at least 0"),
        ([True, False], [0.5, 0.5], "probabilities"),
        ("01", [0.5, 0.5], "list of probabilities"),
        ([], [], "add up"),
    ],
)
def test_what_is_no_law_is_refused(first, second, message):
    with pytest.raises(pkdp.ArgumentError, match=message):
        pkdp.PrivacyLoss.between(first, second)


@pytest.mark.parametrize(
    "call",
    [
        lambda loss: loss.delta(-0.1),
        lambda loss: loss.delta(math.nan),
        lambda loss: loss.delta(True),
        lambda loss: loss.delta(1.0, order="both"),
        lambda loss: loss.epsilon(1.5),
        lambda loss: loss.exceeding(math.inf),
        lambda loss: loss.renyi(0.5),
        lambda loss: loss.renyi("2"),
        lambda loss: loss.renyi(10**400),
        lambda loss: loss.zero_concentrated(-1.0),
        lambda loss: loss.approximately_zero_concentrated(-1e-9),
        lambda loss: loss.divergence(lambda ratio: ratio),
        lambda loss: loss.of("certificate"),
        lambda loss: loss.divergence(
            ConvexFunction(name="concave", value=lambda t: -((t - 1) ** 2), at_zero=0.0, growth=0.0)
        ),
        lambda loss: ConvexFunction(name="not 0 at 1", value=lambda t: t, at_zero=0.0, growth=1.0),
        lambda loss: ConvexFunction(name="steep", value=lambda t: t - 1, at_zero=-1.0, growth=1.0, slope=2.0),
        lambda loss: ConvexFunction(name="nothing", value=None, at_zero=0.0, growth=0.0),
        lambda loss: ConvexFunction(name="no slope", value=lambda t: t - 1, at_zero=0.0, growth=0.0, slope=math.inf),
        lambda loss: ConvexFunction(name="no limit", value=lambda t: t - 1, at_zero=math.nan, growth=0.0),
        lambda loss: alpha_divergence(1.0),
    ],
)
def test_arguments_are_checked(call):
    with pytest.raises(pkdp.ArgumentError):
        call(pkdp.PrivacyLoss.between([0.5, 0.5], [0.25, 0.75]))
