"""Frame: axes dressed the same way in every picture; no global state is touched."""

from __future__ import annotations

from textwrap import wrap
from typing import TYPE_CHECKING, Literal

from pkdp_pipeline.display.figures import style
from pkdp_pipeline.errors import ConfigError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis

__all__ = [
    "DASHED",
    "DOTTED",
    "dress",
    "is_narrow",
    "literal",
    "need_matplotlib",
    "put_ticks",
    "settle",
    "width_in_points",
]

DASHED = (0, (5, 3))
DOTTED = (0, (1, 2))


def need_matplotlib() -> None:
    """Raise `ConfigError` where matplotlib is not installed."""
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise ConfigError(
            "figures need matplotlib, which is not installed: pip install 'pkdp-pipeline[report]'."
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
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set(color=style.MUTED, linewidth=1.0)
    axes.set_axisbelow(True)
    axes.grid(False)
    axes.grid(True, axis=rules, which="major", color=style.GRID, linewidth=0.8, linestyle="-")
    axes.tick_params(axis="both", which="both", labelsize=style.SMALL, labelcolor=style.MUTED, color=style.MUTED)
    axes.tick_params(axis="y", which="both", length=0)
    axes.tick_params(axis="x", which="minor", length=0)
    lines = wrap(x, width=max(20, int(width_in_points(axes) / (0.56 * style.SMALL))))
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


def is_narrow(axes: Axes) -> bool:
    """Return whether the axes are too narrow for long texts inside them."""
    return width_in_points(axes) < 380.0


def width_in_points(axes: Axes) -> float:
    """Return the width of the axes."""
    return float(axes.get_window_extent().width * 72.0 / axes.figure.canvas.figure.dpi)


def settle(axes: Axes) -> None:
    """Let the layout find its places, so that texts can be placed by their size."""
    figure = axes.figure.canvas.figure
    if figure.get_layout_engine() is not None:
        figure.draw_without_rendering()


def literal(name: str, longest: int | None = None) -> str:
    """Return a name from the data as matplotlib shows it letter by letter: no formula, one line, at most so long."""
    line = " ".join("".join(letter if letter.isprintable() else " " for letter in name).split())
    if longest is not None and len(line) > longest:
        line = line[: longest - 1].rstrip() + "…"
    return line.replace("$", r"\$")
