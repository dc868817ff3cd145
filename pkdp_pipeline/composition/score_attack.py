"""Attacks on a total: an attacker who adds up one score per release and accepts when the sum is large.

For any scores, ``P[E] - e^ε Q[E]`` for the event `E` that their sum reaches a level is a lower bound of the
divergence. Here a score is the logarithm of the likelihood ratio of what one release shows, rounded to a grid.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from pkdp_pipeline.composition.loss_laws import Directions, GridLaw
from pkdp_pipeline.composition.tilted_transform import Factor, Factors, Moments, make_rung, moments_of, reach_of
from pkdp_pipeline.theorems.numerics import MIN_P, TINY, UNIT, Array, binomial_below, binomial_weights
from pkdp_pipeline.theorems.thresholding import Thresholding

_MAX_PEOPLE = 20_000_000

_MAX_RATE = 8.0
"""Largest exponent per cell that is tried."""

_MIN_SIGNIFICANCE = 10.0
"""A number below this many times its own rounding counts as nothing."""

_MAX_STEPS = 2.0**40
"""Beyond so many steps of the scores nothing is tried."""

_MAX_KINDS_TRIED = 8
"""Up to this many kinds of days a second number of unknown people is tried for each."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Scores:
    """Measures of one release's score, in cells, without and with the target in the other life.

    Parameters
    ----------
    first : GridLaw
        Nowhere above the law of the score in the life that is tested for; its infinite part is what the other life
        excludes, and is accepted whatever the other scores are.
    second : GridLaw
        Nowhere below its law in the other life.
    """

    first: GridLaw
    second: GridLaw


def attained_by_scores(
    parts: tuple[tuple[Directions, int], ...], participation: int | None, epsilon: float
) -> tuple[float, float]:
    """Return a float at or below what a declared attacker attains with the sum of scores, and its rounding.

    `parts`: releases whose `attack` is None are ignored by the attacker, which is one of the things an attacker may do.
    `participation`: the target takes part in at most this many releases in one life, and in none in the other.

    Notes
    -----
    On every day the attacker knows everybody but `m` people, who count with probability p each; `m` is near
    the number that serves best. *Guarantee*: the divergence of two lives, for one declared attacker, is at or above
    the result. *Rounding*: down.
    """
    days = _attacked(parts, participation)
    return _attained(days, epsilon) if days else (0.0, 0.0)


def score_test(days: Sequence[tuple[Scores, int]], epsilon: float, step: float, rate: float) -> tuple[float, float]:
    """Return a float at or below ``P[E] - e^ε Q[E]`` for the event that the scores sum up to `epsilon` at least.

    The second is how far it may be rounded: so much more, at most, another processor gives.

    Parameters
    ----------
    days : sequence of (Scores, int)
        Scores of a release, and how many releases are like it.
    epsilon, step : float
        ε, and the unit of the scores.
    rate : float
        Exponent per cell for the first law; the second uses `step` more. It decides the accuracy only.
    """
    level = math.ceil(epsilon / step)
    lower, most = score_tail([Factor(laws=(scores.first,), times=times) for scores, times in days], level, rate)
    least, upper = score_tail(
        [Factor(laws=(scores.second,), times=times) for scores, times in days], level, rate + step
    )
    # The chance that on some day the outcome excludes the other life.
    settled = -math.expm1(math.fsum(times * math.log1p(-min(scores.first.infinite, 0.5)) for scores, times in days))
    doubt = most - lower
    lower = (lower + settled * (1.0 - 1e-12)) * (1.0 - 4.0 * UNIT)
    # The second tail is at most about e^-ε: its product with e^ε is formed from logarithms.
    charged = 0.0
    if upper > 0.0:
        charged = math.exp(min(700.0, epsilon + math.log(upper))) * (1.0 + (4.0 * epsilon + 3000.0) * UNIT)
        doubt += charged * (1.0 - least / upper)
    # The masses of the scores have a budget of their own.
    budget = sum(times * (64.0 * len(scores.first.masses) + 400.0) for scores, times in days) * UNIT
    return max(0.0, (lower - charged) * (1.0 - 4.0 * UNIT) - TINY), doubt + budget * (lower + charged)


