"""Big world: what many studies tell about somebody who took part in few of them."""

from __future__ import annotations

from fractions import Fraction

from pkdp_pipeline.composition.basic_sum import basic_sum
from pkdp_pipeline.model.arguments import whole_number
from pkdp_pipeline.theory.bounded_leakage.composing import advanced_composition, basic_composition
from pkdp_pipeline.theory.bounded_leakage.growth import float_above
from pkdp_pipeline.theory.bounded_leakage.guarantee_pair import read_guarantee

__all__ = ["big_world"]


def big_world(
    study: tuple[float, float],
    participation: int,
    *,
    studies: int | None = None,
    absent_throughout: bool = False,
    slack: float | None = None,
) -> tuple[float, float]:
    """Return what all studies together promise a person, given that she took part in at most so many (Theorem 17).

    Parameters
    ----------
    study : (float, float)
        (ε, δ) of every study, when one participant's data change, and when she is left out.
    participation : int
        t, the leaked value: she took part in at most t of the studies; at least 0.
    studies : int, optional
        How many studies there were, if that is known.
    absent_throughout : bool
        The two lives that are compared: any two, or, if true, one and a life in which she took part in no study.
    slack : float, optional
        δ′ in (0, 1] to compose as in `advanced_composition`; without it ε and δ are added up.

    Returns
    -------
    epsilon, delta : float
        What s releases promise together, s = 2t, or t if `absent_throughout`, and never more than `studies`: ``s ε``
        and ``1 - (1 - δ)^s``, at most ``s δ``; ``(0.0, 0.0)`` for t = 0.

    Raises
    ------
    ArgumentError
        If an argument is out of range.

    Notes
    -----
    Who else takes part in which study must not depend on her data nor on which studies she is in; her own
    participation may depend on her data in any way. Every study uses fresh randomness.

    *Guarantee*: given the leaked t, all outputs together in two of her lives are (ε, δ)-close. *Rounding*: up.
    *Source*: `docs/bounded_leakage.md`, "Big world".
    """
    one = read_guarantee("study", study)
    differing = whole_number("participation", participation, least=0) * (1 if absent_throughout else 2)
    if studies is not None:
        differing = min(differing, whole_number("studies", studies, least=1))
    if differing == 0:
        return 0.0, 0.0
    if slack is not None:
        return advanced_composition(one, differing, slack)
    return basic_composition([one], [differing])


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
