"""The population of which a sample was published: estimates, and totals with publicly fixed weights."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.model.arguments import positive_real
from pkdp_pipeline.model.keys import canonical_key
from pkdp_pipeline.model.mechanisms import Mechanism, key_columns
from pkdp_pipeline.model.predicate import check_columns
from pkdp_pipeline.releases.derived import (
    NOBODY,
    by_names,
    check_adds_up,
    check_free,
    expected_error,
    first_keys,
    groups_of,
    people_in_cells,
)

_TWO_SIDED_95 = 1.959963984540054
"""The normal quantile of 97.5 %."""


def estimates(table: pd.DataFrame, mechanism: Mechanism, sampled: float, *, declared: bool) -> pd.DataFrame:
    """Return what the counts of a sample say of the population; see `Release.estimate`."""
    columns = key_columns(table.columns)
    check_free(columns, ("estimate", "error", "low", "high"))
    variance = expected_error(mechanism).standard_deviation ** 2
    rows: list[tuple[float | None, ...]] = []
    for cell in people_in_cells(table, mechanism):
        if cell.published is None:
            rows.append((None, None, None, None))
            continue
        # Each of those drawn stands for 1/β people, and the number drawn varies as a binomial one.
        estimate = max(0, cell.published) / sampled
        error = math.sqrt(max(0, cell.published) * (1.0 - sampled) + variance * cell.noises) / sampled
        low = max(0.0, estimate - _TWO_SIDED_95 * error)
        rows.append((estimate, error, low, estimate + _TWO_SIDED_95 * error))
    frame = table[columns].copy()
    for place, name in enumerate(("estimate", "error", "low", "high")):
        frame[name] = pd.array([row[place] for row in rows], dtype="Float64")
    return frame


def weighted(
    table: pd.DataFrame,
    mechanism: Mechanism,
    weights: Mapping[str, Mapping[Any, float]],
    by: str | Sequence[str],
    *,
    declared: bool,
) -> pd.DataFrame:
    """Return totals with publicly fixed weights of one by-column; see `Release.weighted`."""
    if not isinstance(weights, Mapping) or len(weights) != 1 or not isinstance(next(iter(weights.values())), Mapping):
        raise ArgumentError(
            'weights must name one by-column and the weight of each of its values: {"stratum": {"A": 1.5, "B": 0.8}}. '
            "They are fixed beforehand. A weight in a person's own record, a column of the data, tells of it as any "
            "value does: publish counts by the stratum that it follows from, or by groups of it, as pkdp.bins, and "
            "weight these."
        )
    ((column, given),) = weights.items()
    names = by_names(table, by)
    check_columns("weights", [column], key_columns(table.columns), "the release's key")
    check_adds_up(mechanism)
    check_free(names, ("weighted", "least", "most", "error"))
    known = {canonical_key(value): positive_real("each weight", weight) for value, weight in given.items()}
    if max(known.values(), default=0.0) > 1e100:  # whose totals are no floats
        raise ArgumentError("each weight must be at most 1e100: count in larger units.")
    keys = [canonical_key(value) for value in table[column].array]
    if missing := [key for key in keys if key not in known]:
        raise ArgumentError(f"weights has no weight for {missing[0]!r} of {column!r}: give every published value one.")
    cells = people_in_cells(table, mechanism)
    groups = groups_of(table, mechanism, names, declared=declared)
    deviation = expected_error(mechanism).standard_deviation
    totals: list[tuple[float | None, ...]] = []
    for group in groups:
        parts = [(known[keys[position]], cells[position]) for position in group.positions]
        open_ = group.unlisted != NOBODY
        published = [None if cell.published is None else weight * cell.published for weight, cell in parts]
        most = [None if cell.most is None else weight * cell.most for weight, cell in parts]
        totals.append(
            (
                None if open_ or None in published else math.fsum(value or 0.0 for value in published),
                deviation * math.sqrt(math.fsum(weight**2 * cell.noises for weight, cell in parts)),
                math.fsum(weight * cell.least for weight, cell in parts),
                None if open_ or None in most else math.fsum(value or 0.0 for value in most),
            )
        )
    frame = first_keys(table, names, groups)
    for place, name in enumerate(("weighted", "error", "least", "most")):
        if name != "error" or mechanism.noise is not None:
            frame[name] = pd.array([total[place] for total in totals], dtype="Float64")
    return frame
