"""Series: what was published about some cells over many periods; gaps where nothing is published."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pkdp_pipeline.display.figures import style
from pkdp_pipeline.display.figures.frame import dress, is_narrow, literal, put_periods, put_ticks
from pkdp_pipeline.errors import ArgumentError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from pkdp_pipeline.display.content import Series

__all__ = ["MOST_CELLS", "draw_series"]

MOST_CELLS = 8
"""So many cells are drawn: those published most often, and the largest of these."""


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
        axes.text(0.5, 0.5, "no cell is published", transform=axes.transAxes, ha="center", color=style.MUTED)
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
