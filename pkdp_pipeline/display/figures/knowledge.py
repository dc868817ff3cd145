"""Knowledge: ε against how much the attacker knows, with the noise taking over where there is some."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal

import numpy as np

from pkdp_pipeline.display.figures import style
from pkdp_pipeline.display.figures.frame import DASHED, dress, is_narrow, put_ticks
from pkdp_pipeline.display.figures.labels import Labels, Spot
from pkdp_pipeline.model.wording import rounded_up

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from pkdp_pipeline.certificates.statement import KnowledgeCurve

__all__ = ["draw_knowledge"]

_ALONG: tuple[tuple[float, Literal["left", "center", "right"]], ...] = ((0.0, "left"), (0.5, "center"), (1.0, "right"))

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
    backward = curve.field == "unknown"
    pairs = sorted(zip(map(float, curve.values), map(float, curve.epsilons), strict=True), reverse=backward)
    values, epsilons = (np.array(side) for side in zip(*pairs, strict=True))
    finite = np.isfinite(epsilons)
    narrow = is_narrow(axes)
    declared = _at(curve.declared, values, epsilons, backward=backward)
    top = _scale(axes, epsilons[finite], declared, curve.floor)
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

    last = int(finite.sum()) - 1  # ε never falls: what is finite comes first
    shown_x, shown_y = values[: last + 1], epsilons[: last + 1]
    if not finite.all():
        start = float(values[last]) if last >= 0 else low
        axes.axvspan(start, high, facecolor=style.WARN_SOFT, edgecolor="none", zorder=1, label="nothing")
        if last >= 0:
            shown_x, shown_y = np.append(shown_x, start), np.append(shown_y, top * 10.0)
    axes.plot(
        shown_x,
        shown_y,
        color=style.ACCENT,
        linewidth=2.4,
        drawstyle="steps-pre",
        solid_joinstyle="round",
        zorder=5,
        label="certified",
    )
    floor = curve.floor if curve.floor is not None and math.isfinite(curve.floor) else None
    if floor is not None:
        axes.axhline(floor, color=style.MUTED, linewidth=1.6, linestyle=DASHED, zorder=4, label="floor")

    labels = Labels(axes)
    if shown_x.size:
        labels.keep_clear(np.repeat(shown_x, 2)[:-1], np.minimum(np.repeat(shown_y, 2)[1:], top))
    if floor is not None:
        labels.keep_clear([low, high], [floor, floor])
    certified = math.isfinite(declared)
    text = f"declared: ε = {rounded_up(declared)}" if certified else "declared: no ε is certified"
    height = declared if certified else top
    guide = [(curve.declared, axes.get_ylim()[0]), (curve.declared, height)]
    labels.mark(curve.declared, height, text, guide=guide, certified=certified)
    if not finite.all():
        middle = (start + high) / 2.0
        room = (axes.transData.transform((high, top)) - axes.transData.transform((start, top)))[0]
        room *= 72.0 / axes.figure.canvas.figure.dpi
        heights = _heights(axes, 0.5, 0.75, 0.35, 0.15, 0.07)
        if room < _ROOM_UPRIGHT:
            spots = [Spot(x=start, y=y, right=-8, up=0, ha="right") for y in heights]
        else:
            spots = [Spot(x=middle, y=y, right=0, up=0, ha="center") for y in heights]
        upright = _ROOM_UPRIGHT <= room < _ROOM_ACROSS
        labels.place("no ε is certified", spots, color=style.WARN, weight="bold", upright=upright)
    if floor is not None:
        text = f"the noise alone: ε = {rounded_up(floor)}"
        text += "" if narrow else ", given what is known" if given else ", whatever they know"
        spots = [
            Spot(x=low + share * (high - low), y=floor, right=4, up=up, ha=ha, va="bottom" if up > 0 else "top")
            for up in (5.0, -5.0)
            for share, ha in _ALONG
        ]
        labels.place(text, spots, color=style.MUTED)


def _at(declared: float, values: np.ndarray, epsilons: np.ndarray, *, backward: bool) -> float:
    """Return ε where the declared attacker is: that of the next point at which at least as much is known."""
    for value, epsilon in zip(values, epsilons, strict=True):
        if (value <= declared) if backward else (value >= declared):
            return float(epsilon)
    return float(epsilons[-1])


def _scale(axes: Axes, finite: np.ndarray, declared: float, floor: float | None) -> float:
    """Set the scale of ε, and return its upper end."""
    from matplotlib.ticker import FixedFormatter, FixedLocator, NullLocator

    if not finite.size:
        axes.yaxis.set_major_locator(NullLocator())
        axes.set_ylim(0.0, 1.0)
        return 1.0
    marked = [one for one in (declared, floor) if one is not None and math.isfinite(one)]
    most = max([*finite.tolist(), *marked], default=1.0) or 1.0
    least = min((one for one in (*finite.tolist(), *marked) if one > 0.0), default=most)
    reference = declared if math.isfinite(declared) and declared > 0.0 else least
    if most / reference > _LOGARITHMIC_FROM:
        bottom, top = least / 1.6, most * 1.8
        axes.set_yscale("log")
        ticks = [
            factor * 10.0**power
            for power in range(math.floor(math.log10(bottom)), math.ceil(math.log10(top)) + 1)
            for factor in (1, 2, 5)
        ]
        ticks = [one for one in ticks if bottom <= one <= top]
        ticks = ticks[:: math.ceil(len(ticks) / 8)]
        axes.yaxis.set_major_locator(FixedLocator(ticks))
        axes.yaxis.set_major_formatter(FixedFormatter([f"{one:g}" for one in ticks]))
        axes.yaxis.set_minor_locator(NullLocator())
    else:
        bottom, top = 0.0, most * 1.22
        put_ticks(axes.yaxis, 6)
    axes.set_ylim(bottom, top)
    return top


def _heights(axes: Axes, *shares: float) -> list[float]:
    low, high = axes.get_ylim()
    if axes.get_yscale() == "log":
        return [low * (high / low) ** share for share in shares]
    return [low + share * (high - low) for share in shares]
