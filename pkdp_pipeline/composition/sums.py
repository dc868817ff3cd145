"""The largest of several profiles, what noise promises in several releases, and chains of changes."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeVar

import flint
import numpy as np

from pkdp_pipeline.composition.convolution import Convolved
from pkdp_pipeline.composition.loss_laws import directions
from pkdp_pipeline.theorems import Applied, Bound, WorstCase
from pkdp_pipeline.theorems.bound import Derived, Guarantee, Largest
from pkdp_pipeline.theorems.rounding import Array, ball_above, sum_above

_Part = TypeVar("_Part")

_MAX_CONVOLVED_EPSILON = 1e6
"""Totals of noise with larger ε are known by their sums only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Smallest(Bound):
    """The pointwise smallest of the bounds that hold for one part. *Guarantee*, *Rounding*: theirs; 0 is attained."""

    bounds: tuple[Bound, ...]

    @property
    def slack(self) -> float:
        """See `pkdp_pipeline.theorems.bound.Bound`."""
        return max((bound.slack for bound in self.bounds), default=0.0)

    def rounding(self, epsilons: Array) -> Array:
        """See `pkdp_pipeline.theorems.bound.Bound`."""
        return np.tile(Guarantee(self.bounds).rounding(epsilons), (2, 1))

    def bracket(self, epsilons: Array) -> tuple[Array, Array]:
        """Return (attained, certified) arrays; see `pkdp_pipeline.theorems.bound.Bound`."""
        return np.zeros(len(epsilons)), Guarantee(self.bounds).delta(epsilons)

    def smallest_epsilon(self, target: float) -> float:
        """See `pkdp_pipeline.theorems.bound.Bound`."""
        return Guarantee(self.bounds).epsilon(target)


def maximum(theorem: str, parts: Iterable[tuple[Bound, ...]]) -> Largest:
    """Return the pointwise largest of what holds for each of several parts."""
    several = tuple(Smallest(theorem=theorem, bounds=bounds) for bounds in dict.fromkeys(parts))
    return Largest(theorem=theorem, parts=several)


@dataclass(frozen=True, slots=True, kw_only=True)
class WorstMaximum(Largest, WorstCase):
    """The pointwise largest of several worst-case guarantees."""

    parts: tuple[WorstCase, ...]

    @property
    def parameters(self) -> tuple[float, float]:
        """Return the largest ε and the largest δ of the parts."""
        pairs = [part.parameters for part in self.parts]
        return max((pair[0] for pair in pairs), default=0.0), max((pair[1] for pair in pairs), default=0.0)


def best_attack(theorem: str, applied: Iterable[Applied]) -> Bound | None:
    """Return what the best of the attacks known on single parts attains, each an attack on the whole; None for none."""
    attacks = tuple(dict.fromkeys(entry.attack for entry in applied if entry.attack is not None))
    return Largest(theorem=theorem, parts=attacks) if attacks else None


