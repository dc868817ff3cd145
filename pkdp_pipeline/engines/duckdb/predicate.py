"""Query strings over relations: parsed, never spliced, translated to SQL that reads missing values as pandas."""

from __future__ import annotations

import ast
import io
import math
import tokenize
from collections.abc import Mapping

from pkdp_pipeline.engines.duckdb.columns import check_columns
from pkdp_pipeline.engines.duckdb.statements import literal, quoted
from pkdp_pipeline.errors import ArgumentError

__all__ = ["predicate_sql"]

_COMPARISONS: dict[type[ast.cmpop], str] = {
    ast.Eq: "=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
}
_SUPPORTED = (
    "columns, constants, comparisons, in and not in lists, isna() and notna(), and, or, not, &, |, ~ and parentheses"
)


def predicate_sql(query: str, kinds: Mapping[str, str]) -> str:
    """Return the SQL condition of a query string; it is true or false, never NULL.

    `kinds` has the relation's columns and their SQL types.

    A comparison with a missing value is false, ``!=`` and ``not in`` are true, as pandas has it for its
    default dtypes.

    Raises
    ------
    ArgumentError
        If the query uses anything but columns, constants, comparisons, in and not in lists, isna() and
        notna(), and, or, not and parentheses, names a column that does not exist, or compares text with
        numbers.
    """
    plain, names = _without_backticks(query)
    try:
        tree = ast.parse(_loosened(plain), mode="eval")
    except (SyntaxError, ValueError, tokenize.TokenError):
        raise ArgumentError(
            "where is neither a column of the relation nor a query string that can be read; check its syntax."
        ) from None
    return _Translator(kinds, names).condition(tree.body)


def _without_backticks(query: str) -> tuple[str, dict[str, str]]:
    """Replace each name in backticks by a plain name; return the text and what the names stand for."""
    pieces = query.split("`")
    if len(pieces) % 2 == 0:
        raise ArgumentError("where has an unclosed backtick.")
    names: dict[str, str] = {}
    for position in range(1, len(pieces), 2):
        plain = f"pkdp_backtick_{position}"
        names[plain] = pieces[position]
        pieces[position] = plain
    return "".join(pieces), names


def _loosened(query: str) -> str:
    """Give & and | the precedence of `and` and `or`, as pandas does in query strings."""
    words = {"&": "and", "|": "or", "~": "not"}
    tokens = []
    for token in tokenize.generate_tokens(io.StringIO(query.strip()).readline):
        word = words.get(token.string) if token.type == tokenize.OP else None
        tokens.append((tokenize.NAME, word) if word else (token.type, token.string))
    return tokenize.untokenize(tokens).strip()


def _family(kind: str) -> str:
    """Return what a column of this SQL type can be compared with."""
    if kind.startswith(("VARCHAR", "ENUM", "UUID")):
        return "text"
    if kind.startswith(("DATE", "TIME")):
        return "time"
    if kind.startswith(("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "U", "FLOAT", "DOUBLE", "DECIMAL")):
        return "number"
    return "boolean" if kind == "BOOLEAN" else kind


class _Translator:
    def __init__(self, kinds: Mapping[str, str], names: dict[str, str]) -> None:
        self._kinds = kinds
        self._names = names

    def condition(self, node: ast.expr) -> str:
        if isinstance(node, ast.BoolOp):
            joint = " AND " if isinstance(node.op, ast.And) else " OR "
            return "(" + joint.join(self.condition(part) for part in node.values) + ")"
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return f"(NOT {self.condition(node.operand)})"
        if isinstance(node, ast.Compare):
            return self._comparison(node)
        if isinstance(node, ast.Call):
            return self._missing(node)
        if isinstance(node, ast.Name):
            self._comparable(node, ast.Constant(value=True))
            return f"coalesce({self._column(node)}, false)"
        raise self._refused(node)

    def _comparison(self, node: ast.Compare) -> str:
        operands = [node.left, *node.comparators]
        parts = [
            self._compare(left, operator, right)
            for left, operator, right in zip(operands, node.ops, operands[1:], strict=False)
        ]
        return "(" + " AND ".join(parts) + ")"

    def _compare(self, left: ast.expr, operator: ast.cmpop, right: ast.expr) -> str:
        if isinstance(operator, (ast.In, ast.NotIn)):
            if not isinstance(right, (ast.List, ast.Tuple, ast.Set)) or not right.elts:
                raise ArgumentError("where: write 'in' with a list of constants, for example column in ['a', 'b'].")
            for value in right.elts:
                self._comparable(left, value)
            values = ", ".join(self._constant(value) for value in right.elts)
            inside = f"coalesce({self._operand(left)} IN ({values}), false)"
            return inside if isinstance(operator, ast.In) else f"(NOT {inside})"
        self._comparable(left, right)
        if isinstance(operator, ast.NotEq):
            return f"({self._operand(left)} IS DISTINCT FROM {self._operand(right)})"
        if type(operator) not in _COMPARISONS:
            raise self._refused(operator)
        return f"coalesce({self._operand(left)} {_COMPARISONS[type(operator)]} {self._operand(right)}, false)"

    def _missing(self, node: ast.Call) -> str:
        function = node.func
        tests = {"isna": "IS NULL", "isnull": "IS NULL", "notna": "IS NOT NULL", "notnull": "IS NOT NULL"}
        if (
            not isinstance(function, ast.Attribute)
            or function.attr not in tests
            or node.args
            or node.keywords
            or not isinstance(function.value, ast.Name)
        ):
            raise self._refused(node)
        return f"({self._column(function.value)} {tests[function.attr]})"

    def _comparable(self, left: ast.expr, right: ast.expr) -> None:
        """Refuse comparisons that the engine would make by converting every value of a column."""
        families = {self._family_of(left), self._family_of(right)}
        dates_as_text = families == {"time", "text"} and not (
            isinstance(left, ast.Name) and isinstance(right, ast.Name)
        )
        if len(families) > 1 and not dates_as_text:
            raise ArgumentError(
                f"where compares {' with '.join(sorted(families))}; write the constant as the column's own type."
            )

    def _family_of(self, node: ast.expr) -> str:
        if isinstance(node, ast.Name):
            self._column(node)
            return _family(self._kinds[self._names.get(node.id, node.id)])
        value = node.operand if isinstance(node, ast.UnaryOp) else node
        constant = value.value if isinstance(value, ast.Constant) else None
        if isinstance(constant, bool):
            return "boolean"
        return "text" if isinstance(constant, str) else "number"

    def _operand(self, node: ast.expr) -> str:
        return self._column(node) if isinstance(node, ast.Name) else self._constant(node)

    def _column(self, node: ast.Name) -> str:
        name = self._names.get(node.id, node.id)
        check_columns("where", [name], list(self._kinds))
        return quoted(name)

    def _constant(self, node: ast.expr) -> str:
        sign = ""
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            sign, node = "-", node.operand
        if not isinstance(node, ast.Constant):
            raise self._refused(node)
        value = node.value
        if isinstance(value, bool) and not sign:
            return "true" if value else "false"
        if isinstance(value, str) and not sign:
            return literal(value)
        if isinstance(value, int) and not isinstance(value, bool):
            return f"{sign}{value}"
        if isinstance(value, float) and math.isfinite(value):
            return f"{sign}{value!r}::DOUBLE"
        raise self._refused(node)

    def _refused(self, node: ast.AST) -> ArgumentError:
        return ArgumentError(
            f"where uses {type(node).__name__}, which a query string over a relation cannot; it may use {_SUPPORTED}. "
            "Anything else: filter the relation itself, or add a boolean column to it."
        )
