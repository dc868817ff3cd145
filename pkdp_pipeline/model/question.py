"""The question: what is asked of the data, under which key, built at every door.

Two displays of one question: whether the table published of one determines that of the other, and what it is.
"""

from __future__ import annotations

import datetime
import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, get_args, get_origin, get_type_hints

from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.model.columns import EachRow, Selection, grouped_column, grouping, named, with_groups
from pkdp_pipeline.model.context import Context, Facts
from pkdp_pipeline.model.display import Bands, Rounding
from pkdp_pipeline.model.keys import Domain
from pkdp_pipeline.model.mechanisms import (
    Count,
    Histogram,
    Mechanism,
    Protects,
    Sum,
    cells_per_unit,
    check_noise,
    kind_of,
    mechanism_name,
    mechanism_to_dict,
    noised_below,
)
from pkdp_pipeline.model.period import Period, of_pandas
from pkdp_pipeline.model.predicate import Predicate
from pkdp_pipeline.model.wording import choice


def determines(finer: Mechanism, coarser: Mechanism) -> bool:
    """Return whether the table published of `finer` determines that of `coarser`, about the same rows, for every table.

    Never where one of them is shown at random: what was drawn for one says nothing of the draws of the other.

    Notes
    -----
    *Exact*: both show a non-decreasing function of each number, and mark or hide it alike, but for `k` without noise,
    which is part of that function. So what `finer` shows stands for consecutive numbers, and `coarser` shows all of
    these alike if and only if each number that it shows otherwise than the one before is such a number for `finer`,
    too. Which numbers have to be looked at: see `_boundaries`.
    """
    shown = (finer.display, coarser.display)
    if (
        isinstance(coarser, Sum)
        or shown[1] is None
        or not all(display is None or isinstance(display, Rounding | Bands) for display in shown)
    ):
        return False
    k = finer.k if _k_is_shown(coarser) else coarser.k
    if replace(coarser, display=finer.display, k=k) != finer:
        return False
    return all(_shown(finer, number) != _shown(finer, number - 1) for number in _boundaries(coarser, finer))


def shown_coarser(finer: Mechanism, coarser: Mechanism, value: int | None) -> int | None:
    """Return the number that `coarser` shows where `finer`, which determines it, shows `value`; None: suppressed."""
    if value is None:
        return _shown(coarser, 0) if _k_is_shown(coarser) else None
    most: int | None = value
    if finer.display is not None:
        assert isinstance(finer.display, Rounding | Bands)
        _, most = finer.display.interval(value)
    # Any number that is shown as this one; the last of them is not below a threshold.
    return _shown(coarser, max(value, _least(finer), finer.k or 0) if most is None else most)


def _k_is_shown(mechanism: Mechanism) -> bool:
    """Return whether a number is suppressed for being below k, and for nothing else."""
    return mechanism.noise is None and not (isinstance(mechanism, Count) and mechanism.k_complement is not None)


def _shown(mechanism: Mechanism, number: int) -> int | None:
    """Return what stands for a number, which is noised where there is noise; None: it is suppressed below k."""
    if _k_is_shown(mechanism) and number < (mechanism.k or 0):
        return None
    assert mechanism.display is None or isinstance(mechanism.display, Rounding | Bands)
    return number if mechanism.display is None else mechanism.display.shown(number)


def _least(mechanism: Mechanism) -> int:
    """Return the smallest number that may be shown.

    Noised numbers without `release_threshold` may be negative; 0 stands for them: bands have no boundary there, and one
    of a rounding's is like all others.
    """
    if _k_is_shown(mechanism):
        return 0
    if mechanism.noise is None:
        return mechanism.k or 0
    least = mechanism.release_threshold or 0
    return min(least, mechanism.k or 0) if noised_below(mechanism) else least


