"""Labels: texts beside what they name, where they cover nothing."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from pkdp_pipeline.display.figures import style
from pkdp_pipeline.display.figures.frame import DOTTED, settle

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.text import Annotation
    from matplotlib.transforms import Bbox
    from numpy.typing import ArrayLike, NDArray

__all__ = ["Labels", "Spot", "around"]

_OUTSIDE = 1e4  # a text that is cut off is worse than one that covers something


@dataclass(frozen=True, slots=True, kw_only=True)
class Spot:
    """Where a text may stand: at a point of the data, moved by so many points."""

    x: float
    y: float
    right: float
    up: float
    ha: Literal["left", "center", "right"] = "left"
    va: Literal["top", "center", "bottom"] = "center"


def around(x: float, y: float, gap: float = 7.0) -> list[Spot]:
    """Return the spots around a point, the best ones first."""
    return [
        Spot(x=x, y=y, right=gap, up=gap, va="bottom"),
        Spot(x=x, y=y, right=gap + 2, up=0.0),
        Spot(x=x, y=y, right=-gap, up=gap, ha="right", va="bottom"),
        Spot(x=x, y=y, right=gap, up=-gap, va="top"),
        Spot(x=x, y=y, right=-gap, up=-gap, ha="right", va="top"),
        Spot(x=x, y=y, right=0.0, up=2 * gap, ha="center", va="bottom"),
        Spot(x=x, y=y, right=0.0, up=-2 * gap, ha="center", va="top"),
        Spot(x=x, y=y, right=gap, up=4 * gap, va="bottom"),
        Spot(x=x, y=y, right=-gap, up=4 * gap, ha="right", va="bottom"),
    ]


class Labels:
    """The texts of one picture, and what they must not cover. Make it when limits and ticks are set."""

    def __init__(self, axes: Axes) -> None:
        settle(axes)
        self._axes = axes
        self._lines: list[NDArray[Any]] = []
        self._boxes: list[Bbox] = []

    def keep_clear(self, x: ArrayLike, y: ArrayLike) -> None:
        """Keep texts off a line through these points of the data."""
        points = np.column_stack([np.asarray(x, dtype=float), np.asarray(y, dtype=float)])
        shown = self._axes.transData.transform(points[np.isfinite(points).all(axis=1)])
        pieces = [np.linspace(start, end, 2 + int(np.abs(end - start).max() // 4)) for start, end in pairwise(shown)]
        self._lines.append(np.concatenate(pieces) if pieces else shown)

    def place(
        self, text: str, spots: Iterable[Spot], *, color: str, weight: str = "normal", upright: bool = False
    ) -> Annotation:
        """Write a text at the first spot where it covers nothing; at the least bad one where there is none."""
        listed = list(spots)
        label = self._axes.annotate(
            text,
            (0.0, 0.0),
            xytext=(0.0, 0.0),
            textcoords="offset points",
            color=color,
            fontsize=style.SMALL,
            fontweight=weight,
            zorder=6,
            annotation_clip=False,
            rotation=90 if upright else 0,
            rotation_mode="anchor",
        )
        label.set_in_layout(False)
        best = min(range(len(listed)), key=lambda index: (self._cost(label, listed[index]), index))
        self._boxes.append(self._moved(label, listed[best]))
        return label

    def mark(self, x: float, y: float, text: str, *, guide: ArrayLike, certified: bool = True) -> None:
        """Mark a point, or where there is none the edge, with a text and a thin line along the points of `guide`."""
        points = np.asarray(guide, dtype=float)
        self._axes.plot(*points.T, color=style.MUTED, linewidth=0.9, linestyle=DOTTED, zorder=3, label="guides")
        self._axes.plot(
            [x],
            [y],
            marker="o" if certified else "X",
            markersize=8,
            color=style.INK if certified else style.WARN,
            markeredgecolor=style.SURFACE,
            markeredgewidth=1.5,
            linestyle="none",
            zorder=7,
            clip_on=False,
            label="mark",
        )
        self.keep_clear(*points[-2:].T)
        self.place(text, around(x, y), color=style.INK, weight="bold")

    def _moved(self, label: Annotation, spot: Spot) -> Bbox:
        label.xy = (spot.x, spot.y)
        label.xyann = (spot.right, spot.up)
        label.set(ha=spot.ha, va=spot.va)
        return label.get_window_extent()

    def _cost(self, label: Annotation, spot: Spot) -> float:
        box = self._moved(label, spot)
        frame = self._axes.get_window_extent()
        cost = 0.0
        if box.x0 < frame.x0 - 1 or box.x1 > frame.x1 + 4 or box.y0 < frame.y0 or box.y1 > frame.y1 + 2:
            cost += _OUTSIDE
        wide = box.padded(2.0)
        for line in self._lines:
            inside = (line > (wide.x0, wide.y0)) & (line < (wide.x1, wide.y1))
            cost += float(inside.all(axis=1).sum())
        return cost + sum(200.0 for other in self._boxes if wide.overlaps(other))
