"""Theorem G: which of two cells, where each is suppressed below k, noised, and suppressed below a release threshold.

These are two noised looks at one number: of x people in the one cell all others are in the other, and both are
published. Each cell is what one is in `theorems.channel`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from itertools import product

import numpy as np

from pkdp_pipeline.theorems.bound import Bound
from pkdp_pipeline.theorems.channel import Channel, noised
from pkdp_pipeline.theorems.numerics import (
    TINY,
    Array,
    Whole,
    binomial_below,
    binomial_weights,
    invert,
    kept,
    smallest_epsilon,
)

_BLOCK_SIZE = 16
"""So many values of the smaller look are summed at once."""

_NO_RELEASE = -(2**40)
"""Stands for no release threshold: noise is never so far out."""

UNDERFLOW = 1e-310
"""Underflow changes a chance of what is shown by at most this: a million operations, and weights of up to 100."""

MAX_LOOKED_AT = 200
"""Of up to this many coins the law of two looks is computed."""

_ERROR = 1e-11
"""Relative error of its chances, with room for what a sampler may draw."""

_MAX_SUM = 1 << 12
"""The sum of many cells' noise is not looked at where either side of it may be this large."""


def two_looks(
    laws: Array,
    noise: float,
    thresholds: tuple[int, int] = (0, 0),
    releases: tuple[int | None, int | None] = (None, None),
) -> Iterator[Array]:
    """Yield the law of what is shown of x people in the one cell and all others in the other, in parts: columns.

    Parameters
    ----------
    laws : array, shape (rows, M + 1)
        Chances, or other numbers of at least 0, of x = 0 … M; parts have a row for each row.
    noise : float
        ε0 of two-sided geometric noise in each cell.
    thresholds, releases : (int, int)
        k of the one cell and of the other, and from which noisy counts on they are shown.

    Notes
    -----
    Shown values beyond all counts, and pairs that exchange their places, have the likelihood ratio of others: they are
    merged, so that the outcomes are finitely many and nothing is left out. *Rounding*: sums of positive terms, within
    1e-12 relatively and `UNDERFLOW`.
    """
    everybody, below = laws.shape[1] - 1, Channel(0, None, noise, 0.5, 0.5).below
    counts = np.arange(everybody + 1)
    cells = []
    for k, release in zip(thresholds, releases, strict=True):
        least = _NO_RELEASE if release is None else release
        cells.append((max(k, 0), least, np.where(counts >= k, below((least - counts).astype(float)), 1.0)))
    (k, release, hides), (other_k, other_release, other_hides) = cells
    last = everybody - other_k
    yield laws @ (hides * other_hides[::-1])[:, None]
    # One cell alone: its own counts, then the same of the other one, turned around.
    for least, shown, hidden, law in ((k, release, other_hides, laws), (other_k, other_release, hides, laws[:, ::-1])):
        if least <= everybody:
            weights = _merged(least, everybody, shown, noise)
            yield noised(law[:, least:] * hidden[::-1][least:], noise) * weights
    if k <= last:
        first = _merged(k, last, release, noise)
        second = _merged(other_k, everybody - k, other_release, noise)[::-1]
        yield from _looks(laws[:, k : last + 1], noise, first, second)


Lives = tuple[Array, Array]
"""Rows of what is shown in either life of the target."""


def parts_of_lives(laws: Array, noise: float, k: int, release: int | None, known: tuple[int, int]) -> Iterator[Lives]:
    """Yield what is shown with the target in the one cell, and in the other, some outcomes at a time.

    `laws`: rows of how many others are in the one cell. `known`: so many more are known to be in the one cell, and in
    the other; thresholds are those of all others.
    """
    lives = np.zeros((2 * len(laws), laws.shape[1] + 1))
    lives[: len(laws), 1:], lives[len(laws) :, :-1] = laws, laws
    releases = (None, None) if release is None else (release - known[0], release - known[1])
    for shown in two_looks(lives, noise, (k - known[0], k - known[1]), releases):
        yield shown[: len(laws)], shown[len(laws) :]


def lives_of(laws: Array, noise: float, k: int, release: int | None, known: tuple[int, int]) -> Lives:
    """Return all that `parts_of_lives` yields."""
    first, second = zip(*parts_of_lives(laws, noise, k, release, known), strict=True)
    return np.hstack(first), np.hstack(second)


