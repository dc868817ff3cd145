"""A Narwhals frame's columns: what may name cells or units, how they are read and compared, their public dtype."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Mapping
from datetime import date, datetime
from types import MappingProxyType
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd

from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.model.like import like_regex, plain_pieces
from pkdp_pipeline.model.predicate import Column, Condition, Conjunction, Predicate, check_families

_TEXT = (nw.String, nw.Categorical, nw.Enum)
_WHOLE = (nw.Int8, nw.Int16, nw.Int32, nw.Int64, nw.UInt8, nw.UInt16, nw.UInt32, nw.UInt64)
_BITS = {nw.Float16: 16, nw.Float32: 32, nw.Float64: 64}
_REAL = tuple(_BITS)
#: What values can be grouped by, but cannot name a published cell.
_OTHER_UNITS = (nw.Binary, nw.Time, nw.Int128, nw.UInt128)


def family(dtype: Any) -> str:
    """Return what a column of this type can be compared with in a query string."""
    if isinstance(dtype, _TEXT):
        return "text"
    if isinstance(dtype, (nw.Date, nw.Datetime)):
        return "time" if getattr(dtype, "time_zone", None) is None else "instant"
    if isinstance(dtype, (*_WHOLE, *_REAL, nw.Decimal)):
        return "number"
    return "boolean" if isinstance(dtype, nw.Boolean) else str(dtype)


def bits_of_real(dtype: Any) -> int:
    """Return how many bits a real of this type has; 0 for other types."""
    return next((bits for real, bits in _BITS.items() if isinstance(dtype, real)), 0)


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
        f"{argument} column {name!r} has {_told(dtype)}, whose values cannot be compared; cast it in the frame, for "
        "example to text."
    )


def _told(dtype: Any) -> str:
    return "a type that is not known here" if isinstance(dtype, nw.Unknown) else f"type {dtype}"


def _is_number(real: nw.Expr) -> nw.Expr:
    """Return whether a column of reals holds a number, neither missing nor NaN; never missing.

    Not `is_nan`: over a Parquet file whose statistics leave NaN out, DuckDB 2 as a backend of Ibis answers it from them
    (https://github.com/duckdb/duckdb/issues/25521). The difference is NaN for NaN and the infinities, and NaN equals no
    number in any engine. With its statistics DuckDB looks through a bare ``==``, not through `fill_null`.
    """
    infinite = (real == nw.lit(math.inf)) | (real == nw.lit(-math.inf))
    return ((real - real == nw.lit(0.0)) | infinite).fill_null(False)


def nameable(name: str, dtype: Any) -> nw.Expr:
    """Return a by-column as `comparable` does, or raise `ArgumentError` when its type cannot name cells.

    A date outside the years 1 to 9999, such as infinity, is missing: it has no name in Python, and a table must not
    fail for one row.
    """
    if isinstance(dtype, nw.Date):
        dates = column(name)
        return nw.when(dates.dt.year().is_between(1, 9999)).then(dates)
    if isinstance(dtype, (*_TEXT, *_WHOLE, *_REAL, nw.Boolean, nw.Date, nw.Datetime, nw.Decimal)):
        return comparable("by", name, dtype)
    raise ArgumentError(
        f"by column {name!r} has {_told(dtype)}, which cannot name cells; cast it in the frame, for example to text."
    )


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
    keys: pd.Series[Any] = pd.Series(pd.arrays.ArrowExtensionArray(values)).astype(public)
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
_MOMENT = re.compile(r"\d{4}-\d\d-\d\d([ T]\d\d:\d\d(:\d\d(\.\d{1,6})?)?)?(Z|[+-]\d\d:\d\d)?")


def condition(
    where: Predicate | None, schema: Mapping[str, Any], *, spark: bool = False, regex: bool = True
) -> nw.Expr | None:
    """Return an expression that is true or false for every row, or None where every row is meant.

    With `spark`, timestamps without a zone are written as text: PySpark takes a Python one for an instant. `regex` says
    whether the frame's engine reads what `like_regex` writes. Raises `ArgumentError` if it cannot be asked of these
    columns.
    """
    if where is None:
        return None
    check_families(where, {name: family(dtype) for name, dtype in schema.items()})
    return _Expressions(schema, spark, regex).of(where)


class _Expressions:
    def __init__(self, schema: Mapping[str, Any], spark: bool, regex: bool) -> None:
        self._schema = schema
        self._spark = spark
        self._regex = regex

    def of(self, predicate: Predicate) -> nw.Expr:
        if isinstance(predicate, Condition):
            test = self._test(predicate)
            return ~test if predicate.negated else test
        joined = nw.all_horizontal if isinstance(predicate, Conjunction) else nw.any_horizontal
        return joined(*map(self.of, predicate.parts), ignore_nulls=False)

    def _test(self, condition: Condition) -> nw.Expr:
        name, operand = condition.column, condition.operand
        dtype, values = self._schema[name], self._column(name)
        if condition.part is not None:
            dtype, values = nw.Int64(), getattr(values.dt, condition.part)().cast(nw.Int64)
        if condition.operator == "isna":
            return values.is_null()
        if condition.operator == "like":
            return self._matched(name, values, str(operand)).fill_null(False)
        if isinstance(operand, Column):
            compared: nw.Expr = _OPERATORS[condition.operator](values, self._column(operand.name))
            return compared.fill_null(False)
        if condition.operator == "in":
            return self._membership(name, dtype, values, list(condition.constants))
        return self._with_constant(name, dtype, values, condition.operator, condition.constants[0])

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

    def _membership(self, name: str, dtype: Any, values: nw.Expr, constants: list[Any]) -> nw.Expr:
        limits = _limits(dtype)
        if limits is not None and all(isinstance(constant, int) for constant in constants):
            constants = [constant for constant in constants if limits[0] <= constant <= limits[1]] or constants[:1]
        listable = family(dtype) == "text" or (limits is not None and all(_inside(limits, one) for one in constants))
        if listable:
            return values.is_in(constants).fill_null(False)
        found = [self._with_constant(name, dtype, values, "==", constant) for constant in constants]
        return nw.any_horizontal(*found, ignore_nulls=False)

    def _with_constant(self, name: str, dtype: Any, values: nw.Expr, sign: str, constant: Any) -> nw.Expr:
        limits = _limits(dtype)
        if limits is not None and isinstance(constant, int) and not _inside(limits, constant):
            # Outside the column's range a constant compares with all its values alike.
            return ~values.is_null() if _OPERATORS[sign](0, constant) else values.is_null() & nw.lit(False)
        if isinstance(dtype, (nw.Date, nw.Datetime)):
            constant = _moment(name, dtype, constant)
        literal = nw.lit(constant)
        if self._spark and isinstance(constant, datetime) and constant.tzinfo is None:
            literal = nw.lit(constant.isoformat(sep=" ")).cast(nw.Datetime("us"))
        compared: nw.Expr = _OPERATORS[sign](values, literal)
        return compared.fill_null(False)

    def _column(self, name: str) -> nw.Expr:
        dtype = self._schema[name]
        if family(dtype) in ("text", "number"):
            return comparable("where", name, dtype)
        return column(name)


def _limits(dtype: Any) -> tuple[int, int] | None:
    """Return the least and the greatest value of a type of whole numbers."""
    whole = re.fullmatch(r"(U?)Int(\d+)", str(dtype))
    if whole is None:
        return None
    bits = int(whole[2])
    return (0, 2**bits - 1) if whole[1] else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def _inside(limits: tuple[int, int], constant: Any) -> bool:
    return isinstance(constant, int) and limits[0] <= constant <= limits[1]


def _moment(name: str, dtype: Any, text: str) -> date | datetime:
    """Return the constant that a date or a timestamp is compared with."""
    zone = getattr(dtype, "time_zone", None)
    problem = not _MOMENT.fullmatch(text)
    if not problem:
        try:
            moment = datetime.fromisoformat(text)
        except ValueError:
            problem = True
    if not problem and isinstance(dtype, nw.Date) and len(text) == len("2013-01-02"):
        return moment.date()
    if problem or isinstance(dtype, nw.Date) or (moment.tzinfo is not None and zone is None):
        written = "2013-01-02" if isinstance(dtype, nw.Date) else "2013-01-02 03:04:05"
        raise ArgumentError(
            f"where compares column {name!r}, which has type {dtype}, with a text that it cannot equal; write the "
            f"constant as {written!r}."
        )
    return moment
