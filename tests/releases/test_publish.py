"""The one way out: the rules for rows, the thresholds, the order of steps, and what a ledger changes."""

from __future__ import annotations

import contextlib
import datetime
import io
import logging
import sqlite3
import subprocess
import sys
import traceback
import warnings

import duckdb
import numpy as np
import pandas as pd
import pytest
from thorough import thinned

import pkdp_pipeline as pkdp
from pkdp_pipeline.model.question import Question
from pkdp_pipeline.releases import public_table
from pkdp_pipeline.releases.publish import Publication, publish

ATTACKER = pkdp.AttackerModel(p_max=0.1)
SURE = pkdp.AttackerModel(p_max=0.1, p_min=0.05, unknown=1000)
NOISE = pkdp.GeometricNoise(1.0)
BELOW = {"k": 10, "noise": NOISE, "below": "noise"}


def people(**cells: int) -> pd.DataFrame:
    """Return a frame with so many people in each cell, two rows each."""
    names = [cell for cell, size in cells.items() for _ in range(size)]
    frame = pd.DataFrame({"u": range(len(names)), "c": pd.Series(names, dtype="str")})
    return pd.concat([frame, frame], ignore_index=True)


def rows_of(release: pkdp.Release) -> list[tuple]:
    return [
        tuple(None if pd.isna(value) else value for value in row)
        for row in release.table.itertuples(index=False, name=None)
    ]


@pytest.fixture(params=["pandas", "duckdb"])
def as_frame(request):
    """Return what turns a pandas frame into each kind of frame that can be counted."""
    if request.param == "pandas":
        yield lambda frame: frame
        return
    with duckdb.connect() as connection:

        def relation(frame):
            connection.register("given", frame)
            return connection.table("given")

        yield relation


@pytest.fixture
def ledger(tmp_path):
    with pkdp.Ledger.open(tmp_path / "ledger.sqlite", dataset="people") as opened:
        yield opened


def unread():
    pytest.fail("data were read")


@thinned(3)
@pytest.mark.parametrize("size", [9, 10, 11])
def test_a_cell_is_published_when_it_reaches_k_and_not_before(as_frame, size):
    frame = as_frame(people(a=size, b=20))
    release = pkdp.histogram(frame, "c", unit="u", attacker=ATTACKER, k=10)
    assert rows_of(release) == ([("a", size)] if size >= 10 else []) + [("b", 20)]
    declared = pkdp.histogram(frame, "c", unit="u", attacker=ATTACKER, k=10, domain=["b", "a", "z"])
    assert rows_of(declared) == [("b", 20), ("a", size if size >= 10 else None), ("z", None)]
    count = pkdp.count(frame, "c == 'a'", unit="u", attacker=ATTACKER, k=10)
    assert count.value == (size if size >= 10 else None)


@pytest.mark.parametrize("size", [9, 10, 11])
def test_a_count_near_everybody_is_suppressed(as_frame, size):
    frame = as_frame(people(a=40, b=size))
    attacker = pkdp.AttackerModel(p_min=0.1)
    release = pkdp.count(frame, "c == 'a'", unit="u", attacker=attacker, k_complement=10)
    assert release.value == (40 if size >= 10 else None)


def test_units_are_counted_not_rows(as_frame):
    frame = as_frame(people(a=6))
    assert pkdp.histogram(frame, "c", unit="u", attacker=ATTACKER, k=5).table["count"].tolist() == [6]
    assert rows_of(pkdp.histogram(frame, "c", unit="u", attacker=ATTACKER, k=7)) == []
    assert pkdp.histogram(frame, "c", unit=pkdp.EACH_ROW, attacker=ATTACKER, k=7).table["count"].tolist() == [12]
    assert pkdp.count(frame, unit="u", attacker=ATTACKER, k=5).value == 6


def test_a_person_satisfies_a_predicate_when_any_row_does():
    frame = pd.DataFrame({"u": [1, 1, 2, 2, 3], "x": pd.array([True, False, False, False, None], dtype="boolean")})
    assert frame.pkdp.count("x", unit="u", attacker=SURE).value == 1
    assert frame.pkdp.count(unit="u", attacker=SURE).value == 3


@pytest.mark.parametrize("noisy", [19, 20, 21])
def test_the_second_threshold_acts_on_the_noisy_count(monkeypatch, noisy):
    drawn_for = []

    def fixed(counts, *_):
        drawn_for.append(list(counts))
        return [noisy for _ in counts]

    monkeypatch.setattr(public_table, "add_noise", fixed)
    declared = people(a=30, b=9).pkdp.histogram(
        "c", unit="u", attacker=ATTACKER, k=10, noise=NOISE, release_threshold=20, domain=["z", "b", "a"]
    )
    shown = noisy if noisy >= 20 else None
    # Below k stays suppressed whatever the noise says; noise was drawn for every public cell.
    assert rows_of(declared) == [("z", None), ("b", None), ("a", shown)]
    assert drawn_for == [[0, 9, 30]]
    undeclared = people(a=30, b=9).pkdp.histogram(
        "c", unit="u", attacker=ATTACKER, k=10, noise=NOISE, release_threshold=20
    )
    assert rows_of(undeclared) == ([("a", noisy)] if shown else [])
    count = people(a=30).pkdp.count(unit="u", attacker=ATTACKER, k=10, noise=NOISE, release_threshold=20)
    assert count.value == shown


def test_with_noise_alone_every_public_cell_is_published():
    release = people(a=30).pkdp.histogram("c", unit="u", attacker=ATTACKER, noise=NOISE, domain=["a", "z"])
    assert release.table["count"].notna().all()
    assert release.table["count"].iloc[0] != 0


def test_negative_noisy_counts_are_published_as_they_are(monkeypatch):
    monkeypatch.setattr(public_table, "add_noise", lambda counts, *_: [count - 5 for count in counts])
    release = people(a=3).pkdp.histogram("c", unit="u", attacker=ATTACKER, noise=NOISE, domain=["a", "z"])
    assert rows_of(release) == [("a", -2), ("z", -5)]
    assert release.verify()


STRAYS = pd.DataFrame(
    {
        "u": [1, 1, 1, 2, 3, None],
        "c": ["a", "b", "b", "a", None, "a"],
        "t": [1, 2, 3, 1, 1, 1],
    }
).astype({"u": "Int64", "c": pd.StringDtype(na_value=np.nan)})