def gains_of(first: Array, second: Array, growth: float, sign: float) -> Array:
    """Return at least ``first - growth · second`` of chances that underflow has changed; for sign -1 at most it."""
    gains: Array = second - sign * UNDERFLOW
    np.maximum(gains, 0.0, out=gains)
    gains *= -growth
    gains += first
    return gains


def _merged(low: int, high: int, least: int, noise: float) -> Array:
    """Return for each value from `low` to `high` how much is shown there: of `least` or more, what is nearest to it.

    Noise beyond the first value, and beyond the last, counts ``e^(-ε0)`` for each step.
    """
    weight: Array = (np.arange(low, high + 1) >= least).astype(float)
    weight[-1] += math.exp(-noise * max(1, least - high)) / -math.expm1(-noise)
    if low >= least:
        weight[0] += math.exp(-noise) * math.expm1(-noise * (low - least)) / math.expm1(-noise)
    return weight


def _looks(laws: Array, noise: float, first: Array, second: Array) -> Iterator[Array]:
    """Yield the law of the smaller and the larger of two looks ``x + Z1`` and ``x - Z2``.

    `first` and `second` are the weights of either look's value; of a pair of values ``u ≤ v`` the chance given x is in
    proportion to ``α^(v - u) α^(2 dist(x, [u, v]))``.
    """
    rows, size = laws.shape
    beta, places = math.exp(-2.0 * noise), np.arange(size)
    before, after = np.zeros_like(laws), np.zeros_like(laws)
    for place in range(1, size):
        before[:, place] = beta * (before[:, place - 1] + laws[:, place - 1])
        after[:, -place - 1] = beta * (after[:, -place] + laws[:, -place])
    weights = np.triu(np.outer(first, second) + np.outer(second, first))
    np.fill_diagonal(weights, first * second)
    weights *= np.exp(-noise * np.abs(places[:, None] - places)) * math.tanh(0.5 * noise) ** 2
    # Blocks of u: beyond a block, or the first v shown, a sum from u to v is one up to there and one from there.
    shown = np.flatnonzero(weights.any(axis=0)), np.flatnonzero(weights.any(axis=1))
    if not len(shown[0]):
        return
    least = int(shown[0][0])
    for start in range(0, int(shown[1][-1]) + 1, _BLOCK_SIZE):
        end = min(start + _BLOCK_SIZE, size)
        cut = max(end, least)
        below = np.cumsum(laws[:, start:cut][:, ::-1], axis=1)[:, ::-1][:, : end - start] + before[:, start:end]
        above = np.cumsum(laws[:, cut:], axis=1) + after[:, cut:]
        apart = below[:, :, None] + above[:, None, :]
        apart *= weights[start:end, cut:]
        yield apart.reshape(rows, -1)
        if end > least:
            inside = laws[:, None, start:end] * (places[start:end, None] <= places[start:end])
            np.cumsum(inside, axis=2, out=inside)
            inside += before[:, start:end, None] + after[:, None, start:end]
            inside *= weights[start:end, start:end]
            yield inside.reshape(rows, -1)[:, np.flatnonzero(weights[start:end, start:end])]


def brackets_of(counts: Whole, noise: float, epsilon: float) -> tuple[Array, Array]:
    """Return brackets of the profile of two looks at each of these numbers of fair coins."""
    sides = np.zeros((2, len(counts)))
    for index, people in enumerate(counts.tolist()):
        for side, sign in enumerate((-1.0, 1.0)):
            present, absent = _coin_lives(people, noise)
            growth = math.exp(min(epsilon, 700.0)) * (1.0 - sign * 2.0 * _ERROR)
            gains = gains_of(present, absent, growth, sign)
            sides[side, index] = np.maximum(0.0, gains).sum() * (1.0 + sign * 2.0 * _ERROR) + sign * TINY
    return np.maximum(0.0, sides[0]), sides[1]


@lru_cache(maxsize=2 * MAX_LOOKED_AT)
def _coin_lives(people: int, noise: float) -> tuple[Array, Array]:
    """Return what both cells show of so many fair coins in the target's two lives, each the other's mirror image."""
    present, absent = lives_of(binomial_weights(people, 0.5, 0, people)[None], noise, 0, None, (0, 0))
    return present[0], absent[0]


