"""Cells between DuckDB and requests: which SQL types may name them, a declared domain, and keys as text."""

from __future__ import annotations

import datetime
import decimal
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any

from pkdp_pipeline.duckdb.constants import Literal, key_of, type_of_keys, words_of
from pkdp_pipeline.duckdb.tables import lowered, type_name
from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.model.keys import canonical_key, json_key

#: No column has a number with a larger exponent, either way.
_LARGEST_EXPONENT = 400


def public_type(name: str, kind: str) -> str:
    """Return the SQL type under which the keys of a column are published; see `constants.type_of_keys`.

    Raises
    ------
    ArgumentError
        If columns of this type cannot name cells.
    """
    found = type_of_keys(kind)
    if found is None:
        raise ArgumentError(
            f"by column {name!r} has type {type_name(kind)}, which cannot name cells; cast it in a view, for example "
            "to VARCHAR."
        )
    return found


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

    Raises
    ------
    ArgumentError
        If the type cannot name cells, or does not have one of the values.
    """
    own = public_type(name, kind)
    exact = (decimal.Decimal(repr(one)) if isinstance(one, float) and math.isfinite(one) else one for one in values)
    return [_value(name, own, one if isinstance(one, decimal.Decimal) else json_key(one)) for one in exact]


def read_domain(text: str, columns: Mapping[str, str]) -> list[Any] | dict[str, list[Any]]:
    """Return a declared domain as `Domain.parse` reads it, with values of the columns' own kinds.

    Parameters
    ----------
    text : str
        JSON: a list with one value per cell; for several columns a list of rows or structs, or an object of each
        column's values, of which all combinations are cells.
    columns : mapping of str to str
        The by-columns, in order, and their SQL types.

    Raises
    ------
    ArgumentError
        If it has another form, or a value that its column's type does not have.
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
    cells = [tuple(_value(name, columns[name], one) for name, one in zip(names, row, strict=True)) for row in rows]
    return [cell[0] for cell in cells] if len(names) == 1 else cells


class _Pairs(list[tuple[str, Any]]):
    """A JSON object as it is written: DuckDB 1 writes rows without names as objects whose keys are all empty."""

    def by_name(self, names: Sequence[str]) -> list[Any] | None:
        """Return the values under these names, letter case aside; None unless each is there, and nothing else."""
        found = {lowered(name): value for name, value in self}
        wanted = [lowered(name) for name in names]
        if len(found) != len(self) or set(found) != set(wanted) or len(set(wanted)) < len(wanted):
            return None
        return [found[name] for name in wanted]


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
        "several columns a list of rows with one value for each: domain := [('US', true), ('NO', false)]."
    )


def _value(name: str, kind: str, value: Any) -> Any:
    """Return a JSON value as a key of a column of this type."""
    if value is None:
        return None
    try:
        if isinstance(value, bool):
            return key_of(kind, Literal("boolean", value))
        if isinstance(value, str):
            return key_of(kind, Literal("text", value))
        if isinstance(value, int):
            return key_of(kind, Literal("number", Fraction(value)))
        if isinstance(value, decimal.Decimal) and value.is_finite() and abs(value.adjusted()) < _LARGEST_EXPONENT:
            return key_of(kind, Literal("number", Fraction(value)))
        if isinstance(value, float) and math.isinf(value) and kind in ("FLOAT", "DOUBLE"):
            return value
    except ArgumentError:
        pass
    raise ArgumentError(f"domain has a value that column {name!r} of type {kind} cannot hold; write {words_of(kind)}.")
