"""Constants as columns hold them, exact and in range, and which columns compare with which; once for every engine."""

from __future__ import annotations

import datetime
import re
import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from typing import NoReturn, cast

from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.model.columns import check_columns
from pkdp_pipeline.model.predicate import (
    Column,
    Condition,
    Conjunction,
    Constant,
    Disjunction,
    Operator,
    Predicate,
    constant_family,
)

#: Nanoseconds of a second and of a day.
SECOND, DAY = 10**9, 86_400 * 10**9
#: The operators of order.
ORDERS = ("<", "<=", ">", ">=")
_FAMILIES = ("text", "number", "boolean", "time", "instant")
_EPOCH = datetime.date(1970, 1, 1).toordinal()
_WRITTEN = re.compile(
    r"(?P<date>\d{4}-\d\d-\d\d)"
    r"(?P<time>[ T](?P<hour>\d\d):(?P<minute>\d\d)(?::(?P<second>\d\d)(?:\.(?P<fraction>\d{1,9}))?)?)?"
    r"(?P<zone>Z|(?P<sign>[+-])(?P<hours>\d\d)(?::?(?P<minutes>\d\d))?)?",
    re.ASCII,
)
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
#: A number; one with a 0 before other digits is a code, which letters order.
_NUMBER = re.compile(r"\s*[-+]?(?!0\d)(\d+\.?\d*|\.\d+)(e[-+]?\d+)?\s*$", re.ASCII | re.IGNORECASE)
#: Texts that letters do not order, in words, the type to declare, and what converts a column in pandas and in SQL.
_NOT_BY_LETTERS = (
    (_DATE, "before or after a date", "date", "pd.to_datetime", "DATE"),
    (_NUMBER, "above or below a number", "number", "pd.to_numeric", "BIGINT"),
)


@dataclass(frozen=True, slots=True)
class Values:
    """The values that a column can hold, as far as comparisons look at them.

    Parameters
    ----------
    family : str
        "text", "number", "boolean", "time" (dates and timestamps), "instant" (points in time), "empty" (no row has a
        value), or the name of a type that is compared with nothing but its own kind.
    step : Fraction, optional
        The values are multiples of it: of times in nanoseconds since 1970, of instants in UTC.
    low, high : Fraction, optional
        The least and the greatest.
    scale : int, optional
        Of decimals: how many digits they have after the point.
    bits : int, optional
        Of a floating-point number: 16, 32 or 64.
    """

    family: str
    step: Fraction | None = None
    low: Fraction | None = None
    high: Fraction | None = None
    scale: int | None = None
    bits: int | None = None

    @classmethod
    def whole(cls, bits: int, *, signed: bool) -> Values:
        """Return those of whole numbers of so many bits."""
        low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
        return cls("number", Fraction(1), Fraction(low), Fraction(high))

    @classmethod
    def decimals(cls, precision: int, scale: int) -> Values:
        """Return those of decimals."""
        step = Fraction(1, 10**scale)
        largest = (10**precision - 1) * step
        return cls("number", step, -largest, largest, scale=scale)

    @classmethod
    def times(cls, family: str, step: int) -> Values:
        """Return those of dates or times that are so many nanoseconds apart; single ones fit into 64 bits."""
        ends = (Fraction(1 - 2**63), Fraction(2**63 - 1)) if step == 1 else (None, None)
        return cls(family, Fraction(step), *ends)

    def holds(self, exact: Fraction) -> bool:
        """Return whether a column of equally spaced values can hold a number."""
        outside = (self.low is not None and exact < self.low) or (self.high is not None and exact > self.high)
        return not outside and not exact % (self.step or 1)

    def beside(self, sign: Operator, exact: Fraction) -> tuple[Operator, Fraction] | bool:
        """Return the comparison with a value on the grid that all values answer as they answer this one.

        It is true or false where they all answer alike.
        """
        below = sign in ("<", "<=")
        if self.high is not None and (exact > self.high or (exact == self.high and sign in ("<=", ">"))):
            return below
        if self.low is not None and (exact < self.low or (exact == self.low and sign in ("<", ">="))):
            return not below
        if rest := exact % (self.step or 1):
            # Between two values of the column: those up to the smaller one are below it, all others above.
            return "<=" if below else ">", exact - rest
        return sign, exact

    def nearest(self, exact: Fraction) -> float:
        """Return the floating-point number of these that is nearest; raises `OverflowError` where none is."""
        number = float(exact)
        if self.bits in (16, 32):
            form = "<f" if self.bits == 32 else "<e"
            (number,) = struct.unpack(form, struct.pack(form, number))
        return number


def exact_number(constant: float | Decimal) -> Fraction:
    """Return the number that a constant is written as."""
    return Fraction(repr(constant)) if isinstance(constant, float) else Fraction(constant)


