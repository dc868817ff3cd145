"""KnowledgeCurve: the certified ε as the attacker learns more than was declared."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Literal

from pkdp_pipeline.certificates.certificate import Certificate
from pkdp_pipeline.certificates.composed import ComposedCertificate
from pkdp_pipeline.certificates.release_certificate import ReleaseCertificate
from pkdp_pipeline.certificates.statement.stronger import (
    SLOW,
    Change,
    again,
    are_surely_there,
    certified_epsilon,
    effort,
    keys_of,
    knows_more,
    leaves,
    likelier,
    rests_on,
    slowness,
    surer,
    threshold_of,
)
from pkdp_pipeline.certificates.statement.what_if import people_known
from pkdp_pipeline.model.arguments import probability, whole_number
from pkdp_pipeline.theorems import THEOREMS, Knowledge
from pkdp_pipeline.theorems.binomial_tails import binomial_weights

_AVERAGED = Fraction(32, 60)
"""The share of points where people are merely known, divided by how slow that is."""

_FEWEST = 5
_LARGEST_K = 1_000_000
_BEYOND = 1_000
"""Terms of a binomial tail; what lies beyond them does not move the end of an axis."""

_SHARES = tuple(Fraction(percent, 100) for percent in (*range(10, 50, 10), *range(50, 90, 5), *range(90, 100)))
"""How many fewer people are unknown: the first five are those of the what-if table; ε grows fast at the end."""

_COARSE_SHARES = tuple(
    Fraction(percent, 100) for percent in (10, 20, 30, 40, 50, 58, 65, 71, 76, 80, 84, 87, 90, 92, 94, 96, 98)
)

_QUICK = 2
_MANY = 40

_FINE = 32
"""Steps for a factor of two of the odds, of which as many as needed are taken."""

_LEAST_EACH = 4
"""Steps for a factor of two of the odds that are taken at least."""

_SURER = Fraction(40, 60)
"""The share of points along a probability."""

_DOUBLINGS = (1, 2, 3, 4, 6, 8, 12, 16, 24)
"""Where to look for the end of what is certified; the last one is odds of millions."""


@dataclass(frozen=True, slots=True)
class Step:
    """A point of a curve: where it is, and the change of every attacker that leads there; None is no change."""

    value: float
    change: Change | None


@dataclass(frozen=True, slots=True)
class Evaluated:
    """The ε of a certificate for moved attackers, each computed once."""

    certificate: Certificate
    delta: float
    declared: float
    floor: float
    points: int = 60
    _found: dict[float, float] = field(default_factory=dict)

    @classmethod
    def of(cls, certificate: Certificate, delta: float, points: int) -> Evaluated:
        """Return it with what is certified against the declared attacker, and by noise alone."""
        return cls(certificate, delta, certificate.epsilon(delta), certificate.worst_case.epsilon(delta), points)

    def epsilon(self, step: Step, least: float = 0.0) -> float:
        """Return the ε that is certified at one step; `math.inf` where there is none. A weaker attacker has `least`."""
        if step.change is None:
            return self.declared
        if step.value not in self._found:
            moved = again(self.certificate, step.change)
            self._found[step.value] = math.inf if moved is None else certified_epsilon(moved, self.delta, least)
        return self._found[step.value]

    def is_over(self, step: Step) -> bool:
        """Return whether nothing but what noise gives is left, if that."""
        return self.epsilon(step) >= self.floor


Found = tuple[ReleaseCertificate, ...]
Steps = tuple[list[Step], int]
"""Steps in the order of knowledge, and the place of the declared attacker among them."""


def _known_steps(evaluated: Evaluated, found: Found) -> Steps:
    """Return steps up to where the thresholds hide nothing any more."""
    surely = are_surely_there(found)
    gaps = [(_known_at_most(leaf, evaluated.delta, surely=surely)) - leaf.attacker.known for leaf in found]
    last = max(1, max(gaps) if evaluated.floor < math.inf else min(gaps))
    first = max(leaf.attacker.known for leaf in found)
    slow = max(slowness(leaf, surely=surely) for leaf in found)
    if surely:
        number = min(last, (evaluated.points - 1) // max(slow, effort(evaluated.certificate)))
    else:
        number = max(_FEWEST, int(_AVERAGED * evaluated.points) // max(slow, effort(evaluated.certificate)))
    people = sorted({round(last * step / number) for step in range(number + 1)})

    def by(more: int) -> Change | None:
        return knows_more(lambda _: more, surely=surely) if more else None

    return [Step(float(first + more), by(more)) for more in people], 0


def _known_at_most(leaf: ReleaseCertificate, delta: float, *, surely: bool) -> int:
    """Return how many people must be known before the threshold hides nothing at `delta`."""
    k, attacker, keys = threshold_of(leaf) or 2, leaf.attacker, keys_of(leaf)
    if surely or attacker.influence == "active" or not any(THEOREMS[key].averages for key in keys):
        return k - 1
    # Of the people who are merely known, each counts with probability p: enough that k - 1 of them may.
    p = 1.0 - (attacker.p_min or 0.0) if keys[0] == "thresholding_complement" else attacker.p_max or 0.0
    if p == 0.0 or delta <= 0.0:
        return k - 1
    most = k - 1
    while most < _LARGEST_K and binomial_weights(most, p, k - 1, min(most, 2 * k + _BEYOND)).sum() <= delta:
        most = math.ceil(1.05 * most)
    return most


def _sure_steps(name: Literal["p_max", "p_max_between"]) -> Callable[[Evaluated, Found], Steps]:
    """Return the maker of steps along a probability, even in the logarithm of the odds, and then certainty."""

    def steps(evaluated: Evaluated, found: Found) -> Steps:
        declared = max(getattr(leaf.attacker, name) for leaf in found)

        def at(place: int) -> Step:
            factor = Fraction(2.0 ** (place / _FINE)).limit_denominator(1_000_000)
            return Step(likelier(declared, factor), None if place == 0 else surer(factor, name))

        places = [0]
        if 0.0 < declared < 1.0:
            weight = _weight(evaluated, found)
            end, tried = _end(evaluated, at, weight)
            many = max(int(_SURER * evaluated.points), math.ceil(end * _LEAST_EACH / _FINE)) // weight
            number = max(1, min(end, max(_FEWEST, many)))
            # Where nothing is certified against the declared attacker, what is lies below.
            below = range(-2 * _FINE, 0, _FINE // 2 if end else _FINE // _LEAST_EACH)
            places = sorted({*below, 0, *tried, *(round(end * step / number) for step in range(number + 1))})
        taken: dict[float, Step] = {}
        # The smallest value that contradicts no other field.
        least = 0.5 if name == "p_max_between" else max(leaf.attacker.p_min or 0.0 for leaf in found)
        for step in (*map(at, places), Step(1.0, surer(None, name))):
            if step.value >= least and (step.change is None or step.value != declared):
                taken.setdefault(step.value, step)
        if declared == 1.0:
            taken[declared] = at(0)
        ordered = [taken[value] for value in sorted(taken)]
        return ordered, next(place for place, step in enumerate(ordered) if step.change is None)

    return steps


def _end(evaluated: Evaluated, at: Callable[[int], Step], close: int) -> tuple[int, set[int]]:
    """Return a place from which on nothing but the floor is left, and the places tried below it.

    It is at most `close` places after the last one where more is certified.
    """
    if evaluated.is_over(at(0)):
        return 0, set()
    low, high = 0, 0
    tried = {0}
    for doublings in _DOUBLINGS:
        high = doublings * _FINE
        if evaluated.is_over(at(high)):
            break
        low = high
        tried.add(high)
    while high - low > close:
        middle = (low + high) // 2
        if evaluated.is_over(at(middle)):
            high = middle
        else:
            low = middle
            tried.add(middle)
    return high, tried


def _weight(evaluated: Evaluated, found: Found) -> int:
    averaged = 1 if are_surely_there(found) else max(slowness(leaf, surely=False) for leaf in found)
    return max(averaged, effort(evaluated.certificate))


def _unknown_steps(evaluated: Evaluated, found: Found) -> Steps:
    """Return steps down to nobody who is unknown."""
    declared = min(leaf.attacker.unknown or 0 for leaf in found)
    taken: dict[int, Step] = {declared: Step(float(declared), None)}
    fine = effort(evaluated.certificate) <= _QUICK and evaluated.points >= _MANY
    shares = _SHARES if fine else _COARSE_SHARES
    for share in (*shares, Fraction(1)):
        left = math.floor(declared * (1 - share))
        taken.setdefault(left, Step(float(left), knows_more(None, share)))
    return list(taken.values()), 0


_STEPS_OF: dict[Knowledge, Callable[[Evaluated, Found], Steps]] = {
    "known": _known_steps,
    "p_max": _sure_steps("p_max"),
    "p_max_between": _sure_steps("p_max_between"),
    "unknown": _unknown_steps,
}


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
    evaluated = Evaluated.of(certificate, target, number)
    curves = []
    for name, steps_along in _STEPS_OF.items():
        found = tuple(leaf for leaf in leaves(certificate) if rests_on(leaf, name))
        if found and not (name == "known" and together and _is_slow(found)):
            steps, place = steps_along(evaluated, found)
            curves.append(_curve(evaluated, name, _words(name, found, each=together), steps, place))
    return tuple(curve for curve in curves if min(curve.epsilons) < math.inf)


def _is_slow(found: tuple[ReleaseCertificate, ...]) -> bool:
    surely = are_surely_there(found)
    return any(slowness(leaf, surely=surely) >= SLOW for leaf in found)


def _curve(evaluated: Evaluated, field: Knowledge, words: str, steps: list[Step], place: int) -> KnowledgeCurve:
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


def _words(field: Knowledge, found: tuple[ReleaseCertificate, ...], *, each: bool) -> str:
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
