"""Whoever knows more is never certified a smaller δ, and no δ grows with ε."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from thorough import few, thinned

import pkdp_pipeline as pkdp

SEARCHED, ROUNDED = 0.0075, 1e-9
"""How far a searched bound (a box, options) and any other one may lie above its best value."""

EPSILONS = np.array([0.0, 0.1, 0.5, 1.0, 2.0, 4.0])

probabilities = st.floats(0.01, 0.95)


def certified(mechanism: Any, attacker: Any, protects: str = "presence") -> np.ndarray:
    try:
        return pkdp.certify(mechanism, attacker, protects=protects).delta(EPSILONS)
    except pkdp.NotCertifiableError:
        return np.ones(len(EPSILONS))


def assert_not_less(mechanism: Any, weaker: Any, stronger: Any, protects: str = "presence", slack: float = 0.0) -> None:
    less, more = certified(mechanism, weaker, protects), certified(mechanism, stronger, protects)
    # Where nothing is told at all, rounding up leaves the smallest of floats.
    assert np.all(more * (1.0 + slack + ROUNDED) + 1e-280 >= less), (mechanism, weaker, stronger, less, more)


@settings(max_examples=few(15))
@given(
    k=st.integers(2, 12),
    p=probabilities,
    more=st.floats(0.0, 1.0),
    known=st.integers(0, 8),
    extra=st.integers(1, 4),
    cap=st.none() | st.integers(0, 40),
    influence=st.sampled_from(["active", "passive"]),
    shape=st.sampled_from(["count", "presence", "value", "between"]),
)
def test_thresholds(
    k: int, p: float, more: float, known: int, extra: int, cap: int | None, influence: str, shape: str
) -> None:
    mechanism = pkdp.Count(k=k) if shape == "count" else pkdp.Histogram(k=k)
    protects = "value" if shape in {"value", "between"} else "presence"
    name = "p_max_between" if shape == "between" else "p_max"
    p = max(p, 0.5) if shape == "between" else p
    weaker = pkdp.AttackerModel(**{name: p}, known=known, influence=influence, unknown_max=cap)
    stronger = [
        replace(weaker, known=known + extra),
        replace(weaker, influence="active"),
        replace(weaker, **{name: p + (0.97 - p) * more}),
        replace(weaker, unknown_max=None if cap is None else cap + extra),
        replace(weaker, unknown_max=None),
    ]
    for attacker in stronger:
        assert_not_less(mechanism, weaker, attacker, protects)


@settings(max_examples=few(6, 2))
@given(
    low=probabilities,
    high=probabilities,
    down=st.floats(0.0, 1.0),
    up=st.floats(0.0, 1.0),
    unknown=st.integers(1, few(300, 60)),
    fewer=st.integers(0, few(50, 20)),
    noise=st.none() | st.floats(0.2, 5.0),
    k=st.none() | st.integers(2, 20),
)
def test_boxes(
    low: float, high: float, down: float, up: float, unknown: int, fewer: int, noise: float | None, k: int | None
) -> None:
    low, high = min(low, high), max(low, high)
    mechanism = pkdp.Count(k=k, noise=None if noise is None else pkdp.GeometricNoise(noise))
    weaker = pkdp.AttackerModel(p_min=low, p_max=high, unknown=unknown)
    for attacker in (
        replace(weaker, p_min=low * (1.0 - 0.9 * down)),
        replace(weaker, p_max=high + (0.99 - high) * up),
        replace(weaker, unknown=max(0, unknown - fewer)),
        replace(weaker, p_min=None),
        replace(weaker, unknown=None),
    ):
        assert_not_less(mechanism, weaker, attacker, slack=0.04)  # as close as searches in a box come


@settings(max_examples=few(15))
@given(
    low=probabilities,
    high=probabilities,
    above=st.integers(2, 12),
    k=st.none() | st.integers(2, 12),
    known=st.integers(0, 4),
    influence=st.sampled_from(["active", "passive"]),
)
def test_two_sided_thresholds(low: float, high: float, above: int, k: int | None, known: int, influence: str) -> None:
    low, high = min(low, high), max(low, high)
    mechanism = pkdp.Count(k=k, k_complement=above)
    weaker = pkdp.AttackerModel(p_min=low, p_max=high, known=known, influence=influence)
    for attacker in (
        replace(weaker, p_min=low / 2.0),
        replace(weaker, p_max=(high + 1.0) / 2.0),
        replace(weaker, known=known + 1),
        replace(weaker, influence="active"),
    ):
        assert_not_less(mechanism, weaker, attacker)


@settings(max_examples=few(10, 2))
@given(
    least=st.floats(0.01, 0.5),
    down=st.floats(0.0, 1.0),
    unknown=st.integers(1, 500),
    fewer=st.integers(0, 100),
    k=st.none() | st.integers(1, 10),
    noise=st.none() | st.floats(0.2, 2.0),
)
def test_options(least: float, down: float, unknown: int, fewer: int, k: int | None, noise: float | None) -> None:
    mechanism = pkdp.Histogram(k=k, noise=None if noise is None else pkdp.GeometricNoise(noise))
    weaker = pkdp.AttackerModel(p_min=least, unknown=unknown)
    for attacker in (
        replace(weaker, p_min=least * (1.0 - 0.9 * down)),
        replace(weaker, unknown=max(0, unknown - fewer)),
    ):
        assert_not_less(mechanism, weaker, attacker, "value", SEARCHED)


@settings(max_examples=few(10, 1))
@given(
    least=st.floats(0.01, 0.3),
    most=st.floats(0.3, 0.9),
    surer=st.floats(0.0, 1.0),
    unknown=st.integers(1, 500),
    noise=st.none() | st.floats(0.2, 2.0),
)
def test_people_who_may_be_in_every_cell(
    least: float, most: float, surer: float, unknown: int, noise: float | None
) -> None:
    mechanism = pkdp.Histogram(noise=None if noise is None else pkdp.GeometricNoise(noise))
    weaker = pkdp.AttackerModel(p_min=least, p_max=most, unknown=unknown)
    for attacker in (
        replace(weaker, p_min=least * (1.0 - 0.9 * surer)),
        replace(weaker, p_max=most + (1.0 - most) * surer * 0.9),
        replace(weaker, unknown=max(0, unknown - 50)),
    ):
        assert_not_less(mechanism, weaker, attacker, "presence", SEARCHED)


CERTIFICATES = [
    (pkdp.Count(k=7), {"p_max": 0.2}, "presence", 0.0),
    (pkdp.Count(k=7), {"p_max": 0.2, "known": 12}, "presence", 1e-3),
    (pkdp.Count(k=9), {"p_max": 0.2, "known": 3, "influence": "active", "unknown_max": 12}, "presence", 0.0),
    (pkdp.Count(k=4, k_complement=6), {"p_min": 0.3, "p_max": 0.8}, "presence", 0.0),
    (pkdp.Count(), {"p_min": 0.1, "p_max": 0.7, "unknown": 80}, "presence", SEARCHED),
    (pkdp.Count(noise=pkdp.GeometricNoise(1.3)), {"p_min": 0.1, "p_max": 0.7, "unknown": 80}, "presence", SEARCHED),
    (pkdp.Count(k=5, noise=pkdp.GeometricNoise(0.7), release_threshold=8), {"p_max": 0.3}, "presence", 0.0),
    (pkdp.Histogram(k=6), {"p_max": 0.3}, "value", 4e-3),
    (pkdp.Histogram(k=6), {"p_max": 0.3, "known": 3}, "value", 0.0),
    (pkdp.Histogram(k=6), {"p_max_between": 0.6, "known": 2}, "value", 0.0),
    (pkdp.Histogram(), {"p_min": 0.2, "unknown": 90}, "value", SEARCHED),
    (pkdp.Histogram(), {"p_min": 0.2, "p_max": 0.4, "unknown": 90}, "presence", SEARCHED),
    (pkdp.Histogram(noise=pkdp.GeometricNoise(1.0)), {"p_min": 0.2, "unknown": 90}, "value", SEARCHED),
    (pkdp.Histogram(k=3, noise=pkdp.GeometricNoise(1.0), release_threshold=6), {}, "value", 0.0),
]


@thinned(4)
@pytest.mark.parametrize(("mechanism", "attacker", "protects", "slack"), CERTIFICATES)
def test_no_delta_grows_with_epsilon(mechanism: Any, attacker: dict[str, Any], protects: str, slack: float) -> None:
    certificate = pkdp.certify(mechanism, pkdp.AttackerModel(**attacker), protects=protects)
    drawn = np.sort(
        np.append(np.random.default_rng(5).uniform(0.0, 4.0, few(24, 8)), np.linspace(0.0, 8.0, few(17, 9)))
    )
    deltas = certificate.delta(drawn)
    assert np.all(deltas[1:] <= deltas[:-1] * (1.0 + slack + ROUNDED))
    assert np.all((deltas >= 0.0) & (deltas <= 1.0))
    assert deltas[0] > deltas[-1] or deltas[0] == 0.0
