"""Readings of an explicit pair, straight from the definitions: fractions where they are exact, balls elsewhere."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import flint

from oracle.losses import BITS, ball

__all__ = [
    "average",
    "clipped",
    "divergence",
    "exceeding",
    "kl",
    "merged",
    "products",
    "rates_of",
    "renyi",
    "rho_at_least",
    "tau_at_least",
    "total_variation",
]

Pair = Sequence[tuple[Any, Any]]


def total_variation(pair: Pair) -> Fraction:
    """Return ``Σ (P - Q)_+``."""
    return sum((max(p - q, Fraction(0)) for p, q in pair), Fraction(0))


def exceeding(pair: Pair, epsilon: float) -> Fraction:
    """Return ``P[log(P/Q) > ε]``."""
    with flint.ctx.workprec(BITS):
        growth = flint.arb(epsilon).exp()
        return sum((p for p, q in pair if p > 0 and (q == 0 or ball(p) > growth * ball(q))), Fraction(0))


def average(pair: Pair, function: Callable[[Any], Any]) -> Any:
    """Return the ball of ``E_P[function(L)]`` over finite losses."""
    with flint.ctx.workprec(BITS):
        total = flint.arb(0)
        for p, q in pair:
            if p > 0 and q > 0:
                total += ball(p) * function((ball(p) / ball(q)).log())
        return total


def kl(pair: Pair) -> float:
    """Return ``Σ P log(P/Q)``."""
    return math.inf if any(p > 0 and q == 0 for p, q in pair) else float(average(pair, lambda loss: loss).mid())


def renyi(pair: Pair, alpha: float) -> float:
    """Return ``log(Σ P^α Q^{1-α})/(α - 1)``."""
    if any(p > 0 and q == 0 for p, q in pair):
        return math.inf
    with flint.ctx.workprec(BITS):
        order = flint.arb(alpha)
        moment = average(pair, lambda loss: ((order - 1) * loss).exp())
        return float((moment.log() / (order - 1)).mid())


def divergence(pair: Pair, function: Callable[[Any], Any], at_zero: float, growth: float) -> float:
    """Return ``Σ Q f(P/Q)``, with the limits of f at 0 and of f(t)/t."""
    with flint.ctx.workprec(BITS):
        total = flint.arb(0)
        for p, q in pair:
            if p > 0 and q > 0:
                total += ball(q) * function(ball(p) / ball(q))
            elif p > 0 or q > 0:
                limit = growth if q == 0 else at_zero
                if math.isinf(limit):
                    return math.inf
                total += ball(p + q) * limit
        return float(total.mid())


def rho_at_least(pair: Pair, xi: float = 0.0) -> float:
    """Return the largest ``(D_α - ξ)/α`` on a grid of orders, which is finer beside its best one."""

    def rate(step: float) -> float:
        order = 1.0 + 2.0 ** (step / 3.0)
        return (renyi(pair, order) - xi) / order

    best = max(range(-60, 40), key=rate)
    return max(0.0, *(rate(best + part / 8.0) for part in range(-8, 9)))


def rates_of(losses: Sequence[float]) -> list[float]:
    """Return exponents of either sign around the scale of the losses."""
    scale = max(map(abs, losses), default=1.0) or 1.0
    return [sign * 2.0 ** (step / 2.0) / scale for step in range(-16, 18) for sign in (1.0, -1.0)]


def tau_at_least(pair: Pair) -> float:
    """Return the largest ``sqrt(2 log E[e^{λ(L - E L)}])/|λ|`` on a grid of exponents."""
    losses = [float((ball(p) / ball(q)).log().mid()) for p, q in pair if p > 0 and q > 0]
    best = 0.0
    with flint.ctx.workprec(BITS):
        mean = average(pair, lambda loss: loss)
        for rate in rates_of(losses):
            exponent = flint.arb(rate)
            moment = average(pair, lambda loss, exponent=exponent: (exponent * (loss - mean)).exp())
            best = max(best, float((2 * moment.log() / exponent**2).mid()))
    return math.sqrt(max(0.0, best))


def clipped(pair: Pair, first_growth: Fraction, second_growth: Fraction) -> tuple[list[tuple[Any, Any]], Any, Any]:
    """Return the pair with P cut to ``first_growth·Q`` and Q to ``second_growth·P``, and the masses that are gone."""
    cut = [(min(p, first_growth * q), min(q, second_growth * p)) for p, q in pair]
    return cut, 1 - sum(p for p, _ in cut), 1 - sum(q for _, q in cut)


def merged(pair: Pair, labels: Sequence[int]) -> list[tuple[Any, Any]]:
    """Return the pair after outcomes with equal labels have become one."""
    by_label: dict[int, tuple[Any, Any]] = {}
    for (p, q), label in zip(pair, labels, strict=True):
        first, second = by_label.get(label, (Fraction(0), Fraction(0)))
        by_label[label] = (first + p, second + q)
    return list(by_label.values())


def products(first: Pair, second: Pair) -> list[tuple[Any, Any]]:
    """Return the pair of both shown together, independently."""
    return [(p * r, q * s) for p, q in first for r, s in second]
