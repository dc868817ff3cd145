"""What a mechanism publishes about a true count: the laws of its outputs, written from its definition.

The steps, in every cell: count, suppress below `k` (and near the whole population), add noise, suppress below
`release_threshold`. A suppressed cell looks the same whatever the reason, and like a cell nobody is in. Nothing here
uses `pkdp_pipeline.theorems`: what is enumerated has to be independent of what is certified.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pkdp_pipeline.assurance.attacks.sums import Numbers
from pkdp_pipeline.model.mechanisms import Count, Mechanism

__all__ = ["Cell", "cell_of", "noisy_kernel", "noisy_outputs", "outputs"]

SUPPRESSED = None
"""The one output of a cell that is not published."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """The steps that act on one cell.

    Parameters
    ----------
    least, most : int
        Counts outside this range are suppressed before the noise; `most` is None where there is no upper end.
    noise : float, optional
        ε0.
    release : int, optional
        Noisy counts below are suppressed.
    """

    least: int
    most: int | None
    noise: float | None
    release: int | None

    def shows(self, count: int) -> bool:
        """Return whether a true count reaches the noise, or the public."""
        return count >= self.least and (self.most is None or count <= self.most)


def cell_of(mechanism: Mechanism, population: int) -> Cell:
    """Return what `mechanism` does to each of its cells; `population` is public and matters to `k_complement` only."""
    most = None
    if isinstance(mechanism, Count) and mechanism.k_complement is not None:
        most = population - mechanism.k_complement
    return Cell(
        least=0 if mechanism.k is None else mechanism.k,
        most=most,
        noise=None if mechanism.noise is None else mechanism.noise.epsilon,
        release=mechanism.release_threshold,
    )


def outputs(cell: Cell, law: Sequence[Any], numbers: Numbers) -> dict[Hashable, Any]:
    """Return the law of what is published, without noise, when the true count has the law `law` (from 0 on)."""
    shown: dict[Hashable, Any] = {SUPPRESSED: numbers.of(0)}
    for count, weight in enumerate(law):
        if cell.shows(count):
            shown[count] = weight
        else:
            shown[SUPPRESSED] += weight
    return shown


def _edges(cell: Cell, low: int, top: int) -> tuple[int, int, int]:
    """Return (last of the low tail, first middle output, first of the high tail) of the noisy outputs.

    True counts that reach the noise lie in ``low … top``. Outputs up to the first number, and from the last one on,
    all have the same ratio of probabilities in any two lives, so each of the two tails can be one output.
    """
    bottom = min(low, top - 1)
    first = bottom + 1 if cell.release is None else max(cell.release, bottom + 1)
    return bottom, first, max(top, first)


def noisy_outputs(
    cell: Cell, law: Sequence[Any], alpha: Any, low: int, top: int, numbers: Numbers
) -> dict[Hashable, Any]:
    """Return the law of what is published with noise, when the true count has the law `law` (from 0 on).

    Parameters
    ----------
    cell : Cell
    law : sequence of numbers
    alpha : ball
        ``e^{-ε0}``.
    low, top : int
        Smallest and largest count that may reach the noise in any law that is compared with this one.
    numbers : Numbers

    Notes
    -----
    ``Σ_x law(x) α^|o - x|`` for all outputs `o` by one recursion from the left and one from the right.
    """
    bottom, first, above = _edges(cell, low, top)
    weights = [law[x] if x < len(law) and cell.shows(x) else numbers.of(0) for x in range(max(0, low), top + 1)]
    offset = max(0, low)
    left, right = list(weights), [numbers.of(0)] * len(weights)
    for at in range(1, len(weights)):
        left[at] = left[at - 1] * alpha + weights[at]
        right[-1 - at] = (right[-at] + weights[-at]) * alpha
    share = (1 - alpha) / (1 + alpha)
    shown: dict[Hashable, Any] = {o: share * (left[o - offset] + right[o - offset]) for o in range(first, above)}
    shown["above"] = left[-1] * alpha ** (above - top) / (1 + alpha)
    if cell.release is None or cell.release <= bottom:
        below = (weights[0] + right[0]) * alpha ** (offset - bottom) / (1 + alpha)
        shown["below"] = below if cell.release is None else below * (1 - alpha ** (bottom - cell.release + 1))
    shown[SUPPRESSED] = 1 - sum(shown.values(), numbers.of(0))
    return shown


def noisy_kernel(cell: Cell, count: int, alpha: Any, low: int, top: int, numbers: Numbers) -> Mapping[Hashable, Any]:
    """Return the law of what is published with noise about one true count; see `noisy_outputs`."""
    if not cell.shows(count):
        return {SUPPRESSED: numbers.of(1)}
    bottom, first, above = _edges(cell, low, top)
    share = (1 - alpha) / (1 + alpha)
    shown: dict[Hashable, Any] = {o: share * alpha ** abs(o - count) for o in range(first, above)}
    shown["above"] = alpha ** (above - count) / (1 + alpha)
    if cell.release is None or cell.release <= bottom:
        below = alpha ** (count - bottom) / (1 + alpha)
        shown["below"] = below if cell.release is None else below * (1 - alpha ** (bottom - cell.release + 1))
    if cell.release is not None:
        gap = cell.release - count
        # P[Z < gap], from the side on which Z is.
        shown[SUPPRESSED] = alpha ** (1 - gap) / (1 + alpha) if gap <= 0 else 1 - alpha**gap / (1 + alpha)
    return shown
