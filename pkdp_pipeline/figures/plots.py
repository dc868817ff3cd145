"""Plots: what `Certificate.plot` and `Ledger.plot` do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pkdp_pipeline.arguments import probability
from pkdp_pipeline.figures.frame import new_axes
from pkdp_pipeline.figures.guarantee import draw_guarantee
from pkdp_pipeline.statement.curve import GuaranteeCurve

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from pkdp_pipeline.certificate import Certificate

__all__ = ["plot_certificate"]

_POINTS = 121


def plot_certificate(certificate: Certificate, *, delta: float = 1e-6, axes: Axes | None = None) -> Axes:
    """Draw what a certificate guarantees; see `Certificate.plot`."""
    curve = GuaranteeCurve.of(certificate, probability("delta", delta), _POINTS)
    drawn = new_axes() if axes is None else axes
    draw_guarantee(curve, drawn)
    return drawn
