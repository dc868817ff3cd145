"""The context of a statement, and the facts by which a ledger stores and compares a question."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.model.mechanisms import (
    NOISELESS,
    Kind,
    Mechanism,
    kind_of,
    mechanism_from_dict,
    mechanism_name,
    mechanism_to_dict,
)
from pkdp_pipeline.model.period import Period
from pkdp_pipeline.model.wording import RARE, check_types, choice, known_fields, written

_OPTIONAL_FIELDS = ("table", "time_zone")


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """The facts that a ledger stores of a question and compares releases by; they need no data.

    Parameters
    ----------
    unit : tuple of str
        Two units of one data set may be the same people under two names.
    period, mechanism, protects, table, time_zone
        As of `Question`.
    label : str
        The publication, in the words of the question.
    by : tuple of str, optional
        Columns of a histogram's cells.
    where : str, optional
        The predicate as written; None for everybody, and for one that is opaque.
    opaque : bool, default False
        Whether there is a predicate that cannot be written down.

    Raises
    ------
    ArgumentError
        If a field is malformed.
    """

    unit: tuple[str, ...]
    period: str
    label: str
    mechanism: Mechanism
    by: tuple[str, ...] | None = None
    where: str | None = None
    opaque: bool = False
    protects: str = "presence"
    table: str | None = field(default=None, metadata=RARE)
    time_zone: str | None = field(default=None, metadata=RARE)

    def __post_init__(self) -> None:
        check_types(self)
        choice("protects", self.protects, ("presence", "value"))
        mechanism_name(self.mechanism)
        Period.parse(self.period)
        for name in ("label", "period", "where", "table"):
            if any("\ud800" <= sign <= "\udfff" for sign in getattr(self, name) or ""):
                raise ArgumentError(f"{name} must be a text of whole Unicode characters: it holds half of a pair.")
        if self.total and (self.where is not None or self.opaque):
            raise ArgumentError(
                "a total that protects the value counts everybody: a predicate may depend on the cell a person is in."
            )

    @property
    def kind(self) -> Kind:
        """How the release stands beside others; see `kind_of`."""
        return kind_of(self.mechanism, self.protects)

    @property
    def noiseless(self) -> bool:
        """Whether no noise is on what is published, or it gives no finite worst case."""
        return self.kind in NOISELESS

    @property
    def total(self) -> bool:
        """Whether it is the exact number of people, published as what is known of them."""
        return self.kind == "total"

    @property
    def exact_count(self) -> bool:
        """Whether a count is published as it is: the one noiseless release that may stand beside pure noise."""
        return self.kind == "exact count"

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as a JSON-ready dictionary; `table` and `time_zone` only where there is one."""
        return written(self) | {"mechanism": mechanism_to_dict(self.mechanism)}

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Facts:
        """Rebuild the facts from the `content` of `to_dict`.

        Raises
        ------
        ArgumentError
            If a field is unknown, missing or malformed.
        """
        if not isinstance(content, Mapping) or {*content, *_OPTIONAL_FIELDS} != set(cls.__dataclass_fields__):
            raise ArgumentError(f"a release's facts must have the fields {', '.join(cls.__dataclass_fields__)}.")
        unit, by, mechanism = content["unit"], content["by"], content["mechanism"]
        if not isinstance(unit, list) or not isinstance(by, list | None) or not isinstance(mechanism, Mapping):
            raise ArgumentError("the facts' unit and by must be lists of column names, their mechanism an object.")
        read = {"unit": tuple(unit), "by": None if by is None else tuple(by)}
        return cls(**{**content, **read, "mechanism": mechanism_from_dict(mechanism)})


_CHOSEN: Mapping[str, str] = MappingProxyType(
    {
        "most_frequent": "the cell with most of her rows; a hash decides between equals",
        "first": "the cell of her first row",
        "hash": "one of them, drawn by a hash",
    }
)


