"""Estimates from published tables: suppressed cells by totals of groups, means of what people add, and populations.

All is post-processing, as `derived` is. Totals of a sample take weights that were fixed in public.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import pandas as pd

from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.model.columns import check_columns
from pkdp_pipeline.model.context import Context, one_reading
from pkdp_pipeline.model.keys import Key, canonical_key
from pkdp_pipeline.model.mechanisms import Mechanism, Sum, cell_noise, key_columns, noised_below
from pkdp_pipeline.model.wording import positive_real
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
    rollup,
)
from pkdp_pipeline.theorems.numerics import float_above, float_below

if TYPE_CHECKING:
    from pkdp_pipeline.certificates.release_certificate import ReleaseCertificate


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
    sampled: float | None = None,
    *,
    declared: bool,
) -> pd.DataFrame:
    """Return totals with publicly fixed weights of one by-column; see `Release.weighted`.

    Notes
    -----
    Of N people drawn independently with chance β, n are counted, and n / β² · (1 - β) has the mean N / β · (1 - β),
    which is the variance of n / β (Horvitz and Thompson, of a Poisson design). A stratum's β is taken for the inverse
    of its weight, and never for more than `sampled`.
    """
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
        hidden, variance = open_ or None in published, 0.0
        for weight, cell in parts:
            drawn = max(0, cell.published or 0) * (1.0 - min(sampled, 1.0 / weight)) if sampled else 0.0
            variance += weight**2 * (drawn + deviation**2 * cell.noises)
        totals.append(
            (
                None if hidden else math.fsum(value or 0.0 for value in published),
                None if hidden else math.sqrt(variance),
                math.fsum(weight * cell.least for weight, cell in parts),
                None if open_ or None in most else math.fsum(value or 0.0 for value in most),
            )
        )
    frame = first_keys(table, names, groups)
    for place, name in enumerate(("weighted", "error", "least", "most")):
        if name != "error" or mechanism.noise is not None or sampled:
            frame[name] = pd.array([total[place] for total in totals], dtype="Float64")
    return frame
