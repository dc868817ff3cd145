"""Counting the units of an Ibis table, by the table's backend."""

from __future__ import annotations

from typing import Any

from pkdp_pipeline.engines.narwhals_draws import backend_of
from pkdp_pipeline.engines.narwhals_engine import NarwhalsEngine, Source
from pkdp_pipeline.engines.question import wrong_where
from pkdp_pipeline.model.question import Selection

#: The backends whose regular expressions are RE2's.
_READ_RE2 = ("duckdb", "bigquery")


class IbisEngine(NarwhalsEngine):
    """Counts the distinct units of an `ibis.Table`; ``where`` may be a boolean column of it, or what `ibis._` makes."""

    def _source(self, frame: Any, question: Selection) -> Source:
        texts = [name for name, kind in frame.schema().items() if kind.is_null() or kind.is_uuid()]
        typed = frame.mutate(**{name: frame[name].cast("string") for name in texts}) if texts else frame
        return Source(typed, regex=backend_of(frame) in _READ_RE2)

    def _marked(self, frame: Any, where: Any, name: str) -> Any:
        import ibis

        if isinstance(where, (ibis.Deferred, ibis.ir.BooleanValue)):
            return frame.mutate(**{name: where})
        raise wrong_where(where, "a column name, a query string or an expression of Ibis for this table")
