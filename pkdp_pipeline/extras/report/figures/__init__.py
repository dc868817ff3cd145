"""Figures: what certificates, ledgers and published tables say, drawn with matplotlib, for notebooks and pages.

A draw function puts one picture into given axes. `inline_svg` turns it into SVG for a page, in the page's own
colours; `Certificate.plot` and `Ledger.plot` draw the same pictures. matplotlib is loaded when something is drawn.
Published counts are bars, over periods lines, and a suppressed one is a gap.
"""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable, Sequence
from functools import cache
from html import escape
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np

from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.extras.report.content import BudgetLine
from pkdp_pipeline.extras.report.figures import style
from pkdp_pipeline.extras.report.figures.losses import draw_guarantee, draw_knowledge, draw_spending
from pkdp_pipeline.extras.report.figures.style import (
    DASHED,
    breaks,
    dress,
    in_figures,
    is_narrow,
    likely,
    literal,
    need_matplotlib,
    put_periods,
    put_ticks,
    shortened,
)
from pkdp_pipeline.extras.report.statement import GuaranteeCurve
from pkdp_pipeline.model.wording import fitting, probability

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from pkdp_pipeline.certificates.certificate import Certificate
    from pkdp_pipeline.extras.report.content import Series
    from pkdp_pipeline.ledger import Ledger
    from pkdp_pipeline.releases.printed import PublishedTable
    from pkdp_pipeline.releases.release import Release

_NUMBER = re.compile(r"-?\d+\.\d{2,}(?:e-?\d+)?")
_COLOUR = re.compile(r"#[0-9a-fA-F]{3,8}\b")
_LETTERS = re.compile(r"font(-family)?: [^;\"]*;? ?")
_TAG = re.compile(r"<[^>]+>")


def inline_svg(
    draw: Callable[[Axes], None], *, name: str, title: str, description: str, width: float, height: float
) -> str:
    """Return a picture as an ``<svg>`` element to be put into a page; the same bytes for the same picture.

    Parameters
    ----------
    draw : callable
        Draws into the axes it is given, in colours of `pkdp_pipeline.display.figures.style` only.
    name : str
        Starts every id in it: a different one for each picture of a page. ASCII letters, digits, ``-`` and ``_``.
    title, description : str
        Read out by a screen reader.
    width, height : float
        In px, as of the page's text: letters have 11 and 12 px where the picture is shown at this size. It is
        shown smaller where the page is narrower.

    Returns
    -------
    str
        Its colours are the CSS variables of `display.figures.style.CSS_LIGHT`; its letters are the page's.

    Raises
    ------
    ArgumentError
        If an argument is malformed, or `draw` uses another colour.
    ConfigError
        If matplotlib is not installed.
    """
    if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]*", name):
        raise ArgumentError("name must start with a letter and hold letters, digits, '-' and '_' only: it starts ids.")
    if not all(isinstance(text, str) and text.strip() for text in (title, description)):
        raise ArgumentError("title and description must be non-empty texts: they are what a screen reader says.")
    if not (100.0 <= width <= 4000.0 and 100.0 <= height <= 4000.0):
        raise ArgumentError("width and height must be px, from 100 to 4000.")
    texts = []
    for tag, part, said in (("title", "title", title), ("desc", "description", description)):
        line = escape("".join(letter if letter.isprintable() else " " for letter in said), quote=False)
        texts.append(f'<{tag} id="{name}-{part}">{line}</{tag}>')
    drawn = _drawn(draw, name, width, height)
    body = drawn[drawn.index("<g ") : drawn.rindex("</svg>")]  # after what a page does not need
    body = _TAG.sub(_of_page, re.sub(r">\s+<", "><", body))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-labelledby="{name}-title {name}-description" '
        f'viewBox="0 0 {width:g} {height:g}" width="{width:g}" style="max-width:100%;height:auto" '
        f'stroke-linejoin="round">{"".join(texts)}{body}</svg>'
    )


def _drawn(draw: Callable[[Axes], None], name: str, width: float, height: float) -> str:
    need_matplotlib()
    import matplotlib
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    with matplotlib.rc_context(), warnings.catch_warnings():
        # The letters are the page's own: those that matplotlib's font lacks are measured as others are.
        warnings.filterwarnings("ignore", message="Glyph .* missing", category=UserWarning)
        # What the caller has set is theirs, and comes back: the same picture has the same bytes everywhere.
        matplotlib.rcdefaults()
        matplotlib.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": name, "path.simplify": False})
        figure = Figure(figsize=(width / 72.0, height / 72.0), dpi=72)
        FigureCanvasSVG(figure)  # whose letters the layout measures
        axes = figure.add_subplot()
        draw(axes)
        figure.patch.set_visible(False)
        axes.patch.set_visible(False)
        # A figure that had the layout would be drawn twice by savefig, the first time only to call it.
        ConstrainedLayoutEngine(w_pad=2 / 72, h_pad=2 / 72).execute(figure)
        content = io.StringIO()
        figure.savefig(content, format="svg", metadata={"Date": None, "Creator": None})
    return content.getvalue()


