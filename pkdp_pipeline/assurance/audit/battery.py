"""The battery: small instances of everything that can be published, each with the crowds that would find it out."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pkdp_pipeline.assurance.attacks.crowd import Crowd
from pkdp_pipeline.assurance.audit.cases import Case, Trial, crowds_for
from pkdp_pipeline.assurance.audit.people import Layout
from pkdp_pipeline.certificates.release_certificate import certify
from pkdp_pipeline.model.attacker import AttackerModel
from pkdp_pipeline.model.evidence import IndependentGivenHabits
from pkdp_pipeline.model.mechanisms import Count, GeometricNoise, Histogram, Mechanism

_COUNTED = Layout(counts=True, rows=(2, 3))
#: What a histogram's frames hold beside the crowd: a cell that is published and one that is not.
_BESIDE = Layout(companions=(6, 1), rows=(1, 2, 3))
#: Beside a target who is alone: only she is ever suppressed, so whatever tells of suppression tells of her.
_ALL_SHOWN = Layout(companions=(4, 6, 5), rows=(1, 2, 3))
#: Every cell of a histogram is a sample, so few data sets are many samples.
_FEW = 0.25
_ANY, _RARE, _ACTIVE = AttackerModel(), AttackerModel(p_max=0.1), AttackerModel(p_max=0.1, known=1, influence="active")
_DECLARED: dict[str, Any] = {"domain": True}


def battery() -> tuple[Case, ...]:
    """Return the cases, small enough that a loss shows in few samples: k and ε are small, δ is large."""
    return (*_counts(), *_noiseless(), *_noised(), *_several())


def _counts() -> tuple[Case, ...]:
    noise = GeometricNoise(1.2)
    unsure = AttackerModel(p_min=0.3, p_max=0.6, unknown=4)
    text = replace(_COUNTED, text=True, nameless=2)
    return (
        _tried("count, k", Count(k=3), _ACTIVE, layout=text, options={"missing_unit": "drop"}),
        _tried("count, k_complement", Count(k_complement=2), AttackerModel(p_min=0.9), layout=_COUNTED),
        _tried("count, exact", Count(), unsure, layout=_COUNTED),
        _noisy("count, noise", Count(noise=noise), (3,), epsilons=(1.2,), layout=_COUNTED, effort=5.0),
        _noisy(
            "count, k, noise, release_threshold",
            Count(k=2, noise=noise, release_threshold=6),
            (1,),
            epsilons=(0.5,),
            layout=_COUNTED,
            effort=1.0,
        ),
    )


def _noiseless() -> tuple[Case, ...]:
    alone = _tried("whole table, cells found", Histogram(k=4), _RARE, epsilons=(0.2, 1.0), layout=_ALL_SHOWN, copies=1)
    alone = replace(alone, trials=alone.trials[:1])
    absent = _DECLARED | {"undeclared": "absent"}
    drop: dict[str, Any] = {"missing_unit": "drop"}
    text = replace(_BESIDE, text=True, nameless=1)
    by_hash = _few("histogram, one_cell hash", Histogram(k=2), _RARE, replace(_BESIDE, text=True), one_cell="hash")
    strays = {rule: replace(_BESIDE, rows=rows, strays=True) for rule, rows in _RULES.items()}
    known = AttackerModel(p_max=0.2, known=2)
    return (
        alone,
        replace(alone, name="whole table, cells declared", layout=replace(_ALL_SHOWN, elsewhere=True), options=absent),
        _few("histogram, cells found", Histogram(k=4), _RARE),
        _few("histogram, cells declared", Histogram(k=4), _RARE, replace(text, strangers=2), **drop, **absent),
        _few("histogram, controlled people", Histogram(k=3), _ACTIVE, text, **drop),
        _few("histogram, known people", Histogram(k=4), known, replace(_BESIDE, counts=True), where="counted"),
        _few("histogram, value through absence", Histogram(k=2), AttackerModel(p_max=0.2), protects="value"),
        _few(
            "histogram, value, nobody absent",
            Histogram(k=2),
            AttackerModel(p_max_between=0.6),
            protects="value",
            **_DECLARED,
        ),
        _few(
            "histogram, one_cell most_frequent",
            Histogram(k=2),
            _RARE,
            strays["most_frequent"],
            one_cell="most_frequent",
        ),
        _few("histogram, one_cell first", Histogram(k=2), _RARE, strays["first"], one_cell="first", order_by="turn"),
        replace(by_hash, trials=by_hash.trials[:1]),
    )


_RULES = {"most_frequent": (2, 3), "first": (1, 2)}


def _noised() -> tuple[Case, ...]:
    noise, both = GeometricNoise(1.5), (0.5, 1.5)
    thresholds = Histogram(k=2, noise=noise, release_threshold=4)
    between = Trial(name="everybody else is known", days=(Crowd(cells=2, controlled=(2, 1), second=1),))
    value = _noisy("histogram, noise, value", Histogram(noise=noise), (), epsilons=(1.5,), effort=2 * _FEW)
    return (
        _noisy(
            "whole table, noise",
            Histogram(noise=GeometricNoise(1.0)),
            (2,),
            epsilons=(1.0,),
            layout=_ALL_SHOWN,
            copies=1,
            effort=1.0,
        ),
        _noisy("histogram, k, noise, release_threshold", thresholds, (1,), epsilons=both, options={}),
        _noisy("histogram, noise", Histogram(noise=noise), (0, 3), epsilons=both),
        _noisy(
            "histogram, more noise",
            Histogram(noise=GeometricNoise(0.5)),
            (3,),
            epsilons=(0.5,),
            layout=replace(_BESIDE, companions=(2,)),
            effort=1.0,
        ),
        replace(value, protects="value", trials=(between,)),
    )


def _several() -> tuple[Case, ...]:
    noise = GeometricNoise(2.0)
    days = _tried("two days in a ledger", Histogram(k=2), AttackerModel(p_max=0.5), scenario="days", effort=2 * _FEW)
    crowd = days.trials[1].days[0]
    both = Trial(name="there on both days, or on neither", days=(crowd, crowd))
    either = Trial(name="there on one day, or on the other", days=(crowd, crowd.reversed()))
    again = _noisy("the same request again", Histogram(noise=noise), (3,), epsilons=(1.0, 2.0), effort=2 * _FEW)
    (certain,) = again.trials[0].days
    return (
        replace(days, trials=(both, either), evidence=IndependentGivenHabits()),
        replace(again, scenario="again"),
        replace(
            again,
            name="a request and its revision",
            scenario="revised",
            epsilons=(2.0, 4.0),
            trials=(
                Trial(name="there both times, or neither", days=(certain, certain)),
                Trial(name="there in the revision, or not", days=(certain, certain), since=1),
            ),
        ),
    )


def _tried(name: str, mechanism: Mechanism, attacker: AttackerModel, layout: Layout = _BESIDE, **more: Any) -> Case:
    """Return a case with crowds of the declared attacker."""
    trials = crowds_for(certify(mechanism, attacker, protects=more.get("protects", "presence")))
    return Case(name=name, mechanism=mechanism, attacker=attacker, layout=layout, trials=trials, **more)


def _few(
    name: str,
    mechanism: Histogram,
    attacker: AttackerModel,
    layout: Layout = _BESIDE,
    protects: str = "presence",
    **options: Any,
) -> Case:
    """Return a case of a histogram, with arguments of the publishing call."""
    return _tried(name, mechanism, attacker, layout, protects=protects, options=options, effort=_FEW)


def _noisy(name: str, mechanism: Mechanism, others: tuple[int, ...], layout: Layout = _BESIDE, **more: Any) -> Case:
    """Return a case of attackers who know so many others, and everybody: noise alone protects."""
    trials = tuple(
        Trial(name=f"{people} others, known", days=(Crowd(cells=1, controlled=(people,) if people else ()),))
        for people in others
    )
    options = {} if isinstance(mechanism, Count) else _DECLARED
    given: dict[str, Any] = {"options": options, "effort": _FEW, **more}
    return Case(name=name, mechanism=mechanism, attacker=_ANY, trials=trials, layout=layout, **given)