@thinned(3)
@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"unit": "u"}, 'missing_unit="drop"'),
        ({"unit": "u", "missing_unit": "drop"}, '"most_frequent", "first" .* or "hash"'),
        ({"unit": "u", "missing_unit": "drop", "one_cell": "hash", "domain": ["a", "b"]}, 'undeclared="absent"'),
        ({"unit": "u", "missing_unit": "drop", "one_cell": "hash", "domain": ["b", None]}, "does not list"),
    ],
)
def test_input_that_is_not_as_declared_is_refused_with_the_rules_on_offer(as_frame, fields, words):
    with pytest.raises(pkdp.InputCheckError, match=words):
        pkdp.histogram(as_frame(STRAYS), "c", attacker=ATTACKER, k=1 + 1, **fields)


def test_of_several_columns_the_one_with_values_that_are_not_declared_is_named():
    frame = people(a=12, b=12).assign(d="x")
    terms = {"unit": "u", "k": 10, "attacker": ATTACKER}
    for domain, columns in (
        ({"c": ["a"], "d": ["x", "y"]}, "published: 'c' has"),
        ([("a", "x"), ("b", "y")], "published: 'c', 'd' has"),
    ):
        with pytest.raises(pkdp.InputCheckError, match=columns):
            frame.pkdp.histogram(["c", "d"], domain=domain, **terms)


def test_an_attacker_for_whom_nobody_else_is_counted_is_warned_of():
    with pytest.warns(UserWarning, match="p_max = 0"):
        people(a=12).pkdp.histogram("c", unit="u", k=10, attacker=pkdp.AttackerModel(p_max=0))


def test_a_count_refuses_missing_units_too(as_frame):
    with pytest.raises(pkdp.InputCheckError, match="missing_unit"):
        pkdp.count(as_frame(STRAYS), unit="u", attacker=SURE)
    assert pkdp.count(as_frame(STRAYS), unit="u", attacker=SURE, missing_unit="drop").value == 3


@thinned(3)
@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ({"one_cell": "most_frequent"}, [("a", 1), ("b", 1), (None, 1)]),
        ({"one_cell": "first", "order_by": "t"}, [("a", 2), ("b", 0), (None, 1)]),
        ({"one_cell": "first", "order_by": ["t"], "where": "t > 1"}, [("a", 0), ("b", 1), (None, 0)]),
        ({"one_cell": "most_frequent", "undeclared": "absent", "domain": ["a"]}, [("a", 1)]),
    ],
)
def test_a_rule_chooses_one_cell_for_each_person(as_frame, monkeypatch, rule, expected):
    monkeypatch.setattr(public_table, "add_noise", lambda counts, *_: counts)
    release = pkdp.histogram(
        as_frame(STRAYS),
        "c",
        unit="u",
        attacker=ATTACKER,
        noise=NOISE,
        missing_unit="drop",
        **{"domain": ["a", "b", None], **rule},
    )
    assert rows_of(release) == expected


def test_rows_that_where_leaves_out_are_not_checked(as_frame):
    frame = as_frame(STRAYS)
    release = pkdp.histogram(frame, "c", unit="u", attacker=ATTACKER, k=1 + 1, where="t == 3", domain=["b"])
    assert rows_of(release) == [("b", None)]


def test_composite_cells_and_units(as_frame):
    frame = pd.DataFrame({"a": [1, 1, 2, 2], "b": ["x", "y", "x", "x"], "c": ["p", "p", "q", "q"], "d": [1, 1, 2, 2]})
    frame = as_frame(frame.astype({"b": "str", "c": "str"}))
    kwargs = {"unit": ["a", "b"], "attacker": ATTACKER, "k": 2}
    assert rows_of(pkdp.histogram(frame, ["c", "d"], **kwargs)) == [("p", 1, 2)]
    crossed = pkdp.histogram(frame, ["c", "d"], domain={"c": ["q", "p"], "d": [1, 2]}, **kwargs)
    assert rows_of(crossed) == [("q", 1, None), ("q", 2, None), ("p", 1, 2), ("p", 2, None)]


def test_missing_keys_are_a_cell_of_their_own():
    frame = pd.DataFrame({"u": range(6), "c": pd.Series(["b", None, None, "a", "a", "b"], dtype="str")})
    assert rows_of(frame.pkdp.histogram("c", unit="u", attacker=ATTACKER, k=2)) == [("a", 2), ("b", 2), (None, 2)]
    declared = frame.pkdp.histogram("c", unit="u", attacker=ATTACKER, k=2, domain=[None, "a", "b"])
    assert rows_of(declared) == [(None, 2), ("a", 2), ("b", 2)]


def test_domain_and_column_must_be_of_one_kind(as_frame):
    frame = as_frame(pd.DataFrame({"u": [1, 2], "n": [1, 2], "d": pd.to_datetime(["2020-01-01", "2020-01-02"])}))
    with pytest.raises(pkdp.ArgumentError, match="text values, but the column holds integer values"):
        pkdp.histogram(frame, "n", unit="u", attacker=ATTACKER, k=2, domain=["1", "2"])
    with pytest.raises(pkdp.ArgumentError, match="timestamp"):
        pkdp.histogram(frame, "d", unit="u", attacker=ATTACKER, k=2, domain=["2020-01-01", "2020-01-02"])
    assert len(pkdp.histogram(frame, "n", unit="u", attacker=ATTACKER, k=2, domain=[1.0, 2.0, 3.0]).table) == 3


def equal_in_public() -> dict[str, tuple[pd.DataFrame, pd.DataFrame, dict]]:
    """Return pairs of data sets that differ in what is withheld and agree in what is public."""
    base = people(a=12, b=30)
    few = people(a=12, b=30, z=3)
    plain = pd.DataFrame({"u": range(12), "n": [1] * 12})
    numbers = pd.DataFrame({"u": range(15), "n": [1] * 12 + [2, 3, 2**40]})
    indexed = few.set_index(pd.Index(range(len(few))[::-1], name="u2"))
    noted = base.copy()
    noted.attrs = {"note": "withheld"}
    gone = pd.DataFrame({"u": range(40), "c": pd.Series(["a"] * 40).where(np.arange(40) < 35)})
    renamed = base.rename_axis(columns="withheld")
    return {
        "small cells": (base, few, {}),
        "row order": (base, few.sample(frac=1.0, random_state=1), {}),
        "repeated rows": (base, pd.concat([base, base.head(7)]), {}),
        "index": (base, indexed, {}),
        "attrs": (base, noted, {}),
        "columns' name": (base, renamed, {}),
        "categories": (
            base.astype({"c": pd.CategoricalDtype(["a", "b"])}),
            few.astype({"c": pd.CategoricalDtype(["z", "y", "b", "a"], ordered=True)}),
            {},
        ),
        "categories of numbers": (plain.astype({"n": "category"}), numbers.astype({"n": "category"}), {"by": "n"}),
        "signs of zero": (
            pd.DataFrame({"u": range(12), "f": [0.0] * 12}),
            pd.DataFrame({"u": range(12), "f": [-0.0] + [0.0] * 11}),
            {"by": "f"},
        ),
        "wide numbers": (plain, numbers, {"by": "n"}),
        "declared, empty or small": (base, few, {"domain": ["z", "b", "a"]}),
        "declared, other dtype": (
            numbers.head(12),
            pd.DataFrame({"u": range(13), "n": [1.0] * 12 + [np.nan]}),
            {"by": "n", "domain": [1, None]},
        ),
        "declared, object": (base, few.astype({"c": object}), {"domain": ["z", "b", "a"]}),
        "absent": (base, few, {"domain": ["b", "a"], "undeclared": "absent"}),
        "missing units": (
            gone.head(35).astype({"c": "str"}),
            gone.astype({"c": "str"}).assign(u=lambda f: f["u"].where(f["c"].notna()).astype("Int64")),
            {"missing_unit": "drop"},
        ),
        "nothing at all": (people(z=3), people(), {}),
        "nothing at all, numbers": (numbers.tail(3), numbers.head(0), {"by": "n"}),
    }


