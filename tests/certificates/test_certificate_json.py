"""Reading a certificate's JSON strictly."""

from __future__ import annotations

import json
import math

import pytest

from pkdp_pipeline import ArgumentError, AttackerModel, Certificate, Count, NotCertifiableError, certify
from pkdp_pipeline.certificates.codec import SCHEMA, parsed

TEXT = certify(Count(k=30), AttackerModel(p_max=0.1)).to_json()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "no json",
        "[]",
        "null",
        "1",
        '"text"',
        "{",
        '{"schema": 1}',
        "{}",
        None,
        5,
        "[" * 100_000,
        b"\xff\xfe",
        "\ud800",
    ],
)
def test_what_is_not_a_certificate(text):
    with pytest.raises(ArgumentError, match="certificate"):
        Certificate.from_json(text)


@pytest.mark.parametrize("schema", ["pkdp-certificate/3", "pkdp-certificate", "", None, 1, [SCHEMA], {"a": 1}])
def test_another_schema_is_refused(schema):
    document = json.loads(TEXT)
    document["schema"] = schema
    with pytest.raises(ArgumentError, match="schema must be"):
        parsed(json.dumps(document))


@pytest.mark.parametrize("field", ["mechanism", "attacker", "protects", "caveats", "grid", "library"])
@pytest.mark.parametrize("value", [None, 5, True, "HERE"])
def test_fields_have_to_be_there_and_of_their_kind(field, value):
    document = json.loads(TEXT)
    if field == "protects" and value == "HERE":
        value = 1.5
    document[field] = value
    with pytest.raises(ArgumentError, match=field):
        parsed(json.dumps(document))
    del document[field]
    with pytest.raises(ArgumentError, match=field):
        parsed(json.dumps(document))


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("mechanism", "k"), True),
        (("mechanism", "k"), "30"),
        (("mechanism", "k"), 30.0),
        (("mechanism", "k"), -1),
        (("mechanism", "mechanism"), "mean"),
        (("mechanism", "mechanism"), ["count"]),
        (("mechanism", "noise"), 0.5),
        (("mechanism", "noise"), {"epsilon": math.nan}),
        (("mechanism", "noise"), {"scale": 1.0}),
        (("mechanism", "other"), 1),
        (("attacker", "p_max"), math.nan),
        (("attacker", "p_max"), True),
        (("attacker", "p_max"), 1.5),
        (("attacker", "known"), None),
        (("attacker", "influence"), None),
        (("attacker", "other"), 1),
        (("protects",), "everything"),
    ],
)
def test_a_malformed_mechanism_or_attacker_is_an_argument_error(path, value):
    document = json.loads(TEXT)
    target = document
    for step in path[:-1]:
        target = target[step]
    target[path[-1]] = value
    with pytest.raises(ArgumentError):
        Certificate.from_json(json.dumps(document))


def test_a_certificate_of_what_cannot_be_certified_is_refused():
    document = json.loads(TEXT)
    document["mechanism"]["k"] = 1
    with pytest.raises(NotCertifiableError):
        Certificate.from_json(json.dumps(document))
