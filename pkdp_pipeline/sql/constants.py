"""Constants as the columns they are compared with hold them: exact, in range, and in one spelling."""

from __future__ import annotations

import datetime
import decimal
import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NoReturn

import pandas as pd

from pkdp_pipeline.engines.relation_engine import INSTANTS, values_of
from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.model.comparisons import Moment, Values, written_time
from pkdp_pipeline.model.predicate import Condition, Constant, Disjunction, Operator, Predicate, among, conjunction
from pkdp_pipeline.sql.tables import is_enum, type_name

#: Up to here, a decimal that is compared as a double equals no other.
_MAX_EXACT = 10**15


@dataclass(frozen=True, slots=True)
class SqlConstant:
    """A constant as it is written: a number, text, boolean, date, timestamp or instant."""

    kind: str
    value: Fraction | str | bool


def type_of_keys(kind: str) -> str | None:
    """Return the SQL type of the keys of a column: its own; None where its values cannot name cells.

    An ENUM lists values that no published cell may have, so its keys are text. A column without a type has no value.
    """
    if is_enum(kind) or kind == '"NULL"':
        return "VARCHAR"
    plain = ("VARCHAR", "BOOLEAN", "FLOAT", "DOUBLE", "UUID")
    return kind if kind in plain or (values_of(kind).step is not None and "HUGE" not in kind) else None


def key_of(kind: str, literal: SqlConstant) -> Any:
    """Return a constant as the key of a cell, in a column of this type.

    Raises `ArgumentError` if the column cannot hold it, or no cell of an integer column can: keys are below 2^63.
    """
    values = values_of(kind)
    if values.step is None:
        constant = _off_grid("", kind, literal)
        return float(constant) if kind in ("FLOAT", "DOUBLE") else constant
    exact = _exact("", kind, literal)
    if not values.holds(exact) or (_is_whole(values) and exact >= 2**63):
        _mismatch("", kind, literal)
    if values.family != "number":
        text = written_time(int(exact), zoned=kind in INSTANTS)
        if kind == "DATE":
            return datetime.date.fromisoformat(text)
        return pd.Timestamp(text).tz_convert("UTC") if kind in INSTANTS else pd.Timestamp(text)
    if values.scale is None:
        return int(exact)
    return decimal.Decimal(f"{int(exact / values.step)}e-{values.scale}")


def words_of(kind: str) -> str:
    """Return what a constant must be that is compared with a column of this type, in words."""
    if kind == "BOOLEAN":
        return "TRUE or FALSE"
    if kind in ("VARCHAR", "UUID") or is_enum(kind):
        return "a text, in single quotes"
    if kind == "DATE":
        return "a date, such as DATE '2024-01-31'"
    if kind in INSTANTS:
        return "a time with its offset from UTC, such as '2024-01-31 12:00:00+00:00'"
    if values_of(kind).family == "time":
        return "a date or a time, such as '2024-01-31' or '2024-01-31 12:00:00'"
    return "a number that such a column can hold, without quotes"


def compared(column: str, kind: str, sign: Operator, literal: SqlConstant) -> Predicate:
    """Return that a column of this SQL type has a value on one side (<, <=, > or >=) of a constant.

    Raises `ArgumentError` if the constant is of another kind than the column, or the column's values have no order.
    """
    values = values_of(kind)
    if values.step is None:
        constant = _off_grid(column, kind, literal)
        if kind not in ("FLOAT", "DOUBLE", "VARCHAR") and not is_enum(kind):
            raise ArgumentError(
                f"filter orders column {column!r}, which has type {type_name(kind)}: compare it with = or IN instead."
            )
        return Condition(column, sign, constant)
    beside = values.beside(sign, _exact(column, kind, literal))
    if isinstance(beside, bool):
        return Condition(column, "isna", negated=True) if beside else Disjunction(())
    return Condition(column, beside[0], _on_grid(column, kind, beside[1]))


def members(column: str, kind: str, literals: Iterable[SqlConstant], *, negated: bool) -> Predicate:
    """Return that a column of this SQL type has a value that equals one of some constants, or none where `negated`.

    Raises `ArgumentError` if a constant is of another kind than the column, or its values can be compared with none.
    """
    values = values_of(kind)
    constants: list[Constant] = []
    for literal in literals:
        if values.step is None:
            constants.append(_off_grid(column, kind, literal))
        elif values.holds(exact := _exact(column, kind, literal)):
            constants.append(_on_grid(column, kind, exact))
    if kind == "BOOLEAN":
        constants = [value for value in (False, True) if (value in constants) != negated]
        negated = len(constants) > 1
        constants = [] if negated else constants
    if not constants:
        return Condition(column, "isna", negated=True) if negated else Disjunction(())
    condition = among(column, constants, negated=negated)
    return conjunction([condition, Condition(column, "isna", negated=True)]) if negated else condition


def _is_whole(values: Values) -> bool:
    return values.family == "number" and values.scale is None


def _exact(column: str, kind: str, literal: SqlConstant) -> Fraction:
    """Return the number a constant is on the grid of a column; it may lie between two of its values."""
    if values_of(kind).family != "number":
        return Fraction(_nanoseconds(column, kind, literal))
    if literal.kind != "number" or not isinstance(literal.value, Fraction):
        _mismatch(column, kind, literal)
    return literal.value


def _on_grid(column: str, kind: str, exact: Fraction) -> Constant:
    """Return the constant that is `exact` on a column's grid."""
    values = values_of(kind)
    if values.family != "number":
        return written_time(int(exact), zoned=kind in INSTANTS)
    if exact.denominator == 1:
        return exact.numerator
    if abs(exact / (values.step or 1)) > _MAX_EXACT:
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
        number = values_of(kind).nearest(exact)
    except OverflowError:
        raise ArgumentError(
            f"filter compares column {column!r} with a number beyond the range of {kind}; leave the comparison out, "
            "or ask for IS NOT NULL."
        ) from None
    return int(number) if number.is_integer() and abs(number) < 2**53 else number


def _nanoseconds(column: str, kind: str, literal: SqlConstant) -> int:
    """Return the nanoseconds since 1970 of a date or time, in UTC for columns with a time zone."""
    zoned = kind in INSTANTS
    # Without an offset, an instant would depend on the time zone of the one who asks.
    moment = Moment.of(literal.value) if isinstance(literal.value, str) else None
    whole_days = literal.kind == "date" or (kind == "DATE" and literal.kind == "text")
    if (
        moment is None
        or literal.kind == ("timestamp" if zoned else "instant")
        or moment.zoned != zoned
        or (moment.timed and whole_days)
    ):
        _mismatch(column, kind, literal)
    first, last = (2, 9998) if zoned else (1, 9999)
    if not first <= moment.year <= last:
        raise ArgumentError(f"filter compares column {column!r} with a year that is not within {first} to {last}.")
    return moment.nanoseconds
