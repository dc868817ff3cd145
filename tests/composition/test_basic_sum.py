from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pkdp_pipeline.composition.worst_case_parts import basic_sum
from pkdp_pipeline.errors import ArgumentError

epsilons = st.floats(min_value=0, max_value=1e300)
deltas = st.floats(min_value=0, max_value=1)


def test_known_sums():
    assert basic_sum([]) == (0.0, 0.0)
    assert basic_sum([(0.5, 0.0)]) == (0.5, 0.0)
    assert basic_sum([(0.5, 1e-6), (0.25, 1e-6)]) == (0.75, 2e-6)
    assert basic_sum([(1.0, 0.7), (1.0, 0.7)]) == (2.0, 1.0)
    assert basic_sum([(math.inf, 0.0), (1.0, 0.5)]) == (math.inf, 0.5)


def test_a_sum_that_rounds_down_is_pushed_up():
    parts = [(1.0, 1.0 / 4), (2.0**-60, 2.0**-60)]
    assert 1.0 + 2.0**-60 == 1.0
    assert basic_sum(parts) == (math.nextafter(1.0, 2.0), math.nextafter(0.25, 1.0))


def test_an_overflowing_sum_is_infinite():
    assert basic_sum([(1.7e308, 0.0), (1.7e308, 0.0)]) == (math.inf, 0.0)


@given(st.lists(st.tuples(epsilons, deltas), max_size=20))
def test_sums_are_never_below_the_exact_ones_and_tight(parts):
    epsilon, delta = basic_sum(parts)
    exact_epsilon = sum((Fraction(e) for e, _ in parts), Fraction(0))
    exact_delta = min(Fraction(1), sum((Fraction(d) for _, d in parts), Fraction(0)))
    for total, exact in ((epsilon, exact_epsilon), (delta, exact_delta)):
        assert Fraction(total) >= exact
        if total > 0:
            assert Fraction(math.nextafter(total, 0.0)) < exact


@given(st.lists(st.tuples(epsilons, deltas), min_size=2, max_size=8))
def test_the_order_does_not_matter(parts):
    assert basic_sum(parts) == basic_sum(reversed(parts))


@pytest.mark.parametrize(
    "part",
    [
        (-1.0, 0.0),
        (math.nan, 0.0),
        (1.0, -0.1),
        (1.0, 1.5),
        (1.0, math.nan),
        (True, 0.0),
        (1.0,),
        1.0,
        ("1", 0),
    ],
)
def test_anything_else_is_an_argument_error(part):
    with pytest.raises(ArgumentError):
        basic_sum([part])
