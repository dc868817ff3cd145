"""Pandas frames: which rows satisfy a predicate, and how their units are counted.

Columns become Arrow arrays under which equal values are one value.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from functools import reduce
from numbers import Number
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt
import pandas as pd

from pkdp_pipeline.engines import DRAWN, CellCounts, Doubts, Tally, Units, not_counted, wrong_where
from pkdp_pipeline.engines.memory import (
    DIGITS,
    cells_in_memory,
    plain_column,
    plain_table,
    plain_type,
    tally_in_memory,
    units_in_memory,
    untyped,
)
from pkdp_pipeline.engines.statements import WHOLE, not_whole, number_of
from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.model.columns import Bins, Selection, check_columns
from pkdp_pipeline.model.keys import canonical_key, from_arrow, key_dtype, kind_of_dtype
from pkdp_pipeline.model.predicate import Condition, Conjunction, Predicate

if TYPE_CHECKING:
    import narwhals.stable.v2 as nw

_KINDS = "a query string, the name of a boolean column, a boolean Series or a callable that returns such a Series"


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
        check_columns("where", sorted(where.columns), list(frame.columns))
        return _answer(frame, where)
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


def _answer(frame: pd.DataFrame, predicate: Predicate) -> npt.NDArray[np.bool_]:
    if isinstance(predicate, Condition):
        return _test(frame, predicate)
    word = np.logical_and if isinstance(predicate, Conjunction) else np.logical_or
    return reduce(word, (_answer(frame, part) for part in predicate.parts))


def _test(frame: pd.DataFrame, leaf: Condition) -> npt.NDArray[np.bool_]:
    """Ask the columns as an Arrow table, so that the answer is the one it has there; of categories each once."""
    import pyarrow as pa

    from pkdp_pipeline.engines.narwhals_columns import condition, opened

    tested, codes = frame[leaf.column], None
    if leaf.operator == "isna" and leaf.part is None:
        table = pa.table({leaf.column: _missing(tested)})
    elif len(leaf.columns) == 1 and isinstance(tested.dtype, pd.CategoricalDtype):
        codes = tested.cat.codes.to_numpy()
        table = pa.table({leaf.column: _in_arrow(pd.Series(tested.cat.categories, name=leaf.column))})
        table = pa.concat_tables([table, pa.table({leaf.column: pa.nulls(1, table.schema.types[0])})])
    else:
        table = pa.table({name: _in_arrow(frame[name]) for name in sorted(leaf.columns)})
    rows, schema = opened(plain_table(table, table.column_names))
    hit = condition(leaf, rows, schema, empty=untyped(table))
    problem = ""
    try:
        answer: npt.NDArray[np.bool_] = rows.select(hit=cast("nw.Expr", hit)).collect().to_native()["hit"].to_numpy()
    except (pa.ArrowException, OverflowError) as error:
        problem = type(error).__name__
    if problem:
        raise _not_evaluated(problem)
    return answer if codes is None else answer[codes]


def _missing(column: pd.Series[Any]) -> Any:
    """Return an Arrow array that is missing where a column is, whatever it holds."""
    import pyarrow as pa

    return pa.array(np.ones(len(column), dtype=bool), mask=plain(column).isna().to_numpy(dtype=bool))


def _in_arrow(column: pd.Series[Any]) -> Any:
    import pyarrow as pa

    values: Any = column
    if isinstance(column.dtype, pd.DatetimeTZDtype):
        values = column.dt.tz_convert("UTC")  # Arrow does not know every kind of zone
    problem = ""
    try:
        # NaN compares as a missing value does.
        array = pa.array(values, from_pandas=not (isinstance(column.dtype, np.dtype) and column.dtype.kind == "f"))
    except (pa.ArrowException, ValueError, TypeError, OverflowError) as error:
        problem = type(error).__name__
    if problem:
        raise _not_evaluated(problem)
    if column.dtype == object and pa.types.is_timestamp(array.type):
        # Some may have a zone and others none: Arrow takes all for the same.
        raise ArgumentError(
            f"where compares column {column.name!r}, which holds Python objects; give it a dtype first, with "
            f"pd.to_datetime(frame[{column.name!r}])."
        )
    return array


def _not_evaluated(problem: str) -> ArgumentError:
    return ArgumentError(f"where could not be evaluated ({problem}); give the columns that it compares one dtype each.")


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


#: What "str" means from pandas 3 on; before, it made a text of a missing value.
_TEXT = pd.StringDtype(na_value=np.nan)


@dataclass(frozen=True, slots=True)
class PandasEngine:
    """Counts the distinct units of a `pandas.DataFrame` in memory."""

    def cells(self, frame: pd.DataFrame, question: Selection) -> CellCounts:
        """See `Engine.cells`."""
        frame = _with_levels(frame, question)
        summed = question.summed_columns
        for argument in ("unit", "by", "order_by"):
            check_columns(argument, getattr(question, argument), list(frame.columns))
        check_columns("sum", summed, list(frame.columns))
        read = {name: _column(frame, name) for name in (*question.unit, *question.by, *question.order_by, *summed)}
        for name in question.by:
            _check_key(read[name])
        for name in summed:
            read[name] = _whole_numbers(read[name])
        selected = None if question.where is None else selected_rows(frame, question.where)
        rows = {name: column if selected is None else column.loc[selected] for name, column in read.items()}
        columns = _units((rows[name] for name in question.unit), drawn=question.one_cell in DRAWN)
        columns |= {f"o{i}": _ranks(rows[name]) for i, name in enumerate(question.order_by)}
        # Groups are of keys, in which what is missing is told apart already; order and units are those of the values.
        rows |= {name: grouped_values(rows[name], groups) for name, groups in question.bins.items()}
        columns |= {f"b{i}": _keys(rows[name]) for i, name in enumerate(question.by)}
        if question.bounds:
            size = len(frame) if selected is None else int(selected.sum())
            columns = {"b0": np.zeros(size, dtype=np.int64)} | columns
            columns["v"] = rows[summed[0]].array if summed else np.ones(size, dtype=np.int64)
        answer = cells_in_memory(_table(columns), question)
        return CellCounts.of(answer, question.by, lambda keys, name: from_arrow(keys, key_dtype(rows[name].dtype)))

    def tally(self, frame: pd.DataFrame, question: Selection) -> Tally:
        """See `Engine.tally`."""
        frame = _with_levels(frame, question)
        check_columns("unit", question.unit, list(frame.columns))
        selected = None if question.where is None else selected_rows(frame, question.where)
        columns = _units(_column(frame, name) for name in question.unit)
        columns["hit"] = np.ones(len(frame), dtype=bool) if selected is None else selected
        return tally_in_memory(_table(columns), question)

    def units(self, frame: pd.DataFrame, unit: tuple[str, ...]) -> Units:
        """See `Engine.units`."""
        frame = _with_columns(frame, unit)
        check_columns("unit", unit, list(frame.columns))
        columns = [_column(frame, name) for name in unit]
        for column in columns:
            _check_unit(column)
        if any(map(_holds_several_types, columns)):
            return Units(mixed=True)
        if any(map(_holds_rounded, columns)):
            return Units(rounded=True)
        texts = {f"u{i}": column for i, column in enumerate(columns) if _holds_text(column)}
        if not texts:
            return Units()
        rows = _units(columns) | {name: column.astype(_TEXT) for name, column in texts.items()}
        return units_in_memory(_table(rows), len(unit), Doubts(texts=tuple(texts)))


def _column(frame: pd.DataFrame, name: str) -> pd.Series[Any]:
    """Return a column as the values that it holds: Arrow's are not their codes."""
    column = frame[name]
    return plain(column) if isinstance(column.dtype, pd.ArrowDtype) else column


