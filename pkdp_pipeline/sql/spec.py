"""Spec: a question as JSON, checked for every sender, and the cells that it names: their SQL types, domain and text.

Settings: what files say about people, the attacker and the ledger, read strictly; and those of the dbt plugin.
"""

from __future__ import annotations

import datetime
import decimal
import json
import math
import os
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import fields
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self, get_args, get_type_hints

from pydantic import (
    BeforeValidator,
    Field,
    ValidationError,
    ValidationInfo,
    create_model,
    field_validator,
    model_validator,
)

from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.ledger import Ledger
from pkdp_pipeline.model.attacker import AttackerModel
from pkdp_pipeline.model.columns import OneCell
from pkdp_pipeline.model.display import read_display
from pkdp_pipeline.model.keys import canonical_key, json_key
from pkdp_pipeline.model.mechanisms import MECHANISMS, GeometricNoise, Mechanism, Sum, mechanism_from_dict
from pkdp_pipeline.model.period import Period
from pkdp_pipeline.model.question import RULES, MissingUnit
from pkdp_pipeline.model.wording import choice, positive_real
from pkdp_pipeline.releases.options import AttackerTable, Columns, Declarations, Name, Table, complaints, unusable
from pkdp_pipeline.sql.tables import SqlConstant, key_of, lowered, type_name, type_of_keys, words_of

#: How the texts among the keys are written; others are just texts.
_WRITTEN = {
    "table": "the name of a table, in quotes: 'events'",
    "period": "a text or a DATE, such as '2013-01-02'",
    "filter": "a text that holds a condition, such as filter := 'age >= 18'",
}
#: What no text in a database has.
_FOREIGN = re.compile("[\0\ud800-\udfff]")
#: What SQL has for a field in a form of its own: of noise its ε, of a rule of display a struct or JSON text.
_IN_SQL: dict[str, Any] = {"noise": float, "display": dict[str, Any], "bounds": tuple[int, int]}


def sql_fields(*kinds: type[Any], without: Collection[str] = ()) -> dict[str, Any]:
    """Return the fields of declared values as SQL has them: whole numbers, numbers, truth values, and texts."""
    declared = {field.name: get_type_hints(kind)[field.name] for kind in kinds for field in fields(kind)}
    plain = {name: (get_args(hint) or (hint,))[0] for name, hint in declared.items() if name not in without}
    return {name: _IN_SQL.get(name, kind if kind in (int, float, bool) else str) for name, kind in plain.items()}


STEPS = sql_fields(*MECHANISMS.values(), without=("totals",))
"""The steps of a mechanism; those of a count, of a histogram and of a sum together."""


def mechanism_of(name: str, given: Mapping[str, Any]) -> Mechanism:
    """Return a mechanism from its steps among what is given, where noise is its ε and None is left out."""
    content: dict[str, Any] = {"mechanism": name}
    for step in (step for step in STEPS if given.get(step) is not None):
        having = [other for other, kind in MECHANISMS.items() if step in {field.name for field in fields(kind)}]
        if name not in having:
            raise ArgumentError(f"{step} is about a {' or a '.join(having)}; a {name} has none: leave it out.")
        content[step] = {"epsilon": given[step]} if step == "noise" else given[step]
    return mechanism_from_dict(content)


#: The rules of a question that a call may choose.
_RULES = [rule for rule in RULES if rule != "units"]
#: Keys that the policy of a gate decides, and not who asks.
_OF_THE_POLICY = ("domain", "period", "order_by", "cells_per_unit", *_RULES)

if TYPE_CHECKING:

    class _DeclaredKeys(Table):
        def __getattr__(self, name: str) -> Any: ...

else:
    # The cells of a table say themselves whether they are found.
    _chosen = {**STEPS, **dict.fromkeys(_RULES, str)}
    _DeclaredKeys = create_model(
        "_DeclaredKeys",
        __base__=Table,
        **{name: (kind | None, None) for name, kind in _chosen.items() if name != "cells_found"},
    )


