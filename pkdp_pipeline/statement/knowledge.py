"""KnowledgeCurve: the certified ε as the attacker learns more than was declared."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal

from scipy.stats import binom

from pkdp_pipeline.arguments import probability
from pkdp_pipeline.attacker import AttackerModel
from pkdp_pipeline.certificate import Certificate
from pkdp_pipeline.composition.composed import ComposedCertificate
from pkdp_pipeline.release_certificate import ReleaseCertificate
from pkdp_pipeline.statement.effort import SLOW, effort, slowness
from pkdp_pipeline.statement.stronger import (
    THRESHOLDS,
    UNCERTAIN,
    Change,
    Reading,
    again,
    keys_of,
    knows_fewer_unknown,
    knows_more,
    leaves,
    likelier,
    threshold_of,
)
from pkdp_pipeline.statement.words import knowing

__all__ = ["Field", "KnowledgeCurve", "knowledge_curves"]

Field = Literal["known", "p_max", "p_max_between", "unknown"]

_RESTS: dict[Field, tuple[str, ...]] = {
    "known": THRESHOLDS,
    "p_max": ("thresholding", "histogram_presence", "histogram_value"),
    "p_max_between": ("histogram_between",),
    "unknown": UNCERTAIN,
}
"""The theorems whose number a field moves."""

_STEPS = 20
_FEWEST = 5
_SHARES = tuple(Fraction(percent, 100) for percent in (0, 10, 20, 30, 40, 50, 60, 70, 80, 90, 95, 98, 99, 100))
"""How many fewer people are unknown; the first six are those of the what-if table."""

_LEAST_ODDS = Fraction(1, 4)
_MOST_ODDS = Fraction(200)
"""Odds of p_max go from a quarter of the declared ones up to these, and on to certainty."""


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


@dataclass(frozen=True, slots=True)
class _Step:
    """A point of a curve: where it is, and the change of every attacker that leads there; None is no change."""

    value: float
    change: Change | None


def knowledge_curves(certificate: Certificate, *, delta: float = 1e-6) -> tuple[KnowledgeCurve, ...]:
    """Return how the certified ε grows with what the attacker knows, one curve for each field that matters.

    Parameters
    ----------
    certificate : Certificate
    delta : float, default 1e-6
        The δ at which ε is asked for.

    Returns
    -------
    tuple of KnowledgeCurve
        For theorems about thresholds, `known` and `p_max` or `p_max_between`; for counts and options without one,
        `unknown`. None where only noise protects.

    Raises
    ------
    ArgumentError
        If `delta` is not in [0, 1].

    Notes
    -----
    Every point is the ε of a certificate for the moved attacker. Where several releases add up, all attackers
    move in the same way (as many more people, the same factor of the odds, the same share of the unknown), and
    the curve shows the attacker who knows most. A curve is left out where a single total takes seconds: several
    releases with many merely known people, by the rule in `effort`. So is one on which no ε is certified at all.
    """
    target = probability("delta", delta)
    if isinstance(certificate, ComposedCertificate) and certificate.rule == "single":
        return knowledge_curves(certificate.parts[0][0], delta=target)
    if not certificate.has_partial_knowledge:
        return ()
    together = isinstance(certificate, ComposedCertificate)
    is_slow = together and effort(certificate) >= SLOW
    is_slow_together = together and any(slowness(leaf) >= SLOW for leaf in leaves(certificate))
    curves = []
    for field, theorems in _RESTS.items():
        found = tuple(leaf for leaf in leaves(certificate) if any(key in theorems for key in keys_of(leaf)))
        if found and not (field == "known" and is_slow_together) and not is_slow:
            steps, place = _STEPS_OF[field](certificate, found, target)
            curves.append(_curve(certificate, field, _words(field, found), steps, place, target))
    return tuple(curve for curve in curves if min(curve.epsilons) < math.inf)


def _curve(
    certificate: Certificate, field: Field, words: str, steps: list[_Step], place: int, delta: float
) -> KnowledgeCurve:
    """Evaluate the steps, which are in the order of knowledge; the one at `place` is the declared attacker."""
    floor = certificate.worst_case.epsilon(delta)
    epsilons = [certificate.epsilon(delta)] * len(steps)
    # A certificate against an attacker holds against those who know less, and raising one keeps it true.
    for position in range(place - 1, -1, -1):
        epsilons[position] = min(_epsilon(certificate, steps[position], delta), epsilons[position + 1])
    for position in range(place + 1, len(steps)):
        before = epsilons[position - 1]
        # Where only the noise is left, or nothing, more knowledge changes no more.
        epsilons[position] = before if before >= floor else max(_epsilon(certificate, steps[position], delta), before)
    values = [step.value for step in steps]
    if values[0] > values[-1]:
        values, epsilons = values[::-1], epsilons[::-1]
    return KnowledgeCurve(
        field=field,
        words=words,
        declared=steps[place].value,
        values=tuple(values),
        epsilons=tuple(epsilons),
        floor=None if floor == math.inf else floor,
        delta=delta,
    )


def _epsilon(certificate: Certificate, step: _Step, delta: float) -> float:
    assert step.change is not None
    return Reading.of(again(certificate, step.change), delta).epsilon


def _known_steps(
    certificate: Certificate, found: tuple[ReleaseCertificate, ...], delta: float
) -> tuple[list[_Step], int]:
    """Return steps up to where the thresholds hide nothing any more."""
    gaps = [_breaks(leaf, delta) - leaf.attacker.known for leaf in found]
    has_floor = certificate.worst_case.epsilon(delta) < math.inf
    last = max(1, max(gaps) if has_floor else min(gaps))
    first = max(leaf.attacker.known for leaf in found)
    number = max(_FEWEST, _STEPS // max(slowness(leaf) for leaf in found))
    people = sorted({round(last * step / number) for step in range(number + 1)})
    return [_Step(float(first + more), _by(more) if more else None) for more in people], 0


def _by(more: int) -> Change:
    return knows_more(lambda _: more)


def _breaks(leaf: ReleaseCertificate, delta: float) -> int:
    """Return how many people must be known before the threshold hides nothing at `delta`."""
    k, attacker, keys = threshold_of(leaf) or 2, leaf.attacker, keys_of(leaf)
    if attacker.influence == "active" or not any(key in keys for key in THRESHOLDS if key != "histogram_between"):
        return k - 1
    # Of the people who are merely known, each counts with probability p: enough that k - 1 of them may.
    p = 1.0 - (attacker.p_min or 0.0) if keys[0] == "thresholding_complement" else attacker.p_max or 0.0
    if p == 0.0 or delta <= 0.0:
        return k - 1
    most = k - 1
    while most < 1_000_000 and binom.sf(k - 2, most, p) <= delta:
        most = math.ceil(1.05 * most)
    return most


def _sure_steps(field: Literal["p_max", "p_max_between"]) -> Callable[..., tuple[list[_Step], int]]:
    """Return the maker of steps along a probability, evenly in the logarithm of the odds, up to certainty."""

    def steps(certificate: Certificate, found: tuple[ReleaseCertificate, ...], delta: float) -> tuple[list[_Step], int]:
        del delta
        declared = max(getattr(leaf.attacker, field) for leaf in found)
        exact = Fraction(declared)
        factors: list[Fraction | None] = []
        # Two steps for a factor of two of the odds, one where they are slow.
        each = 1 if effort(certificate) > 1 else 2
        if 0 < exact < 1:
            odds = exact / (1 - exact)
            doublings = max(3, math.ceil(math.log2(max(1.0, float(_MOST_ODDS / odds)))))
            halvings = round(-math.log2(_LEAST_ODDS))
            factors = [_power(step, each) for step in range(-halvings * each, doublings * each + 1)]
        else:
            factors = [Fraction(1)]
        taken: dict[float, _Step] = {}
        for factor in [*factors, None]:
            value = likelier(declared, factor)
            if value < _least(field, found):
                continue
            taken.setdefault(value, _Step(value, None if factor == 1 else _by_odds(field, factor)))
        ordered = [taken[value] for value in sorted(taken)]
        return ordered, next(place for place, step in enumerate(ordered) if step.change is None)

    return steps


def _power(step: int, each: int) -> Fraction:
    whole, rest = divmod(step, each)
    return Fraction(2) ** whole * (Fraction(141, 100) if rest else 1)


def _least(field: str, found: tuple[ReleaseCertificate, ...]) -> float:
    """Return the smallest value that contradicts no other field."""
    if field == "p_max_between":
        return 0.5
    return max(leaf.attacker.p_min or 0.0 for leaf in found)


def _by_odds(field: str, factor: Fraction | None) -> Change:
    def change(leaf: ReleaseCertificate) -> AttackerModel:
        value = getattr(leaf.attacker, field)
        if value is None:
            return leaf.attacker
        least = 0.5 if field == "p_max_between" else leaf.attacker.p_min or 0.0
        moved = {field: max(least, likelier(value, factor))}
        return replace(leaf.attacker, **moved)  # type: ignore[arg-type]

    return change


def _unknown_steps(
    certificate: Certificate, found: tuple[ReleaseCertificate, ...], delta: float
) -> tuple[list[_Step], int]:
    """Return steps down to nobody who is unknown."""
    del certificate, delta
    declared = min(leaf.attacker.unknown or 0 for leaf in found)
    taken: dict[int, _Step] = {declared: _Step(float(declared), None)}
    for share in _SHARES[1:]:
        left = math.floor(declared * (1 - share))
        taken.setdefault(left, _Step(float(left), knows_fewer_unknown(share)))
    return list(taken.values()), 0


_STEPS_OF: dict[Field, Callable[..., tuple[list[_Step], int]]] = {
    "known": _known_steps,
    "p_max": _sure_steps("p_max"),
    "p_max_between": _sure_steps("p_max_between"),
    "unknown": _unknown_steps,
}


def _words(field: Field, found: tuple[ReleaseCertificate, ...]) -> str:
    """Return the axis in plain words."""
    if field == "known":
        whom = "whom the attacker controls" if knowing(found) == "controls" else "whose records the attacker knows"
        words = f"people {whom}"
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
