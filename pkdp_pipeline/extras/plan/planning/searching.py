"""Searching: the goal to be reached, guesses where an answer lies, and the last number that reaches it.

With many people the loss of every release is about normal, with a mean of half its variance, and so is the total. Which
variance reaches a target is found by halving; what each release may have of it follows by division. Nothing that is
certified rests on a guess: a wrong one costs time. A search keeps a bracket of which one end reaches the target and the
other does not, as evaluated, until its ends are neighbours: the answer holds, and its neighbour fails.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from pkdp_pipeline.certificates.certificate import Certificate
from pkdp_pipeline.certificates.composed import compose
from pkdp_pipeline.certificates.release_certificate import certify
from pkdp_pipeline.errors import ArgumentError, NotCertifiableError
from pkdp_pipeline.model.attacker import AttackerModel
from pkdp_pipeline.model.evidence import Evidence, read_evidence
from pkdp_pipeline.model.mechanisms import Count, GeometricNoise, Histogram, Mechanism, Protects
from pkdp_pipeline.model.wording import probability, rounded_up, whole_number
from pkdp_pipeline.theorems.bound import epsilon_points


@dataclass(frozen=True, slots=True)
class Goal:
    """The target of a search.

    Parameters
    ----------
    protects : {"presence", "value"}
    days : int
        How many equal releases are to reach it together.
    evidence : tuple of Evidence
        The evidence declared so that they add up.
    cells_per_unit : int
        The most cells a person may be in; guesses rest on it.
    """

    epsilon: float
    delta: float
    protects: Protects = "presence"
    days: int = 1
    evidence: tuple[Evidence, ...] = ()
    cells_per_unit: int = 1

    def together(self, certificate: Certificate) -> Certificate:
        """Return what `days` such releases promise together.

        Raises `NoEvidenceError` if they do not add up with what is declared.
        """
        if self.days == 1:
            return certificate  # nothing is added up, whatever is declared
        return compose([(certificate, self.days)], self.evidence)

    def loss(self, mechanism: Mechanism, attacker: AttackerModel) -> float:
        """Return the certified δ at `epsilon`; infinity where nothing can be certified."""
        try:
            certificate = certify(mechanism, attacker, protects=self.protects)
        except NotCertifiableError:
            return math.inf
        return self.together(certificate).delta(self.epsilon)

    @property
    def cells(self) -> int:
        """How many cells one person's other life changes."""
        return (2 if self.protects == "value" else 1) * self.cells_per_unit

    @property
    def words(self) -> str:
        """The goal in words, for messages."""
        several = "" if self.days == 1 else f" for {self.days} releases together"
        return f"delta = {self.delta!r} at epsilon = {self.epsilon!r}{several}"

    def missed_by(self, loss: float) -> str:
        """Return in words what is certified instead."""
        if loss == math.inf:
            return "nothing is certified"
        return f"delta = {rounded_up(loss)} is certified"


def read_goal(
    epsilon: object,
    delta: object,
    protects: Protects,
    days: object = 1,
    evidence: Evidence | Iterable[Evidence] | None = None,
) -> Goal:
    """Return the goal, or raise `ArgumentError`."""
    probable = probability("delta", delta, limit=True)
    if probable == 0.0:
        raise ArgumentError("delta must be above 0: a threshold always leaves some probability, ask for delta = 1e-9.")
    points, scalar = epsilon_points(epsilon)  # type: ignore[arg-type]
    if not scalar:
        raise ArgumentError("epsilon must be one number, at least 0 and finite.")
    number = whole_number("days", days, least=1)
    return Goal(float(points[0]), probable, protects, number, read_evidence(evidence))


_MAX_HALVINGS = 60
_MAX_GUESS = 1e15


def guessed_k(attacker: AttackerModel, goal: Goal) -> int | None:
    """Return about the threshold that is needed: a count just above it hides a person behind k(1-p) others."""
    share = attacker.p_max
    if goal.protects == "value" and attacker.p_max_between is not None:
        share = attacker.p_max_between
    if share is None or share >= 1.0:
        return None
    cells = 2 if goal.protects == "value" and attacker.p_max_between is None else 1
    hidden = cells * goal.cells_per_unit * _people(goal) / (1.0 - share)
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
        # Of all people 2·p_min are fair coins between the two cells; between one and absence p_min/p_max show p_max.
        share = 0.5 if goal.protects == "value" else 1.0 if attacker.p_max is None else attacker.p_max
        return _whole(_people(goal) / (low * (1.0 - share))) if share < 1.0 else None
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
    for _ in range(_MAX_HALVINGS):
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
    return math.ceil(value) if 1.0 <= value < _MAX_GUESS else None


_BISECTION_PERIOD = 3
"""The bracket is halved after this many steps, whatever the guess says."""

Scale = Callable[[float], float]


