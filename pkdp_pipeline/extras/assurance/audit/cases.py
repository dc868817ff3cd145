"""Cases: a mechanism, its attacker, the crowds that would find it out, and what the curator's frames look like.

The battery: cases small enough that a loss shows in few samples.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from pkdp_pipeline.certificates.release_certificate import ReleaseCertificate, certify
from pkdp_pipeline.errors import NotCertifiableError
from pkdp_pipeline.extras.assurance.attacks.crowd import Crowd, Group, Life, knows_total
from pkdp_pipeline.extras.assurance.attacks.enumeration import enumerated, size
from pkdp_pipeline.extras.assurance.attacks.matching import matching
from pkdp_pipeline.extras.assurance.attacks.schedules import attackers
from pkdp_pipeline.extras.assurance.audit.people import Layout, filtered
from pkdp_pipeline.model.attacker import AttackerModel
from pkdp_pipeline.model.evidence import IndependentGivenHabits
from pkdp_pipeline.model.mechanisms import (
    Count,
    GeometricNoise,
    Histogram,
    Mechanism,
    Protects,
    Sum,
    cells_per_unit,
    mechanism_name,
    mechanism_to_dict,
    noised_below,
)

if TYPE_CHECKING:
    from pkdp_pipeline.certificates.release_certificate import Asked
    from pkdp_pipeline.model.question import Question

Scenario = Literal["once", "again", "revised", "days"]
"""Asked once; twice, with a ledger; twice, the second time as a revision; once for each of several days."""

_MAX_PEOPLE = 3000
"""A frame has about this many people at most; larger crowds are copied less often."""

_MAX_TERMS = 5_000
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
    """One case of an audit.

    Parameters
    ----------
    epsilons : tuple of float
        The ε at which the loss is compared with the certificate.
    layout : Layout
        Of the frames; a job's request in it is published as it is, with `alone` and `target` as of `publish`.
    options : mapping
        Further arguments of the publishing call; ``domain`` may be True: all cells, in the frame's order.
    evidence : Evidence, optional
        The evidence that the ledger is opened with.
    copies : int
        A histogram holds this many independent copies of the crowd, which are this many samples of one cell; odd.
    refused : bool
        Whether the frames are not as declared, in both lives, so that all there is to see is that nothing is published.
    effort : float
        How many samples are drawn, in terms of what is asked for.
    """

    name: str
    mechanism: Mechanism
    attacker: AttackerModel
    protects: Protects = "presence"
    trials: tuple[Trial, ...] = ()
    epsilons: tuple[float, ...] = (0.5, 1.0)
    layout: Layout = field(default_factory=Layout)
    options: Mapping[str, Any] = field(default_factory=dict)
    scenario: Scenario = "once"
    evidence: Any = None
    copies: int = 41
    refused: bool = False
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
        people = crowd.population * self.layout.spread + sum(self.layout.companions)
        most = min(self.copies, _MAX_PEOPLE // people)
        return most if most % 2 else max(1, most - 1)

    def arguments(self, keys: Sequence[tuple[Any, ...]]) -> dict[str, Any]:
        """Return the arguments of the publishing call about frames with these cells."""
        mechanism = self.mechanism
        given = dict[str, Any](k=mechanism.k, noise=mechanism.noise, release_threshold=mechanism.release_threshold)
        given |= {"below": "noise"} if noised_below(mechanism) else {}
        if isinstance(mechanism, Count):
            # The number of everybody, or of those whom a filter keeps.
            arguments = {"protects": "value"} if self.protects == "value" else {"where": "counted"}
            return {**given, "k_complement": mechanism.k_complement, **arguments, **self.options}
        if cells_per_unit(mechanism) > 1:
            given["cells_per_unit"] = cells_per_unit(mechanism)
        domain = {"domain": [name for (name,) in keys]} if self.options.get("domain") is True else {}
        if isinstance(mechanism, Sum):
            del given["k"]
            given |= {"column": "visits", "bounds": list(mechanism.bounds)}
        return {**given, "by": "cell", "protects": self.protects, **self.options, **domain}


def crowds_for(certificate: ReleaseCertificate) -> tuple[Trial, ...]:
    """Return crowds within the declared model: as few others as it allows, and those who tell the target best.

    The second is the strongest of the attackers by whom theorems are tried, at ε = 1, among those who are quickly
    enumerated. Where a person may be in several cells, crowds are about one that she leaves, and one that she enters.
    """
    mechanism, attacker = certificate.mechanism, certificate.attacker
    if cells_per_unit(mechanism) > 1:
        return tuple(Trial(name=name, days=(crowd,)) for name, crowd in _in_several_cells(certificate))
    cells = 2 if certificate.protects == "value" else 1
    floor = (attacker.p_min or 0.0,) * cells
    known, controlled = (0, attacker.known) if attacker.influence == "active" else (attacker.known, 0)
    sparse = Crowd(
        cells=cells,
        unknown=(Group(people=attacker.unknown, chances=floor),) if attacker.unknown else (),
        known=(Group(people=known, chances=floor),) if known else (),
        controlled=(controlled, *[0] * (cells - 1)) if controlled else (),
        second=1 if cells == 2 else None,
    )
    names = {knows_total(sparse, attacker): "as few others as declared"}

    def attained(crowd: Crowd) -> float:
        trial = enumerated(mechanism, crowd, 1.0) if size(mechanism, crowd) <= _MAX_TERMS else None
        return -1.0 if trial is None else float(trial.lower)

    strongest = max(
        (crowd for crowd in matching(certificate, 1.0) if crowd.cells == cells), key=attained, default=sparse
    )
    names.setdefault(strongest, "others who leave the target in doubt least")
    return tuple(Trial(name=name, days=(crowd,)) for crowd, name in names.items())


def _in_several_cells(certificate: ReleaseCertificate) -> Iterator[tuple[str, Crowd]]:
    """Yield crowds about a cell that a person is in, or leaves for another in which none of the unknown people are."""
    attacker, k = certificate.attacker, certificate.mechanism.k or 1
    cells, second = (2, 1) if certificate.protects == "value" else (1, None)
    if not certificate.has_partial_knowledge:
        for others in (0, max(3, k - 1)):
            yield f"{others} others, known", Crowd(cells=cells, controlled=(others,) * cells, second=second)
        return
    sure = (attacker.known if attacker.influence == "active" else 0, 0)[:cells]
    if not attacker.unknown:
        yield "nobody else but controlled people", Crowd(cells=cells, controlled=sure, second=second)
    for undecided in [days[0].crowd for days in attackers(certificate, 1.0) if days[0].crowd.first == 0][:2]:
        unknown, known = (
            tuple(replace(group, chances=(*group.chances, 0.0)[:cells]) for group in groups)
            for groups in (undecided.unknown, undecided.known)
        )
        crowd = Crowd(cells=cells, unknown=unknown, known=known, controlled=sure, second=second)
        yield "others who leave the target in doubt least", crowd


def _named(mechanism: Mechanism) -> str:
    said = [] if mechanism.noise is None else [f"noise = {mechanism.noise.epsilon:g}"]
    fields = mechanism_to_dict(mechanism).items()
    said += [f"{name} = {value}" for name, value in fields if isinstance(value, int) or name == "below"]
    return ", ".join([mechanism_name(mechanism), *said])


def case_of(mechanism: Mechanism, attacker: AttackerModel, protects: Protects) -> Case:
    """Return the case of one mechanism and attacker, on plain frames; `NotCertifiableError` if there is none."""
    certificate = certify(mechanism, attacker, protects=protects)
    # Two points of the curve, and where the noise leaves nothing.
    points, bound = {0.5, 1.0}, certificate.worst_case_bound
    if bound is not None and 0.0 < bound.parameters[0] <= 8.0:
        points.add(bound.parameters[0])
    histogram, k = not isinstance(mechanism, Count), mechanism.k or 1
    noised_late = mechanism.noise is None or mechanism.release_threshold is not None
    cells_found = mechanism.k is not None and noised_late and mechanism.below != "noise"
    if isinstance(mechanism, Sum):
        cells_found = mechanism.cells_found
    cells_each = cells_per_unit(mechanism)
    # With noise people have rows in more cells than count.
    more = 2 if cells_each > 1 and mechanism.noise is not None else 0
    layout = Layout(
        spread=cells_each + more,
        occupied=cells_each + more // 2,
        counts=not histogram and protects == "presence",
        companions=(k + 2, max(1, k - 1)) if histogram else (),
        rows=(1, 2, 3),
    )
    if isinstance(mechanism, Sum):
        layout = replace(layout, **of_sums(mechanism))
    return Case(
        name=_named(mechanism),
        mechanism=mechanism,
        attacker=attacker,
        protects=protects,
        trials=crowds_for(certificate),
        epsilons=tuple(sorted(points)),
        layout=layout,
        options={"domain": True} if histogram and not cells_found else {},
    )


def of_sums(mechanism: Sum) -> dict[str, Any]:
    """Return rows of a person who adds more than the bounds allow, in each row and in all; others add little."""
    farthest = max(mechanism.bounds, key=abs)
    return {"rows": (2,), "adds": (2 * farthest, 1 if farthest > 0 else -1)}


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
        compared, companions = layout.spread * plain.trials[0].days[0].cells, layout.companions
        if request.domain is not None:
            cells = len(request.domain.cells)
            if cells < compared:
                return "its domain has fewer cells than those that are compared"
            companions = companions[: cells - compared]
            copies = cells // (compared + len(companions))
        several = request.one_cell in ("most_frequent", "first") and bool(request.unit)
        strays = several and len(companions) + compared > 1
        layout = replace(layout, companions=companions, strays=strays, rows=(2, 3) if strays else rows)
    return replace(plain, name=name, layout=layout, copies=copies, alone=alone, target=target, options={})


_COUNTED = Layout(counts=True, rows=(2, 3))
#: What a histogram's frames hold beside the crowd: a cell that is published and one that is not.
_BESIDE = Layout(companions=(6, 1), rows=(1, 2, 3))
#: Beside a target who is alone: only she is ever suppressed, so whatever tells of suppression tells of her.
_ALL_SHOWN = Layout(companions=(4, 6, 5), rows=(1, 2, 3))
_TEXT = replace(_BESIDE, text=True, nameless=1)
#: Every cell of a histogram is a sample, so few data sets are many samples.
_EFFORT = 0.25
_RARE, _ACTIVE = AttackerModel(p_max=0.1), AttackerModel(p_max=0.1, known=1, influence="active")
_COIN = (Group(people=1, chances=(0.5,)),)
_DECLARED: dict[str, Any] = {"domain": True}
_ABSENT = _DECLARED | {"undeclared": "absent"}
_DROP: dict[str, Any] = {"missing_unit": "drop"}


def battery() -> tuple[Case, ...]:
    """Return the cases, small enough that a loss shows in few samples: k and ε are small, δ is large."""
    return (*_counts(), *_tables(), *_noised(), *_several(), *_several_cells(), *_sums())


def _counts() -> tuple[Case, ...]:
    noise = GeometricNoise(1.2)
    text, unsure = replace(_COUNTED, text=True, nameless=2), AttackerModel(p_min=0.3, p_max=0.6, unknown=4)
    both = Count(k=2, noise=noise, release_threshold=6)
    return (
        _case("count, k", Count(k=3), _ACTIVE, layout=text, options=_DROP),
        _case("count, k_complement", Count(k_complement=2), AttackerModel(p_min=0.9)),
        _case("count, exact", Count(), unsure),
        _case("count, noise", Count(noise=noise), others=(3,), epsilons=(1.2,), effort=5.0),
        _case("count, noised below k", Count(k=3, noise=noise, below="noise"), _ACTIVE, epsilons=(0.5, 1.3)),
        _case("count, k, noise, release_threshold", both, others=(1,), epsilons=(0.5,)),
    )


def _tables() -> tuple[Case, ...]:
    alone: dict[str, Any] = {"epsilons": (0.2, 1.0), "copies": 1, "effort": 1.0, "most": 1}
    elsewhere, strangers = replace(_ALL_SHOWN, elsewhere=True), replace(_TEXT, strangers=2)
    frequent, first = (replace(_BESIDE, rows=rows, strays=True) for rows in ((2, 3), (1, 2)))
    in_order = {"one_cell": "first", "order_by": "turn"}
    by_hash: dict[str, Any] = {"layout": replace(_BESIDE, text=True), "options": {"one_cell": "hash"}, "most": 1}
    value: dict[str, Any] = {"protects": "value"}
    unsure, between = AttackerModel(p_max=0.2), AttackerModel(p_max_between=0.6)
    known, counted = AttackerModel(p_max=0.2, known=2), replace(_BESIDE, counts=True)
    k2, k4 = Histogram(k=2), Histogram(k=4)
    return (
        _case("whole table, cells found", k4, _RARE, layout=_ALL_SHOWN, **alone),
        _case("whole table, cells declared", k4, _RARE, layout=elsewhere, options=_ABSENT, **alone),
        _case("histogram, cells found", k4, _RARE),
        _case("histogram, cells declared", k4, _RARE, layout=strangers, options=_DROP | _ABSENT),
        _case("histogram, controlled people", Histogram(k=3), _ACTIVE, layout=_TEXT, options=_DROP),
        _case("histogram, known people", k4, known, layout=counted, options={"where": "counted"}),
        _case("histogram, value through absence", k2, unsure, **value),
        _case("histogram, value, nobody absent", k2, between, options=_DECLARED, **value),
        _case("histogram, one_cell most_frequent", k2, _RARE, layout=frequent, options={"one_cell": "most_frequent"}),
        _case("histogram, one_cell first", k2, _RARE, layout=first, options=in_order),
        _case("histogram, one_cell hash", k2, _RARE, **by_hash),
    )


def _noised() -> tuple[Case, ...]:
    noise = Histogram(noise=GeometricNoise(1.5))
    thresholds, below = replace(noise, k=2, release_threshold=4), replace(noise, k=3, below="noise")
    strong, weak = (Histogram(noise=GeometricNoise(epsilon)) for epsilon in (0.5, 1.0))
    alone: dict[str, Any] = {"layout": _ALL_SHOWN, "copies": 1, "effort": 1.0}
    single: dict[str, Any] = {"layout": replace(_BESIDE, companions=(2,)), "effort": 1.0}
    both: dict[str, Any] = {"epsilons": (0.5, 1.5)}
    between = Trial(name="everybody else is known", days=(Crowd(cells=2, controlled=(2, 1), second=1),))
    value: dict[str, Any] = {"trials": (between,), "epsilons": (1.5,), "protects": "value", "effort": 2 * _EFFORT}
    return (
        _case("whole table, noise", weak, others=(2,), epsilons=(1.0,), options=_DECLARED, **alone),
        _case("histogram, k, noise, release_threshold", thresholds, others=(1,), **both),
        _case("histogram, noised below k", below, _ACTIVE, epsilons=(0.5, 1.6), options=_DECLARED),
        _case("histogram, noised, cells found", replace(below, release_threshold=2, below="noise_from_1"), _RARE),
        _case("histogram, noise", noise, others=(0, 3), options=_DECLARED, **both),
        _case("histogram, more noise", strong, others=(3,), epsilons=(0.5,), options=_DECLARED, **single),
        _case("histogram, noise, value", noise, options=_DECLARED, **value),
    )


def _several() -> tuple[Case, ...]:
    twice: dict[str, Any] = {"effort": 2 * _EFFORT}
    days = _case("two days in a ledger", Histogram(k=2), AttackerModel(p_max=0.5), scenario="days", **twice)
    crowd = days.trials[-1].days[0]
    both = Trial(name="there on both days, or on neither", days=(crowd, crowd))
    either = Trial(name="there on one day, or on the other", days=(crowd, crowd.reversed()))
    noised = Histogram(noise=GeometricNoise(2.0))
    again = _case("the same request again", noised, others=(3,), epsilons=(1.0, 2.0), options=_DECLARED, **twice)
    (certain,) = again.trials[0].days
    revised = (
        Trial(name="there both times, or neither", days=(certain, certain)),
        Trial(name="there in the revision, or not", days=(certain, certain), since=1),
    )
    return (
        replace(days, trials=(both, either), evidence=IndependentGivenHabits()),
        replace(again, scenario="again"),
        replace(again, name="a request and its revision", scenario="revised", epsilons=(2.0, 4.0), trials=revised),
    )


def _several_cells() -> tuple[Case, ...]:
    """Return cases of people in several cells: as many as may be, or more, of which a hash draws."""
    free, sure = AttackerModel(p_max=0.3, independent_cells=True), Crowd(cells=1, unknown=_COIN, controlled=(1,))
    sizes = ((2, 2), (3, 3), (3, 2), (6, 6))
    apart, more, fewer, many = (
        replace(_BESIDE, companions=(), spread=spread, occupied=occupied) for spread, occupied in sizes
    )
    noise = Histogram(noise=GeometricNoise(1.0), cells_per_unit=2)
    thresholds, surer = replace(noise, k=2, release_threshold=4), replace(_ACTIVE, p_max=0.5, independent_cells=True)
    shared: dict[str, Any] = {"epsilons": (2.0,), "effort": 2 * _EFFORT, "copies": 121}
    value: dict[str, Any] = {**shared, "epsilons": (4.0,), "protects": "value", "options": _DECLARED}
    between = Trial(name="everybody else is known", days=(Crowd(cells=2, controlled=(3, 3), second=1),))
    too_many = Trial(name="the target in twice as many cells, as somebody else", days=(sure,))
    refused: dict[str, Any] = {"layout": replace(apart, spread=4, occupied=4), "refused": True, "effort": 1.0}
    return (
        _case("several cells, k", Histogram(k=2, cells_per_unit=2), free, layout=apart),
        _case("several cells, noise", noise, others=(0,), layout=more, options=_DECLARED, **shared),
        _case("several cells, noise, others in more", noise, others=(6,), layout=fewer, options=_DECLARED, **shared),
        _case("several cells, k, noise, release_threshold", thresholds, others=(1,), layout=many, **shared),
        _case("several cells, noise, value", noise, trials=(between,), layout=more, **value),
        _case("several cells, too many", Histogram(k=3, cells_per_unit=2), surer, trials=(too_many,), **refused),
    )


def _sums() -> tuple[Case, ...]:
    """Return cases of sums: one of everybody's cells shifted, others' sums below and above a threshold."""
    plain = Sum((0, 4), GeometricNoise(1.2))
    of_found_cells = replace(plain, release_threshold=14).of_found_cells()
    shared: dict[str, Any] = {"layout": replace(_BESIDE, **of_sums(plain)), "epsilons": (0.5, 1.2)}
    between = Trial(name="everybody else is known", days=(Crowd(cells=2, controlled=(2, 1), second=1),))
    value: dict[str, Any] = {**shared, "trials": (between,), "epsilons": (1.2,), "protects": "value"}
    below = replace(plain, bounds=(-4, 1))
    negative: dict[str, Any] = {**shared, "layout": replace(_BESIDE, **of_sums(below))}
    return (
        _case("sum", plain, others=(3,), options=_DECLARED, **shared),
        _case("sum, a bound below 0", below, others=(3,), options=_DECLARED, **negative),
        _case("sum, cells found", of_found_cells, others=(0, 9), **shared),
        _case("sum, value", plain, options=_DECLARED, **value),
    )


def _case(
    name: str,
    mechanism: Mechanism,
    attacker: AttackerModel | None = None,
    *,
    others: tuple[int, ...] = (),
    protects: Protects = "presence",
    most: int | None = None,
    **more: Any,
) -> Case:
    """Return a case: `most` crowds of a declared attacker, or those who know this many `others`, and everybody."""
    if attacker is not None:
        trials = crowds_for(certify(mechanism, attacker, protects=protects))[:most]
    else:
        known = [(people, Crowd(cells=1, controlled=(people,) if people else ())) for people in others]
        trials = tuple(Trial(name=f"{people} others, known", days=(crowd,)) for people, crowd in known)
    counts = isinstance(mechanism, Count)
    given = {"layout": _COUNTED if counts else _BESIDE, "effort": 1.0 if counts else _EFFORT, "trials": trials, **more}
    return Case(
        name=name,
        mechanism=mechanism,
        attacker=attacker or AttackerModel(),
        protects=protects,
        **given,
    )
