"""Sums of whole numbers with noise: what is published, under which key, what is refused, and what follows from it."""

from __future__ import annotations

import inspect
import math
import re
import statistics

import pandas as pd
import pytest

import pkdp_pipeline as pkdp
from pkdp_pipeline.errors import ArgumentError, InputCheckError, NotCertifiableError
from pkdp_pipeline.model.context import Context
from pkdp_pipeline.releases import public_table
from pkdp_pipeline.releases.public_table import add_noise

NOISE = pkdp.GeometricNoise(1.0)
VISITS = pd.DataFrame(
    {
        "patient": [1, 1, 2, 3, 4, 4, 5],
        "clinic": ["a", "a", "a", "b", "b", "b", "c"],
        "visits": pd.array([1, 9, 2, -3, 4, None, None], dtype="Int64"),
        "share": [0.5] * 7,
    }
)
ASKED = {"by": "clinic", "unit": "patient", "bounds": (0, 5), "noise": NOISE, "domain": ["b", "a", "d", "c"]}


@pytest.fixture
def exact(monkeypatch):
    monkeypatch.setattr(public_table, "add_noise", lambda counts, *_: list(counts))


def summed(column="visits", frame=VISITS, **options):
    given = {name: value for name, value in {**ASKED, **options}.items() if value is not None}
    return frame.pkdp.sum(column, **given)


@pytest.mark.usefixtures("exact")
def test_each_person_adds_the_sum_of_her_rows_within_the_bounds():
    release = summed()
    assert release.table.to_dict("list") == {"clinic": ["b", "a", "d", "c"], "sum": [4, 7, 0, 0]}
    assert release.table["sum"].dtype == "Int64"
    assert summed(bounds=(-2, 3)).table["sum"].tolist() == [1, 5, 0, 0]
    assert summed(bounds=(1, 3)).table["sum"].tolist() == [1 + 3, 3 + 2, 0, 1]
    assert summed(where="visits > 1").table["sum"].tolist() == [4, 7, 0, 0]
    rows = summed(None, rows="count").table
    assert rows["sum"].tolist() == [3, 3, 0, 1]
    alone = summed(by=None, domain=None, bounds=(-9, 9))
    assert (alone.value, list(alone.table)) == (9 + 2 - 3 + 4 + 0, ["sum"])
    assert pkdp.sum(VISITS, rows="count", unit="patient", bounds=(0, 2), noise=NOISE).value == 7
    for published in (release, alone):
        assert published.verify()
        assert pkdp.Release.from_bytes(published.to_bytes()).id == published.id
        assert "sum" in repr(published)
        assert "sum" in published._repr_html_()


@pytest.mark.usefixtures("exact")
def test_a_level_of_the_index_is_summed_as_a_column_is():
    levels = VISITS.set_index(["visits", "patient"])
    assert summed(frame=levels).table.equals(summed().table)
    with pytest.raises(ArgumentError, match="a column and a level"):
        summed(frame=levels.assign(visits=1))


@pytest.mark.usefixtures("exact")
def test_a_cell_found_in_the_data_has_somebody_in_it():
    undeclared = summed(domain=None, release_threshold=0)
    assert undeclared.table.to_dict("list") == {"clinic": ["a", "b", "c"], "sum": [7, 4, 0]}
    assert summed(domain=None, release_threshold=5).table["clinic"].tolist() == ["a"]
    with pytest.raises(ArgumentError, match="release_threshold"):
        summed(domain=None)
    with pytest.raises(NotCertifiableError):
        summed(domain=None, release_threshold=0, target=pkdp.Target())


