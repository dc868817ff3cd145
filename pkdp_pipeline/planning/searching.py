"""Searching: the last float and the first whole number at which a certified δ reaches a target, in few evaluations.

Both keep a bracket of which one end reaches the target and the other does not, as evaluated, until its ends are
neighbours. So whatever the guesses are worth, the answer holds and its neighbour fails.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

__all__ = ["first_whole", "last_float"]

_SURE_BISECTION = 3
"""Every so many steps the bracket is halved, whatever the guess says."""

Scale = Callable[[float], float]


class _FalsePosition:
    """Guesses where log(δ/target) crosses 0 between two ends; the Illinois rule against an end that stays."""

    __slots__ = ("_last", "_weights")

    def __init__(self) -> None:
        self._weights = [1.0, 1.0]
        self._last = -1

    def kept(self, moved: int) -> None:
        """Note which end moved: 0 or 1."""
        self._weights[moved] = 1.0
        if self._last == moved:
            self._weights[1 - moved] *= 0.5
        self._last = moved

    def guess(self, ends: tuple[float, float], heights: tuple[float, float]) -> float | None:
        """Return the crossing's estimate, or None where the heights do not tell."""
        one, other = (weight * abs(height) for weight, height in zip(self._weights, heights, strict=True))
        if not (math.isfinite(one) and math.isfinite(other) and one + other > 0.0):
            return None
        return (ends[0] * other + ends[1] * one) / (one + other)


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
    guesser = _FalsePosition()
    heights = [_height(loss(holds), target), _height(loss(fails), target)]
    ends = [holds, fails]
    step = 0
    while (ordinals := (_ordinal(ends[0]), _ordinal(ends[1])))[1] - ordinals[0] > 1:
        if ends[1] - ends[0] <= close * ends[0]:
            break
        probe = _float((ordinals[0] + ordinals[1]) // 2)
        step += 1
        if step % _SURE_BISECTION and ends[0] > 0.0:
            guess = guesser.guess((forward(ends[0]), forward(ends[1])), (heights[0], heights[1]))
            inside = math.nan if guess is None else backward(guess)
            if math.isfinite(inside):
                if close > 0.0:
                    # A step beyond the crossing, away from the nearer end, closes the bracket.
                    inside *= 1.0 + (0.45 if inside - ends[0] < ends[1] - inside else -0.45) * close
                # At an end the guess cannot say more than the floats around it do.
                probe = min(max(inside, math.nextafter(ends[0], math.inf)), math.nextafter(ends[1], 0.0))
        value = loss(probe)
        moved = 0 if value <= target else 1
        ends[moved], heights[moved] = probe, _height(value, target)
        guesser.kept(moved)
    return ends[0]


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
        probe = min(most, fails + stride)
        value = loss(probe)
        if value <= target:
            break
        reached = _height(value, target)
        # Where nothing is certified yet, δ is 1: about the right height for a stride.
        stride = _stride(stride, reached, (min(height, -math.log(target)) - reached) / (probe - fails))
        fails, height = probe, reached
    if fails == start and guess is not None:
        return _from_above(loss, target, (start, probe), (height, _height(value, target)))
    return _narrowed(loss, target, (fails, probe), (height, _height(value, target)))


def _stride(stride: int, height: float, slope: float) -> int:
    """Return how far to go next: to where the fall so far leads, a little beyond."""
    if 0.0 < slope < math.inf and math.isfinite(height):
        # Single steps of a certified δ may be crooked, so the strides do not shrink quickly.
        return int(min(max(1.02 * height / slope, stride / 8.0) + 1.0, 64.0 * stride))
    return 2 * stride


def _from_above(
    loss: Callable[[int], float], target: float, ends: tuple[int, int], heights: tuple[float, float]
) -> int:
    """Come down from a guess that was too high, at first a little, then by ever larger strides."""
    (start, holds), (above, below) = ends, heights
    stride = max(1, (holds - start) // 32)
    while holds - stride > start:
        probe = holds - stride
        value = loss(probe)
        if not value <= target:
            return _narrowed(loss, target, (probe, holds), (_height(value, target), below))
        holds, below, stride = probe, _height(value, target), 2 * stride
    return _narrowed(loss, target, (start, holds), (above, below))


def _narrowed(loss: Callable[[int], float], target: float, ends: tuple[int, int], heights: tuple[float, float]) -> int:
    """Return the first whole number that reaches the target in a bracket whose right end does."""
    fails, holds = ends
    above, below = heights
    guesser = _FalsePosition()
    step = 0
    while holds - fails > 1:
        probe = (fails + holds) // 2
        step += 1
        if step % _SURE_BISECTION:
            guess = guesser.guess((float(fails), float(holds)), (above, below))
            if guess is not None:
                probe = min(max(math.ceil(guess), fails + 1), holds - 1)
        value = loss(probe)
        if value <= target:
            holds, below = probe, _height(value, target)
            guesser.kept(1)
        else:
            fails, above = probe, _height(value, target)
            guesser.kept(0)
    return holds


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
