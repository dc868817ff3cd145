"""A filter made canonical: NOT at the leaves, unknown made false, equal parts once, what is known folded."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal

from pkdp_pipeline.duckdb.filters.constants import grid, grid_value, is_time, on_grid, other_value
from pkdp_pipeline.duckdb.filters.tree import (
    NEGATED,
    Among,
    Both,
    Compare,
    Condition,
    Constant,
    Either,
    Known,
    Member,
    Missing,
    Negation,
    NotAmong,
    NotNull,
    Order,
    Settled,
    Value,
)
from pkdp_pipeline.duckdb.tables import type_name
from pkdp_pipeline.errors import ArgumentError

__all__ = ["settled"]

_EVERY_BOOLEAN = 2


def settled(condition: Condition, columns: Mapping[str, str], *, negated: bool = False) -> Settled:
    """Return what is true exactly where the condition (where `negated`: its NOT) is true.

    NOT goes down to the comparisons, where it is exact in three-valued logic. Above them are AND and OR only,
    for which an unknown part that counts as false changes no row: both are true only because of parts that are.
    """
    if isinstance(condition, Known):
        return Known(value=condition.value != negated)
    if isinstance(condition, Negation):
        return settled(condition.condition, columns, negated=not negated)
    if isinstance(condition, (Both, Either)):
        parts = [settled(part, columns, negated=negated) for part in condition.parts]
        return _all(parts) if isinstance(condition, Both) != negated else _any(parts)
    if isinstance(condition, Missing):
        return NotNull(column=condition.column) if negated else condition
    kind = columns[condition.column]
    if isinstance(condition, Member):
        return _among(condition.column, kind, condition.constants, negated=negated)
    return _compared(condition, kind, negated=negated)


def _compared(comparison: Compare, kind: str, *, negated: bool) -> Settled:
    operator = NEGATED[comparison.operator] if negated else comparison.operator
    if operator == "=":
        return _among(comparison.column, kind, (comparison.constant,), negated=False)
    if operator == "<>":
        return _among(comparison.column, kind, (comparison.constant,), negated=True)
    return _ordered(comparison.column, kind, operator, comparison.constant)


def _ordered(column: str, kind: str, operator: Literal["<", "<=", ">", ">="], constant: Constant) -> Settled:
    values = grid(kind)
    if values is None:
        value = other_value(column, kind, constant)
        if kind not in ("FLOAT", "DOUBLE", "VARCHAR"):
            raise ArgumentError(
                f"filter orders column {column!r}, which has type {type_name(kind)}: compare it with = or IN instead."
            )
        return Order(column=column, operator=operator, value=value)
    exact = grid_value(column, kind, constant)
    below = operator in ("<", "<=")
    # Every value of the column, or none, may lie on that side.
    if values.high is not None and (exact > values.high or (exact == values.high and operator in ("<=", ">"))):
        return NotNull(column=column) if below else Known(value=False)
    if values.low is not None and (exact < values.low or (exact == values.low and operator in ("<", ">="))):
        return Known(value=False) if below else NotNull(column=column)
    rest = exact % values.step
    if rest:
        # Between two values of the column: those up to the smaller one are below it, all others above.
        return Order(column=column, operator="<=" if below else ">", value=on_grid(column, kind, exact - rest))
    return Order(column=column, operator=operator, value=on_grid(column, kind, exact))


def _among(column: str, kind: str, constants: Iterable[Constant], *, negated: bool) -> Settled:
    values = frozenset(value for value in (_one(column, kind, each) for each in constants) if value is not None)
    if kind == "BOOLEAN":
        if negated:
            values = frozenset(Value(order=each, text=str(each)) for each in (False, True)) - values
        if len(values) == _EVERY_BOOLEAN:
            return NotNull(column=column)
        negated = False
    if not values:
        return NotNull(column=column) if negated else Known(value=False)
    if is_time(kind):
        # pandas compares dates with text in order comparisons, but not in == and lists.
        return _apart(column, values) if negated else _any([_at(column, value) for value in values])
    return NotAmong(column=column, values=values) if negated else Among(column=column, values=values)


def _one(column: str, kind: str, constant: Constant) -> Value | None:
    """Return the value of the column that equals a constant; None where none can."""
    values = grid(kind)
    if values is None:
        return other_value(column, kind, constant)
    exact = grid_value(column, kind, constant)
    outside = (values.low is not None and exact < values.low) or (values.high is not None and exact > values.high)
    return None if outside or exact % values.step else on_grid(column, kind, exact)


def _at(column: str, value: Value) -> Settled:
    return _all([Order(column=column, operator=">=", value=value), Order(column=column, operator="<=", value=value)])


def _apart(column: str, values: Iterable[Value]) -> Settled:
    return _all(
        [
            _any([Order(column=column, operator="<", value=value), Order(column=column, operator=">", value=value)])
            for value in values
        ]
    )


def _all(parts: Iterable[Settled]) -> Settled:
    """Return the AND of conditions that are never unknown."""
    members: set[Settled] = set()
    excluded: dict[str, frozenset[Value]] = {}
    for part in parts:
        for each in part.parts if isinstance(part, Both) else (part,):
            if isinstance(each, NotAmong):
                excluded[each.column] = excluded.get(each.column, frozenset()) | each.values
            else:
                members.add(each)
    members |= {NotAmong(column=column, values=values) for column, values in excluded.items()}
    if Known(value=False) in members or _both_booleans(members):
        return Known(value=False)
    missing = {each.column for each in members if isinstance(each, Missing)}
    if any(isinstance(each, (Order, Among, NotAmong, NotNull)) and each.column in missing for each in members):
        return Known(value=False)
    held = {each.column for each in members if isinstance(each, (Order, Among, NotAmong))}
    implied = {NotNull(column=column) for column in held}
    return _joined(members - implied - {Known(value=True)}, both=True)


def _both_booleans(members: Iterable[Settled]) -> bool:
    """Return whether one column is asked to be true and false at once."""
    asked = [each for each in members if isinstance(each, Among) and all(_boolean(value) for value in each.values)]
    return len(asked) > len({each.column for each in asked})


def _boolean(value: Value) -> bool:
    return isinstance(value.order, bool)


def _any(parts: Iterable[Settled]) -> Settled:
    """Return the OR of conditions that are never unknown."""
    members: set[Settled] = set()
    listed: dict[str, frozenset[Value]] = {}
    for part in parts:
        for each in part.parts if isinstance(part, Either) else (part,):
            if isinstance(each, Among):
                listed[each.column] = listed.get(each.column, frozenset()) | each.values
            else:
                members.add(each)
    for column, values in listed.items():
        every = sum(map(_boolean, values)) == _EVERY_BOOLEAN
        members.add(NotNull(column=column) if every else Among(column=column, values=values))
    present = {each.column for each in members if isinstance(each, NotNull)}
    missing = {each.column for each in members if isinstance(each, Missing)}
    if Known(value=True) in members or present & missing:
        return Known(value=True)
    covered = {each for each in members if isinstance(each, (Order, Among, NotAmong)) and each.column in present}
    return _joined(members - covered - {Known(value=False)}, both=False)


def _joined(members: set[Settled], *, both: bool) -> Settled:
    if not members:
        return Known(value=both)
    if len(members) == 1:
        return members.pop()
    # A set: they are put in order where they are written.
    parts = frozenset(members)
    return Both(parts=parts) if both else Either(parts=parts)
