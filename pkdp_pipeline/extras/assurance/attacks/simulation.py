"""A crowd's attained loss, from draws of its law: for crowds too large, or too many cells, to enumerate.

A few events (tails of what is shown, or of the sum of what two cells say) and exponential tilts are tried on a pilot
sample; the best one is judged on fresh draws. For every event, ``P[E] - e^ε Q[E]`` is at most the divergence. Both
lives are seen through the same draws of the others, and the noise is integrated out. Nothing here uses
`pkdp_pipeline.theorems`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, product
from typing import Any

import numpy as np
from numpy.random import Generator

from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.extras.assurance.attacks.crowd import Crowd, Group
from pkdp_pipeline.extras.assurance.attacks.enumeration import Cell, cell_of
from pkdp_pipeline.extras.assurance.attacks.one_cell import (
    Array,
    OneCell,
    TiltedPeople,
    Whole,
    exponent_for,
    mean_and_spread,
    one_cell_trials,
)
from pkdp_pipeline.model.mechanisms import Count, Mechanism

_ROUNDING = 1e-9
"""Weights and chances in floating point err by less than this, relatively."""

_PILOT = 4_000
_SECOND_PILOT = 20_000
_FINALISTS = 6
_BATCH_SIZE = 1_000_000

_MAX_PEOPLE = 20_000
"""With more people than this the law of a cell's count is not tabulated."""

_SPREADS = (2.0, 4.0, 7.0)
_SHARES = (0.5, 0.8, 0.95, 0.99, 1.0)


