"""Which rows of a pandas frame satisfy a predicate."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt
import pandas as pd

from pkdp_pipeline.engines.layouts import plain_column, plain_table, plain_type, untyped
from pkdp_pipeline.engines.question import wrong_where
from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.model.columns import check_columns
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
