"""Which rows of a pandas frame satisfy ``where``."""

from __future__ import annotations

import ast
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from pkdp_pipeline.engines.duckdb.pandas_terms import read_terms
from pkdp_pipeline.engines.duckdb.row_by_row import refuse_whole_columns
from pkdp_pipeline.engines.duckdb.times_as_text import refuse_times_as_text
from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.model.predicate.columns import check_columns

__all__ = ["selected_rows"]

_KINDS = (
    "a boolean Series, the name of a boolean column, a pandas query string or a callable that returns such a Series"
)


def selected_rows(frame: pd.DataFrame, where: Any) -> npt.NDArray[np.bool_] | None:
    """Return one boolean per row, or None where every row is meant. A missing answer is "no".

    Raises
    ------
    ArgumentError
        If `where` cannot be read or does not give one boolean per row. Errors from inside a query or a
        callable are named by their type only: their text could quote the data.
    """
    if where is None:
        return None
    if isinstance(where, pd.Series):
        return _checked(frame, where)
    if isinstance(where, str):
        if where in frame.columns:
            return _checked(frame, frame[where])
        return _checked(frame, _evaluated(frame, where))
    if callable(where):
        return _checked(frame, _called(frame, where))
    raise ArgumentError(f"where must be {_KINDS}, not {type(where).__name__}.")


def _evaluated(frame: pd.DataFrame, query: str) -> Any:
    if "@" in query:
        raise ArgumentError(
            "where uses '@', a variable of the calling code: the same text would mean different things. Write the "
            "value into the query string, or pass a callable."
        )
    refuse_times_as_text(frame, query)
    refuse_whole_columns(query)
    problem = ""
    try:
        # The Python engine: the answer does not depend on which optional packages are installed.
        found = frame.eval(query, engine="python", local_dict={}, global_dict={})
        if not isinstance(found, pd.DataFrame):
            return found
        problem = "an assignment"
    except Exception as error:  # the query is the caller's: anything can go wrong in it
        problem = type(error).__name__
    _check_names(frame, query)
    raise ArgumentError(
        f"where could not be evaluated as a query string ({problem}). Check its syntax (it is written like age >= "
        f"65 and town == 'Ely') and that every name in it is a column; where must be {_KINDS}."
    )


def _check_names(frame: pd.DataFrame, query: str) -> None:
    """Raise `ArgumentError` where a query calls a function, or names a column that is not there."""
    tree, written = read_terms(query) or (ast.Module([], []), {})
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)]
    for call in calls:
        shown = ast.unparse(call)
        for short, name in written.items():
            shown = shown.replace(short, f"`{name}`")
        raise ArgumentError(
            f"where calls a function: {shown}. A query string may use columns, constants, comparisons, arithmetic and "
            f"methods of a column that answer for each row by itself; where must be {_KINDS}."
        )
    names = [written.get(node.id, node.id) for node in ast.walk(tree) if isinstance(node, ast.Name)]
    check_columns("where", [name for name in names if name not in ("index", *frame.index.names)], list(frame.columns))


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
