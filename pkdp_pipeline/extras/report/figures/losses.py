"""Losses: δ against ε, ε against what the attacker knows, and ε period by period with the budgets."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.extras.report.figures import style
from pkdp_pipeline.extras.report.figures.style import (
    ATTAINED,
    CERTIFIED,
    DASHDOTTED,
    DASHED,
    DOTTED,
    NOISE,
    dress,
    is_narrow,
    mark,
    noise_words,
    put_legend,
    put_periods,
    put_ticks,
)
from pkdp_pipeline.model.period import exactly
from pkdp_pipeline.model.wording import rounded_up

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

    from pkdp_pipeline.extras.report.content import BudgetLine
    from pkdp_pipeline.extras.report.statement import GuaranteeCurve, KnowledgeCurve
    from pkdp_pipeline.ledger.history import Point

_MIN_DELTA = 1e-12
_TOP = 1.8
_MIN_STEPS = 240  # are drawn at least
_LOGARITHMIC_FROM = 8.0  # how many times the declared ε the largest one may be on a plain scale


def draw_guarantee(curve: GuaranteeCurve, axes: Axes, *, given: bool = False) -> None:
    """Draw δ against ε, on a logarithmic scale for δ.

    Parameters
    ----------
    curve : GuaranteeCurve
    axes : matplotlib.axes.Axes
    given : bool, default False
        Whether what the noise guarantees is given something that may be known exactly besides.

    Notes
    -----
    A straight line between two points on a logarithmic scale could lie below the true δ. So the certified curve and
    that of the noise are drawn as fine steps above the chords, which are certified; see `above`.
    The attained curve is known at its points, and straight between them.
    """
    epsilons, certified, attained = map(np.asarray, (curve.epsilons, curve.certified, curve.attained))
    narrow = is_narrow(axes)
    dress(
        axes,
        x="ε: how far probabilities may differ" + ("" if narrow else ", a factor of at most e^ε"),
        y="δ at each ε, at most (log scale)",
    )
    bottom = _bottom(curve)
    axes.set_yscale("log", nonpositive="clip")
    last = round(math.log10(bottom))
    decades = range(0, last - 1, -max(1, math.ceil(-last / (4 if narrow else 6))))
    axes.set_yticks(
        [10.0**exponent for exponent in decades], [rounded_up(float(f"1e{exponent}")) for exponent in decades]
    )
    axes.minorticks_off()
    axes.set(xlim=(0.0, float(epsilons[-1])), ylim=(bottom, _TOP))
    put_ticks(axes.xaxis, 5 if narrow else 8)

    # Where δ is 0 a logarithmic scale has no place: the line leaves the picture at the bottom.
    hidden = bottom / 100.0
    shown: list[tuple[Artist, str]] = []
    uneven = np.zeros(len(epsilons) - 1, dtype=bool)
    worst = None if curve.worst_case is None else np.asarray(curve.worst_case)
    if worst is not None:
        fine, noise = above(epsilons, worst, uneven)
        uneven = np.diff(certified >= worst)
        noise = np.maximum(noise, hidden)
        (line,) = axes.plot(fine, noise, **NOISE, drawstyle="steps-post", snap=False, label="worst case")
        if (worst < 1.0).any():
            shown.append((line, noise_words(narrow=narrow, given=given)))
    fine, upper = above(epsilons, certified, uneven)
    upper = np.maximum(upper, hidden)
    (line,) = axes.plot(fine, upper, **CERTIFIED, drawstyle="steps-post", snap=False, label="certified")
    if (certified >= 1.0).all():
        put_legend(axes, [(line, "nothing is certified: δ = 1")])
        return
    if (attained > 0.0).any():
        lower = np.maximum(attained, hidden)
        under = np.exp(np.interp(fine, epsilons, np.log(lower)))
        look: dict[str, Any] = {"color": style.ACCENT_SOFT, "linewidth": 0, "zorder": 2, "label": "between"}
        axes.fill_between(fine, under, upper, step="post", **look)
        (below,) = axes.plot(epsilons, lower, **ATTAINED, label="attained")
        visible = certified >= bottom
        equal = bool(np.allclose(attained[visible], certified[visible], rtol=5e-4, atol=0.0))
        words = "attained" if narrow else "attained by an attack"
        shown.insert(0, (below, f"{words}: equal to three digits" if equal else words))
        if not equal:
            _name(axes, epsilons, lower, "attained", -1)
            _name(axes, epsilons, certified, "certified", 1)
    shown.insert(0, (line, "certified" if narrow else "certified: no declared attacker exceeds it"))
    if curve.mark is not None and curve.mark[1] > 0.0:
        epsilon, delta = curve.mark
        point = mark(axes, epsilon, delta, guide=[(0.0, delta), (epsilon, delta), (epsilon, bottom)])
        shown.insert(0, (point, f"ε = {rounded_up(epsilon)} at δ = {rounded_up(delta)}"))
    put_legend(axes, shown)


def _name(axes: Axes, epsilons: NDArray[Any], deltas: NDArray[Any], name: str, side: int) -> None:
    """Write what a falling line is beside it: above on the right of it, or below on the left."""
    index = int(np.searchsorted(epsilons, 0.35 * epsilons[-1]))
    look: dict[str, Any] = {"color": style.INK, "fontsize": style.SMALL, "zorder": 6}
    place: dict[str, Any] = {"ha": "left" if side > 0 else "right", "va": "bottom" if side > 0 else "top"}
    where = (epsilons[index], deltas[index])
    axes.annotate(name, where, (5 * side, 3 * side), textcoords="offset points", annotation_clip=True, **place, **look)


def _bottom(curve: GuaranteeCurve) -> float:
    """Return the lower end of the scale: three decades below the mark, or a decade below the curve."""
    if curve.mark is not None and curve.mark[1] > 0.0:
        return max(10.0 ** (math.floor(math.log10(curve.mark[1])) - 3), _MIN_DELTA * 1e-200)
    least = min((value for value in curve.certified if value > 0.0), default=1.0)
    return float(max(10.0 ** (math.floor(math.log10(least)) - 1), _MIN_DELTA))


def above(epsilons: NDArray[Any], deltas: NDArray[Any], flat: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return more ε between each two, and for each a value that is not below δ from there up to the next one.

    A δ(ε) is a convex function of e^ε that never rises, so it lies below the chord of two of its points.

    Parameters
    ----------
    epsilons, deltas : array
        Points of a δ(ε).
    flat : array of bool
        For each step between two points, whether what is certified there need not be convex, as where one bound
        takes over from another. The value on the left is kept there.
    """
    parts = -(-_MIN_STEPS // (len(epsilons) - 1))
    start, step = epsilons[:-1, None], np.diff(epsilons)[:, None]
    high, low = deltas[:-1, None], deltas[1:, None]
    fine = start + np.arange(parts) / parts * step
    share = np.expm1(fine - start) / np.expm1(step)  # how far along, measured in e^ε
    chord = np.where(flat[:, None], high, high - (high - low) * share)
    # Up by more than the rounding of this line, and not above the left end, which is enough.
    values = np.minimum(chord * (1.0 + 1e-12), high)
    return np.append(fine.ravel(), epsilons[-1]), np.append(values.ravel(), deltas[-1])


def draw_knowledge(curve: KnowledgeCurve, axes: Axes, *, given: bool = False) -> None:
    """Draw ε against what the attacker knows; further to the right they know more.

    Parameters
    ----------
    curve : KnowledgeCurve
    axes : matplotlib.axes.Axes
    given : bool, default False
        Whether what the noise guarantees is given something that may be known exactly besides.

    Notes
    -----
    Between two points the curve keeps the value of the one at which more is known: ε never falls with knowledge, so
    it is nowhere below what is certified. Where no ε is certified, the curve leaves the picture and the area is
    marked.
    """
    # In the order of knowledge: the fewer people are unknown to the attacker, the more they know.
    sign = -1.0 if curve.field == "unknown" else 1.0
    order = np.argsort(sign * np.asarray(curve.values, dtype=float), kind="stable")
    values, epsilons = (np.asarray(side, dtype=float)[order] for side in (curve.values, curve.epsilons))
    finite = np.isfinite(epsilons)
    narrow = is_narrow(axes)
    # Between two points the declared attacker is taken to know as much as at the next one.
    next_one = np.searchsorted(sign * values, sign * curve.declared)
    declared = float(epsilons[min(int(next_one), len(epsilons) - 1)])
    floor = curve.floor if curve.floor is not None and math.isfinite(curve.floor) else None
    top = _scale(axes, epsilons[finite], declared, floor)
    dress(
        axes,
        x=curve.words + ("" if narrow else "  (knows more →)"),
        y=f"ε certified at δ = {rounded_up(curve.delta)}" + (" (log scale)" if axes.get_yscale() == "log" else ""),
    )
    if curve.field == "known" and 0.0 < values[0] == curve.declared:  # who knows fewer people is declared as well
        values, epsilons = np.append(0.0, values), np.append(declared, epsilons)
        finite = np.isfinite(epsilons)
    low, high = float(values[0]), float(values[-1])
    if low == high:
        low, high = low - 0.5, high + 0.5
    axes.set_xlim(low, high)
    put_ticks(axes.xaxis, 5 if narrow else 8, integer=curve.field in ("known", "unknown"))

    shown_x, shown_y = values[finite], epsilons[finite]  # ε never falls: what is finite comes first
    start = float(shown_x[-1]) if shown_x.size else low
    shown: list[tuple[Artist, str]] = []
    if not finite.all():
        area = axes.axvspan(start, high, facecolor=style.WARN_SOFT, edgecolor="none", zorder=1, label="nothing")
        shown.append((area, "no ε is certified"))
        if shown_x.size:
            shown_x, shown_y = np.append(shown_x, start), np.append(shown_y, top * 10.0)
    axes.plot(shown_x, shown_y, **CERTIFIED, drawstyle="steps-pre", solid_joinstyle="round", label="certified")
    if floor is not None:
        line = axes.axhline(floor, **NOISE, label="floor")
        whom = "" if narrow else ", given what is known" if given else ", whatever they know"
        shown.append((line, f"the noise alone: ε = {rounded_up(floor)}{whom}"))
    certified = math.isfinite(declared)
    text = f"declared: ε = {rounded_up(declared)}" if certified else "declared: no ε is certified"
    height = declared if certified else top
    guide = [(curve.declared, axes.get_ylim()[0]), (curve.declared, height)]
    point = mark(axes, curve.declared, height, guide=guide, certified=certified)
    put_legend(axes, [(point, text), *shown])


def _scale(axes: Axes, finite: np.ndarray, declared: float, floor: float | None) -> float:
    """Set the scale of ε, and return its upper end."""
    from matplotlib.ticker import FuncFormatter, LogLocator

    if not finite.size:
        axes.set_yticks([])
        axes.set_ylim(0.0, 1.0)
        return 1.0
    shown = [*finite.tolist(), *(value for value in (declared, floor) if value is not None and math.isfinite(value))]
    most = max(shown) or 1.0
    least = min((value for value in shown if value > 0.0), default=most)
    reference = declared if math.isfinite(declared) and declared > 0.0 else least
    bottom, top = 0.0, most * 1.22
    put_ticks(axes.yaxis, 6)
    if most / reference > _LOGARITHMIC_FROM:
        bottom, top = least / 1.6, most * 1.8
        axes.set_yscale("log")
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if top < 1e3 * bottom else (1,), numticks=8))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.minorticks_off()
    axes.set_ylim(bottom, top)
    return top