@pytest.mark.parametrize("case", equal_in_public())
def test_what_is_withheld_leaves_no_trace(case, caplog, capfd):
    first_frame, second_frame, fields = equal_in_public()[case]
    arguments = {"by": "c", "unit": "u", "attacker": ATTACKER, "k": 10, **fields}
    with warnings.catch_warnings(), caplog.at_level(logging.DEBUG):
        warnings.simplefilter("error")
        first, second = (frame.pkdp.histogram(**arguments) for frame in (first_frame, second_frame))
    assert caplog.messages == [f"published: 'histogram by {arguments['by']}', release {first.id}"] * 2
    assert capfd.readouterr() == ("", "")
    assert first.to_bytes() == second.to_bytes()
    assert (first.id, repr(first), first._repr_html_()) == (second.id, repr(second), second._repr_html_())
    pd.testing.assert_frame_equal(first.table, second.table)
    for table in (first.table, second.table):
        assert isinstance(table.index, pd.RangeIndex)
        assert table.attrs == {"release_id": first.id}
        assert table["count"].dtype == "Int64"
        assert table.columns.name is None


def test_a_categorical_column_publishes_no_categories():
    frame = people(a=12, b=3).astype({"c": "category"})
    assert frame.pkdp.histogram("c", unit="u", attacker=ATTACKER, k=10).table["c"].dtype == "str"


def test_two_suppressed_counts_are_the_same_release():
    release = people(a=3).pkdp.count("c == 'a'", unit="u", attacker=ATTACKER, k=10)
    other = people(b=30).pkdp.count("c == 'a'", unit="u", attacker=ATTACKER, k=10)
    assert release.to_bytes() == other.to_bytes()
    noised = {**BELOW, "unit": "u", "attacker": ATTACKER, "release_threshold": 900}
    for further in ({}, {"domain": ["z", "b", "a"]}):
        release, other = (
            people(b=30, **cells).pkdp.histogram("c", **noised, **further) for cells in ({}, {"a": 3, "z": 7})
        )
        assert release.to_bytes() == other.to_bytes()


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"missing_unit": "drop"},
        {"missing_unit": "drop", "one_cell": "hash", "domain": ["x"]},
        {"where": "c + 1"},
        {"where": "c"},
        {"unit": "nobody"},
        {"by": "mixed"},
        {"missing_unit": "drop", "one_cell": "hash", "domain": [1]},
    ],
)
def test_errors_quote_neither_values_nor_numbers_of_the_data(fields):
    secret = "S3CRET"
    frame = pd.DataFrame({"u": [secret + "1", None, secret + "1"], "c": [secret, secret, "y"], "mixed": [secret, 5, 5]})
    with pytest.raises(pkdp.PkdpError) as caught:
        frame.pkdp.histogram(**{"by": "c", "unit": "u", "attacker": ATTACKER, "k": 77, **fields})
    message = "".join(traceback.format_exception(caught.value))
    assert secret not in message.replace('secret = "S3CRET"', "")
    assert caught.value.__context__ is None


def test_what_cannot_be_certified_is_refused_before_data_are_read():
    request = Question(mechanism=pkdp.Histogram(k=1), unit="u", by="c")
    with pytest.raises(pkdp.NotCertifiableError):
        publish(unread, Publication(question=request, attacker=ATTACKER))


@pytest.mark.parametrize(
    ("shares", "cells", "protects"),
    [
        ({"p_min": 0.3, "p_max": 0.3}, 3, "presence"),
        ({"p_min": 0.25, "p_max": 0.5}, 4, "presence"),
        ({"p_min": 0.45}, 3, "value"),
    ],
)
def test_a_p_min_that_no_table_has_room_for_is_left_out_or_refused(shares, cells, protects):
    def attacker(k=20, **which):
        request = Question(mechanism=pkdp.Histogram(k=k), unit="u", by="c", protects=protects, **which)
        return Publication(question=request, attacker=pkdp.AttackerModel(**shares, unknown=1000)).attacker

    assert attacker(domain=[*range(cells)]).p_min is None
    assert attacker().p_min is None  # any number of cells may come with the data
    fits = cells - 1 if "p_max" not in shares or shares["p_max"] == 0.5 else 1
    assert attacker(domain=[*range(fits)]).p_min == attacker(None, domain=[*range(fits)]).p_min == shares["p_min"]
    # Nothing else hides exact counts.
    with pytest.raises(pkdp.ArgumentError):
        attacker(None, domain=[*range(cells)])


def test_equal_shares_have_room():
    request = Question(mechanism=pkdp.Histogram(), unit="u", by="c", domain=[*range(10)], protects="value")
    attacker = pkdp.AttackerModel(p_min=0.1, unknown=1000)
    assert Publication(question=request, attacker=attacker).certified_alone().epsilon(1e-6) < 2.0


def test_a_source_is_read_once():
    calls = []

    def source():
        calls.append(1)
        return people(a=12)

    request = Question(mechanism=pkdp.Histogram(k=10), unit="u", by="c")
    assert rows_of(publish(source, Publication(question=request, attacker=ATTACKER))) == [("a", 12)]
    assert calls == [1]


