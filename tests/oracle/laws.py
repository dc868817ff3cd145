"""Laws of sums and tables by direct enumeration, for any kind of number.

A number may be a `flint.arb` (rigorous), a `Fraction`, a float, or a numpy array with one attacker per entry:
the same lines are then both the exact oracle and the vectorised one.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any

import flint
import numpy as np

__all__ = [
    "coin_sum",
    "exact_exp",
    "hockey_stick",
    "losses",
    "lower_end",
    "one_more",
    "positive",
    "pushed",
    "table_law",
]

Law = dict[Hashable, Any]
BITS = 320


def exact_exp(x: float) -> Any:
    """Return the ball of e^x for the float `x`."""
    with flint.ctx.workprec(BITS):
        return flint.arb(x).exp()


def lower_end(ball: Any) -> Fraction:
    """Return a rational at or below every point of the ball, within 2^-250 of its size."""
    mantissa, exponent = ball.lower().man_exp()
    return Fraction(int(mantissa)) * Fraction(2) ** int(exponent)


def positive(x: Any) -> Any:
    """Return ``max(0, x)``."""
    if isinstance(x, flint.arb):
        return x.nonnegative_part()
    return np.maximum(x, 0.0) if isinstance(x, np.ndarray) else max(x, 0)


def coin_sum(chances: Sequence[Any]) -> list[Any]:
    """Return the law of the number of successes of independent coins, as a list."""
    law: list[Any] = [1]
    for p in chances:
        law = one_more(law, p)
    return law


def one_more(law: Sequence[Any], p: Any) -> list[Any]:
    """Return the law of the number of successes with one more coin."""
    absent = 1 - p
    return [law[0] * absent, *(more * absent + less * p for less, more in pairwise(law)), law[-1] * p]


def table_law(people: Sequence[Sequence[Any]]) -> Law:
    """Return the joint law of the cells' counts; each person is a list of cell chances, absence last."""
    law: Law = {(0,) * (len(people[0]) - 1): 1} if people else {}
    for person in people:
        grown: Law = {}
        for counts, weight in law.items():
            for cell, p in enumerate(person):
                if isinstance(p, int) and p == 0:
                    continue
                after = counts if cell == len(counts) else (*counts[:cell], counts[cell] + 1, *counts[cell + 1 :])
                grown[after] = grown.get(after, 0) + weight * p
        law = grown
    return law


def pushed(law: Mapping[Hashable, Any], kernel: Callable[[Any], Mapping[Hashable, Any]]) -> Law:
    """Return the law of the output when `kernel` maps a hidden state to the chances of its outputs."""
    outputs: Law = {}
    for state, weight in law.items():
        for output, chance in kernel(state).items():
            share = weight * chance
            outputs[output] = outputs[output] + share if output in outputs else share
    return outputs


def hockey_stick(first: Mapping[Hashable, Any], second: Mapping[Hashable, Any], growth: Any) -> Any:
    """Return ``Σ_o max(0, first(o) - growth · second(o))``."""
    return sum(positive(weight - growth * second.get(output, 0)) for output, weight in first.items())


def losses(first: Mapping[Hashable, Any], second: Mapping[Hashable, Any], growth: Any) -> tuple[Any, Any]:
    """Return the hockey-stick divergence in both orders."""
    return hockey_stick(first, second, growth), hockey_stick(second, first, growth)
