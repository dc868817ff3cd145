"""Files about what stands beside a leakage, and about people whose records depend on one another."""

from __future__ import annotations

import json

import pandas as pd
import pytest
from published_files import altered, outcome, resealed, written
from thorough import one_in, thinned

import pkdp_pipeline as pkdp
from pkdp_pipeline.extras.assurance.verification import verify

TOTAL = pkdp.Leakage.total()
NOISE = pkdp.GeometricNoise(0.5)
PRIVATE = pkdp.Leakage("a noised figure of another office", epsilon=0.05)
BOX = {"p_min": 0.2, "p_max": 0.6, "unknown": 60}

CERTIFIED = {
    "between": (pkdp.Histogram(k=10), {"p_max_between": 0.6, "leakage": TOTAL}, "value"),
    "between, absence possible": (
        pkdp.Histogram(k=4),
        {"p_max": 0.3, "p_max_between": 0.9, "leakage": TOTAL},
        "value",
    ),
    "options": (pkdp.Histogram(), {"p_min": 0.2, "unknown": 12, "leakage": TOTAL}, "value"),
    "noise": (pkdp.Histogram(noise=NOISE), {"leakage": TOTAL}, "value"),
    "the total itself": (pkdp.Count(), {"leakage": TOTAL}, "value"),
    "beside a private leakage": (pkdp.Count(), {**BOX, "leakage": PRIVATE}, "presence"),
    "noise beside a private leakage": (pkdp.Count(noise=NOISE), {**BOX, "leakage": PRIVATE}, "presence"),
    "given the household": (pkdp.Count(), {**BOX, "dependent": "household", "secret": "conditional"}, "presence"),
    "noise, dependent people": (pkdp.Count(noise=NOISE), {**BOX, "dependent": "household"}, "presence"),
    "noise, given the household": (
        pkdp.Count(noise=NOISE),
        {**BOX, "dependent": "household", "secret": "conditional"},
        "presence",
    ),
}


def document(name):
    mechanism, attacker, protects = CERTIFIED[name]
    certified = pkdp.certify(mechanism, pkdp.AttackerModel(**attacker), protects=protects)
    return json.loads(certified.to_json())


@thinned(2)
@pytest.mark.parametrize("name", one_in(2, CERTIFIED))
def test_a_genuine_file_passes_and_is_attacked_with_what_leaks(tmp_path, name):
    verification = verify(written(tmp_path, document(name)), draws=500)
    assert verification.passed, str(verification)
    outcomes = {claim.key: claim.outcome for claim in verification.claims}
    assert outcomes["certificate.numbers"] == outcomes["certificate.words"] == "pass"
    attacks = ("certificate.enumerated", "certificate.simulated", "certificate.anyone")
    assert "pass" in [outcomes.get(key) for key in attacks], str(verification)


@thinned(2)
@pytest.mark.parametrize("name", ["between", "noise", "the total itself", "beside a private leakage"])
def test_a_leakage_deleted_from_the_assumptions_is_found(tmp_path, name):
    genuine = document(name)
    without = altered(genuine, "attacker", to=lambda fields: {k: v for k, v in fields.items() if k != "leakage"})
    verification = verify(written(tmp_path, without), draws=100)
    assert not verification.passed
    # Where the numbers would be the same, the words say that they hold given something else.
    wrong = {claim.key for claim in verification.claims if claim.outcome == "fail"}
    assert wrong & {"certificate.words", "certificate.numbers"}, str(verification)


@pytest.mark.parametrize("name", [name for name, (_, attacker, _) in CERTIFIED.items() if "dependent" in attacker])
def test_a_dependence_deleted_from_the_assumptions_is_found(tmp_path, name):
    def independent(fields):
        return {k: v for k, v in fields.items() if k not in ("dependent", "secret")}

    verification = verify(written(tmp_path, altered(document(name), "attacker", to=independent)), draws=100)
    assert not verification.passed, str(verification)


def test_numbers_of_a_certificate_without_leakage_are_found_by_recomputing_and_by_attacks(tmp_path):
    mechanism, fields, protects = CERTIFIED["between, absence possible"]
    plain = {k: v for k, v in fields.items() if k != "leakage"}
    honest = json.loads(pkdp.certify(mechanism, pkdp.AttackerModel(**fields), protects=protects).to_json())
    smaller = json.loads(pkdp.certify(mechanism, pkdp.AttackerModel(**plain), protects=protects).to_json())
    assert smaller["grid"] != honest["grid"]
    # The words and the assumptions name the total, the numbers do not know of it.
    verification = verify(written(tmp_path, honest | {"grid": smaller["grid"]}), draws=100)
    assert outcome(verification, "certificate.numbers").outcome == "fail"
    assert outcome(verification, "certificate.enumerated").outcome == "fail", str(verification)


def test_presence_cannot_be_claimed_beside_the_total(tmp_path):
    plain = json.loads(pkdp.certify(pkdp.Histogram(k=20), pkdp.AttackerModel(p_max=0.1)).to_json())
    forged = altered(plain, "attacker", to=lambda each: each | {"leakage": [TOTAL.to_dict()]})
    verification = verify(written(tmp_path, forged), draws=100)
    assert outcome(verification, "certificate.numbers").outcome == "fail"
    assert not verification.passed


def test_thresholds_cannot_be_claimed_where_people_depend_on_one_another(tmp_path):
    plain = json.loads(pkdp.certify(pkdp.Count(k=20), pkdp.AttackerModel(p_max=0.1)).to_json())
    for more in ({"dependent": "household"}, {"dependent": "household", "secret": "conditional"}):
        verification = verify(
            written(tmp_path, altered(plain, "attacker", to=lambda each, more=more: each | more)), draws=100
        )
        assert outcome(verification, "certificate.numbers").outcome == "fail"


def test_a_release_beside_a_total_passes_and_its_forgery_does_not(tmp_path):
    frame = pd.DataFrame({"person": range(90), "party": ["A"] * 50 + ["B"] * 40})
    published = frame.pkdp.histogram(
        "party",
        unit="person",
        k=20,
        domain=["A", "B"],
        attacker=pkdp.AttackerModel(p_max_between=0.6, leakage=TOTAL),
        protects="value",
    )
    assert verify(written(tmp_path, published.to_bytes(), "party.parquet"), draws=100).passed

    def without(document):
        return altered(document, "attacker", to=lambda fields: {k: v for k, v in fields.items() if k != "leakage"})

    # With the id made anew, as somebody would who knows how.
    forged = verify(written(tmp_path, resealed(published.to_bytes(), certificate=without), "forged.parquet"), draws=100)
    assert not forged.passed
    assert outcome(forged, "certificate.words").outcome == "fail"
