"""All choices of directions at once, where they are too many to be looked at one by one.

With transforms `R` and `L` of each release in its two orders, the total of a choice is ``Π R · exp(-2 Σ Δ)``, where
``Δ = log(R/L)/2`` and the sum is over the releases in the order `left`. All Δ are nearly multiples ``a U`` of their sum `U`, with
``a ≥ 0`` that add up to 1. So a choice is nearly ``Π R · exp(-(1-x)U)`` with one number `x` between -1 and 1, and what is
left is bounded. The proof is in `docs/numerics.md`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pkdp_pipeline.theorems.rounding import UNIT, Array

Complex = NDArray[np.complex128]

_POINTS = 33
"""Values of x that are looked at."""


def cover(right: Complex, left: Complex, times: Array, product: Complex, sizes: Array) -> tuple[Complex, Array]:
    """Return transforms, and how far a choice may be from one of two neighbours, at each frequency.

    Parameters
    ----------
    right, left : arrays, shape (releases, frequencies)
    times : array, shape (releases,)
        How many releases are alike.
    product : array, shape (frequencies,)
        The product of `right`.
    sizes : array, shape (frequencies,)
        At or above the magnitude of the total of every choice.

    Returns
    -------
    rows : array, shape (n, frequencies)
    apart : array, shape (n - 1, frequencies)

    Notes
    -----
    *Guarantee*: for every choice there is an `i` such that for all weights `w` the sum ``Re Σ w · total`` is at most the
    larger one of ``Re Σ w · rows[i]`` and ``Re Σ w · rows[i+1]`` plus ``Σ |w| · apart[i]``. *Rounding*: up; that of `rows`
    is charged with the product.
    """
    counts = times[:, None]
    with np.errstate(all="ignore"):
        half = 0.5 * np.log(right / left)
    lost = ~np.isfinite(half).all(axis=0)
    half[:, lost] = 0.0
    together = (counts * half).sum(axis=0)
    shares = np.maximum(0.0, (half * np.conj(together) * sizes).real.sum(axis=1))
    whole = float((times * shares).sum())
    shares = shares / whole if whole > 0.0 else np.full(len(times), 1.0 / times.sum())
    rest = np.abs(half - shares[:, None] * together) + 8.0 * UNIT * (np.abs(half) + np.abs(together))
    with np.errstate(divide="ignore"):
        steepest = (rest / shares[:, None]).max(axis=0)
    most = (counts * rest).sum(axis=0)
    places = np.linspace(-1.0, 1.0, _POINTS)
    rows: Complex = product * np.exp((places - 1.0)[:, None] * together)
    larger = np.maximum(np.abs(rows[1:]), np.abs(rows[:-1]))
    gap = 2.0 / (_POINTS - 1)
    away = 1.0 - np.minimum(np.abs(places[1:]), np.abs(places[:-1]))
    left_over = np.minimum(np.minimum(away[:, None] * steepest, most), 40.0)
    apart = larger * (gap * gap / 8.0 * np.abs(together) ** 2 + np.expm1(left_over)) * (1.0 + 1e-6)
    return rows, np.where(lost | (left_over >= 40.0), 2.0 * sizes, np.minimum(apart, 2.0 * sizes))
