"""Reading arguments: what is taken, what is refused, and that the message names the argument."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from pkdp_pipeline import ArgumentError, AttackerModel
from pkdp_pipeline.model.wording import choice, loss, positive_real, probability, whole_number

HUGE = 10**5000
NO_NUMBERS = [None, "0.5", b"1", [0.5], (0.5,), {"a": 1}, 0.5j, object(), np.array([0.5]), np.bool_(True), True, False]


@pytest.mark.parametrize(
    ("value", "number"),
    [
        (0, 0.0),
        (1, 1.0),
        (0.25, 0.25),
        (-0.0, 0.0),
        (Fraction(1, 4), 0.25),
        (np.float32(0.25), 0.25),
        (np.float64(0.25), 0.25),
        (np.int64(1), 1.0),
        (5e-324, 5e-324),
    ],
)
def test_probabilities(value, number):
    result = probability("p_max", value)
    assert type(result) is float
    assert result == number
    assert math.copysign(1.0, result) == 1.0


@pytest.mark.parametrize(
    "value",
    [
        *NO_NUMBERS,
        -1e-300,
        1.0000000000000002,
        Fraction(10**30 + 1, 10**30),
        pytest.param(Fraction(-1, HUGE), id="-1/huge"),
        math.nan,
        math.inf,
        -math.inf,
        pytest.param(HUGE, id="huge"),
        pytest.param(-HUGE, id="-huge"),
    ],
)
def test_what_is_no_probability(value):
    with pytest.raises(ArgumentError, match=r"^p_max must be"):
        probability("p_max", value)


@pytest.mark.parametrize(
    ("value", "meant"), [(20.0, r"20 % is 0\.2\."), (1.5, r"1\.5 % is 0\.015\."), (101, r"got 101\.0\.$")]
)
def test_a_percentage_is_told_as_the_probability_that_it_may_mean(value, meant):
    with pytest.raises(ArgumentError, match=meant):
        probability("p_max", value)


@pytest.mark.parametrize("value", [1, 7, np.int8(7), np.uint64(7), 2**70, 2**1000])
def test_whole_numbers(value):
    result = whole_number("k", value, least=1)
    assert (type(result), result - value) == (int, 0)


@pytest.mark.parametrize(
    "value",
    [
        *NO_NUMBERS,
        0,
        -1,
        1.0,
        7.5,
        np.float64(7.0),
        Fraction(7),
        Decimal(7),
        math.nan,
        pytest.param(-HUGE, id="-huge"),
        pytest.param(HUGE, id="huge"),
    ],
)
def test_what_is_no_whole_number(value):
    with pytest.raises(ArgumentError, match=r"^k must be"):
        whole_number("k", value, least=1)


@pytest.mark.parametrize("value", [1, 0.5, 5e-324, 1e300, Fraction(1, 3), np.float32(0.5), np.int64(3)])
def test_positive_numbers(value):
    result = positive_real("epsilon", value)
    assert type(result) is float
    assert result == float(value)


@pytest.mark.parametrize(
    "value",
    [
        *NO_NUMBERS,
        0,
        0.0,
        -0.0,
        -1.0,
        math.nan,
        math.inf,
        -math.inf,
        pytest.param(HUGE, id="huge"),
        pytest.param(-HUGE, id="-huge"),
        pytest.param(Fraction(1, HUGE), id="1/huge"),
    ],
)
def test_what_is_no_positive_number(value):
    with pytest.raises(ArgumentError, match=r"^epsilon must be"):
        positive_real("epsilon", value)


@pytest.mark.parametrize("value", ["c", "", "A", None, 1, ["a"], {"a"}, np.array(["a", "b"]), b"a"])
def test_what_is_no_choice(value):
    with pytest.raises(ArgumentError, match=r"^side must be one of 'a', 'b', got"):
        choice("side", value, ("b", "a"))
    assert choice("side", "a", ("b", "a")) == "a"


def test_an_argument_error_is_a_value_error():
    with pytest.raises(ValueError, match="k must be"):
        whole_number("k", "3", least=1)


@pytest.mark.parametrize("exact", [Fraction(1, 3), Fraction(2, 3), Fraction(10**30 + 1, 10**30), Fraction(1, 4)])
def test_a_loss_is_rounded_up_and_a_limit_down(exact):
    assert loss("epsilon", exact) >= exact >= loss("epsilon", exact, limit=True)
    assert math.nextafter(loss("epsilon", exact, limit=True), math.inf) >= loss("epsilon", exact)


@pytest.mark.parametrize("exact", [Fraction(1, 3), Fraction(2, 3), Fraction(3, 10), Fraction(10**30 - 1, 10**30)])
def test_chances_are_rounded_to_more_attackers(exact):
    attacker = AttackerModel(p_min=exact, p_max=exact)
    assert attacker.p_max >= exact >= attacker.p_min
    assert math.nextafter(attacker.p_min, 1.0) >= attacker.p_max
    assert AttackerModel(p_max=Fraction(1, HUGE)).p_max > 0
    assert probability("delta", exact) >= exact >= probability("delta", exact, limit=True)
