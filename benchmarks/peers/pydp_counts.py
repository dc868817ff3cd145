"""PyDP: one noisy count per cell, after the distinct units of each cell were found in plain Python.

Guarantee: epsilon worst-case DP of units in the counts, if the caller knows that a unit is in one cell only and
that the cells are public: PyDP sees lists and checks neither. So it has no answer about unknown keys.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterable
from datetime import date, timedelta
from typing import Any

import pyarrow.parquet as pq
from pydp.algorithms.laplacian import Count
from serving import serve

UNIT, DAYS = sys.argv[2], int(sys.argv[3])


def noisy(units: set[Any]) -> Any:
    return Count(epsilon=1.0, l0_sensitivity=1, linf_sensitivity=1, dtype="int").quick_result(list(range(len(units))))


def by_cell(rows: Iterable[tuple[Any, ...]], day: int) -> int:
    wanted, cells = date(2026, 1, 1) + timedelta(days=day), defaultdict(set)
    for unit, cell, when, _ in rows:
        if when == wanted:
            cells[cell].add(unit)
    return len([noisy(units) for units in cells.values()])


def load(path: str) -> list[tuple[Any, ...]]:
    table = pq.read_table(path, columns=[UNIT, "cell", "day", "delay"])
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


serve(
    "python-dp",
    load,
    {
        "T1": lambda rows: noisy({unit for unit, _, _, delay in rows if delay > 60}),
        "T2": lambda rows: by_cell(rows, DAYS // 2),
        "T4": lambda rows: sum(by_cell(rows, day) for day in range(DAYS)),
    },
)
