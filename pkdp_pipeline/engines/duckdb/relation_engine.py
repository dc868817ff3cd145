"""Counting the units of a DuckDB relation, in its own connection and in one statement."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from pkdp_pipeline.engines.codes import MOST, answered, counted_by_code, joinable
from pkdp_pipeline.engines.duckdb.predicate import predicate_sql
from pkdp_pipeline.engines.duckdb.relation_rows import RelationRows, asked
from pkdp_pipeline.engines.duckdb.relation_types import check_one_type, comparable, nameable, to_public
from pkdp_pipeline.engines.duckdb.statements import (
    alike_statement,
    cells_statement,
    numbered,
    quoted,
    spaced_statement,
    spelled,
    tally_statement,
)
from pkdp_pipeline.engines.places import Places
from pkdp_pipeline.engines.question import CellCounts, Tally, Units
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
        keys = numbered("b", len(question.by))
        selected = [
            *source.units(question.unit),
            *(f"{source.key(name)} AS {key}" for name, key in zip(question.by, keys, strict=True)),
            *(f"{source.ordering(name)} AS o{i}" for i, name in enumerate(question.order_by)),
        ]
        rows = source.rows(selected, source.condition(question.where))
        if question.one_cell == "error" and question.unit:
            kinds = [source.kind(name) for name in question.unit]
            if (coded := cells_by_code(rows, kinds=kinds, keys=len(keys))) is not None:
                return _cell_counts(coded, source, question)
        statement = cells_statement(
            units=len(question.unit),
            keys=len(keys),
            one_cell=question.one_cell,
            orders=len(question.order_by),
            pick=spelled(keys),
        )
        return _cell_counts(rows.run(statement), source, question)

    def tally(self, frame: duckdb.DuckDBPyRelation, question: Selection) -> Tally:
        """See `Engine.tally`."""
        source = _Source(frame)
        selected = [*source.units(question.unit), f"{source.condition(question.where)} AS hit"]
        answer = source.rows(selected).run(tally_statement(units=len(question.unit)))
        (row,) = answer.to_pylist()
        return Tally(
            satisfying=int(row["satisfying"]),
            population=int(row["population"]),
            missing_unit=bool(row["missing_unit"]),
        )

    def units(self, frame: duckdb.DuckDBPyRelation, unit: tuple[str, ...]) -> Units:
        """See `Engine.units`."""
        source = _Source(frame)
        rows = source.rows(source.units(unit))
        texts = [name for name, column in zip(numbered("u", len(unit)), unit, strict=True) if source.is_text(column)]
        if not texts or not rows.run(spaced_statement(texts))["spaced"][0].as_py():
            return Units()
        return Units(alike=rows.run(alike_statement(units=len(unit), texts=texts))["alike"][0].as_py())


ENGINE = RelationEngine()


class _Source:
    """A relation's columns as SQL."""

    def __init__(self, relation: duckdb.DuckDBPyRelation) -> None:
        self._relation = relation
        self._columns, kinds = asked(lambda: (list(relation.columns), [str(kind) for kind in relation.types]))
        self._kinds = dict(zip(self._columns, kinds, strict=True))

    def kind(self, name: str) -> str:
        return self._kinds[name]

    def is_text(self, name: str) -> bool:
        return self.kind(name) == "VARCHAR" or self.kind(name).startswith("ENUM(")

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


def _cell_counts(answer: Any, source: _Source, question: Selection) -> CellCounts:
    import pyarrow.compute as pc

    several_cells = bool(pc.any(answer["several_cells"]).as_py())
    held = answer.slice(0, 0) if several_cells else answer.filter(pc.greater(answer["n"], 0))
    return CellCounts(
        keys=pd.DataFrame(
            {name: to_public(held[f"b{i}"], source.kind(name)) for i, name in enumerate(question.by)}, copy=False
        ),
        counts=held["n"].to_numpy().astype(np.int64),
        missing_unit=bool(pc.any(answer["missing_unit"]).as_py()),
        several_cells=several_cells,
    )