class Spec(_DeclaredKeys):
    """One question, such as ``{"table": "events", "histogram": "country", "k": 20}``; None where a key is left out.

    Beside these keys it has the steps of a mechanism and the rules of a `Question`.

    Parameters
    ----------
    table : str
        As written; see `tables.resolve`.
    histogram : tuple of str, optional
        The columns whose values are the cells of a histogram, as written.
    count : bool, optional
        True for a count.
    sum : str, optional
        The summed column, as written.
    rows : {"count"}, optional
        For a sum of rows. A question has one of these four.
    by : tuple of str, optional
        The columns whose values are the cells of a sum, as written.
    filter : str, optional
        A condition in SQL.
    domain : str, optional
        The public cells as JSON text; see `read_domain`.
    period : str, optional
        See `Question`.
    order_by : tuple of str, optional
        See `Question`; as written.
    database, schema : str, optional
        Where the caller's connection stands; unqualified names are looked up there first.
    schemas : tuple of str, optional
        The schemas of its search path.
    """

    table: str
    histogram: tuple[str, ...] | None = None
    count: Literal[True] | None = None
    sum: str | None = None
    rows: Literal["count"] | None = None
    by: tuple[str, ...] | None = None
    filter: str | None = None
    domain: str | None = None
    period: str | None = None
    order_by: tuple[str, ...] | None = None
    database: str | None = None
    schema_: str | None = Field(default=None, alias="schema")
    schemas: tuple[str, ...] | None = None

    @field_validator("*", mode="before")
    @classmethod
    def _is_of_its_kind(cls, value: Any, info: ValidationInfo) -> Any:
        name = info.field_name or ""
        if value is None:
            if name == "table":
                raise ValueError("table is needed, and may not be NULL.")
            return None
        if name == "schemas":
            return tuple(value) if isinstance(value, list) else value
        if name in ("histogram", "by", "order_by"):
            return _names(name, value)
        if name == "bounds":
            return Sum(value, GeometricNoise(1.0)).bounds
        if name == "rows":
            return choice("rows", value, ("count",))
        if name == "noise":
            return positive_real("noise", value)
        if name == "below":
            return choice("below", value, ("suppress", "noise"))
        if name == "display":
            return read_display(value).to_dict()
        if name == "count" and value is not True:
            raise ValueError("count must be true, or left out.")
        if cls.model_fields[name].annotation == int | None and type(value) is not int:
            raise ValueError(f"{name} must be a whole number, not {type(value).__name__}: write it as 20.")
        text = cls.model_fields[name].annotation in (str, str | None)
        if text and (not isinstance(value, str) or not value.strip() or _FOREIGN.search(value)):
            raise ValueError(f"{name} must be {_WRITTEN.get(name, 'a text')}, and not empty or with NUL in it.")
        return value

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if [self.histogram, self.count, self.sum, self.rows].count(None) != 3:
            raise ValueError(
                "a question has one of: histogram, the columns whose values are the cells; count, which is true; sum, "
                "a column of whole numbers; rows, which is 'count' and sums rows."
            )
        if self.by is not None and not self.is_sum:
            raise ValueError("by is about sums alone: leave it out.")
        return self

    @classmethod
    def read(cls, question: object) -> Spec:
        """Read a question: a mapping, or its JSON text."""
        if isinstance(question, Spec):
            return question
        content: object = question
        if isinstance(question, (str, bytes)):
            try:
                text = question if isinstance(question, str) else question.decode()  # json guesses UTF-16 and UTF-32
                content = json.loads(text, object_pairs_hook=_object)
            except (ValueError, RecursionError):
                content = None
        if not isinstance(content, Mapping):
            raise ArgumentError('the question must be a JSON object, such as {"table": "events", "count": true}.')
        try:
            return cls.model_validate({"table": None, **content})
        except ValidationError as error:
            detail = error.errors(include_url=False)[0]
        message = detail["msg"] if detail["type"] == "value_error" else f"{detail['loc'][0]} has another type."
        raise ArgumentError(message.removeprefix("Value error, "))

    def to_dict(self) -> dict[str, Any]:
        """Return the keys that are given, as JSON has them."""
        return self.model_dump(mode="json", exclude_none=True, by_alias=True)

    def to_json(self) -> str:
        """Return JSON that `read` reads; equal questions have equal JSON."""
        return json.dumps(self.to_dict(), sort_keys=True, separators=(",", ":"))

    def for_a_gate(self) -> Spec:
        """Return the question as a gate takes it: without where the asker's own connection stands.

        Of a count it may say what it protects: that asks for the exact number of all people. Raises `ArgumentError` if
        it says what the policy decides.
        """
        for name in _OF_THE_POLICY:
            if getattr(self, name) is not None and not (self.count and name == "protects"):
                raise ArgumentError(f"{name} is not for analysts to choose: the policy decides it. Leave it out.")
        return self.model_copy(update={"database": None, "schema_": None, "schemas": None})

    @property
    def is_sum(self) -> bool:
        """Whether a sum is asked for."""
        return self.sum is not None or self.rows is not None

    @property
    def cells(self) -> tuple[str, ...] | None:
        """The columns whose values are the cells, as written; None where there are none."""
        return self.by if self.is_sum else self.histogram

    @property
    def mechanism(self) -> Mechanism:
        """Return the mechanism that is asked for."""
        name = "sum" if self.is_sum else "histogram" if self.count is None else "count"
        return mechanism_of(name, self.to_dict())


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(dict(pairs)) < len(pairs):
        raise ValueError("a key is there twice")
    return dict(pairs)


