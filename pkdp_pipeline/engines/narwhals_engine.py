"""Whatever Narwhals knows, counted by lazy queries: one aggregation answers the counts and all checks at once."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeAlias, TypeVar

import narwhals.stable.v2 as nw

from pkdp_pipeline.engines import engine_for
from pkdp_pipeline.engines.memory import cells_in_memory, tally_in_memory, units_in_memory
from pkdp_pipeline.engines.narwhals_columns import comparable, condition, family, nameable, opened, to_public
from pkdp_pipeline.engines.question import (
    DRAWN,
    SPACES,
    CellCounts,
    Tally,
    Units,
    not_counted,
    numbered,
    wrong_where,
)
from pkdp_pipeline.errors import ArgumentError, PkdpError
from pkdp_pipeline.model.predicate import Condition, Predicate, check_columns
from pkdp_pipeline.model.question import Selection

Rows: TypeAlias = "nw.LazyFrame[Any]"


def cells_query(rows: Rows, question: Selection) -> Rows:
    """Return the query for (b0, b1, …, n, missing_unit, several_cells), one row per cell."""
    unit, cell = numbered("u", len(question.unit)), numbered("b", len(question.by))
    if not unit:
        nobody = nw.lit(False)
        return rows.group_by(*cell).agg(nw.len().alias("n")).with_columns(missing_unit=nobody, several_cells=nobody)
    if question.one_cell == "error":
        # One grouping by unit, so that the rows change places once. A unit has one cell where the smallest is the
        # largest, column by column, and no key is missing in some of its rows only.
        homes = rows.group_by(*unit).agg(
            *(nw.col(name).min() for name in cell),
            *(nw.col(name).max().alias(f"{name}_last") for name in cell),
            *(nw.col(name).count().alias(f"{name}_keys") for name in cell),
            nw.len().alias("often"),
        )
        several = nw.any_horizontal(*(_differs(name) for name in cell), ignore_nulls=True)
    else:
        homes = _chosen(rows, unit, cell, question.one_cell, numbered("o", len(question.order_by)))
        several = nw.lit(False)
    missing = _missing(unit)
    marked = homes.select(*cell, present=(~missing).cast(nw.Int64), missing=missing, several=several & ~missing)
    return marked.group_by(*cell).agg(
        nw.col("present").sum().alias("n"),
        nw.col("missing").any().alias("missing_unit"),
        nw.col("several").any().alias("several_cells"),
    )


def tally_query(rows: Rows, *, units: int) -> Rows:
    """Return the query for (satisfying, population, missing_unit), one row; ``hit`` says which rows satisfy."""
    if not units:
        hits = nw.col("hit").cast(nw.Int64).sum()
        return rows.select(satisfying=hits, population=nw.len()).with_columns(missing_unit=nw.lit(False))
    unit = numbered("u", units)
    missing = _missing(unit)
    people = rows.group_by(*unit).agg(nw.col("hit").any())
    marked = people.select(
        satisfying=(nw.col("hit") & ~missing).cast(nw.Int64), population=(~missing).cast(nw.Int64), missing=missing
    )
    return marked.select(
        nw.col("satisfying").sum(), nw.col("population").sum(), nw.col("missing").any().alias("missing_unit")
    )


def spaced_query(rows: Rows, texts: list[str]) -> Rows:
    """Return the query for (found), one row: whether one of these columns of text has spaces around a value."""
    spaced = [(_trimmed(rows, name) != nw.col(name)).fill_null(False) for name in texts]
    return rows.select(found=nw.any_horizontal(*spaced, ignore_nulls=True).any())


def alike_query(rows: Rows, *, units: int, texts: list[str]) -> Rows:
    """Return the query for (found), one row: whether two units are one when their columns of text are trimmed."""
    unit = numbered("u", units)
    names = {name: f"{name}_trimmed" for name in unit}
    trimmed = rows.filter(~_missing(unit)).with_columns(
        **{short: _trimmed(rows, name) if name in texts else nw.col(name) for name, short in names.items()}
    )
    ends = trimmed.group_by(*names.values()).agg(
        *(nw.col(name).min() for name in unit), *(nw.col(name).max().alias(f"{name}_last") for name in unit)
    )
    differ = nw.any_horizontal(*(nw.col(name) != nw.col(f"{name}_last") for name in unit), ignore_nulls=True)
    return ends.select(found=differ.any())


def _trimmed(rows: Rows, name: str) -> nw.Expr:
    text = nw.col(name).str
    # Ibis strips no signs that are named.
    return (
        text.replace_all(f"^[{SPACES}]+|[{SPACES}]+$", "")
        if rows.implementation.is_ibis()
        else text.strip_chars(SPACES)
    )


def _differs(key: str) -> nw.Expr:
    """Return whether a unit's rows differ in one key; never missing."""
    keys = nw.col(f"{key}_keys")
    mixed = (keys > 0) & (keys < nw.col("often"))
    return mixed | ((keys > 0) & (nw.col(key) != nw.col(f"{key}_last"))).fill_null(False)