def test_the_certificate_is_that_of_the_mechanism_and_says_its_limits():
    release = people(a=12).pkdp.histogram("c", unit="u", attacker=ATTACKER, k=10)
    fresh = pkdp.certify(pkdp.Histogram(k=10), ATTACKER)
    assert release.certificate.delta(1.0) == fresh.delta(1.0)
    assert release.certificate.limits == (
        "A person is one value of 'u'.",
        "A release appears only when every value that names a person or a cell is of its column's type, no two names "
        "of people differ only by spaces around them, every row names its person and nobody is in several cells: that "
        "this holds is public.",
        "This holds only if nothing else is published about these people.",
    )
    assert "nothing else is published" in release.certificate.sentence()
    each = people(a=12).pkdp.histogram("c", unit=pkdp.EACH_ROW, attacker=ATTACKER, k=10)
    assert "Every row counts as one person" in each.certificate.limits[0]
    value = people(a=12).pkdp.histogram("c", unit="u", attacker=ATTACKER, k=10, protects="value")
    assert value.certificate.protects == "value"


@pytest.mark.parametrize(
    ("fields", "condition"),
    [
        ({}, "TYPED, SPACED, every row names its person and nobody is in several cells"),
        (
            {"domain": ["a"]},
            "TYPED, SPACED, every row names its person, nobody is in several cells and everybody is in a declared cell",
        ),
        (
            {"missing_unit": "drop", "one_cell": "hash", "domain": ["a"]},
            "TYPED, SPACED and everybody is in a declared cell",
        ),
        (
            {"missing_unit": "drop", "one_cell": "hash", "domain": ["a"], "undeclared": "absent", "units": "exact"},
            "TYPED",
        ),
        ({"unit": pkdp.EACH_ROW}, "every value that names a cell is of its column's type"),
        (
            {"missing_unit": "drop", "one_cell": "most_frequent", "checks": True},
            "TYPED, SPACED and the data pass the curator's own checks",
        ),
    ],
)
def test_what_can_stop_a_release_is_said_to_be_public(fields, condition):
    fields = {"mechanism": pkdp.Histogram(k=10), "unit": "u", "by": "c"} | fields
    release = publish(lambda: people(a=12), Publication(question=Question(**fields), attacker=ATTACKER))
    condition = condition.replace("TYPED", "every value that names a person or a cell is of its column's type")
    condition = condition.replace("SPACED", "no two names of people differ only by spaces around them")
    said = f"A release appears only when {condition}: that this holds is public."
    assert [text for text in release.certificate.limits if "appears" in text] == [said]
    assert said in release.certificate.sentence()
    assert pkdp.Certificate.from_json(release.certificate.to_json()).limits == release.certificate.limits


def test_a_count_stands_on_named_rows_alone():
    limits = people(a=12).pkdp.count(unit="u", attacker=ATTACKER, k=10).certificate.limits
    said = (
        "A release appears only when every value that names a person is of its column's type, no two names of people "
        "differ only by spaces around them and every row names its person: that this holds is public."
    )
    assert said in limits


def test_next_to_other_releases_only_the_worst_case_is_claimed():
    request = Question(mechanism=pkdp.Count(noise=NOISE), unit="u")
    alone = publish(lambda: people(a=12), Publication(question=request, attacker=SURE))
    beside = publish(lambda: people(a=12), Publication(question=request, attacker=SURE, alone=False))
    assert alone.certificate.has_partial_knowledge
    assert not beside.certificate.has_partial_knowledge
    assert beside.certificate.worst_case.parameters == (1.0, 0.0)
    with pytest.raises(pkdp.NotCertifiableError):
        publish(
            unread, Publication(question=Question(mechanism=pkdp.Count(k=10), unit="u"), attacker=ATTACKER, alone=False)
        )


def test_a_ledger_replays_the_same_request_without_data(ledger):
    request = Question(mechanism=pkdp.Histogram(k=10), unit="u", by="c", period="2020-01-01")
    first = publish(lambda: people(a=12), Publication(question=request, attacker=ATTACKER, ledger=ledger))
    again = publish(unread, Publication(question=request, attacker=ATTACKER, ledger=ledger))
    assert (first.replayed, again.replayed) == (False, True)
    assert again.to_bytes() == first.to_bytes()
    assert again.id == first.id
    assert again.certificate.attacker == ATTACKER
    pd.testing.assert_frame_equal(again.table, first.table)
    (entry,) = ledger.entries()
    assert (entry.release_id, entry.content, entry.certificate) == (
        first.id,
        first.to_bytes(),
        first.certificate.to_json(),
    )


def test_noise_is_drawn_once_for_a_request(ledger):
    kwargs = {"unit": "u", "attacker": SURE, "noise": pkdp.GeometricNoise(1e-6), "ledger": ledger, "period": "2020"}
    first = people(a=12).pkdp.count(**kwargs)
    assert people(a=500).pkdp.count(**kwargs).value == first.value


def test_noised_small_counts_are_stored_as_they_were_drawn(ledger, tmp_path):
    terms = {"unit": "u", "attacker": ATTACKER, "by": "c", "domain": ["a", "b", "z"], **BELOW}
    wide = {**terms, "noise": pkdp.GeometricNoise(1e-6), "target": None}
    first = people(a=12, b=3).pkdp.histogram(**wide, ledger=ledger, period="2020-01-01")
    assert (first.table["exact"].tolist(), first.table["count"].iloc[0]) == ([True, False, False], 12)
    with pkdp.Ledger.open(tmp_path / "ledger.sqlite", dataset="people") as other:
        with pytest.warns(UserWarning, match="was not read"):
            again = people(a=500, z=9).pkdp.histogram(**wide, ledger=other, period="2020-01-01")
        assert (again.replayed, again.to_bytes(), again.verify()) == (True, first.to_bytes(), True)
        # Exact counts beside them are noiseless: neither fresh noise nor corrected data may follow.
        for change in ({"revise": True}, {"noise": pkdp.GeometricNoise(2e-6)}, {"below": "suppress"}):
            with pytest.raises(pkdp.DifferencingError):
                people(a=500).pkdp.histogram(**{**wide, **change}, ledger=other, period="2020-01-01")
        assert [entry.release_id for entry in other.entries(given_back=True)] == [first.id]


