"""The battery: small instances of everything that can be published, each with the crowds that would find it out."""

from __future__ import annotations

from dataclasses import replace

from pkdp_pipeline.assurance.attacks.crowd import Crowd
from pkdp_pipeline.assurance.audit.cases import Case, Trial, crowds_for
from pkdp_pipeline.assurance.audit.people import Layout
from pkdp_pipeline.certificates.release_certificate import certify
from pkdp_pipeline.model.attacker import AttackerModel
from pkdp_pipeline.model.evidence import IndependentGivenHabits
from pkdp_pipeline.model.mechanisms import Count, GeometricNoise, Histogram

__all__ = ["battery"]

#: What a histogram's frames hold beside the crowd: a cell that is published and one that is not.
_BESIDE = Layout(companions=(6, 1), rows=(1, 2, 3))
#: Beside a target who is alone: only she is ever suppressed, so whatever tells of suppression tells of her.
_ALL_SHOWN = Layout(companions=(4, 6, 5), rows=(1, 2, 3))
#: Every cell of a histogram is a sample, so few data sets are many samples.
_FEW = 0.25


def battery() -> tuple[Case, ...]:
    """Return the cases, small enough that a loss shows in few samples: k and ε are small, δ is large."""
    return (*_counts(), *_noiseless(), *_noised(), *_several())


def _counts() -> tuple[Case, ...]:
    counted = Layout(counts=True, rows=(2, 3))
    noise = GeometricNoise(1.2)
    return (
        _tried(
            Case(
                name="count, k",
                mechanism=Count(k=3),
                attacker=AttackerModel(p_max=0.1, known=1, influence="active"),
                layout=replace(counted, text=True, nameless=2),
                options={"missing_unit": "drop"},
            )
        ),
        _tried(
            Case(
                name="count, k_complement",
                mechanism=Count(k_complement=2),
                attacker=AttackerModel(p_min=0.9),
                layout=counted,
            )
        ),
        _tried(
            Case(
                name="count, exact",
                mechanism=Count(),
                attacker=AttackerModel(p_min=0.3, p_max=0.6, unknown=4),
                layout=counted,
            )
        ),
        Case(
            name="count, noise",
            mechanism=Count(noise=noise),
            attacker=AttackerModel(),
            trials=(_certain(3),),
            epsilons=(1.2,),
            layout=counted,
            effort=5.0,
        ),
        Case(
            name="count, k, noise, release_threshold",
            mechanism=Count(k=2, noise=noise, release_threshold=6),
            attacker=AttackerModel(),
            trials=(_certain(1),),
            epsilons=(0.5,),
            layout=counted,
        ),
    )


def _noiseless() -> tuple[Case, ...]:
    rare = AttackerModel(p_max=0.1)
    alone = Case(
        name="whole table, cells found",
        mechanism=Histogram(k=4),
        attacker=rare,
        trials=crowds_for(certify(Histogram(k=4), rare))[:1],
        epsilons=(0.2, 1.0),
        layout=_ALL_SHOWN,
        copies=1,
    )
    return (
        alone,
        replace(
            alone,
            name="whole table, cells declared",
            layout=replace(_ALL_SHOWN, elsewhere=True),
            options={"domain": True, "undeclared": "absent"},
        ),
        _tried(
            Case(
                name="histogram, cells found",
                mechanism=Histogram(k=4),
                attacker=rare,
                layout=_BESIDE,
                effort=_FEW,
            )
        ),
        _tried(
            Case(
                name="histogram, cells declared",
                mechanism=Histogram(k=4),
                attacker=rare,
                layout=replace(_BESIDE, text=True, nameless=1, strangers=2),
                options={"domain": True, "missing_unit": "drop", "undeclared": "absent"},
                effort=_FEW,
            )
        ),
        _tried(
            Case(
                name="histogram, controlled people",
                mechanism=Histogram(k=3),
                attacker=AttackerModel(p_max=0.1, known=1, influence="active"),
                layout=replace(_BESIDE, text=True, nameless=1),
                options={"missing_unit": "drop"},
                effort=_FEW,
            )
        ),
        _tried(
            Case(
                name="histogram, known people",
                mechanism=Histogram(k=4),
                attacker=AttackerModel(p_max=0.2, known=2),
                layout=replace(_BESIDE, counts=True),
                options={"where": "counted"},
                effort=_FEW,
            )
        ),
        _tried(
            Case(
                name="histogram, value through absence",
                mechanism=Histogram(k=2),
                attacker=AttackerModel(p_max=0.2),
                protects="value",
                layout=_BESIDE,
                effort=_FEW,
            )
        ),
        _tried(
            Case(
                name="histogram, value, nobody absent",
                mechanism=Histogram(k=2),
                attacker=AttackerModel(p_max_between=0.6),
                protects="value",
                layout=_BESIDE,
                options={"domain": True},
                effort=_FEW,
            )
        ),
        *(
            _tried(
                Case(
                    name=f"histogram, one_cell {rule}",
                    mechanism=Histogram(k=2),
                    attacker=rare,
                    layout=replace(_BESIDE, rows=rows, strays=True),
                    options={"one_cell": rule, **order},
                    effort=_FEW,
                )
            )
            for rule, rows, order in (("most_frequent", (2, 3), {}), ("first", (1, 2), {"order_by": "turn"}))
        ),
        Case(
            name="histogram, one_cell hash",
            mechanism=Histogram(k=2),
            attacker=rare,
            trials=crowds_for(certify(Histogram(k=2), rare))[:1],
            layout=replace(_BESIDE, text=True),
            options={"one_cell": "hash"},
            effort=_FEW,
        ),
    )


