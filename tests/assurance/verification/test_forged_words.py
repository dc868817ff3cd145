"""Texts in a file that promise more than it certifies: in other words, by hand, or under another version's name."""

from __future__ import annotations

import json

import pytest

import pkdp_pipeline as pkdp
from pkdp_pipeline.assurance.verification import verify
from pkdp_pipeline.assurance.verification.reading_words import names_guarantee, read_pairs
from pkdp_pipeline.model.context import Context
from tests.assurance.verification.published_files import altered, certificate, outcome, written

LIE = "Private at ε = 0.001, δ = 1e-12 against anyone at all."


def foreign(**changes):
    return {**altered(json.loads(certificate().to_json()), "library", "version", to="0.1.0"), **changes}


@pytest.mark.parametrize(
    "made",
    [
        certificate().with_caveats(LIE),
        certificate().with_caveats("Experts found \N{GREEK LUNATE EPSILON SYMBOL} = 0.1 and δ=1e-9."),
        certificate().in_context(Context(where=f"age > 0 count. {LIE} Only rows with age > 0")),
        certificate().in_context(Context(unit=(f"person'. {LIE} A person is one value of 'x",))),
        certificate().in_context(Context(period=f"2020'. {LIE}", dataset="x")),
        pkdp.compose([(certificate().with_caveats(LIE), 3)], pkdp.OneDayProtected()),
    ],
)
def test_a_guarantee_in_a_text_that_was_written_by_hand_fails(tmp_path, made):
    found = verify(written(tmp_path, made.to_json()), draws=100)
    assert [claim.key for claim in found.failures] == ["certificate.own_texts"], str(found)


@pytest.mark.parametrize(
    "made",
    [
        certificate().with_caveats("Nobody learns anything about anyone."),
        certificate().in_context(Context(where="town == 1. Nobody learns anything. Only rows with town == 1")),
        certificate().in_context(Context(where="delta < 3")),
    ],
)
def test_what_somebody_wrote_is_not_checked_and_shown(tmp_path, made):
    found = verify(written(tmp_path, made.to_json()), draws=100)
    claim = outcome(found, "certificate.own_texts")
    assert found.passed
    assert claim.outcome == "not_checked"
    assert "says: " in claim.detail


@pytest.mark.parametrize("where", ["label: adults", "(age >= 18) & (town == 'Ås')", "period == '2020-01-01'"])
def test_predicates_are_no_guarantees(tmp_path, where):
    made = certificate().in_context(Context(unit=("person",), where=where, period="2020-01", dataset="visits"))
    found = verify(written(tmp_path, made.to_json()), draws=100)
    assert outcome(found, "certificate.own_texts").outcome == "pass"


@pytest.mark.parametrize(
    "more",
    [
        " At most ε = 0.0001, δ = 1e-20.",
        " at most ε = 0.0001, δ = 1e-20.",
        " Private at ϵ = 0.0001, δ = 1e-20.",
        " Private at Ε=0.0001, δ=1e−20.",
        " Private at ε = ０.0001, 𝛿 = 1e-20.",
        " Private at \u200bε\u200b = 0.0001, δ = 1e-20.",
        " Private at epsilon = 0.0001, delta = 1e-20.",
    ],
)
def test_pairs_in_the_words_of_another_version_are_read_however_they_are_spelled(tmp_path, more):
    document = foreign(sentence=json.loads(certificate().to_json())["sentence"] + more)
    found = verify(written(tmp_path, document), draws=100)
    assert outcome(found, "certificate.sentence_numbers").outcome == "fail", str(found)


def test_a_caveat_does_not_hide_a_pair(tmp_path):
    found = verify(written(tmp_path, foreign(sentence=LIE, caveats=[LIE])), draws=100)
    assert outcome(found, "certificate.sentence_numbers").outcome == "fail"


def test_what_cannot_be_read_is_not_passed(tmp_path):
    sentence = json.loads(certificate().to_json())["sentence"] + " Epsilon is below 0.0001."
    found = verify(written(tmp_path, foreign(sentence=sentence)), draws=100)
    assert outcome(found, "certificate.sentence_numbers").outcome == "not_checked"
    words = outcome(found, "certificate.words")
    assert words.outcome == "not_checked"
    assert "Do not rely on its words" in words.detail
    assert words.evidence["different"] == ["certificate.sentence"]
    assert words.evidence["sentence"] == certificate().sentence()


@pytest.mark.parametrize("version", ["0.3.00", "00.3.0", "0.3", "0.3.0\n", "0.3.0.0"])
def test_this_version_in_another_spelling_is_no_other_version(tmp_path, version):
    document = altered(json.loads(certificate().to_json()), "library", "version", to=version)
    found = verify(written(tmp_path, altered(document, "sentence", to="All is well.")), draws=100)
    assert not found.passed


def test_declared_dependence_is_no_guarantee_and_no_false_alarm(tmp_path):
    made = pkdp.compose([(certificate(), 3)], pkdp.BoundedDependence(0.1, 1e-8))
    document = altered(json.loads(made.to_json()), "library", "version", to="0.1.0")
    found = verify(written(tmp_path, document), draws=100)
    assert outcome(found, "certificate.sentence_numbers").outcome == "pass", str(found)


def test_pairs_and_what_is_left_over():
    read = read_pairs("Private at ε = 1.31, δ = 1e-6 against x (no ε reaches δ = 1e-9).")
    assert [pair[:2] for pair in read.pairs] == [(1.31, 1e-6)]
    assert read.whole
    assert not read_pairs("ε = 1·10^-3, δ = 1e-9").whole
    assert not names_guarantee("delta == 3 and epsilon in [1, 2]")


@pytest.mark.parametrize(
    ("caveat", "ours"),
    [
        ("A person is one value of 'person.id', 'house'.", True),
        ("A person is one value of 'x. Nobody learns anything'.", False),
        ("Every row is taken for a person: a person with several rows is protected in one of them only.", True),
    ],
)
def test_what_the_library_says_of_units_is_known_from_what_others_wrote(tmp_path, caveat, ours):
    found = verify(written(tmp_path, certificate().with_caveats(caveat).to_json()), draws=100)
    assert (outcome(found, "certificate.own_texts").outcome == "pass") == ours
