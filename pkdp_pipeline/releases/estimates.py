"""Estimates from published tables: means of what people add, and the population of which a sample was published.

All is post-processing, as `derived` is. Totals of a sample take weights that were fixed in public.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import pandas as pd

from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.model.arguments import positive_real
from pkdp_pipeline.model.keys import canonical_key
from pkdp_pipeline.model.mechanisms import Mechanism, Sum, cell_noise, key_columns, noised_below
from pkdp_pipeline.model.selection import check_columns
from pkdp_pipeline.releases.derived import (
    NOBODY,
    by_names,
    check_adds_up,
    check_free,
    expected_error,
    first_keys,
    groups_of,
    noise_within,
    people_in_cells,
)
from pkdp_pipeline.releases.within import check_one_reading
from pkdp_pipeline.theorems.rounding import float_above, float_below

if TYPE_CHECKING:
    from pkdp_pipeline.certificates.release_certificate import ReleaseCertificate


_SAME = (
    "unit",
    "where",
    "missing_unit",
    "units",
    "one_cell",
    "cells_per_unit",
    "undeclared",
    "period",
    "dataset",
    "table",
)
_MISSED = Fraction(1, 20)


def check_same(sums: ReleaseCertificate, counts: ReleaseCertificate) -> None:
    """Raise `ArgumentError` unless one release sums what people add, and the other one counts these people."""
    if not isinstance(sums.mechanism, Sum) or isinstance(counts.mechanism, Sum) or counts.mechanism.display is not None:
        raise ArgumentError("mean is of sums over counts: sums.mean(counts), where the counts have no rule of display.")
    first, second = sums.context, counts.context
    if first is None or second is None or any(getattr(first, name) != getattr(second, name) for name in _SAME):
        raise ArgumentError(
            "mean needs a count of the people who are summed: publish both with the same unit, rows, rules, period and "
            "ledger."
        )
    check_one_reading(first, second)
    if first.one_cell == "first":
        raise ArgumentError(
            'mean with one_cell="first": no certificate says by what rows are ordered, so that people may be in other '
            'cells of the count. Publish both with one_cell="hash" or "most_frequent".'
        )


def means(sums: pd.DataFrame, mechanism: Sum, counts: pd.DataFrame, counting: Mechanism) -> pd.DataFrame:
    """Return what each person adds to a cell on average; see `Release.mean`."""
    columns = key_columns(sums.columns)
    if set(columns) != set(key_columns(counts.columns)):
        raise ArgumentError("mean needs a count by the same columns as the sum.")
    check_free(columns, ("mean", "low", "high"))
    noise = cell_noise(counting)
    exact = counts["exact"].array if noised_below(counting) else [noise is None] * len(counts)
    known = dict(zip(_cells(counts, columns), zip(counts["count"].array, exact, strict=True), strict=True))
    rows: list[tuple[float | None, float | None, float | None]] = []
    for cell, total in zip(_cells(sums, columns), sums["sum"].array, strict=True):
        count, sure = known.get(cell, (pd.NA, True))
        if pd.isna(total) or pd.isna(count):
            rows.append((None, None, None))
            continue
        # Two noises each stay within their bound in 97.5 % of cases, so both do in 95 %.
        share = _MISSED if sure or noise is None else _MISSED / 2
        sum_bound = noise_within(cell_noise(mechanism), share)
        count_bound = 0 if sure else noise_within(noise, share)
        rows.append(_mean(int(total), sum_bound, int(count), count_bound, mechanism.bounds))
    frame = sums[columns].copy()
    for place, name in enumerate(("mean", "low", "high")):
        frame[name] = pd.array([row[place] for row in rows], dtype="Float64")
    return frame


def _cells(table: pd.DataFrame, columns: list[Any]) -> list[tuple[Any, ...]]:
    keys = [[canonical_key(value) for value in table[column].array] for column in columns]
    return list(zip(*keys, strict=True)) if columns else [()] * len(table)


def _mean(
    total: int, sum_bound: int, count: int, count_bound: int, bounds: tuple[int, int]
) -> tuple[float | None, float | None, float | None]:
    """Return an estimate, and an interval for the mean of at least one person, each of whom adds within the bounds."""
    if count + count_bound < 1:
        return None, None, None
    people = (max(1, count - count_bound), count + count_bound)
    least, most = (Fraction(bound) for bound in bounds)
    low = min(max(min(Fraction(total - sum_bound, number) for number in people), least), most)
    high = max(min(max(Fraction(total + sum_bound, number) for number in people), most), least)
    mean = None if count < 1 else float(min(max(Fraction(total, count), low), high))
    return mean, float_below(low), float_above(high)


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