def scores_of_atoms(losses: Array, first: Array, second: Array, step: float, infinite: float = 0.0) -> Scores:
    """Return the scores of outcomes with these losses, P-masses (rounded down) and Q-masses (rounded up)."""
    cells = np.rint(losses / step).astype(np.int64)
    start, size = int(cells.min()), int(cells.max() - cells.min()) + 1
    most = float(np.bincount(cells - start, minlength=size).max())
    low, high = np.zeros(size), np.full(size, TINY)
    low += np.bincount(cells - start, first, size) * (1.0 - (most + 4.0) * UNIT)
    high += np.bincount(cells - start, second, size) * (1.0 + (most + 4.0) * UNIT)
    return Scores(
        first=GridLaw(start=start, masses=low, infinite=infinite),
        second=GridLaw(start=start, masses=high, infinite=0.0),
    )


@lru_cache(maxsize=8192)
def scores_of_count(k: int, p: float, people: int, step: float) -> Scores:
    """Return the scores of a count published from `k` on, with `people` unknown people who count with probability `p`.

    The first life adds 1 to the count. The far tails are left out of the first law and counted at the
    largest score in the second.
    """
    spread = math.sqrt(people * p * (1.0 - p))
    low = max(0, math.floor(people * p - 38.0 * spread - 700.0))
    high = min(people, math.ceil(max(people * p + 38.0 * spread, k + 4.0) + 700.0))
    above = binomial_weights(people, p, low, high)
    below = np.maximum(0.0, above * (1.0 - (32.0 * len(above) + 200.0) * UNIT) - 2.0 * TINY)
    # Others' counts of k - 1 and more are shown in the first life, of k and more in the second.
    shown = np.arange(max(k, low), high + 1)
    first = np.where(shown > low, below[np.maximum(shown - 1 - low, 0)], 0.0)
    # log P/Q = log(x(1-p)/((m-x+1)p)); everybody and the target together are shown in the first life only.
    ratios = np.log(shown * (1.0 - p) / ((people - shown + 1.0) * p))
    hidden = float(below[: max(0, k - 1 - low)].sum()), float(above[: max(0, k - low)].sum())
    rest = binomial_below(people, p, low) + (0.0 if high == people else binomial_below(people, 1.0 - p, people - high))
    losses = np.append(math.log(max(hidden[0], TINY) / max(hidden[1], TINY)), ratios)
    second = np.append(hidden[1], above[shown - low])
    second[-1] += rest
    budget = (len(above) + 16.0) * UNIT
    alone = float(below[-1]) if high == people and people >= k - 1 else 0.0
    return scores_of_atoms(losses, np.append(hidden[0], first) * (1.0 - budget), second * (1.0 + budget), step, alone)


def _attacked(parts: tuple[tuple[Directions, int], ...], participation: int | None) -> list[tuple[Thresholding, int]]:
    """Return the releases that are attacked, at most as many as the target takes part in."""
    left = math.inf if participation is None else participation
    days: dict[Thresholding, int] = {}
    for part, times in parts:
        attack = part.attack
        count = int(min(times, left))
        if attack is not None and count > 0 and attack.k >= 2 and MIN_P < attack.p < 1.0:
            left -= count
            days[attack] = days.get(attack, 0) + count
    return list(days.items())


def _attained(days: list[tuple[Thresholding, int]], epsilon: float) -> tuple[float, float]:
    """Return what the attack attains, and its rounding."""
    variance = sum(times * _variance(attack) for attack, times in days)
    step = _step(variance, sum(times for _, times in days))
    if epsilon > _MAX_STEPS * step:
        return 0.0, 0.0
    # The exponent under which the sum of the scores is about ε makes the strongest test; for normal losses of the
    # variance v the mean is (1/2 + λ)v. Powers of √2, so that neighbouring ε share their scores.
    wanted = min(max(0.25, epsilon / variance - 0.5), 1e300)
    number = math.ceil(2.0 * math.log2(wanted))
    shares = (0.0, 0.9) if len(days) <= _MAX_KINDS_TRIED else (0.9,)
    for rate in (step * 2.0 ** (number / 2.0), step * 2.0 ** ((number + 1) / 2.0)):
        chosen = min(rate, _MAX_RATE)
        scored = [(_strongest(attack, chosen, step, shares), times) for attack, times in days]
        if sum(times * scores.first.tilted(chosen).mean for scores, times in scored) * step >= epsilon:
            break
    attained, doubt = score_test(scored, epsilon, step, chosen)
    return (attained, doubt) if attained > _MIN_SIGNIFICANCE * doubt else (0.0, 0.0)


def _variance(attack: Thresholding) -> float:
    """Return about the variance of the loss of a day."""
    return 1.0 / (max(1, attack.k - 1) * (1.0 - attack.p))


def _step(variance: float, days: int) -> float:
    step = math.sqrt(variance / days) * min(0.035, 0.01 * days**0.25)
    return float(2.0 ** math.floor(math.log2(step)))


