"""Series: what was published about some cells over many periods; gaps where nothing is published."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from pkdp_pipeline.display.figures import style
from pkdp_pipeline.display.figures.frame import dress, is_narrow, literal, put_ticks, settle
from pkdp_pipeline.display.figures.timeline import Timeline
from pkdp_pipeline.errors import ArgumentError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from pkdp_pipeline.display.report.content import Series

__all__ = ["MOST_CELLS", "draw_series"]

MOST_CELLS = 8
"""So many cells are drawn: those published most often, and the largest of these."""

_DASHES = (4.0, 2.0)


def draw_series(series: Series, axes: Axes) -> None:
    """Draw one line for each cell, with gaps where nothing is published about it.

    Parameters
    ----------
    series : Series
        `MOST_CELLS` of its cells are drawn.
    axes : matplotlib.axes.Axes
    """
    if not series.periods:
        raise ArgumentError("series must have a period: nothing has been published yet, so there is nothing to draw.")
    narrow = is_narrow(axes)
    drawn = _chosen(series)
    left_out = len(series.cells) - len(drawn) + series.more_cells
    title = "period"
    if left_out:
        title += f"  ({left_out:,} more {'cell is' if left_out == 1 else 'cells are'} not drawn)"
    dress(axes, x=title, y="published count")
    timeline = Timeline.of(series.periods)
    timeline.put_on(axes)
    put_ticks(axes.yaxis, 6, counts=True)
    values = [
        np.array([np.nan if row[cell] is None else float(row[cell] or 0) for row in series.counts]) for cell in drawn
    ]
    shown = np.concatenate([line[np.isfinite(line)] for line in values]) if values else np.array([])
    low, high = min([0.0, *shown.tolist()]), max([0.0, *shown.tolist()]) or 1.0
    axes.set_ylim(low * 1.08, high * 1.08)
    if not values:
        axes.text(0.5, 0.5, "no cell is published", transform=axes.transAxes, ha="center", color=style.MUTED)
        return
    if low < 0.0:
        axes.axhline(0.0, color=style.MUTED, linewidth=1.0, zorder=2)
    longest = 12 if narrow else 22
    ends = []
    for number, (cell, line) in enumerate(zip(drawn, values, strict=True)):
        _line(axes, timeline, line, number=number, label=series.cells[cell])
        last = int(np.flatnonzero(np.isfinite(line))[-1])
        ends.append((float(line[last]), timeline.places[last], literal(series.cells[cell], longest), _colour(number)))
    _names(axes, ends)


def _chosen(series: Series) -> list[int]:
    """Return the cells to draw, in the order of the table."""
    published = []
    for cell in range(len(series.cells)):
        counts = [row[cell] for row in series.counts if row[cell] is not None]
        if counts:
            published.append((-len(counts), -sum(count or 0 for count in counts), cell))
    return sorted(cell for *_, cell in sorted(published)[:MOST_CELLS])


def _colour(number: int) -> str:
    return style.SERIES[number % len(style.SERIES)]


def _line(axes: Axes, timeline: Timeline, line: np.ndarray, *, number: int, label: str) -> None:
    """Draw one cell: lines between neighbours, dots where a value stands alone."""
    places = np.array(timeline.places)
    breaks = timeline.breaks()
    parted_places, parted = np.insert(places, breaks, places[breaks]), np.insert(line, breaks, np.nan)
    (drawn,) = axes.plot(
        parted_places, parted, color=_colour(number), linewidth=1.8 if len(places) <= 60 else 1.2, zorder=4, label=label
    )
    if number >= len(style.SERIES):
        drawn.set_dashes(_DASHES)
    known = np.isfinite(parted)
    before, after = np.append(False, known[:-1]), np.append(known[1:], False)
    alone = known & ~before & ~after if len(places) > 40 else known
    axes.plot(
        parted_places[alone],
        parted[alone],
        color=_colour(number),
        marker="o",
        markersize=3.6,
        linestyle="none",
        zorder=5,
        label=f"{label}: alone",
    )


def _names(axes: Axes, ends: Sequence[tuple[float, float, str, str]]) -> None:
    """Write the cells' names at the right end, apart from each other, with thin lines to where theirs end."""
    right = axes.get_xlim()[1]
    written = [
        axes.annotate(
            name,
            (right, height),
            xytext=(14, 0),
            textcoords="offset points",
            va="center",
            color=colour,
            fontsize=style.SMALL,
            annotation_clip=False,
            zorder=6,
        )
        for height, _, name, colour in ends
    ]
    settle(axes)
    scale = 72.0 / axes.figure.canvas.figure.dpi
    heights = [float(axes.transData.transform((right, height))[1]) * scale for height, *_ in ends]
    frame = axes.get_window_extent()
    moved = _apart(heights, style.SMALL * 1.25, frame.y0 * scale, frame.y1 * scale)
    for text, height, place, (value, last, *_) in zip(written, heights, moved, ends, strict=True):
        text.xyann = (14, place - height)
        away = float(axes.transData.transform((right, value))[0] - axes.transData.transform((last, value))[0]) * scale
        axes.annotate(
            "",
            (last, value),
            xycoords="data",
            xytext=(12 + away, place - height),
            textcoords="offset points",
            arrowprops={
                "arrowstyle": "-",
                "color": style.MUTED,
                "linewidth": 0.8,
                "linestyle": (0, (1, 2)),
                "shrinkA": 0,
                "shrinkB": 4,
            },
            annotation_clip=False,
            zorder=3,
        )


def _apart(heights: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Return the heights moved as little as needed to be `gap` apart, in the same order."""
    order = sorted(range(len(heights)), key=lambda index: (heights[index], -index))
    groups: list[tuple[float, list[int]]] = []  # the middle of a group, and its members from below
    for index in order:
        middle, members = heights[index], [index]
        while groups and groups[-1][0] + gap * len(groups[-1][1]) / 2.0 > middle - gap * len(members) / 2.0:
            _, below = groups.pop()
            members = below + members
            middle = sum(heights[one] for one in members) / len(members)
            half = gap * len(members) / 2.0
            middle = min(max(middle, low + half - gap / 2.0), max(high - half + gap / 2.0, low + half - gap / 2.0))
        groups.append((middle, members))
    found = [0.0] * len(heights)
    for middle, members in groups:
        for position, index in enumerate(members):
            found[index] = middle + gap * (position - (len(members) - 1) / 2.0)
    return found
