"""What several releases tell together: the whole trajectories of a few people, enumerated.

A trajectory is a tuple with one entry per release: the cell the person is in, or None for absent. A person is a
law over trajectories, so that any dependence between days can be written down. Numbers are of any kind that
`oracle.laws` takes. Nothing here uses the library's own mathematics.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from oracle.laws import Law, losses, pushed
from oracle.releases import noisy_cell

__all__ = [
    "Day",
    "Lives",
    "Person",
    "Trajectory",
    "capped",
    "crowd",
    "independent",
    "joint_laws",
    "joint_losses",
    "mixed",
    "once",
    "sticky",
    "worst",
    "xor_days",
]

Trajectory = tuple[int | None, ...]
Person = Mapping[Trajectory, Any]
Lives = tuple[Trajectory, Trajectory]
Exp = Callable[[float], Any]


@dataclass(frozen=True, kw_only=True)
class Day:
    """One release: `cells` counts, suppressed below `k`, noised with ε0 = `noise`, suppressed below `release`.

    With ``others_only`` the target is never counted: what is published is about the other people alone.
    """

    cells: int = 1
    k: int | None = None
    noise: float | None = None
    release: int | None = None
    others_only: bool = False


def independent(days: Sequence[Sequence[Any]]) -> Person:
    """Return a person whose days are independent; each day lists the chances of its cells, the rest is absence."""
    person: dict[Trajectory, Any] = {(): 1}
    for chances in days:
        law: dict[int | None, Any] = {None: 1 - sum(chances), **dict(enumerate(chances))}
        person = {(*done, cell): weight * p for done, weight in person.items() for cell, p in law.items()}
    return person


def sticky(start: Any, repeat: Any, days: int) -> Person:
    """Return a person who is there on the first day with chance `start` and repeats every day with `repeat`."""
    person: dict[Trajectory, Any] = {(0,): start, (None,): 1 - start}
    for _ in range(days - 1):
        person = {
            (*done, cell): weight * (repeat if cell == done[-1] else 1 - repeat)
            for done, weight in person.items()
            for cell in (0, None)
        }
    return person


def once(chances: Sequence[Sequence[Any]]) -> Person:
    """Return a person who appears once at most: ``chances[t][v]`` for cell v of release t, the rest is never."""
    place: Trajectory = (None,) * len(chances)
    person: dict[Trajectory, Any] = {place: 1 - sum(sum(day) for day in chances)}
    for t, day in enumerate(chances):
        for cell, p in enumerate(day):
            person[(*place[:t], cell, *place[t + 1 :])] = p
    return person


def xor_days(first: Any, second: Any) -> Person:
    """Return a person whose third day is the exclusive or of two independent days."""
    return {
        (first_cell, second_cell, 0 if (first_cell is None) != (second_cell is None) else None): weight
        for (first_cell, second_cell), weight in independent([[first], [second]]).items()
    }


def mixed(habits: Sequence[tuple[Any, Person]]) -> Person:
    """Return a person whose habits are drawn first, unknown to the attacker."""
    person: dict[Trajectory, Any] = {}
    for weight, habit in habits:
        for trajectory, p in habit.items():
            person[trajectory] = person.get(trajectory, 0) + weight * p
    return person


def capped(person: Person, most: int) -> Person:
    """Return the person after contribution bounding: the first `most` days of presence are kept."""
    kept: dict[Trajectory, Any] = {}
    for trajectory, weight in person.items():
        left, after = most, []
        for cell in trajectory:
            after.append(cell if cell is not None and left > 0 else None)
            left -= cell is not None
        kept[tuple(after)] = kept.get(tuple(after), 0) + weight
    return kept


def _added(counts: tuple[tuple[int, ...], ...], trajectory: Trajectory) -> tuple[tuple[int, ...], ...]:
    return tuple(
        day if cell is None else (*day[:cell], day[cell] + 1, *day[cell + 1 :])
        for day, cell in zip(counts, trajectory, strict=True)
    )


def crowd(people: Iterable[Person], days: Sequence[Day]) -> Law:
    """Return the joint law of all counts: one tuple of cells per day."""
    law: Law = {tuple((0,) * day.cells for day in days): 1}
    for person in people:
        grown: Law = {}
        for counts, weight in law.items():
            for trajectory, p in person.items():
                if isinstance(p, int) and p == 0:
                    continue
                after = _added(counts, trajectory)  # type: ignore[arg-type]
                grown[after] = grown.get(after, 0) + weight * p
        law = grown
    return law


def _shown(days: Sequence[Day], top: int, exp: Exp) -> Callable[[Any], Law]:
    alphas = [None if day.noise is None else exp(-day.noise) for day in days]
    known: dict[tuple[int, tuple[int, ...]], list[tuple[Hashable, Any]]] = {}

    def one_day(t: int, counts: tuple[int, ...]) -> list[tuple[Hashable, Any]]:
        day = days[t]
        if (t, counts) not in known:
            if day.noise is None:
                known[t, counts] = [(tuple(x if day.k is None or x >= day.k else None for x in counts), 1)]
            else:
                cells = [noisy_cell(x, alphas[t], top, day.k, day.release) for x in counts]
                known[t, counts] = _joined([list(cell.items()) for cell in cells])
        return known[t, counts]

    def kernel(state: Any) -> Law:
        return dict(_joined([one_day(t, counts) for t, counts in enumerate(state)]))

    return kernel


def _joined(laws: Sequence[Sequence[tuple[Hashable, Any]]]) -> list[tuple[Hashable, Any]]:
    joint: list[tuple[Hashable, Any]] = []
    for choice in product(*laws):
        weight: Any = 1
        for _, chance in choice:
            weight = weight * chance
        joint.append((tuple(output for output, _ in choice), weight))
    return joint


def joint_laws(people: Sequence[Person], days: Sequence[Day], lives: Lives, exp: Exp) -> tuple[Law, Law]:
    """Return the law of everything published, in each of the target's two lives: one output per day."""
    law = crowd(people, days)
    kernel = _shown(days, len(people) + 1, exp)
    sides = []
    for life in lives:
        counted = tuple(None if day.others_only else cell for day, cell in zip(days, life, strict=True))
        sides.append(pushed({_added(counts, counted): weight for counts, weight in law.items()}, kernel))  # type: ignore[arg-type]
    return sides[0], sides[1]


def joint_losses(
    people: Sequence[Person],
    days: Sequence[Day],
    lives: Lives,
    epsilon: float,
    exp: Exp,
    known: Sequence[Person] = (),
) -> tuple[Any, Any]:
    """Return both divergences of everything published on all days, between the target's two lives.

    The attacker sees the trajectories of the `known` people.
    """
    sides: list[Any] = [0, 0]
    for known_paths in product(*(person.items() for person in known)):
        weight: Any = 1
        for _, chance in known_paths:
            weight = weight * chance
        fixed = [{trajectory: 1} for trajectory, _ in known_paths]
        divergences = losses(*joint_laws([*fixed, *people], days, lives, exp), exp(epsilon))
        sides = [side + weight * divergence for side, divergence in zip(sides, divergences, strict=True)]
    return sides[0], sides[1]


def worst(people: Sequence[Person], days: Sequence[Day], lives: Lives, epsilon: float) -> float:
    """Return the larger of the two divergences, in floats."""
    return float(max(joint_losses(people, days, lives, epsilon, math.exp)))
