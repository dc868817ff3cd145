"""Means of what people add: noised sums over counts of the same people; post-processing, as `derived` is."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

import pandas as pd

from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.model.keys import canonical_key
from pkdp_pipeline.model.mechanisms import Mechanism, Sum, cell_noise, key_columns, noised_below
from pkdp_pipeline.releases.derived import check_free, noise_within
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
