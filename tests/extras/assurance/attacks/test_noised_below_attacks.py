"""Counts exact from k on and noised below: the enumeration is right, and no attacker exceeds what is certified."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from attack_cases import crowds
from hypothesis import given, settings
from hypothesis import strategies as st
from thorough import few, thinned

import pkdp_pipeline as pkdp
from pkdp_pipeline.extras.assurance.attacks.crowd import Crowd, Group, is_admitted
from pkdp_pipeline.extras.assurance.attacks.enumeration import enumerated

_FAR = 60
"""Noise of ε0 = 1 or more is further from 0 with a chance below 1e-25."""


def _shown(count: int, k: int, noise: float, release: int | None, from_one: bool) -> dict[object, float]:
    """Return the law of what is published of one count, as it is defined."""
    if count >= k:
        return {(count, True): 1.0}
    alpha = math.exp(-noise)
    law: Counter[object] = Counter()
    for value in range(count - _FAR, count + _FAR + 1):
        silent = (release is not None and value < release) or (from_one and count == 0)
        law[None if silent else (value, False)] += (1 - alpha) / (1 + alpha) * alpha ** abs(value - count)
    return dict(law)


@thinned(4)
@pytest.mark.parametrize("seed", range(12))
def test_the_enumeration_is_that_of_the_definition(seed: int) -> None:
    rng = np.random.default_rng([seed, 3])
    cells, k = 1 + seed % 2, int(rng.integers(2, 5))
    noise, epsilon = float(rng.uniform(1, 3)), float(rng.uniform(0, 2))
    release, from_one = (None, 1, 3)[int(rng.integers(3))], bool(rng.integers(2))
    chances = rng.dirichlet([1] * (cells + 1), 3)[:, :cells].tolist()
    people = tuple(Group(people=1, chances=tuple(row)) for row in chances)
    crowd = Crowd(cells=cells, unknown=people, controlled=(1, 0)[:cells], second=1 if cells == 2 else None)
    sides: list[Counter[object]] = []
    for life in (crowd.first, crowd.second):
        side: Counter[object] = Counter()
        for places in itertools.product(range(cells + 1), repeat=3):
            weight = math.prod([*row, 1 - sum(row)][place] for row, place in zip(chances, places, strict=True))
            counts = [places.count(cell) + crowd.controlled[cell] + (life == cell) for cell in range(cells)]
            laws = [_shown(count, k, noise, release, from_one) for count in counts]
            for shown in itertools.product(*(law.items() for law in laws)):
                side[tuple(symbol for symbol, _ in shown)] += weight * math.prod(chance for _, chance in shown)
        sides.append(side)
    first, second = sides
    truth = sum(max(0.0, first[symbol] - math.exp(epsilon) * second[symbol]) for symbol in first)
    below = "noise_from_1" if from_one else "noise"
    mechanism = pkdp.Histogram(k=k, noise=pkdp.GeometricNoise(noise), release_threshold=release, below=below)
    bounds = enumerated(mechanism, crowd, epsilon)
    assert bounds is not None
    assert float(bounds.lower) == pytest.approx(truth, rel=1e-9, abs=1e-12)


@settings(max_examples=few(40))
@given(st.integers(2, 12), st.sampled_from([0.05, 0.2, 0.5, 0.8]), st.floats(0.1, 2.0), st.floats(0.0, 4.0), st.data())
def test_no_admitted_crowd_tells_more_than_is_certified(
    k: int, p: float, noise: float, epsilon: float, data: st.DataObject
) -> None:
    protects = data.draw(st.sampled_from(["presence", "presence", "value"]))
    share = {"p_max_between": max(p, 0.5)} if protects == "value" and data.draw(st.booleans()) else {"p_max": p}
    known = data.draw(st.integers(0, min(3, k - 2)))
    attacker = pkdp.AttackerModel(**share, known=known, influence=data.draw(st.sampled_from(["active", "passive"])))
    release = data.draw(st.none() | st.integers(0, 2 * k))
    below = data.draw(st.sampled_from(["noise", "noise_from_1"]))
    mechanism = pkdp.Histogram(k=k, noise=pkdp.GeometricNoise(noise), release_threshold=release, below=below)
    try:
        certificate = pkdp.certify(mechanism, attacker, protects=protects)
    except pkdp.NotCertifiableError:
        return
    delta = Fraction(certificate.delta(epsilon))
    start = data.draw(st.integers(0, 7))
    for crowd in crowds(certificate, epsilon)[start::8]:
        assert is_admitted(crowd, certificate)
        bounds = enumerated(mechanism, crowd, epsilon)
        assert bounds is None or bounds.lower <= delta, crowd
