"""Hashes that stand for cells, where a unit's are joined bit by bit: what comes out shows whether it has one cell.

The cells are few and are read first, each with its hash. No hash of theirs has all the bits of another's, or this is
not tried. Then the joined bits of several hashes are nobody's: whose they were would have all the bits of each of
them, and so would be each of them. So a unit whose joined bits are a cell's hash has that cell in every row, and
nothing here depends on hashes being different, but for how fast the answer comes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

#: More cells than this are counted another way.
MOST = 1 << 12

_Hashes = npt.NDArray[np.uint64]


def joinable(codes: _Hashes) -> bool:
    """Return whether these hashes, one per cell, are few and none has all the bits of another."""
    return 0 < len(codes) <= MOST and not any(np.count_nonzero((code & ~codes) == 0) > 1 for code in codes)


def counted_by_code(codes: _Hashes, often: Mapping[int, int]) -> npt.NDArray[np.int64] | None:
    """Return how many units each cell has, given how many have each joined hash; None if one is no cell's."""
    counts = np.array([often.get(int(code), 0) for code in codes], dtype=np.int64)
    return counts if counts.sum() == sum(often.values()) else None


def answered(cells: Any, counts: npt.NDArray[np.int64], *, missing_unit: bool) -> Any:
    """Return an Arrow table of cells with what a query about units of one cell each adds: n and the two answers."""
    import pyarrow as pa

    answer = cells.append_column("n", pa.array(counts, pa.int64()))
    for name, value in (("missing_unit", missing_unit), ("several_cells", False)):
        answer = answer.append_column(name, pa.array(np.full(len(counts), value)))
    return answer
