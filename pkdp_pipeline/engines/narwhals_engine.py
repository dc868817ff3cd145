"""All frames that Narwhals knows, counted by lazy queries; only counted cells leave a frame's engine.

Frames of Polars, eager or lazy, have an engine of their own here, which counts in Polars where that is faster.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

import narwhals.stable.v2 as nw
import polars as pl
import pyarrow as pa

from pkdp_pipeline.engines import (
    DRAWN,
    NO_DOUBTS,
    ROUNDED,
    CellCounts,
    Doubts,
    Tally,
    Units,
    engine_for,
    keys_of,
    not_counted,
    numbered,
    wrong_where,
)
from pkdp_pipeline.engines.memory import cells_in_memory, plain_table, tally_in_memory, units_in_memory, unread, untyped
from pkdp_pipeline.engines.narwhals_columns import (
    bits_of_real,
    comparable,
    condition,
    grouped,
    is_text,
    nameable,
    opened,
    to_public,
    whole_number,
)
from pkdp_pipeline.engines.narwhals_queries import (
    SPACED,
    alike_query,
    cells_query,
    clamped,
    doubted,
    doubts_query,
    most_frequent,
    tally_query,
)
from pkdp_pipeline.errors import ArgumentError, PkdpError
from pkdp_pipeline.model.columns import Selection, check_columns
from pkdp_pipeline.model.predicate import Condition, Predicate


class NarwhalsEngine:
    """Counts the distinct units of a frame that Narwhals can read; only counted cells leave the frame's engine."""

    def cells(self, frame: Any, question: Selection) -> CellCounts:
        """See `Engine.cells`."""
        frame, question = self._with_answers(frame, question)
        source = self._source(frame, question)
        rows = source.selected(question)
        # A predicate leaves rows out, and all are looked at.
        looks = question.where is None
        doubts = source.doubts(question.unit) if looks else NO_DOUBTS
        answer = guarded(lambda: self._counted(rows, question, frame, doubts))
        units = guarded(lambda: self._units_in(answer, rows, len(question.unit), doubts)) if looks else None
        public = partial(source.key_type, question)
        return CellCounts.of(answer, question.by, lambda keys, name: to_public(keys, public(name)), units)

    def tally(self, frame: Any, question: Selection) -> Tally:
        """See `Engine.tally`."""
        frame, question = self._with_answers(frame, question)
        source = self._source(frame, question)
        rows, doubts = source.marked(question), source.doubts(question.unit)
        return guarded(lambda: self._tallied(rows, question, frame, doubts))

    def units(self, frame: Any, unit: tuple[str, ...]) -> Units:
        """See `Engine.units`."""
        question = Selection(unit=unit)
        source = self._source(frame, question)
        rows, doubts = source.selected(question), source.doubts(unit)
        return guarded(lambda: self._doubted_units(rows, len(unit), doubts)) if doubts else Units()

    def _with_answers(self, frame: Any, question: Selection) -> tuple[Any, Selection]:
        """Return a frame with a column of what an expression says of its rows, and the question about that column."""
        where = question.where
        if where is None or isinstance(where, Predicate):
            return frame, question
        names = guarded(lambda: opened(frame)[1])
        name = next(free for free in ("where", *numbered("where", len(names))) if free not in names)
        marked = guarded(lambda: self._marked(frame, where, name))
        return marked, replace(question, where=Condition(name, "==", True))

    def _marked(self, frame: Any, where: Any, name: str) -> Any:
        """Return a frame with a column of this name that holds an expression of the engine's own."""
        raise wrong_where(where, "a column name or a query string for a frame of this kind")

    def _source(self, frame: Any, question: Selection) -> FrameColumns:
        return FrameColumns(frame)

    def _counted(self, rows: nw.LazyFrame[Any], question: Selection, frame: Any, doubts: Doubts = NO_DOUBTS) -> Any:
        """Return an Arrow table of (b0, b1, …, n, missing_unit, several_cells), one row per cell; see `cells_query`."""
        return self._collected(cells_query(rows, question, doubts))

    def _tallied(self, rows: nw.LazyFrame[Any], question: Selection, frame: Any, doubts: Doubts) -> Tally:
        units = len(question.unit)
        answer = self._collected(tally_query(rows, units=units, everybody=question.everybody, doubts=doubts))
        return self._tally_of(answer, rows, question, doubts)

    def _tally_of(self, answer: Any, rows: nw.LazyFrame[Any], question: Selection, doubts: Doubts) -> Tally:
        tally = replace(Tally.of(answer), units=self._units_in(answer, rows, len(question.unit), doubts))
        return tally if question.everybody else replace(tally, population=None)

    def _doubted_units(self, rows: nw.LazyFrame[Any], units: int, doubts: Doubts) -> Units:
        return self._units_in(self._collected(doubts_query(rows, doubts)), rows, units, doubts) or Units()

    def _units_in(self, answer: Any, rows: nw.LazyFrame[Any], units: int, doubts: Doubts) -> Units | None:
        """Return `Units`, or None where an answer does not have what `doubts_query` asks."""
        names = answer.column_names
        if not doubted(doubts).keys() <= {*names}:
            return None
        spaced, rounded = (name in names and any(answer[name].to_pylist()) for name in ("spaced", "rounded"))
        alike = spaced and self._collected(alike_query(rows, units=units, texts=doubts.texts))["alike"][0].as_py()
        return Units(alike=bool(alike), rounded=rounded)

    def _collected(self, query: nw.LazyFrame[Any]) -> Any:
        return collected(query)


