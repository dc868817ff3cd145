"""How the definitions relate: orders between readings, data processing, products, mixtures, limits."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import readings
from oracle.losses import reversed_pair
from test_explicit_pairs import loss_between, pairs
from thorough import examples, thinned

import pkdp_pipeline as pkdp
from pkdp_pipeline.extras.theory.privacy_loss import (
    CHI_SQUARED,
    HELLINGER,
    JENSEN_SHANNON,
    TOTAL_VARIATION,
    alpha_divergence,
)

#: A reading that is rounded up may exceed one that is larger by this much.
ROUNDED = 1.0 + 1e-9
TRANSFERABLE = {
    "delta": lambda loss: loss.delta(0.4),
    "kl": lambda loss: loss.kl(),
    "renyi": lambda loss: loss.renyi(2.5),
    "zero": lambda loss: loss.zero_concentrated(),
    "approximately zero": lambda loss: loss.approximately_zero_concentrated(0.05),
    "total variation": lambda loss: loss.total_variation(),
    "hellinger": lambda loss: loss.divergence(HELLINGER),
    "chi squared": lambda loss: loss.divergence(CHI_SQUARED),
    "jensen shannon": lambda loss: loss.divergence(JENSEN_SHANNON),
}


@examples(quick=3, full=200)
def test_orders_of_the_definitions(examples):
    @settings(max_examples=examples)
    @given(pair=pairs(), low=st.floats(1.0001, 20.0), more=st.floats(0.01, 20.0), epsilon=st.floats(0.0, 3.0))
    def check(pair, low, more, epsilon):
        loss = loss_between(pair)
        assert loss.kl() <= loss.renyi(low) * ROUNDED
        assert loss.renyi(low) <= loss.renyi(low + more) * ROUNDED
        assert loss.renyi(low + more) <= loss.renyi(math.inf) * ROUNDED
        assert loss.delta(epsilon) <= loss.pair_exceeding(epsilon) * ROUNDED
        assert loss.total_variation() == pytest.approx(loss.delta(0.0), rel=1e-12)
        assert loss.total_variation() == pytest.approx(loss.divergence(TOTAL_VARIATION), rel=1e-12, abs=1e-300)
        largest, concentrated = loss.renyi(math.inf), loss.zero_concentrated()
        assert concentrated <= largest**2 / 2.0 * ROUNDED
        assert loss.kl() <= concentrated * ROUNDED
        assert loss.renyi(low) <= concentrated * low * ROUNDED
        assert loss.approximately_zero_concentrated(0.1) <= concentrated
        assert loss.approximately_zero_concentrated(0.2) <= loss.approximately_zero_concentrated(0.1) * (1.0 + 2e-7)
        assert loss.epsilon(0.0) <= largest
        assert loss.delta(largest if largest < math.inf else 1e6) == max(loss.infinite, loss.other_only)
        # Cauchy–Schwarz, and Hellinger's distance between its powers.
        squared = loss.divergence(HELLINGER)
        assert squared <= loss.total_variation() * ROUNDED <= math.sqrt(2.0 * squared) * ROUNDED**2 + 1e-150
        assert loss.divergence(alpha_divergence(2.0)) == pytest.approx(loss.divergence(CHI_SQUARED) / 2.0, rel=1e-12)
        if largest < 20.0:
            assert loss.renyi(2.0) == pytest.approx(math.log1p(loss.divergence(CHI_SQUARED)), rel=1e-9)

    check()


@examples(quick=5, full=500)
def test_limits_agree(examples):
    @settings(max_examples=examples)
    @given(pair=pairs(positive=True))
    def check(pair):
        loss = loss_between(pair)
        assert loss.renyi(1.0) == loss.kl()
        assert loss.renyi(1.0 + 1e-13) == pytest.approx(loss.kl(), rel=1e-9)
        largest = loss.renyi(math.inf)
        assert loss.renyi(1e7) == pytest.approx(largest, rel=1e-4)
        assert loss.epsilon(0.0) == pytest.approx(largest, rel=1e-9)

    check()


@thinned(3)
@pytest.mark.parametrize("name", TRANSFERABLE)
@examples(quick=4, full=150)
def test_putting_outcomes_together_never_tells_more(examples, name):
    reading = TRANSFERABLE[name]

    @settings(max_examples=examples)
    @given(pair=pairs(), labels=st.lists(st.integers(0, 2), min_size=6, max_size=6))
    def check(pair, labels):
        whole, less = loss_between(pair), loss_between(readings.merged(pair, labels[: len(pair)]))
        assert reading(less) <= reading(whole) * (1.0 + 2e-7)

    check()


@examples(quick=3, full=200)
def test_what_a_dominating_pair_says_holds_for_all_that_it_dominates(examples):
    @settings(max_examples=examples)
    @given(
        pair=pairs(),
        labels=st.lists(st.integers(0, 2), min_size=6, max_size=6),
        epsilon=st.floats(0.01, 2.0),
    )
    def check(pair, labels, epsilon):
        own = loss_between(pair)
        whole = pkdp.PrivacyLoss(first=own.first, second=own.second, dominating=True)
        less = loss_between(readings.merged(pair, labels[: len(pair)]))
        assert less.pair_exceeding(epsilon) <= whole.exceeding(epsilon) * ROUNDED
        assert own.pair_exceeding(epsilon) <= whole.exceeding(epsilon) * ROUNDED
        assert whole.exceeding(epsilon) >= whole.delta(epsilon)
        (mean, deviation), (least_mean, least_deviation) = whole.mean_concentrated(), less.pair_mean_concentrated()
        assert least_mean <= mean * ROUNDED
        assert least_deviation <= deviation * (1.0 + 1e-4) + 1e-9

    check()


def test_the_pair_shows_a_large_loss_more_rarely_than_what_it_dominates():
    """Losses log 8 and log 2; together they are log(16/5), above 1, with three times the probability."""
    pair = [
        (Fraction(8, 40), Fraction(1, 40)),
        (Fraction(8, 40), Fraction(4, 40)),
        (Fraction(24, 40), Fraction(35, 40)),
    ]
    own = loss_between(pair)
    less = loss_between(readings.merged(pair, [0, 0, 1]))
    assert less.delta(1.0) <= own.delta(1.0)
    assert own.pair_exceeding(1.0, order="first") == pytest.approx(0.2)
    assert less.pair_exceeding(1.0, order="first") == pytest.approx(0.4)
    whole = pkdp.PrivacyLoss(first=own.first, second=own.second, dominating=True)
    assert whole.exceeding(1.0, order="first") >= 0.4


def test_putting_outcomes_together_can_make_a_loss_stray_farther():
    """Mean-concentration is not closed under post-processing: 1.892 after, 1.839 before."""
    pair = [(Fraction(p, 43), Fraction(q, 43)) for p, q in ((1, 22), (29, 7), (13, 14))]
    whole, less = loss_between(pair), loss_between(readings.merged(pair, [0, 1, 1]))
    both = (readings.merged(pair, [0, 1, 1]), reversed_pair(readings.merged(pair, [0, 1, 1])))
    assert max(map(readings.tau_at_least, both)) > 1.02 * whole.pair_mean_concentrated()[1]
    assert less.pair_mean_concentrated()[1] > 1.02 * whole.pair_mean_concentrated()[1]
    dominating = pkdp.PrivacyLoss(first=whole.first, second=whole.second, dominating=True)
    assert less.pair_mean_concentrated()[1] <= dominating.mean_concentrated()[1]


@examples(quick=5, full=1000)
def test_no_better_bound_on_large_losses_follows(examples):
    """Put the outcomes with the largest losses together, one of them in part: the bound is attained."""

    @settings(max_examples=examples)
    @given(pair=pairs(positive=True), epsilon=st.floats(0.01, 1.5))
    def check(pair, epsilon):
        own = loss_between(pair)
        whole = pkdp.PrivacyLoss(first=own.first, second=own.second, dominating=True)
        growth, first, second = Fraction(math.exp(epsilon)), Fraction(0), Fraction(0)
        for p, q in sorted(pair, key=lambda atom: atom[0] / atom[1], reverse=True):
            surplus = first - growth * second
            share = Fraction(1) if growth * q - p <= surplus else surplus / (growth * q - p)
            first, second = first + share * p, second + share * q
        bound = whole.exceeding(epsilon, order="first")
        assert float(first) == pytest.approx(bound, rel=1e-9, abs=1e-12)

    check()


@examples(quick=4, full=150)
def test_independent_releases_add_up(examples):
    @settings(max_examples=examples)
    @given(first_pair=pairs(), second_pair=pairs(), alpha=st.floats(1.001, 30.0))
    def check(first_pair, second_pair, alpha):
        both = loss_between(readings.products(first_pair, second_pair))
        single, second = loss_between(first_pair), loss_between(second_pair)
        for order in ("first", "second"):
            for reading in (
                lambda loss, order=order: loss.kl(order=order),
                lambda loss, o=order: loss.renyi(alpha, order=o),
            ):
                assert reading(both) == pytest.approx(reading(single) + reading(second), rel=1e-9, abs=1e-12)
        assert both.zero_concentrated() <= (single.zero_concentrated() + second.zero_concentrated()) * (1.0 + 1e-6)

    check()


@examples(quick=4, full=150)
def test_mixtures_tell_no_more_than_their_parts_on_average(examples):
    @settings(max_examples=examples)
    @given(weights=st.lists(st.integers(0, 20), min_size=16, max_size=16), share=st.fractions(0, 1, max_denominator=20))
    def check(weights, share):
        laws = [weights[4 * row : 4 * row + 4] for row in range(4)]
        if not all(map(any, laws)):
            return
        p, q, r, s = ([Fraction(weight, sum(law)) for weight in law] for law in laws)
        mixed = [
            (share * a + (1 - share) * c, share * b + (1 - share) * d) for a, b, c, d in zip(p, q, r, s, strict=True)
        ]
        for name in ("delta", "kl", "total variation", "hellinger", "chi squared", "jensen shannon"):
            reading = TRANSFERABLE[name]
            of_first, of_second = reading(pkdp.PrivacyLoss.between(p, q)), reading(pkdp.PrivacyLoss.between(r, s))
            parts = [float(part) * value for part, value in ((share, of_first), (1 - share, of_second)) if part]
            assert reading(loss_between(mixed)) <= sum(parts) * ROUNDED + 1e-12

    check()


@examples(quick=5, full=500)
def test_the_orders_are_those_of_the_reversed_pair(examples):
    @settings(max_examples=examples)
    @given(pair=pairs(), epsilon=st.floats(0.0, 2.0))
    def check(pair, epsilon):
        loss, back = loss_between(pair), loss_between(reversed_pair(pair))
        assert loss.reversed() == back
        assert loss.delta(epsilon, order="second") == back.delta(epsilon, order="first")
        assert loss.kl() == max(loss.kl(order="first"), back.kl(order="first"))

    check()
