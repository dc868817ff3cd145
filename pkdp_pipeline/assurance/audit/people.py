"""People drawn as an attacker sees them, and the frame that a curator, or a job, would have of them."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from pkdp_pipeline.assurance.attacks.crowd import Crowd, Life
from pkdp_pipeline.model.predicate import Predicate

if TYPE_CHECKING:
    import pandas as pd
    from numpy.random import Generator

ABSENT = -1
_UNDECLARED = "elsewhere"
_MOST_TRIED = 400
Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Filtered:
    """Values of the columns of a filter: of a row that it keeps, and of one that it does not."""

    kept: Mapping[str, Any] = field(default_factory=dict)
    dropped: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """A job's columns.

    Parameters
    ----------
    unit, by, order_by : tuple of str
    cells : tuple of tuples, optional
        The declared cells; None where they are found in the data.
    where : Filtered
    """

    unit: tuple[str, ...]
    by: tuple[str, ...] = ()
    order_by: tuple[str, ...] = ()
    cells: tuple[tuple[Any, ...], ...] | None = None
    where: Filtered = field(default_factory=Filtered)

    def keys(self, names: Sequence[str]) -> list[tuple[Any, ...]]:
        """Return the keys of the cells that an audit calls by these names."""
        if self.cells is not None:
            return list(self.cells[: len(names)])
        return [(name, *("same" for _ in self.by[1:])) for name in names] if self.by else [(name,) for name in names]

    def dressed(self, frame: pd.DataFrame, names: Sequence[str]) -> pd.DataFrame:
        """Return the rows of an audit's frame under the job's columns."""
        import pandas as pd

        keys = dict(zip(names, self.keys(names), strict=True))
        columns: dict[str, Any] = {name: frame["turn"].to_numpy() for name in self.order_by}
        columns |= {name: frame["person"].to_numpy() if not place else "same" for place, name in enumerate(self.unit)}
        for place, name in enumerate(self.by):
            columns[name] = [keys[cell][place] for cell in frame["cell"]]
        for name in self.where.kept:
            kept, dropped = self.where.kept[name], self.where.dropped.get(name)
            columns[name] = [kept if counted else dropped for counted in frame["counted"]]
        return pd.DataFrame(columns, index=frame.index)


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """What a curator's frame looks like; nothing here depends on the target's life.

    Parameters
    ----------
    counts : bool
        Whether everybody has rows, and a column says which of them count: where one number is asked for, and where a
        filter is.
    elsewhere : bool
        Whether people who are absent have rows in a cell that nobody has declared; not together with `strays`.
    companions : tuple of int
        Of a histogram: further cells beside the target's, with so many people surely in each.
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
    columns : Columns, optional
        What a job calls the columns; None: as `frame_of` does.
    """

    counts: bool = False
    elsewhere: bool = False
    companions: tuple[int, ...] = ()
    rows: tuple[int, ...] = (1,)
    strays: bool = False
    text: bool = False
    nameless: int = 0
    strangers: int = 0
    columns: Columns | None = None

    def cells(self, crowd: Crowd) -> int:
        """Return how many cells each copy of a crowd has."""
        return crowd.cells + len(self.companions)

    def keys(self, crowd: Crowd, copies: int) -> list[tuple[Any, ...]]:
        """Return the keys of all cells, copy by copy, in an order that is not theirs."""
        number = copies * self.cells(crowd)
        places = np.random.default_rng(number).permutation(number)
        # The target's cell is neither the first nor the last: what comes after a withheld row might tell of it.
        middle = int(np.flatnonzero(places == number // 2)[0])
        places[[0, middle]] = places[[middle, 0]]
        names = [f"cell {place:03d}" for place in places]
        return [(name,) for name in names] if self.columns is None else self.columns.keys(names)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Drawn:
    """Where everybody is, in several independent copies of a crowd.

    Attributes
    ----------
    cells : array
        One row per copy; the target is its first person. `ABSENT`, or a cell of the copy.
    known : int
        How many of each copy's people, after the target, the attacker is shown.
    sees_total : bool
        Whether the attacker is also told how many people are present.
    """

    cells: Numbers
    known: int
    sees_total: bool = False

    def shown(self, copy: int) -> tuple[int, ...]:
        """Return what the attacker is shown beside the table: how many known people are in each place; the total."""
        places, people = np.unique(self.cells[copy, 1 : 1 + self.known], return_counts=True)
        known = tuple(int(number) for pair in zip(places, people, strict=True) for number in pair)
        return (*known, int(np.count_nonzero(self.cells[copy] != ABSENT))) if self.sees_total else known


def draw(crowd: Crowd, lives: Sequence[Life], layout: Layout, generator: Generator) -> Drawn:
    """Draw one copy of a crowd for each of the target's lives."""
    copies = len(lives)
    columns: list[Numbers] = [np.array([[ABSENT if life is None else life] for life in lives], dtype=np.int64)]
    for group in (*crowd.known, *crowd.unknown):
        ends = np.cumsum(group.chances)
        cells = np.searchsorted(ends, generator.random((copies, group.people)), side="right").astype(np.int64)
        columns.append(np.where(cells == crowd.cells, ABSENT, cells))
    for cell, people in enumerate((*(crowd.controlled or (0,) * crowd.cells), *layout.companions)):
        columns.append(np.full((copies, people), cell, dtype=np.int64))
    shown = sum(group.people for group in crowd.known)
    return Drawn(cells=np.hstack(columns), known=shown, sees_total=crowd.sees_total)


