"""Files about people in several cells: attackers on all of them are tried, and find out numbers that are too small."""

from __future__ import annotations

import json

import pytest
from thorough import thinned

import pkdp_pipeline as pkdp
from pkdp_pipeline.extras.assurance.attacks.schedules import all_knowing, attackers
from pkdp_pipeline.extras.report.statement import what_if

INDEPENDENT = pkdp.AttackerModel(p_max=0.3, independent_cells=True)
NOISE = pkdp.GeometricNoise(0.5)
CASES = [
    (pkdp.Histogram(k=4, cells_per_unit=2), INDEPENDENT, "presence", "enumerated"),
    (pkdp.Histogram(k=4, cells_per_unit=2), INDEPENDENT, "value", "enumerated"),
    (pkdp.Histogram(noise=NOISE, cells_per_unit=3), pkdp.AttackerModel(), "presence", "anyone"),
    (
        pkdp.Histogram(k=3, noise=NOISE, release_threshold=9, cells_per_unit=2),
        pkdp.AttackerModel(),
        "value",
        "anyone",
    ),
]


@thinned(2)
@pytest.mark.parametrize(("mechanism", "attacker", "protects", "claim"), CASES)
def test_attackers_on_all_cells_come_close_and_never_above(mechanism, attacker, protects, claim, tmp_path):
    certificate = pkdp.certify(mechanism, attacker, protects=protects)
    path = tmp_path / "file.json"
    path.write_text(certificate.to_json())
    verification = pkdp.verify(path)
    assert verification.passed, str(verification)
    (tried,) = [tested for tested in verification.claims if tested.key == f"certificate.{claim}"]
    assert tried.outcome == "pass"
    assert tried.evidence["percent"] >= (97 if claim == "anyone" else 60)
    document = json.loads(certificate.to_json())
    # What one cell alone promises, which is what a file of another would say.
    single = pkdp.certify(pkdp.Histogram(k=mechanism.k, noise=mechanism.noise), pkdp.AttackerModel(p_max=0.3))
    for pair in document["grid"]:
        pair["delta"] = min(pair["delta"], float(single.delta(pair["epsilon"])))
    path.write_text(json.dumps(document))
    assert f"certificate.{claim}" in {each.key for each in pkdp.verify(path).failures}


def test_different_people_are_in_the_cells_that_are_left_and_entered() -> None:
    capped = pkdp.AttackerModel(p_max=0.3, independent_cells=True, unknown_max=6, known=1, influence="active")
    certificate = pkdp.certify(pkdp.Histogram(k=4, cells_per_unit=3), capped, protects="value")
    for schedule in attackers(certificate, 0.5):
        sides = dict.fromkeys((0, None), 0)
        for day in schedule:
            people = sum(group.people for group in day.crowd.unknown)
            sides[day.crowd.first] = max(sides[day.crowd.first], people)
        assert sum(sides.values()) <= 6
        assert sum(day.times for day in schedule) in (3, 6)


def test_who_knows_everybody_looks_at_no_more_cells_than_change() -> None:
    certificate = pkdp.certify(pkdp.Histogram(noise=NOISE, cells_per_unit=5), pkdp.AttackerModel(), protects="value")
    assert max(sum(day.times for day in schedule) for schedule in all_knowing(certificate)) == 10
    assert max(sum(day.times for day in schedule) for schedule in all_knowing(certificate, 2)) == 4


def test_stronger_attackers_are_told_of_in_words() -> None:
    rows = what_if(pkdp.certify(pkdp.Histogram(k=20, cells_per_unit=3), INDEPENDENT))
    words = {row.kind: row for row in rows}
    assert "of a further cell of another person, told all her other cells: 46.2 %" in words["surer"].words
    assert words["surer"].epsilon > words["declared"].epsilon
    assert words["no_evidence"].words.endswith("or that a person's cells do")
    assert words["no_evidence"].verdict == "nothing is certified"
