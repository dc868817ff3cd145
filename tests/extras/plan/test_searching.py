"""The two searches end at neighbours whatever the guesses are worth, and take few evaluations on smooth curves."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from thorough import few

from pkdp_pipeline.extras.plan.planning.searching import first_whole, last_float

LOGARITHMIC = (math.log, math.exp)


def counted(loss):
    calls = []

    def counting(point):
        calls.append(point)
        return loss(point)

    return counting, calls


@given(st.floats(1e-9, 1e9), st.floats(0.3, 40.0), st.floats(1e-12, 0.5))
@settings(max_examples=200)
def test_the_last_float_of_a_power(scale, power, target):
    def loss(point):
        exponent = power * (math.log(point) - math.log(scale))
        return math.exp(min(0.0, exponent))

    counting, calls = counted(loss)
    last = last_float(counting, target, scale * 1e-30 ** (1.0 / power), scale * 2.0, scale=LOGARITHMIC)
    assert loss(last) <= target < loss(math.nextafter(last, math.inf))
    assert len(calls) <= 62


@given(st.integers(0, 2**30), st.floats(0.0, 0.02))
@settings(max_examples=100)
def test_a_crooked_loss_still_ends_at_neighbours(seed, crooked):
    def loss(point):
        # Up and down by a share that depends on the point and on nothing else.
        wave = math.sin(1e9 * point + seed) * crooked
        return min(1.0, point**7 * (1.0 + wave))

    last = last_float(loss, 1e-3, 0.01, 2.0, scale=LOGARITHMIC)
    assert loss(last) <= 1e-3 < loss(math.nextafter(last, math.inf))
    assert last == pytest.approx(1e-3 ** (1 / 7), rel=crooked / 3.0 + 1e-12)


def test_a_step_is_found_exactly():
    assert last_float(lambda x: 0.0 if x <= 0.1 else 1.0, 1e-6, 0.0, 1.0, scale=LOGARITHMIC) == 0.1
    assert last_float(lambda x: 0.0 if x <= 1e-300 else math.inf, 1e-6, 0.0, 1.0, scale=LOGARITHMIC) == 1e-300


def test_close_enough_is_close_enough():
    counting, calls = counted(lambda x: min(1.0, x**5))
    last = last_float(counting, 1e-4, 1e-3, 3.0, scale=LOGARITHMIC, close=1e-3)
    assert last**5 <= 1e-4 < (last * 1.001) ** 5
    assert len(calls) <= 14


@given(
    st.integers(0, 10**6),
    st.floats(1e-5, 3.0),
    st.one_of(st.none(), st.integers(-5, 10**7)),
    st.floats(1e-12, 0.9),
    st.integers(0, 50),
)
@settings(max_examples=few(300))
def test_the_first_whole_number(delay, slope, guess, target, start):
    def loss(number):
        return math.inf if number < delay // 2 else math.exp(-slope * max(0, number - delay))

    first = first_whole(loss, target, start, 10**8, guess)
    assert first is not None
    assert loss(first) <= target
    assert first == start or loss(first - 1) > target


def test_few_evaluations_with_a_good_guess():
    counting, calls = counted(lambda n: math.exp(-0.001 * n) if n > 3 else math.inf)
    assert first_whole(counting, 1e-6, 0, 10**9, 14_000) == 13_816
    assert len(calls) <= 8


def test_no_number_is_none():
    assert first_whole(lambda n: 0.5, 1e-6, 0, 1000) is None
    assert first_whole(lambda n: math.inf, 1e-6, 0, 0) is None
    assert first_whole(lambda n: 0.0, 1e-6, 7, 7) == 7
