"""KnowledgeCurve: the certified ε as the attacker learns more than was declared."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

from pkdp_pipeline.certificates.certificate import Certificate
from pkdp_pipeline.certificates.composed import ComposedCertificate
from pkdp_pipeline.certificates.release_certificate import ReleaseCertificate
from pkdp_pipeline.certificates.stronger import (
    SLOW,
    Change,
    again,
    are_surely_there,
    effort,
    knows_more,
    leaves,
    likelier,
    rests_on,
    surer,
    threshold_of,
)
from pkdp_pipeline.extras.report.statement.what_if import OF_GROUPS, people_known
from pkdp_pipeline.model.arguments import probability, whole_number
from pkdp_pipeline.model.mechanisms import cells_per_unit
from pkdp_pipeline.theorems import Knowledge

_PERCENT = (10, 20, 30, 40, 50, 58, 65, 71, 76, 80, 84, 87, 90, 92, 94, 96, 98)
"""How many percent fewer people are unknown: the first five are those of the what-if table; ε grows fast at the end."""

_MAX_DOUBLINGS = 24
"""How often the odds are doubled at the most: to odds of millions."""

_FINE_DOUBLINGS = 3
"""This many doublings are near."""

_LARGEST_KNOWN = 1_000_000


class _Step(NamedTuple):
    """A point of a curve: where it is, and the change of every attacker that leads there."""

    value: float
    change: Change


class _Steps(NamedTuple):
    """Where a curve goes from the declared attacker.

    Attributes
    ----------
    weaker : list of _Step
        Attackers who know less, the next one first.
    stronger : iterable of _Step
        Attackers who know more, as far as the curve is interesting.
    end : _Step or None
        The attacker who knows all of it.
    """

    declared: float
    weaker: list[_Step]
    stronger: Iterable[_Step]
    end: _Step | None


_Releases = tuple[ReleaseCertificate, ...]


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

    field: Knowledge
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
    curves = []
    for name, steps in _STEPS.items():
        releases = tuple(leaf for leaf in leaves(certificate) if rests_on(leaf, name))
        cost = effort(certificate, more_known=name == "known")
        if releases and not (together and cost >= SLOW):
            words = _words(name, releases, each=together)
            curves.append(_curve(certificate, target, name, words, steps(releases, max(5, number // cost))))
    return tuple(curve for curve in curves if min(curve.epsilons) < math.inf)


def _known_steps(releases: _Releases, number: int) -> _Steps:
    """Return steps up to where the thresholds hide nothing any more."""
    surely, declared = are_surely_there(releases), max(leaf.attacker.known for leaf in releases)
    gap = max(1, *((threshold_of(leaf) or 2) - 1 - leaf.attacker.known for leaf in releases))
    number = min(gap, number if surely else max(5, number // 2))
    # Of those who are merely known some do not count, so more of them are asked about, where any may count at all.
    most = 0 if surely or all(leaf.attacker.p_max == 0.0 for leaf in releases) else _LARGEST_KNOWN

    def by(more: int) -> _Step:
        return _Step(float(declared + more), knows_more(lambda _: more, surely=surely))

    def stronger() -> Iterator[_Step]:
        more = 0
        for step in range(1, number + 1):
            more = round(gap * step / number)
            yield by(more)
        while more < most:
            more = math.ceil(1.5 * more)
            yield by(more)

    return _Steps(float(declared), [], stronger(), by(gap) if surely else None)


def _sure_steps(name: Knowledge) -> Callable[[_Releases, int], _Steps]:
    """Return the maker of steps along a probability, even in the logarithm of the odds, and then certainty."""

    def steps(releases: _Releases, number: int) -> _Steps:
        declared = max(getattr(leaf.attacker, name) for leaf in releases)
        # The smallest value that contradicts no other field.
        least = 0.5 if name == "p_max_between" else max(leaf.attacker.p_min or 0.0 for leaf in releases)
        each = max(2, number // 5)

        def by(doublings: Fraction) -> _Step:
            factor = Fraction(2.0 ** float(doublings)).limit_denominator(1_000_000)
            return _Step(likelier(declared, factor), surer(factor, name))

        weaker = [step for step in (by(Fraction(-place, 4)) for place in range(1, 9)) if least <= step.value < declared]
        # In half as fine steps where the odds are far from the declared ones.
        places = (*range(1, _FINE_DOUBLINGS * each), *range(_FINE_DOUBLINGS * each, _MAX_DOUBLINGS * each + 1, 2))
        stronger = (by(Fraction(place, each)) for place in places)
        certain = _Step(1.0, surer(None, name))
        return _Steps(declared, weaker, stronger if 0.0 < declared < 1.0 else (), certain if declared < 1.0 else None)

    return steps


def _unknown_steps(releases: _Releases, number: int) -> _Steps:
    """Return steps down to nobody who is unknown."""
    declared = min(leaf.attacker.unknown or 0 for leaf in releases)

    def by(percent: int) -> _Step:
        share = Fraction(percent, 100)
        return _Step(float(math.floor(declared * (1 - share))), knows_more(None, share))

    every = math.ceil(len(_PERCENT) / number)
    return _Steps(float(declared), [], map(by, _PERCENT[::every]), by(100) if declared else None)


_STEPS: dict[Knowledge, Callable[[_Releases, int], _Steps]] = {
    "known": _known_steps,
    "p_max": _sure_steps("p_max"),
    "p_max_between": _sure_steps("p_max_between"),
    "unknown": _unknown_steps,
}


def _curve(certificate: Certificate, delta: float, field: Knowledge, words: str, steps: _Steps) -> KnowledgeCurve:
    """Evaluate a curve's steps, up to where nothing but what noise gives is left, if that."""
    declared, floor = certificate.epsilon(delta), certificate.worst_case.epsilon(delta)

    def epsilon(step: _Step) -> float:
        moved = again(certificate, step.change)
        return math.inf if moved is None else moved.epsilon(delta)

    points = {steps.declared: declared}
    # A certificate against an attacker holds against those who know less, and raising one keeps it true.
    for step in steps.weaker:
        points.setdefault(step.value, min(epsilon(step), *points.values()))
    most = declared
    for step in steps.stronger:
        if most >= floor:
            break
        most = max(most, epsilon(step))
        points.setdefault(step.value, most)
    if steps.end is not None:
        points.setdefault(steps.end.value, most if most >= floor else max(most, epsilon(steps.end)))
    ordered = sorted(points)
    return KnowledgeCurve(
        field=field,
        words=words,
        declared=steps.declared,
        values=tuple(ordered),
        epsilons=tuple(points[value] for value in ordered),
        floor=None if floor == math.inf else floor,
        delta=delta,
    )


def _words(field: Knowledge, releases: tuple[ReleaseCertificate, ...], *, each: bool) -> str:
    """Return the axis in plain words."""
    if field == "known":
        words = people_known(releases, each=each)
    elif field == "unknown":
        words = "people whose records the attacker does not know"
    elif field == "p_max_between":
        words = "how sure the attacker can be which of two cells a person is in"
    elif any(OF_GROUPS & set(leaf.partial_theorems) for leaf in releases):
        words = "how sure the attacker can be that a person is in the group"
    elif all(cells_per_unit(leaf.mechanism) > 1 for leaf in releases):
        words = "how sure the attacker can be of a person's cell, told all her other cells"
    else:
        words = "how sure the attacker can be of a person's cell, told that it is that or absent"
    if len({getattr(leaf.attacker, field) for leaf in releases}) > 1:
        words += f" ({'fewest' if field == 'unknown' else 'most'} of all releases)"
    return words
