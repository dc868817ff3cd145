"""PyDP: one noisy count per cell, after the distinct units of each cell were found in plain Python.

Guarantee: epsilon worst-case DP of units in the counts, if the caller knows that a unit is in one cell only and
that the cells are public: PyDP sees lists and checks neither.
"""

from __future__ import annotations

import csv
from collections import defaultdict
from typing import Any

from pydp.algorithms.laplacian import Count
from serving import serve


def load(path: str) -> list[tuple[int, str]]:
    with open(path, newline="") as lines:
        rows = csv.reader(lines)
        next(rows)
        return [(int(unit), cell) for unit, cell in rows]


def histogram(rows: Any) -> int:
    cells: defaultdict[str, set[int]] = defaultdict(set)
    for unit, cell in rows:
        cells[cell].add(unit)
    counts = {}
    for cell, units in cells.items():
        count = Count(epsilon=1.0, l0_sensitivity=1, linf_sensitivity=1, dtype="int")
        counts[cell] = count.quick_result(list(units))
    return len(counts)


serve("python-dp", load, histogram)
