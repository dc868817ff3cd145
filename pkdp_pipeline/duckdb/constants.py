"""Constants as the columns they are compared with hold them: exact, in range, and in one spelling."""

from __future__ import annotations

import datetime
import decimal
import re
import struct
import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NoReturn

import pandas as pd

from pkdp_pipeline.duckdb.tables import is_enum, type_name
from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.model.predicate import Condition, Constant, Disjunction, Operator, Predicate, among, conjunction

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


@dataclass(frozen=True, slots=True)
class SqlConstant:
    """A constant as it is written: a number, text, boolean, date, timestamp or instant."""

    kind: str
    value: Fraction | str | bool


@dataclass(frozen=True, slots=True)
class _Grid:
    """The values a column can hold, where they are equally spaced: multiples of `step`, in nanoseconds for times."""

    step: Fraction
    low: Fraction | None = None
    high: Fraction | None = None

    def holds(self, exact: Fraction) -> bool:
        outside = (self.low is not None and exact < self.low) or (self.high is not None and exact > self.high)
        return not outside and not exact % self.step


def type_of_keys(kind: str) -> str | None:
    """Return the SQL type of the keys of a column: its own; None where its values cannot name cells.

    An ENUM lists values that no published cell may have, so its keys are text. A column without a type has no value.
    """
    if is_enum(kind) or kind == '"NULL"':
        return "VARCHAR"
    plain = ("VARCHAR", "BOOLEAN", "FLOAT", "DOUBLE", "UUID")
    return kind if kind in plain or (_grid(kind) is not None and "HUGE" not in kind) else None


def key_of(kind: str, literal: SqlConstant) -> Any:
    """Return a constant as the key of a cell, in a column of this type.

    Raises `ArgumentError` if the column cannot hold it, or no cell of an integer column can: keys are below 2^63.
    """
    grid = _grid(kind)
    if grid is None:
        constant = _off_grid("", kind, literal)
        return float(constant) if kind in ("FLOAT", "DOUBLE") else constant
    exact = _exact("", kind, literal)
    if not grid.holds(exact) or (kind in _WHOLE and exact >= 2**63):
        _mismatch("", kind, literal)
    if kind in _TIMES:
        text = _time_text(kind, int(exact))
        if kind == "DATE":
            return datetime.date.fromisoformat(text)
        return pd.Timestamp(text).tz_convert("UTC") if kind == _INSTANT else pd.Timestamp(text)
    if kind in _WHOLE:
        return int(exact)
    steps, places = int(exact / grid.step), len(str(grid.step.denominator)) - 1
    return decimal.Decimal(f"{steps}e-{places}")


def words_of(kind: str) -> str:
    """Return what a constant must be that is compared with a column of this type, in words."""
    if kind == "BOOLEAN":
        return "TRUE or FALSE"
    if kind in ("VARCHAR", "UUID") or is_enum(kind):
        return "a text, in single quotes"
    if kind == "DATE":
        return "a date, such as DATE '2024-01-31'"
    if kind == _INSTANT:
        return "a time with its offset from UTC, such as '2024-01-31 12:00:00+00:00'"
    if kind in _TIMES:
        return "a date or a time, such as '2024-01-31' or '2024-01-31 12:00:00'"
    return "a number that such a column can hold, without quotes"


def compared(column: str, kind: str, sign: Operator, literal: SqlConstant) -> Predicate:
    """Return that a column of this SQL type has a value on one side (<, <=, > or >=) of a constant.

    Raises `ArgumentError` if the constant is of another kind than the column, or the column's values have no order.
    """
    grid = _grid(kind)
    if grid is None:
        constant = _off_grid(column, kind, literal)
        if kind not in ("FLOAT", "DOUBLE", "VARCHAR"):
            raise ArgumentError(
                f"filter orders column {column!r}, which has type {type_name(kind)}: compare it with = or IN instead."
            )
        return Condition(column, sign, constant)
    exact = _exact(column, kind, literal)
    below = sign in ("<", "<=")
    every, none = Condition(column, "isna", negated=True), Disjunction(())
    # Every value of the column, or none, may lie on that side.
    if grid.high is not None and (exact > grid.high or (exact == grid.high and sign in ("<=", ">"))):
        return every if below else none
    if grid.low is not None and (exact < grid.low or (exact == grid.low and sign in ("<", ">="))):
        return none if below else every
    if rest := exact % grid.step:
        # Between two values of the column: those up to the smaller one are below it, all others above.
        exact, sign = exact - rest, "<=" if below else ">"
    return Condition(column, sign, _on_grid(column, kind, exact))


def members(column: str, kind: str, literals: Iterable[SqlConstant], *, negated: bool) -> Predicate:
    """Return that a column of this SQL type has a value that equals one of some constants, or none where `negated`.

    Raises `ArgumentError` if a constant is of another kind than the column, or its values can be compared with none.
    """
    grid = _grid(kind)
    constants: list[Constant] = []
    for literal in literals:
        if grid is None:
            constants.append(_off_grid(column, kind, literal))
        elif grid.holds(exact := _exact(column, kind, literal)):
            constants.append(_on_grid(column, kind, exact))
    if kind == "BOOLEAN":
        constants = [value for value in (False, True) if (value in constants) != negated]
        negated = len(constants) > 1
        constants = [] if negated else constants
    if not constants:
        return Condition(column, "isna", negated=True) if negated else Disjunction(())
    found = among(column, constants, negated=negated)
    return conjunction([found, Condition(column, "isna", negated=True)]) if negated else found


