"""Knowledge: ε against how much the attacker knows, with the noise taking over where there is some."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from pkdp_pipeline.display.figures import style
from pkdp_pipeline.display.figures.frame import CERTIFIED, NOISE, Labels, across, dress, is_narrow, put_ticks
from pkdp_pipeline.model.wording import rounded_up

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from pkdp_pipeline.certificates.statement import KnowledgeCurve

__all__ = ["draw_knowledge"]

_ROOM_UPRIGHT, _ROOM_ACROSS = 18.0, 150.0  # in points
_LOGARITHMIC_FROM = 8.0  # how many times the declared ε the largest one may be on a plain scale


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
    low, high = float(values[0]), float(values[-1])
    if low == high:
        low, high = low - 0.5, high + 0.5
    axes.set_xlim(low, high)
    put_ticks(axes.xaxis, 5 if narrow else 8, integer=curve.field in ("known", "unknown"))

    shown_x, shown_y = values[finite], epsilons[finite]  # ε never falls: what is finite comes first
    start = float(shown_x[-1]) if shown_x.size else low
    if not finite.all():
        axes.axvspan(start, high, facecolor=style.WARN_SOFT, edgecolor="none", zorder=1, label="nothing")
        if shown_x.size:
            shown_x, shown_y = np.append(shown_x, start), np.append(shown_y, top * 10.0)
    axes.plot(shown_x, shown_y, **CERTIFIED, drawstyle="steps-pre", solid_joinstyle="round", label="certified")

    labels = Labels(axes)
    if shown_x.size:
        labels.keep_clear(np.repeat(shown_x, 2)[:-1], np.minimum(np.repeat(shown_y, 2)[1:], top))
    if floor is not None:
        axes.axhline(floor, **NOISE, label="floor")
        labels.keep_clear([low, high], [floor, floor])
    certified = math.isfinite(declared)
    text = f"declared: ε = {rounded_up(declared)}" if certified else "declared: no ε is certified"
    height = declared if certified else top
    guide = [(curve.declared, axes.get_ylim()[0]), (curve.declared, height)]
    labels.mark(curve.declared, height, text, guide=guide, certified=certified)
    if not finite.all():
        room = across(axes, start, high)
        place, right = (start, -8) if room < _ROOM_UPRIGHT else ((start + high) / 2.0, 0)
        heights = (
            axes.transData.inverted().transform(axes.transAxes.transform((0.0, share)))[1]
            for share in (0.5, 0.75, 0.35, 0.15, 0.07)
        )
        spots = [(place, float(y), right, 0) for y in heights]
        upright = _ROOM_UPRIGHT <= room < _ROOM_ACROSS
        labels.place("no ε is certified", spots, color=style.WARN, weight="bold", upright=upright)
    if floor is not None:
        text = f"the noise alone: ε = {rounded_up(floor)}"
        text += "" if narrow else ", given what is known" if given else ", whatever they know"
        ends = ((low, 4), ((low + high) / 2.0, 0), (high, -4))
        labels.place(text, [(x, floor, right, up) for up in (5, -5) for x, right in ends], color=style.MUTED)


def _scale(axes: Axes, finite: np.ndarray, declared: float, floor: float | None) -> float:
    """Set the scale of ε, and return its upper end."""
    from matplotlib.ticker import FuncFormatter, LogLocator

    if not finite.size:
        axes.set_yticks([])
        axes.set_ylim(0.0, 1.0)
        return 1.0
    shown = [*finite.tolist(), *(one for one in (declared, floor) if one is not None and math.isfinite(one))]
    most = max(shown) or 1.0
    least = min((one for one in shown if one > 0.0), default=most)
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