def _names(argument: str, value: Any) -> tuple[str, ...]:
    names = (value,) if isinstance(value, str) else tuple(value) if isinstance(value, (list, tuple)) else ()
    if not names or not all(isinstance(name, str) and name and not _FOREIGN.search(name) for name in names):
        raise ValueError(f"{argument} must be a column's name or a list of them: 'country' or ['country', 'flag'].")
    if len(set(map(lowered, names))) < len(names):
        raise ValueError(f"{argument} names a column twice, letter case aside; write each once: ['country', 'flag'].")
    return names


#: No column has a number with a larger exponent, either way.
_MAX_EXPONENT = 400


def public_type(name: str, kind: str) -> str:
    """Return the SQL type under which the keys of a column are published; see `constants.type_of_keys`.

    Raises `ArgumentError` if columns of this type cannot name cells.
    """
    key_type = type_of_keys(kind)
    if key_type is None:
        raise ArgumentError(
            f"by column {name!r} has type {type_name(kind)}, which cannot name cells; cast it in a view, for example "
            "to VARCHAR."
        )
    return key_type


def spelled(values: Iterable[Any]) -> list[str | None]:
    """Return keys as text that a cast to their SQL type reads back; None where missing."""
    return [_spelled(canonical_key(value)) for value in values]


def _spelled(key: Any) -> str | None:
    if key is None:
        return None
    if isinstance(key, bool):
        return "true" if key else "false"
    if isinstance(key, decimal.Decimal):
        return format(key, "f")
    return key.isoformat() if isinstance(key, datetime.date) else str(key)


def public_values(name: str, kind: str, values: Iterable[Any]) -> list[Any]:
    """Return a column's declared values as keys of its own SQL type.

    Raises `ArgumentError` if the type cannot name cells, or does not have one of the values.
    """
    own = public_type(name, kind)
    exact = (
        decimal.Decimal(repr(value)) if isinstance(value, float) and math.isfinite(value) else value for value in values
    )
    return [_value(name, own, value if isinstance(value, decimal.Decimal) else json_key(value)) for value in exact]


def read_domain(text: str, columns: Mapping[str, str]) -> list[Any] | dict[str, list[Any]]:
    """Return a declared domain as `Domain.parse` reads it, with values of the columns' own kinds.

    Raises `ArgumentError` if it has another form, or a value that its column's type does not have.

    Parameters
    ----------
    text : str
        JSON: a list with one value per cell; for several columns a list of rows or structs, or an object of each
        column's values, of which all combinations are cells.
    columns : mapping of str to str
        The by-columns, in order, and their SQL types.
    """
    names = list(columns)
    try:
        content = json.loads(text, parse_float=decimal.Decimal, object_pairs_hook=_Pairs)
    except (ValueError, RecursionError, decimal.DecimalException):
        content = None
    if isinstance(content, _Pairs):
        lists = content.by_name(names)
        if lists is None or not all(isinstance(values, list) for values in lists):
            raise _form(names)
        return {
            name: [_value(name, columns[name], value) for value in values]
            for name, values in zip(names, lists, strict=True)
        }
    if not isinstance(content, list):
        raise _form(names)
    rows = [_row(names, cell) for cell in content]
    cells = [tuple(_value(name, columns[name], value) for name, value in zip(names, row, strict=True)) for row in rows]
    return [cell[0] for cell in cells] if len(names) == 1 else cells


class _Pairs(list[tuple[str, Any]]):
    """A JSON object as it is written: DuckDB 1 writes rows without names as objects whose keys are all empty."""

    def by_name(self, names: Sequence[str]) -> list[Any] | None:
        """Return the values under these names, letter case aside; None unless each is there, and nothing else."""
        values = {lowered(name): value for name, value in self}
        wanted = [lowered(name) for name in names]
        if len(values) != len(self) or set(values) != set(wanted) or len(set(wanted)) < len(wanted):
            return None
        return [values[name] for name in wanted]


