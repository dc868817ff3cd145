"""Counting a relation's whole-numbered units, of one cell each, in an array that holds each unit's cell.

The cells are read first, each with its hash, then a unit and a hash per row. A hash that is no cell's, or more than one
cell's, sends the question another way. Over 4e6 rows of Parquet in 200 cells, its CPU time is 0.4 to 0.75 times that of
``count(DISTINCT unit) … GROUP BY cell``, over a table in memory 0.7 to 1.0 times; `cells_statement` takes 1.2 to 1.6.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pkdp_pipeline.engines.duckdb.relation_rows import RelationRows
from pkdp_pipeline.engines.duckdb.statements import numbered
from pkdp_pipeline.engines.places import Places

__all__ = ["MOST", "WHOLE", "cells_by_place"]

WHOLE = frozenset({"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT"})
#: More cells than this are counted another way.
MOST = 1 << 12
_SHORT = 2**31 - 1


def cells_by_place(rows: RelationRows, *, keys: int) -> Any:
    """Count rows of (u0, b0, b1, …); return None where a unit might have several cells, or has no place.

    Parameters
    ----------
    rows : RelationRows
    keys : int
        How many columns name a cell.

    Returns
    -------
    pyarrow.Table or None
        What `cells_statement` would have given.
    """
    import pyarrow as pa

    if not rows.is_stored():
        return None
    cell = ", ".join(numbered("b", keys))
    code = f"(hash({cell}, 1) & {_SHORT})::INTEGER"
    cells = rows.run(f"SELECT {cell}, {code} AS code FROM pkdp_rows GROUP BY {cell}")
    bounds = rows.run("SELECT min(u0) AS least, max(u0) AS most, count(u0) AS present, count(*) AS n FROM pkdp_rows")
    (found,) = bounds.to_pylist()
    codes, positions = np.unique(cells["code"].to_numpy(), return_index=True)
    if not found["present"] or not len(codes) == len(cells) <= MOST:
        return None
    places = Places.between(found["least"], found["most"], rows=found["present"])
    if places is None:
        return None
    for batch in rows.batches(f"SELECT u0, {code} AS code FROM pkdp_rows WHERE u0 IS NOT NULL"):
        if not places.settle(batch.column(0).to_numpy(zero_copy_only=False), batch.column(1).to_numpy()):
            return None
    held, often = np.unique(places.settled, return_counts=True)
    at = np.searchsorted(codes, held).clip(max=len(codes) - 1)
    if (codes[at] != held).any():
        return None
    counts = np.zeros(len(codes), dtype=np.int64)
    counts[positions[at]] = often
    answer = cells.drop_columns("code").append_column("n", pa.array(counts))
    for name, value in (("missing_unit", found["n"] > found["present"]), ("several_cells", False)):
        answer = answer.append_column(name, pa.array(np.full(len(counts), value)))
    return answer
