"""Cells between DuckDB and requests: which SQL types may name them, a declared domain, and keys as text."""

from __future__ import annotations

import datetime
import decimal
import json
import math
import re
import struct
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import pandas as pd

from pkdp_pipeline.duckdb.tables import is_enum, lowered, type_name
from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.model.keys import canonical_key

__all__ = ["public_type", "read_domain", "spelled"]

#: Between which numbers the cells of a domain may lie: those of the type, and of int64, which holds them.
_WHOLE: Mapping[str, tuple[int, int]] = MappingProxyType(
    {
        "TINYINT": (-(2**7), 2**7),
        "SMALLINT": (-(2**15), 2**15),
        "INTEGER": (-(2**31), 2**31),
        "BIGINT": (-(2**63), 2**63),
        "UTINYINT": (0, 2**8),
        "USMALLINT": (0, 2**16),
        "UINTEGER": (0, 2**32),
        "UBIGINT": (0, 2**63),
    }
)
#: How many digits of a second a type keeps.
_DIGITS: Mapping[str, int] = MappingProxyType(
    {"TIMESTAMP_S": 0, "TIMESTAMP_MS": 3, "TIMESTAMP": 6, "TIMESTAMP_NS": 9, "TIMESTAMP WITH TIME ZONE": 6}
)
_DECIMAL = re.compile(r"DECIMAL\((\d+),\s*(\d+)\)")
_TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\d(?:[ T]\d\d:\d\d(?::\d\d(?:\.(\d{1,9}))?)?)?( ?[+-]\d\d(?::?\d\d)?|Z)?")


def public_type(name: str, kind: str) -> str:
    """Return the SQL type under which the keys of a column are published: its own.

    An ENUM lists values that no published cell may have, so its keys are text.

    Raises
    ------
    ArgumentError
        If columns of this type cannot name cells.
    """
    if is_enum(kind):
        return "VARCHAR"
    plain = ("VARCHAR", "BOOLEAN", "FLOAT", "DOUBLE", "DATE", "UUID")
    if kind in plain or kind in _WHOLE or kind in _DIGITS or _DECIMAL.fullmatch(kind):
        return kind
    raise ArgumentError(
        f"by column {name!r} has type {type_name(kind)}, which cannot name cells; cast it in a view, for example to "
        "VARCHAR."
    )


def spelled(values: Iterable[Any]) -> list[str | None]:
    """Return keys as text that a cast to their SQL type reads back; None where missing."""
    return [_spelled(canonical_key(value)) for value in values]


def _spelled(key: Any) -> str | None:
    if key is None or isinstance(key, str):
        return key
    if isinstance(key, bool):
        return "true" if key else "false"
    if isinstance(key, float):
        return repr(key)
    if isinstance(key, decimal.Decimal):
        return format(key, "f")
    if isinstance(key, datetime.date):
        return key.isoformat()
    return str(key)


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
        raise ArgumentError("domain must be a list of the public cells: domain := ['US', 'NO'].") from None
    if isinstance(content, _Pairs):
        lists = content.by_name(names)
        if lists is None or not all(isinstance(values, list) for values in lists):
            raise ArgumentError(_form(names))
        return {
            name: [_value(name, columns[name], value) for value in values]
            for name, values in zip(names, lists, strict=True)
        }
    if not isinstance(content, list):
        raise ArgumentError(_form(names))
    if len(names) == 1:
        (name,) = names
        return [_value(name, columns[name], _single(names, value)) for value in content]
    return [
        tuple(_value(name, columns[name], value) for name, value in zip(names, _row(names, cell), strict=True))
        for cell in content
    ]


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
    if not isinstance(values, list) or len(values) != len(names):
        raise ArgumentError(_form(names))
    return values


def _single(names: Sequence[str], value: Any) -> Any:
    return _row(names, value)[0] if isinstance(value, list) else value


def _form(names: Sequence[str]) -> str:
    if len(names) == 1:
        return f"domain must be a list of the public cells of {names[0]!r}: domain := ['US', 'NO']."
    return (
        f"domain must be a list of rows with one value for each of {', '.join(map(repr, names))}: "
        "domain := [('US', true), ('NO', false)]."
    )


def _value(name: str, kind: str, value: Any) -> Any:
    """Return a JSON value as a key of a column of this type."""
    if value is None:
        return None
    family, read = _reader(kind)
    try:
        key = read(value)
    except (ValueError, TypeError, ArithmeticError, struct.error):
        key = None
    if key is None:
        raise ArgumentError(f"domain has a value that column {name!r} of type {kind} cannot hold; write {family}.")
    return key


def _reader(kind: str) -> tuple[str, Callable[[Any], Any]]:
    """Return what a value must be, in words, and what reads it: None or an error where it is something else."""
    decimals = _DECIMAL.fullmatch(kind)
    if decimals:
        places = int(decimals[2])
        whole = int(decimals[1]) - places
        return f"numbers with at most {places} decimal places", lambda value: _decimal(value, whole, places)
    if kind in _WHOLE:
        return "whole numbers in its range, below 2^63", lambda value: _integer(value, *_WHOLE[kind])
    if kind in _DIGITS:
        zoned = kind == "TIMESTAMP WITH TIME ZONE"
        example = "TIMESTAMPTZ '2020-01-01 00:00:00+00'" if zoned else "TIMESTAMP '2020-01-01 00:00:00'"
        return f"points in time such as {example}", lambda value: _timestamp(value, _DIGITS[kind], zoned=zoned)
    readers: Mapping[str, tuple[str, Callable[[Any], Any]]] = {
        "BOOLEAN": ("true or false", lambda value: value if isinstance(value, bool) else None),
        "FLOAT": ("numbers", lambda value: struct.unpack("<f", struct.pack("<f", _real(value)))[0]),
        "DOUBLE": ("numbers", _real),
        "DATE": ("dates such as DATE '2020-01-31'", _date),
        "UUID": ("UUIDs", lambda value: str(uuid.UUID(value))),
    }
    return readers.get(kind, ("texts", lambda value: value if isinstance(value, str) else None))


def _number(value: Any) -> int | float | decimal.Decimal:
    if isinstance(value, bool) or not isinstance(value, (int, float, decimal.Decimal)):
        raise TypeError
    return value


def _integer(value: Any, least: int, above: int) -> int | None:
    number = _number(value)
    return int(number) if number == number // 1 and least <= number < above else None


def _real(value: Any) -> float:
    number = float(_number(value))
    if math.isnan(number) or (math.isinf(number) and isinstance(value, (int, decimal.Decimal))):
        raise ValueError
    return number


def _decimal(value: Any, whole: int, places: int) -> decimal.Decimal | None:
    number = decimal.Decimal(_number(value))
    with decimal.localcontext(decimal.Context(prec=100, traps=[decimal.InvalidOperation, decimal.Inexact])):
        exact = number.quantize(decimal.Decimal(1).scaleb(-places)) + 0
    return exact if abs(exact) < decimal.Decimal(10) ** whole else None


def _date(value: Any) -> datetime.date | None:
    text = value if isinstance(value, str) else ""
    return datetime.date.fromisoformat(text) if re.fullmatch(r"\d{4}-\d\d-\d\d", text) else None


def _timestamp(value: Any, digits: int, *, zoned: bool) -> Any:
    match = _TIMESTAMP.fullmatch(value) if isinstance(value, str) else None
    if match is None or len((match[1] or "").rstrip("0")) > digits or (match[2] is not None) != zoned:
        return None
    moment = pd.Timestamp(value)
    return moment.tz_convert("UTC") if zoned else moment
