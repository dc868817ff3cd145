"""Published counts over time as they are drawn: gaps where nothing is published, and the cells named at their ends."""

from __future__ import annotations

import datetime
import warnings
from dataclasses import replace

import matplotlib.dates
import numpy as np
import pytest
from figure_samples import axes, drawn, series, texts
from thorough import thinned

from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.extras.report.figures import MAX_CELLS, draw_series, drawn_cells


def values(panel, cell):
    return [None if np.isnan(value) else value for value in drawn(panel, cell).get_ydata()]


def named(panel):
    return [text.get_text() for text in panel.get_legend().get_texts()]


def test_lines_have_gaps_where_nothing_is_published():
    panel = axes()
    draw_series(series([(10, None), (12, 50), (None, 51), (14, None)]), panel)
    assert values(panel, "cell 0") == [10, 12, None, 14]
    assert values(panel, "cell 1") == [None, 50, 51, None]
    assert named(panel) == ["cell 1", "cell 0"]
    assert panel.get_ylim()[0] == 0.0


def test_a_value_that_stands_alone_is_a_dot():
    rows = [(5,) if day % 3 else (None,) for day in range(60)]
    rows[0], rows[1], rows[2] = (7,), (None,), (None,)
    panel = axes()
    draw_series(series(rows), panel)
    line = drawn(panel, "cell 0")
    marked = line.get_ydata()[line.get_markevery()]
    assert 7 in marked
    assert len(marked) < 15


def test_periods_that_are_missing_are_gaps_too():
    panel = axes()
    periods = ("2013-01-01", "2013-01-02", "2013-01-03", "2013-01-09")
    draw_series(series([(1,), (2,), (3,), (4,)], periods=periods), panel)
    assert values(panel, "cell 0") == [1, 2, 3, None, 4]


def test_the_cells_published_most_often_are_drawn():
    rows = [tuple(100 + cell for cell in range(10)), (None, *(100 + cell for cell in range(1, 10)))]
    panel = axes()
    draw_series(series(rows, more_cells=3), panel)
    shown = named(panel)
    assert len(shown) == MAX_CELLS
    assert "cell 0" not in shown  # published once only
    assert "cell 1" not in shown  # the smallest of the others
    assert "5 more cells are not drawn" in panel.get_xlabel()


def test_both_keys_of_a_cell_are_named_on_a_narrow_page():
    panel = axes(width=4.0)
    cells = ("Trondheim municipality / female", "Trondheim municipality / male", "Trondheim")
    draw_series(series([(30, 40, 50)] * 2, cells=cells), panel)
    assert [text.split(" /\n")[-1] for text in named(panel)] == ["Trondheim", "male", "female"]


def test_the_cells_that_have_lines_are_told_from_the_others():
    rows = [tuple(None if cell == 3 else 100 + cell for cell in range(12))] * 2
    assert drawn_cells(series(rows)) == [4, 5, 6, 7, 8, 9, 10, 11]
    assert drawn_cells(series([row[:9] for row in rows])) == [0, 1, 2, 4, 5, 6, 7, 8]


@thinned(6)
@pytest.mark.parametrize("width", [2.5, 4.0, 8.0])
@pytest.mark.parametrize("apart", [1, 11, 14, 25, 31, 100, 400, 5000])
def test_no_stretch_of_dates_makes_drawing_complain(width, apart):
    start = datetime.date(2013, 1, 31)
    periods = tuple((start + datetime.timedelta(days=apart * day)).isoformat() for day in range(7))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        panel = axes(width=width)
        draw_series(series([(30,)] * 7, periods=periods), panel)
        panel.figure.canvas.draw()
    shown = [tick.get_text() for tick in panel.get_xticklabels()]
    assert 2 <= len(shown) <= max(2, width * 72 / 60)
    # A tick has the name of the day on which it stands.
    places = matplotlib.dates.num2date(panel.get_xticks())
    assert all(place.date().isoformat().startswith(name) for place, name in zip(places, shown, strict=True))


def test_longer_periods_have_their_own_names():
    months = tuple(f"{year}-{month:02}" for year in (2013, 2014) for month in range(1, 13))
    panel = axes()
    draw_series(series([(30,)] * 24, periods=months), panel)
    places = matplotlib.dates.num2date(panel.get_xticks())
    shown = [tick.get_text() for tick in panel.get_xticklabels()]
    assert 4 <= len(shown) <= 10
    assert shown[0] == "2013-01"
    assert [place.date().isoformat()[:7] for place in places] == shown


def test_names_stand_in_the_order_in_which_the_lines_end():
    panel = axes()
    draw_series(series([(1, 5, 3), (3, 1, 2), (None, 4, 2)], cells=("a", "_b", "$c$")), panel)
    assert named(panel) == ["_b", "a", r"\$c\$"]


def test_nothing_published_is_said():
    panel = axes()
    draw_series(series([(None, None), (None, None)]), panel)
    assert texts(panel) == ["no cell is published"]
    with pytest.raises(ArgumentError, match="nothing has been published"):
        draw_series(replace(series([(1,)]), periods=(), counts=()), axes())


def test_negative_counts_are_drawn():
    panel = axes()
    draw_series(series([(-5,), (10,)]), panel)
    assert panel.get_ylim()[0] < -5
    assert values(panel, "cell 0") == [-5, 10]


def test_the_axis_is_used():
    cut_axis, whole_axis = axes(), axes()
    draw_series(series([(65, 150), (80, 160)]), cut_axis)
    assert 50 < cut_axis.get_ylim()[0] < 65
    assert cut_axis.get_ylim()[1] < 175
    assert cut_axis.get_title(loc="left") == "published count (the axis does not start from 0)"
    draw_series(series([(5, 150), (80, 160)]), whole_axis)
    assert whole_axis.get_ylim()[0] == 0.0
    assert whole_axis.get_title(loc="left") == "published count"


def test_lines_differ_by_more_than_their_colour():
    panel = axes()
    draw_series(series([tuple(range(10, 10 + MAX_CELLS))] * 3), panel)
    lines = [line for line in panel.get_lines() if line.get_label().startswith("cell")]
    assert len({line.get_marker() for line in lines}) == MAX_CELLS
    assert len({line.get_linestyle() for line in lines}) > 1


def test_noised_counts_are_hollow_marks_with_a_line():
    panel = axes()
    marked = replace(series([(40, 12), (41, None), (42, 28)]), exact=((True, False), (True, None), (True, False)))
    draw_series(marked, panel, k=30, margin=3)
    hollow = [line for line in panel.lines if line.get_label() == "_noised" and len(line.get_xdata()) == 1]
    assert [line.get_ydata()[0] for line in hollow] == [12, 28]
    ends = [tuple(line.get_ydata()) for line in panel.lines if line.get_label() == "_noised" and line not in hollow]
    assert ends == [(9, 15), (25, 29)]
    assert named(panel) == ["cell 0", "cell 1"]
