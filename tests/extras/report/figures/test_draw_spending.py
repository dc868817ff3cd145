"""Spending as it is drawn: steps that are never below, and budgets that say what they hold."""

from __future__ import annotations

import math

import numpy as np
import pytest
from figure_samples import axes, budget, days, drawn, labels, points, texts

from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.extras.report.figures import draw_spending
from pkdp_pipeline.extras.report.figures.style import put_periods


def test_the_steps_hold_the_value_of_the_later_period():
    panel = axes()
    draw_spending(points([1.0, 1.5, 2.25]), [], panel, delta=1e-6)
    line = drawn(panel, "total")
    assert list(line.get_ydata()) == [1.0, 1.5, 2.25]
    assert line.get_drawstyle() == "steps-pre"
    assert list(np.diff(line.get_xdata())) == [1.0, 1.0]
    assert "now ε = 2.25" in texts(panel)
    assert "δ = 1e-6" in panel.get_title(loc="left")
    assert labels(panel) == {"total"}


def test_budgets_are_lines_with_words():
    panel = axes()
    draw_spending(points([1.0, 2.0], [3.0, 4.0]), [budget(5.0), budget(8.0, "worst_case")], panel, delta=1e-6)
    lines = [line for line in panel.get_lines() if line.get_label() == "budget"]
    assert [list(line.get_ydata()) for line in lines] == [[5.0, 5.0], [8.0, 8.0]]
    total = next(line for line in panel.get_lines() if line.get_label() == "total")
    assert len({line.get_linestyle() for line in (total, *lines)}) == 2  # dashed, and not as the total is
    assert len({str(line._dash_pattern) for line in (total, *lines)}) == 3  # nor as one another
    assert "budget: ε = 5 at δ = 1e-6 for the total" in texts(panel)


def test_a_budget_for_something_else_is_dotted_and_says_what():
    panel = axes(4.5)
    draw_spending(points([1.0]), [budget(5.0, delta=1e-5), budget(2.0, window_days=7)], panel, delta=1e-6)
    lines = [line for line in panel.get_lines() if line.get_label() == "budget"]
    assert all(line.is_dashed() for line in lines)
    assert {"budget: ε = 5 at δ = 1e-5", "budget: ε = 2, 7 days"} <= set(texts(panel))


def test_the_worst_case_is_dashed():
    panel = axes()
    draw_spending(points([1.0, 2.0], [3.0, 4.0]), [], panel, delta=1e-6)
    line = drawn(panel, "worst case")
    assert line.is_dashed()
    assert list(line.get_ydata()) == [3.0, 4.0]
    assert any("noise alone" in text for text in texts(panel))


def test_where_no_epsilon_is_certified_the_line_leaves_the_picture():
    panel = axes()
    draw_spending(points([1.0, 2.0, math.inf, math.inf]), [], panel, delta=1e-6)
    line, top = drawn(panel, "total"), panel.get_ylim()[1]
    assert list(line.get_ydata()[:2]) == [1.0, 2.0]
    assert (line.get_ydata()[2:] > top).all()
    assert list(drawn(panel, "total: none").get_xdata()) == list(line.get_xdata()[2:])
    assert "no ε is certified" in texts(panel)
    assert not any(text.startswith("now") for text in texts(panel))


def test_nothing_certified_at_all_is_drawn():
    panel = axes()
    draw_spending(points([math.inf, math.inf]), [budget(1.0)], panel, delta=1e-6)
    assert "no ε is certified" in texts(panel)


def test_without_points_there_is_nothing_to_draw():
    with pytest.raises(ArgumentError, match="nothing has been published"):
        draw_spending([], [], axes(), delta=1e-6)


@pytest.mark.parametrize(
    ("periods", "dated", "ticks"),
    [
        (days(3), True, ["2013-01-01", "2013-01-02", "2013-01-03"]),
        (days(365), True, ["2013-01", "2013-03", "2013-05", "2013-07", "2013-09", "2013-11"]),
        (tuple(f"{year}" for year in range(1990, 2014)), True, ["1990", "1995", "2000", "2005", "2010"]),
        (("0001-01-01", "9999-12-31"), False, ["0001-01-01", "9999-12-31"]),
        (("wave 1", "wave 2"), False, ["wave 1", "wave 2"]),
        (("2013-01-02", "wave 2"), False, ["2013-01-02", "wave 2"]),
        (("2013-02-01", "2013-01-01"), False, ["2013-02-01", "2013-01-01"]),
    ],
)
def test_periods_are_dates_where_they_can_be(periods, dated, ticks):
    panel = axes()
    places, is_dated = put_periods(panel, periods)
    assert is_dated == dated
    assert len(places) == len(periods)
    low, high = panel.get_xlim()
    shown = [label for label in panel.get_xticklabels() if low <= label.get_position()[0] <= high]
    assert [label.get_text() for label in shown] == ticks
