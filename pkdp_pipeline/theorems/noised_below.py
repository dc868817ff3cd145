"""Theorem I: counts from k on are published exactly, smaller ones with noise, and marked as noised.

For ``S ~ Bin(m, p)`` with density f, α = e^{-ε0} and ε ≥ ε0, present against absent is theorem A's right side: noised
values tell nothing there. Absent against present is theorem A's left side where the gains ``f(j) > e^ε f(j-1)`` reach
up to k; elsewhere it is at most the largest, over D from 0 on, of

    F(m, D) = e^{-ε D} f(k-1) - (e^ε - 1) P[S ≤ k-2-D],

and ``F(m, 0)`` is theorem A's left side again. Below ε0 all numbers of people are looked at by `kernel_search`. A
profile is convex in e^ε and at most 1 at ε = 0, so a chord from there to ε0 bounds it too.

With a larger D the event holds for more noised values; the largest F is bounded for whole blocks of crowds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from pkdp_pipeline.theorems.bound import Bound
from pkdp_pipeline.theorems.channel import ExactFromK, Kernel, Mixed
from pkdp_pipeline.theorems.kernel_search import Coins, KernelSearch, exponent_of, supremum
from pkdp_pipeline.theorems.numerics import EVALUATED, UNIT, Array, Optimum, binomial_weights, chord, invert, kept
from pkdp_pipeline.theorems.thresholding import Threshold
from pkdp_pipeline.theorems.worst_case import SAMPLER_LEEWAY, NoiseCurve

SLACK = 5e-4
"""Blocks are halved until none exceeds the best attacker by more than this, relatively."""

_MAX_LEFT_BLOCKS, _LEFT_BLOCKS = 20_000, (24, 72)
"""The search for the left side ends with the first number of blocks, and begins with fewer, for one threshold last."""

_MAX_STEPS = 4_096
"""Most D looked at one by one."""

_MAX_EPSILON = 60.0
"""At a larger ε the left side is bounded by the one here."""


@lru_cache(maxsize=4096)
def left_bound(
    chances: tuple[float, ...], thresholds: tuple[int, ...], p: float, cap: int | None, epsilon: float, enough: float
) -> float:
    """Return a bound on the mean over thresholds k of the largest ``F(m, D)``, or `enough` where it is no more.

    With one threshold D = 0 is left out, since it is theorem A's. In a block of numbers of people ``f(k-1)`` is at most
    its value at the end nearer its mode, and the tail at least that of the most people.
    """
    alone = len(thresholds) == 1
    if alone and (math.exp(min(epsilon, _MAX_EPSILON)) * (1.0 - p) <= 1.0 - 1e-12 or math.exp(-epsilon) < enough):
        return enough  # proved; and F(m, D) is below e^{-ε D}
    # F falls with ε, so a smaller one bounds it.
    epsilon = min(epsilon, _MAX_EPSILON)
    likely = [(chance, k) for chance, k in zip(chances, thresholds, strict=True) if k > 1]
    disclosed = sum(chance for chance, k in zip(chances, thresholds, strict=True) if k <= 1)
    odds, growth = p / (1.0 - p), math.expm1(epsilon)
    largest, smallest = max(k for _, k in likely), min(k for _, k in likely)
    # From this many people on every gain reaches up to k, and theorem A holds; before the mode of k - 1, F grows.
    last = largest + math.ceil(min(1e15, (largest - 1) * math.exp(epsilon) / odds)) + 1
    last = last if cap is None else min(last, cap)
    first = min(math.floor((largest - 1) / p), last) if alone else min(smallest - 1, last)
    edges = np.unique(np.floor(first + (last + 1 - first) * np.linspace(0.0, 1.0, _LEFT_BLOCKS[alone] + 1) ** 1.5))
    low, high = edges[:-1], edges[1:] - 1.0
    bound, searched, level = 0.0, 0, enough if alone else enough * (1.0 + SLACK)
    # Branch and bound: blocks of numbers of people are halved until none is above what is enough, or one is left.
    while len(low):
        values = np.full(len(low), float(disclosed))
        for chance, k in likely:
            values += chance * _largest_left(k, p, growth, epsilon, low, high, level, 1 if alone else 0)
        values *= 1.0 + 4.0 * UNIT * len(thresholds)
        searched += len(values)
        # Every bound holds as it stands: stopping here is looser and changes nothing else.
        done = (values <= level) | (low == high) | (searched >= _MAX_LEFT_BLOCKS)
        bound = max(bound, float(values[done].max(initial=0.0)))
        low, high = low[~done], high[~done]
        middle = np.floor((low + high) / 2.0)
        low, high = np.concatenate([low, middle + 1.0]), np.concatenate([middle, high])
    return max(enough, bound)


def _largest_left(
    k: int, p: float, growth: float, epsilon: float, low: Array, high: Array, enough: float, least: int
) -> Array:
    """Return at or above the largest ``F(m, D)`` with D from `least` to k - 1, for m from `low` to `high`."""
    odds = p / (1.0 - p)
    ends = np.stack([np.clip(np.floor((k - 1) / p), low, high), high])
    (peaks, tops), budgets = _density(k - 1, p, ends)
    # Larger D add less than is enough, or are bounded by the first of them.
    reach = math.log(max(1.0, float(peaks.max()) / max(enough, 1e-290))) / epsilon + 2.0
    steps = int(min(k - 1.0, reach, _MAX_STEPS)) + 1
    places = np.arange(k - 1, max(0, k - 1 - steps - 64), -1, dtype=np.float64)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        ratios = places / ((high[:, None] - places + 1.0) * odds)
        law = tops[:, None] * np.cumprod(ratios, axis=1)  # f(k-2), f(k-3), …
    law = np.where(np.isfinite(law), law, 0.0)
    tails = np.cumsum(law[:, ::-1], axis=1)[:, ::-1]  # P[S ≤ k-2], P[S ≤ k-3], …, without the smallest counts
    if tails.shape[1] < steps:
        tails = np.hstack([tails, np.zeros((len(tails), steps - tails.shape[1]))])
    shrinking = np.exp(-epsilon * np.arange(steps))
    share = (budgets.max(axis=0) + (4.0 * len(places) + 16.0) * UNIT)[:, None]
    values = shrinking * peaks[:, None] * (1.0 + share) - growth * tails[:, :steps] * (1.0 - share)
    result: Array = values[:, least:].max(axis=1, initial=0.0)
    if steps < k:
        result = np.maximum(result, peaks * (1.0 + share[:, 0]) * math.exp(-epsilon * steps))
    return result


def _density(s: int, p: float, m: Array) -> tuple[Array, Array]:
    """Return ``P[Bin(m, p) = s]`` for each m, and the relative budget of each."""
    parts = (
        log_factorials(m),
        -math.lgamma(s + 1.0) - log_factorials(np.maximum(m - s, 0.0)),
        s * math.log(p),
        (m - s) * math.log1p(-p),
    )
    exponent = np.where(m >= s, parts[0] + parts[1] + parts[2] + parts[3], -np.inf)
    size = abs(parts[0]) + abs(parts[1]) + abs(parts[2]) + abs(parts[3])
    return np.exp(exponent), 32.0 * UNIT * (size + 4.0)


def log_factorials(numbers: Array) -> Array:
    """Return the logarithms of the factorials of whole numbers, each within a few units of its size."""
    return np.array([math.lgamma(number + 1.0) for number in numbers.ravel().tolist()]).reshape(numbers.shape)


_MIN_P = 1e-9
"""A smaller p is replaced by this one, which is sound."""

_MIN_NOISE = 1e-4
"""Of a smaller ε0 only the chord is certified below it."""

_MAX_K = 2**20
"""Of a larger k, too: laws of so many counts do not fit."""

_NEGLIGIBLE_CHANCE = 1e-18
"""Numbers of known people that are less likely are counted as if they told all."""

_KINKS = 24
"""A profile below ε0 is looked at first at this many ε."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NoisedBelow(Threshold):
    """Privacy profile of a count that is exact from `k` on, and noised below.

    Parameters
    ----------
    theorem, k, p, cap, known, active
        See `Threshold`.
    noise : float
        ε0 of the two-sided geometric noise.
    release_threshold : int, optional
        A noised value below it is not published.
    from_one : bool
        Whether a count of 0 publishes nothing, as where cells are found in the data.
    looks : int
        1; 2 where the noised value of a partner cell is a second look at the same number (theorem C).

    Notes
    -----
    *Guarantee*: the certified side is never below the divergence of any declared attacker, in either order. From
    ``looks · noise`` on it is theorem A's, or what the left side's bound exceeds it by; a count of 0 that is told apart
    adds the chance that a count of 1 appears. *Rounding*: outward, see the module. *Source*: `docs/mathematics.md`,
    theorem I.
    """

    noise: float
    release_threshold: int | None = None
    from_one: bool = False
    looks: int = 1

    @property
    def slack(self) -> float:
        """Return how far above the best attacker found the search may stop."""
        return max(SLACK, self.suppression.slack)

    @property
    def from_epsilon(self) -> float:
        """The ε from which on noised values tell nothing: that of their looks, whatever the sampler's leeway."""
        return math.nextafter(self.looks * self.noise * (1.0 + 2.0 * SAMPLER_LEEWAY), math.inf)

    @property
    def kinks(self) -> tuple[float, ...]:
        """See `pkdp_pipeline.theorems.bound.Bound`: denser towards ε0, and the fall of theorem A beyond."""
        start = self.from_epsilon
        fall = np.concatenate([[0.0], 0.5 / math.sqrt(self.k) * 1.35 ** np.arange(24)])
        return (*_first_points(start).tolist(), *(start + fall).tolist())

    @property
    def _appears(self) -> float:
        """At or above the chance that a count of 1 is published where one of 0 never is."""
        if not self.from_one or self.release_threshold is None:
            return float(self.from_one)
        return NoiseCurve(theorem="noise", noise=self.noise, appears_at=self.release_threshold - 1).parameters[1]

    def rounding(self, epsilons: Array) -> Array:
        """See `pkdp_pipeline.theorems.bound.Bound`."""
        return np.maximum(self.suppression.rounding(epsilons), EVALUATED)

    def bracket(self, epsilons: Array) -> tuple[Array, Array]:
        """Return (attained, certified) arrays; see `pkdp_pipeline.theorems.bound.Bound`."""
        start = self.from_epsilon
        raised = np.maximum(epsilons, start)
        attained, certified = (side.copy() for side in self._from_noise_on(raised))
        below = np.flatnonzero(epsilons < start)
        if len(below):
            end = self._from_noise_on(np.array([start]))
            # At ε0 itself, where the sampler's leeway is all that is missing: the best event is at most e^-ε likely in
            # the other life, so a profile falls by at most that times the difference of the e^ε. 2e-15 is for rounding.
            rise = 2e-15 + np.expm1(start - epsilons[below]) * (1.0 + 1e-9)
            attained[below], certified[below] = end[0][0], np.minimum(1.0, end[1][0] + rise)
            below = below[epsilons[below] < start * (1.0 - 1e-13)]
        if len(below):
            low, high = self._below_noise(epsilons[below], float(end[0][0]), float(end[1][0]))
            attained[below], certified[below] = low, high
        return np.minimum(attained, certified), certified

    def smallest_epsilon(self, target: float) -> float:
        """See `pkdp_pipeline.theorems.bound.Bound`; from ε0 on it is theorem A's where the left side tells no more."""
        start = self.from_epsilon
        above = float(self.certified(np.array([start]))[0]) > target
        if above and not self.from_one:
            epsilon = max(start, self.suppression.smallest_epsilon(target))
            if math.isinf(epsilon) or float(self.certified(np.array([epsilon]))[0]) <= target:
                return epsilon
        if not above and self._searched:
            return self._inverted(target)
        return Bound.smallest_epsilon(self, target)

    def _inverted(self, target: float) -> float:
        """Return a certified ε of at most ε0: few ε look at all numbers of people, the others at the worst."""
        if float(self.certified(np.zeros(1))[0]) <= target:
            return 0.0
        points = np.append(_first_points(self.from_epsilon)[4::4], self.from_epsilon)
        place = int(np.argmax(self.certified(points) <= target))
        best, points = float(points[place]), points[:-1]
        optima = self._optima(points)
        leaders = {leader for optimum in optima for leader in optimum.leader[max(0, place - 1) : place + 1].tolist()}
        searches = [
            KernelSearch(kernel, self._coins, np.zeros(1), 0.0, 0.0, exponent_of(best)) for kernel, _ in self._kernels()
        ]
        others = max(more for _, more in self._kernels())

        def beside(people: list[int], epsilon: float) -> float:
            """Return the largest δ of some numbers of people."""
            growth = np.exp(np.array([min(epsilon, self.from_epsilon)]))
            return others + max(float(s.beside(m, growth)[1][0]) for s in searches for m in people)

        return invert(target, leaders, beside, self._look, least=best)

    def _look(self, epsilon: float) -> tuple[float, list[int]]:
        """Return what is certified at an ε, and the worst numbers of people there."""
        point = np.array([epsilon])
        return float(self.certified(point)[0]), [int(optimum.leader[0]) for optimum in self._optima(point)]

    def _from_noise_on(self, epsilons: Array) -> tuple[Array, Array]:
        """Return the bracket at ε from `from_epsilon` on."""
        attained, certified = self.suppression.bracket(epsilons)
        certified = np.array(
            [max(a, self._left(e, a)) for e, a in zip(epsilons.tolist(), certified.tolist(), strict=True)]
        )
        appears = self._appears
        if appears:
            # A count of 1 beside none appears so often, and hiding tells as much as the odds of it exceed e^ε; that is
            # all where fewer than k - 1 others may be counted, and of more nobody is with a chance of (1-p)^(k-1).
            ratio = np.exp(np.minimum(epsilons - (self.looks - 1) * self.noise, 700.0))
            hides = np.maximum(0.0, 1.0 - ratio * (1.0 - appears) * (1.0 - 1e-12))
            if self.looks > 1:
                certified += appears + hides
            else:
                alone, others = np.maximum(appears, hides), max(0, self._least - 1)
                nobody = math.exp(others * math.log1p(-self.p)) if self.p < 1.0 else float(others == 0)
                certified = np.maximum(alone, certified + nobody * (1.0 + 1e-9) * alone)
            # Nobody else may be counted: then a count of 1 appears, or not.
            attained = np.maximum(attained, appears * (1.0 - 1e-12) if self._least > 1 else 0.0)
        return attained, np.minimum(certified, 1.0)

    @property
    def _least(self) -> int:
        """The threshold left where all known people count."""
        return self.k - self.known

    def _left(self, epsilon: float, enough: float) -> float:
        """Return a bound on what absence tells beyond theorem A, or `enough` where it is no more."""
        alone = self.known == 0 or self.active
        if enough >= 1.0 or (self._least <= 1 and alone) or self.p in (0.0, 1.0):
            return 0.0 if self.p == 0.0 else enough
        p = max(self.p, _MIN_P)
        if alone:
            return left_bound((1.0,), (self._least,), p, self.cap, epsilon, enough)
        chances = binomial_weights(self.known, p, 0, self.known)
        thresholds = tuple(self.k - known for known in range(self.known + 1))
        return left_bound(tuple(chances.tolist()), thresholds, p, self.cap, epsilon, enough)

    def _below_noise(self, epsilons: Array, attained: float, certified: float) -> tuple[Array, Array]:
        """Return the bracket below `from_epsilon`, where it is (attained, certified)."""
        above = np.array([chord(epsilon, (0.0, 1.0), (self.from_epsilon, certified)) for epsilon in epsilons.tolist()])
        if not self._searched:
            return np.full(len(epsilons), attained), above
        optima = self._optima(epsilons)
        # What is attained at a larger p proves nothing.
        reached = self.p == 0.0 or self.p >= _MIN_P
        low = np.maximum(attained, reached * np.max([optimum.best for optimum in optima], axis=0))
        high = np.minimum(above, np.maximum(certified, np.max([optimum.top for optimum in optima], axis=0)))
        return np.minimum(low, high), high

    @property
    def _searched(self) -> bool:
        """Whether all numbers of people are looked at below ε0."""
        return self.looks == 1 and self.noise >= _MIN_NOISE and self.p < 1.0 and 1 < self._least <= _MAX_K

    @property
    def _coins(self) -> Coins:
        return Coins(max(self.p, _MIN_P), 0 if self.p == 0.0 else math.inf if self.cap is None else self.cap)

    def _optima(self, epsilons: Array) -> tuple[Optimum, ...]:
        return _cached_optima(self, tuple(epsilons.tolist()))

    def _kernels(self) -> tuple[tuple[Kernel, float], ...]:
        """Return kernels of which the worst is told, and for each what is told besides at most."""

        def kernel(known: int, from_one: bool) -> Kernel:
            release = None if self.release_threshold is None else self.release_threshold - known
            return ExactFromK(self.k - known, release, self.noise, from_one)

        if self.known == 0 or (self.p == 0.0 and not self.active):
            return ((kernel(0, self.from_one), 0.0),)
        if self.active:
            # Thresholds with fewer people controlled who count are post-processing of those with all, but for a zero.
            alone = ((kernel(0, True), 0.0),) if self.from_one else ()
            return ((kernel(self.known, False), 0.0), *alone)
        chances = binomial_weights(self.known, max(self.p, _MIN_P), 0, self.known).tolist()
        likely = [b for b, chance in enumerate(chances) if chance >= _NEGLIGIBLE_CHANCE and self.k - b > 1]
        rest = math.fsum(chance for b, chance in enumerate(chances) if b not in likely) * (1.0 + 1e-12)
        kernels = tuple(kernel(b, self.from_one and b == 0) for b in likely)
        return ((Mixed(kernels, tuple(chances[b] for b in likely)), rest),)


@lru_cache(maxsize=256)
def _cached_optima(bound: NoisedBelow, epsilons: tuple[float, ...]) -> tuple[Optimum, ...]:
    """Return what is found for each kernel; a certificate asks for the same ε again."""
    points = np.array(epsilons)
    optima = (supremum(kernel, bound._coins, points, SLACK, others) for kernel, others in bound._kernels())
    return tuple(Optimum(*kept(optimum)) for optimum in optima)


def _first_points(end: float) -> Array:
    """Return ε from 0 to a little before `end`, denser towards both."""
    even = np.arange(_KINKS) / _KINKS
    points: Array = np.unique(end * np.concatenate([even, even[:6] / 6.0, 1.0 - 0.5 ** np.arange(3.0, 10.0)]))
    return points
