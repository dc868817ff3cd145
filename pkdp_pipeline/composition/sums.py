"""Profiles of several releases together, or of lives several changes apart, added up: rules 3, 4 and 6."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TypeVar

import flint
import numpy as np

from pkdp_pipeline.composition.convolution import Convolved
from pkdp_pipeline.composition.loss_laws import directions
from pkdp_pipeline.composition.maximum import WorstMaximum
from pkdp_pipeline.theorems import Bound, WorstCase
from pkdp_pipeline.theorems.bound import Derived, Guarantee
from pkdp_pipeline.theorems.rounding import EVALUATED, Array, ball_above, float_below, sum_above

_Part = TypeVar("_Part")

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
    for one, times in listed:
        taken.append((one, min(times, most)))
        most -= taken[-1][1]
    return [part for part in taken if part[1]]


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
        shares = zip(self.parts, self._split(epsilon), strict=False)
        deltas = [float(Guarantee(bounds).delta(share)) for (bounds, _), share in shares]
        return self._delta(deltas) if deltas else 1.0

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


_STEPS = np.concatenate([[0.0], np.geomspace(1e-3, 512.0, 200)])
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
        return self.one.rounding(epsilons / self.steps)

    def bracket(self, epsilons: Array) -> tuple[Array, Array]:
        """Return (attained, certified) arrays; see `pkdp_pipeline.theorems.bound.Bound`."""
        # A smaller ε in each step is safe, so the division rounds down, and so are all smaller steps: the factor
        # grows with the step, and the smallest value may lie before the end.
        single = epsilons if self.steps == 1 else np.nextafter(epsilons / self.steps, -np.inf).clip(0.0)
        least = np.minimum.accumulate(_on_steps(self))
        before = np.searchsorted(_STEPS, single, side="right") - 1
        return np.zeros(len(epsilons)), np.minimum(self.at_steps(single), least[before])

    def at_steps(self, single: Array) -> Array:
        """Return δ of the whole chain when every step has these ε, rounded up."""
        pairs = zip(single.tolist(), Guarantee((self.one,)).delta(single).tolist(), strict=True)
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
            one = flint.arb(epsilon)
            return ball_above((self.steps * one).expm1() / one.expm1())


@lru_cache(maxsize=256)
def _on_steps(bound: GroupPrivacy) -> Array:
    return bound.at_steps(_STEPS)
