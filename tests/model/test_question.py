"""Requests are checked without data, and their key is what was asked and nothing else."""

from __future__ import annotations

import datetime

import pandas as pd
import pytest

from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.model.columns import EACH_ROW
from pkdp_pipeline.model.context import Facts
from pkdp_pipeline.model.mechanisms import Count, GeometricNoise, Histogram
from pkdp_pipeline.model.question import Question

NOISE = GeometricNoise(1.0)


def histogram(**fields) -> Question:
    return Question(**{"mechanism": Histogram(k=5), "unit": "u", "by": "c", "period": "2020", **fields})


def count(**fields) -> Question:
    return Question(**{"mechanism": Count(k=5), "unit": "u", "period": "2020", **fields})


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"unit": ""}, "unit"),
        ({"unit": None}, "EACH_ROW"),
        ({"unit": []}, "EACH_ROW"),
        ({"unit": ["a", "a"]}, "twice"),
        ({"by": None}, "by is needed"),
        ({"by": ["c", 1]}, "column names"),
        ({"by": "Count"}, '"count"'),
        ({"protects": "all"}, "protects"),
        ({"missing_unit": "ignore"}, "missing_unit"),
        ({"units": "trimmed"}, "units"),
        ({"one_cell": "last"}, "one_cell"),
        ({"one_cell": "first"}, "order_by"),
        ({"order_by": "t"}, "order_by"),
        ({"undeclared": "drop"}, "undeclared"),
        ({"undeclared": "absent"}, "declared domain"),
        ({"mechanism": Histogram()}, "needs k"),
        ({"mechanism": Histogram(noise=NOISE)}, "needs release_threshold"),
        ({"mechanism": Histogram(k=5, noise=NOISE)}, "needs release_threshold"),
        ({"mechanism": Histogram(noise=GeometricNoise(1e-200)), "domain": ["x"]}, "64-bit"),
        ({"mechanism": "histogram"}, "mechanism"),
        ({"domain": []}, "domain"),
        ({"where": 3}, "where"),
        ({"where": " "}, "where"),
        ({"period": ""}, "period"),
        ({"period": 2020}, "period"),
        ({"label": ""}, "label"),
    ],
)
def test_a_malformed_histogram_is_refused(fields, words):
    with pytest.raises(ArgumentError, match=words):
        histogram(**fields)


@pytest.mark.parametrize(
    "fields",
    [
        {"by": "c"},
        {"domain": ["x"]},
        {"one_cell": "hash"},
        {"order_by": "t"},
        {"undeclared": "absent"},
    ],
)
def test_a_count_has_no_cells(fields):
    with pytest.raises(ArgumentError, match="has none"):
        count(**fields)


def test_names_become_tuples_and_dates_text():
    question = histogram(unit=["a", "b"], period=datetime.date(2020, 1, 2))
    assert (question.unit, question.by, question.period) == (("a", "b"), ("c",), "2020-01-02")
    assert histogram(unit=EACH_ROW).unit == ()
    assert repr(EACH_ROW) == "pkdp.EACH_ROW"


def test_the_key_is_what_was_asked():
    key = histogram().key("d")
    assert key == histogram().key("d")
    assert len(key) == 64
    for same in (histogram(label="other words"), histogram(protects="value")):
        assert same.key("d") == key
    different = [
        histogram(unit="v"),
        histogram(unit=EACH_ROW),
        histogram(by="e"),
        histogram(by=["c", "e"]),
        histogram(period="2021"),
        histogram(where="x == 1"),
        histogram(where="x == 2"),
        histogram(where=lambda frame: frame.x, label="x == 1"),
        histogram(mechanism=Histogram(k=6)),
        histogram(mechanism=Histogram(k=5, noise=NOISE, release_threshold=9)),
        histogram(missing_unit="drop"),
        histogram(one_cell="hash"),
        histogram(one_cell="first", order_by="t"),
        histogram(one_cell="first", order_by="s"),
        histogram(domain=["x", "y"]),
        histogram(domain=["x"]),
        histogram(domain=["x", "y"], undeclared="absent"),
        histogram(table="events"),
        histogram(table="visits"),
        count(),
    ]
    assert len({key, histogram().key("e"), *(question.key("d") for question in different)}) == len(different) + 2
    assert histogram(domain=["x", "y"]).key("d") == histogram(domain=["y", "x"]).key("d")


@pytest.mark.parametrize("where", [pd.Series([True]), lambda frame: frame.x])
def test_an_opaque_predicate_needs_a_label(where):
    with pytest.raises(ArgumentError, match="label"):
        count(where=where).key("d")
    assert count(where=where, label="a").key("d") != count(where=where, label="b").key("d")


@pytest.mark.parametrize(
    ("mechanism", "noiseless"),
    [
        (Histogram(k=5), True),
        (Histogram(k=5, noise=NOISE), True),
        (Histogram(noise=NOISE), False),
        (Histogram(k=5, noise=NOISE, release_threshold=9), False),
        (Histogram(noise=NOISE, release_threshold=9), False),
        (Count(k_complement=5, noise=NOISE, release_threshold=9), True),
        (Count(noise=NOISE), False),
        (Count(), True),
    ],
)
def test_only_noise_with_a_finite_worst_case_counts_as_noise(mechanism, noiseless):
    fields = {"by": "c", "domain": ["x"]} if isinstance(mechanism, Histogram) else {}
    question = Question(mechanism=mechanism, unit="u", period="2020", **fields)
    assert question.facts().noiseless is noiseless
    from pkdp_pipeline.certificates.release_certificate import certify
    from pkdp_pipeline.model.attacker import AttackerModel

    attacker = AttackerModel(p_max=0.1, p_min=0.1, unknown=1000)
    worst = certify(mechanism, attacker, protects="value" if mechanism == Histogram() else "presence").worst_case
    assert (worst.parameters is None or worst.parameters[1] >= 1.0) is noiseless


def test_standing_needs_a_period_and_says_what_is_published():
    with pytest.raises(ArgumentError, match="period"):
        count(period=None).facts()
    assert count().facts().label == "count"
    assert histogram(by=["c", "e"]).facts().label == "histogram by c, e"
    assert histogram(label="mine").facts().label == "mine"


def test_a_table_is_part_of_the_question_and_of_its_name():
    standing = histogram(period="2020", table="events").facts()
    assert (standing.table, standing.label) == ("events", "histogram by c of events")
    assert Facts.from_dict(standing.to_dict()) == standing
    assert "table" not in histogram(period="2020").facts().to_dict()
    with pytest.raises(ArgumentError, match="table must be a non-empty text"):
        histogram(table=" ")
