"""Theorems A, B and C: thresholds are dominated by waiting times, and by two of them where a value changes."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from itertools import product

import flint
import numpy as np

from pkdp_pipeline.model.mechanisms import Protects
from pkdp_pipeline.theorems.bound import Bound, EnvelopeLosses, Losses, ProductLosses, waiting_losses
from pkdp_pipeline.theorems.merely_known import SLACK, passive_optimum
from pkdp_pipeline.theorems.numerics import (
    EVALUATED,
    MIN_P,
    UNIT,
    Array,
    Optimum,
    ball_above,
    evaluated,
    float_above,
    invert,
    left_tails,
    right_tails,
)
from pkdp_pipeline.theorems.waiting_pair import (
    BLOCK_SLACK,
    MAX_BUDGET,
    Pair,
    averaged_pair,
    crowd_alone,
    crowds_reach,
    one_crowd_tells,
    product_above,
    waiting_pair,
)

_MAX_AVERAGED_K = 2**20
"""With larger thresholds people merely known are taken for people who are controlled, which is sound."""

_MIN_AVERAGED_P = 1e-60
"""A smaller p is replaced by this one where it depends on chance how many of the known people count."""

_MAX_TRIALS = 10_000_000
"""Attacks with more unknown people than this are not evaluated."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Threshold(Bound):
    """The numbers that a bound on a threshold rests on.

    Parameters
    ----------
    theorem : str
        Which statement uses the profile: ``"thresholding"``, ``"histogram_presence"``, …
    k : int
        Published only when ``count >= k``; at least 1.
    p : float
        Every unknown person counts with probability at most `p`; nothing else is assumed. Of a cell: told that a person
        is in it or absent, the attacker is at most this sure of the cell.
    cap : int, optional
        At most this many unknown people.
    known : int
        People the attacker knows, who may count; of two cells each may be in either.
    active : bool
        Whether the attacker controls the known people (then ``k - known`` takes the place of `k`), or merely
        knows them (then the number of them who count is ``Bin(known, p)``).
    """

    k: int
    p: float
    cap: int | None = None
    known: int = 0
    active: bool = False

    @property
    def suppression(self) -> Thresholding:
        """Theorem A for the same people."""
        return Thresholding(
            theorem=self.theorem, k=self.k, p=self.p, cap=self.cap, known=self.known, active=self.active
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Thresholding(Threshold):
    """Privacy profile of a count that is published only when it reaches `k`.

    Parameters
    ----------
    theorem, k, p, cap, known, active
        See `Threshold`.
    least_unknown : int
        Attackers with fewer unknown people who may count are not declared: matters to the attained side only.

    Notes
    -----
    With ``W_r`` the number of p-coins tossed up to the r-th success, ``δ(ε)`` is the larger of
    ``H_ε(W_{k-1} ‖ W_k)`` and ``H_ε(W_k ‖ W_{k-1})``. Beside people merely known it is the average over how many of
    them count, for the worst number of unknown people: see `pkdp_pipeline.theorems.merely_known`.

    *Guarantee*: the certified side is never below the hockey-stick divergence, in either direction, of any
    declared attacker. It is attained, beside people merely known within 0.1 %. *Rounding*: outward, see
    `pkdp_pipeline.theorems.numerics`. *Source*: `docs/mathematics.md`, theorem A; it replaces
    Theorem 4 and Proposition 8 of Desfontaines et al.
    """

    least_unknown: int = 0

    def bracket(self, epsilons: Array) -> tuple[Array, Array]:
        """Return (attained, certified) arrays; see `pkdp_pipeline.theorems.bound.Bound`."""
        least = _MIN_AVERAGED_P if self.averages else MIN_P
        if 0.0 < self.p < least:
            # A larger p dominates; what is attained there proves nothing.
            return np.zeros(len(epsilons)), replace(self, p=least).bracket(epsilons)[1]
        if self.averages:
            passive = self._passive(epsilons)
            return passive.best, passive.top
        lower, upper = self._nobody_known(self.k - (self.known if self.active or self.p > 0.0 else 0), epsilons)
        # Where some who are merely known are taken for controlled, what is attained proves nothing.
        return lower * (self.active or self.p in (0.0, 1.0) or self.known == 0), np.minimum(upper, 1.0)

    def losses(self, protects: Protects) -> tuple[Losses, ...]:
        """See `pkdp_pipeline.theorems.bound.Bound`; against learning the cell (theorem C) both orders at once."""
        known, controlled = (0, self.known) if self.active else (self.known, 0)
        orders = waiting_losses(self.k - controlled, self.p, self.cap, known)
        return orders if protects == "presence" else (EnvelopeLosses(members=orders),)

    @property
    def averages(self) -> bool:
        """Whether it depends on chance how many of the known people count."""
        by_chance = self.known > 0 and not self.active and 0.0 < self.p < 1.0
        return by_chance and self.k <= _MAX_AVERAGED_K

    @property
    def slack(self) -> float:
        """Return how far above the best attacker found the search may stop."""
        return SLACK if self.averages else 0.0

    def rounding(self, epsilons: Array) -> Array:
        """See `pkdp_pipeline.theorems.bound.Bound`."""
        shares = evaluated(epsilons)
        if self.averages and self.p >= _MIN_AVERAGED_P:
            shares = np.minimum(1.0, shares + 4.0 * self._passive(epsilons).apart)
        return shares

    def _nobody_known(self, k: int, epsilons: Array) -> tuple[Array, Array]:
        """Return the bracket at threshold `k` when nobody is known."""
        constant = _constant(k, self.p, self.cap)
        if constant is not None:
            sure = np.full(len(epsilons), constant)
            return sure, sure
        cutoffs = [k - 1] * len(epsilons)
        right, left = (tails(cutoffs, self.p, epsilons, cap=self.cap) for tails in (right_tails, left_tails))
        upper = np.maximum(right[1], left[1])
        if self.least_unknown == 0:
            return np.maximum(right[0], left[0]), upper
        return self._attained_by_at_least(self.least_unknown, k - 1, epsilons), upper

    def _attained_by_at_least(self, people: int, t: int, epsilons: Array) -> Array:
        """Return what attackers with `people` or more unknown p-coins attain with a cutoff of at least `t`."""
        attained = np.zeros(len(epsilons))
        for row, epsilon in enumerate(epsilons.tolist()):
            trials = max(people, worst_trials(t, self.p, epsilon, self.cap))
            if trials > _MAX_TRIALS:
                continue
            for cutoff in {t, _best_cutoff(t, trials, self.p, epsilon)}:
                lower, _ = right_tails([cutoff], self.p, np.array([epsilon]), trials=trials)
                attained[row] = max(attained[row], float(lower[0]))
        return attained

    def worst_number(self, epsilon: float) -> int:
        """Return how many unknown people are the worst found, where it `averages`."""
        return int(self._passive(np.array([epsilon])).leader[0])

    def _passive(self, epsilons: Array) -> Optimum:
        """Return what people merely known add, who count with a chance of `p`."""
        return passive_optimum(self.k, self.p, self.known, self.cap, self.least_unknown, tuple(epsilons.tolist()))


def worst_trials(t: int, p: float, epsilon: float, cap: int | None) -> int:
    """Return about the number of p-coins that is worst for the cutoff `t`."""
    growth = math.exp(min(epsilon, 700.0))
    trials = t + int(min(t * (1.0 - p) / (p * growth), 1e15))
    return trials if cap is None else min(trials, cap)


def _best_cutoff(least: int, trials: int, p: float, epsilon: float) -> int:
    """Return a cutoff of at least `least` from which on every likelihood ratio exceeds e^ε."""
    against = (1.0 - p) / p * math.exp(-min(epsilon, 700.0))
    return max(least, int(trials / (1.0 + against)) + 1)


def _constant(k: int, p: float, cap: int | None) -> float | None:
    """Return δ where it does not depend on ε, else None."""
    if k <= 1:
        return 1.0
    if p == 0.0 or (cap is not None and cap < k - 1):
        return 0.0
    return 1.0 if p == 1.0 else None


_MAX_ATOMS_EACH, _MAX_ATOMS = 4e5, 1e6
"""No waiting time is given more atoms than the first; for more than the second together fewer ways are looked at."""

_MAX_ATOMS_CLOSELY, _MAX_P_CLOSELY = 1e4, 0.99
"""With more atoms a larger p takes the place of this one, and with a larger p crowds are not looked at."""

_MAX_SPREAD_KNOWN = 24
"""Up to this many known people every way to spread them over the two cells is looked at."""

_MAX_KNOWN_CLOSELY = 2
"""Beside so many people merely known all sizes of a crowd are looked at."""

_MAX_PAIRS = 48
"""Most pairs built for one δ; more thresholds than this are rounded to the worse one of their block."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueThroughAbsence(Threshold):
    """Privacy profile of a k-anonymous histogram against learning which of two cells a person is in; see `Threshold`.

    Notes
    -----
    Moving from cell v to cell w is leaving v and entering w: ``(W_{k-1}, W_k) ⊗ (W_k, W_{k-1})`` dominates, and closer
    is the worst number of people in v beside ``(W_k, W_{k-1})``. *Guarantee*: the certified side is never below the
    divergence of any declared attacker. The attained side is that of the best two crowds found, of whom one may be in v
    and the other in w, or of the presence attack; no attacker closes the gap. *Rounding*: outward. *Source*:
    `docs/mathematics.md`, theorem B; it replaces Theorem 5 of Desfontaines et al.
    """

    def rounding(self, epsilons: Array) -> Array:
        """See `pkdp_pipeline.theorems.bound.Bound`."""
        # The window of a waiting time has this many atoms; an error of their ratios acts like one of ε, and no δ above
        # 1e-260 falls faster than this in ε.
        root = 70.0 * math.sqrt(self.k)
        budgets = (MAX_BUDGET, (10.0 * root / max(self.p, 1e-9) + 70.0) * UNIT)
        shares = [min(1.0, EVALUATED + 8.0 * budget * (1.0 + root)) for budget in budgets]
        # Blocks may be halved once more, or less, on another processor.
        shares[1] = min(1.0, shares[1] + 2.0 * BLOCK_SLACK)
        return np.repeat(np.array(shares)[:, None], len(epsilons), axis=1)

    def bracket(self, epsilons: Array) -> tuple[Array, Array]:
        """Return (attained, certified) arrays; see `pkdp_pipeline.theorems.bound.Bound`."""
        attained = self._presence(epsilons).copy()
        upper = self._certified(epsilons, attained)
        if MIN_P <= self.p < 1.0 and upper.min(initial=1.0) < 1.0:
            for row, epsilon in enumerate(epsilons.tolist()):
                crowds = (crowds_reach(ways, self.p, self.cap, epsilon) for ways in self._spread())
                attained[row] = max(attained[row], *crowds)
        return np.minimum(attained, upper), upper

    def losses(self, protects: Protects) -> tuple[Losses, ...]:
        """See `pkdp_pipeline.theorems.bound.Bound`."""
        return () if self.known else (ProductLosses(members=waiting_losses(self.k, self.p, self.cap)),)

    def certified(self, epsilons: Array) -> Array:
        """Return the certified side of `bracket` alone."""
        return self._certified(epsilons, self._presence(epsilons))

    def _certified(self, epsilons: Array, presence: Array) -> Array:
        certified = self._active if self.active or self.known == 0 else self._passive
        # Mass left out of the pairs is added to δ, so it has to be small against δ.
        lost = 1e-13 * np.maximum(presence, 1e-260)
        return np.array([certified(*point) for point in zip(epsilons.tolist(), lost.tolist(), strict=True)])

    def _presence(self, epsilons: Array) -> Array:
        """Return what is attained by looking at the one cell only."""
        return self.suppression.bracket(epsilons)[0]

    def _spread(self) -> list[tuple[int, int]]:
        """Return some thresholds that are left where controlled people are in either cell."""
        # Attackers who merely know people are among those who know nobody.
        known = self.known if self.active else 0
        return [(self.k - c, self.k - known + c) for c in sorted({round(known * step / 4) for step in range(5)})]

    def _active(self, epsilon: float, lost: float) -> float:
        """Take the worst way to spread the known people over the two cells."""
        if self.known >= self.k - 1:
            return 1.0
        ways, closely = self._ways(), max(self.p, self._least_p_closely)
        if len(ways) == 1 and self._few_atoms:
            return one_crowd_tells(ways[0], closely, self.cap, epsilon, lost)[0]
        worst = 0.0
        # Of the ways those are looked at closely of which waiting times in both cells tell the most.
        for most, way in sorted(((self._in_both(way, epsilon, lost), way) for way in ways), reverse=True):
            if most <= worst:
                break
            # A larger p dominates; where one crowd of it tells as much, no search over crowds can tell less.
            people = int((way[0] - 1) / closely)
            alone = crowd_alone(way, closely, self.cap, epsilon, lost, people, people)
            searched = closely <= _MAX_P_CLOSELY and alone < most
            closer = one_crowd_tells(way, closely, self.cap, epsilon, lost)[0] if searched else most
            worst = max(worst, min(closer, most))
        return worst

    def _in_both(self, thresholds: tuple[int, int], epsilon: float, lost: float) -> float:
        """Return what waiting times in both cells tell."""
        first, second = (waiting_pair(k - 1, self.p, self.cap, lost) for k in thresholds)
        return product_above(first, second, epsilon)

    def _ways(self) -> list[tuple[int, int]]:
        """Return the thresholds that are left in the cells for each way to spread the known people, or for blocks."""
        # A lower threshold dominates (data processing), so both cells with the most known people of a block bound it.
        blocks = np.array_split(np.arange(self.known + 1), min(self.known + 1, _MAX_PAIRS))
        return [(self.k - int(ways[-1]), self.k - (self.known - int(ways[0]))) for ways in blocks]

    @property
    def _least_p_closely(self) -> float:
        """The smallest p of whose waiting times all atoms are looked at closely."""
        return 20.0 * math.sqrt(self.k) / _MAX_ATOMS_CLOSELY

    @property
    def _few_atoms(self) -> bool:
        return self._least_p_closely <= self.p <= _MAX_P_CLOSELY

    @property
    def slack(self) -> float:
        """See `pkdp_pipeline.theorems.bound.Bound`."""
        return BLOCK_SLACK

    def smallest_epsilon(self, target: float) -> float:
        """See `pkdp_pipeline.theorems.bound.Bound`; few ε look at all sizes of a crowd, the others at the worst."""
        known = self.known if self.active else max(0, self.known - _MAX_KNOWN_CLOSELY)
        if known or not self._few_atoms or self.k < 2:
            return Bound.smallest_epsilon(self, target)
        lost, ways = 1e-13 * max(target, 1e-260), (self.k, self.k)

        def beside(sizes: list[int], epsilon: float) -> float:
            return max(crowd_alone(ways, self.p, self.cap, epsilon, lost, size, size) for size in sizes)

        def look(epsilon: float) -> tuple[float, list[int]]:
            _, worst = one_crowd_tells(ways, self.p, self.cap, epsilon, lost)
            return float(self.certified(np.array([epsilon]))[0]), [worst]

        size = worst_trials(self.k - 1, self.p, 1.0, self.cap)
        best = invert(target, [size], beside, look, share=1.0 + BLOCK_SLACK)
        return Bound.smallest_epsilon(self, target) if math.isinf(best) else best

    def _passive(self, epsilon: float, lost: float) -> float:
        """Average over who of the known people is in each cell, for the worst way to spread them."""
        # A known person may be in either cell, so the chance of one of them is 2p/(1+p), not p.
        exact = flint.arb(self.p)
        chance = min(1.0, ball_above(2 * exact / (1 + exact)))
        if self.known > _MAX_SPREAD_KNOWN or (self.known + 1.0) * min(self._atoms, _MAX_ATOMS_EACH) > _MAX_ATOMS:
            # All known people in both cells at once lower both thresholds most: it dominates every way to spread them.
            both = self._averaged(self.known, chance, lost)
            return product_above(both, both, epsilon)
        laws = [self._averaged(c, chance, lost) for c in range(self.known + 1)]
        most = max(product_above(laws[c], laws[self.known - c], epsilon) for c in range(self.known + 1))
        if self.known > _MAX_KNOWN_CLOSELY or not self._few_atoms:
            return most
        return min(most, self._closely(Fraction(chance), epsilon, lost))

    def _closely(self, chance: Fraction, epsilon: float, lost: float) -> float:
        """Average what one crowd tells over who of few known people is in each cell, spread in the worst way."""

        @cache
        def tells(first: int, second: int) -> Fraction:
            left = self.k - first, self.k - second
            return Fraction(one_crowd_tells(left, self.p, self.cap, epsilon, lost)[0] if min(left) > 1 else 1.0)

        def law(people: int) -> list[Fraction]:
            return [math.comb(people, n) * chance**n * (1 - chance) ** (people - n) for n in range(people + 1)]

        def spread(people: int) -> Fraction:
            cells = product(enumerate(law(people)), enumerate(law(self.known - people)))
            return sum((a * b * tells(first, second) for (first, a), (second, b) in cells), Fraction(0))

        return min(1.0, float_above(max(spread(people) for people in range(self.known + 1))))

    @property
    def _atoms(self) -> float:
        """About how many atoms a waiting time has."""
        return 20.0 * math.sqrt(self.k) / max(self.p, 1e-9)

    def _averaged(self, known: int, chance: float, lost: float) -> Pair:
        most = int(min(_MAX_PAIRS, max(8.0, 1e6 / self._atoms)))
        return averaged_pair(self.k, self.p, self.cap, (known, chance), lost, most)
