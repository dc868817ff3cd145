"""Tables: published counts as bars, and over many periods as lines; what is suppressed has no length, and is a gap."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from pkdp_pipeline.display.figures import style
from pkdp_pipeline.display.figures.style import DASHED, dress, is_narrow, literal, put_periods, put_ticks
from pkdp_pipeline.errors import ArgumentError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from pkdp_pipeline.display.content import PublishedTable, Series

MOST_ROWS = 30
"""So many rows of a table are drawn."""

MOST_CELLS = 8
"""So many cells of a series are drawn: those published most often, and the largest of these."""


def draw_counts(table: PublishedTable, k: int | None, axes: Axes) -> None:
    """Draw the counts of one date as horizontal bars, in the published order.

    Parameters
    ----------
    table : PublishedTable
        Its first `MOST_ROWS` rows are drawn.
    k : int or None
        The threshold, drawn as a line.
    axes : matplotlib.axes.Axes
    """
    if len(table.keys) != len(table.counts):
        raise ArgumentError("a table must have one count for each key.")
    narrow = is_narrow(axes)
    counts = table.counts[:MOST_ROWS]
    left_out = len(table.counts) - len(counts) + table.more
    title = "published count"
    if left_out:
        title += f"  ({left_out:,} more {'row is' if left_out == 1 else 'rows are'} not drawn)"
    dress(axes, x=title, y=literal(" / ".join(table.columns)), rules="x")
    published = {row: count for row, count in enumerate(counts) if count is not None}
    low, high = min([0, *published.values()]), max([0, *published.values(), k or 0])
    span = (high - low) or 1
    put_ticks(axes.xaxis, 4 if narrow else 7, counts=True)
    names = [literal(" / ".join(key) or "count", 16 if narrow else 34) for key in table.keys[:MOST_ROWS]]
    axes.set_yticks(range(len(names)), names)
    axes.tick_params(axis="y", labelcolor=style.INK)
    axes.set_xlim(low - (0.14 * span if low < 0 else 0.0), high + 0.14 * span)
    axes.set_ylim(max(1, len(counts)) - 0.5, -0.5 if k is None else -0.9)
    if low < 0:
        axes.axvline(0.0, color=style.MUTED, linewidth=1.0, zorder=3, label="zero")
    look: dict[str, Any] = {"color": style.ACCENT_SOFT, "edgecolor": style.ACCENT, "linewidth": 1.0, "zorder": 2}
    bars = axes.barh(list(published), list(published.values()), height=0.66, **look)
    shown = [f"{count:,}".replace("-", "−") for count in published.values()]
    axes.bar_label(bars, shown, padding=5, color=style.INK, fontsize=style.SMALL, zorder=6)
    # Suppressed cells all have their word at the same place: at zero, or past a threshold that is near to it.
    near = k is not None and 2 * k < high + 0.14 * span
    start = k if k is not None and near else 0
    for row in sorted(set(range(len(counts))) - set(published)):
        look = {"color": style.MUTED, "fontsize": style.SMALL, "fontstyle": "italic", "zorder": 6}
        axes.annotate("suppressed", (start, row), (5, 0), textcoords="offset points", va="center", **look)
    if k is not None:
        axes.axvline(k, color=style.WARN, linewidth=1.4, linestyle=DASHED, zorder=4, label="threshold")
        look = {"color": style.WARN, "fontsize": style.SMALL, "fontweight": "bold", "ha": "left" if near else "right"}
        axes.annotate(f"k = {k:,}", (k, -0.68), (5 if near else -5, 0), textcoords="offset points", va="center", **look)
    if not counts:
        _say_nothing(axes)


def _say_nothing(axes: Axes) -> None:
    axes.text(0.5, 0.5, "no cell is published", transform=axes.transAxes, ha="center", color=style.MUTED)


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
    values = np.array(series.counts, dtype=float)  # one row for each period, one column for each cell
    known = np.isfinite(values)
    order = sorted(range(values.shape[1]), key=lambda cell: (-known[:, cell].sum(), -np.nansum(values[:, cell]), cell))
    drawn = sorted(cell for cell in order[:MOST_CELLS] if known[:, cell].any())
    left_out = len(series.cells) - len(drawn) + series.more_cells
    title = "period"
    if left_out:
        title += f"  ({left_out:,} more {'cell is' if left_out == 1 else 'cells are'} not drawn)"
    dress(axes, x=title, y="published count")
    places, is_dated = put_periods(axes, series.periods)
    put_ticks(axes.yaxis, 6, counts=True)
    if not drawn:
        _say_nothing(axes)
        return
    low, high = min(0.0, float(np.nanmin(values[:, drawn]))), max(0.0, float(np.nanmax(values[:, drawn]))) or 1.0
    axes.set_ylim(low * 1.08, high * 1.08)
    if low < 0.0:
        axes.axhline(0.0, color=style.MUTED, linewidth=1.0, zorder=2)
    breaks = _breaks(places) if is_dated else []
    lines = []
    for number, cell in enumerate(drawn):
        line = np.insert(values[:, cell], breaks, np.nan)
        is_known = np.isfinite(line)
        beside = np.append(False, is_known[:-1]) | np.append(is_known[1:], False)
        lines += axes.plot(
            np.insert(places, breaks, places[breaks]),
            line,
            color=style.SERIES[number % len(style.SERIES)],
            linewidth=1.8 if len(places) <= 60 else 1.2,
            linestyle="-" if number < len(style.SERIES) else (0, (4, 2)),
            marker="o",
            markersize=3.6,
            markevery=is_known & ~beside if len(places) > 40 else is_known,  # dots where a value stands alone
            zorder=4,
            label=series.cells[cell],
        )
    # From above as the lines end.
    ends = sorted(range(len(drawn)), key=lambda number: -values[known[:, drawn[number]], drawn[number]][-1])
    axes.legend(
        [lines[number] for number in ends],
        [literal(series.cells[drawn[number]], 12 if narrow else 22) for number in ends],
        loc="center left",
        bbox_to_anchor=(1.0, 0.5),
        frameon=False,
        labelcolor="linecolor",
        fontsize=style.SMALL,
        handlelength=2.2,
    )


def _breaks(places: np.ndarray) -> list[int]:
    """Return the positions before which a period is missing, seen from how far apart the others are."""
    steps = np.diff(places)
    if len(steps) < 2:
        return []
    usual = np.sort(steps)[len(steps) // 2]
    return [int(position) + 1 for position in np.flatnonzero(steps > 1.5 * usual)]