def _missing(unit: list[str]) -> nw.Expr:
    return nw.any_horizontal(*(nw.col(name).is_null() for name in unit), ignore_nulls=False)


def _chosen(rows: Rows, unit: list[str], cell: list[str], one_cell: str, orders: list[str]) -> Rows:
    """Return one row per unit: the cell that the rule chooses, of equals the smallest, missing values last."""
    if one_cell in DRAWN:
        pairs = most_frequent(rows, unit, cell) if one_cell == "most_frequent" else rows.select(*unit, *cell).unique()
        rows, orders = with_md5(pairs, "pick", _spelled(pairs, [*unit, *cell])), ["pick"]
    elif one_cell != "first":
        raise ArgumentError(f"one_cell has no rule {one_cell!r}.")
    ranked = [*orders, *cell]
    marked = rows.with_columns(**{f"{name}_missing": nw.col(name).is_null().cast(nw.Int64) for name in ranked})
    order = [part for name in ranked for part in (f"{name}_missing", name)]
    return marked.unique(unit, keep="first", order_by=order).select(*unit, *cell)


def most_frequent(rows: Rows, unit: list[str], cell: list[str]) -> Rows:
    """Return the cells in which a unit has most rows, each once."""
    held = rows.group_by(*unit, *cell).agg(nw.len().alias("often"))
    return held.filter(nw.col("often") == nw.col("often").max().over(*unit)).select(*unit, *cell)


def _spelled(rows: Rows, names: list[str]) -> nw.Expr:
    """Return columns as text so that no two lists of values are spelled alike; see `engines.rows`."""
    schema = rows.collect_schema()
    texts = [_text(name, real=schema[name] == nw.Float64) for name in names]
    parts = [nw.concat_str(text.str.len_chars().cast(nw.String), text, separator=":") for text in texts]
    return nw.concat_str(*(part.fill_null("-") for part in parts))


def _text(name: str, *, real: bool) -> nw.Expr:
    column = nw.col(name)
    if not real:
        return column.cast(nw.String)
    whole = nw.when(column.abs() < nw.lit(1e16)).then(column.cast(nw.Int64))
    return nw.when(whole.cast(nw.Float64) == column).then(whole.cast(nw.String)).otherwise(column.cast(nw.String))


def with_md5(rows: nw.LazyFrame[Any], name: str, text: nw.Expr) -> nw.LazyFrame[Any]:
    """Return the rows with one more column, the MD5 of a text; some backends give it as bytes, ordered as its text."""
    native = rows.with_columns(**{name: text}).to_native()
    digested = _of_ibis if rows.implementation.is_ibis() else _of_spark
    lazy: nw.LazyFrame[Any] = nw.from_native(digested(native, name)).lazy()
    return lazy


def _of_spark(native: Any, name: str) -> Any:
    from pyspark.sql import functions

    return native.withColumn(name, functions.md5(name))


def _of_ibis(native: Any, name: str) -> Any:
    import ibis

    # Declared by its signature: Ibis has no rule of its own for this in BigQuery and in Snowflake.
    md5 = ibis.udf.scalar.builtin(lambda text: None, name="md5", signature=(("string",), "string"))
    return native.mutate(**{name: md5(native[name])})


class NarwhalsEngine:
    """Counts the distinct units of a frame that Narwhals can read; only counted cells leave the frame's engine."""

    def cells(self, frame: Any, question: Selection) -> CellCounts:
        """See `Engine.cells`."""
        frame, question = self._with_answers(frame, question)
        source = self._source(frame, question)
        rows = source.selected(question)
        answer = asked(lambda: self._counted(rows, question, frame))
        return CellCounts.of(answer, question.by, lambda keys, name: to_public(keys, source.schema[name]))

    def tally(self, frame: Any, question: Selection) -> Tally:
        """See `Engine.tally`."""
        frame, question = self._with_answers(frame, question)
        rows = self._source(frame, question).marked(question)
        return asked(lambda: self._tallied(rows, len(question.unit)))

    def units(self, frame: Any, unit: tuple[str, ...]) -> Units:
        """See `Engine.units`."""
        question = Selection(unit=unit)
        source = self._source(frame, question)
        rows, texts = source.selected(question), source.texts(unit)
        return asked(lambda: self._looked_at(rows, len(unit), texts)) if texts else Units()

    def _with_answers(self, frame: Any, question: Selection) -> tuple[Any, Selection]:
        """Return a frame with a column of what an expression says of its rows, and the question about that column."""
        where = question.where
        if where is None or isinstance(where, Predicate):
            return frame, question
        names = asked(lambda: opened(frame)[1])
        name = next(free for free in ("where", *numbered("where", len(names))) if free not in names)
        marked = asked(lambda: self._marked(frame, where, name))
        return marked, replace(question, where=Condition(name, "==", True))

    def _marked(self, frame: Any, where: Any, name: str) -> Any:
        """Return a frame with a column of this name that holds an expression of the engine's own."""
        raise wrong_where(where, "a column name or a query string for a frame of this kind")

    def _source(self, frame: Any, question: Selection) -> Source:
        return Source(frame)

    def _counted(self, rows: nw.LazyFrame[Any], question: Selection, frame: Any) -> Any:
        """Return an Arrow table of (b0, b1, …, n, missing_unit, several_cells), one row per cell."""
        return collected(cells_query(rows, question))

    def _tallied(self, rows: nw.LazyFrame[Any], units: int) -> Tally:
        return Tally.of(collected(tally_query(rows, units=units)))

    def _looked_at(self, rows: nw.LazyFrame[Any], units: int, texts: list[str]) -> Units:
        if not _found(spaced_query(rows, texts)):
            return Units()
        return Units(alike=_found(alike_query(rows, units=units, texts=texts)))


