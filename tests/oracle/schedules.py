"""Random schedules of releases whose days are independent, and random people who keep to what is declared.

Every family draws mechanisms, attacker models and evidence, and a batch of crowds: each number in a person's law
is an array with one entry per crowd.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

import pkdp_pipeline as pkdp
from oracle.joint import Day, Lives, Person, Trajectory, independent, mixed
from pkdp_pipeline.model import evidence as declared

__all__ = [
    "Schedule",
    "cells_between",
    "disjoint",
    "epsilons_of",
    "habits",
    "known_people",
    "moves_of",
    "participation",
    "within",
]


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """What is released and declared, and who is there; `people` hold one number per crowd."""

    parts: Sequence[tuple[dict[str, Any], dict[str, Any]]]
    days: Sequence[Day]
    evidence: Any
    people: Sequence[Person]
    lives: Lives
    known: Sequence[Person] = ()
    protects: str = "presence"
    epsilons: Sequence[float] = field(default=(0.0, 0.4, 1.2))

    def certificates(self) -> list[Any]:
        certificates = []
        for (mechanism, attacker), day in zip(self.parts, self.days, strict=True):
            noise = None if day.noise is None else pkdp.GeometricNoise(day.noise)
            kind = {key: value for key, value in mechanism.items() if key != "count"}
            kind |= {"k": day.k, "release_threshold": day.release}
            release = (pkdp.Count if mechanism["count"] else pkdp.Histogram)(**kind, noise=noise)
            certificates.append(pkdp.certify(release, pkdp.AttackerModel(**attacker), protects=self.protects))
        return certificates


def within(rng: np.random.Generator, batch: int, low: float, high: float) -> np.ndarray:
    inner = low + (high - low) * rng.beta(0.7, 0.7, batch)
    end = np.where(rng.random(batch) < 0.7, high, low)
    return np.clip(np.where(rng.random(batch) < 0.6, end, inner), low, high)


def epsilons_of(rng: np.random.Generator) -> tuple[float, ...]:
    return (0.0, float(rng.uniform(0.02, 0.3)), float(rng.uniform(0.3, 1.5)), float(rng.uniform(1.5, 4.0)))


def cells_of(rng: np.random.Generator, batch: int, cells: int, most: float) -> list[np.ndarray]:
    """Return cell chances with ``P[cell | cell or absent] <= most``; what is left is absence."""
    odds = [c / (1 - c) for c in (within(rng, batch, 0.0, most) for _ in range(cells))]
    return [o / (1 + sum(odds)) for o in odds]


def cells_between(rng: np.random.Generator, batch: int, cells: int, most: float) -> list[np.ndarray]:
    """Return cell chances with ``P[v | v or w] <= most`` for every two cells."""
    odds = [c / (1 - c) for c in (within(rng, batch, 0.5, most) for _ in range(cells))]
    there = within(rng, batch, 0.0, 1.0)
    return [there * o / sum(odds) for o in odds]


def moves_of(rng: np.random.Generator, pairs: Sequence[Sequence[tuple[int | None, int | None]]]) -> Lives:
    chosen = [options[rng.integers(len(options))] for options in pairs]
    return tuple(before for before, _ in chosen), tuple(after for _, after in chosen)


def _counted(rng: np.random.Generator, batch: int, n: int) -> tuple[Day, dict[str, Any], list[np.ndarray]]:
    """Return one day of a count, its attacker and everybody's chance."""
    kind = rng.choice(["threshold", "threshold", "exact", "noisy", "both"])
    high = float(rng.choice([0.5, 0.1, 0.9, rng.uniform(0.02, 0.97)]))
    noise = float(rng.uniform(0.3, 2.0)) if kind in ("noisy", "both") else None
    k = int(rng.integers(2, 5)) if kind in ("threshold", "both") else None
    low = 0.0 if k is not None else float(rng.uniform(0.01, high))
    release = int(rng.integers(1, 5)) if noise is not None and rng.random() < 0.6 else None
    attacker: dict[str, Any] = {"p_max": high}
    if k is None:
        attacker |= {"p_min": low, "unknown": n}
    elif rng.random() < 0.5:
        attacker |= {"unknown_max": n}
    return Day(k=k, noise=noise, release=release), attacker, [within(rng, batch, low, high) for _ in range(n)]


