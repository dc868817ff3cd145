"""Figures: what certificates, ledgers and published tables say, drawn with matplotlib.

A draw function puts one picture into given axes. `inline_svg` turns it into SVG for a page, in the page's own
colours; `Certificate.plot` and `Ledger.plot` draw the same pictures. matplotlib is loaded when something is drawn.
"""

from __future__ import annotations

from pkdp_pipeline.extras.report.figures.losses import draw_guarantee, draw_knowledge, draw_spending
from pkdp_pipeline.extras.report.figures.plots import draw_counts, draw_series, inline_svg
from pkdp_pipeline.extras.report.figures.style import need_matplotlib

__all__ = [
    "draw_counts",
    "draw_guarantee",
    "draw_knowledge",
    "draw_series",
    "draw_spending",
    "inline_svg",
    "need_matplotlib",
]
