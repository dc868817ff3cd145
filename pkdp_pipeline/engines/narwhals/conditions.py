"""The condition of a query string as a Narwhals expression."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from datetime import date, datetime
from types import MappingProxyType
from typing import Any

import narwhals.stable.v2 as nw

from pkdp_pipeline.engines.narwhals.columns import comparable, family
from pkdp_pipeline.engines.narwhals.naming import column as by_name
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
    no_offset,
    parse_query,
)

__all__ = ["condition"]

_OPERATORS: Mapping[str, Callable[[Any, Any], Any]] = MappingProxyType(
    {"==": operator.eq, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
)
_FLIPPED: Mapping[str, str] = MappingProxyType({"==": "==", "<": ">", "<=": ">=", ">": "<", ">=": "<="})
_MOMENT = re.compile(r"\d{4}-\d\d-\d\d([ T]\d\d:\d\d(:\d\d(\.\d{1,6})?)?)?(Z|[+-]\d\d:\d\d)?")


def condition(where: Any, schema: Mapping[str, Any], *, spark: bool = False) -> nw.Expr | None:
    """Return an expression that is true or false for every row, or None where every row is meant.

    With `spark`, timestamps without a zone are written as text: PySpark takes a Python one for an instant.

    Raises
    ------
    ArgumentError
        If `where` is neither a boolean column nor a query string that can be read.
    """
    if where is None:
        return None
    if not isinstance(where, str):
        raise ArgumentError(
            f"where must be a column name or a query string for a frame of this kind, not {type(where).__name__}; "
            "anything else: filter the frame itself, or add a boolean column to it."
        )
    if where in schema:
        if not isinstance(schema[where], nw.Boolean):
            raise ArgumentError(f"where must be boolean; column {where!r} has type {schema[where]}.")
        return by_name(where).fill_null(False)
    tree = parse_query(where, {name: family(dtype) for name, dtype in schema.items()}, frame="frame")
    return _Expressions(schema, spark).of(tree)


class _Expressions:
    def __init__(self, schema: Mapping[str, Any], spark: bool) -> None:
        self._schema = schema
        self._spark = spark

    def of(self, node: Node) -> nw.Expr:
        match node:
            case Conjunction(parts=parts):
                return nw.all_horizontal(*map(self.of, parts), ignore_nulls=False)
            case Disjunction(parts=parts):
                return nw.any_horizontal(*map(self.of, parts), ignore_nulls=False)
            case Negation(part=part):
                return ~self.of(part)
            case Missing(column=column):
                return self._column(column).is_null()
            case Flag(column=column):
                return self._column(column).fill_null(False)
            case Membership(column=column, values=values):
                return self._membership(column, [value.value for value in values])
            case Comparison(left=left, operator=sign, right=right):
                return self._comparison(left, sign, right)

    def _comparison(self, left: Column | Value, sign: str, right: Column | Value) -> nw.Expr:
        if isinstance(left, Value):
            left, sign, right = right, _FLIPPED[sign], left
        if isinstance(left, Value):
            raise ArgumentError("where compares a constant with a constant; compare a column with one.")
        if isinstance(right, Value):
            return self._with_constant(left, sign, right.value)
        compared: nw.Expr = _OPERATORS[sign](self._column(left), self._column(right))
        return compared.fill_null(False)

    def _membership(self, column: Column, constants: list[Any]) -> nw.Expr:
        dtype = self._schema[column.name]
        limits = _limits(dtype)
        if limits is not None and all(isinstance(constant, int) for constant in constants):
            constants = [constant for constant in constants if limits[0] <= constant <= limits[1]] or constants[:1]
        listable = family(dtype) == "text" or (limits is not None and all(_inside(limits, one) for one in constants))
        if listable:
            return self._column(column).is_in(constants).fill_null(False)
        found = [self._with_constant(column, "==", constant) for constant in constants]
        return nw.any_horizontal(*found, ignore_nulls=False)

    def _with_constant(self, column: Column, sign: str, constant: Any) -> nw.Expr:
        dtype, values = self._schema[column.name], self._column(column)
        limits = _limits(dtype)
        if limits is not None and isinstance(constant, int) and not _inside(limits, constant):
            # Outside the column's range a constant compares with all its values alike.
            return ~values.is_null() if _OPERATORS[sign](0, constant) else values.is_null() & nw.lit(False)
        if isinstance(dtype, (nw.Date, nw.Datetime)):
            constant = _moment(column.name, dtype, constant)
        literal = nw.lit(constant)
        if self._spark and isinstance(constant, datetime) and constant.tzinfo is None:
            literal = nw.lit(constant.isoformat(sep=" ")).cast(nw.Datetime("us"))
        compared: nw.Expr = _OPERATORS[sign](values, literal)
        return compared.fill_null(False)

    def _column(self, column: Column) -> nw.Expr:
        dtype = self._schema[column.name]
        if family(dtype) in ("text", "number"):
            return comparable("where", column.name, dtype)
        return by_name(column.name)


def _limits(dtype: Any) -> tuple[int, int] | None:
    """Return the least and the greatest value of a type of whole numbers."""
    whole = re.fullmatch(r"(U?)Int(\d+)", str(dtype))
    if whole is None:
        return None
    bits = int(whole[2])
    return (0, 2**bits - 1) if whole[1] else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def _inside(limits: tuple[int, int], constant: Any) -> bool:
    return isinstance(constant, int) and limits[0] <= constant <= limits[1]


def _moment(name: str, dtype: Any, text: str) -> date | datetime:
    """Return the constant that a date or a timestamp is compared with."""
    zone = getattr(dtype, "time_zone", None)
    problem = not _MOMENT.fullmatch(text)
    if not problem:
        try:
            moment = datetime.fromisoformat(text)
        except ValueError:
            problem = True
    if not problem and isinstance(dtype, nw.Date) and len(text) == len("2013-01-02"):
        return moment.date()
    if problem or isinstance(dtype, nw.Date) or (moment.tzinfo is not None and zone is None):
        written = "2013-01-02" if isinstance(dtype, nw.Date) else "2013-01-02 03:04:05"
        raise ArgumentError(
            f"where compares column {name!r}, which has type {dtype}, with a text that it cannot equal; write the "
            f"constant as {written!r}."
        )
    if zone is not None and moment.tzinfo is None:
        raise ArgumentError(no_offset(name))
    return moment