def _with_levels(frame: pd.DataFrame, question: Selection) -> pd.DataFrame:
    """Return a frame in which the index levels that a question names are columns, and intervals are their text."""
    where = question.where.columns if isinstance(question.where, Predicate) else ()
    own = (*question.unit, *question.by, *question.order_by, *question.summed_columns)
    frame = _with_columns(frame, (*own, *where))
    texts = {name: _as_text(frame[name]) for name in question.by if holds_intervals(frame, name)}
    return frame.assign(**texts) if texts else frame


def _with_columns(frame: pd.DataFrame, names: Iterable[str]) -> pd.DataFrame:
    levels = [name for name in dict.fromkeys(names) if name in frame.index.names]
    for name in levels:
        if name in frame.columns:
            raise ArgumentError(f"{name!r} is a column and a level of the index: rename one of them.")
        if list(frame.index.names).count(name) > 1:
            raise ArgumentError(f"the index has two levels {name!r}: rename one of them.")
    columns = {name: pd.Series(frame.index.get_level_values(name).array, index=frame.index) for name in levels}
    return frame.assign(**columns) if columns else frame


def holds_intervals(frame: pd.DataFrame, name: str) -> bool:
    """Return whether a column holds intervals, as `pandas.cut` makes them."""
    if list(frame.columns).count(name) != 1:
        return False
    column = frame[name]
    dtype = column.dtype.categories.dtype if isinstance(column.dtype, pd.CategoricalDtype) else column.dtype
    return isinstance(dtype, pd.IntervalDtype)