@lru_cache(maxsize=16)
def noise_of(cells: int, noise: float) -> Array | None:
    """Return the law of the sum of so many cells' noise, from its least value to its largest; None where it is wide.

    It is the difference of two negative binomial numbers, of either of which less than e^-40 is left out.
    """
    alpha, size = math.exp(-noise), 64
    while size <= _MAX_SUM:
        ratios = alpha * (1.0 + (cells - 1.0) / np.arange(1.0, size + 1.0))
        # They fall, to either side of the mode, so that the rest is at most a geometric series.
        mode = int((ratios > 1.0).sum())
        with np.errstate(under="ignore"):
            down, up = np.cumprod(1.0 / ratios[:mode][::-1])[::-1], np.cumprod(ratios[mode:])
        if mode < size and up[-1] < math.exp(-40.0) * (1.0 - ratios[-1]):
            weights = np.concatenate([down, [1.0], up])
            law: Array = np.convolve(weights, weights[::-1]) / weights.sum() ** 2
            return law
        size *= 2
    return None


MAX_ENUMERATED = 150
"""At most this many people are looked at one by one."""

MIN_ENUMERATED_NOISE = 0.2
"""With noise of a smaller ε0 more people than are enumerated tell about as much."""

_MAX_EPSILON = 600.0
"""At a larger ε the profile is bounded by the one here."""

_BATCH_SIZE = 24
"""After so many numbers of people it is looked at whether more of them can tell more."""

_SLACK = 1e-4
"""An ε for a δ is not searched for more finely than this."""

_NEGLIGIBLE_TAIL = 1e-12
"""With so many people that a cell is below k less often than this, larger numbers are not enumerated."""

_MAX_TAIL = 1e-9
"""Where a cell is below k more often than this beyond `MAX_ENUMERATED` people, nothing is certified."""


