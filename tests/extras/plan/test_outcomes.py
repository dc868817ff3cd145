"""Expected errors and suppressed shares against sums over the law of the noise, and counts that are public."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pkdp_pipeline import ArgumentError, Count, GeometricNoise, Histogram
from pkdp_pipeline.extras.plan.planning import PublicCounts, expected_outcome
from pkdp_pipeline.model.mechanisms import chance_of_at_least, mean_absolute, mean_absolute_where_at_least
from pkdp_pipeline.releases.derived import expected_error


def law(noise, reach=4000):
    alpha = math.exp(-noise.epsilon)
    return {z: (1.0 - alpha) / (1.0 + alpha) * alpha ** abs(z) for z in range(-reach, reach + 1)}


@given(st.floats(0.05, 5.0), st.integers(-40, 40))
@settings(max_examples=60)
def test_the_law_of_the_noise(epsilon, least):
    noise = GeometricNoise(epsilon)
    chances = {z: p for z, p in law(noise, 1200).items() if z >= least}
    assert chance_of_at_least(noise, least) == pytest.approx(math.fsum(chances.values()), rel=1e-9)
    assert mean_absolute_where_at_least(noise, least) == pytest.approx(
        math.fsum(abs(z) * p for z, p in chances.items()), rel=1e-9, abs=1e-12
    )
    assert mean_absolute(noise) == pytest.approx(expected_error(Count(noise=noise)).mean_absolute, rel=1e-12)


@given(
    st.lists(st.integers(0, 30), min_size=1, max_size=6),
    st.one_of(st.none(), st.integers(1, 20)),
    st.one_of(st.none(), st.integers(0, 25)),
    st.floats(0.2, 3.0),
)
@settings(max_examples=60, deadline=None)
def test_outcomes_are_sums_over_the_law(counts, k, threshold, epsilon):
    noise = GeometricNoise(epsilon)
    mechanism = Histogram(k=k, noise=noise, release_threshold=threshold)
    outcome = expected_outcome(mechanism, PublicCounts.of(counts, source="a test"))
    shown = missed = lost = hidden = 0.0
    for count in counts:
        for z, p in law(noise, 300).items():
            published = (k is None or count >= k) and (threshold is None or count + z >= threshold)
            shown += p * published
            missed += p * published * abs(z)
            hidden += p * (not published) * (count > 0)
            lost += p * (not published) * count
    nonempty, people = sum(count > 0 for count in counts), sum(counts)
    assert outcome.suppressed_cells == pytest.approx(hidden / nonempty if nonempty else 0.0, rel=1e-9, abs=1e-12)
    assert outcome.suppressed_people == pytest.approx(lost / people if people else 0.0, rel=1e-9, abs=1e-12)
    if shown > 1e-9:
        assert outcome.mean_absolute_error == pytest.approx(missed / shown, rel=1e-6)


def test_without_noise_the_shares_are_counted():
    counts = PublicCounts.of({"a": 10, "b": 20, "c": 30, "d": 0}, source="a test")
    outcome = expected_outcome(Histogram(k=20), counts)
    assert outcome.mean_absolute_error == 0.0
    assert Fraction(outcome.suppressed_cells).limit_denominator(100) == Fraction(1, 3)
    assert Fraction(outcome.suppressed_people).limit_denominator(100) == Fraction(1, 6)
    assert expected_outcome(Histogram(k=31), counts).mean_absolute_error is None


def test_nothing_is_guessed_about_counts():
    for mechanism in (Histogram(k=20), Histogram(k=1, noise=GeometricNoise(1.0), release_threshold=15), Count(k=5)):
        outcome = expected_outcome(mechanism, None)
        assert (outcome.suppressed_cells, outcome.suppressed_people) == (None, None)
    # Where nothing is suppressed there is nothing to know.
    assert expected_outcome(Histogram(noise=GeometricNoise(1.0)), None).suppressed_people == 0.0
    # How many people are not counted is not among the counts.
    both = PublicCounts.of([50], source="a test")
    assert expected_outcome(Count(k=5, k_complement=5), both).suppressed_people is None


@pytest.mark.parametrize(
    "counts",
    [
        [3, 4],
        (3.0, 4.0),
        {"x": 3, "y": 4},
        np.array([3, 4]),
        pd.Series([3, 4], index=["x", "y"]),
        pd.DataFrame({"cell": ["x", "y"], "count": [3, 4]}),
        pl.DataFrame({"count": [3, 4]}),
    ],
)
def test_counts_are_read_from_what_holds_them(counts):
    read = PublicCounts.of(counts, source="the census of 2011")
    assert read.counts == (3, 4)
    assert read.people == 7
    assert all(type(count) is int for count in read.counts)
    assert read.basis == "If the counts are those of the census of 2011."


@pytest.mark.parametrize(
    "counts", [[], "34", 7, [1.5], [-1], [None], [True], pd.Series([3, pd.NA], dtype="Int64"), pd.DataFrame({"n": [1]})]
)
def test_counts_are_checked(counts):
    with pytest.raises(ArgumentError, match=r"count"):
        PublicCounts.of(counts, source="a test")


@pytest.mark.parametrize("source", ["", "  ", None])
def test_a_source_is_named(source):
    with pytest.raises(ArgumentError, match="source"):
        PublicCounts.of([1], source=source)


def test_protected_counts_are_called_so():
    assert "may be published" in PublicCounts.of([1], source="the clinic's own table", protected=True).basis


@given(st.integers(1, 200), st.integers(0, 10**6), st.sampled_from(["even", "zipf"]))
@settings(max_examples=100)
def test_assumed_counts_add_up(cells, people, shape):
    assumed = PublicCounts.assumed(cells=cells, people=people, shape=shape)
    assert len(assumed.counts) == cells
    assert assumed.people == people
    if shape == "even":
        assert max(assumed.counts) - min(assumed.counts) <= 1
    else:
        assert list(assumed.counts) == sorted(assumed.counts, reverse=True)
    assert "assumption" in assumed.source


def test_an_assumption_is_checked():
    for wrong in ({"cells": 0, "people": 1}, {"cells": 1, "people": -1}, {"cells": 1, "people": 1, "shape": "round"}):
        with pytest.raises(ArgumentError):
            PublicCounts.assumed(**wrong)
