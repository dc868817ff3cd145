"""Refusing the comparisons of a pandas query string that take every time for different from every text.

In a query string pandas makes ``isin`` of ``==`` with a text, and its times are in no list of texts: the count would be
wrong without a word. With ``<=`` and ``>=`` it reads the text as a time.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd

from pkdp_pipeline.engines.duckdb.pandas_terms import read_terms
from pkdp_pipeline.errors import ArgumentError

__all__ = ["refuse_times_as_text"]


def refuse_times_as_text(frame: pd.DataFrame, query: str) -> None:
    """Raise `ArgumentError` where a query string asks whether times equal texts.

    Only the types of what is compared are looked at, in a frame without rows. What cannot be read is left to pandas.
    """
    read = read_terms(query)
    if read is None:
        return
    tree, written = read
    for term in _asked_for_texts(tree):
        kind = _dtype(frame, term, written)
        # Times under Arrow's dtypes are compared as they should be.
        plain_time = isinstance(kind, np.dtype) and kind.kind in "mM"
        if plain_time or isinstance(kind, (pd.DatetimeTZDtype, pd.PeriodDtype)):
            column = f"column {written.get(term.id, term.id)!r}" if isinstance(term, ast.Name) else "an expression"
            raise ArgumentError(
                f"where asks whether {column}, which has dtype {kind}, equals a text; in a query string pandas finds "
                "that no time does. Write \"d >= '2020-01-01' and d <= '2020-01-01'\" instead of "
                "\"d == '2020-01-01'\", or pass a callable or a boolean Series."
            )


def _asked_for_texts(tree: ast.AST) -> Iterator[ast.expr]:
    """Give each term that is compared with a text, or with a list that has one, as to whether they are equal."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            for sign, (left, right) in zip(node.ops, pairwise([node.left, *node.comparators]), strict=True):
                if isinstance(sign, (ast.Eq, ast.NotEq, ast.In, ast.NotIn)):
                    yield from (one for one, other in ((left, right), (right, left)) if _has_text(other))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "isin":
            given = [*node.args, *(word.value for word in node.keywords)]
            yield from (node.func.value for values in given if _has_text(values))


def _has_text(node: ast.expr) -> bool:
    if isinstance(node, (ast.List, ast.Tuple, ast.Set)):
        return any(_has_text(element) for element in node.elts)
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _dtype(frame: pd.DataFrame, term: ast.expr, written: Mapping[str, str]) -> Any:
    """Return the dtype of a term of the query, or None where pandas finds none."""
    empty = frame.iloc[:0].copy()
    try:
        for short, name in written.items():
            if name in frame.columns:
                empty[short] = empty[name]
        found: Any = empty.eval(ast.unparse(term), engine="python", local_dict={}, global_dict={})
        return found.dtype
    except Exception:  # the query is the caller's: what is wrong with it, pandas says when it evaluates the whole
        return None
