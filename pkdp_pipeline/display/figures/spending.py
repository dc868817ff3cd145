"""Spending: what everything published adds up to, period by period, with the budgets."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from pkdp_pipeline.display.figures import style
from pkdp_pipeline.display.figures.frame import DASHED, DOTTED, dress, is_narrow, put_ticks
from pkdp_pipeline.display.figures.labels import Labels, Spot
from pkdp_pipeline.display.figures.timeline import Timeline
from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.model.wording import rounded_up

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from pkdp_pipeline.display.report.content import BudgetLine, SpentPoint
    from pkdp_pipeline.ledger.views.history import Point

__all__ = ["DrawnBudget", "draw_spending"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnBudget:
    """A budget as it is drawn."""

    epsilon: float
    delta: float
    part: str
    window_days: int | None
    words: str


def draw_spending(
    points: Sequence[Point | SpentPoint],
    budgets: Sequence[BudgetLine | DrawnBudget],
    axes: Axes,
    *,
    delta: float,
    given: bool = False,
) -> None:
    """Draw the total ε after each period as steps, and the budgets as lines.

    Parameters
    ----------
    points : sequence of SpentPoint
    budgets : sequence of BudgetLine
    axes : matplotlib.axes.Axes
    delta : float
        The δ at which the points are.
    given : bool, default False
        Whether what the noise guarantees is given something that may be known exactly besides.

    Notes
    -----
    Between two points the line keeps the value of the later one: a total does not fall, so it is nowhere below what
    is certified, also where periods between the points were left out.
    """
    if not points:
        raise ArgumentError("points must not be empty: nothing has been published yet, so nothing is spent.")
    narrow = is_narrow(axes)
    dress(axes, x="end of period", y=f"ε of everything up to then, at δ = {rounded_up(delta)}")
    timeline = Timeline.of([point.period for point in points])
    timeline.put_on(axes)
    places = np.array(timeline.places)
    epsilons = np.array([point.epsilon for point in points])
    worst = np.array([point.worst_case for point in points])
    limits = sorted({budget.epsilon for budget in budgets})
    finite = [*epsilons[np.isfinite(epsilons)].tolist(), *worst[np.isfinite(worst)].tolist(), *limits]
    top = 1.25 * (max(finite, default=1.0) or 1.0)
    axes.set_ylim(0.0, top)
    put_ticks(axes.yaxis, 6)

    for limit in limits:
        held = [budget for budget in budgets if budget.epsilon == limit]
        is_other = all(budget.window_days is not None or budget.delta != delta for budget in held)
        only_worst = all(budget.part == "worst_case" for budget in held)
        dashes = DOTTED if is_other else DASHED if only_worst else "-"
        axes.axhline(limit, color=style.WARN, linewidth=1.4, linestyle=dashes, zorder=3, label="budget")
    has_worst = bool(np.isfinite(worst).any()) and not np.array_equal(worst, epsilons)
    if has_worst:
        _line(axes, places, worst, top, color=style.MUTED, width=1.6, label="worst case", linestyle=DASHED)
    _line(axes, places, epsilons, top, color=style.ACCENT, width=2.4, label="total")

    labels = Labels(axes)
    for line in (epsilons, worst) if has_worst else (epsilons,):
        shown = np.where(np.isfinite(line), line, top)
        labels.keep_clear(np.repeat(places, 2)[:-1], np.repeat(shown, 2)[1:])
    for limit in limits:
        labels.keep_clear(axes.get_xlim(), [limit, limit])
    for limit in limits:
        text = _budget_text([budget for budget in budgets if budget.epsilon == limit], delta, narrow=narrow)
        labels.place(text, _along(axes, limit), color=style.WARN, weight="bold")
    if math.isfinite(epsilons[-1]):
        text = f"now ε = {rounded_up(float(epsilons[-1]))}"
        labels.place(text, _beside_end(places, epsilons), color=style.ACCENT, weight="bold")
    if not np.isfinite(epsilons).all():
        first = float(places[~np.isfinite(epsilons)][0])
        before = float(places[np.isfinite(epsilons)][-1]) if np.isfinite(epsilons).any() else first
        spots = [
            Spot(x=first, y=top, right=8, up=-12, va="top"),
            Spot(x=first, y=top, right=-8, up=-12, ha="right", va="top"),
            Spot(x=before, y=top, right=-8, up=-12, ha="right", va="top"),
            Spot(x=before, y=top, right=8, up=-12, va="top"),
        ]
        labels.place("× no ε is certified", spots, color=style.WARN, weight="bold")
    if has_worst:
        known = np.isfinite(worst)
        whom = "given what is known" if given else "against anyone" if narrow else "against anyone at all"
        text = f"{whom}: the noise" if narrow else f"{whom}: the noise alone"
        labels.place(text, _beside_end(places[known], worst[known]), color=style.MUTED)


def _budget_text(budgets: Sequence[BudgetLine | DrawnBudget], delta: float, *, narrow: bool) -> str:
    """Return what budgets with the same ε hold; where the line is not for the total at `delta`, what it is for."""
    words = list(dict.fromkeys(budget.words for budget in budgets))
    if len(words) == 1 and not narrow:
        return f"budget: {words[0]}"
    kinds = []
    for budget in budgets:
        kind = "" if budget.delta == delta else f" at δ = {_chosen(budget.delta)}"
        kinds.append(kind + ("" if budget.window_days is None else f", {budget.window_days} days"))
    return f"budget: ε = {_chosen(budgets[0].epsilon)}" + ";".join(dict.fromkeys(kinds))


def _chosen(value: float) -> str:
    """Return a number that somebody has chosen, as it was written."""
    mantissa, mark, exponent = repr(value).partition("e")
    return mantissa.removesuffix(".0") + (f"e{int(exponent)}" if mark else "")


def _line(
    axes: Axes,
    places: np.ndarray,
    epsilons: np.ndarray,
    top: float,
    *,
    color: str,
    width: float,
    label: str,
    linestyle: Any = "-",
) -> None:
    """Draw steps, with dots where they are few; where no ε is certified they leave the picture, below a cross."""
    shown = np.where(np.isfinite(epsilons), epsilons, 10.0 * top)
    axes.plot(
        places,
        shown,
        color=color,
        linewidth=width,
        linestyle=linestyle,
        drawstyle="steps-pre",
        marker="o" if len(places) <= 40 else None,
        markersize=4.5 if linestyle == "-" else 3.5,
        zorder=5,
        label=label,
    )
    endless = places[~np.isfinite(epsilons)]
    if endless.size:
        axes.plot(
            endless,
            np.full(endless.size, top),
            color=style.WARN,
            marker="x",
            markersize=7,
            markeredgewidth=1.8,
            linestyle="none",
            zorder=7,
            clip_on=False,
            label=f"{label}: none",
        )


def _along(axes: Axes, height: float) -> list[Spot]:
    low, high = axes.get_xlim()
    places: tuple[tuple[float, float, Literal["left", "center", "right"]], ...] = (
        (low, 4.0, "left"),
        (high, -4.0, "right"),
        ((low + high) / 2.0, 0.0, "center"),
    )
    return [
        Spot(x=x, y=height, right=right, up=up, ha=ha, va="bottom" if up > 0 else "top")
        for up in (4.0, -4.0)
        for x, right, ha in places
    ]


def _beside_end(places: np.ndarray, heights: np.ndarray) -> list[Spot]:
    """Return spots above and below a rising line, from its end backwards."""
    spots = []
    for back in (0, len(places) // 6, len(places) // 3, len(places) // 2, 2 * len(places) // 3):
        x, y = float(places[-1 - back]), float(heights[-1 - back])
        if math.isfinite(y):
            spots.append(Spot(x=x, y=y, right=0, up=8, ha="right", va="bottom"))
            spots.append(Spot(x=x, y=y, right=0, up=-8, ha="right", va="top"))
            spots.append(Spot(x=x, y=y, right=4, up=8, ha="left", va="bottom"))
    return spots
