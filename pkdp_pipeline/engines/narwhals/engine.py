"""Counting the units of a frame that Narwhals can read, where its rows are."""

from __future__ import annotations

from typing import Any

import narwhals.stable.v2 as nw

from pkdp_pipeline.engines.narwhals.columns import to_public
from pkdp_pipeline.engines.narwhals.source import Source, asked
from pkdp_pipeline.engines.narwhals.statements import alike_query, cells_query, spaced_query, tally_query
from pkdp_pipeline.engines.question import CellCounts, Tally, Units
from pkdp_pipeline.model.question import Selection


class NarwhalsEngine:
    """Counts the distinct units of a frame that Narwhals can read; only counted cells leave the frame's engine."""

    def cells(self, frame: Any, question: Selection) -> CellCounts:
        """See `Engine.cells`."""
        source = self._source(frame, question)
        rows = source.selected(question)
        answer = asked(lambda: self._counted(rows, question, frame))
        return CellCounts.of(answer, question.by, lambda keys, name: to_public(keys, source.schema[name]))

    def tally(self, frame: Any, question: Selection) -> Tally:
        """See `Engine.tally`."""
        rows = self._source(frame, question).marked(question)
        return asked(lambda: self._tallied(rows, len(question.unit)))

    def units(self, frame: Any, unit: tuple[str, ...]) -> Units:
        """See `Engine.units`."""
        question = Selection(unit=unit)
        source = self._source(frame, question)
        rows, texts = source.selected(question), source.texts(unit)
        return asked(lambda: self._looked_at(rows, len(unit), texts)) if texts else Units()

    def _source(self, frame: Any, question: Selection) -> Source:
        return Source(frame)

    def _counted(self, rows: nw.LazyFrame[Any], question: Selection, frame: Any) -> Any:
        """Return an Arrow table of (b0, b1, …, n, missing_unit, several_cells), one row per cell."""
        return collected(cells_query(rows, question))

    def _tallied(self, rows: nw.LazyFrame[Any], units: int) -> Tally:
        return Tally.of(collected(tally_query(rows, units=units)))

    def _looked_at(self, rows: nw.LazyFrame[Any], units: int, texts: list[str]) -> Units:
        if not _found(spaced_query(rows, texts)):
            return Units()
        return Units(alike=_found(alike_query(rows, units=units, texts=texts)))


ENGINE = NarwhalsEngine()


def _found(query: nw.LazyFrame[Any]) -> bool:
    return bool(collected(query)["found"][0].as_py())


def collected(query: nw.LazyFrame[Any]) -> Any:
    """Return the answer to one query as an Arrow table."""
    return query.collect(backend="pyarrow").to_native()