@dataclass(frozen=True, slots=True)
class Moment:
    """A date or a time as it is written: in nanoseconds since 1970, in UTC where it has a zone."""

    nanoseconds: int
    year: int
    timed: bool
    zoned: bool

    @classmethod
    def of(cls, text: str) -> Moment | None:
        """Read a text like 2024-01-31 or 2024-01-31 12:00:00.5+01:00; None where it is none."""
        written = _WRITTEN.fullmatch(text)
        if written is None or (written["zone"] and not written["time"]):
            return None
        hour, minute, second, hours, minutes = (
            int(written[part] or 0) for part in ("hour", "minute", "second", "hours", "minutes")
        )
        try:
            day = datetime.date.fromisoformat(written["date"])
            datetime.time(hour, minute, second)
            datetime.time(hours, minutes)
        except ValueError:
            return None
        seconds = 3_600 * hour + 60 * minute + second
        seconds += (1 if written["sign"] == "-" else -1) * (3_600 * hours + 60 * minutes)
        fraction = int((written["fraction"] or "").ljust(9, "0"))
        nanoseconds = (day.toordinal() - _EPOCH) * DAY + seconds * SECOND + fraction
        return cls(nanoseconds, day.year, bool(written["time"]), bool(written["zone"]))


def written_time(nanoseconds: int, *, zoned: bool = False) -> str:
    """Return the text of a time, with the offset of UTC where it has a zone; of a whole day without one, the date."""
    days, rest = divmod(nanoseconds, DAY)
    text = datetime.date.fromordinal(days + _EPOCH).isoformat()
    seconds, fraction = divmod(rest, SECOND)
    if rest or zoned:
        text += f" {seconds // 3_600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    if fraction:
        text += f".{fraction:09}".rstrip("0")
    return text + ("+00:00" if zoned else "")


#: What a part of a date is.
_PART = Values.whole(64, signed=True)


def settled(predicate: Predicate, columns: Mapping[str, Values]) -> Predicate:
    """Return a predicate that is true of the same rows, with constants as the columns hold them.

    They are whole numbers, floats of the column's width, decimals, texts, booleans, and for dates and times nanoseconds
    since 1970. A comparison that all values, or none, satisfy becomes ``notna`` or ``in`` without constants. `columns`:
    the frame's. Raises `ArgumentError` for a column that is not there, and for a comparison that would convert a whole
    column or has no answer.
    """
    if isinstance(predicate, Condition):
        check_columns("where", sorted(predicate.columns), list(columns))
        return _settled(predicate, columns)
    kind = Conjunction if isinstance(predicate, Conjunction) else Disjunction
    return kind(tuple(settled(part, columns) for part in predicate.parts))


def ordered_columns(predicate: Predicate) -> frozenset[str]:
    """Return the columns that a predicate asks to be before or after something."""
    return frozenset().union(*(condition.columns for condition in predicate.conditions if condition.operator in ORDERS))


def _settled(condition: Condition, columns: Mapping[str, Values]) -> Condition:
    name, values = condition.column, columns[condition.column]
    never = replace(condition, operator="in", operand=(), part=None)
    if isinstance(condition.operand, Column):
        other = columns[condition.operand.name]
        if "empty" in (values.family, other.family):
            return never
        _check_alike(condition, condition.operand.name, values, other)
        return condition
    if values.family == "empty":
        return never if condition.operator != "isna" else replace(condition, part=None)
    values = _checked(condition, values)
    if condition.operator in ("isna", "like"):
        return condition
    if condition.operator in ORDERS and values.step is not None:
        compared = values.beside(condition.operator, _exact(name, values, condition.constants[0]))
        if compared is False:
            return never
        if compared is True:
            return replace(condition, operator="isna", operand=(), negated=not condition.negated)
        return replace(condition, operator=compared[0], operand=_on_grid(values, compared[1]))
    constants = list(_representable(name, values, condition.constants))
    if condition.operator == "in" or not constants:
        return replace(condition, operator="in", operand=tuple(constants))
    return replace(condition, operand=constants[0])


def _representable(name: str, values: Values, constants: Iterable[Constant]) -> Iterable[Constant]:
    """Return those of some constants that a column can hold, as it holds them."""
    for constant in constants:
        if values.bits is not None:
            yield _real(name, values, constant)
        elif values.step is None:
            yield constant
        elif values.holds(exact := _exact(name, values, constant)):
            yield _on_grid(values, exact)


def _exact(name: str, values: Values, constant: Constant) -> Fraction:
    return Fraction(_nanoseconds(name, values, constant)) if isinstance(constant, str) else exact_number(constant)


def _on_grid(values: Values, exact: Fraction) -> Constant:
    return int(exact) if values.scale is None else Decimal(f"{int(exact * 10**values.scale)}e-{values.scale}")


