"""Sums are exact, and rounded up once."""

from __future__ import annotations

import math
from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from pkdp_pipeline.theorems.numerics import sum_above


def test_known_sums():
    assert sum_above([]) == 0.0
    assert sum_above([0.5, 0.25], [1, 2]) == 1.0
    assert sum_above([math.inf, 1.0]) == sum_above([1.7e308, 1.7e308]) == math.inf
    assert 1.0 + 2.0**-60 == 1.0
    assert sum_above([1.0, 2.0**-60]) == math.nextafter(1.0, 2.0)


@given(st.lists(st.floats(min_value=0, max_value=1e300), max_size=20))
def test_sums_are_never_below_the_exact_ones_and_tight(numbers):
    total = sum_above(numbers)
    exact = sum(map(Fraction, numbers), Fraction(0))
    assert Fraction(total) >= exact
    assert total == 0.0 or Fraction(math.nextafter(total, 0.0)) < exact
    assert sum_above(reversed(numbers)) == total
