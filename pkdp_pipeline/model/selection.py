"""The part of a question that engines answer, the privacy unit that they count, and names of columns."""

from __future__ import annotations

import difflib
import enum
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.model.bins import Bins
from pkdp_pipeline.model.query import from_query

OneCell = Literal["error", "most_frequent", "first", "hash"]


class EachRow(enum.Enum):
    """The type of `EACH_ROW`, the privacy unit of a frame in which every row is a person."""

    EACH_ROW = "each row"

    def __repr__(self) -> str:
        return "pkdp.EACH_ROW"


EACH_ROW: Final = EachRow.EACH_ROW

_MAX_COLUMNS_LISTED = 20


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


def check_columns(argument: str, names: Iterable[str], columns: Sequence[object], of: str = "the frame") -> None:
    """Raise `ArgumentError` unless every name is one of the columns of a frame, and only one.

    The message may list column names: they are part of the schema, not of the data.
    """
    known = [column for column in columns if isinstance(column, str)]
    for name in names:
        count = known.count(name)
        if count > 1:
            raise ArgumentError(f"{argument} names column {name!r}, which {of} has more than once; rename one.")
        # DuckDB takes names that differ in case for one, and gives the second column another.
        renamed = [column for column in known if not count and re.fullmatch(rf"{re.escape(name)}_\d+", column)]
        alike = [column for column in known if column != name and column.casefold() == name.casefold()]
        if alike and (count or renamed):
            raise ArgumentError(
                f"{argument} names column {name!r}, and {of} has {alike[0]!r} as well"
                f"{f', because of which it is read as {renamed[0]!r}' if renamed else ''}: capitals and small letters "
                "are not told apart everywhere; rename one."
            )
        if count:
            continue
        close = alike or difflib.get_close_matches(name, known, n=1)
        hint = f"Did you mean {close[0]!r}?" if close else f"It has {columns_listed(known)}."
        raise ArgumentError(f"{argument} names column {name!r}, which {of} does not have. {hint}")


def columns_listed(columns: Iterable[str]) -> str:
    """Return the first columns of a table as a message lists them."""
    known = [*columns]
    return (
        ", ".join(map(repr, known[:_MAX_COLUMNS_LISTED])) + (", …" if len(known) > _MAX_COLUMNS_LISTED else "")
        or "no columns"
    )


def twins(columns: Sequence[str]) -> tuple[str, str] | None:
    """Return two columns that have one name, letter case aside; None where there are none."""
    spellings: dict[str, str] = {}
    for column in columns:
        if column.casefold() in spellings:
            return spellings[column.casefold()], column
        spellings[column.casefold()] = column
    return None