def draw_spending(
    points: Sequence[Point],
    budgets: Sequence[BudgetLine],
    axes: Axes,
    *,
    delta: float,
    given: bool = False,
) -> None:
    """Draw the total's ε after each period as steps, and the budgets as lines.

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
    dress(axes, x="end of period", y=f"ε certified up to then, at δ = {rounded_up(delta)}")
    places, _ = put_periods(axes, [point.period for point in points])
    epsilons = np.array([point.epsilon for point in points])
    worst = np.array([point.worst_case for point in points])
    limits = sorted({budget.epsilon for budget in budgets})
    finite = [*epsilons[np.isfinite(epsilons)], *worst[np.isfinite(worst)], *limits]
    top = 1.25 * (float(max(finite, default=1.0)) or 1.0)
    axes.set_ylim(0.0, top)
    put_ticks(axes.yaxis, 6)
    lines: list[tuple[str, np.ndarray, dict[str, Any]]] = [("total", epsilons, {**CERTIFIED, "markersize": 4.5})]
    if np.isfinite(worst).any() and not np.array_equal(worst, epsilons):
        lines.append(("worst case", worst, {**NOISE, "markersize": 3.5}))
    shown: dict[str, Artist] = {}
    for name, heights, look in lines:
        endless = ~np.isfinite(heights)  # where no ε is certified: the line leaves the picture, below a cross
        marker = "o" if len(places) <= 40 else None  # dots where they are few
        high = np.where(endless, 10.0 * top, heights)
        (line,) = axes.plot(places, high, **look, drawstyle="steps-pre", marker=marker, label=name)
        if name == "worst case":
            shown[noise_words(narrow=narrow, given=given)] = line
        elif not endless[-1]:
            shown[f"now ε = {rounded_up(float(heights[-1]))}"] = line
        if endless.any():
            cross: dict[str, Any] = {"markersize": 7, "markeredgewidth": 1.8, "color": style.WARN, "zorder": 7}
            levels = np.full(endless.sum(), top)
            (crosses,) = axes.plot(places[endless], levels, "x", **cross, clip_on=False, label=f"{name}: none")
            shown["no ε is certified"] = crosses
    for limit in limits:
        group = [budget for budget in budgets if budget.epsilon == limit]
        is_other = all(budget.window_days is not None or budget.delta != delta for budget in group)
        only_worst = all(budget.part == "worst_case" for budget in group)
        dashes = DOTTED if is_other else DASHED if only_worst else DASHDOTTED
        line = axes.axhline(limit, color=style.WARN, linewidth=1.4, linestyle=dashes, zorder=3, label="budget")
        shown[_budget_text(group, delta, narrow=narrow)] = line
    put_legend(axes, [(artist, text) for text, artist in shown.items()])


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
