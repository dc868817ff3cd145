"""No random attacker learns more from histograms without a threshold than the certificate says."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import Any

import flint
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle.attacks import search
from oracle.laws import BITS, exact_exp, lower_end
from oracle.releases import table_losses
from thorough import CLOSEST, examples, few

import pkdp_pipeline as pkdp
from pkdp_pipeline.theorems import without_suppression
from pkdp_pipeline.theorems.without_suppression import Options


@examples(quick=12, full=150)
def test_no_attacker_learns_more_about_the_option(examples: int) -> None:
    attackers, worst = search("options", examples=examples, batch=8)
    assert attackers >= examples * 8 * 45 // 100
    assert worst > CLOSEST[examples >= 150]


@examples(quick=12, full=150)
def test_no_attacker_learns_more_about_who_is_in_a_cell(examples: int) -> None:
    attackers, worst = search("cells", examples=examples, batch=8)
    assert attackers >= examples * 8 * 45 // 100
    assert worst > CLOSEST[examples >= 150]


def test_chances_that_underflow_do_not_lower_two_looks() -> None:
    # Both looks are as far out as all coins with 2^-200 in the one life, and with e^(-2 ε0) of that in the other: about
    # half of the smallest float, and rounded up to it.
    noise = 606.5
    coins = Options(theorem="noisy_options", unknown=200, p_min=0.5, noise=noise, looks=2)
    certified = float(coins.bracket(np.array([0.96 * noise]))[1][0])
    assert certified >= 2.0**-200 * -np.expm1(-0.04 * noise)


@pytest.mark.parametrize(("alpha", "width"), [*product([Fraction(1, 3), Fraction(9, 10)], range(5))])
def test_two_looks_are_drawn_from_one(alpha: Fraction, width: int) -> None:
    # Two looks whose smaller value is t above the number, `width` apart: in proportion to this, in fractions.
    def shape(t: int) -> Fraction:
        return alpha ** (abs(t) + abs(t + width)) / alpha**width

    def one_look(t: int) -> Fraction:
        return alpha ** (2 * abs(t))

    beta, reach = alpha**2, range(-width - 4, 5)
    shifts = {t: ((1 + beta**2) * shape(t) - beta * shape(t - 1) - beta * shape(t + 1)) / (1 - beta**2) for t in reach}
    assert min(shifts.values()) == 0
    assert {t for t, weight in shifts.items() if weight} == set(range(-width, 1))
    for t in range(-width - 20, 21):
        assert sum(weight * one_look(t - shift) for shift, weight in shifts.items()) == shape(t)


@pytest.mark.parametrize("noise", [0.3, 1.0])
@pytest.mark.parametrize("people", [1, 4])
def test_two_looks_are_certified_as_they_are(people: int, noise: float) -> None:
    mechanism, attacker = (
        pkdp.Histogram(noise=pkdp.GeometricNoise(noise)),
        pkdp.AttackerModel(p_min=0.5, unknown=people),
    )
    certificate = pkdp.certify(mechanism, attacker, protects="value")
    for epsilon in (0.0, 0.5 * noise, 1.5 * noise):
        sides = table_losses([[0.5, 0.5, 0.0]] * people, (0, 0), epsilon, np.exp, cells=2, lives=(0, 1), noise=noise)
        assert max(sides) * (1 - 1e-12) <= certificate.delta(epsilon) <= (1 + 1e-9) * max(sides)


@pytest.mark.parametrize("epsilon", [0.0, 0.7, 2.0])
def test_two_options_are_one_count(epsilon: float) -> None:
    # Whoever did not choose the one option chose the other: the table says no more than a count of fair coins.
    truth = max(table_losses([[0.5, 0.5, 0.0]] * 7, (0, 0), epsilon, np.exp, cells=2, lives=(0, 1)))
    certified = pkdp.certify(pkdp.Histogram(), pkdp.AttackerModel(p_min=0.5, unknown=7), protects="value")
    assert truth * (1 - 1e-12) <= certified.delta(epsilon) <= 1.01 * truth


@settings(max_examples=few(60), deadline=None)
@given(
    st.sampled_from(["presence", "value"]),
    st.tuples(st.sampled_from([0.2, 0.3]), st.sampled_from([0.5, 0.6])),
    st.lists(st.booleans(), min_size=1, max_size=5),
    st.tuples(st.integers(1, 2), st.sampled_from([0.4, 1.1]), st.sampled_from([None, 3])),
    st.sampled_from([0.1, 0.5, 1.0, 2.0]),
)
def test_a_k_before_the_noise_adds_no_more_than_it_hides(
    protects: Any, chances: Any, people: list[bool], shape: Any, epsilon: float
) -> None:
    (least, p), (k, noise, release) = chances, shape
    absent = least * (1 - p) / p if protects == "presence" else 0.0
    # In both cells as seldom as is declared; or in v, and as seldom absent as p allows.
    kinds = [(least, least, 1.0 - 2 * least), (least, 1.0 - least - absent, absent)]
    crowd = [kinds[more] for more in people]
    mechanism = pkdp.Histogram(k=k, noise=pkdp.GeometricNoise(noise), release_threshold=release)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(without_suppression, "MAX_HIDDEN", 10.0)
        attacker = pkdp.AttackerModel(p_min=least, unknown=len(crowd), p_max=p if protects == "presence" else None)
        bounds = without_suppression._noised(mechanism, attacker, frozenset(), value=protects == "value")
    assert bounds is not None
    with flint.ctx.workprec(BITS):
        laws = [[flint.arb(chance) for chance in person] for person in crowd]
        lives = (0, 2) if protects == "presence" else (0, 1)
        sides = table_losses(laws, (0, 0), epsilon, exact_exp, cells=2, lives=lives, k=k, noise=noise, release=release)
        truth = float(max(lower_end(flint.arb(side)) for side in sides))
    assert truth <= float(bounds.bound.certified(np.array([epsilon]))[0])


def test_of_many_people_a_k_before_the_noise_adds_next_to_nothing() -> None:
    noise = pkdp.GeometricNoise(0.3)
    attacker = pkdp.AttackerModel(p_min=0.5, unknown=80)
    two, hidden = (
        pkdp.certify(pkdp.Histogram(k=k, noise=noise), attacker, protects="value", cells=2) for k in (None, 4)
    )
    single, one_cell = (
        pkdp.certify(pkdp.Histogram(k=k, noise=noise), replace(attacker, p_max=0.5), cells=1) for k in (None, 4)
    )
    for epsilon in (0.05, 0.2, 0.28, 0.5):
        for exact, behind in ((two, hidden), (single, one_cell)):
            assert exact.delta(epsilon) <= behind.delta(epsilon) <= 1.01 * exact.delta(epsilon) + 1e-9
    # Only the exact counts were certified.
    assert hidden.epsilon(1e-6) < 0.61 < 0.9 < pkdp.certify(pkdp.Histogram(), attacker, protects="value").epsilon(1e-6)
