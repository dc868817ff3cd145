"""Index levels, arrays of booleans, periods and intervals of pandas; what a release shows of itself."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from thorough import thinned

import pkdp_pipeline as pkdp
from pkdp_pipeline.model.wording import rounded_up

ATTACKER = pkdp.AttackerModel(p_max=0.2)
K = {"unit": "uid", "k": 5, "attacker": ATTACKER}


@pytest.fixture
def frame():
    number = range(60)
    return pd.DataFrame({"uid": [f"u{person}" for person in number], "town": ["a"] * 40 + ["b"] * 20, "age": number})


@thinned(2)
@pytest.mark.parametrize("levels", ["uid", "town", ["uid", "town"], ["age", "uid"]])
def test_levels_of_the_index_are_columns(frame, levels):
    terms = {**K, "where": "age >= 10"}
    expected = frame.pkdp.histogram("town", **terms)
    release = frame.set_index(levels).pkdp.histogram("town", **terms)
    assert release.id == expected.id
    counted = frame.set_index(levels).pkdp.count("age >= 10", **K)
    assert counted.value == 50
    assert frame.set_index("uid").pkdp.count(lambda rows: rows["age"] >= 10, **K).value == 50


def test_a_level_that_is_a_column_as_well_is_refused(frame):
    twice = frame.set_index("uid", drop=False)
    with pytest.raises(pkdp.ArgumentError, match="'uid' is a column and a level of the index"):
        twice.pkdp.histogram("town", **K)
    with pytest.raises(pkdp.ArgumentError, match="the index has two levels 'town'"):
        pd.concat({"a": frame}, names=["town"]).set_index("town", append=True).pkdp.histogram("town", **K)
    with pytest.raises(pkdp.ArgumentError, match="unit names column 'person'"):
        frame.set_index("uid").pkdp.histogram("town", **{**K, "unit": "person"})


@pytest.mark.parametrize("form", [np.asarray, list, lambda mask: mask.astype("boolean").array])
def test_an_array_of_booleans_is_a_predicate(frame, form):
    shuffled = frame.sample(frac=1, random_state=1)
    assert shuffled.pkdp.count(form(shuffled["age"] > 30), **K).value == 29
    with pytest.raises(pkdp.ArgumentError, match="one boolean per row"):
        frame.pkdp.count(form(frame["age"] > 30)[:-1], **K)
    with pytest.raises(pkdp.ArgumentError, match="where must be boolean"):
        frame.pkdp.count(np.asarray(frame["age"]), **K)
    with pytest.raises(pkdp.ArgumentError, match="label"), pkdp.Ledger.open(":memory:", dataset="d") as ledger:
        frame.pkdp.count(form(frame["age"] > 30), ledger=ledger, period="2026", **K)


@thinned(3)
@pytest.mark.parametrize(
    ("period", "text"),
    [
        (pd.Period("2026-01", "M"), "2026-01"),
        (pd.Period("2026-01-12", "W"), "2026-W03"),
        (pd.Period("2026-01-12", "D"), "2026-01-12"),
        (pd.Period("2026Q1", "Q"), "2026-Q1"),
        (pd.Period("2026", "Y"), "2026"),
        (pd.Period("2026-01-12", "W-SAT"), "2026-01-11/2026-01-17"),
        (pd.Period("2026-01", "2M"), "2026-01-01/2026-02-28"),
    ],
)
def test_a_period_of_pandas_is_its_days(frame, period, text):
    with pkdp.Ledger.open(":memory:", dataset="d") as ledger:
        frame.pkdp.histogram("town", period=period, ledger=ledger, **K)
        assert [entry.period for entry in ledger.entries()] == [text]


def test_a_period_of_hours_is_refused(frame):
    for period in (pd.Period("2026-01-12 05:00", "h"), pd.Period("2026-01-12 00:00", "h"), pd.NaT):
        with pytest.raises(pkdp.ArgumentError, match="period must be"):
            frame.pkdp.histogram("town", period=period, **K)


def test_intervals_are_keys_by_their_text_and_warn_of_edges_that_look_at_everybody(frame):
    for group in (pd.cut(frame["age"], [-1, 19, 39, 59]), pd.Series(pd.cut(frame["age"], [-1, 19, 39, 59]).array)):
        with pytest.warns(UserWarning, match=r"pd\.qcut.*declare the cells in domain="):
            release = frame.assign(group=group).pkdp.histogram("group", **K)
        assert release.table.to_dict("list") == {"group": ["(-1, 19]", "(19, 39]", "(39, 59]"], "count": [20, 20, 20]}
    missing = frame.assign(group=pd.cut(frame["age"], [-1, 19, 39]).astype(object).astype("interval"))
    with pytest.warns(UserWarning, match="edges"):
        assert missing.pkdp.histogram("group", **K).table["group"].isna().sum() == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cells = ["(39, 59]", "(59, 99]"]
        group = pd.cut(frame["age"], [-1, 19, 39, 59, 99])
        declared = frame.assign(group=group).pkdp.histogram("group", domain=cells, undeclared="absent", **K)
    assert declared.table["count"].tolist() == [20, pd.NA]


def test_a_release_shows_its_table_and_epsilon(frame):
    release = frame.pkdp.histogram("town", **{**K, "k": 35})
    shown = repr(release)
    assert shown.splitlines()[1:3] == ["  town count", "0    a    40"]
    assert f"ε = {pkdp.certify(pkdp.Histogram(k=35), ATTACKER).epsilon(1e-6):.3f}"[:6] in shown
    assert "at δ = 1e-6" in shown
    weak = frame.pkdp.histogram("town", **K)
    assert f"no ε reaches δ = 1e-6; δ = {rounded_up(weak.certificate.delta(1.0))} at ε = 1" in repr(weak)


def test_a_noised_count_is_marked(frame):
    release = frame.pkdp.histogram("town", unit="uid", domain=["a"], undeclared="absent", noise=pkdp.GeometricNoise(1))
    (count,) = release.table["count"]
    assert repr(release).splitlines()[2] == f"0    a  ≈ {count}"
    assert f"≈ {count}</td>" in release._repr_html_()


def test_a_release_is_drawn_into_axes(frame):
    pytest.importorskip("matplotlib")
    from matplotlib.figure import Figure

    axes = Figure().add_subplot()
    release = frame.pkdp.histogram("town", **K)
    assert release.plot(ax=axes) is axes
    assert [bar.get_width() for bar in axes.patches] == [40, 20]
    assert release.plot().get_yticklabels()[0].get_text() == "a"
    assert frame.pkdp.count(**K).plot(ax=Figure().add_subplot()).patches


@thinned(3)
@pytest.mark.parametrize("engine", ["pandas", "duckdb", "polars", "arrow"])
@pytest.mark.parametrize("where", ["day >= '2026-01-02'", "not (age > 3 and day < '2026-01-02 00:00')"])
def test_dates_kept_as_text_are_not_compared_with_a_date(frame, engine, where):
    import duckdb

    text = frame.assign(day="31.01.2026")
    frames = {
        "pandas": lambda: text,
        "duckdb": lambda: duckdb.from_df(text),
        "polars": lambda: pytest.importorskip("polars").from_pandas(text),
        "arrow": lambda: pytest.importorskip("pyarrow").Table.from_pandas(text),
    }
    with pytest.raises(pkdp.ArgumentError, match=r"column 'day'.*holds text.*cast it first.*CAST\(day AS DATE\)"):
        pkdp.count(frames[engine](), where, **K)
    assert pkdp.count(frames[engine](), "day == '31.01.2026' and town >= 'a'", **K).value == 60
    dated = text.assign(day=pd.to_datetime(text["day"], dayfirst=True))
    assert pkdp.count(dated, where, **K).value in (60, 4)
