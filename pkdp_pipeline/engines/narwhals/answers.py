"""From the Arrow tables that a query returns to the engine's answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from pkdp_pipeline.engines.narwhals.columns import to_public
from pkdp_pipeline.engines.question import CellCounts, Question, Tally

__all__ = ["cell_counts", "tally"]


def cell_counts(answer: Any, schema: Mapping[str, Any], question: Question) -> CellCounts:
    """Return the counts in a table of (b0, b1, …, n, missing_unit, several_cells), one row per cell."""
    import pyarrow.compute as pc

    several_cells = bool(pc.any(answer["several_cells"]).as_py())
    # A cell that only rows without a unit mention has nobody in it.
    held = answer.slice(0, 0) if several_cells else answer.filter(pc.greater(answer["n"], 0))
    return CellCounts(
        keys=pd.DataFrame(
            {name: to_public(held[f"b{i}"], schema[name]) for i, name in enumerate(question.by)}, copy=False
        ),
        counts=held["n"].to_numpy().astype(np.int64),
        missing_unit=bool(pc.any(answer["missing_unit"]).as_py()),
        several_cells=several_cells,
    )


def tally(answer: Any) -> Tally:
    """Return the tally in a table of (satisfying, population, missing_unit) with one row, or none for no units."""
    values = (answer.to_pylist() or [{}])[0]
    return Tally(
        satisfying=int(values.get("satisfying") or 0),
        population=int(values.get("population") or 0),
        missing_unit=bool(values.get("missing_unit")),
    )
