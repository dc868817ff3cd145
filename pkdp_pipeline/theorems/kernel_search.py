"""The search for the number of people of whom a kernel tells most, whatever the kernel is.

Let v be ``P - e^ε Q`` of one symbol, with the target and without, when m others count with chance p each. In m its
second differences are those of ``p² (1 - z)² f`` for the law's generating function f, so between a and b, in a block,
``v_m ≤ (1-λ) v_a + λ v_b + x S`` where x is an eighth of ``(p (b - a))²`` and S bounds minus the same v of
``(1 - z)² f`` in the block. S is bounded in the same way, by its ends and by v of ``(1 - z)⁴ f``; the last of these by
absolute values: those of the law of a coins, times the envelope of the laws of the coins that are added. A sum of
positive parts is convex in λ, so it is largest at an end. `docs/mathematics.md`, section 6, "Blocks of any kernel".

*Rounding*: a law is anchored in a ball at its mode; neighbouring ratios and differences add ``14n u`` for n counts, and
the kernel its own. Divergences are sums of ``max(0, P(1 ± b) - e^ε Q(1 ∓ b))`` with that budget b; of differences it is
added as a share of what their absolute values publish. Counts beyond the last one looked at are added as full
disclosure.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from pkdp_pipeline.theorems.channel import UNDERFLOW_MASS, Kernel, bernstein, coin_law
from pkdp_pipeline.theorems.numerics import UNIT, Array, Optimum, Whole, kept

_MAX_EPSILON = 600.0
"""At larger ε what counts left out may tell, times e^ε, is more than all."""

_LEVELS = 3
"""This often second differences are taken: the last bounds the one before, and so on."""

_PRECISIONS = ((46.0, 1e-13), (120.0, 1e-45), (750.0, 0.0))
"""Counts whose probability is below e^-(x + ε) are bounded together; where less than y is told these would matter."""

_MAX_COUNTS = 6_000
"""Most counts looked at for one number of people; with more the search stops."""

_MAX_WORK = 1e7
"""With more symbols than this, in all blocks and at all ε, the search stops, which widens the bracket."""

_BLOCK_WORK = 4e3
"""A block takes as long as this many symbols, however few it has."""

_FIRST_WIDTH = 0.8
"""Blocks begin as wide as this many standard deviations of the count."""

_GROWTH_FACTOR = 1.3
"""The end of a search is found in steps by this factor."""


Orders = tuple[int, ...]
BOTH: Orders = (1, -1)


class Coins(NamedTuple):
    """The other people: any number of them up to `most`, each counted with chance `p`."""

    p: float
    most: float = math.inf


class Place(NamedTuple):
    """The laws of what is published beside so many people, with the target and without; levels are rows.

    The last row bounds the absolute values of all levels. `rest` bounds what counts left out have.
    """

    present: Array
    absent: Array
    budget: float
    rest: float


@lru_cache(maxsize=8192)
def _law(m: int, p: float, top: int) -> tuple[Array, float]:
    """Return the law of m coins up to `top`, which is above the mean, and at most what is beyond."""
    coins, law = coin_law(m, p, 0, top), np.zeros(top + 1)
    law[: len(coins.weights)] = coins.weights
    return next(kept([law])), coins.rest


@lru_cache(maxsize=1024)
def _envelope(number: int, p: float, exponent: float) -> Array:
    """Return at or above the largest ``P[Bin(i, p) = j]`` of all i up to `number`, for each j.

    Those left out have less than e^-exponent together.
    """
    j = np.arange(min(number, math.ceil(number * p + bernstein(number * p, exponent))) + 1, dtype=np.float64)
    i = np.clip(np.floor(j / p), j, number)
    ways = np.where(j < j[:, None], np.log(np.maximum(i[:, None] - j, 1.0)), 0.0).sum(axis=1)
    ways -= np.array([math.lgamma(x + 1.0) for x in j.tolist()])
    return next(kept([np.exp(ways + j * math.log(p) + (i - j) * math.log1p(-p)) * (1.0 + 1e-9)]))


class KernelSearch:
    """The largest divergences of one kernel over all numbers of people, at several ε.

    Parameters
    ----------
    kernel : Kernel
        The map from a count to what is published.
    coins : Coins
        The other people.
    epsilons : Array
        At least 0.
    slack : float
        The search ends where no bound exceeds the best attacker by more than this, relatively.
    others : Array or float
        At or above what is told besides, at each ε, whatever the number of people.
    exponent : float
        Counts less likely than ``e^-exponent`` are not looked at.
    orders : tuple of int
        1 is the target present against absent, -1 the other order.
    negligible : float
        The search ends as well where no bound exceeds this.

    Notes
    -----
    *Guarantee*: `Optimum.top` is never below the divergence beside any number of people, in either order;
    `Optimum.best` is that beside `Optimum.leader` people, or less. *Rounding*: outward, see the module.
    """

    def __init__(
        self,
        kernel: Kernel,
        coins: Coins,
        epsilons: Array,
        slack: float,
        others: Array | float = 0.0,
        exponent: float = _PRECISIONS[0][0],
        orders: Orders = BOTH,
        negligible: float = 0.0,
    ) -> None:
        self.orders, self.negligible = orders, negligible
        self.kernel, self.coins, self.epsilons, self.slack = kernel, coins, epsilons, slack
        self.others, self.growth, self.exponent = others + np.zeros(len(epsilons)), np.exp(epsilons), exponent
        many = len(epsilons)
        best, top, apart = np.zeros((3, many))
        self.optimum = Optimum(best, top, apart, np.zeros(many, dtype=np.int64))
        self._places: dict[tuple[int, int], Place] = {}
        self._entered: set[int] = set()

    def sides(self) -> Optimum:
        """Return what is found for every ε."""
        optimum, work = self.optimum, 0.0
        # Few people, and more and more up to those who make the kernel's last count likely: the search ends where more
        # of them tell no more than the best of these.
        last = self.kernel.for_large_counts[1]
        more = ((last + 1.0) / self.coins.p * 0.7**step for step in range(12))
        for people in sorted(
            {int(min(m, self.coins.most)) for m in (0, 1, max(0, last - 2), max(0, last - 1), last, *more)}
        ):
            if self._top(people) <= _MAX_COUNTS:
                self._enter(people)
        ends = self._ends()
        blocks, start = [], 0
        while start < (last := int(ends.max())):
            size = int(_FIRST_WIDTH * math.sqrt(start * self.coins.p + 1.0) / self.coins.p)
            blocks.append((start, min(last, start + max(1, size)), np.flatnonzero(ends > start)))
            start = blocks[-1][1]
        # Branch and bound: ends of blocks may become the incumbent; a block whose bound exceeds the incumbent by more
        # than the slack is halved. All numbers of people are in a block or beyond the ends, which are bounded in `top`.
        while blocks:
            for _, last, _ in blocks:
                self._enter(last)
            halves = []
            for first, last, column in blocks:
                if last - first <= 1:
                    continue
                bounds = self.between(first, last, column)
                work += _BLOCK_WORK + self._place(last, self._top(last)).present.shape[1] * (8.0 + len(column))
                # Every bound holds as it stands: stopping here widens the bracket and changes nothing else.
                done = (bounds <= self._enough(column)) | (work > _MAX_WORK)
                optimum.top[column[done]] = np.maximum(optimum.top[column[done]], bounds[done])
                if not done.all():
                    middle, left = (first + last) // 2, column[~done]
                    halves += [(first, middle, left), (middle, last, left)]
            blocks = halves
        np.minimum(1.0, optimum.top, out=optimum.top)
        return optimum

    def _enough(self, column: Whole) -> Array:
        enough: Array = np.maximum((1.0 + self.slack) * self.optimum.best[column], self.negligible)
        return enough

    def _top(self, m: int) -> int:
        """Return the last count that is looked at: one of few, so that blocks beside each other share their laws."""
        mean = m * self.coins.p
        return math.ceil(32.0 * 1.3 ** math.ceil(math.log((mean + bernstein(mean, self.exponent)) / 32.0, 1.3)))

    def exact(self, m: int) -> tuple[Array, Array]:
        """Return brackets of the divergence beside m people, the larger of both orders, at each ε."""
        least, most = self.beside(m, self.growth)
        return least, most + self.others

    def beside(self, m: int, growths: Array) -> tuple[Array, Array]:
        """Return the same at any e^ε, but for `others`."""
        least, most = self.each(m, growths)
        return least.max(axis=0), most.max(axis=0)

    def each(self, m: int, growths: Array) -> tuple[Array, Array]:
        """Return the same of each order, shape (orders, growths)."""
        place, growth = self._place(m, self._top(m)), growths[:, None]
        less, more = 1.0 - place.budget, 1.0 + place.budget
        lower, upper = [], []
        lives = place.present[0], place.absent[0]
        for first, second in (lives[::step] for step in self.orders):
            lower.append(np.maximum(0.0, first * less - growth * more * second).sum(axis=1))
            upper.append(np.maximum(0.0, first * more - growth * less * second).sum(axis=1))
        lost = (1.0 + growths) * place.rest
        least: Array = np.maximum(0.0, np.stack(lower) * (1.0 - 1e-12) - lost)
        most: Array = np.stack(upper) * (1.0 + 1e-12) + lost + UNDERFLOW_MASS
        return least, most

    def _enter(self, m: int) -> None:
        """Look at so many people; enter what they tell."""
        if m in self._entered:
            return
        self._entered.add(m)
        least, most = self.exact(m)
        better = least > self.optimum.best
        self.optimum.best[better], self.optimum.leader[better] = least[better], m
        np.maximum(self.optimum.top, most, out=self.optimum.top)

    def _place(self, m: int, top: int) -> Place:
        """Return what is published beside m people, of counts up to `top`."""
        if (m, top) not in self._places:
            law, rest = _law(m, self.coins.p, top)
            rows = np.zeros((_LEVELS + 1, top + 2 * _LEVELS + 2))
            rows[0, : top + 1] = difference = absolute = law
            for level in range(1, _LEVELS):
                difference = np.convolve(difference, [1.0, -2.0, 1.0])
                rows[level, : len(difference)] = difference
            for _ in range(_LEVELS):
                absolute = np.convolve(absolute, [1.0, 2.0, 1.0])
            rows[-1, : len(absolute)] = absolute
            self._places[m, top] = Place(*self._published(rows), self._budget(top), rest)
        return self._places[m, top]

    def _published(self, rows: Array) -> tuple[Array, Array]:
        """Return what is published with the target and without; the last column of `rows` is empty."""
        present = np.zeros_like(rows)
        present[:, 1:] = rows[:, :-1]
        with np.errstate(under="ignore"):
            return self.kernel.published(present), self.kernel.published(rows)

    def _budget(self, top: int) -> float:
        return 14.0 * (top + 8.0 * _LEVELS + 8.0) * UNIT + self.kernel.budget(top + 2 * _LEVELS + 2)

    def between(self, first: int, last: int, column: Whole) -> Array:
        """Return bounds on the divergence beside any number of people in a block, at some ε."""
        bounds: Array = self.ends(first, last, self.growth[column]).max(axis=(0, 1)) + self.others[column]
        return np.minimum(1.0, np.nan_to_num(bounds, nan=1.0))

    def ends(self, first: int, last: int, growths: Array) -> Array:
        """Return the same, but for `others`, of each order and at either end, shape (orders, 2, growths)."""
        top, distance = self._top(last), last - first
        places = self._place(first, top), self._place(last, top)
        present = np.stack([place.present for place in places])[:, None]
        absent = np.stack([place.absent for place in places])[:, None]
        bend = self.coins.p**2 * (distance * distance // 4) / 2.0 * (1.0 + 8.0 * UNIT)
        growth, budget, bounds = growths[:, None], places[0].budget, []
        with np.errstate(over="ignore", invalid="ignore", under="ignore"):
            lives = tuple(zip((present, absent), self._last(first, distance, top), strict=True))
            for (one_life, ahead), (other, behind) in (lives[::step] for step in self.orders):
                error = budget * (one_life[:, :, -1] + growth * other[:, :, -1])
                above = ahead + growth * behind
                for level in range(_LEVELS - 1, 0, -1):
                    sign = -1.0 if level % 2 else 1.0
                    ends = sign * (one_life[:, :, level] - growth * other[:, :, level]) + error
                    above = np.maximum(0.0, ends.max(axis=0) + bend * above)
                ends = one_life[:, :, 0] * (1.0 + budget) - growth * (1.0 - budget) * other[:, :, 0]
                bounds.append(np.maximum(0.0, ends + bend * above).sum(axis=2))
            # Of every level, counts left out are added as if they told all; four times as much for each difference.
            lost = (places[1].rest + 2.0 * math.exp(-self.exponent)) * sum(
                (4.0 * bend) ** n for n in range(_LEVELS + 1)
            )
            result: Array = (np.stack(bounds) + (1.0 + growths) * lost) * (1.0 + 1e-10) + UNDERFLOW_MASS
        return result

    def _last(self, first: int, distance: int, top: int) -> tuple[Array, Array]:
        """Return at or above what absolute values of the last differences of all laws in a block publish."""
        law, _ = _law(first, self.coins.p, top)
        absolute = law
        for _ in range(_LEVELS):
            law, absolute = np.convolve(law, [1.0, -2.0, 1.0]), np.convolve(absolute, [1.0, 2.0, 1.0])
        more = 1.0 + self._budget(top)
        law = np.convolve(np.abs(law) + (more - 1.0) * absolute, _envelope(distance, self.coins.p, self.exponent))
        rows = np.zeros((1, top + 2 * _LEVELS + 2))
        rows[0, :-1] = np.pad(law, (0, max(0, rows.shape[1] - len(law))))[: rows.shape[1] - 1]
        ahead, behind = self._published(rows)
        return ahead[0] * more, behind[0] * more

    def _beyond(self, m: int) -> Array:
        """Return bounds on the divergence beside this many people or more.

        The kernel is the same as one to which more people are noise but for few counts, of which more people have less.
        """
        kernel, count = self.kernel.for_large_counts
        most = self._of(kernel).exact(m)[1]
        law, _ = _law(m, self.coins.p, top := self._top(m))
        few = float(law[:count].sum()) * (1.0 + self._budget(top)) + UNDERFLOW_MASS
        bounds: Array = most + (1.0 + self.growth) * few * (1.0 + 1e-12)
        return bounds

    def _of(self, kernel: Kernel) -> KernelSearch:
        return KernelSearch(kernel, self.coins, self.epsilons, self.slack, self.others, self.exponent, self.orders)

    def _ends(self) -> Whole:
        """Return for every ε so many people, that more need not be looked at."""
        people, left = math.ceil((self.kernel.for_large_counts[1] + 1) / self.coins.p), np.arange(len(self.epsilons))
        ends = np.zeros(len(left), dtype=np.int64)
        while len(left):
            people = int(min(people, self.coins.most))
            if self._top(people) > _MAX_COUNTS:
                self.optimum.top[left] = 1.0
                break
            self._enter(people)
            bounds = np.zeros(len(ends)) if people >= self.coins.most else self._beyond(people)
            done = bounds[left] <= self._enough(left)
            self.optimum.top[left[done]] = np.maximum(self.optimum.top[left[done]], bounds[left[done]])
            ends[left[done]] = people
            left, people = left[~done], int(people * _GROWTH_FACTOR) + 1
        return ends


def exponent_of(epsilon: float) -> float:
    """Return the exponent at which counts are left out where δ is not small, for ε up to this one."""
    return _PRECISIONS[0][0] + epsilon


def supremum(kernel: Kernel, coins: Coins, epsilons: Array, slack: float, others: Array | float = 0.0) -> Optimum:
    """Return the largest divergences of a kernel over all numbers of people; see `KernelSearch`."""
    many, beyond = len(epsilons), epsilons > _MAX_EPSILON
    # A profile does not increase: beyond the last ε that is searched its certified side holds, and nothing is attained.
    epsilons = np.minimum(epsilons, _MAX_EPSILON)
    result = Optimum(np.zeros(many), np.ones(many), np.zeros(many), np.zeros(many, dtype=np.int64))
    others, left = others + np.zeros(many), np.arange(many)
    for exponent, enough in _PRECISIONS:
        best, top, _, leader = KernelSearch(
            kernel, coins, epsilons[left], slack, others[left], exponent + float(epsilons[left].max())
        ).sides()
        result.leader[left] = np.where(best > result.best[left], leader, result.leader[left])
        result.best[left], result.top[left] = np.maximum(result.best[left], best), np.minimum(result.top[left], top)
        left = left[result.best[left] < enough]
        if not len(left):
            break
    result.best[beyond] = 0.0
    return result
