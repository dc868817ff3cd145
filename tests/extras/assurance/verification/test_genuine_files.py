"""Files that are genuine pass, whatever they are."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pandas as pd
import pytest
from published_files import CERTIFIED, certificate, composed, outcome, release, written
from thorough import one_in, thinned

import pkdp_pipeline as pkdp
from pkdp_pipeline.extras.assurance.verification import verify

SCHEMA = Path(pkdp.__file__).parent / "schemas" / "verification.v1.json"
VALIDATOR = jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text(encoding="utf-8")))


def checked(path, **options):
    verification = verify(path, **options)
    VALIDATOR.validate(json.loads(verification.to_json()))
    assert verification.file == path.name
    return verification


@thinned(5)
@pytest.mark.parametrize("theorem", one_in(2, CERTIFIED))
def test_every_kind_of_certificate_passes(tmp_path, theorem):
    verification = checked(written(tmp_path, certificate(theorem).to_json()))
    assert verification.kind == "certificate"
    assert verification.passed, str(verification)
    assert outcome(verification, "certificate.numbers").outcome == "pass"
    assert outcome(verification, "certificate.words").outcome == "pass"
    tried = {claim.key: claim.outcome for claim in verification.claims}
    attacks = ("certificate.enumerated", "certificate.simulated", "certificate.anyone")
    assert "pass" in [tried.get(key) for key in attacks], str(verification)


@thinned(2)
@pytest.mark.parametrize("kind", ["one_day", "noise", "nested", pytest.param("habits", marks=pytest.mark.slow)])
def test_a_total_passes_with_all_of_its_parts(tmp_path, kind):
    verification = checked(written(tmp_path, composed(kind).to_json()))
    assert verification.passed, str(verification)
    parts = {"one_day": 3, "noise": 3, "nested": 6, "habits": 2}
    assert outcome(verification, "certificate.numbers").evidence["certificates"] == parts[kind]


@thinned(3)
@pytest.mark.parametrize("kind", ["found", "declared", "noised", "declared, below", "found, below", "shown", "count"])
def test_every_kind_of_release_passes(tmp_path, kind):
    verification = checked(written(tmp_path, release(kind), "visits.parquet"))
    assert verification.kind == "release"
    assert verification.passed, str(verification)
    assert [claim.key for claim in verification.unchecked if not claim.key.startswith("certificate.")] == [
        "counts.published",
        "assumptions.declared",
    ]
    assert outcome(verification, "certificate.own_texts").outcome == "pass"


@thinned(2)
@pytest.mark.parametrize("unit", ["s", "us", "ns"])
@pytest.mark.parametrize("declared", [False, True])
def test_cells_named_by_moments_in_a_time_zone_are_no_false_alarm(tmp_path, unit, declared):
    days = pd.to_datetime(["2020-01-01", "2020-01-02", None] * 40).tz_localize("Europe/Oslo").as_unit(unit)
    people = pd.DataFrame({"person": range(120), "day": days})
    published = people.pkdp.histogram(
        "day",
        unit="person",
        k=20,
        attacker=pkdp.AttackerModel(p_max=0.1),
        domain=list(people["day"].unique()) if declared else None,
    )
    verification = checked(written(tmp_path, published.to_bytes()), draws=100)
    assert verification.passed, str(verification)
