"""Counting the units of a DuckDB relation, in its own connection and in one statement."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pkdp_pipeline.engines.answers import cell_counts
from pkdp_pipeline.engines.duckdb.predicate import predicate_sql
from pkdp_pipeline.engines.duckdb.relation_places import WHOLE, cells_by_place
from pkdp_pipeline.engines.duckdb.relation_rows import RelationRows, asked
from pkdp_pipeline.engines.duckdb.relation_types import check_one_type, comparable, nameable, to_public
from pkdp_pipeline.engines.duckdb.statements import cells_statement, numbered, quoted, tally_statement
from pkdp_pipeline.engines.question import CellCounts, Question, Tally
from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.model.predicate import Predicate
from pkdp_pipeline.model.predicate.columns import check_columns

if TYPE_CHECKING:
    import duckdb

__all__ = ["ENGINE", "RelationEngine"]


@dataclass(frozen=True, slots=True)
class RelationEngine:
    """Counts the distinct units of a `duckdb.DuckDBPyRelation`; nothing is left in its connection."""

    def cells(self, frame: duckdb.DuckDBPyRelation, question: Question) -> CellCounts:
        """See `Engine.cells`."""
        schema = _Source(frame)
        return cell_counts(
            self.answer(frame, question), question, lambda keys, name: to_public(keys, schema.kind(name))
        )

    def answer(self, relation: duckdb.DuckDBPyRelation, question: Question) -> Any:
        """Return what `cells_statement` gives, as an Arrow table."""
        source = _Source(relation)
        keys = numbered("b", len(question.by))
        selected = [
            *source.units(question.unit),
            *(f"{source.key(name)} AS {key}" for name, key in zip(question.by, keys, strict=True)),
            *(f"{source.ordering(name)} AS o{i}" for i, name in enumerate(question.order_by)),
        ]
        condition, texts = source.condition(question.where), source.texts(question.unit)
        # Names that differ by spaces are looked for in every row, whatever the predicate says.
        marked = bool(texts) and question.where is not None
        rows = source.rows([*selected, f"{condition} AS hit"]) if marked else source.rows(selected, condition)
        if question.one_cell == "error" and [source.kind(name) in WHOLE for name in question.unit] == [True]:
            answer = cells_by_place(rows, keys=len(keys))
            if answer is not None:
                return answer
        statement = cells_statement(
            units=len(question.unit),
            keys=len(keys),
            one_cell=question.one_cell,
            orders=len(question.order_by),
            texts=texts,
            marked=marked,
        )
        return rows.run(statement)

    def tally(self, frame: duckdb.DuckDBPyRelation, question: Question) -> Tally:
        """See `Engine.tally`."""
        source = _Source(frame)
        rows = source.rows([*source.units(question.unit), f"{source.condition(question.where)} AS hit"])
        (answer,) = rows.run(tally_statement(units=len(question.unit), texts=source.texts(question.unit))).to_pylist()
        return Tally(**answer)


ENGINE = RelationEngine()


class _Source:
    """A relation's columns as SQL."""

    def __init__(self, relation: duckdb.DuckDBPyRelation) -> None:
        self._relation = relation
        self._columns, kinds = asked(lambda: (list(relation.columns), [str(kind) for kind in relation.types]))
        self._kinds = dict(zip(self._columns, kinds, strict=True))

    def kind(self, name: str) -> str:
        return self._kinds[name]

    def texts(self, unit: tuple[str, ...]) -> list[str]:
        named = zip(numbered("u", len(unit)), map(self.kind, unit), strict=True)
        return [short for short, kind in named if kind == "VARCHAR" or kind.startswith("ENUM(")]

    def units(self, unit: tuple[str, ...]) -> list[str]:
        check_columns("unit", unit, self._columns)
        for column in unit:
            check_one_type(column, self.kind(column))
        names = numbered("u", len(unit))
        return [
            f"{comparable(quoted(column), self.kind(column))} AS {name}"
            for name, column in zip(names, unit, strict=True)
        ]

    def key(self, name: str) -> str:
        check_columns("by", [name], self._columns)
        return nameable(name, quoted(name), self.kind(name))

    def ordering(self, name: str) -> str:
        check_columns("order_by", [name], self._columns)
        return comparable(quoted(name), self.kind(name))

    def condition(self, where: Any) -> str:
        if where is None:
            return "true"
        if isinstance(where, Predicate):
            return predicate_sql(where, self._kinds)
        raise ArgumentError(
            "where must be a column name or a query string when the frame is a DuckDB relation, not "
            f"{type(where).__name__}; anything else: filter the relation itself, or add a boolean column to it."
        )

    def rows(self, selected: list[str], condition: str = "true") -> RelationRows:
        return RelationRows(self._relation, tuple(selected), condition)