def _of_page(tag: re.Match[str]) -> str:
    """Return a tag in the page's colours and letters; groups lose their names, which other pictures have too."""
    text = _COLOUR.sub(_variable, tag[0].replace("xlink:href", "href"))
    text = _NUMBER.sub(lambda match: f"{round(float(match[0]), 2):g}", _LETTERS.sub("", text))
    return re.sub(r'<g id="[^"]*"', "<g", text).replace(": ", ":").replace("; ", ";")


def _variable(match: re.Match[str]) -> str:
    variable = style.VARIABLES.get(match[0].lower())
    if variable is None:
        raise ArgumentError(
            f"draw uses the colour {match[0]}: a page can only show those of pkdp_pipeline.display.figures.style."
        )
    return f"var({variable})"


_POINTS = 121  # of a certificate's curve
_MAX_PERIODS = 40  # of a ledger's, with so many seconds to compute them
_SECONDS = 60.0


def plot_certificate(certificate: Certificate, *, delta: float = 1e-6, axes: Axes | None = None) -> Axes:
    """Draw what a certificate guarantees; see `Certificate.plot`."""
    curve = GuaranteeCurve.of(certificate, probability("delta", delta), _POINTS)
    drawn = new_axes() if axes is None else axes
    draw_guarantee(curve, drawn, given=any(not leak.is_private for leak in certificate.leakage))
    return drawn


def plot_release(release: Release, *, axes: Axes | None = None) -> Axes:
    """Draw a release's table as bars; see `Release.plot`."""
    from pkdp_pipeline.releases.printed import published_table

    drawn = new_axes() if axes is None else axes
    draw_counts(published_table(release), release.certificate.mechanism.k, drawn, margin=release.error.bound_95)
    return drawn


def plot_ledger(ledger: Ledger, unit: str | None, *, delta: float = 1e-6, axes: Axes | None = None) -> Axes:
    """Draw what a ledger's releases add up to, inside a snapshot; see `Ledger.plot`.

    Parameters
    ----------
    ledger : Ledger
    unit : str or None
        See `unit_text`; None where there are no releases.
    delta : float
    axes : matplotlib.axes.Axes, optional

    Raises
    ------
    ArgumentError
        If nothing has been charged yet.
    ConfigError
        If matplotlib is not installed.
    """
    from pkdp_pipeline.ledger.history import read_history, spending

    history = read_history(ledger)
    if unit is None or unit not in history.units:
        raise ArgumentError(f"data set {history.dataset!r} has no releases yet: there is nothing to plot.")
    points = spending(history, unit, probability("delta", delta), max_points=_MAX_PERIODS, seconds=_SECONDS)
    lines = [BudgetLine.of(budget, part) for budget in history.terms.budgets for part in budget.measures]
    drawn = new_axes() if axes is None else axes
    given = any(not leak.is_private for attacker in history.attackers(unit) for leak in attacker.leakage)
    draw_spending(points, lines, drawn, delta=delta, given=given)
    return drawn


def new_axes() -> Axes:
    """Return the axes of a new figure, which pyplot does not know; as a cell's last value a notebook shows it."""
    need_matplotlib()
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.0, 4.5), facecolor=style.SURFACE, layout="constrained")
    return figure.add_subplot(axes_class=_shown_axes())


@cache
def _shown_axes() -> type[Axes]:
    """Return axes that a notebook shows as a picture, without pyplot."""
    from matplotlib.axes import Axes

    class ShownAxes(Axes):
        def _repr_png_(self) -> tuple[bytes, dict[str, int]]:
            figure, content = self.figure.canvas.figure, io.BytesIO()
            figure.savefig(content, format="png", dpi=160)
            width, height = (round(96 * inches) for inches in figure.get_size_inches())
            return content.getvalue(), {"width": width, "height": height}

    return ShownAxes


MAX_ROWS = 30
"""So many rows of a table are drawn."""

_CUT_AXIS_SHARE = 0.3
"""Where all counts are above this share of the largest one, the axis starts near them: else most of it were empty."""

