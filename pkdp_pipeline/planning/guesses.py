"""Guesses: about where an answer lies, by the normal approximation of the privacy loss. Only searches start there.

With many people the loss of every release is about normal, with a mean of half its variance, and so is the total. Which
variance reaches a target is found by halving; what each release may have of it follows by division. Nothing that is
certified rests on a guess: a wrong one costs time.
"""

from __future__ import annotations

import math

from pkdp_pipeline.model.attacker import AttackerModel
from pkdp_pipeline.model.mechanisms import Count, GeometricNoise, Histogram, Mechanism
from pkdp_pipeline.planning.goal import Goal

_HALVINGS = 60
_MOST = 1e15


def guessed_k(attacker: AttackerModel, goal: Goal) -> int | None:
    """Return about the threshold that is needed: a count just above it hides a person behind k(1-p) others."""
    share = attacker.p_max
    if goal.protects == "value" and attacker.p_max_between is not None:
        share = attacker.p_max_between
    if share is None or share >= 1.0:
        return None
    cells = 2 if goal.protects == "value" and attacker.p_max_between is None else 1
    hidden = cells * _people(goal) / (1.0 - share)
    known = attacker.known if attacker.influence == "active" else attacker.known * share
    return _whole(2.0 + known / cells + hidden)


def guessed_share(mechanism: Mechanism, attacker: AttackerModel, goal: Goal, *, between: bool) -> float | None:
    """Return about how sure an attacker may be where a threshold hides a person: `guessed_k` solved for the share."""
    if mechanism.k is None:
        return None
    cells = 2 if goal.protects == "value" and not between else 1
    known = attacker.known if attacker.influence == "active" else 0
    others = mechanism.k - 2 - known / cells
    hidden = cells * _people(goal)
    return 1.0 - hidden / others if 0.0 < hidden < 0.98 * others else None


def guessed_threshold(noise: GeometricNoise, start: int, goal: Goal) -> int | None:
    """Return about the threshold over which noise lifts a count of `start` on any of the days with the target's δ."""
    away = math.log(goal.days / goal.delta) - math.log1p(math.exp(-noise.epsilon))
    return _whole(start + 1.0 + away / noise.epsilon) if away > 0.0 else None


def guessed_unknown(mechanism: Mechanism, attacker: AttackerModel, goal: Goal) -> int | None:
    """Return about the number of unknown people that is needed: each adds the variance of a coin."""
    low = attacker.p_min
    if low is None or not 0.0 < low < 1.0:
        return None
    if isinstance(mechanism, Histogram):
        # Of all people 2·p_min are fair coins between the two cells.
        return _whole(_people(goal) / (0.5 * low))
    high = attacker.p_max
    if high is None or not high < 1.0:
        return None
    return _whole((_people(goal) - _noise_variance(mechanism)) / _variance(low, high))


def guessed_noise(attacker: AttackerModel, goal: Goal) -> float | None:
    """Return about the ε of the noise that a count needs beside what the attacker does not know about it."""
    low, high, people = attacker.p_min, attacker.p_max, attacker.unknown
    if low is None or high is None or people is None or low == 0.0 or high == 1.0:
        return None
    wanted = _people(goal) - people * _variance(low, high)
    # The variance 2α/(1-α)² is 1/(2·sinh²(ε/2)).
    return None if wanted <= 0.0 else 2.0 * math.asinh(math.sqrt(0.5 / wanted))


def guessed_noise_alone(goal: Goal) -> float | None:
    """Return about the ε of the noise of each of several releases: its loss is ε one way or the other."""
    if goal.days == 1:
        return None
    return _spread(goal.epsilon, goal.delta) / math.sqrt(goal.cells * goal.days)


def _people(goal: Goal) -> float:
    """Return the variance that a count needs so that one person is hidden as the target asks."""
    return goal.days / _spread(goal.epsilon, goal.delta) ** 2


def _spread(epsilon: float, delta: float) -> float:
    """Return the standard deviation of a normal loss whose δ at ε is about `delta`."""
    low, high = 1e-12, 1e3
    for _ in range(_HALVINGS):
        middle = math.sqrt(low * high)
        if _normal(epsilon, middle) <= delta:
            low = middle
        else:
            high = middle
    return low


def _normal(epsilon: float, spread: float) -> float:
    """Return δ(ε) of a loss that is normal with this standard deviation."""
    right, left = spread / 2.0 - epsilon / spread, -spread / 2.0 - epsilon / spread
    if epsilon > 600.0:
        return _below(right)
    return _below(right) - math.exp(epsilon) * _below(left)


def _below(value: float) -> float:
    return 0.5 * math.erfc(-value / math.sqrt(2.0))


def _variance(low: float, high: float) -> float:
    return min(low * (1.0 - low), high * (1.0 - high))


def _noise_variance(mechanism: Mechanism) -> float:
    if not isinstance(mechanism, Count) or mechanism.noise is None:
        return 0.0
    return 0.5 / math.sinh(min(0.5 * mechanism.noise.epsilon, 300.0)) ** 2


def _whole(value: float) -> int | None:
    return math.ceil(value) if 1.0 <= value < _MOST else None
