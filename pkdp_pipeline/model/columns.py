"""Columns of a question: the unit, by-columns and groups of their values, and the names that a frame has.

A `Selection` is the part of a question that an engine answers.
"""

from __future__ import annotations

import difflib
import enum
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from itertools import pairwise, product
from typing import Any, Final, Literal, get_args

from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.model.predicate import Condition, from_query
from pkdp_pipeline.model.wording import listed

Calendar = Literal["week", "month", "quarter", "year"]
"""The parts of the calendar that dates are grouped by; weeks are those of ISO 8601."""

_MAX_EDGES = 200
_NUMBER = r"(-?\d+(?:\.\d+)?(?:e[+-]?\d+)?)"
_SPELLED = re.compile(r"(.+) in groups \(.+\)", re.DOTALL)
_NAME = re.compile(f"(under )?{_NUMBER}(?:–{_NUMBER}| or more| to under {_NUMBER})?")


@dataclass(frozen=True, slots=True)
class Bins:
    """A by-column whose values are counted in groups; made by `bins`.

    Attributes
    ----------
    column : str
        The published column has this name.
    edges : tuple of int or float, or {"week", "month", "quarter", "year"}
        A number from one edge on and below the next is in a group; what is below an edge is said as by a predicate.
    """

    column: str
    edges: tuple[int | float, ...] | Calendar

    def __post_init__(self) -> None:
        if not isinstance(self.column, str) or not self.column:
            raise ArgumentError("bins must name a column.")
        if isinstance(self.edges, str):
            if self.edges not in get_args(Calendar):
                raise ArgumentError(f"the edges of bins must be numbers, or one of {', '.join(get_args(Calendar))}.")
            return
        object.__setattr__(self, "edges", _edges(self.edges))

    @property
    def labels(self) -> tuple[str, ...]:
        """The names of the groups from the first edge on, in their order: as cells of a domain.

        Raises `ArgumentError` for weeks and the like: which of them there are is said by a domain of its own.
        """
        return self.names[1:]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all groups, the one below the first edge before the others. Raises as `labels` does."""
        if isinstance(self.edges, str):
            raise ArgumentError(f"bins by {self.edges} have no list of groups: list those of the domain, in domain.")
        whole = all(isinstance(edge, int) for edge in self.edges)
        between = [
            (f"{low}–{high - 1}" if high - low > 1 else str(low)) if whole else f"{low} to under {high}"
            for low, high in pairwise(self.edges)
        ]
        return (f"under {self.edges[0]}", *between, f"{self.edges[-1]} or more")

    @property
    def below(self) -> tuple[Condition, ...]:
        """For each edge the condition that a value is below it, as a predicate has it."""
        return () if isinstance(self.edges, str) else tuple(Condition(self.column, "<", edge) for edge in self.edges)

    def of_day(self, day: date | None) -> str | None:
        """Return the name of the week, month, quarter or year of `day`; None of a missing one."""
        if day is None:
            return None
        week = day.isocalendar()
        return {
            "week": f"{week.year:04}-W{week.week:02}",
            "month": f"{day.year:04}-{day.month:02}",
            "quarter": f"{day.year:04}-Q{(day.month + 2) // 3}",
            "year": f"{day.year:04}",
        }[str(self.edges)]

    def holds(self, kind: str | None) -> None:
        """Raise `ArgumentError` unless a column of this `kind` of values can be grouped so."""
        numbers = not isinstance(self.edges, str)
        if kind not in (("integer", "real", "decimal") if numbers else ("date", "timestamp")):
            needed = "numbers" if numbers else "dates, or times without a zone"
            raise ArgumentError(
                f"by column {self.column!r} must hold {needed} to be counted in groups: convert it, or count it as it "
                "is."
            )

    @property
    def spelled(self) -> str:
        """The column and its groups, as one name: a ledger tells by it what is the same grouping."""
        groups = self.edges if isinstance(self.edges, str) else ", ".join(map(repr, self.edges))
        return f"{self.column} in groups ({groups})"

    @property
    def words(self) -> str:
        """The column and its edges, as a statement has them."""
        if isinstance(self.edges, str):
            return f"{self.column!r} by the {self.edges}"
        return f"{self.column!r} from {listed(list(map(str, self.edges)))} on"


def bins(column: str, edges: Sequence[int | float] | Calendar) -> Bins:
    """Return a by-column whose values are counted in groups, as in ``by=[pkdp.bins("age", [0, 18, 40, 65]), "sex"]``.

    Parameters
    ----------
    column : str
        A column of numbers, or of dates or times without a zone. A value that is missing stays so.
    edges : sequence of int or float, or {"week", "month", "quarter", "year"}
        Fixed beforehand: edges made from the data would tell what these hold. ``[0, 18, 65]`` has the groups "0–17",
        "18–64" and "65 or more", and "under 0" below the first. Weeks are those of ISO 8601, "2026-W15".

    Returns
    -------
    Bins
        `Bins.labels` are the groups from the first edge on: ``domain={"sex": ["f", "m"]}`` may leave the column out.

    Raises
    ------
    ArgumentError
        If the edges are not numbers that rise, or are to be made from the data.
    """
    return Bins(column, edges)  # type: ignore[arg-type]  # a sequence is checked, and kept as a tuple


def _edges(edges: Any) -> tuple[int | float, ...]:
    if isinstance(edges, int | float):
        raise ArgumentError(
            "the edges of bins must be a list, fixed beforehand: a number of groups, or quantiles, would be made from "
            "the data and tell what these hold. Write the edges, as in [0, 18, 40, 65]."
        )
    if isinstance(edges, bytes) or not hasattr(edges, "__iter__"):
        raise ArgumentError("the edges of bins must be a list of numbers, as in [0, 18, 40, 65].")
    read = []
    for edge in edges:
        number = edge.item() if hasattr(edge, "item") else edge
        if isinstance(number, bool) or not isinstance(number, int | float) or not _is_finite(number):
            raise ArgumentError("the edges of bins must be finite numbers, as in [0, 18, 40, 65].")
        read.append(int(number) if isinstance(number, float) and number.is_integer() else number)
    if not 1 <= len(read) <= _MAX_EDGES or any(low >= high for low, high in pairwise(read)):
        raise ArgumentError(f"the edges of bins must rise, and be from one to {_MAX_EDGES:,}.")
    return tuple(read)


def _is_finite(number: float) -> bool:
    return isinstance(number, int) or math.isfinite(number)


def named(by: Any) -> tuple[Any, dict[str, Bins]]:
    """Return by-columns as their names, and the groups of those that have any."""
    if isinstance(by, Bins):
        by = [by]
    if isinstance(by, str) or not isinstance(by, Sequence):
        return by, {}
    grouped = {entry.column: entry for entry in by if isinstance(entry, Bins)}
    return tuple(entry.column if isinstance(entry, Bins) else entry for entry in by), grouped


def grouping(by: Sequence[str | Bins] | None) -> tuple[str, ...] | None:
    """Return by-columns as they group people: two of one name whose values are grouped otherwise are not the same."""
    return None if by is None else tuple(entry.spelled if isinstance(entry, Bins) else entry for entry in by)


def grouped_column(name: str) -> str | None:
    """Return the column of a grouping's `spelled` name; None where it is another name."""
    match = _SPELLED.fullmatch(name)
    return None if match is None else match[1]


