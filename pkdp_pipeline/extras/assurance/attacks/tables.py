"""A crowd's attained loss by tables of floats: for crowds too large, or too many cells, to enumerate exactly.

The attacker looks at one of the cells in which the target's lives differ, or without noise at several; whoever sees
less learns no more. Nothing here uses `pkdp_pipeline.theorems`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.extras.assurance.attacks.crowd import Crowd, Group
from pkdp_pipeline.extras.assurance.attacks.enumeration import Cell, cell_of
from pkdp_pipeline.model.mechanisms import Count, Mechanism

Array = NDArray[np.float64]

_ROUNDING = 1e-9
"""Chances in floating point err by less than this, relatively: sums of products of positive numbers, and SciPy's
binomial probabilities, which err by 4e-11 at most for a billion people."""

_LOG_LOST = 80.0
"""Ends of a table leave out a chance of ``e^-80`` at most, each."""

_MAX_STATES = 5_000_000
_MAX_PRODUCTS = 300_000_000
"""Larger tables, and those whose convolution takes more products, are not made."""

_MAX_KNOWN = 2_000
"""Where the known people can be spread in more ways, the attacker forgets who they are."""


def tabulated(mechanism: Mechanism, crowd: Crowd, epsilon: float) -> float:
    """Return what `crowd` attains at `epsilon` at least; not of a `Count` of several cells.

    Notes
    -----
    A total that the crowd sees is not looked at, nor who is known, where that are too many: forgetting what is known
    tells no more. Nor are noised counts where larger ones are exact: from the noise's ε on they tell nothing.
    *Guarantee*: the attained divergence is no smaller; 0 where the tables would be too large. *Rounding*: down.
    """
    if (isinstance(mechanism, Count) or mechanism.totals) and crowd.cells > 1:
        raise ArgumentError("a Count of everybody in several cells is enumerated, not tabulated.")
    cell = cell_of(mechanism, crowd.population)
    if cell.exact is not None:
        cell = Cell(least=cell.exact)
    lives = tuple(life for life in (crowd.first, crowd.second) if life is not None)
    # Noise is drawn for each cell apart: there one cell is looked at; otherwise both of the target's, or all.
    several = [] if cell.noise is not None else [lives, tuple(range(crowd.cells))]
    looks = dict.fromkeys([*((life,) for life in lives), *several])
    return max(_attained(cell, crowd, cells, epsilon) for cells in looks)


def _attained(cell: Cell, crowd: Crowd, cells: Sequence[int], epsilon: float) -> float:
    """Return ``Σ max(0, P - e^ε Q)`` over all that these cells show, beside the known people, rounded down."""
    if cell.noise is not None and 2 * _LOG_LOST / cell.noise > _MAX_STATES:
        return 0.0
    unknown, known = _joint(crowd.unknown, cells), _joint(crowd.known, cells)
    if unknown is None or known is None or known[0].size > min(_MAX_KNOWN, _MAX_PRODUCTS / unknown[0].size):
        unknown, known = _joint((*crowd.unknown, *crowd.known), cells), _joint((), cells)
    if unknown is None or known is None:
        return 0.0
    (others, first_others), (weights, first_known) = unknown, known
    controlled = [crowd.controlled[index] if crowd.controlled else 0 for index in cells]
    starts = [sum(numbers) for numbers in zip(first_others, first_known, controlled, strict=True)]
    # Either life adds the target to one cell, or to none.
    lives = [
        np.pad(others, [(int(life == index), int(life != index)) for index in cells])
        for life in (crowd.first, crowd.second)
    ]
    growth, total = math.exp(min(epsilon, 700.0)), 0.0
    for place in zip(*np.nonzero(weights), strict=True):
        bases = [start + int(number) for start, number in zip(starts, place, strict=True)]
        first, second = (_shown(cell, law, bases) for law in lives)
        gains = first * (1.0 - _ROUNDING) - growth * second * (1.0 + _ROUNDING)
        total += float(weights[place] * gains[gains > 0.0].sum())
    # The second life may be seen outside of its table.
    lost = growth * math.exp(-_LOG_LOST) * (2 * len(cells) * len((*crowd.unknown, *crowd.known)) + 2)
    return max(0.0, total * (1.0 - _ROUNDING) - lost)


def _joint(groups: Sequence[Group], cells: Sequence[int]) -> tuple[Array, list[int]] | None:
    """Return the law of how many people are in each cell, and the counts at which it starts; None if too large."""
    law, start = np.ones((1,) * len(cells)), [0] * len(cells)
    for group in groups:
        ends = [_ends(group.people, group.chances[index]) for index in cells]
        states = math.prod(last - first + 1 for first, last in ends)
        if states > _MAX_STATES or law.size * states > _MAX_PRODUCTS:
            return None
        law = _convolved(law, _table(group, cells, ends))
        start = [before + first for before, (first, _) in zip(start, ends, strict=True)]
    return law, start


def _ends(people: int, chance: float) -> tuple[int, int]:
    """Return between which numbers a binomial one lies, but for ``e^-80`` on each side (Bernstein)."""
    mean, variance = people * chance, people * chance * (1.0 - chance)
    reach = math.sqrt(2.0 * variance * _LOG_LOST) + _LOG_LOST
    return max(0, math.floor(mean - reach)), min(people, math.ceil(mean + reach))


def _table(group: Group, cells: Sequence[int], ends: Sequence[tuple[int, int]]) -> Array:
    """Return how many equal people are in each cell: a binomial number in the first, then one of those who are left."""
    from scipy.stats import binom

    law, left, rest = np.ones(()), np.asarray(group.people), Fraction(1)
    for index, (first, last) in zip(cells, ends, strict=True):
        counts, chance = np.arange(first, last + 1), Fraction(group.chances[index])
        law = law[..., None] * binom.pmf(counts, left[..., None], float(chance / rest) if rest else 0.0)
        left, rest = np.maximum(0, left[..., None] - counts), rest - chance
    return np.nan_to_num(law)


def _convolved(law: Array, other: Array) -> Array:
    """Return the law of a sum, term by term: all are positive, so nothing cancels."""
    if law.ndim == 1:
        return np.convolve(law, other)
    large, small = (law, other) if law.size >= other.size else (other, law)
    total = np.zeros([size + more - 1 for size, more in zip(large.shape, small.shape, strict=True)])
    for place in zip(*np.nonzero(small), strict=True):
        total[tuple(slice(begin, begin + size) for begin, size in zip(place, large.shape, strict=True))] += (
            small[place] * large
        )
    return total


def _shown(cell: Cell, law: Array, bases: Sequence[int]) -> Array:
    """Return the law of what is published of true counts from `bases` on; each cell's last place is a hidden one."""
    for axis, base in enumerate(bases):
        visible = cell.shows(base + np.arange(law.shape[axis]))
        hidden = law.compress(~visible, axis).sum(axis, keepdims=True)
        if cell.noise is None:
            law = np.concatenate([law.compress(visible, axis), hidden], axis)
            continue
        reach = math.ceil(_LOG_LOST / cell.noise)
        noisy = _noised(np.pad(np.where(visible, law, 0.0), reach), cell.noise)
        least = 0 if cell.release is None else min(max(0, cell.release - base + reach), len(noisy))
        law = np.append(noisy[least:], hidden + noisy[:least].sum())
    return law


def _noised(law: Array, noise: float) -> Array:
    """Return the law after two-sided geometric noise: one recursion from the left and one from the right."""
    from scipy.signal import lfilter

    alpha = math.exp(-noise)
    left, right = (lfilter([1.0], [1.0, -alpha], side) for side in (law, law[::-1]))
    return np.asarray((left + alpha * np.append(right[::-1][1:], 0.0)) * (1.0 - alpha) / (1.0 + alpha))
