"""Results from a public table: errors, totals, shares and rounded counts, with intervals for what is suppressed.

Nothing here sees data: a function is given the published table and the mechanism's public parameters. Its
result is post-processing, which every certificate survives unchanged, so nothing is charged for it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import pandas as pd

from pkdp_pipeline.certificates.sentences import suppression
from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.model.columns import check_columns
from pkdp_pipeline.model.display import Bands
from pkdp_pipeline.model.keys import Key, canonical_key, kind_of_dtype
from pkdp_pipeline.model.mechanisms import (
    Count,
    GeometricNoise,
    Mechanism,
    Sum,
    cell_noise,
    cells_per_unit,
    key_columns,
    mean_absolute,
    noised_below,
)
from pkdp_pipeline.model.question import column_names
from pkdp_pipeline.model.wording import whole_number
from pkdp_pipeline.theorems.numerics import float_above, float_below


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedError:
    """How far a published count may be from the counted one; known before any data is read.

    Attributes
    ----------
    mean_absolute : float
        Mean absolute error of the noise, in units; 0 without noise.
    standard_deviation : float
    bound_95 : int
        The noise is at most this far from 0 with probability at least 95 %.
    suppression : str
        The treatment of a count before it is published, in words. A suppressed count is not in these numbers.
    """

    mean_absolute: float
    standard_deviation: float
    bound_95: int
    suppression: str


def expected_error(mechanism: Mechanism) -> ExpectedError:
    """Return the error to expect of `mechanism`, from its public parameters alone."""
    mean, deviation, bound, noise = 0.0, 0.0, 0, cell_noise(mechanism)
    if noise is not None:
        mean, deviation, bound = mean_absolute(noise), _deviation(noise), noise_within(noise, Fraction(1, 20))
    return ExpectedError(
        mean_absolute=mean,
        standard_deviation=deviation,
        bound_95=bound,
        suppression=suppression(mechanism),
    )


def _deviation(noise: GeometricNoise) -> float:
    """Return the standard deviation: with α = e^(-ε), Var Z = 2α / (1 - α)²."""
    return math.sqrt(2.0 * math.exp(-noise.epsilon)) / -math.expm1(-noise.epsilon)


def noise_within(noise: GeometricNoise | None, chance: Fraction) -> int:
    """Return the smallest b with P[|Z| > b] <= chance, where P[|Z| > b] = 2α^(b+1) / (1 + α); without noise 0."""
    if noise is None:
        return 0
    alpha = math.exp(-noise.epsilon)
    return max(0, math.ceil(math.log(2.0 / (float(chance) * (1.0 + alpha))) / noise.epsilon) - 1)


_INT64 = 2**63 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class _People:
    """How many people may be in some cells, given all that is public.

    Parameters
    ----------
    most : int or None
        None: not bounded.
    published : int or None
        Sum of the published values; None when a cell that may have people is not published.
    noises : int
        How many published values, each with its own noise, were summed.
    """

    least: int
    most: int | None
    published: int | None
    noises: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Group:
    """Rows of the table with one key, and what cells without a row may hold."""

    positions: tuple[int, ...]
    unlisted: _People


NOBODY = _People(least=0, most=0, published=0, noises=0)


def rollup(table: pd.DataFrame, mechanism: Mechanism, by: str | Sequence[str], *, declared: bool) -> pd.DataFrame:
    """Return totals of a public table; see `Release.rollup`.

    Notes
    -----
    *Guarantee*: without noise every number of people in ``[least, most]`` is the total of some true table
    that would have been published as `table`, and no other number is; with noise likewise for some value of
    the noise.
    """
    names = by_names(table, by)
    if set(names) != set(_columns(table)):
        check_adds_up(mechanism)
    check_free(names, ("least", "most", "error"))
    groups = groups_of(table, mechanism, names, declared=declared)
    cells = people_in_cells(table, mechanism)
    totals = [_total([*(cells[position] for position in group.positions), group.unlisted]) for group in groups]
    return _totals_frame(first_keys(table, names, groups), totals, mechanism)


def shares(
    table: pd.DataFrame, mechanism: Mechanism, by: str | Sequence[str] | None, *, declared: bool
) -> pd.DataFrame:
    """Return each cell's share of the people of its group; see `Release.shares`.

    Notes
    -----
    *Guarantee*: without noise no true table that has people in the group and would have been published as
    `table` has a share outside ``[least, most]``, and no narrower interval will do, rounding aside.
    *Rounding*: outward; ``share`` to nearest.
    """
    if isinstance(mechanism, Count):
        raise ArgumentError("shares are of a histogram's cells; a count has none.")
    check_adds_up(mechanism)
    columns = _columns(table)
    check_free(columns, ("share", "least", "most"))
    groups = groups_of(table, mechanism, [] if by is None else by_names(table, by), declared=declared)
    cells = people_in_cells(table, mechanism)
    noised = mechanism.noise is not None
    rows: list[tuple[float | None, float | None, float | None]] = [(None, None, None)] * len(table)
    for group in groups:
        parts = [*(cells[position] for position in group.positions), group.unlisted]
        whole = _total(parts)
        bounded = sum(part.most for part in parts if part.most is not None)
        unbounded = sum(part.most is None for part in parts)
        for position in group.positions:
            cell = cells[position]
            others = bounded - (cell.most or 0) if unbounded == (cell.most is None) else None
            least, most = _share(cell, whole.least - cell.least, others)
            share = _published_share(cell, whole) if noised else least if least == most else None
            rows[position] = (
                None if share is None else float(share),
                None if least is None else float_below(least),
                None if most is None else float_above(most),
            )
    frame = table[columns].copy()
    for place, name in enumerate(("share", "least", "most")):
        frame[name] = pd.array([row[place] for row in rows], dtype="Float64")
    return frame


def rounded(
    table: pd.DataFrame, mechanism: Mechanism, base: int, by: str | Sequence[str] | None, *, declared: bool
) -> pd.DataFrame:
    """Return totals in multiples of `base`; see `Release.rounded`.

    Notes
    -----
    *Rounding*: ``count`` to the nearest multiple, halves to the even one; ``least`` down and ``most`` up.
    """
    step = whole_number("base", base, least=1)
    frame = rollup(table, mechanism, _columns(table) if by is None else by, declared=declared)
    frame["count"] = _whole([None if value is None else _nearest(value, step) for value in _values(frame["count"])])
    frame["least"] = _whole([None if value is None else value // step * step for value in _values(frame["least"])])
    frame["most"] = _whole([None if value is None else -(-value // step) * step for value in _values(frame["most"])])
    return frame


def check_counts(mechanism: Mechanism) -> None:
    """Refuse a table of sums, of which what follows from counts does not follow."""
    if isinstance(mechanism, Sum):
        raise ArgumentError("this is derived from counts, and the release has sums: use its table, or mean.")


def check_adds_up(mechanism: Mechanism) -> None:
    """Refuse a table whose counts do not add up to people."""
    if cells_per_unit(mechanism) > 1:
        raise ArgumentError(
            "a person may be in several cells of this table, so its counts do not add up to people: publish a "
            "histogram by these columns, or a count."
        )


def _columns(table: pd.DataFrame) -> list[str]:
    return key_columns(table.columns)


def by_names(table: pd.DataFrame, by: object) -> list[str]:
    """Return the by-columns that are asked for; none are the grand total."""
    names = column_names("by", () if isinstance(by, list) and not by else by, "; [] is the grand total")
    check_columns("by", names, _columns(table), "the release's key")
    return list(names)


def check_free(names: Iterable[str], taken: Sequence[str]) -> None:
    """Refuse by-columns with the name of a column that the result has."""
    for name in names:
        if name.casefold() in taken:
            raise ArgumentError(
                f"by-column {name!r} has the name of a column that the result has: roll up over the other by-columns, "
                "or publish the column under another name."
            )


def people_in_cells(table: pd.DataFrame, mechanism: Mechanism) -> list[_People]:
    """Return what is known of the people in each row's cell."""
    # A band's first count says nothing of a total.
    withheld, k, banded = _withheld(mechanism), mechanism.k or 0, isinstance(mechanism.display, Bands)
    marks = [mechanism.noise is None] * len(table)
    # Noise has no bounds: of a noised cell that is shown, only its having reached k is certain, or that it did not.
    least, most = k, None
    if noised_below(mechanism):
        marks = [value is not pd.NA and bool(value) for value in table["exact"].array]
        least, most = int(mechanism.below == "noise_from_1"), k - 1
    return [
        withheld
        if value is None
        else _shown_people(mechanism, value)
        if exact
        else _People(least=least, most=most, published=None if banded else value, noises=1)
        for value, exact in zip(_values(table["count"]), marks, strict=True)
    ]


