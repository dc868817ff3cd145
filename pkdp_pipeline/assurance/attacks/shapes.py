"""The extreme people that a declaration admits: vertices of what may be said about one person's cell."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction

from pkdp_pipeline.assurance.attacks.admission import keeps
from pkdp_pipeline.assurance.attacks.crowd import Group
from pkdp_pipeline.model.attacker import AttackerModel
from pkdp_pipeline.theorems import Protects

__all__ = ["Shape", "counted_shapes", "histogram_shapes"]

Shape = tuple[float, ...]
"""Chances of one person."""


def counted_shapes(attacker: AttackerModel) -> tuple[Shape, ...]:
    """Return the ends of what a `Count` is told about a person, the largest first."""
    low = 0.0 if attacker.p_min is None else attacker.p_min
    high = 1.0 if attacker.p_max is None else attacker.p_max
    return ((high,),) if low == high else ((high,), (low,))


def histogram_shapes(attacker: AttackerModel, protects: Protects, cells: int) -> tuple[Shape, ...]:
    """Return extreme people of a table with `cells` cells, of whom the first two are the target's.

    Notes
    -----
    With odds against absence of at most ``o = p_max / (1 - p_max)``, and odds between cells of at most
    ``r = p_max_between / (1 - p_max_between)``, weights are o, o/r or 0 for a cell and 1 for absence; where nobody
    needs to be absent also r and 1. Floats are rounded until the declaration holds exactly; what cannot be is left out.
    """
    p = None if attacker.p_max is None else Fraction(attacker.p_max)
    between = attacker.p_max_between if protects == "value" else None
    q = None if between is None else Fraction(between)
    least = Fraction(0 if attacker.p_min is None else attacker.p_min)
    found: list[Sequence[Fraction]] = []
    if p is not None and p < 1:
        odds = p / (1 - p)
        lower = Fraction(0) if q is None else odds * (1 - q) / q
        found += [[*levels, Fraction(1)] for levels in _levels(odds, lower, cells)]
        # The least that p_min allows, the rest absent.
        found.append([*[least] * cells, 1 - cells * least])
    elif q is not None and q < 1:
        ratio = q / (1 - q)
        found += [[*levels, Fraction(0)] for levels in _levels(ratio, Fraction(1), cells)]
    elif least > 0:
        rest = 1 - cells * least
        found += [
            [least + rest * (cell == at) for cell in range(cells)] + [Fraction(0)] for at in range(cells) if rest >= 0
        ]
        found.append([Fraction(1, cells)] * cells + [Fraction(0)])
    if least == 0:
        found.append([Fraction(0)] * cells + [Fraction(1)])
    shapes = (_rounded(weights, attacker, protects) for weights in found if min(weights) >= 0)
    return tuple(dict.fromkeys(shape for shape in shapes if shape is not None))


def _levels(high: Fraction, low: Fraction, cells: int) -> Iterable[list[Fraction]]:
    """Return every choice of `high` or `low` for each cell but ``low`` for all."""
    for mask in range(1, 2**cells):
        yield [high if mask >> cell & 1 else low for cell in range(cells)]


def _rounded(weights: Sequence[Fraction], attacker: AttackerModel, protects: Protects) -> Shape | None:
    """Return the chances of these weights as floats that keep to the declaration, or None."""
    total = sum(weights, Fraction(0))
    if total <= 0:
        return None
    exact = [weight / total for weight in weights[:-1]]
    # To the nearest, then a few steps down, cell by cell: ratios between cells have to stay where they are.
    for steps in range(4):
        for which in range(2 ** len(exact)):
            chances = tuple(_down(value, steps * (which >> cell & 1)) for cell, value in enumerate(exact))
            if sum(map(Fraction, chances)) <= 1:
                group = Group(people=1, chances=chances)
                if keeps(group, attacker, counted=False, protects=protects):
                    return chances
    return None


def _down(value: Fraction, steps: int) -> float:
    near = float(value)
    for _ in range(steps):
        near = math.nextafter(near, 0.0)
    return near
