"""No random crowd that keeps to the declaration tells more than the total certifies: every rule, both orders."""

from __future__ import annotations

import pytest
from oracle.schedule_attacks import attack
from thorough import thinned


@thinned(3)
@pytest.mark.parametrize(
    ("family", "schedules", "tight"),
    [
        ("habits", 3, 0.9),
        ("known_people", 4, 0.7),
        ("one_day", 10, 0.9),
        ("group", 20, 0.3),
        ("participation", 4, 0.5),
        ("once_each", 30, 0.999),
        ("disjoint", 7, 0.9),
        ("beside_noise", 20, 0.999),
        ("anybody", 15, 0.999),
    ],
)
def test_no_crowd_tells_more_than_the_total(family: str, schedules: int, tight: float) -> None:
    crowds, worst = attack(family, schedules=schedules, batch=8, seed=1)
    assert crowds == 8 * schedules
    assert worst > tight


@pytest.mark.slow
@pytest.mark.parametrize(
    "family",
    [
        "habits",
        "known_people",
        "one_day",
        "group",
        "participation",
        "once_each",
        "disjoint",
        "beside_noise",
        "anybody",
    ],
)
@pytest.mark.parametrize("seed", range(2, 4))
def test_no_crowd_of_many_tells_more(family: str, seed: int) -> None:
    crowds, worst = attack(family, schedules=500, batch=40, seed=seed)
    assert crowds == 20_000
    assert worst > 0.3