def _shown_people(mechanism: Mechanism, value: int) -> _People:
    """Return what is known of a cell that is published without noise, and as its rule of display shows it."""
    if mechanism.display is None:
        return _People(least=value, most=value, published=value, noises=0)
    least, most = mechanism.display.interval(value)
    # A band's first count says nothing of a total, but where the band is of one count.
    shown = value if least == most or not isinstance(mechanism.display, Bands) else None
    return _People(least=max(least, mechanism.k or 0), most=most, published=shown, noises=0)


def hidden_below(mechanism: Mechanism) -> int | None:
    """Return the k that every count which is not published is below; None where noise or the rest decide as well."""
    only_k = noised_below(mechanism) or (
        mechanism.release_threshold is None
        and not (isinstance(mechanism, Count) and mechanism.k_complement is not None)
    )
    return mechanism.k if only_k else None


def _withheld(mechanism: Mechanism) -> _People:
    """Return what is known of a cell that is not published; it is as good as published where it must be empty."""
    k = hidden_below(mechanism)
    most = None if k is None else k - 1
    return NOBODY if most == 0 else _People(least=0, most=most, published=None, noises=0)


def groups_of(table: pd.DataFrame, mechanism: Mechanism, by: Sequence[str], *, declared: bool) -> list[_Group]:
    """Return the groups in the order of their first rows; without by-columns there is one, even of no rows."""
    groups: dict[tuple[Key, ...], list[int]] = {} if by else {(): []}
    keys = [[canonical_key(value) for value in table[column].array] for column in by]
    for position, key in enumerate(zip(*keys, strict=True) if by else [()] * len(table)):
        groups.setdefault(key, []).append(position)
    whole = declared or _lists_every_cell(table, mechanism)
    rest = [column for column in _columns(table) if column not in by]
    return [
        _Group(
            positions=tuple(positions), unlisted=NOBODY if whole else _unlisted(table, mechanism, rest, len(positions))
        )
        for positions in groups.values()
    ]


