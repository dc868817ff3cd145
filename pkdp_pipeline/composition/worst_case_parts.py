"""Rule 6: guarantees against any attacker add up as ordinary differential privacy does."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import flint
import numpy as np

from pkdp_pipeline.composition.convolution import Convolved
from pkdp_pipeline.composition.loss_laws import directions
from pkdp_pipeline.composition.maximum import WorstMaximum
from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.model.arguments import probability, whole_number
from pkdp_pipeline.theorems import WorstCase
from pkdp_pipeline.theorems.rounding import Array, ball_above, evaluated, float_above

__all__ = ["NoiseTotal", "SmallerTotal", "advanced_sum", "basic_sum"]

_WIDE = 1e6
"""Totals of noise with larger ε are known by their sums only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseTotal:
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

    theorem: str
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
        epsilon = _worst([(pair[0], times) for pair, times in pairs], self.releases)
        delta = _worst([(pair[1], times) for pair, times in pairs], self.releases)
        return basic_sum([(value, 0.0) for value, _ in epsilon], [times for _, times in epsilon])[0], basic_sum(
            [(0.0, value) for value, _ in delta], [times for _, times in delta]
        )[1]

    @property
    def slack(self) -> float:
        """Return 0: the sums and the convolution are computed, not searched for."""
        return 0.0

    def rounding(self, epsilons: Array) -> Array:
        """See `pkdp_pipeline.theorems.bound.Bound`."""
        return evaluated(epsilons) if self.parameters[0] > _WIDE else _convolved(self).rounding(epsilons)

    def bracket(self, epsilons: Array) -> tuple[Array, Array]:
        """Return (attained, certified) arrays; see `pkdp_pipeline.theorems.bound.Bound`."""
        epsilon, delta = self.parameters
        if epsilon > _WIDE:
            # So little noise hides nothing that a convolution could show.
            return np.zeros(len(epsilons)), np.where(epsilons >= epsilon, delta, 1.0)
        attained, certified = _convolved(self).bracket(epsilons)
        return attained, np.where(epsilons >= epsilon, np.minimum(certified, delta), certified)

    def certified(self, epsilons: Array) -> Array:
        """Return the certified side of `bracket` alone."""
        epsilon, delta = self.parameters
        if epsilon > _WIDE:
            return self.bracket(epsilons)[1]
        values = _convolved(self).certified(epsilons)
        return np.where(epsilons >= epsilon, np.minimum(values, delta), values)

    def smallest_epsilon(self, target: float) -> float:
        """Return an ε whose certified δ is at most `target`; `math.inf` when there is none."""
        epsilon, delta = self.parameters
        if epsilon > _WIDE:
            return 0.0 if target >= 1.0 else epsilon if delta <= target else math.inf
        found = _convolved(self).smallest_epsilon(target)
        return min(found, epsilon) if delta <= target else found


@dataclass(frozen=True, slots=True, kw_only=True)
class SmallerTotal:
    """The smaller of two profiles that both hold: of the few releases that differ, and of all of them.

    What differs is sometimes replaced by something larger, such as the largest of all. *Guarantee*: never below the
    divergence of the whole. *Rounding*: none of its own. *Source*: `docs/composition.md`, rules 6, 8 and 9.
    """

    theorem: str
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


def _worst(values: list[tuple[float, int]], most: int) -> list[tuple[float, int]]:
    """Return the `most` largest values, with how often each is taken."""
    taken = []
    for value, times in sorted(values, reverse=True):
        if most <= 0:
            break
        taken.append((value, min(times, most)))
        most -= times
    return taken


@lru_cache(maxsize=64)
def _convolved(total: NoiseTotal) -> Convolved:
    if total.participation is None and total.changes is None:
        parts = tuple((directions((bound,), "presence"), times) for bound, times in total.parts)
        return Convolved(theorem=total.theorem, parts=parts)
    # Two lives differ in few releases, each at most as telling as the worst one.
    bounds = tuple(bound for bound, _ in total.parts)
    worst = bounds[0] if len(bounds) == 1 else WorstMaximum(theorem=total.theorem, parts=bounds)
    return Convolved(theorem=total.theorem, parts=((directions((worst,), "presence"), total.releases),))