def test_noise_is_as_wide_as_what_one_person_adds(monkeypatch):
    drawn = add_noise([0] * 4000, NOISE, 5)
    mean = 2 * math.exp(-0.2) / (1 - math.exp(-0.4))
    assert statistics.fmean(map(abs, drawn)) == pytest.approx(mean, rel=0.1)
    scales = []
    monkeypatch.setattr(public_table, "add_noise", lambda counts, *given: scales.append(given) or [-7] * len(counts))
    release = summed(bounds=(-5, 2))
    assert scales == [(NOISE, 5)]
    assert release.table["sum"].tolist() == [-7] * 4
    assert release.error.mean_absolute == pytest.approx(mean)
    assert release.certificate.epsilon(0.0) == pytest.approx(1.0)
    assert release.error.bound_95 == 15


@pytest.mark.usefixtures("exact")
def test_a_ledger_knows_a_sum_by_its_column_and_its_bounds():
    with pkdp.Ledger.open(":memory:") as ledger:
        kept = {"ledger": ledger, "period": "2026-01"}
        first, again = summed(**kept), summed(**kept)
        others = [
            summed(bounds=(0, 6), **kept),
            summed(None, rows="count", **kept),
            summed(by=None, domain=None, **kept),
        ]
        assert (first.replayed, again.replayed, first.id == again.id) == (False, True, True)
        assert len({first.id, *(other.id for other in others)}) == 4
        labels = ["sum of visits by clinic", "sum of visits by clinic", "sum of rows by clinic", "sum of visits"]
        assert [entry.label for entry in ledger.entries()] == labels
        assert ledger.total().worst_case.epsilon(0.0) == pytest.approx(4.0)
        ledger.verify()


