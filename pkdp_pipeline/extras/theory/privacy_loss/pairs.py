"""The pair of distributions that dominates what a certificate speaks of, and its f-divergences, in ball arithmetic."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from numbers import Rational
from typing import Any

import flint
import numpy as np

from pkdp_pipeline.certificates.certificate import Certificate
from pkdp_pipeline.composition.convolution import Convolved
from pkdp_pipeline.composition.loss_laws import directions, on_grid
from pkdp_pipeline.composition.part import NoiseTotal, WorstMaximum, first_of
from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.extras.theory.privacy_loss.side import (
    LossSide,
    ball_of,
    read_epsilon,
    read_law,
    read_number,
    thinned,
)
from pkdp_pipeline.model.mechanisms import Protects
from pkdp_pipeline.model.wording import positive_real
from pkdp_pipeline.theorems.bound import Bound, Losses, NoiseLosses, PairLosses, WorstCase
from pkdp_pipeline.theorems.hull import ProfileLosses
from pkdp_pipeline.theorems.numerics import UNIT, Array, ball_above, float_above
from pkdp_pipeline.theorems.worst_case import NoiseCurve

_RELATIVE_STEP = 0.01
"""Cells of a grid, in standard deviations of the loss; it widens the loss by a few millionths."""

_MIN_STEP = 1e-9


def certified_sides(certificate: Certificate) -> tuple[LossSide, LossSide]:
    """Return the losses above 0, in either order, of a pair that dominates what the certificate is about.

    Notes
    -----
    Theorem A's waiting times, noise and products of noise are known as pairs; theorem B's product and the envelope of
    theorem C are taken on a fine grid. For everything else the pair is the one, its own mirror image, whose profile
    is the convex hull of the certified δ(ε). *Guarantee*: for every attacker the certificate speaks of, the profile
    of the first order of the two lives is nowhere above one side's, that of the second order nowhere above the
    other's. *Rounding*: up.
    """
    worst = certificate.worst_case_bound
    partial = tuple(applied.bound for applied in certificate.partial_bounds)
    return _sides((*partial, *(() if worst is None else (worst,))), certificate.protects)


@lru_cache(maxsize=16)
def _sides(bounds: tuple[Bound, ...], protects: Protects) -> tuple[LossSide, LossSide]:
    law = directions(bounds, protects)
    first = _side(law.right)
    second = first if law.left is None else _side(law.left)
    ends = [bound.parameters[0] for bound in bounds if isinstance(bound, WorstCase) and bound.parameters[1] == 0.0]
    if not ends:
        return first, second
    return first.ending_at(min(ends)), second.ending_at(min(ends))


def _side(law: Losses) -> LossSide:
    if isinstance(law, NoiseLosses):
        return noise_side([(law.noise, law.cells)])
    counts = _noisy_counts(law.bounds[0]) if isinstance(law, ProfileLosses) and len(law.bounds) == 1 else None
    if counts is not None and sum(times for _, times in counts) <= MAX_COUNTS:
        return noise_side(counts)
    if isinstance(law, ProfileLosses) or (isinstance(law, PairLosses) and law.known == 0):
        return LossSide.of_masses(*law.atoms())
    step = max(_MIN_STEP, _RELATIVE_STEP * law.spread())
    grid = on_grid(law, step)
    cells = np.arange(max(1, grid.start), grid.last + 1, dtype=np.float64)
    masses = grid.masses[max(1, grid.start) - grid.start :]
    return LossSide.of_masses(np.nextafter(cells * step, np.inf), masses, grid.infinite)


def _noisy_counts(bound: Bound) -> list[tuple[float, int]] | None:
    """Return the ε0 of independent noisy counts, and how many have it, where a bound is about just these."""
    parts: list[tuple[Bound | Losses, int]] = []
    if isinstance(bound, Convolved) and bound.participation is None:
        parts = [(law, times) for part, times in bound.parts for law in part.orders]
    elif isinstance(bound, WorstMaximum):
        parts = [(part, 1) for part in bound.parts]
    elif isinstance(bound, NoiseTotal):
        parts = list(bound.parts)
    every = sum(times for _, times in parts)
    most = 1 if isinstance(bound, WorstMaximum) else bound.releases if isinstance(bound, NoiseTotal) else every
    # Noise with nothing suppressed before it.
    noisy = [
        (part.noise, part.cells if isinstance(part, NoiseLosses) else part.units, times)
        for part, times in parts
        if isinstance(part, NoiseLosses) or (isinstance(part, NoiseCurve) and part.appears_at is None)
    ]
    if not noisy or len(noisy) < len(parts) or (most < every and len({cells for _, cells, _ in noisy}) > 1):
        return None
    # Of equally many cells, those with the least noise tell the most.
    leading = first_of(
        (((noise, cells), times) for noise, cells, times in sorted(noisy, key=lambda entry: -entry[0])), most
    )
    return [(noise, cells * taken) for (noise, cells), taken in leading]


MAX_COUNTS = 20_000
"""More counts than this are not multiplied out."""

_MAX_ATOMS = 4096
_BITS = 256

_MAX_PRODUCTS = 2_000_000
"""This many sums of two losses are looked at, at once."""


def noise_side(parts: Sequence[tuple[float, int]]) -> LossSide:
    """Return the losses above 0 of independent counts with two-sided geometric noise, which all differ by 1.

    `parts`: ε0 and how many counts have it; at most `MAX_COUNTS` in all.

    Notes
    -----
    The loss of one count is ε0 with probability ``1/(1 + e^{-ε0})`` and -ε0 otherwise, so that of n is ``(2j - n)
    ε0`` with binomial weights. Masses are kept as logarithms: none is lost, however small. The pair is its own mirror
    image. *Guarantee*: the profile is nowhere below that of the product. *Rounding*: up; products of several ε0 with
    more than `_MAX_ATOMS` losses have neighbours put together, see `LossSide.shorter`, and so have two factors with
    more than `_MAX_PRODUCTS` sums of losses.
    """
    often: dict[float, int] = {}
    for epsilon, times in parts:
        often[epsilon] = often.get(epsilon, 0) + times
    losses, logs = np.zeros(1), np.zeros(1)
    end = Fraction(0)
    for epsilon, times in sorted(often.items()):
        more, weights = _repeated(epsilon, times)
        end += times * Fraction(epsilon)
        if len(losses) == 1:
            losses, logs = more, weights
            continue
        if len(losses) * len(more) > _MAX_PRODUCTS:
            losses, logs = thinned(losses, logs, max(math.isqrt(_MAX_PRODUCTS), _MAX_PRODUCTS // len(more)))
            more, weights = thinned(more, weights, _MAX_PRODUCTS // len(losses))
        slack = 4.0 * UNIT * float(np.abs(losses).max() + np.abs(more).max())
        # Rounding lifts no loss above the largest one.
        losses = np.minimum((losses[:, None] + more[None, :]).ravel() + slack, float_above(end))
        logs = (logs[:, None] + weights[None, :]).ravel()
        logs = logs + 4.0 * UNIT * np.abs(logs)
        order = np.argsort(losses, kind="stable")
        losses, logs = thinned(losses[order], logs[order], _MAX_ATOMS)
    above = losses > 0.0
    order = np.argsort(losses[above], kind="stable")
    return LossSide(losses=losses[above][order], log_masses=logs[above][order], infinite=0.0)


def _repeated(epsilon: float, times: int) -> tuple[Array, Array]:
    exact = Fraction(epsilon)
    losses = np.array([float_above((2 * j - times) * exact) for j in range(times + 1)])
    with flint.ctx.workprec(160):
        factorials = [flint.arb(0)]
        for number in range(1, times + 1):
            factorials.append(factorials[-1] + flint.arb(number).log())
        # 1/(1 + e^{-ε0}) for a loss of ε0, e^{-ε0} times that for -ε0.
        exact_loss = flint.arb(epsilon)
        likely = -(-exact_loss).exp().log1p()
        logs = [
            ball_above(
                factorials[times] - factorials[j] - factorials[times - j] + times * likely - (times - j) * exact_loss
            )
            for j in range(times + 1)
        ]
    return losses, np.array(logs)


Law = Mapping[Any, Any] | Sequence[Any]
"""Probabilities of outcomes: by outcome, or in a fixed order."""

_SUM_TOLERANCE = Fraction(1, 10**9)
"""Floats that sum up to 1 but for less than this are scaled so that they do."""


def explicit_sides(first: Law, second: Law) -> tuple[LossSide, LossSide]:
    """Return the losses above 0 of `first` against `second`, and of `second` against `first`.

    Raises `ArgumentError` if one is not a law, or they are lists of different length.
    """
    if isinstance(first, Mapping) != isinstance(second, Mapping):
        raise ArgumentError("first and second must both be lists of probabilities, or both dicts by outcome.")
    first_law, second_law = _read("first", first), _read("second", second)
    if not isinstance(first, Mapping) and len(first) != len(second):
        raise ArgumentError("first and second must list the same outcomes: the lists differ in length.")
    return _explicit_side(first_law, second_law), _explicit_side(second_law, first_law)


def _read(name: str, law: Law) -> dict[Hashable, Fraction]:
    if isinstance(law, str | bytes) or not isinstance(law, Mapping | Sequence | np.ndarray):
        raise ArgumentError(f"{name} must be a list of probabilities, or a dict of them by outcome.")
    chances = dict(law.items() if isinstance(law, Mapping) else enumerate(law))
    if all(isinstance(chance, Rational) for chance in chances.values()):
        return read_law(name, chances)
    exact = {
        outcome: chance if isinstance(chance, Fraction) else Fraction(read_number(f"a probability of {name}", chance))
        for outcome, chance in chances.items()
    }
    total = sum(exact.values(), Fraction(0))
    scale = total if abs(total - 1) <= _SUM_TOLERANCE else Fraction(1)
    return read_law(name, {outcome: chance / scale for outcome, chance in exact.items()})


def _explicit_side(law: Mapping[Hashable, Fraction], other_law: Mapping[Hashable, Fraction]) -> LossSide:
    masses: dict[Fraction, Fraction] = {}
    infinite = Fraction(0)
    for outcome, chance in law.items():
        against = other_law.get(outcome, Fraction(0))
        if not against:
            infinite += chance
        elif chance > against:
            ratio = chance / against
            masses[ratio] = masses.get(ratio, Fraction(0)) + chance
    ratios = sorted(masses)
    with flint.ctx.workprec(_BITS):
        losses = [ball_above(ball_of(ratio).log()) for ratio in ratios]
        logs = [ball_above(ball_of(masses[ratio]).log()) for ratio in ratios]
    return LossSide(losses=np.array(losses), log_masses=np.array(logs), infinite=float_above(infinite))


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
    The writer of f has to know that it is convex. A value below its own tangent at 1 is refused when it is seen.
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
    first, second = first.shorter(_MAX_ATOMS), second.shorter(_MAX_ATOMS)
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
        value = ball_above(total) if total.is_finite() else math.inf
    # What laws that exclude each other cost.
    ends = (function.at_zero, function.growth)
    return value if math.inf in ends else min(value, float_above(sum(map(Fraction, ends), Fraction(0))))


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
