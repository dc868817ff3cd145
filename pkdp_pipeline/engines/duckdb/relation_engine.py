"""Counting the units of a DuckDB relation, in its own connection and in one statement."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pkdp_pipeline.engines.duckdb.predicate import predicate_sql
from pkdp_pipeline.engines.duckdb.relation_types import check_one_type, comparable, nameable, to_public
from pkdp_pipeline.engines.duckdb.rows import Rows, asked
from pkdp_pipeline.engines.duckdb.statements import quoted
from pkdp_pipeline.engines.question import CellCounts, Tally, Units, numbered
from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.model.predicate import Predicate
from pkdp_pipeline.model.predicate.columns import check_columns
from pkdp_pipeline.model.question import Selection

if TYPE_CHECKING:
    import duckdb


@dataclass(frozen=True, slots=True)
class RelationEngine:
    """Counts the distinct units of a `duckdb.DuckDBPyRelation`; nothing is left in its connection."""

    def cells(self, frame: duckdb.DuckDBPyRelation, question: Selection) -> CellCounts:
        """See `Engine.cells`."""
        source = _Source(frame)
        selected = [
            *source.units(question.unit),
            *(f"{source.key(name)} AS b{i}" for i, name in enumerate(question.by)),
            *(f"{source.ordering(name)} AS o{i}" for i, name in enumerate(question.order_by)),
        ]
        answer = Rows(frame, tuple(selected), source.condition(question.where)).cells(question)
        return CellCounts.of(answer, question.by, lambda keys, name: to_public(keys, source.kinds[name]))

    def tally(self, frame: duckdb.DuckDBPyRelation, question: Selection) -> Tally:
        """See `Engine.tally`."""
        source = _Source(frame)
        selected = [*source.units(question.unit), f"{source.condition(question.where)} AS hit"]
        return Rows(frame, tuple(selected)).tally(len(question.unit))

    def units(self, frame: duckdb.DuckDBPyRelation, unit: tuple[str, ...]) -> Units:
        """See `Engine.units`."""
        source = _Source(frame)
        selected = source.units(unit)
        named = zip(numbered("u", len(unit)), (source.kinds[name] for name in unit), strict=True)
        texts = [short for short, kind in named if kind == "VARCHAR" or kind.startswith("ENUM(")]
        return Rows(frame, tuple(selected)).units(len(unit), texts)


ENGINE = RelationEngine()


class _Source:
    """A relation's columns as SQL."""

    def __init__(self, relation: duckdb.DuckDBPyRelation) -> None:
        self._columns, kinds = asked(lambda: (list(relation.columns), [str(kind) for kind in relation.types]))
        self.kinds = dict(zip(self._columns, kinds, strict=True))

    def units(self, unit: tuple[str, ...]) -> list[str]:
        check_columns("unit", unit, self._columns)
        for column in unit:
            check_one_type(column, self.kinds[column])
        return [f"{comparable(quoted(name), self.kinds[name])} AS u{i}" for i, name in enumerate(unit)]

    def key(self, name: str) -> str:
        check_columns("by", [name], self._columns)
        return nameable(name, quoted(name), self.kinds[name])

    def ordering(self, name: str) -> str:
        check_columns("order_by", [name], self._columns)
        return comparable(quoted(name), self.kinds[name])

    def condition(self, where: Any) -> str:
        if where is None:
            return "true"
        if isinstance(where, Predicate):
            return predicate_sql(where, self.kinds)
        raise ArgumentError(
            "where must be a column name or a query string when the frame is a DuckDB relation, not "
            f"{type(where).__name__}; anything else: filter the relation itself, or add a boolean column to it."
        )
