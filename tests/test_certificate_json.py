"""Reading a certificate's JSON strictly."""

from __future__ import annotations

import json
import math

import pytest

from pkdp_pipeline import ArgumentError, AttackerModel, Certificate, Count, NotCertifiableError, certify
from pkdp_pipeline.certificate_json import SCHEMA, compare, parsed

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


def test_numbers_may_differ_by_rounding_only():
    compare("certificate", {"a": 1e-60 * (1 + 1e-12)}, {"a": 1e-60})
    compare("certificate", {"a": [1, "x", None, True]}, {"a": [1, "x", None, True]})
    compare("certificate", 1, 1.0)
    for stored, fresh in [
        (1e-60 * (1 - 1e-8), 1e-60),
        (0.0, 1e-60),
        (1e-320, 0.0),
        (True, 1.0),
        (True, 1),
        (1.0, 1),
        (1, True),
        (0, False),
        (None, 0.0),
        ("1.0", 1.0),
        (math.nan, 1.0),
        (math.nan, math.nan),
        (10**400, 1.0),
        ([1], [1, 2]),
        ({"a": 1}, {"b": 1}),
        ({"a": 1}, {"a": 1, "b": 1}),
        ({"a": 1}, [1]),
    ]:
        with pytest.raises(ArgumentError, match="certificate is not what"):
            compare("certificate", stored, fresh)


def test_the_place_of_a_difference_is_named():
    with pytest.raises(ArgumentError, match=r"certificate\.grid\[1\]\.delta is not what"):
        compare("certificate", {"grid": [{"delta": 1.0}, {"delta": 0.5}]}, {"grid": [{"delta": 1.0}, {"delta": 0.6}]})
