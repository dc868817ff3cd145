"""A k-anonymous histogram, as printed: Theorem 5 of the paper, and its last step done right."""

from __future__ import annotations

import math

from pkdp_pipeline.theory.printed.counting import theorem_3_closed_form_delta, theorem_3_condition
from pkdp_pipeline.theory.printed.thresholding import theorem_4

__all__ = ["theorem_5", "theorem_5_chained", "theorem_5_presence"]


def theorem_5_presence(epsilon: float, n: int, least: float, threshold: int, *, numeric: bool = False) -> float:
    """Return the δ of Theorem 5's first step at `epsilon`: the target in a cell, or absent.

    The larger of Theorem 4's δ (cells that everybody is in with probability λ at most) and Theorem 3's (cells, and
    absence, that everybody is in with probability λ at least).

    **Sound and loose** with Theorem 3's closed form. **Wrong** with its numeric condition, as printed.

    Parameters
    ----------
    epsilon : float
    n : int
        Records, the target's included.
    least : float
        λ.
    threshold : int
        T: a cell is published when its count is above T, so T is one less than our k.
    numeric : bool
        Whether Theorem 3 stands as its numeric condition.
    """
    rare, thresholded = theorem_4(n, least, threshold)
    count = theorem_3_condition if numeric else theorem_3_closed_form_delta
    return 1.0 if rare > epsilon else max(thresholded, count(epsilon, n, least))


def theorem_5(epsilon: float, n: int, least: float, threshold: int, *, numeric: bool = False) -> tuple[float, float]:
    """Return the (2ε, 2δ) of Theorem 5 as printed: the target in one cell or in another, by way of absence.

    **Wrong** as a step: two pairs at (ε, δ) that share a law do not make a pair at (2ε, 2δ).
    """
    return 2.0 * epsilon, min(1.0, 2.0 * theorem_5_presence(epsilon, n, least, threshold, numeric=numeric))


def theorem_5_chained(
    epsilon: float, n: int, least: float, threshold: int, *, numeric: bool = False
) -> tuple[float, float]:
    """Return ``(2ε, (1 + e^ε)δ)``, what the first step of Theorem 5 does give.

    **Sound and loose** with Theorem 3's closed form, wrong with its numeric condition.
    """
    delta = theorem_5_presence(epsilon, n, least, threshold, numeric=numeric)
    return 2.0 * epsilon, min(1.0, (1.0 + math.exp(epsilon)) * delta)