# By code: the cells are read first, each with its hash. What is then read of the rows is a unit and a hash; a hash that
# is no cell's, or more than one cell's, sends the question another way.
_WHOLE = frozenset({"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT"})

_Hashes = npt.NDArray[np.uint64]


def cells_by_code(rows: RelationRows, *, kinds: list[str], keys: int) -> Any:
    """Count units that all have one cell; return None where one might have several, or where hashes do not help.

    Parameters
    ----------
    rows : RelationRows
        With the columns ``u0, u1, …`` and ``b0, b1, …``.
    kinds : list of str
        The SQL types of the unit's columns.
    keys : int
        How many columns name a cell.

    Returns
    -------
    pyarrow.Table or None
        What `cells_statement` would have given.
    """
    if not rows.is_stored():
        return None
    cell = ", ".join(numbered("b", keys))
    code = f"hash({cell}, 1)"  # alone, the hash of the number 0 is 0, which is part of every other
    cells = rows.run(f"SELECT {cell}, {code} AS code FROM pkdp_rows GROUP BY {cell}")
    if not 0 < len(cells) <= MOST:
        return None
    codes = cells["code"].to_numpy()
    counted = _by_place(rows, code, codes) if len(kinds) == 1 and kinds[0] in _WHOLE else None
    counted = counted or _by_unit(rows, code, codes, units=len(kinds))
    if counted is None:
        return None
    counts, missing_unit = counted
    return answered(cells.drop_columns("code"), counts, missing_unit=missing_unit)


def _by_place(rows: RelationRows, code: str, codes: _Hashes) -> tuple[npt.NDArray[np.int64], bool] | None:
    """Let each whole-numbered unit hold its cell's code in an array that the rows are streamed to."""
    short = (codes & np.uint64(2**31 - 1)).astype(np.int32)
    order = np.argsort(short)
    if (short[order][1:] == short[order][:-1]).any():
        return None
    bounds = rows.run("SELECT min(u0) AS least, max(u0) AS most, count(u0) AS present, count(*) AS n FROM pkdp_rows")
    (found,) = bounds.to_pylist()
    places = Places.between(found["least"], found["most"], rows=found["present"]) if found["present"] else None
    if places is None:
        return None
    for batch in rows.batches(f"SELECT u0, ({code} & 2147483647)::INTEGER AS code FROM pkdp_rows WHERE u0 IS NOT NULL"):
        if not places.settle(batch.column(0).to_numpy(zero_copy_only=False), batch.column(1).to_numpy()):
            return None
    held, often = np.unique(places.settled, return_counts=True)
    at = order[np.searchsorted(short[order], held).clip(max=len(short) - 1)]
    if (short[at] != held).any():
        return None
    counts = np.zeros(len(codes), dtype=np.int64)
    counts[at] = often
    return counts, found["n"] > found["present"]


def _by_unit(rows: RelationRows, code: str, codes: _Hashes, *, units: int) -> tuple[npt.NDArray[np.int64], bool] | None:
    """Join the bits of all hashes in a unit's rows."""
    if not joinable(codes):
        return None
    unit = ", ".join(numbered("u", units))
    missing = " OR ".join(f"{name} IS NULL" for name in numbered("u", units))
    homes = f"SELECT {unit}, bit_or({code}) AS code FROM pkdp_rows GROUP BY {unit}"
    found = rows.run(
        f"SELECT CASE WHEN {missing} THEN NULL ELSE code END AS home, count(*) AS n FROM ({homes}) GROUP BY home"
    )
    if len(found) > len(codes) + 1:
        return None
    often = {row["home"]: row["n"] for row in found.to_pylist()}
    missing_unit = often.pop(None, None) is not None
    counts = counted_by_code(codes, often)
    return None if counts is None else (counts, missing_unit)