def test_two_displays_of_a_question_are_two_questions(ledger, tmp_path):
    terms = {"unit": "u", "attacker": pkdp.AttackerModel(), "by": "c", "domain": ["a", "b"], "ledger": ledger}
    frame, noise, rounded = people(a=12, b=3), pkdp.GeometricNoise(0.5), pkdp.Rounding(5)
    first = frame.pkdp.histogram(**terms, noise=noise, display=rounded, period="2020")
    assert all(count % 5 == 0 for count in first.table["count"])
    again = frame.pkdp.histogram(**terms, noise=noise, display=rounded, period="2020")
    assert (again.replayed, again.id) == (True, first.id)
    bands = frame.pkdp.histogram(**terms, noise=noise, display=pkdp.Bands([0, 10]), period="2020")
    assert not bands.replayed
    # Both are charged, as fresh noise is.
    assert ledger.total().epsilon(0.0) == pytest.approx(1.0)
    with pkdp.Ledger.open(tmp_path / "other.sqlite", dataset="people") as other:
        exact = {**terms, "attacker": ATTACKER, "k": 10, "target": None, "ledger": other, "period": "2020"}
        frame.pkdp.histogram(**exact, display=rounded)
        with pytest.raises(pkdp.DifferencingError):
            frame.pkdp.histogram(**exact, display=pkdp.Rounding(6))


def test_a_ledger_adds_noised_small_counts_up_as_noise(tmp_path):
    terms = {"unit": "u", "attacker": ATTACKER, "by": "c", "domain": ["a", "b"], **BELOW, "k": 30}
    budget = pkdp.Budget(2.5, 1e-6, part="partial_knowledge")
    with pkdp.Ledger.open(
        tmp_path / "ledger.sqlite", dataset="people", evidence=pkdp.IndependentGivenHabits(), budget=budget
    ) as ledger:
        for day in ("2020-01-01", "2020-01-02"):
            release = people(a=40, b=3).pkdp.histogram(**terms, ledger=ledger, period=day)
        alone = pkdp.certify(release.certificate.mechanism, ATTACKER)
        both = pkdp.compose([(alone, 2)], pkdp.IndependentGivenHabits())
        assert ledger.total().delta(1.0) == both.delta(1.0) > 0.1 > alone.delta(1.0)
        assert ledger.total().epsilon(1e-6) >= 2.0 * NOISE.epsilon
        with pytest.raises(pkdp.BudgetExceededError):
            people(a=40, b=3).pkdp.histogram(**terms, ledger=ledger, period="2020-01-03")
        assert len(list(ledger.entries())) == 2


def test_a_ledger_refuses_what_cannot_stand_beside_before_data_are_read(ledger):
    people(a=12).pkdp.histogram("c", unit="u", attacker=ATTACKER, k=10, ledger=ledger, period="2020-01-01")
    other = Question(mechanism=pkdp.Count(noise=NOISE), unit="u", period="2020-01")
    with pytest.raises(pkdp.DifferencingError, match="Ways out"):
        publish(unread, Publication(question=other, attacker=SURE, ledger=ledger))
    next_day = Question(mechanism=pkdp.Histogram(k=10), unit="u", by="c", period="2020-01-02")
    with pytest.raises(pkdp.DifferencingError, match="crosses k"):
        publish(unread, Publication(question=next_day, attacker=ATTACKER, ledger=ledger))
    assert len(list(ledger.entries())) == 1


def test_evidence_lets_a_noiseless_release_follow_another(tmp_path):
    with pkdp.Ledger.open(tmp_path / "ledger.sqlite", evidence=pkdp.OneDayProtected()) as ledger:
        for day in ("2020-01-01", "2020-01-02"):
            request = Question(mechanism=pkdp.Histogram(k=10), unit="u", by="c", period=day)
            assert not publish(
                lambda: people(a=12), Publication(question=request, attacker=ATTACKER, ledger=ledger)
            ).replayed
        total = ledger.total()
    single = pkdp.certify(pkdp.Histogram(k=10), ATTACKER)
    assert (total.releases, total.rule) == (2, "one_day_protected")
    assert total.delta(1.0) == single.delta(1.0)


def test_another_attacker_certifies_the_stored_table_again(ledger):
    request = Question(mechanism=pkdp.Histogram(k=10), unit="u", by="c", period="2020-01-01")
    first = publish(lambda: people(a=12), Publication(question=request, attacker=ATTACKER, ledger=ledger))
    other = pkdp.AttackerModel(p_max=0.9)
    again = publish(unread, Publication(question=request, attacker=other, ledger=ledger))
    assert again.replayed
    assert again.certificate.attacker == other
    assert again.certificate.context == first.certificate.context
    pd.testing.assert_frame_equal(again.table, first.table)
    assert again.verify() is True
    assert publish(unread, Publication(question=request, attacker=other, ledger=ledger)).to_bytes() == again.to_bytes()
    (entry,) = ledger.entries()
    assert entry.certificate == again.certificate.to_json()
    assert ledger.total().delta(1.0) == again.certificate.delta(1.0)
    ledger.verify()


def test_changed_data_are_a_revision_which_is_charged_and_checked(ledger):
    noised = {"unit": "u", "attacker": SURE, "noise": NOISE, "ledger": ledger, "period": "2020-01-01"}
    first = people(a=12).pkdp.count(**noised)
    revised = people(a=500).pkdp.count(revise=True, **noised)
    assert (revised.replayed, revised.value > 100) == (False, True)
    assert people(a=12).pkdp.count(**noised).to_bytes() == revised.to_bytes()
    assert ledger.total().worst_case.parameters == (2.0 * first.certificate.worst_case.parameters[0], 0.0)
    request = Question(mechanism=pkdp.Histogram(k=10), unit="u", by="c", period="2021")
    with pytest.raises(pkdp.ArgumentError, match="revise"):
        publish(unread, Publication(question=request, attacker=ATTACKER, revise=True))


def test_a_noiseless_revision_is_refused(ledger):
    request = Question(mechanism=pkdp.Histogram(k=10), unit="u", by="c", period="2020-01-01")
    publish(lambda: people(a=12), Publication(question=request, attacker=ATTACKER, ledger=ledger))
    with pytest.raises(pkdp.DifferencingError, match="revision"):
        publish(unread, Publication(question=request, attacker=ATTACKER, ledger=ledger, revise=True))
    assert len(list(ledger.entries())) == 1


def test_beside_another_noised_release_only_the_worst_case_is_claimed(ledger):
    kwargs = {"unit": "u", "attacker": SURE, "noise": NOISE, "ledger": ledger, "period": "2020"}
    first = people(a=12).pkdp.count("c == 'a'", **kwargs)
    second = people(a=12).pkdp.count("c == 'b'", **kwargs)
    assert first.certificate.has_partial_knowledge
    assert "holds only while nothing else is published" in first.certificate.sentence()
    assert not second.certificate.has_partial_knowledge


def test_what_is_not_published_is_not_charged(ledger):
    with pytest.raises(pkdp.InputCheckError):
        STRAYS.pkdp.histogram("c", unit="u", attacker=ATTACKER, k=10, ledger=ledger, period="2020")
    assert list(ledger.entries()) == []


