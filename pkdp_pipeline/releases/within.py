"""Bounds by exact totals of groups on the suppressed cells of a public table; post-processing, as `derived` is."""

from __future__ import annotations

import pandas as pd

from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.model.keys import Key, canonical_key
from pkdp_pipeline.model.mechanisms import Mechanism
from pkdp_pipeline.releases.derived import rollup

_NOT_THESE = "totals are not those of this table: give the release of its own groups, or the figures as they are known"


def within_totals(table: pd.DataFrame, mechanism: Mechanism, totals: pd.DataFrame, *, declared: bool) -> pd.DataFrame:
    """Return the cells with the total of their group, suppressed ones as intervals; see `Release.within`.

    Notes
    -----
    *Guarantee*: every number of people in ``[least, most]`` of a suppressed cell is that of some true table that would
    have been published as `table` beside `totals`, and no other number is. With h suppressed cells in a group, which
    hold s people together, these are the numbers from ``max(0, s - (h - 1)(k - 1))`` to ``min(k - 1, s)``.
    """
    if not isinstance(totals, pd.DataFrame):
        raise ArgumentError(f"totals must be a release or a pandas DataFrame, not {type(totals).__name__}.")
    columns, groups = ([name for name in one.columns if name != "count"] for one in (table, totals))
    if not groups or len(groups) >= len(columns) or not set(groups) < set(columns) or "count" not in totals:
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
    known = dict(zip(_keys(totals, groups), _counts(totals), strict=True))
    frame = rollup(table, mechanism, columns, declared=declared)
    keys, counts = _keys(frame, groups), _counts(frame)
    if len(known) < len(totals) or None in known.values() or not set(keys) <= set(known):
        raise ArgumentError(f"{_NOT_THESE}. Each group of the table has one total.")
    rest, hidden = {key: known[key] or 0 for key in keys}, {key: list[int]() for key in keys}
    for row, (key, count) in enumerate(zip(keys, counts, strict=True)):
        rest[key] -= count or 0
        if count is None:
            hidden[key].append(row)
    most = max((mechanism.k or 0) - 1, 0)
    for key, rows in hidden.items():
        if not 0 <= rest[key] <= len(rows) * most:
            raise ArgumentError(
                f"{_NOT_THESE}. The shown counts of a group and those that may be hidden do not add up to it."
            )
        for row in rows:
            frame.loc[row, "least"] = max(0, rest[key] - (len(rows) - 1) * most)
            frame.loc[row, "most"] = min(most, rest[key])
    frame["total"] = pd.array([known[key] for key in keys], dtype="Int64")
    return frame


def _keys(table: pd.DataFrame, columns: list[str]) -> list[tuple[Key, ...]]:
    return list(zip(*([canonical_key(value) for value in table[column].array] for column in columns), strict=True))


def _counts(table: pd.DataFrame) -> list[int | None]:
    return [None if pd.isna(value) else int(value) for value in table["count"].array]
