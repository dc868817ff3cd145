"""Counts: a published table as bars; what is suppressed is said in words, and has no length."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pkdp_pipeline.display.figures import style
from pkdp_pipeline.display.figures.frame import DASHED, Labels, across, dress, is_narrow, literal, put_ticks
from pkdp_pipeline.errors import ArgumentError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from pkdp_pipeline.display.content import PublishedTable

__all__ = ["MOST_ROWS", "counts_height", "draw_counts"]

MOST_ROWS = 30
"""So many rows are drawn."""

_WORD = 84.0  # the word "suppressed" with its gap, in points


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
    labels = Labels(axes)
    # Suppressed cells all have their word at the same place: at zero, or past the threshold where it would cross it.
    start = k if k is not None and across(axes, 0.0, k) < _WORD else 0
    for row in sorted(set(range(len(counts))) - set(published)):
        look = {"color": style.MUTED, "fontsize": style.SMALL, "fontstyle": "italic", "zorder": 6}
        axes.annotate("suppressed", (start, row), (5, 0), textcoords="offset points", va="center", **look)
    if k is not None:
        axes.axvline(k, color=style.WARN, linewidth=1.4, linestyle=DASHED, zorder=4, label="threshold")
        labels.place(f"k = {k:,}", [(k, -0.68, 5, 0), (k, -0.68, -5, 0)], color=style.WARN, weight="bold")
    if not counts:
        middle = sum(axes.get_xlim()) / 2.0
        labels.place("no cell is published", [(middle, 0.0, 0, 0)], color=style.MUTED)
