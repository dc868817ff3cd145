"""Counting the units of a PySpark frame, by a code of the cell: the number it is, or a hash."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import date
from functools import partial
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np

from pkdp_pipeline.engines.narwhals_columns import to_public
from pkdp_pipeline.engines.narwhals_engine import FrameColumns, NarwhalsEngine, collected, guarded
from pkdp_pipeline.engines.narwhals_queries import as_number, cells_query, doubted, is_missing
from pkdp_pipeline.engines.question import NO_DOUBTS, CellCounts, Doubts, Tally, answered, numbered
from pkdp_pipeline.engines.statements import MAX_CODES, counted_by_code, joinable
from pkdp_pipeline.errors import PkdpError
from pkdp_pipeline.model.columns import Selection

EPOCH = date(1970, 1, 1)


class SparkEngine(NarwhalsEngine):
    """Counts the distinct units of a `pyspark.sql.DataFrame`; only counted cells leave Spark."""

    def _source(self, frame: Any, question: Selection) -> FrameColumns:
        empty = guarded(lambda: [field.name for field in frame.schema if field.dataType.typeName() == "void"])
        return FrameColumns(guarded(partial(_plain, frame, empty)), empty=empty)

    def _counted(self, rows: Any, question: Selection, frame: Any, doubts: Doubts = NO_DOUBTS) -> Any:
        if question.unit and question.counts_in_one_cell:
            answer = _by_code(rows.to_native(), units=len(question.unit), keys=len(question.by), doubts=doubts)
            if answer is not None:
                return answer
        return super()._counted(rows, question, frame, doubts)


@dataclass(slots=True, eq=False)
class SparkPeriods:
    """The rows of many periods, asked about once; see `engines.period_engine.Periods`.

    `day` names a column of whole numbers: the first day of the period that a row is of, in days from 1970. With it
    before the unit and before the cell, one question is that of each period; a hash would draw other cells.
    """

    frame: Any
    day: str
    engine: SparkEngine = field(default_factory=SparkEngine)
    _answers: dict[str, Any] = field(default_factory=dict)

    def rows(self, unit: tuple[str, ...], first: date) -> tuple[int, int, bool] | None:
        """See `Periods.rows`."""

        def ask() -> Any:
            names = (self.day, *unit)
            source = self.engine._source(self.frame, Selection(unit=names))
            rows, doubts = source.selected(Selection(unit=names)), doubted(source.doubts(names))
            without = as_number(is_missing(numbered("u", len(names))))
            marked = rows.select("u0", without=without, **{name: as_number(doubt) for name, doubt in doubts.items()})
            added = (nw.col(name).sum() for name in ("without", *doubts))
            return guarded(lambda: collected(marked.group_by("u0").agg(nw.len().alias("n"), *added)))

        answer = self._once(f"rows {unit}", ask, "u0", first)
        if answer is None:
            return None
        own = (answer.to_pylist() or [{"n": 0, "without": 0}])[0]
        return own["n"], own["without"], bool(own.get("spaced") or own.get("rounded"))

    def cells(self, question: Selection, first: date) -> CellCounts | None:
        """See `Periods.cells`, and of sums `Periods.sums`."""
        unit = question.unit and (self.day, *question.unit)
        joined = replace(question, unit=unit, by=(self.day, *question.by))
        source = self.engine._source(self.frame, joined)

        def ask() -> Any:
            rows = source.selected(joined)
            answer = guarded(lambda: self.engine._counted(rows, joined, self.frame))
            # By code it is not known which period lacks a unit.
            lacks = any(answer["missing_unit"].to_pylist())
            return guarded(lambda: collected(cells_query(rows, joined))) if lacks else answer

        same = unit, joined.by, joined.bounds, joined.summed, joined.bins, joined.where
        answer = self._once(repr(same), ask, "b0", first)
        if answer is None:
            return None
        own = answer.drop_columns("b0").rename_columns(
            [f"b{int(x[1:]) - 1}" if x[0] == "b" else x for x in answer.column_names[1:]]
        )
        return CellCounts.of(own, question.by, lambda keys, name: to_public(keys, source.key_type(question, name)))

    sums = cells

    def tally(self, question: Selection, first: date) -> Tally | None:
        """See `Periods.tally`: each period is asked alone."""
        return None

    def _once(self, question: str, ask: Callable[[], Any], day: str, first: date) -> Any:
        import pyarrow.compute as pc

        if question not in self._answers:
            self._answers[question] = None  # where it fails, for a row of another period perhaps
            with suppress(PkdpError):
                self._answers[question] = ask()
        answer = self._answers[question]
        return None if answer is None else answer.filter(pc.equal(answer[day], (first - EPOCH).days))


def _plain(frame: Any, empty: list[str]) -> Any:
    """Return a frame whose text is compared by its bytes, and so are the columns that have no type, all missing.

    Spark 4 may give a column another order.
    """
    from pyspark.sql import functions

    binary = "UTF8_BINARY"
    collated = [field.name for field in frame.schema if getattr(field.dataType, "collation", binary) != binary]
    quoted = {name: functions.col(f"`{name.replace('`', '``')}`") for name in collated}
    plain = {name: functions.collate(column, binary) for name, column in quoted.items()}
    return frame.withColumns(plain | dict.fromkeys(empty, functions.lit(None).cast("string")))


#: The nodes of a plan that reads stored rows once, one by one; of files, those that store columns.
_SCANS = frozenset({"Project", "Filter", "InMemoryRelation", "LocalRelation", "LogicalRelation"})
_COLUMNAR = frozenset({"parquet", "orc"})
#: A whole number of Spark in 31 bits and a sign, and the one that stands for a missing key; larger ones have no code.
_MAX_CODE, _MISSING = 2**30, 2**31 - 1
_MASK = 2**32 - 1


def _by_code(rows: Any, *, units: int, keys: int, doubts: Doubts = NO_DOUBTS) -> Any:
    """Return the answer of `cells_query`, or None where a unit might have several cells or a code does not help.

    An aggregate of numbers has a hash table in Spark; the smallest and largest text of a unit would need a sort. The
    cells and their hashes are listed by the same action.
    """
    import pyarrow.compute as pc
    from pyspark.sql import functions
    from pyspark.sql.types import ByteType, IntegerType, LongType, ShortType

    cell = numbered("b", keys)
    if keys == 1 and isinstance(rows.schema["b0"].dataType, (ByteType, ShortType, IntegerType, LongType)):
        return _by_number(rows, units, doubts)
    if not _is_stored(rows):
        return None
    # A missing key leaves a hash as it was: that it is missing is hashed too.
    code = functions.xxhash64(*cell, *(functions.col(name).isNull() for name in cell)).alias("code")
    listed = rows.groupBy(*cell).agg(functions.lit(1)).select(*cell, code)
    most = 2 * MAX_CODES + 1
    answer = listed.unionByName(_homes(rows, units, code, doubts), allowMissingColumns=True).limit(most + 1).toArrow()
    if len(answer) > most:
        return None
    cells, homes = answer.filter(pc.is_null(answer["n"])), answer.filter(pc.is_valid(answer["n"]))
    codes = cells["code"].to_numpy().view(np.uint64)
    often, asides = _read(homes, doubts)
    if not joinable(codes):
        return None
    counts = counted_by_code(codes, {home % 2**64: n for home, n in often.items()})  # Spark's numbers have a sign
    return None if counts is None else answered(cells.select(cell), counts, **asides)


def _by_number(rows: Any, units: int, doubts: Doubts) -> Any:
    """Do what `_by_code` does for cells that are whole numbers: the number and its complement are the code.

    Of two numbers one has a bit that the other lacks: joined, the bit is in both halves. So no list of the cells is
    needed, and the rows are read once.
    """
    import pyarrow as pa
    from pyspark.sql import functions

    key = functions.col("b0").cast("long")
    number = functions.when(key.isNull(), _MISSING).otherwise(key)
    halves = functions.shiftleft(functions.bitwise_not(number).bitwiseAND(_MASK), 32).bitwiseOR(
        number.bitwiseAND(_MASK)
    )
    coded = functions.when(key.isNull() | key.between(-_MAX_CODE, _MAX_CODE), halves).otherwise(-1)
    counts, asides = _read(_homes(rows, units, coded.alias("code"), doubts).limit(MAX_CODES + 2).toArrow(), doubts)
    cells = {home & _MASK: n for home, n in counts.items() if (home ^ (home >> 32)) & _MASK == _MASK}
    if not counts or len(cells) < len(counts) or len(counts) > MAX_CODES:
        return None
    numbers = [None if low == _MISSING else low - (low >> 31 << 32) for low in cells]
    types = {"tinyint": pa.int8(), "smallint": pa.int16(), "int": pa.int32(), "bigint": pa.int64()}
    named = pa.table({"b0": pa.array(numbers, types[rows.schema["b0"].dataType.simpleString()])})
    return answered(named, np.array(list(cells.values())), **asides)


def _homes(rows: Any, units: int, code: Any, doubts: Doubts) -> Any:
    """Return a frame of (code, n, …): how many units have each joined code, NULL for what is no unit; see `doubted`."""
    from pyspark.sql import functions

    unit = numbered("u", units)
    joined = rows.select(*unit, code).groupBy(*unit).agg(functions.bit_or("code").alias("code"))
    homes = nw.from_native(joined).lazy()
    home = nw.when(~is_missing(unit)).then(nw.col("code"))
    marked = homes.select(code=home, **doubted(doubts)).to_native()
    looks = (functions.bool_or(name).alias(name) for name in doubted(doubts))
    return marked.groupBy("code").agg(functions.count(functions.lit(1)).alias("n"), *looks)


def _read(homes: Any, doubts: Doubts) -> tuple[dict[int, int], dict[str, bool]]:
    """Return how many units have each joined code, and, of all rows, whether a unit is missing or doubted."""
    counts = dict(zip(homes["code"].to_pylist(), homes["n"].to_pylist(), strict=True))
    missing = counts.pop(None, None) is not None
    return counts, {"missing_unit": missing} | {name: any(homes[name].to_pylist()) for name in doubted(doubts)}


def _is_stored(rows: Any) -> bool:
    """Return whether reading the rows twice is cheap, as far as the plan is known; a plan kept by a server is not."""
    nodes = [rows._jdf.queryExecution().optimizedPlan()] if hasattr(rows, "_jdf") else []
    stored = bool(nodes) and nodes[0].deterministic()
    while nodes and stored:
        node = nodes.pop()
        kind = node.nodeName()
        stored = kind in _SCANS and (kind != "LogicalRelation" or node.relation().toString().lower() in _COLUMNAR)
        nodes.extend(node.children().apply(index) for index in range(node.children().size()))
    return stored
