"""Group privacy: from one step between two lives to several."""

from __future__ import annotations

import math
from dataclasses import dataclass

import flint
import numpy as np

from pkdp_pipeline.profiles import Bound
from pkdp_pipeline.profiles.rounding import Array, ball_above

__all__ = ["GroupPrivacy"]


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupPrivacy:
    """The profile of lives that are `steps` single changes apart.

    Notes
    -----
    Steps of (ε, δ) each give ``(s ε, δ (e^{s ε} - 1)/(e^ε - 1))`` along a chain of s lives. *Guarantee*: never below
    the divergence of two lives whose chain consists of possible lives. *Rounding*: up. *Source*:
    `docs/composition.md`, rule 3.
    """

    theorem: str
    one: Bound
    steps: int

    @property
    def slack(self) -> float:
        """Return the slack of one step."""
        return self.one.slack

    def bracket(self, epsilons: Array) -> tuple[Array, Array]:
        """Return (attained, certified) arrays; see `pkdp_pipeline.profiles.bound.Bound`."""
        # A smaller ε in each step is safe, so the division rounds down.
        single = epsilons if self.steps == 1 else np.nextafter(epsilons / self.steps, -np.inf).clip(0.0)
        _, upper = self.one.bracket(single)
        grown = [
            min(1.0, value * self._factor(step)) if value > 0.0 else 0.0
            for step, value in zip(single.tolist(), upper.tolist(), strict=True)
        ]
        certified = np.nextafter(np.array(grown), np.inf) * (np.array(grown) > 0.0)
        return np.zeros(len(epsilons)), np.minimum(1.0, certified)

    def _factor(self, epsilon: float) -> float:
        """Return ``Σ_{i<s} e^{iε}``, rounded up."""
        if epsilon == 0.0:
            return float(self.steps)
        if self.steps * epsilon > 690.0:
            return math.inf
        with flint.ctx.workprec(128):
            one = flint.arb(epsilon)
            return ball_above((self.steps * one).expm1() / one.expm1())
