"""SplitSum: profiles added up by giving each part its share of ε."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np

from pkdp_pipeline.composition.basic_sum import basic_sum
from pkdp_pipeline.guarantee import Guarantee
from pkdp_pipeline.profiles import Bound
from pkdp_pipeline.profiles.rounding import Array

__all__ = ["SplitSum"]

_EPSILONS = np.concatenate([[0.0], np.geomspace(1e-3, 256.0, 140)])
"""Where the profiles of parts that differ are looked at to find the split; any split is sound."""


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

    @property
    def _added(self) -> int:
        return sum(times for _, times in self.parts) - 1

    def bracket(self, epsilons: Array) -> tuple[Array, Array]:
        """Return (attained, certified) arrays; see `pkdp_pipeline.profiles.bound.Bound`."""
        return np.zeros(len(epsilons)), np.array([self._at(epsilon) for epsilon in epsilons.tolist()])

    def _at(self, epsilon: float) -> float:
        left = Fraction(epsilon) - self._added * Fraction(self.extra_epsilon)
        if left < 0:
            return 1.0
        if len(self.parts) == 1:
            bounds, times = self.parts[0]
            share = _below(left / times)
            return self._delta([Guarantee(bounds).delta(share)])
        tables = [_table(bounds) for bounds, _ in self.parts]
        shares = self._shares(tables, left)
        if shares is None:
            return 1.0
        # What the coarse table leaves over goes to all parts alike.
        rest = float(left) - float(self._spent(shares))
        releases = self._added + 1
        grown = [share + max(0.0, rest) / releases for share in shares]
        shares = grown if self._spent(grown) <= left else shares
        return self._delta(
            [float(Guarantee(bounds).delta(share)) for (bounds, _), share in zip(self.parts, shares, strict=True)]
        )

    def _shares(self, tables: list[Array], left: Fraction) -> list[float] | None:
        """Return each part's ε at the smallest common δ, among those looked at, that all of them can afford."""
        low, high, found = -300.0, 0.0, None
        for _ in range(40):
            middle = 0.5 * (low + high)
            at = [int(np.searchsorted(-table, -(10.0**middle))) for table in tables]
            shares = [float(_EPSILONS[index]) for index in at if index < len(_EPSILONS)]
            if len(shares) < len(tables) or self._spent(shares) > left:
                low = middle
            else:
                high, found = middle, shares
        return found

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
    return np.minimum.accumulate(Guarantee(bounds).delta(_EPSILONS))