_EVERY_ROW = "Every row counts as one person: somebody with several rows is protected in only one of them."


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """The facts in a release certificate about the publication it belongs to; all public, none from the data.

    Parameters
    ----------
    unit : tuple of str
        Columns of the privacy unit; empty where every row is a person.
    where : str, optional
        The predicate as written, or ``label: …`` for one that cannot be written down. None: everybody.
    missing_unit, one_cell : str
        The rules for rows, as in the question.
    cells_per_unit : int
        The most cells a person may be in.
    summed : tuple of str, optional
        The column that is summed, or none where a person's rows are; None where people are counted.
    undeclared : str, optional
        The treatment of people in cells that were not declared; None where no cells were.
    cells : {"declared", "found"}, optional
        Whether a histogram's cells were declared, or are those found in the data that reach k. None for a count.
    period : str, optional
        The period the data are about; None where no ledger was used.
    dataset : str, optional
        The data set's name in the ledger.
    table : str, optional
        The table of the data set that the rows come from, where it has several.
    units : {"checked", "exact"}
        Whether names of people that differ only by spaces around them stop it.
    checks : bool
        Whether the curator's own checks of the data could have stopped it.
    beside : bool
        Whether other releases about these people and this period stand, or are made, beside it.
    head : str, optional
        Head of the ledger's chain just before this release was charged.
    groups : tuple of str
        By-columns whose values are counted in groups, with their edges, as `Bins.words`.
    reading : str, optional
        A mark, drawn at random, that all tables counted from one reading of the data share. None where nobody vouches
        for that, as of single questions to a frame.
    """

    unit: tuple[str, ...] = ()
    where: str | None = None
    missing_unit: str = "error"
    one_cell: str = "error"
    cells_per_unit: int = field(default=1, metadata=RARE)
    summed: tuple[str, ...] | None = field(default=None, metadata=RARE)
    undeclared: str | None = None
    cells: str | None = None
    period: str | None = None
    dataset: str | None = None
    table: str | None = field(default=None, metadata=RARE)
    units: str = field(default="checked", metadata=RARE)
    checks: bool = field(default=False, metadata=RARE)
    beside: bool = False
    head: str | None = None
    groups: tuple[str, ...] = field(default=(), metadata=RARE)
    reading: str | None = field(default=None, metadata=RARE)

    def __post_init__(self) -> None:
        check_types(self, " of a context")

    def limits(
        self, *, theorems: tuple[str, ...], noised: bool, partial: bool, leaks: tuple[str, ...] = ()
    ) -> tuple[str, ...]:
        """Return what limits the statement, as plain sentences.

        Parameters
        ----------
        theorems : tuple of str
            The theorems that the certificate rests on.
        noised : bool
            Whether the mechanism adds noise.
        partial : bool
            Whether anything is claimed that rests on the attacker model.
        leaks : tuple of str
            The facts that may be known exactly beside the release, by name.
        """
        listed = list(self.facts())
        if self.period is None:
            # Theorem C reveals who is in the table in its proof, so totals of them may stand beside it.
            beside_totals = theorems in (("histogram_between",), ("noised_below_between",))
            totals = ", exact totals aside" if beside_totals else ""
            if leaks:
                totals = f", {', '.join(leaks)} aside"
            listed.append(f"This holds only if nothing else is published about these people{totals}.")
            return tuple(listed)
        listed.append(
            f"This statement is about the period {_named(self.period)} alone; the ledger's total states what several "
            "periods add up to."
        )
        if self.beside and partial:
            listed.append(
                "Other releases about these people and this period stand beside it: the promise against an attacker "
                "who is unsure of other people is about this release alone, and the ledger's total states what they "
                "tell together."
            )
            return tuple(listed)
        if noised and partial:
            beside = f" than {' and '.join(leaks)}" if leaks else ""
            listed.append(
                f"The promise against an attacker who is unsure of other people holds only while nothing else{beside} "
                "is published about these people and this period; the guarantees that noise alone gives add up."
            )
        if self.beside:
            listed.append("Other releases about these people and this period stand beside it.")
        return tuple(listed)

    def facts(self) -> tuple[str, ...]:
        """Return who a person is and which rows count, as plain sentences."""
        listed = [*(self.unit_words() or (_EVERY_ROW,))]
        if self.table is not None:
            listed.append(f"The rows are those of table {self.table!r}.")
        if self.where is not None:
            listed.append(f"Only rows with {self.where} count.")
        if self.groups:
            listed.append(f"Values are counted in groups that were fixed beforehand: {'; '.join(self.groups)}.")
        listed += self._rows_of_people()
        if conditions := self._conditions():
            *others, last = conditions
            together = f"{', '.join(others)} and {last}" if others else last
            listed.append(f"A release appears only when {together}: that this holds is public.")
        return tuple(listed)

    def unit_words(self) -> tuple[str, ...]:
        """Return who a person is; nothing where every row is one."""
        return (f"A person is one value of {', '.join(map(repr, self.unit))}.",) if self.unit else ()

    def rows(self) -> tuple[str, ...]:
        """Return which rows change the numbers of a table, and how, as plain sentences."""
        return (*(() if self.unit else (_EVERY_ROW,)), *self._rows_of_people())

    def _rows_of_people(self) -> tuple[str, ...]:
        listed = []
        there = "" if self.cells is None else " in a cell"
        if self.summed:
            listed.append(
                f"A person adds the sum of column {self.summed[0]!r} over her rows{there}, of which a missing value is "
                "0 and one beyond ±10^12 is that."
            )
        elif self.summed is not None:
            listed.append(f"A person adds the number of her rows{there}.")
        if self.missing_unit == "drop":
            listed.append("Rows that name no person are left out.")
        if self.cells_per_unit > 1 and self.one_cell == "hash":
            most = self.cells_per_unit
            listed.append(f"A person with rows in more than {most} cells counts in {most} of them, drawn by a hash.")
        elif self.cells_per_unit > 1:
            listed.append("A person with rows in several cells counts in each of them.")
        elif self.one_cell in _CHOSEN:
            listed.append(f"A person with rows in several cells counts once, in {_CHOSEN[self.one_cell]}.")
        if self.undeclared == "absent":
            listed.append("People outside the declared cells are not counted.")
        return tuple(listed)

    def _conditions(self) -> list[str]:
        """Return what of the data decides whether there is a release at all."""
        conditions = []
        named = [what for what, has in (("a person", self.unit), ("a cell", self.cells)) if has]
        if named:
            conditions.append(f"every value that names {' or '.join(named)} is of its column's type")
        if self.unit and self.units == "checked":
            conditions.append("no two names of people differ only by spaces around them")
        if self.unit and self.missing_unit == "error":
            conditions.append("every row names its person")
        if self.unit and self.cells is not None and self.one_cell == "error":
            most = "several" if self.cells_per_unit == 1 else f"more than {self.cells_per_unit}"
            conditions.append(f"nobody is in {most} cells")
        if self.undeclared == "error":
            conditions.append("everybody is in a declared cell")
        if self.checks:
            conditions.append("the data pass the curator's own checks")
        return conditions

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as a JSON-ready dictionary; what is rarely said only where it says something."""
        return written(self)

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Context:
        """Rebuild a context from `to_dict`; unknown fields are an `ArgumentError`."""
        given = known_fields(cls, fields, "a certificate's context")
        for name, default in (("unit", []), ("groups", []), ("summed", None)):
            names = given.get(name, default)
            if not isinstance(names, list | None) or (names is None and default == []):
                raise ArgumentError(f"{name} of a context must be a list of texts.")
            given[name] = None if names is None else tuple(names)
        return cls(**given)


def one_reading(first: str | None, second: str | None) -> bool | None:
    """Return whether two tables were counted from one reading of the data, by their marks; None where that is not said.

    Between two readings data may be corrected, so that nothing which supposes the same people follows from both tables.
    """
    return None if first is None or second is None else first == second


def _named(period: str) -> str:
    """Return a period as a sentence has it: labels in quotes, since they may be words such as all."""
    return period if re.fullmatch(r"[0-9QHW/-]+", period) else repr(period)