def test_with_a_ledger_a_period_is_needed_and_a_label_for_an_opaque_predicate(ledger):
    frame = people(a=12)
    with pytest.raises(pkdp.ArgumentError, match="period"):
        frame.pkdp.count(unit="u", attacker=ATTACKER, k=10, ledger=ledger)
    for where in (frame["c"] == "a", lambda given: given["c"] == "a"):
        with pytest.raises(pkdp.ArgumentError, match="label"):
            frame.pkdp.count(where, unit="u", attacker=ATTACKER, k=10, ledger=ledger, period="2020")
    labelled = frame.pkdp.count(
        frame["c"] == "a", unit="u", attacker=ATTACKER, k=10, ledger=ledger, period="2020", label="in a"
    )
    assert labelled.value == 12
    assert "the period 2020 alone" in labelled.certificate.sentence()


@pytest.mark.parametrize(
    ("period", "named"),
    [("all", "'all'"), ("wave 1", "'wave 1'"), ("2013-Q1/2013-Q2", "2013-Q1/2013-Q2"), ("2013-W01", "2013-W01")],
)
def test_a_label_reads_as_a_name_in_the_statement(ledger, period, named):
    release = people(a=12).pkdp.count(unit="u", attacker=ATTACKER, k=10, ledger=ledger, period=period)
    assert f"This statement is about the period {named} alone;" in release.certificate.sentence()
    assert pkdp.Certificate.from_json(release.certificate.to_json()) == release.certificate


def test_another_process_that_publishes_first_wins(ledger, tmp_path):
    request = Question(mechanism=pkdp.Count(noise=pkdp.GeometricNoise(1e-6)), unit="u", period="2020")
    published = []

    def slow_source():
        with pkdp.Ledger.open(tmp_path / "ledger.sqlite", dataset="people") as other:
            published.append(publish(lambda: people(a=12), Publication(question=request, attacker=SURE, ledger=other)))
        return people(a=12)

    release = publish(slow_source, Publication(question=request, attacker=SURE, ledger=ledger))
    assert release.replayed
    assert release.to_bytes() == published[0].to_bytes()


def test_a_ledger_whose_entry_was_exchanged_is_an_error(ledger, monkeypatch):
    request = Question(mechanism=pkdp.Count(k=10), unit="u", period="2020")
    publish(lambda: people(a=12), Publication(question=request, attacker=ATTACKER, ledger=ledger))
    other = people(a=13).pkdp.count(unit="u", attacker=ATTACKER, k=10)
    from dataclasses import replace

    (entry,) = ledger.entries()
    for content, words in ((other.to_bytes(), "another release"), (b"nothing", "cannot be replayed")):
        monkeypatch.setattr(pkdp.Ledger, "find", lambda self, key, content=content: replace(entry, content=content))
        with pytest.raises(pkdp.LedgerError, match=words):
            publish(unread, Publication(question=request, attacker=ATTACKER, ledger=ledger))


def histogram_of(frame):
    return frame.pkdp.histogram("c", unit="u", attacker=ATTACKER, k=60)


@pytest.mark.parametrize("extra", [None, 7.5, 9223372036854775808])
def test_a_withheld_row_does_not_show_in_the_dtype_it_gave_the_source(extra):
    cells = [7 + i % 2 for i in range(160)]
    plain = histogram_of(pd.DataFrame({"u": range(160), "c": cells}))
    widened = histogram_of(pd.DataFrame({"u": range(161), "c": [*cells, extra]}))
    assert widened.to_bytes() == plain.to_bytes()
    assert list(plain.table["c"]) == [7, 8]


def test_a_withheld_instant_does_not_show_in_the_resolution_of_the_others():
    days = pd.Series(pd.to_datetime(["2020-01-01", "2020-01-02"] * 80)).dt.as_unit("us")
    finer = pd.concat([days, pd.Series(pd.to_datetime(["2020-01-01 00:00:00.000000001"]))], ignore_index=True)
    assert finer.dt.unit == "ns"
    plain, widened = (histogram_of(pd.DataFrame({"u": range(len(c)), "c": c})) for c in (days, finer))
    assert widened.to_bytes() == plain.to_bytes()


def test_what_breaks_while_counting_does_not_quote_the_data():
    frame = pd.DataFrame({"u": range(160), "c": pd.Series(["a"] * 159 + ["SECRET\ud800"], dtype=object)})
    with pytest.raises(pkdp.ArgumentError, match="could not be counted") as raised:
        histogram_of(frame)
    assert "SECRET" not in str(raised.value)
    assert raised.value.__context__ is None


def test_what_is_published_while_data_are_read_stands_beside_the_reservation(tmp_path):
    noise = pkdp.GeometricNoise(0.5)
    frame = pd.DataFrame({"u": range(200), "c": ["a", "b"] * 100})
    with pkdp.Ledger.open(tmp_path / "ledger.sqlite") as ledger:
        others = []

        def meanwhile(given):
            count = given.pkdp.count(
                unit="u", attacker=pkdp.AttackerModel(), noise=noise, ledger=ledger, period="2020-01-01"
            )
            others.append(count)
            return given["c"] == "a"

        terms = {"unit": "u", "noise": noise, "ledger": ledger, "period": "2020-01-01", "label": "in a"}
        attacker = pkdp.AttackerModel(p_min=0.1, p_max=0.9, unknown=100)
        release = frame.pkdp.count(meanwhile, attacker=attacker, **terms)
        assert "holds only while nothing else is published" in release.certificate.sentence()
        assert others[0].certificate.context.beside
        assert not ledger.total().has_partial_knowledge
        assert ledger.total().worst_case.parameters == (1.0, 0.0)


def test_a_ledger_and_a_period_are_what_they_should_be(tmp_path):
    frame = people(a=12)
    with pytest.raises(pkdp.ArgumentError, match="Ledger"):
        frame.pkdp.histogram("c", unit="u", attacker=ATTACKER, k=10, ledger=str(tmp_path / "x"), period="2020")
    with pytest.raises(pkdp.ArgumentError, match=r"timestamp\.date"):
        frame.pkdp.histogram("c", unit="u", attacker=ATTACKER, k=10, period=pd.Timestamp("2020-01-01"))


def test_a_certificate_says_what_the_ledger_lets_stand_beside_it():
    terms = {"unit": "u", "attacker": SURE, "period": "2020"}
    with pkdp.Ledger.open(":memory:") as ledger:
        people(a=12).pkdp.count("c == 'a'", noise=NOISE, ledger=ledger, **terms)
        exact = people(a=12).pkdp.count("c == 'a'", ledger=ledger, **terms)
    with pkdp.Ledger.open(":memory:", evidence=pkdp.BoundedDependence(0.5)) as ledger:
        first = people(a=12).pkdp.count("c == 'a'", ledger=ledger, **terms)
        second = people(a=12).pkdp.count("c == 'b'", ledger=ledger, **terms)
    assert not first.certificate.context.beside
    for release in (exact, second):
        assert release.certificate.has_partial_knowledge
        assert release.certificate.context.beside
        assert "stand beside it" in release.certificate.sentence()


