"""Frame: axes dressed the same way in every picture, and texts where they cover nothing; no global state is touched."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from textwrap import wrap
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from pkdp_pipeline.display.figures import style
from pkdp_pipeline.errors import ConfigError, PkdpError
from pkdp_pipeline.model.period import Period

if TYPE_CHECKING:
    import datetime

    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.transforms import Bbox
    from numpy.typing import ArrayLike, NDArray

__all__ = [
    "CERTIFIED",
    "DASHED",
    "DOTTED",
    "NOISE",
    "Labels",
    "Spot",
    "across",
    "dress",
    "is_narrow",
    "literal",
    "need_matplotlib",
    "noise_words",
    "put_periods",
    "put_ticks",
]

DASHED = (0, (5, 3))
DOTTED = (0, (1, 2))

CERTIFIED: dict[str, Any] = {"color": style.ACCENT, "linewidth": 2.4, "zorder": 5}
"""How a line of what is certified is drawn."""
NOISE: dict[str, Any] = {"color": style.MUTED, "linewidth": 1.6, "linestyle": DASHED, "zorder": 4}
"""How a line of what the noise alone gives is drawn."""

Spot = tuple[float, float, float, float]
"""Where a text may stand: x and y of the data, and how many points to the right and up of it."""

_TICK = 72.0  # for the name of one period, in points
_OUTSIDE = 1e4  # a text that is cut off is worse than one that covers something


def need_matplotlib() -> None:
    """Refuse to draw where matplotlib is not installed.

    Raises
    ------
    ConfigError
    """
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise ConfigError(
            "figures, and a report in HTML, need matplotlib, which is not installed: pip install "
            "'pkdp-pipeline[report]'. Markdown and JSON (pkdp report --format md, --format json) do not."
        ) from error


def dress(axes: Axes, *, x: str, y: str, rules: Literal["x", "y", "both"] = "y") -> None:
    """Give axes their titles, a quiet grid and quiet lines.

    Parameters
    ----------
    axes : matplotlib.axes.Axes
    x, y : str
        The axes' titles; that of y is written across, at the top left, as the left title of matplotlib.
    rules : {"x", "y", "both"}
        Where grid lines are drawn.
    """
    axes.set_facecolor("none")
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.spines["bottom"].set(color=style.MUTED, linewidth=1.0)
    axes.set_axisbelow(True)
    axes.grid(False)
    axes.grid(True, axis=rules, which="major", color=style.GRID, linewidth=0.8, linestyle="-")
    axes.tick_params(axis="both", which="both", labelsize=style.SMALL, labelcolor=style.MUTED, color=style.MUTED)
    axes.tick_params(axis="y", which="both", length=0)
    axes.tick_params(axis="x", which="minor", length=0)
    lines = wrap(x, width=max(20, int(_width(axes) / (0.56 * style.SMALL))))
    # Lines of a text in SVG have their places from here and their letters from the page: only the left can agree.
    place: Literal["left", "center"] = "center" if len(lines) == 1 else "left"
    axes.set_xlabel("\n".join(lines), loc=place, fontsize=style.SMALL, color=style.INK, labelpad=6)
    axes.set_title(y, loc="left", pad=9, fontsize=style.SMALL, fontweight="normal", color=style.INK)


def put_ticks(axis: Axis, most: int, *, integer: bool = False, counts: bool = False) -> None:
    """Give an axis at most so many ticks at round numbers; those of counts are whole, with thousands apart."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    axis.set_major_locator(MaxNLocator(nbins=most, integer=integer or counts, steps=[1, 2, 2.5, 5, 10]))
    if counts:
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}".replace("-", "−")))