def test_a_certificate_says_what_is_summed():
    facts = [summed().certificate.context, summed(None, rows="count").certificate.context]
    assert [context.summed for context in facts] == [("visits",), ()]
    assert [Context.from_dict(context.to_dict()) for context in facts] == facts
    assert "column 'visits'" in " ".join(facts[0].facts())
    assert "the number of her rows in a cell" in " ".join(facts[1].facts())
    assert "summed" not in VISITS.pkdp.count(unit="patient", noise=NOISE).certificate.context.to_dict()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"bounds": None}, "bounds is needed"),
        ({"noise": None}, "noise is needed"),
        ({"unit": None}, "unit is needed"),
        ({"bounds": (5, 0)}, "in order"),
        ({"bounds": (0, 0)}, "not both 0"),
        ({"bounds": (0, 0.5)}, "whole number"),
        ({"bounds": (0, 10**9)}, "at most"),
        ({"column": None}, "name the column"),
        ({"rows": "count"}, "not both"),
        ({"column": None, "rows": "all"}, "count"),
        ({"column": "share"}, r"'share' has type float64.*Int64"),
        ({"column": "clinics"}, "clinics"),
        ({"column": "clinic"}, "names people or cells"),
        ({"column": "patient"}, "names people or cells"),
        ({"by": None}, "domain"),
        ({"by": None, "domain": None, "cells_per_unit": 2}, "cells_per_unit"),
        ({"cells_per_unit": 101}, "cells_per_unit"),
        ({"noise": pkdp.GeometricNoise(1e-14), "bounds": (0, 10**7)}, "noise epsilon"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_bad_input_is_refused(options, words):
    with pytest.raises(ArgumentError, match=words):
        summed(**{"column": "visits", **options})


def test_a_by_column_is_called_neither_count_nor_sum():
    for name in ("Sum", "count"):
        with pytest.raises(ArgumentError, match="may not name a column"):
            summed(frame=VISITS.rename(columns={"clinic": name}), by=name)
    renamed = VISITS.rename(columns={"clinic": "sum"})
    counted = renamed.pkdp.histogram("sum", unit="patient", noise=NOISE, domain=["a", "b", "c"])
    assert list(counted.table) == ["sum", "count"]


def test_data_that_are_not_as_declared_publish_nothing():
    with pytest.raises(InputCheckError, match="several cells"):
        summed(unit="share")
    with pytest.raises(InputCheckError, match="does not list"):
        summed(domain=["a"])


def test_what_follows_from_counts_does_not_follow_from_sums():
    release = summed()
    for derive in (
        lambda: release.rollup([]),
        lambda: release.shares(),
        lambda: release.rounded(5),
        lambda: release.crosstab("clinic", "clinic"),
    ):
        with pytest.raises(ArgumentError, match="sums"):
            derive()


@pytest.mark.usefixtures("exact")
def test_a_mean_has_an_interval_of_both_noises():
    sums = summed()
    counts = VISITS.pkdp.histogram("clinic", unit="patient", noise=NOISE, domain=["a", "b", "c", "d"])
    means = sums.mean(counts)
    assert means["clinic"].tolist() == ["b", "a", "d", "c"]
    assert means["mean"].tolist() == [2.0, 3.5, pd.NA, 0.0]
    # The noise of the sums is within ±18 in 97.5 % of cases, that of counts within ±4.
    assert (means["low"].tolist(), means["high"].tolist()) == ([0.0] * 4, [5.0] * 4)
    wide = pd.concat([VISITS.assign(patient=VISITS["patient"] + 10 * copy) for copy in range(100)])
    total, people = (
        summed(frame=wide),
        wide.pkdp.histogram("clinic", unit="patient", noise=NOISE, domain=ASKED["domain"]),
    )
    row = total.mean(people).set_index("clinic").loc["a"]
    sum_error, count_error = 18, 4
    assert (row["mean"], row["low"], row["high"]) == (
        3.5,
        pytest.approx((700 - sum_error) / (200 + count_error)),
        pytest.approx((700 + sum_error) / (200 - count_error)),
    )
    assert sums.mean(counts).attrs["release_id"] == sums.id


def test_a_mean_is_of_the_same_people():
    sums = summed()
    counts = {"unit": "patient", "noise": NOISE, "domain": ASKED["domain"]}
    for other in (
        VISITS.pkdp.histogram("clinic", where="visits > 1", **counts),
        VISITS.pkdp.histogram("clinic", missing_unit="drop", **counts),
        VISITS.pkdp.count(unit="patient", noise=NOISE),
        VISITS.pkdp.histogram("clinic", **counts, display=pkdp.Rounding(5)),
        sums,
    ):
        with pytest.raises(ArgumentError, match="mean"):
            sums.mean(other)
    with pytest.raises(ArgumentError, match="mean"):
        VISITS.pkdp.histogram("clinic", **counts).mean(sums)
    with pytest.raises(ArgumentError, match="release"):
        sums.mean(VISITS)
    # Of which row comes first no certificate tells, and so in which cell people are.
    first = VISITS.pkdp.histogram("clinic", one_cell="first", order_by="visits", **counts)
    with pytest.raises(ArgumentError, match='one_cell="first"'):
        summed(one_cell="first", order_by="share").mean(first)


def test_an_explanation_of_a_sum():
    explained = pkdp.explain("clinic", column="visits", **{name: ASKED[name] for name in ASKED if name != "by"})
    assert (explained.outcome, explained.asked) == ("publish", "sum of visits by clinic")
    with pytest.raises(ArgumentError, match="k is about counts"):
        pkdp.explain(column="visits", unit="patient", bounds=(0, 5), noise=NOISE, k=5)


def test_files_say_sum(tmp_path):
    release = summed()
    release.to_csv(tmp_path / "t.csv")
    assert (tmp_path / "t.csv").read_text().splitlines()[0] == "clinic,sum"
    assert "Sum of visits by clinic" in (tmp_path / "t.csv-metadata.json").read_text()
    release.to_json_stat(tmp_path / "t.json")
    assert "people" not in (tmp_path / "t.json").read_text().partition('"extension"')[0].partition('"note"')[0]


def test_every_option_is_described():
    doc = pkdp.sum.__doc__
    for name in inspect.signature(pkdp.sum).parameters.keys() - {"frame"}:
        assert re.search(rf"^(\w+, )*{name}(, \w+)* : ", doc, re.MULTILINE), name