def test_another_attacker_learns_what_stands_beside_the_release_by_now(ledger):
    terms = {"unit": "u", "ledger": ledger, "period": "2020", "noise": NOISE}
    first = people(a=12).pkdp.count("c == 'a'", attacker=SURE, **terms)
    people(a=12).pkdp.count("c == 'b'", attacker=SURE, **terms)
    again = people(a=12).pkdp.count("c == 'a'", attacker=ATTACKER, **terms)
    assert (first.certificate.has_partial_knowledge, first.certificate.context.beside) == (True, False)
    assert (again.certificate.has_partial_knowledge, again.certificate.context.beside) == (False, True)
    assert again.value == first.value
    ledger.verify()
    # From now on the worst case is the answer to everybody, until nothing new is to be said.
    for attacker in (SURE, ATTACKER):
        assert people(a=12).pkdp.count("c == 'a'", attacker=attacker, **terms).to_bytes() == again.to_bytes()


def test_the_same_attacker_is_answered_with_the_stored_bytes_whatever_came_beside(ledger):
    terms = {"unit": "u", "ledger": ledger, "period": "2020", "noise": NOISE, "attacker": SURE}
    first = people(a=12).pkdp.count("c == 'a'", **terms)
    people(a=12).pkdp.count("c == 'b'", **terms)
    assert people(a=12).pkdp.count("c == 'a'", **terms).to_bytes() == first.to_bytes()


def test_an_exact_count_beside_noise_keeps_its_claim_under_another_attacker(ledger):
    terms = {"unit": "u", "ledger": ledger, "period": "2020"}
    people(a=12).pkdp.count(attacker=SURE, **terms)
    people(a=12).pkdp.count(attacker=SURE, noise=NOISE, **terms)
    other = pkdp.AttackerModel(p_min=0.3, p_max=0.7, unknown=50)
    again = people(a=12).pkdp.count(attacker=other, **terms)
    assert again.certificate.attacker == other
    assert again.certificate.context.beside


def test_what_stands_beside_others_and_has_no_noise_is_not_certified_again(tmp_path):
    terms = {"unit": "u", "period": "2020", "k": 5}
    with pkdp.Ledger.open(tmp_path / "l.sqlite", evidence=pkdp.BoundedDependence(0.5)) as ledger:
        for where in ("c == 'a'", "c == 'b'"):
            people(a=12).pkdp.count(where, attacker=ATTACKER, ledger=ledger, **terms)
        other = pkdp.AttackerModel(p_max=0.2)
        again = people(a=12).pkdp.count("c == 'a'", attacker=other, ledger=ledger, **terms)
        assert (again.certificate.attacker, again.certificate.context.beside) == (other, True)
    with pkdp.Ledger.open(tmp_path / "l.sqlite", evidence=()) as ledger:
        with pytest.raises(pkdp.NotCertifiableError):
            people(a=12).pkdp.count("c == 'b'", attacker=other, ledger=ledger, **terms)
        assert people(a=12).pkdp.count("c == 'b'", attacker=ATTACKER, ledger=ledger, **terms).replayed


@pytest.mark.parametrize(
    "changed", [{"where": "c == 'a'"}, {"period": "2020-01-02"}, {"noise": pkdp.GeometricNoise(2)}]
)
def test_a_ledger_whose_entries_changed_places_is_an_error(tmp_path, changed):
    terms = {"unit": "u", "attacker": SURE, "period": "2020-01-01", "noise": NOISE}
    path = tmp_path / "ledger.sqlite"
    with pkdp.Ledger.open(path) as ledger:
        people(a=12).pkdp.count(ledger=ledger, **terms)
        people(a=12).pkdp.count(ledger=ledger, **{**terms, **changed})
    with contextlib.closing(sqlite3.connect(path)) as database, database:
        database.execute("UPDATE entry SET content = (SELECT content FROM entry WHERE id = 3) WHERE id = 1")
    with pkdp.Ledger.open(path) as ledger, pytest.raises(pkdp.LedgerError, match="something else"):
        people(a=12).pkdp.count(ledger=ledger, **terms)


def test_another_aim_takes_nothing_off_the_total(tmp_path):
    terms = {"by": "c", "unit": "u", "k": 10}
    with pkdp.Ledger.open(tmp_path / "l.sqlite", evidence=pkdp.OneDayProtected()) as ledger:
        for day in ("2020-01-01", "2020-01-02"):
            first = people(a=12).pkdp.histogram(attacker=ATTACKER, ledger=ledger, period=day, **terms)
        total = ledger.total()
        between = {"attacker": pkdp.AttackerModel(p_max_between=0.6), "protects": "value"}
        people(a=12).pkdp.histogram(ledger=ledger, period=day, **between, **terms)
        epsilons = [0.0, 0.5, 1.0, 3.0]
        assert (ledger.total().delta(epsilons) >= total.delta(epsilons)).all()
        again = people(a=12).pkdp.histogram(attacker=ATTACKER, ledger=ledger, period=day, **terms)
        assert again.to_bytes() == first.to_bytes()


def test_a_new_certificate_rests_on_recorded_evidence_only(tmp_path):
    noised = {"unit": "u", "k": 10, "noise": NOISE, "release_threshold": 11, "period": "2020-01-01"}
    frame = people(a=40, b=30)
    path = tmp_path / "ledger.sqlite"
    with pkdp.Ledger.open(path) as ledger:
        first = frame.pkdp.histogram("c", attacker=ATTACKER, ledger=ledger, **noised)
        frame.pkdp.histogram("c", attacker=ATTACKER, ledger=ledger, where="c == 'a'", **noised)
    assert first.certificate.has_partial_knowledge
    with pkdp.Ledger.open(path, evidence=pkdp.BoundedDependence(0.1)) as ledger:
        again = frame.pkdp.histogram("c", attacker=pkdp.AttackerModel(p_max=0.2), ledger=ledger, **noised)
        assert not again.certificate.has_partial_knowledge
        assert again.certificate.context.beside


