"""Theorem B, value: a histogram hides which cell a person is in when absence is a real possibility."""

from __future__ import annotations

import math
from dataclasses import dataclass

import flint
import numpy as np

from pkdp_pipeline.theorems.rounding import EVALUATED, UNIT, Array, ball_above
from pkdp_pipeline.theorems.thresholding import Thresholding
from pkdp_pipeline.theorems.waiting_pair import Pair, averaged_pair, product_above, waiting_pair

__all__ = ["ValueThroughAbsence"]

_FEW_KNOWN = 24
"""Up to this many known people every way to spread them over the two cells is looked at."""

_MOST_PAIRS = 48
"""Most pairs built for one δ; more thresholds than this are rounded to the worse one of their block."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueThroughAbsence:
    """Privacy profile of a k-anonymous histogram against learning which of two cells a person is in.

    Parameters
    ----------
    theorem : str
        Which statement uses the profile.
    k : int
        A cell is published only when its count reaches `k`.
    p : float
        Told that a person is in a given cell or absent, the attacker is at most this sure of the cell.
    cap : int, optional
        At most this many unknown people.
    known : int
        People the attacker knows or controls; each may be in either of the two cells.
    active : bool
        Whether the known people are controlled.

    Notes
    -----
    Moving from cell v to cell w is leaving v and entering w: the dominating pair is
    ``(W_{k-1}, W_k) ⊗ (W_k, W_{k-1})``. *Guarantee*: the certified side is never below the divergence of any
    declared attacker. The attained side is that of the presence attack; the two are not equal, and no attacker
    that closes the gap is known. *Rounding*: upward. *Source*: `docs/mathematics.md`, theorem B; it replaces
    Theorem 5 of Desfontaines et al.
    """

    theorem: str
    k: int
    p: float
    cap: int | None = None
    known: int = 0
    active: bool = False

    @property
    def slack(self) -> float:
        """Return 0: nothing is left open to save effort."""
        return 0.0

    def rounding(self, epsilons: Array) -> Array:
        """See `pkdp_pipeline.theorems.bound.Bound`."""
        # The window of a waiting time has so many atoms; an error of their ratios acts like one of ε, and no δ above
        # 1e-260 falls faster than this in ε.
        root = 70.0 * math.sqrt(self.k)
        budget = (10.0 * root / max(self.p, 1e-9) + 70.0) * UNIT
        shares = [EVALUATED, min(1.0, EVALUATED + 8.0 * budget * (1.0 + root))]
        return np.repeat(np.array(shares)[:, None], len(epsilons), axis=1)

    def bracket(self, epsilons: Array) -> tuple[Array, Array]:
        """Return (attained, certified) arrays; see `pkdp_pipeline.theorems.bound.Bound`."""
        presence = Thresholding(
            theorem=self.theorem, k=self.k, p=self.p, cap=self.cap, known=self.known, active=self.active
        )
        attained, _ = presence.bracket(epsilons)
        certified = self._active if self.active or self.known == 0 else self._passive
        upper = np.ones(len(epsilons))
        for row, epsilon in enumerate(epsilons.tolist()):
            # Mass left out of the pairs is added to δ, so it has to be small against δ.
            upper[row] = certified(epsilon, 1e-13 * max(float(attained[row]), 1e-260))
        return np.minimum(attained, upper), upper

    def _active(self, epsilon: float, lost: float) -> float:
        """Take the worst way to spread the known people over the two cells."""
        if self.known >= self.k - 1:
            return 1.0
        worst = 0.0
        # A block of ways is dominated by both cells having the most known people of the block.
        for ways in np.array_split(np.arange(self.known + 1), min(self.known + 1, _MOST_PAIRS)):
            one, other = self.k - 1 - int(ways[-1]), self.k - 1 - (self.known - int(ways[0]))
            first, second = (waiting_pair(t, self.p, self.cap, lost) for t in (one, other))
            worst = max(worst, product_above(first, second, epsilon))
        return worst

    def _passive(self, epsilon: float, lost: float) -> float:
        """Average over who of the known people is in each cell, for the worst way to spread them."""
        # A known person may be in either cell, so the chance of one of them is 2p/(1+p), not p.
        exact = flint.arb(self.p)
        chance = min(1.0, ball_above(2 * exact / (1 + exact)))
        if self.known > _FEW_KNOWN:
            # Everybody in both cells at once dominates every way to spread them.
            both = self._averaged(self.known, chance, lost)
            return product_above(both, both, epsilon)
        laws = [self._averaged(c, chance, lost) for c in range(self.known + 1)]
        return max(product_above(laws[c], laws[self.known - c], epsilon) for c in range(self.known + 1))

    def _averaged(self, known: int, chance: float, lost: float) -> Pair:
        atoms = 20.0 * math.sqrt(self.k) / max(self.p, 1e-9)
        most = int(min(_MOST_PAIRS, max(8.0, 1e6 / atoms)))
        return averaged_pair(self.k, self.p, self.cap, (known, chance), lost, most)
