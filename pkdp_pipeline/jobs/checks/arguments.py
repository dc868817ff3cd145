"""Arguments of expectations: what each may be, checked without data and without Great Expectations."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from datetime import date, datetime, time
from typing import Any

__all__ = [
    "Reader",
    "bound",
    "column",
    "columns",
    "columns_of_condition",
    "condition",
    "flag",
    "number",
    "one_of",
    "pairs",
    "pattern",
    "patterns",
    "quantiles",
    "share",
    "text",
    "values",
    "whole",
]

Reader = Callable[[Any], Any]
"""Returns an argument as Great Expectations wants it, or raises ValueError that says what it must be."""


def column(value: Any) -> str:
    """Read a column's name."""
    if isinstance(value, str) and value:
        return value
    raise ValueError("must be a column name.")


def columns(value: Any) -> list[str]:
    """Read names of columns."""
    if isinstance(value, list) and len(value) > 1 and all(isinstance(name, str) and name for name in value):
        if len(set(value)) == len(value):
            return value
        raise ValueError("names a column twice.")
    raise ValueError("must be a list of at least two column names.")


def number(value: Any) -> int | float:
    """Read a number."""
    if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < math.inf:
        return value
    raise ValueError("must be a number.")


def whole(value: Any) -> int:
    """Read a whole number."""
    if number(value) == int(value) and value >= 0:
        return int(value)
    raise ValueError("must be a whole number of at least 0.")


def share(value: Any) -> int | float:
    """Read a share of rows."""
    if 0 <= number(value) <= 1:
        return number(value)
    raise ValueError("must be a number from 0 to 1.")


def bound(value: Any) -> int | float | datetime:
    """Read a number or a day: the library compares columns of days with datetimes alone."""
    try:
        moment = datetime.fromisoformat(value) if isinstance(value, str) else value
        return _moment(moment) if isinstance(moment, date) else number(moment)
    except ValueError:
        raise ValueError("must be a number or a date.") from None


def _moment(value: date) -> datetime:
    return value if isinstance(value, datetime) else datetime.combine(value, time())


def flag(value: Any) -> bool:
    """Read true or false."""
    if isinstance(value, bool):
        return value
    raise ValueError("must be true or false.")


def text(value: Any) -> str:
    """Read text."""
    if isinstance(value, str) and value:
        return value
    raise ValueError("must be text.")


def _scalar(value: Any) -> Any:
    if isinstance(value, date):
        return _moment(value)
    if isinstance(value, str | int | float):
        return value
    raise ValueError("must be a list of texts, numbers, booleans or dates.")


def values(value: Any) -> list[Any]:
    """Read values to compare with."""
    if isinstance(value, list) and value:
        return [_scalar(one) for one in value]
    raise ValueError("must be a list of at least one value.")


def pairs(value: Any) -> list[tuple[Any, Any]]:
    """Read pairs of values."""
    if isinstance(value, list) and value and all(isinstance(pair, list) and len(pair) == 2 for pair in value):
        return [(_scalar(first), _scalar(second)) for first, second in value]
    raise ValueError("must be a list of pairs of values.")


def pattern(value: Any) -> str:
    """Read a regular expression."""
    try:
        re.compile(text(value))
    except (re.error, ValueError, RecursionError, OverflowError):
        raise ValueError("must be a regular expression.") from None
    return text(value)


def patterns(value: Any) -> list[str]:
    """Read regular expressions."""
    if isinstance(value, list) and value:
        return [pattern(one) for one in value]
    raise ValueError("must be a list of regular expressions.")


def quantiles(value: Any) -> dict[str, Any]:
    """Read quantiles and the range of each."""
    if isinstance(value, dict) and set(value) == {"quantiles", "value_ranges"}:
        shares, ranges = value["quantiles"], value["value_ranges"]
        listed = isinstance(shares, list) and isinstance(ranges, list) and 0 < len(shares) == len(ranges)
        if listed and all(isinstance(bounds, list) and len(bounds) == 2 for bounds in ranges):
            read = [[None if end is None else number(end) for end in bounds] for bounds in ranges]
            return {"quantiles": [share(one) for one in shares], "value_ranges": read}
    raise ValueError("must be a table with quantiles = [0.5] and one pair for each in value_ranges = [[1, 9]].")


def one_of(*words: str) -> Reader:
    """Return what reads one of a few words."""

    def read(value: Any) -> Any:
        if value in words:
            return value
        raise ValueError(f"must be {', '.join(map(repr, words[:-1]))} or {words[-1]!r}.")

    return read


def condition(value: Any) -> dict[str, Any]:
    """Read which rows an expectation is about, as Great Expectations 1.x writes conditions."""
    keys, kind = (set(value), value.get("type")) if isinstance(value, dict) else (set(), None)
    if kind in ("and", "or") and keys == {"type", "conditions"}:
        parts = value["conditions"]
        if isinstance(parts, list) and parts:
            return {"type": kind, "conditions": [condition(part) for part in parts]}
    if kind == "nullity" and keys == {"type", "column", "is_null"}:
        return {"type": kind, "column": _named(value["column"]), "is_null": flag(value["is_null"])}
    if kind == "comparison" and keys == {"type", "column", "operator", "parameter"}:
        operator, parameter = value["operator"], value["parameter"]
        if operator in ("IN", "NOT_IN"):
            parameter = [_comparable(one) for one in values(parameter)]
        elif operator in ("==", "!=", "<", "<=", ">", ">="):
            parameter = _comparable(*values([parameter]))
        else:
            raise ValueError("has an operator that is none of ==, !=, <, <=, >, >=, IN and NOT_IN.")
        return {"type": kind, "column": _named(value["column"]), "operator": operator, "parameter": parameter}
    raise ValueError(
        "must be a table, such as { type = 'comparison', column = { name = 'a' }, operator = '>', parameter = 0 }, or "
        "of type 'nullity', 'and' or 'or'; text would be run as code."
    )


def columns_of_condition(read: dict[str, Any]) -> list[str]:
    """Return the columns that a condition names, which `condition` has read."""
    if "conditions" in read:
        return [name for part in read["conditions"] for name in columns_of_condition(part)]
    return [read["column"]["name"]]


def _named(value: Any) -> dict[str, str]:
    if isinstance(value, dict) and set(value) == {"name"}:
        return {"name": column(value["name"])}
    raise ValueError("must name its column as column = { name = 'a' }.")


def _comparable(value: Any) -> Any:
    """Return a value as a condition can hold it: a day is written as text."""
    return value.isoformat() if isinstance(value, datetime) else value
