"""Extent: how much a table expression can come to, found before DuckDB plans it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pkdp_pipeline.duckdb.gate.syntax import constant, refused

__all__ = ["Extent", "range_rows"]

#: Rows that a range may have.
_RANGE = 100_000


@dataclass(frozen=True, slots=True)
class Extent:
    """How much a table expression can come to.

    Columns, rows (an estimate), queries when written out, and how deep these are nested in expressions.
    """

    columns: int
    rows: int
    size: int
    nested: int = 0


def range_rows(name: str, given: list[tuple[str, Any]]) -> int:
    """Return how many rows ``range`` has; its bounds must be constants, and not far apart."""
    numbers = []
    for _, value in given:
        try:
            numbers.append(int(*constant(value)))
        except (TypeError, ValueError):
            raise refused(f"{name} of something else than whole numbers", "Write its bounds as numbers.") from None
    start, stop, step = 0, _RANGE + 1, 1
    if len(numbers) == 1:
        (stop,) = numbers
    elif len(numbers) in (2, 3):
        start, stop, step = (*numbers, 1)[:3]
    rows = abs(stop - start) // abs(step) + 1 if step else _RANGE + 2
    if rows > _RANGE + 1:
        raise refused(f"{name} of so many numbers", f"It may have up to {_RANGE}.")
    return rows
