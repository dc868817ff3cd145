"""Searching: the last float and the first whole number at which a certified δ reaches a target, in few evaluations.

Both keep a bracket of which one end reaches the target and the other does not, as evaluated, until its ends are
neighbours. So whatever the guesses are worth, the answer holds and its neighbour fails.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

_SURE_BISECTION = 3
"""Every so many steps the bracket is halved, whatever the guess says."""

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
        if step % _SURE_BISECTION and 0.0 < sum(sizes) < math.inf:
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
