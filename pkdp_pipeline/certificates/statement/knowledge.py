"""KnowledgeCurve: the certified ε as the attacker learns more than was declared."""

from __future__ import annotations

import math
from dataclasses import dataclass

from pkdp_pipeline.certificates.certificate import Certificate
from pkdp_pipeline.certificates.composed import ComposedCertificate
from pkdp_pipeline.certificates.release_certificate import ReleaseCertificate
from pkdp_pipeline.certificates.statement.effort import SLOW, effort, slowness
from pkdp_pipeline.certificates.statement.steps import RESTS, STEPS_OF, Evaluated, Field, Step
from pkdp_pipeline.certificates.statement.stronger import are_surely_there, keys_of, leaves
from pkdp_pipeline.certificates.statement.words import people_known
from pkdp_pipeline.model.arguments import probability, whole_number

__all__ = ["Field", "KnowledgeCurve", "knowledge_curves"]


@dataclass(frozen=True, slots=True, kw_only=True)
class KnowledgeCurve:
    """The certified ε at one δ as one field of the attacker moves.

    Attributes
    ----------
    field : {"known", "p_max", "p_max_between", "unknown"}
        The attacker's field that is moved.
    words : str
        It in plain words, as an axis is named.
    declared : float
        Where the declared attacker is.
    values : tuple of float
        Increasing; `declared` is one of them.
    epsilons : tuple of float
        The ε certified against each; `math.inf` where there is none. More knowledge never lowers it.
    floor : float or None
        The ε of the noise alone, which holds whatever the attacker knows; None where there is none.
    delta : float

    Notes
    -----
    Between two points, what holds where more is known is certified.
    """

    field: Field
    words: str
    declared: float
    values: tuple[float, ...]
    epsilons: tuple[float, ...]
    floor: float | None
    delta: float


def knowledge_curves(certificate: Certificate, *, delta: float = 1e-6, points: int = 60) -> tuple[KnowledgeCurve, ...]:
    """Return how the certified ε grows with what the attacker knows, one curve for each field that matters.

    Parameters
    ----------
    certificate : Certificate
    delta : float, default 1e-6
        The δ at which ε is asked for.
    points : int, default 60
        How many a curve has, roughly; fewer where each takes long. At least 8.

    Returns
    -------
    tuple of KnowledgeCurve
        For theorems about thresholds, `known` and `p_max` or `p_max_between`; for counts and options without one,
        `unknown`. None where only noise protects.

    Raises
    ------
    ArgumentError
        If `delta` is not in [0, 1], or `points` is too small.

    Notes
    -----
    Every point is the ε of a certificate for the moved attacker. Where several releases add up, all attackers
    move in the same way (as many more people, the same factor of the odds, the same share of the unknown), and
    the curve shows the attacker who knows most. A curve is left out where a single total takes seconds: several
    releases with many merely known people, by the rule in `effort`. So is one on which no ε is certified at all.
    """
    target, number = probability("delta", delta), whole_number("points", points, least=8)
    if isinstance(certificate, ComposedCertificate) and certificate.rule == "single":
        return knowledge_curves(certificate.parts[0][0], delta=target, points=number)
    if not certificate.has_partial_knowledge:
        return ()
    together = isinstance(certificate, ComposedCertificate)
    if together and effort(certificate) >= SLOW:
        return ()
    evaluated = Evaluated.of(certificate, target, number)
    curves = []
    for field, theorems in RESTS.items():
        found = tuple(leaf for leaf in leaves(certificate) if any(key in theorems for key in keys_of(leaf)))
        if found and not (field == "known" and together and _is_slow(found)):
            steps, place = STEPS_OF[field](evaluated, found)
            curves.append(_curve(evaluated, field, _words(field, found, each=together), steps, place))
    return tuple(curve for curve in curves if min(curve.epsilons) < math.inf)


def _is_slow(found: tuple[ReleaseCertificate, ...]) -> bool:
    surely = are_surely_there(found)
    return any(slowness(leaf, surely=surely) >= SLOW for leaf in found)


def _curve(evaluated: Evaluated, field: Field, words: str, steps: list[Step], place: int) -> KnowledgeCurve:
    """Evaluate the steps, which are in the order of knowledge; the one at `place` is the declared attacker."""
    floor = evaluated.floor
    epsilons = [evaluated.declared] * len(steps)
    # A certificate against an attacker holds against those who know less, and raising one keeps it true.
    for position in range(place - 1, -1, -1):
        epsilons[position] = min(evaluated.epsilon(steps[position]), epsilons[position + 1])
    last = place
    # Where only the noise is left, or nothing, more knowledge changes no more: the curve goes on to its end.
    while last < len(steps) - 1 and epsilons[last] < floor:
        last += 1
        epsilons[last] = max(evaluated.epsilon(steps[last], epsilons[last - 1]), epsilons[last - 1])
    values = [step.value for step in (*steps[: last + 1], *steps[last + 1 :][-1:])]
    shown = [*epsilons[: last + 1], *([epsilons[last]] if last < len(steps) - 1 else [])]
    if values[0] > values[-1]:
        values, shown = values[::-1], shown[::-1]
    return KnowledgeCurve(
        field=field,
        words=words,
        declared=steps[place].value,
        values=tuple(values),
        epsilons=tuple(shown),
        floor=None if floor == math.inf else floor,
        delta=evaluated.delta,
    )


def _words(field: Field, found: tuple[ReleaseCertificate, ...], *, each: bool) -> str:
    """Return the axis in plain words."""
    if field == "known":
        words = people_known(found, each=each)
    elif field == "unknown":
        words = "people whose records the attacker does not know"
    elif field == "p_max_between":
        words = "how sure the attacker can be which of two cells a person is in"
    elif any("thresholding" in keys_of(leaf) for leaf in found):
        words = "how sure the attacker can be that a person is in the group"
    else:
        words = "how sure the attacker can be of a person's cell, told that it is that or absent"
    if len({getattr(leaf.attacker, field) for leaf in found}) > 1:
        words += f" ({'fewest' if field == 'unknown' else 'most'} of all releases)"
    return words
