"""Bounds of sums: what each costs, in noise and in what it cuts off, and the least noise for a target."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from pkdp_pipeline import (
    ArgumentError,
    GeometricNoise,
    NotCertifiableError,
    Sum,
    certify,
    smallest_noise,
    smallest_release_threshold,
)
from pkdp_pipeline.planning import choices, sum_choices

GOAL = {"epsilon": 1.0, "delta": 1e-6}


def test_wider_bounds_need_more_noise_and_narrower_ones_cut_off():
    people = {1: 40, 2: 20, 8: 5, 30: 1}
    listed = sum_choices([(0, 50), (0, 2), (0, 10)], **GOAL, contributions=people)
    assert [choice.error for choice in listed] == sorted(choice.error for choice in listed)
    by_bounds = {choice.mechanism.bounds: choice for choice in listed}
    assert {bounds: choice.cut_off for bounds, choice in by_bounds.items()} == {(0, 2): -58, (0, 10): -20, (0, 50): 0}
    for (_, upper), choice in by_bounds.items():
        assert certify(choice.mechanism).delta(1.0) <= 1e-6
        assert choice.mean_absolute_error == pytest.approx(upper, rel=0.2 / upper)
    assert sum_choices([(0, 2)], **GOAL)[0].cut_off is None
    with pytest.raises(ArgumentError, match="contributions"):
        sum_choices([(0, 2)], **GOAL, contributions={0.5: 3})


@pytest.mark.parametrize(
    ("mechanism", "protects"),
    [
        (Sum((0, 5), GeometricNoise(1.0)), "presence"),
        (Sum((-3, 5), GeometricNoise(1.0), cells_per_unit=2), "value"),
        (Sum((0, 5), GeometricNoise(1.0), release_threshold=100).of_found_cells(), "presence"),
    ],
)
def test_the_least_noise_reaches_the_target_and_less_does_not(mechanism, protects):
    noise = smallest_noise(mechanism, **GOAL, protects=protects)
    assert certify(replace(mechanism, noise=noise), protects=protects).delta(1.0) <= 1e-6
    less = GeometricNoise(noise.epsilon * (1 + 1e-4))
    assert certify(replace(mechanism, noise=less), protects=protects).delta(1.0) > 1e-6


def test_a_threshold_for_cells_that_are_found():
    mechanism = Sum((0, 5), GeometricNoise(0.5), release_threshold=10).of_found_cells()
    with pytest.raises(NotCertifiableError, match="Raise release_threshold"):
        smallest_noise(mechanism, **GOAL)
    least = smallest_release_threshold(mechanism, **GOAL)
    assert certify(replace(mechanism, release_threshold=least)).delta(1.0) <= 1e-6
    assert certify(replace(mechanism, release_threshold=least - 1)).delta(1.0) > 1e-6
    assert least == pytest.approx(5 + 10 * math.log(1e6), abs=10)


def test_counts_alone_are_chosen_among():
    with pytest.raises(ArgumentError, match="kind must be one of 'count', 'histogram'"):
        choices(None, **GOAL, kind="sum")
