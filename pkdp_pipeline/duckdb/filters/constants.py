"""Constants as the columns they are compared with hold them: exact, in range, and in one spelling."""

from __future__ import annotations

import datetime
import re
import struct
import uuid
from dataclasses import dataclass
from fractions import Fraction
from typing import NoReturn

from pkdp_pipeline.duckdb.filters.tree import Constant, Value
from pkdp_pipeline.duckdb.tables import is_enum, type_name
from pkdp_pipeline.errors import ArgumentError

__all__ = ["Grid", "grid", "grid_value", "is_time", "on_grid", "other_value"]

_WHOLE = {
    "TINYINT": (-(2**7), 2**7 - 1),
    "SMALLINT": (-(2**15), 2**15 - 1),
    "INTEGER": (-(2**31), 2**31 - 1),
    "BIGINT": (-(2**63), 2**63 - 1),
    "HUGEINT": (-(2**127), 2**127 - 1),
    "UTINYINT": (0, 2**8 - 1),
    "USMALLINT": (0, 2**16 - 1),
    "UINTEGER": (0, 2**32 - 1),
    "UBIGINT": (0, 2**64 - 1),
    "UHUGEINT": (0, 2**128 - 1),
}
_DECIMAL = re.compile(r"DECIMAL\((\d+), ?(\d+)\)")
_SECOND = 10**9
_DAY = 86_400 * _SECOND
#: Nanoseconds between the values that a column of dates or times can hold.
_TIMES = {
    "DATE": _DAY,
    "TIMESTAMP_S": _SECOND,
    "TIMESTAMP_MS": 10**6,
    "TIMESTAMP": 10**3,
    "TIMESTAMP WITH TIME ZONE": 10**3,
    "TIMESTAMP_NS": 1,
}
_INSTANT = "TIMESTAMP WITH TIME ZONE"
_WRITTEN = re.compile(
    r"(?P<date>\d{4}-\d\d-\d\d)"
    r"(?P<time>[ T](?P<hour>\d\d):(?P<minute>\d\d)(?::(?P<second>\d\d)(?:\.(?P<fraction>\d{1,9}))?)?)?"
    r"(?P<zone>Z|(?P<sign>[+-])(?P<hours>\d\d)(?::?(?P<minutes>\d\d))?)?",
    re.ASCII,
)
_EPOCH = datetime.date(1970, 1, 1).toordinal()
#: Up to here, a decimal that is compared as a double equals no other.
_LARGEST_EXACT = 10**15


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """The values a column can hold, where they are equally spaced: multiples of `step`, in nanoseconds for times."""

    step: Fraction
    low: Fraction | None = None
    high: Fraction | None = None


def is_time(kind: str) -> bool:
    """Return whether a column of this SQL type holds dates or times that a filter can compare."""
    return kind in _TIMES


def grid(kind: str) -> Grid | None:
    """Return the values that a column of this SQL type can hold, or None where they are not equally spaced."""
    if kind in _WHOLE:
        low, high = _WHOLE[kind]
        return Grid(step=Fraction(1), low=Fraction(low), high=Fraction(high))
    decimals = _DECIMAL.fullmatch(kind)
    if decimals:
        step = Fraction(1, 10 ** int(decimals[2]))
        high_value = (10 ** int(decimals[1]) - 1) * step
        return Grid(step=step, low=-high_value, high=high_value)
    return Grid(step=Fraction(_TIMES[kind])) if kind in _TIMES else None


def grid_value(column: str, kind: str, constant: Constant) -> Fraction:
    """Return the number a constant is on the grid of a column of this SQL type; it may lie between two values.

    Raises
    ------
    ArgumentError
        If the constant is of another kind than the column, or is no date where one is needed.
    """
    if kind in _TIMES:
        return Fraction(_nanoseconds(column, kind, constant))
    if constant.kind != "number" or not isinstance(constant.value, Fraction):
        _mismatch(column, kind, constant)
    return constant.value


def on_grid(column: str, kind: str, exact: Fraction) -> Value:
    """Return the value of a column that is `exact` on its grid."""
    if kind in _TIMES:
        return Value(order=exact, text=repr(_time_text(kind, int(exact))))
    if exact.denominator == 1:
        return Value(order=exact, text=str(exact.numerator))
    if abs(exact / (grid(kind) or Grid(step=Fraction(1))).step) > _LARGEST_EXACT:
        raise ArgumentError(
            f"filter compares column {column!r} with a fraction of more than 15 digits, which cannot be compared "
            "exactly; write fewer digits or a whole number."
        )
    return Value(order=exact, text=repr(float(exact)))


