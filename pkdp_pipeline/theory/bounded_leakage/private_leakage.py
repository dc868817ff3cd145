"""A leakage that is differentially private itself: the promise no longer depends on what leaks."""

from __future__ import annotations

from fractions import Fraction

from pkdp_pipeline.composition.basic_sum import basic_sum
from pkdp_pipeline.theory.bounded_leakage.growth import float_above
from pkdp_pipeline.theory.bounded_leakage.guarantee_pair import read_guarantee

__all__ = ["beside_private_leakage"]


def beside_private_leakage(given: tuple[float, float], leakage: tuple[float, float]) -> tuple[float, float]:
    """Return the differential privacy of an output together with the value that leaks beside it (Theorem 4).

    Parameters
    ----------
    given : (float, float)
        (ε1, δ1): what the mechanism promises given the leakage; see `given_leakage`.
    leakage : (float, float)
        (ε2, δ2): the differential privacy of the leakage.

    Returns
    -------
    epsilon, delta : float
        ``ε1 + ε2`` and ``δ1 + δ2 - δ1 δ2``.

    Raises
    ------
    ArgumentError
        If an argument is not such a pair.

    Notes
    -----
    The theorem is printed for δ2 = 0 and the output alone; a remark adds ``(1 + n) δ2`` where n values can leak. What
    is proved here holds for any number of values, and for output and leaked value together.

    *Guarantee*: the pair (output, leaked value), and so either of them, is (ε, δ)-differentially private,
    unconditionally. No smaller δ holds at this ε for all mechanisms and leakages. *Rounding*: up, from exact numbers.
    *Source*: `docs/bounded_leakage.md`, "A leakage that is private itself".
    """
    (first, delta), (second, more) = read_guarantee("given", given), read_guarantee("leakage", leakage)
    epsilon = basic_sum([(first, 0.0), (second, 0.0)])[0]
    return epsilon, float_above(1 - (1 - Fraction(delta)) * (1 - Fraction(more)))
