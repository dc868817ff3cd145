"""Smooth: points between the points of a δ(ε), on the safe side of what lies between.

A δ(ε) is a convex function of e^ε that never rises, so it lies below the chord of two of its points. The chord is
drawn as steps, each of which keeps its value on the left.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["above", "finer"]

_STEPS = 240
"""So many steps are drawn at least."""


def finer(epsilons: NDArray[Any]) -> NDArray[Any]:
    """Return the ε with more between each two."""
    parts = _parts(epsilons)
    shares = np.arange(parts) / parts
    inner = epsilons[:-1, None] + shares * np.diff(epsilons)[:, None]
    return np.append(inner.ravel(), epsilons[-1])


def above(epsilons: NDArray[Any], deltas: NDArray[Any], flat: NDArray[Any]) -> NDArray[Any]:
    """Return values at `finer`, each not below δ from its ε up to the next one.

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
