"""Style: the colours of all figures, for matplotlib and as CSS variables, and axes that are dressed the same way."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from itertools import pairwise
from textwrap import wrap
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from pkdp_pipeline.errors import ConfigError, PkdpError
from pkdp_pipeline.model.period import Period
from pkdp_pipeline.model.wording import INSTALLED

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.lines import Line2D
    from numpy.typing import ArrayLike, NDArray


_COLOURS = {
    "surface": ("#ffffff", "#14181d"),  # the paper
    "ink": ("#17212b", "#e9eef3"),  # texts that matter, and marks
    "muted": ("#54606c", "#a6b2be"),  # axes and their numbers
    "grid": ("#dce2e8", "#303a44"),
    "accent": ("#0b5fa5", "#6db3f2"),  # what is certified
    "accent-soft": ("#cfe1f2", "#1d3d5a"),  # the area between what is attained and what is certified; bars
    "warn": ("#b0400a", "#ff9f68"),  # budgets, and where nothing is certified
    "warn-soft": ("#fbe7dc", "#40261a"),
    "series-2": ("#8f5200", "#e2ab4f"),
    "series-3": ("#00775b", "#4fcba7"),
    "series-4": ("#8a3fa1", "#d49fe8"),
}
_LIGHT = {name: light for name, (light, _) in _COLOURS.items()}
SURFACE = _LIGHT["surface"]
INK = _LIGHT["ink"]
MUTED = _LIGHT["muted"]
GRID = _LIGHT["grid"]
ACCENT = _LIGHT["accent"]
ACCENT_SOFT = _LIGHT["accent-soft"]
WARN = _LIGHT["warn"]
WARN_SOFT = _LIGHT["warn-soft"]
SERIES = (ACCENT, *(_LIGHT[f"series-{number}"] for number in (2, 3, 4)))
"""One colour for each line among several; after these they are repeated."""
DASHED = (0, (5, 3))
DOTTED = (0, (1, 2))
DASHDOTTED = (0, (7, 2, 1.5, 2))
MARKS = ("o", "s", "^", "D", "v", "P", "X", "<")
DASHES: tuple[Any, ...] = ("-", (0, (5, 2)), (0, (2, 1.5)), DASHDOTTED, (0, (1, 1)))
"""One mark, and one kind of line, for each line among several: no two have both in common."""

SMALL = 11.0
"""Size of texts in points; in inline SVG, in px."""

CSS_LIGHT: Mapping[str, str] = MappingProxyType({f"--{name}": light for name, (light, _) in _COLOURS.items()})
"""The variables that inline SVG uses, with the values for a light page and for print."""

CSS_DARK: Mapping[str, str] = MappingProxyType({f"--{name}": dark for name, (_, dark) in _COLOURS.items()})
"""The values for a dark page."""

VARIABLES: Mapping[str, str] = MappingProxyType({light: name for name, light in CSS_LIGHT.items()})
"""The variable that stands for each colour in inline SVG."""


CERTIFIED: dict[str, Any] = {"color": ACCENT, "linewidth": 2.8, "zorder": 5}
"""How a line of what is certified is drawn."""
ATTAINED: dict[str, Any] = {"color": SERIES[1], "linewidth": 6.0, "linestyle": (0, (0.8, 0.8)), "zorder": 4.5}
"""How a line of what some attacker attains is drawn: wide dashes below the certified line, also seen where equal."""
NOISE: dict[str, Any] = {"color": MUTED, "linewidth": 1.6, "linestyle": DASHED, "zorder": 4}
"""How a line of what the noise alone gives is drawn."""

_TICK = 72.0  # for the name of one period, in points


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
            f"figures, and a report in HTML, need matplotlib, which is not installed: {INSTALLED.format('report')}. "
            "Markdown and JSON (pkdp report --format md, --format json) do not."
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
    axes.spines["bottom"].set(color=MUTED, linewidth=1.0)
    axes.set_axisbelow(True)
    axes.grid(False)
    axes.grid(True, axis=rules, which="major", color=GRID, linewidth=0.8, linestyle="-")
    axes.tick_params(axis="both", which="both", labelsize=SMALL, labelcolor=MUTED, color=MUTED)
    axes.tick_params(axis="y", which="both", length=0)
    axes.tick_params(axis="x", which="minor", length=0)
    lines = wrap(x, width=max(20, int(_width(axes) / (0.56 * SMALL))))
    # Lines of a text in SVG have their places from here and their letters from the page: only the left can agree.
    place: Literal["left", "center"] = "center" if len(lines) == 1 else "left"
    axes.set_xlabel("\n".join(lines), loc=place, fontsize=SMALL, color=INK, labelpad=6)
    axes.set_title(y, loc="left", pad=9, fontsize=SMALL, fontweight="normal", color=INK)


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
    from matplotlib.dates import date2num

    numbers, is_dated = places_of(periods)
    dated = [*map(datetime.date.fromordinal, numbers)] if is_dated else []
    places = np.array(date2num(dated) if is_dated else numbers, dtype=float)  # type: ignore[no-untyped-call]
    first, last = places[0], places[-1]
    room = 0.02 * (last - first) or 1.0
    axes.set_xlim(first - room, last + room)
    most = max(2, int(_width(axes) / _TICK))
    are_days = is_dated and all(day.isoformat() == period for day, period in zip(dated, periods, strict=True))
    if are_days and (len(periods) > most or last - first > 60):
        names = _dates(dated[0], dated[-1], most)
        axes.set_xticks(date2num([*names.values()]), [*names])  # type: ignore[no-untyped-call]
    else:
        # The period's own name below its place, as far apart as there is room.
        apart, shown = 0.999 * (last - first) / (most - 1), [0]
        for number, place in enumerate(places):
            if place - places[shown[-1]] >= apart > 0.0:
                shown.append(number)
        axes.set_xticks(places[shown], [literal(periods[number], 14) for number in shown])
    return places, is_dated


def places_of(periods: Sequence[str]) -> tuple[list[int], bool]:
    """Return the periods' last days as ordinals, and true; 0, 1, 2 …, and false, where some have no dates, or the same.

    Neither where matplotlib knows no such dates.
    """
    days = [_last_day(period) for period in periods]
    dated = [day.toordinal() for day in days if day is not None and 1000 <= day.year < 9000]
    if len(dated) == len(days) and all(before < after for before, after in pairwise(dated)):
        return dated, True
    return [*range(len(periods))], False


def breaks(places: ArrayLike) -> list[int]:
    """Return the positions before which a period is missing, seen from how far apart the others are."""
    steps = np.diff(places)
    if len(steps) < 2:
        return []
    usual = np.sort(steps)[len(steps) // 2]
    return [int(position) + 1 for position in np.flatnonzero(steps > 1.5 * usual)]


def _dates(first: datetime.date, last: datetime.date, most: int) -> dict[str, datetime.date]:
    """Return from two to `most` days between two others, by name: firsts of months or years, or every few days."""
    span = (last - first).days
    # Months are numbered from the year 0, so that every twelfth is a January.
    begin, end = 12 * first.year + first.month - (first.day == 1), 12 * last.year + last.month
    for step in (1, 2, 3, 6, *(step * 10**power for power in range(5) for step in (12, 24, 60))):
        firsts = range(-(-begin // step) * step, end, step)
        if len(firsts) <= most:
            break
    if span > 62 and len(firsts) > 1:
        named = [first.replace(year=month // 12, month=month % 12 + 1, day=1) for month in firsts]
        return {day.isoformat()[: 7 if step < 12 else 4]: day for day in named}
    days = range(first.toordinal(), last.toordinal() + 1, -(-span // (most - 1)))
    return {day.isoformat(): day for day in map(first.fromordinal, days)}


def _last_day(period: str) -> datetime.date | None:
    try:
        return Period.parse(period).last
    except PkdpError:
        return None


def noise_words(*, narrow: bool, given: bool) -> str:
    """Return what the line of the noise is called; `given` says whether something may be known exactly besides."""
    whom = "given what is known" if given else "against anyone" if narrow else "against anyone at all"
    return f"noise alone, {whom}" if narrow else f"the noise alone, {whom}"


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


def shortened(name: str, longest: int) -> str:
    """Return the name of a cell with all of its keys, each cut where the longest ones would not fit."""
    keys = name.split(" / ")
    room = max(longest - 3 * (len(keys) - 1), 4 * len(keys))
    for rest, key in zip(range(len(keys), 0, -1), sorted(keys, key=len), strict=True):
        if len(key) * rest > room:  # the keys from here on are too long: they share what the short ones leave
            keys = [key if len(key) <= room // rest else f"{key[: room // rest - 1].rstrip()}…" for key in keys]
            break
        room -= len(key)
    return literal(" / ".join(keys))


def mark(axes: Axes, x: float, y: float, *, guide: ArrayLike, certified: bool = True) -> Line2D:
    """Mark a point, or where there is none the edge, with a thin line along the points of `guide`."""
    points = np.asarray(guide, dtype=float)
    axes.plot(*points.T, color=MUTED, linewidth=0.9, linestyle=DOTTED, zorder=3, label="guides")
    shape, colour = ("o", INK) if certified else ("X", WARN)
    look: dict[str, Any] = {"markersize": 8, "markeredgecolor": SURFACE, "markeredgewidth": 1.5, "zorder": 7}
    (point,) = axes.plot([x], [y], shape, color=colour, **look, clip_on=False, label="mark")
    return point


def put_legend(axes: Axes, entries: Sequence[tuple[Artist, str]]) -> None:
    """Say below the axes what is drawn, each in the colour of its line."""
    from matplotlib.transforms import ScaledTranslation

    artists, texts = [artist for artist, _ in entries], [text for _, text in entries]
    colours = [getattr(artist, "get_color", lambda: WARN)() for artist in artists]
    titles = 1.4 * SMALL * (axes.get_xlabel().count("\n") + 2) + 14.0  # the numbers and the title of x, in points
    below = axes.transAxes + ScaledTranslation(0.0, -titles / 72.0, axes.figure.canvas.figure.dpi_scale_trans)
    columns = max(1, int(_width(axes) / (0.56 * SMALL * max(map(len, texts), default=0) + 30.0)))
    look: dict[str, Any] = {"labelcolor": colours, "fontsize": SMALL, "frameon": False, "borderpad": 0.0}
    place: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (0.0, 0.0), "bbox_transform": below}
    axes.legend(artists, texts, **look, **place, borderaxespad=0.0, ncols=columns)


def in_figures(count: int, bands: Sequence[int] | None = None) -> str:
    """Return a count as it is written, with a minus sign, or its band."""
    from pkdp_pipeline.releases.printed import shown_count

    return shown_count(count, bands).replace("-", "−")


def likely(count: float, k: int | None, margin: int) -> tuple[float, float]:
    """Return between which numbers a count below `k` is in 95 % of cases, given its noised value."""
    most = max(0, (k or 1) - 1)
    return float(min(max(count - margin, 0), most)), float(max(min(count + margin, most), 0))
