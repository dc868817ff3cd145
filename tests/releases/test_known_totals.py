"""Tables beside exact totals of their groups: what is published, what is refused, and what follows of hidden cells."""

from __future__ import annotations

from functools import lru_cache
from itertools import product

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from thorough import examples, thinned

import pkdp_pipeline as pkdp
from pkdp_pipeline.model.evidence import BoundedDependence
from pkdp_pipeline.model.question import Question
from pkdp_pipeline.releases.publish import Publication
from pkdp_pipeline.releases.release import Release

BY_REGION = pkdp.Leakage.totals(by="region")
BY_ANSWER = pkdp.Leakage.totals(by="answer")
TOLD = pkdp.AttackerModel(p_max_between=0.6, leakage=BY_REGION)
TOLD_BOTH = pkdp.AttackerModel(p_max_between=0.6, leakage=[BY_REGION, BY_ANSWER])
SURE = pkdp.AttackerModel(p_max_between=0.6)
NUMBER = pkdp.AttackerModel(p_max_between=0.6, leakage=pkdp.Leakage.total())
CELLS = {"region": ["north", "south"], "answer": ["a", "b", "c"]}
DAY = "2021-03-01"
COUNTS = {
    ("north", "a"): 90,
    ("north", "b"): 60,
    ("north", "c"): 7,
    ("south", "a"): 80,
    ("south", "b"): 3,
    ("south", "c"): 5,
}


@lru_cache(maxsize=4)
def people(counts):
    rows = [cell for cell, number in counts for _ in range(number)]
    frame = pd.DataFrame(rows, columns=["region", "answer"]).astype("str")
    return frame.assign(id=range(len(frame)))


def table(attacker=TOLD, counts=COUNTS, by=("region", "answer"), **more):
    terms = {"unit": "id", "k": 50, "protects": "value", "attacker": attacker, **more}
    terms.setdefault("domain", {name: CELLS[name] for name in by} if len(by) > 1 else CELLS[by[0]])
    return people(tuple(counts.items())).pkdp.histogram(list(by), **terms)


def totals(attacker=TOLD, counts=COUNTS, **more):
    return table(attacker, counts, ("region",), **{"k": None, **more})


@pytest.fixture
def ledger():
    with pkdp.Ledger.open(":memory:", dataset="census") as opened:
        yield opened


def refused(act, error, *words):
    with pytest.raises(error) as caught:
        act()
    for word in words:
        assert word in str(caught.value)
    # No value and no count of the data.
    assert not any(text in str(caught.value) for text in ("north", "south", "157", "90"))


# What is published -------------------------------------------------------------------------------------------------


def test_the_numbers_are_those_of_theorem_c_and_the_totals_cost_nothing():
    release, alone = table(), table(SURE)
    assert release.table.equals(alone.table)
    for epsilon in (0.0, 0.5, 1.0):
        assert release.certificate.delta(epsilon) == alone.certificate.delta(epsilon)
    known = totals()
    assert known.table["count"].tolist() == [157, 88]
    assert known.certificate.delta(0.0) == 0.0
    assert known.certificate.theorems == ("leaked",)
    assert "protects neither whether she is included nor her group" in known.certificate.sentence()
    for published in (release, known):
        assert published.verify()
        assert pkdp.Certificate.from_json(published.certificate.to_json()) == published.certificate


@pytest.mark.parametrize("totals_first", [True, False])
def test_totals_stand_beside_their_table_in_a_ledger(ledger, totals_first):
    terms = {"ledger": ledger, "period": DAY}
    releases = [totals(**terms), table(**terms)] if totals_first else [table(**terms), totals(**terms)][::-1]
    assert [release.certificate.context.beside for release in releases] == [not totals_first, False]
    alone = pkdp.certify(pkdp.Histogram(k=50), SURE, protects="value")
    for epsilon in (0.0, 0.5, 1.0):
        assert ledger.total().delta(epsilon) == alone.delta(epsilon)
    assert {entry.label for entry in ledger.entries()} == {"total by region", "histogram by region, answer"}
    assert totals(**terms).replayed
    assert table(**terms).replayed
    ledger.verify()