def _boundaries(coarser: Mechanism, finer: Mechanism) -> Iterator[int]:
    """Yield numbers that `coarser` shows otherwise than the one before: if they are so for `finer`, then all are.

    Bands have finitely many. Those of a rounding follow one another at equal distances. Beyond its k, the numbers that
    are so for a finer rounding do, too: it has all of them if it has two that follow each other, and at most one before
    these. For bands only finitely many numbers are so, and it is enough to name more than these.
    """
    display, least = coarser.display, _least(coarser)
    if _k_is_shown(coarser) and (coarser.k or 0) > least:
        least = coarser.k or 0
        yield least
    if isinstance(display, Bands):
        yield from (edge for edge in display.edges if edge > least)
    elif isinstance(display, Rounding):
        first = least + 1 + (display.first_boundary - least - 1) % display.base
        finitely_many = len(finer.display.edges) if isinstance(finer.display, Bands) else 0
        yield from range(first, first + (3 + finitely_many) * display.base, display.base)


MissingUnit = Literal["error", "drop"]
Spelling = Literal["checked", "exact"]
Undeclared = Literal["error", "absent"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Question(Selection):
    """A question to the data, before any is read. Every entry point builds it, once; everything behind takes it.

    Raises `ArgumentError` if an argument is malformed or two of them contradict each other.

    Parameters
    ----------
    unit : str, sequence of str, or EACH_ROW
        As of `Selection`; stored as a tuple, empty for EACH_ROW.
    protects : {"presence", "value"}, default "presence"
        A count that protects the value is a total: the exact number of people, without a predicate, published as
        what every attacker is declared to know (`Leakage.total`); it hides nothing about who is there.
    by, where, one_cell, order_by
        As of `Selection`; a column's name stands for a list of one, and `Bins` may stand for a name in `by`.
    cells_per_unit : int
        The mechanism's. Above 1 `one_cell` is left out: with noise it is "hash", without "error".
    everybody : bool
        Whether the mechanism asks for them, as `k_complement` does.
    bounds : tuple of two int, optional
        The mechanism's, of a `Sum`; `summed` is as of `Selection`.
    domain : Domain, list or dict, optional
        The public cells (`Domain.parse`). None: only cells that reach `k` appear, and no trace of the others.
    missing_unit : {"error", "drop"}, default "error"
        The treatment of rows whose unit is missing.
    units : {"checked", "exact"}, default "checked"
        Whether names of people that differ only by spaces around them are an error, or say exactly who they are.
    undeclared : {"error", "absent"}, default "error"
        The treatment of people whose cell is not in the domain, after `one_cell` has chosen it.
    period : str, datetime.date or Period, optional
        Stored in its one spelling: ``20130102`` and ``2013-01-02`` are the same question (`Period.parse`).
    table : str, optional
        Which table of the data set the rows come from, where it has several. All tables of a data set are about
        the same people.
    time_zone : str, optional
        Where the days of the period begin and end, where they were cut out of instants.
    checks : bool, default False
        Whether the data are held to checks of the caller's own, which stop the publication; it is no part of what is
        asked, and the certificate states it.
    """

    mechanism: Mechanism
    protects: Protects = "presence"
    domain: Any = None
    missing_unit: MissingUnit = "error"
    units: Spelling = "checked"
    undeclared: Undeclared = "error"
    period: Any = None
    label: str | None = None
    table: str | None = None
    time_zone: str | None = None
    checks: bool = False
    # A day asks several times for the key and the facts of the same question.
    _keys: dict[str, str] = field(default_factory=dict, init=False, repr=False)
    _facts: Facts | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        Selection.__post_init__(self)
        mechanism_name(self.mechanism)
        object.__setattr__(self, "cells_per_unit", cells_per_unit(self.mechanism))
        object.__setattr__(self, "everybody", getattr(self.mechanism, "k_complement", None) is not None)
        if self.mechanism.noise is not None:
            check_noise(self.mechanism.noise, published=True)
        for name, allowed in RULES.items():
            choice(name, getattr(self, name), allowed)
        unit = () if isinstance(self.unit, EachRow) else self.unit
        object.__setattr__(self, "unit", column_names("unit", unit, " or pkdp.EACH_ROW"))
        by, bins = (self.by, {}) if isinstance(self.by, str) else named(self.by)
        object.__setattr__(self, "bins", {**self.bins, **bins})
        for name, columns in (("by", by), ("order_by", self.order_by)):
            object.__setattr__(self, name, column_names(name, () if columns is None else columns))
        if self.period is not None:
            object.__setattr__(self, "period", of_pandas(self.period))
        if isinstance(self.period, datetime.datetime):
            raise ArgumentError("period must be a text or a date, not a point in time: write period=timestamp.date().")
        if self.period is not None:
            object.__setattr__(self, "period", Period.parse(self.period).text)
        for name in ("label", "table", "time_zone"):
            text = getattr(self, name)
            if text is not None and (not isinstance(text, str) or not text.strip()):
                raise ArgumentError(f"{name} must be a non-empty text.")
        where = self.where
        if not (where is None or isinstance(where, Predicate) or callable(where) or _is_of_a_frame(where)):
            raise ArgumentError(
                "where must be a boolean Series, a column name, a query string, a callable, or an expression of Polars "
                "or Ibis."
            )
        object.__setattr__(self, "bounds", getattr(self.mechanism, "bounds", None))
        self._check_summed()
        if isinstance(self.mechanism, Histogram) or (self.by and self.bounds):
            self._check_histogram()
        else:
            self._check_count()

    def _check_summed(self) -> None:
        if self.summed is None:
            return
        if not self.bounds:
            raise ArgumentError("summed is about a sum; people are counted here: leave it out.")
        (name,) = column_names("sum", [self.summed])
        if name in (*self.unit, *self.by):
            raise ArgumentError(
                f"sum names column {name!r}, which names people or cells here: sum another column, or count rows."
            )

    def _check_histogram(self) -> None:
        if not self.by:
            raise ArgumentError("by is needed for a histogram: name the columns whose values are the cells.")
        for own in ("count", "sum") if self.bounds else ("count",):
            if any(column.casefold() == own for column in self.by):
                raise ArgumentError(
                    f'by may not name a column "{own}": the published table has its own; rename the column.'
                )
        if any(column.endswith(")") and grouped_column(column) is not None for column in self.by):
            raise ArgumentError(
                'by may not name a column as a ledger names groups, "age in groups (0, 18)": rename the column.'
            )
        if noised_below(self.mechanism) and any(column.casefold() == "exact" for column in self.by):
            raise ArgumentError(
                'by may not name a column "exact" where below="noise": the published table has its own; rename the '
                "column."
            )
        if (self.one_cell == "first") != bool(self.order_by):
            raise ArgumentError('one_cell="first" and order_by belong together: order_by says which row comes first.')
        if self.cells_per_unit > 1:
            self._check_several_cells()
        if self.is_total:
            self._check_totals()
        if self.domain is not None:
            if not isinstance(self.domain, Domain):
                listed = with_groups(self.domain, self.bins.values())
                object.__setattr__(self, "domain", Domain.parse(self.by, listed))
            return
        if self.mechanism.noise is not None and self.mechanism.release_threshold is None:
            raise ArgumentError(
                "without a declared domain, noise needs release_threshold: otherwise a cell's mere appearance has no "
                f"noise. Give release_threshold, or the public cells, as in {self._public_cells()}."
            )
        if not isinstance(self.mechanism, Count):
            object.__setattr__(self, "mechanism", self.mechanism.of_found_cells())
        if self.mechanism.k is None and not self.bounds:
            raise ArgumentError(
                "without a declared domain, the cells are found in the data, which needs k: only cells that reach k "
                f"may appear. Give k, or the public cells, as in {self._public_cells()}."
            )
        if self.undeclared != "error":
            raise ArgumentError("undeclared is about a declared domain; give domain, or leave undeclared out.")

    def _public_cells(self) -> str:
        """Return how the public cells are given; groups of numbers are known without a list."""
        numbers = [name for name, entry in self.bins.items() if not isinstance(entry.edges, str)]
        return "domain={}, which is all groups" if len(numbers) == len(self.by) else 'domain=["A", "B"]'

    def _check_several_cells(self) -> None:
        rule = "error" if self.mechanism.noise is None else "hash"
        if not self.unit:
            raise ArgumentError(
                "cells_per_unit is about people with several rows; where each row is a person, each is in one cell: "
                "leave it out, or name the columns of a person in unit."
            )
        if self.one_cell not in ("error", rule):
            why = (
                "without noise nothing may be left out of a person's cells, which would make them depend on one another"
                if rule == "error"
                else "with noise a hash draws the cells in which a person with more of them is counted"
            )
            raise ArgumentError(f"one_cell = {self.one_cell!r} with cells_per_unit: {why}. Leave one_cell out.")
        object.__setattr__(self, "one_cell", rule)

    def _check_totals(self) -> None:
        if self.where is not None:
            raise ArgumentError(
                "totals of groups with where: which people satisfy a predicate may depend on the cell they are in, so "
                "their number is not what is known of the group. Leave where out."
            )
        if self.one_cell != "error":
            raise ArgumentError(
                f"one_cell = {self.one_cell!r} with totals of groups: in which of several groups a person is counted "
                "may depend on the cell she is in. Leave one_cell out: then everybody is in one group."
            )

    def _check_count(self) -> None:
        defaults = {"by": (), "domain": None, "one_cell": "error", "order_by": (), "undeclared": "error"}
        for name, default in {**defaults, "cells_per_unit": 1}.items():
            if getattr(self, name) != default:
                kind = "sum without by" if self.bounds else "count"
                raise ArgumentError(f"{name} is about the cells of a histogram; a {kind} has none: leave it out.")
        if self.is_total and self.where is not None:
            raise ArgumentError(
                "protects='value' with where: which people satisfy a predicate may depend on the cell they are in, so "
                "their number is not what is known of who is there. Leave where out to publish the exact number of "
                "people as such a total; or, where no total leaks, use protects='presence' to hide who is counted."
            )

    @property
    def grouping(self) -> tuple[str, ...]:
        """The by-columns as they group people; see `model.columns.grouping`."""
        return grouping([self.bins.get(name, name) for name in self.by]) or () if self.bins else self.by

    @property
    def is_total(self) -> bool:
        """Whether it asks for the exact number of people, as what an attacker is declared to know of them."""
        return kind_of(self.mechanism, self.protects) == "total"

    @property
    def has_opaque_where(self) -> bool:
        """Whether the predicate cannot be written down: only a label can name it."""
        return self.where is not None and not isinstance(self.where, Predicate)

    @property
    def predicate(self) -> str | None:
        """The text of the predicate, one for equal questions; None where every row counts or it has none."""
        return str(self.where) if isinstance(self.where, Predicate) else None

    @property
    def _opaque(self) -> str:
        named = (
            "a predicate that is not written down" if self.label is None else f"the predicate labelled {self.label!r}"
        )
        return f"{named}, which looks at the rows of one person at a time,"

    @property
    def description(self) -> str:
        """The question, in a few words; the label where there is one."""
        if self.label is not None:
            return self.label
        text = "total" if self.is_total else "histogram" if self.by else "count"
        text = f"sum of {self.summed or 'rows'}" if self.bounds else text
        text += f" by {', '.join(self.by)}" if self.by else ""
        return text if self.table is None else f"{text} of {self.table}"

    def key(self, dataset: str) -> str:
        """Return the sha256, in hex, under which a ledger finds this question again.

        It covers data set, table, unit, period, predicate or by-columns and domain (as a set), mechanism, the rules for
        rows, and whether it is a total; neither the attacker nor where the result is written. Raises `ArgumentError` if
        the predicate is opaque and there is no label to name it.
        """
        if dataset in self._keys:
            return self._keys[dataset]
        if self.has_opaque_where and self.label is None:
            raise ArgumentError(
                "where is a Series, an expression or a callable, which cannot be recognised later: a ledger needs a "
                "label that names it, or write where as a query string."
            )
        content = {
            "dataset": dataset,
            "unit": self.unit,
            "period": self.period,
            "where": {"label": self.label} if self.has_opaque_where else self.predicate,
            "by": self.by or None,
            "domain": None if self.domain is None else self.domain.canonical(),
            "mechanism": mechanism_to_dict(self.mechanism),
            "missing_unit": self.missing_unit,
            "one_cell": self.one_cell,
            "order_by": self.order_by or None,
            "undeclared": self.undeclared,
        }
        if self.bins:
            content["by"] = [[name, *([self.bins[name].edges] if name in self.bins else [])] for name in self.by]
        if self.bounds:
            content["summed"] = self.summed
        if self.table is not None:
            content["table"] = self.table
        if self.is_total:
            # Another statement about the same number would need another place among the releases.
            content["protects"] = self.protects
        text = json.dumps(content, sort_keys=True, separators=(",", ":"))
        self._keys[dataset] = hashlib.sha256(text.encode()).hexdigest()
        return self._keys[dataset]

    def follows_from(self, other: Question) -> bool:
        """Return whether the other is a finer display of this question, whose table determines that of this one."""
        same = determines(other.mechanism, self.mechanism)
        return same and replace(self, mechanism=other.mechanism).key("") == other.key("")

    def follows_from_any(self, others: Iterable[Question]) -> bool:
        """Return whether it follows from one of several questions; see `follows_from`."""
        return any(map(self.follows_from, others))

    def facts(self) -> Facts:
        """Return what the ledger compares the release with others by. Raises `ArgumentError` if there is no period."""
        if self._facts is not None:
            return self._facts
        if self.period is None:
            raise ArgumentError(
                'period is needed with a ledger: say which period these data are about, for example "2013-01-02".'
            )
        same = {name: getattr(self, name) for name in ("unit", "period", "mechanism", "protects", "table", "time_zone")}
        described: dict[str, Any] = {
            "label": self.description,
            "where": self.predicate,
            "opaque": self.has_opaque_where,
        }
        object.__setattr__(self, "_facts", facts := Facts(**same, **described, by=self.grouping or None))
        return facts

    def context(self, dataset: str | None = None, **beside: Any) -> Context:
        """Return the public facts that its statement depends on; with a data set, those of one that a ledger knows.

        `beside`: further fields, which depend on what is published.
        """
        named = ("unit", "missing_unit", "one_cell", "cells_per_unit", "table", "units", "checks")
        same: dict[str, Any] = {name: getattr(self, name) for name in named}
        return Context(
            **same,
            where=self._opaque if self.has_opaque_where else self.predicate,
            summed=self.summed_columns if self.bounds else None,
            undeclared=None if self.domain is None else self.undeclared,
            cells=None if not self.by else "found" if self.domain is None else "declared",
            period=None if dataset is None else self.period,
            dataset=dataset,
            groups=tuple(self.bins[name].words for name in self.by if name in self.bins),
            **beside,
        )


RULES = {name: get_args(hint) for name, hint in get_type_hints(Question).items() if get_origin(hint) is Literal}
"""The fields of a question that have a few values, and these."""

#: What may say of a frame's rows which of them count: Ibis has values of its own, and those that are none yet.
_OF_FRAMES = {("pandas", "Series"), ("polars", "Series"), ("polars", "Expr"), ("ibis", "BooleanValue")}


def _is_of_a_frame(value: object) -> bool:
    return any((kind.__module__.partition(".")[0], kind.__name__) in _OF_FRAMES for kind in type(value).__mro__)


def column_names(argument: str, value: object, alternative: str = "") -> tuple[str, ...]:
    """Return column names as a tuple; only an empty tuple may be empty."""
    if isinstance(value, tuple) and not value:
        return ()
    names = [value] if isinstance(value, str) else value
    if not isinstance(names, Sequence) or not names or not all(isinstance(name, str) and name for name in names):
        raise ArgumentError(f"{argument} must be a column name or a list of column names{alternative}.")
    if len(set(names)) < len(names):
        raise ArgumentError(f"{argument} names a column twice.")
    return tuple(names)
