"""The worst case of noise against exact enumeration over all neighbouring inputs."""

from __future__ import annotations

import itertools
import math

import flint
import numpy as np
import pytest
from thorough import thinned

import pkdp_pipeline as pkdp
from pkdp_pipeline.theorems.worst_case import NoiseCurve

BITS = 300
HIDDEN = "hidden"


def published(count, noise, k, threshold, reach):
    """The law of one published cell: count, below k hidden, noise, below the threshold hidden."""
    if k is not None and count < k:
        return {HIDDEN: flint.arb(1)}
    alpha = (-flint.arb(noise)).exp()
    norm = (1 - alpha) / (1 + alpha)
    law = {}
    # The window is the same for every count; what lies beyond is one more outcome on either side.
    low, high = -reach, reach
    for value in range(low + 1, high):
        law[value] = norm * alpha ** abs(value - count)
    law["below"] = norm * alpha ** (count - low) / (1 - alpha)
    law["above"] = norm * alpha ** (high - count) / (1 - alpha)
    if threshold is None:
        return law
    shown = {key: mass for key, mass in law.items() if key == "above" or (key != "below" and key >= threshold)}
    hidden = sum((mass for key, mass in law.items() if key not in shown), flint.arb(0))
    return {**shown, HIDDEN: hidden}


def divergence(first, second, epsilon):
    growth, total = flint.arb(epsilon).exp(), flint.arb(0)
    for outcome in first:
        total += (first[outcome] - growth * second.get(outcome, flint.arb(0))).max(flint.arb(0))
    return total


def product(first, second):
    return {(a, b): p * q for (a, p), (b, q) in itertools.product(first.items(), second.items())}


def worst(noise, k, threshold, cells, epsilon, reach=20, most=14):
    """The largest divergence of neighbouring inputs, found by looking at all of them."""
    with flint.ctx.workprec(BITS):
        laws = [published(count, noise, k, threshold, reach) for count in range(most + 1)]
        best = flint.arb(0)
        if cells == 1:
            for count in range(most):
                for first, second in ((laws[count], laws[count + 1]), (laws[count + 1], laws[count])):
                    best = best.max(divergence(first, second, epsilon))
            return best
        for v, w in itertools.product(range(most), repeat=2):
            best = best.max(divergence(product(laws[v + 1], laws[w]), product(laws[v], laws[w + 1]), epsilon))
        return best


def curve(noise, k, threshold, cells):
    return NoiseCurve(theorem="noise", noise=noise, moves=cells == 2, appears_at=None if k is None else threshold - k)


@pytest.mark.parametrize("noise", [0.3, 1.0, 2.5])
@pytest.mark.parametrize(("k", "threshold"), [(None, None), (2, 2), (2, 5), (3, 1), (4, 0), (1, 9)])
@pytest.mark.parametrize("epsilon", [0.0, 0.25, 0.9, 1.0, 1.7, 2.5, 5.0, 7.0])
def test_presence_is_exact(noise, k, threshold, epsilon):
    lower, upper = curve(noise, k, threshold, 1).bracket(np.array([epsilon]))
    with flint.ctx.workprec(BITS):
        exact = worst(noise, k, threshold, 1, epsilon)
        assert not flint.arb(float(lower[0])) > exact
        assert not flint.arb(float(upper[0])) < exact
        assert not flint.arb(float(upper[0])) > exact * (1 + flint.arb(1e-12)) + flint.arb(1e-300)
        assert upper[0] - lower[0] <= 1e-13 * upper[0] + 1e-300


@thinned(4)
@pytest.mark.parametrize(
    ("noise", "epsilon"), [(0.5, 0.0), (0.5, 0.4), (0.5, 0.8), (0.5, 1.0), (1.5, 1.0), (1.5, 2.0), (1.5, 4.0)]
)
@pytest.mark.parametrize(("k", "threshold"), [(None, None), (2, 2), (2, 4), (3, 1)])
def test_value_is_exact(noise, epsilon, k, threshold):
    lower, upper = curve(noise, k, threshold, 2).bracket(np.array([epsilon]))
    with flint.ctx.workprec(BITS):
        exact = worst(noise, k, threshold, 2, epsilon, reach=9, most=6)
        assert not flint.arb(float(upper[0])) < exact
        assert not flint.arb(float(lower[0])) > exact * (1 + flint.arb(1e-12))
        assert not flint.arb(float(upper[0])) > exact * (1 + flint.arb(1e-12)) + flint.arb(1e-300)
        assert upper[0] - lower[0] <= 1e-13 * upper[0] + 1e-300


@pytest.mark.parametrize("cells", [1, 2])
@pytest.mark.parametrize(("k", "threshold"), [(2, 2), (2, 7), (5, 3), (20, 65)])
def test_what_remains_is_the_chance_of_appearing(cells, k, threshold):
    noise = 0.5
    alpha = math.exp(-noise)
    appears = sum((1 - alpha) / (1 + alpha) * alpha ** abs(z) for z in range(threshold - k, 400))
    epsilon, delta = curve(noise, k, threshold, cells).parameters
    assert epsilon == cells * noise
    assert delta == pytest.approx(appears, rel=1e-12)
    later = curve(noise, k, threshold, cells).bracket(np.array([epsilon, epsilon + 3.0]))[1]
    assert later == pytest.approx([appears, appears], rel=1e-12)


@pytest.mark.parametrize("cells", [1, 2])
def test_without_suppression_before_the_noise_nothing_remains(cells):
    bound = curve(0.7, None, None, cells)
    assert bound.parameters == (cells * 0.7, 0.0)
    lower, upper = bound.bracket(np.array([cells * 0.7, 2.0, 50.0]))
    assert upper.max() <= 5e-17
    assert lower.max() == 0.0


def test_a_relative_accuracy_close_to_the_noise():
    noise, epsilon = 1.0, math.nextafter(1.0, 0.0)
    upper = curve(noise, None, None, 1).bracket(np.array([epsilon]))[1][0]
    exact = (noise - epsilon) / (1 + math.exp(-1.0))
    assert upper == pytest.approx(exact, rel=1e-9)


@pytest.mark.parametrize("noise", [1e-9, 1e-3, 1.0, 40.0, 1e5, 1e300])
@pytest.mark.parametrize("gap", [None, -(10**9), -1, 0, 1, 10**9])
@pytest.mark.parametrize("cells", [1, 2])
def test_extreme_noise_stays_a_probability(noise, gap, cells):
    bound = NoiseCurve(theorem="noise", noise=noise, moves=cells == 2, appears_at=gap)
    lower, upper = bound.bracket(np.array([0.0, 5e-324, 1e-12, 1.0, 700.0, 1024.0, 1e6, 1e300]))
    assert np.all(np.isfinite(lower) & np.isfinite(upper))
    assert np.all((lower >= 0.0) & (lower <= upper) & (upper <= 1.0))
    assert np.all(np.diff(upper) <= 1e-15)


def test_a_threshold_without_a_second_one_after_the_noise_has_no_worst_case():
    certificate = pkdp.certify(
        pkdp.Count(k=20, noise=pkdp.GeometricNoise(0.5)), pkdp.AttackerModel(p_max=0.1), protects="presence"
    )
    assert certificate.worst_case.delta(50.0) == 1.0
    assert certificate.worst_case.epsilon(0.5) == math.inf
    assert certificate.worst_case.parameters is None
