"""The JSON schema of certificates describes what `Certificate.to_json` writes, and nothing else."""

from __future__ import annotations

import copy
import dataclasses
import json
from pathlib import Path

import jsonschema
import pytest

import pkdp_pipeline as pkdp
from pkdp_pipeline.certificates.codec import SCHEMA
from pkdp_pipeline.model.context import Context
from pkdp_pipeline.theorems import THEOREMS

FILE = Path(pkdp.__file__).parent / "schemas" / "certificate.v1.json"
DOCUMENT = json.loads(FILE.read_text(encoding="utf-8"))
VALIDATOR = jsonschema.Draft202012Validator(DOCUMENT)

NOISE = pkdp.GeometricNoise(0.5)
BOX = pkdp.AttackerModel(p_min=0.1, p_max=0.6, unknown=300)
MADE = {
    "thresholding": (pkdp.Count(k=20), pkdp.AttackerModel(p_max=0.1, known=3, influence="active"), "presence"),
    "thresholding_complement": (pkdp.Count(k_complement=30), pkdp.AttackerModel(p_min=0.2), "presence"),
    "thresholding_in_box": (pkdp.Count(k=20), BOX, "presence"),
    "noisy_thresholding_in_box": (
        pkdp.Count(k=5, noise=NOISE, release_threshold=9),
        pkdp.AttackerModel(p_min=0.3, p_max=0.5, unknown=9),
        "presence",
    ),
    "complement_in_box": (pkdp.Count(k_complement=20), BOX, "presence"),
    "two_thresholds_in_box": (pkdp.Count(k=20, k_complement=20), BOX, "presence"),
    "counting": (pkdp.Count(), BOX, "presence"),
    "noisy_counting": (pkdp.Count(noise=NOISE), BOX, "presence"),
    "noisy_thresholding": (pkdp.Count(k=20, noise=NOISE), pkdp.AttackerModel(p_max=0.1), "presence"),
    "noisy_presence": (
        pkdp.Histogram(k=20, noise=NOISE, release_threshold=40),
        pkdp.AttackerModel(p_max=0.1),
        "presence",
    ),
    "histogram_presence": (pkdp.Histogram(k=20), pkdp.AttackerModel(p_max=0.1, unknown_max=99), "presence"),
    "histogram_value": (pkdp.Histogram(k=20), pkdp.AttackerModel(p_max=0.1, known=2), "value"),
    "histogram_between": (pkdp.Histogram(k=40), pkdp.AttackerModel(p_max_between=0.7), "value"),
    "options": (pkdp.Histogram(), pkdp.AttackerModel(p_min=0.2, unknown=500), "value"),
    "noisy_between": (
        pkdp.Histogram(k=6, noise=pkdp.GeometricNoise(1.0), release_threshold=14),
        pkdp.AttackerModel(p_max_between=0.6),
        "value",
    ),
    "noisy_options": (pkdp.Histogram(noise=NOISE), pkdp.AttackerModel(p_min=0.2, unknown=500), "value"),
    "cell_counting": (pkdp.Histogram(), BOX, "presence"),
    "noisy_cell_counting": (pkdp.Histogram(noise=NOISE), BOX, "presence"),
    "noise": (pkdp.Histogram(k=5, noise=NOISE, release_threshold=40), pkdp.AttackerModel(), "value"),
    "noise_beside_leakage": (
        pkdp.Histogram(noise=NOISE),
        pkdp.AttackerModel(
            leakage=[
                pkdp.Leakage.total(),
                pkdp.Leakage(
                    "the noised turnout",
                    shared_by=("presence",),
                    epsilon=0.1,
                    delta=1e-9,
                    dependence_epsilon=0.1,
                    dependence_delta=1e-9,
                ),
            ]
        ),
        "value",
    ),
    "counting_beside_leakage": (
        pkdp.Count(),
        pkdp.AttackerModel(
            p_min=0.1,
            p_max=0.6,
            unknown=300,
            leakage=pkdp.Leakage("the noised turnout", epsilon=0.1),
            dependent="household",
            secret="conditional",
        ),
        "presence",
    ),
    "leaked": (pkdp.Count(), pkdp.AttackerModel(leakage=pkdp.Leakage.total()), "value"),
}


