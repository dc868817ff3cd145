"""SplitSum: profiles added up by giving each part its share of ε."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np

from pkdp_pipeline.composition.basic_sum import basic_sum
from pkdp_pipeline.guarantee import Guarantee
from pkdp_pipeline.profiles import Bound
from pkdp_pipeline.profiles.rounding import EVALUATED, Array

__all__ = ["SplitSum"]

_EPSILONS = np.concatenate([[0.0], np.geomspace(1e-3, 256.0, 140)])
"""Where the profiles of parts that differ are looked at to find the split; any split is sound."""


_RUNGS = 300
"""Most values of the common δ that are tried."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitSum:
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

    theorem: str
    parts: tuple[tuple[tuple[Bound, ...], int], ...]
    extra_epsilon: float
    extra_delta: float

    @property
    def slack(self) -> float:
        """Return the largest slack of a part's bounds."""
        return max((bound.slack for bounds, _ in self.parts for bound in bounds), default=0.0)

    def rounding(self, epsilons: Array) -> Array:
        """See `pkdp_pipeline.profiles.bound.Bound`."""
        shares = np.array([self._rounded(epsilon) for epsilon in epsilons.tolist()])
        return np.stack([shares, shares])

    @property
    def _added(self) -> int:
        return sum(times for _, times in self.parts) - 1

    def bracket(self, epsilons: Array) -> tuple[Array, Array]:
        """Return (attained, certified) arrays; see `pkdp_pipeline.profiles.bound.Bound`."""
        return np.zeros(len(epsilons)), np.array([self._at(epsilon) for epsilon in epsilons.tolist()])

    def _at(self, epsilon: float) -> float:
        shares, least = self._split(epsilon)
        if not shares:
            return least
        exact = [float(Guarantee(bounds).delta(share)) for (bounds, _), share in zip(self.parts, shares, strict=True)]
        return min(least, self._delta(exact))

    def _rounded(self, epsilon: float) -> float:
        """Return `rounding` at one ε: that of the sum, each part rounded as where it is evaluated."""
        shares, _ = self._split(epsilon)
        if not shares:
            return EVALUATED
        parts = [(Guarantee(bounds), np.array([at])) for (bounds, _), at in zip(self.parts, shares, strict=True)]
        lower = [float(part.delta(at)[0]) * (1.0 - float(part.rounding(at)[0])) for part, at in parts]
        value = self._at(epsilon)
        return max(0.0, 1.0 - self._delta(lower) / value) if value else 0.0

    def _split(self, epsilon: float) -> tuple[list[float], float]:
        """Return the ε at which each part is evaluated, none where that is of no use, and a δ that holds anyway."""
        left = Fraction(epsilon) - self._added * Fraction(self.extra_epsilon)
        if left < 0:
            return [], 1.0
        if len(self.parts) == 1:
            return [_below(left / self.parts[0][1])], 1.0
        spent, deltas = _curve(self)
        affordable = int(np.searchsorted(spent, float(left), side="right"))
        while affordable and Fraction(float(spent[affordable - 1])) > left:
            affordable -= 1
        if affordable == 0:
            return [], 1.0
        best = int(deltas[:affordable].argmin())
        shares = self._shares_at(best)
        # What the coarse table leaves over goes to all parts alike.
        rest = max(0.0, float(left) - float(self._spent(shares)))
        grown = [share + rest / (self._added + 1) for share in shares]
        return shares if self._spent(grown) > left else grown, float(deltas[best])

    def _shares_at(self, rung: int) -> list[float]:
        """Return each part's smallest tabulated ε at which it reaches a rung of the ladder of δ."""
        return [float(_EPSILONS[column]) for column in _columns(self)[rung]]

    def curve(self) -> tuple[Array, Array]:
        """Return what the rungs spend, increasing and rounded up, and the sums of δ they give, rounded up."""
        tables = [_table(bounds) for bounds, _ in self.parts]
        spent, deltas = [], []
        for rung, columns in enumerate(_columns(self)):
            exact = self._spent(self._shares_at(rung))
            spent.append(math.nextafter(float(exact), math.inf))
            deltas.append(self._delta([float(table[column]) for table, column in zip(tables, columns, strict=True)]))
        return np.array(spent), np.array(deltas)

    def _spent(self, shares: list[float]) -> Fraction:
        spent = (Fraction(share) * times for share, (_, times) in zip(shares, self.parts, strict=True))
        return sum(spent, Fraction(0))

    def _delta(self, deltas: list[float]) -> float:
        extra = [(0.0, self.extra_delta)] if self._added else []
        times = [times for _, times in self.parts] + ([self._added] if self._added else [])
        return basic_sum([*((0.0, delta) for delta in deltas), *extra], times)[1]


def _below(value: Fraction) -> float:
    """Return a float at or below `value`, and at least 0."""
    rounded = float(value)
    return rounded if Fraction(rounded) <= value else max(0.0, float(np.nextafter(rounded, -np.inf)))


@lru_cache(maxsize=1024)
def _table(bounds: tuple[Bound, ...]) -> Array:
    """Return the profile at `_EPSILONS`, not increasing."""
    table: Array = np.minimum.accumulate(Guarantee(bounds).delta(_EPSILONS))
    return table


@lru_cache(maxsize=64)
def _columns(total: SplitSum) -> tuple[tuple[int, ...], ...]:
    """Return, for every common δ that a part has in its table, from large to small, where each part reaches it.

    A part that never gets so low stays where it is lowest: more ε would buy it nothing.
    """
    tables = [_table(bounds) for bounds, _ in total.parts]
    lowest = [int(np.searchsorted(-table, -float(table[-1]))) for table in tables]
    ladder = np.unique(np.concatenate(tables))[::-1]
    ladder = ladder[np.unique(np.linspace(0, len(ladder) - 1, _RUNGS).astype(np.int64))]
    ways = zip(tables, lowest, strict=True)
    rungs = np.array([np.minimum(np.searchsorted(-table, -ladder), low) for table, low in ways]).T
    return tuple(dict.fromkeys(tuple(row) for row in rungs.tolist()))


@lru_cache(maxsize=64)
def _curve(total: SplitSum) -> tuple[Array, Array]:
    return total.curve()
