from __future__ import annotations

from datetime import date

import pytest

from pkdp_pipeline.certificates.release_certificate import certify
from pkdp_pipeline.ledger import Entry
from pkdp_pipeline.ledger.chain import Terms
from pkdp_pipeline.ledger.rows import Row
from pkdp_pipeline.ledger.totals import Together
from pkdp_pipeline.model.attacker import AttackerModel
from pkdp_pipeline.model.context import Facts
from pkdp_pipeline.model.mechanisms import Count, GeometricNoise, Histogram

DAY = date(2020, 1, 1)


def entry(mechanism, *, protects="presence", unit=("person",), attacker=None):
    certificate = certify(mechanism, attacker or AttackerModel(), protects=protects)
    standing = Facts(unit=unit, period=DAY.isoformat(), label="label", mechanism=mechanism, protects=protects)
    return Entry(
        row=Row.of(standing, id=1, key="key", dataset="visits", state="published"),
        standing=standing,
        terms=Terms(),
        release_id="id",
        certificate=certificate.to_json(),
        content=b"",
        created_at="2020-01-02T00:00:00+00:00",
        head="0" * 64,
        hash="1" * 64,
    )


COUNT = Count(noise=GeometricNoise(0.1))
HISTOGRAM = Histogram(k=5, noise=GeometricNoise(0.2), release_threshold=30)


def test_one_release_is_no_sum():
    assert Together.of([]) is None
    assert Together.of([entry(COUNT)]) is None


def test_worst_cases_add_up_rounded_up_for_presence():
    together = Together.of([entry(COUNT), entry(COUNT), entry(HISTOGRAM)])
    epsilon, delta = together.total.worst_case.parameters
    assert epsilon >= 0.1 + 0.1 + 0.2
    assert epsilon == pytest.approx(0.4)
    assert delta == certify(HISTOGRAM, AttackerModel()).worst_case.parameters[1] > 0
    sentence = together.sentence("2020-01-01")
    for words in ("3 releases", "2020-01-01", "private at ε = 0.4", "whatever they know", "The ledger's total"):
        assert words in sentence


def test_a_sum_protects_values_only_when_every_part_does():
    value = entry(HISTOGRAM, protects="value")
    assert Together.of([value, value]).total.protects == "value"
    assert Together.of([value, value]).total.worst_case.parameters[0] == pytest.approx(0.8)
    assert Together.of([value, entry(COUNT)]).total.protects == "presence"


def test_different_units_are_not_added():
    together = Together.of([entry(COUNT), entry(COUNT, unit=("house",))])
    assert together.total is None
    assert "different units" in together.sentence("2020-01-01")


def test_an_exact_count_beside_pure_noise_keeps_a_promise_and_a_threshold_does_not():
    box = AttackerModel(p_min=0.2, p_max=0.8, unknown=10_000)
    together = Together.of([entry(COUNT), entry(Count(), attacker=box)])
    alone = certify(Count(), box)
    assert together.total.epsilon(1e-6) >= alone.epsilon(1e-6) + 0.2
    assert together.total.epsilon(1e-6) == pytest.approx(alone.epsilon(1e-6) + 0.2, rel=1e-4)
    threshold = Together.of([entry(COUNT), entry(Count(k=10), attacker=AttackerModel(p_max=0.1))])
    assert threshold.total is None
    assert "nothing declared" in threshold.sentence("2020-01-01")