def _grid(kind: str) -> _Grid | None:
    """Return the values that a column of this SQL type can hold, or None where they are not equally spaced."""
    if kind in _WHOLE:
        low, high = _WHOLE[kind]
        return _Grid(Fraction(1), Fraction(low), Fraction(high))
    decimals = _DECIMAL.fullmatch(kind)
    if decimals:
        step = Fraction(1, 10 ** int(decimals[2]))
        largest = (10 ** int(decimals[1]) - 1) * step
        return _Grid(step, -largest, largest)
    return _Grid(Fraction(_TIMES[kind])) if kind in _TIMES else None


def _exact(column: str, kind: str, literal: SqlConstant) -> Fraction:
    """Return the number a constant is on the grid of a column; it may lie between two of its values."""
    if kind in _TIMES:
        return Fraction(_nanoseconds(column, kind, literal))
    if literal.kind != "number" or not isinstance(literal.value, Fraction):
        _mismatch(column, kind, literal)
    return literal.value


def _on_grid(column: str, kind: str, exact: Fraction) -> Constant:
    """Return the constant that is `exact` on a column's grid."""
    if kind in _TIMES:
        return _time_text(kind, int(exact))
    if exact.denominator == 1:
        return exact.numerator
    if abs(exact / (_grid(kind) or _Grid(Fraction(1))).step) > _LARGEST_EXACT:
        raise ArgumentError(
            f"filter compares column {column!r} with a fraction of more than 15 digits, which cannot be compared "
            "exactly; write fewer digits or a whole number."
        )
    return float(exact)


def _off_grid(column: str, kind: str, literal: SqlConstant) -> Constant:
    """Return the constant of a column whose values have no grid: text, a double, a boolean."""
    value = literal.value
    if kind in ("FLOAT", "DOUBLE"):
        if literal.kind != "number" or not isinstance(value, Fraction):
            _mismatch(column, kind, literal)
        return _floating(column, kind, value)
    if kind == "BOOLEAN":
        if not isinstance(value, bool):
            _mismatch(column, kind, literal)
        return value
    if kind in ("VARCHAR", "UUID") or is_enum(kind):
        try:
            if literal.kind == "text" and isinstance(value, str):
                return str(uuid.UUID(value)) if kind == "UUID" else value
        except ValueError:
            raise ArgumentError(f"filter compares column {column!r}, a UUID, with a text that is not one.") from None
        _mismatch(column, kind, literal)
    raise ArgumentError(
        f"filter compares column {column!r}, which has type {type_name(kind)}: such columns have only "
        "IS NULL and IS NOT NULL."
    )


def _mismatch(column: str, kind: str, literal: SqlConstant) -> NoReturn:
    raise ArgumentError(
        f"filter compares column {column!r}, which has type {type_name(kind)}, with a {literal.kind}: write "
        f"{words_of(kind)}."
    )


def _floating(column: str, kind: str, exact: Fraction) -> Constant:
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
    return int(number) if number.is_integer() and abs(number) < 2**53 else number


def _nanoseconds(column: str, kind: str, literal: SqlConstant) -> int:
    """Return the nanoseconds since 1970 of a date or time, in UTC for columns with a time zone."""
    text, zoned = literal.value, kind == _INSTANT
    # Without an offset, an instant would depend on the time zone of the one who asks.
    found = _WRITTEN.fullmatch(text) if isinstance(text, str) else None
    whole_days = literal.kind == "date" or (kind == "DATE" and literal.kind == "text")
    if (
        found is None
        or literal.kind == ("timestamp" if zoned else "instant")
        or bool(found["zone"]) != zoned
        or (found["time"] and whole_days)
        or (zoned and not found["time"])
    ):
        _mismatch(column, kind, literal)
    hour, minute, second, hours, minutes = (
        int(found[part] or 0) for part in ("hour", "minute", "second", "hours", "minutes")
    )
    try:
        days = datetime.date.fromisoformat(found["date"]).toordinal() - _EPOCH
        datetime.time(hour, minute, second)
        datetime.time(hours, minutes)
    except ValueError:
        _mismatch(column, kind, literal)
    seconds = 3_600 * hour + 60 * minute + second
    seconds += (1 if found["sign"] == "-" else -1) * (3_600 * hours + 60 * minutes)
    nanoseconds = days * _DAY + seconds * _SECOND + int((found["fraction"] or "").ljust(9, "0"))
    first, last = (1678, 2261) if kind == "TIMESTAMP_NS" else (2, 9998) if zoned else (1, 9999)
    if not first <= int(found["date"][:4]) <= last:
        raise ArgumentError(f"filter compares column {column!r} with a year that is not within {first} to {last}.")
    return nanoseconds


def _time_text(kind: str, nanoseconds: int) -> str:
    days, rest = divmod(nanoseconds, _DAY)
    text = datetime.date.fromordinal(days + _EPOCH).isoformat()
    seconds, fraction = divmod(rest, _SECOND)
    if rest or kind == _INSTANT:
        text += f" {seconds // 3_600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    if fraction:
        text += f".{fraction:09}".rstrip("0")
    return text + ("+00:00" if kind == _INSTANT else "")