@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseTotal(WorstCase):
    """Worst-case guarantees of several releases about the same people.

    Parameters
    ----------
    parts : tuple of (WorstCase, int)
        Different parts and how often each occurs.
    differing : int, optional
        Two lives differ in at most this many of them. Where that is so because nobody takes part in more than half as
        many, each part is all that is published about one period.

    Notes
    -----
    Two statements are combined. The sums of all ε and all δ hold however the releases were chosen, later ones
    after seeing earlier ones. The convolution of the losses is smaller; it holds when the parameters of the
    releases were fixed beforehand.

    *Guarantee*: never below the divergence of the whole. *Rounding*: up. *Source*: `docs/composition.md`, rule 6.
    """

    parts: tuple[tuple[WorstCase, int], ...]
    differing: int | None = None

    @property
    def releases(self) -> int:
        """How many releases can differ between two lives."""
        everything = sum(times for _, times in self.parts)
        return everything if self.differing is None else min(self.differing, everything)

    @property
    def parameters(self) -> tuple[float, float]:
        """Return the sum of the ε and of the δ of the worst releases, both rounded up."""
        pairs = [(bound.parameters, times) for bound, times in self.parts]
        epsilon, delta = (_worst([(pair[index], times) for pair, times in pairs], self.releases) for index in (0, 1))
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
        smallest = _convolved(self).smallest_epsilon(target)
        return min(smallest, epsilon) if delta <= target else smallest

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

    Releases that differ are sometimes replaced by larger ones, such as the largest of all. *Guarantee*: never below the
    divergence of the whole. *Rounding*: none of its own. *Source*: `docs/composition.md`, rules 6, 8 and 9.
    """

    few: WorstCase
    everything: NoiseTotal

    @property
    def parameters(self) -> tuple[float, float]:
        """Return (ε, δ) of the one with the smaller ε."""
        return min(self.few.parameters, self.everything.parameters)

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
    taken = first_of(sorted(values, reverse=True), most)
    return sum_above([value for value, _ in taken], [times for _, times in taken])


def first_of(listed: Iterable[tuple[_Part, int]], most: int) -> list[tuple[_Part, int]]:
    """Return the first `most` of things that occur so often each, with how often each is taken."""
    taken = []
    for item, times in listed:
        taken.append((item, min(times, most)))
        most -= taken[-1][1]
    return [part for part in taken if part[1]]


@lru_cache(maxsize=64)
def _convolved(total: NoiseTotal) -> Bound:
    if total.parameters[0] > _MAX_CONVOLVED_EPSILON:
        # So little noise hides nothing that a convolution could show.
        return _Nothing(theorem=total.theorem)
    if len(total.parts) == 1 and total.releases == 1:
        return total.parts[0][0]
    if total.differing is None:
        parts = tuple((directions((bound,), "presence"), times) for bound, times in total.parts)
        return Convolved(theorem=total.theorem, parts=parts)
    # Two lives differ in few releases, each at most as telling as the worst one.
    bounds = tuple(bound for bound, _ in total.parts)
    worst = bounds[0] if len(bounds) == 1 else WorstMaximum(theorem=total.theorem, parts=bounds)
    return Convolved(theorem=total.theorem, parts=((directions((worst,), "presence"), total.releases),))


_STEP_GRID = np.concatenate([[0.0], np.geomspace(1e-3, 512.0, 200)])
"""Steps that are looked at below the one asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupPrivacy(Derived):
    """The profile of lives that are `steps` single changes apart.

    Notes
    -----
    Steps of (ε, δ) each give ``(s ε, δ (e^{s ε} - 1)/(e^ε - 1))`` along a chain of s lives. *Guarantee*: never below
    the divergence of two lives whose chain consists of possible lives. *Rounding*: up. *Source*:
    `docs/composition.md`, rule 3.
    """

    steps: int

    def rounding(self, epsilons: Array) -> Array:
        """See `pkdp_pipeline.theorems.bound.Bound`."""
        return self.base.rounding(epsilons / self.steps)

    def bracket(self, epsilons: Array) -> tuple[Array, Array]:
        """Return (attained, certified) arrays; see `pkdp_pipeline.theorems.bound.Bound`."""
        # A smaller ε in each step is safe, so the division rounds down, and so are all smaller steps: the factor
        # grows with the step, and the smallest value may lie before the end.
        single = epsilons if self.steps == 1 else np.nextafter(epsilons / self.steps, -np.inf).clip(0.0)
        least = np.minimum.accumulate(_on_steps(self))
        before = np.searchsorted(_STEP_GRID, single, side="right") - 1
        return np.zeros(len(epsilons)), np.minimum(self.at_steps(single), least[before])

    def at_steps(self, single: Array) -> Array:
        """Return δ of the whole chain when every step has these ε, rounded up."""
        pairs = zip(single.tolist(), Guarantee((self.base,)).delta(single).tolist(), strict=True)
        grown = np.array([min(1.0, value * self._factor(step)) if value > 0.0 else 0.0 for step, value in pairs])
        certified: Array = np.minimum(1.0, np.nextafter(grown, np.inf) * (grown > 0.0))
        return certified

    def _factor(self, epsilon: float) -> float:
        """Return ``Σ_{i<s} e^{iε}``, rounded up."""
        if epsilon == 0.0:
            return float(self.steps)
        if self.steps * epsilon > 690.0:
            return math.inf
        with flint.ctx.workprec(128):
            step = flint.arb(epsilon)
            return ball_above((self.steps * step).expm1() / step.expm1())


@lru_cache(maxsize=256)
def _on_steps(bound: GroupPrivacy) -> Array:
    return bound.at_steps(_STEP_GRID)
