"""SplitSum: profiles added up by giving each part its share of ε."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np

from pkdp_pipeline.theorems import Bound, WorstCase
from pkdp_pipeline.theorems.bound import Guarantee
from pkdp_pipeline.theorems.rounding import EVALUATED, Array, float_below, sum_above

__all__ = ["SplitSum"]

_EPSILONS = np.concatenate([[0.0], np.geomspace(1e-3, 256.0, 140)])
"""Where the profiles of parts that differ are looked at to find the split; any split is sound."""


_DEEPEST = -690.0
"""The logarithm of the smallest common δ that is looked for."""


_STEEP = 5.0
"""A fall of log δ between two points of the table that is no slope."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitSum(Bound):
    """The profile ``δ(Σ ε_i + n ε′) = Σ δ_i(ε_i) + n δ′`` over the splits of ε that give every part the same δ.

    Parameters
    ----------
    theorem : str
    parts : tuple of (tuple of Bound, int)
        The bounds that hold for each different part, and how often the part occurs.
    extra_epsilon, extra_delta : float
        ε′ and δ′, paid for each part after the first.

    Notes
    -----
    Every split is a bound; equal δ is a good one, and the best where the parts are equal. *Guarantee*: never below
    the divergence of the whole under rule 4. *Rounding*: up. *Source*: `docs/composition.md`, rule 4.
    """

    parts: tuple[tuple[tuple[Bound, ...], int], ...]
    extra_epsilon: float
    extra_delta: float

    @property
    def slack(self) -> float:
        """Return the largest slack of a part's bounds."""
        return max((bound.slack for bounds, _ in self.parts for bound in bounds), default=0.0)

    def rounding(self, epsilons: Array) -> Array:
        """See `pkdp_pipeline.theorems.bound.Bound`."""
        shares = np.array([self._rounded(epsilon) for epsilon in epsilons.tolist()])
        return np.stack([shares, shares])

    @property
    def _added(self) -> int:
        return sum(times for _, times in self.parts) - 1

    def bracket(self, epsilons: Array) -> tuple[Array, Array]:
        """Return (attained, certified) arrays; see `pkdp_pipeline.theorems.bound.Bound`."""
        return np.zeros(len(epsilons)), np.array([self._at(epsilon) for epsilon in epsilons.tolist()])

    def _at(self, epsilon: float) -> float:
        shares = self._split(epsilon)
        if not shares:
            return 1.0
        exact = [float(Guarantee(bounds).delta(share)) for (bounds, _), share in zip(self.parts, shares, strict=True)]
        return self._delta(exact)

    def _rounded(self, epsilon: float) -> float:
        """Return `rounding` at one ε: that of the sum, each part rounded as where it is evaluated."""
        shares = self._split(epsilon)
        if not shares:
            return EVALUATED
        parts = [(Guarantee(bounds), np.array([at])) for (bounds, _), at in zip(self.parts, shares, strict=True)]
        exact = [float(part.delta(at)[0]) for part, at in parts]
        lower = [delta * (1.0 - float(part.rounding(at)[0])) for delta, (part, at) in zip(exact, parts, strict=True)]
        value = self._delta(exact)
        return max(0.0, 1.0 - self._delta(lower) / value) if value else 0.0

    def _split(self, epsilon: float) -> list[float]:
        """Return the ε at which each part is evaluated; none where there is nothing to share."""
        left = Fraction(epsilon) - self._added * Fraction(self.extra_epsilon)
        if left < 0:
            return []
        if len(self.parts) == 1:
            return [float_below(left / self.parts[0][1])]
        curves = [_curve(bounds) for bounds, _ in self.parts]
        times = np.array([times for _, times in self.parts], dtype=np.float64)
        high, low = 0.0, _DEEPEST
        for _ in range(60):
            middle = (high + low) / 2.0
            spent = times @ [np.interp(-middle, depths, epsilons) for epsilons, depths in curves]
            high, low = (middle, low) if spent <= float(left) else (high, middle)
        shares = [float(np.interp(-high, depths, epsilons)) for epsilons, depths in curves]
        # What no part can use goes to all alike; what rounding has added is taken from all.
        rest = max(0.0, float(left) - float(self._spent(shares))) / (self._added + 1)
        shares = [share + rest for share in shares]
        while self._spent(shares) > left:
            shares = [share * (1.0 - 1e-12) for share in shares]
        return shares

    def _spent(self, shares: list[float]) -> Fraction:
        spent = (Fraction(share) * times for share, (_, times) in zip(shares, self.parts, strict=True))
        return sum(spent, Fraction(0))

    def _delta(self, deltas: list[float]) -> float:
        return min(1.0, sum_above([*deltas, self.extra_delta], [*(times for _, times in self.parts), self._added]))


@lru_cache(maxsize=1024)
def _curve(bounds: tuple[Bound, ...]) -> tuple[Array, Array]:
    """Return ε and -log δ of a profile, both increasing, up to its smallest δ: more ε would buy nothing.

    Between two points one is read from the other as on a line; where δ falls too far for that, at the second point.
    """
    falls = [bound.parameters[0] for bound in bounds if isinstance(bound, WorstCase)]
    epsilons = np.unique([*_EPSILONS, *(epsilon for epsilon in falls if epsilon < _EPSILONS[-1])])
    table = np.minimum.accumulate(Guarantee(bounds).delta(epsilons))
    depths = -np.log(np.maximum(table, math.exp(_DEEPEST)))
    steep = np.flatnonzero(np.diff(depths) > _STEEP) + 1
    epsilons = np.insert(epsilons, steep, np.nextafter(epsilons[steep], 0.0))
    depths = np.insert(depths, steep, depths[steep - 1])
    lowest = int(np.searchsorted(depths, depths[-1])) + 1
    return epsilons[:lowest], depths[:lowest]
