"""The noise is the declared one, drawn exactly, and its error is known beforehand."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction

import flint
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from thorough import one_in

import pkdp_pipeline as pkdp
from pkdp_pipeline.certificates.release_certificate import ReleaseCertificate
from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.model.mechanisms import Count, GeometricNoise, Histogram, check_noise, noise_scale
from pkdp_pipeline.releases.derived import expected_error
from pkdp_pipeline.releases.public_table import add_noise

DRAWS = 40_000


def probability(z: int, epsilon: float) -> float:
    alpha = math.exp(-epsilon)
    return (1 - alpha) / (1 + alpha) * alpha ** abs(z)


@pytest.mark.parametrize("epsilon", one_in(3, [1.0, 0.3, 2.5]))
def test_the_noise_has_the_two_sided_geometric_law(epsilon):
    draws = Counter(value - 7 for value in add_noise([7] * DRAWS, GeometricNoise(epsilon)))
    widest = next(z for z in range(200) if DRAWS * probability(z + 1, epsilon) < 20)
    observed = [draws[z] for z in range(-widest, widest + 1)]
    expected = [DRAWS * probability(z, epsilon) for z in range(-widest, widest + 1)]
    observed.append(DRAWS - sum(observed))
    expected.append(DRAWS - sum(expected))
    # A correct sampler fails this once in 1e9 runs.
    assert stats.chisquare(observed, expected).pvalue > 1e-9


def test_cells_have_independent_noise():
    draws = add_noise([0] * DRAWS, GeometricNoise(0.5))
    same = sum(first == second for first, second in zip(draws[::2], draws[1::2], strict=True))
    pairs = DRAWS // 2
    expected = sum(probability(z, 0.5) ** 2 for z in range(-200, 201))
    assert abs(same - pairs * expected) < 6.5 * math.sqrt(pairs * expected)


@given(st.floats(min_value=1e-15, max_value=1e300))
def test_the_drawn_noise_is_never_less_than_declared(epsilon):
    scale = Fraction(noise_scale(GeometricNoise(epsilon)))
    assert scale * Fraction(epsilon) >= 1
    assert scale * Fraction(epsilon) <= 1 + Fraction(1, 2**51)


def test_the_widest_noise_stays_inside_its_integers():
    drawn = add_noise([2**40] * 200, GeometricNoise(1e-15))
    assert max(abs(value) for value in drawn) < 2**62
    assert len(set(drawn)) > 150
    with pytest.raises(ArgumentError, match="64-bit"):
        check_noise(GeometricNoise(1e-16))
    with pytest.raises(ArgumentError, match="64-bit"):
        add_noise([1], GeometricNoise(1e-300))


def test_hardly_any_noise_is_hardly_any_noise():
    assert add_noise([3, 4], GeometricNoise(1e300)) == [3, 4]
    assert add_noise([], GeometricNoise(1.0)) == []


@pytest.mark.parametrize("epsilon", [0.01, 0.2, 1.0, 3.0, 50.0])
def test_the_expected_error_is_that_of_the_law(epsilon):
    law = {z: probability(z, epsilon) for z in range(-9000, 9001)}
    error = expected_error(Count(noise=GeometricNoise(epsilon)))
    assert error.mean_absolute == pytest.approx(sum(abs(z) * p for z, p in law.items()), rel=1e-9, abs=1e-15)
    assert error.standard_deviation == pytest.approx(
        math.sqrt(sum(z * z * p for z, p in law.items())), rel=1e-9, abs=1e-15
    )

    def beyond(bound):
        return sum(p for z, p in law.items() if abs(z) > bound)

    assert beyond(error.bound_95) <= 0.05
    assert error.bound_95 == 0 or beyond(error.bound_95 - 1) > 0.05


def test_the_expected_error_says_what_is_suppressed():
    assert expected_error(Count()).suppression == "The count is published exactly."
    exact = expected_error(Histogram(k=5))
    assert (exact.mean_absolute, exact.standard_deviation, exact.bound_95) == (0.0, 0.0, 0)
    assert exact.suppression == "Every cell is published only when it is at least 5."
    everything = Count(k=5, k_complement=6, noise=GeometricNoise(1.0), release_threshold=7)
    assert expected_error(everything).suppression == (
        "The count is published only when it is at least 5, then published only when at least 6 people are not "
        "counted, then given two-sided geometric noise with epsilon 1.0, then published only when the noisy value is "
        "at least 7."
    )
    with pytest.raises(AttributeError):
        exact.bound_95 = 1


@pytest.mark.parametrize("epsilon", [0.01, 0.3, 1.987, 0.7310585, 3.3, 49.0])
@pytest.mark.parametrize("gap", [-20, 0, 1, 50, 336])
def test_a_cell_appears_no_more_often_under_the_noise_drawn_than_certified(epsilon, gap):
    noise = GeometricNoise(epsilon)
    mechanism = Histogram(k=400, noise=noise, release_threshold=400 + gap)
    certificate = ReleaseCertificate(mechanism=mechanism, attacker=pkdp.AttackerModel(), protects="presence")
    _, certified = certificate.worst_case.parameters
    with flint.ctx.workprec(4000):
        alpha = (-1 / flint.arb(noise_scale(noise))).exp()
        drawn = alpha**gap / (1 + alpha) if gap >= 0 else 1 - alpha ** (1 - gap) / (1 + alpha)
        assert flint.arb(certified) >= drawn
        assert flint.arb(certified) <= drawn * (1 + flint.arb(1e-9)) + flint.arb(1e-320)
