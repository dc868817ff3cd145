"""Numerics: floats that err on the safe side, the way back from δ to ε, and tails of a binomial count.

Rounding is directed, from ball arithmetic and from budgeted floats. Searches find the first of ordered numbers. The
hockey-stick divergences of one thresholded count are series without cancellation. For ``S ~ Bin(m, p)`` with density
`f` and a cutoff `t`, the two tails of lemma 1 are

    right = P[S ≥ t] - e^ε P[S ≥ t+1] = Σ_{i≥0} f(t+i) (1 - e^ε f(t+i+1)/f(t+i)),
    left  = P[S ≤ t] - e^ε P[S ≤ t-1] = Σ_{i≥0} f(t-i) (1 - e^ε f(t-i-1)/f(t-i)).

Up to the worst `m` of theorem A every bracket is non-negative, and it is linear in `i` over a denominator
linear in `i`. A sum in float64 then keeps its relative accuracy however small the result is. Only ``f(t)``
and the constant of the linear form need more digits; they come from ball arithmetic. The error budget is
derived in `docs/numerics.md`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction
from typing import Any, NamedTuple, TypeVar

import flint
import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Whole = NDArray[np.int64]
Decided = NDArray[np.bool_]

UNIT = 2.0**-53
"""Unit roundoff of float64: one operation errs by at most this much, relatively."""

TINY = 1e-290
"""The most that may have been lost to underflow in one product of probabilities, with room to spare."""


EVALUATED = 1e-9
"""Error budgets of balls and of sums of some million positive terms are below this, relatively, on either side."""


def kept(arrays: Iterable[NDArray[Any]]) -> Iterator[NDArray[Any]]:
    """Yield arrays that a cache keeps, so that nobody who is given them can change them."""
    for array in arrays:
        array.flags.writeable = False
        yield array


def evaluated(epsilons: Array) -> Array:
    """Return `EVALUATED` for each side and ε: the rounding of a bound that is evaluated with such a budget."""
    return np.full((2, len(epsilons)), EVALUATED)


def ball_above(ball: Any) -> float:
    """Return a float at or above every point of a python-flint ball."""
    return math.nextafter(float(ball.upper()), math.inf)


def ball_below(ball: Any) -> float:
    """Return a float at or below every point of a python-flint ball."""
    return math.nextafter(float(ball.lower()), -math.inf)


def float_above(value: Fraction) -> float:
    """Return the smallest float at or above `value`, which is at least 0; `math.inf` beyond all floats."""
    try:
        rounded = float(value)
    except OverflowError:
        return math.inf
    return rounded if math.isinf(rounded) or Fraction(rounded) >= value else math.nextafter(rounded, math.inf)


def float_below(value: Fraction) -> float:
    """Return the largest float at or below `value`, which is at least 0."""
    rounded = float_above(value)
    return rounded if not math.isinf(rounded) and Fraction(rounded) == value else math.nextafter(rounded, 0.0)


def sum_above(numbers: Iterable[float], times: Iterable[int] | None = None) -> float:
    """Return the smallest float that is at least the sum of numbers of at least 0, each so often (once by default)."""
    listed = list(numbers)
    counted = [(number, n) for number, n in zip(listed, times or [1] * len(listed), strict=True) if n]
    if any(math.isinf(number) for number, _ in counted):
        return math.inf
    return float_above(sum((Fraction(number) * n for number, n in counted), Fraction(0)))


def raised(values: Array, budget: Array | float) -> Array:
    """Return non-negative `values` raised by the relative error `budget` and at least one float further."""
    result: Array = np.nextafter(values * (1.0 + budget), np.inf)
    return result


def lowered(values: Array, budget: Array | float) -> Array:
    """Return non-negative `values` lowered by the relative error `budget` and one float further, not below 0."""
    result: Array = np.maximum(0.0, np.nextafter(values * (1.0 - budget), -np.inf))
    return result


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


def highest(height: Callable[[int], float], places: list[int], start: int = 0) -> int:
    """Return about where a function is largest: near the highest of these places, around which it rises and falls.

    The places are climbed from that of index `start`, all of them looked at where it is not above 0 there.
    """
    best, last = start, len(places) - 1
    if not height(places[best]) > 0.0:
        best = max(range(len(places)), key=lambda index: height(places[index]))
    for step in (1, -1):
        while 0 <= best + step <= last and height(places[best + step]) > height(places[best]):
            best += step
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


_MAX_MATRIX_ENTRIES = 2_000_000

MIN_P = 1e-200
"""A smaller p is replaced by this one: δ grows with p, and by less than the error budget here."""

MAX_RIGHT_EPSILON = 2_000.0
"""Beyond this ε the right tail no longer changes: e^ε exceeds every likelihood ratio for p above `MIN_P`."""

MAX_LEFT_EPSILON = 170.0
"""Beyond this ε the left tail is below exp(-1e50); it only falls with ε, so its value here bounds it."""

_FLOOR_PRECISION = 256
"""Bits at which the worst number of coins is rounded to a whole one: a miss by one would not show in 2^-100."""


def precision(*sizes: int) -> int:
    """Return the bits at which log-factorials of numbers as large as `sizes` keep 96 good bits."""
    return 96 + 2 * max(size.bit_length() for size in sizes)


def log_binomial_pmf(m: int, s: int, p: float) -> Any:
    """Return the ball of ``log P[Bin(m, p) = s]`` at the current precision (0 < p < 1, 0 ≤ s ≤ m)."""
    ways = flint.arb(m + 1).lgamma() - flint.arb(s + 1).lgamma() - flint.arb(m - s + 1).lgamma()
    return ways + s * flint.arb(p).log() + (m - s) * (-flint.arb(p)).log1p()


def right_tails(
    cutoffs: Sequence[int], p: float, epsilons: Array, *, cap: int | None = None, trials: int | None = None
) -> tuple[Array, Array]:
    """Return floats around ``max over m of P[S ≥ t] - e^ε P[S ≥ t+1]`` for ``S ~ Bin(m, p)``.

    Parameters
    ----------
    cutoffs : sequence of int, shape (n,)
        The cutoffs t, each at least 1.
    p : float
        Strictly between 0 and 1.
    epsilons : array, shape (n,)
        At least 0.
    cap : int, optional
        The maximum is over ``m ≤ cap`` only.
    trials : int, optional
        Look at this m only; rows for which it exceeds the worst m are reported as 0, which bounds from below.

    Returns
    -------
    (lower, upper) : arrays, shape (n,)

    Notes
    -----
    *Guarantee*: lower ≤ exact value ≤ upper (with `trials`, the lower side only). *Rounding*: outward, width below
    ``(16·terms + 100)·2^-53``, whatever the size of the value. `docs/mathematics.md`, theorem A, with
    ``m* = t + ⌊t(1-p)/(p e^ε)⌋``.
    """
    count, p, epsilons = len(cutoffs), max(p, MIN_P), np.minimum(epsilons, MAX_RIGHT_EPSILON)
    anchors = np.zeros((2, count))
    first, slope, extra = np.zeros(count), np.zeros(count), np.zeros(count)
    for row, (t, epsilon) in enumerate(zip(cutoffs, epsilons.tolist(), strict=True)):
        with flint.ctx.workprec(_FLOOR_PRECISION):
            more = whole_part(t * odds_against(p) / flint.arb(epsilon).exp())
        if trials is not None:
            more = trials - t if trials - t <= more else -1
        elif cap is not None:
            more = min(more, cap - t)
        if more < 0:
            continue
        with flint.ctx.workprec(precision(t + more)):
            weight = log_binomial_pmf(t + more, t, p).exp()
            anchors[:, row] = max(0.0, ball_below(weight)), ball_above(weight)
            pull = flint.arb(epsilon).exp() / odds_against(p) if more else flint.arb(0)
            first[row] = float((t + 1 - more * pull).mid())
            slope[row] = float((1 + pull).mid())
        extra[row] = float(more)
    start = np.asarray(cutoffs, dtype=np.float64) + 1.0
    if p == MIN_P:
        anchors[0] = 0.0
    return _summed(anchors, first, slope, start, extra, p / (1.0 - p), epsilons)


def left_tails(cutoffs: Sequence[int], p: float, epsilons: Array, *, cap: int | None = None) -> tuple[Array, Array]:
    """Return floats around ``max over m of P[S ≤ t] - e^ε P[S ≤ t-1]``, floored at 0, for ``S ~ Bin(m, p)``.

    Parameters, shapes, guarantee and rounding are those of `right_tails`, with
    ``m° = ⌈t + e^ε t(1-p)/p⌉ - 1``. Where `cap` cuts m° short the value is a difference; it is
    then accurate relative to ``P[S = t]``, and still bracketed.
    """
    count, p, epsilons = len(cutoffs), max(p, MIN_P), np.minimum(epsilons, MAX_LEFT_EPSILON)
    anchors = np.zeros((2, count))
    first, slope, extra = np.zeros(count), np.zeros(count), np.full(count, np.inf)
    short: dict[int, int] = {}
    for row, (t, epsilon) in enumerate(zip(cutoffs, epsilons.tolist(), strict=True)):
        with flint.ctx.workprec(_FLOOR_PRECISION):
            more = worst = -whole_part(-(t * odds_against(p) * flint.arb(epsilon).exp()))
        if cap is not None:
            more = min(more, cap - t + 1)
        if more < 1:
            continue
        with flint.ctx.workprec(precision(t + more)):
            weight = log_binomial_pmf(t + more - 1, t, p).exp()
            anchors[:, row] = max(0.0, ball_below(weight)), ball_above(weight)
            push = flint.arb(epsilon).exp() * odds_against(p)
            first[row] = max(0.0, float((more - t * push).mid()))
            slope[row] = float((1 + push).mid())
        extra[row] = float(worst)
        if more < worst:
            short[row] = more
    top = np.asarray(cutoffs, dtype=np.float64)
    if p == MIN_P:
        anchors[0] = 0.0
    lower, upper = _summed(anchors, first, slope, extra, top, (1.0 - p) / p, epsilons)
    for row, more in short.items():
        lower[row], upper[row] = _short_left(anchors[:, row], int(top[row]), float(more), p, float(epsilons[row]))
    return lower, upper


def _short_left(anchor: Array, t: int, more: float, p: float, epsilon: float) -> tuple[float, float]:
    """Bracket ``f(t) - (e^ε - 1) P[S ≤ t-1]`` for fewer trials than the worst number."""
    # Leaving out terms of what is subtracted errs upward; the lower side then says nothing.
    kept = min(t, 1_000_000)
    steps = np.arange(kept, dtype=np.float64)
    with np.errstate(over="ignore"):
        below = np.cumprod((t - steps) * ((1.0 - p) / p) / (more + steps)).sum()
    budget = (8.0 * kept + 40.0) * UNIT
    scale = flint.arb(epsilon).expm1()
    total = flint.arb(min(float(below), 1e300))
    if below >= 1e300 or kept < t:
        anchor = np.array([0.0, anchor[1]])
    least = ball_below(flint.arb(float(anchor[0])) * (1 - scale * total * (1 + flint.arb(budget))))
    most = ball_above(flint.arb(float(anchor[1])) * (1 - scale * total * (1 - flint.arb(budget))))
    return max(0.0, least), max(0.0, most)


def _summed(
    anchors: Array, first: Array, slope: Array, start: Array, falling: Array, odds: float, epsilons: Array
) -> tuple[Array, Array]:
    """Return brackets of ``f(t) · Σ_i R_i (first + slope·i)/(start + i)``, row by row.

    ``R_i`` is the product of the first `i` neighbouring ratios ``(falling - l)·odds/(start + l)``.
    """
    lower, upper = np.zeros(len(first)), np.zeros(len(first))
    if len(first) == 0:
        return lower, upper
    # Ratios fall at least like e^-ε t/(t+l), so this many terms leave about 1e-18 of the sum. What they leave
    # is bounded below in any case: the number affects the width of the bracket, never its truth.
    scale = np.minimum(start, np.maximum(falling, 1.0))
    reach = 42.0 + np.log(scale + 1.0)
    needed = reach + np.sqrt(reach * reach + 2.0 * reach * scale)
    with np.errstate(divide="ignore", over="ignore"):
        needed = np.minimum(needed, reach / epsilons)
    needed = np.minimum(np.ceil(needed) + 2.0, falling + 1.0)
    begin = 0
    while begin < len(first):
        rows = slice(begin, begin + max(1, int(_MAX_MATRIX_ENTRIES // (needed[begin:].max() + 1.0))))
        terms = int(needed[rows].max())
        steps = np.arange(terms + 1, dtype=np.float64)
        ratios = np.maximum(falling[rows, None] - steps, 0.0) * odds / (start[rows, None] + steps)
        products = np.ones_like(ratios)
        np.cumprod(ratios[:, :-1], axis=1, out=products[:, 1:])
        body = products[:, :-1] * (first[rows, None] + slope[rows, None] * steps[:-1])
        total = (body / (start[rows, None] + steps[:-1])).sum(axis=1)
        # The ratios fall with i, so the terms left out are below a geometric series with the last of them.
        rest = products[:, -1] / np.maximum(1.0 - ratios[:, -1], UNIT)
        budget = (8.0 * terms + 50.0) * UNIT
        lower[rows] = lowered(anchors[0, rows] * total, budget)
        upper[rows] = raised(anchors[1, rows] * (total + rest), budget)
        begin = rows.stop
    return lower, np.where(anchors[1] > 0.0, upper, 0.0)


def binomial_weights(trials: int, p: float, low: int, high: int) -> Array:
    """Return floats at or above ``P[Bin(trials, p) = b]`` for ``low ≤ b ≤ high``, within [0, trials].

    Notes
    -----
    *Guarantee*: no entry is below the exact probability. *Rounding*: upward, relative width about
    ``(16·n + 80)·2^-53`` for n entries, down to 1e-280.
    """
    if p in (0.0, 1.0):
        return np.where(np.arange(low, high + 1) == (trials if p == 1.0 else 0), 1.0, 0.0)
    weights = anchored_weights(trials, p, low, high)
    raised_weights: Array = weights * (1.0 + (8.0 * len(weights) + 40.0) * UNIT) + TINY
    return raised_weights


def anchored_weights(trials: int, p: float, low: int, high: int) -> Array:
    """Return the same within ``(4n + 20)·2^-53``, but for underflow: from a ball at the mode, ratio by ratio."""
    mode, steps = min(high, max(low, int((trials + 1) * p))), np.arange(low, high, dtype=np.float64)
    with flint.ctx.workprec(precision(trials)):
        peak = ball_above(log_binomial_pmf(trials, mode, p).exp())
    with np.errstate(under="ignore"):
        return outward_from(mode - low, peak, (trials - steps) * (p / (1.0 - p)) / (steps + 1.0))


def weights_below(weights: Array) -> Array:
    """Return floats at or below the probabilities that these `binomial_weights` are at or above."""
    result: Array = np.maximum(0.0, weights - 2.0 * TINY) * (1.0 - (32.0 * len(weights) + 100.0) * UNIT)
    return result


def outward_from(index: int, peak: float, ratios: Array) -> Array:
    """Return the sequence whose neighbours have these ratios (next/this) and whose value at `index` is `peak`."""
    values = np.empty(len(ratios) + 1)
    values[index], values[index + 1 :] = peak, ratios[index:]
    np.divide(1.0, ratios[:index], out=values[:index])
    for side in (values[index:], values[index::-1]):
        np.cumprod(side, out=side)
    return values


def likely_counts(trials: int, p: float) -> tuple[int, Array, float]:
    """Return (low, weights, above): ``Bin(trials, p)`` on ``low, low + 1, …``, moved up where it is unlikely.

    Mass below `low` is counted at `low`; `above` is at or above the probability of exceeding the last one.
    For an average of something that does not decrease, the result errs upward.
    """
    # Bernstein's inequality puts all but about e^-700 within this half-width; what is outside is bounded by Chernoff's.
    mean, reach = trials * p, 700.0
    half = math.sqrt(2.0 * reach * mean * (1.0 - p)) + reach
    low, high = max(0, math.floor(mean - half)), min(trials, math.ceil(mean + half))
    weights = binomial_weights(trials, p, low, high)
    weights[0] += binomial_below(trials, p, low)
    return low, weights, binomial_below(trials, 1.0 - p, trials - high)


def binomial_below(trials: int, p: float, bound: int) -> float:
    """Return a float at or above ``P[Bin(trials, p) < bound]`` for a bound below the mean (Chernoff)."""
    if bound <= 0:
        return 0.0
    with flint.ctx.workprec(precision(trials)):
        share, chance = flint.arb(bound) / trials, flint.arb(min(p, 1.0 - UNIT))
        if not share < chance:
            return 1.0
        # Chernoff bound: exp(-n KL(share ‖ chance)), which holds for every share below the chance.
        relative = share * (share / chance).log()
        if bound < trials:
            relative += (1 - share) * ((1 - share) / (1 - chance)).log()
        # One part in a hundred covers the rounding of `p`, in a term far below what it is added to.
        return 1.01 * ball_above((-trials * relative).exp())


def odds_against(p: float) -> Any:
    """Return the ball of (1-p)/p at the current precision."""
    return (1 - flint.arb(p)) / flint.arb(p)


def whole_part(ball: Any) -> int:
    """Return the whole part of the upper end of a ball; a ball across an integer has both as good answers."""
    with flint.ctx.workprec(4096):
        return int(ball.upper().floor().unique_fmpz())
