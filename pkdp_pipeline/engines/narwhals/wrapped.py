"""A frame that Narwhals wraps is counted as the frame inside it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pkdp_pipeline.engines import engine_for
from pkdp_pipeline.engines.question import CellCounts, Tally, Units
from pkdp_pipeline.model.question import Selection


@dataclass(frozen=True, slots=True)
class WrappedEngine:
    """Counts the distinct units of a `narwhals.DataFrame` or `narwhals.LazyFrame`."""

    def cells(self, frame: Any, question: Selection) -> CellCounts:
        """See `Engine.cells`."""
        native = frame.to_native()
        return engine_for(native).cells(native, question)

    def tally(self, frame: Any, question: Selection) -> Tally:
        """See `Engine.tally`."""
        native = frame.to_native()
        return engine_for(native).tally(native, question)

    def units(self, frame: Any, unit: tuple[str, ...]) -> Units:
        """See `Engine.units`."""
        native = frame.to_native()
        return engine_for(native).units(native, unit)


ENGINE = WrappedEngine()