@thinned(2)
@pytest.mark.parametrize("first", [table, totals])
@pytest.mark.parametrize("attacker", [SURE, NUMBER])
def test_a_certificate_about_who_does_not_know_the_totals_keeps_them_out(ledger, first, attacker):
    """Who knows how many people there are does not know how many are in each region."""
    terms = {"ledger": ledger, "period": DAY}
    way = "leakage=pkdp.Leakage.totals(by=['region'])"
    if first is table:
        table(attacker, **terms)
        refused(lambda: totals(**terms), pkdp.DifferencingError, way)
        table(**terms)  # certified anew, it has promised that before
        refused(lambda: totals(**terms), pkdp.DifferencingError, way)
    else:
        totals(**terms)
        refused(lambda: table(attacker, **terms), pkdp.DifferencingError, way)
        table(**terms)
        refused(lambda: table(attacker, **terms), pkdp.DifferencingError)
    ledger.verify()


def test_bounded_dependence_takes_back_no_promise():
    with pkdp.Ledger.open(":memory:", evidence=BoundedDependence(0.25)) as ledger:
        table(NUMBER, ledger=ledger, period=DAY)
        refused(lambda: totals(ledger=ledger, period=DAY), pkdp.DifferencingError, "would make a certificate")


def test_totals_that_others_do_not_know_do_not_add_up():
    known = pkdp.certify(pkdp.Histogram(totals=True), TOLD, protects="value")
    number = pkdp.certify(pkdp.Count(), NUMBER, protects="value")
    for attacker, parts in ((NUMBER, [known]), (SURE, [known]), (NUMBER, [pkdp.compose([known, number])])):
        alone = pkdp.certify(pkdp.Histogram(k=50), attacker, protects="value")
        refused(lambda alone=alone, parts=parts: pkdp.compose([alone, *parts]), pkdp.NoEvidenceError, "totals(by=")
    certificate = pkdp.certify(pkdp.Histogram(k=50), TOLD, protects="value")
    assert pkdp.compose([certificate, known, number]).delta(0.5) == certificate.delta(0.5)


def test_totals_of_another_day_add_up_only_with_what_is_told_them(ledger):
    noised = {"k": None, "noise": pkdp.GeometricNoise(0.5), "ledger": ledger, "period": "2021-03-02"}
    table(NUMBER, **noised)
    refused(lambda: totals(ledger=ledger, period=DAY), pkdp.NoEvidenceError, "totals(by=['region'])")
    assert len(list(ledger.entries())) == 1
    with pkdp.Ledger.open(":memory:") as other:
        table(**{**noised, "ledger": other})
        totals(ledger=other, period=DAY)
        assert other.total().worst_case.epsilon(0.0) == 1.0
        assert "a person's 'region' is not protected" in other.total().sentence()
        other.verify()


def test_a_new_certificate_counts_as_what_it_promises(ledger):
    """What once held across regions is counted as the newest certificate of the same numbers, which says less."""
    terms = {"ledger": ledger, "period": DAY}
    table(SURE, **terms)
    assert "'region'" not in ledger.total().sentence()
    assert table(**terms).replayed
    assert "a person's 'region' is not protected" in ledger.total().sentence()
    table(SURE, **terms)
    refused(lambda: totals(**terms), pkdp.DifferencingError)