def simulated(
    mechanism: Mechanism, crowd: Crowd, epsilon: float, *, draws: int, error: float, generator: Generator
) -> float:
    """Return what `crowd` attains at `epsilon` at least, from draws; not of a `Count` of several cells.

    At least 2 `draws` judge the event; choosing it takes some more. The returned number exceeds the true divergence
    with probability `error` at most.

    Notes
    -----
    The total is not looked at, where the crowd sees it: ignoring what is known tells no more. Where everybody
    is surely present, or surely not, it says nothing. Nor are noised counts where larger ones are exact: from the
    noise's ε on they tell nothing.

    *Guarantee*: for any number of draws, by the empirical Bernstein bound (weights are bounded on the event).
    *Rounding*: down.
    """
    if (isinstance(mechanism, Count) or mechanism.totals) and crowd.cells > 1:
        raise ArgumentError("a Count of everybody in several cells is enumerated, not simulated.")
    pilot = min(_PILOT, max(500, draws // 8))
    trial = _chosen(_trials(mechanism, crowd, epsilon, pilot, generator), draws, error, generator)
    # The event is judged by fresh draws.
    sizes = (min(_BATCH_SIZE, draws - start) for start in range(0, draws, _BATCH_SIZE))
    states: Iterator[Any] = (trial.draw(size, generator) for size in sizes)
    values = np.concatenate([trial.values(state) for state in states])
    least, most = trial.reach()
    return max(0.0, mean_below(values, least, most, error))


def mean_below(values: Array, least: float, most: float, error: float, *, draws: int | None = None) -> float:
    """Return a lower bound of the mean of independent numbers, `least` or more, that fails with `error` at most.

    A value above `most` counts as `most`, which lowers the mean. With `draws`, the bound likely after this many is
    returned, from a few.

    Notes
    -----
    Empirical Bernstein bound (Maurer and Pontil, 2009): ``mean - (√(2 V L / n) + 7 (most - least) L / (3 (n - 1)))``
    with the sample variance V and ``L = ln(2 / error)``; good where the deviation is small against the range.
    """
    if len(values) < 2:
        return least
    if draws is not None and not values.any():
        return -math.inf
    values = np.minimum(values, most)
    number, mean, variance = draws or len(values), float(values.mean()), float(values.var(ddof=1))
    log = math.log(2.0 / error)
    reach = math.sqrt(2.0 * variance * log / number) + 7.0 * (most - least) * log / (3.0 * (number - 1))
    return mean - reach - _ROUNDING * (abs(mean) + math.sqrt(variance))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _TwoCells:
    """Draws of two cells under a tilt; the event is that the scores of what they show add up to ε at least.

    Outputs under which a draw may weigh more than ``e^cap`` (less the tilt's constant) are left out of the event.

    Parameters
    ----------
    people : TiltedPeople
        Everybody who is not controlled; an attacker may forget what she knows.
    lives : sequence of two (int, int)
        The target's addition to the two cells, in the first and in the second life.
    scores, weights : sequences of two arrays
        By true count: the score of what is then published, and the largest logarithm of the weight of any draw under
        which the same is published.
    """

    people: TiltedPeople
    controlled: Sequence[int]
    lives: Sequence[Sequence[int]]
    scores: Sequence[Array]
    weights: Sequence[Array]
    epsilon: float
    cap: float = math.inf

    @property
    def law(self) -> object:
        """The law of the draws; events with the same law may share them."""
        return self.people.cells, self.people.exponents

    def draw(self, draws: int, generator: Generator) -> Whole:
        """Return how many people are in the two cells."""
        return self.people.draw(draws, generator)

    def happens(self, state: Whole) -> list[Array]:
        """Return whether the event happens in each of the two lives, given everybody else."""
        return [
            (
                (self._looked_up(self.scores, state, life) >= self.epsilon)
                & (self._looked_up(self.weights, state, life) <= self.cap)
            ).astype(np.float64)
            for life in self.lives
        ]

    def values(self, state: Whole) -> Array:
        """Return independent numbers with the mean ``P[E] - e^ε Q[E]``."""
        first, second = self.happens(state)
        logs = self.people.log_mass - sum(t * row for t, row in zip(self.people.exponents, state, strict=True))
        possible = (first > 0.0) | (second > 0.0)
        weights = np.exp(np.where(possible, np.minimum(logs, 700.0), -np.inf))
        return weights * (first - math.exp(self.epsilon) * second)

    def reach(self) -> tuple[float, float]:
        """Return the range of `values`, for every draw that is possible."""
        top = min(self.cap, float(self.weights[0].max() + self.weights[1].max()))
        weight = math.exp(min(700.0, self.people.log_mass + top)) * (1.0 + 1e-9)
        return -math.exp(self.epsilon) * weight, weight

    def refined(self, state: Whole) -> Iterator[_TwoCells]:
        """Yield the same event with other caps."""
        weights = [self._looked_up(self.weights, state, life) for life in self.lives]
        relevant = np.concatenate(
            [of[happened > 0.0] for of, happened in zip(weights, self.happens(state), strict=True)]
        )
        yield self
        if len(relevant):
            for cap in np.unique(np.quantile(relevant, _SHARES)).tolist():
                yield replace(self, cap=min(self.cap, cap + 1e-9))

    def _looked_up(self, tables: Sequence[Array], state: Whole, life: Sequence[int]) -> Array:
        first, second = (
            table[row + fixed + added]
            for table, row, fixed, added in zip(tables, state, self.controlled, life, strict=True)
        )
        return np.asarray(first + second)


_Trial = OneCell | _TwoCells
"""An event, and a law to draw from."""


def _trials(
    mechanism: Mechanism, crowd: Crowd, epsilon: float, pilot: int, generator: Generator
) -> Iterable[tuple[_Trial, Any]]:
    """Return events, each with a few draws, among which one is to be chosen."""
    cell = cell_of(mechanism, crowd.population)
    if cell.exact is not None:
        cell = Cell(least=cell.exact)
    cells = [life for life in (crowd.first, crowd.second) if life is not None]
    singles = (one_cell_trials(cell, crowd, index, epsilon, pilot, generator) for index in cells)
    pairs: Iterable[tuple[_Trial, Any]] = ()
    if len(cells) == 2 and cell.noise is None and crowd.population <= _MAX_PEOPLE:
        pairs = _two_cell_trials(cell, crowd, cells, epsilon, pilot, generator)
    return chain(chain.from_iterable(singles), pairs)


def _chosen(trials: Iterable[tuple[_Trial, Any]], draws: int, error: float, generator: Generator) -> _Trial:
    """Return the event whose lower bound after `draws` draws promises to be the largest."""
    listed = sorted(
        ((_promise(trial, state, draws, error), trial) for trial, state in trials), key=lambda each: -each[0]
    )
    # A few draws flatter the first: the best of some different laws are compared on more draws.
    finalists: dict[Any, _Trial] = {}
    for _, trial in listed:
        if len(finalists) < _FINALISTS:
            finalists.setdefault(trial.law, trial)
    promises: list[tuple[float, _Trial]] = []
    for trial in finalists.values():
        state: Any = trial.draw(min(_SECOND_PILOT, draws), generator)
        promises += [(_promise(other, state, draws, error), other) for other in trial.refined(state)]
    best: _Trial = max(promises, key=lambda each: each[0])[1]
    return best


def _promise(trial: _Trial, state: Any, draws: int, error: float) -> float:
    return mean_below(trial.values(state), *trial.reach(), error, draws=draws)


def _two_cell_trials(
    cell: Cell, crowd: Crowd, cells: Sequence[int], epsilon: float, draws: int, generator: Generator
) -> Iterator[tuple[_TwoCells, Whole]]:
    groups = (*crowd.unknown, *crowd.known)
    controlled = [crowd.controlled[index] if crowd.controlled else 0 for index in cells]
    lives = [[int(life == index) for index in cells] for life in (crowd.first, crowd.second)]
    places = list(zip(cells, controlled, strict=True))
    scores = [
        _scores(cell, _log_law(groups, index), extra, added)
        for (index, extra), added in zip(places, zip(*lives, strict=True), strict=True)
    ]
    for tilts in product(*(_exponents(cell, groups, index, extra) for index, extra in places)):
        trial = _TwoCells(
            people=TiltedPeople(groups=groups, cells=tuple(cells), exponents=tilts),
            controlled=controlled,
            lives=lives,
            scores=scores,
            weights=[
                _heaviest(cell, theta, len(score) - 1, extra)
                for theta, score, extra in zip(tilts, scores, controlled, strict=True)
            ],
            epsilon=epsilon,
        )
        state = trial.draw(draws, generator)
        for capped in trial.refined(state):
            yield capped, state


def _exponents(cell: Cell, groups: Sequence[Group], index: int, controlled: int) -> list[float]:
    mean, spread = mean_and_spread(groups, index)
    people = sum(group.people for group in groups if group.chances[index] > 0.0)
    wanted = [mean + sign * times * spread for times in _SPREADS for sign in (-1.0, 1.0)]
    if cell.least > 0:
        wanted += [cell.least - controlled - 1.0, cell.least - controlled - 1.0 + spread]
    exponents = [exponent_for(groups, index, value) for value in wanted if 0.3 < value < people - 0.3]
    return [0.0, *sorted(set(exponents), key=abs)]


def _log_law(groups: Sequence[Group], index: int) -> Array:
    """Return the logarithms of the law of the number of people in a cell; all terms are positive."""
    from scipy.stats import binom

    law = np.ones(1)
    for group in groups:
        if group.people and group.chances[index] > 0.0:
            law = np.convolve(law, binom.pmf(np.arange(group.people + 1), group.people, group.chances[index]))
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(law))


def _scores(cell: Cell, logs: Array, controlled: int, added: Sequence[int]) -> Array:
    """Return, by true count, the logarithm of how much likelier its output is in the first life."""
    size = len(logs) + controlled + 1
    dark = ~cell.shows(np.arange(size))
    first, second = sides = np.full((2, size), -np.inf)
    for law, life in zip(sides, added, strict=True):
        law[controlled + life : controlled + life + len(logs)] = logs
        if dark.any():
            law[dark] = np.logaddexp.reduce(law[dark])
    with np.errstate(invalid="ignore"):
        scores = first - second
    # What neither life shows says nothing; what one life alone shows says everything, within what floats can add.
    return np.nan_to_num(np.where(np.isneginf(first), -1e6, scores), nan=0.0, posinf=1e6, neginf=-1e6)


def _heaviest(cell: Cell, theta: float, most: int, controlled: int) -> Array:
    """Return, by true count, the largest ``-θ x`` of any number x of others under which the same is published."""
    counts = np.arange(most + 1)
    logs: Array = -theta * np.clip(counts - controlled - (1 if theta > 0.0 else 0), 0, None).astype(np.float64)
    dark = ~cell.shows(counts)
    if dark.any():
        logs[dark] = logs[dark].max()
    return logs
