"""Draws of how many people are in a cell under tilted chances; events about one, and what a draw says of them.

A person's chances ``p_v`` become proportional to ``p_v e^{θ_v}``. A draw with the counts ``x_v`` then stands for
``M e^{-Σ θ_v x_v}`` draws of the true law, where M is the product of everybody's normalising constants.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from pkdp_pipeline.extras.assurance.attacks.crowd import Crowd, Group
from pkdp_pipeline.extras.assurance.attacks.enumeration import Cell

Array = NDArray[np.float64]
Whole = NDArray[np.int64]
OneCellState = tuple[Whole, Whole, Array]
"""How many unknown, and how many known people are in the cell; and the sum of the formers' odds (see `OneCell`)."""

_MAX_EXPONENT = 60.0
_CUTS = 16
_FINE_CUTS = 60
_SPREADS = (1.0, 2.0, 3.0, 4.5, 6.0, 8.0, 11.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class TiltedPeople:
    """Some people, looked at in some cells, with an exponent for each of these.

    `exponents`: θ of each cell; 0 everywhere is the true law.
    """

    groups: tuple[Group, ...]
    cells: tuple[int, ...]
    exponents: tuple[float, ...]

    @property
    def log_mass(self) -> float:
        """The logarithm of M."""
        total = 0.0
        for group in self.groups:
            gain = sum(
                group.chances[cell] * math.expm1(theta) for cell, theta in zip(self.cells, self.exponents, strict=True)
            )
            if group.people:
                total += group.people * math.log1p(gain)
        return total

    def draw(self, draws: int, generator: Generator) -> Whole:
        """Return counts, one row per cell, one column per draw."""
        counts = np.zeros((len(self.cells), draws), dtype=np.int64)
        for _, drawn in self.each(draws, generator):
            counts += drawn
        return counts

    def each(self, draws: int, generator: Generator) -> Iterator[tuple[Group, Whole]]:
        """Yield every group with its counts, one row per cell, one column per draw."""
        for group in self.groups:
            chances = [group.chances[cell] for cell in self.cells]
            weights = [chance * math.exp(theta) for chance, theta in zip(chances, self.exponents, strict=True)]
            # What is left for elsewhere, without cancellation where the cells take nearly everything.
            rest = max(0.0, float(1 - sum(map(Fraction, chances), Fraction(0))))
            drawn = np.zeros((len(self.cells), draws), dtype=np.int64)
            left: Whole | int = group.people
            for row, weight in enumerate(weights):
                total = sum(weights[row:]) + rest
                drawn[row] = generator.binomial(left, 0.0 if total <= 0.0 else min(1.0, weight / total), size=draws)
                left = left - drawn[row]
            yield group, drawn


def mean_and_spread(groups: Sequence[Group], cell: int, exponent: float = 0.0) -> tuple[float, float]:
    """Return mean and standard deviation of the (tilted) number of people in `cell`."""
    mean, variance = 0.0, 0.0
    for group in groups:
        chance = group.chances[cell]
        # The logistic function of the tilted log-odds, from the side that does not overflow.
        raised = 1.0 if chance == 1.0 else chance * math.exp(min(exponent, _MAX_EXPONENT))
        share = chance if chance in (0.0, 1.0) else raised / (1.0 - chance + raised)
        mean += group.people * share
        variance += group.people * share * (1.0 - share)
    return mean, math.sqrt(variance)


def exponent_for(groups: Sequence[Group], cell: int, mean: float) -> float:
    """Return the exponent under which about `mean` people are in `cell`."""
    low, high = -_MAX_EXPONENT, _MAX_EXPONENT
    for _ in range(60):
        middle = (low + high) / 2.0
        if mean_and_spread(groups, cell, middle)[0] < mean:
            low = middle
        else:
            high = middle
    return (low + high) / 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class OneCell:
    """Draws of one cell under a tilt, and a tail of what it shows as the event.

    The attacker, who knows that `b` known people are there, looks at the published number less `b`; the event is that
    this reaches `cut` (or stays at or below it), or that the cell is suppressed, where `hidden` says so.

    Parameters
    ----------
    cell : Cell
        The steps of the mechanism.
    unknown, known : TiltedPeople
        Where noise is added known people are among the unknown: an attacker may forget what she knows.
    lives : tuple of (int, int)
        Whether the target is there (1) or not (0), in the first and in the second life.
    growth : float
        e^ε.
    upper : bool
        Whether the event is the upper tail.
    hidden : float
        Suppression belongs to the event where at least this many people are known or controlled to be there.
    """

    cell: Cell
    unknown: TiltedPeople
    known: TiltedPeople
    controlled: int
    lives: tuple[int, int]
    growth: float
    upper: bool
    cut: int = 0
    hidden: float = math.inf

    @property
    def law(self) -> object:
        """The law of the draws; events with the same law may share them."""
        return self._cell_index, self.lives, self.unknown.exponents, self.known.exponents

    def draw(self, draws: int, generator: Generator) -> OneCellState:
        """Return how many unknown and how many known people are in the cell, and the odds of the former."""
        others, odds = np.zeros(draws, dtype=np.int64), np.zeros(draws)
        for group, drawn in self.unknown.each(draws, generator):
            others += drawn[0]
            if _is_open(group, self._cell_index):
                odds += drawn[0] * _odds(group, self._cell_index, self.lives[0] == 1)
        return others, self.known.draw(draws, generator)[0], odds

    def happens(self, state: OneCellState) -> tuple[Array, Array]:
        """Return the chance of the event in each of the two lives, given everybody else."""
        first, second = (self._happens(state[0] + life, state[1] + self.controlled) for life in self.lives)
        return first, second

    def values(self, state: OneCellState) -> Array:
        """Return independent numbers with the mean ``P[E] - e^ε Q[E]``."""
        first, second = self.happens(state)
        gains = self._paired(first, second, state) if self.cell.noise is None else first - self.growth * second
        logs = self.unknown.log_mass + self.known.log_mass + self._logs(*state[:2])
        weights = np.exp(np.where(gains != 0.0, np.minimum(logs, 700.0), -np.inf))
        return np.asarray(weights * gains)

    def _paired(self, first: Array, second: Array, state: OneCellState) -> Array:
        """Return what a draw says when the same is shown in both lives: somebody else takes the target's place.

        Notes
        -----
        With odds ``r_j`` of the people who are neither surely there nor surely not, n of them, x of whom are there:
        ``E[x h(x)] = E[h(x + 1) Σ r_j]`` over those not there, and ``E[(n - x) h(x)] = E[h(x - 1) Σ 1/r_j]`` over
        those there. So ``Q[E]`` is the mean of a number times what happens in the first life, but for draws in which
        nobody can take the place. The difference of the two lives then hardly varies.
        """
        uncertain = state[0] - self._facts.sure
        if self.lives[0] == 1:
            ratio, alone = (self._facts.all_odds - state[2]) / (uncertain + 1.0), uncertain == 0
        else:
            ratio, alone = state[2] / (self._facts.open - uncertain + 1.0), uncertain == self._facts.open
        return first * (1.0 - self.growth * np.maximum(ratio, 0.0)) - self.growth * np.where(alone, second, 0.0)

    def reach(self) -> tuple[float, float]:
        """Return what `values` are at least, for every draw that is possible; and what they hardly exceed.

        Notes
        -----
        Given how many known people are there, the chance of the event is at most a sum of exponentials of the others'
        number, in pieces; so is its product with the weight, which is therefore largest where two pieces meet. Without
        noise the difference is weight times ``1 - e^ε ratio``: where it is negative, it falls towards the end of a
        piece; where it is positive, it may be larger within one, and `mean_below` cuts it off.
        """
        known = np.arange(1 + sum(group.people for group in self.known.groups))
        marks: list[Whole] = [np.full(len(known), x) for x in (self._facts.sure, self._facts.sure + self._facts.open)]
        marks += [np.full(len(known), self.cut + step) for step in (-2, -1, 0, 1)]
        for edge in (self.cell.least, self.cell.most, self.cell.release):
            if edge is not None:
                marks += [edge - self.controlled - known + step for step in (-2, -1, 0, 1)]
        others, base = np.concatenate(marks), np.tile(known, len(marks))
        possible = (others >= self._facts.sure) & (others <= self._facts.sure + self._facts.open)
        others, base = others[possible], base[possible]
        first, second = (self._envelope(others + life, base + self.controlled) for life in self.lives)
        mass = self.unknown.log_mass + self.known.log_mass
        weights = np.exp(np.minimum(700.0, self._logs(others, base) + mass)) * (1.0 + 1e-9)
        if self.cell.noise is not None:
            return -self.growth * float((weights * second).max(initial=0.0)), float((weights * first).max(initial=0.0))
        uncertain = others - self._facts.sure
        if self.lives[0] == 1:
            shape, alone = (self._facts.open - uncertain) / (uncertain + 1.0), uncertain == 0
        else:
            shape, alone = uncertain / (self._facts.open - uncertain + 1.0), uncertain == self._facts.open
        low, high = (self.growth * odds for odds in self._facts.odds_range)
        more = weights * first * np.maximum(0.0, 1.0 - low * shape)
        with np.errstate(over="ignore"):
            less = weights * (first * np.maximum(0.0, high * shape - 1.0) + self.growth * second * alone)
        return -min(1e300, float(less.max(initial=0.0))), float(more.max(initial=0.0))

    @property
    def _cell_index(self) -> int:
        return self.unknown.cells[0]

    @property
    def _facts(self) -> _GroupFacts:
        return _facts(self.unknown.groups, self._cell_index, self.lives[0] == 1)

    def refined(self, state: OneCellState) -> Iterator[OneCell]:
        """Yield the same event with other cuts."""
        for cut in _cuts(state[0], self, _FINE_CUTS):
            yield replace(self, cut=cut)

    def _logs(self, others: Whole, known: Whole) -> Array:
        return -self.unknown.exponents[0] * others - self.known.exponents[0] * known

    def _happens(self, others: Whole, base: Whole) -> Array:
        total, dark = others + base, (base >= self.hidden).astype(np.float64)
        shown = self.cell.shows(total)
        noise, release = self.cell.noise, self.cell.release
        if noise is None:
            reached = others >= self.cut if self.upper else others <= self.cut
            return np.where(shown, reached.astype(np.float64), dark)
        # Given the true count the chance of the event is a tail of the noise, or the difference of two.
        low = self.cut + base
        if self.upper:
            chance = _reaches((low if release is None else np.maximum(low, release)) - total, noise)
        elif release is None:
            chance = _reaches(total - low, noise)
        else:
            chance = np.maximum(0.0, _reaches(release - total, noise) - _reaches(low + 1 - total, noise))
        if release is not None:
            chance = chance + dark * _reaches(total - release + 1, noise)
        return np.where(shown, chance, dark)

    def _envelope(self, others: Whole, base: Whole) -> Array:
        """Return at least the chance of the event, as a sum of exponentials in pieces."""
        noise, release = self.cell.noise, self.cell.release
        if noise is None:
            return self._happens(others, base)
        total, dark = others + base, (base >= self.hidden).astype(np.float64)
        low = self.cut + base
        gap = low - total if self.upper else total - low
        if release is not None:
            gap = np.maximum(gap, release - total)
        chance = np.exp(-noise * np.maximum(gap, 0))
        if release is not None:
            chance = chance + dark * np.exp(-noise * np.maximum(total - release + 1, 0))
        return np.where(self.cell.shows(total), chance, dark)


def _is_open(group: Group, index: int) -> bool:
    return group.people > 0 and 0.0 < group.chances[index] < 1.0


def _odds(group: Group, index: int, present: bool) -> float:
    """Return the odds for being in the cell where the target is there first, else those against it."""
    chance = Fraction(group.chances[index])
    return float(chance / (1 - chance) if present else (1 - chance) / chance)


class _GroupFacts(NamedTuple):
    """How many people may be in the cell or not, how many surely are; the sum and the range of the odds."""

    open: int
    sure: int
    all_odds: float
    odds_range: tuple[float, float]


@lru_cache(maxsize=32)
def _facts(groups: tuple[Group, ...], index: int, present: bool) -> _GroupFacts:
    uncertain = [group for group in groups if _is_open(group, index)]
    odds = [_odds(group, index, present) for group in uncertain]
    return _GroupFacts(
        sum(group.people for group in uncertain),
        sum(group.people for group in groups if group.chances[index] == 1.0),
        sum(group.people * each for group, each in zip(uncertain, odds, strict=True)),
        (min(odds, default=0.0), max(odds, default=0.0)),
    )


def _reaches(gap: Whole, noise: float) -> Array:
    """Return ``P[Z >= gap]`` for two-sided geometric noise."""
    share = 1.0 / (1.0 + math.exp(-noise))
    above = np.exp(-noise * np.maximum(gap, 0)) * share
    return np.where(gap >= 1, above, 1.0 - np.exp(-noise * np.maximum(1 - gap, 0)) * share)


def one_cell_trials(
    cell: Cell, crowd: Crowd, index: int, epsilon: float, draws: int, generator: Generator
) -> Iterator[tuple[OneCell, OneCellState]]:
    """Yield events about the cell `index`, each with a few draws, among which one is to be chosen."""
    noisy = cell.noise is not None
    everybody = (*crowd.unknown, *crowd.known)
    unknown, known = (everybody, ()) if noisy else (crowd.unknown, crowd.known)
    controlled = crowd.controlled[index] if crowd.controlled else 0
    lives = int(crowd.first == index), int(crowd.second == index)
    # The more people are shown, the likelier is the life in which the target is there.
    upper = lives[0] == 1
    for theta in _exponents(cell, everybody, index, controlled, epsilon if upper else -epsilon):
        for known_theta in (theta, 0.0) if known and theta else (theta,):
            trial = OneCell(
                cell=cell,
                unknown=TiltedPeople(groups=unknown, cells=(index,), exponents=(theta,)),
                known=TiltedPeople(groups=known, cells=(index,), exponents=(known_theta,)),
                controlled=controlled,
                lives=lives,
                growth=math.exp(epsilon),
                upper=upper,
            )
            state = trial.draw(draws, generator)
            for hidden in _hidden(cell, state[1] + controlled):
                for cut in _cuts(state[0], trial, _CUTS):
                    yield replace(trial, cut=cut, hidden=hidden), state


def _exponents(cell: Cell, groups: Sequence[Group], index: int, controlled: int, epsilon: float) -> list[float]:
    """Return exponents that lead to where an event may be, of the sign of `epsilon`."""
    mean, spread = mean_and_spread(groups, index)
    sure = sum(group.people for group in groups if group.chances[index] == 1.0)
    people = sum(group.people for group in groups if group.chances[index] > 0.0)
    sign = math.copysign(1.0, epsilon)
    wanted = [mean + sign * times * spread for times in _SPREADS]
    for edge in (cell.least, cell.most, cell.release):
        if edge is not None:
            wanted += [edge - controlled - 1.0 + times * spread for times in (-0.5, 0.0, 0.5)]
    exponents = [0.0, epsilon]
    exponents += [exponent_for(groups, index, value) for value in wanted if sure + 0.3 < value < people - 0.3]
    if people > sure:
        exponents.append(exponent_for(groups, index, people - 0.3 if sign > 0 else sure + 0.3))
    return sorted({theta for theta in exponents if theta * sign >= 0.0}, key=abs)


def _cuts(counts: Whole, trial: OneCell, most: int) -> list[int]:
    values = np.unique(counts)
    if len(values) > most:
        values = np.unique(np.quantile(counts, np.linspace(0.001, 0.999, most)).astype(np.int64))
    cuts = {int(value) for value in values} | {int(values[-1]) + 1}
    cuts |= {edge - trial.controlled for edge in (trial.cell.least, trial.cell.release) if edge is not None}
    return sorted(cuts)


def _hidden(cell: Cell, base: Whole) -> list[float]:
    """Return from how many known people on suppression may belong to the event; infinity for never."""
    if cell.least <= 0 and cell.most is None and cell.release is None:
        return [math.inf]
    values = np.unique(base)
    if len(values) > 5:
        values = np.unique(np.quantile(base, np.linspace(0.0, 1.0, 5)).astype(np.int64))
    return [math.inf, *map(float, values.tolist())]
