"""Plots: what `Certificate.plot` and `Ledger.plot` do: values, axes, and a drawing."""

from __future__ import annotations

import io
from functools import cache
from typing import TYPE_CHECKING

from pkdp_pipeline.certificates.statement.statement import GuaranteeCurve
from pkdp_pipeline.display.content import BudgetLine
from pkdp_pipeline.display.figures import style
from pkdp_pipeline.display.figures.frame import need_matplotlib
from pkdp_pipeline.display.figures.losses import draw_guarantee, draw_spending
from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.model.arguments import probability

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from pkdp_pipeline.certificates.certificate import Certificate
    from pkdp_pipeline.ledger import Ledger

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
