"""Guarantee: δ against ε, what is certified and what some declared attacker attains."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from pkdp_pipeline.display.figures import style
from pkdp_pipeline.display.figures.frame import DASHED, dress, is_narrow, put_ticks
from pkdp_pipeline.display.figures.labels import Labels, Spot
from pkdp_pipeline.model.wording import rounded_up

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

    from pkdp_pipeline.certificates.statement import GuaranteeCurve

__all__ = ["above", "draw_guarantee", "finer"]

_DEEPEST = 1e-12
_TOP = 1.8
_STEPS = 240  # are drawn at least


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
    from matplotlib.ticker import FixedFormatter, FixedLocator, NullLocator

    epsilons = np.asarray(curve.epsilons, dtype=float)
    certified = np.asarray(curve.certified, dtype=float)
    attained = np.asarray(curve.attained, dtype=float)
    narrow = is_narrow(axes)
    dress(
        axes,
        x="ε: how far probabilities may differ" + ("" if narrow else ", a factor of at most e^ε"),
        y="δ at each ε, at most (log scale)",
    )
    bottom = _bottom(curve)
    axes.set_yscale("log", nonpositive="clip")
    axes.set(xlim=(0.0, float(epsilons[-1])), ylim=(bottom, _TOP))
    decades = _decades(bottom, most=5 if narrow else 7)
    axes.yaxis.set_major_locator(FixedLocator([10.0**one for one in decades]))
    axes.yaxis.set_major_formatter(FixedFormatter([rounded_up(float(f"1e{one}")) for one in decades]))
    axes.yaxis.set_minor_locator(NullLocator())
    put_ticks(axes.xaxis, 5 if narrow else 8)

    # Where δ is 0 a logarithmic scale has no place: the line leaves the picture at the bottom.
    hidden = bottom / 100.0
    fine = finer(epsilons)
    uneven = np.zeros(len(epsilons) - 1, dtype=bool)
    worst = None if curve.worst_case is None else np.asarray(curve.worst_case, dtype=float)
    noise = None
    if worst is not None:
        noise = np.maximum(above(epsilons, worst, uneven), hidden)
        taken_over = certified >= worst
        uneven = taken_over[1:] != taken_over[:-1]
    upper = np.maximum(above(epsilons, certified, uneven), hidden)
    lower = np.maximum(attained, hidden)
    is_attained = bool((attained > 0.0).any())
    if is_attained:
        under = np.exp(np.interp(fine, epsilons, np.log(lower)))
        axes.fill_between(
            fine, under, upper, step="post", color=style.ACCENT_SOFT, linewidth=0, zorder=2, label="between"
        )
        axes.plot(epsilons, lower, color=style.ACCENT, linewidth=1.0, zorder=3, label="attained")
    if noise is not None:
        axes.plot(
            fine,
            noise,
            color=style.MUTED,
            linewidth=1.6,
            linestyle=DASHED,
            drawstyle="steps-post",
            snap=False,
            zorder=4,
            label="worst case",
        )
    axes.plot(
        fine, upper, color=style.ACCENT, linewidth=2.4, drawstyle="steps-post", snap=False, zorder=5, label="certified"
    )

    labels = Labels(axes)
    labels.keep_clear(fine, np.maximum(upper, bottom))
    if is_attained:
        labels.keep_clear(epsilons, np.maximum(lower, bottom))
    if noise is not None:
        labels.keep_clear(fine, np.maximum(noise, bottom))
    if curve.mark is not None and curve.mark[1] > 0.0:
        epsilon, delta = curve.mark
        text = f"ε = {rounded_up(epsilon)} at δ = {rounded_up(delta)}"
        labels.mark(epsilon, delta, text, guide=[(0.0, delta), (epsilon, delta), (epsilon, bottom)])
    if (certified >= 1.0).all():
        labels.place(
            "nothing is certified: δ = 1",
            [Spot(x=0.0, y=1.0, right=8, up=-10, va="top")],
            color=style.WARN,
            weight="bold",
        )
        return
    labels.place(
        "certified" if narrow else "certified: no declared attacker exceeds it",
        _beside(epsilons, certified, bottom),
        color=style.ACCENT,
        weight="bold",
    )
    if is_attained:
        labels.place(
            "attained" if narrow else "attained by an attack",
            _beside(epsilons, attained, bottom, under=True),
            color=style.ACCENT,
        )
    if worst is not None and (worst < 1.0).any():
        whom = "given what is known" if given else "against anyone" if narrow else "against anyone at all"
        text = f"noise alone, {whom}" if narrow else f"the noise alone, {whom}"
        labels.place(text, _beside(epsilons, worst, bottom), color=style.MUTED)


def _bottom(curve: GuaranteeCurve) -> float:
    """Return the lower end of the scale: three decades below the mark, or a decade below the curve."""
    if curve.mark is not None and curve.mark[1] > 0.0:
        return max(10.0 ** (math.floor(math.log10(curve.mark[1])) - 3), _DEEPEST * 1e-200)
    least = min((value for value in curve.certified if value > 0.0), default=1.0)
    return float(max(10.0 ** (math.floor(math.log10(least)) - 1), _DEEPEST))


def _decades(bottom: float, *, most: int) -> list[int]:
    last = round(math.log10(bottom))
    step = max(1, math.ceil(-last / (most - 1)))
    return list(range(0, last - 1, -step))


def _beside(epsilons: NDArray[Any], deltas: NDArray[Any], bottom: float, *, under: bool = False) -> list[Spot]:
    """Return spots along a curve that falls to the right: to the right of it, or under it to the left."""
    shown = [index for index, delta in enumerate(deltas) if bottom * 3.0 < delta]
    if not shown:
        return [Spot(x=float(epsilons[0]), y=bottom, right=8, up=8, va="bottom")]
    shares = (0.45, 0.35, 0.55, 0.25, 0.65, 0.15, 0.75, 0.85, 0.05, 0.95)
    right, left = [], []
    for gap in (7.0, 13.0):
        for share in shares:
            index = shown[min(len(shown) - 1, int(share * len(shown)))]
            x, y = float(epsilons[index]), float(deltas[index])
            right.append(Spot(x=x, y=y, right=gap, up=gap, va="bottom"))
            left.append(Spot(x=x, y=y, right=-gap, up=-gap, ha="right", va="top"))
    edge = [
        Spot(x=0.0, y=max(float(deltas[shown[0]]), bottom), right=4, up=-down, va="top")
        for down in (12.0, 26.0, 40.0, 54.0, 70.0, 88.0, 106.0, 124.0)
    ]
    return [*left, *edge] if under else [*right, *left, *edge]


def finer(epsilons: NDArray[Any]) -> NDArray[Any]:
    """Return the ε with more between each two."""
    parts = _parts(epsilons)
    shares = np.arange(parts) / parts
    inner = epsilons[:-1, None] + shares * np.diff(epsilons)[:, None]
    return np.append(inner.ravel(), epsilons[-1])


def above(epsilons: NDArray[Any], deltas: NDArray[Any], flat: NDArray[Any]) -> NDArray[Any]:
    """Return values at `finer`, each not below δ from its ε up to the next one.

    A δ(ε) is a convex function of e^ε that never rises, so it lies below the chord of two of its points.

    Parameters
    ----------
    epsilons, deltas : array
        Points of a δ(ε).
    flat : array of bool
        For each step between two points, whether what is certified there need not be convex, as where one bound
        takes over from another. The value on the left is kept there.
    """
    place, share = _shares(epsilons)
    high, low = deltas[place], deltas[place + 1]
    chord = np.where(flat[place], high, high - (high - low) * share)
    # Up by more than the rounding of this line, and not above the left end, which is enough.
    return np.append(np.minimum(chord * (1.0 + 1e-12), high), deltas[-1])


def _shares(epsilons: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return for each ε of `finer` but the last its step, and how far along it is, measured in e^ε."""
    place = np.repeat(np.arange(len(epsilons) - 1), _parts(epsilons))
    along = finer(epsilons)[:-1] - epsilons[place]
    return place, np.expm1(along) / np.expm1(np.diff(epsilons)[place])


def _parts(epsilons: NDArray[Any]) -> int:
    return -(-_STEPS // (len(epsilons) - 1))