def _real(name: str, values: Values, constant: Constant) -> float:
    try:
        return values.nearest(exact_number(cast("float | Decimal", constant)))
    except OverflowError:
        raise ArgumentError(
            f"where compares column {name!r} with a number beyond the range of its {values.bits} bits; leave the "
            "comparison out, or ask for notna()."
        ) from None


def _nanoseconds(name: str, values: Values, text: str) -> int:
    moment, date = Moment.of(text), values.step == DAY
    if values.family == "instant":
        if moment is None or not moment.zoned:
            # Without an offset, each session's time zone makes another instant of a text.
            raise ArgumentError(
                f"where compares column {name!r}, which holds instants, with a text that is another instant in every "
                "time zone, or none; write it with its offset from UTC, as '2013-01-02 03:04:05+00:00'."
            )
    elif moment is None or moment.zoned or (date and moment.timed):
        raise ArgumentError(
            f"where compares column {name!r}, which holds {'dates' if date else 'times without a zone'}, with a text "
            f"that it cannot equal; write the constant as {'2013-01-02' if date else '2013-01-02 03:04:05'!r}."
        )
    if moment.year in (1, 9999) and moment.zoned:  # in UTC it may lie in a year that has no name
        raise ArgumentError(f"where compares column {name!r} with a year that is not within 2 to 9998.")
    return moment.nanoseconds


def _checked(condition: Condition, values: Values) -> Values:
    """Return what is compared, the column or a part of its dates; refuse constants of another family."""
    name, family = condition.column, values.family
    if condition.operator == "like" and family != "text":
        raise ArgumentError(f"where compares column {name!r}, which has {family}, with a pattern: only text has one.")
    if condition.part is not None:
        if family != "time":
            raise ArgumentError(
                f"where asks for the {condition.part} of column {name!r}, which has {family}: "
                + (
                    "in every time zone it may be another one. Make a column of local times of it."
                    if family == "instant"
                    else "only dates have one. Cast it first, as in pd.to_datetime or CAST(… AS DATE)."
                )
            )
        values, family = _PART, "number"
    given = {constant_family(constant) for constant in condition.constants}
    given = {family if kind == "text" and family in ("time", "instant") else kind for kind in given}
    if condition.operand is True and given != {family}:
        raise ArgumentError(f"where must be boolean; column {name!r} has {family}.")
    if given and family not in _FAMILIES:
        raise ArgumentError(
            f"where compares column {name!r}, which has {family}, with a constant: no constant is of that type. Add a "
            "boolean column to the rows instead."
        )
    # Text is ordered by its letters: 31.01.2026 comes after 2026-01-02, and 7 after 65.
    by_letters = condition.constants if family == "text" and condition.operator in ORDERS else ()
    for pattern, order, kind, convert, sql in _NOT_BY_LETTERS:
        if any(pattern.match(str(constant)) for constant in by_letters):
            raise ArgumentError(
                f"where asks whether column {name!r} is {order}, and it holds text, which is ordered by its letters. "
                f'Of CSV files declare types = {{ {name} = "{kind}" }} in source; else cast it first, as in '
                f"{convert}(frame[{name!r}]), or CAST({name} AS {sql}) in a query."
            )
    if given - {family}:
        _refuse_families(given | {family}, name)
    _check_order(condition, family)
    return values


def _check_alike(condition: Condition, other_name: str, values: Values, other: Values) -> None:
    """Refuse to compare columns of which one would have to be converted, and not without loss."""
    if values.family != other.family:
        _refuse_families({values.family, other.family}, condition.column, other_name)
    _check_order(condition, values.family)
    both = (values, other)
    decimals = (
        values.family == "number"
        and len({values.scale is None for values in both}) > 1
        and any(values.scale for values in both)
    )
    # Nanoseconds do not fit into what other times span, nor others into what nanoseconds do.
    nanoseconds = values.family in ("time", "instant") and len({column_values.step == 1 for column_values in both}) > 1
    if decimals or nanoseconds:
        raise ArgumentError(
            f"where compares column {condition.column!r} with column {other_name!r}, of which one alone "
            f"holds {'decimals' if decimals else 'nanoseconds'}: cast one of them to the other's type."
        )


def _check_order(condition: Condition, family: str) -> None:
    if family == "boolean" and condition.operator in ORDERS:
        raise ArgumentError(
            f"where orders column {condition.column!r}, which is true or false: compare it with == instead."
        )


def _refuse_families(families: Iterable[str], *columns: str) -> NoReturn:
    named = " and ".join(map(repr, columns))
    fix = "cast one to the other's type" if len(columns) > 1 else "write the constant as the column's own type"
    raise ArgumentError(
        f"where compares {' with '.join(sorted(families))} in column{'s' * (len(columns) > 1)} {named}; {fix}."
    )
