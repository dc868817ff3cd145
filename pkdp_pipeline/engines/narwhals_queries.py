"""The lazy queries of engines that Narwhals reads: one aggregation answers the counts and all checks at once."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, TypeAlias

import narwhals.stable.v2 as nw

from pkdp_pipeline.engines.draws import PRIME, SPREAD, WHOLE
from pkdp_pipeline.engines.question import DRAWN, SPACES, numbered
from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.model.question import Selection

Rows: TypeAlias = "nw.LazyFrame[Any]"


def cells_query(rows: Rows, question: Selection) -> Rows:
    """Return the query for (b0, b1, …, n, missing_unit, several_cells), one row per cell."""
    unit, cell = numbered("u", len(question.unit)), numbered("b", len(question.by))
    if not unit:
        nobody = nw.lit(False)
        return rows.group_by(*cell).agg(nw.len().alias("n")).with_columns(missing_unit=nobody, several_cells=nobody)
    several: Any = nw.lit(False)
    if question.cells_per_unit > 1:
        homes, several = _few(rows, unit, cell, question)
    elif question.one_cell == "error":
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
    missing = _missing(unit)
    marked = homes.select(*cell, present=as_number(~missing), missing=missing, several=several & ~missing)
    return marked.group_by(*cell).agg(
        nw.col("present").sum().alias("n"),
        nw.col("missing").any().alias("missing_unit"),
        nw.col("several").any().alias("several_cells"),
    )


def tally_query(rows: Rows, *, units: int) -> Rows:
    """Return the query for (satisfying, population, missing_unit), one row; ``hit`` says which rows satisfy."""
    if not units:
        hits = as_number(nw.col("hit")).sum()
        return rows.select(satisfying=hits, population=nw.len()).with_columns(missing_unit=nw.lit(False))
    unit = numbered("u", units)
    missing = _missing(unit)
    people = rows.group_by(*unit).agg(nw.col("hit").any())
    marked = people.select(
        satisfying=as_number(nw.col("hit") & ~missing), population=as_number(~missing), missing=missing
    )
    return marked.select(
        nw.col("satisfying").sum(), nw.col("population").sum(), nw.col("missing").any().alias("missing_unit")
    )


def spaced_query(rows: Rows, texts: list[str]) -> Rows:
    """Return the query for (found), one row: whether one of these columns of text has spaces around a value."""
    # Two signs of each value: to trim all of them takes several times as long.
    ends = [end for name in texts for end in (nw.col(name).str.head(1), nw.col(name).str.tail(1))]
    spaced = [end.is_in(list(SPACES)).fill_null(False) for end in ends]
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


def as_number(truth: nw.Expr) -> nw.Expr:
    """Return 1 where something holds, else 0; PostgreSQL does not cast truth to a large number."""
    return nw.when(truth).then(nw.lit(1)).otherwise(nw.lit(0)).cast(nw.Int64)


def _differs(key: str) -> nw.Expr:
    """Return whether a unit's rows differ in one key; never missing."""
    keys = nw.col(f"{key}_keys")
    mixed = (keys > 0) & (keys < nw.col("often"))
    return mixed | ((keys > 0) & (nw.col(key) != nw.col(f"{key}_last"))).fill_null(False)


def _missing(unit: list[str]) -> nw.Expr:
    return nw.any_horizontal(*(nw.col(name).is_null() for name in unit), ignore_nulls=False)


def _few(rows: Rows, unit: list[str], cell: list[str], question: Selection) -> tuple[Rows, nw.Expr]:
    """Return the cells of each unit, each once, and whether it has too many; where a hash draws, just so many."""
    pairs, most = rows.select(*unit, *cell).unique().with_columns(one=nw.lit(1)), question.cells_per_unit
    if question.one_cell == "error":
        return pairs.with_columns(held=nw.col("one").sum().over(*unit)), nw.col("held") > most
    drawn = _drawn(pairs, unit, cell)
    # Of equal draws the smallest cell comes first, missing keys last.
    order = [part for name in cell for part in (f"{name}_missing", name)]
    place = nw.col("one").cum_sum().over(*unit, order_by=["draw", *order])
    marked = drawn.with_columns(**{f"{name}_missing": as_number(nw.col(name).is_null()) for name in cell})
    return marked.with_columns(place=place).filter(nw.col("place") <= most), nw.lit(False)


