"""Which rows of a pandas frame satisfy a predicate."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from functools import reduce
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from pkdp_pipeline.engines.layouts import plain_column, plain_type
from pkdp_pipeline.engines.question import wrong_where
from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.model.like import like_regex
from pkdp_pipeline.model.predicate import (
    Column,
    Condition,
    Conjunction,
    Constant,
    Part,
    Predicate,
    check_columns,
    check_families,
)

_KINDS = "a query string, the name of a boolean column, a boolean Series or a callable that returns such a Series"
_OPERATORS: Mapping[str, Callable[[Any, Any], Any]] = MappingProxyType(
    {"==": operator.eq, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
)
#: What columns of Python objects can be compared with, by what they hold.
_OBJECTS: Mapping[str, str] = MappingProxyType(
    {"string": "text", "integer": "number", "floating": "number", "decimal": "number", "mixed-integer-float": "number"}
)


def selected_rows(frame: pd.DataFrame, where: Any) -> npt.NDArray[np.bool_] | None:
    """Return one boolean per row, or None where every row is meant. A missing answer is "no".

    Raises `ArgumentError` if `where` cannot be asked of the frame or does not give one boolean per row. Errors from
    inside a comparison or a callable are named by their type only: their text could quote the data.
    """
    if where is None:
        return None
    if isinstance(where, pd.Series):
        return _checked(frame, where)
    if isinstance(where, Predicate):
        return _checked(frame, _evaluated(frame, where))
    if callable(where) and type(where).__module__.partition(".")[0] != "ibis":
        return _checked(frame, _called(frame, where))
    raise wrong_where(where, _KINDS)


def plain(column: pd.Series[Any]) -> pd.Series[Any]:
    """Return a column as the values that it holds: Arrow's are not their codes, and its reals are like pandas' own.

    Of those NaN is missing, and 0.0 equals -0.0.
    """
    import pyarrow as pa

    if not isinstance(column.dtype, pd.ArrowDtype):
        return column
    kind, values = plain_type(column.dtype.pyarrow_dtype), column.array
    if kind != column.dtype.pyarrow_dtype:
        values = pd.arrays.ArrowExtensionArray(plain_column(str(column.name), values.__arrow_array__()))
    if pa.types.is_floating(kind):
        values = values.to_numpy(dtype=kind.to_pandas_dtype(), na_value=np.nan)
    return pd.Series(values, index=column.index, name=column.name)


def _evaluated(frame: pd.DataFrame, predicate: Predicate) -> Any:
    check_columns("where", sorted(predicate.columns), list(frame.columns))
    columns = {name: plain(frame[name]) for name in predicate.columns}
    check_families(predicate, {name: _family(column) for name, column in columns.items()})
    problem = ""
    try:
        return _answer(predicate, columns)
    except ArgumentError:
        raise
    except Exception as error:  # columns of Python objects compare as they like
        problem = type(error).__name__
    raise ArgumentError(f"where could not be evaluated ({problem}); give the columns that it compares one dtype each.")


def _family(column: pd.Series[Any]) -> str:
    """Return what a column can be compared with."""
    dtype: Any = column.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        return _family(pd.Series(dtype.categories))
    if pd.api.types.is_object_dtype(dtype):
        held = pd.api.types.infer_dtype(column, skipna=True)
        return _OBJECTS.get(held, held)
    if _is_date(dtype):
        return "time"
    if pd.api.types.is_datetime64_any_dtype(dtype):
        zone = dtype.pyarrow_dtype.tz if isinstance(dtype, pd.ArrowDtype) else getattr(dtype, "tz", None)
        return "time" if zone is None else "instant"
    if pd.api.types.is_bool_dtype(dtype):
        return "boolean"
    if pd.api.types.is_numeric_dtype(dtype):
        return "number"
    return "text" if pd.api.types.is_string_dtype(dtype) else str(dtype)


def _is_date(dtype: Any) -> bool:
    return isinstance(dtype, pd.ArrowDtype) and str(dtype.pyarrow_dtype).startswith("date")


def _answer(predicate: Predicate, columns: Mapping[str, pd.Series[Any]]) -> Any:
    if isinstance(predicate, Condition):
        answer = _test(predicate, columns)
        return ~answer if predicate.negated else answer
    word = operator.and_ if isinstance(predicate, Conjunction) else operator.or_
    return reduce(word, (_answer(part, columns) for part in predicate.parts))


def _test(condition: Condition, columns: Mapping[str, pd.Series[Any]]) -> Any:
    column = columns[condition.column]
    if condition.part is not None:
        column = _part(column, condition.part)
    if condition.operator == "isna":
        return column.isna()
    if condition.operator == "like":
        return _matched(column, str(condition.operand))
    if isinstance(condition.operand, Column):
        return _OPERATORS[condition.operator](column, columns[condition.operand.name])
    constants = [_constant(condition.column, column.dtype, constant) for constant in condition.constants]
    if condition.operator != "in":
        return _OPERATORS[condition.operator](column, constants[0])
    if _family(column) in ("time", "instant"):
        return reduce(operator.or_, (column == constant for constant in constants)).fillna(False)
    return column.isin(constants)


def _part(column: pd.Series[Any], part: Part) -> pd.Series[Any]:
    """Return the year, month, day or weekday of dates as reals, which are missing where the date is."""
    if column.dtype == object:  # without a value: others have no date
        return pd.Series(np.nan, column.index)
    numbers = column.dt.day_of_week + 1 if part == "weekday" else getattr(column.dt, part)
    return pd.Series(numbers.to_numpy(dtype="float64", na_value=np.nan), column.index)


def _matched(column: pd.Series[Any], pattern: str) -> pd.Series[Any]:
    import pyarrow as pa
    import pyarrow.compute as pc

    texts = pa.array(column, from_pandas=True).cast(pa.large_string())
    found = pc.match_substring_regex(texts, like_regex(pattern)).fill_null(False)
    return pd.Series(found.to_numpy(zero_copy_only=False), column.index)


def _constant(name: str, dtype: Any, constant: Constant) -> Any:
    """Return a constant as a column of this dtype holds it."""
    if not isinstance(constant, str) or not (pd.api.types.is_datetime64_any_dtype(dtype) or _is_date(dtype)):
        return constant
    moment: Any = None
    # Not "today", which is another day tomorrow.
    if re.match(r"\d{4}", constant):
        try:
            moment = pd.Timestamp(constant)
        except ValueError:
            moment = None
    zoned = isinstance(dtype, pd.DatetimeTZDtype) or (
        isinstance(dtype, pd.ArrowDtype) and not _is_date(dtype) and dtype.pyarrow_dtype.tz is not None
    )
    if moment is None or (moment.tz is None) == zoned or (_is_date(dtype) and moment != moment.normalize()):
        written = "2013-01-02" if _is_date(dtype) else "2013-01-02 03:04:05"
        raise ArgumentError(
            f"where compares column {name!r}, which has dtype {dtype}, with a text that it cannot equal; write the "
            f"constant as {written!r}."
        )
    return moment.date() if _is_date(dtype) else moment


def _called(frame: pd.DataFrame, where: Any) -> Any:
    problem = ""
    try:
        return where(frame.copy(deep=False))
    except Exception as error:  # the callable is the caller's: anything can go wrong in it
        problem = type(error).__name__
    raise ArgumentError(f"where raised {problem} when it was called with the frame.")


def _checked(frame: pd.DataFrame, answer: Any) -> npt.NDArray[np.bool_]:
    if not isinstance(answer, pd.Series):
        raise ArgumentError(f"where must be {_KINDS}; it gave a {type(answer).__name__}.")
    if len(answer) != len(frame) or not answer.index.equals(frame.index):
        raise ArgumentError("where must give one boolean per row of the frame, under the frame's own index.")
    if answer.dtype == object and pd.api.types.infer_dtype(answer, skipna=True) in ("boolean", "empty"):
        answer = answer.astype("boolean")
    if not pd.api.types.is_bool_dtype(answer.dtype):
        raise ArgumentError(f"where must be boolean; it has dtype {answer.dtype}.")
    selected: npt.NDArray[np.bool_] = answer.fillna(False).to_numpy(dtype=bool)
    return selected
