"""Statement: a certificate laid out as values that pages, notebooks and drawings show."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, Self

import numpy as np

from pkdp_pipeline.certificates.certificate import Certificate
from pkdp_pipeline.certificates.composed import ComposedCertificate
from pkdp_pipeline.certificates.sentences import OfSome, implies, known_exactly, named_pair
from pkdp_pipeline.certificates.stronger import effort
from pkdp_pipeline.extras.report import environment
from pkdp_pipeline.extras.report.statement.knowledge import KnowledgeCurve, knowledge_curves
from pkdp_pipeline.extras.report.statement.what_if import Scenario, what_if
from pkdp_pipeline.model.arguments import probability, whole_number
from pkdp_pipeline.model.wording import Protection, rounded_up
from pkdp_pipeline.theorems import THEOREMS, Protects
from pkdp_pipeline.theorems.rounding import Array
from pkdp_pipeline.theorems.words import NOT_CODE

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
        elif certificate.reason:
            listed = (f"No part of it rests on what an attacker does not know: {certificate.reason}.", *listed)
    return tuple(dict.fromkeys((certificate.protection(delta), *listed)))
