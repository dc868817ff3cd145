"""Bounds by exact totals of groups on the suppressed cells of a public table; post-processing, as `derived` is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import pandas as pd

from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.model.context import Context
from pkdp_pipeline.model.keys import Key, canonical_key
from pkdp_pipeline.model.mechanisms import Mechanism
from pkdp_pipeline.releases.derived import check_adds_up, rollup

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
    for row, (least, most) in enumerate(hidden_bounds(keys, _counts(frame), mechanism.k, known)):
        frame.loc[row, ["least", "most"]] = least, most
    frame["total"] = pd.array([known[key] for key in keys], dtype="Int64")
    return frame


def hidden_bounds(
    groups: Sequence[Hashable], counts: Sequence[int | None], k: int | None, totals: Mapping[Any, int | None]
) -> list[tuple[int, int]]:
    """Return the fewest and the most people of each cell, given the exact totals of groups; see `within_totals`.

    `groups` and `counts` are those of the cells, None where a count below `k` is suppressed. Raises `ArgumentError` if
    a group has no total, or the total is not that of these counts.
    """
    if not set(groups) <= set(totals) or None in totals.values():
        raise ArgumentError(f"{_NOT_THESE}. Each group of the table has one total.")
    rest, hidden = {group: totals[group] or 0 for group in groups}, Counter[Hashable]()
    for group, count in zip(groups, counts, strict=True):
        rest[group] -= count or 0
        hidden[group] += count is None
    largest = max((k or 0) - 1, 0)
    if any(not 0 <= rest[group] <= hidden[group] * largest for group in rest):
        raise ArgumentError(
            f"{_NOT_THESE}. The shown counts of a group and those that may be hidden do not add up to it."
        )
    return [
        (max(0, rest[group] - (hidden[group] - 1) * largest), min(largest, rest[group]))
        if count is None
        else (count,) * 2
        for group, count in zip(groups, counts, strict=True)
    ]


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


def _keys(table: pd.DataFrame, columns: list[str]) -> list[tuple[Key, ...]]:
    if not columns:
        return [()] * len(table)
    return list(zip(*([canonical_key(value) for value in table[column].array] for column in columns), strict=True))


def _counts(table: pd.DataFrame) -> list[int | None]:
    return [None if pd.isna(value) else int(value) for value in table["count"].array]