MAX_CELLS = 8
"""So many cells of a series are drawn: those published most often, and the largest of these."""


def draw_counts(
    table: PublishedTable, k: int | None, axes: Axes, *, words: Sequence[str] = (), margin: int = 0
) -> None:
    """Draw the counts of one date as horizontal bars, in the published order; beside exact ones noised ones are hollow.

    Parameters
    ----------
    table : PublishedTable
        About `MAX_ROWS` of its rows are drawn, the first ones.
    k : int or None
        The threshold, drawn as a line.
    axes : matplotlib.axes.Axes
    words : sequence of str, optional
        The words in the place of each row's bar, where its count is suppressed.
    margin : int
        95 % of the noise of counts below `k` is within it: a line from end to end shows where the counted number is.
    """
    if len(table.keys) != len(table.counts):
        raise ArgumentError("a table must have one count for each key.")
    narrow = is_narrow(axes)
    counts = table.counts[: fitting(len(table.counts), MAX_ROWS)]
    left_out = len(table.counts) - len(counts) + table.more
    title = f"published {table.number}"
    if left_out:
        title += f"  ({left_out:,} more rows are not drawn)"
    dress(axes, x=title, y=literal(" / ".join(table.columns)), rules="x")
    published = {row: count for row, count in enumerate(counts) if count is not None}
    low, high = min([0, *published.values()]), max([0, *published.values(), k or 0])
    span = (high - low) or 1
    put_ticks(axes.xaxis, 4 if narrow else 7, counts=True)
    names = [shortened(" / ".join(key) or table.number, 18 if narrow else 34) for key in table.keys[: len(counts)]]
    axes.set_yticks(range(len(names)), names)
    axes.tick_params(axis="y", labelcolor=style.INK)
    axes.set_xlim(low - (0.14 * span if low < 0 else 0.0), high + 0.14 * span)
    axes.set_ylim(max(1, len(counts)) - 0.5, -0.5 if k is None else -0.9)
    if low < 0:
        axes.axvline(0.0, color=style.MUTED, linewidth=1.0, zorder=3, label="zero")
    look: dict[str, Any] = {"color": style.ACCENT_SOFT, "edgecolor": style.ACCENT, "linewidth": 1.0, "zorder": 2}
    noised = {row: count for row, count in published.items() if table.exact is not None and not table.exact[row]}
    solid = {row: count for row, count in published.items() if row not in noised}
    bars = axes.barh(list(solid), list(solid.values()), height=0.66, **look)
    axes.bar_label(bars, [in_figures(count, table.bands) for count in solid.values()], padding=5, **_LABEL)
    look |= {"color": "none", "linestyle": DASHED}
    axes.barh(list(noised), list(noised.values()), height=0.66, **look)
    for row, count in noised.items():
        place = max(count, *(ends := likely(count, k, margin))), row
        axes.plot(ends, (row, row), color=style.INK, linewidth=1.2, marker="|", markersize=6, zorder=5)
        look = {"va": "center", "bbox": {"facecolor": style.SURFACE, "edgecolor": "none", "pad": 0.5}, **_LABEL}
        axes.annotate(f"≈ {in_figures(count, table.bands)}", place, (5, 0), textcoords="offset points", **look)
    # Suppressed cells all have their word at the same place: at zero, or past a threshold that is near to it.
    past_k = k is not None and 2 * k < high + 0.14 * span
    start = k if k is not None and past_k else 0
    for row in sorted(set(range(len(counts))) - set(published)):
        look = {"color": style.MUTED, "fontsize": style.SMALL, "fontstyle": "italic", "zorder": 6}
        word = fill(words[row] if words else "suppressed", 20 if narrow else 80)
        axes.annotate(word, (start, row), (5, 0), textcoords="offset points", va="center", linespacing=1.0, **look)
    if k is not None:
        axes.axvline(k, color=style.WARN, linewidth=1.4, linestyle=DASHED, zorder=4, label="threshold")
        look = {"color": style.WARN, "fontsize": style.SMALL, "fontweight": "bold", "ha": "left" if past_k else "right"}
        axes.annotate(
            f"k = {k:,}", (k, -0.68), (5 if past_k else -5, 0), textcoords="offset points", va="center", **look
        )
    if not counts:
        _say_nothing(axes)


_LABEL: dict[str, Any] = {"color": style.INK, "fontsize": style.SMALL, "zorder": 6}


def _say_nothing(axes: Axes) -> None:
    axes.text(0.5, 0.5, "no cell is published", transform=axes.transAxes, ha="center", color=style.MUTED)


