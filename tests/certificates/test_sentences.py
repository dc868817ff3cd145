"""The guarantee in words: no word claims more than the number; `test_every_sentence.py` has the words themselves."""

from __future__ import annotations

import math
import re
from decimal import Decimal

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pkdp_pipeline import AttackerModel, Count, GeometricNoise, Histogram, IndependentGivenHabits, certify, compose
from pkdp_pipeline.certificates.sentences import against, assumptions, suppression
from pkdp_pipeline.model.context import Context
from pkdp_pipeline.model.wording import rounded_up
from pkdp_pipeline.theorems.theorems import THEOREMS

FULL = AttackerModel(p_max=0.1, p_min=0.05, p_max_between=0.7, unknown=200)
ANYONE = {"noise", "noise_beside_leakage", "leaked", "sums"}
ONE_RELEASE = sorted(key for key, theorem in THEOREMS.items() if not theorem.is_rule)


@pytest.mark.parametrize("theorem", ["histogram_presence", "histogram_value"])
def test_p_max_is_conditional(theorem):
    listed = " ".join(assumptions(theorem, AttackerModel(p_max=0.1)))
    assert "told that another person is either absent or in a given cell, is at most 10 % sure of the cell" in listed
    assert "conditional probability" in listed
    assert "after any binning" in listed
    assert "no exact total of those present is published, nor anything from which it follows" in listed


def test_theorem_c_assumes_nothing_about_absence():
    listed = " ".join(assumptions("histogram_between", AttackerModel(p_max_between=0.7)))
    assert "Nothing is assumed about absence" in listed
    assert "exact total" not in listed
    assert "absent" not in against("histogram_between", AttackerModel(p_max_between=0.7))


@pytest.mark.parametrize("theorem", sorted(set(ONE_RELEASE) - ANYONE))
def test_assumptions_are_said(theorem):
    listed = assumptions(theorem, FULL)
    assert all(text.endswith(".") for text in listed)
    assert "independent" in listed[0]
    assert listed[1] == f"The attacker is {against(theorem, FULL)}."
    assert any("declared before looking at the data" in text for text in listed)


@pytest.mark.parametrize("theorem", sorted(ANYONE))
def test_noise_assumes_nothing(theorem):
    assert assumptions(theorem, FULL) == ("Nothing is assumed about what the attacker knows.",)


def test_caveats_end_a_sentence():
    mechanism = Count(k=30, noise=GeometricNoise(2.0), release_threshold=40)
    certificate = certify(mechanism, AttackerModel(p_max=0.1)).with_caveats("One more limit.")
    assert certificate.sentence().endswith(" One more limit.")


@pytest.mark.parametrize("delta", [1e-12, 1e-9, 1e-6, 1e-3, 0.1])
@pytest.mark.parametrize("k", [5, 30, 80])
def test_the_numbers_of_a_sentence_are_certified(k, delta):
    certificate = certify(Count(k=k), AttackerModel(p_max=0.2))
    numbers = re.match(r"Private at ε = ([\d.e-]+), δ = ([\d.e-]+) against", certificate.sentence(delta))
    assert certificate.delta(float(numbers[1])) <= float(numbers[2])


@given(st.floats(0.0, 1e300, allow_subnormal=True), st.integers(1, 6))
@example(1e-6, 3)
@example(9.995, 3)
@example(999.5, 3)
@example(999_999.5, 6)
@example(0.5, 3)
@example(5e-324, 3)
@example(1.0, 3)
def test_rounding_goes_up_and_not_far(value, digits):
    text = rounded_up(value, digits)
    shown = float(text)
    assert shown >= value
    assert shown <= value * (1.0 + 10.0 ** (1 - digits)) * (1 + 1e-12) or value < 1e-300
    assert len(re.sub(r"e-?\d+$", "", text).replace(".", "").strip("0")) <= digits


def test_rounding_of_what_is_no_ordinary_number():
    assert rounded_up(math.inf) == "infinity"
    assert rounded_up(0.0) == "0"
    assert rounded_up(1e-6) == "1e-6"
    assert rounded_up(1.0) == "1"


