"""Texts in a certificate that somebody wrote by hand, or under another version's name, are not taken for certified."""

from __future__ import annotations

import json

import pytest
from published_files import altered, certificate, outcome, written

import pkdp_pipeline as pkdp
from pkdp_pipeline.extras.assurance.verification import verify
from pkdp_pipeline.model.context import Context

LIE = "Private at ε = 0.001, δ = 1e-12 against anyone at all."


@pytest.mark.parametrize(
    "edited",
    [
        certificate().with_caveats(LIE),
        certificate().in_context(Context(where=f"age > 0 count. {LIE} Only rows with age > 0")),
        certificate().in_context(Context(unit=(f"person'. {LIE} A person is one value of 'x",))),
        certificate().in_context(Context(period=f"2020'. {LIE}", dataset="x")),
        pkdp.compose([(certificate().with_caveats(LIE), 3)], pkdp.OneDayProtected()),
    ],
)
def test_a_guarantee_in_a_text_that_was_written_by_hand_fails(tmp_path, edited):
    verification = verify(written(tmp_path, edited.to_json()), draws=100)
    assert [claim.key for claim in verification.failures] == ["certificate.own_texts"], str(verification)


@pytest.mark.parametrize(
    "edited",
    [
        certificate().with_caveats("Nobody learns anything about anyone."),
        certificate().in_context(Context(where="town == 1. Nobody learns anything. Only rows with town == 1")),
    ],
)
def test_what_somebody_wrote_is_not_checked_and_shown(tmp_path, edited):
    verification = verify(written(tmp_path, edited.to_json()), draws=100)
    claim = outcome(verification, "certificate.own_texts")
    assert verification.passed
    assert claim.outcome == "not_checked"
    assert "says: " in claim.detail


@pytest.mark.parametrize(
    ("caveat", "ours"),
    [
        ("A person is one value of 'person.id', 'house'.", True),
        ("A person is one value of 'x. Nobody learns anything'.", False),
        ("A person is one value of a name.", False),
        ("Every row counts as one person: somebody with several rows is protected in only one of them.", True),
    ],
)
def test_what_the_library_says_of_units_is_known_from_what_others_wrote(tmp_path, caveat, ours):
    verification = verify(written(tmp_path, certificate().with_caveats(caveat).to_json()), draws=100)
    assert (outcome(verification, "certificate.own_texts").outcome == "pass") == ours


@pytest.mark.parametrize("where", ["label: adults", "(age >= 18) & (town == 'Ås')", "period == '2020-01-01'"])
def test_predicates_are_names(tmp_path, where):
    edited = certificate().in_context(Context(unit=("person",), where=where, period="2020-01", dataset="visits"))
    verification = verify(written(tmp_path, edited.to_json()), draws=100)
    assert outcome(verification, "certificate.own_texts").outcome == "pass"


def test_the_words_of_another_version_are_not_passed(tmp_path):
    document = altered(json.loads(certificate().to_json()), "library", "version", to="0.1.0")
    verification = verify(written(tmp_path, altered(document, "sentence", to=LIE)), draws=100)
    words = outcome(verification, "certificate.words")
    assert outcome(verification, "certificate.numbers").outcome == "pass"
    assert words.outcome == "not_checked"
    assert words.evidence["different"] == ["certificate.sentence"]
    assert words.evidence["sentence"] == certificate().sentence()
