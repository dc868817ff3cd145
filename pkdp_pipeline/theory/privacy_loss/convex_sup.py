"""A certified supremum over an unbounded parameter of a quotient whose numerator is convex."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable

__all__ = ["supremum_above"]

_EVALUATIONS = 1500


def supremum_above(
    convex: Callable[[float], float],
    quotient: Callable[[float, float], float],
    best_of_chord: Callable[[float, float, float, float], float],
    beyond: Callable[[float], float],
    start: float,
    close: float,
) -> float:
    """Return at or above the supremum over ``s ≥ start`` of a quotient ``K(s)/w(s)`` with convex `K`.

    Parameters
    ----------
    convex : callable
        At or above ``K(s)``.
    quotient : callable
        The quotient from `s` and the value of `K` there, roughly: it decides where to look, not what is returned.
    best_of_chord : callable
        At or above the quotient of the line ``u + v s`` anywhere on ``[low, high]``, from (u, v, low, high).
    beyond : callable
        At or above the quotient at any ``s ≥ b``, from `b`; it falls to 0.
    start : float
        Above 0.
    close : float
        The relative gap that is left between what is attained and what is returned.

    Notes
    -----
    Between two points a convex function lies below its chord. So every interval has a bound, whose excess falls with
    the square of its width; the interval with the largest bound is halved until that is as good as attained.
    *Guarantee*: never below the supremum, wherever the search stops. *Rounding*: that of the callables.
    """
    values = {start: convex(start)}
    best = quotient(start, values[start])
    ends = [start]
    while beyond(ends[-1]) > best * (1.0 + close) and ends[-1] < 1e200:
        # Far out nothing bends any more.
        point = ends[-1] * (2.0 if len(ends) < 100 else 16.0)
        values[point] = convex(point)
        best = max(best, quotient(point, values[point]))
        ends.append(point)
    last = beyond(ends[-1])

    def bound(low: float, high: float) -> float:
        slope = (values[high] - values[low]) / (high - low)
        return best_of_chord(values[low] - slope * low, slope, low, high)

    queue = [(-bound(low, high), low, high) for low, high in itertools.pairwise(ends)]
    heapq.heapify(queue)
    while queue and -queue[0][0] > best * (1.0 + close) and len(values) < _EVALUATIONS:
        _, low, high = heapq.heappop(queue)
        middle = (low * high) ** 0.5
        if not low < middle < high:
            heapq.heappush(queue, (-bound(low, high), low, high))
            break
        values[middle] = convex(middle)
        best = max(best, quotient(middle, values[middle]))
        heapq.heappush(queue, (-bound(low, middle), low, middle))
        heapq.heappush(queue, (-bound(middle, high), middle, high))
    return max(best, last, -queue[0][0] if queue else best)
