"""Units that are whole numbers close together: each has a place in an array, which holds its cell."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["WIDEST", "counted_by_place"]

#: Numbers that span less than this are close together, however few they are.
WIDEST = 1 << 20

_Integers = npt.NDArray[Any]


def counted_by_place(units: _Integers, cells: _Integers, size: int) -> tuple[npt.NDArray[np.int64], bool] | None:
    """Return how many distinct units each cell has, and whether a unit has several cells.

    One pass writes every row's cell to its unit's place, another sees whether it is still there.

    Parameters
    ----------
    units : integer array, one per row
        At least one; none missing.
    cells : integer array, one per row
        Below `size`, which fits 32 bits.
    size : int

    Returns
    -------
    (integer array of length `size`, bool) or None
        None where the units lie too far apart; they are counted another way.
    """
    least, most = int(units.min()), int(units.max())
    if most - least >= max(WIDEST, 4 * len(units)) or not -(2**62) < least <= most < 2**62 or size >= 2**31:
        return None
    places = units.astype(np.int64, copy=False)
    places = places - least if least else places
    homes = np.full(most - least + 1, -1, dtype=np.int32)
    homes[places] = cells
    return np.bincount(homes[homes >= 0], minlength=size), bool((homes[places] != cells).any())
