"""Big world: what many studies tell about somebody who took part in few of them."""

from __future__ import annotations

from pkdp_pipeline.model.arguments import whole_number
from pkdp_pipeline.theory.bounded_leakage.composing import advanced_composition, basic_composition
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
