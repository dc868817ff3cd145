"""A frame that Narwhals wraps is counted as the frame inside it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pkdp_pipeline.engines import engine_for
from pkdp_pipeline.engines.question import CellCounts, Question, Tally

__all__ = ["ENGINE", "WrappedEngine"]


@dataclass(frozen=True, slots=True)
class WrappedEngine:
    """Counts the distinct units of a `narwhals.DataFrame` or `narwhals.LazyFrame`."""

    def cells(self, frame: Any, question: Question) -> CellCounts:
        """See `Engine.cells`."""
        native = frame.to_native()
        return engine_for(native).cells(native, question)

    def tally(self, frame: Any, question: Question) -> Tally:
        """See `Engine.tally`."""
        native = frame.to_native()
        return engine_for(native).tally(native, question)


ENGINE = WrappedEngine()
