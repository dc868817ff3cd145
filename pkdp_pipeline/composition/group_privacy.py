"""Group privacy: from one step between two lives to several."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import flint
import numpy as np

from pkdp_pipeline.theorems.bound import Derived, Guarantee
from pkdp_pipeline.theorems.rounding import Array, ball_above

__all__ = ["GroupPrivacy"]

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
        upper = Guarantee((self.one,)).delta(single)
        grown = np.array(
            [
                min(1.0, value * self._factor(step)) if value > 0.0 else 0.0
                for step, value in zip(single.tolist(), upper.tolist(), strict=True)
            ]
        )
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
