"""Several options counted exactly: the value of one record, hidden by the other records' fair coins."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from pkdp_pipeline.theorems.binomial_tails import binomial_below, binomial_weights
from pkdp_pipeline.theorems.rounding import UNIT, Array
from pkdp_pipeline.theorems.tilted_inversion import MOST_PEOPLE, TwoCoinTails, inverted

__all__ = ["Options"]

_SLACK = 0.004


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Privacy profile of exact counts per option against learning which option a person chose.

    Parameters
    ----------
    theorem : str
        Which statement uses the profile.
    unknown : int
        At least this many people are unknown.
    p_min : float
        Every unknown person chooses each option with at least this probability; in (0, 1/2].

    Notes
    -----
    Between two options v and w, each unknown person is, with weight exactly ``2·p_min``, a fair coin between
    the two; everything else is revealed. Hence ``δ(ε) ≤ E[δ_N(ε)]``, where N is ``Bin(unknown, 2·p_min)``
    and ``δ_N`` is the profile of counting N fair coins, which does not increase with N.

    *Guarantee*: the certified side is never below the divergence of any declared attacker. It is attained where
    a third option fits (`p_min` ≤ 1/3) and at `p_min` = 1/2; in between the attained side is that of fair coins
    only. *Rounding*: outward, within 1 % where it is attained. *Source*: `docs/mathematics.md`, "Several options";
    Corollary 1 of Desfontaines et al.
    """

    theorem: str
    unknown: int
    p_min: float

    @property
    def slack(self) -> float:
        """Return how far above the best attacker found the search may stop."""
        return _SLACK

    def rounding(self, epsilons: Array) -> Array:
        """See `pkdp_pipeline.theorems.bound.Bound`."""
        return np.full((2, len(epsilons)), inverted(min(self.unknown, MOST_PEOPLE)))

    def bracket(self, epsilons: Array) -> tuple[Array, Array]:
        """Return (attained, certified) arrays; see `pkdp_pipeline.theorems.bound.Bound`."""
        if self.unknown > MOST_PEOPLE:
            # Fewer unknown people only help the attacker; what is attained with fewer proves nothing.
            return np.zeros(len(epsilons)), replace(self, unknown=MOST_PEOPLE).bracket(epsilons)[1]
        if self.unknown * self.p_min < 1e-12:
            # Almost surely nobody is a coin between the two options.
            return np.full(len(epsilons), 1.0 - 1e-11), np.ones(len(epsilons))
        sides = [self._at(float(epsilon)) for epsilon in epsilons]
        lower = np.array([side[0] for side in sides])
        upper = np.array([side[1] for side in sides])
        if 1.0 / 3.0 < self.p_min < 0.5:
            # Only two options fit; the attacker for whom both are equally likely is one of the declared ones.
            lower = np.array([_fair(np.array([self.unknown]), float(epsilon))[0][0] for epsilon in epsilons])
        return lower, np.minimum(upper, 1.0)

    def _at(self, epsilon: float) -> tuple[float, float]:
        pairs_chance = 2.0 * self.p_min
        if pairs_chance == 1.0 or self.unknown == 0:
            low, high = _fair(np.array([self.unknown]), epsilon)
            return float(low[0]), float(high[0])
        mean = self.unknown * pairs_chance
        spread = math.sqrt(mean * (1.0 - pairs_chance)) + 1.0
        # δ at the mean is a fair guess of the expectation's size (Jensen: roughly a lower bound).
        guess, _ = _fair(np.array([math.ceil(mean)]), epsilon)
        reach = 20.0 - math.log(max(float(guess[0]), 1e-280))
        first = max(0, math.floor(mean - math.sqrt(2.0 * reach) * spread - reach))
        last = min(self.unknown, math.ceil(mean + math.sqrt(2.0 * reach) * spread + reach))
        weights = binomial_weights(self.unknown, pairs_chance, first, last)
        width = (20.0 * len(weights) + 100.0) * UNIT
        before = binomial_below(self.unknown, pairs_chance, first)
        after = binomial_below(self.unknown, 1.0 - pairs_chance, self.unknown - last)
        edges = np.unique(np.linspace(first, last + 1, 65).astype(np.int64))
        low, high = _fair(edges, epsilon)
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
            new_low, new_high = _fair(middles, epsilon)
            edges = np.append(edges, middles)
            order = np.argsort(edges)
            edges, low, high = edges[order], np.append(low, new_low)[order], np.append(high, new_high)[order]
        upper = total * (1.0 + width) + before + after * float(high[-1])
        # Inside a block of single N the lower side is that N's own.
        single = np.diff(edges) == 1
        lower = float(np.where(single, mass * low[:-1], below).sum())
        return max(0.0, lower * (1.0 - 4.0 * width)), math.nextafter(upper, math.inf)


def _fair(counts: np.ndarray[tuple[int], np.dtype[np.int64]], epsilon: float) -> tuple[Array, Array]:
    """Return brackets of the profile of counting N fair coins, for every N in `counts`."""
    tails = TwoCoinTails(low=0.5, low_complement=0.5, high=0.5, high_complement=0.5)
    return tails.right_tails(counts.astype(np.float64), np.zeros(len(counts)), np.full(len(counts), epsilon))