def other_value(column: str, kind: str, constant: Constant) -> Value:
    """Return the value that a constant is in a column whose values have no grid: text, a double, a boolean.

    Raises
    ------
    ArgumentError
        If the constant is of another kind than the column, or the column's values cannot be compared with any.
    """
    value = constant.value
    if kind in ("FLOAT", "DOUBLE"):
        if constant.kind != "number" or not isinstance(value, Fraction):
            _mismatch(column, kind, constant)
        return _floating(column, kind, value)
    if kind == "BOOLEAN":
        if not isinstance(value, bool):
            _mismatch(column, kind, constant)
        return Value(order=value, text=str(value))
    if kind == "VARCHAR" or is_enum(kind):
        if constant.kind != "text" or not isinstance(value, str):
            _mismatch(column, kind, constant)
        return Value(order=value, text=_quoted(value))
    if kind == "UUID":
        if constant.kind != "text" or not isinstance(value, str):
            _mismatch(column, kind, constant)
        return _uuid(column, value)
    raise ArgumentError(
        f"filter compares column {column!r}, which has type {type_name(kind)}: such columns have only "
        "IS NULL and IS NOT NULL."
    )


def _mismatch(column: str, kind: str, constant: Constant) -> NoReturn:
    wanted = "a number, without quotes"
    if kind == "BOOLEAN":
        wanted = "TRUE or FALSE"
    elif kind in ("VARCHAR", "UUID") or is_enum(kind):
        wanted = "a text, in single quotes"
    elif kind in _TIMES:
        wanted = "a date, such as DATE '2024-01-31'" if kind == "DATE" else "a time, such as '2024-01-31 12:00:00'"
        wanted += " or, with its offset, '2024-01-31 12:00:00+00:00'" if kind == _INSTANT else ""
    raise ArgumentError(
        f"filter compares column {column!r}, which has type {type_name(kind)}, with a {constant.kind}: write {wanted}."
    )


def _floating(column: str, kind: str, exact: Fraction) -> Value:
    """Return the nearest value that the column can hold."""
    try:
        number = float(exact)
        if kind == "FLOAT":
            (number,) = struct.unpack("<f", struct.pack("<f", number))
    except OverflowError:
        raise ArgumentError(
            f"filter compares column {column!r} with a number beyond the range of {kind}; leave the comparison out, "
            "or ask for IS NOT NULL."
        ) from None
    number += 0.0
    text = str(int(number)) if number.is_integer() and abs(number) < 2**53 else repr(number)
    return Value(order=number, text=text)


def _quoted(text: str) -> str:
    """Return text as query strings spell it: backticks and @ would be read as something else, even within quotes."""
    return repr(text).replace("`", "\\x60").replace("@", "\\x40")


def _uuid(column: str, text: str) -> Value:
    try:
        spelled = str(uuid.UUID(text))
    except ValueError:
        raise ArgumentError(f"filter compares column {column!r}, a UUID, with a text that is none.") from None
    return Value(order=spelled, text=repr(spelled))


def _nanoseconds(column: str, kind: str, constant: Constant) -> int:
    """Return the nanoseconds since 1970 of a date or time, in UTC for columns with a time zone."""
    text = constant.value
    if constant.kind in ("number", "boolean") or not isinstance(text, str):
        _mismatch(column, kind, constant)
    # Without an offset, an instant would depend on the time zone of whoever asks.
    zoned = kind == _INSTANT
    if constant.kind == ("timestamp" if zoned else "instant") or (zoned and constant.kind == "date"):
        _mismatch(column, kind, constant)
    found = _WRITTEN.fullmatch(text)
    whole_days = constant.kind == "date" or (kind == "DATE" and constant.kind == "text")
    if found is None or bool(found["zone"]) != zoned or (found["time"] and whole_days) or (zoned and not found["time"]):
        _unreadable(column, zoned=zoned, whole_days=whole_days)
    hour, minute, second, hours, minutes = (
        int(found[part] or 0) for part in ("hour", "minute", "second", "hours", "minutes")
    )
    try:
        days = datetime.date.fromisoformat(found["date"]).toordinal() - _EPOCH
        datetime.time(hour, minute, second)
        datetime.time(hours, minutes)
    except ValueError:
        _unreadable(column, zoned=zoned, whole_days=whole_days)
    seconds = 3_600 * hour + 60 * minute + second
    seconds += (1 if found["sign"] == "-" else -1) * (3_600 * hours + 60 * minutes)
    nanoseconds = days * _DAY + seconds * _SECOND + int((found["fraction"] or "").ljust(9, "0"))
    first, last = (1678, 2261) if kind == "TIMESTAMP_NS" else (2, 9998) if zoned else (1, 9999)
    if not first <= int(found["date"][:4]) <= last:
        raise ArgumentError(f"filter compares column {column!r} with a year that is not within {first} to {last}.")
    return nanoseconds


def _unreadable(column: str, *, zoned: bool, whole_days: bool) -> NoReturn:
    form = "'2024-01-31'" if whole_days else "'2024-01-31' or '2024-01-31 12:00:00'"
    if zoned:
        form = "'2024-01-31 12:00:00+00:00', with its offset from UTC"
    raise ArgumentError(f"filter compares column {column!r} with a text that is no such date: write {form}.")


def _time_text(kind: str, nanoseconds: int) -> str:
    days, rest = divmod(nanoseconds, _DAY)
    text = datetime.date.fromordinal(days + _EPOCH).isoformat()
    seconds, fraction = divmod(rest, _SECOND)
    if rest or kind == _INSTANT:
        text += f" {seconds // 3_600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    if fraction:
        text += f".{fraction:09}".rstrip("0")
    return text + ("+00:00" if kind == _INSTANT else "")
