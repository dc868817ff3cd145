"""The part of a question that engines answer, and the privacy unit that they count."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from pkdp_pipeline.model.bins import Bins
from pkdp_pipeline.model.query import from_query

OneCell = Literal["error", "most_frequent", "first", "hash"]


class EachRow(enum.Enum):
    """The type of `EACH_ROW`, the privacy unit of a frame in which every row is a person."""

    EACH_ROW = "each row"

    def __repr__(self) -> str:
        return "pkdp.EACH_ROW"


EACH_ROW: Final = EachRow.EACH_ROW


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Selection:
    """The part of a question that an engine answers, in column names.

    Parameters
    ----------
    unit : tuple of str
        Columns that name a person; empty where each row is a person.
    where : Predicate, str, boolean Series, expression or callable, optional
        Which rows count. A missing answer is "no". A str is a column or a query string, and is read.
    by : tuple of str
        Columns that name a cell; empty for a count.
    bins : mapping of str to Bins
        Those of them whose values are counted in groups.
    one_cell : {"error", "most_frequent", "first", "hash"}, default "error"
        Which of its own cells a person with rows in several is counted in: an error, the one with most rows
        (of equals the one that "hash" draws), the one whose row has the smallest `order_by` (the smallest of equals),
        or one drawn by a fixed hash of the person's name and cells.
    order_by : tuple of str
        Needed by, and only by, ``one_cell="first"``. Missing values come last.
    cells_per_unit : int, default 1
        The most cells a person may be in. Above 1 the rule is "error" where she has more, or "hash", which draws that
        many of them.
    everybody : bool, default True
        For a count: whether those are counted, too, who do not satisfy `where`.
    bounds : tuple of two int, optional
        For a sum: each person adds to a cell the sum of `summed` over her rows there, clamped to these.
    summed : str, optional
        The summed column, of whole numbers. None: rows are counted.
    """

    unit: Any
    where: Any = None
    by: Any = ()
    bins: Mapping[str, Bins] = field(default_factory=dict)
    one_cell: OneCell = "error"
    order_by: Any = ()
    cells_per_unit: int = 1
    everybody: bool = True
    bounds: tuple[int, int] | None = None
    summed: str | None = None

    def __post_init__(self) -> None:
        if isinstance(self.where, str) and self.where.strip():
            object.__setattr__(self, "where", from_query(self.where))

    @property
    def summed_columns(self) -> tuple[str, ...]:
        """The column that is summed; none where rows are, or units are counted."""
        return () if self.summed is None else (self.summed,)

    @property
    def counts_in_one_cell(self) -> bool:
        """Whether units are counted, each of whom should have one cell."""
        return self.one_cell == "error" and self.cells_per_unit == 1 and self.bounds is None
