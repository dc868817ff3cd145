"""Plots: pictures as a notebook shows them, and as a part of a page in its colours and letters."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from functools import cache
from html import escape
from typing import TYPE_CHECKING

from pkdp_pipeline.certificates.statement.statement import GuaranteeCurve
from pkdp_pipeline.display.content import BudgetLine
from pkdp_pipeline.display.figures import style
from pkdp_pipeline.display.figures.losses import draw_guarantee, draw_spending
from pkdp_pipeline.display.figures.style import need_matplotlib
from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.model.arguments import probability

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from pkdp_pipeline.certificates.certificate import Certificate
    from pkdp_pipeline.ledger import Ledger


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
        What a screen reader says.
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
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    with matplotlib.rc_context():
        # What the caller has set is theirs, and comes back: the same picture has the same bytes everywhere.
        matplotlib.rcdefaults()
        matplotlib.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": name, "path.simplify": False})
        figure = Figure(
            figsize=(width / 72.0, height / 72.0), dpi=72, layout=ConstrainedLayoutEngine(w_pad=2 / 72, h_pad=2 / 72)
        )
        axes = figure.add_subplot()
        draw(axes)
        figure.patch.set_visible(False)
        axes.patch.set_visible(False)
        content = io.StringIO()
        figure.savefig(content, format="svg", metadata={"Date": None, "Creator": None})
    return content.getvalue()


def _of_page(tag: re.Match[str]) -> str:
    """Return a tag in the page's colours and letters; groups lose their names, which other pictures have too."""
    text = _COLOUR.sub(_variable, tag[0].replace("xlink:href", "href"))
    text = _NUMBER.sub(lambda found: f"{round(float(found[0]), 2):g}", _LETTERS.sub("", text))
    return re.sub(r'<g id="[^"]*"', "<g", text).replace(": ", ":").replace("; ", ";")


def _variable(found: re.Match[str]) -> str:
    variable = style.VARIABLES.get(found[0].lower())
    if variable is None:
        raise ArgumentError(
            f"draw uses the colour {found[0]}: a page can only show those of pkdp_pipeline.display.figures.style."
        )
    return f"var({variable})"


_POINTS = 121  # of a certificate's curve
_PERIODS = 40  # of a ledger's, with so many seconds to compute them
_SECONDS = 60.0


def plot_certificate(certificate: Certificate, *, delta: float = 1e-6, axes: Axes | None = None) -> Axes:
    """Draw what a certificate guarantees; see `Certificate.plot`."""
    curve = GuaranteeCurve.of(certificate, probability("delta", delta), _POINTS)
    drawn = new_axes() if axes is None else axes
    draw_guarantee(curve, drawn, given=any(not leak.is_private for leak in certificate.leakage))
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
    from pkdp_pipeline.ledger.views.history import read_history, spending

    history = read_history(ledger)
    if unit is None or unit not in history.units:
        raise ArgumentError(f"data set {history.dataset!r} has no releases yet: there is nothing to plot.")
    points = spending(history, unit, probability("delta", delta), most=_PERIODS, seconds=_SECONDS)
    lines = [BudgetLine.of(budget, part) for budget in history.terms.budgets for part in budget.measures]
    drawn = new_axes() if axes is None else axes
    attackers = (history.parts[line.row.part].attacker for line in history.lines if line.row.unit == unit)
    given = any(not leak.is_private for attacker in attackers for leak in attacker.leakage)
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