def with_groups(domain: Any, groups: Iterable[Bins]) -> Any:
    """Return a domain that gives the values of columns, with the groups of those columns that it leaves out."""
    if not isinstance(domain, Mapping):
        return domain
    return {**domain, **{entry.column: entry.labels for entry in groups if entry.column not in domain}}


def group_order(names: Iterable[Any]) -> dict[Any, float] | None:
    """Return where groups of numbers stand among one another, by their names; None where some text is no such name."""
    places = {}
    for name in names:
        match = _NAME.fullmatch(name) if isinstance(name, str) else None
        if match is None:
            return None
        places[name] = -math.inf if match[1] else float(match[2])
    return places


def is_ordered(cells: Sequence[tuple[Any, ...]]) -> bool:
    """Return whether found cells are in their order; groups of a column may be in that of the values."""
    from pkdp_pipeline.model.keys import sort_rank  # which loads NumPy

    columns = [group_order(key for key in column if key is not None) for column in zip(*cells, strict=True)]
    # Which columns were grouped is not known here: each that looks so is in either order.
    for orders in product(*(({}, places) if places else ({},) for places in columns)):
        ranks = [sort_rank([order.get(key, key) for order, key in zip(orders, cell, strict=True)]) for cell in cells]
        if ranks == sorted(ranks):
            return True
    return not cells


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
        begun = [column for column in known if column.casefold().startswith(name.casefold())]
        close = alike or difflib.get_close_matches(name, known, n=1) or begun
        text = f"; a text is written {name!r}" * (argument == "where")
        hint = f"Did you mean {close[0]!r}?" if close else f"It has {columns_listed(known)}{text}."
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
