"""Reading a query string: names, families and everything that is refused, before any data are read."""

from __future__ import annotations

import ast
import io
import math
import re
import tokenize
from collections.abc import Mapping

from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.model.predicate.columns import check_columns
from pkdp_pipeline.model.predicate.tree import (
    Column,
    Comparison,
    Conjunction,
    Disjunction,
    Flag,
    Membership,
    Missing,
    Negation,
    Node,
    Operand,
    Value,
)

__all__ = ["parse_query"]

_COMPARISONS: dict[type[ast.cmpop], str] = {
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
}
#: Text, in which a backtick is a character, and names in backticks; a backtick alone is unclosed.
_QUOTED = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|`[^`]*`|`""")
_MISSING = {"isna": True, "isnull": True, "notna": False, "notnull": False}
_SUPPORTED = (
    "columns, constants, comparisons, in and not in lists, isna() and notna(), and, or, not, &, |, ~ and parentheses"
)

#: What a query string does that it may not, by the kind of node.
_DOES: dict[type[ast.AST], str] = {
    ast.Call: "calls a function",
    ast.BinOp: "calculates",
    ast.UnaryOp: "calculates",
    ast.Attribute: "asks for a part of a column",
    ast.Subscript: "asks for a part of a column",
    ast.Compare: "compares a comparison",
    ast.BoolOp: "compares a condition",
    ast.cmpop: "compares by 'is'",
    ast.Name: "has a column where a constant is needed",
}


def parse_query(query: str, families: Mapping[str, str], *, frame: str) -> Node:
    """Return the tree of a query string.

    Parameters
    ----------
    query : str
    families : mapping
        The frame's columns, each with what it can be compared with: "text", "time", "number", "boolean", or the
        name of a type that compares with nothing but its own kind.
    frame : str
        What messages call the frame, for example "relation".

    Raises
    ------
    ArgumentError
        If the query uses anything but columns, constants, comparisons, in and not in lists, isna() and
        notna(), and, or, not and parentheses, names a column that does not exist, or compares text with
        numbers.
    """
    plain, names = _without_backticks(query)
    tree = _parsed(plain)
    if tree is None:
        raise ArgumentError(
            f"where is neither a column of the {frame} nor a query string that can be read; check its syntax: it is "
            "written like age >= 65 and town == 'Ely'."
        )
    node = _read(_Reader(families, names, frame), tree)
    if node is None:
        raise ArgumentError("where is nested too deeply; write it with fewer parentheses.")
    return node


def _parsed(text: str) -> ast.expr | None:
    try:
        return ast.parse(_loosened(text), mode="eval").body
    except (SyntaxError, ValueError, tokenize.TokenError, RecursionError, MemoryError):
        return None


def _read(reader: _Reader, tree: ast.expr) -> Node | None:
    try:
        return reader.condition(tree)
    except RecursionError:
        return None


def _without_backticks(query: str) -> tuple[str, dict[str, str]]:
    """Replace each name in backticks by a plain name; return the text and what the names stand for."""
    names: dict[str, str] = {}

    def plain(found: re.Match[str]) -> str:
        text = found[0]
        if not text.startswith("`"):
            return text
        if len(text) < 2:
            raise ArgumentError("where has an unclosed backtick.")
        names[f"pkdp_backtick_{len(names)}"] = text[1:-1]
        return f" pkdp_backtick_{len(names) - 1} "

    return _QUOTED.sub(plain, query), names


def _loosened(query: str) -> str:
    """Give & and | the precedence of `and` and `or`, as pandas does in query strings."""
    words = {"&": "and", "|": "or", "~": "not"}
    tokens = []
    for token in tokenize.generate_tokens(io.StringIO(query.strip()).readline):
        word = words.get(token.string) if token.type == tokenize.OP else None
        tokens.append((tokenize.NAME, word) if word else (token.type, token.string))
    return tokenize.untokenize(tokens).strip()


class _Reader:
    def __init__(self, families: Mapping[str, str], names: Mapping[str, str], frame: str) -> None:
        self._families = families
        self._names = names
        self._frame = frame

    def condition(self, node: ast.expr) -> Node:
        if isinstance(node, ast.BoolOp):
            parts = tuple(self.condition(part) for part in node.values)
            return Conjunction(parts=parts) if isinstance(node.op, ast.And) else Disjunction(parts=parts)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return Negation(part=self.condition(node.operand))
        if isinstance(node, ast.Compare):
            return self._comparison(node)
        if isinstance(node, ast.Call):
            return self._missing(node)
        if isinstance(node, ast.Name):
            column = self._column(node)
            self._check_comparable(column, Value(value=True))
            return Flag(column=column)
        raise self._refused(node)

    def _comparison(self, node: ast.Compare) -> Node:
        operands = [node.left, *node.comparators]
        parts = [
            self._compare(left, operator, right)
            for left, operator, right in zip(operands, node.ops, operands[1:], strict=False)
        ]
        return parts[0] if len(parts) == 1 else Conjunction(parts=tuple(parts))

    def _compare(self, left: ast.expr, operator: ast.cmpop, right: ast.expr) -> Node:
        if isinstance(operator, (ast.In, ast.NotIn)):
            if not isinstance(right, (ast.List, ast.Tuple, ast.Set)) or not right.elts:
                raise ArgumentError("where: write 'in' with a list of constants, for example column in ['a', 'b'].")
            column, values = self._column_of(left), tuple(self._value(value) for value in right.elts)
            for value in values:
                self._check_comparable(column, value)
            inside = Membership(column=column, values=values)
            return inside if isinstance(operator, ast.In) else Negation(part=inside)
        if type(operator) not in _COMPARISONS:
            raise self._refused(operator)
        first, second, sign = self._operand(left), self._operand(right), _COMPARISONS[type(operator)]
        if isinstance(first, Value) and isinstance(second, Value):
            raise ArgumentError("where compares a constant with a constant; compare a column with one.")
        self._check_comparable(first, second)
        if sign == "!=":
            return Negation(part=Comparison(left=first, operator="==", right=second))
        return Comparison(left=first, operator=sign, right=second)

    def _missing(self, node: ast.Call) -> Node:
        function = node.func
        if (
            not isinstance(function, ast.Attribute)
            or function.attr not in _MISSING
            or node.args
            or node.keywords
            or not isinstance(function.value, ast.Name)
        ):
            raise self._refused(node)
        missing = Missing(column=self._column(function.value))
        return missing if _MISSING[function.attr] else Negation(part=missing)

    def _check_comparable(self, left: Operand, right: Operand) -> None:
        """Refuse comparisons that an engine would make by converting every value of a column."""
        families = {self._family(left), self._family(right)}
        dates_as_text = families == {"time", "text"} and not (isinstance(left, Column) and isinstance(right, Column))
        if len(families) > 1 and not dates_as_text:
            raise ArgumentError(
                f"where compares {' with '.join(sorted(families))}; write the constant as the column's own type."
            )

    def _family(self, operand: Operand) -> str:
        if isinstance(operand, Column):
            return self._families[operand.name]
        if isinstance(operand.value, bool):
            return "boolean"
        return "text" if isinstance(operand.value, str) else "number"

    def _column_of(self, node: ast.expr) -> Column:
        if not isinstance(node, ast.Name):
            raise self._refused(node)
        return self._column(node)

    def _operand(self, node: ast.expr) -> Operand:
        return self._column(node) if isinstance(node, ast.Name) else self._value(node)

    def _column(self, node: ast.Name) -> Column:
        name = self._names.get(node.id, node.id)
        check_columns("where", [name], list(self._families))
        return Column(name=name)

    def _value(self, node: ast.expr) -> Value:
        negative = isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub)
        constant = node.operand if isinstance(node, ast.UnaryOp) and negative else node
        if not isinstance(constant, ast.Constant):
            raise self._refused(constant)
        value = constant.value
        if isinstance(value, (bool, str)) and not negative:
            return Value(value=value)
        if isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value):
            return Value(value=-value if negative else value)
        raise self._refused(constant)

    def _refused(self, node: ast.expr | ast.cmpop) -> ArgumentError:
        does = next((words for kind, words in _DOES.items() if isinstance(node, kind)), "holds")
        shown = "" if isinstance(node, ast.cmpop) else f": {ast.unparse(node)}"
        for short, name in self._names.items():
            shown = shown.replace(short, f"`{name}`")
        return ArgumentError(
            f"where {does}{shown}. A query string over a {self._frame} may use {_SUPPORTED}. Anything else: filter the "
            f"{self._frame} itself, or add a boolean column to it."
        )
