"""Theorem G: which of two cells, where each is suppressed below k, noised, and suppressed below a release threshold."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise, product

import numpy as np

from pkdp_pipeline.theorems.binomial_tails import binomial_below
from pkdp_pipeline.theorems.bound import Bound
from pkdp_pipeline.theorems.inversion import invert
from pkdp_pipeline.theorems.rounding import TINY, Array, Whole, kept
from pkdp_pipeline.theorems.two_looks import gains_of, lives_of

MAX_ENUMERATED = 150
"""At most this many people are looked at one by one."""

MIN_ENUMERATED_NOISE = 0.2
"""With noise of a smaller ε0 more people than are enumerated tell about as much."""

_MAX_EPSILON = 600.0
"""At a larger ε the profile is bounded by the one here."""

_BATCH_SIZE = 24
"""After so many numbers of people it is looked at whether more of them can tell more."""

_ERROR = 1e-11
"""Relative error of every chance, with room for what a sampler may draw."""

_SLACK = 1e-4
"""Blocks of vertices are halved until they are at most this far above the best vertex, relatively."""

_STRIDE = 5
"""Vertices this far apart are looked at, and those between them where that leaves it open whether they are better."""

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
    who are known over the cells, each of whom lowers the thresholds of hers. Those between two vertices are bounded by
    their chord and by how far second differences can bend it; more people by one look with twice the ε0, and by what
    the thresholds can change.

    *Guarantee*: the certified side is never below the divergence of any declared attacker, in either direction; the
    attained side is that of the best vertex, all `known` being controlled. *Rounding*: outward, by 1e-11 of each
    chance and by what may underflow; but for that the sides agree within 1e-4 where not more people than are looked at
    are worst. *Source*: `docs/mathematics.md`, theorem G.
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
        apart = 8.0 * _ERROR * (1.0 + np.exp(np.minimum(epsilons, _MAX_EPSILON)))
        sides = self.bracket(epsilons)
        # Blocks may be halved once more, or less, on another processor.
        return np.array(
            [
                np.divide(apart, side, out=np.ones(len(epsilons)), where=side > apart) + extra
                for side, extra in zip(sides, (0.0, 2.0 * _SLACK), strict=True)
            ]
        ).clip(0.0, 1.0)

    def bracket(self, epsilons: Array) -> tuple[Array, Array]:
        """Return (attained, certified) arrays; see `pkdp_pipeline.theorems.bound.Bound`."""
        attained, certified, _ = _searched(self, tuple(epsilons.tolist()))
        return attained, certified

    def smallest_epsilon(self, target: float) -> float:
        """See `pkdp_pipeline.theorems.bound.Bound`; few ε look at all numbers of people, the others at the worst."""
        if not self.numbers:
            return Bound.smallest_epsilon(self, target)
        people = sorted({*self.numbers[:: max(1, len(self.numbers) // 24)], self.numbers[-1]})
        if self._beside(people, _MAX_EPSILON) > target:
            return math.inf
        best = invert(target, people, self._beside, self._look, share=1.0 + _SLACK)
        return Bound.smallest_epsilon(self, target) if math.isinf(best) else best

    def _beside(self, people: list[int], epsilon: float) -> float:
        """Return the largest δ of some numbers of people, all of them rather in the one cell."""
        return max(
            float(_deltas(_edge(self, number, known), min(epsilon, _MAX_EPSILON))[0])
            for number in people
            for known in range(self.known + 1)
        )

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
        missed = 2.0 * (1.0 + np.exp(epsilons)) * binomial_below(people + 1, (1.0 - self.p) * (1.0 - _ERROR), self.k)
        if np.any(missed > enough):
            return np.ones(len(epsilons))
        without = _Best(epsilons)
        _look_at_all(replace(self, k=0, known=0, release_threshold=None), people + 1, 0, without)
        above: Array = (1.0 + _SLACK) * without.upper + missed
        return above

    def shown(self, laws: Array, known: int) -> tuple[Array, Array]:
        """Return what is shown in the target's two lives; `laws`: rows of how many others are in the one cell.

        `known`: how many of those who are known are in the one cell; thresholds are those of all others.
        """
        return lives_of(laws, self.noise, self.k, self.release_threshold, (known, self.known - known))


_Lives = tuple[Array, Array]


def _deltas(lives: _Lives, epsilon: float, bends: _Lives | None = None, sign: float = 1.0) -> Array:
    """Return at least the larger divergence of each two laws, which may bend by so much; for sign -1 at most it."""
    growth, orders = math.exp(epsilon) * (1.0 - sign * 2.0 * _ERROR), []
    for order in (1, -1):
        first, second = lives[::order]
        gains = gains_of(first, second, growth, sign)
        if bends is not None:
            gains += bends[::order][0] + growth * bends[::order][1]
        orders.append(np.maximum(gains, 0.0, out=gains).sum(axis=1))
    result: Array = np.maximum(*orders) * (1.0 + sign * 2.0 * _ERROR)
    return result


def _bends(bound: NoisyBetween, people: int, edges: Whole) -> Array:
    """Return how far the laws of vertices between two edges may be from their chord; a row for each two neighbours.

    A step to the next vertex exchanges a coin, so second differences are those of people - 2 coins, twice differenced
    and times (2p - 1)²; a chord over n steps is left by at most n²/8 of them.
    """
    laws = np.pad(_tossed(people - 2, bound.p), ((0, 0), (2, 2)))
    differences = np.abs(laws[:, 2:] - 2.0 * laws[:, 1:-1] + laws[:, :-2]) + _ERROR * laws.max()
    steps = np.diff(edges)
    factors = (2.0 * bound.p - 1.0) ** 2 * steps**2 / 8.0 * (1.0 + _ERROR)
    # Neighbouring edges have nothing between them; of others there are people - 2 coins of edge … next edge - 2.
    largest = [differences[low : high - 1].max(axis=0, initial=0.0) for low, high in pairwise(edges.tolist())]
    result: Array = np.where(steps > 1, factors, 0.0)[:, None] * np.array(largest)
    return result


@lru_cache(maxsize=256)
def _edge(bound: NoisyBetween, people: int, known: int) -> _Lives:
    """Return what is shown where all of so many people are rather in the one cell."""
    return bound.shown(_tossed(people, bound.p)[-1:], known)


class _Best:
    """The best vertices so far: at most and at least their δ at every ε, and how many people the last one has."""

    def __init__(self, epsilons: Array) -> None:
        self.epsilons, self.leading = epsilons, 0
        self.upper, self.lower = np.zeros(len(epsilons)), np.zeros(len(epsilons))

    def look(self, lives: _Lives, people: int) -> None:
        """Look at some vertices of so many people."""
        for index, epsilon in enumerate(self.epsilons):
            deltas = _deltas(lives, epsilon)
            row = int(deltas.argmax())
            if deltas[row] > self.upper[index]:
                self.upper[index] = deltas[row]
                self.lower[index] = _deltas((lives[0][row : row + 1], lives[1][row : row + 1]), epsilon, sign=-1.0)[0]
                self.leading = people if index == len(self.epsilons) - 1 else self.leading


@lru_cache(maxsize=64)
def _searched(bound: NoisyBetween, epsilons: tuple[float, ...]) -> tuple[Array, Array, int]:
    """Return what is attained and certified at these ε, and a number of people that is worst at the last of them."""
    clipped = np.minimum(epsilons, _MAX_EPSILON)
    best = _Best(clipped)
    # The search ends where all larger numbers of people tell no more.
    for start in range(0, len(bound.numbers), _BATCH_SIZE):
        numbers = bound.numbers[start : start + _BATCH_SIZE]
        for people, known in product(numbers, range(bound.known + 1)):
            _look_at_all(bound, people, known, best)
        beyond = bound.beyond(clipped, numbers[-1], best.upper)
        if np.all(beyond <= best.upper):
            break
    else:
        beyond = bound.beyond(clipped, bound.people)
    certified = np.minimum(1.0, (np.maximum((1.0 + _SLACK) * best.upper, beyond) + TINY) * (1.0 + _ERROR))
    attained = np.where(clipped == epsilons, np.maximum(0.0, best.lower - TINY), 0.0)
    attained, certified = kept((attained, certified))
    return attained, certified, best.leading


def _look_at_all(bound: NoisyBetween, people: int, known: int, best: _Best) -> None:
    """Look at the vertices of so many people, but for those between which none can be better by more than `_SLACK`."""
    # Exchanging cells and lives leaves the vertices of which at least half are rather in the one cell.
    laws, half = _tossed(people, bound.p), (people + 1) // 2
    edges = np.unique(np.append(np.arange(people, half, -_STRIDE), half))
    bends = _bends(bound, people, edges) if people > 2 else np.zeros((len(edges) - 1, people + 1))
    shown = bound.shown(np.vstack([laws[edges], bends]), known)
    vertices, between = ((shown[0][part], shown[1][part]) for part in np.split(np.arange(len(shown[0])), [len(edges)]))
    best.look(vertices, people)
    if len(edges) < 2:
        return
    left = np.zeros(len(edges) - 1, dtype=bool)
    for epsilon, most in zip(best.epsilons, best.upper, strict=True):
        for ends in (slice(None, -1), slice(1, None)):
            left |= _deltas((vertices[0][ends], vertices[1][ends]), epsilon, between) > (1.0 + _SLACK) * most
    left &= np.diff(edges) > 1
    rest = [high for low, end in zip(edges[:-1][left], edges[1:][left], strict=True) for high in range(low + 1, end)]
    if rest:
        best.look(bound.shown(laws[rest], known), people)


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
