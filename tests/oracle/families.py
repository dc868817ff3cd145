"""Random releases with random attackers for every theorem: what is declared, and attackers within it.

Each family draws a declaration and a batch of heterogeneous attackers who keep to it: every person has other
probabilities, often at the ends of what is declared. `Case.losses` is the truth for these attackers, in the
numbers it is given.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from oracle.releases import count_losses, table_losses

__all__ = ["FAMILIES", "Case", "Dice", "RandomDice"]

Exp = Callable[[float], Any]


class Dice(Protocol):
    """Where the declarations come from: a seed, or hypothesis."""

    rng: np.random.Generator

    def whole(self, least: int, most: int) -> int: ...
    def real(self, least: float, most: float) -> float: ...


@dataclass
class RandomDice:
    """Declarations from a seeded generator."""

    rng: np.random.Generator

    def whole(self, least: int, most: int) -> int:
        return int(self.rng.integers(least, most + 1))

    def real(self, least: float, most: float) -> float:
        return float(np.clip(self.rng.uniform(least, most), least, most))


@dataclass(frozen=True, kw_only=True)
class Case:
    """One declaration and a batch of attackers; `chances` has one entry per attacker on its last axis."""

    count: bool
    mechanism: dict[str, Any]
    attacker: dict[str, Any]
    chances: np.ndarray
    losses: Callable[[Any, float, Exp], tuple[Any, Any]]
    protects: str = "presence"
    noise: float | None = None
    epsilons: tuple[float, ...] = field(default=())


def _within(rng: np.random.Generator, shape: tuple[int, ...], least: float, most: float) -> np.ndarray:
    """Return numbers in [least, most]: the ends, mostly one end, and everything between."""
    inner = np.clip(least + (most - least) * rng.beta(0.7, 0.7, shape), least, most)
    # From attacker to attacker, how many people sit at an end, and at which, differs.
    at_end = rng.random(shape) < rng.choice([0.0, 0.5, 0.9, 1.0], shape[-1])
    upper = rng.random(shape) < rng.choice([0.0, 0.1, 0.5, 0.9, 1.0], shape[-1])
    return np.where(at_end, np.where(upper, most, least), inner)


def _chance(dice: Dice, most: float = 0.98) -> float:
    kind = dice.whole(0, 3)
    return (0.5, 0.1, most)[kind] if kind < 3 else dice.real(0.005, most)


def _epsilons(dice: Dice, many: int) -> tuple[float, ...]:
    drawn = [(0.0, 1.0, 3.0, 0.1)[kind] if (kind := dice.whole(0, 5)) < 4 else dice.real(0.0, 4.0) for _ in range(many)]
    return tuple(drawn)


def _box(dice: Dice) -> tuple[float, float]:
    first, second = _chance(dice), dice.real(0.01, 0.98)
    return min(first, second), max(first, second)


def counting(dice: Dice, batch: int) -> Case:
    """An exact count; at least `unknown` people are unknown."""
    m, (low, high) = dice.whole(1, 9), _box(dice)
    return Case(
        count=True,
        mechanism={},
        attacker={"p_min": low, "p_max": high, "unknown": dice.whole(1, m), "known": dice.whole(0, 2)},
        chances=_within(dice.rng, (m, batch), low, high),
        losses=lambda p, epsilon, exp: count_losses(p, 0, epsilon, exp),
        epsilons=_epsilons(dice, 2),
    )


def noisy_counting(dice: Dice, batch: int) -> Case:
    """A noisy count, with or without a threshold after the noise."""
    m, (low, high), noise = dice.whole(1, 7), _box(dice), dice.real(0.2, 3.0)
    release = dice.whole(0, m + 3) if dice.whole(0, 1) else None
    known, active, ones = _known(dice, 5)
    attacker = {"p_min": low, "p_max": high, "unknown": dice.whole(1, m), "known": known}
    if dice.whole(0, 3) == 0:
        attacker["unknown_max"] = m + dice.whole(0, 2)
    people = m if active else m + known
    return Case(
        count=True,
        mechanism={"release_threshold": release},
        noise=noise,
        attacker=attacker | {"influence": "active" if active else "passive"},
        chances=_within(dice.rng, (people, batch), low, high),
        losses=lambda p, epsilon, exp: count_losses(
            p[:m], ones if active else p[m:], epsilon, exp, noise=noise, release=release
        ),
        epsilons=(*_epsilons(dice, 1), dice.real(0.0, 1.05 * noise)),
    )


def _known(dice: Dice, k: int) -> tuple[int, bool, int]:
    """Return (known people, whether controlled, how many of them count if controlled)."""
    active = bool(dice.whole(0, 1))
    known = dice.whole(0, min(3, k - 2) if active else 6)
    return known, active, dice.whole(0, known)


def thresholding(dice: Dice, batch: int) -> Case:
    """A thresholded count: any number of people, zeros included, a cap, known people, noise after it."""
    return _thresholded(dice, batch, dice.real(0.2, 3.0) if dice.whole(0, 2) == 0 else None)


def noisy_threshold(dice: Dice, batch: int) -> Case:
    """The same, always with noise after it."""
    return _thresholded(dice, batch, (0.5, 1.0, dice.real(0.1, 3.0))[dice.whole(0, 2)])


def noisy_boxed(dice: Dice, batch: int) -> Case:
    """The same of people who are all in a box, at least so many of them unknown; mostly nobody is known."""
    noise, alone = (0.5, 1.0, dice.real(0.1, 3.0))[dice.whole(0, 2)], dice.whole(0, 3) > 0
    return _thresholded(dice, batch, noise, boxed=True, alone=alone)


def boxed(dice: Dice, batch: int) -> Case:
    """A thresholded count of people who are all in a box, at least so many of them unknown."""
    return _thresholded(dice, batch, dice.real(0.2, 3.0) if dice.whole(0, 4) == 0 else None, boxed=True)


def _thresholded(dice: Dice, batch: int, noise: float | None, *, boxed: bool = False, alone: bool = False) -> Case:
    m, k, high = dice.whole(1 if boxed else 0, 10), dice.whole(2, 7), _chance(dice)
    known, active, ones = (0, False, 0) if alone else _known(dice, k)
    attacker: dict[str, Any] = {"p_max": high, "known": known, "influence": "active" if active else "passive"}
    if dice.whole(0, 1):
        attacker["unknown_max"] = m + dice.whole(0, 2)
    low = 0.0
    if boxed or (m and dice.whole(0, 2) == 0):
        low = high if dice.whole(0, 9) == 0 else dice.real(0.001, high)
        attacker |= {"p_min": low, "unknown": dice.whole(1, m)}
    release = dice.whole(0, k + 5) if noise is not None and dice.whole(0, 2) else None
    people = m if active else m + known
    return Case(
        count=True,
        mechanism={"k": k, "release_threshold": release},
        noise=noise,
        attacker=attacker,
        chances=_within(dice.rng, (people, batch), low, high),
        losses=lambda p, epsilon, exp: count_losses(
            p[:m], ones if active else p[m:], epsilon, exp, k=k, noise=noise, release=release
        ),
        epsilons=_epsilons(dice, 2),
    )


def two_sided(dice: Dice, batch: int) -> Case:
    """A count hidden near zero and near the whole population, or near the whole population only."""
    m, (low, high) = dice.whole(0, 9), _box(dice)
    above = dice.whole(2, 5)
    k = dice.whole(2, 5) if dice.whole(0, 1) else None
    known, active, ones = _known(dice, above if k is None else min(k, above))
    attacker = {"p_min": low, "p_max": high, "known": known, "influence": "active" if active else "passive"}
    if dice.whole(0, 1):
        attacker["unknown_max"] = m + dice.whole(0, 2)
    if dice.whole(0, 1):
        attacker["unknown"] = dice.whole(0, m)
    people = m if active else m + known
    return Case(
        count=True,
        mechanism={"k": k, "k_complement": above},
        attacker=attacker,
        chances=_within(dice.rng, (people, batch), low, high),
        losses=lambda p, epsilon, exp: count_losses(
            p[:m], ones if active else p[m:], epsilon, exp, k=k, k_complement=above, population=m + known + 1
        ),
        epsilons=_epsilons(dice, 2),
    )


def _normal(weights: list[Any]) -> list[Any]:
    total: Any = sum(weights)
    return [weight / total for weight in weights]


def _table(
    dice: Dice, batch: int, *, value: bool, between: bool, person: Callable[[Any], list[Any]], least: float, most: float
) -> Case:
    """A k-anonymous histogram; `person` turns drawn numbers into the chances of the cells, absence last."""
    noise = dice.real(0.2, 3.0) if dice.whole(0, 3) == 0 else None
    cells = 2 if noise is not None else 3
    m, k = dice.whole(0, 3 if noise is not None else 5), dice.whole(2, 4)
    known, active, _ = _known(dice, k)
    if noise is not None:
        known = min(known, 1)
    if between:
        known = min(known, k - 2)
    spread = [dice.whole(0, cells) for _ in range(known)]
    controlled = tuple(spread.count(v) for v in range(cells))
    attacker: dict[str, Any] = {"known": known, "influence": "active" if active else "passive"}
    attacker["p_max_between" if between else "p_max"] = most
    if dice.whole(0, 2) == 0:
        attacker["unknown_max"] = m + dice.whole(0, 2)
    release = dice.whole(0, k + 3) if noise is not None and dice.whole(0, 1) else None
    total = between and noise is None

    def losses_of(numbers: Any, epsilon: float, exp: Exp) -> tuple[Any, Any]:
        people = [person(list(numbers[j])) for j in range(len(numbers))]
        return table_losses(
            people[:m],
            controlled if active else people[m:],
            epsilon,
            exp,
            cells=cells,
            lives=(0, 1) if value else (0, cells),
            k=k,
            noise=noise,
            release=release,
            total=total,
        )

    people = m if active else m + known
    chances = _within(dice.rng, (people, cells + 1, batch), least, most)
    if between:
        chances[:, cells] = _within(dice.rng, (people, batch), 0.0, 1.0)
    return Case(
        count=False,
        mechanism={"k": k, "release_threshold": release},
        noise=noise,
        attacker=attacker,
        protects="value" if value else "presence",
        chances=chances,
        losses=losses_of,
        epsilons=_epsilons(dice, 2),
    )


def _against_absence(numbers: list[Any]) -> list[Any]:
    """Return chances with exactly the drawn ``P[v | v or absent]``, whatever the other cells."""
    return _normal([*(c / (1 - c) for c in numbers[:-1]), 1])


def _between_cells(numbers: list[Any]) -> list[Any]:
    """Return chances whose cells differ by at most the odds drawn, times the chance of being there at all."""
    there = 1 - numbers[-1]
    return [*(there * weight for weight in _normal([c / (1 - c) for c in numbers[:-1]])), numbers[-1]]


def presence(dice: Dice, batch: int) -> Case:
    """Theorem B: is the target in a cell, or absent?"""
    return _table(dice, batch, value=False, between=False, person=_against_absence, least=0.0, most=_chance(dice, 0.9))


def value(dice: Dice, batch: int) -> Case:
    """Theorem B: in which of two cells is the target, where others may be absent?"""
    return _table(dice, batch, value=True, between=False, person=_against_absence, least=0.0, most=_chance(dice, 0.9))


def between(dice: Dice, batch: int) -> Case:
    """Theorem C: in which of two cells is the target? The number of people present is published as well."""
    most = 0.5 if dice.whole(0, 4) == 0 else dice.real(0.5, 0.95)
    return _table(dice, batch, value=True, between=True, person=_between_cells, least=0.5, most=most)


def options(dice: Dice, batch: int) -> Case:
    """Exact counts of several options, each chosen with at least p_min; absence may be likely or impossible."""
    cells, m = dice.whole(2, 3), dice.whole(1, 5)
    least = 1.0 / cells if dice.whole(0, 3) == 0 else dice.real(0.01, 1.0 / cells)
    k = dice.whole(1, 3) if dice.whole(0, 2) == 0 else None
    noise = dice.real(0.2, 3.0) if dice.whole(0, 3) == 0 else None
    release = dice.whole(0, 5) if noise is not None and dice.whole(0, 1) else None
    if noise is not None:
        m = min(m, 3)

    def losses_of(numbers: Any, epsilon: float, exp: Exp) -> tuple[Any, Any]:
        people = []
        for j in range(len(numbers)):
            free = 1 - sum([least + 0 * numbers[j][0]] * cells)
            people.append([least + free * part for part in _normal(list(numbers[j]))[:-1]])
            people[-1].append(1 - sum(people[-1]))
        return table_losses(
            people, (0,) * cells, epsilon, exp, cells=cells, lives=(0, 1), k=k, noise=noise, release=release
        )

    chances = _within(dice.rng, (m, cells + 1, batch), 0.0, 1.0)
    chances[:, :, chances.sum(axis=(0, 1)) == 0] = 1.0
    empty = chances.sum(axis=1) == 0.0
    chances[:, cells][empty] = 1.0
    return Case(
        count=False,
        mechanism={"k": k, "release_threshold": release},
        noise=noise,
        attacker={"p_min": least, "unknown": dice.whole(1, m)},
        protects="value",
        chances=chances,
        losses=losses_of,
        epsilons=_epsilons(dice, 2),
    )


def cells(dice: Dice, batch: int) -> Case:
    """Is the target in a cell, or absent, where everybody may be in every cell, exactly, with k, or with noise?"""
    many, m, most = dice.whole(1, 3), dice.whole(1, 5), _chance(dice, 0.9)
    largest = 0.999 / (many + (1.0 - most) / most)
    least = largest if dice.whole(0, 3) == 0 else dice.real(0.01 * largest, largest)
    k = dice.whole(1, 3) if dice.whole(0, 2) == 0 else None
    noise = dice.real(0.2, 3.0) if dice.whole(0, 2) == 0 else None
    release = dice.whole(0, 5) if noise is not None and dice.whole(0, 2) == 0 else None
    if noise is not None:
        many, m = min(many, 2), min(m, 3)
    known = dice.whole(0, 1 if k is None else max(0, min(1, k - 2)))

    def losses_of(numbers: Any, epsilon: float, exp: Exp) -> tuple[Any, Any]:
        people = []
        for j in range(len(numbers)):
            low, odds = (bound + 0 * numbers[j][0] for bound in (least, most))
            odds = odds / (1 - odds)
            person = [0 * low] * (many + 1)
            # Some cells are as likely as absence allows, the others as unlikely as is declared; and mixtures of that.
            for mask, weight in enumerate(_normal(list(numbers[j]))):
                top = [bool(mask >> cell & 1) for cell in range(many)]
                absent = (1 - (many - sum(top)) * low) / (1 + sum(top) * odds)
                corner = [*(odds * absent if high else low for high in top), absent]
                person = [chance + weight * more for chance, more in zip(person, corner, strict=True)]
            people.append(person)
        there = (known,) + (0,) * (many - 1)
        return table_losses(people, there, epsilon, exp, cells=many, lives=(0, many), k=k, noise=noise, release=release)

    chances = _within(dice.rng, (m, 2**many, batch), 0.0, 1.0)
    chances[:, 0][chances.sum(axis=1) == 0.0] = 1.0
    return Case(
        count=False,
        mechanism={"k": k, "release_threshold": release},
        noise=noise,
        attacker={"p_min": least, "p_max": most, "unknown": dice.whole(1, m), "known": known, "influence": "active"},
        chances=chances,
        losses=losses_of,
        epsilons=_epsilons(dice, 2),
    )


def anybody(dice: Dice, batch: int) -> Case:
    """Noise against attackers of whom nothing is declared: they may know everybody else for certain."""
    noise, m, kind = dice.real(0.2, 3.0), dice.whole(0, 3), dice.whole(0, 2)
    k = dice.whole(1, 3) if dice.whole(0, 1) else None
    release = dice.whole(0, 5) if k is not None or dice.whole(0, 1) else None
    shape = (m, batch) if kind == 0 else (m, 3, batch)
    chances = _within(dice.rng, shape, 0.0, 1.0)
    if kind:
        chances[:, 2][chances.sum(axis=1) == 0.0] = 1.0

    def losses_of(numbers: Any, epsilon: float, exp: Exp) -> tuple[Any, Any]:
        if kind == 0:
            return count_losses(numbers, 0, epsilon, exp, k=k, noise=noise, release=release)
        people = [_normal(list(numbers[j])) for j in range(len(numbers))]
        lives = (0, 1) if kind == 1 else (0, 2)
        return table_losses(people, (0, 0), epsilon, exp, cells=2, lives=lives, k=k, noise=noise, release=release)

    return Case(
        count=kind == 0,
        mechanism={"k": k, "release_threshold": release},
        noise=noise,
        attacker={},
        protects="value" if kind == 1 else "presence",
        chances=chances,
        losses=losses_of,
        epsilons=(*_epsilons(dice, 1), dice.real(0.0, 2.1 * noise)),
    )


FAMILIES: dict[str, Callable[[Dice, int], Case]] = {
    "counting": counting,
    "noisy_counting": noisy_counting,
    "thresholding": thresholding,
    "noisy_threshold": noisy_threshold,
    "noisy_boxed": noisy_boxed,
    "boxed": boxed,
    "two_sided": two_sided,
    "presence": presence,
    "value": value,
    "between": between,
    "options": options,
    "cells": cells,
    "anybody": anybody,
}