@lru_cache(maxsize=8192)
def _strongest(attack: Thresholding, rate: float, step: float, shares: tuple[float, ...]) -> Scores:
    """Return the scores for the number of unknown people, out of a few, that makes tilted sums likelier."""
    t, p = attack.k - 1, attack.p
    # The number worst for one day, at the mean loss per day, and one that makes a typical day count.
    mean = min(3.0, (0.5 + rate / step) * _variance(attack))
    most = min(_MAX_PEOPLE, attack.cap if attack.cap is not None else _MAX_PEOPLE)
    options = set()
    for share in shares:
        people = t + math.exp(-mean) * (t * (1.0 - p) + share * math.sqrt(t * (1.0 - p))) / p
        options.add(int(min(max(people, attack.least_unknown, t), max(most, attack.least_unknown))))
    candidates = [scores_of_count(attack.k, p, people, step) for people in sorted(options)]
    return max(candidates, key=lambda scores: scores.first.tilted(rate).log_moment)


_MAX_PERIOD = 2**21

_NEGLIGIBLE_MASS = 1e-14
"""Tilted mass that may lie outside the window."""


def score_tail(factors: Factors, level: int, rate: float) -> tuple[float, float]:
    """Return floats around the measure of the event that the sum of the scores is at least `level`.

    `factors`: measures of the scores, on cells; what is infinite in them is left out. `rate`: exponent per cell, at
    least 0: one under which sums near `level` are likely.

    Notes
    -----
    *Guarantee*: lower ≤ measure ≤ upper, for the masses as they are given. *Rounding*: outward. The mass that the
    period folds into the window is at most the tilted mass outside it, which Chernoff's bound limits on either side.
    """
    first, last = reach_of(factors)
    if level > last:
        return 0.0, 0.0
    moments = moments_of(factors, rate)
    mean, deviation = moments.low, moments.deviation + 1e-6
    half = 10.0 * deviation + abs(mean - level) + 32.0
    needed = min(last - first + 1.0, 2.0 * half, float(_MAX_PERIOD))
    period = max(1024, 2 ** math.ceil(math.log2(needed)))
    # The window is doubled until Chernoff's bound on the mass outside, which widens the bracket, is negligible.
    while True:
        low = min(first if period > last - first else max(first, math.floor(mean - 0.5 * period)), level)
        high = min(last, low + period - 1)
        above = _beyond(factors, rate, high + 1, moments, deviation) if high < last else 0.0
        below = _beyond(factors, rate, low - 1, moments, -deviation) if low > first else 0.0
        if above + below <= _NEGLIGIBLE_MASS or period > last - first or period >= _MAX_PERIOD:
            break
        period *= 2
    rung = make_rung(factors, rate, period)
    cells = np.arange(level, high + 1, dtype=np.float64)
    with np.errstate(under="ignore"):
        kernel = np.exp(-rate * (cells - level))
    values, error, _ = rung.pair_with(kernel, level, leading=True)
    value = float(values[0, 0])
    # Tilted masses were rounded up, each by what the sizes of its exponents ask for.
    raised = 0.0
    for factor in factors:
        law = factor.laws[0]
        sizes = 2.0 * rate * max(abs(law.start), abs(law.last)) + 745.0 + abs(law.tilted(rate).log_moment) + 8.0
        raised += factor.times * (sizes * 8.0 * UNIT)
    size = moments.size + rate * (abs(level) + abs(high))
    budget = raised + (16.0 * size + 64.0) * UNIT
    scale = math.exp(min(700.0, moments.log_moment - rate * level))
    lower = max(0.0, value - error - above - below) * scale * (1.0 - min(1.0, 2.0 * budget))
    return lower, (max(0.0, value + error) + above) * scale * (1.0 + 2.0 * budget)


def _beyond(factors: Factors, rate: float, cell: int, moments: Moments, deviation: float) -> float:
    """Return Chernoff's bound on the tilted mass at `cell` and beyond: above it, or for a negative deviation below."""
    # Markov's inequality for e^{more·x} under the tilted law holds for every exponent, so the best of a few does.
    best = 0.0
    for share in (1.5, 3.0, 6.0, 9.0, 12.0):
        more = share / deviation
        log_moment = moments_of(factors, rate + more).log_moment
        slack = 1e-9 + 1e-12 * (abs(log_moment) + moments.size + abs(more * cell) + moments.factors)
        best = min(best, log_moment - moments.log_moment - more * cell + slack)
    return math.exp(best)
