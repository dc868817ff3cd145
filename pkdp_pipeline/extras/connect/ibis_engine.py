"""Counting the units of an Ibis table, by the table's backend."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import narwhals.stable.v2 as nw

from pkdp_pipeline.engines.narwhals_columns import BYTES
from pkdp_pipeline.engines.narwhals_engine import NarwhalsEngine, Source, guarded
from pkdp_pipeline.engines.narwhals_queries import backend_of
from pkdp_pipeline.engines.question import wrong_where
from pkdp_pipeline.model.comparisons import ordered_columns
from pkdp_pipeline.model.predicate import Predicate
from pkdp_pipeline.model.selection import Selection

#: The backends whose regular expressions are RE2's.
_READ_RE2 = ("duckdb", "bigquery")
#: The backends that order text as a language does, where their database is made so.
_ORDER_BY_LANGUAGE = ("postgres",)


class IbisEngine(NarwhalsEngine):
    """Counts the distinct units of an `ibis.Table`; ``where`` may be a boolean column of it, or what `ibis._` makes."""

    def _source(self, frame: Any, question: Selection) -> Source:
        kinds = frame.schema()
        empty = [name for name, kind in kinds.items() if _is_null(kind)]
        spelled = {name: frame[name].cast("string") for name, kind in kinds.items() if name in empty or kind.is_uuid()}
        frame = frame.mutate(**spelled) if spelled else frame
        backend = backend_of(frame)
        if backend in _ORDER_BY_LANGUAGE and isinstance(question.where, Predicate):
            texts = {BYTES + name: name for name in ordered_columns(question.where) if _is_text(frame, name)}
            frame = guarded(lambda: _with_bytes(frame, texts))
        return Source(frame, empty=empty, regex=backend in _READ_RE2)

    def _counted(self, rows: nw.LazyFrame[Any], question: Selection, frame: Any) -> Any:
        if question.one_cell != "first" or backend_of(frame) not in _ORDER_BY_LANGUAGE:
            return super()._counted(rows, question, frame)
        # Keys are ordered as well, and are bytes until they are here.
        native = rows.to_native()
        texts = {name: name for name in native.columns if name[0] in "bo" and _is_text(native, name)}
        answer = super()._counted(nw.from_native(_with_bytes(native, texts)).lazy(), question, frame)
        for place, name in enumerate(answer.column_names):
            if name in texts:
                answer = answer.set_column(place, name, answer[name].cast("string"))
        return answer

    def _marked(self, frame: Any, where: Any, name: str) -> Any:
        import ibis

        if isinstance(where, (ibis.Deferred, ibis.ir.BooleanValue)):
            return frame.mutate(**{name: where})
        raise wrong_where(where, "a column name, a query string or an expression of Ibis for this table")


def _is_null(kind: Any) -> bool:
    """Return whether a column has no type and no value; the DuckDB backend does not know that type, but names it."""
    return bool(kind.is_null()) or str(getattr(kind, "raw_type", "")).strip('"') == "NULL"


def _is_text(table: Any, name: str) -> bool:
    return name in table.columns and bool(table[name].type().is_string())


def _with_bytes(table: Any, texts: Mapping[str, str]) -> Any:
    """Return a table with columns of the bytes of these texts, which PostgreSQL orders by code points."""
    import ibis

    signature = (("string", "string"), "binary")
    convert_to = ibis.udf.scalar.builtin(lambda text, encoding: None, name="convert_to", signature=signature)
    return table.mutate(**{name: convert_to(table[text], "UTF8") for name, text in texts.items()}) if texts else table
