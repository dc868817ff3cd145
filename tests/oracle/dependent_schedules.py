"""Random schedules whose days may depend on each other, or are noised, and people who keep to what is declared."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from oracle.joint import Day, Person, Trajectory, once
from oracle.schedules import (
    Schedule,
    cells_between,
    disjoint,
    epsilons_of,
    habits,
    known_people,
    moves_of,
    participation,
    within,
)
from pkdp_pipeline.model import evidence as declared

__all__ = ["SCHEDULES"]


def _bound_together(rng: np.random.Generator, batch: int, most: Sequence[float]) -> Person:
    """Return a person whose days depend on each other, each at most `most` likely given all the others."""
    days = len(most)
    pull = {(s, t): rng.normal(0.0, 1.5, batch) for s in range(days) for t in range(s)}
    field_ = [
        np.log(within(rng, batch, 0.2 * p, p) / (1 - p))
        - sum(np.maximum(0.0, pull[max(s, t), min(s, t)]) for s in range(days) if s != t)
        for t, p in enumerate(most)
    ]
    weights: dict[Trajectory, Any] = {}
    for index in np.ndindex(*(2,) * days):
        energy = sum(x * f for x, f in zip(index, field_, strict=True))
        energy = energy + sum(index[s] * index[t] * pull[s, t] for s, t in pull)
        weights[tuple(0 if x else None for x in index)] = np.exp(energy)
    total = sum(weights.values())
    return {trajectory: weight / total for trajectory, weight in weights.items()}


def one_day(rng: np.random.Generator, batch: int) -> Schedule:
    """Days that depend on each other; lives that differ on one of them."""
    n, days = int(rng.integers(1, 5)), int(rng.integers(2, 4))
    most = [float(rng.uniform(0.1, 0.9)) for _ in range(days)]
    other = [None if rng.random() < 0.5 else 0 for _ in range(days)]
    day = int(rng.integers(days))
    life = (*other[:day], 0, *other[day + 1 :]), (*other[:day], None, *other[day + 1 :])
    return Schedule(
        parts=[({"count": True}, {"p_max": p}) for p in most],
        days=[Day(k=int(rng.integers(2, 4))) for _ in most],
        evidence=declared.OneDayProtected(),
        people=[_bound_together(rng, batch, most) for _ in range(n)],
        lives=life,
        epsilons=epsilons_of(rng),
    )


def group(rng: np.random.Generator, batch: int) -> Schedule:
    """The same, for whole lives of few days each."""
    drawn = one_day(rng, batch)
    days, times = len(drawn.days), int(rng.integers(1, 3))
    lives = []
    for _ in range(2):
        there = set(rng.permutation(days)[: rng.integers(times + 1)].tolist())
        lives.append(tuple(0 if t in there else None for t in range(days)))
    evidence = [declared.OneDayProtected(), declared.BoundedParticipation(times)]
    return replace(drawn, evidence=evidence, lives=(lives[0], lives[1]))


def once_each(rng: np.random.Generator, batch: int) -> Schedule:
    """Everybody appears once at most, in one cell of one period; noise now and then."""
    n, days, cells = int(rng.integers(1, 5)), int(rng.integers(1, 4)), int(rng.integers(1, 3))
    value = days * cells > 1 and rng.random() < 0.6
    between = value and rng.random() < 0.4
    equal = float(rng.uniform(0.5, 0.9))
    most = [equal if between else float(rng.uniform(0.1, 0.9)) for _ in range(days)]
    people = []
    for _ in range(n):
        if between:
            flat = cells_between(rng, batch, days * cells, equal)
        else:
            odds = [c / (1 - c) for p in most for c in (within(rng, batch, 0.0, p) for _ in range(cells))]
            flat = [o / (1 + sum(odds)) for o in odds]
        people.append(once([flat[t * cells : (t + 1) * cells] for t in range(days)]))
    places = rng.permutation(days * cells)[:2].tolist()
    lives = []
    for index in range(2):
        place: list[int | None] = [None] * days
        if value or index == 0:
            place[places[index] // cells] = places[index] % cells
        lives.append(tuple(place))
    if rng.random() < 0.5:
        lives.reverse()
    return Schedule(
        parts=[({"count": False}, {"p_max_between" if between else "p_max": p}) for p in most],
        days=[Day(cells=cells, k=int(rng.integers(2, 4))) for _ in most],
        evidence=declared.OncePerUnit(),
        people=people,
        lives=(lives[0], lives[1]),
        protects="value" if value else "presence",
        epsilons=epsilons_of(rng),
    )


def beside_noise(rng: np.random.Generator, batch: int) -> Schedule:
    """An exact count and noised releases about the same records: cell 0 is counted, or both cells are."""
    n, wide = int(rng.integers(1, 4)), rng.random() < 0.5
    low, high = sorted((float(rng.uniform(0.05, 0.95)), float(rng.uniform(0.05, 0.95))))
    hist = rng.random() < 0.6
    noisy = Day(cells=2 if hist else 1, noise=float(rng.uniform(0.05, 0.6)), release=1 if rng.random() < 0.3 else None)
    people = []
    for _ in range(n):
        counted = within(rng, batch, low, high)
        share = within(rng, batch, 0.0, 1.0)
        rest = within(rng, batch, 0.0, 1.0)
        # Counted people sit in either cell, the others in the second one or nowhere.
        people.append(
            {
                (0, 0): counted * share,
                (0, 1 if hist else None): counted * (1 - share),
                (None, 1 if hist else 0): (1 - counted) * rest,
                (None, None): (1 - counted) * (1 - rest),
            }
        )
    second = 1 if hist and wide else None
    return Schedule(
        parts=[({"count": True}, {"p_min": low, "p_max": high, "unknown": n}), ({"count": not hist}, {})],
        days=[Day(), noisy],
        evidence=declared.SamePeople(),
        people=people,
        lives=((0, 0), (None, second)),
        epsilons=(0.0, *(float(rng.uniform(0.0, 6.0 * (noisy.noise or 0.0) + 1.0)) for _ in range(3))),
    )


def anybody(rng: np.random.Generator, batch: int) -> Schedule:
    """Noise alone: the attacker knows everybody, and lives are whatever the parts protect."""
    value = rng.random() < 0.5
    days, parts = [], []
    for _ in range(int(rng.integers(2, 4))):
        hidden = rng.random() < 0.5
        k = int(rng.integers(1, 3)) if hidden else None
        release = int(rng.integers(1, 5)) if hidden or rng.random() < 0.3 else None
        days.append(Day(cells=2 if value else 1, k=k, release=release, noise=float(rng.uniform(0.2, 1.5))))
        parts.append(({"count": False}, {}))
    if value:
        days, parts = days[:2], parts[:2]
    people: list[Person] = [
        {tuple(int(rng.integers(2)) if value else 0 for _ in days): np.ones(1)} for _ in range(int(rng.integers(0, 3)))
    ]
    moves = [(0, 1), (1, 0)] if value else [(0, None), (None, 0)]
    lives = moves_of(rng, [moves] * len(days))
    times = int(rng.integers(1, len(days) + 1))
    there = sum(a is not None for a in lives[0]), sum(b is not None for b in lives[1])
    evidence = declared.BoundedParticipation(times) if max(there) <= times else None
    return Schedule(
        parts=parts,
        days=days,
        evidence=evidence,
        people=people,
        lives=lives,
        protects="value" if value else "presence",
        epsilons=epsilons_of(rng),
    )


SCHEDULES: dict[str, Callable[[np.random.Generator, int], Schedule]] = {
    "habits": habits,
    "known_people": known_people,
    "one_day": one_day,
    "group": group,
    "participation": participation,
    "once_each": once_each,
    "disjoint": disjoint,
    "beside_noise": beside_noise,
    "anybody": anybody,
}
