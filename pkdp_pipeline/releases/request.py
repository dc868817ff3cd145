"""Request: what is to be published, checked without any data, with the key under which a ledger knows it."""

from __future__ import annotations

import datetime
import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import pandas as pd

from pkdp_pipeline.certificates.target import Asked, read_target
from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.ledger.standing import Standing, kind_of
from pkdp_pipeline.model.arguments import choice
from pkdp_pipeline.model.context import Context
from pkdp_pipeline.model.domain import Domain
from pkdp_pipeline.model.mechanisms import Histogram, Mechanism, mechanism_name, mechanism_to_dict
from pkdp_pipeline.model.mechanisms.noise_law import LARGEST_EPSILON
from pkdp_pipeline.model.period import Period
from pkdp_pipeline.model.predicate import Predicate, from_query
from pkdp_pipeline.model.unit import EachRow
from pkdp_pipeline.releases.noise import check_noise

__all__ = ["Request"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Request:
    """What is asked of the data, before any is read.

    Parameters
    ----------
    mechanism : Count or Histogram
    unit : str, sequence of str, or EACH_ROW
        Columns that name a person. Stored as a tuple, empty for EACH_ROW.
    protects : {"presence", "value"}, default "presence"
        A count that protects the value is a total: the exact number of people, without a predicate, published as
        what every attacker is declared to know (`Leakage.total`); it hides nothing about who is there.
    by : str or sequence of str, optional
        Columns that name a histogram's cells.
    domain : Domain, list or dict, optional
        The public cells (`Domain.parse`). None: only cells that reach `k` appear, and no trace of the others.
    where : boolean Series, str or callable, optional
        Which rows count. A missing answer is "no". A str is a column or a query string.
    missing_unit : {"error", "drop"}, default "error"
        What happens to rows whose unit is missing.
    units : {"checked", "exact"}, default "checked"
        Whether names of people that differ only by spaces around them are an error, or say exactly who they are.
    one_cell : {"error", "most_frequent", "first", "hash"}, default "error"
        Which of its own cells a person with rows in several is counted in: an error, the one with most rows
        (of equals the one that "hash" draws), the one whose row has the smallest `order_by` (the smallest of equals),
        or one drawn by a fixed hash of the person's name and cells.
    order_by : str or sequence of str, optional
        Needed by, and only by, ``one_cell="first"``. Missing values come last.
    undeclared : {"error", "absent"}, default "error"
        What happens to people whose cell is not in the domain, after `one_cell` has chosen it.
    period : str, datetime.date or Period, optional
        Read by `Period.parse`; stored in its one spelling, so that ``20130102`` and ``2013-01-02`` are the same
        request.
    label : str, optional
    table : str, optional
        Which table of the data set the rows come from, where it has several. All tables of a data set are about
        the same people.
    time_zone : str, optional
        Where the days of the period begin and end, where they were cut out of instants.
    checks : bool, default False
        Whether the data are held to checks of the caller's own, which stop the publication; it is no part of what is
        asked, and the certificate states it.
    target : Target, None or "default"
        What it has to promise at least to be published; no part of what is asked. None: nothing. "default": the
        ledger's, or a finite ε at δ = 1e-6.

    Raises
    ------
    ArgumentError
        If an argument is malformed or two of them contradict each other.
    """

    mechanism: Mechanism
    unit: Any
    protects: str = "presence"
    by: Any = None
    domain: Any = None
    where: Any = None
    missing_unit: str = "error"
    units: str = "checked"
    one_cell: str = "error"
    order_by: Any = None
    undeclared: str = "error"
    period: Any = None
    label: str | None = None
    table: str | None = None
    time_zone: str | None = None
    checks: bool = False
    target: Asked = "default"

    def __post_init__(self) -> None:
        mechanism_name(self.mechanism)
        check_noise(self.mechanism.noise)
        noise = self.mechanism.noise
        if noise is not None and noise.epsilon > LARGEST_EPSILON:
            raise ArgumentError(
                f"noise epsilon must be at most {LARGEST_EPSILON:g} to be published, got {noise.epsilon!r}: it "
                "would change no count in a lifetime. Write noise with epsilon = 1, or leave noise out."
            )
        read_target(self.target)
        choice("protects", self.protects, ("presence", "value"))
        choice("missing_unit", self.missing_unit, ("error", "drop"))
        choice("units", self.units, ("checked", "exact"))
        choice("one_cell", self.one_cell, ("error", "most_frequent", "first", "hash"))
        choice("undeclared", self.undeclared, ("error", "absent"))
        each_row = isinstance(self.unit, EachRow) or (isinstance(self.unit, tuple) and not self.unit)
        self._set("unit", () if each_row else _columns("unit", self.unit, " or pkdp.EACH_ROW"))
        self._set("by", None if self.by is None else _columns("by", self.by))
        self._set("order_by", None if self.order_by is None else _columns("order_by", self.order_by))
        if isinstance(self.period, datetime.datetime):
            raise ArgumentError("period must be a text or a date, not a point in time: write period=timestamp.date().")
        if self.period is not None:
            self._set("period", Period.parse(self.period).text)
        for name in ("label", "table", "time_zone"):
            text = getattr(self, name)
            if text is not None and (not isinstance(text, str) or not text.strip()):
                raise ArgumentError(f"{name} must be a non-empty text.")
        self._check_where()
        if isinstance(self.mechanism, Histogram):
            self._check_histogram()
        else:
            self._check_count()

    def _set(self, name: Literal["unit", "by", "where", "order_by", "period", "domain"], value: object) -> None:
        object.__setattr__(self, name, value)

    def _check_where(self) -> None:
        where = self.where
        if isinstance(where, str) and where.strip():
            self._set("where", from_query(where))
        elif where is not None and not isinstance(where, (pd.Series, Predicate)) and not callable(where):
            raise ArgumentError("where must be a boolean Series, a column name, a query string or a callable.")

    def _check_histogram(self) -> None:
        if self.by is None:
            raise ArgumentError("by is needed for a histogram: name the columns whose values are the cells.")
        if any(column.casefold() == "count" for column in self.by):
            raise ArgumentError('by may not name a column "count": the published table has its own; rename the column.')
        if (self.one_cell == "first") != (self.order_by is not None):
            raise ArgumentError('one_cell="first" and order_by belong together: order_by says which row comes first.')
        if self.domain is not None:
            if not isinstance(self.domain, Domain):
                self._set("domain", Domain.parse(self.by, self.domain))
            return
        if self.mechanism.k is None:
            raise ArgumentError(
                "without domain, the cells are found in the data, which needs k: only cells that reach k may appear. "
                "Give k, or declare the public cells in domain."
            )
        if self.mechanism.noise is not None and self.mechanism.release_threshold is None:
            raise ArgumentError(
                "without domain, noise needs release_threshold: otherwise a cell's mere appearance has no noise. "
                "Give release_threshold, or declare the public cells in domain."
            )
        if self.undeclared != "error":
            raise ArgumentError("undeclared is about a declared domain; give domain, or leave undeclared out.")

    def _check_count(self) -> None:
        defaults = {"by": None, "domain": None, "one_cell": "error", "order_by": None, "undeclared": "error"}
        for name, default in defaults.items():
            if getattr(self, name) != default:
                raise ArgumentError(f"{name} is about the cells of a histogram; a count has none: leave it out.")
        if self.is_total and self.where is not None:
            raise ArgumentError(
                "protects='value' with where: which people satisfy a predicate may depend on the cell they are in, so "
                "their number is not what is known of who is there. Leave where out to publish the exact number of "
                "people as such a total; or, where no total leaks, use protects='presence' to hide who is counted."
            )

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

    def key(self, dataset: str) -> str:
        """Return the sha256, in hex, under which a ledger finds this request again.

        It covers the data set and the table, the unit, the period, the predicate or the by-columns and domain (as a
        set), the mechanism, the rules for rows, and whether it is a total; neither the attacker nor where the result
        is written.

        Raises
        ------
        ArgumentError
            If the predicate is opaque and there is no label to name it.
        """
        if self.has_opaque_where and self.label is None:
            raise ArgumentError(
                "where is a Series or a callable, which cannot be recognised later: a ledger needs a label that names "
                "it, or write where as a query string."
            )
        content = {
            "dataset": dataset,
            "unit": list(self.unit),
            "period": self.period,
            "where": {"label": self.label} if self.has_opaque_where else self.predicate,
            "by": None if self.by is None else list(self.by),
            "domain": None if self.domain is None else self.domain.canonical(),
            "mechanism": mechanism_to_dict(self.mechanism),
            "missing_unit": self.missing_unit,
            "one_cell": self.one_cell,
            "order_by": None if self.order_by is None else list(self.order_by),
            "undeclared": self.undeclared,
        }
        if self.table is not None:
            content["table"] = self.table
        if self.is_total:
            # Another statement about the same number would need another place among the releases.
            content["protects"] = self.protects
        return hashlib.sha256(json.dumps(content, sort_keys=True, separators=(",", ":")).encode()).hexdigest()

    def standing(self) -> Standing:
        """Return what the ledger compares the release with others by.

        Raises
        ------
        ArgumentError
            If there is no period.
        """
        if self.period is None:
            raise ArgumentError(
                'period is needed with a ledger: say which period these data are about, for example "2013-01-02".'
            )
        return Standing(
            unit=self.unit,
            period=self.period,
            label=self.description,
            mechanism=self.mechanism,
            by=self.by,
            where=self.predicate,
            opaque=self.has_opaque_where,
            protects=self.protects,
            table=self.table,
            time_zone=self.time_zone,
        )

    def context(self, dataset: str | None = None) -> Context:
        """Return the public facts that its statement depends on; with a data set, those of one that a ledger knows."""
        return Context(
            unit=self.unit,
            where=f"the predicate labelled {self.label!r}" if self.has_opaque_where else self.predicate,
            missing_unit=self.missing_unit,
            one_cell=self.one_cell,
            undeclared=None if self.domain is None else self.undeclared,
            cells=None if self.by is None else "found" if self.domain is None else "declared",
            period=None if dataset is None else self.period,
            dataset=dataset,
            table=self.table,
            units=self.units,
            checks=self.checks,
        )

    @property
    def description(self) -> str:
        """What is asked, in a few words; the label where there is one."""
        if self.label is not None:
            return self.label
        asked = "total" if self.is_total else "count"
        asked = asked if self.by is None else f"histogram by {', '.join(self.by)}"
        return asked if self.table is None else f"{asked} of {self.table}"


def _columns(argument: str, value: object, alternative: str = "") -> tuple[str, ...]:
    names = [value] if isinstance(value, str) else value
    if not isinstance(names, Sequence) or not names or not all(isinstance(name, str) and name for name in names):
        raise ArgumentError(f"{argument} must be a column name or a list of column names{alternative}.")
    if len(set(names)) < len(names):
        raise ArgumentError(f"{argument} names a column twice.")
    return tuple(names)