def enough_people(k: int, p: float, cap: int | None) -> int | None:
    """Return how many people are to be looked at one by one; None if that is too many."""
    if cap is not None and cap <= MAX_ENUMERATED:
        return cap
    low = (1.0 - p) * (1.0 - _ERROR)
    if k > MAX_ENUMERATED or binomial_below(MAX_ENUMERATED + 1, low, k) > _MAX_TAIL:
        return None
    return next(
        (n for n in range(k, MAX_ENUMERATED) if binomial_below(n + 1, low, k) <= _NEGLIGIBLE_TAIL), MAX_ENUMERATED
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class NoisyBetween(Bound):
    """Privacy profile of two cells behind k, noise and a release threshold, of people who are surely in one of them.

    Parameters
    ----------
    p : float
        Told that somebody is in one of two cells, the attacker is at most this sure which.
    noise : float
        ε0 of two-sided geometric noise in each cell.
    people : int
        Up to this many people all attackers are looked at.
    cap : int, optional
        At most this many are unknown.
    known : int
        At most k - 2 people who are known or controlled, each in either cell.

    Notes
    -----
    The law of what both cells show is computed for vertices with up to `people` people, and all ways to spread those
    who are known over the cells, each of whom lowers the thresholds of hers; more people are bounded by what cells
    without thresholds show, and by what the thresholds can change.

    *Guarantee*: the certified side is never below the divergence of any declared attacker, in either direction; the
    attained side is that of the best vertex, all `known` being controlled. *Rounding*: outward, by 1e-11 of each
    chance and by what may underflow; but for that the sides agree where not more people than are looked at are worst.
    *Source*: `docs/mathematics.md`, theorem G.
    """

    p: float
    k: int
    noise: float
    release_threshold: int | None
    people: int
    cap: int | None = None
    known: int = 0

    @property
    def slack(self) -> float:
        """See `pkdp_pipeline.theorems.bound.Bound`."""
        return _SLACK

    def rounding(self, epsilons: Array) -> Array:
        """See `pkdp_pipeline.theorems.bound.Bound`: chances that nearly cancel err as much as they are large."""
        apart, sides = (
            8.0 * _ERROR * (1.0 + np.exp(np.minimum(epsilons, _MAX_EPSILON))),
            np.array(self.bracket(epsilons)),
        )
        return np.divide(apart, sides, out=np.ones_like(sides), where=sides > apart).clip(0.0, 1.0)

    def bracket(self, epsilons: Array) -> tuple[Array, Array]:
        """Return (attained, certified) arrays; see `pkdp_pipeline.theorems.bound.Bound`."""
        attained, certified, _ = _searched(self, tuple(epsilons.tolist()))
        return attained, certified

    def smallest_epsilon(self, target: float) -> float:
        """See `pkdp_pipeline.theorems.bound.Bound`; few ε look at all numbers of people, the others at the worst."""
        if not self.numbers:
            return Bound.smallest_epsilon(self, target)
        step = max(1, len(self.numbers) // 24)
        people = sorted({*self.numbers[::step], self.numbers[-1]})
        if self._beside(people, _MAX_EPSILON) > target:
            return math.inf
        # The first ε that is searched is that of the worst numbers of people near the worst few of some.
        epsilon = smallest_epsilon(partial(self._expected, people), target, _SLACK)
        worst = max(people, key=lambda number: self._beside([number], epsilon))
        people = [number for number in range(worst - step, worst + step + 1) if number in self.numbers]
        start = smallest_epsilon(partial(self._expected, people), target, _SLACK, epsilon or None)
        best = invert(target, people, self._expected, self._look, start=start)
        return Bound.smallest_epsilon(self, target) if math.isinf(best) else best

    def _beside(self, people: list[int], epsilon: float) -> float:
        """Return the largest δ of some numbers of people, all rather in the one cell, and all or none known to be."""
        point = np.array([min(epsilon, _MAX_EPSILON)])
        places = product(people, {0, self.known})
        return max(float(_deltas(_edge(self, *place), point)[0, 0]) for place in places)

    def _expected(self, people: list[int], epsilon: float) -> float:
        """Return about what is certified: what `_beside` is, and what larger numbers of people are bounded by."""
        largest, point = self._beside(people, epsilon), np.array([min(epsilon, _MAX_EPSILON)])
        if self.cap is not None and self.cap <= self.people:
            return largest
        without = _deltas(_edge(self._without, self.people + 1, 0), point)[0]
        return max(largest, float((without + self._missed(point, self.people))[0]))

    def _look(self, epsilon: float) -> tuple[float, list[int]]:
        """Return what is certified at an ε, and the worst number of people there."""
        _, certified, leading = _searched(self, (epsilon,))
        return float(certified[0]), [leading]

    @property
    def numbers(self) -> range:
        """Return the numbers of people that are looked at; with fewer than k - 1 others nothing is ever shown."""
        return range(
            max(1, self.k - 1 - self.known), (self.people if self.cap is None else min(self.people, self.cap)) + 1
        )

    def beyond(self, epsilons: Array, people: int, enough: Array | float = math.inf) -> Array:
        """Return a bound for all numbers of people above `people`: without thresholds, and what these can change.

        It is 1 where the second alone is more than is `enough`.
        """
        if self.cap is not None and self.cap <= people:
            return np.zeros(len(epsilons))
        missed = self._missed(epsilons, people)
        if np.any(missed > enough):
            return np.ones(len(epsilons))
        return _Best(epsilons).look(self._without, people + 1, 0) + missed

    @property
    def _without(self) -> NoisyBetween:
        """The same without thresholds."""
        return replace(self, k=0, known=0, release_threshold=None)

    def _missed(self, epsilons: Array, people: int) -> Array:
        """Return what thresholds can change with more people than these."""
        below = binomial_below(people + 1, (1.0 - self.p) * (1.0 - _ERROR), self.k)
        missed: Array = 2.0 * (1.0 + np.exp(epsilons)) * below
        return missed

    def shown(self, laws: Array, known: int) -> Iterator[Lives]:
        """Yield what is shown in the target's two lives, in parts; `laws`: rows of how many others are in the one cell.

        `known`: how many of those who are known are in the one cell; thresholds are those of all others.
        """
        return parts_of_lives(laws, self.noise, self.k, self.release_threshold, (known, self.known - known))


def _deltas(parts: Iterable[Lives], epsilons: Array, sign: float = 1.0) -> Array:
    """Return at least the larger divergence of each two laws, a row for each ε; for sign -1 at most it."""
    growths, sums = np.exp(epsilons) * (1.0 - sign * 2.0 * _ERROR), []
    for first, second in parts:
        orders = ((first, second), (second, first))
        gains = (gains_of(*order, growth, sign) for order in orders for growth in growths)
        sums.append([np.maximum(gain, 0.0, out=gain).sum(axis=1) for gain in gains])
    deltas = np.array(sums).sum(axis=0).reshape(2, len(epsilons), -1)
    result: Array = deltas.max(axis=0) * (1.0 + sign * 2.0 * _ERROR)
    return result


@lru_cache(maxsize=256)
def _edge(bound: NoisyBetween, people: int, known: int) -> tuple[Lives, ...]:
    """Return what is shown where all of so many people are rather in the one cell."""
    return tuple(bound.shown(_tossed(people, bound.p)[-1:], known))


class _Best:
    """The best vertices so far: at most and at least their δ at every ε, and how many people the last one has."""

    def __init__(self, epsilons: Array) -> None:
        self.epsilons, self.leading = epsilons, 0
        self.upper, self.lower = np.zeros(len(epsilons)), np.zeros(len(epsilons))

    def look(self, bound: NoisyBetween, people: int, known: int) -> Array:
        """Look at the vertices of so many people; return the largest δ at every ε."""
        # Exchanging cells and lives leaves the vertices of which at least half are rather in the one cell.
        laws = _tossed(people, bound.p)[people if bound.p == 0.5 else (people + 1) // 2 :]
        deltas = _deltas(bound.shown(laws, known), self.epsilons)
        for index in np.flatnonzero(deltas.max(axis=1) > self.upper).tolist():
            row = int(deltas[index].argmax())
            self.upper[index] = deltas[index, row]
            shown = bound.shown(laws[row : row + 1], known)
            self.lower[index] = _deltas(shown, self.epsilons[[index]], sign=-1.0)[0, 0]
            self.leading = people if index == len(self.epsilons) - 1 else self.leading
        largest: Array = deltas.max(axis=1)
        return largest


@lru_cache(maxsize=16)
def _searched_before(bound: NoisyBetween) -> dict[tuple[int, int], tuple[float, float]]:
    """Return a place to keep, for people and of those how many are known, an ε and the largest δ there."""
    return {}


@lru_cache(maxsize=64)
def _searched(bound: NoisyBetween, epsilons: tuple[float, ...]) -> tuple[Array, Array, int]:
    """Return what is attained and certified at these ε, and a number of people that is worst at the last of them."""
    clipped = np.minimum(epsilons, _MAX_EPSILON)
    best, earlier = _Best(clipped), _searched_before(bound)
    for place in sorted(earlier, key=lambda place: earlier[place][1])[-1:]:
        best.look(bound, *place)
    # The search ends where all larger numbers of people tell no more.
    for start in range(0, len(bound.numbers), _BATCH_SIZE):
        numbers = bound.numbers[start : start + _BATCH_SIZE]
        for place in product(numbers, range(bound.known + 1)):
            # What was earlier at a smaller ε is no less.
            since, most = earlier.get(place, (math.inf, 1.0))
            if not np.all((since <= clipped) & (most <= best.upper)):
                earlier[place] = float(clipped.min()), float(best.look(bound, *place)[clipped.argmin()])
        beyond = bound.beyond(clipped, numbers[-1], best.upper)
        if np.all(beyond <= best.upper):
            break
    else:
        beyond = bound.beyond(clipped, bound.people)
    certified = np.minimum(1.0, (np.maximum(best.upper, beyond) + TINY) * (1.0 + _ERROR))
    attained = np.where(clipped == epsilons, np.maximum(0.0, best.lower - TINY), 0.0)
    attained, certified = kept((attained, certified))
    return attained, certified, best.leading


@lru_cache(maxsize=2 * MAX_ENUMERATED)
def _tossed(people: int, p: float) -> Array:
    """Return the laws of how many are in the one cell, of whom 0, 1, … are rather there and the others rather not."""
    if people == 0:
        return np.ones((1, 1))
    fewer = _tossed(people - 1, p)
    laws = np.zeros((people + 1, people + 1))
    laws[:-1, :-1], laws[-1, :-1] = p * fewer, (1.0 - p) * fewer[-1]
    laws[:-1, 1:] += (1.0 - p) * fewer
    laws[-1, 1:] += p * fewer[-1]
    return laws
