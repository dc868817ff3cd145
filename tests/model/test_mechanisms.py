"""Counts, histograms and noise: every argument is checked, and dictionaries come back."""

from __future__ import annotations

import copy
import dataclasses
import json
import math
import pickle
from fractions import Fraction

import numpy as np
import pytest

from pkdp_pipeline import ArgumentError, Count, GeometricNoise, Histogram, Sum
from pkdp_pipeline.model.mechanisms import (
    MECHANISMS,
    cell_noise,
    cells_per_unit,
    key_columns,
    kind_of,
    mechanism_from_dict,
    mechanism_name,
    mechanism_to_dict,
    sensitivity,
    value_column,
    value_columns,
)

NOISE = GeometricNoise(0.5)
MADE = [
    Count(),
    Count(k=1),
    Count(k=20, k_complement=30),
    Count(noise=NOISE),
    Count(k=20, noise=GeometricNoise(1 / 3), release_threshold=25),
    Histogram(),
    Histogram(k=10**10),
    Histogram(noise=GeometricNoise(5e-324), release_threshold=0),
    Histogram(k=4, cells_per_unit=100),
    Histogram(totals=True),
    Sum((0, 5), NOISE),
    Sum((-7, 10**8), GeometricNoise(2e-7), release_threshold=10**18, cells_per_unit=3, cells_found=True),
]


@pytest.mark.parametrize("kind", [Count, Histogram])
@pytest.mark.parametrize(
    "value", [0, -1, True, 5.0, "5", [5], 5j, math.nan, np.float64(5), Fraction(5), np.bool_(True)]
)
def test_thresholds_are_checked(kind, value):
    with pytest.raises(ArgumentError, match=r"^k must be"):
        kind(k=value)
    with pytest.raises(ValueError, match=r"^k must be"):
        kind(k=value)


@pytest.mark.parametrize("value", [0, True, 5.0, "5"])
def test_the_other_threshold_of_a_count_is_checked(value):
    with pytest.raises(ArgumentError, match=r"^k_complement must be"):
        Count(k_complement=value)


@pytest.mark.parametrize("kind", [Count, Histogram])
@pytest.mark.parametrize("value", [-1, True, 5.0, "5", math.inf])
def test_the_threshold_after_the_noise_is_checked(kind, value):
    with pytest.raises(ArgumentError, match=r"^release_threshold must be"):
        kind(noise=NOISE, release_threshold=value)


@pytest.mark.parametrize("kind", [Count, Histogram])
@pytest.mark.parametrize("value", [0, 5, "x"])
def test_a_threshold_after_the_noise_needs_noise(kind, value):
    with pytest.raises(ArgumentError, match="release_threshold acts on the noisy count and needs noise"):
        kind(release_threshold=value)


@pytest.mark.parametrize("kind", [Count, Histogram])
@pytest.mark.parametrize("value", [0.5, "0.5", True, {"epsilon": 0.5}, GeometricNoise])
def test_noise_is_an_object(kind, value):
    with pytest.raises(ArgumentError, match=r"noise must be a GeometricNoise .* write noise=pkdp\.GeometricNoise"):
        kind(noise=value)


@pytest.mark.parametrize("value", [0, -0.5, math.nan, math.inf, True, "0.5", None, [0.5], 0.5j, 10**400])
def test_noise_has_a_positive_parameter(value):
    with pytest.raises(ArgumentError, match=r"^noise epsilon must be"):
        GeometricNoise(value)


def test_a_histogram_has_no_complement_and_arguments_have_names():
    with pytest.raises(TypeError):
        Histogram(k_complement=3)
    for kind in (Count, Histogram):
        with pytest.raises(TypeError):
            kind(5)


def test_numbers_from_numpy_become_plain_ones():
    count = Count(k=np.int64(5), noise=GeometricNoise(np.float32(0.5)), release_threshold=np.uint8(7))
    assert [type(value) for value in (count.k, count.release_threshold, count.noise.epsilon)] == [int, int, float]
    assert count == Count(k=5, noise=NOISE, release_threshold=7)


@pytest.mark.parametrize("mechanism", MADE)
def test_they_are_values(mechanism):
    with pytest.raises(dataclasses.FrozenInstanceError):
        mechanism.noise = None
    for back in (pickle.loads(pickle.dumps(mechanism)), copy.deepcopy(mechanism), dataclasses.replace(mechanism)):
        assert back == mechanism
        assert hash(back) == hash(mechanism)
    assert len(set(MADE)) == len(MADE)


@pytest.mark.parametrize("mechanism", MADE)
def test_dictionaries_come_back(mechanism):
    content = mechanism_to_dict(mechanism)
    assert content["mechanism"] == mechanism_name(mechanism)
    assert mechanism_from_dict(content) == mechanism
    assert mechanism_from_dict(json.loads(json.dumps(content))) == mechanism
    assert type(mechanism_from_dict(content)) is type(mechanism)
    named = {field.name for field in dataclasses.fields(mechanism)}
    # A document of one cell for each person says nothing about several, and that of other counts nothing of totals.
    rare = {
        "cells_per_unit": cells_per_unit(mechanism) == 1,
        "totals": not getattr(mechanism, "totals", False),
        "cells_found": not getattr(mechanism, "cells_found", False),
        "below": mechanism.below == "suppress",
        "display": mechanism.display is None,
    }
    assert set(content) == {"mechanism", *named} - {name for name, usual in rare.items() if usual}