def _as_text(column: pd.Series[Any]) -> pd.Series[Any]:
    categories: pd.Series[Any] = column.astype("category")
    return categories.cat.rename_categories(list(categories.cat.categories.astype(_TEXT)))


def _table(columns: dict[str, Any]) -> Any:
    """Return an Arrow table; what Arrow says of a value it cannot hold is not passed on."""
    import pyarrow as pa

    problem = ""
    try:
        return pa.table({name: pa.array(column, from_pandas=True) for name, column in columns.items()})
    except (pa.ArrowException, ValueError, TypeError) as error:
        problem = type(error).__name__
    raise not_counted(problem)


def _check_unit(column: pd.Series[Any]) -> None:
    """Raise `ArgumentError` where what is equal among a unit's values is not known, or not to every engine."""
    if _is_foreign(column.dtype):
        raise ArgumentError(
            f"unit column {column.name!r} has dtype {column.dtype}, whose values are not compared; convert it, for "
            "example with astype('str')."
        )


def _is_foreign(dtype: Any) -> bool:
    import pyarrow as pa

    if isinstance(dtype, pd.CategoricalDtype):
        return _is_foreign(dtype.categories.dtype)
    if isinstance(dtype, pd.ArrowDtype):
        kind = dtype.pyarrow_dtype
        known = kind_of_dtype(dtype) is not None or pa.types.is_binary(kind) or pa.types.is_time(kind)
        return not known or (kind_of_dtype(dtype) == "decimal" and kind.precision > DIGITS)
    return pd.api.types.is_timedelta64_dtype(dtype)


def _check_key(column: pd.Series[Any]) -> None:
    """Raise `ArgumentError` where a by-column's values, in any row, cannot name cells."""
    values, sparse = _values(column), isinstance(column.dtype, pd.SparseDtype)
    if kind_of_dtype(column.dtype) is None or sparse or _is_foreign(column.dtype):
        conversion = ".sparse.to_dense()" if sparse else "astype('str')"
        raise ArgumentError(
            f"by column {column.name!r} has dtype {column.dtype}, which cannot name cells; convert it, for example "
            f"with {conversion}."
        )
    if values.dtype == object and pd.api.types.infer_dtype(values, skipna=True) not in ("string", "empty"):
        raise ArgumentError(
            f"by column {column.name!r} has dtype object and does not hold text alone; give it one dtype, for example "
            "with astype('str'), convert_dtypes() or pd.to_datetime."
        )


