"""From δ back to ε: always on the safe side, tight, and infinite where no ε exists."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from thorough import few, one_in, thinned

import pkdp_pipeline as pkdp
from pkdp_pipeline.theorems.numerics import highest, invert, least_whole, smallest_epsilon

NOISE = pkdp.GeometricNoise(0.5)
CERTIFICATES = {
    "threshold": pkdp.certify(pkdp.Count(k=50), pkdp.AttackerModel(p_max=0.1)),
    "capped": pkdp.certify(pkdp.Count(k=20), pkdp.AttackerModel(p_max=0.005, unknown_max=1000)),
    "passive": pkdp.certify(pkdp.Count(k=30), pkdp.AttackerModel(p_max=0.1, known=20)),
    "complement": pkdp.certify(pkdp.Count(k=40, k_complement=30), pkdp.AttackerModel(p_min=0.3, p_max=0.6)),
    "count": pkdp.certify(pkdp.Count(), pkdp.AttackerModel(p_min=0.1, p_max=0.6, unknown=200)),
    "noisy count": pkdp.certify(pkdp.Count(noise=NOISE), pkdp.AttackerModel(p_min=0.1, p_max=0.6, unknown=20)),
    "presence": pkdp.certify(pkdp.Histogram(k=25), pkdp.AttackerModel(p_max=0.2)),
    "value": pkdp.certify(pkdp.Histogram(k=25), pkdp.AttackerModel(p_max=0.2), protects="value"),
    "between": pkdp.certify(pkdp.Histogram(k=60), pkdp.AttackerModel(p_max_between=0.7), protects="value"),
    "options": pkdp.certify(pkdp.Histogram(), pkdp.AttackerModel(p_min=0.2, unknown=100), protects="value"),
    "noise": pkdp.certify(pkdp.Histogram(noise=NOISE), pkdp.AttackerModel()),
    "noise, value": pkdp.certify(
        pkdp.Histogram(k=5, noise=NOISE, release_threshold=40), pkdp.AttackerModel(), protects="value"
    ),
}
DELTAS = (1e-200, 1e-60, 1e-12, 1e-9, 1e-6, 1e-3, 0.1, 0.9)


@thinned(4)
@pytest.mark.parametrize(
    ("name", "delta"),
    # Inverting a noisy count is slow close to the noise: one target will do.
    [("noisy count", 0.1), *one_in(5, product([name for name in CERTIFICATES if name != "noisy count"], DELTAS))],
)
def test_epsilon_reaches_its_delta_and_nothing_much_smaller_does(name, delta):
    certificate = CERTIFICATES[name]
    epsilon = certificate.epsilon(delta)
    if epsilon == math.inf:
        assert certificate.delta(2.0**20) > delta
        return
    assert certificate.delta(epsilon) <= delta
    if epsilon > 0.0:
        # The searches over vertices may step by their slack; the others are smooth.
        closer = 5e-3 if name == "value" else 1e-3 if name in ("count", "noisy count", "options", "passive") else 1e-6
        assert certificate.delta(epsilon * (1.0 - closer)) > delta


@pytest.mark.parametrize("name", CERTIFICATES)
def test_epsilon_at_the_ends(name):
    certificate = CERTIFICATES[name]
    assert certificate.epsilon(1.0) == 0.0
    nothing = certificate.epsilon(0.0)
    assert nothing == math.inf or certificate.delta(nothing) == 0.0


@thinned(4)
@pytest.mark.parametrize("name", CERTIFICATES)
def test_arrays_equal_scalars(name):
    points = np.array([[0.0, 1e-12, 0.05], [0.4, 1.0, 3.0]])
    certificate = CERTIFICATES[name]
    together = certificate.delta(points)
    lower, upper = certificate.delta_bounds(points)
    assert together.shape == lower.shape == upper.shape == points.shape
    assert together == pytest.approx(upper, rel=1e-12, abs=0.0)
    slack = 0.01 if name in ("count", "noisy count", "options") else 1e-11
    for index in np.ndindex(points.shape):
        alone = certificate.delta(float(points[index]))
        assert isinstance(alone, float)
        assert together[index] == pytest.approx(alone, rel=slack, abs=0.0)
        sides = certificate.delta_bounds(float(points[index]))
        assert isinstance(sides[0], float)
        assert sides[0] <= sides[1] == pytest.approx(alone, rel=slack, abs=0.0)


@thinned(4)
@pytest.mark.parametrize("name", CERTIFICATES)
def test_delta_does_not_grow_with_epsilon(name):
    values = CERTIFICATES[name].delta(np.linspace(0.0, 6.0, 61))
    assert np.all(values[1:] <= values[:-1] * 1.01 + 1e-300)


@given(st.integers(2, 80), st.floats(0.01, 0.95), st.floats(1e-30, 0.5))
@settings(max_examples=few(60))
def test_random_thresholds_invert_tightly(k, p_max, delta):
    certificate = pkdp.certify(pkdp.Count(k=k), pkdp.AttackerModel(p_max=p_max))
    epsilon = certificate.epsilon(delta)
    if epsilon == math.inf:
        assert delta < p_max ** (k - 1) * (1 + 1e-9)
        return
    assert certificate.delta(epsilon) <= delta
    assert epsilon == 0.0 or certificate.delta(epsilon * (1 - 1e-6)) > delta


@pytest.mark.parametrize(("k", "p_max"), [(2, 0.5), (5, 0.9), (3, 1e-3)])
def test_thresholds_leave_what_is_certain(k, p_max):
    certificate = pkdp.certify(pkdp.Count(k=k), pkdp.AttackerModel(p_max=p_max))
    assert certificate.epsilon(p_max ** (k - 1) * 0.999) == math.inf
    assert certificate.epsilon(p_max ** (k - 1) * 1.001) < math.inf


@pytest.mark.parametrize(("p_min", "p_max", "unknown"), [(0.1, 0.5, 20), (0.4, 0.9, 10), (0.5, 0.5, 8)])
def test_counts_leave_everybody_or_nobody(p_min, p_max, unknown):
    certificate = pkdp.certify(pkdp.Count(), pkdp.AttackerModel(p_min=p_min, p_max=p_max, unknown=unknown))
    least = max(p_max, 1 - p_min) ** unknown
    assert certificate.epsilon(least * 0.99) == math.inf
    assert certificate.epsilon(least * 1.02) < math.inf


@pytest.mark.parametrize("cells", [1, 2])
def test_noise_alone_is_differential_privacy(cells):
    protects = "presence" if cells == 1 else "value"
    certificate = pkdp.certify(pkdp.Histogram(noise=NOISE), pkdp.AttackerModel(), protects=protects)
    assert certificate.epsilon(0.0) == pytest.approx(cells * 0.5, rel=1e-9)
    assert certificate.worst_case.epsilon(0.0) == certificate.epsilon(0.0)


def test_the_smallest_epsilon_of_plain_curves():
    assert smallest_epsilon(lambda _: 0.0, 0.0) == 0.0
    assert smallest_epsilon(lambda _: 0.5, 0.4) == math.inf
    for crossing in (1e-8, 3e-4, 0.7, 1.0, 5.0, 1e4, 1e6):
        smallest = smallest_epsilon(lambda epsilon, scale=crossing: math.exp(-epsilon / scale), math.exp(-1.0))
        assert crossing <= smallest * (1 + 1e-15)
        assert smallest <= crossing * (1 + 1e-9)
        step = smallest_epsilon(lambda epsilon, edge=crossing: float(epsilon < edge), 0.5)
        assert crossing <= step <= crossing * (1 + 1e-5)


def test_a_curve_with_nan_is_never_taken_for_certified():
    assert smallest_epsilon(lambda _: math.nan, 0.5) == math.inf


@given(st.integers(1, 5000), st.integers(1, 5000), st.integers(1, 5000))
def test_the_least_whole_number(answer, start, most):
    tried = []

    def holds(n):
        tried.append(n)
        return n >= answer

    expected = (
        max(answer, start) if max(answer, start) <= max(most, start) and (answer <= most or answer <= start) else None
    )
    if start <= most:
        assert least_whole(holds, start, most) == expected
        assert len(tried) <= 40
        assert all(start <= n <= most for n in tried)


def test_an_inversion_that_certifies_nothing_in_its_searches_goes_on():
    searched = []

    def search(epsilon):
        searched.append(epsilon)
        # How far a search exceeds the attacker grows by more than the margin for it, seven times.
        return math.exp(-10.0 * epsilon) * 1.02 ** min(len(searched), 7), [0]

    start = 0.6 * math.log(10.0)
    epsilon = invert(1e-6, [0], lambda attackers, epsilon: math.exp(-10.0 * epsilon), search, spare=6, start=start)
    assert 6 < len(searched) <= 12
    assert math.exp(-10.0 * epsilon) * 1.02**7 <= 1e-6 < math.exp(-10.0 * epsilon) * 1.02**7 * 1.002


def test_a_function_that_rises_and_falls_is_highest_where_it_is_found():
    for peak in range(1, 60):
        assert highest(lambda place, peak=peak: -abs(place - peak), [1, 7, 20, 60]) == peak
    assert highest(lambda place: -abs(place - 123_456), [10, 1_000, 500_000]) == pytest.approx(123_456, rel=1e-3)