def frame_of(drawn: Drawn, crowd: Crowd, layout: Layout, generator: Generator) -> pd.DataFrame:
    """Return the rows of these people, shuffled, among columns that nobody asks for.

    The columns are ``person``, ``cell``, ``counted`` (whether the row counts), ``turn`` (the order of a person's rows),
    and two that mean nothing.
    """
    import pandas as pd

    copies, people = drawn.cells.shape
    width = layout.cells(crowd)
    names_of = [key[0] for key in replace(layout, columns=None).keys(crowd, copies)]
    names = np.random.default_rng(copies * people).permutation(copies * people) + 1000
    where = drawn.cells.ravel()
    there = np.arange(copies * people) if layout.counts or layout.elsewhere else np.flatnonzero(where != ABSENT)
    rows = np.repeat(there, generator.choice(layout.rows, len(there)))
    turns = np.arange(len(rows))
    if layout.strays:
        rows, turns = np.concatenate([rows, there]), np.concatenate([turns, len(rows) + np.arange(len(there))])
    cells = where[rows]
    if layout.strays:
        cells[len(rows) - len(there) :] = (cells[len(rows) - len(there) :] + 1) % width
    places = rows // people * width + np.where(cells == ABSENT, 0, cells)
    # After these come rows that name nobody, and people in a cell that is not public.
    others: list[tuple[Any, str]] = [(None, name) for name in names_of for _ in range(layout.nameless)]
    others += [(f"s{number}" if layout.text else number, _UNDECLARED) for number in range(layout.strangers)]
    people_named = [f"p{name}" for name in names[rows]] if layout.text else names[rows].tolist()
    cells_named = [
        _UNDECLARED if layout.elsewhere and cell == ABSENT else names_of[place]
        for cell, place in zip(cells, places, strict=True)
    ]
    number = len(rows) + len(others)
    order = generator.permutation(number)
    frame = pd.DataFrame(
        {
            "person": pd.array(
                [*people_named, *(person for person, _ in others)], dtype="str" if layout.text else "int64"
            ),
            "cell": pd.array([*cells_named, *(cell for _, cell in others)], dtype="str"),
            "counted": np.append(layout.elsewhere | (cells != ABSENT), np.ones(len(others), dtype=bool)),
            "turn": np.append(turns, np.arange(len(others))),
        }
    ).iloc[order]
    frame.insert(1, "note", generator.integers(0, 9, number))
    frame["amount"] = generator.random(number)
    frame.attrs["title"] = "audit"
    return frame if layout.columns is None else layout.columns.dressed(frame, names_of)


def filtered(where: Predicate | None) -> Filtered | None:
    """Return values that a filter keeps and drops, found by trying; None where none were found.

    Tried are the constants of the filter, what lies beside them, and truth values, in every column it names.
    """
    if where is None:
        return Filtered()
    names, constants = sorted(where.columns), list[Any]()
    for constant in (each for condition in where.conditions for each in condition.constants):
        if isinstance(constant, str):
            constants += [constant, f"{constant}~", ""]
        elif not isinstance(constant, bool):
            constants += [constant, constant + 1, constant - 1]
    # A column has values of one type, in rows that are kept and in rows that are not.
    found: dict[tuple[type, ...], dict[bool, dict[str, Any]]] = {}
    for values in itertools.islice(
        itertools.product([*dict.fromkeys(constants), True, False], repeat=len(names)), _MOST_TRIED
    ):
        row = dict(zip(names, values, strict=True))
        answer = _answer(where, row)
        if answer is not None:
            rows = found.setdefault(tuple(map(type, values)), {})
            rows.setdefault(answer, row)
            if len(rows) == 2:
                return Filtered(kept=rows[True], dropped=rows[False])
    return None


def _answer(where: Predicate, row: Mapping[str, Any]) -> bool | None:
    """Return what a filter says of one row; None where its values do not fit it."""
    import pandas as pd

    try:
        frame = pd.DataFrame({name: [value] for name, value in row.items()})
        return len(frame.query(str(where), engine="python")) == 1
    except Exception:
        # Whatever does not fit: other values are tried.
        return None
