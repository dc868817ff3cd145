"""Plots: what `Certificate.plot` and `Ledger.plot` do: values, axes, and a drawing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pkdp_pipeline.certificates.statement.curve import GuaranteeCurve
from pkdp_pipeline.display.figures.frame import new_axes
from pkdp_pipeline.display.figures.guarantee import draw_guarantee
from pkdp_pipeline.display.figures.spending import draw_spending
from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.model.arguments import probability

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from pkdp_pipeline.certificates.certificate import Certificate
    from pkdp_pipeline.ledger import Ledger

__all__ = ["plot_certificate", "plot_ledger"]

_POINTS = 121  # of a certificate's curve
_PERIODS = 40  # of a ledger's, with so many seconds to compute them
_SECONDS = 60.0


def plot_certificate(certificate: Certificate, *, delta: float = 1e-6, axes: Axes | None = None) -> Axes:
    """Draw what a certificate guarantees; see `Certificate.plot`."""
    curve = GuaranteeCurve.of(certificate, probability("delta", delta), _POINTS)
    drawn = new_axes() if axes is None else axes
    draw_guarantee(curve, drawn, given=any(not leak.is_private for leak in certificate.leakage))
    return drawn


@dataclass(frozen=True, slots=True, kw_only=True)
class _Line:
    """A budget as it is drawn."""

    epsilon: float
    delta: float
    part: str
    window_days: int | None
    words: str


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
    from pkdp_pipeline.ledger.views.words import budget_words

    history = read_history(ledger)
    if unit is None or unit not in history.units:
        raise ArgumentError(f"data set {history.dataset!r} has no releases yet: there is nothing to plot.")
    points = spending(history, unit, probability("delta", delta), most=_PERIODS, seconds=_SECONDS)
    lines = [
        _Line(
            epsilon=budget.epsilon,
            delta=budget.delta,
            part=measure,
            window_days=budget.window_days,
            words=budget_words(budget, (measure,)),
        )
        for budget in history.terms.budgets
        for measure in budget.measures
    ]
    drawn = new_axes() if axes is None else axes
    attackers = (history.parts[line.holding.part].attacker for line in history.lines if line.holding.unit == unit)
    given = any(not leak.is_private for attacker in attackers for leak in attacker.leakage)
    draw_spending(points, lines, drawn, delta=delta, given=given)
    return drawn
