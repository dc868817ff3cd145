"""Refusing pandas query strings that look at more than a row: one person's row would decide whether others count.

``value > value.mean()`` counts outliers. Whoever is added moves the mean, and with it everybody's answer; a certificate
is about counts that change by one.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pkdp_pipeline.engines.duckdb.pandas_terms import read_terms
from pkdp_pipeline.errors import ArgumentError

__all__ = ["refuse_whole_columns"]

#: Methods of a column that answer for each row by itself.
_METHODS = frozenset(
    {"abs", "add", "astype", "between", "clip", "div", "eq", "fillna", "floordiv", "ge", "gt", "isin", "isna"}
    | {"isnull", "le", "lt", "mod", "mul", "ne", "notna", "notnull", "pow", "round", "sub", "truediv"}
)
_ACCESSORS = frozenset({"str", "dt"})
#: What the accessors have that is about all rows.
_OF_ALL = frozenset({"cat", "freq", "get_dummies"})


def refuse_whole_columns(query: str) -> None:
    """Raise `ArgumentError` where a query string asks something of a whole column. What cannot be read is left."""
    read = read_terms(query)
    if read is None:
        return
    tree, written = read
    for node in _of_more_than_a_row(tree):
        shown = ast.unparse(node)
        for short, name in written.items():
            shown = shown.replace(short, f"`{name}`")
        raise ArgumentError(
            f"where uses {shown!r}, which looks at more than a row: one person's rows would decide which others are "
            "counted, and no certificate holds for such a count. A query string may compare columns, constants and "
            "lists of constants, and what is computed row by row; in place of anything else write a number that is "
            "public."
        )


def _of_more_than_a_row(tree: ast.AST) -> Iterator[ast.expr]:
    called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Subscript) and not _is_accessor(node.value):
            yield node
        elif isinstance(node, ast.Attribute) and not _is_accessor(node):
            of_each_row = node.attr not in _OF_ALL if _is_accessor(node.value) else node.attr in _METHODS
            if not of_each_row or (id(node) not in called and not _is_accessor(node.value)):
                yield node
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            given = [*node.args, *(word.value for word in node.keywords)]
            if node.func.attr == "isin" and not all(_is_written(one) for one in given):
                yield node
            # With a limit, or with other rows to fill from, one row decides about the next.
            if node.func.attr == "fillna" and not (len(node.args) == len(given) == 1 and _is_written(given[0])):
                yield node
        elif isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            for sign, left, right in zip(node.ops, sides, sides[1:], strict=False):
                if isinstance(sign, ast.In | ast.NotIn) and not (_is_written(left) or _is_written(right)):
                    yield node


def _is_accessor(node: ast.expr) -> bool:
    return isinstance(node, ast.Attribute) and node.attr in _ACCESSORS


def _is_written(node: ast.expr) -> bool:
    """Return whether a term is a constant, or a list of constants."""
    if isinstance(node, ast.List | ast.Tuple | ast.Set):
        return all(_is_written(element) for element in node.elts)
    if isinstance(node, ast.UnaryOp):
        return _is_written(node.operand)
    return isinstance(node, ast.Constant)
