"""Counting a DuckDB relation for many periods at once: what each would be asked alone, asked of all in one statement.

A question that cannot be asked of all at once, or fails, such as for a malformed row of another period, is asked
of each period alone, as if there were no others.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from pkdp_pipeline.engines import CellCounts, Engine, Tally, Units, numbered
from pkdp_pipeline.engines.relation_engine import RelationColumns, RelationEngine, to_public
from pkdp_pipeline.engines.rows import Rows
from pkdp_pipeline.engines.statements import code_of, doubtful, joinable, missing
from pkdp_pipeline.errors import PkdpError
from pkdp_pipeline.model.columns import Selection

if TYPE_CHECKING:
    import duckdb


@dataclass(slots=True, eq=False)
class Periods:
    """The rows of many periods, and what was found in them: each question is asked once, of all of them.

    Of a year of days in Parquet, 10 million rows, it takes some 1.5 times as long as a plain count of units per day and
    cell; day by day it took some 11 times as long, and 75 times where the file is not ordered by day (T5 in
    benchmarks/bench_jobs.py). `first`: SQL for the first day of the period that a row is of. `stopped`: whether the
    connection was interrupted: then nothing is asked in another way.
    """

    relation: duckdb.DuckDBPyRelation
    first: str
    stopped: bool = False
    _columns: RelationColumns | None = None
    _answers: dict[object, Any] = field(default_factory=dict)
    engine: Engine = field(default_factory=RelationEngine)

    @property
    def columns(self) -> RelationColumns:
        """The relation's columns as SQL."""
        self._columns = self._columns or RelationColumns(self.relation)
        return self._columns

    def rows(self, unit: tuple[str, ...], first: date) -> tuple[int, int, bool] | None:
        """Return how many rows a period has, how many lack the unit, and whether names are to be looked at.

        None where the period has to be asked alone, here and below.
        """

        def ask() -> Any:
            units, doubts = self.columns.units(unit), self.columns.doubts(unit)
            without = f"count(*) FILTER (WHERE {missing(len(unit)) or 'false'}) AS without"
            statement = f"SELECT p, count(*) AS n, {without}, {doubtful(doubts)} AS doubtful FROM pkdp_rows GROUP BY p"
            return self._run(statement, units)

        answer = self._once(("rows", unit), ask)
        if answer is None:
            return None
        own = _of_period(answer, first).to_pylist() or [{"n": 0, "without": 0, "doubtful": False}]
        return own[0]["n"], own[0]["without"], own[0]["doubtful"]

    def cells(self, question: Selection, first: date) -> CellCounts | None:
        """Return what `Engine.cells` does of a period, where each unit should have one cell.

        Each cell has a hash, and those in the rows of a unit are joined bit by bit, see `engines.statements`.
        """
        by, unit = numbered("b", len(question.by)), ", ".join(numbered("u", len(question.unit)))
        cell = ", ".join(by)

        def ask() -> _Counted | None:
            selected = [*self.columns.units(question.unit), *self.columns.keys(question)]
            condition, code = self.columns.condition(question.where), code_of(cell)
            cells = self._run(f"SELECT {cell}, {code} AS code FROM pkdp_rows GROUP BY {cell}", selected, condition)
            codes = cells["code"].to_numpy()
            if len(np.unique(codes)) < len(codes):
                return None
            rows = f"SELECT p, {code} AS code, false AS several FROM pkdp_rows"
            if unit:
                # Where the bits of one hash may be in another, a second number shows whether there are several.
                several = "false" if joinable(codes) else f"bit_or({code}) <> bit_and({code})"
                joined = f"bit_or({code}) AS code, {several} AS several"
                rows = f"SELECT p, {unit}, {joined} FROM pkdp_rows GROUP BY p, {unit}"
            nobody = f"{missing(len(question.unit)) or 'false'} AS nobody"
            counted = f"SELECT p, code, {nobody}, several, count(*) AS n FROM ({rows}) GROUP BY ALL ORDER BY p"
            return _Counted.of(cells, codes, self._run(counted, selected, condition))

        answer: _Counted | None = self._once(
            ("cells", question.unit, question.by, repr((question.bins, question.where))), ask
        )
        if answer is None:
            return None
        own = answer.of_period(first)
        nobody, cell_of = answer.nobody[own], answer.cell[own]
        several = bool((cell_of[~nobody] < 0).any())
        shown = np.flatnonzero(~nobody if not several else np.zeros_like(nobody))
        rows, kind = answer.cells.take(cell_of[shown]), partial(self.columns.key_kind, question)
        keys = {name: to_public(rows[short], kind(name)) for name, short in zip(question.by, by, strict=True)}
        return CellCounts(
            keys=pd.DataFrame(keys, copy=False),
            counts=answer.counts[own][shown],
            missing_unit=bool(nobody.any()),
            several_cells=several,
        )

    def sums(self, question: Selection, first: date) -> CellCounts | None:
        """Return what `Engine.cells` does of a period where people add to one cell each."""

        def ask() -> Any:
            selected = (*self.columns.units(question.unit), *self.columns.keys(question))
            selected = (f"{self.first} AS p", *selected, *self.columns.numbers(question))
            return Rows(self.relation, selected, self.columns.condition(question.where)).cells(question)

        same = question.unit, question.by, question.bounds, question.summed, repr((question.bins, question.where))
        answer = self._once(("sums", *same), ask)
        if answer is None:
            return None
        kind = partial(self.columns.key_kind, question)
        return CellCounts.of(_of_period(answer, first), question.by, lambda keys, name: to_public(keys, kind(name)))

    def tally(self, question: Selection, first: date) -> Tally | None:
        """Return what `Engine.tally` does of a period."""
        unit, nobody = ", ".join(numbered("u", len(question.unit))), missing(len(question.unit)) or "false"

        def ask() -> Any:
            selected = [*self.columns.units(question.unit), f"{self.columns.condition(question.where)} AS hit"]
            rows = f"(SELECT p, {unit}, bool_or(hit) AS hit FROM pkdp_rows GROUP BY p, {unit})" if unit else "pkdp_rows"
            return self._run(
                f"SELECT p, count(*) FILTER (WHERE hit AND NOT ({nobody})) AS satisfying, "
                f"count(*) FILTER (WHERE NOT ({nobody})) AS population, bool_or({nobody}) AS missing_unit "
                f"FROM {rows} GROUP BY p",
                selected,
            )

        answer = self._once(("tally", question.unit, repr(question.where)), ask)
        return None if answer is None else Tally.of(_of_period(answer, first))

    def _once(self, key: object, ask: Callable[[], Any]) -> Any:
        if key not in self._answers:
            try:
                self._answers[key] = ask()
            except PkdpError:
                if self.stopped:
                    raise
                self._answers[key] = None
        return self._answers[key]

    def _run(self, statement: str, selected: list[str], condition: str = "true") -> Any:
        return Rows(self.relation, (f"{self.first} AS p", *selected), condition).run(statement)


