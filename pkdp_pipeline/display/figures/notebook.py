"""Notebook: axes that a notebook shows as a picture, without pyplot; imported when a figure is made."""

from __future__ import annotations

import io

from matplotlib.axes import Axes

__all__ = ["ShownAxes"]

_DPI = 160


class ShownAxes(Axes):
    """Axes whose figure is displayed where they are the last value of a notebook's cell."""

    def _repr_png_(self) -> tuple[bytes, dict[str, int]]:
        figure = self.figure.canvas.figure
        content = io.BytesIO()
        figure.savefig(content, format="png", dpi=_DPI)
        width, height = (round(96 * inches) for inches in figure.get_size_inches())
        return content.getvalue(), {"width": width, "height": height}
