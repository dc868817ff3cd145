"""A stored document beside a recomputed one: rounding, weaker numbers, and what no processor can have produced."""

from __future__ import annotations

import math

import pytest

from pkdp_pipeline.certificates.codec import SEARCHED, differences, outcome_of
from pkdp_pipeline.model.wording import Worded


def test_numbers_may_differ_by_rounding_only():
    assert differences("it", {"a": 1e-60 * (1 + 1e-12)}, {"a": 1e-60}) == []
    assert differences("it", {"a": [1, "x", None, True]}, {"a": [1, "x", None, True]}) == []
    assert differences("it", 1, 1.0) == []
    for stored, fresh in [
        (1e-60 * (1 - 1e-8), 1e-60),
        (0.0, 1e-60),
        (1e-320, 0.0),
        (True, 1.0),
        (True, 1),
        (1.0, 1),
        (1, True),
        (0, False),
        (None, 0.0),
        ("1.0", 1.0),
        (math.nan, 1.0),
        (math.nan, math.nan),
        (10**400, 1.0),
        ([1], [1, 2]),
        ({"a": 1}, {"b": 1}),
        ({"a": 1}, {"a": 1, "b": 1}),
        ({"a": 1}, [1]),
    ]:
        listed = differences("it", stored, fresh)
        assert listed
        assert not any(difference.is_weaker for difference in listed)


def test_the_rounding_of_a_number_is_asked_for_by_its_place_and_only_where_numbers_differ():
    paths = []

    def rounding(steps):
        paths.append(steps)
        return 1e-5

    stored = {"grid": [{"delta": 1.0}, {"delta": 0.5 * (1 - 0.9e-5)}]}
    assert differences("it", stored, {"grid": [{"delta": 1.0}, {"delta": 0.5}]}, rounding=rounding) == []
    assert paths == [("grid", 1, "delta")]
    stored["grid"][1]["delta"] = 0.5 * (1 - 1.1e-5)
    (difference,) = differences("it", stored, {"grid": [{"delta": 1.0}, {"delta": 0.5}]}, rounding=rounding)
    assert difference.overclaims
    assert not difference.is_weaker


@pytest.mark.parametrize(
    ("path", "stored", "fresh", "weaker"),
    [
        (("delta",), 0.6, 0.5, True),
        (("delta",), 0.4, 0.5, False),
        (("delta",), 1.1, 0.5, False),
        (("attained",), 0.4, 0.5, True),
        (("attained",), 0.6, 0.5, False),
        (("attained",), -0.1, 0.5, False),
        (("epsilon",), 1.1, 1.0, True),
        (("epsilon",), 0.9, 1.0, False),
        (("grid", "epsilon"), 1.1, 1.0, False),
        (("bound_95",), 6.0, 5.0, False),
    ],
)
def test_a_true_promise_that_is_weaker_than_necessary_is_told_from_a_bolder_one(path, stored, fresh, weaker):
    for step in reversed(path):
        stored, fresh = {step: stored}, {step: fresh}
    (difference,) = differences("it", stored, fresh)
    assert difference.is_weaker == weaker
    assert "weaker than necessary" in outcome_of([difference])
    assert outcome_of([]) == "all the same"


def test_a_printed_number_may_differ_where_it_is_near_to_the_end_of_its_last_digit():
    def private(epsilon):
        return {"text": Worded(lambda say: f"Private at {say.pair(epsilon, 1e-6)}, declared at ε = 0.1.")}

    fresh = private(0.4810000001)
    assert fresh["text"] == "Private at ε = 0.482, δ = 1e-6, declared at ε = 0.1."
    assert differences("it", {"text": "Private at ε = 0.481, δ = 1e-6, declared at ε = 0.1."}, fresh) == []
    for text in (
        "Private at ε = 0.48, δ = 1e-6, declared at ε = 0.1.",
        "Private at ε = 0.481, δ = 1e-7, declared at ε = 0.1.",
        "Private: ε = 0.481, δ = 1e-6, declared at ε = 0.1.",
        "Private at ε = 0.481, δ = 1e-6, declared at ε = 0.101.",
    ):
        (difference,) = differences("it", {"text": text}, fresh)
        assert difference.direction == "words"
    (difference,) = differences("it", {"text": "Private at ε = 0.481, δ = 1e-6, declared at ε = 0.1."}, private(0.4815))
    assert difference.direction == "words"
    assert 0.0 < SEARCHED < 1e-3


def test_the_place_of_a_difference_is_named():
    (difference,) = differences(
        "it", {"grid": [{"delta": 1.0}, {"delta": 0.5}]}, {"grid": [{"delta": 1.0}, {"delta": 0.6}]}
    )
    assert str(difference) == "it.grid[1].delta is 0.5, lower than what is certified: 0.6"