def _noised() -> tuple[Case, ...]:
    noise = GeometricNoise(1.5)
    return (
        Case(
            name="whole table, noise",
            mechanism=Histogram(noise=GeometricNoise(1.0)),
            attacker=AttackerModel(),
            trials=(_certain(2),),
            epsilons=(1.0,),
            layout=_ALL_SHOWN,
            options={"domain": True},
            copies=1,
        ),
        Case(
            name="histogram, k, noise, release_threshold",
            mechanism=Histogram(k=2, noise=noise, release_threshold=4),
            attacker=AttackerModel(),
            trials=(_certain(1),),
            epsilons=(0.5, 1.5),
            layout=_BESIDE,
            effort=_FEW,
        ),
        Case(
            name="histogram, noise",
            mechanism=Histogram(noise=noise),
            attacker=AttackerModel(),
            trials=(_certain(0), _certain(3)),
            epsilons=(0.5, 1.5),
            layout=_BESIDE,
            options={"domain": True},
            effort=_FEW,
        ),
        Case(
            name="histogram, more noise",
            mechanism=Histogram(noise=GeometricNoise(0.5)),
            attacker=AttackerModel(),
            trials=(_certain(3),),
            epsilons=(0.5,),
            layout=replace(_BESIDE, companions=(2,)),
            options={"domain": True},
            copies=41,
        ),
        Case(
            name="histogram, noise, value",
            mechanism=Histogram(noise=noise),
            attacker=AttackerModel(),
            protects="value",
            trials=(Trial(name="everybody else is known", days=(Crowd(cells=2, controlled=(2, 1), second=1),)),),
            epsilons=(1.5,),
            layout=_BESIDE,
            options={"domain": True},
            effort=2 * _FEW,
        ),
    )


def _several() -> tuple[Case, ...]:
    noise = GeometricNoise(2.0)
    even = AttackerModel(p_max=0.5)
    (_, crowd) = (trial.days[0] for trial in crowds_for(certify(Histogram(k=2), even)))
    (certain,) = _certain(3).days
    once = Case(
        name="the same request again",
        mechanism=Histogram(noise=noise),
        attacker=AttackerModel(),
        trials=(_certain(3),),
        epsilons=(1.0, 2.0),
        layout=_BESIDE,
        options={"domain": True},
        scenario="again",
        effort=2 * _FEW,
    )
    return (
        Case(
            name="two days in a ledger",
            mechanism=Histogram(k=2),
            attacker=even,
            trials=(
                Trial(name="there on both days, or on neither", days=(crowd, crowd)),
                Trial(name="there on one day, or on the other", days=(crowd, crowd.reversed())),
            ),
            layout=_BESIDE,
            scenario="days",
            evidence=IndependentGivenHabits(),
            effort=2 * _FEW,
        ),
        once,
        replace(
            once,
            name="a request and its revision",
            scenario="revised",
            epsilons=(2.0, 4.0),
            trials=(
                Trial(name="there both times, or neither", days=(certain, certain)),
                Trial(name="there in the revision, or not", days=(certain, certain), since=1),
            ),
        ),
    )


def _tried(case: Case) -> Case:
    """Return the case with crowds of the declared attacker."""
    return replace(case, trials=crowds_for(certify(case.mechanism, case.attacker, protects=case.protects)))


def _certain(people: int) -> Trial:
    """Return an attacker who knows everybody else: noise alone protects."""
    controlled = (people,) if people else ()
    return Trial(name=f"{people} others, known", days=(Crowd(cells=1, controlled=controlled),))
