"""What a crowd attains, from draws of its law: for crowds too large, or too many cells, to enumerate.

A few events (tails of what is shown, or of the sum of what two cells say) and exponential tilts are tried on a pilot
sample; the best one is judged on fresh draws. Whatever the event, ``P[E] - e^ε Q[E]`` is at most the divergence. Both
lives are seen through the same draws of the others, and the noise is integrated out. Nothing here uses
`pkdp_pipeline.theorems`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
from numpy.random import Generator

from pkdp_pipeline.assurance.attacks.bounds import bernstein, clopper_pearson, promised
from pkdp_pipeline.assurance.attacks.crowd import Crowd
from pkdp_pipeline.assurance.attacks.laws import cell_of
from pkdp_pipeline.assurance.attacks.one_cell import OneCell, one_cell_trials
from pkdp_pipeline.assurance.attacks.two_cells import MOST_PEOPLE, TwoCells, two_cell_trials
from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.model.arguments import probability, whole_number
from pkdp_pipeline.model.mechanisms import Count, Mechanism

_PILOT = 4_000
_SECOND_PILOT = 20_000
_FINALISTS = 6
_AT_ONCE = 1_000_000

_ROUNDING = 1e-9
"""Weights and chances in floating point err by less than this, relatively."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulated:
    """What an attacker attains at `epsilon` by one event, chosen before the draws that judge it.

    Attributes
    ----------
    epsilon : float
    draws : int
    estimate : float
        Of ``P[E] - e^ε Q[E]`` for the event E.
    lower : float
        At or below it, hence at or below the divergence, with probability `confidence`.
    upper : float
        At or above ``P[E] - e^ε Q[E]`` with probability `confidence`; the divergence may be larger than that.
    confidence : float
    """

    epsilon: float
    draws: int
    estimate: float
    lower: float
    upper: float
    confidence: float


_Trial = OneCell | TwoCells
"""An event, and a law to draw from."""


def simulated(
    mechanism: Mechanism, crowd: Crowd, epsilon: float, *, draws: int, confidence: float, generator: Generator
) -> Simulated:
    """Return what `crowd` attains at `epsilon`, from draws.

    Parameters
    ----------
    mechanism : Count or Histogram
        Not a `Count` of several cells.
    crowd : Crowd
    epsilon : float
        At least 0 and finite.
    draws : int
        How many draws judge the event; choosing it takes some more.
    confidence : float
        In (0, 1). ``lower`` exceeds the true divergence with probability ``1 - confidence`` at most.
    generator : numpy.random.Generator

    Notes
    -----
    The total is not looked at, where the crowd sees it: whoever ignores what is known learns no more. Where everybody
    is surely present, or surely not, it says nothing.

    *Guarantee*: for any number of draws, by the empirical Bernstein bound for weighted draws (their weights are bounded
    on the event) and by Clopper and Pearson's for plain ones. *Rounding*: ``lower`` down, ``upper`` up.
    """
    draws, error = whole_number("draws", draws, least=2), 1.0 - probability("confidence", confidence)
    if isinstance(mechanism, Count) and crowd.cells > 1:
        raise ArgumentError("a Count of everybody in several cells is enumerated, not simulated.")
    pilot = min(_PILOT, max(500, draws // 8))
    trial = _chosen(_trials(mechanism, crowd, epsilon, pilot, generator), draws, error, generator)
    estimate, lower, upper = _judged(trial, epsilon, draws, error, generator)
    slack = _ROUNDING * max(abs(lower), abs(upper), abs(estimate))
    return Simulated(
        epsilon=float(epsilon),
        draws=draws,
        estimate=max(0.0, estimate),
        lower=max(0.0, lower - slack),
        upper=min(1.0, max(0.0, upper + slack)),
        confidence=float(confidence),
    )


def _trials(
    mechanism: Mechanism, crowd: Crowd, epsilon: float, pilot: int, generator: Generator
) -> Iterable[tuple[_Trial, Any]]:
    cell = cell_of(mechanism, crowd.population)
    told = [life for life in (crowd.first, crowd.second) if life is not None]
    singles = (one_cell_trials(cell, crowd, at, epsilon, pilot, generator) for at in told)
    pairs: Iterable[tuple[_Trial, Any]] = ()
    if len(told) == 2 and cell.noise is None and crowd.population <= MOST_PEOPLE:
        pairs = two_cell_trials(cell, crowd, (told[0], told[1]), epsilon, pilot, generator)
    return chain(chain.from_iterable(singles), pairs)


def _chosen(trials: Iterable[tuple[_Trial, Any]], draws: int, error: float, generator: Generator) -> _Trial:
    """Return the event whose lower bound after `draws` draws promises to be the largest."""
    listed = sorted(((_promise(one, state, draws, error), one) for one, state in trials), key=lambda each: -each[0])
    # A few draws flatter whoever comes first: the best of some different laws are compared on more draws.
    finalists: dict[Any, _Trial] = {}
    for _, one in listed:
        if len(finalists) < _FINALISTS:
            finalists.setdefault(one.law, one)
    promises: list[tuple[float, _Trial]] = []
    for one in finalists.values():
        state: Any = one.draw(min(_SECOND_PILOT, draws), generator)
        promises += [(_promise(other, state, draws, error), other) for other in one.refined(state)]
    best: _Trial = max(promises, key=lambda each: each[0])[1]
    return best


def _promise(trial: _Trial, state: Any, draws: int, error: float) -> float:
    values = trial.values(state)
    if trial.is_plain and values.any():
        mean, variance = float(values.mean()), float(values.var())
        return mean - math.sqrt(2.0 * math.log(2.0 / error) * (variance + 1.0 / draws) / draws)
    return promised(values, *trial.reach(), draws, error)


def _judged(
    trial: _Trial, epsilon: float, draws: int, error: float, generator: Generator
) -> tuple[float, float, float]:
    """Return (estimate, lower, upper) from fresh draws."""
    starts = range(0, draws, _AT_ONCE)
    states: Iterator[Any] = (trial.draw(min(_AT_ONCE, draws - start), generator) for start in starts)
    if trial.is_plain:
        happened = [trial.happens(state) for state in states]
        one, other = (int(sum(float(side[at].sum()) for side in happened)) for at in (0, 1))
        (low, high), (least, most) = (clopper_pearson(count, draws, error / 2.0) for count in (one, other))
        growth = math.exp(epsilon)
        return (one - growth * other) / draws, low - growth * most, high - growth * least
    values = np.concatenate([trial.values(state) for state in states])
    return float(values.mean()), *bernstein(values, *trial.reach(), error)
