"""Counting the units of a frame that Narwhals can read, where its rows are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import narwhals.stable.v2 as nw

from pkdp_pipeline.engines.narwhals.answers import cell_counts, tally
from pkdp_pipeline.engines.narwhals.columns import family
from pkdp_pipeline.engines.narwhals.source import Source, asked
from pkdp_pipeline.engines.narwhals.statements import alike_query, cells_query, numbered, spaced_query, tally_query
from pkdp_pipeline.engines.question import CellCounts, Question, Tally, Units

__all__ = ["ENGINE", "NarwhalsEngine"]


@dataclass(frozen=True, slots=True)
class NarwhalsEngine:
    """Counts the distinct units of a frame that Narwhals can read; only counted cells leave the frame's engine."""

    def cells(self, frame: Any, question: Question) -> CellCounts:
        """See `Engine.cells`."""
        source = Source(frame)
        rows = source.selected(question)
        query = asked(
            lambda: cells_query(
                rows,
                units=len(question.unit),
                keys=len(question.by),
                one_cell=question.one_cell,
                orders=len(question.order_by),
            )
        )
        return cell_counts(asked(lambda: _collected(query)), source.schema, question)

    def tally(self, frame: Any, question: Question) -> Tally:
        """See `Engine.tally`."""
        source = Source(frame)
        rows = source.marked(question)
        query = asked(lambda: tally_query(rows, units=len(question.unit)))
        return tally(asked(lambda: _collected(query)))

    def units(self, frame: Any, unit: tuple[str, ...]) -> Units:
        """See `Engine.units`."""
        source = Source(frame)
        rows = source.selected(Question(unit=unit))
        named = zip(numbered("u", len(unit)), unit, strict=True)
        texts = [short for short, name in named if family(source.schema[name]) == "text"]

        if not texts or not asked(lambda: _found(spaced_query(rows, texts))):
            return Units()
        return Units(alike=asked(lambda: _found(alike_query(rows, units=len(unit), texts=texts))))


ENGINE = NarwhalsEngine()


def _found(query: nw.LazyFrame[Any]) -> bool:
    return bool(_collected(query)["found"][0].as_py())


def _collected(query: nw.LazyFrame[Any]) -> Any:
    """Return the answer to one query as an Arrow table."""
    return query.collect(backend="pyarrow").to_native()
