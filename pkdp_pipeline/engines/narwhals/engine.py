"""Counting the units of a frame that Narwhals can read, where its rows are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd

from pkdp_pipeline.engines.narwhals.columns import family, to_public
from pkdp_pipeline.engines.narwhals.source import Source, asked
from pkdp_pipeline.engines.narwhals.statements import alike_query, cells_query, numbered, spaced_query, tally_query
from pkdp_pipeline.engines.question import CellCounts, Tally, Units
from pkdp_pipeline.model.question import Selection


class NarwhalsEngine:
    """Counts the distinct units of a frame that Narwhals can read; only counted cells leave the frame's engine."""

    def source(self, frame: Any) -> Source:
        """Return the frame as Narwhals reads it."""
        return Source(frame)

    def cells(self, frame: Any, question: Selection) -> CellCounts:
        """See `Engine.cells`."""
        source = self.source(frame)
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

    def tally(self, frame: Any, question: Selection) -> Tally:
        """See `Engine.tally`."""
        source = self.source(frame)
        rows = source.marked(question)
        query = asked(lambda: tally_query(rows, units=len(question.unit)))
        return _tally(asked(lambda: _collected(query)))

    def units(self, frame: Any, unit: tuple[str, ...]) -> Units:
        """See `Engine.units`."""
        source = self.source(frame)
        rows = source.selected(Selection(unit=unit))
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


def cell_counts(answer: Any, schema: Mapping[str, Any], question: Selection) -> CellCounts:
    """Return the counts in a table of (b0, b1, …, n, missing_unit, several_cells), one row per cell."""
    import pyarrow.compute as pc

    several_cells = bool(pc.any(answer["several_cells"]).as_py())
    # A cell that only rows without a unit mention has nobody in it.
    held = answer.slice(0, 0) if several_cells else answer.filter(pc.greater(answer["n"], 0))
    return CellCounts(
        keys=pd.DataFrame(
            {name: to_public(held[f"b{i}"], schema[name]) for i, name in enumerate(question.by)}, copy=False
        ),
        counts=held["n"].to_numpy().astype(np.int64),
        missing_unit=bool(pc.any(answer["missing_unit"]).as_py()),
        several_cells=several_cells,
    )


def _tally(answer: Any) -> Tally:
    """Return the tally in a table of (satisfying, population, missing_unit) with one row, or none for no units."""
    values = (answer.to_pylist() or [{}])[0]
    return Tally(
        satisfying=int(values.get("satisfying") or 0),
        population=int(values.get("population") or 0),
        missing_unit=bool(values.get("missing_unit")),
    )
