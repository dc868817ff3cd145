"""f-divergences: any convex function of the likelihood ratio, averaged, in ball arithmetic."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import flint

from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.model.arguments import positive_real
from pkdp_pipeline.theorems.rounding import ball_above, float_above
from pkdp_pipeline.theory.numbers import read_epsilon, read_number
from pkdp_pipeline.theory.privacy_loss.side import LossSide

_BITS = 256
_ATOMS = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvexFunction:
    """A convex function f with ``f(1) = 0``, and so the divergence ``Σ Q f(P/Q)``.

    Parameters
    ----------
    name : str
        In words.
    value : callable
        f on ``python-flint`` balls above 0: it returns a ball that holds f of every point of the one given. Plain
        arithmetic and the methods of a ball, such as ``t.log()``, do that.
    at_zero : float
        At or above the limit of f at 0, what outcomes cost that P excludes; `math.inf` where there is none.
    growth : float
        At or above the limit of ``f(t)/t`` as t grows, what outcomes cost that Q excludes; `math.inf` where there is
        none.
    slope : float, default 0.0
        A slope of f at 1: ``f(t) ≥ slope·(t - 1)`` for all t. Adding a multiple of ``t - 1`` to f changes no
        divergence, so it can always be made 0, and then it is exact.

    Notes
    -----
    That f is convex is for whoever writes it to know. A value below its own tangent at 1 is refused when it is seen.
    """

    name: str
    value: Callable[[Any], Any] = field(repr=False)
    at_zero: float
    growth: float
    slope: float = 0.0

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not callable(self.value):
            raise ArgumentError("a ConvexFunction has a name in words and a value that can be called with a ball.")
        for name in ("at_zero", "growth"):
            read_epsilon(f"{name} of a ConvexFunction", getattr(self, name), -math.inf)
        read_number("slope of a ConvexFunction", self.slope, -math.inf)
        if self.at_zero + self.slope < 0.0 or self.growth - self.slope < 0.0:
            raise ArgumentError(
                "at_zero and growth of a ConvexFunction must not lie below its tangent at 1: at_zero is at least "
                "-slope, growth at least slope."
            )
        with flint.ctx.workprec(_BITS):
            if not self.value(flint.arb(1)).contains(0):
                raise ArgumentError("a ConvexFunction must be 0 at 1.")


def divergence_above(first: LossSide, second: LossSide, function: ConvexFunction) -> float:
    """Return at or above ``Σ Q f(P/Q)``, which may be `math.inf`.

    Notes
    -----
    With ``g(t) = f(t) - slope·(t - 1)``, which is nowhere below 0, a loss x > 0 of P-mass w adds ``w e^{-x} g(e^x)``,
    a loss y > 0 of Q against P with the Q-mass v adds ``v g(e^{-y})``. *Guarantee*: never below the divergence of any
    pair whose profiles are nowhere above those of the two sides. *Rounding*: up, in balls.
    """
    first, second = first.shorter(_ATOMS), second.shorter(_ATOMS)
    with flint.ctx.workprec(_BITS):
        total = flint.arb(0)
        for loss, log_mass in zip(first.losses.tolist(), first.log_masses.tolist(), strict=True):
            ratio = flint.arb(loss).exp()
            total += (flint.arb(log_mass) - loss).exp() * _above_tangent(function, ratio)
        for loss, log_mass in zip(second.losses.tolist(), second.log_masses.tolist(), strict=True):
            total += flint.arb(log_mass).exp() * _above_tangent(function, (-flint.arb(loss)).exp())
        for mass, limit in (
            (first.infinite, flint.arb(function.growth) - function.slope),
            (second.infinite, flint.arb(function.at_zero) + function.slope),
        ):
            if mass > 0.0:
                total += flint.arb(mass) * limit
        if total == 0:
            return 0.0
        found = ball_above(total) if total.is_finite() else math.inf
    # What laws that exclude each other cost.
    ends = (function.at_zero, function.growth)
    return found if math.inf in ends else min(found, float_above(sum(map(Fraction, ends), Fraction(0))))


def _above_tangent(function: ConvexFunction, ratio: Any) -> Any:
    value = function.value(ratio) - function.slope * (ratio - 1)
    if value < 0:
        raise ArgumentError(
            f"{function.name}: the function is not convex, or its slope at 1 is not the one given: it lies below its "
            "tangent at 1."
        )
    return value.nonnegative_part() if value.is_finite() else value


def alpha_divergence(alpha: float) -> ConvexFunction:
    """Return ``(t^α - 1 - α (t - 1))/(α (α - 1))`` for an α above 0 other than 1; α = 2 is half of χ².

    For α > 1 the Rényi divergence is ``log(1 + α (α - 1) D)/(α - 1)``.
    """
    power = positive_real("alpha", alpha)
    if power == 1.0:
        raise ArgumentError("alpha must not be 1: KULLBACK_LEIBLER is the limit there.")

    def value(ratio: Any) -> Any:
        exact = flint.arb(power)
        return (ratio**exact - 1 - exact * (ratio - 1)) / (exact * (exact - 1))

    # f(0) = 1/α; f(t)/t grows without bound for α > 1 and to 1/(1 - α) for α < 1.
    with flint.ctx.workprec(_BITS):
        at_zero = ball_above(1 / flint.arb(power))
        growth = ball_above(1 / (1 - flint.arb(power))) if power < 1.0 else math.inf
    return ConvexFunction(name=f"α-divergence, α = {power!r}", value=value, at_zero=at_zero, growth=growth)


def _squared(ball: Any) -> Any:
    return ball * ball


def _jensen_shannon(ratio: Any) -> Any:
    return (ratio * ratio.log() - (1 + ratio) * ((1 + ratio) / 2).log()) / 2


_HALF_LOG_TWO = math.nextafter(0.5 * math.log(2.0), math.inf)

KULLBACK_LEIBLER = ConvexFunction(
    name="Kullback–Leibler", value=lambda ratio: ratio * ratio.log() - ratio + 1, at_zero=1.0, growth=math.inf
)
"""``t log t``, in nats."""

TOTAL_VARIATION = ConvexFunction(
    name="total variation", value=lambda ratio: abs(ratio - 1) / 2, at_zero=0.5, growth=0.5
)
"""``|t - 1|/2``: the largest difference in the probability of any event."""

CHI_SQUARED = ConvexFunction(name="χ²", value=lambda ratio: _squared(ratio - 1), at_zero=1.0, growth=math.inf)
"""``(t - 1)²``."""

HELLINGER = ConvexFunction(
    name="squared Hellinger", value=lambda ratio: _squared(ratio.sqrt() - 1) / 2, at_zero=0.5, growth=0.5
)
"""``(√t - 1)²/2``: the squared Hellinger distance, at most 1."""

JENSEN_SHANNON = ConvexFunction(
    name="Jensen–Shannon", value=_jensen_shannon, at_zero=_HALF_LOG_TWO, growth=_HALF_LOG_TWO
)
"""Half the sum of the Kullback–Leibler divergences from the mean of the two laws, in nats, at most log 2."""