def _chosen(rows: Rows, unit: list[str], cell: list[str], one_cell: str, orders: list[str]) -> Rows:
    """Return one row per unit: the cell that the rule chooses, of equals the smallest, missing values last."""
    if one_cell in DRAWN:
        pairs = most_frequent(rows, unit, cell) if one_cell == "most_frequent" else rows.select(*unit, *cell).unique()
        rows, orders = _drawn(pairs, unit, cell), ["draw"]
    elif one_cell != "first":
        raise ArgumentError(f"one_cell has no rule {one_cell!r}.")
    ranked = [*orders, *cell]
    marked = rows.with_columns(**{f"{name}_missing": as_number(nw.col(name).is_null()) for name in ranked})
    order = [part for name in ranked for part in (f"{name}_missing", name)]
    return marked.unique(unit, keep="first", order_by=order).select(*unit, *cell)


def most_frequent(rows: Rows, unit: list[str], cell: list[str]) -> Rows:
    """Return the cells in which a unit has most rows, each once."""
    held = rows.group_by(*unit, *cell).agg(nw.len().alias("often"))
    # In two steps: not every database filters by what is computed over other rows.
    ranked = held.with_columns(most=nw.col("often").max().over(*unit))
    return ranked.filter(nw.col("often") == nw.col("most")).select(*unit, *cell)


def _drawn(pairs: Rows, unit: list[str], cell: list[str]) -> Rows:
    """Return pairs of unit and cell with the draw of each; see `engines.draws`."""
    schema, person = pairs.collect_schema(), nw.lit(0)
    for name in unit:
        pairs = _with_text_number(pairs, f"{name}_number", _text(name, schema[name]))
        number = nw.col(f"{name}_number")
        person = number if name == unit[0] else (person * SPREAD + number) % PRIME
    texts = [_text(name, schema[name]) for name in cell]
    parts = [nw.concat_str(text.str.len_chars().cast(nw.String), text, separator=":") for text in texts]
    pairs = _with_text_number(pairs, "pick", nw.concat_str(*(part.fill_null("-") for part in parts)))
    x, y = nw.col("x"), nw.col("y")
    # In steps: a database would compute anew what is written twice.
    return (
        pairs.with_columns(x=(person + nw.col("pick")) % PRIME)
        .with_columns(y=x * x % PRIME)
        .with_columns(draw=(y * y % PRIME) * x % PRIME)
    )


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


def _with_text_number(rows: Rows, name: str, text: nw.Expr) -> Rows:
    """Return the rows with one more column, the number of a text."""
    native = rows.with_columns(**{name: text}).to_native()
    numbered = _of_ibis if rows.implementation.is_ibis() else _of_spark
    lazy: Rows = nw.from_native(numbered(native, name)).lazy()
    return lazy


def _of_spark(native: Any, name: str) -> Any:
    from pyspark.sql import functions

    pairs = (functions.substring(functions.md5(name), at, 2) for at in (7, 5, 3, 1))
    return native.withColumn(name, functions.conv(functions.concat(*pairs), 16, 10).cast("long") % PRIME)


def _of_ibis(native: Any, name: str) -> Any:
    import ibis

    # Declared by their signatures: Ibis has no rule of its own for MD5 in BigQuery and in Snowflake.
    builtin = ibis.udf.scalar.builtin
    md5 = builtin(lambda text: None, name="md5", signature=(("string",), "string"))
    substr = builtin(lambda text, at, length: None, name="substr", signature=(("string", "int64", "int64"), "string"))
    to_hex = builtin(lambda digest: None, name="to_hex", signature=(("string",), "string"))
    digest = md5(native[name])
    native = native.mutate(**{name: to_hex(digest) if backend_of(native) == "bigquery" else digest})
    # The first of four bytes counts least, in each the first digit most. Twice the prime changes nothing, but that
    # PostgreSQL would multiply smaller factors in 32 bits.
    digits = (ibis.literal("0123456789abcdef").find(substr(native[name], at + 1, 1)) for at in range(8))
    number = sum(digit * (16**place + 2 * PRIME) for digit, place in zip(digits, (1, 0, 3, 2, 5, 4, 7, 6), strict=True))
    return native.mutate(**{name: number % PRIME})


def backend_of(table: Any) -> str:
    """Return the name of an Ibis table's backend; none of a table that has none."""
    from ibis.common.exceptions import IbisError

    with suppress(IbisError):
        return str(table.get_backend().name)
    return ""
