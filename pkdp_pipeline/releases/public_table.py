"""From a frame to the public table: what is counted, checked, suppressed and noised, in this order.

Noise, and what a rule of display shows at random, are drawn from the operating system's entropy. There is no seed.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from types import MappingProxyType
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pandas as pd

from pkdp_pipeline.engines import CellCounts, Tally, Units, engine_for
from pkdp_pipeline.errors import ArgumentError, InputCheckError, PkdpError
from pkdp_pipeline.model.columns import Bins, group_order
from pkdp_pipeline.model.display import Bands, Display, Rounding
from pkdp_pipeline.model.keys import Domain, canonical_key, kind_of_keys, published_keys
from pkdp_pipeline.model.mechanisms import (
    Count,
    GeometricNoise,
    Mechanism,
    check_noise,
    key_columns,
    noise_scale,
    noised_below,
    sensitivity,
    value_column,
    value_columns,
)
from pkdp_pipeline.model.question import Question, shown_coarser

Answer = TypeVar("Answer")

_NUMBERS = frozenset({"integer", "real", "decimal"})


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Counted:
    """The answer of a frame to a question before anything is withheld. Never shown, stored or logged.

    Attributes
    ----------
    keys : pandas.DataFrame
        The cells found, or those of the declared domain; empty for a count.
    others : int or None
        For a count with `k_complement`: how many people do not satisfy the predicate.
    missing_unit, several_cells : bool
        Whether there are rows without a unit, and units in several cells.
    undeclared_cells : tuple of str
        By-columns with values that the domain does not list; all where it lacks a combination alone.
    units : Units
        Whether some people may have several names, in any row of the frame: no predicate decides about it.
    """

    question: Question
    keys: pd.DataFrame
    counts: list[int]
    others: int | None = None
    missing_unit: bool = False
    several_cells: bool = False
    undeclared_cells: tuple[str, ...] = ()
    units: Units = field(default_factory=Units)

    def problems(self) -> list[str]:
        """Return what is not as the question declares it."""
        question, problems = self.question, []
        unit, by = (", ".join(map(repr, columns)) for columns in (question.unit, question.by))
        if self.missing_unit and question.missing_unit == "error":
            problems.append(f'rows have no value in unit {unit}; missing_unit="drop" leaves such rows out.')
        if self.units.mixed:
            problems.append(
                f"unit {unit} has values of several types, such as text and numbers: 7 and '7' would be two people. "
                "Give it one type, for example with astype('str')."
            )
        if self.units.rounded:
            problems.append(
                f"unit {unit} has whole numbers kept as reals, among which the largest ones are no longer told apart: "
                "two people may be counted as one. Read the column as whole numbers or as text; in pandas, where a "
                "missing value makes whole numbers reals, for example with dtype='Int64'."
            )
        if self.units.alike:
            problems.append(
                f"unit {unit} has values that differ only by spaces around them: one person may be counted as two. "
                'Strip them in the frame, or say that they are different people with units="exact".'
            )
        if self.several_cells and question.cells_per_unit > 1:
            problems.append(
                f"units {unit} have rows in more than cells_per_unit cells of {by}, which without noise nobody may "
                "have. Give a larger cells_per_unit, or noise, with which a hash draws that many of a person's cells."
            )
        elif self.several_cells:
            problems.append(
                f"units {unit} have rows in several cells of {by}; a unit must be in one cell. one_cell says which: "
                '"most_frequent", "first" (with order_by) or "hash"; cells_per_unit, in how many it may be.'
            )
        if self.undeclared_cells and question.undeclared == "error":
            problems.append(
                f"{', '.join(map(repr, self.undeclared_cells))} has values that the declared domain does not list (a "
                'missing value is None there). Add them, or take such units as absent with undeclared="absent".'
            )
        return problems


def count_units(frame: Any, question: Question) -> Counted:
    """Count what `question` asks of `frame`."""
    engine = engine_for(frame)

    def checked_units(counting: CellCounts | Tally) -> Units:
        units = counting.units if counting.units is not None else Units()
        if question.unit and counting.units is None:
            units = _answered(lambda: engine.units(frame, question.unit))
        return replace(units, alike=False) if question.units == "exact" else units

    if not question.by and not question.bounds:
        tally = _answered(lambda: engine.tally(frame, question))
        return Counted(
            question=question,
            keys=pd.DataFrame(),
            counts=[tally.satisfying],
            others=None if tally.population is None else tally.population - tally.satisfying,
            missing_unit=tally.missing_unit,
            units=checked_units(tally),
        )
    cells = _answered(lambda: engine.cells(frame, question))
    if cells.sums is not None:
        cells = replace(cells, counts=cells.sums)
    keys, counts, undeclared = cells.keys, cells.counts.tolist(), tuple[str, ...]()
    if not question.by:
        counts = [sum(counts)]
    if question.domain is not None:
        keys = question.domain.keys()
        counts, undeclared = _answered(partial(_in_domain, cells, question.domain))
    return Counted(
        question=question,
        keys=keys,
        counts=counts,
        missing_unit=cells.missing_unit,
        several_cells=cells.several_cells,
        undeclared_cells=undeclared,
        units=checked_units(cells),
    )


def public_table(frame: Any, question: Question) -> pd.DataFrame:
    """Return what is published of `frame`: count, check, suppress below k, add noise, suppress again.

    `frame`: the result of `count_units` for this very question is not counted again. Raises `ArgumentError` or
    `InputCheckError` if the frame does not have what `question` names, or not as it declares.

    Returns
    -------
    pandas.DataFrame
        The by-columns and ``count``, or ``sum`` (Int64); where small counts are noised, also ``exact`` (boolean). Its
        rows, their order and its dtypes tell nothing of what is withheld.
    """
    counted = frame if isinstance(frame, Counted) else count_units(frame, question)
    if counted.question is not question:
        raise RuntimeError("these counts were made for another question.")
    if problems := counted.problems():
        raise InputCheckError(f"The input is not as declared, nothing was published: {' Also, '.join(problems)}")
    mechanism = question.mechanism
    if not question.by:
        return pd.DataFrame(_displayed(mechanism, counted.counts, others=counted.others))
    if question.domain is not None:
        return counted.keys.assign(**_displayed(mechanism, counted.counts))
    # Cells below k are gone before anything else happens to them, where they are not noised; sums have no k.
    least = 1 if noised_below(mechanism) else mechanism.k or 1
    large = [row for row, units in enumerate(counted.counts) if units >= least or question.bounds is not None]
    published = _displayed(mechanism, [counted.counts[row] for row in large])
    bins = {name: question.bins.get(name) for name in question.by}
    return _answered(lambda: _of_found_cells(counted.keys, np.array(large, dtype=np.intp), published, bins))


def shown_again(table: pd.DataFrame, finer: Mechanism, coarser: Mechanism, *, found_cells: bool) -> pd.DataFrame:
    """Return the public table of a coarser display, from that published of a finer one, which determines it."""
    numbers = [None if pd.isna(value) else int(value) for value in table["count"].array]
    table = table.assign(count=pd.array([shown_coarser(finer, coarser, number) for number in numbers], dtype="Int64"))
    if not found_cells:
        return table
    by = key_columns(table.columns)
    published = {name: table[name].array for name in table.columns if name not in by}
    return _of_found_cells(table[list(by)], np.arange(len(table)), published)


def _of_found_cells(
    keys: pd.DataFrame,
    rows: npt.NDArray[np.intp],
    published: dict[str, Any],
    bins: Mapping[str, Bins | None] = MappingProxyType({}),
) -> pd.DataFrame:
    """Return the rows of cells that are published, with keys of dtypes that these alone decide.

    `rows`: where in `keys` the cells of `published` are. They are put in the order of the keys in `bins`, and groups of
    values in the order of the values.
    """
    shown = np.flatnonzero(~published[value_column(published)].isna())
    # Column by column: each step of pandas on a small frame costs more than its rows.
    columns = {name: published_keys(_taken(column, rows[shown])) for name, column in keys.items()}
    order = np.arange(len(shown))
    for name, groups in reversed(list(bins.items())):
        # Weeks and the like are in the order of their names.
        places = None if groups is None or isinstance(groups.edges, str) else group_order(groups.names)
        ranked = columns[name] if places is None else columns[name].map(places)
        order = order[ranked.array.take(order).argsort(kind="stable", na_position="last")]
    content = {name: _taken(column, order) for name, column in columns.items()}
    return pd.DataFrame(content | {name: values.take(shown[order]) for name, values in published.items()})


def _taken(column: pd.Series[Any], rows: npt.NDArray[np.intp]) -> pd.Series[Any]:
    """Return these rows of a column under a plain index."""
    return pd.Series(column.array.take(rows), dtype=column.dtype, name=column.name)


def _answered(ask: Callable[[], Answer]) -> Answer:
    """Return what is answered from the data; what breaks below may quote them, so only its type is told."""
    try:
        return ask()
    except PkdpError:
        raise
    except (UnicodeError, TypeError, ValueError, ArithmeticError, NotImplementedError) as error:
        problem = type(error).__name__
    raise ArgumentError(
        f"the frame could not be counted ({problem}): give the columns named in unit, by and order_by plain dtypes, "
        "and see that their text is valid Unicode."
    )


def _displayed(mechanism: Mechanism, counts: list[int], *, others: int | None = None) -> dict[str, Any]:
    """Return what `_public` does, each number as the rule of display shows it."""
    public, display = _public(mechanism, counts, others=others), mechanism.display
    if display is not None:
        count = public["count"]
        hidden = count.isna()
        # A suppressed count is displayed, too, so that time and draws are those of every table.
        values = [shown_as(display, value) for value in np.where(hidden, 0, count.to_numpy(na_value=0)).tolist()]
        public["count"] = pd.arrays.IntegerArray(np.where(hidden, 0, np.array(values, dtype=np.int64)), hidden)
    return public


def _public(mechanism: Mechanism, counts: list[int], *, others: int | None = None) -> dict[str, Any]:
    """Return the counts as they are published, <NA> where suppressed, and where small ones are noised which are exact.

    Noise is drawn for every cell, suppressed or not.
    """
    noise = mechanism.noise
    shown = add_noise(counts, noise, sensitivity(mechanism)) if noise is not None else counts
    if noised_below(mechanism):
        assert mechanism.k is not None
        exact = np.array([counted >= mechanism.k for counted in counts], dtype=bool)
        values = np.where(exact, np.array(counts, dtype=np.int64), np.array(shown, dtype=np.int64))
        hidden = np.zeros(len(counts), dtype=bool)
        if mechanism.release_threshold is not None:
            hidden = ~exact & (values < mechanism.release_threshold)
        if mechanism.below == "noise_from_1":
            hidden |= np.array(counts, dtype=np.int64) == 0
        values, exact = np.where(hidden, 0, values), exact & ~hidden
        return {
            "count": pd.arrays.IntegerArray(values, hidden),
            "exact": pd.arrays.BooleanArray(exact, hidden.copy()),
        }
    kept = [
        (mechanism.k is None or counted >= mechanism.k)
        and (mechanism.release_threshold is None or noisy >= mechanism.release_threshold)
        for counted, noisy in zip(counts, shown, strict=True)
    ]
    if isinstance(mechanism, Count) and mechanism.k_complement is not None:
        kept = [keep and others is not None and others >= mechanism.k_complement for keep in kept]
    # Not a list with None: pandas looks at each value of one several times.
    values = np.array([noisy if keep else 0 for noisy, keep in zip(shown, kept, strict=True)], dtype=np.int64)
    return {value_columns(mechanism)[0]: pd.arrays.IntegerArray(values, ~np.array(kept, dtype=bool))}


def _in_domain(cells: CellCounts, domain: Domain) -> tuple[list[int], tuple[str, ...]]:
    """Return the count of every public cell, in the domain's order, and the columns by which there are other cells.

    Where each value is declared, and a combination of them is not, these are all.
    """
    for column, kind in zip(domain.by, domain.kinds, strict=True):
        actual = kind_of_keys(cells.keys[column])
        if None not in (kind, actual) and kind != actual and not {kind, actual} <= _NUMBERS:
            raise ArgumentError(
                f"domain names the cells of {column!r} by {kind} values, but the column holds {actual} values; write "
                "the domain as the column has it, or convert the column."
            )
    positions = {cell: position for position, cell in enumerate(domain.cells)}
    counts = [0] * len(domain.cells)
    keys = zip(*([canonical_key(key) for key in cells.keys[column].array] for column in domain.by), strict=True)
    strangers = []
    for key, units in zip(keys, cells.counts.tolist(), strict=True):
        position = positions.get(key)
        if position is None:
            strangers.append(key)
        else:
            counts[position] = units
    if not strangers:
        return counts, ()
    columns = zip(domain.by, zip(*strangers, strict=True), zip(*domain.cells, strict=True), strict=True)
    return counts, tuple(column for column, own, declared in columns if not {*own} <= {*declared}) or domain.by


def add_noise(counts: Sequence[int], noise: GeometricNoise, sensitivity: int = 1) -> list[int]:
    """Return every count, which one person changes by at most `sensitivity`, plus its own two-sided geometric noise.

    Drawn by OpenDP's exact sampler (no floating point) from the operating system's entropy; there is no seed. As long
    as `counts`; values may be negative. Raises `ArgumentError` if the noise is too wide to be drawn.
    """
    check_noise(noise)
    if not counts:
        return []
    return [int(value) for value in _sampler(noise, sensitivity)([int(count) for count in counts])]


def shown_as(display: Display, count: int) -> int:
    """Return the number that stands for a count; a random one is drawn from the operating system's entropy."""
    if isinstance(display, Rounding | Bands):
        return display.shown(count)
    draw, chances = random.SystemRandom().random(), display.chances(count)
    for value, chance in chances:
        draw -= chance
        if draw < 0.0:
            return value
    return chances[-1][0]


@lru_cache(maxsize=64)
def _sampler(noise: GeometricNoise, sensitivity: int) -> Any:
    """Return what draws noise, which has no state."""
    import opendp.prelude as opendp

    opendp.enable_features("contrib")
    space = opendp.vector_domain(opendp.atom_domain(T="i64")), opendp.l1_distance(T="i64")
    return opendp.m.make_laplace(*space, scale=noise_scale(noise, sensitivity))
