"""The condition of a query string in DuckDB's SQL; its text is parsed, never spliced."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from pkdp_pipeline.engines.duckdb.relation_types import is_number
from pkdp_pipeline.engines.duckdb.statements import literal, quoted
from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.model.predicate import (
    Column,
    Comparison,
    Conjunction,
    Disjunction,
    Flag,
    Membership,
    Missing,
    Negation,
    Node,
    Value,
    has_offset,
    no_offset,
    parse_query,
)

__all__ = ["predicate_sql"]

_OPERATORS: Mapping[str, str] = MappingProxyType({"==": "=", "<": "<", "<=": "<=", ">": ">", ">=": ">="})
_NUMBERS = frozenset(
    [sign + size for sign in ("", "U") for size in ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT")]
    + ["FLOAT", "DOUBLE"]
)


def predicate_sql(query: str, kinds: Mapping[str, str]) -> str:
    """Return the SQL condition of a query string; it is true or false, never NULL.

    `kinds` has the relation's columns and their SQL types.

    A comparison with a missing value, of which NaN is one, is false, ``!=`` and ``not in`` are true, as pandas
    has it for its default dtypes.

    Raises
    ------
    ArgumentError
        See `parse_query`.
    """
    tree = parse_query(query, {name: _family(kind) for name, kind in kinds.items()}, frame="relation")
    return _condition(tree, kinds)


def _family(kind: str) -> str:
    """Return what a column of this SQL type can be compared with."""
    if kind.endswith("]"):
        return kind  # a list or an array
    if kind == "VARCHAR" or kind.startswith("ENUM") or kind == "UUID":
        return "text"
    if kind.startswith(("DATE", "TIME")):
        return "time"
    if kind in _NUMBERS or kind.startswith("DECIMAL"):
        return "number"
    return "boolean" if kind == "BOOLEAN" else kind


def _condition(node: Node, kinds: Mapping[str, str]) -> str:
    match node:
        case Conjunction(parts=parts):
            return "(" + " AND ".join(_condition(part, kinds) for part in parts) + ")"
        case Disjunction(parts=parts):
            return "(" + " OR ".join(_condition(part, kinds) for part in parts) + ")"
        case Negation(part=part):
            return f"(NOT {_condition(part, kinds)})"
        case Missing(column=column):
            return f"({_operand(column, kinds)} IS NULL)"
        case Flag(column=column):
            return f"coalesce({_operand(column, kinds)}, false)"
        case Membership(column=column, values=values):
            for value in values:
                _check_instant(column, value, kinds)
            listed = ", ".join(_operand(value, kinds) for value in values)
            return f"coalesce({_operand(column, kinds)} IN ({listed}), false)"
        case Comparison(left=left, operator=operator, right=right):
            _check_instant(left, right, kinds)
            _check_instant(right, left, kinds)
            return f"coalesce({_operand(left, kinds)} {_OPERATORS[operator]} {_operand(right, kinds)}, false)"


def _check_instant(column: Column | Value, value: Column | Value, kinds: Mapping[str, str]) -> None:
    """Raise `ArgumentError` for a text that is another instant in every session's time zone."""
    if not (isinstance(column, Column) and isinstance(value, Value) and isinstance(value.value, str)):
        return
    if kinds[column.name] == "TIMESTAMP WITH TIME ZONE" and not has_offset(value.value):
        raise ArgumentError(no_offset(column.name))


def _operand(operand: Column | Value, kinds: Mapping[str, str]) -> str:
    if isinstance(operand, Column):
        column = quoted(operand.name)
        # NaN is missing, as in pandas; DuckDB would take it for the largest number, equal to itself.
        nan = kinds[operand.name] in ("FLOAT", "DOUBLE")
        return f"(CASE WHEN {is_number(column)} THEN {column} END)" if nan else column
    value = operand.value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return literal(value)
    return f"{value!r}::DOUBLE" if isinstance(value, float) else f"{value}"