def put_periods(axes: Axes, periods: Sequence[str]) -> tuple[NDArray[Any], bool]:
    """Give the axis of x a place and a name for each period.

    Returns
    -------
    places : array
        The periods' last days, as matplotlib numbers them; 0, 1, 2 … where some have no dates, or two the same.
    is_dated : bool
        Whether the places are days.
    """
    from matplotlib.dates import AutoDateFormatter, AutoDateLocator, date2num

    days = [_last_day(period) for period in periods]
    dated = [day for day in days if day is not None]
    in_order = len(dated) == len(days) and all(one < after for one, after in pairwise(dated))
    is_dated = in_order and dated[0].year >= 1000 and dated[-1].year < 9000  # beyond them matplotlib knows no dates
    numbers: Any = date2num(dated) if is_dated else range(len(periods))  # type: ignore[no-untyped-call]
    places = np.array(numbers, dtype=float)
    first, last = places[0], places[-1]
    room = 0.02 * (last - first) or 1.0
    axes.set_xlim(first - room, last + room)
    most = max(2, int(_width(axes) / _TICK))
    if is_dated and (len(periods) > most or last - first > 60):
        locator = AutoDateLocator(minticks=2, maxticks=most)  # type: ignore[no-untyped-call]
        axes.xaxis.set_major_locator(locator)
        axes.xaxis.set_major_formatter(AutoDateFormatter(locator))  # type: ignore[no-untyped-call]
    else:
        step = -(-len(periods) // most)
        axes.set_xticks(places[::step], [literal(period, 14) for period in periods[::step]])
    return places, is_dated


def _last_day(period: str) -> datetime.date | None:
    try:
        return Period.parse(period).last
    except PkdpError:
        return None


def noise_words(*, narrow: bool, given: bool) -> str:
    """Return what the line of the noise is called; `given` says whether something may be known exactly besides."""
    whom = "given what is known" if given else "against anyone" if narrow else "against anyone at all"
    return f"noise alone, {whom}" if narrow else f"the noise alone, {whom}"


def across(axes: Axes, start: float, end: float) -> float:
    """Return how far two places on the axis of x are apart, in points."""
    (one, _), (other, _) = axes.transAxes.inverted().transform(axes.transData.transform([(start, 1.0), (end, 1.0)]))
    return float((other - one) * _width(axes))


def is_narrow(axes: Axes) -> bool:
    """Return whether the axes are too narrow for long texts inside them."""
    return _width(axes) < 380.0


def _width(axes: Axes) -> float:
    return float(axes.get_window_extent().width * 72.0 / axes.figure.canvas.figure.dpi)


def literal(name: str, longest: int | None = None) -> str:
    """Return a name from the data as matplotlib shows it letter by letter: no formula, one line, at most so long."""
    line = " ".join("".join(letter if letter.isprintable() else " " for letter in name).split())
    if longest is not None and len(line) > longest:
        line = line[: longest - 1].rstrip() + "…"
    return line.replace("$", r"\$")


class Labels:
    """The texts of one picture, and what they must not cover. Make it when limits and ticks are set."""

    def __init__(self, axes: Axes) -> None:
        figure = axes.figure.canvas.figure
        if figure.get_layout_engine() is not None:  # which has to find its places before texts have a size
            figure.draw_without_rendering()
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
    ) -> None:
        """Write a text at the first spot where it covers nothing; at the least bad one where there is none."""
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

        def moved(spot: Spot) -> Bbox:
            x, y, right, up = spot
            label.xy, label.xyann = (x, y), (right, up)
            label.set_horizontalalignment("left" if right > 0 else "right" if right < 0 else "center")
            label.set_verticalalignment("bottom" if up > 0 else "top" if up < 0 else "center")
            return label.get_window_extent()

        self._boxes.append(moved(min(spots, key=lambda spot: self._cost(moved(spot)))))

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
        around = [(7, 7), (9, 0), (-7, 7), (7, -7), (-7, -7), (0, 14), (0, -14), (7, 28), (-7, 28)]
        self.place(text, [(x, y, right, up) for right, up in around], color=style.INK, weight="bold")

    def _cost(self, box: Bbox) -> float:
        frame = self._axes.get_window_extent()
        outside = box.x0 < frame.x0 - 1 or box.x1 > frame.x1 + 4 or box.y0 < frame.y0 or box.y1 > frame.y1 + 2
        wide = box.padded(2.0)
        covered = sum(
            float(((line > (wide.x0, wide.y0)) & (line < (wide.x1, wide.y1))).all(axis=1).sum()) for line in self._lines
        )
        return _OUTSIDE * float(outside) + covered + 200.0 * sum(wide.overlaps(other) for other in self._boxes)
