"""The points of δ(ε): never below the certificate, never rising."""

from __future__ import annotations

import math

import numpy as np
import pytest
from thorough import thinned

import pkdp_pipeline as pkdp
from pkdp_pipeline.extras.report.statement import GuaranteeCurve

A = pkdp.AttackerModel
NOISE = pkdp.GeometricNoise(1.0)
PLAIN = pkdp.certify(pkdp.Histogram(k=30), A(p_max=0.1))
NOISED = pkdp.certify(pkdp.Histogram(k=12, noise=NOISE, release_threshold=30), A(p_max=0.1))
CERTIFICATES = {
    "threshold": PLAIN,
    "known": pkdp.certify(pkdp.Count(k=30), A(p_max=0.2, known=6)),
    "value": pkdp.certify(pkdp.Histogram(k=30), A(p_max=0.1), protects="value"),
    "no epsilon": pkdp.certify(pkdp.Histogram(k=30), A(p_max_between=0.9), protects="value"),
    "noised": NOISED,
    "noise": pkdp.certify(pkdp.Count(noise=NOISE), A()),
    "exact": pkdp.certify(pkdp.Count(), A(p_min=0.2, p_max=0.8, unknown=100)),
    "many": pkdp.certify(pkdp.Count(k=4000), A(p_max=0.1)),
    "total": pkdp.compose([(PLAIN, 90)], pkdp.IndependentGivenHabits()),
    "noised total": pkdp.compose([(NOISED, 7)], pkdp.IndependentGivenHabits()),
    "nothing": pkdp.compose([]),
}


@pytest.fixture(params=CERTIFICATES, scope="module", name="both")
def _both(request):
    certificate = CERTIFICATES[request.param]
    return certificate, GuaranteeCurve.of(certificate, points=61)


@thinned(3)
def test_it_is_the_certificate_at_its_points(both):
    certificate, curve = both
    attained, certified = certificate.delta_bounds(np.array(curve.epsilons))
    assert np.all(np.array(curve.certified) >= certified)
    np.testing.assert_allclose(curve.certified, certified, rtol=0.02, atol=1e-300)
    np.testing.assert_allclose(curve.attained, attained, rtol=0.02, atol=1e-300)
    assert np.all(np.array(curve.attained) <= curve.certified)
    assert all(np.all(np.diff(side) <= 0.0) for side in (curve.attained, curve.certified))


def test_it_begins_at_0_and_shows_the_mark_and_the_end_of_the_noise(both):
    certificate, curve = both
    assert curve.epsilons[0] == 0.0
    # No point is there twice, once with another last digit.
    assert np.all(np.diff(curve.epsilons) > 1e-9 * np.array(curve.epsilons[1:]))
    epsilon = certificate.epsilon(1e-6)
    assert curve.mark == (None if epsilon == math.inf else (epsilon, 1e-6))
    if curve.mark is not None:
        assert epsilon in curve.epsilons
        assert curve.certified[curve.epsilons.index(epsilon)] <= 1e-6
    pair = certificate.worst_case.parameters
    assert (curve.worst_case is None) == (certificate.worst_case.epsilon(1e-6) == math.inf)
    if curve.worst_case is not None:
        assert np.all(np.array(curve.worst_case) >= certificate.worst_case.delta(np.array(curve.epsilons)))
        assert np.all(np.array(curve.worst_case) >= curve.certified)
        assert pair[0] in curve.epsilons or pair[0] > curve.epsilons[-1]


def test_the_number_of_points_is_a_matter_of_theorem_and_size():
    assert len(GuaranteeCurve.of(PLAIN, points=21).epsilons) in (21, 22)
    slow = pkdp.certify(pkdp.Histogram(k=20), A(p_max=0.1, known=2), protects="value")
    assert len(GuaranteeCurve.of(slow, points=61).epsilons) in (16, 17)
    with pytest.raises(pkdp.ArgumentError, match="points"):
        GuaranteeCurve.of(PLAIN, points=1)
    with pytest.raises(pkdp.ArgumentError, match="delta"):
        GuaranteeCurve.of(PLAIN, 2.0)
