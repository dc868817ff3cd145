"""Guarantee: δ against ε, what is certified and what some declared attacker attains."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from pkdp_pipeline.display.figures import style
from pkdp_pipeline.display.figures.frame import (
    CERTIFIED,
    NOISE,
    Labels,
    Spot,
    dress,
    is_narrow,
    noise_words,
    put_ticks,
)
from pkdp_pipeline.model.wording import rounded_up

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

    from pkdp_pipeline.certificates.statement import GuaranteeCurve

__all__ = ["above", "draw_guarantee"]

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
    axes.set_yticks([10.0**one for one in decades], [rounded_up(float(f"1e{one}")) for one in decades])
    axes.minorticks_off()
    axes.set(xlim=(0.0, float(epsilons[-1])), ylim=(bottom, _TOP))
    put_ticks(axes.xaxis, 5 if narrow else 8)

    # Where δ is 0 a logarithmic scale has no place: the line leaves the picture at the bottom.
    hidden = bottom / 100.0
    labels = Labels(axes)
    uneven = np.zeros(len(epsilons) - 1, dtype=bool)
    worst = None if curve.worst_case is None else np.asarray(curve.worst_case)
    if worst is not None:
        fine, noise = above(epsilons, worst, uneven)
        noise = np.maximum(noise, hidden)
        uneven = np.diff(certified >= worst)
        axes.plot(fine, noise, **NOISE, drawstyle="steps-post", snap=False, label="worst case")
        labels.keep_clear(fine, np.maximum(noise, bottom))
    fine, upper = above(epsilons, certified, uneven)
    upper = np.maximum(upper, hidden)
    axes.plot(fine, upper, **CERTIFIED, drawstyle="steps-post", snap=False, label="certified")
    labels.keep_clear(fine, np.maximum(upper, bottom))
    is_attained = bool((attained > 0.0).any())
    if is_attained:
        lower = np.maximum(attained, hidden)
        under = np.exp(np.interp(fine, epsilons, np.log(lower)))
        axes.fill_between(
            fine, under, upper, step="post", color=style.ACCENT_SOFT, linewidth=0, zorder=2, label="between"
        )
        axes.plot(epsilons, lower, color=style.ACCENT, linewidth=1.0, zorder=3, label="attained")
        labels.keep_clear(epsilons, np.maximum(lower, bottom))

    if curve.mark is not None and curve.mark[1] > 0.0:
        epsilon, delta = curve.mark
        text = f"ε = {rounded_up(epsilon)} at δ = {rounded_up(delta)}"
        labels.mark(epsilon, delta, text, guide=[(0.0, delta), (epsilon, delta), (epsilon, bottom)])
    if (certified >= 1.0).all():
        labels.place("nothing is certified: δ = 1", [(0.0, 1.0, 8, -10)], color=style.WARN, weight="bold")
        return
    text = "certified" if narrow else "certified: no declared attacker exceeds it"
    labels.place(text, _beside(epsilons, certified, bottom), color=style.ACCENT, weight="bold")
    if is_attained:
        text = "attained" if narrow else "attained by an attack"
        labels.place(text, _beside(epsilons, attained, bottom, under=True), color=style.ACCENT)
    if worst is not None and (worst < 1.0).any():
        labels.place(noise_words(narrow=narrow, given=given), _beside(epsilons, worst, bottom), color=style.MUTED)


def _bottom(curve: GuaranteeCurve) -> float:
    """Return the lower end of the scale: three decades below the mark, or a decade below the curve."""
    if curve.mark is not None and curve.mark[1] > 0.0:
        return max(10.0 ** (math.floor(math.log10(curve.mark[1])) - 3), _DEEPEST * 1e-200)
    least = min((value for value in curve.certified if value > 0.0), default=1.0)
    return float(max(10.0 ** (math.floor(math.log10(least)) - 1), _DEEPEST))


def _beside(epsilons: NDArray[Any], deltas: NDArray[Any], bottom: float, *, under: bool = False) -> list[Spot]:
    """Return spots along a curve that falls to the right: to the right of it, or under it to the left."""
    shown = [(float(x), float(y)) for x, y in zip(epsilons, deltas, strict=True) if y > bottom * 3.0]
    if not shown:
        return [(float(epsilons[0]), bottom, 8, 8)]
    shares = (0.45, 0.35, 0.55, 0.25, 0.65, 0.15, 0.75, 0.85, 0.05, 0.95)
    near = [(*shown[int(share * len(shown))], gap, gap) for gap in (7.0, 13.0) for share in shares]
    left = [(x, y, -right, -up) for x, y, right, up in near]
    edge = [(0.0, shown[0][1], 4.0, -down) for down in (12.0, 26.0, 40.0, 54.0, 70.0, 88.0, 106.0, 124.0)]
    return [*([] if under else near), *left, *edge]


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
    parts = -(-_STEPS // (len(epsilons) - 1))
    start, step = epsilons[:-1, None], np.diff(epsilons)[:, None]
    high, low = deltas[:-1, None], deltas[1:, None]
    fine = start + np.arange(parts) / parts * step
    share = np.expm1(fine - start) / np.expm1(step)  # how far along, measured in e^ε
    chord = np.where(flat[:, None], high, high - (high - low) * share)
    # Up by more than the rounding of this line, and not above the left end, which is enough.
    values = np.minimum(chord * (1.0 + 1e-12), high)
    return np.append(fine.ravel(), epsilons[-1]), np.append(values.ravel(), deltas[-1])
