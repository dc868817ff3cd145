"""CountingQueries: families of counts over a public domain, their sensitivity, and the noise they need."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from thorough import few

import pkdp_pipeline as pkdp

DOMAIN = {"age": ["<65", "65+"], "smokes": [True, False]}
FAMILY = pkdp.CountingQueries.over(
    DOMAIN,
    {
        "smokers": {"smokes": True},
        "old smokers": {"age": "65+", "smokes": True},
        "one of both": lambda record: (record["age"] == "65+") != record["smokes"],
        "two records": [("65+", False), ("<65", False)],
        "everybody": {},
    },
)


def test_questions_are_conditions_functions_or_records():
    assert FAMILY.names == ("smokers", "old smokers", "one of both", "two records", "everybody")
    assert FAMILY.counts({"age": "65+", "smokes": True}) == ("smokers", "old smokers", "everybody")
    assert FAMILY.counts({"smokes": False, "age": "65+"}) == ("one of both", "two records", "everybody")
    assert FAMILY.counts({"smokes": False, "age": "<65"}) == ("two records", "everybody")
    several = pkdp.CountingQueries.over({"a": [1, 2, 3]}, {"some": {"a": [1, 3]}, "same": {"a": {1, 3}}})
    assert several.counted[0][1] == several.counted[1][1] == {(1,), (3,)}
    assert "smokers" in repr(FAMILY)
    assert len(repr(pkdp.CountingQueries.over({"a": range(1000)}, {"all": {}}))) < 100


def test_it_is_a_value():
    again = pkdp.CountingQueries.over({"a": [1, 2]}, {"one": {"a": 1}})
    assert again == pkdp.CountingQueries.over({"a": (1, 2)}, {"one": [(1,)]})
    assert hash(again) == hash(pkdp.CountingQueries.over({"a": (1, 2)}, {"one": [(1,)]}))
    assert again != FAMILY


def test_functions_are_asked_about_the_domain_and_nothing_else():
    evaluated = []

    def young(record):
        evaluated.append(dict(record))
        return record["age"] == "<65"

    family = pkdp.CountingQueries.over(DOMAIN, {"young": young})
    assert evaluated == [dict(zip(DOMAIN, values, strict=True)) for values in product(*DOMAIN.values())]
    family.sensitivity("value")
    family.where("young")
    assert len(evaluated) == 4


def test_the_sensitivity_of_some_families():
    assert (FAMILY.sensitivity(), FAMILY.sensitivity("value")) == (3, 4)
    cells = pkdp.CountingQueries.over({"a": range(5)}, {str(a): {"a": a} for a in range(5)})
    assert (cells.sensitivity(), cells.sensitivity("value")) == (1, 2)
    nested = pkdp.CountingQueries.over({"a": range(10)}, {f"{a}+": {"a": range(a, 10)} for a in (2, 5, 9)})
    assert (nested.sensitivity(), nested.sensitivity("value")) == (3, 3)
    nobody = pkdp.CountingQueries.over({"a": [1]}, {"none": []})
    assert (nobody.sensitivity(), nobody.sensitivity("value")) == (0, 0)
    # Everybody is in it: what a record says changes nothing, but whether it is there does.
    twice = pkdp.CountingQueries.over({"a": [1, 2]}, {"all": {}, "again": {}, "one": {"a": 1}})
    assert (twice.sensitivity(), twice.sensitivity("value")) == (3, 3)


@settings(max_examples=few(60), deadline=None)
@given(data=st.data())
def test_the_sensitivity_is_the_largest_change_of_any_two_lives(data):
    columns = {
        name: list(range(data.draw(st.integers(1, 4)))) for name in ("a", "b", "c")[: data.draw(st.integers(1, 3))]
    }
    records = list(product(*columns.values()))
    queries = {
        f"q{j}": data.draw(st.lists(st.sampled_from(records), unique=True)) for j in range(data.draw(st.integers(1, 6)))
    }
    family = pkdp.CountingQueries.over(columns, queries)

    def answers(record):
        return [record in counted for counted in queries.values()]

    def apart(first, second):
        return sum(abs(a - b) for a, b in zip(answers(first), answers(second), strict=True))

    lives = [None, *records]
    presence = max(apart(record, None) for record in records)
    assert family.sensitivity() == presence
    value = max(apart(live, other) for live in lives for other in lives)
    assert family.sensitivity("value") == value
    assert presence <= value <= 2 * presence


@settings(max_examples=few(200), deadline=None)
@given(epsilon=st.floats(min_value=1e-300, max_value=1e300), changes=st.integers(1, 60), protects=st.booleans())
def test_the_noise_is_the_least_that_suffices(epsilon, changes, protects):
    family = pkdp.CountingQueries.over({"a": [0, 1]}, {str(j): {"a": 1} for j in range(changes)})
    noise = family.noise(epsilon, "value" if protects else "presence").epsilon
    assert Fraction(noise) * changes <= Fraction(epsilon) < Fraction(math.nextafter(noise, math.inf)) * changes


def test_evidence_says_how_far_and_for_which_lives():
    assert FAMILY.evidence() == pkdp.BoundedSensitivity(3, "presence")
    assert FAMILY.evidence("value") == pkdp.BoundedSensitivity(4, "value")
    assert pkdp.CountingQueries.over({"a": [1]}, {"none": []}).evidence().changes == 1


@pytest.mark.slow
def test_many_records_are_compared_quickly_and_exactly():
    rng = np.random.default_rng(4)
    domain = {"a": range(40), "b": range(40), "c": range(20)}
    members = {f"q{j}": set(rng.choice(40, 20, replace=False).tolist()) for j in range(9)}
    columns = ("a", "b", "c")
    family = pkdp.CountingQueries.over(
        domain,
        {
            name: {columns[j % 3]: [value for value in domain[columns[j % 3]] if value in inside]}
            for j, (name, inside) in enumerate(members.items())
        },
    )
    # Columns are free of each other, so the largest changes add up column by column.
    expected = {"presence": 0, "value": 0}
    for index, column in enumerate(columns):
        rows = [[value in members[f"q{j}"] for j in range(index, 9, 3)] for value in domain[column]]
        expected["presence"] += max(map(sum, rows))
        expected["value"] += max(sum(a != b for a, b in zip(r, s, strict=True)) for r in rows for s in rows)
    assert family.sensitivity() == expected["presence"]
    assert family.sensitivity("value") == max(expected.values())


def test_a_question_is_written_as_a_query_that_counts_records_of_the_domain_only():
    domain = {
        "age group": ["<65", 'it\'s "old"'],
        "smokes": [True, False],
        "visits": [0, 1, np.int64(2)],
        "w": [0.5, 1.5],
    }
    rng = np.random.default_rng(8)
    records = list(product(*domain.values()))
    queries = {f"q{j}": [record for record in records if rng.random() < 0.3] for j in range(3)}
    queries |= {"smokers": {"smokes": True}, "all": {}, "rare": {"visits": [1, 2], "w": 1.5}}
    family = pkdp.CountingQueries.over(domain, queries)
    strange = [("<65", True, 3, 0.5), ("?", False, 0, 0.5), (None, True, 1, 1.5), ("<65", True, 1, 2.5)]
    frame = pd.DataFrame([*records, *strange], columns=list(domain))
    noise = pkdp.GeometricNoise(50.0)
    for name, members in family.counted:
        selected = frame.query(family.where(name))
        assert set(selected.itertuples(index=False, name=None)) == set(members)
        release = frame.pkdp.count(family.where(name), unit=pkdp.EACH_ROW, noise=noise, attacker=pkdp.AttackerModel())
        assert release.table["count"].tolist() == [len(members)]


def test_three_overlapping_counts_cost_what_one_person_can_change():
    family = pkdp.CountingQueries.over(
        DOMAIN, {"smokers": {"smokes": True}, "old": {"age": "65+"}, "young": {"age": "<65"}}
    )
    frame = pd.DataFrame({"age": ["<65", "65+"] * 50, "smokes": [True] * 50 + [False] * 50, "id": range(100)})
    certificates = [
        frame.pkdp.count(
            family.where(name), unit="id", noise=family.noise(1.0), attacker=pkdp.AttackerModel()
        ).certificate
        for name in family.names
    ]
    assert pkdp.compose(certificates, family.evidence()).epsilon(0.0) == 1.0
    assert pkdp.compose(certificates).epsilon(0.0) == 1.5
    value = [
        frame.pkdp.count(
            family.where(name), unit="id", noise=family.noise(1.0, "value"), attacker=pkdp.AttackerModel()
        ).certificate
        for name in family.names
    ]
    assert 1.0 - 1e-15 <= pkdp.compose(value, family.evidence("value")).epsilon(0.0) <= 1.0


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: pkdp.CountingQueries.over({}, {"q": {}}), "domain must be a mapping"),
        (lambda: pkdp.CountingQueries.over([("a", [1])], {"q": {}}), "domain must be a mapping"),
        (lambda: pkdp.CountingQueries.over({1: [1]}, {"q": {}}), "as texts"),
        (lambda: pkdp.CountingQueries.over({"a": "text"}, {"q": {}}), "must be a list of values"),
        (lambda: pkdp.CountingQueries.over({"a": []}, {"q": {}}), "at least one value"),
        (lambda: pkdp.CountingQueries.over({"a": [1, 1]}, {"q": {}}), "none twice"),
        (lambda: pkdp.CountingQueries.over({"a": [[1]]}, {"q": {}}), "must be plain"),
        (lambda: pkdp.CountingQueries.over({"a": range(1001), "b": range(1000)}, {"q": {}}), "more than 1000000"),
        (lambda: pkdp.CountingQueries.over({"a": [1]}, {}), "at least one entry"),
        (lambda: pkdp.CountingQueries.over({"a": [1]}, {1: {}}), "name of a query must be a text"),
        (lambda: pkdp.CountingQueries.over({"a": [1]}, {"q": {"b": 1}}), "not in the domain"),
        (lambda: pkdp.CountingQueries.over({"a": [1]}, {"q": {"a": 2}}), "not in the domain"),
        (lambda: pkdp.CountingQueries.over({"a": [1]}, {"q": {"a": [[1]]}}), "must be plain"),
        (lambda: pkdp.CountingQueries.over({"a": [1]}, {"q": [(2,)]}), "not in the domain"),
        (lambda: pkdp.CountingQueries.over({"a": [1]}, {"q": [1]}), "not in the domain"),
        (lambda: pkdp.CountingQueries.over({"a": [1]}, {"q": [([1],)]}), "must be plain"),
        (lambda: pkdp.CountingQueries.over({"a": [1]}, {"q": "a == 1"}), "must be conditions"),
        (lambda: pkdp.CountingQueries.over({"a": [1]}, {"q": 7}), "must be conditions"),
        (lambda: pkdp.CountingQueries.over({"a": [1]}, {"q": lambda record: 1}), "True or False"),
        (lambda: FAMILY.sensitivity("both"), "protects must be one of"),
        (lambda: FAMILY.noise(0.0), "epsilon"),
        (lambda: FAMILY.noise(5e-324), "too small"),
        (lambda: pkdp.CountingQueries.over({"a": [1]}, {"none": []}).noise(1.0), "need no noise"),
        (lambda: FAMILY.counts({"age": "65+"}), "one value of the domain"),
        (lambda: FAMILY.counts({"age": "66+", "smokes": True}), "one value of the domain"),
        (lambda: FAMILY.where("nobody"), "smokers, old smokers"),
        (lambda: pkdp.CountingQueries.over({"a": [None]}, {"q": {}}).where("q"), "cannot be written"),
        (lambda: pkdp.CountingQueries.over({"a`": [1]}, {"q": {}}).where("q"), "cannot be written"),
        (lambda: pkdp.CountingQueries.over({"@a": [1]}, {"q": {}}).where("q"), "cannot be written"),
        (lambda: pkdp.CountingQueries.over({"a": ["me@home"]}, {"q": {}}).where("q"), "cannot be written"),
    ],
)
def test_what_is_malformed_is_an_error_that_says_what_to_do(make, words):
    with pytest.raises(pkdp.ArgumentError, match=words):
        make()


def test_what_is_too_long_is_not_written_down():
    odd = pkdp.CountingQueries.over(
        {"a": range(30), "b": range(30)}, {"odd": lambda record: (record["a"] + record["b"]) % 2 == 1}
    )
    with pytest.raises(pkdp.ArgumentError, match="too long"):
        odd.where("odd")
