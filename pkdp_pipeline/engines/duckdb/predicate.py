"""A predicate as a condition of DuckDB's SQL."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby

from pkdp_pipeline.engines.duckdb.relation_types import is_number
from pkdp_pipeline.engines.duckdb.statements import literal, quoted
from pkdp_pipeline.model.predicate import Column, Condition, Conjunction, Constant, Predicate, check_families

_NUMBERS = frozenset(
    [sign + size for sign in ("", "U") for size in ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT")]
    + ["FLOAT", "DOUBLE"]
)


def predicate_sql(predicate: Predicate, kinds: Mapping[str, str]) -> str:
    """Return the SQL condition of a predicate; it is true or false, never NULL.

    `kinds` has the relation's columns and their SQL types.

    Raises
    ------
    ArgumentError
        See `check_families`.
    """
    check_families(predicate, {name: _family(kind) for name, kind in kinds.items()})
    return _sql(predicate, kinds)


def _family(kind: str) -> str:
    """Return what a column of this SQL type can be compared with."""
    if kind.endswith("]"):
        return kind  # a list or an array
    if kind == "VARCHAR" or kind.startswith("ENUM") or kind == "UUID":
        return "text"
    if kind == "TIMESTAMP WITH TIME ZONE":
        return "instant"
    if kind.startswith(("DATE", "TIME")):
        return "time"
    if kind in _NUMBERS or kind.startswith("DECIMAL"):
        return "number"
    return "boolean" if kind == "BOOLEAN" else kind


def _sql(predicate: Predicate, kinds: Mapping[str, str]) -> str:
    if isinstance(predicate, Condition):
        test = _test(predicate, kinds)
        return f"(NOT {test})" if predicate.negated else test
    word = " AND " if isinstance(predicate, Conjunction) else " OR "
    return f"({word.join(_sql(part, kinds) for part in predicate.parts)})"


def _test(condition: Condition, kinds: Mapping[str, str]) -> str:
    column, operand = _column(condition.column, kinds), condition.operand
    if condition.operator == "isna":
        return f"({column} IS NULL)"
    if isinstance(operand, Column):
        compared = f"{column} {condition.operator} {_column(operand.name, kinds)}"
    elif condition.operator == "in":
        # Whole numbers and reals apart: one list makes all of them doubles.
        lists = groupby(sorted(condition.constants, key=_is_real), key=_is_real)
        compared = " OR ".join(f"{column} IN ({', '.join(map(_constant, constants))})" for _, constants in lists)
    else:
        compared = f"{column} {condition.operator} {_constant(condition.constants[0])}"
    return f"coalesce({compared}, false)"


def _column(name: str, kinds: Mapping[str, str]) -> str:
    column = quoted(name)
    # NaN is missing, as in pandas; DuckDB would take it for the largest number, equal to itself.
    return f"(CASE WHEN {is_number(column)} THEN {column} END)" if kinds[name] in ("FLOAT", "DOUBLE") else column


def _is_real(constant: Constant) -> bool:
    return isinstance(constant, float)


def _constant(constant: Constant) -> str:
    if isinstance(constant, str):
        return literal(constant)
    return f"{constant!r}::DOUBLE" if isinstance(constant, float) else str(constant).lower()