def _keys(column: pd.Series[Any]) -> Any:
    """Return a by-column in which NaN is missing, 0.0 is -0.0, and a time outside the years 1 to 9999 is missing."""
    kind = kind_of_dtype(column.dtype)
    if kind in ("timestamp", "instant") and not isinstance(column.dtype, pd.CategoricalDtype):
        times = column if kind == "timestamp" else column.dt.tz_convert("UTC")
        return column if times.dt.unit == "ns" else column.where(times.dt.year.between(1, 9999).fillna(False))
    if kind == "real":
        return column.to_numpy(dtype="float64", na_value=np.nan) + 0.0
    if isinstance(column.dtype, pd.CategoricalDtype):
        return column
    named = key_dtype(column.dtype)
    return column if column.dtype == named else column.astype(named)


def _whole_numbers(column: pd.Series[Any]) -> pd.Series[Any]:
    """Return a summed column, or raise `ArgumentError` where its type is not one of whole numbers."""
    dtype: Any = column.dtype
    kind = kind_of_dtype(dtype)
    if pd.api.types.is_object_dtype(dtype) and pd.api.types.infer_dtype(column, skipna=True) == "empty":
        return column.astype("Int64")  # it says nothing of what it would hold
    scaled = kind == "decimal" and dtype.pyarrow_dtype.scale == 0 and dtype.pyarrow_dtype.precision <= DIGITS
    if not (kind == "integer" or scaled) or isinstance(dtype, pd.CategoricalDtype | pd.SparseDtype):
        raise not_whole(str(column.name), dtype)
    return column


def _units(columns: Iterable[pd.Series[Any]], *, drawn: bool = False) -> dict[str, Any]:
    """Return u0, u1, … in a form DuckDB compares as pandas does: numbers, text or codes, missing ones NULL.

    A code depends on the other units: with `drawn` the numbers of units that have one are n0, n1, ….
    """
    units = {}
    for i, column in enumerate(columns):
        _check_unit(column)
        dtype = column.dtype
        if isinstance(dtype, pd.StringDtype) or (isinstance(dtype, np.dtype) and dtype.kind in "iu"):
            units[f"u{i}"] = column.array
        elif drawn and pd.api.types.is_float_dtype(dtype):
            units[f"u{i}"] = column.to_numpy(dtype="float64", na_value=np.nan) + 0.0
        else:
            codes, distinct = _factorized(column)
            units[f"u{i}"] = _coded(codes)
            if drawn:
                numbers = np.array([*map(_number, distinct), 0], dtype=np.int64)
                units[f"n{i}"] = numbers[codes]
    return units


def _number(value: Any) -> int:
    """Return the number of a value in a unit's name, as `engines.statements` has it."""
    key = canonical_key(value)
    if isinstance(key, float) and key.is_integer() and abs(key) < WHOLE:
        key = int(key)
    text = str(key).lower() if isinstance(key, bool) else str(key)
    if isinstance(key, Decimal):
        text = f"{key:f}".rstrip("0").rstrip(".") if "." in f"{key:f}" else f"{key:f}"
    if isinstance(key, pd.Timestamp):
        text = str(key if key.tz is None else key.tz_convert(None))
        text = text.rstrip("0") if "." in text else text
    return number_of(text)