def _lists_every_cell(table: pd.DataFrame, mechanism: Mechanism) -> bool:
    """Return whether the table shows that nobody is in a cell without a row.

    Without a declared domain there must be a k, and a suppressed cell leaves no row.
    """
    return mechanism.k is None or bool(table["count"].isna().any())


def _unlisted(table: pd.DataFrame, mechanism: Mechanism, rest: Sequence[str], listed: int) -> _People:
    """Return what the cells of a group that has `listed` rows may hold beyond these rows.

    How many such cells there are is known only where the other columns `rest` can have few values: true, false
    and missing; or where there are no other columns.
    """
    withheld = _withheld(mechanism)
    if not all(kind_of_dtype(table[column].dtype) == "boolean" for column in rest):
        return NOBODY if withheld == NOBODY else _People(least=0, most=None, published=None, noises=0)
    return _total([withheld] * (3 ** len(rest) - listed))


def _total(parts: Sequence[_People]) -> _People:
    most = [part.most for part in parts if part.most is not None]
    published = [part.published for part in parts if part.published is not None]
    return _People(
        least=sum(part.least for part in parts),
        most=sum(most) if len(most) == len(parts) else None,
        published=sum(published) if len(published) == len(parts) else None,
        noises=sum(part.noises for part in parts),
    )


def first_keys(table: pd.DataFrame, by: Sequence[str], groups: Sequence[_Group]) -> pd.DataFrame:
    """Return the columns `by` of each group's first row."""
    if not by:
        return pd.DataFrame(index=range(len(groups)))
    first = [group.positions[0] for group in groups]
    return table[list(by)].iloc[first].reset_index(drop=True)


def _totals_frame(frame: pd.DataFrame, totals: Sequence[_People], mechanism: Mechanism) -> pd.DataFrame:
    frame["count"] = _whole([total.published for total in totals])
    if mechanism.noise is not None:
        deviation = expected_error(mechanism).standard_deviation
        errors = [None if total.published is None else deviation * math.sqrt(total.noises) for total in totals]
        frame["error"] = pd.array(errors, dtype="Float64")
    # A bound from below beyond 64 bits is lowered, one from above is given up: both still hold.
    frame["least"] = _whole([min(total.least, _INT64) for total in totals])
    frame["most"] = _whole([total.most for total in totals])
    return frame


def _share(cell: _People, least: int, most: int | None) -> tuple[Fraction | None, Fraction | None]:
    """Return the bounds of cell / (cell + others), others being in [least, most], wherever that is not 0 / 0."""
    if cell.most == 0:
        return (None, None) if most == 0 else (Fraction(0), Fraction(0))
    lowest, highest = Fraction(0), Fraction(1)
    if most == 0:
        lowest = Fraction(1)
    elif most is not None and cell.least > 0:
        lowest = Fraction(cell.least, cell.least + most)
    if least > 0 and cell.most is not None:
        highest = Fraction(cell.most, cell.most + least)
    return lowest, highest


def _published_share(cell: _People, whole: _People) -> Fraction | None:
    if cell.published is None or whole.published is None or whole.published <= 0:
        return None
    return Fraction(cell.published, whole.published)


def _nearest(value: int, step: int) -> int:
    multiple, beyond = divmod(value, step)
    up = 2 * beyond > step or (2 * beyond == step and multiple % 2 == 1)
    return (multiple + up) * step


def _values(column: pd.Series[Any]) -> list[int | None]:
    return [None if value is pd.NA else int(value) for value in column.array]


def _whole(values: Sequence[int | None]) -> Any:
    """Return whole numbers as Int64, those that do not fit as missing."""
    fitting = [value if value is not None and -_INT64 - 1 <= value <= _INT64 else None for value in values]
    return pd.array(fitting, dtype="Int64")
