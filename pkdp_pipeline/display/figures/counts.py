"""Counts: a published table as bars; what is suppressed is said in words, and has no length."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pkdp_pipeline.display.figures import style
from pkdp_pipeline.display.figures.frame import DASHED, dress, is_narrow, literal, put_ticks
from pkdp_pipeline.display.figures.labels import Labels, Spot
from pkdp_pipeline.errors import ArgumentError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from pkdp_pipeline.display.report.content import PublishedTable

__all__ = ["MOST_ROWS", "counts_height", "draw_counts"]

MOST_ROWS = 30
"""So many rows are drawn."""

_LONGEST = 34
_WORD = 84.0  # the word "suppressed" with its gap, in points
_LONGEST_NARROW = 16


def counts_height(table: PublishedTable) -> float:
    """Return the height in px at which the bars of a table have room."""
    return 92.0 + 24.0 * max(1, min(MOST_ROWS, len(table.keys)))


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
    from matplotlib.ticker import FixedFormatter, FixedLocator

    if len(table.keys) != len(table.counts):
        raise ArgumentError("a table must have one count for each key.")
    narrow = is_narrow(axes)
    counts = list(table.counts)[:MOST_ROWS]
    left_out = len(table.counts) - len(counts) + table.more
    title = "published count"
    if left_out:
        title += f"  ({left_out:,} more {'row is' if left_out == 1 else 'rows are'} not drawn)"
    dress(axes, x=title, y=literal(" / ".join(table.columns)), rules="x")
    shown = [count for count in counts if count is not None]
    low, high = min([0, *shown]), max([0, *shown, *(() if k is None else (k,))])
    span = (high - low) or 1
    axes.set_xlim(low - (0.14 * span if low < 0 else 0.0), high + 0.14 * span)
    axes.set_ylim(max(1, len(counts)) - 0.5, -0.5 if k is None else -0.9)
    put_ticks(axes.xaxis, 4 if narrow else 7, counts=True)
    longest = _LONGEST_NARROW if narrow else _LONGEST
    names = [literal(" / ".join(key) or "count", longest) for key in list(table.keys)[:MOST_ROWS]]
    axes.yaxis.set_major_locator(FixedLocator(list(range(len(names)))))
    axes.yaxis.set_major_formatter(FixedFormatter(names))
    axes.tick_params(axis="y", labelcolor=style.INK)
    if low < 0:
        axes.axvline(0.0, color=style.MUTED, linewidth=1.0, zorder=3, label="zero")
    published = [(row, count) for row, count in enumerate(counts) if count is not None]
    axes.barh(
        [row for row, _ in published],
        [count for _, count in published],
        height=0.66,
        color=style.ACCENT_SOFT,
        edgecolor=style.ACCENT,
        linewidth=1.0,
        zorder=2,
    )
    if k is not None:
        axes.axvline(k, color=style.WARN, linewidth=1.4, linestyle=DASHED, zorder=4, label="threshold")
    labels = Labels(axes)
    # Suppressed cells all have their word at the same place: at zero, or past the threshold where it would cross it.
    away = 0.0 if k is None else _distance(axes, k)
    for row, count in enumerate(counts):
        _value(axes, row, count, start=k if k is not None and away < _WORD else 0)
    if k is not None:
        spots = [Spot(x=float(k), y=-0.68, right=5, up=0), Spot(x=float(k), y=-0.68, right=-5, up=0, ha="right")]
        labels.place(f"k = {k:,}", spots, color=style.WARN, weight="bold")
    if not counts:
        middle = (axes.get_xlim()[0] + axes.get_xlim()[1]) / 2.0
        labels.place("no cell is published", [Spot(x=middle, y=0.0, right=0, up=0, ha="center")], color=style.MUTED)


def _distance(axes: Axes, k: int) -> float:
    """Return how far the threshold is from zero, in points."""
    pixels = axes.transData.transform((float(k), 0.0))[0] - axes.transData.transform((0.0, 0.0))[0]
    return float(pixels * 72.0 / axes.figure.canvas.figure.dpi)


def _value(axes: Axes, row: int, count: int | None, *, start: int) -> None:
    """Write a count beside its bar; a suppressed one as a word at `start`, whatever it is."""
    text = "suppressed" if count is None else f"{count:,}".replace("-", "−")
    is_negative = count is not None and count < 0
    axes.annotate(
        text,
        (float(start if count is None else count), float(row)),
        xytext=(-5 if is_negative else 5, 0),
        textcoords="offset points",
        ha="right" if is_negative else "left",
        va="center",
        color=style.MUTED if count is None else style.INK,
        fontsize=style.SMALL,
        fontstyle="italic" if count is None else "normal",
        zorder=6,
        annotation_clip=False,
    )
