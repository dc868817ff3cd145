"""Which laws a total is made of: the grid, the releases that count, and their directions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from pkdp_pipeline.composition.grid_law import GridLaw
from pkdp_pipeline.composition.loss_laws import (
    Directions,
    EnvelopeLosses,
    Losses,
    NoiseLosses,
    PairLosses,
    ProductLosses,
)
from pkdp_pipeline.composition.tilted_transform import Choice, Factor

__all__ = ["Plan", "grid_step", "make_plan"]

_MOST_WAYS = 2_000
"""Most ways to choose directions that are all looked at."""

_WAYS_OF_MANY = 60_000
"""The same for many releases, whose transforms vanish but at a few frequencies."""

_MANY = 100

_LATTICE_CELLS = 2**18


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Laws on one grid: `fixed` ones, and choices of directions, the one with most ways first."""

    step: float
    fixed: tuple[Factor, ...]
    choices: tuple[Choice, ...]


@dataclass(frozen=True, slots=True)
class _Chosen:
    """`times` releases in two orders, `least` to `most` of them in the order `right`."""

    right: Losses
    left: Losses
    times: int
    least: int
    most: int


def make_plan(parts: Sequence[tuple[Directions, int]], participation: int | None) -> Plan:
    """Return the laws whose product dominates the total, for every choice of directions.

    Notes
    -----
    *Participation.* Each of the two lives takes part in at most t of the T releases. A release in which only the
    first takes part has the order `right`, at most t of these; only the second: `left`, at most t. A
    release in which both do, in different cells, has one of each where the value pair is the product of the two; so
    t of each dominate. More factors only help the attacker, so for equal parts t right and t left ones are the
    worst where ``2t ≤ T``, else all numbers that add up to T. Elsewhere the lives differ in at most ``min(2t, T)``
    releases, each dominated by the envelope of all parts in both orders.
    """
    groups: dict[tuple[Losses, Losses | None], int] = {}
    for part, times in parts:
        if times > 0:
            groups[part.right, part.left] = groups.get((part.right, part.left), 0) + times
    total = sum(groups.values())
    if participation is not None and participation < total:
        chosen, fixed = _taking_part(groups, total, participation)
    else:
        open_ways = [(right, left, times) for (right, left), times in groups.items() if left is not None]
        chosen = _affordable([_Chosen(right, left, times, 0, times) for right, left, times in open_ways], total)
        open_choices = {(choice.right, choice.left) for choice in chosen}
        fixed = [
            (right if left is None else EnvelopeLosses(members=(right, left)), times)
            for (right, left), times in groups.items()
            if (right, left) not in open_choices
        ]
    spreads = [(choice.right, choice.times) for choice in chosen] + fixed
    step = grid_step(spreads)
    factors = [
        Factor(law=_law(factor, step), times=times)
        for losses, times in fixed
        for factor in (losses.factors if isinstance(losses, ProductLosses) else (losses,))
    ]
    choices = [
        Choice(_law(each.right, step), _law(each.left, step), each.times, each.least, each.most) for each in chosen
    ]
    choices.sort(key=lambda choice: -choice.ways)
    return Plan(step=step, fixed=tuple(factors), choices=tuple(choices))


def _taking_part(
    groups: dict[tuple[Losses, Losses | None], int], total: int, most: int
) -> tuple[list[_Chosen], list[tuple[Losses, int]]]:
    """Return the choices and fixed factors where nobody takes part more than `most` times."""
    if len(groups) == 1:
        ((right, left),) = groups
        if left is None:
            return [], [(right, most if _is_value_pair(right) else min(2 * most, total))]
        if 2 * most <= total:
            return [], [(right, most), (left, most)]
        return [_Chosen(right, left, total, total - most, most)], []
    singles: dict[Losses, None] = {}
    values = all(_is_value_pair(right) for right, _ in groups)
    for right, left in groups:
        members = right.factors if values and isinstance(right, ProductLosses) else (right, left)
        singles.update((member, None) for member in members if member is not None)
    times = 2 * most if values else min(2 * most, total)
    return [], [(EnvelopeLosses(members=tuple(singles)), times)]


def _is_value_pair(losses: Losses) -> bool:
    """Whether a loss is that of leaving one cell and entering another."""
    factors = losses.factors if isinstance(losses, ProductLosses) else ()
    return [factor.order for factor in factors if isinstance(factor, PairLosses)] == ["right", "left"]


def _affordable(choices: list[_Chosen], total: int) -> list[_Chosen]:
    """Keep as many choices as can all be looked at; the others are covered by envelopes."""
    limit = _WAYS_OF_MANY if total >= _MANY else _MOST_WAYS
    kept: list[_Chosen] = []
    ways = 1
    for choice in sorted(choices, key=lambda choice: -choice.times):
        if ways * (choice.times + 1) <= limit:
            kept.append(choice)
            ways *= choice.times + 1
    if len(kept) < len(choices):
        # A choice for a few of many single releases changes next to nothing.
        kept = [choice for choice in kept if 8 * choice.times >= total]
    return kept


def grid_step(losses: Sequence[tuple[Losses, int]]) -> float:
    """Return a step so fine that splitting onto the grid adds next to nothing to the variance of the total.

    Steps are rounded to a power of √2, so that one more release rarely changes it. Noise alone stays on its lattice.
    """
    noises = sorted({each.noise for each, _ in losses if isinstance(each, NoiseLosses)})
    if noises and all(isinstance(each, NoiseLosses) for each, _ in losses):
        lattice = _lattice(noises, losses)
        if lattice is not None:
            return lattice
    times = sum(count for _, count in losses)
    variance = sum(count * _spread(each) ** 2 for each, count in losses)
    if not variance > 0.0:
        return 2.0**-10
    step = math.sqrt(variance / times) * min(0.035, 0.01 * times**0.25)
    # Among very many narrow laws a wide one must not take too many cells.
    step = max(step, max(_spread(each) for each, _ in losses) * 2.0**-14)
    if len(noises) == 1:
        return float(noises[0] / 2.0 ** math.ceil(math.log2(noises[0] / step)))
    return float(2.0 ** (math.floor(2.0 * math.log2(step)) / 2.0))


def _lattice(noises: list[float], losses: Sequence[tuple[Losses, int]]) -> float | None:
    """Return a step of which every ε0 is a multiple, but for roundoff."""
    whole = sum(count * each.noise * each.cells for each, count in losses if isinstance(each, NoiseLosses))
    for parts in range(1, 65):
        step = noises[0] / parts
        if whole / step > _LATTICE_CELLS:
            break
        if all(abs(float(Fraction(noise) / Fraction(step) - round(noise / step))) < 1e-12 for noise in noises):
            return step
    return None


@lru_cache(maxsize=4096)
def _law(losses: Losses, step: float) -> GridLaw:
    return losses.on_grid(step)


@lru_cache(maxsize=4096)
def _spread(losses: Losses) -> float:
    return losses.spread()
