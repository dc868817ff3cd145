"""Statement: a certificate laid out as values that pages, notebooks and drawings show.

KnowledgeCurve: the certified ε as the attacker learns more than was declared.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, NamedTuple, Self

import numpy as np

from pkdp_pipeline.certificates.certificate import Certificate
from pkdp_pipeline.certificates.composed import ComposedCertificate
from pkdp_pipeline.certificates.release_certificate import ReleaseCertificate
from pkdp_pipeline.certificates.sentences import OfSome, implies, known_exactly, named_pair
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
from pkdp_pipeline.extras.report import environment
from pkdp_pipeline.extras.report.statement.what_if import OF_GROUPS, Scenario, people_known, what_if
from pkdp_pipeline.model.mechanisms import Protects, cells_per_unit
from pkdp_pipeline.model.wording import Protection, probability, rounded_up, whole_number
from pkdp_pipeline.theorems.bound import Knowledge
from pkdp_pipeline.theorems.numerics import Array
from pkdp_pipeline.theorems.theorems import THEOREMS
from pkdp_pipeline.theorems.words import NOT_CODE

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


__all__ = ["GuaranteeCurve", "KnowledgeCurve", "Scenario", "Statement", "knowledge_curves", "what_if"]

_MIN_POINTS = 16
_MAX_EPSILON = 50.0
"""No drawing goes beyond this ε, except to the ε that the sentence names."""

_UNREACHED_EPSILON = 4.0
"""How far to look where no ε reaches the δ."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GuaranteeCurve:
    """The guarantee at many ε, for a drawing or a table.

    Attributes
    ----------
    epsilons : tuple of float
        Increasing, from 0.
    attained : tuple of float
        δ that some declared attacker reaches; 0 where no attack is known.
    certified : tuple of float
        δ that none exceeds.
    worst_case : tuple of float or None
        δ of the guarantee against anyone at all; None where there is none.
    mark : (float, float) or None
        The certified ε and the δ that the sentence names; None where no ε reaches it.

    Notes
    -----
    None of the three increases with ε. Between two points what holds at the left one is certified, and the chord in
    ``e^ε``, of which the true δ is a convex function: a drawing takes steps, or that, never a straight line.
    """

    epsilons: tuple[float, ...]
    attained: tuple[float, ...]
    certified: tuple[float, ...]
    worst_case: tuple[float, ...] | None
    mark: tuple[float, float] | None

    @classmethod
    def of(cls, certificate: Certificate, delta: float = 1e-6, points: int = 61) -> Self:
        """Return the curve of `certificate` from ε = 0 to somewhat beyond the ε that the sentence names.

        Parameters
        ----------
        certificate : Certificate
        delta : float, default 1e-6
            The δ that the sentence is about.
        points : int, default 61
            How many at most, besides the marked ε and the end of the noise's curve; certificates that cost
            much to evaluate get fewer. At least 2.

        Raises
        ------
        ArgumentError
            If a number is out of range.
        """
        target = probability("delta", delta)
        number = whole_number("points", points, least=2)
        number = max(min(number, _MIN_POINTS), number // effort(certificate))
        epsilon = certificate.epsilon(target)
        noise = _noise_end(certificate)
        end = _end(epsilon, noise)
        special = {value for value in (epsilon, noise) if value is not None and value <= end}
        # A point that is one of these but for roundoff would be there twice, on some processors.
        even = np.linspace(0.0, end, number).tolist()
        even = [point for point in even if not any(math.isclose(point, mark, rel_tol=1e-9) for mark in special)]
        epsilons = np.array(sorted({*even, *special}))
        attained, certified = (_falling(side) for side in certificate.delta_bounds(epsilons))
        anyone = None
        if noise is not None or certificate.worst_case.epsilon(target) < math.inf:
            anyone = tuple(_falling(certificate.worst_case.delta(epsilons)).tolist())
        return cls(
            epsilons=tuple(epsilons.tolist()),
            attained=tuple(attained.tolist()),
            certified=tuple(certified.tolist()),
            worst_case=anyone,
            mark=None if epsilon == math.inf else (epsilon, target),
        )


def _falling(values: Array) -> Array:
    """Return `values` raised where a later one is larger; δ(ε) does not increase, so both sides stay true."""
    largest: Array = np.maximum.accumulate(values[::-1])[::-1]
    return largest


def _noise_end(certificate: Certificate) -> float | None:
    """Return the ε beyond which the guarantee against anyone is flat."""
    pair = certificate.worst_case.parameters
    return None if pair is None or pair[0] == math.inf or pair[1] >= 1.0 else pair[0]


def _end(epsilon: float, noise: float | None) -> float:
    """Return the largest ε to show: enough to see the curve fall, and ε = 1 where that is not far out."""
    if epsilon == math.inf:
        wanted = _UNREACHED_EPSILON
    elif epsilon == 0.0:
        wanted = 1.0
    else:
        wanted = max(1.5 * epsilon, min(1.0, 4.0 * epsilon))
    if noise is not None:
        wanted = max(wanted, 1.1 * noise)
    return min(wanted, max(_MAX_EPSILON, 1.05 * epsilon if epsilon < math.inf else 0.0))


_EPSILONS = (0.1, 0.5, 1.0, 2.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """The words and numbers of a certificate.

    Attributes
    ----------
    sentence : str
        The guarantee in plain English.
    protects : {"presence", "value"}
    delta : float
        The δ that the sentence is about.
    epsilon : float
        The certified ε at it; `math.inf` where there is none.
    named : (float, float)
        (ε, δ) as they are named: `epsilon` and `delta`; or δ = 0, where that is certified at ε as it is shown.
    numbers : tuple of (float, float)
        Certified δ at a few ε, as (ε, δ).
    worst_case : (float, float) or None
        The pair (ε, δ) that the sentence names against anyone at all; None where there is none.
    assumptions : tuple of str
        The assumptions, one plain sentence each.
    limits : tuple of str
        The extent of the protection, then the other limits of the statement.
    theorems : tuple of (str, str)
        Title and citation of what it rests on.
    anyone : str
        The attackers `worst_case` covers, in words: anyone, given what may be known, if what was declared is true.
    of_some : tuple of OfSome
        Those of the assumptions and limits that are true of some releases only.
    given : tuple of str
        The names of what may be known exactly besides, on which `worst_case` depends.
    if_declared : bool
        Whether `worst_case` rests on declarations.
    apart : {"", "release", "period"}
        The part that is protected, one at a time; empty where all of it is protected together.
    attackers : tuple of OfSome
        The descriptions of the attackers that it rests on, each with the number of releases that it is about.
    hides : str
        The protection, as a clause; empty where there is none.
    shows : tuple of str
        The rest that is not protected, each as a clause that stands alone.
    besides : tuple of str
        The other sentences of the first limit.

    Notes
    -----
    Where noise alone says as much against anyone, all of this but the sentence's last words is about that promise.
    *Rounding*: every number is certified, none is below the truth; texts show them rounded up.
    """

    sentence: str
    protects: Protects
    delta: float
    epsilon: float
    named: tuple[float, float]
    numbers: tuple[tuple[float, float], ...]
    worst_case: tuple[float, float] | None
    assumptions: tuple[str, ...]
    limits: tuple[str, ...]
    theorems: tuple[tuple[str, str], ...]
    anyone: str = "anyone at all, whatever they know"
    of_some: tuple[OfSome, ...] = ()
    given: tuple[str, ...] = ()
    if_declared: bool = False
    apart: Literal["", "release", "period"] = ""
    attackers: tuple[OfSome, ...] = ()
    hides: str = ""
    shows: tuple[str, ...] = ()
    besides: tuple[str, ...] = ()

    @classmethod
    def of(cls, certificate: Certificate, delta: float = 1e-6) -> Self:
        """Return what `certificate` says at `delta`.

        Raises
        ------
        ArgumentError
            If `delta` is not in [0, 1].
        """
        target = probability("delta", delta)
        epsilon, stated = certificate.epsilon(target), certificate.stated(target)
        deltas = stated.delta(np.array(_EPSILONS)).tolist()
        first, *besides = stated.extent(target) or ("",)
        protection = first if isinstance(first, Protection) else None
        return cls(
            sentence=certificate.sentence(target),
            protects=certificate.protects,
            delta=target,
            epsilon=epsilon,
            named=named_pair(certificate, epsilon, target),
            numbers=tuple(zip(_EPSILONS, deltas, strict=True)),
            worst_case=stated.against_anyone(target),
            assumptions=stated.assumptions,
            limits=_limits(stated, target),
            theorems=tuple((THEOREMS[key].title, THEOREMS[key].citation) for key in stated.theorems),
            anyone=stated.anyone,
            of_some=stated.of_some if isinstance(stated, ComposedCertificate) else (),
            given=known_exactly(stated.leakage),
            if_declared=stated.if_declared,
            apart=stated.apart,
            attackers=stated.attackers,
            hides="" if protection is None else protection.hides,
            shows=() if protection is None else protection.shows,
            besides=tuple(filter(None, (first, *besides) if protection is None else besides)),
        )

    @property
    def foundations(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """The theorems behind it, each with how far its proof is machine-checked; last, what that says of the code."""
        known = {(theorem.title, theorem.citation): theorem.checked for theorem in THEOREMS.values()}
        return (
            *((f"{title} ({citation}).", known[title, citation]) for title, citation in self.theorems),
            (NOT_CODE, ()),
        )

    def to_html(self) -> str:
        """Return the statement as a fragment of HTML that takes its colours from the page it stands on."""
        filling = environment("statement")
        filling.filters["up"] = rounded_up
        filling.globals |= {"implies": implies, "infinity": math.inf}
        return filling.get_template("statement.html.jinja").render(said=self)


def _limits(certificate: Certificate, delta: float) -> tuple[str, ...]:
    listed = certificate.limits
    if isinstance(certificate, ComposedCertificate):
        if not certificate.parts:
            return listed
        if certificate.rule == "single":
            listed = (*certificate.parts[0][0].limits, *certificate.caveats)
        elif certificate.reason and certificate.worst_case_bound is None:  # beside noise it is no gap
            listed = (f"No part of it rests on what an attacker does not know: {certificate.reason}.", *listed)
    return tuple(dict.fromkeys((certificate.protection(delta), *listed)))
