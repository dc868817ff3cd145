"""The guarantee in words: one template per theorem, and no word that claims more than the number."""

from __future__ import annotations

import math
import re
from decimal import Decimal

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pkdp_pipeline import AttackerModel, Count, GeometricNoise, Histogram, certify
from pkdp_pipeline.profiles import THEOREMS
from pkdp_pipeline.sentences import against, assumptions, protection, rounded_up, suppression

FULL = AttackerModel(p_max=0.1, p_min=0.05, p_max_between=0.7, unknown=200)
AGAINST = {
    "thresholding": "anyone who is never more than 10 % sure that another person is in the group, and knows nobody in "
    "it; they may know for certain who is not",
    "thresholding_complement": "anyone who is always at least 5 % sure that another person is in the group, and knows "
    "nobody outside it; they may know for certain who is",
    "counting": "anyone who is uncertain about at least 200 people, between 5 % and 10 % for each; they may know "
    "everybody else",
    "noisy_counting": "anyone who is uncertain about at least 200 people, between 5 % and 10 % for each; they may know "
    "everybody else",
    "histogram_presence": "anyone who, told that another person is either absent or in a given cell, is at most 10 % "
    "sure that it is the cell, and knows nobody in the table; they may know for certain who is absent",
    "histogram_value": "anyone who, told that another person is either absent or in a given cell, is at most 10 % sure "
    "that it is the cell, and knows nobody in the table; they may know for certain who is absent",
    "histogram_between": "anyone who, told that another person is in one of two cells, is at most 70 % sure which, and "
    "knows nobody in the table; they may know who is present and how many people there are",
    "options": "anyone who is uncertain about at least 200 people, each of whom chooses every option with probability "
    "at least 5 %; they may know what everybody else chose",
    "noise": "anyone at all, whatever they know",
    "noise_beside_leakage": "anyone at all, whatever they know",
    "counting_beside_leakage": "anyone who is uncertain about at least 200 people, between 5 % and 10 % for each; they "
    "may know everybody else",
    "leaked": "anyone at all, whatever they know",
}


def test_every_theorem_has_its_template():
    about_one_release = {key for key, one in THEOREMS.items() if "composition.md" not in one.citation}
    assert set(AGAINST) == about_one_release


@pytest.mark.parametrize("theorem", AGAINST)
def test_whom_it_holds_against(theorem):
    assert against(theorem, FULL) == AGAINST[theorem]


@pytest.mark.parametrize(
    ("known", "influence", "words"),
    [
        (0, "passive", "knows nobody in it"),
        (0, "active", "knows nobody in it"),
        (1, "passive", "knows the records of at most 1 person who may be in it"),
        (7, "active", "controls at most 7 people in it"),
    ],
)
def test_known_people_are_named(known, influence, words):
    assert words in against("thresholding", AttackerModel(p_max=0.1, known=known, influence=influence))


@pytest.mark.parametrize("theorem", ["thresholding", "histogram_presence", "histogram_value", "histogram_between"])
def test_a_largest_number_of_unknown_people_is_said(theorem):
    attacker = AttackerModel(p_max=0.1, p_max_between=0.6, unknown_max=99)
    assert "at most 99 people are unknown to them" in against(theorem, attacker)
    assert "unknown to them" not in against(theorem, FULL)


@pytest.mark.parametrize("theorem", ["histogram_presence", "histogram_value"])
def test_p_max_is_conditional_in_every_sentence_about_cells(theorem):
    protects = "presence" if theorem == "histogram_presence" else "value"
    sentence = certify(Histogram(k=30), AttackerModel(p_max=0.1), protects=protects).sentence()
    assert (
        "told that another person is either absent or in a given cell, is at most 10 % sure that it is the cell"
        in sentence
    )
    listed = " ".join(assumptions(theorem, AttackerModel(p_max=0.1)))
    assert "conditional probability" in listed
    assert "after any binning" in listed
    assert "No total of the people present is published" in listed


def test_theorem_c_assumes_nothing_about_absence():
    listed = " ".join(assumptions("histogram_between", AttackerModel(p_max_between=0.7)))
    assert "Nothing is assumed about absence" in listed
    assert "No total of the people present" not in listed
    assert "absent" not in against("histogram_between", AttackerModel(p_max_between=0.7))


