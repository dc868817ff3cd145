"""What an engine is asked, what it answers, and the protocol every engine follows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from pkdp_pipeline.model.predicate import from_query

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import pandas as pd

__all__ = ["DRAWN", "SPACES", "CellCounts", "Engine", "Question", "Tally"]

#: The rules of `one_cell` by which a hash draws one of a unit's cells, or one of its most frequent ones.
DRAWN = frozenset({"hash", "most_frequent"})
#: What may stand around a unit of text without making it another one: what `str.strip` takes off.
SPACES = (
    "\t\n\v\f\r\x1c\x1d\x1e\x1f \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000"
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Question:
    """What to count, in column names.

    Parameters
    ----------
    unit : tuple of str
        Columns that name a unit; empty where each row is a unit of its own.
    where : object, optional
        Which rows count: a predicate or its query string, and for pandas a boolean Series or a callable. A missing
        answer is "no".
    by : tuple of str
        Columns that name a cell; empty for a tally.
    one_cell : {"error", "most_frequent", "first", "hash"}
        Which of its own cells a unit with several is counted in. With "error" it is only reported. "hash" takes the
        one of which a hash, of the unit and the cell, is the smallest; so does "most_frequent" of equals.
    order_by : tuple of str
        For "first": the columns whose smallest values come first.
    """

    unit: tuple[str, ...]
    where: Any = None
    by: tuple[str, ...] = ()
    one_cell: str = "error"
    order_by: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if isinstance(self.where, str):
            object.__setattr__(self, "where", from_query(self.where))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CellCounts:
    """How many distinct units every non-empty cell holds.

    Parameters
    ----------
    keys : pandas.DataFrame
        The by-columns of the cells, under their public dtypes.
    counts : integer array, one per cell
    missing_unit : bool
        Whether a row has a missing value in a unit column; such rows are not counted.
    several_cells : bool
        Whether a unit was found in several cells and no rule said which one counts; then no cells are given.
    mixed : bool
        Whether a unit column holds values of several types, such as 7 and "7", in any row.
    alike : bool
        Whether two units, of any rows, differ by nothing but the `SPACES` around their texts.
    """

    keys: pd.DataFrame
    counts: npt.NDArray[np.int64]
    missing_unit: bool
    several_cells: bool
    mixed: bool = False
    alike: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """How many distinct units there are, and how many have a row that satisfies the predicate; see `CellCounts`."""

    satisfying: int
    population: int
    missing_unit: bool
    mixed: bool = False
    alike: bool = False


class Engine(Protocol):
    """Counts distinct units; knows nothing about privacy.

    All methods read the frame, never change it, and raise errors that name columns and rules only.
    """

    def cells(self, frame: Any, question: Question) -> CellCounts:
        """Count the units in every cell of ``question.by``, among the rows that satisfy ``where``."""
        ...

    def tally(self, frame: Any, question: Question) -> Tally:
        """Count the units that satisfy ``where`` in at least one of their rows, and all units."""
        ...
