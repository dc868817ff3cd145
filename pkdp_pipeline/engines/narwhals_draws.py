"""How a hash draws cells in the lazy queries of Spark and of Ibis, by the rule of `engines.draws`."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, TypeAlias

import narwhals.stable.v2 as nw

from pkdp_pipeline.engines.draws import PRIME, SPREAD, WHOLE

Rows: TypeAlias = "nw.LazyFrame[Any]"


def drawn(rows: Rows, unit: list[str], cell: list[str], most: int, own: list[str]) -> Rows:
    """Return at most this many cells of each unit, those of its smallest draws, each once.

    `own` names columns that are the same in all rows of a unit and a cell, and are kept.
    """
    draw = _by_ibis if rows.implementation.is_ibis() else _by_spark
    chosen: Rows = nw.from_native(draw(rows, unit, cell, most, own)).lazy()
    return chosen


def _by_spark(rows: Rows, unit: list[str], cell: list[str], most: int, own: list[str]) -> Any:
    """Number each row, so that the rows are read once and, where one cell is drawn, change places once, by unit.

    To make pairs distinct first took a million rows half as long again (T3 in benchmarks/bench_engines.py).
    """
    from pyspark.sql import Window, functions

    native = rows.select(*unit, *cell, *own).to_native()
    pairs: Rows = nw.from_native(native if most == 1 else native.distinct()).lazy()
    numbers = _texts(pairs, unit) | {"pick": _cell_text(pairs, cell)}
    native = pairs.with_columns(**numbers).to_native()
    for name in numbers:
        digits = (functions.substring(functions.md5(name), start, 2) for start in (7, 5, 3, 1))
        native = native.withColumn(name, functions.conv(functions.concat(*digits), 16, 10).cast("long") % PRIME)
    draw = _draw([functions.col(f"{name}_number") for name in unit], functions.col("pick"))
    # Of equal draws the smallest cell comes first, missing keys last.
    order = [part for name in cell for part in (functions.col(name).isNull(), functions.col(name))]
    place = functions.row_number().over(Window.partitionBy(*unit).orderBy(draw, *order))
    return native.withColumn("place", place).where(functions.col("place") <= most).select(*unit, *cell, *own)


def _by_ibis(rows: Rows, unit: list[str], cell: list[str], most: int, own: list[str]) -> Any:
    """Hash each unit and each cell in the first of its rows, so that the rows are read once.

    PostgreSQL takes a microsecond for each MD5, and computes anew what is written twice, but not behind a window.
    To hash every pair of a unit and a cell took five times as long (T3 in benchmarks/bench_engines.py).
    """
    import ibis

    # Declared by their signatures: Ibis has no rule of its own for MD5 in BigQuery and in Snowflake.
    builtin = ibis.udf.scalar.builtin
    md5 = builtin(lambda text: None, name="md5", signature=(("string",), "string"))
    substr = builtin(
        lambda text, start, length: None, name="substr", signature=(("string", "int64", "int64"), "string")
    )
    to_hex = builtin(lambda digest: None, name="to_hex", signature=(("string",), "string"))

    def number(digest: Any) -> Any:
        # The first of four bytes counts least, in each the first digit most. Twice the prime changes nothing, but that
        # PostgreSQL would multiply smaller factors in 32 bits.
        digits = (ibis.literal("0123456789abcdef").find(substr(digest, index + 1, 1)) for index in range(8))
        places = (1, 0, 3, 2, 5, 4, 7, 6)
        return sum(digit * (16**place + 2 * PRIME) for digit, place in zip(digits, places, strict=True)) % PRIME

    texts = _texts(rows, unit) | {"pick": _cell_text(rows, cell)}
    table = rows.select(*unit, *cell, *own).with_columns(**texts).to_native()
    # Units last: the rows are in their order then, in which PostgreSQL ranks the draws of each.
    for name, keys in {"pick": cell, **{f"{name}_number": [name] for name in unit}}.items():
        digest = to_hex(md5(table[name])) if backend_of(table) == "bigquery" else md5(table[name])
        first = ibis.row_number().over(group_by=keys) == 0
        table = table.mutate(**{name: ibis.ifelse(first, digest, ibis.null("string"))})
        table = table.mutate(**{name: number(table[name]).max().over(group_by=keys)})
    drawn = table.select(*unit, *cell, *own, draw=_draw([table[f"{name}_number"] for name in unit], table.pick))
    if most > 1:
        drawn = drawn.distinct()
    # Of equal draws the smallest cell comes first, missing keys last.
    order = ["draw", *(part for name in cell for part in (drawn[name].isnull(), name))]
    ranked = drawn.mutate(place=ibis.row_number().over(group_by=unit, order_by=order))
    return ranked.filter(ranked.place < most).select(*unit, *cell, *own)


def _draw(units: list[Any], cell: Any) -> Any:
    """Return the draw of a unit, whose columns have these numbers, and a cell; for Spark and Ibis alike."""
    person = units[0]
    for number in units[1:]:
        person = (person * SPREAD + number) % PRIME
    x = (person + cell) % PRIME
    y = x * x % PRIME
    return (y * y % PRIME) * x % PRIME


def _texts(rows: Rows, unit: list[str]) -> dict[str, nw.Expr]:
    schema = rows.collect_schema()
    return {f"{name}_number": _text(name, schema[name]) for name in unit}


def _cell_text(rows: Rows, cell: list[str]) -> nw.Expr:
    """Return the text of a cell: those of its keys, each with its length before it."""
    schema = rows.collect_schema()
    texts = [_text(name, schema[name]) for name in cell]
    parts = (nw.concat_str(text.str.len_chars().cast(nw.String), text, separator=":") for text in texts)
    return nw.concat_str(*(part.fill_null("-") for part in parts))


def _text(name: str, dtype: Any) -> nw.Expr:
    """Return a value's text as `engines.draws` has it: whole numbers are written out, decimals without ending zeros."""
    column = nw.col(name)
    text = column.cast(nw.String)
    if isinstance(dtype, nw.Decimal):
        shorter = text.str.replace_all(r"\.?0+$", "")
        return nw.when(text.str.contains(".", literal=True)).then(shorter).otherwise(text)
    if dtype != nw.Float64:
        return text
    whole = nw.when(column.abs() < nw.lit(WHOLE)).then(column.cast(nw.Int64))
    return nw.when(whole.cast(nw.Float64) == column).then(whole.cast(nw.String)).otherwise(text)


def backend_of(table: Any) -> str:
    """Return the name of an Ibis table's backend; none of a table that has none."""
    from ibis.common.exceptions import IbisError

    with suppress(IbisError):
        return str(table.get_backend().name)
    return ""