def collected(query: nw.LazyFrame[Any]) -> Any:
    """Return the answer to one query as an Arrow table."""
    return query.collect(backend="pyarrow").to_native()


Answer = TypeVar("Answer")


class FrameColumns:
    """A frame's columns as expressions, and the rows they make. For `empty` and `regex` see `condition`."""

    def __init__(self, frame: Any, *, empty: Collection[str] = (), regex: bool = True) -> None:
        self._empty, self._regex = empty, regex
        self._lazy, self.schema = guarded(lambda: opened(frame))

    def doubts(self, unit: tuple[str, ...]) -> Doubts:
        """Return which of u0, u1, … are to be looked at."""
        kinds = {short: self.schema[name] for short, name in zip(numbered("u", len(unit)), unit, strict=True)}
        return Doubts(
            texts=tuple(short for short, kind in kinds.items() if is_text(kind)),
            reals={short: ROUNDED[bits] for short, kind in kinds.items() if (bits := bits_of_real(kind))},
        )

    def columns(self, question: Selection) -> dict[str, nw.Expr]:
        """Return u0, u1, … (unit), b0, b1, … (by) and o0, o1, … (order_by).

        Raises `ArgumentError` if the frame does not have a column, or not under a type that can be counted.
        """
        named = {"u": ("unit", question.unit), "b": ("by", question.by), "o": ("order_by", question.order_by)}
        for argument, names in (*named.values(), ("sum", question.summed_columns)):
            check_columns(argument, names, list(self.schema))
        in_memory = self._lazy.implementation.is_polars() or self._lazy.implementation.is_pyarrow()
        columns = {
            short: nameable(name, self.schema[name], in_memory=in_memory)
            if letter == "b"
            else comparable(argument, name, self.schema[name])
            for letter, (argument, names) in named.items()
            for short, name in zip(numbered(letter, len(names)), names, strict=True)
        }
        for short, name in zip(numbered("b", len(question.by)), question.by, strict=True):
            # A column that says nothing of what it would hold has no group.
            if name in question.bins and name not in self._empty:
                columns[short] = grouped(question.bins[name], columns[short], self._lazy, self.schema)
        for name in question.summed_columns:
            if name not in self._empty:
                columns["v"] = whole_number(name, self.schema[name], in_arrow=self._lazy.implementation.is_pyarrow())
        return columns

    def key_type(self, question: Selection, name: str) -> Any:
        """Return the type of a by-column's keys."""
        return nw.String() if name in question.bins else self.schema[name]

    def _condition(self, question: Selection) -> nw.Expr | None:
        return condition(question.where, self._lazy, self.schema, empty=self._empty, regex=self._regex)

    def selected(self, question: Selection) -> nw.LazyFrame[Any]:
        """Return `columns` of the rows that satisfy ``where``."""
        columns, satisfied = self.columns(question), self._condition(question)
        # Constants do not name the rows that they stand in.
        constants = {"b0": nw.lit(0)} if question.bounds and not question.by else {}
        if question.bounds and "v" not in columns:
            constants["v"] = nw.lit(int(question.summed is None))
        rows = self._lazy if satisfied is None else self._lazy.filter(satisfied)
        if not constants:
            return guarded(lambda: rows.select(**columns))
        if not columns:
            return guarded(lambda: rows.with_columns(**constants).select(*constants))
        return guarded(lambda: rows.select(**columns).with_columns(**constants))

    def marked(self, question: Selection) -> nw.LazyFrame[Any]:
        """Return `columns` of all rows, and ``hit``: whether a row satisfies ``where``."""
        columns, satisfied = self.columns(question), self._condition(question)
        if satisfied is not None:
            return guarded(lambda: self._lazy.select(**columns, hit=satisfied))
        if not columns:
            return guarded(lambda: self._lazy.with_columns(hit=nw.lit(True)).select("hit"))
        return guarded(lambda: self._lazy.select(**columns).with_columns(hit=nw.lit(True)))


