"""Public tables as text, and as series."""

from __future__ import annotations

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pkdp_pipeline as pkdp
from pkdp_pipeline.extras.report.pages import gathering
from pkdp_pipeline.extras.report.pages.gathering import series_of
from pkdp_pipeline.releases.printed import published_table
from pkdp_pipeline.releases.release import Release

CERTIFICATE = pkdp.certify(pkdp.Histogram(k=20), pkdp.AttackerModel(p_max=0.1))


def release(cells: dict[str, int | None], columns: tuple[str, ...] = ("town",)) -> Release:
    keys = [cell if isinstance(cell, tuple) else (cell,) for cell in cells]
    table = pd.DataFrame(keys, columns=list(columns))
    table["count"] = pd.array(list(cells.values()), dtype="Int64")
    return Release.seal(table, CERTIFICATE)


def test_a_table_keeps_its_order_and_says_what_is_left_out():
    table = published_table(release({"b": 30, "a": None, "c": 20, "d": 21}), most=2)
    assert (table.columns, table.keys, table.counts, table.more) == (("town",), (("b",), ("a",)), (30, None), 2)


@pytest.mark.parametrize(("rows", "most", "shown"), [(21, 20, 21), (22, 20, 22), (23, 20, 20), (2, 1, 2), (5, 9, 5)])
def test_a_table_is_cut_only_where_that_saves_something(rows, most, shown):
    table = published_table(release({str(row): 20 + row for row in range(rows)}), most=most)
    assert (len(table.keys), len(table.counts), table.more) == (shown, shown, rows - shown)


def test_declared_cells_keep_their_order_when_later_periods_declare_more():
    frame = pd.DataFrame({"level": ["low"] * 30 + ["high"] * 25, "person": range(55)})
    options = {"unit": "person", "k": 20, "attacker": pkdp.AttackerModel(p_max=0.1)}
    former, latter = ["low", "mid", "high"], ["lowest", "low", "mid", "high", None]
    days = {str(len(domain)): frame.pkdp.histogram("level", domain=domain, **options) for domain in (former, latter)}
    assert series_of("name", days).cells == ("lowest", "low", "mid", "high", "(missing)")
    daily = {day: frame.pkdp.histogram("level", **options) for day in "12"}
    assert series_of("name", daily).cells == ("high", "low")


def test_a_count_is_one_row_without_a_key():
    table = published_table(release({(): None}, ()))
    assert (table.columns, table.keys, table.counts, table.more) == ((), ((),), (None,), 0)


CELLS = st.dictionaries(st.sampled_from("abcdefgh"), st.one_of(st.none(), st.integers(20, 99)), max_size=6)


@given(st.lists(CELLS, min_size=1, max_size=5))
def test_a_series_holds_what_the_tables_hold(days):
    releases = {str(number): release(cells) for number, cells in enumerate(days)}
    series = series_of("name", releases)
    assert series.periods == tuple(releases)
    assert set(series.cells) == {cell for cells in days for cell in cells}
    for cells, counts in zip(days, series.counts, strict=True):
        assert dict(zip(series.cells, counts, strict=True)) == {cell: cells.get(cell) for cell in series.cells}
    if len({tuple(cells) for cells in days}) > 1:
        assert list(series.cells) == sorted(series.cells)
    else:
        assert list(series.cells) == list(days[0])


def test_of_many_cells_those_published_most_often_are_shown_in_the_order_of_their_keys(monkeypatch):
    monkeypatch.setattr(gathering, "MAX_CELLS", 2)
    releases = {"1": release({"a": 20, "b": None, "c": 25}), "2": release({"b": None, "c": 30, "d": 40, "a": 21})}
    series = series_of("name", releases, more_periods=7)
    assert (series.cells, series.counts) == (("a", "c"), ((20, 25), (21, 30)))
    assert (series.more_cells, series.more_periods) == (2, 7)
    often = release({"a": 20, "b": 90, "c": 25, "d": 91})
    assert series_of("name", {"1": often, "2": often}).cells == ("b", "d")


def test_cells_of_several_columns_and_of_other_kinds_on_other_days():
    two = release({("a", 1): 20, ("a", None): 30}, ("town", "number"))
    assert series_of("name", {"1": two}).cells == ("a / 1.0", "a / (missing)")
    mixed = {"1": release({"a": 20}), "2": release({7: 20, 5: 30})}
    assert series_of("name", mixed).cells == ("7", "5", "a")


def test_no_count_is_lost_where_cells_look_alike():
    alike = {"(missing)": 30, None: 44, "\n": 40, "\\n": 25, "": 31, "(empty)": 22, " ": 33}
    days = {"1": release(alike), "2": release(dict(reversed([*alike.items()])))}
    series = series_of("name", days)
    assert len(set(series.cells)) == len(alike)
    assert sorted(series.counts[0]) == sorted(series.counts[1]) == sorted(alike.values())
    named = dict(zip(series.cells, series.counts[0], strict=True))
    table = published_table(days["1"])
    assert named == {key: count for (key,), count in zip(table.keys, table.counts, strict=True)}
    assert named["(missing)"] == 44
    assert named['"(missing)"'] == 30


def test_no_count_is_lost_where_cells_of_several_columns_look_alike():
    series = series_of("name", {"1": release({("a / b", "c"): 20, ("a", "b / c"): 30}, ("one", "other"))})
    assert series.cells == ('"a / b" / c', 'a / "b / c"')
    assert series.counts == ((20, 30),)


def test_a_number_is_the_same_number_on_every_day_and_no_text():
    days = {"1": release({7: 20}), "2": release({7.0: 21, None: 22}), "3": release({"7": 23, "8": 24})}
    series = series_of("name", days)
    counts = dict(zip(series.cells, zip(*series.counts, strict=True), strict=True))
    assert counts == {
        "7.0": (20, 21, None),
        "(missing)": (None, 22, None),
        "7": (None, None, 23),
        "8": (None, None, 24),
    }
    assert series_of("name", {"1": release({7: 20}), "2": release({"7": 23})}).cells == ('"7"', "7")
