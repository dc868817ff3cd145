"""Theorem G: which of two cells, where each is suppressed below k, noised, and suppressed below a release threshold."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from itertools import product

import numpy as np

from pkdp_pipeline.theorems.binomial_tails import binomial_below, binomial_weights
from pkdp_pipeline.theorems.bound import Bound
from pkdp_pipeline.theorems.channel import Channel
from pkdp_pipeline.theorems.counting import Counting
from pkdp_pipeline.theorems.inversion import invert
from pkdp_pipeline.theorems.rounding import Array

MAX_ENUMERATED = 150
"""At most this many people are looked at one by one."""

MIN_ENUMERATED_NOISE = 0.2
"""With noise of a smaller ε0 a look has too many values to enumerate."""

_CUTOFF_EXPONENT = 50.0
"""Values of a look less likely than e^-50 are added as full disclosure."""

_DROPPED = 10.0 * math.exp(-0.9 * _CUTOFF_EXPONENT)
"""At least the probability of all looks that are left out."""

_NEGLIGIBLE_PROBABILITY = 1e-25
"""Outcomes less likely than this, for all vertices, are left out and counted in `_DROPPED`."""

_MAX_EPSILON = 600.0
"""At a larger ε the profile is bounded by the one here."""

_BATCH_SIZE = 24
"""After so many numbers of people it is looked at whether more of them can tell more."""

_ERROR = 1e-11
"""Relative error of every chance, with room for what a sampler may draw."""


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
        Up to this many people all attackers are looked at, one by one.
    cap : int, optional
        At most this many are unknown.
    known : int
        At most k - 2 people who are known or controlled, each in either cell.

    Notes
    -----
    The publication is a random function of this: of x people in the one cell, nothing where neither cell is shown;
    else ``x + Z`` with noise of 2 ε0, and which of the cells are shown. Its law is computed for all vertices with up
    to `people` people, and all ways to spread those who are known over the cells, each of whom lowers the thresholds of
    hers; more people are bounded by the look alone, and by what the thresholds can change.

    *Guarantee*: the certified side is never below the divergence of any declared attacker, in either direction; nothing
    is attained. *Rounding*: upward, by 1e-11 of each chance. *Source*: `docs/mathematics.md`, theorem G.
    """

    p: float
    k: int
    noise: float
    release_threshold: int
    people: int
    cap: int | None = None
    known: int = 0

    def rounding(self, epsilons: Array) -> Array:
        """See `pkdp_pipeline.theorems.bound.Bound`: chances that nearly cancel err as much as they are large."""
        _, certified = self.bracket(epsilons)
        apart = 8.0 * _ERROR * (1.0 + np.exp(np.minimum(epsilons, _MAX_EPSILON))) + 2.0 * _DROPPED
        share = np.divide(apart, certified, out=np.ones(len(epsilons)), where=certified > apart)
        return np.stack([np.zeros(len(epsilons)), share])

    def bracket(self, epsilons: Array) -> tuple[Array, Array]:
        """Return (attained, certified) arrays; see `pkdp_pipeline.theorems.bound.Bound`."""
        return np.zeros(len(epsilons)), np.array(_searched(self, tuple(epsilons.tolist()))[0])

    def smallest_epsilon(self, target: float) -> float:
        """See `pkdp_pipeline.theorems.bound.Bound`; few ε look at all numbers of people, the others at the worst."""
        if not self.numbers:
            return Bound.smallest_epsilon(self, target)
        people = sorted({*self.numbers[:: max(1, len(self.numbers) // 6)], self.numbers[-1]})
        if self._beside(people, _MAX_EPSILON) > target:
            return math.inf
        best = invert(target, people, self._beside, self._look)
        return Bound.smallest_epsilon(self, target) if math.isinf(best) else best

    def _beside(self, people: list[int], epsilon: float) -> float:
        """Return the largest δ of some numbers of people."""
        return _largest_deltas(self, tuple(people), (min(epsilon, _MAX_EPSILON),))[0][0]

    def _look(self, epsilon: float) -> tuple[float, list[int]]:
        """Return what is certified at an ε, and the worst number of people there."""
        (certain,), leading = _searched(self, (epsilon,))
        return certain, [leading]

    @property
    def numbers(self) -> range:
        """Return the numbers of people that are looked at; with fewer than k - 1 others nothing is ever shown."""
        return range(
            max(1, self.k - 1 - self.known), (self.people if self.cap is None else min(self.people, self.cap)) + 1
        )

    def beyond(self, epsilon: float, people: int) -> float:
        """Return a bound for all numbers of people above `people`."""
        if self.cap is not None and self.cap <= people:
            return 0.0
        more, low = people + 1, 1.0 - self.p
        look = Counting(theorem=self.theorem, unknown=more, p_min=low, p_max=self.p, noise=2.0 * self.noise)
        missed = binomial_below(more, low * (1.0 - _ERROR), self.k)
        return float(look.bracket(np.array([epsilon]))[1][0]) + 2.0 * (1.0 + math.exp(epsilon)) * missed


@lru_cache(maxsize=64)
def _searched(bound: NoisyBetween, epsilons: tuple[float, ...]) -> tuple[tuple[float, ...], int]:
    """Return what is certified at these ε, and a number of people that is worst at the last of them."""
    clipped = tuple(min(epsilon, _MAX_EPSILON) for epsilon in epsilons)
    deltas, beyond, leading = [0.0] * len(epsilons), [bound.beyond(epsilon, bound.people) for epsilon in clipped], 0
    # The search ends where all larger numbers of people tell no more.
    for start in range(0, len(bound.numbers), _BATCH_SIZE):
        numbers = bound.numbers[start : start + _BATCH_SIZE]
        most, leader = _largest_deltas(bound, tuple(numbers), clipped)
        leading = leader if most[-1] > deltas[-1] else leading
        deltas = [max(pair) for pair in zip(deltas, most, strict=True)]
        further = [bound.beyond(epsilon, numbers[-1]) for epsilon in clipped]
        if all(more <= delta for more, delta in zip(further, deltas, strict=True)):
            beyond = further
            break
    above = (max(pair) for pair in zip(deltas, beyond, strict=True))
    return tuple(min(1.0, delta * (1.0 + _ERROR)) for delta in above), leading


def _largest_deltas(
    bound: NoisyBetween, numbers: tuple[int, ...], epsilons: tuple[float, ...]
) -> tuple[list[float], int]:
    """Return what is told at most by this many people, for any of these numbers, and the worst at the last ε."""
    worst, leading = [0.0] * len(epsilons), 0
    # Exchanging cells and lives leaves the vertices of which at least half are rather in the one cell.
    for people, known in product(numbers, range(bound.known + 1)):
        shares = known, bound.known - known
        lives = _looks(bound.p, bound.k, bound.noise, bound.release_threshold, people, shares)
        for index, epsilon in enumerate(epsilons):
            growth = math.exp(epsilon) * (1.0 - 4.0 * _ERROR)
            for first, second in (lives, lives[::-1]):
                gains = first - growth * second
                delta = float(np.maximum(gains, 0.0, out=gains).sum(axis=1).max()) * (1.0 + 2.0 * _ERROR) + _DROPPED
                if delta > worst[index]:
                    worst[index], leading = delta, people
    return worst, leading


@lru_cache(maxsize=64)
def _looks(
    p: float, k: int, noise: float, release: int, people: int, known: tuple[int, int] = (0, 0)
) -> tuple[Array, Array]:
    """Return what is seen in the two lives: a row for each vertex of which at least half are rather in the one cell.

    `known`: how many are known to be in the one cell, and in the other; counts are those of all others.
    """
    everybody, law = people + 1, _pairs(noise)
    reach = len(law) // 2
    counts, beta = np.arange(everybody + 1), math.exp(-2.0 * noise)
    values = np.arange(-(reach // 2) - 1, everybody + reach // 2 + 2)
    look = np.exp(-2.0 * noise * np.abs(counts[:, None] - values)) * (-math.expm1(-2.0 * noise) / (1.0 + beta))
    # Given the look, whether the noised counts pass the release threshold: the one cell's, the other's.
    releases = release - known[0], release - known[1]
    up, down = (
        np.clip(releases[0] - values, -reach, reach + 1),
        np.clip(everybody - releases[1] - values, -reach - 1, reach),
    )
    passing = [table[up + reach, down + reach + 1] for table in _passing(noise)]
    first, second = counts >= k - known[0], everybody - counts >= k - known[1]
    below = Channel(0, release, noise, p, p).below
    hidden = np.where(first, below((releases[0] - counts).astype(float)), 1.0)
    hidden = hidden * np.where(second, below((releases[1] - everybody + counts).astype(float)), 1.0)
    laws = np.stack([_tossed(people, high, p) for high in range((people + 1) // 2, people + 1)])
    regimes = [np.flatnonzero(mask) for mask in (first & second, first & ~second, ~first & second)]
    lives = []
    for weights in (np.pad(laws, ((0, 0), (1, 0))), np.pad(laws, ((0, 0), (0, 1)))):
        parts = [weights[:, regime] @ look[regime] for regime in regimes]
        shown = (parts[0] + parts[1]) * passing[1], (parts[0] + parts[2]) * passing[2]
        rest = (weights @ hidden)[:, None]
        lives.append(np.hstack([*shown, *(part * passing[0] for part in parts), rest]))
    matters = np.maximum(lives[0].max(axis=0), lives[1].max(axis=0)) > _NEGLIGIBLE_PROBABILITY
    return lives[0][:, matters], lives[1][:, matters]


def _tossed(people: int, high: int, p: float) -> Array:
    """Return the law of how many are in the one cell, of whom `high` are rather there and the others rather not."""
    rest = people - high
    law: Array = np.convolve(_coins(high, p), _coins(rest, 1.0 - p))
    return law


@lru_cache(maxsize=4 * MAX_ENUMERATED)
def _coins(number: int, p: float) -> Array:
    return binomial_weights(number, p, 0, number)


@lru_cache(maxsize=8)
def _pairs(noise: float) -> Array:
    """Return the law of two looks less the one look of which they are drawn: a row for each value of the first."""
    reach = math.ceil(_CUTOFF_EXPONENT / noise)
    steps = np.arange(-reach, reach + 1)
    low, high = np.minimum(steps[:, None], steps), np.maximum(steps[:, None], steps)
    alpha, beta = math.exp(-noise), math.exp(-2.0 * noise)
    ends = np.where((low == 0) | (high == 0), 1.0 / -math.expm1(-2.0 * noise), 1.0)
    weights = np.where(low == high, (1.0 + beta) / -math.expm1(-2.0 * noise), ends)
    law = np.exp(-noise * (high - low)) * weights * (-math.expm1(-noise) / (1.0 + alpha)) ** 2
    return np.where((low <= 0) & (high >= 0), law, 0.0)


@lru_cache(maxsize=8)
def _passing(noise: float) -> tuple[Array, Array, Array]:
    """Return, given the one look, the chances that both pass (at least i, at most j), one alone, and the other."""
    law = _pairs(noise)
    at_least, less = np.cumsum(law[::-1], axis=0)[::-1], np.cumsum(law, axis=0) - law
    at_least, less = np.pad(at_least, ((0, 1), (0, 0))), np.vstack([less, law.sum(axis=0)])
    most = [np.pad(np.cumsum(rows, axis=1), ((0, 0), (1, 0))) for rows in (at_least, less)]
    more = np.pad(np.cumsum(at_least[:, ::-1], axis=1)[:, ::-1], ((0, 0), (0, 1)))
    return most[0], more, most[1]
