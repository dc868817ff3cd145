"""Counting the units of a PySpark frame, by a hash of the cell where the rows are read from storage."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from pkdp_pipeline.engines.codes import MOST, counted_by_code, joinable
from pkdp_pipeline.engines.narwhals.answers import cell_counts
from pkdp_pipeline.engines.narwhals.engine import ENGINE as ANYWHERE
from pkdp_pipeline.engines.narwhals.source import Source, asked
from pkdp_pipeline.engines.narwhals.statements import numbered
from pkdp_pipeline.engines.question import CellCounts, Question, Tally

__all__ = ["ENGINE", "SparkEngine"]


@dataclass(frozen=True, slots=True)
class SparkEngine:
    """Counts the distinct units of a `pyspark.sql.DataFrame`; only counted cells leave Spark."""

    def cells(self, frame: Any, question: Question) -> CellCounts:
        """See `Engine.cells`."""
        if question.one_cell == "error" and question.unit:
            source = Source(frame)
            rows = source.selected(question).to_native()
            answer = asked(lambda: _by_code(rows, units=len(question.unit), keys=len(question.by)))
            if answer is not None:
                return cell_counts(answer, source.schema, question)
        return ANYWHERE.cells(frame, question)

    def tally(self, frame: Any, question: Question) -> Tally:
        """See `Engine.tally`."""
        return ANYWHERE.tally(frame, question)


ENGINE = SparkEngine()

#: The nodes of a plan that reads stored rows once, one by one; of files, those that store columns.
_SCANS = frozenset({"Project", "Filter", "InMemoryRelation", "LocalRelation", "LogicalRelation"})
_COLUMNAR = frozenset({"parquet", "orc"})


def _by_code(rows: Any, *, units: int, keys: int) -> Any:
    """Return the answer of `cells_query`, or None where a unit might have several cells or a hash does not help.

    An aggregate of numbers has a hash table in Spark; the smallest and largest text of a unit would need a sort.
    """
    import pyarrow as pa
    from pyspark.sql import functions

    if not _is_stored(rows):
        return None
    unit, cell = numbered("u", units), numbered("b", keys)
    # A missing key leaves a hash as it was: that it is missing is hashed too.
    code = functions.xxhash64(*cell, *(functions.col(name).isNull() for name in cell)).alias("code")
    cells = rows.groupBy(*cell).agg(functions.lit(1)).select(*cell, code).limit(MOST + 1).toArrow()
    codes = cells["code"].to_numpy().view(np.uint64)
    if not joinable(codes):
        return None
    homes = rows.select(*unit, code).groupBy(*unit).agg(functions.bit_or("code").alias("code"))
    nobody = functions.lit(False)
    for name in unit:
        nobody = nobody | functions.col(name).isNull()
    homes = homes.select(functions.when(~nobody, functions.col("code")).alias("home"))
    found = homes.groupBy("home").agg(functions.count(functions.lit(1)).alias("n")).limit(len(codes) + 2).toArrow()
    if len(found) > len(codes) + 1:
        return None
    homed = zip(found["home"].to_pylist(), found["n"].to_pylist(), strict=True)
    often = dict(homed)
    missing = often.pop(None, None) is not None
    counts = counted_by_code(codes, {home % 2**64: n for home, n in often.items()})  # Spark's numbers have a sign
    if counts is None:
        return None
    answer = cells.drop_columns("code").append_column("n", pa.array(counts))
    for name, value in (("missing_unit", missing), ("several_cells", False)):
        answer = answer.append_column(name, pa.array(np.full(len(codes), value)))
    return answer


def _is_stored(rows: Any) -> bool:
    """Return whether reading the rows twice is cheap, as far as the plan is known; a plan kept by a server is not."""
    nodes = [rows._jdf.queryExecution().optimizedPlan()] if hasattr(rows, "_jdf") else []
    stored = bool(nodes)
    while nodes and stored:
        node = nodes.pop()
        kind = node.nodeName()
        stored = kind in _SCANS and (kind != "LogicalRelation" or node.relation().toString().lower() in _COLUMNAR)
        nodes.extend(node.children().apply(at) for at in range(node.children().size()))
    return stored
