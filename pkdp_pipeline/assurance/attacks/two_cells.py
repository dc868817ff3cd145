"""Events about two cells without noise: the sum of what each of them says, as a logarithm of a ratio of chances."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.random import Generator

from pkdp_pipeline.assurance.attacks.bounds import Array
from pkdp_pipeline.assurance.attacks.crowd import Crowd, Group
from pkdp_pipeline.assurance.attacks.laws import Cell
from pkdp_pipeline.assurance.attacks.tilted_draws import Tilted, Whole, exponent_for, mean_and_spread

MOST_PEOPLE = 20_000
"""With more people than this the law of a cell's count is not tabulated."""

_SPREADS = (2.0, 4.0, 7.0)
_SHARES = (0.5, 0.8, 0.95, 0.99, 1.0)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TwoCells:
    """Draws of two cells under a tilt; the event is that the scores of what they show add up to `level`.

    Outputs under which a draw may weigh more than ``e^cap`` (less the tilt's constant) are left out of the event.

    Parameters
    ----------
    people : Tilted
        Everybody who is not controlled; an attacker may forget what she knows.
    controlled : tuple of (int, int)
    lives : tuple of two (int, int)
        What the target adds to the two cells, in the first and in the second life.
    scores, weights : tuple of two arrays
        By true count: the score of what is then published, and the largest logarithm of the weight of any draw under
        which the same is published.
    growth, level, cap : float
    """

    people: Tilted
    controlled: tuple[int, int]
    lives: tuple[tuple[int, int], tuple[int, int]]
    scores: tuple[Array, Array]
    weights: tuple[Array, Array]
    growth: float
    level: float
    cap: float = math.inf

    @property
    def is_plain(self) -> bool:
        """Whether draws are from the true law and the event either happens or not."""
        return not any(self.people.exponents)

    @property
    def law(self) -> object:
        """What draws are from; events with the same law may share draws."""
        return self.people.cells, self.people.exponents

    def draw(self, draws: int, generator: Generator) -> Whole:
        """Return how many people are in the two cells."""
        return self.people.draw(draws, generator)

    def happens(self, state: Whole) -> tuple[Array, Array]:
        """Return whether the event happens in each of the two lives, given everybody else."""
        first, second = (self._happens(state, life) for life in self.lives)
        return first, second

    def values(self, state: Whole) -> Array:
        """Return independent numbers with the mean ``P[E] - e^ε Q[E]``."""
        first, second = self.happens(state)
        logs = self.people.log_mass - sum(t * row for t, row in zip(self.people.exponents, state, strict=True))
        seen = (first > 0.0) | (second > 0.0)
        weights = np.exp(np.where(seen, np.minimum(logs, 700.0), -np.inf))
        return weights * (first - self.growth * second)

    def reach(self) -> tuple[float, float]:
        """Return the range of `values`, for every draw that is possible."""
        top = min(self.cap, float(self.weights[0].max() + self.weights[1].max()))
        weight = math.exp(min(700.0, self.people.log_mass + top)) * (1.0 + 1e-9)
        return -self.growth * weight, weight

    def refined(self, state: Whole) -> Iterator[TwoCells]:
        """Yield the same event with other caps."""
        first = [self._looked_up(self.weights, state, life) for life in self.lives]
        told = np.concatenate(
            [found[happened > 0.0] for found, happened in zip(first, self.happens(state), strict=True)]
        )
        yield self
        if len(told):
            for cap in np.unique(np.quantile(told, _SHARES)).tolist():
                yield replace(self, cap=min(self.cap, cap + 1e-9))

    def _looked_up(self, tables: tuple[Array, Array], state: Whole, life: tuple[int, int]) -> Array:
        one, other = (
            table[row + fixed + added]
            for table, row, fixed, added in zip(tables, state, self.controlled, life, strict=True)
        )
        return np.asarray(one + other)

    def _happens(self, state: Whole, life: tuple[int, int]) -> Array:
        told = self._looked_up(self.scores, state, life) >= self.level
        if self.cap < math.inf:
            told &= self._looked_up(self.weights, state, life) <= self.cap
        return told.astype(np.float64)


