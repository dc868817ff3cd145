"""Bounds by exact totals of groups on the suppressed cells of a public table; post-processing, as `derived` is."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import pandas as pd

from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.model.context import Context, one_reading
from pkdp_pipeline.model.keys import Key, canonical_key
from pkdp_pipeline.model.mechanisms import Mechanism
from pkdp_pipeline.releases.derived import check_adds_up, rollup

_MAX_OPEN_CELLS = 100
"""Each takes two linear programs, of some milliseconds."""

_MAX_ROUNDS = 1000
"""Large counts may come down by one a round."""

_INFEASIBLE = 2
_SOLVER_ERROR = 1e-5
"""Above the tolerance of the solver: what is rounded inward by it is a whole number still outside."""

_NOT_THESE = "totals are not those of this table: give the release of its own groups, or the figures as they are known"


def within_totals(table: pd.DataFrame, mechanism: Mechanism, totals: pd.DataFrame, *, declared: bool) -> pd.DataFrame:
    """Return the cells with the total of their group, suppressed ones as intervals; see `Release.within`.

    Without by-columns the group of the totals is the whole table.

    Notes
    -----
    *Guarantee*: every number of people in ``[least, most]`` of a suppressed cell is that of some true table that would
    have been published as `table` beside `totals`, and no other number is. With h suppressed cells in a group, which
    hold s people together, these are the numbers from ``max(0, s - (h - 1)(k - 1))`` to ``min(k - 1, s)``.
    """
    if not isinstance(totals, pd.DataFrame):
        raise ArgumentError(f"totals must be a release or a pandas DataFrame, not {type(totals).__name__}.")
    columns, groups = ([name for name in frame.columns if name != "count"] for frame in (table, totals))
    if not set(groups) < set(columns) or len(set(groups)) < len(groups) or "count" not in totals:
        raise ArgumentError("totals must have some of the by-columns of this histogram, not all, and a column 'count'.")
    if not pd.api.types.is_integer_dtype(totals["count"].dtype):
        raise ArgumentError("totals must have whole numbers in their column 'count'.")
    if any(column.casefold() in ("total", "least", "most") for column in columns):
        raise ArgumentError("a by-column has the name of a column that the result has: total, least or most.")
    if mechanism.noise is not None or not declared:
        raise ArgumentError(
            "totals bound suppressed cells of a histogram without noise whose cells are declared: give domain when you "
            "publish it."
        )
    if mechanism.display is not None:
        raise ArgumentError(
            "totals bound suppressed cells of exact counts, and those of this histogram have a rule of display: "
            "publish it without display."
        )
    check_adds_up(mechanism)
    known = dict(zip(_keys(totals, groups), _counts(totals), strict=True))
    if len(known) < len(totals):
        raise ArgumentError(f"{_NOT_THESE}. Each group of the table has one total.")
    frame = rollup(table, mechanism, columns, declared=declared)
    keys = _keys(frame, groups)
    for row, (least, most) in enumerate(hidden_bounds(_counts(frame), mechanism.k, [(keys, known)])):
        frame.loc[row, ["least", "most"]] = least, most
    frame["total"] = pd.array([known[key] for key in keys], dtype="Int64")
    return frame


def hidden_bounds(
    counts: Sequence[int | None], k: int | None, totals: Sequence[tuple[Sequence[Hashable], Mapping[Any, int | None]]]
) -> list[tuple[int, int]]:
    """Return the fewest and the most people of each cell, given the exact totals of groups, all at once.

    `counts` are those of the cells, None where one below `k` is suppressed. `totals`: for each, the groups of the
    cells, and the totals of these groups. Raises `ArgumentError` if a group has no total, or no counts add up to them.

    Notes
    -----
    *Guarantee*: no true table is outside. Each total by itself is propagated until nothing changes, which leaves no
    more than it allows. Where few cells are open, linear programs then see several totals together: no more is left
    than they allow where one is by rows and one by columns.
    """
    bounds = [(0, max((k or 0) - 1, 0)) if count is None else (count, count) for count in counts]
    least, most = ([bound[side] for bound in bounds] for side in (0, 1))
    equations: list[tuple[list[int], int]] = []
    for groups, known in totals:
        if not set(groups) <= set(known) or None in known.values():
            raise ArgumentError(f"{_NOT_THESE}. Each group of the table has one total.")
        cells_of: dict[Hashable, list[int]] = {}
        for cell, group in enumerate(groups):
            cells_of.setdefault(group, []).append(cell)
        equations += [(cells, known[group] or 0) for group, cells in cells_of.items()]
    for _ in range(_MAX_ROUNDS):
        before = [*least], [*most]
        for cells, total in equations:
            over = sum(most[cell] for cell in cells) - total
            short = total - sum(least[cell] for cell in cells)
            for cell in cells:  # what the others leave to it
                least[cell], most[cell] = max(least[cell], most[cell] - over), min(most[cell], least[cell] + short)
        if any(low > high for low, high in zip(least, most, strict=True)):
            raise not_together(totals)
        if before == (least, most):
            break
    if len(totals) > 1 and not _tightened(least, most, equations):
        raise not_together(totals)
    return list(zip(least, most, strict=True))


def _tightened(least: list[int], most: list[int], equations: Sequence[tuple[list[int], int]]) -> bool:
    """Narrow bounds to what all equations allow together; return False if they allow nothing."""
    open_cells = [cell for cell, (low, high) in enumerate(zip(least, most, strict=True)) if low < high]
    if not 1 < len(open_cells) <= _MAX_OPEN_CELLS:
        return True
    from scipy.optimize import linprog

    rows = [[float(cell in cells) for cell in open_cells] for cells, _ in equations]
    rests = [total - sum(least[cell] for cell in cells if least[cell] == most[cell]) for cells, total in equations]
    limits = [(least[cell], most[cell]) for cell in open_cells]
    for place, cell in enumerate(open_cells):
        for sign, side in ((1, least), (-1, most)):
            objective = [0] * place + [sign] + [0] * (len(open_cells) - place - 1)
            solved = linprog(objective, A_eq=rows, b_eq=rests, bounds=limits, method="highs")
            if solved.status == _INFEASIBLE:
                return False
            if solved.status == 0 and solved.fun is not None:  # a solver that gives up narrows nothing
                side[cell] = sign * math.ceil(solved.fun - _SOLVER_ERROR)
    return True


def not_together(totals: Sequence[object]) -> ArgumentError:
    """Return the error of totals that no counts add up to."""
    if len(totals) > 1:
        return ArgumentError("totals do not fit together: no counts add up to all of them; give those of this table.")
    return ArgumentError(f"{_NOT_THESE}. The shown counts of a group and those that may be hidden do not add up to it.")


def check_same_people(table: Context | None, totals: Context | None, *, counted: bool) -> None:
    """Refuse totals of other people than a table's; where `counted`, the total is a count of everybody.

    Raises
    ------
    ArgumentError
    """
    names = ("unit", "where", "missing_unit", "period", "dataset", "table", *(() if counted else ("undeclared",)))
    if (
        table is None
        or totals is None
        or table.undeclared != "error"
        or not (counted or totals.one_cell == "error")  # else a rule may have put somebody into another group
        or any(getattr(table, name) != getattr(totals, name) for name in names)
    ):
        raise ArgumentError(
            "totals are of other people than the histogram: publish both of the same rows, unit and period, with "
            "everybody in a declared cell (undeclared='error')."
        )
    check_one_reading(table, totals)


def check_one_reading(first: Context, second: Context) -> None:
    """Raise `ArgumentError` where two tables were counted from different readings of the data; see `one_reading`."""
    if one_reading(first.reading, second.reading) is False:
        raise ArgumentError(
            "the tables were counted from two readings of the data, in which people may have been corrected between "
            "them: nothing follows from both together. Each holds by itself; use tables of one run of a job."
        )


def _keys(table: pd.DataFrame, columns: list[str]) -> list[tuple[Key, ...]]:
    if not columns:
        return [()] * len(table)
    return list(zip(*([canonical_key(value) for value in table[column].array] for column in columns), strict=True))


def _counts(table: pd.DataFrame) -> list[int | None]:
    return [None if pd.isna(value) else int(value) for value in table["count"].array]
