"""Spending: what everything published adds up to, period by period, with the budgets."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pkdp_pipeline.display.figures import style
from pkdp_pipeline.display.figures.frame import (
    CERTIFIED,
    DASHED,
    DOTTED,
    NOISE,
    Labels,
    Spot,
    dress,
    is_narrow,
    noise_words,
    put_periods,
    put_ticks,
)
from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.model.plain_text import exactly
from pkdp_pipeline.model.wording import rounded_up

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from pkdp_pipeline.display.content import BudgetLine
    from pkdp_pipeline.ledger.views.history import Point

__all__ = ["draw_spending"]


def draw_spending(
    points: Sequence[Point],
    budgets: Sequence[BudgetLine],
    axes: Axes,
    *,
    delta: float,
    given: bool = False,
) -> None:
    """Draw the total ε after each period as steps, and the budgets as lines.

    Parameters
    ----------
    points : sequence of Point
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
    places, _ = put_periods(axes, [point.period for point in points])
    epsilons = np.array([point.epsilon for point in points])
    worst = np.array([point.worst_case for point in points])
    limits = sorted({budget.epsilon for budget in budgets})
    finite = [*epsilons[np.isfinite(epsilons)], *worst[np.isfinite(worst)], *limits]
    top = 1.25 * (float(max(finite, default=1.0)) or 1.0)
    axes.set_ylim(0.0, top)
    put_ticks(axes.yaxis, 6)
    labels = Labels(axes)

    lines: list[tuple[str, np.ndarray, dict[str, Any]]] = [("total", epsilons, {**CERTIFIED, "markersize": 4.5})]
    has_worst = bool(np.isfinite(worst).any()) and not np.array_equal(worst, epsilons)
    if has_worst:
        lines.append(("worst case", worst, {**NOISE, "markersize": 3.5}))
    for name, heights, look in lines:
        endless = ~np.isfinite(heights)  # where no ε is certified: the line leaves the picture, below a cross
        marker = "o" if len(places) <= 40 else None  # dots where they are few
        shown = np.where(endless, 10.0 * top, heights)
        axes.plot(places, shown, **look, drawstyle="steps-pre", marker=marker, label=name)
        labels.keep_clear(np.repeat(places, 2)[:-1], np.minimum(np.repeat(shown, 2)[1:], top))
        if endless.any():
            cross: dict[str, Any] = {"marker": "x", "markersize": 7, "markeredgewidth": 1.8, "linestyle": "none"}
            height = np.full(endless.sum(), top)
            axes.plot(
                places[endless], height, **cross, color=style.WARN, zorder=7, clip_on=False, label=f"{name}: none"
            )
    low, high = axes.get_xlim()
    groups = [[budget for budget in budgets if budget.epsilon == limit] for limit in limits]
    for limit, group in zip(limits, groups, strict=True):
        is_other = all(budget.window_days is not None or budget.delta != delta for budget in group)
        only_worst = all(budget.part == "worst_case" for budget in group)
        dashes = DOTTED if is_other else DASHED if only_worst else "-"
        axes.axhline(limit, color=style.WARN, linewidth=1.4, linestyle=dashes, zorder=3, label="budget")
        labels.keep_clear([low, high], [limit, limit])
    ends = ((low, 4), (high, -4), ((low + high) / 2.0, 0))
    for limit, group in zip(limits, groups, strict=True):
        along = [(x, limit, right, up) for up in (4, -4) for x, right in ends]
        labels.place(_budget_text(group, delta, narrow=narrow), along, color=style.WARN, weight="bold")
    known = np.isfinite(epsilons)
    if known[-1]:
        text = f"now ε = {rounded_up(float(epsilons[-1]))}"
        labels.place(text, _beside_end(places, epsilons), color=style.ACCENT, weight="bold")
    if not known.all():
        first = float(places[~known][0])
        before = float(places[known][-1]) if known.any() else first
        spots = [(first, top, 8, -12), (first, top, -8, -12), (before, top, -8, -12), (before, top, 8, -12)]
        labels.place("× no ε is certified", spots, color=style.WARN, weight="bold")
    if has_worst:
        text = noise_words(narrow=narrow, given=given)
        known = np.isfinite(worst)
        labels.place(text, _beside_end(places[known], worst[known]), color=style.MUTED)


def _budget_text(budgets: Sequence[BudgetLine], delta: float, *, narrow: bool) -> str:
    """Return what budgets with the same ε hold; where the line is not for the total at `delta`, what it is for."""
    words = list(dict.fromkeys(budget.words for budget in budgets))
    if len(words) == 1 and not narrow:
        return f"budget: {words[0]}"
    kinds = []
    for budget in budgets:
        kind = "" if budget.delta == delta else f" at δ = {exactly(budget.delta)}"
        kinds.append(kind + ("" if budget.window_days is None else f", {budget.window_days} days"))
    return f"budget: ε = {exactly(budgets[0].epsilon)}" + ";".join(dict.fromkeys(kinds))


def _beside_end(places: np.ndarray, heights: np.ndarray) -> list[Spot]:
    """Return spots above and below a rising line, from its end backwards."""
    ends = [-1 - back for back in (0, *(len(places) * share // 6 for share in (1, 2, 3, 4)))]
    return [
        (float(places[end]), float(heights[end]), right, up)
        for end in ends
        if math.isfinite(heights[end])
        for right, up in ((-1, 8), (-1, -8), (4, 8))
    ]
