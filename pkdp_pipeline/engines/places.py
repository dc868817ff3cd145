"""Units that are whole numbers close together: each has a place in an array, which holds its cell."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

#: Numbers that span less than this are close together, however few they are.
WIDEST = 1 << 20
#: More places than this are not kept, however many rows there are.
_MOST = 1 << 28
#: Rows looked at together: their arrays stay in the processor's caches.
_CHUNK = 1 << 17
_THREADS = 2

_Integers = npt.NDArray[Any]


@dataclass(frozen=True, slots=True, eq=False)
class Places:
    """The places of the whole numbers from `least` on; `homes` holds their cells, or -1."""

    least: int
    homes: npt.NDArray[np.int32]

    @classmethod
    def between(cls, least: int, most: int, *, rows: int) -> Places | None:
        """Return empty places for these numbers, or None where so many rows do not pay for them."""
        span = most - least + 1
        if span > min(_MOST, max(WIDEST, 4 * rows)) or not -(2**62) < least <= most < 2**62:
            return None
        return cls(least, np.full(span, -1, dtype=np.int32))

    def settle(self, units: _Integers, cells: _Integers) -> bool:
        """Put units into their places; return False when one is found in another cell, or has no place.

        Parameters
        ----------
        units : integer array, one per row
        cells : integer array, one per row
            From 0 to 2^31 - 1.
        """
        places = units.astype(np.int64, copy=False)
        places = places - self.least if self.least else places
        if not len(places) or int(places.min()) < 0 or int(places.max()) >= len(self.homes):
            return not len(places)
        cells = cells.astype(np.int32, copy=False)
        held = self.homes[places]
        moved = np.flatnonzero(held != cells)
        if not len(moved):
            return True
        if (held[moved] >= 0).any():
            return False
        places, cells = places[moved], cells[moved]
        self.homes[places] = cells
        return not (self.homes[places] != cells).any()

    @property
    def settled(self) -> npt.NDArray[np.int32]:
        """The cell of every unit that has one."""
        return self.homes[self.homes >= 0]


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
    found = Places.between(least, most, rows=len(units))
    if found is None or size >= 2**31:
        return None
    places = units.astype(np.int64, copy=False)
    places = places - least if least else places
    found.homes[places] = cells
    return np.bincount(found.settled, minlength=size), _moved(found.homes, places, cells)


def tallied_by_place(units: _Integers, hits: npt.NDArray[np.bool_]) -> tuple[int, int] | None:
    """Return how many distinct units have a row that is a hit, and how many there are.

    Parameters
    ----------
    units : integer array, one per row
        At least one; none missing.
    hits : boolean array, one per row

    Returns
    -------
    (int, int) or None
        None where the units lie too far apart; they are counted another way.
    """
    least, most = int(units.min()), int(units.max())
    found = Places.between(least, most, rows=len(units))
    if found is None:
        return None
    places = units.astype(np.int64, copy=False)
    places = places - least if least else places
    found.homes[places] = 0
    found.homes[places[hits]] = 1
    others, satisfying = np.bincount(found.settled, minlength=2).tolist()
    return satisfying, others + satisfying


def _moved(homes: _Integers, places: _Integers, cells: _Integers) -> bool:
    """Return whether a row's cell is not the one at its place; two threads look, since looking waits for memory."""

    def looked(start: int) -> bool:
        rows = slice(start, start + _CHUNK)
        return bool((homes.take(places[rows]) != cells[rows]).any())

    starts = range(0, len(places), _CHUNK)
    if len(starts) < _THREADS:
        return any(map(looked, starts))
    with ThreadPoolExecutor(_THREADS) as threads:
        return any(threads.map(looked, starts))
