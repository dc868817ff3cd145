"""People drawn as an attacker sees them, and the frame that a curator, or a job, would have of them."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from pkdp_pipeline.engines.pandas_engine import selected_rows
from pkdp_pipeline.errors import PkdpError
from pkdp_pipeline.extras.assurance.attacks.crowd import Crowd, Life
from pkdp_pipeline.model.predicate import Condition, Predicate

if TYPE_CHECKING:
    import pandas as pd
    from numpy.random import Generator

    from pkdp_pipeline.model.question import Question

ABSENT = -1
_UNDECLARED = "elsewhere"
_MAX_TRIED = 400
Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Filtered:
    """Values of the columns of a filter: of a row that it keeps, and of one that it does not."""

    kept: Mapping[str, Any] = field(default_factory=dict)
    dropped: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """The form of a curator's frame; nothing here depends on the target's life.

    Parameters
    ----------
    counts : bool
        Whether everybody has rows, and a column says which of them count: where one number is asked for, and where a
        filter is.
    elsewhere : bool
        Whether people who are absent have rows in a cell that nobody has declared; not together with `strays`.
    spread : int
        How many cells there are for each of the crowd's, all of them alike: everybody is in each of these
        independently of the others, the controlled people in all of theirs. 1: a person is in one cell.
    occupied : int
        In how many of them the target is.
    companions : tuple of int
        Of a histogram: further cells beside the target's, with this many people surely in each.
    rows : tuple of int
        How many rows a person can have; each number is as likely.
    strays : bool
        Whether everybody has one row more, later than the others, in the next cell: rules for people with rows in
        several cells must not count it.
    text : bool
        Whether people are named by text; else by whole numbers.
    nameless : int
        Rows in every cell that name no person.
    strangers : int
        People in a cell that nobody has declared.
    adds : tuple of two int
        The number in every row of the target, and in every row of all others, where a column is summed.
    request : Question, optional
        A job's, which names the columns; None: as `frame_of` does.
    where : Filtered
        Of the request's filter.
    """

    counts: bool = False
    elsewhere: bool = False
    spread: int = 1
    occupied: int = 1
    companions: tuple[int, ...] = ()
    rows: tuple[int, ...] = (1,)
    strays: bool = False
    text: bool = False
    nameless: int = 0
    strangers: int = 0
    adds: tuple[int, int] = (1, 1)
    request: Question | None = None
    where: Filtered = field(default_factory=Filtered)

    def cells(self, crowd: Crowd) -> int:
        """Return how many cells each copy of a crowd has."""
        return crowd.cells * self.spread + len(self.companions)

    def keys(self, crowd: Crowd, copies: int) -> list[tuple[Any, ...]]:
        """Return the keys of all cells, copy by copy, in an order that is not theirs."""
        names = self._names(copies * self.cells(crowd))
        if self.request is None:
            return [(name,) for name in names]
        if self.request.domain is not None:
            return list(self.request.domain.cells[: len(names)])
        return [(name, *("same" for _ in self.request.by[1:])) for name in names]

    def _names(self, number: int) -> list[str]:
        places = np.random.default_rng(number).permutation(number)
        # The target's cell is neither the first nor the last: what comes after a withheld row might tell of it.
        middle = int(np.flatnonzero(places == number // 2)[0])
        places[[0, middle]] = places[[middle, 0]]
        return [f"cell {place:03d}" for place in places]


def draw(crowd: Crowd, lives: Sequence[Life], layout: Layout, generator: Generator) -> Numbers:
    """Return where everybody is: one row for each of the lives, an independent copy of the crowd, its target first.

    A place is a cell of the copy, or `ABSENT`; after the target come the people whom the attacker knows. Where people
    may be in several cells, each has as many places.
    """
    if layout.spread > 1:
        return _drawn_in_several(crowd, lives, layout, generator)
    copies = len(lives)
    columns: list[Numbers] = [np.array([[ABSENT if life is None else life] for life in lives], dtype=np.int64)]
    for group in (*crowd.known, *crowd.unknown):
        ends = np.cumsum(group.chances)
        cells = np.searchsorted(ends, generator.random((copies, group.people)), side="right").astype(np.int64)
        columns.append(np.where(cells == crowd.cells, ABSENT, cells))
    for cell, people in enumerate((*(crowd.controlled or (0,) * crowd.cells), *layout.companions)):
        columns.append(np.full((copies, people), cell, dtype=np.int64))
    return np.hstack(columns)


def _drawn_in_several(crowd: Crowd, lives: Sequence[Life], layout: Layout, generator: Generator) -> Numbers:
    copies, places = len(lives), np.arange(crowd.cells * layout.spread)
    alike = places // layout.spread
    chosen = np.array([ABSENT if life is None else life for life in lives])[:, None, None]
    columns = [(chosen == alike) & (places % layout.spread < layout.occupied)]
    for group in (*crowd.known, *crowd.unknown):
        chances = np.array(group.chances)[alike]
        columns.append(generator.random((copies, group.people, len(places))) < chances)
    for cell, people in enumerate(crowd.controlled):
        columns.append(np.broadcast_to(alike == cell, (copies, people, len(places))))
    drawn = np.where(np.concatenate(columns, axis=1), places, ABSENT)
    for place, people in enumerate(layout.companions, len(places)):
        beside = np.full((copies, people, len(places)), ABSENT, dtype=np.int64)
        beside[..., 0] = place
        drawn = np.concatenate([drawn, beside], axis=1)
    return drawn


def shown_to_attacker(crowd: Crowd, places: Numbers) -> tuple[int, ...]:
    """Return what the attacker is shown of a copy beside the table: how many known people are where; the total."""
    known = sum(group.people for group in crowd.known)
    numbers = np.stack(np.unique(places[1 : 1 + known], return_counts=True), axis=1).ravel().tolist()
    return (*numbers, int(np.count_nonzero(places != ABSENT))) if crowd.sees_total else tuple(numbers)


def frame_of(drawn: Numbers, crowd: Crowd, layout: Layout, generator: Generator) -> pd.DataFrame:
    """Return the rows of these people, shuffled, among columns that nobody asks for.

    The columns are ``person``, ``cell``, ``counted`` (whether the row counts), ``turn`` (the order of a person's rows),
    ``visits`` (a whole number), and two that mean nothing; a job's request has columns of its own.
    """
    import pandas as pd

    copies, people = drawn.shape[:2]
    copy_size = drawn[0, 0].size
    width = layout.cells(crowd)
    keys = layout.keys(crowd, copies)
    names = np.random.default_rng(copies * people).permutation(copies * people) + 1000
    where = drawn.ravel()
    there = np.arange(len(where)) if layout.counts or layout.elsewhere else np.flatnonzero(where != ABSENT)
    rows = np.repeat(there, generator.choice(layout.rows, len(there)))
    cells = where[rows]
    if layout.strays:
        rows, cells = np.concatenate([rows, there]), np.concatenate([cells, (where[there] + 1) % width])
    rows //= copy_size
    # Each copy's target comes first.
    visits = [layout.adds[bool(row % people)] for row in rows.tolist()]
    places = rows // people * width + np.where(cells == ABSENT, 0, cells)
    places[layout.elsewhere & (cells == ABSENT)] = -1
    # After these come rows that name nobody, and people in a cell that is not public.
    others: list[tuple[Any, int]] = [(None, place) for place in range(len(keys)) for _ in range(layout.nameless)]
    others += [(f"s{number}" if layout.text else number, -1) for number in range(layout.strangers)]
    persons = [f"p{name}" for name in names[rows]] if layout.text else names[rows].tolist()
    persons += [person for person, _ in others]
    visits += [layout.adds[1]] * len(others)
    places = np.append(places, np.array([place for _, place in others], dtype=np.int64))
    counted = np.append(layout.elsewhere | (cells != ABSENT), np.ones(len(others), dtype=bool))
    turns = np.append(np.arange(len(rows)), np.arange(len(others)))
    order, request = generator.permutation(len(persons)), layout.request
    if request is not None:
        columns: dict[str, Any] = dict.fromkeys(request.order_by, turns)
        columns |= {name: "same" if place else persons for place, name in enumerate(request.unit)}
        columns |= {name: [keys[place][position] for place in places] for position, name in enumerate(request.by)}
        columns |= {} if request.summed is None else {request.summed: visits}
        for name, kept in layout.where.kept.items():
            columns[name] = [kept if counts else layout.where.dropped.get(name) for counts in counted]
        return pd.DataFrame(columns, index=range(len(persons))).iloc[order]
    spelled = [*(name for (name,) in keys), _UNDECLARED]
    frame = pd.DataFrame(
        {
            "person": pd.array(persons, dtype="str" if layout.text else "int64"),
            "note": np.zeros(len(persons), dtype=np.int64),
            "cell": pd.array([spelled[place] for place in places], dtype="str"),
            "counted": counted,
            "turn": turns,
            "visits": np.array(visits, dtype=np.int64),
        }
    ).iloc[order]
    frame["note"], frame["amount"] = generator.integers(0, 9, len(order)), generator.random(len(order))
    frame.attrs["title"] = "audit"
    return frame


def filtered(where: Predicate | None) -> Filtered | None:
    """Return values that a filter keeps and drops, found by trying; None where none were found.

    Tried are the constants of the filter, what lies beside them, dates and texts as it asks for them, and truth values,
    in every column it names.
    """
    if where is None:
        return Filtered()
    names, constants = sorted(where.columns), list[Any]()
    for condition in where.conditions:
        for constant in condition.constants if condition.part is None else ():
            if isinstance(constant, str):
                text = _likely(constant) if condition.operator == "like" else constant
                constants += [text, f"{text}~", f"~{text}", ""]
            elif not isinstance(constant, bool):
                constants += [constant, constant + 1, constant - 1]
    constants += _dates([condition for condition in where.conditions if condition.part is not None])
    # A column has values of one type, in rows that are kept and in rows that are not.
    rows_by_type: dict[tuple[type, ...], dict[bool, dict[str, Any]]] = {}
    tried = itertools.product([*dict.fromkeys(constants), True, False], repeat=len(names))
    for values in itertools.islice(tried, _MAX_TRIED):
        row = dict(zip(names, values, strict=True))
        answer = _answer(where, row)
        if answer is not None:
            rows = rows_by_type.setdefault(tuple(map(type, values)), {})
            rows.setdefault(answer, row)
            if len(rows) == 2:
                return Filtered(kept=rows[True], dropped=rows[False])
    return None


def _likely(pattern: str) -> str:
    """Return a text that has a pattern."""
    return re.sub(r"\\(.)|%|_", lambda match: match[1] or {"_": "a"}.get(match[0], ""), pattern, flags=re.DOTALL)


def _dates(conditions: Sequence[Condition]) -> list[Any]:
    """Return dates with the parts that are asked for, and dates beside them; none where no part is."""
    import pandas as pd

    parts: dict[str | None, list[int]] = {}
    for condition in conditions:
        numbers = [int(constant) for constant in condition.constants if isinstance(constant, (int, float))]
        parts.setdefault(condition.part, []).extend(number + more for number in numbers for more in (0, 1, -1))
    days = range(1, 8) if "weekday" in parts else parts.get("day", [1])
    dates = []
    for year, month, day in itertools.product(parts.get("year", [2020]), parts.get("month", [1]), days):
        with suppress(ValueError):  # there is no such day
            dates.append(pd.Timestamp(year=year, month=month, day=day))
    return dates if parts else []


def _answer(where: Predicate, row: Mapping[str, Any]) -> bool | None:
    """Return what a filter says of one row; None where its values do not fit it."""
    import pandas as pd

    try:
        frame = pd.DataFrame({name: [value] for name, value in row.items()})
        return bool(np.any(selected_rows(frame, where)))
    except PkdpError:
        # Whatever does not fit: other values are tried.
        return None
