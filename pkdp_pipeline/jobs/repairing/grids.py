"""Grids: the numbers that are offered, three digits each, so that people can read, argue and write them."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["EPSILONS", "SHARES", "first_above", "first_below"]


def _decades(first: int, last: int) -> list[float]:
    return [float(f"{digits}e{power - 2}") for power in range(first, last) for digits in range(100, 1000)]


EPSILONS: tuple[float, ...] = (*_decades(-4, 4), 10000.0)
"""From 0.0001 to 10000, three digits each."""

SHARES: tuple[float, ...] = tuple(number / 1000 for number in range(1, 1000))
"""From 0.001 to 0.999."""


def first_above(grid: Sequence[float], value: float) -> int:
    """Return the position of the first number above a value; the grid's length where there is none."""
    return next((position for position, one in enumerate(grid) if one > value), len(grid))


def first_below(grid: Sequence[float], value: float) -> int:
    """Return the position of the last number below a value; -1 where there is none."""
    return next((position for position in range(len(grid) - 1, -1, -1) if grid[position] < value), -1)