def draw_series(series: Series, axes: Axes, *, k: int | None = None, margin: int = 0) -> None:
    """Draw one line for each cell, with gaps where nothing is published about it; noised counts are hollow marks.

    Parameters
    ----------
    series : Series
        `MAX_CELLS` of its cells are drawn.
    axes : matplotlib.axes.Axes
    k : int, optional
    margin : int
        Where small counts are noised: see `draw_counts`.
    """
    if not series.periods:
        raise ArgumentError("series must have a period: nothing has been published yet, so there is nothing to draw.")
    narrow = is_narrow(axes)
    values = np.array(series.counts, dtype=float)  # one row for each period, one column for each cell
    known = np.isfinite(values)
    drawn = drawn_cells(series)
    left_out = len(series.cells) - len(drawn) + series.more_cells
    title, label = "period", f"published {series.number}"
    if left_out:
        title += f"  ({left_out:,} more {'cell is' if left_out == 1 else 'cells are'} not drawn)"
    dress(axes, x=title, y=label)
    places, is_dated = put_periods(axes, series.periods)
    put_ticks(axes.yaxis, 6, counts=True)
    if not drawn:
        _say_nothing(axes)
        return
    low, high = float(np.nanmin(values[:, drawn])), float(np.nanmax(values[:, drawn]))
    if low > _CUT_AXIS_SHARE * high:
        axes.set_title(f"{label} ({'not' if narrow else 'the axis does not start'} from 0)", loc="left")
    else:
        low, high = min(0.0, low), max(0.0, high) or 1.0
    room = 0.08 * (high - low or high)
    axes.set_ylim(low - room if low else low, high + room)
    if low < 0.0:
        axes.axhline(0.0, color=style.MUTED, linewidth=1.0, zorder=2)
    gaps = breaks(places) if is_dated else []
    lines = []
    for number, cell in enumerate(drawn):
        line = np.insert(values[:, cell], gaps, np.nan)
        is_known = np.isfinite(line)
        spread = np.arange(len(line)) % max(1, len(line) // 8) == number  # not all lines' marks at one place
        beside = np.append(False, is_known[:-1]) | np.append(is_known[1:], False)
        lines += axes.plot(
            np.insert(places, gaps, places[gaps]),
            line,
            color=style.SERIES[number % len(style.SERIES)],
            linewidth=1.8 if len(places) <= 60 else 1.2,
            linestyle=style.DASHES[number % len(style.DASHES)],
            marker=style.MARKS[number % len(style.MARKS)],
            markersize=4.2,
            # Where they are many, marks for values that stand alone, and some to tell the lines apart.
            markevery=is_known & (~beside | spread) if len(places) > 40 else is_known,
            zorder=4,
            label=series.cells[cell],
        )
        for period, marks in enumerate(series.exact or ()):
            if marks[cell] is False:
                look: dict[str, Any] = {"color": lines[-1].get_color(), "zorder": 5, "label": "_noised"}
                axes.plot([places[period]] * 2, likely(float(values[period, cell]), k, margin), linewidth=0.8, **look)
                hollow = dict[str, Any](marker=lines[-1].get_marker(), markersize=4.2, markerfacecolor=style.SURFACE)
                axes.plot(places[period], values[period, cell], **hollow, **look)
    # From above as the lines end.
    ends = sorted(range(len(drawn)), key=lambda number: -values[known[:, drawn[number]], drawn[number]][-1])
    axes.legend(
        [lines[number] for number in ends],
        [_legend_name(series.cells[drawn[number]], narrow=narrow) for number in ends],
        loc="center left",
        bbox_to_anchor=(1.0, 0.5),
        frameon=False,
        labelcolor="linecolor",
        fontsize=style.SMALL,
        handlelength=2.2,
    )


def drawn_cells(series: Series) -> list[int]:
    """Return which cells of a series `draw_series` draws."""
    known = [[count for count in cell if count is not None] for cell in zip(*series.counts, strict=True)]
    order = sorted(range(len(known)), key=lambda cell: (-len(known[cell]), -sum(known[cell]), cell))
    return sorted(cell for cell in order[: fitting(len(order), MAX_CELLS)] if known[cell])


def _legend_name(name: str, *, narrow: bool) -> str:
    """Return a cell's name beside its line; on a narrow page each of several keys has a line of its own."""
    if narrow and " / " in name:
        return shortened(name, 24).replace(" / ", " /\n")
    return shortened(name, 14 if narrow else 24)


__all__ = [
    "draw_counts",
    "draw_guarantee",
    "draw_knowledge",
    "draw_series",
    "draw_spending",
    "inline_svg",
    "need_matplotlib",
]
