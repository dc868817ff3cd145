"""The chart of columns fits its width and shows what it is given."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from pkdp_pipeline.display.terminal.chart import Mark, columns_chart

HEIGHTS = st.lists(st.floats(0, 1e9) | st.just(math.inf), min_size=1, max_size=60)


@given(HEIGHTS, st.integers(40, 200), st.booleans(), st.floats(0, 1e6))
def test_a_chart_fits_and_grows_with_its_heights(heights, width, plain, budget):
    marks = [Mark(height=budget, name="budget")]
    lines = columns_chart(heights, marks, width=width, first="2013-01-01", last="2013-12-31", plain=plain)
    assert len(lines) == 10
    assert max(map(len, lines)) <= width
    assert sum("budget" in line for line in lines) == 1
    assert not plain or "".join(lines).isascii()


def test_a_chart_shows_what_it_is_given():
    lines = columns_chart([1, 2, 3, 4], width=30, first="a", last="z", rows=4)
    body = [line.partition("┤")[2] for line in lines[:4]]
    assert [row.count("██") for row in body] == [1, 2, 3, 4]
    assert lines[0].startswith("4 ┤".rjust(4))
    assert lines[-1].split() == ["a", "z"]
    ascii_lines = columns_chart([1, math.inf], [Mark(height=1, name="b")], width=30, first="a", last="a", plain=True)
    assert all("x" in line for line in ascii_lines[:8])
    assert ascii_lines[0].endswith("b")


def test_the_budget_is_drawn_above_what_is_below_it():
    lines = columns_chart([1.0] * 5, [Mark(height=8.0, name="budget")], width=60, first="a", last="b")
    assert "budget" in lines[0]
    assert "█" not in lines[0]
    over = columns_chart([8.0] * 5, [Mark(height=1.0, name="budget")], width=60, first="a", last="b")
    assert "budget" in over[7]
    assert "█" in over[0]


@given(st.lists(st.floats(0, 100), min_size=1, max_size=30), st.floats(0.01, 100), st.booleans())
def test_only_what_exceeds_the_budget_reaches_its_line(heights, budget, plain):
    lines = columns_chart(heights, [Mark(height=budget, name="budget")], width=200, first="a", last="b", plain=plain)
    at = next(index for index, line in enumerate(lines) if line.endswith("budget"))
    above = "".join(lines[: at + 1]).removesuffix("budget")
    full = set("#" if plain else "▁▂▃▄▅▆▇█")
    if max(heights) <= budget:
        assert not full & set(above)
    elif max(heights) > budget * 1.001:
        assert full & set(lines[at])
