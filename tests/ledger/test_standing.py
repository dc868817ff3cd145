from __future__ import annotations

import json

import pytest
from thorough import thinned

from pkdp_pipeline.certificates.release_certificate import certify
from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.model.attacker import AttackerModel
from pkdp_pipeline.model.context import Facts
from pkdp_pipeline.model.mechanisms import Count, GeometricNoise, Histogram

NOISE = GeometricNoise(0.5)
FIELDS = {"unit": ("tailnum",), "period": "2013", "label": "x", "mechanism": Histogram(k=5), "by": ("carrier",)}


@thinned(4)
@pytest.mark.parametrize(
    ("mechanism", "kind"),
    [
        (Count(), "exact count"),
        (Count(k=5), "noiseless"),
        (Count(k_complement=5), "noiseless"),
        (Count(noise=NOISE), "pure noise"),
        (Count(noise=NOISE, release_threshold=3), "pure noise"),
        (Count(k=5, noise=NOISE), "noiseless"),
        (Count(k=5, noise=NOISE, release_threshold=9), "noised"),
        (Count(k_complement=5, noise=NOISE), "noiseless"),
        (Count(k_complement=5, noise=NOISE, release_threshold=9), "noiseless"),
        (Histogram(), "noiseless"),
        (Histogram(k=5), "noiseless"),
        (Histogram(noise=NOISE), "pure noise"),
        (Histogram(noise=NOISE, release_threshold=3), "pure noise"),
        (Histogram(k=5, noise=NOISE), "noiseless"),
        (Histogram(k=5, noise=NOISE, release_threshold=9), "noised"),
    ],
)
def test_the_kind_is_what_the_worst_case_says(mechanism, kind):
    standing = Facts(**FIELDS | {"mechanism": mechanism, "by": None})
    assert standing.kind == kind
    assert standing.noiseless is (kind in ("exact count", "noiseless"))
    assert standing.exact_count is (kind == "exact count")
    attacker = AttackerModel(p_max=0.1, p_min=0.1, unknown=1000)
    worst = certify(mechanism, attacker, protects="value" if mechanism == Histogram() else "presence").worst_case
    assert (worst.parameters is None or worst.parameters[1] >= 1.0) is standing.noiseless
    assert (worst.parameters is not None and worst.parameters[1] == 0.0) is (kind == "pure noise")


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"by": None, "mechanism": Count(noise=NOISE), "where": "a == 'ü'"},
        {"opaque": True, "unit": ()},
        {"table": "main.é"},
    ],
)
def test_a_standing_survives_json(change):
    standing = Facts(**FIELDS | change)
    assert Facts.from_dict(json.loads(json.dumps(standing.to_dict()))) == standing


@pytest.mark.parametrize(
    "change",
    [
        {"unit": ["tailnum"]},
        {"unit": (1,)},
        {"by": ["carrier"]},
        {"period": ""},
        {"period": "2.1.2013"},
        {"label": None},
        {"mechanism": "histogram"},
        {"where": 3},
        {"opaque": 1},
        {"protects": "all"},
    ],
)
def test_a_malformed_standing_is_an_argument_error(change):
    with pytest.raises(ArgumentError):
        Facts(**FIELDS | change)


@pytest.mark.parametrize(
    "change",
    [
        {"leakage": 1},
        {"unit": "tailnum"},
        {"by": "carrier"},
        {"mechanism": {"mechanism": "mean"}},
        {"mechanism": None},
        {"period": None},
    ],
)
def test_a_malformed_document_is_an_argument_error(change):
    with pytest.raises(ArgumentError):
        Facts.from_dict(Facts(**FIELDS).to_dict() | change)
    with pytest.raises(ArgumentError):
        Facts.from_dict({"unit": []})


@pytest.mark.parametrize("name", ["label", "where", "table"])
@pytest.mark.parametrize("text", ["a\ud800", "\udfff"])
def test_half_a_character_is_refused_and_not_quoted(name, text):
    with pytest.raises(ArgumentError) as raised:
        Facts(**{"unit": ("u",), "period": "2013", "label": "x", "mechanism": Histogram(k=5), name: text})
    assert text not in str(raised.value)
