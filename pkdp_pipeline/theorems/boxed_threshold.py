"""A threshold against a declared box: its bound, and when the theorems on a box, with or without a threshold, hold.

In a box everybody else is counted with a probability between two numbers. A threshold lets nobody tell more than if
more people were unknown.

The blocks are those of theorem E, each with as many people at `p_min` as its last vertex needs. That number is
searched between the two that the mean of the tilted law `g` settles, computed within 1e-12, by the sign of
``g(k-2) - g(k-1)`` beyond its error. Of numbers that differ by less than 2e-5 of themselves, or where the sign is
open, the certified side takes the fewer people, which errs upward, and the attained side the more, from which on the
mode surely is a published cutoff. With noise the mode is √3 standard deviations or less from the mean (the coins'
variance is taken to be their mean, and 3 to 5 are added for whole numbers); between, the law's slope at the cutoff
decides, and beyond the window the slope at its end, on the side on which log-concavity lets it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from itertools import permutations, product

import flint
import numpy as np

from pkdp_pipeline.model.attacker import AttackerModel
from pkdp_pipeline.model.mechanisms import Count, Mechanism
from pkdp_pipeline.model.wording import listed
from pkdp_pipeline.theorems import words
from pkdp_pipeline.theorems.bound import MAX_NOISE, MIN_NOISE, PAPER, Applied, Theorem
from pkdp_pipeline.theorems.counting import (
    MAX_EPSILON,
    MAX_HIDDEN,
    MAX_INVERTED_SHARE,
    Blocks,
    Counting,
    Passed,
    first_blocks,
)
from pkdp_pipeline.theorems.noisy_threshold import MAX_KNOWN, NoisyBesideKnown, NoisyThreshold
from pkdp_pipeline.theorems.numerics import (
    Array,
    Decided,
    Whole,
    ball_above,
    ball_below,
    binomial_below,
    float_below,
)
from pkdp_pipeline.theorems.thresholding import Thresholding, worst_trials
from pkdp_pipeline.theorems.tilted_inversion import MAX_PEOPLE, TwoCoinTails

_BATCH_SIZE = 32
"""This many ε are searched at once."""

_PEOPLE_TOLERANCE = 2e-5
"""The search for a number of people ends when its bracket is this narrow, relatively."""

_MAX_EVALUATED = 2**13
"""Most numbers of people at `p_max`, and blocks of them, that are evaluated for one ε; each takes a search."""

_MEAN_ERROR = 1e-12
"""Means of tilted laws are computed with smaller relative errors."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BoxedThreshold(Counting):
    """Privacy profile of a count, or of one with noise, that is published only when it reaches `k`, against a box.

    Parameters
    ----------
    theorem, unknown, p_min, p_max, noise
        See `Counting`.
    k : int
        The rest of the threshold, with noise the one after it, once all who are controlled are taken off; at least
        2: a smaller one forbids no cutoff that could be best.
    k_complement : int, optional
        The same of a second threshold, without noise, on those who are not counted.
    cap : int, optional
        At most this many people are unknown.

    Notes
    -----
    With j people at `p_max`, the worst attacker has the fewest others, all at `p_min`, with whom the best cutoff of the
    count without its threshold is a published one. So the profile is that of `Counting` with these numbers of people,
    and blocks of j are bounded as there. With two thresholds the best cutoff has to be a published one under both.

    *Guarantee*: the certified side is never below the divergence of any declared attacker, in either direction; the
    attained side is that of one such attacker, and 0 with two thresholds. *Rounding*: outward, as that of `Counting`.
    The best cutoff is the mode of a tilted law: Darroch's theorem places it within 1 of the mean, with noise within √3
    standard deviations, and where that leaves it open, differences of densities beyond their error decide. Fewer people
    are taken where they do not, which errs upward. *Source*: `docs/mathematics.md`, theorem E.
    """

    k: int
    k_complement: int | None = None
    cap: int | None = None

    @property
    def max_evaluated(self) -> int:
        """See `Counting`."""
        return _MAX_EVALUATED

    def smallest_epsilon(self, target: float) -> float:
        """See `pkdp_pipeline.theorems.bound.Bound`; where theorem A is exact, its own."""
        for bound, people in self._alone():
            epsilon = bound.smallest_epsilon(target)
            if epsilon < math.inf and _fit(bound, people, np.array([epsilon]))[0]:
                return epsilon
        return Counting.smallest_epsilon(self, target)

    def _alone(self) -> list[tuple[Thresholding, int]]:
        """Return theorem A for each threshold, and how many people its worst attackers need to be declared here too.

        They are all at the larger chance, and then nobody else is needed: it is exact. Theorem E would take thousands
        of blocks where all chances are small, and so nearly alike.
        """
        if self.noise is not None:
            return []
        bounds = []
        for side, k in self._thresholds():
            p = self.p_max if side == 0 else min(1.0, ball_above(1 - flint.arb(self.p_min)))
            # With this many people the other threshold forbids none of the best cutoffs either.
            people = max(self.unknown, k + sum(other for _, other in self._thresholds()))
            bounds.append((Thresholding(theorem=self.theorem, k=k, p=p, cap=self.cap), people))
        return bounds

    def _most(self, epsilons: Array) -> Array:
        points = self._inverted(epsilons)
        most: Array = np.full(len(epsilons), float(min(self.unknown, MAX_PEOPLE)))
        for way, (side, k) in product((0, 1), self._thresholds()):
            with np.errstate(over="ignore"):
                enough = 2.0 * (self._settled(way, k, points)[1] + 1.0) / self._shares(way, side, points).min(axis=0)
            most = np.maximum(most, np.minimum(enough, MAX_PEOPLE))
        return most

    def _thresholds(self) -> list[tuple[int, int]]:
        """Return (0, threshold on those who are counted) and (1, threshold on those who are not)."""
        return [(0, self.k)] if self.k_complement is None else [(0, self.k), (1, self.k_complement)]

    def _inverted(self, epsilons: Array) -> Array:
        """Return the ε at which tails are inverted."""
        last = MAX_EPSILON if self.noise is None else min(MAX_EPSILON, MAX_INVERTED_SHARE * self.noise)
        return np.minimum(epsilons, last)

    def worst_numbers(self, epsilon: float) -> tuple[int, int]:
        """Return how many people at `p_max`, and how many at `p_min`, are the worst attacker found."""
        ((high, low),) = self.worst_crowds(np.array([epsilon])).T.tolist()
        return high, low

    def worst_crowds(self, epsilons: Array) -> Whole:
        """Return the same for every ε, shape (2, n)."""
        points, crowds, left = (
            self._inverted(epsilons),
            np.zeros((2, len(epsilons))),
            np.ones(len(epsilons), dtype=bool),
        )
        for side, (bound, people) in enumerate(self._alone()):
            for row in np.flatnonzero(left & _fit(bound, people, points)):
                crowds[side, row] = worst_trials(bound.k - 1, bound.p, float(epsilons[row]), bound.cap)
                left[row] = False
        rows = np.flatnonzero(left)
        if len(rows):
            ways, high = self._cover(points[rows])[2]
            crowds[0, rows] = high
            for way, tails in enumerate(self._both()):
                own = ways == way
                _, crowds[1, rows[own]] = self._others(way, tails, high[own].astype(float), points[rows[own]])
        return crowds.astype(np.int64)

    def _search(self, epsilons: Array) -> tuple[Array, Array]:
        lower, upper, left = np.zeros(len(epsilons)), np.zeros(len(epsilons)), np.ones(len(epsilons), dtype=bool)
        for bound, people in self._alone():
            rows = left & _fit(bound, people, epsilons)
            lower[rows], upper[rows] = bound.bracket(epsilons[rows])
            left &= ~rows
        others = np.flatnonzero(left)
        for start in range(0, len(others), _BATCH_SIZE):
            part = others[start : start + _BATCH_SIZE]
            lower[part], upper[part] = self._cover(epsilons[part])[:2]
        # Beside a second threshold the attackers of one may tell less: nothing is attained.
        return lower if self.k_complement is None else np.zeros(len(epsilons)), upper

    def _directions(self) -> list[TwoCoinTails]:
        return self._both()

    def _whole_box(self, epsilons: Array) -> Blocks:
        """Return blocks of all numbers of people at `p_max` that have to be looked at, for each direction and ε."""
        parts: list[Blocks] = []
        for way in (0, 1):
            for column, (least, most) in enumerate(zip(*self._range(way, epsilons), strict=True)):
                starts, ends = first_blocks(int(most - least))
                mark = np.full(len(starts), way * len(epsilons) + column)
                parts.append((mark, starts + int(least), ends + int(least)))
        marks, firsts, lasts = (np.concatenate([part[index] for part in parts]) for index in range(3))
        return marks, firsts, lasts

    def _range(self, way: int, epsilons: Array) -> tuple[Array, Array]:
        """Return the least and the largest number of people at `p_max` that matters.

        With the largest nobody else is needed. With fewer than the least, `cap` people do not reach the threshold often
        enough, and one more of them at `p_max` tells more.
        """
        most = np.full(len(epsilons), 0.0 if self.p_min == self.p_max else self.unknown)
        for side, k in self._thresholds() if self.p_min < self.p_max else ():
            enough = self._settled(way, k, epsilons)[1] * (1.0 + 2.0 * _MEAN_ERROR)
            with np.errstate(over="ignore"):
                most = np.maximum(most, np.ceil(enough / self._shares(way, side, epsilons)[1]))
        most = np.minimum(most, MAX_PEOPLE if self.cap is None else self.cap)
        if self.cap is None or self.p_min == self.p_max or self.k_complement is not None:
            return np.zeros(len(epsilons)), most
        (low, high), (below, _) = self._shares(way, 0, epsilons), self._settled(way, self.k, epsilons)
        missing = below * (1.0 - _MEAN_ERROR) - self.cap * low * (1.0 + _MEAN_ERROR)
        each = high * (1.0 + _MEAN_ERROR) - low * (1.0 - _MEAN_ERROR)
        with np.errstate(over="ignore"):
            least = np.where(missing < 0.0, 0.0, np.floor(missing / each * (1.0 - _MEAN_ERROR)) + 1.0)
        return np.minimum(least, most), most

    def _evaluate(
        self, directions: list[TwoCoinTails], mark: Whole, first: Whole, last: Whole, epsilons: Array
    ) -> tuple[Array, Array]:
        """Return brackets with `first` people at `p_max` and as many others as go with `last`."""
        lower, upper = np.zeros(len(mark)), np.zeros(len(mark))
        for way, tails in enumerate(directions):
            rows = np.flatnonzero(mark // len(epsilons) == way)
            points, high = epsilons[mark[rows] % len(epsilons)], first[rows].astype(float)
            fewest, enough = self._others(way, tails, last[rows].astype(float), points)
            lower[rows], upper[rows] = tails.right_tails(fewest, high, points)
            # The lower side takes `enough` people: with `fewest` the threshold may forbid the best cutoff.
            apart = np.flatnonzero(enough > fewest)
            lower[rows[apart]] = tails.right_tails(enough[apart], high[apart], points[apart])[0]
            if self.k_complement is None:
                lower[rows] = np.where(enough + high <= min(self.cap or MAX_PEOPLE, MAX_PEOPLE), lower[rows], 0.0)
            # With fewer at `p_max` than the range has, one more tells more; an inversion may ask for them still.
            upper[rows] = np.where(high < self._range(way, points)[0], 0.0, upper[rows])
        return lower, upper

    def _shares(self, way: int, side: int, epsilons: Array) -> Array:
        """Return the tilted law's chances of people at `p_min`, and at `p_max`, to be counted, or not (`side` 1)."""
        tilt = epsilons if way == side else -epsilons
        odds = np.array([[np.log(p) - np.log1p(-p)] for p in (self.p_min, self.p_max)]) * (1.0 if side == 0 else -1.0)
        with np.errstate(over="ignore"):
            shares: Array = np.maximum(1.0 / (1.0 + np.exp(-odds - tilt)), 1e-300)
        return shares

    def _settled(self, way: int, k: int, epsilons: Array) -> tuple[Array, Array]:
        """Return the tilted coins' means up to which the mode is surely below ``k - 1``, and from which it is not."""
        t = np.full(len(epsilons), k - 1.0)
        if self.noise is None:
            return t - 1.0, t
        # Tilted two-sided geometric noise is the difference of two geometric variables.
        with np.errstate(over="ignore"):  # the reciprocal of an overflow is 0, its limit
            further, nearer = (np.expm1(self.noise + sign * epsilons) for sign in (1.0, -1.0))
        drift, spread = 1.0 / nearer - 1.0 / further, 2.0 + sum(1.0 / x + (1.0 / x) ** 2 for x in (further, nearer))
        # A unimodal law has its mode within √3 standard deviations of its mean; coins vary by no more than their mean.
        down, up = (t + step - (drift if way == 0 else -drift) for step in (-5.0, 4.0))
        below = down + 1.5 - np.sqrt(np.maximum(0.0, 2.25 + 3.0 * (down + spread)))
        above = up + 1.5 + np.sqrt(np.maximum(0.0, 2.25 + 3.0 * (up + spread)))
        return np.where(down < 0.0, -1.0, below), np.maximum(0.0, above)

    def _others(self, way: int, tails: TwoCoinTails, high: Array, epsilons: Array) -> tuple[Array, Array]:
        """Return (fewest, enough) people at `p_min` beside `high` at `p_max`.

        Fewer than `fewest` are not declared, or tell no more than one more of them does; with `enough` the best cutoff
        is a published one.
        """
        start, most = np.maximum(0.0, self.unknown - high), MAX_PEOPLE - high
        fewest, enough = start, start
        for side, k in self._thresholds():
            (share, other), (below, above) = self._shares(way, side, epsilons), self._settled(way, k, epsilons)
            # How many people at `p_min` make the mean `below`, and `above`: up to the first number the mode is surely
            # below k - 1, from the second on surely not. Rounding widens the interval.
            with np.errstate(over="ignore"):
                below = (below * (1.0 - _MEAN_ERROR) - high * other * (1.0 + _MEAN_ERROR)) / share
                above = np.ceil(
                    (above * (1.0 + _MEAN_ERROR) - high * other * (1.0 - _MEAN_ERROR))
                    / share
                    * (1.0 + 3.0 * _MEAN_ERROR)
                )
            below = np.where(below < 0.0, -1.0, np.floor(below * (1.0 - 3.0 * _MEAN_ERROR)))
            fewest, enough = np.maximum(fewest, below + 1.0), np.maximum(enough, above)
        # More people than `MAX_PEOPLE` are never evaluated; this keeps the numbers finite.
        enough = np.minimum(enough, 2.0 * MAX_PEOPLE)
        last, sure = np.minimum(enough, most), enough <= most
        chances = np.array([self._shares(way, side, epsilons) for side, _ in self._thresholds()])

        def slopes(rows: Whole, people: Array) -> tuple[Array, Array]:
            """Return the law's slope at the strictest cutoff, below 0 where it is forbidden; what a person adds to it.

            The mean grows by her chance, and the slope by about that over the variance.
            """
            places = [
                np.full(len(rows), k - 2.0) if way == side else people + high[rows] - k + 1.0
                for side, k in self._thresholds()
            ]
            rising = tails.slopes(people, high[rows], epsilons[rows], *places)
            rising *= [[1.0 if way == side else -1.0] for side, _ in self._thresholds()]
            share, other = chances[0, :, rows].T
            variance = people * share * (1.0 - share) + high[rows] * other * (1.0 - other)
            return rising.min(axis=0), chances[rising.argmin(axis=0), 0, rows] / np.maximum(variance, 1e-300)

        # Secant method on the law's slope, which grows with the people at `p_min`; every fourth step bisects.
        # A probe moves `fewest` only where the slope is surely negative, so errors leave fewer people, which is sound.
        guess, before, step = np.full(len(high), np.nan), np.full((2, len(high)), np.nan), 0
        while len(rows := np.flatnonzero((last - fewest > _PEOPLE_TOLERANCE * last) & (fewest < most))):
            guess[rows] = np.where(
                np.isfinite(guess[rows]) & (step % 4 < 3), guess[rows], (fewest[rows] + last[rows]) / 2.0
            )
            people = np.floor(np.clip(guess[rows], fewest[rows], last[rows] - 1.0))
            slope, rate = slopes(rows, people)
            forbidden = slope < 0.0
            fewest[rows[forbidden]] = people[forbidden] + 1.0
            last[rows[~forbidden]], sure[rows[~forbidden]] = people[~forbidden], slope[~forbidden] > 0.0
            with np.errstate(divide="ignore", invalid="ignore"):
                secant = (slope - before[1, rows]) / (people - before[0, rows])
                zero = people - slope / np.where((secant > 0.0) & (secant < np.inf), secant, rate)
            beyond = 0.02 * np.abs(zero - people) + 0.25 * _PEOPLE_TOLERANCE * last[rows]
            guess[rows], before[:, rows] = zero + np.where(forbidden, beyond, -beyond), (people, slope)
            step += 1
        # At a tie of two neighbouring counts the slope is 0, and one person more settles its sign.
        if len(rows := np.flatnonzero(~sure & (last < most))):
            last[rows] += 1.0
            sure[rows] = slopes(rows, last[rows])[0] > 0.0
        return np.minimum(fewest, most), np.where(sure, np.maximum(last, fewest), enough)


def _fit(bound: Thresholding, people: int, epsilons: Array) -> Decided:
    """Return where the worst attackers of theorem A, and those next to them, have at least so many unknown people."""
    with np.errstate(over="ignore", under="ignore"):
        others = (bound.k - 1.0) * ((1.0 - bound.p) / bound.p * np.exp(-epsilons)) * (1.0 - 1e-9)
    fit: Decided = bound.k - 1.0 + np.floor(others) - 2.0 >= people
    return fit & (bound.p < 1.0) & (True if bound.cap is None else bound.cap - 2 >= people)


_BOX = ("p_min", "p_max", "unknown")
"""The attacker's fields that declare a box."""

_SIDES = ("thresholding_in_box", "complement_in_box")
"""Theorem E for the people who are counted, and for those who are not."""

_BOTH = "two_thresholds_in_box"
"""The same with a threshold on either; where it is left, so are the others."""


def _exact(mechanism: Count, attacker: AttackerModel, left: frozenset[str]) -> Applied | str | None:
    """Section 3: the count without its threshold and noise, which only take away from it."""
    bound, suppressed = _box("counting", attacker), _suppresses(mechanism)
    if bound is None:
        return None if suppressed else _certain(attacker)
    # Theorem E is this with more people.
    if suppressed and _BOTH in left:
        either = any(_thresholded(side, mechanism, attacker, left) for side in _SIDES)
        if either or _twice(mechanism, attacker, left):
            return None
    # Beside noise it stands where the sum cannot be inverted.
    return Applied(bound=bound, attack=None if suppressed or mechanism.noise is not None else bound)


def _noised(mechanism: Count, attacker: AttackerModel, left: frozenset[str]) -> Applied | str | None:
    bound = _box("noisy_counting", attacker)
    if mechanism.noise is None or bound is None or mechanism.noise.epsilon > MAX_NOISE:
        return None
    bound = replace(bound, noise=mechanism.noise.epsilon)
    if _suppresses(mechanism):
        passed = _passed(mechanism, bound)
        return Applied(bound=passed, attack=None) if passed.hidden <= MAX_HIDDEN else None
    # Theorem E is this with more people.
    if _BOTH in left and _thresholded(_SIDES[0], mechanism, attacker, left):
        return None
    # A threshold of at most 1 forbids no cutoff that could be best.
    controlled = attacker.known if attacker.influence == "active" else 0
    return Applied(bound=bound, attack=bound if (mechanism.release_threshold or 0) - controlled <= 1 else None)


def _passed(mechanism: Count, bound: Counting) -> Passed:
    """Return the bound for thresholds before the noise that unknown people alone nearly surely pass."""
    thresholds = (mechanism.k or 0, bound.p_min), (mechanism.k_complement or 0, float_below(1 - Fraction(bound.p_max)))
    hidden = math.fsum(binomial_below(bound.unknown, p, threshold) for threshold, p in thresholds)
    return Passed(theorem=bound.theorem, base=bound, hidden=hidden * (1.0 + 1e-12))


def _thresholded(side: str, mechanism: Count, attacker: AttackerModel, left: frozenset[str]) -> Applied | None:
    """Theorem E; where it says nothing, theorem A and section 3 say what holds, or why not."""
    box, thresholds, noise = _box(side, attacker), (mechanism.k, mechanism.k_complement), None
    # Where nothing is suppressed before the noise, the sum of count and noise is what has to reach a threshold.
    if mechanism.noise is not None and not _suppresses(mechanism):
        thresholds, noise = (mechanism.release_threshold, None), mechanism.noise.epsilon
        if noise > MAX_NOISE:
            return None
    k, other = thresholds if side == _SIDES[0] else thresholds[::-1]
    # An attacker who merely knows people sees them counted at the worst as often as one who controls them.
    if box is None or k is None or k - attacker.known <= 1:
        return None
    around = within = (box.p_min, box.p_max)
    if side != _SIDES[0]:
        ends = [1 - flint.arb(p) for p in (box.p_max, box.p_min)]
        around, within = (
            (round_low(ends[0]), round_high(ends[1]))
            for round_low, round_high in permutations((ball_below, ball_above))
        )
    if around[1] >= 1.0:
        return None
    # Both together are as good as the better one, unless so few people are unknown that one more matters.
    if other is not None and attacker.unknown_max is None and _twice(mechanism, attacker, left):
        return None
    bound = BoxedThreshold(
        theorem=side,
        unknown=box.unknown,
        p_min=around[0],
        p_max=around[1],
        noise=noise,
        k=k - attacker.known,
        cap=attacker.unknown_max,
    )
    # An attacker who merely knows people may know none of those who are counted.
    left_of_k = bound.k if attacker.influence == "active" else k
    attained = (mechanism.noise is None or noise is not None) and other is None and within[0] <= within[1]
    attack = replace(bound, p_min=within[0], p_max=within[1], k=left_of_k) if attained else None
    return Applied(bound=bound, attack=attack)


def _twice(mechanism: Count, attacker: AttackerModel, left: frozenset[str]) -> Applied | None:
    """Theorem E with two thresholds; attackers are looked for from the worst one of its proof."""
    box = _box(_BOTH, attacker)
    if box is None or mechanism.k is None or mechanism.k_complement is None:
        return None
    k, other = mechanism.k - attacker.known, mechanism.k_complement - attacker.known
    if min(k, other) <= 1:
        return None
    bound = BoxedThreshold(
        theorem=_BOTH,
        # Of fewer people, the target included, than both thresholds need together nothing is published.
        unknown=max(box.unknown, k + other - 1),
        p_min=box.p_min,
        p_max=box.p_max,
        k=k,
        k_complement=other,
        cap=attacker.unknown_max,
    )
    return Applied(bound=bound, attack=None)


_MAX_EXPECTED_KNOWN = 5.0
"""With many people merely known theorem D is evaluated where so few are expected to count."""


def behind_noise(theorem: str, mechanism: Mechanism, attacker: AttackerModel) -> NoisyThreshold | None:
    """Theorem D: a threshold with noise after it, few people merely known."""
    k, p, noise, release = mechanism.k, attacker.p_max, mechanism.noise, mechanism.release_threshold
    controlled = attacker.known if attacker.influence == "active" else 0
    known = attacker.known - controlled
    if k is None or noise is None or p is None or p == 1.0 or k - controlled <= 1:
        return None
    # Of more people the most telling ones may be fewer than all.
    if known > k - 2 and known * p > (k - 1) * (1.0 - 1e-9):
        return None
    if known > max(MAX_KNOWN, _MAX_EXPECTED_KNOWN / p if p else 0.0):
        return None
    if not MIN_NOISE <= noise.epsilon <= MAX_NOISE or getattr(mechanism, "k_complement", None) is not None:
        return None
    return NoisyThreshold(
        theorem=theorem,
        k=k - controlled,
        p=p,
        cap=attacker.unknown_max,
        known=known,
        noise=noise.epsilon,
        release_threshold=None if release is None else release - controlled,
    )


_MAX_UNKNOWN = 3_000
"""With more unknown people theorem D is not evaluated in a box: a search takes too long."""


def _count_behind_noise(mechanism: Count, attacker: AttackerModel, left: frozenset[str]) -> Applied | None:
    """Theorem D in a box; with a smaller threshold the unknown people may tell more, or less."""
    box, theorem = _box("", attacker), "noisy_thresholding_in_box"
    if box is None or max(attacker.known / MAX_KNOWN, box.unknown / _MAX_UNKNOWN) > 1:
        return None
    counted = (replace(attacker, known=known, influence="active") for known in range(attacker.known + 1))
    bounds = (behind_noise(theorem, mechanism, known) for known in counted)
    ways = tuple(replace(way, p_min=box.p_min, unknown=box.unknown) for way in bounds if way is not None)
    if len(ways) <= attacker.known:
        return None
    bound = NoisyBesideKnown(theorem=theorem, parts=ways) if attacker.known else ways[0]
    # An attacker who merely knows people may know nobody.
    return Applied(bound=bound, attack=bound if attacker.influence == "active" else ways[0])


def _box(theorem: str, attacker: AttackerModel) -> Counting | None:
    """Return the bound for an attacker who is uncertain about everybody in a box of probabilities."""
    p_min, p_max, unknown = attacker.p_min, attacker.p_max, attacker.unknown
    if not p_min or p_max is None or p_max == 1.0 or not unknown:
        return None
    return Counting(theorem=theorem, unknown=unknown, p_min=p_min, p_max=p_max)


def _suppresses(mechanism: Count) -> bool:
    """Return whether anything is suppressed before the noise."""
    return mechanism.k is not None or mechanism.k_complement is not None


def _certain(attacker: AttackerModel) -> str:
    """Return why nothing is uncertain about the other people."""
    missing = [name for name in ("p_min", "p_max", "unknown") if getattr(attacker, name) is None]
    if missing:
        return (
            "a count published without k is protected by the other people's uncertainty, which needs "
            f"{listed(missing)} declared"
        )
    if attacker.p_min == 0.0:
        return "p_min = 0 lets the attacker be certain that nobody else is counted"
    if attacker.p_max == 1.0:
        return "p_max = 1 lets the attacker be certain that everybody else is counted"
    return "unknown = 0 leaves the attacker nothing to be uncertain about"


_IN_A_BOX = Theorem(
    key="noisy_thresholding_in_box",
    title="Theorem D in a box: a threshold with noise after it",
    citation="docs/mathematics.md, section 6, theorem D in a box",
    formal=words.BEHIND_NOISE_IN_A_BOX,
    against=partial(words.thresholding_in_box, "in"),
    rests_on=("known", "p_max", "unknown"),
    needs=_BOX,
    about=(Count, "presence"),
    rule=_count_behind_noise,
)
_E = replace(_IN_A_BOX, citation="docs/mathematics.md, section 4, theorem E", formal=words.IN_A_BOX)
_COUNTING = Theorem(
    key="counting",
    noised_below=True,
    title="Lemmas 1 to 3: exact counts against an attacker in a box of probabilities",
    citation=f"docs/mathematics.md, sections 1 to 3; sharpens Theorem 3 of {PAPER}",
    formal=words.VERTICES,
    against=words.counting,
    rests_on=("unknown",),
    needs=_BOX,
    beside_private=True,
    about=(Count, "presence"),
    rule=_exact,
)

IN_A_BOX = (
    _IN_A_BOX,
    *(
        replace(
            _E,
            key=key,
            title=f"Theorem E{whose}: in a box, a threshold is as good as more unknown people",
            against=partial(words.thresholding_in_box, side),
            rule=partial(_thresholded, key),
        )
        for key, whose, side in zip(_SIDES, ("", " for the people who are not counted"), ("in", "outside"), strict=True)
    ),
    replace(
        _E,
        key=_BOTH,
        title="Theorem E for both thresholds: in a box, they are as good as more unknown people",
        against=words.two_thresholds_in_box,
        rule=_twice,
    ),
    replace(
        _COUNTING,
        key="noisy_counting",
        title="Lemmas 1 to 3 on the sum of the count and its noise",
        citation=f"docs/mathematics.md, sections 1 to 3 and 6; section 5.2 of {PAPER}",
        beside_private=False,
        noised_below=False,
        rule=_noised,
    ),
    _COUNTING,
)
"""Their records, in the order in which they are tried."""