def _row(names: Sequence[str], cell: Any) -> list[Any]:
    values = cell
    if isinstance(cell, _Pairs):
        values = [value for _, value in cell] if not any(name for name, _ in cell) else cell.by_name(names)
    elif len(names) == 1 and not isinstance(cell, list):
        values = [cell]
    if not isinstance(values, list) or len(values) != len(names):
        raise _form(names)
    return values


def _form(names: Sequence[str]) -> ArgumentError:
    return ArgumentError(
        f"domain must be a list of the public cells of {', '.join(map(repr, names))}: domain := ['US', 'NO'], or for "
        "several columns {'country': ['US', 'NO'], 'flag': [true]}, or a list of rows: [('US', true), ('NO', true)]."
    )


def _value(name: str, kind: str, value: Any) -> Any:
    """Return a JSON value as a key of a column of this type."""
    if value is None:
        return None
    try:
        if isinstance(value, bool):
            return key_of(kind, SqlConstant("boolean", value))
        if isinstance(value, str):
            return key_of(kind, SqlConstant("text", value))
        if isinstance(value, int):
            return key_of(kind, SqlConstant("number", Fraction(value)))
        if isinstance(value, decimal.Decimal) and value.is_finite() and abs(value.adjusted()) < _MAX_EXPONENT:
            return key_of(kind, SqlConstant("number", Fraction(value)))
        if isinstance(value, float) and math.isinf(value) and kind in ("FLOAT", "DOUBLE"):
            return value
    except ArgumentError:
        pass
    raise ArgumentError(f"domain has a value that column {name!r} of type {kind} cannot hold; write {words_of(kind)}.")


PeriodName = Annotated[str | None, BeforeValidator(lambda value: value if value is None else Period.parse(value).text)]


class LedgerSettings(Declarations):
    """The keys of every such file: the attacker, the data set, the ledger and its terms.

    Parameters
    ----------
    attacker : table, optional
        The fields of `AttackerModel`. Without it nothing is assumed, and only noise can be certified.
    ledger : str, optional
        A ledger file or a ``postgresql://`` URL.
    period : str or date, optional
        The period of the data, where nothing else says it.
    budget, evidence : table or list of tables, optional
        As in job files.
    """

    attacker: Annotated[
        AttackerTable, BeforeValidator(lambda value: value.to_dict() if isinstance(value, AttackerModel) else value)
    ] = AttackerTable()
    ledger: Annotated[
        Name | None, BeforeValidator(lambda value: os.fspath(value) if isinstance(value, os.PathLike) else value)
    ] = Field(default=None, repr=False)
    dataset: Name = "default"
    period: PeriodName = None

    @classmethod
    def checked(cls, content: Mapping[str, Any], name: str) -> Self:
        """Check what a file says. Raises a `ConfigError` that names every key that is wrong, and what to write."""
        try:
            return cls.model_validate(dict(content))
        except ValidationError as error:
            wrong = complaints(error)
        raise unusable(name, wrong)

    def opened(self, ledger: str) -> Ledger:
        """Open a ledger with the terms that are declared here."""
        budget, evidence = self.budgets() or None, self.declared() or None
        return Ledger.open(ledger, dataset=self.dataset, budget=budget, evidence=evidence)


class Settings(LedgerSettings):
    """The ``config`` of the dbt plugin in ``profiles.yml``.

    Parameters
    ----------
    unit : str or list of str
        Columns that name a person, the same in every table.
    ledger : str
        A SQLite file, relative to the folder of the database, or a ``postgresql://`` URL.
    missing_unit, one_cell, order_by : optional
        As of `pkdp_pipeline.histogram`.
    """

    unit: Columns
    ledger: Name = Field(repr=False)
    missing_unit: MissingUnit = "error"
    one_cell: OneCell = "error"
    order_by: Columns | None = None

    @classmethod
    def read(cls, config: Mapping[str, Any]) -> Self:
        """Check what ``profiles.yml`` says; see `LedgerSettings.checked`."""
        return cls.checked(config, "the pkdp plugin's config in profiles.yml")

    def open_ledger(self, database: str) -> Ledger:
        """Open the ledger that belongs to a database file; see `LedgerSettings.opened`."""
        place = self.ledger
        if "://" not in place and place != ":memory:" and database != ":memory:" and not database.startswith("md:"):
            place = str(Path(database).parent / place)  # beside the data: the same, wherever dbt is started
        return self.opened(place)
