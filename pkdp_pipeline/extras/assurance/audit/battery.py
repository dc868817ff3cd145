"""The battery: cases small enough that a loss shows in few samples."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pkdp_pipeline.certificates.release_certificate import certify
from pkdp_pipeline.extras.assurance.attacks.crowd import Crowd, Group
from pkdp_pipeline.extras.assurance.audit.cases import Case, Trial, crowds_for, of_sums
from pkdp_pipeline.extras.assurance.audit.people import Layout
from pkdp_pipeline.model.attacker import AttackerModel
from pkdp_pipeline.model.evidence import IndependentGivenHabits
from pkdp_pipeline.model.mechanisms import Count, GeometricNoise, Histogram, Mechanism, Protects, Sum

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
