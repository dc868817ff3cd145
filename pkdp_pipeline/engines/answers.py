"""From the Arrow table that counted cells come in to an engine's answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from pkdp_pipeline.engines.question import CellCounts, Question

__all__ = ["cell_counts"]

_CHECKS = frozenset({"missing_unit", "several_cells", "alike"})


def cell_counts(
    answer: Any,
    question: Question,
    public: Callable[[Any, str], pd.Series[Any]],
    *,
    mixed: bool = False,
    alike: bool = False,
) -> CellCounts:
    """Return the counts in a table of (b0, b1, …, n, missing_unit, several_cells), one row per cell.

    It may have a column ``alike`` too. `public` gives Arrow's keys the public dtype of the by-column with that name.
    """
    import pyarrow.compute as pc

    found = {name: bool(pc.any(answer[name]).as_py()) for name in answer.column_names if name in _CHECKS}
    several_cells = found["several_cells"]
    # A cell that only rows without a unit mention has nobody in it.
    held = answer.slice(0, 0) if several_cells else answer.filter(pc.greater(answer["n"], 0))
    return CellCounts(
        keys=pd.DataFrame({name: public(held[f"b{i}"], name) for i, name in enumerate(question.by)}, copy=False),
        counts=held["n"].to_numpy().astype(np.int64),
        missing_unit=found["missing_unit"],
        several_cells=several_cells,
        mixed=mixed,
        alike=alike or found.get("alike", False),
    )
