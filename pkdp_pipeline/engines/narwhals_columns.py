"""A Narwhals frame's columns: what may name cells or units, how they are read and compared, their public dtype."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Collection, Mapping
from datetime import date, datetime, timedelta
from types import MappingProxyType
from typing import Any, cast

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd

from pkdp_pipeline.engines.memory import DIGITS
from pkdp_pipeline.engines.statements import LARGEST, not_whole
from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.model.columns import Bins
from pkdp_pipeline.model.comparisons import DAY, ORDERS, SECOND, Values, settled, written_time
from pkdp_pipeline.model.keys import from_arrow
from pkdp_pipeline.model.predicate import (
    Column,
    Condition,
    Conjunction,
    Constant,
    Part,
    Predicate,
    like_regex,
    plain_pieces,
)

_TEXT = (nw.String, nw.Categorical, nw.Enum)
_WHOLE = (nw.Int8, nw.Int16, nw.Int32, nw.Int64, nw.UInt8, nw.UInt16, nw.UInt32, nw.UInt64)
_BITS = {nw.Float16: 16, nw.Float32: 32, nw.Float64: 64}
_REAL = tuple(_BITS)
#: What values can be grouped by, but cannot name a published cell.
_OTHER_UNITS = (nw.Binary, nw.Time, nw.Int128, nw.UInt128)


#: What stands before a text's name in the name of a column of its bytes, where an engine orders texts otherwise.
BYTES = "pkdp_bytes_"
#: How many nanoseconds a unit of time has.
_UNITS: Mapping[str, int] = MappingProxyType({"ns": 1, "us": 10**3, "ms": 10**6, "s": SECOND})


def is_text(dtype: Any) -> bool:
    """Return whether a column of this type holds text."""
    return isinstance(dtype, _TEXT)


def bits_of_real(dtype: Any) -> int:
    """Return how many bits a real of this type has; 0 for other types."""
    return next((bits for real, bits in _BITS.items() if isinstance(dtype, real)), 0)


def values_of(dtype: Any) -> Values:
    """Return what a column of this type can be compared with."""
    whole = re.fullmatch(r"(U?)Int(\d+)", str(dtype))
    if whole is not None:
        return Values.whole(int(whole[2]), signed=not whole[1])
    if bits := bits_of_real(dtype):
        return Values("number", bits=bits)
    if isinstance(dtype, nw.Decimal):
        return Values.decimals(dtype.precision or 38, dtype.scale)
    if isinstance(dtype, nw.Date):
        return Values.times("time", DAY)
    if isinstance(dtype, nw.Datetime):
        return Values.times("time" if dtype.time_zone is None else "instant", _UNITS[dtype.time_unit])
    if is_text(dtype):
        return Values("text")
    return Values("boolean" if isinstance(dtype, nw.Boolean) else str(dtype))


def comparable(argument: str, name: str, dtype: Any) -> nw.Expr:
    """Return a column under which equal values are one value and NaN is missing.

    Raises `ArgumentError` if values of its type cannot be grouped and ordered.
    """
    values = column(name)
    if isinstance(dtype, nw.String):
        return values
    if isinstance(dtype, _TEXT):
        return values.cast(nw.String)
    if isinstance(dtype, _REAL):
        real = values.cast(nw.Float64)
        # -0.0 and 0.0 are one cell, and have one name.
        return nw.when(_is_number(real)).then(real + nw.lit(0.0))
    if argument == "unit" and isinstance(dtype, (nw.Int128, nw.UInt128)):
        return values.cast(nw.String)  # Arrow has no such numbers
    if isinstance(dtype, (*_WHOLE, *_OTHER_UNITS, nw.Boolean, nw.Date, nw.Datetime, nw.Decimal)):
        return values
    raise ArgumentError(
        f"{argument} column {name!r} has {_type_name(dtype)}, whose values cannot be compared; cast it in the frame, "
        "for example to text."
    )


def _type_name(dtype: Any) -> str:
    return "a type that is not known here" if isinstance(dtype, nw.Unknown) else f"type {dtype}"


def _is_number(real: nw.Expr) -> nw.Expr:
    """Return whether a column of reals holds a number, neither missing nor NaN; never missing.

    Not `is_nan`: over a Parquet file whose statistics leave NaN out, DuckDB 2 as a backend of Ibis answers it from them
    (https://github.com/duckdb/duckdb/issues/25521). The difference is NaN for NaN and the infinities, and NaN equals no
    number in any engine. With its statistics DuckDB looks through a bare ``==``, not through `fill_null`.
    """
    infinite = (real == nw.lit(math.inf)) | (real == nw.lit(-math.inf))
    return ((real - real == nw.lit(0.0)) | infinite).fill_null(False)


def nameable(name: str, dtype: Any, *, in_memory: bool) -> nw.Expr:
    """Return a by-column as `comparable` does, or raise `ArgumentError` when its type cannot name cells.

    A date outside the years 1 to 9999, such as infinity, is missing: it has no name in Python, and a table must not
    fail for one row. So is a time, by the clocks of UTC if it is an instant, `in_memory`: of Polars and PyArrow.
    """
    if isinstance(dtype, nw.Date) or (in_memory and isinstance(dtype, nw.Datetime) and dtype.time_unit != "ns"):
        moments = column(name)
        zoned = isinstance(dtype, nw.Datetime) and dtype.time_zone is not None
        years = (moments.dt.convert_time_zone("UTC") if zoned else moments).dt.year()
        return nw.when(years.is_between(1, 9999)).then(moments)
    if isinstance(dtype, (*_TEXT, *_WHOLE, *_REAL, nw.Boolean, nw.Date, nw.Datetime, nw.Decimal)):
        return comparable("by", name, dtype)
    raise ArgumentError(
        f"by column {name!r} has {_type_name(dtype)}, which cannot name cells; cast it in the frame, for "
        "example to text."
    )


def whole_number(name: str, dtype: Any, *, in_arrow: bool) -> nw.Expr:
    """Return the number that a row adds where this column is summed, `in_arrow` as it is; see `engines.statements`."""
    values, signed = column(name), not str(dtype).startswith("U")
    decimal = isinstance(dtype, nw.Decimal) and not dtype.scale and (dtype.precision or DIGITS) <= DIGITS
    if not (decimal or isinstance(dtype, (*_WHOLE, nw.Int128, nw.UInt128))):
        raise not_whole(name, "that is not known here" if isinstance(dtype, nw.Unknown) else dtype)
    if in_arrow:
        return values
    if (values_of(dtype).high or 0) <= LARGEST:
        return values.cast(nw.Int64)
    wide = nw.Decimal(DIGITS, 0) if decimal else dtype
    values, least, most = values.cast(wide), nw.lit(str(-LARGEST)), nw.lit(str(LARGEST)).cast(wide)
    values = nw.when(values > most).then(most).otherwise(values)
    if signed:
        values = nw.when(values < least.cast(wide)).then(least.cast(wide)).otherwise(values)
    return values.cast(nw.Int64)


def grouped(groups: Bins, values: nw.Expr, rows: nw.LazyFrame[Any], schema: Mapping[str, Any]) -> nw.Expr:
    """Return the names of the groups that a by-column's values, which are `nameable`, are in; see `condition`."""
    dtype = schema[groups.column]
    if isinstance(groups.edges, str):
        zoned = isinstance(dtype, nw.Datetime) and dtype.time_zone is not None
        groups.holds("date" if isinstance(dtype, nw.Date | nw.Datetime) and not zoned else None)
        # A year that has no name in Python is missing.
        moments = _to_microseconds(values, dtype) if rows.implementation.is_ibis() else values
        return nw.when(moments.dt.year().is_between(1, 9999)).then(_calendar(groups.edges, moments))
    groups.holds("real" if isinstance(dtype, (*_WHOLE, *_REAL, nw.Decimal)) else None)
    named: nw.Expr = nw.when(~values.is_null()).then(nw.lit(groups.names[-1]))
    for below, name in zip(reversed(groups.below), reversed(groups.names[:-1]), strict=True):
        hit = cast("nw.Expr", condition(below, rows, schema))
        named = nw.when(hit).then(nw.lit(name)).otherwise(named)
    return named


def _to_microseconds(values: nw.Expr, dtype: Any) -> nw.Expr:
    """Return times without their nanoseconds, which DuckDB rounds, before 1970 towards it, where a date is meant."""
    if getattr(dtype, "time_unit", "") != "ns":
        return values
    cut = values.cast(nw.Datetime("us"))
    return nw.when(cut.cast(dtype) <= values).then(cut).otherwise(cut - nw.lit(timedelta(microseconds=1)))


def _calendar(part: str, values: nw.Expr) -> nw.Expr:
    """Return the names of weeks, months, quarters or years of dates or times."""
    year, month = values.dt.year().cast(nw.Int64), values.dt.month().cast(nw.Int64)
    if part == "year":
        return _padded(year, 4)
    if part == "month":
        return nw.concat_str([_padded(year, 4), nw.lit("-"), _padded(month, 2)])
    if part == "quarter":
        return nw.concat_str([_padded(year, 4), nw.lit("-Q"), _padded((month + 2) // 3, 1)])
    # ISO 8601: a week is of the year that its Thursday is in. Of a day's number in its year and in its week follows the
    # number of the week, which is 0 for the last one of the year before, and may be one too many.
    week = (values.dt.ordinal_day().cast(nw.Int64) - _weekday(values) + 10) // 7
    before, after = week < 1, week > _weeks(year)
    of = nw.when(before).then(year - 1).otherwise(nw.when(after).then(year + 1).otherwise(year))
    number = nw.when(before).then(_weeks(year - 1)).otherwise(nw.when(after).then(nw.lit(1)).otherwise(week))
    return nw.concat_str([_padded(of, 4), nw.lit("-W"), _padded(number, 2)])


def _weekday(values: nw.Expr) -> nw.Expr:
    """Return the day of the week, from 1 for Monday to 7 for Sunday, for which Narwhals says 0 over PySpark."""
    return (values.dt.weekday().cast(nw.Int64) + 6) % 7 + 1


def _weeks(year: nw.Expr) -> nw.Expr:
    """Return how many weeks a year has: 53 where it begins on a Thursday, or ends on one."""
    ends, begins = ((year + year // 4 - year // 100 + year // 400) % 7 for year in (year, year - 1))
    return nw.when((ends == 4) | (begins == 3)).then(nw.lit(53)).otherwise(nw.lit(52))


def _padded(number: nw.Expr, digits: int) -> nw.Expr:
    """Return a whole number as text with zeros before it."""
    text = number.cast(nw.String)
    for digit in range(1, digits):
        text = nw.when(number < 10**digit).then(nw.concat_str([nw.lit("0"), text])).otherwise(text)
    return text


def to_public(values: Any, dtype: Any) -> pd.Series[Any]:
    """Return an Arrow column of keys as a Series under the public dtype that its type decides."""
    import pyarrow as pa

    public: Any = pd.StringDtype(na_value=np.nan)
    if isinstance(dtype, nw.Date):
        public = pd.ArrowDtype(pa.date32())
    elif isinstance(dtype, nw.Decimal):
        public = pd.ArrowDtype(values.type)
    elif isinstance(dtype, _REAL):
        public = np.dtype("float64")
    elif isinstance(dtype, nw.Boolean):
        public = pd.BooleanDtype()
    elif isinstance(dtype, _WHOLE):
        public = pd.api.types.pandas_dtype(str(dtype))
    elif isinstance(dtype, nw.Datetime):
        unit = "ns" if dtype.time_unit == "ns" else "us"
        zone = "" if dtype.time_zone is None else f", {dtype.time_zone}"
        public = pd.api.types.pandas_dtype(f"datetime64[{unit}{zone}]")
    keys = from_arrow(values, public)
    # An engine may keep either zero for the cell that holds both.
    return keys + 0.0 if isinstance(dtype, _REAL) else keys


def column(name: str) -> nw.Expr:
    """Return a column of an `opened` frame by the name it has in the frame that was given."""
    return nw.col(_spelled(name))


def opened(frame: Any) -> tuple[nw.LazyFrame[Any], dict[str, Any]]:
    """Return a frame whose columns have plain names, and its schema under the names it was given with."""
    if type(frame).__module__.split(".")[0] == "pyspark":
        names = list(frame.columns)
        # By position: the names do not have to be read for it.
        lazy = nw.from_native(frame.toDF(*map(_spelled, names)) if _renamed(names) else frame).lazy()
        return lazy, dict(zip(names, map(_in_utc, lazy.collect_schema().values()), strict=True))
    lazy = nw.from_native(frame).lazy()
    schema = dict(lazy.collect_schema())
    renamed = _renamed(schema)
    return (lazy.rename(renamed) if renamed else lazy), schema


def _in_utc(dtype: Any) -> Any:
    """Return the type of a Spark column: instants have no zone of their own there, only a session shows them in one."""
    zoned = isinstance(dtype, nw.Datetime) and dtype.time_zone is not None
    return nw.Datetime("us", "UTC") if zoned else dtype


def _renamed(names: Any) -> dict[str, str]:
    return {name: _spelled(name) for name in names if _spelled(name) != name}


def _spelled(name: str) -> str:
    """Return a name that stands for this one alone and that no engine reads as anything but a name."""
    return name if re.fullmatch(r"\w+", name) else f"pkdp_{name.encode('utf-8', 'surrogatepass').hex()}"


_OPERATORS: Mapping[str, Callable[[Any, Any], Any]] = MappingProxyType(
    {"==": operator.eq, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
)


def condition(
    where: Predicate | None,
    rows: nw.LazyFrame[Any],
    schema: Mapping[str, Any],
    *,
    empty: Collection[str] = (),
    regex: bool = True,
) -> nw.Expr | None:
    """Return an expression that is true or false for every row, or None where every row is meant.

    `rows` and `schema`: see `opened`. `empty`: columns that have no type, and no value. `regex`: whether the frame's
    engine reads what `like_regex` writes. Raises `ArgumentError` if it cannot be asked of these columns.
    """
    if where is None:
        return None
    columns = {name: Values("empty") if name in empty else values_of(dtype) for name, dtype in schema.items()}
    return _Expressions(schema, rows.implementation, regex).of(settled(where, columns))


class _Expressions:
    def __init__(self, schema: Mapping[str, Any], engine: nw.Implementation, regex: bool) -> None:
        self._schema = schema
        self._engine = engine
        self._regex = regex

    def of(self, predicate: Predicate) -> nw.Expr:
        if isinstance(predicate, Condition):
            test = self._test(predicate)
            return ~test if predicate.negated else test
        joined = nw.all_horizontal if isinstance(predicate, Conjunction) else nw.any_horizontal
        return joined(*map(self.of, predicate.parts), ignore_nulls=False)

    def _test(self, condition: Condition) -> nw.Expr:
        name, operand = condition.column, condition.operand
        dtype, values = self._schema[name], self._column(name, missing=condition.operator == "isna")
        if condition.part is not None:
            dtype, values = nw.Int64(), self._part(condition.part, dtype, values)
        if condition.operator == "isna":
            return values.is_null()
        if condition.operator == "like":
            return self._matched(name, values, str(operand)).fill_null(False)
        if condition.operator in ORDERS and BYTES + name in self._schema:
            other = column(BYTES + operand.name) if isinstance(operand, Column) else nw.lit(str(operand).encode())
            return self._answer(condition.operator, column(BYTES + name), other)
        if isinstance(operand, Column):
            values, other = self._column(name, operand.name), self._column(operand.name, name)
            return self._answer(condition.operator, values, other)
        if not condition.constants:
            return values.is_null() & nw.lit(False)
        if condition.operator == "in":
            return self._membership(dtype, values, condition.constants)
        return self._answer(condition.operator, values, self._literal(dtype, condition.constants[0]))

    def _part(self, part: Part, dtype: Any, values: nw.Expr) -> nw.Expr:
        if self._engine.is_ibis():
            values = _to_microseconds(values, dtype)
        number: nw.Expr = _weekday(values) if part == "weekday" else getattr(values.dt, part)().cast(nw.Int64)
        return number

    def _matched(self, name: str, values: nw.Expr, pattern: str) -> nw.Expr:
        pieces = plain_pieces(pattern) or ()
        if len(pieces) == 2:
            first, last = pieces
            ends = values.str.starts_with(first) & values.str.ends_with(last)
            return ends & (values.str.len_chars() >= len(first) + len(last)) if first and last else ends
        if len(pieces) == 3 and not pieces[0] and not pieces[2]:
            return values.str.contains(pieces[1], literal=True)
        if not self._regex:
            raise ArgumentError(
                f"where compares column {name!r} with a pattern that this backend has no common way for; write it with "
                "one %, or one at both ends, or add a boolean column to the table, made with its own like()."
            )
        return values.str.contains(like_regex(pattern))

    def _membership(self, dtype: Any, values: nw.Expr, constants: tuple[Constant, ...]) -> nw.Expr:
        if is_text(dtype) or (isinstance(dtype, _WHOLE) and dtype != nw.UInt64):
            return values.is_in(list(constants)).fill_null(False)
        equal = (self._answer("==", values, self._literal(dtype, constant)) for constant in constants)
        return nw.any_horizontal(*equal, ignore_nulls=False)

    def _answer(self, sign: str, values: nw.Expr, other: nw.Expr) -> nw.Expr:
        compared: nw.Expr = _OPERATORS[sign](values, other)
        return compared.fill_null(False)

    def _literal(self, dtype: Any, constant: Constant) -> nw.Expr:
        """Return a constant as a column of this type holds it."""
        if isinstance(dtype, nw.Date):
            return nw.lit(date.fromisoformat(written_time(int(constant))))
        if not isinstance(dtype, nw.Datetime):
            # Beside a signed constant Arrow would make signed numbers of these, where it can.
            exact = nw.lit(constant, dtype) if isinstance(dtype, nw.Decimal) else nw.lit(constant)
            return nw.lit(str(constant)).cast(dtype) if dtype == nw.UInt64 else exact
        nanoseconds, zoned = int(constant), dtype.time_zone is not None
        if not self._engine.is_ibis() and not self._engine.is_spark_like():
            return nw.lit(nanoseconds // _UNITS[dtype.time_unit], nw.Int64()).cast(dtype)
        text = written_time(nanoseconds, zoned=zoned)
        # PySpark takes a Python timestamp without a zone for an instant, and Python's have no nanoseconds.
        if nanoseconds % 1000 or (self._engine.is_spark_like() and not zoned):
            return nw.lit(text).cast(nw.Datetime(dtype.time_unit, dtype.time_zone))
        return nw.lit(datetime.fromisoformat(text))

    def _column(self, name: str, other: str = "", *, missing: bool = False) -> nw.Expr:
        """Return a column as it is compared, with a constant or with another column, or asked for what is missing."""
        dtype, beside = self._schema[name], self._schema[other or name]
        if isinstance(dtype, _REAL) and self._engine.is_pyarrow() and not missing:
            # NaN is on no side of any number there; half floats it compares with nothing.
            return column(name).cast(nw.Float32()) if isinstance(dtype, nw.Float16) else column(name)
        if is_text(dtype) or values_of(dtype).family == "number":
            values = comparable("where", name, dtype)
            if isinstance(beside, _REAL):
                return values.cast(nw.Float64)
            if isinstance(dtype, nw.Decimal) and isinstance(beside, nw.Decimal) and dtype.scale < beside.scale:
                return values.cast(nw.Decimal(38, beside.scale))
            apart = self._engine.is_pyarrow() and (dtype == nw.UInt64) != (beside == nw.UInt64)
            return values.cast(nw.Decimal(20, 0)) if apart else values
        values = column(name)
        if other and isinstance(dtype, nw.Datetime) and dtype.time_zone not in (None, "UTC"):
            return values.dt.convert_time_zone("UTC")
        return values.cast(nw.Datetime("us")) if isinstance(dtype, nw.Date) and dtype != beside else values