def habits(rng: np.random.Generator, batch: int) -> Schedule:
    """Independent days with chances that differ by person and by day, for habits known or drawn."""
    value = rng.random() < 0.35
    days, parts, chances, moves = [], [], [], []
    n = int(rng.integers(1, 4))
    for _ in range(2 if value else int(rng.integers(2, 4))):
        if value or rng.random() < 0.25:
            day = Day(cells=2, k=int(rng.integers(2, 4)))
            most, between = float(rng.choice([0.5, 0.7, rng.uniform(0.5, 0.9)])), value and rng.random() < 0.4
            attacker: dict[str, Any] = {"p_max_between" if between else "p_max": most}
            draw = cells_between if between else cells_of
            drawn: list[Any] = [[draw(rng, batch, 2, most) for _ in range(n)] for _ in range(2)]
            apart = [(0, 1), (1, 0)]
            if not between:
                apart += [(0, None), (None, 1)]
            moves.append(apart if value else [(0, None), (None, 1)])
            parts.append(({"count": False}, attacker))
        else:
            day, attacker, chances_of_day = _counted(rng, batch, n)
            low = attacker.get("p_min", 0.0)
            other = [within(rng, batch, low, attacker["p_max"]) for _ in range(n)]
            drawn = [[[p] for p in chances_of_day], [[p] for p in other]]
            moves.append([(0, None), (None, 0)])
            parts.append(({"count": True}, attacker))
        days.append(day)
        chances.append(drawn)
    weight = rng.random(batch) * float(rng.random() < 0.4)
    crowds = [[independent([drawn[i][j] for drawn in chances]) for j in range(n)] for i in range(2)]
    people = [mixed([(weight, first), (1 - weight, second)]) for first, second in zip(*crowds, strict=True)]
    if rng.random() < 0.3:
        moves[0] = [(None, None)]
    return Schedule(
        parts=parts,
        days=days,
        evidence=declared.IndependentGivenHabits(),
        people=people,
        lives=moves_of(rng, moves),
        protects="value" if value else "presence",
        epsilons=epsilons_of(rng),
    )


def known_people(rng: np.random.Generator, batch: int) -> Schedule:
    """Thresholded counts on independent days, where the attacker knows or controls some people."""
    n, known, active = int(rng.integers(0, 4)), int(rng.integers(1, 3)), bool(rng.random() < 0.5)
    high = [float(rng.uniform(0.05, 0.9)) for _ in range(2)]
    k = [int(rng.integers(2 + known, 5 + known)) if active else int(rng.integers(2, 5)) for _ in range(2)]
    people = [independent([[within(rng, batch, 0.0, p)] for p in high]) for _ in range(n + known)]
    if active:
        fixed: list[Person] = [{tuple(0 if rng.random() < 0.7 else None for _ in range(2)): 1} for _ in range(known)]
    else:
        fixed = people[n:]
    attacker = {"known": known, "influence": "active" if active else "passive"}
    return Schedule(
        parts=[({"count": True}, {"p_max": p, **attacker}) for p in high],
        days=[Day(k=threshold) for threshold in k],
        evidence=declared.IndependentGivenHabits(),
        people=people[:n],
        known=fixed,
        lives=moves_of(rng, [[(0, None), (None, 0)]] * 2),
        epsilons=epsilons_of(rng),
    )


def participation(rng: np.random.Generator, batch: int) -> Schedule:
    """Few days per life among many independent ones, with thresholds or noise."""
    drawn = habits(rng, batch)
    while drawn.protects == "value":
        drawn = habits(rng, batch)
    days = len(drawn.days)
    there = rng.integers(days, size=2).tolist()
    first_life: Trajectory = tuple(0 if t == there[0] else None for t in range(days))
    second_life: Trajectory = tuple(0 if t == there[1] != there[0] else None for t in range(days))
    evidence = [declared.BoundedParticipation(1), declared.IndependentGivenHabits()]
    return replace(drawn, evidence=evidence, lives=(first_life, second_life))


def disjoint(rng: np.random.Generator, batch: int) -> Schedule:
    """Parts about different people, who never meet; the target belongs to one of them."""
    drawn = habits(rng, batch)
    while len(drawn.people) < len(drawn.days):
        drawn = habits(rng, batch)
    days, own_part = len(drawn.days), int(rng.integers(len(drawn.days)))
    people = []
    for j, person in enumerate(drawn.people):
        own = j % days
        kept: dict[Trajectory, Any] = {}
        for trajectory, weight in person.items():
            place = tuple(cell if t == own else None for t, cell in enumerate(trajectory))
            kept[place] = kept.get(place, 0) + weight
        people.append(kept)
    # Unknown people of a part are those who belong to it.
    belong = [sum(j % days == t for j in range(len(people))) for t in range(days)]
    parts = [(m, a | ({"unknown": belong[t]} if "unknown" in a else {})) for t, (m, a) in enumerate(drawn.parts)]
    lives = tuple(tuple(cell if t == own_part else None for t, cell in enumerate(life)) for life in drawn.lives)
    return replace(drawn, parts=parts, people=people, lives=(lives[0], lives[1]), evidence=declared.DisjointUnits())