def two_cell_trials(
    cell: Cell, crowd: Crowd, cells: tuple[int, int], epsilon: float, draws: int, generator: Generator
) -> Iterator[tuple[TwoCells, Whole]]:
    """Yield events about two cells, each with a few draws, among which one is to be chosen."""
    groups = (*crowd.unknown, *crowd.known)
    controlled = tuple(crowd.controlled[at] if crowd.controlled else 0 for at in cells)
    fixed = controlled[0], controlled[1]
    lives = tuple((int(life == cells[0]), int(life == cells[1])) for life in (crowd.first, crowd.second))
    scores = tuple(
        _scores(cell, _log_law(groups, at), extra, (int(crowd.first == at), int(crowd.second == at)))
        for at, extra in zip(cells, fixed, strict=True)
    )
    tilts = [_exponents(cell, groups, at, extra) for at, extra in zip(cells, fixed, strict=True)]
    for one in tilts[0]:
        for other in tilts[1]:
            weights = tuple(
                _heaviest(cell, theta, len(score) - 1, extra)
                for theta, score, extra in zip((one, other), scores, fixed, strict=True)
            )
            trial = TwoCells(
                people=Tilted(groups=groups, cells=cells, exponents=(one, other)),
                controlled=fixed,
                lives=(lives[0], lives[1]),
                scores=(scores[0], scores[1]),
                weights=(weights[0], weights[1]),
                growth=math.exp(epsilon),
                level=epsilon,
            )
            state = trial.draw(draws, generator)
            for capped in trial.refined(state):
                yield capped, state


def _exponents(cell: Cell, groups: Sequence[Group], at: int, controlled: int) -> list[float]:
    mean, spread = mean_and_spread(groups, at)
    people = sum(group.people for group in groups if group.chances[at] > 0.0)
    wanted = [mean + sign * times * spread for times in _SPREADS for sign in (-1.0, 1.0)]
    if cell.least > 0:
        wanted += [cell.least - controlled - 1.0, cell.least - controlled - 1.0 + spread]
    found = [exponent_for(groups, at, value) for value in wanted if 0.3 < value < people - 0.3]
    return [0.0, *sorted(set(found), key=abs)]


def _log_law(groups: Sequence[Group], at: int) -> Array:
    """Return the logarithms of the law of the number of people in a cell; all terms are positive."""
    from scipy.stats import binom

    law = np.ones(1)
    for group in groups:
        if group.people and group.chances[at] > 0.0:
            law = np.convolve(law, binom.pmf(np.arange(group.people + 1), group.people, group.chances[at]))
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(law))


def _scores(cell: Cell, logs: Array, controlled: int, added: tuple[int, int]) -> Array:
    """Return, by true count, the logarithm of how much likelier its output is in the first life."""
    size = len(logs) + controlled + 1
    sides = []
    for life in added:
        law = np.full(size, -np.inf)
        law[controlled + life : controlled + life + len(logs)] = logs
        dark = ~cell.shows(np.arange(size))
        if dark.any():
            law[dark] = np.logaddexp.reduce(law[dark])
        sides.append(law)
    first, second = sides
    with np.errstate(invalid="ignore"):
        scores = first - second
    # What neither life shows says nothing; what one life alone shows says everything, within what floats can add.
    return np.nan_to_num(np.where(np.isneginf(first), -1e6, scores), nan=0.0, posinf=1e6, neginf=-1e6)


def _heaviest(cell: Cell, theta: float, most: int, controlled: int) -> Array:
    """Return, by true count, the largest ``-θ x`` of any number x of others under which the same is published."""
    counts = np.arange(most + 1)
    others = np.clip(counts - controlled - (1 if theta > 0.0 else 0), 0, None)
    logs = -theta * others
    dark = ~cell.shows(counts)
    if dark.any():
        logs[dark] = logs[dark].max()
    return np.asarray(logs, dtype=np.float64)