def document(theorem: str) -> dict:
    mechanism, attacker, protects = MADE[theorem]
    certificate = pkdp.certify(mechanism, attacker, protects=protects)
    assert theorem in certificate.theorems
    context = Context(unit=("u",), period="2020", dataset="default", head="0" * 64)
    return json.loads(certificate.in_context(context).with_caveats("Nothing else is published.").to_json())


def paths(value: object, path: tuple = ()) -> list[tuple]:
    """Return the path of every object's member, wherever it is."""
    found = []
    if isinstance(value, dict):
        for key, inner in value.items():
            found += [(*path, key), *paths(inner, (*path, key))]
    elif isinstance(value, list) and value:
        found += paths(value[0], (*path, 0))
    return found


def at(value, path):
    for step in path:
        value = value[step]
    return value


def test_the_schema_is_a_schema_of_the_version_that_is_written():
    jsonschema.Draft202012Validator.check_schema(DOCUMENT)
    for kind in ("release", "composed"):
        assert DOCUMENT["$defs"][kind]["properties"]["schema"]["const"] == SCHEMA


def test_the_schema_names_every_theorem_and_field_there_is():
    assert set(DOCUMENT["$defs"]["theorem"]["properties"]["key"]["enum"]) == set(THEOREMS)
    assert set(MADE) == {key for key, one in THEOREMS.items() if not one.is_rule}
    for name, kind in (("attacker", pkdp.AttackerModel), ("count", pkdp.Count), ("histogram", pkdp.Histogram)):
        fields = {field.name for field in dataclasses.fields(kind)}
        assert set(DOCUMENT["$defs"][name]["properties"]) - {"mechanism"} == fields


@pytest.mark.parametrize("theorem", MADE)
def test_every_kind_of_certificate_is_valid(theorem):
    VALIDATOR.validate(document(theorem))


def test_a_context_may_name_a_table():
    context = Context(unit=("u",), period="2020", dataset="default", table="events")
    certificate = pkdp.certify(*MADE["noise"][:2]).in_context(context)
    VALIDATOR.validate(json.loads(certificate.to_json()))
    assert "The rows are those of table 'events'." in certificate.sentence()
    assert pkdp.Certificate.from_json(certificate.to_json()) == certificate


@pytest.mark.parametrize("theorem", ["histogram_presence", "noise"])
def test_members_can_be_neither_missing_nor_invented(theorem):
    made = document(theorem)
    for path in paths(made):
        without = copy.deepcopy(made)
        del at(without, path[:-1])[path[-1]]
        assert not VALIDATOR.is_valid(without), path
        more = copy.deepcopy(made)
        at(more, path[:-1])["invented"] = 1
        assert not VALIDATOR.is_valid(more), path


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("schema",), "pkdp-certificate/2"),
        (("protects",), "everything"),
        (("attacker", "p_max"), 1.5),
        (("attacker", "p_max"), "0.1"),
        (("attacker", "p_max_between"), 0.4),
        (("attacker", "known"), None),
        (("attacker", "known"), -1),
        (("attacker", "influence"), "bold"),
        (("mechanism", "k"), 0),
        (("mechanism", "k"), 2.5),
        (("mechanism", "mechanism"), "mean"),
        (("mechanism", "noise"), {"epsilon": 0}),
        (("mechanism", "release_threshold"), 10),
        (("theorems",), []),
        (("theorems", 0, "key"), "folklore"),
        (("assumptions",), []),
        (("caveats",), [""]),
        (("grid",), []),
        (("grid", 0, "delta"), 1.01),
        (("grid", 0, "epsilon"), -0.1),
        (("worst_case",), {"epsilon": 1.0, "delta": 0.0}),
        (("sentence",), ""),
    ],
)
def test_what_no_certificate_says_is_not_valid(path, value):
    made = document("histogram_presence")
    at(made, path[:-1])[path[-1]] = value
    assert not VALIDATOR.is_valid(made)