def _found(query: nw.LazyFrame[Any]) -> bool:
    return bool(collected(query)["found"][0].as_py())


def collected(query: nw.LazyFrame[Any]) -> Any:
    """Return the answer to one query as an Arrow table."""
    return query.collect(backend="pyarrow").to_native()


Answer = TypeVar("Answer")


class Source:
    """A frame's columns as expressions, and the rows they make.

    Parameters
    ----------
    frame : a frame that Narwhals can read
    regex : bool, default True
        As of `condition`.
    """

    def __init__(self, frame: Any, *, regex: bool = True) -> None:
        self._regex = regex
        self._lazy, self.schema = asked(lambda: opened(frame))

    def texts(self, unit: tuple[str, ...]) -> list[str]:
        """Return which of u0, u1, … hold text."""
        named = zip(numbered("u", len(unit)), unit, strict=True)
        return [short for short, name in named if family(self.schema[name]) == "text"]

    def columns(self, question: Selection) -> dict[str, nw.Expr]:
        """Return u0, u1, … (unit), b0, b1, … (by) and o0, o1, … (order_by).

        Raises
        ------
        ArgumentError
            If the frame does not have a column, or not under a type that can be counted.
        """
        named = {"u": ("unit", question.unit), "b": ("by", question.by), "o": ("order_by", question.order_by)}
        for argument, names in named.values():
            check_columns(argument, names, list(self.schema))
        return {
            short: nameable(name, self.schema[name]) if letter == "b" else comparable(argument, name, self.schema[name])
            for letter, (argument, names) in named.items()
            for short, name in zip(numbered(letter, len(names)), names, strict=True)
        }

    def _condition(self, question: Selection) -> nw.Expr | None:
        spark = self._lazy.implementation.is_spark_like()
        return condition(question.where, self.schema, spark=spark, regex=self._regex)

    def selected(self, question: Selection) -> nw.LazyFrame[Any]:
        """Return `columns` of the rows that satisfy ``where``."""
        columns, satisfied = self.columns(question), self._condition(question)
        return asked(lambda: (self._lazy if satisfied is None else self._lazy.filter(satisfied)).select(**columns))

    def marked(self, question: Selection) -> nw.LazyFrame[Any]:
        """Return `columns` of all rows, and ``hit``: whether a row satisfies ``where``."""
        columns, satisfied = self.columns(question), self._condition(question)
        if satisfied is not None:
            return asked(lambda: self._lazy.select(**columns, hit=satisfied))
        if not columns:
            return asked(lambda: self._lazy.with_columns(hit=nw.lit(True)).select("hit"))
        return asked(lambda: self._lazy.select(**columns).with_columns(hit=nw.lit(True)))


def asked(question: Callable[[], Answer]) -> Answer:
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

    def _source(self, frame: Any, question: Selection) -> Source:
        _check_names(frame, question)
        return Source(asked(partial(_typed_table, frame)))

    def _counted(self, rows: nw.LazyFrame[Any], question: Selection, frame: Any) -> Any:
        return cells_in_memory(collected(rows), question)

    def _tallied(self, rows: nw.LazyFrame[Any], units: int) -> Tally:
        return tally_in_memory(collected(rows), units)

    def _looked_at(self, rows: nw.LazyFrame[Any], units: int, texts: list[str]) -> Units:
        return units_in_memory(collected(rows), units, texts)


def _check_names(table: Any, question: Selection) -> None:
    """Raise `ArgumentError` where two columns have one name: which of them is meant, nothing says."""
    names = list(table.schema.names)
    if len(set(names)) == len(names):
        return
    for argument in ("unit", "by", "order_by"):
        check_columns(argument, getattr(question, argument), names)
    twice = next(name for name in names if names.count(name) > 1)
    raise ArgumentError(f"the table has column {twice!r} more than once; rename one, or drop it.")


def _typed_table(table: Any) -> Any:
    """Return a table of which Narwhals knows the types: it takes every dictionary for text, and null for nothing."""
    import pyarrow as pa

    for position, field in enumerate(table.schema):
        kind = field.type
        plain = kind.value_type if pa.types.is_dictionary(kind) else pa.string() if pa.types.is_null(kind) else kind
        plain = pa.large_string() if pa.types.is_string_view(plain) else plain  # Arrow neither encodes nor trims these
        if plain != kind and not (pa.types.is_string(plain) and pa.types.is_dictionary(kind)):
            table = table.set_column(position, field.name, table.column(position).cast(plain))
    return table
