"""Rule 6: guarantees against any attacker add up as ordinary differential privacy does."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from pkdp_pipeline.composition.convolution import Convolved
from pkdp_pipeline.composition.loss_laws import directions
from pkdp_pipeline.composition.maximum import WorstMaximum
from pkdp_pipeline.theorems import Bound, WorstCase
from pkdp_pipeline.theorems.rounding import Array, sum_above

__all__ = ["NoiseTotal", "SmallerTotal"]

_WIDE = 1e6
"""Totals of noise with larger ε are known by their sums only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseTotal(WorstCase):
    """Worst-case guarantees of several releases about the same people.

    Parameters
    ----------
    theorem : str
    parts : tuple of (WorstCase, int)
        Different parts and how often each occurs.
    participation : int, optional
        Nobody takes part in more than this many of them, so two lives differ in at most twice as many. Each is then
        all that is published about one period.
    changes : int, optional
        Two lives differ in at most this many of them, for another reason.

    Notes
    -----
    Two statements are combined. The sums of all ε and all δ hold however the releases were chosen, later ones
    after seeing earlier ones. The convolution of the losses is smaller; it holds when the parameters of the
    releases were fixed beforehand.

    *Guarantee*: never below the divergence of the whole. *Rounding*: up. *Source*: `docs/composition.md`, rule 6.
    """

    parts: tuple[tuple[WorstCase, int], ...]
    participation: int | None = None
    changes: int | None = None

    @property
    def releases(self) -> int:
        """How many releases can differ between two lives."""
        everything = sum(times for _, times in self.parts)
        if self.participation is not None:
            everything = min(2 * self.participation, everything)
        return everything if self.changes is None else min(self.changes, everything)

    @property
    def parameters(self) -> tuple[float, float]:
        """Return the sum of the ε and of the δ of the worst releases, both rounded up."""
        pairs = [(bound.parameters, times) for bound, times in self.parts]
        epsilon, delta = (_worst([(pair[at], times) for pair, times in pairs], self.releases) for at in (0, 1))
        return epsilon, min(1.0, delta)

    def rounding(self, epsilons: Array) -> Array:
        """See `pkdp_pipeline.theorems.bound.Bound`."""
        return _convolved(self).rounding(epsilons)

    def bracket(self, epsilons: Array) -> tuple[Array, Array]:
        """Return (attained, certified) arrays; see `pkdp_pipeline.theorems.bound.Bound`."""
        attained, certified = _convolved(self).bracket(epsilons)
        return attained, self._summed(certified, epsilons)

    def certified(self, epsilons: Array) -> Array:
        """Return the certified side of `bracket` alone."""
        return self._summed(_convolved(self).certified(epsilons), epsilons)

    def smallest_epsilon(self, target: float) -> float:
        """Return an ε whose certified δ is at most `target`; `math.inf` when there is none."""
        epsilon, delta = self.parameters
        found = _convolved(self).smallest_epsilon(target)
        return min(found, epsilon) if delta <= target else found

    def _summed(self, values: Array, epsilons: Array) -> Array:
        epsilon, delta = self.parameters
        return np.where(epsilons >= epsilon, np.minimum(values, delta), values)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Nothing(Bound):
    """A bound that says nothing."""

    def bracket(self, epsilons: Array) -> tuple[Array, Array]:
        return np.zeros(len(epsilons)), np.ones(len(epsilons))


@dataclass(frozen=True, slots=True, kw_only=True)
class SmallerTotal(WorstCase):
    """The smaller of two profiles that both hold: of the few releases that differ, and of all of them.

    What differs is sometimes replaced by something larger, such as the largest of all. *Guarantee*: never below the
    divergence of the whole. *Rounding*: none of its own. *Source*: `docs/composition.md`, rules 6, 8 and 9.
    """

    few: NoiseTotal
    everything: NoiseTotal

    @property
    def parameters(self) -> tuple[float, float]:
        """Return (ε, δ) of the one with the smaller ε."""
        return min(self.few.parameters, self.everything.parameters)

    @property
    def slack(self) -> float:
        """Return the larger slack."""
        return max(self.few.slack, self.everything.slack)

    def rounding(self, epsilons: Array) -> Array:
        """See `pkdp_pipeline.theorems.bound.Bound`."""
        return np.maximum(self.few.rounding(epsilons), self.everything.rounding(epsilons))

    def bracket(self, epsilons: Array) -> tuple[Array, Array]:
        """Return (attained, certified) arrays; see `pkdp_pipeline.theorems.bound.Bound`."""
        certified = self.certified(epsilons)
        return np.minimum(self.few.bracket(epsilons)[0], certified), certified

    def certified(self, epsilons: Array) -> Array:
        """Return the certified side of `bracket` alone."""
        return np.minimum(self.few.certified(epsilons), self.everything.certified(epsilons))

    def smallest_epsilon(self, target: float) -> float:
        """Return an ε whose certified δ is at most `target`; `math.inf` when there is none."""
        return min(self.few.smallest_epsilon(target), self.everything.smallest_epsilon(target))


def _worst(values: list[tuple[float, int]], most: int) -> float:
    """Return the sum of the `most` largest values, of which each occurs so often; rounded up."""
    taken = []
    for value, times in sorted(values, reverse=True):
        taken.append((value, min(times, most)))
        most -= taken[-1][1]
    return sum_above([value for value, _ in taken], [times for _, times in taken])


@lru_cache(maxsize=64)
def _convolved(total: NoiseTotal) -> Bound:
    if total.parameters[0] > _WIDE:
        # So little noise hides nothing that a convolution could show.
        return _Nothing(theorem=total.theorem)
    if total.participation is None and total.changes is None:
        parts = tuple((directions((bound,), "presence"), times) for bound, times in total.parts)
        return Convolved(theorem=total.theorem, parts=parts)
    # Two lives differ in few releases, each at most as telling as the worst one.
    bounds = tuple(bound for bound, _ in total.parts)
    worst = bounds[0] if len(bounds) == 1 else WorstMaximum(theorem=total.theorem, parts=bounds)
    return Convolved(theorem=total.theorem, parts=((directions((worst,), "presence"), total.releases),))
