"""Attackers on several releases: exact against the oracle, sound against the totals, and close to them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest
from oracle.joint import Day as OracleDay
from oracle.joint import independent, joint_losses
from thorough import thinned

import pkdp_pipeline as pkdp
from pkdp_pipeline.extras.assurance.attacks.crowd import Crowd, Group
from pkdp_pipeline.extras.assurance.attacks.days import (
    Day,
    Schedule,
    enumerated_schedule,
    releases_in,
    simulated_schedule,
)
from pkdp_pipeline.extras.assurance.attacks.schedules import schedules, worst_schedules


def _count(k: int, p: float) -> pkdp.Certificate:
    return pkdp.certify(pkdp.Count(k=k), pkdp.AttackerModel(p_max=p))


def test_two_days_agree_with_the_oracle() -> None:
    lone = Crowd(cells=1, unknown=(Group(people=4, chances=(0.4,)),))
    later = Crowd(cells=1, unknown=(Group(people=4, chances=(0.2,)),), first=None, second=0)
    schedule = (Day(mechanism=pkdp.Count(k=3), crowd=lone), Day(mechanism=pkdp.Count(k=2), crowd=later))
    people = [independent([[0.4], [0.2]])] * 4
    wanted = joint_losses(people, [OracleDay(k=3), OracleDay(k=2)], ((0, None), (None, 0)), 0.3, math.exp)[0]
    bounds = enumerated_schedule(schedule, 0.3)
    assert bounds is not None
    assert float(bounds.lower) == pytest.approx(wanted, rel=1e-12)


_TOTALS = {
    "habits": ([(_count(3, 0.3), 1), (_count(4, 0.5), 2)], pkdp.IndependentGivenHabits()),
    "few days": ([(_count(3, 0.3), 4)], [pkdp.IndependentGivenHabits(), pkdp.BoundedParticipation(1)]),
    "disjoint": ([(_count(5, 0.3), 1), (_count(9, 0.2), 1)], pkdp.DisjointUnits()),
    "one day": ([(_count(5, 0.3), 7)], pkdp.OneDayProtected()),
    "once": ([(pkdp.certify(pkdp.Histogram(k=5), pkdp.AttackerModel(p_max=0.3)), 3)], pkdp.OncePerUnit()),
    "dependence": ([(_count(5, 0.3), 2)], pkdp.BoundedDependence(0.1)),
    "noise": ([(pkdp.certify(pkdp.Count(noise=pkdp.GeometricNoise(0.4)), pkdp.AttackerModel()), 3)], None),
    "value": (
        [(pkdp.certify(pkdp.Histogram(k=4), pkdp.AttackerModel(p_max=0.3), protects="value"), 2)],
        pkdp.IndependentGivenHabits(),
    ),
}

#: Of these the total is the largest release, or noise whose sum is attained.
_ATTAINED = {"disjoint", "one day", "once", "noise"}


@thinned(3)
@pytest.mark.parametrize("name", sorted(_TOTALS))
def test_no_schedule_exceeds_a_total(name: str) -> None:
    parts, evidence = _TOTALS[name]
    total = pkdp.compose(parts, evidence=evidence)
    for epsilon in (0.3, 1.0):
        attained, checked = Fraction(0), 0
        for schedule in schedules(total, epsilons=(epsilon,))[:40]:
            bounds = enumerated_schedule(schedule, epsilon)
            if bounds is not None:
                checked += 1
                attained = max(attained, bounds.lower)
        assert checked
        assert attained <= Fraction(total.delta(epsilon))
        if name in _ATTAINED:
            assert attained > Fraction(0.99 * total.delta(epsilon))
        else:
            assert attained > Fraction(0.05 * total.delta(epsilon))


def test_a_month_is_simulated_and_most_of_its_total_is_attained() -> None:
    total = pkdp.compose([(_count(50, 0.1), 30)], evidence=pkdp.IndependentGivenHabits())
    best = 0.0
    whole = [schedule for schedule in schedules(total, epsilons=(1.0,)) if releases_in(schedule) == 30]
    assert whole
    for schedule in whole:
        assert enumerated_schedule(schedule, 1.0) is None
        simulated = simulated_schedule(schedule, 1.0, draws=10_000, error=1e-3, generator=np.random.default_rng(2))
        assert simulated is not None
        best = max(best, simulated)
    assert 0.5 * total.delta(1.0) < best <= total.delta(1.0)
    # One direction on one day would allow far less; a total that forgot to add up is found.
    assert best > _count(50, 0.1).delta(1.0) * 1e6


def test_simulated_schedules_keep_their_confidence() -> None:
    crowd = Crowd(cells=1, unknown=(Group(people=8, chances=(0.3,)),))
    schedule = (
        Day(mechanism=pkdp.Count(k=3), crowd=crowd, times=2),
        Day(mechanism=pkdp.Count(k=4), crowd=crowd.reversed()),
    )
    truth = enumerated_schedule(schedule, 0.5)
    assert truth is not None
    lows: list[float] = []
    for seed in range(20):
        simulated = simulated_schedule(
            schedule, 0.5, draws=5_000, error=0.1, generator=np.random.default_rng([9, seed])
        )
        assert simulated is not None
        lows.append(simulated)
    assert sum(low > float(truth.upper) for low in lows) <= 6
    assert max(lows) > 0.7 * float(truth.lower)


def test_worst_case_totals_are_tried_by_those_who_know_all() -> None:
    mechanism = pkdp.Count(noise=pkdp.GeometricNoise(0.3), k=4, release_threshold=20)
    total = pkdp.compose([(pkdp.certify(mechanism, pkdp.AttackerModel(p_max=0.2)), 2)])
    tried: Sequence[Schedule] = worst_schedules(total)
    assert all(not day.crowd.unknown for schedule in tried for day in schedule)
    for epsilon in (0.1, 0.4, 0.7):
        enumerations = [enumerated_schedule(schedule, epsilon) for schedule in tried]
        attained = max(bounds.lower for bounds in enumerations if bounds is not None)
        assert attained <= Fraction(total.worst_case.delta(epsilon))


def test_where_no_attack_is_known_there_is_none() -> None:
    day = pkdp.compose([(_count(3, 0.3), 1), (_count(4, 0.5), 1)], evidence=pkdp.DisjointUnits())
    total = pkdp.compose([(day, 3)], evidence=pkdp.IndependentGivenHabits())
    assert schedules(total) == ()
