"""Attackers, one by one: who they are, and how much each of them learns from a mechanism as it is defined.

A certificate says that no declared attacker learns more than δ(ε). Here are declared attackers, and what each of them
learns, enumerated exactly or simulated with a confidence bound, by code that shares nothing with
`pkdp_pipeline.theorems`. `docs/attacks.md` says what is tried and what a passed trial means.
"""

from __future__ import annotations

from pkdp_pipeline.assurance.attacks.crowd import Crowd, Group, Life, is_admitted
from pkdp_pipeline.assurance.attacks.enumeration import LARGEST, Enumerated, enumerated, size
from pkdp_pipeline.assurance.attacks.matching import knowing_all, matching
from pkdp_pipeline.assurance.attacks.schedules import (
    Day,
    Schedule,
    enumerated_schedule,
    schedules,
    simulated_schedule,
    worst_schedules,
)
from pkdp_pipeline.assurance.attacks.simulation import Simulated, simulated
from pkdp_pipeline.assurance.attacks.trials import EPSILONS, crowds, vertices

__all__ = [
    "EPSILONS",
    "LARGEST",
    "Crowd",
    "Day",
    "Enumerated",
    "Group",
    "Life",
    "Schedule",
    "Simulated",
    "crowds",
    "enumerated",
    "enumerated_schedule",
    "is_admitted",
    "knowing_all",
    "matching",
    "schedules",
    "simulated",
    "simulated_schedule",
    "size",
    "vertices",
    "worst_schedules",
]
