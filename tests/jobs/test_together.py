from __future__ import annotations

import math
from datetime import date

import pytest

from pkdp_pipeline.attacker import AttackerModel
from pkdp_pipeline.release_certificate import certify
from pkdp_pipeline.jobs.together import Together
from pkdp_pipeline.ledger import Entry
from pkdp_pipeline.mechanisms import Count, GeometricNoise, Histogram

DAY = date(2020, 1, 1)


def entry(mechanism, *, protects="presence", unit=("person",), attacker=None):
    certificate = certify(mechanism, attacker or AttackerModel(), protects=protects)
    return Entry(
        sequence=1,
        key="key",
        dataset="visits",
        unit=unit,
        period=DAY.isoformat(),
        label="label",
        noiseless=mechanism.noise is None,
        state="published",
        release_id="id",
        certificate=certificate.to_json(),
        content=b"",
        created_at="2020-01-02T00:00:00+00:00",
    )


COUNT = Count(noise=GeometricNoise(0.1))
HISTOGRAM = Histogram(k=5, noise=GeometricNoise(0.2), release_threshold=30)


def test_one_release_is_no_sum():
    assert Together.of([]) is None
    assert Together.of([entry(COUNT)]) is None


def test_worst_cases_add_up_rounded_up_for_presence():
    together = Together.of([entry(COUNT), entry(COUNT), entry(HISTOGRAM)])
    epsilon, delta = together.guarantee
    assert epsilon >= 0.1 + 0.1 + 0.2
    assert epsilon == pytest.approx(0.4)
    assert delta == certify(HISTOGRAM, AttackerModel()).worst_case.parameters[1] > 0
    sentence = together.sentence(DAY)
    for words in ("3 releases", "2020-01-01", "ε = 0.4", "whether a person is there", "that day alone"):
        assert words in sentence


def test_a_sum_protects_values_only_when_every_part_does():
    value = entry(HISTOGRAM, protects="value")
    assert "which of two published cells" in Together.of([value, value]).sentence(DAY)
    assert Together.of([value, value]).guarantee[0] == pytest.approx(0.8)
    mixed = Together.of([value, entry(COUNT)])
    assert not mixed.value
    assert "whether a person is there" in mixed.sentence(DAY)


def test_different_units_are_not_added():
    together = Together.of([entry(COUNT), entry(COUNT, unit=("house",))])
    assert together.guarantee is None
    assert "different units" in together.sentence(DAY)


def test_a_part_without_a_worst_case_leaves_none():
    exact = entry(Count(k=10), attacker=AttackerModel(p_max=0.1))
    assert Together.of([entry(COUNT), exact]).guarantee == (math.inf, 1.0)