@pytest.mark.parametrize(
    ("value", "text"), [(0.1, "0.1"), (0.2, "0.2"), (1e-5, "1e-5"), (1e-9, "1e-9"), (0.31, "0.31")]
)
def test_a_number_that_was_declared_is_repeated_as_it_was(value, text):
    assert rounded_up(value) == text


def share(text, pattern):
    return Decimal(re.search(pattern, text)[1]) / 100


@given(st.floats(0.0, 1.0))
@example(0.9999999999999999)
@example(0.3)
@example(1e-9)
@example(0.123456789)
def test_no_percentage_names_more_attackers_than_were_certified(p):
    number = r"([\d.eE+-]+) %"
    declared = Decimal(repr(p))
    cell = share(against("histogram_presence", AttackerModel(p_max=p)), f"at most {number}")
    option = share(against("options", AttackerModel(p_min=p)), f"probability at least {number}")
    assert cell <= declared <= option
    assert float(cell) >= p * (1 - 2e-5)
    assert float(option) <= p * (1 + 2e-5) or p < 1e-300
    # Only who may be certain is said to be, and then nothing is said of how sure.
    assert (cell == 1) == (option == 1) == (p == 1.0)
    assert (cell == 0) == (option == 0) == (p == 0.0)
    if p < 1.0:
        assert share(against("thresholding", AttackerModel(p_max=p)), f"more than {number}") == cell
    if p > 0.0:
        least = against("thresholding_complement", AttackerModel(p_min=p))
        assert share(least, f"at least {number}") == option
    box = against("counting", AttackerModel(p_min=min(p, 0.5), p_max=max(p, 0.5), unknown=9))
    low, high = (Decimal(percentage) / 100 for percentage in re.findall(number, box))
    assert low >= Decimal(repr(min(p, 0.5)))
    assert high <= Decimal(repr(max(p, 0.5)))
    if p >= 0.5:
        between = share(against("histogram_between", AttackerModel(p_max_between=p)), f"at most {number}")
        assert between <= declared


@pytest.mark.parametrize(
    ("mechanism", "steps"),
    [
        (Count(), "The count is published exactly."),
        (Histogram(), "Every cell is published as counted."),
        (Count(k=5), "The count is published only when it is at least 5."),
        (
            Count(k=5, k_complement=6),
            "The count is published only when it is at least 5, then published only when at least 6 people are not "
            "counted.",
        ),
        (
            Histogram(k=5, noise=GeometricNoise(0.1), release_threshold=9),
            "Every cell is published only when it is at least 5, then given two-sided geometric noise with epsilon "
            "0.1, then published only when the noisy value is at least 9.",
        ),
    ],
)
def test_the_steps_in_their_order(mechanism, steps):
    assert suppression(mechanism) == steps


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ("most_frequent", "in the cell with most of her rows; a hash decides between equals"),
        ("first", "in the cell of her first row"),
        ("hash", "in one of them, drawn by a hash"),
    ],
)
def test_a_sentence_names_the_rule_that_chose_a_cell(rule, said):
    sentence = f"A person with rows in several cells counts once, {said}."
    assert sentence in Context(unit=("u",), one_cell=rule, cells="found").facts()
    assert "counts once" not in " ".join(Context(unit=("u",), cells="found").facts())


@pytest.mark.parametrize(("rule", "said"), [("absent", True), ("error", False), (None, False)])
def test_people_who_are_not_counted_for_their_cell_are_told(rule, said):
    context = Context(unit=("u",), undeclared=rule, cells="found" if rule is None else "declared")
    assert ("People outside the declared cells are not counted." in context.facts()) is said


def test_a_delta_that_is_printed_as_1_is_no_promise():
    noised = Histogram(k=14, noise=GeometricNoise(1.0), release_threshold=5)
    part = certify(noised, AttackerModel(p_max=0.1))
    certificates = [part, compose([(part, 3)], IndependentGivenHabits()), compose([(part, 3)])]
    assert all(", δ = 1 " not in certificate.sentence() for certificate in certificates)
    assert [certificate.sentence().count("anyone at all") for certificate in certificates] == [0, 0, 1]
    assert (
        certificates[2].sentence().startswith("3 releases together: no protection is certified against anyone at all")
    )
