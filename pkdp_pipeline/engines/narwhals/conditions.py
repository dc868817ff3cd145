"""A predicate as a Narwhals expression."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from datetime import date, datetime
from types import MappingProxyType
from typing import Any

import narwhals.stable.v2 as nw

from pkdp_pipeline.engines.narwhals.columns import column as by_name
from pkdp_pipeline.engines.narwhals.columns import comparable, family
from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.model.predicate import Column, Condition, Conjunction, Predicate, check_families

__all__ = ["condition"]

_OPERATORS: Mapping[str, Callable[[Any, Any], Any]] = MappingProxyType(
    {"==": operator.eq, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
)
_MOMENT = re.compile(r"\d{4}-\d\d-\d\d([ T]\d\d:\d\d(:\d\d(\.\d{1,6})?)?)?(Z|[+-]\d\d:\d\d)?")


def condition(where: Any, schema: Mapping[str, Any], *, spark: bool = False) -> nw.Expr | None:
    """Return an expression that is true or false for every row, or None where every row is meant.

    With `spark`, timestamps without a zone are written as text: PySpark takes a Python one for an instant.

    Raises
    ------
    ArgumentError
        If `where` is no predicate, or one that cannot be asked of these columns.
    """
    if where is None:
        return None
    if not isinstance(where, Predicate):
        raise ArgumentError(
            f"where must be a column name or a query string for a frame of this kind, not {type(where).__name__}; "
            "anything else: filter the frame itself, or add a boolean column to it."
        )
    check_families(where, {name: family(dtype) for name, dtype in schema.items()})
    return _Expressions(schema, spark).of(where)


class _Expressions:
    def __init__(self, schema: Mapping[str, Any], spark: bool) -> None:
        self._schema = schema
        self._spark = spark

    def of(self, predicate: Predicate) -> nw.Expr:
        if isinstance(predicate, Condition):
            test = self._test(predicate)
            return ~test if predicate.negated else test
        joined = nw.all_horizontal if isinstance(predicate, Conjunction) else nw.any_horizontal
        return joined(*map(self.of, predicate.parts), ignore_nulls=False)

    def _test(self, condition: Condition) -> nw.Expr:
        name, operand = condition.column, condition.operand
        if condition.operator == "isna":
            return self._column(name).is_null()
        if isinstance(operand, Column):
            compared: nw.Expr = _OPERATORS[condition.operator](self._column(name), self._column(operand.name))
            return compared.fill_null(False)
        if condition.operator == "in":
            return self._membership(name, list(condition.constants))
        return self._with_constant(name, condition.operator, condition.constants[0])

    def _membership(self, column: str, constants: list[Any]) -> nw.Expr:
        dtype = self._schema[column]
        limits = _limits(dtype)
        if limits is not None and all(isinstance(constant, int) for constant in constants):
            constants = [constant for constant in constants if limits[0] <= constant <= limits[1]] or constants[:1]
        listable = family(dtype) == "text" or (limits is not None and all(_inside(limits, one) for one in constants))
        if listable:
            return self._column(column).is_in(constants).fill_null(False)
        found = [self._with_constant(column, "==", constant) for constant in constants]
        return nw.any_horizontal(*found, ignore_nulls=False)

    def _with_constant(self, column: str, sign: str, constant: Any) -> nw.Expr:
        dtype, values = self._schema[column], self._column(column)
        limits = _limits(dtype)
        if limits is not None and isinstance(constant, int) and not _inside(limits, constant):
            # Outside the column's range a constant compares with all its values alike.
            return ~values.is_null() if _OPERATORS[sign](0, constant) else values.is_null() & nw.lit(False)
        if isinstance(dtype, (nw.Date, nw.Datetime)):
            constant = _moment(column, dtype, constant)
        literal = nw.lit(constant)
        if self._spark and isinstance(constant, datetime) and constant.tzinfo is None:
            literal = nw.lit(constant.isoformat(sep=" ")).cast(nw.Datetime("us"))
        compared: nw.Expr = _OPERATORS[sign](values, literal)
        return compared.fill_null(False)

    def _column(self, column: str) -> nw.Expr:
        dtype = self._schema[column]
        if family(dtype) in ("text", "number"):
            return comparable("where", column, dtype)
        return by_name(column)


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
    return moment
