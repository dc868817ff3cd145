"""How a hash draws cells in the lazy queries of Spark and of Ibis, by the rule of `engines.draws`."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, TypeAlias

import narwhals.stable.v2 as nw

from pkdp_pipeline.engines.draws import PRIME, SPREAD, WHOLE

Rows: TypeAlias = "nw.LazyFrame[Any]"


def drawn(rows: Rows, unit: list[str], cell: list[str], most: int) -> Rows:
    """Return at most so many cells of each unit, those of its smallest draws, each once."""
    draw = _by_ibis if rows.implementation.is_ibis() else _by_spark
    chosen: Rows = nw.from_native(draw(rows, unit, cell, most)).lazy()
    return chosen


def _by_spark(rows: Rows, unit: list[str], cell: list[str], most: int) -> Any:
    """Number each row, so that the rows are read once and, where one cell is drawn, change places once, by unit.

    To make pairs distinct first took a million rows half as long again (T3 in benchmarks/bench_engines.py).
    """
    from pyspark.sql import Window, functions

    native = rows.select(*unit, *cell).to_native()
    pairs = _lazy(native if most == 1 else native.distinct())
    numbers = _texts(pairs, unit) | {"pick": _cell_text(pairs, cell)}
    native = pairs.with_columns(**numbers).to_native()
    for name in numbers:
        digits = (functions.substring(functions.md5(name), at, 2) for at in (7, 5, 3, 1))
        native = native.withColumn(name, functions.conv(functions.concat(*digits), 16, 10).cast("long") % PRIME)
    draw = _draw([functions.col(f"{name}_number") for name in unit], functions.col("pick"))
    # Of equal draws the smallest cell comes first, missing keys last.
    order = [part for name in cell for part in (functions.col(name).isNull(), functions.col(name))]
    place = functions.row_number().over(Window.partitionBy(*unit).orderBy(draw, *order))
    return native.withColumn("place", place).where(functions.col("place") <= most).select(*unit, *cell)


def _by_ibis(rows: Rows, unit: list[str], cell: list[str], most: int) -> Any:
    """Number each unit and each cell once, join, and choose by one number, made of a draw and a cell's code.

    PostgreSQL takes a microsecond for each MD5, and computes anew what is written twice, but not what is aggregated.
    One million rows took 160 MD5s each and more than five minutes when every pair was numbered where it is used (T3 in
    benchmarks/bench_engines.py).
    """
    import ibis

    native = rows.to_native()
    kinds = {name: native[name].type() for name in cell}
    # No database joins NULL with NULL quickly.
    filled = {name: "1970-01-01" if kind.is_string() or kind.is_temporal() else 0 for name, kind in kinds.items()}
    places = {f"{name}_filled": native[name].fill_null(ibis.literal(filled[name], kinds[name])) for name in cell}
    places |= {f"{name}_missing": native[name].isnull() for name in cell}
    placed = native.mutate(**places)
    people = _distinct(placed, unit)
    cells = _distinct(placed, list(places))
    named = {
        name: ibis.ifelse(cells[f"{name}_missing"], ibis.null(kinds[name]), cells[f"{name}_filled"]) for name in cell
    }
    cells = cells.mutate(**named)
    order = [part for name in cell for part in (f"{name}_missing", f"{name}_filled")]
    cells = _numbered(cells, [*places, *cell], {"pick": _cell_text(_lazy(cells), cell)})
    cells = cells.mutate(code=ibis.row_number().over(order_by=order))
    joined = placed.left_join(_numbered(people, unit, _texts(_lazy(people), unit)), unit)
    joined = joined.select(*unit, *places, *(name + "_number" for name in unit))
    joined = joined.left_join(cells, list(places))
    draw = _draw([joined[f"{name}_number"].fill_null(0) for name in unit], joined.pick)
    draws = joined.select(*unit, draw=draw * (PRIME + 1) + joined.code)
    if most == 1:
        chosen = draws.group_by(unit).agg(draw=draws.draw.min())
    else:
        ranked = draws.distinct().mutate(place=ibis.row_number().over(group_by=unit, order_by="draw"))
        chosen = ranked.filter(ranked.place < most)
    chosen = chosen.select(*unit, code=chosen.draw % (PRIME + 1))
    return chosen.join(cells, "code").select(*unit, *cell)


def _distinct(table: Any, columns: list[str]) -> Any:
    return table.select(*columns).distinct()


def _numbered(table: Any, keys: list[str], texts: dict[str, nw.Expr]) -> Any:
    """Return the keys of an Ibis table of distinct ones with the numbers of texts."""
    import ibis

    # Declared by their signatures: Ibis has no rule of its own for MD5 in BigQuery and in Snowflake.
    builtin = ibis.udf.scalar.builtin
    md5 = builtin(lambda text: None, name="md5", signature=(("string",), "string"))
    substr = builtin(lambda text, at, length: None, name="substr", signature=(("string", "int64", "int64"), "string"))
    to_hex = builtin(lambda digest: None, name="to_hex", signature=(("string",), "string"))

    def number(digest: Any) -> Any:
        # The first of four bytes counts least, in each the first digit most. Twice the prime changes nothing, but that
        # PostgreSQL would multiply smaller factors in 32 bits.
        digits = (ibis.literal("0123456789abcdef").find(substr(digest, at + 1, 1)) for at in range(8))
        places = (1, 0, 3, 2, 5, 4, 7, 6)
        return sum(digit * (16**place + 2 * PRIME) for digit, place in zip(digits, places, strict=True)) % PRIME

    table = _lazy(table).with_columns(**texts).to_native()
    digests = {
        name: to_hex(md5(table[name])) if backend_of(table) == "bigquery" else md5(table[name]) for name in texts
    }
    table = table.group_by(keys).agg(**{name: digest.max() for name, digest in digests.items()})
    return table.group_by(keys).agg(**{name: number(table[name]).max() for name in texts})


def _lazy(native: Any) -> Rows:
    lazy: Rows = nw.from_native(native).lazy()
    return lazy


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