def _ranks(column: pd.Series[Any]) -> Any:
    """Return where each value stands in the order of its kind, which of categories is that of what they are."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        column = column.astype(column.cat.categories.dtype)
    codes, _ = _factorized(column, sort=True)
    return _coded(codes)


def _coded(codes: npt.NDArray[np.intp]) -> Any:
    return pd.arrays.IntegerArray(codes.astype(np.int64), codes < 0)


def _factorized(column: pd.Series[Any], *, sort: bool = False) -> tuple[npt.NDArray[np.intp], Any]:
    problem = ""
    try:
        return column.factorize(sort=sort)
    except (TypeError, NotImplementedError) as error:
        problem = type(error).__name__
    raise ArgumentError(
        f"column {column.name!r} holds values that cannot be {'ordered' if sort else 'compared'} ({problem}); give it "
        "one dtype, for example with astype('str')."
    )


#: What pandas calls columns of objects that may have several types; to it a time among dates is a date.
_PERHAPS_MIXED = frozenset({"mixed", "mixed-integer", "date"})


def _holds_several_types(column: pd.Series[Any]) -> bool:
    """Return whether values are of several types, such as text and numbers; all numbers are of one type."""
    values = _values(column)
    if values.dtype != object or pd.api.types.infer_dtype(values, skipna=True) not in _PERHAPS_MIXED:
        return False
    return len({_type(value) for value in values[values.notna()]}) > 1


def _holds_rounded(column: pd.Series[Any]) -> bool:
    """Return whether reals are so large that two whole numbers, which a missing value made reals, may be one."""
    values = _values(column)
    if values.dtype == object:
        reals = np.array([value for value in values if isinstance(value, float)], dtype="float64")
    elif pd.api.types.is_float_dtype(values.dtype):
        reals = values.to_numpy(dtype="float64", na_value=np.nan)
    else:
        return False
    exact = {2: 2.0**11, 4: 2.0**24}.get(getattr(values.dtype, "itemsize", 8), 2.0**53)
    reals = np.abs(reals[np.isfinite(reals)])
    return bool((reals >= exact).any())


def _holds_text(column: pd.Series[Any]) -> bool:
    """Return whether values are text."""
    import pyarrow as pa

    values = _values(column)
    if isinstance(values.dtype, pd.ArrowDtype):
        kind = values.dtype.pyarrow_dtype
        return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))
    return isinstance(values.dtype, pd.StringDtype) or pd.api.types.infer_dtype(values, skipna=True) == "string"


def _values(column: pd.Series[Any]) -> Any:
    """Return the values of a column; of categories those that some row has, each once."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        codes = np.unique(column.cat.codes)
        return column.cat.categories.take(codes[codes >= 0])
    return column


def _type(value: Any) -> object:
    if isinstance(value, (bool, np.bool_)):
        return bool
    return next((kind for kind in (str, bytes, Number, datetime) if isinstance(value, kind)), type(value))


def grouped_values(column: pd.Series[Any], groups: Bins) -> pd.Series[Any]:
    """Return the name of each value's group, missing where the value is.

    Raises `ArgumentError` if the column holds no values of the kind that is grouped.
    """
    if isinstance(column.dtype, pd.CategoricalDtype):  # what its categories are, as elsewhere
        categories: Any = column.cat.categories
        values = pd.array(categories).take(column.cat.codes.to_numpy(), allow_fill=True)
        column = pd.Series(values, index=column.index, name=column.name)
    kind = kind_of_dtype(column.dtype)
    if column.dtype == object and pd.api.types.infer_dtype(column, skipna=True) == "empty":
        # A column that says nothing of what it would hold has no group.
        return pd.Series(pd.array([None] * len(column), dtype="str"), index=column.index, name=column.name)
    groups.holds(None if isinstance(column.dtype, pd.SparseDtype) else kind)
    texts: Any
    if isinstance(groups.edges, str):
        codes, distinct = column.factorize()
        texts = pd.Series([*map(groups.of_day, _days(distinct)), None], dtype="str").array.take(codes)
    else:
        # A value is in the group of as many edges as it is not below.
        frame, places = pd.DataFrame({column.name: column}), np.zeros(len(column), dtype=np.int64)
        for condition in groups.below:
            places += ~_hits(frame, condition)
        places[plain(column).isna().to_numpy(dtype=bool)] = -1
        texts = pd.Categorical.from_codes(places, pd.Index(groups.names, dtype="str"))
    return pd.Series(texts, index=column.index, name=column.name)


def _days(distinct: Any) -> Iterator[date | None]:
    """Yield dates, or times, of the years 1 to 9999; others are no value of Python's, and missing."""
    import pyarrow as pa
    import pyarrow.compute as pc

    moments = pa.array(distinct, from_pandas=True)
    for moment, year in zip(moments, pc.year(moments).to_pylist(), strict=True):
        yield moment.as_py() if year is not None and 1 <= year <= 9999 else None


def _hits(frame: pd.DataFrame, condition: Condition) -> npt.NDArray[np.bool_]:
    hits = selected_rows(frame, condition)
    assert hits is not None
    return hits
