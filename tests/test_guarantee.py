"""A guarantee is the pointwise smallest of its bounds, and its ε that of the first to reach the target."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

from pkdp_pipeline import ArgumentError
from pkdp_pipeline.guarantee import Guarantee, epsilon_points


class Line:
    """A bound that falls exponentially from `start`."""

    theorem = "line"
    slack = 0.0

    def __init__(self, start, rate):
        self.start, self.rate = start, rate

    def bracket(self, epsilons):
        values = self.start * np.exp(-self.rate * epsilons)
        return np.zeros(len(epsilons)), values


def test_without_bounds_there_is_no_guarantee():
    nothing = Guarantee(())
    assert nothing.delta(3.0) == 1.0
    assert nothing.delta([0.0, 1e6]).tolist() == [1.0, 1.0]
    assert nothing.epsilon(0.999) == math.inf
    assert nothing.epsilon(1.0) == 0.0
    assert nothing.parameters is None


def test_the_smallest_bound_holds_at_every_point():
    steep, flat = Line(0.9, 3.0), Line(0.1, 0.5)
    both = Guarantee((steep, flat))
    points = np.linspace(0.0, 3.0, 13)
    expected = np.minimum(steep.bracket(points)[1], flat.bracket(points)[1])
    assert both.delta(points).tolist() == expected.tolist()
    assert both.epsilon(0.05) == min(Guarantee((steep,)).epsilon(0.05), Guarantee((flat,)).epsilon(0.05))
    assert both.epsilon(1e-6) == pytest.approx(math.log(0.9e6) / 3.0, rel=1e-9)


def test_a_bound_above_one_says_nothing():
    assert Guarantee((Line(7.0, 0.0),)).delta(0.5) == 1.0


def test_a_bound_that_is_no_number_says_nothing():
    assert Guarantee((Line(math.nan, 0.0),)).delta(0.5) == 1.0


@pytest.mark.parametrize(
    "given",
    [0, 0.5, 2, np.float32(0.5), np.float64(0.5), np.int64(2), Fraction(1, 2), np.array(0.5), 1e300, 5e-324],
)
def test_one_number_gives_one_float(given):
    points, scalar = epsilon_points(given)
    assert scalar
    assert points.tolist() == [float(given)]
    assert type(Guarantee((Line(0.5, 1.0),)).delta(given)) is float


@pytest.mark.parametrize(
    ("given", "shape"),
    [
        ([0.5], (1,)),
        ((0.5, 1), (2,)),
        (np.array([[1, 2], [3, 4]]), (2, 2)),
        (np.zeros((2, 0)), (2, 0)),
        ([], (0,)),
        (pd.Series([0.1, 0.2]), (2,)),
        (np.arange(3, dtype=np.uint8), (3,)),
        (np.array([0.5], dtype=np.float16), (1,)),
    ],
)
def test_an_array_keeps_its_shape(given, shape):
    result = Guarantee((Line(0.5, 1.0),)).delta(given)
    assert isinstance(result, np.ndarray)
    assert result.shape == shape
    assert result.dtype == np.float64


@pytest.mark.parametrize(
    "given",
    [
        -1e-300,
        -1,
        math.nan,
        math.inf,
        -math.inf,
        [0.1, -0.1],
        [0.1, math.nan],
        [math.inf],
        True,
        np.bool_(True),
        [True, False],
        "0.5",
        ["0.5"],
        None,
        [None],
        1j,
        [1j],
        {"a": 1},
        [[1.0], [1.0, 2.0]],
        10**400,
        [10**400],
        b"1",
        np.array(["2020-01-01"], dtype="datetime64[D]"),
        object(),
    ],
)
def test_epsilon_is_checked(given):
    with pytest.raises(ArgumentError, match="epsilon must be"):
        Guarantee((Line(0.5, 1.0),)).delta(given)


@pytest.mark.parametrize(
    "delta", [-1e-9, 1.1, math.nan, math.inf, True, "0.1", None, [0.1], np.array([0.1]), 1j, 10**400]
)
def test_delta_is_checked(delta):
    with pytest.raises(ArgumentError, match="delta must be"):
        Guarantee((Line(0.5, 1.0),)).epsilon(delta)


def test_the_inputs_are_left_alone():
    points = np.array([0.1, 0.5])
    Guarantee((Line(0.5, 1.0),)).delta(points)
    assert points.tolist() == [0.1, 0.5]