# What is refused ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("act", "error", "words"),
    [
        (lambda: table(by=("answer",)), pkdp.ArgumentError, ("leakage", "by 'region'", "does not count", "Add these")),
        (lambda: table(by=("region",)), pkdp.ArgumentError, ("leakage", "all columns", "leave those of the others")),
        (
            lambda: table(
                pkdp.AttackerModel(p_max_between=0.6, leakage=pkdp.Leakage.totals(by="answer")), by=("region",)
            ),
            pkdp.ArgumentError,
            ("leakage", "'answer'", "does not count"),
        ),
        (
            lambda: table(TOLD_BOTH),
            pkdp.ArgumentError,
            ("totals by one column link the groups of another", "the answer"),
        ),
        (
            lambda: table(protects="presence"),
            pkdp.NotCertifiableError,
            ("always tells whether a person is there", "protects='value'"),
        ),
        (
            lambda: table(protects="presence", k=None, noise=pkdp.GeometricNoise(1.0)),
            pkdp.NotCertifiableError,
            ("always tells whether a person is there",),
        ),
        (lambda: table(by=("answer",), k=None, noise=pkdp.GeometricNoise(1.0)), pkdp.ArgumentError, ("by 'region'",)),
        (lambda: totals(where="answer == 'a'"), pkdp.ArgumentError, ("where", "Leave where out")),
        (lambda: totals(one_cell="hash"), pkdp.ArgumentError, ("one_cell", "Leave one_cell out")),
        (lambda: totals(SURE), pkdp.NotCertifiableError, ("p_min",)),
        (lambda: totals(NUMBER), pkdp.NotCertifiableError, ("p_min",)),
        (lambda: totals(protects="presence"), pkdp.NotCertifiableError, ("always tells whether a person is there",)),
        (lambda: totals(domain=None), pkdp.ArgumentError, ("domain",)),
    ],
)
def test_what_cannot_stand_beside_the_totals_is_refused(act, error, words):
    refused(act, error, *words)


@pytest.mark.parametrize("fields", [{"k": 5}, {"noise": pkdp.GeometricNoise(1.0)}, {"cells_per_unit": 2}])
def test_totals_have_no_rule_beside_them(fields):
    with pytest.raises(pkdp.ArgumentError, match=r"^totals are published exactly"):
        pkdp.Histogram(totals=True, **fields)
    with pytest.raises(pkdp.ArgumentError, match=r"^totals must be"):
        pkdp.Histogram(totals=1)


def test_totals_that_nobody_is_declared_to_know_are_refused():
    with pytest.raises(pkdp.ArgumentError, match="declare leakage"):
        pkdp.certify(pkdp.Histogram(totals=True), NUMBER, protects="value")
    question = Question(
        mechanism=pkdp.Histogram(totals=True), unit="id", by="answer", domain=CELLS["answer"], protects="value"
    )
    for attacker in (TOLD, NUMBER):
        with pytest.raises(pkdp.ArgumentError, match="declare leakage"):
            Publication(question=question, attacker=attacker)


def test_a_certificate_of_totals_does_not_pass_for_another_table():
    known = totals()
    forged = Release.seal(table(SURE, by=("answer",)).table, known.certificate)
    with pytest.raises(pkdp.ArgumentError):
        forged.verify()
    crossed = Release.seal(table(SURE, by=("answer",)).table, table().certificate)
    with pytest.raises(pkdp.ArgumentError):
        crossed.verify()


# What follows of hidden cells --------------------------------------------------------------------------------------


def test_hidden_cells_are_intervals_within_their_total():
    bounded = table().within(totals())
    assert list(bounded.columns) == ["region", "answer", "count", "least", "most", "total"]
    assert bounded["total"].tolist() == [157] * 3 + [88] * 3
    assert bounded["least"].tolist() == [90, 60, 7, 80, 0, 0]
    assert bounded["most"].tolist() == [90, 60, 7, 80, 8, 8]
    assert bounded["count"].isna().tolist() == [False, False, True, False, True, True]
    assert table().within(totals().table).equals(bounded)
    narrow = table(k=6, counts={**COUNTS, ("south", "b"): 5}).within(totals(counts={**COUNTS, ("south", "b"): 5}))
    assert narrow["least"].tolist()[4:] == [5, 5]


