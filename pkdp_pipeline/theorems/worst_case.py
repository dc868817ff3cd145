"""What noise promises against any attacker, whatever the attacker knows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import flint
import numpy as np

from pkdp_pipeline.theorems.bound import WorstCase
from pkdp_pipeline.theorems.rounding import Array, ball_above, ball_below

SAMPLER_LEEWAY = 2.0**-50
"""The noise drawn has an ε0 at most this much, relatively, below the declared one, and never above it.

A sampler whose scale is a float cannot hit every ε0. Wider noise is harmless where nothing is suppressed before
it, being the declared noise with more added; but it lifts a count that has just reached k above the release
threshold a little more often.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseCurve(WorstCase):
    """Privacy profile of two-sided geometric noise against an attacker who knows everybody else.

    Parameters
    ----------
    theorem : str
        Which statement uses the profile.
    noise : float
        ε0, the parameter of the noise: one person changes a cell by 1.
    cells : int
        1 where one count changes (presence), 2 where two cells do (value).
    appears_at : int, optional
        ``release_threshold - k`` where counts below `k` are suppressed before the noise; None where nothing
        is suppressed before the noise.

    Notes
    -----
    With ``α = e^{-ε0}`` the loss of one noisy cell is ±ε0, so its profile is ``(1 - αe^ε)/(1 + α)``, and that of
    two is ``(1 - α²e^ε)/(1 + α)²``. A count that has just reached `k` appears with probability
    ``δ0 = P[k + Z ≥ release_threshold]`` where none could appear before; the other cell of a value change can
    then still lose ε0. The curve is the largest of all neighbouring pairs; it is `(cells·ε0, δ0)` at
    ``ε = cells·ε0`` and beyond.

    *Guarantee*: never below the divergence of any pair of neighbouring inputs, for every ε0 within
    `SAMPLER_LEEWAY` of the declared one; attained. *Rounding*: outward, about one part in 1e15 for each step
    between k and the release threshold. *Source*: `docs/mathematics.md`, "Two-sided geometric noise"; Definition 19 of
    Desfontaines et al.
    """

    noise: float
    cells: int
    appears_at: int | None = None

    @property
    def parameters(self) -> tuple[float, float]:
        """Return (ε, δ) at which the guarantee holds for any attacker, both rounded up."""
        return self.cells * self.noise, self._appearing()[1]

    def bracket(self, epsilons: Array) -> tuple[Array, Array]:
        """Return (attained, certified) arrays; see `pkdp_pipeline.theorems.bound.Bound`."""
        sides = [self._at(epsilon) for epsilon in epsilons.tolist()]
        return np.array([side[0] for side in sides]), np.minimum(np.array([side[1] for side in sides]), 1.0)

    def _appearing(self) -> tuple[float, float]:
        with flint.ctx.workprec(128):
            ball = self._appearance()
            if ball is None:
                return 0.0, 0.0
            return max(0.0, ball_below(ball)), min(1.0, ball_above(ball))

    def _appearance(self) -> Any | None:
        """Return the ball of ``δ0 = P[k + Z ≥ r]``, or None where nothing is suppressed before the noise."""
        if self.appears_at is None:
            return None
        drawn = self._drawn()
        if self.appears_at >= 0:
            return (-drawn * self.appears_at).exp() / (1 + (-drawn).exp())
        return 1 - (-drawn * (1 - self.appears_at)).exp() / (1 + (-drawn).exp())

    def _drawn(self) -> Any:
        """Return a ball around every ε0 that the sampler may have."""
        declared = flint.arb(self.noise)
        return declared.union(declared * (1 - flint.arb(SAMPLER_LEEWAY)))

    def _at(self, epsilon: float) -> tuple[float, float]:
        # Beyond cells · ε0 the curve is flat.
        epsilon = min(epsilon, self.cells * self.noise)
        with flint.ctx.workprec(128):
            one = flint.arb(1)
            # Without suppression the declared ε0 is the worst that is drawn, so its end point stays exact.
            alpha = (-flint.arb(self.noise)).exp()
            growth = flint.arb(epsilon).exp()
            appears = self._appearance()
            stays = one if appears is None else one - appears
            # One noisy cell; exp(ε - ε0) keeps its digits where the difference is small.
            single = -(flint.arb(epsilon) - self.noise).expm1() / (1 + alpha)
            losses = [single]
            if self.cells == 2:
                losses = [-(flint.arb(epsilon) - 2 * flint.arb(self.noise)).expm1() / (1 + alpha) ** 2]
            if appears is not None:
                losses.append(appears)
                if self.cells == 2:
                    alpha = (-self._drawn()).exp()
                    losses.append(single)
                    losses.append(appears + _positive(stays - alpha * growth) / (1 + alpha))
                    mirrored = _positive(one - alpha * growth * stays) + _positive(alpha - growth * stays)
                    losses.append(mirrored / (1 + alpha))
            lower = max(0.0, *(ball_below(loss) for loss in losses))
            upper = max(0.0, *(ball_above(loss) if not loss <= 0 else 0.0 for loss in losses))
        return lower, upper


def _positive(ball: Any) -> Any:
    """Return the ball of ``max(0, x)``."""
    return ball.nonnegative_part() if not ball >= 0 else ball
