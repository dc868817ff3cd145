"""The JSON schema of certificates: what it names, and values that no certificate has.

Frozen certificates rest on every theorem, and what is written is what they are (tests/certificates/test_frozen.py);
they are valid, and what is near them is not (tests/test_published_schemas.py).
"""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import jsonschema
import pytest
from thorough import thinned

import pkdp_pipeline as pkdp
from pkdp_pipeline.certificates.codec import SCHEMA
from pkdp_pipeline.model.context import Context
from pkdp_pipeline.theorems.theorems import THEOREMS

FILE = Path(pkdp.__file__).parent / "schemas" / "certificate.v1.json"
DOCUMENT = json.loads(FILE.read_text(encoding="utf-8"))
VALIDATOR = jsonschema.Draft202012Validator(DOCUMENT)

CERTIFICATE = pkdp.certify(pkdp.Histogram(k=20), pkdp.AttackerModel(p_max=0.1, unknown_max=99))
CONTEXT = Context(unit=("u",), period="2020", dataset="default", head="0" * 64)


def value_at(value, path):
    for step in path:
        value = value[step]
    return value


def test_the_schema_is_of_the_version_that_is_written():
    for kind in ("release", "composed"):
        assert DOCUMENT["$defs"][kind]["properties"]["schema"]["const"] == SCHEMA


def test_the_schema_names_every_theorem_and_field_there_is():
    assert set(DOCUMENT["$defs"]["theorem"]["properties"]["key"]["enum"]) == set(THEOREMS)
    for name, kind in (("attacker", pkdp.AttackerModel), ("count", pkdp.Count), ("histogram", pkdp.Histogram)):
        fields = {field.name for field in dataclasses.fields(kind)}
        assert set(DOCUMENT["$defs"][name]["properties"]) - {"mechanism"} == fields


def test_a_context_may_name_a_table():
    certificate = CERTIFICATE.in_context(dataclasses.replace(CONTEXT, table="events"))
    VALIDATOR.validate(json.loads(certificate.to_json()))
    assert "The rows are those of table 'events'." in certificate.sentence()
    assert pkdp.Certificate.from_json(certificate.to_json()) == certificate


@thinned(4)
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
    certificate = CERTIFICATE.in_context(CONTEXT).with_caveats("Nothing else is published.")
    content = json.loads(certificate.to_json())
    VALIDATOR.validate(content)
    value_at(content, path[:-1])[path[-1]] = value
    assert not VALIDATOR.is_valid(content)
