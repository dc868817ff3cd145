"""What a release and a leaked value tell together: the joint law in the target's two lives, enumerated.

The leaked value may follow from the counts, or from the counts and the noise of a release; it may have randomness of
its own. Numbers are of any kind that `oracle.laws` takes. Nothing here uses the library's own mathematics.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from fractions import Fraction
from itertools import product
from typing import Any

from oracle.laws import Law, losses, table_law
from oracle.releases import noisy_cell

__all__ = [
    "Counts",
    "geometric",
    "given_value",
    "joint_losses_with",
    "joint_with",
    "shown_table",
    "total_present",
]

Counts = tuple[int, ...]
Kernel = Callable[[Counts], Mapping[Hashable, Any]]


def total_present(counts: Counts) -> Law:
    """Leak how many people are in the cells, exactly."""
    return {sum(counts): 1}


def geometric(count: int, alpha: Any, reach: int) -> Law:
    """Return a count with two-sided geometric noise, its tails beyond ``-reach … reach`` merged."""
    share = (1 - alpha) / (1 + alpha)
    law: Law = {o: share * alpha ** abs(o - count) for o in range(-reach, reach + 1)}
    law["above"] = alpha ** (reach + 1 - count) / (1 + alpha)
    law["below"] = alpha ** (reach + 1 + count) / (1 + alpha)
    return law


def shown_table(k: int | None = None, noise: Any = None, release: int | None = None, top: int = 0) -> Kernel:
    """Return what a table shows of its counts; `noise` is ``e^{-ε0}``, and `top` the largest count there may be."""

    def kernel(counts: Counts) -> Law:
        if noise is None:
            return {tuple(x if k is None or x >= k else None for x in counts): 1}
        joint: Law = {}
        for chosen in product(*(noisy_cell(x, noise, top, k, release).items() for x in counts)):
            joint[tuple(output for output, _ in chosen)] = math.prod((chance for _, chance in chosen), start=1)
        return joint

    return kernel


def joint_with(people: Sequence[Sequence[Any]], fixed: Counts, life: int | None, shown: Kernel, leaked: Kernel) -> Law:
    """Return the joint law of what is shown and what leaks.

    People are lists of cell chances, absence last; `fixed` people are surely in each cell; `life` is the target's
    cell, None for absent. What is shown and what leaks have randomness of their own.
    """
    law: Law = {}
    for drawn, weight in (table_law(people) or {(0,) * len(fixed): 1}).items():
        counts = tuple(x + y + (life == v) for v, (x, y) in enumerate(zip(drawn, fixed, strict=True)))
        for output, chance in shown(counts).items():
            for value, part in leaked(counts).items():
                outcome = output, value
                law[outcome] = law.get(outcome, 0) + weight * chance * part
    return law


def joint_losses_with(
    people: Sequence[Sequence[Any]],
    fixed: Counts,
    lives: tuple[int | None, int | None],
    growth: Any,
    shown: Kernel,
    leaked: Kernel,
    known: Sequence[Sequence[Any]] = (),
) -> tuple[Any, Any]:
    """Return both divergences of everything seen, on average over what a passive attacker happens to know."""
    sides: list[Any] = [0, 0]
    for drawn, weight in (table_law(known) or {(0,) * len(fixed): 1}).items():
        base = tuple(x + y for x, y in zip(drawn, fixed, strict=True))
        first, second = (joint_with(people, base, life, shown, leaked) for life in lives)
        sides = [
            side + weight * divergence for side, divergence in zip(sides, losses(first, second, growth), strict=True)
        ]
    return sides[0], sides[1]


def given_value(joint: Mapping[Any, Any], value: Hashable) -> Law | None:
    """Return the law of what is shown given the leaked value, or None where it cannot be leaked."""
    part = {output: weight for (output, leaked), weight in joint.items() if leaked == value}
    mass = sum(part.values(), Fraction(0))
    return {output: weight / mass for output, weight in part.items()} if mass else None
