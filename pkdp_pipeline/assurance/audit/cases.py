"""Cases: a mechanism, its attacker, the crowds by whom it is tried, and what the curator's frames look like."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from pkdp_pipeline.assurance.attacks.crowd import Crowd, Group, Life, knows_total
from pkdp_pipeline.assurance.attacks.enumeration import enumerated, size
from pkdp_pipeline.assurance.attacks.matching import matching
from pkdp_pipeline.assurance.audit.people import Layout, filtered
from pkdp_pipeline.certificates.release_certificate import ReleaseCertificate, certify
from pkdp_pipeline.errors import NotCertifiableError
from pkdp_pipeline.model.attacker import AttackerModel
from pkdp_pipeline.model.mechanisms import Count, Histogram, Mechanism, mechanism_name, mechanism_to_dict

if TYPE_CHECKING:
    from pkdp_pipeline.certificates.target import Asked
    from pkdp_pipeline.model.question import Question

Scenario = Literal["once", "again", "revised", "days"]
"""Asked once; twice, with a ledger; twice, the second time as a revision; once for each of several days."""

_MOST_PEOPLE = 3000
"""A frame has about so many people at most; larger crowds are copied less often."""

_MOST_TERMS = 5_000
"""Attackers of whom an enumeration takes more terms are not compared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One attacker: the same crowd on one day, or one for each day of a schedule.

    On the first `since` days the target is absent in both lives.
    """

    name: str
    days: tuple[Crowd, ...]
    since: int = 0

    def lives(self) -> tuple[tuple[Life, Life], ...]:
        """Return the target's two lives on each day."""
        return tuple(
            (None, None) if place < self.since else (day.first, day.second) for place, day in enumerate(self.days)
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Case:
    """What is audited.

    Parameters
    ----------
    name : str
    mechanism, attacker, protects
    trials : tuple of Trial
    epsilons : tuple of float
        At which ε the loss is compared with the certificate.
    layout : Layout
        Of the frames; a job's request in it is published as it is, with `alone` and `target` as of `publish`.
    options : mapping
        Further arguments of the publishing call; ``domain`` may be True: all cells, in the frame's order.
    scenario : Scenario
    evidence : Evidence, optional
        What the ledger is opened with.
    copies : int
        A histogram holds so many independent copies of the crowd, which are so many samples of one cell; odd.
    effort : float
        How many samples are drawn, in terms of what is asked for.
    """

    name: str
    mechanism: Mechanism
    attacker: AttackerModel
    protects: str = "presence"
    trials: tuple[Trial, ...] = ()
    epsilons: tuple[float, ...] = (0.5, 1.0)
    layout: Layout = field(default_factory=Layout)
    options: Mapping[str, Any] = field(default_factory=dict)
    scenario: Scenario = "once"
    evidence: Any = None
    copies: int = 41
    effort: float = 1.0
    alone: bool = True
    target: Asked = None

    @property
    def is_count(self) -> bool:
        """Whether one number is published."""
        return isinstance(self.mechanism, Count)

    def copies_of(self, crowd: Crowd) -> int:
        """Return how many copies of a crowd a frame holds: one for a count, else an odd number."""
        if self.is_count:
            return 1
        people = crowd.population + sum(self.layout.companions)
        most = min(self.copies, _MOST_PEOPLE // people)
        return most if most % 2 else max(1, most - 1)

    def arguments(self, keys: Sequence[tuple[Any, ...]]) -> dict[str, Any]:
        """Return the arguments of the publishing call about frames with these cells."""
        mechanism = self.mechanism
        given = {"k": mechanism.k, "noise": mechanism.noise, "release_threshold": mechanism.release_threshold}
        if isinstance(mechanism, Count):
            # The number of everybody, or of those whom a filter keeps.
            asked = {"protects": "value"} if self.protects == "value" else {"where": "counted"}
            return {**given, "k_complement": mechanism.k_complement, **asked, **self.options}
        domain = {"domain": [name for (name,) in keys]} if self.options.get("domain") is True else {}
        return {**given, "by": "cell", "protects": self.protects, **self.options, **domain}


def crowds_for(certificate: ReleaseCertificate) -> tuple[Trial, ...]:
    """Return crowds within the declared model: as few others as it allows, and those who tell the target best.

    The second is the strongest of the attackers by whom theorems are tried, at ε = 1, among those who are quickly
    enumerated.
    """
    mechanism, attacker = certificate.mechanism, certificate.attacker
    cells = 2 if certificate.protects == "value" else 1
    floor = (attacker.p_min or 0.0,) * cells
    known, controlled = (0, attacker.known) if attacker.influence == "active" else (attacker.known, 0)
    few = Crowd(
        cells=cells,
        unknown=(Group(people=attacker.unknown, chances=floor),) if attacker.unknown else (),
        known=(Group(people=known, chances=floor),) if known else (),
        controlled=(controlled, *[0] * (cells - 1)) if controlled else (),
        second=1 if cells == 2 else None,
    )
    found = {knows_total(few, attacker): "as few others as declared"}

    def attained(crowd: Crowd) -> float:
        trial = enumerated(mechanism, crowd, 1.0) if size(mechanism, crowd) <= _MOST_TERMS else None
        return -1.0 if trial is None else float(trial.lower)

    strongest = max((crowd for crowd in matching(certificate, 1.0) if crowd.cells == cells), key=attained, default=few)
    found.setdefault(strongest, "others who leave the target in doubt least")
    return tuple(Trial(name=name, days=(crowd,)) for crowd, name in found.items())


def _named(mechanism: Mechanism) -> str:
    said = [] if mechanism.noise is None else [f"noise = {mechanism.noise.epsilon:g}"]
    said += [f"{name} = {value}" for name, value in mechanism_to_dict(mechanism).items() if isinstance(value, int)]
    return ", ".join([mechanism_name(mechanism), *said])


def case_of(mechanism: Mechanism, attacker: AttackerModel, protects: str) -> Case:
    """Return the case of one mechanism and attacker, on plain frames.

    Raises
    ------
    NotCertifiableError
        If nothing is certified about it.
    """
    certificate = certify(mechanism, attacker, protects=protects)
    # Two points of the curve, and where the noise leaves nothing.
    points, bound = {0.5, 1.0}, certificate.worst_case_bound
    if bound is not None and 0.0 < bound.parameters[0] <= 8.0:
        points.add(bound.parameters[0])
    histogram, k = isinstance(mechanism, Histogram), mechanism.k or 1
    found = mechanism.k is not None and (mechanism.noise is None or mechanism.release_threshold is not None)
    layout = Layout(
        counts=not histogram and protects == "presence",
        companions=(k + 2, max(1, k - 1)) if histogram else (),
        rows=(1, 2, 3),
    )
    return Case(
        name=_named(mechanism),
        mechanism=mechanism,
        attacker=attacker,
        protects=protects,
        trials=crowds_for(certificate),
        epsilons=tuple(sorted(points)),
        layout=layout,
        options={"domain": True} if histogram and not found else {},
    )


def case_of_request(name: str, request: Question, attacker: AttackerModel, *, alone: bool, target: Asked) -> Case | str:
    """Return the case of one request; a text says why there is none."""
    values = filtered(request.where)
    if values is None:
        return "no rows were found that its filter keeps, and none that it drops"
    if set(values.kept) & {*request.unit, *request.by, *request.order_by}:
        return "its filter is about the columns that name people or cells"
    try:
        plain = case_of(request.mechanism, attacker if alone else attacker.against_anyone(), request.protects)
    except NotCertifiableError:
        return "nothing is certified about it"
    if any(name in request.by for name in request.unit):
        return "a column names both people and cells"
    # Without a unit every row is a person. Who is not counted is in the frame where a filter drops it.
    rows = plain.layout.rows if request.unit else (1,)
    layout = replace(plain.layout, text=True, rows=rows, request=request, where=values)
    copies = plain.copies
    if not request.by:
        layout = replace(layout, counts=request.where is not None)
    else:
        compared, companions = plain.trials[0].days[0].cells, layout.companions
        if request.domain is not None:
            cells = len(request.domain.cells)
            if cells < compared:
                return "its domain has fewer cells than the two that are compared"
            companions = companions[: cells - compared]
            copies = cells // (compared + len(companions))
        several = request.one_cell in ("most_frequent", "first") and bool(request.unit)
        strays = several and len(companions) + compared > 1
        layout = replace(layout, companions=companions, strays=strays, rows=(2, 3) if strays else rows)
    return replace(plain, name=name, layout=layout, copies=copies, alone=alone, target=target, options={})