def test_a_count_of_everybody_bounds_the_whole_table():
    everybody = people(tuple(COUNTS.items())).pkdp.count(unit="id", protects="value", attacker=NUMBER)
    bounded = table(NUMBER).within(everybody)
    assert bounded["total"].tolist() == [245] * 6
    assert bounded["least"].tolist() == [90, 60, 0, 80, 0, 0]
    assert bounded["most"].tolist() == [90, 60, 15, 80, 15, 15]
    alone = {cell: number for cell, number in COUNTS.items() if number > 50} | {("south", "c"): 5}
    cells = [("north", "a"), ("north", "b"), ("south", "a"), ("south", "c")]
    exact = table(NUMBER, alone, domain=cells).within(pd.DataFrame({"count": [235]}))
    assert exact["least"].tolist() == exact["most"].tolist() == [90, 60, 80, 5]


def test_a_certificate_says_that_suppressed_counts_can_follow_exactly():
    words = "exactly where no other one is suppressed beside it"
    for attacker in (TOLD, NUMBER):
        assert words in table(attacker).certificate.sentence()
        assert words in pkdp.compose([table(attacker).certificate]).sentence()
    assert words not in table(SURE).certificate.sentence()
    assert words not in totals().certificate.sentence()


SMALL = st.lists(st.integers(0, 6), min_size=6, max_size=6)


@examples(quick=5, full=300)
def test_the_intervals_are_all_that_the_public_numbers_allow_and_nothing_else(examples):
    """Every table that would have been published like this is enumerated; two of them have one and the same answer."""

    @settings(max_examples=examples, deadline=None, derandomize=True, database=None)
    @given(SMALL, st.integers(1, 5))
    def holds(counts, k):
        def hidden(row):
            return [None if value < k else value for value in row]

        def published(row):
            truth = dict(zip(COUNTS, row, strict=True))
            return table(k=k, counts=truth, target=None, attacker=TOLD if k > 1 else ANYBODY).within(
                totals(counts=truth)
            )

        bounded = published(counts)
        for start in (0, 3):
            row = counts[start : start + 3]
            ways = [way for way in product(range(7), repeat=3) if hidden(way) == hidden(row) and sum(way) == sum(row)]
            for position in range(3):
                values = {way[position] for way in ways}
                place = bounded.loc[start + position]
                assert values == set(range(place["least"], place["most"] + 1))
            if k > 1:
                other = [*counts[:start], *ways[0], *counts[start + 3 :]]
                assert published(other).equals(bounded)

    holds()


# With k = 1 nothing is hidden, which only many unknown people protect.
ANYBODY = pkdp.AttackerModel(p_min=0.1, unknown=1000, leakage=BY_REGION)


@thinned(3)
@pytest.mark.parametrize(
    ("act", "words"),
    [
        (lambda: table().within(totals().table.assign(count=[156, 300])), "do not add up"),
        (lambda: table().within(totals().table.assign(count=[140, 88])), "do not add up"),
        (lambda: table().within(totals().table.assign(count=[157.0, 88.0])), "whole numbers"),
        (lambda: table().within(totals().table[:1]), "one total"),
        (lambda: table().within(pd.concat([totals().table] * 2)), "one total"),
        (lambda: table().within(totals().table.rename(columns={"region": "place"})), "some of the by-columns"),
        (lambda: table().within(table()), "some of the by-columns"),
        (lambda: table().within("regions"), "a pandas DataFrame, not str"),
        (lambda: table().within(totals().table[["region"]]), "column 'count'"),
        (lambda: table(domain=None).within(totals()), "of other people"),
        (lambda: table(domain=None).within(totals().table), "domain"),
        (lambda: table(undeclared="absent").within(totals()), "undeclared='error'"),
        (lambda: table(where="answer != 'x'").within(totals()), "of other people"),
        (lambda: table(k=None, noise=pkdp.GeometricNoise(1.0)).within(totals()), "without noise"),
        (lambda: table().within(totals(SURE, k=50, one_cell="hash")), "of other people"),
    ],
)
def test_totals_of_something_else_are_refused(act, words):
    refused(act, pkdp.ArgumentError, words)