def test_a_certificate_beside_others_does_not_say_that_it_is_void(tmp_path):
    with pkdp.Ledger.open(tmp_path / "ledger.sqlite", evidence=pkdp.BoundedDependence(0.1)) as ledger:
        terms = {"unit": "u", "attacker": ATTACKER, "ledger": ledger, "period": "2020-01-01", "k": 10}
        people(a=40).pkdp.histogram("c", **terms)
        beside = people(a=40).pkdp.count("c == 'a'", **terms)
    assert beside.certificate.has_partial_knowledge
    assert "holds only while nothing else" not in beside.certificate.sentence()
    assert "is about this release alone" in beside.certificate.sentence()


def test_a_label_used_again_for_a_predicate_that_cannot_be_compared_warns(ledger):
    terms = {"unit": "u", "attacker": ATTACKER, "noise": NOISE, "ledger": ledger, "period": "2013", "label": "some"}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        first = pkdp.count(people(x=30), lambda frame: frame["c"] == "x", **terms)
    with pytest.warns(UserWarning, match="published for the label 'some'"):
        again = pkdp.count(people(x=30), pd.Series([False] * 60), **terms)
    assert again.to_bytes() == first.to_bytes()


def test_another_data_set_of_the_ledger_is_named_when_one_starts(tmp_path):
    terms = {"unit": "u", "attacker": ATTACKER, "noise": NOISE}
    for dataset, others in (("flights", ()), ("flight", ("'flights'",)), ("ships", ("'flight'", "'flights'"))):
        with pkdp.Ledger.open(tmp_path / "ledger.sqlite", dataset=dataset) as ledger:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                for period in ("2013", "2014"):
                    pkdp.count(people(x=30), ledger=ledger, period=period, **terms)
            messages = [str(warning.message) for warning in caught if warning.category is UserWarning]
            assert len(messages) == bool(others)
            assert all(name in messages[0] for name in others)


def test_what_makes_a_new_data_set_an_error_charges_nothing(tmp_path):
    terms = {"unit": "u", "attacker": ATTACKER, "noise": NOISE, "period": "2013"}
    with pkdp.Ledger.open(tmp_path / "ledger.sqlite", dataset="flights") as ledger:
        pkdp.count(people(x=30), ledger=ledger, **terms)
    with pkdp.Ledger.open(tmp_path / "ledger.sqlite", dataset="flight") as ledger, warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning):
            pkdp.count(people(x=30), ledger=ledger, **terms)
        assert list(ledger.entries(given_back=True)) == []


REVISION = """
import sys
import pandas as pd
import pkdp_pipeline as pkdp
frame = pd.DataFrame({"u": range(int(sys.argv[2]))})
asked = dict(unit="u", attacker=pkdp.AttackerModel(p_max=0.1), noise=pkdp.GeometricNoise(1.0), period="2013")
with pkdp.Ledger.open(sys.argv[1], dataset="people") as ledger:
    print("ready", flush=True)
    input()
    try:
        print("made", pkdp.count(frame, ledger=ledger, revise=True, **asked).table["count"][0])
    except pkdp.TemporaryError as error:
        print("refused", error)
"""


@pytest.mark.slow  # the next test lets the other be first
def test_a_revision_is_never_another_callers_table(tmp_path):
    path = tmp_path / "ledger.sqlite"
    with pkdp.Ledger.open(path, dataset="people") as ledger:
        pkdp.count(people(x=30), unit="u", attacker=ATTACKER, noise=NOISE, ledger=ledger, period="2013")
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    runs = {
        size: subprocess.Popen([sys.executable, "-c", REVISION, str(path), str(size)], **pipes) for size in (1000, 2000)
    }
    assert [run.stdout.readline() for run in runs.values()] == ["ready\n"] * 2
    for run in runs.values():
        run.stdin.write("\n")
        run.stdin.flush()
    counts = []
    for size, run in runs.items():
        with run:
            outcome, _, answer = run.stdout.readline().partition(" ")
        assert run.returncode == 0
        if outcome == "made":
            assert abs(int(answer) - size) < 100
            counts.append(int(answer))
        else:
            assert "run again" in answer
    assert counts
    with pkdp.Ledger.open(path, dataset="people") as ledger:
        assert len(list(ledger.entries())) == 1 + len(counts)


def test_a_revision_that_another_run_published_first_is_refused(tmp_path, ledger):
    terms = {"unit": "u", "attacker": ATTACKER, "noise": NOISE, "period": "2013"}
    pkdp.count(people(x=30), ledger=ledger, **terms)
    request = Question(mechanism=pkdp.Count(noise=NOISE), unit="u", period="2013")

    def read():
        with pkdp.Ledger.open(tmp_path / "ledger.sqlite", dataset="people") as other:
            pkdp.count(people(x=2000), ledger=other, revise=True, **terms)
        return people(x=1000)

    with pytest.raises(pkdp.TemporaryError, match="another run has published a revision"):
        publish(read, Publication(question=request, attacker=ATTACKER, ledger=ledger, revise=True))
    assert [entry.revision for entry in ledger.entries()] == [1, 2]
    assert (
        publish(
            lambda: people(x=1000), Publication(question=request, attacker=ATTACKER, ledger=ledger, revise=True)
        ).replayed
        is False
    )


@pytest.mark.parametrize("domain", [[1, 2], [True, False], ["a"], None])
@pytest.mark.parametrize("where", [None, "size > 5"])
def test_a_file_without_rows_is_published_like_one_that_reaches_nothing(domain, where):
    """Such a file gives its columns no type."""
    empty = pd.read_csv(io.StringIO("person,size\n"))
    release = pkdp.histogram(empty, "size", unit="person", k=50, attacker=ATTACKER, domain=domain, where=where)
    assert release.table["count"].isna().tolist() == [True] * len(domain or [])
    assert pkdp.count(empty, where, unit="person", k=50, attacker=ATTACKER).value is None


@thinned(4)
@pytest.mark.parametrize(
    "values",
    [
        pd.Series(["a", "b"]),
        pd.Series(["a", "b"], dtype="category"),
        pd.Series([1, 2]),
        pd.Series([1, None]),
        pd.Series([True, False]),
        pd.to_datetime(pd.Series(["2020-01-01", "2020-01-02"])),
        pd.Series([datetime.date(2020, 1, 1)] * 2, dtype="date32[pyarrow]"),
    ],
)
def test_an_empty_frame_has_the_keys_of_one_that_reaches_nothing(values, as_frame):
    few = pd.DataFrame({"u": [1, 2], "c": values})
    releases = [
        pkdp.histogram(as_frame(frame), "c", unit="u", k=50, attacker=ATTACKER) for frame in (few, few.iloc[:0])
    ]
    pd.testing.assert_frame_equal(releases[0].table, releases[1].table)
    assert releases[0].id == releases[1].id
