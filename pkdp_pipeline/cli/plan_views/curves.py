"""Curves: the certified ε against k, and against what the attacker knows, as the columns of a chart."""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass, replace

from pkdp_pipeline.certificates.composed import compose
from pkdp_pipeline.certificates.release_certificate import certify
from pkdp_pipeline.certificates.statement import KnowledgeCurve, knowledge_curves
from pkdp_pipeline.certificates.statement.stronger import are_surely_there, effort, leaves, slowness, threshold_of
from pkdp_pipeline.cli.plan_views.planned import Planned
from pkdp_pipeline.errors import NotCertifiableError
from pkdp_pipeline.model.attacker import AttackerModel
from pkdp_pipeline.model.mechanisms import Mechanism

__all__ = ["Columns", "Curve", "curves", "evenly", "takes_long"]

_POINTS = 24
_POINTS_OF_SEVERAL = 16
_FEWEST = 8
_LONG = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """The certified ε as one number moves.

    Attributes
    ----------
    field : {"k", "known", "p_max", "p_max_between", "unknown"}
    words : str
        It in plain words.
    declared : float
        Where the plan is.
    values : tuple of float
        Increasing.
    epsilons : tuple of float
        The ε certified at each; `math.inf` where there is none. Between two values what holds at the one with the
        larger ε is certified.
    """

    field: str
    words: str
    declared: float
    values: tuple[float, ...]
    epsilons: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """The columns of a curve's chart: their ε, the first and the last value that has one, where the plan is."""

    heights: tuple[float, ...]
    first: float
    last: float
    declared: int


def takes_long(made: Planned) -> bool:
    """Return whether a curve takes seconds; by theorem and size, never by a clock."""
    return _weight(made) > _LONG


def curves(made: Planned) -> tuple[Curve, ...]:
    """Return the curves of the chosen mechanism; none where it holds against anyone at all."""
    choice = made.choice
    if choice.against_anyone:
        return ()
    most = _POINTS if made.question.days == 1 else _POINTS_OF_SEVERAL
    number = max(_FEWEST, most // _weight(made))
    found = []
    k = threshold_of(choice.certificate)
    if k is not None and choice.mechanism.k == k:
        found.append(_against_k(made, k, number))
    moved = knowledge_curves(choice.together, delta=made.question.delta, points=number)
    return (*found, *map(_of_knowledge, moved))


def evenly(curve: Curve, columns: int) -> Columns:
    """Return ε at evenly spaced values, as the columns of a chart.

    Every column shows what is certified at its value: the larger ε of the two values that it lies between. Where
    nothing is certified beyond an end, a last column says so. A probability goes from the declared one upwards.
    """
    finite = [place for place, epsilon in enumerate(curve.epsilons) if epsilon < math.inf]
    first, last = finite[0], finite[-1]
    low, high = curve.values[first], curve.values[last]
    if curve.field.startswith("p_max"):
        low = max(low, min(high, curve.declared))
    before, after = first > 0, last < len(curve.values) - 1
    room = columns - before - after
    whole = curve.field in ("k", "known", "unknown")
    number = min(room, round(high - low) + 1) if whole else room
    step = (high - low) / max(1, number - 1)
    if high <= low:
        number, place = 1, 0
    else:
        place = min(number - 1, max(0, round((curve.declared - low) / step)))
    # The declared one is shown itself, not its neighbourhood.
    heights = [_at(curve, curve.declared if column == place else low + column * step) for column in range(number)]
    return Columns(
        heights=(*([math.inf] * before), *heights, *([math.inf] * after)),
        first=low,
        last=high,
        declared=place + before,
    )


def _at(curve: Curve, value: float) -> float:
    right = min(bisect_left(curve.values, value * (1.0 - 1e-12)), len(curve.values) - 1)
    left = right if abs(curve.values[right] - value) <= 1e-9 * abs(value) else max(0, right - 1)
    return max(curve.epsilons[left], curve.epsilons[right])


def _against_k(made: Planned, k: int, number: int) -> Curve:
    controlled = _controlled(made.question.attacker)
    low, high = max(2, controlled + (k - controlled) // 2), controlled + 2 * (k - controlled)
    values = sorted({k, *(round(low + (high - low) * step / (number - 1)) for step in range(number))})
    found = [_epsilon(made, replace(made.choice.mechanism, k=value)) for value in values]
    # A larger k hides more; raising a certified number keeps it true.
    for place in range(len(found) - 2, -1, -1):
        found[place] = max(found[place], found[place + 1])
    return Curve(
        field="k",
        words="the threshold k",
        declared=float(k),
        values=tuple(map(float, values)),
        epsilons=tuple(found),
    )


def _epsilon(made: Planned, mechanism: Mechanism) -> float:
    question = made.question
    try:
        one = certify(mechanism, question.attacker, protects=question.protects)
    except NotCertifiableError:
        return math.inf
    if question.days == 1 and not question.evidence:
        return one.epsilon(question.delta)
    return compose([(one, question.days)], question.evidence).epsilon(question.delta)


def _controlled(attacker: AttackerModel) -> int:
    return attacker.known if attacker.influence == "active" else 0


def _of_knowledge(curve: KnowledgeCurve) -> Curve:
    return Curve(
        field=curve.field,
        words=curve.words,
        declared=curve.declared,
        values=curve.values,
        epsilons=curve.epsilons,
    )


def _weight(made: Planned) -> int:
    together = made.choice.together
    found = leaves(together)
    surely = are_surely_there(found)
    averaged = 1 if surely else max((slowness(leaf, surely=surely) for leaf in found), default=1)
    several = 1 if made.question.days == 1 else 2 if surely and made.question.protects == "presence" else 4
    return max(effort(together), averaged) * several