@dataclass(frozen=True, slots=True, eq=False)
class _Counted:
    """How many units of each period have which cell, as arrays in the order of the periods.

    `cells` is an Arrow table, `cell` a row of it, or -1 where units have several; `nobody` marks rows without a unit.
    """

    cells: Any
    days: npt.NDArray[np.int32]
    cell: npt.NDArray[np.int64]
    nobody: npt.NDArray[np.bool_]
    counts: npt.NDArray[np.int64]

    @classmethod
    def of(cls, cells: Any, codes: npt.NDArray[np.uint64], answer: Any) -> _Counted:
        cell = pd.Index(codes).get_indexer(pd.Index(answer["code"].to_numpy()))
        return cls(
            cells=cells,
            days=answer["p"].cast("int32").to_numpy(),
            cell=np.where(answer["several"].to_numpy(), -1, cell),
            nobody=answer["nobody"].to_numpy(),
            counts=answer["n"].to_numpy(),
        )

    def of_period(self, first: date) -> slice:
        day = first.toordinal() - _EPOCH
        return slice(*np.searchsorted(self.days, [day, day + 1]))


_EPOCH = date(1970, 1, 1).toordinal()


def _of_period(answer: Any, first: date) -> Any:
    import pyarrow.compute as pc

    return answer.filter(pc.equal(answer["p"], first))


@dataclass(frozen=True, slots=True, eq=False)
class OnePeriod:
    """A frame: the rows of one of many periods.

    `periods`: `Periods`, or what asks another engine so. `first`: its first day. `alone` returns its rows as a frame of
    its engine.
    """

    periods: Periods | Any
    first: date
    alone: Callable[[], Any]

    @property
    def engine(self) -> Engine:
        """The engine of the period's rows alone."""
        engine: Engine = self.periods.engine
        return engine


@dataclass(frozen=True, slots=True)
class PeriodEngine:
    """Counts the distinct units of one of many periods, as its engine counts those of its rows."""

    def cells(self, frame: OnePeriod, question: Selection) -> CellCounts:
        """See `Engine.cells`."""
        answer = frame.periods.cells(question, frame.first) if question.counts_in_one_cell else None
        if question.bounds and question.one_cell == "error" and question.cells_per_unit == 1:
            answer = frame.periods.sums(question, frame.first)
        return frame.engine.cells(frame.alone(), question) if answer is None else answer

    def tally(self, frame: OnePeriod, question: Selection) -> Tally:
        """See `Engine.tally`."""
        answer = frame.periods.tally(question, frame.first)
        return frame.engine.tally(frame.alone(), question) if answer is None else answer

    def units(self, frame: OnePeriod, unit: tuple[str, ...]) -> Units:
        """See `Engine.units`."""
        answer = frame.periods.rows(unit, frame.first)
        alone = answer is None or answer[2]
        return frame.engine.units(frame.alone(), unit) if alone else Units()