def advanced_sum(epsilon: float, delta: float, times: int, slack: float) -> tuple[float, float]:
    """Add up `times` equal (ε, δ) guarantees by advanced composition, for parts known by these numbers only.

    Parameters
    ----------
    epsilon, delta : float
        Of each part; ε at least 0 and finite, δ in [0, 1].
    times : int
        At least 1.
    slack : float
        δ′, the extra δ, in (0, 1].

    Returns
    -------
    epsilon, delta : float
        ``ε √(2 k ln(1/δ′)) + k ε (e^ε - 1)`` and ``k δ + δ′``.

    Raises
    ------
    ArgumentError
        If a number is out of range.

    Notes
    -----
    A print of the formula that is in circulation has e^{ε-1} in place of ``e^ε - 1``. Above ε = 0.46 that is smaller
    than what the textbook proves; it is not below the truth, since ``(e^ε - 1)/(e^ε + 1)`` is enough. *Guarantee*: all
    parts together are (ε, δ)-differentially private, also when later ones are chosen after seeing earlier ones.
    *Rounding*: up. *Source*: `docs/composition.md`, rule 6; Dwork and Roth, "The Algorithmic Foundations of
    Differential Privacy", Theorem 3.20.
    """
    probability("delta", delta)
    often = whole_number("times", times, least=1)
    if isinstance(epsilon, bool) or not isinstance(epsilon, int | float) or not 0.0 <= epsilon < math.inf:
        raise ArgumentError("epsilon must be a number, at least 0 and finite.")
    if probability("slack", slack) == 0.0:
        raise ArgumentError("slack must be above 0: it is the δ that advanced composition pays; write 1e-9.")
    with flint.ctx.workprec(128):
        one = flint.arb(epsilon)
        total = one * (2 * often * -flint.arb(slack).log()).sqrt() + often * one * one.expm1()
        return ball_above(total), min(1.0, ball_above(often * flint.arb(delta) + flint.arb(slack)))


def basic_sum(parts: Iterable[tuple[float, float]], times: Iterable[int] | None = None) -> tuple[float, float]:
    """Add up worst-case (ε, δ) guarantees: basic composition of differential privacy.

    Parameters
    ----------
    parts : iterable of (float, float)
        One (ε, δ) for each release, ε ≥ 0 (``inf`` allowed) and δ in [0, 1]. Each must hold against any
        attacker, with fresh randomness in every release; partial-knowledge guarantees do not add up so.
    times : iterable of int, optional
        How often each part occurs; once where it is left out.

    Returns
    -------
    epsilon, delta : float
        ``(0.0, 0.0)`` for no parts.

    Raises
    ------
    ArgumentError
        If a part is not such a pair.

    Notes
    -----
    *Guarantee.* All parts together are (ε, δ)-differentially private against every attacker, also when
    later releases are chosen after seeing earlier ones.

    *Rounding.* Both sums are computed exactly and rounded up to the next float; δ is capped at 1, where it
    says nothing.

    `docs/mathematics.md`, section "Composition over a schedule", rule 6; Dwork and Roth, "The Algorithmic
    Foundations of Differential Privacy", Theorem 3.16.
    """
    listed = list(parts)
    often = [1] * len(listed) if times is None else [whole_number("times", number, least=1) for number in times]
    if len(often) != len(listed):
        raise ArgumentError("times must have one number for each part.")
    epsilons: list[float] = []
    deltas: list[float] = []
    for part in listed:
        if not isinstance(part, tuple) or len(part) != 2:
            raise ArgumentError("every part must be a pair (epsilon, delta).")
        epsilon, delta = part
        if isinstance(epsilon, bool) or not isinstance(epsilon, (int, float)) or not epsilon >= 0:
            raise ArgumentError(f"epsilon of a part must be a number of at least 0, got {epsilon!r}.")
        epsilons.append(float(epsilon))
        deltas.append(probability("delta of a part", delta))
    return _sum_up(epsilons, often), min(1.0, _sum_up(deltas, often))


def _sum_up(numbers: list[float], often: list[int]) -> float:
    """Return the smallest float that is at least the exact sum."""
    if math.inf in numbers:
        return math.inf
    exact = sum((Fraction(number) * n for number, n in zip(numbers, often, strict=True)), Fraction(0))
    return float_above(exact)