def guarded(question: Callable[[], Answer]) -> Answer:
    """Return what the engine answers; what it says when it cannot could quote the data, and is not passed on."""
    problem = ""
    try:
        with quiet():
            return question()
    except (PkdpError, KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except BaseException as error:  # some engines' failures are no Exception
        problem = type(error).__name__
    raise not_counted(problem)


#: Loggers by which PySpark writes what the JVM said, which can quote a value.
_LOGGERS = ("DataFrameQueryContextLogger", "SQLQueryContextLogger")


@contextmanager
def quiet() -> Iterator[None]:
    """Keep these loggers from writing; nothing happens where PySpark is not in use."""
    silenced = [logger for logger in _loggers() if not logger.disabled]
    for logger in silenced:
        logger.disabled = True
    try:
        yield
    finally:
        for logger in silenced:
            logger.disabled = False


def _loggers() -> list[Any]:
    if sys.modules.get("pyspark") is None:
        return []
    try:
        from pyspark.logger import PySparkLogger
    except ImportError:  # before PySpark 4, which does not log them
        return []
    return [PySparkLogger.getLogger(name) for name in _LOGGERS]


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


class ArrowEngine(NarwhalsEngine):
    """Counts the distinct units of a `pyarrow.Table`."""

    def _source(self, frame: Any, question: Selection) -> FrameColumns:
        _check_names(frame, question)
        where = question.where.columns if isinstance(question.where, Predicate) else ()
        own = (*question.unit, *question.by, *question.order_by, *question.summed_columns, *where)
        names = dict.fromkeys((*own, *unread(frame)))
        return FrameColumns(guarded(partial(plain_table, frame, names)), empty=untyped(frame))

    def _counted(self, rows: nw.LazyFrame[Any], question: Selection, frame: Any, doubts: Doubts = NO_DOUBTS) -> Any:
        return cells_in_memory(collected(rows), question)

    def _tallied(self, rows: nw.LazyFrame[Any], question: Selection, frame: Any, doubts: Doubts) -> Tally:
        return tally_in_memory(collected(rows), question)

    def _doubted_units(self, rows: nw.LazyFrame[Any], units: int, doubts: Doubts) -> Units:
        return units_in_memory(collected(rows), units, doubts)


def _check_names(table: Any, question: Selection) -> None:
    """Raise `ArgumentError` where two columns have one name: which of them is meant, nothing says."""
    names = list(table.schema.names)
    if len(set(names)) == len(names):
        return
    for argument in ("unit", "by", "order_by"):
        check_columns(argument, getattr(question, argument), names)
    check_columns("sum", question.summed_columns, names)
    twice = next(name for name in names if names.count(name) > 1)
    raise ArgumentError(f"the table has column {twice!r} more than once; rename one, or drop it.")


class PolarsEngine(NarwhalsEngine):
    """Counts the distinct units of a `polars.DataFrame` or `polars.LazyFrame`; ``where`` may be an expression."""

    def _marked(self, frame: Any, where: Any, name: str) -> Any:
        if isinstance(where, pl.Expr):
            # A pattern stands for names, and is none.
            named = [column for column in where.meta.root_names() if not column.startswith("^")]
            check_columns("where", named, frame.lazy().collect_schema().names())
        elif not (isinstance(where, pl.Series) and isinstance(frame, pl.DataFrame)):
            raise wrong_where(where, "a column name, a query string or an expression of Polars for this frame")
        return frame.with_columns(where.alias(name))

    def _source(self, frame: Any, question: Selection) -> FrameColumns:
        empty = guarded(lambda: [name for name, kind in frame.lazy().collect_schema().items() if kind == pl.Null])
        return FrameColumns(frame.lazy().with_columns(pl.col(empty).cast(pl.String)) if empty else frame, empty=empty)

    def _tallied(self, rows: nw.LazyFrame[Any], question: Selection, frame: Any, doubts: Doubts) -> Tally:
        if question.everybody or len(question.unit) != 1:
            return super()._tallied(rows, question, frame, doubts)
        native, person = rows.to_native(), pl.col("u0")
        checks = {"missing_unit": person.is_null().any()} | ({"spaced": _spaced(person)} if doubts.texts else {})
        if isinstance(frame, pl.DataFrame):  # rows in memory are filtered by all processors, before other questions
            hits, looks = native.filter("hit").select(satisfying=_distinct(person)), native.select(**checks)
            answer = hits.collect().hstack(looks.collect())
        else:
            answer = native.select(satisfying=_distinct(person.filter("hit")), **checks).collect()
        return self._tally_of(answer.to_arrow(), rows, question, doubts)

    def _counted(self, rows: nw.LazyFrame[Any], question: Selection, frame: Any, doubts: Doubts = NO_DOUBTS) -> Any:
        units, keys = numbered("u", len(question.unit)), keys_of(question)
        if not units or question.one_cell == "first":
            return super()._counted(rows, question, frame, doubts)
        drawn, in_memory = question.one_cell in DRAWN or question.cells_per_unit > 1, isinstance(frame, pl.DataFrame)
        # Whole numbers that are in memory are counted by place there.
        fast = not in_memory or rows.collect_schema()["u0"] == nw.String
        if fast and not drawn and not question.bounds and len(units) == 1:
            return _by_cell(rows, keys, doubts, "in-memory" if in_memory else "streaming")
        if in_memory and (drawn or len(units) == 1):
            # It is in memory already: its columns are named, not copied.
            native: pl.DataFrame = rows.to_native().collect()
            columns = {name: _in_arrow(native[name]) for name in native.columns}
            answer = cells_in_memory(pa.table(columns), question)
            if doubts.reals or not doubts.texts:
                return answer
            # Each name is looked at once: a dictionary holds those that rows have.
            looks = (pl.DataFrame({name: columns[name].dictionary}).select(_spaced(pl.all())) for name in doubts.texts)
            return answer.append_column("spaced", pa.repeat(any(look.item() for look in looks), len(answer)))
        if drawn:
            # Polars has no md5: the distinct rows from which it draws are read; so are those of several cells.
            frequent, own = question.one_cell == "most_frequent", ["v"] if question.bounds else []
            if own:
                rows = rows.with_columns(v=clamped(nw.col("v").sum().over(*units, *keys), question))
            pairs = most_frequent(rows, units, [*keys, *own]) if frequent else rows.unique()
            drawn_by = question if question.one_cell == "error" else replace(question, one_cell="hash")
            return cells_in_memory(collected(pairs), drawn_by)
        return cells_query(rows, question, doubts).to_native().collect(engine="streaming").to_arrow()


def _in_arrow(column: pl.Series) -> Any:
    """Return a column in Arrow, text as a dictionary: Polars finds the distinct values faster."""
    if column.dtype != pl.String:
        return column.to_arrow()
    # Categories of their own: shared ones would keep the keys after this.
    return column.cast(pl.Categorical(pl.Categories.random())).to_arrow()


def _by_cell(rows: nw.LazyFrame[Any], cell: list[str], doubts: Doubts, engine: Any) -> Any:
    """Count by way of each cell's distinct units, which are looked at, each once.

    A unit is in several cells just when the cells have more units than there are.
    """
    groups: pl.DataFrame = rows.to_native().group_by(cell).agg(pl.col("u0").unique()).collect(engine=engine)
    units = groups["u0"].explode(empty_as_null=False)
    missing = units.null_count()
    several = units.n_unique() - (missing > 0) < len(units) - missing
    present = pl.col("u0").list.drop_nulls() if missing else pl.col("u0")
    looks = {"spaced": units.to_frame().select(_spaced(pl.col("u0"))).item()} if doubts.texts else {}
    checks = {"missing_unit": missing > 0, "several_cells": several} | looks
    return groups.select(*cell, n=present.list.len(), **checks).to_arrow()


def _distinct(names: pl.Expr) -> pl.Expr:
    """Return how many names there are, a missing one left out."""
    return names.n_unique().cast(pl.Int64) - names.is_null().any()


def _spaced(names: pl.Expr) -> pl.Expr:
    """Return whether a name has spaces around it.

    The pattern, which takes longer than to count, reads names that do not begin and end with visible signs of ASCII.
    """
    last = names.cast(pl.Binary).bin.get(-1, null_on_oob=True)
    visible = names.is_between(pl.lit("!"), pl.lit("\x7f")) & last.is_between(0x21, 0x7F)
    return names.filter(~visible).str.contains(SPACED).any()
