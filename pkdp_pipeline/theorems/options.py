"""Histograms without a threshold: of everybody who is unknown a share are coins between two of a person's lives."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np

from pkdp_pipeline.theorems.binomial_tails import binomial_below, binomial_weights
from pkdp_pipeline.theorems.counting import Uncertain
from pkdp_pipeline.theorems.noisy_rows import lives_of
from pkdp_pipeline.theorems.rounding import TINY, UNIT, Array, Whole, float_below
from pkdp_pipeline.theorems.tilted_inversion import TwoCoinTails

_SLACK = 0.004
"""The average is divided until it is known this closely, relatively."""

_MAX_LOOKED_AT = 200
"""Of up to this many coins the law of two looks is computed."""

_ERROR = 1e-11
"""Relative error of its chances, with room for what a sampler may draw."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options(Uncertain):
    """Privacy profile of counts per cell, with or without noise, against learning in which of two lives a person is.

    Parameters
    ----------
    theorem, unknown, noise
        See `Uncertain`.
    p_min : float
        Every unknown person is in each cell with at least this probability; above 0, at most `p`.
    p : float, default 1/2
        The chance of a coin: 1/2 between two cells; between a cell and absence, `p_max`.
    looks : int, default 1
        How many noised cells show the coins; with two, `noise` is that of the one look that stands for both.

    Notes
    -----
    Between two lives every unknown person is, with weight exactly ``p_min / p``, a coin that is in the first of them
    with chance `p`; everything else is revealed. Hence ``δ(ε) ≤ E[δ_N(ε)]`` in either order, where N is
    ``Bin(unknown, p_min / p)`` and ``δ_N`` is the profile of counting N such coins, which does not increase with N.

    With noise both cells are two looks at one number: for few coins their law is computed, for many one look with twice
    the ε0 stands for both.

    *Guarantee*: the certified side is never below the divergence of any declared attacker. Between two cells it is
    attained where a third one fits (`p_min` ≤ 1/3) and at `p_min` = 1/2; in between the attained side is that of fair
    coins only. Between a cell and absence it is attained by people who are in the cell with `p_min`, absent with
    ``p_min (1 - p) / p``, and elsewhere with the rest. With noise nothing of this is: it hides how many people are
    coins. *Rounding*: outward, within 1 % where it is attained.
    *Source*: `docs/mathematics.md`, "Several options" and theorem F; Corollary 1 of Desfontaines et al.
    """

    p_min: float
    p: float = 0.5
    looks: int = 1

    @property
    def slack(self) -> float:
        """Return how far above the best attacker found the search may stop."""
        return _SLACK

    @property
    def weight(self) -> float:
        """Return the share of people who are coins, rounded down: fewer only help the attacker."""
        return min(1.0, float_below(Fraction(self.p_min) / Fraction(self.p)))

    def _search(self, epsilons: Array) -> tuple[Array, Array]:
        if self.unknown * self.weight < 1e-12:
            # Almost surely nobody is a coin.
            attained = 1.0 - 1e-11 if self.noise is None else 0.0
            return np.full(len(epsilons), attained), np.ones(len(epsilons))
        # Coins of 1/2 are their own mirror image.
        ways = (False,) if self.p == 0.5 else (False, True)
        sides = np.array([[self._average(float(epsilon), way) for epsilon in epsilons] for way in ways])
        lower, upper = sides.reshape(len(ways), len(epsilons), 2).max(axis=0).T
        if self.p == 0.5 and 1.0 / 3.0 < self.p_min < 0.5:
            # Only two options fit; the attacker for whom both are equally likely is one of the declared ones.
            lower = np.array([self._coins(np.array([self.unknown]), float(epsilon))[0][0] for epsilon in epsilons])
        return lower, np.minimum(upper, 1.0)

    def _average(self, epsilon: float, mirrored: bool) -> tuple[float, float]:
        """Return the bracket of the average in one order of the two lives."""
        weight = self.weight
        if weight == 1.0 or self.unknown == 0:
            low, high = self._coins(np.array([self.unknown]), epsilon, mirrored)
            return float(low[0]), float(high[0])
        mean = self.unknown * weight
        spread = math.sqrt(mean * (1.0 - weight)) + 1.0
        # δ at the mean is a fair guess of the expectation's size (Jensen: roughly a lower bound).
        guess, _ = self._coins(np.array([math.ceil(mean)]), epsilon, mirrored)
        reach = 20.0 - math.log(max(float(guess[0]), 1e-280))
        first = max(0, math.floor(mean - math.sqrt(2.0 * reach) * spread - reach))
        last = min(self.unknown, math.ceil(mean + math.sqrt(2.0 * reach) * spread + reach))
        weights = binomial_weights(self.unknown, weight, first, last)
        width = (20.0 * len(weights) + 100.0) * UNIT
        # Chernoff bounds on the chances of fewer and of more coins than are looked at.
        before = binomial_below(self.unknown, weight, first)
        after = binomial_below(self.unknown, 1.0 - weight, self.unknown - last)
        edges = np.unique(np.linspace(first, last + 1, 65).astype(np.int64))
        low, high = self._coins(edges, epsilon, mirrored)
        # Upper and lower sums, refined where they differ most. δ_N does not increase with N: a block's mass times δ at
        # its first N is at or above its part, and times δ at the next block's first N at or below it.
        while True:
            mass = np.add.reduceat(weights, edges[:-1] - first)
            above = mass * high[:-1]
            below = mass * low[1:]
            total = float(above.sum())
            gaps = above - below
            wide = (gaps > _SLACK * total / len(gaps)) & (np.diff(edges) > 1)
            if float(gaps.sum()) <= _SLACK * total or not wide.any():
                break
            middles = (edges[:-1][wide] + edges[1:][wide]) // 2
            new_low, new_high = self._coins(middles, epsilon, mirrored)
            edges = np.append(edges, middles)
            order = np.argsort(edges)
            edges, low, high = edges[order], np.append(low, new_low)[order], np.append(high, new_high)[order]
        upper = total * (1.0 + width) + before + after * float(high[-1])
        # Inside a block of single N the lower side is that N's own.
        single = np.diff(edges) == 1
        lower = float(np.where(single, mass * low[:-1], below).sum())
        # Rounding the weight down makes few coins likelier, by no more than this.
        drift = 4.0 * UNIT * (self.unknown - first) * weight / (1.0 - weight)
        return max(0.0, lower * (1.0 - 4.0 * width - drift)), math.nextafter(upper, math.inf)

    def _coins(self, counts: Whole, epsilon: float, mirrored: bool = False) -> tuple[Array, Array]:
        """Return brackets of one order of the profile of counting N coins, for every N in `counts`."""
        if self.looks == 2 and self.noise is not None and counts.max() <= _MAX_LOOKED_AT:
            return _two_looks(counts, 0.5 * self.noise, epsilon)
        p, complement = (1.0 - self.p, self.p) if mirrored else (self.p, 1.0 - self.p)
        tails = TwoCoinTails(low=p, low_complement=complement, high=p, high_complement=complement, noise=self.noise)
        return tails.right_tails(counts.astype(np.float64), np.zeros(len(counts)), np.full(len(counts), epsilon))


def _two_looks(counts: Whole, noise: float, epsilon: float) -> tuple[Array, Array]:
    """Return brackets of the profile of two looks at each of these numbers of fair coins."""
    sides = np.zeros((2, len(counts)))
    for index, people in enumerate(counts.tolist()):
        for side, sign in enumerate((-1.0, 1.0)):
            present, absent = _looks(people, noise)
            gains = present - math.exp(min(epsilon, 700.0)) * (1.0 - sign * 2.0 * _ERROR) * absent
            sides[side, index] = np.maximum(0.0, gains).sum() * (1.0 + sign * 2.0 * _ERROR) + sign * TINY
    return np.maximum(0.0, sides[0]), sides[1]


@lru_cache(maxsize=2 * _MAX_LOOKED_AT)
def _looks(people: int, noise: float) -> tuple[Array, Array]:
    """Return what both cells show of so many fair coins in the target's two lives, each the other's mirror image."""
    present, absent = lives_of(binomial_weights(people, 0.5, 0, people)[None], noise, 0, None, (0, 0))
    return present[0], absent[0]
