"""The way back from δ to ε, and searches for the first of ordered numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, TypeVar

import flint
import numpy as np
from numpy.typing import NDArray

from pkdp_pipeline.theorems.rounding import Array, Decided, ball_above

_Attacker = TypeVar("_Attacker")


class Optimum(NamedTuple):
    """For every ε: the best attacker's δ, a bound on all, how far apart the sides of the best are, and who is the best.

    `leader`: a number of people, or two rows of numbers, of people at the smaller and at the larger chance.
    """

    best: Array
    top: Array
    apart: Array
    leader: NDArray[Any]


def chord(epsilon: float, start: tuple[float, float], end: tuple[float, float]) -> float:
    """Return at least the height at `epsilon` of the chord in e^ε between two points (ε, δ), ends included.

    Every profile is convex in e^ε, so one that is at most these δ at the ends lies below the chord.
    *Guarantee*: never below such a profile. *Rounding*: up.
    """
    (first, above), (last, below) = start, end
    with flint.ctx.workprec(192):
        share = (flint.arb(epsilon) - first).expm1() / (flint.arb(math.nextafter(last, math.inf)) - first).expm1()
        return min(1.0, ball_above(above + share * (flint.arb(below) - above)))


_MAX_EPSILON = 2.0**20
_MAX_EVALUATIONS = 36
_RELATIVE_TOLERANCE = 1e-12
_INITIAL_BRACKET_FACTOR = 1.05


def smallest_epsilon(
    delta_at: Callable[[float], float], target: float, slack: float = 0.0, start: float | None = None
) -> float:
    """Return an ε at which ``delta_at(ε) <= target``, as small as can be found, or `math.inf`.

    Parameters
    ----------
    delta_at : callable
        A certified, essentially non-increasing δ(ε).
    target : float
        In [0, 1].
    slack : float
        Relative steps `delta_at` may have; finer differences are not chased.
    start : float, optional
        Where the crossing is expected, above 0.

    Returns
    -------
    float
        An ε that was evaluated, so ``delta_at(result) <= target`` holds as stated; `math.inf` when even
        ε = 2^20 does not reach the target.

    Notes
    -----
    *Rounding*: up; within one part in 1e12 of a crossing where `delta_at` is continuous.
    """
    if delta_at(0.0) <= target:
        return 0.0
    # The bracket grows by this factor to the left, and to the right by it or twice; from a guess by larger and larger.
    above, below, factor = (0.0, 1.0, 8.0) if start is None else (0.0, start, _INITIAL_BRACKET_FACTOR)
    value_above, value_below = math.inf, delta_at(below)
    if value_below <= target:
        # Walk down while the target still holds, so that tiny ε keep their relative accuracy.
        while below > 1e-9:
            probe = below / factor
            value = delta_at(probe)
            if not value <= target:
                above, value_above = probe, value
                break
            below, value_below, factor = probe, value, min(8.0, factor**2)
    else:
        while not value_below <= target:
            if below >= 8.0 and not delta_at(_MAX_EPSILON) <= target:
                return math.inf
            above, value_above = below, value_below
            below, factor = min(below * min(factor, 2.0), _MAX_EPSILON), min(8.0, factor**2)
            value_below = delta_at(below)
    # Shrink the bracket by the Illinois variant of false position on log δ, every third step a bisection. The right end
    # was evaluated and reaches the target, so what is returned is certified whatever the shape of `delta_at`.
    close = max(_RELATIVE_TOLERANCE, 1e-2 * slack)
    weight_above, weight_below = 1.0, 1.0
    last_side = 0
    for step in range(_MAX_EVALUATIONS):
        if below - above <= close * below:
            break
        probe = 0.5 * (above + below)
        if step % 3 != 2 and value_below > 0.0 and value_above < math.inf and target > 0.0:
            high = weight_above * math.log(value_above / target)
            low = weight_below * math.log(target / value_below) if value_below < target else 0.0
            guess = (above * low + below * high) / (high + low) if high + low > 0.0 else probe
            # Step a little past the estimate: it lands on the right side and closes the bracket from there.
            guess += 0.25 * close * below
            if above < guess < below:
                probe = guess
        value = delta_at(probe)
        if value <= target:
            below, value_below = probe, value
            weight_above, weight_below = (0.5 * weight_above if last_side == 1 else 1.0), 1.0
            last_side = 1
        else:
            above, value_above = probe, value
            weight_below, weight_above = (0.5 * weight_below if last_side == -1 else 1.0), 1.0
            last_side = -1
    return below


_MAX_ROUNDS = 6
"""Most ε at which an inversion looks at all attackers."""

_TARGET_TOLERANCE = 2e-4
"""An inversion ends this close below the δ asked for, relatively."""

_FINEST = 4096
"""Where a function is highest is found as finely as this share of the place."""


def invert(
    target: float,
    attackers: Iterable[_Attacker],
    beside: Callable[[list[_Attacker], float], float],
    search: Callable[[float], tuple[float, Iterable[_Attacker]]],
    *,
    share: float = 1.0,
    rounds: int = _MAX_ROUNDS,
    spare: int = 0,
    least: float = math.inf,
    start: float | None = None,
    tolerance: float = 3.0 * _TARGET_TOLERANCE,
) -> float:
    """Return an ε whose certified δ is at most `target`, about as small as can be found, where a search is dear.

    Parameters
    ----------
    target : float
        In [0, 1].
    attackers : iterable
        Some of those that are declared, to begin with.
    beside : callable
        Takes attackers and an ε; returns the largest δ of these, which is cheap.
    search : callable
        Takes an ε; returns the certified δ of all attackers, and the worst of them.
    share : float
        The certified δ is expected to exceed that of the worst attackers by this factor.
    rounds : int
        Most ε that are searched.
    spare : int
        How many more are searched where none of these is certified.
    least : float
        An ε already known to be certified.
    start : float, optional
        The first that is searched; by default where that of `attackers` is expected to cross.
    tolerance : float
        The certified δ may be this much below `target`, relatively.

    Returns
    -------
    float
        An ε at which `search` certified `target`, or `least`.

    Notes
    -----
    Cutting planes: the δ of the worst attackers so far, raised by the last search's gap, is inverted; the search at
    that ε certifies it or adds the attackers that are worst there.
    """
    cuts, guess, margin = list(attackers), None if math.isinf(least) else least, _TARGET_TOLERANCE

    def expected(epsilon: float) -> float:
        return min(1.0, share * beside(cuts, epsilon))

    for step in range(rounds + spare):
        if step == rounds and not math.isinf(least):
            break
        # The first guess need not be close.
        close = 1.0 if guess is None else _TARGET_TOLERANCE
        epsilon = (not step and start) or smallest_epsilon(expected, target, close, guess)
        if epsilon >= least * (1.0 - (0.25 if step else 1e-3) * _TARGET_TOLERANCE):
            break  # what is left to gain is not worth a search
        certain, worst = search(epsilon)
        least, guess = epsilon if certain <= target else least, epsilon or None
        cuts = list(worst) or cuts if step == 0 else [*cuts, *worst]
        of_cuts = beside(cuts, epsilon)
        if (1.0 - tolerance) * target <= certain <= target:
            break
        # The margin that certified at last is larger than what searches differ by.
        margin *= 1.0 / 16.0 if step >= rounds and certain <= target else 1.0
        share = max(1.0, certain / of_cuts if of_cuts else share) * (1.0 + margin)
        # How far a search exceeds the worst attackers differs a little from ε to ε.
        margin *= 1.0 if certain <= target else 2.0
    return least


def least_whole(holds: Callable[[int], bool], start: int, most: int) -> int | None:
    """Return the smallest n in [start, most] for which a monotone `holds` is true, or None."""
    if holds(start):
        return start
    # Exponential search, then bisection: `holds` is false at `below` and true at `above` throughout.
    below, step = start, 1
    while not holds(above := min(most, below + step)):
        if above == most:
            return None
        below, step = above, step * 2
    while above - below > 1:
        middle = (below + above) // 2
        below, above = (below, middle) if holds(middle) else (middle, above)
    return above


def highest(height: Callable[[int], float], places: list[int]) -> int:
    """Return about where a function is largest: near the highest of these places, around which it rises and falls."""
    best = max(range(len(places)), key=lambda index: height(places[index]))
    low, high, steps = places[max(0, best - 1)], places[min(best + 1, len(places) - 1)], [1, 1]
    while steps[-1] < high - low:
        steps.append(steps[-1] + steps[-2])
    # Fibonacci search: of two places inside, the better one is inside again.
    for larger, smaller in zip(steps[-2:0:-1], steps[-3::-1], strict=False):
        if height(min(low + smaller, high)) < height(min(low + larger, high)):
            low += smaller
        if larger < high // _FINEST:
            break
    return max(low, min(low + 1, high), min(low + 2, high), key=height)


def first_offset(holds: Callable[[Array], Decided], below: Array, above: Array, guess: Array) -> Array:
    """Return, row by row, the first offset in ``(below, above]`` from which `holds`; at `above` it does.

    Exponential search away from `guess`, then bisection, for all rows at once; every offset up to `low` fails and
    `high` holds, as long as `holds` is monotone.
    """
    low, high, step, probe = below.copy(), above.copy(), 1.0, np.clip(guess, below + 1.0, above)
    while np.any(unsettled := high - low > 1.0):
        probe = np.clip(probe, low + 1.0, np.maximum(low + 1.0, high - 1.0))
        reached = holds(probe)
        high, low = np.where(unsettled & reached, probe, high), np.where(unsettled & ~reached, probe, low)
        outward = np.where(reached, probe - step, probe + step)
        probe, step = np.where((low > below) & (high < above), np.floor((low + high) / 2.0), outward), 2.0 * step
    return high