def last_float(
    loss: Callable[[float], float],
    target: float,
    holds: float,
    fails: float,
    *,
    scale: tuple[Scale, Scale],
    close: float = 0.0,
) -> float:
    """Return a float at which ``loss <= target`` holds while it fails at the next float towards `fails`.

    Parameters
    ----------
    loss : callable
        A certified δ, or infinity.
    target : float
        Above 0.
    holds, fails : float
        At least 0: `holds` reaches the target, `fails` is larger and does not.
    scale : (callable, callable)
        A scale on which the logarithm of δ is roughly linear, and the way back from it.
    close : float, default 0.0
        Where an evaluation takes long: it is enough that it fails at a float larger by at most this share.
    """
    forward, backward = scale

    def guessed(ends: list[int], weights: list[float]) -> int | None:
        low, high = _float(ends[0]), _float(ends[1])
        if not low > 0.0:
            return None
        inside = backward(_crossing(forward(low), forward(high), weights))
        if not math.isfinite(inside):
            return None
        if close > 0.0:
            # A step beyond the crossing, away from the nearer end, closes the bracket.
            inside *= 1.0 + (0.45 if inside - low < high - inside else -0.45) * close
        return _ordinal(max(inside, 0.0))

    def enough(ends: list[int]) -> bool:
        low, high = _float(ends[0]), _float(ends[1])
        return high - low <= close * low

    ends = [_ordinal(holds), _ordinal(fails)]
    heights = [_height(loss(holds), target), _height(loss(fails), target)]
    return _float(_narrowed(lambda place: loss(_float(place)), target, ends, heights, 0, guessed, enough)[0])


def first_whole(
    loss: Callable[[int], float], target: float, start: int, most: int, guess: int | None = None
) -> int | None:
    """Return a whole number in [start, most] at which ``loss <= target`` holds and before which it fails, or None.

    Parameters
    ----------
    loss : callable
        A certified δ that falls, essentially, as the number grows; or infinity.
    target : float
        Above 0.
    start, most : int
        The range; `start` itself is the answer where it holds there.
    guess : int, optional
        About where the answer may be.
    """
    value = loss(start)
    if value <= target:
        return start
    fails, height = start, _height(value, target)
    stride = 1 if guess is None else max(1, guess - start)
    while True:
        if fails == most:
            return None
        holds = min(most, fails + stride)
        value = loss(holds)
        reached = _height(value, target)
        if value <= target:
            break
        # Where nothing is certified yet, δ is 1: about the right height for a stride.
        stride = _stride(stride, reached, (min(height, -math.log(target)) - reached) / (holds - fails))
        fails, height = holds, reached
    if fails == start and guess is not None:
        # The guess was too high: come down, at first a little, then by ever larger strides.
        stride = max(1, (holds - start) // 32)
        while holds - stride > start:
            value = loss(holds - stride)
            if not value <= target:
                fails, height = holds - stride, _height(value, target)
                break
            holds, reached, stride = holds - stride, _height(value, target), 2 * stride

    def guessed(ends: list[int], weights: list[float]) -> int:
        return math.ceil(_crossing(ends[0], ends[1], weights))

    return _narrowed(loss, target, [fails, holds], [height, reached], 1, guessed, lambda _: False)[1]


def _crossing(low: float, high: float, weights: list[float]) -> float:
    """Return where a line crosses 0 whose heights at the two ends have these sizes."""
    return (low * weights[1] + high * weights[0]) / sum(weights)


def _stride(stride: int, height: float, slope: float) -> int:
    """Return how far to go next: to where the fall so far leads, a little beyond."""
    if 0.0 < slope < math.inf and math.isfinite(height):
        # Single steps of a certified δ may be crooked, so the strides do not shrink quickly.
        return int(min(max(1.02 * height / slope, stride / 8.0) + 1.0, 64.0 * stride))
    return 2 * stride


def _narrowed(
    loss: Callable[[int], float],
    target: float,
    ends: list[int],
    heights: list[float],
    good: int,
    guessed: Callable[[list[int], list[float]], int | None],
    enough: Callable[[list[int]], bool],
) -> list[int]:
    """Narrow a bracket, whose end `good` (0 or 1) reaches the target and the other not, to neighbours or `enough`.

    A guess lies where log(δ/target) crosses 0 between the ends, by the Illinois rule against an end that stays.
    """
    weights, last, step = [1.0, 1.0], -1, 0
    while ends[1] - ends[0] > 1 and not enough(ends):
        probe, step = sum(ends) // 2, step + 1
        sizes = [weight * abs(height) for weight, height in zip(weights, heights, strict=True)]
        if step % _BISECTION_PERIOD and 0.0 < sum(sizes) < math.inf:
            guess = guessed(ends, sizes)
            # At an end the guess cannot say more than the points around it do.
            probe = probe if guess is None else min(max(guess, ends[0] + 1), ends[1] - 1)
        value = loss(probe)
        moved = good if value <= target else 1 - good
        ends[moved], heights[moved] = probe, _height(value, target)
        weights[moved] = 1.0
        if last == moved:
            weights[1 - moved] *= 0.5
        last = moved
    return ends


def _height(value: float, target: float) -> float:
    """Return log(δ/target), infinite where there is no δ or where it is 0."""
    if value >= 1.0:
        return math.inf if value > target else 0.0
    return math.log(value / target) if value > 0.0 else -math.inf


def _ordinal(value: float) -> int:
    """Return the place of a float that is at least 0 among all of these."""
    return int(np.float64(value + 0.0).view(np.int64))


def _float(place: int) -> float:
    return float(np.int64(place).view(np.float64))
