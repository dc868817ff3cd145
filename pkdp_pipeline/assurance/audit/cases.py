"""Cases: a mechanism, its attacker, the crowds by whom it is tried, and what the curator's frames look like."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from pkdp_pipeline.assurance.attacks.crowd import Crowd, Group, Life, knows_total
from pkdp_pipeline.assurance.attacks.matching import worst_numbers
from pkdp_pipeline.assurance.audit.people import Columns, Layout, filtered
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
    options : mapping
        Further arguments of the publishing call; ``domain`` may be True: all cells, in the frame's order.
    scenario : Scenario
    evidence : Evidence, optional
        What the ledger is opened with.
    copies : int
        A histogram holds so many independent copies of the crowd, which are so many samples of one cell; odd.
    effort : float
        How many samples are drawn, in terms of what is asked for.
    request : Question, optional
        A job's, which is published as it is; `alone` and `target` are as of `publish`.
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
    request: Question | None = None
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

    The second is the attacker of the theorem, who leaves the target at the edge of being published, or, without a
    threshold, those who are as unsure as declared.
    """
    mechanism, attacker = certificate.mechanism, certificate.attacker
    value = certificate.protects == "value"
    cells = 2 if value else 1
    second: Life = 1 if value else None
    controlled = (attacker.known, *[0] * (cells - 1)) if attacker.influence == "active" and attacker.known else ()
    known = attacker.known if attacker.influence == "passive" else 0
    sure = _chances(attacker, mechanism, cells)
    shown = (Group(people=known, chances=sure),) if known else ()
    base = {"cells": cells, "controlled": controlled, "known": shown, "first": 0, "second": second}
    floor = attacker.p_min or 0.0
    least = (attacker.unknown or 0) if floor > 0.0 else 0
    few = Crowd(unknown=(Group(people=least, chances=(floor,) * cells),) if least else (), **base)  # type: ignore[arg-type]
    best = max(least, _best_number(mechanism, attacker, sure[0]))
    if attacker.unknown_max is not None:
        best = min(best, attacker.unknown_max)
    groups = (Group(people=best, chances=sure),) if best else ()
    found = {few: "as few others as declared"}
    found.setdefault(Crowd(unknown=groups, **base), "the others as unsure as declared")  # type: ignore[arg-type]
    if isinstance(mechanism, Count) and mechanism.k_complement is not None and floor > 0.0:
        # Nearly everybody is counted: then the target may be one of the few who are not.
        found.setdefault(Crowd(unknown=(Group(people=least + 4, chances=(1.0,)),), **base), "all others are counted")  # type: ignore[arg-type]
    return tuple(Trial(name=name, days=(knows_total(crowd, attacker),)) for crowd, name in found.items())


def _chances(attacker: AttackerModel, mechanism: Mechanism, cells: int) -> tuple[float, ...]:
    """Return the chances of people about whom the attacker is as sure as declared."""
    p = attacker.p_max
    if cells == 1 and _is_of_the_rest(mechanism):
        return (attacker.p_min or 0.0,)
    if cells == 1:
        return (max(0.5, attacker.p_min or 0.0) if p is None else p,)
    if attacker.p_max_between is not None and (p is None or p == 1.0):
        return (attacker.p_max_between, 1.0 - attacker.p_max_between)
    if p is None or p == 1.0:
        return (0.5, 0.5)
    # Told "this cell or absent", the chance of each cell is p.
    odds = p / (1.0 - p)
    return (odds / (1.0 + 2.0 * odds),) * 2


def _is_of_the_rest(mechanism: Mechanism) -> bool:
    """Whether the only threshold is that of the people who are not counted."""
    return isinstance(mechanism, Count) and mechanism.k is None and mechanism.k_complement is not None


def _best_number(mechanism: Mechanism, attacker: AttackerModel, p: float) -> int:
    """Return how many others leave the target at the edge of being published (theorem A, at ε = 1)."""
    least = mechanism.k
    if _is_of_the_rest(mechanism):
        assert isinstance(mechanism, Count)
        least, p = mechanism.k_complement, 1.0 - p
    if least is None or p in (0.0, 1.0):
        return max(4, attacker.unknown or 0)
    edge = max(1, least - (attacker.known if attacker.influence == "active" else 0) - 1)
    return worst_numbers(edge + 1, p, 1.0)[0]


def _named(mechanism: Mechanism) -> str:
    fields = mechanism_to_dict(mechanism)
    noise = mechanism.noise
    said = [f"noise = {noise.epsilon:g}"] if noise is not None else []
    said += [f"{name} = {value}" for name, value in fields.items() if isinstance(value, int)]
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
    histogram = isinstance(mechanism, Histogram)
    shows_noise = mechanism.noise is not None and mechanism.release_threshold is None
    found = histogram and mechanism.k is not None and not shows_noise
    companions = ((mechanism.k or 1) + 2, max(1, (mechanism.k or 1) - 1)) if histogram else ()
    return Case(
        name=_named(mechanism),
        mechanism=mechanism,
        attacker=attacker,
        protects=protects,
        trials=crowds_for(certificate),
        epsilons=tuple(sorted(points)),
        layout=Layout(counts=not histogram and protects == "presence", companions=companions, rows=(1, 2, 3)),
        options={} if found or not histogram else {"domain": True},
    )


def case_of_request(name: str, request: Question, attacker: AttackerModel, *, alone: bool, target: Asked) -> Case | str:
    """Return the case of one request; a text says why there is none."""
    values = filtered(request.where)
    if values is None:
        return "no rows were found that its filter keeps, and none that it drops"
    columns = (*request.unit, *request.by, *request.order_by)
    if set(values.kept) & set(columns):
        return "its filter is about the columns that name people or cells"
    try:
        plain = case_of(request.mechanism, attacker if alone else attacker.against_anyone(), request.protects)
    except NotCertifiableError:
        return "nothing is certified about it"
    cells = None if request.domain is None else request.domain.cells
    if any(name in request.by for name in request.unit):
        return "a column names both people and cells"
    named = Columns(unit=request.unit, by=request.by, order_by=request.order_by, cells=cells, where=values)
    layout = _layout(plain, request, named)
    copies = plain.copies
    if cells is not None:
        width = plain.trials[0].days[0].cells + len(layout.companions)
        if width > len(cells):
            return "its domain has fewer cells than the two that are compared"
        copies = len(cells) // width
    return replace(
        plain, name=name, layout=layout, copies=copies, request=request, alone=alone, target=target, options={}
    )


def _layout(plain: Case, request: Question, columns: Columns) -> Layout:
    """Return what frames look like for which the request is made."""
    if not request.unit:
        plain = replace(plain, layout=replace(plain.layout, rows=(1,)))  # every row is a person
    if not request.by:
        # Without a filter everybody in the frame is counted, and who is not counted is not in it.
        return replace(plain.layout, counts=request.where is not None, text=True, columns=columns)
    compared, companions = plain.trials[0].days[0].cells, plain.layout.companions
    if columns.cells is not None:
        companions = companions[: max(0, len(columns.cells) - compared)]
    several = request.one_cell in ("most_frequent", "first") and bool(request.unit)
    strays = several and len(companions) + compared > 1
    return replace(
        plain.layout,
        companions=companions,
        text=True,
        strays=strays,
        rows=(2, 3) if strays else plain.layout.rows,
        columns=columns,
    )
