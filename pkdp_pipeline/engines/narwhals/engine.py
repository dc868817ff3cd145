"""Counting the units of a frame that Narwhals can read, where its rows are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import narwhals.stable.v2 as nw

from pkdp_pipeline.engines.answers import cell_counts
from pkdp_pipeline.engines.duckdb.statements import numbered
from pkdp_pipeline.engines.narwhals.columns import family, to_public
from pkdp_pipeline.engines.narwhals.source import Source, asked
from pkdp_pipeline.engines.narwhals.statements import alike_query, cells_query, spaced_query, tally_query
from pkdp_pipeline.engines.question import CellCounts, Question, Tally

__all__ = ["ENGINE", "NarwhalsEngine", "alike"]


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
        answer = asked(lambda: _collected(query))
        return cell_counts(
            answer,
            question,
            lambda keys, name: to_public(keys, source.schema[name]),
            alike=alike(source, question.unit),
        )

    def tally(self, frame: Any, question: Question) -> Tally:
        """See `Engine.tally`."""
        source = Source(frame)
        rows = source.marked(question)
        query = asked(lambda: tally_query(rows, units=len(question.unit)))
        values = (asked(lambda: _collected(query)).to_pylist() or [{}])[0]
        return Tally(
            satisfying=int(values.get("satisfying") or 0),
            population=int(values.get("population") or 0),
            missing_unit=bool(values.get("missing_unit")),
            alike=alike(source, question.unit),
        )


ENGINE = NarwhalsEngine()


def _found(query: nw.LazyFrame[Any]) -> bool:
    return bool(_collected(query)["found"][0].as_py())


def _collected(query: nw.LazyFrame[Any]) -> Any:
    """Return the answer to one query as an Arrow table."""
    return query.collect(backend="pyarrow").to_native()


def alike(source: Source, unit: tuple[str, ...]) -> bool:
    """Return whether two units, of any rows, differ by nothing but the spaces around their texts."""
    rows = source.selected(Question(unit=unit))
    named = zip(numbered("u", len(unit)), unit, strict=True)
    texts = [short for short, name in named if family(source.schema[name]) == "text"]
    if not texts or not asked(lambda: _found(spaced_query(rows, texts))):
        return False
    return asked(lambda: _found(alike_query(rows, units=len(unit), texts=texts)))