def test_the_registry():
    assert dict(MECHANISMS) == {"count": Count, "histogram": Histogram, "sum": Sum}
    with pytest.raises(TypeError):
        MECHANISMS["mean"] = Count


@pytest.mark.parametrize("thing", [None, "count", Count, 5, NOISE])
def test_what_is_no_mechanism(thing):
    with pytest.raises(ArgumentError, match="mechanism must be one of Count, Histogram, Sum, not"):
        mechanism_name(thing)


@pytest.mark.parametrize("name", ["Count", "mean", "", None, 5, ["count"], {"a": 1}])
def test_unknown_names(name):
    with pytest.raises(ArgumentError, match="mechanism must be one of count, histogram, sum, got"):
        mechanism_from_dict({"mechanism": name})
    with pytest.raises(ArgumentError, match="mechanism must be one of count, histogram, sum, got None"):
        mechanism_from_dict({})


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ({"mechanism": "count", "threshold": 3}, "a count has no field 'threshold'"),
        ({"mechanism": "histogram", "k_complement": 3}, "a histogram has no field 'k_complement'"),
        ({"mechanism": "count", "noise": {}}, "noise must have the one field 'epsilon'"),
        ({"mechanism": "count", "noise": {"epsilon": 1.0, "scale": 1}}, "noise must have the one field 'epsilon'"),
        ({"mechanism": "count", "noise": 0.5}, "noise must be a GeometricNoise"),
        ({"mechanism": "count", "noise": {"epsilon": True}}, "noise epsilon must be"),
        ({"mechanism": "count", "k": True}, "k must be"),
        ({"mechanism": "count", 5: 1, "b": 2}, "a count has no field"),
        ({"mechanism": "sum", "noise": {"epsilon": 1.0}}, "a sum needs bounds"),
        ({"mechanism": "sum", "bounds": [0, 5]}, "a sum needs noise"),
        ({"mechanism": "sum", "bounds": [0, 5], "k": 5}, "a sum has no field 'k'"),
    ],
)
def test_malformed_dictionaries(content, words):
    before = copy.deepcopy(content)
    with pytest.raises(ArgumentError, match=words):
        mechanism_from_dict(content)
    assert content == before


@pytest.mark.parametrize(
    "bounds", [None, 5, "05", (5,), (0, 1, 2), (0, 0), (6, 5), (0, 5.0), (False, True), (0, 10**8 + 1), (-(10**9), 0)]
)
def test_bounds_are_two_whole_numbers_in_order(bounds):
    with pytest.raises(ArgumentError, match="bounds must be"):
        Sum(bounds, NOISE)


@pytest.mark.parametrize(
    ("noise", "arguments", "words"),
    [
        (None, {}, "a sum is published with noise only"),
        (0.5, {}, "noise must be a GeometricNoise"),
        (GeometricNoise(1e-14), {}, "wider noise does not fit 64-bit integers"),
        (NOISE, {"release_threshold": -1}, "release_threshold must be"),
        (NOISE, {"release_threshold": 5.0}, "release_threshold must be"),
        (NOISE, {"cells_per_unit": 0}, "cells_per_unit must be"),
        (NOISE, {"cells_per_unit": 101}, "cells_per_unit must be"),
        (NOISE, {"cells_found": 1, "release_threshold": 5}, "cells_found must be True or False"),
        (NOISE, {"cells_found": True}, "need release_threshold"),
    ],
)
def test_a_sum_is_checked(noise, arguments, words):
    with pytest.raises(ArgumentError, match=words):
        Sum((-100, 7), noise, **arguments)


def test_what_a_sum_is_made_of():
    plain = Sum([np.int64(-3), 7], GeometricNoise(1.0), release_threshold=9)
    assert plain.bounds == (-3, 7)
    assert (sensitivity(plain), sensitivity(Count()), cell_noise(plain)) == (7, 1, GeometricNoise(1 / 7))
    assert plain.of_found_cells() == Sum((-3, 7), GeometricNoise(1.0), release_threshold=9, cells_found=True)
    with pytest.raises(ArgumentError, match="need release_threshold"):
        Sum((0, 1), NOISE).of_found_cells()
    assert kind_of(plain) == kind_of(plain, "value") == "pure noise"
    assert kind_of(plain.of_found_cells()) == "noised"
    assert repr(plain) == "Sum(bounds=(-3, 7), noise=GeometricNoise(epsilon=1.0), release_threshold=9)"


def test_the_columns_of_a_public_table():
    assert value_columns(Sum((0, 5), NOISE)) == ("sum",)
    assert key_columns(["clinic", "sum"]) == ["clinic"]
    assert key_columns(iter(["sum", "sex", "count", "exact"])) == ["sum", "sex"]
    assert value_column(["a", "sum"]) == "sum"
    assert value_column(["sum", "count"]) == "count"
