"""Counting a relation's units, of one cell each, by a hash of the cell.

The cells are read first, each with its hash. What is then read of the rows is a unit and a hash; a hash that is no
cell's, or more than one cell's, sends the question another way.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from pkdp_pipeline.engines.codes import MOST, answered, counted_by_code, joinable
from pkdp_pipeline.engines.duckdb.relation_rows import RelationRows
from pkdp_pipeline.engines.duckdb.statements import numbered
from pkdp_pipeline.engines.places import Places

__all__ = ["cells_by_code"]

_WHOLE = frozenset({"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT"})

_Hashes = npt.NDArray[np.uint64]


def cells_by_code(rows: RelationRows, *, kinds: list[str], keys: int) -> Any:
    """Count units that all have one cell; return None where one might have several, or where hashes do not help.

    Parameters
    ----------
    rows : RelationRows
        With the columns ``u0, u1, …`` and ``b0, b1, …``.
    kinds : list of str
        The SQL types of the unit's columns.
    keys : int
        How many columns name a cell.

    Returns
    -------
    pyarrow.Table or None
        What `cells_statement` would have given.
    """
    if not rows.is_stored():
        return None
    cell = ", ".join(numbered("b", keys))
    code = f"hash({cell}, 1)"  # alone, the hash of the number 0 is 0, which is part of every other
    cells = rows.run(f"SELECT {cell}, {code} AS code FROM pkdp_rows GROUP BY {cell}")
    if not 0 < len(cells) <= MOST:
        return None
    codes = cells["code"].to_numpy()
    counted = _by_place(rows, code, codes) if len(kinds) == 1 and kinds[0] in _WHOLE else None
    counted = counted or _by_unit(rows, code, codes, units=len(kinds))
    if counted is None:
        return None
    counts, missing_unit = counted
    return answered(cells.drop_columns("code"), counts, missing_unit=missing_unit)


def _by_place(rows: RelationRows, code: str, codes: _Hashes) -> tuple[npt.NDArray[np.int64], bool] | None:
    """Let each whole-numbered unit hold its cell's code in an array that the rows are streamed to."""
    short = (codes & np.uint64(2**31 - 1)).astype(np.int32)
    order = np.argsort(short)
    if (short[order][1:] == short[order][:-1]).any():
        return None
    bounds = rows.run("SELECT min(u0) AS least, max(u0) AS most, count(u0) AS present, count(*) AS n FROM pkdp_rows")
    (found,) = bounds.to_pylist()
    places = Places.between(found["least"], found["most"], rows=found["present"]) if found["present"] else None
    if places is None:
        return None
    for batch in rows.batches(f"SELECT u0, ({code} & 2147483647)::INTEGER AS code FROM pkdp_rows WHERE u0 IS NOT NULL"):
        if not places.settle(batch.column(0).to_numpy(zero_copy_only=False), batch.column(1).to_numpy()):
            return None
    held, often = np.unique(places.settled, return_counts=True)
    at = order[np.searchsorted(short[order], held).clip(max=len(short) - 1)]
    if (short[at] != held).any():
        return None
    counts = np.zeros(len(codes), dtype=np.int64)
    counts[at] = often
    return counts, found["n"] > found["present"]


def _by_unit(rows: RelationRows, code: str, codes: _Hashes, *, units: int) -> tuple[npt.NDArray[np.int64], bool] | None:
    """Join the bits of all hashes in a unit's rows."""
    if not joinable(codes):
        return None
    unit = ", ".join(numbered("u", units))
    missing = " OR ".join(f"{name} IS NULL" for name in numbered("u", units))
    homes = f"SELECT {unit}, bit_or({code}) AS code FROM pkdp_rows GROUP BY {unit}"
    found = rows.run(
        f"SELECT CASE WHEN {missing} THEN NULL ELSE code END AS home, count(*) AS n FROM ({homes}) GROUP BY home"
    )
    if len(found) > len(codes) + 1:
        return None
    often = {row["home"]: row["n"] for row in found.to_pylist()}
    missing_unit = often.pop(None, None) is not None
    counts = counted_by_code(codes, often)
    return None if counts is None else (counts, missing_unit)