@pytest.mark.parametrize("theorem", sorted(set(AGAINST) - {"noise", "noise_beside_leakage", "leaked"}))
def test_assumptions_are_said(theorem):
    listed = assumptions(theorem, FULL)
    assert all(text.endswith(".") for text in listed)
    assert "independent" in listed[0]
    assert listed[1] == f"The attacker is {AGAINST[theorem]}."
    assert any("declared before looking at the data" in text for text in listed)


def test_noise_assumes_nothing():
    assert assumptions("noise", FULL) == ("Nothing is assumed about what the attacker knows.",)


@pytest.mark.parametrize(
    ("mechanism", "protects", "theorem", "yes", "no"),
    [
        (Count(k=5), "presence", "thresholding", "whether a person is counted", "others about the same people"),
        (Histogram(k=5), "presence", "histogram_presence", "whether a person is there", "which cell a person is in"),
        (Histogram(k=5), "value", "histogram_between", "which of two published cells", "whether a person is there"),
        (Histogram(k=5), "value", "histogram_value", "which of two published cells", "whether a person is there"),
        (Histogram(), "value", "options", "which of two published cells", "whether a person is there"),
        (Histogram(), "value", "noise", "which of two published cells", "whether a person is there"),
    ],
)
def test_what_is_protected_and_what_is_not(mechanism, protects, theorem, yes, no):
    sentence = protection(mechanism, protects, theorem)
    protected, separator, unprotected = sentence.partition("; it does not protect ")
    assert separator
    assert protected.startswith(f"Protects {yes}")
    assert no in unprotected
    assert "together" in unprotected


def test_the_sentences_of_whole_certificates():
    assert certify(Histogram(k=38), AttackerModel(p_max=0.1)).sentence() == (
        "Private at ε = 0.838, δ = 1e-6 against anyone who, told that another person is either absent or in a given "
        "cell, is at most 10 % sure that it is the cell, and knows nobody in the table; they may know for certain who "
        "is absent. Protects whether a person is there on this day; it does not protect which cell a person is in once "
        "it is known that she is there, nor what several days or tables tell together."
    )
    noisy = certify(Count(noise=GeometricNoise(0.5)), AttackerModel()).sentence()
    assert noisy.startswith("Private at ε = 0.5, δ = 0 against anyone at all, whatever they know. Protects whether")
    unreached = certify(Count(k=3), AttackerModel(p_max=0.5)).sentence()
    assert "Private at ε = 1, δ = 0." in unreached
    assert "(no ε reaches δ = 1e-6)" in unreached


def test_both_guarantees_are_said():
    mechanism = Count(k=30, noise=GeometricNoise(2.0), release_threshold=40)
    certificate = certify(mechanism, AttackerModel(p_max=0.1)).with_caveats("One more limit.")
    sentence = certificate.sentence()
    assert "never more than 10 % sure" in sentence
    assert "Against anyone at all, whatever they know, the noise alone gives ε = 2" in sentence
    assert sentence.endswith(" One more limit.")


@pytest.mark.parametrize("delta", [1e-12, 1e-9, 1e-6, 1e-3, 0.1])
@pytest.mark.parametrize("k", [5, 30, 80])
def test_the_numbers_of_a_sentence_are_certified(k, delta):
    certificate = certify(Count(k=k), AttackerModel(p_max=0.2))
    found = re.match(r"Private at ε = ([\d.e-]+), δ = ([\d.e-]+) against", certificate.sentence(delta))
    assert certificate.delta(float(found[1])) <= float(found[2])


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
    most = share(against("thresholding", AttackerModel(p_max=p)), f"more than {number}")
    cell = share(against("histogram_presence", AttackerModel(p_max=p)), f"at most {number}")
    least = share(against("thresholding_complement", AttackerModel(p_min=p)), f"at least {number}")
    option = share(against("options", AttackerModel(p_min=p)), f"probability at least {number}")
    assert most == cell <= declared <= least == option
    assert float(most) >= p * (1 - 2e-5)
    assert float(least) <= p * (1 + 2e-5) or p < 1e-300
    box = against("counting", AttackerModel(p_min=min(p, 0.5), p_max=max(p, 0.5), unknown=9))
    low, high = (Decimal(found) / 100 for found in re.findall(number, box))
    assert low >= Decimal(repr(min(p, 0.5)))
    assert high <= Decimal(repr(max(p, 0.5)))
    if p >= 0.5:
        between = share(against("histogram_between", AttackerModel(p_max_between=p)), f"at most {number}")
        assert between <= declared


@pytest.mark.parametrize(
    ("mechanism", "steps"),
    [
        (Count(), "The count is published exactly."),
        (Histogram(), "Every cell is published exactly."),
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
