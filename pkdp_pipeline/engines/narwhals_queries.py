"""The lazy queries of engines that Narwhals reads: one aggregation answers the counts and all checks at once.

A hash draws cells in the queries of Spark and of Ibis, by the rule of `engines.statements`.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, TypeAlias

import narwhals.stable.v2 as nw

from pkdp_pipeline.engines import DRAWN, NO_DOUBTS, SPACES, Doubts, keys_of, numbered
from pkdp_pipeline.engines.statements import PRIME, SPREAD, WHOLE
from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.model.columns import Selection

#: The pattern of a text with spaces around it.
SPACED = f"^[{SPACES}]|[{SPACES}]$"


def cells_query(rows: Rows, question: Selection, doubts: Doubts = NO_DOUBTS) -> Rows:
    """Return the query for (b0, b1, …, n, missing_unit, several_cells), of sums also total, one row per cell.

    With `doubts` it has the answers of `doubts_query` as well, each true in some row or in none: each unit is looked at
    once, not each row.
    """
    unit, cell, own = numbered("u", len(question.unit)), keys_of(question), ["v"] if question.bounds else []
    counted = [nw.len().alias("n"), *(nw.col(name).sum().alias("total") for name in own)]
    if not unit:
        nobody = nw.lit(False)
        added = rows.with_columns(v=clamped(nw.col("v"), question)) if own else rows
        return added.group_by(*cell).agg(*counted).with_columns(missing_unit=nobody, several_cells=nobody)
    several: Any = nw.lit(False)
    if own and question.one_cell != "error":
        # Each of a unit's rows in a cell has what the unit adds to it.
        rows = rows.with_columns(v=nw.col("v").sum().over(*unit, *cell))
    if question.one_cell in DRAWN:
        pairs = most_frequent(rows, unit, [*cell, *own]) if question.one_cell == "most_frequent" else rows
        homes = drawn(pairs, unit, cell, question.cells_per_unit, own)
    elif question.cells_per_unit > 1:
        pairs = rows.group_by(*unit, *cell).agg(often=nw.len()).with_columns(one=nw.lit(1))
        homes, several = (
            pairs.with_columns(held=nw.col("one").sum().over(*unit)),
            nw.col("held") > question.cells_per_unit,
        )
    elif question.one_cell == "error":
        # One grouping by unit, so that the rows change places once. A unit has one cell where the smallest is the
        # largest, column by column, and no key is missing in some of its rows only.
        homes = rows.group_by(*unit).agg(
            *(nw.col(name).min() for name in cell),
            *(nw.col(name).max().alias(f"{name}_last") for name in cell),
            *(nw.col(name).count().alias(f"{name}_keys") for name in cell),
            *(nw.col(name).sum() for name in own),
            nw.len().alias("often"),
        )
        several = nw.any_horizontal(*(_differs(name) for name in cell), ignore_nulls=True)
    else:
        homes = _first(rows, unit, [*numbered("o", len(question.order_by)), *cell], question.one_cell)
    missing = is_missing(unit)
    adds = {name: nw.when(~missing).then(clamped(nw.col(name), question)) for name in own}
    looks = doubted(doubts)
    marked = looked_at(homes, doubts).select(
        *cell, *looks, present=as_number(~missing), missing=missing, several=several & ~missing, **adds
    )
    return marked.group_by(*cell).agg(
        nw.col("present").sum().alias("n"),
        *counted[1:],
        nw.col("missing").any().alias("missing_unit"),
        nw.col("several").any().alias("several_cells"),
        *(nw.col(name).any() for name in looks),
    )


def clamped(number: nw.Expr, question: Selection) -> nw.Expr:
    """Return what a unit adds, clamped to the bounds; a missing number is 0."""
    least, most = question.bounds or (0, 0)
    number = number.fill_null(0)
    below = nw.when(number < least).then(nw.lit(least)).otherwise(number)
    return nw.when(number > most).then(nw.lit(most)).otherwise(below).cast(nw.Int64)


def tally_query(rows: Rows, *, units: int, everybody: bool = True, doubts: Doubts = NO_DOUBTS) -> Rows:
    """Return the query for (satisfying, population, missing_unit), one row; ``hit`` says which rows satisfy.

    Without `everybody` the population means nothing: other rows are left out before units are made, which is most of
    the work. With `doubts` see `cells_query`.
    """
    if not units:
        hits = as_number(nw.col("hit")).sum()
        return rows.select(satisfying=hits, population=nw.len()).with_columns(missing_unit=nw.lit(False))
    unit = numbered("u", units)
    missing, looks = is_missing(unit), doubted(doubts)
    if not everybody:
        kept = nw.any_horizontal(nw.col("hit"), missing, *(nw.col(name) for name in looks), ignore_nulls=False)
        rows = looked_at(rows, doubts).filter(kept)
    people = rows.group_by(*unit).agg(nw.col("hit").any())
    marked = looked_at(people, doubts).select(
        *looks, satisfying=as_number(nw.col("hit") & ~missing), population=as_number(~missing), missing=missing
    )
    return marked.select(
        nw.col("satisfying").sum(),
        nw.col("population").sum(),
        nw.col("missing").any().alias("missing_unit"),
        *(nw.col(name).any() for name in looks),
    )


def doubts_query(rows: Rows, doubts: Doubts) -> Rows:
    """Return the query for (spaced, rounded), one row: whether a text has spaces around it, and a real is so large.

    Of what no column can be, there is no answer.
    """
    return looked_at(rows, doubts).select(*(nw.col(name).any() for name in doubted(doubts)))


def looked_at(rows: Rows, doubts: Doubts) -> Rows:
    """Return rows with the columns of `doubted`, as their engine finds spaces fastest."""
    looks, texts = doubted(doubts), doubts.texts
    if texts and rows.implementation.is_polars():
        matches = (nw.col(name).str.contains(SPACED).fill_null(False) for name in texts)
        looks["spaced"] = nw.any_horizontal(*matches, ignore_nulls=True)
    elif texts and rows.implementation.is_ibis() and backend_of(table := rows.to_native()) == "postgres":
        import ibis

        # Code points are compared in a seventh of the time, and by no collation.
        signs = [end.ascii_str() for name in texts for end in (table[name], table[name].right(1))]
        spaced = ibis.or_(*(sign.isin(list(map(ord, SPACES))).fill_null(False) for sign in signs))
        rows = nw.from_native(table.mutate(spaced=spaced)).lazy()
        del looks["spaced"]
    return rows.with_columns(**looks) if looks else rows


def doubted(doubts: Doubts) -> dict[str, nw.Expr]:
    """Return whether a row's text has spaces around it, and whether a real of it is so large; never missing."""
    # Two signs of each value: to trim all of them takes several times as long.
    ends = [end for name in doubts.texts for end in (nw.col(name).str.head(1), nw.col(name).str.tail(1))]
    answers = {
        "spaced": [end.is_in(list(SPACES)) for end in ends],
        "rounded": [nw.col(name).abs().is_between(least, sys.float_info.max) for name, least in doubts.reals.items()],
    }
    return {
        name: nw.any_horizontal(*(answer.fill_null(False) for answer in each), ignore_nulls=True)
        for name, each in answers.items()
        if each
    }


def alike_query(rows: Rows, *, units: int, texts: Sequence[str]) -> Rows:
    """Return the query for (alike), one row: whether two units are one when their columns of text are trimmed."""
    unit = numbered("u", units)
    names = {name: f"{name}_trimmed" for name in unit}
    trimmed = rows.filter(~is_missing(unit)).with_columns(
        **{short: _trimmed(rows, name) if name in texts else nw.col(name) for name, short in names.items()}
    )
    ends = trimmed.group_by(*names.values()).agg(
        *(nw.col(name).min() for name in unit), *(nw.col(name).max().alias(f"{name}_last") for name in unit)
    )
    differ = nw.any_horizontal(*(nw.col(name) != nw.col(f"{name}_last") for name in unit), ignore_nulls=True)
    return ends.select(alike=differ.any())


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


def is_missing(unit: list[str]) -> nw.Expr:
    """Return whether a row's unit is missing."""
    return nw.any_horizontal(*(nw.col(name).is_null() for name in unit), ignore_nulls=False)


def _first(rows: Rows, unit: list[str], ranked: list[str], one_cell: str) -> Rows:
    """Return the first row of each unit in the order of these columns, missing values last."""
    if one_cell != "first":
        raise ArgumentError(f"one_cell has no rule {one_cell!r}.")
    marked = rows.with_columns(**{f"{name}_missing": as_number(nw.col(name).is_null()) for name in ranked})
    order = [part for name in ranked for part in (f"{name}_missing", name)]
    return marked.unique(unit, keep="first", order_by=order)


def most_frequent(rows: Rows, unit: list[str], cell: list[str]) -> Rows:
    """Return the cells in which a unit has most rows, each once."""
    counted = rows.group_by(*unit, *cell).agg(nw.len().alias("often"))
    # In two steps: not every database filters by what is computed over other rows.
    ranked = counted.with_columns(most=nw.col("often").max().over(*unit))
    return ranked.filter(nw.col("often") == nw.col("most")).select(*unit, *cell)


Rows: TypeAlias = "nw.LazyFrame[Any]"


def drawn(rows: Rows, unit: list[str], cell: list[str], most: int, own: list[str]) -> Rows:
    """Return at most this many cells of each unit, those of its smallest draws, each once.

    `own` names columns that are the same in all rows of a unit and a cell, and are kept.
    """
    draw = _by_ibis if rows.implementation.is_ibis() else _by_spark
    if most == 1 and not own and draw is _by_ibis and _is_in_postgres(rows):
        draw = _by_postgres
    chosen: Rows = nw.from_native(draw(rows, unit, cell, most, own)).lazy()
    return chosen


def _by_spark(rows: Rows, unit: list[str], cell: list[str], most: int, own: list[str]) -> Any:
    """Number each row, so that the rows are read once and, where one cell is drawn, change places once, by unit.

    To make pairs distinct first took a million rows half as long again (T3 in benchmarks/bench_engines.py).
    """
    from pyspark.sql import Window, functions

    native = rows.select(*unit, *cell, *own).to_native()
    # A session's zone is in the text of its instants: what is hashed is the clock of UTC.
    instants = [field.name for field in native.schema if field.dataType.typeName() == "timestamp"]
    seconds = "CAST(CAST(unix_micros({0}) AS decimal(18, 0)) / 1000000 AS decimal(18, 6))"
    clock = "timestamp_ntz'1970-01-01 00:00:00' + make_dt_interval(0, 0, 0, " + seconds + ")"
    native = native.withColumns({f"{name}_instant": functions.col(name) for name in instants})
    native = native.withColumns({name: functions.expr(clock.format(name)) for name in instants})
    pairs: Rows = nw.from_native(native if most == 1 else native.distinct()).lazy()
    numbers = _texts(pairs, unit) | {"pick": _cell_text(pairs, cell)}
    native = pairs.with_columns(**numbers).to_native()
    native = native.withColumns({name: functions.col(f"{name}_instant") for name in instants})
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


def _is_in_postgres(rows: Rows) -> bool:
    """Return whether the text of the query says all about these rows: nothing is sent to the server beside it."""
    import ibis.expr.operations as ops

    native = rows.to_native()
    return backend_of(native) == "postgres" and not native.op().find((ops.InMemoryTable, ops.ScalarUDF))


def _by_postgres(rows: Rows, unit: list[str], cell: list[str], most: int, own: list[str]) -> Any:
    """Gather the cells of each unit in an array, of which the smallest draw is taken: one cell, nothing beside it.

    Each cell is a number: that of its hash, and its place in the order of cells. MATERIALIZED, OFFSET 0: PostgreSQL
    reads the rows once, and computes what follows once for each cell, unit or draw instead of wherever it is named; the
    arrays of units are written nowhere.
    """
    import ibis

    pairs = rows.select(*unit, *cell).to_native()
    backend, kinds = pairs.get_backend(), pairs.schema()

    def texts(name: str, columns: dict[str, Any], added: dict[str, nw.Expr]) -> str:
        table = nw.from_native(ibis.table(columns, name=name)).lazy().with_columns(**added)
        return str(backend.compile(table.to_native()))

    def number(digest: str) -> str:
        octets = (f"CAST(get_byte({digest}, {place}) AS bigint) * {256**place}" for place in range(4))
        return f"(({' + '.join(octets)}) % {PRIME})"

    def same(name: str) -> str:
        # As IS NOT DISTINCT FROM, by which PostgreSQL joins slowly.
        any_value = "1970-01-01" if kinds[name].is_temporal() else "0"
        keys = (f"coalesce({table}.{name}, '{any_value}')" for table in ("pkdp_pairs", "pkdp_cells"))
        return f"{' = '.join(keys)} AND (pkdp_pairs.{name} IS NULL) = (pkdp_cells.{name} IS NULL)"

    units, cells, person = ", ".join(unit), ", ".join(cell), ""
    for name in unit:
        digits = f"coalesce({number(f'{name}_digest')}, 0)"
        person = f"({person} * {SPREAD} + {digits}) % {PRIME}" if person else digits
    keys = texts("pkdp_keys", {name: kinds[name] for name in cell}, {"pick": _cell_text(rows, cell)})
    people = texts("pkdp_homes", {**{name: kinds[name] for name in unit}, "picks": "array<int64>"}, _texts(rows, unit))
    digests = ", ".join(f"decode(md5({name}_number), 'hex') AS {name}_digest" for name in unit)
    order = ", ".join(f"{name} IS NULL, {name}" for name in cell)
    # With x below 2p, x - p is a number of the same square mod p, and no product reaches 2^63.
    square = f"((x - {PRIME}) * (x - {PRIME}) % {PRIME})"
    queries = {
        "pairs": str(backend.compile(pairs)),
        "keys": f"SELECT {cells} FROM pkdp_pairs GROUP BY {cells}",
        "coded": f"SELECT {cells}, decode(md5(pick), 'hex') AS digest, "
        f"row_number() OVER (ORDER BY {order}) - 1 AS code FROM ({keys}) AS pkdp_texts",
        "cells": f"SELECT {cells}, code, {number('digest')} * {PRIME + 1} + code AS pick FROM pkdp_coded",
        # Each cell once: what is kept of a unit does not grow with its rows.
        "homes": f"SELECT {units}, array_agg(DISTINCT pick) AS picks FROM (SELECT pkdp_pairs.*, pick FROM pkdp_pairs "
        f"JOIN pkdp_cells ON {' AND '.join(map(same, cell))}) AS pkdp_picks GROUP BY {units}",
        "people": f"SELECT {units}, picks, {person} AS person FROM (SELECT {units}, picks, {digests} FROM ({people}) "
        "AS pkdp_texts OFFSET 0) AS pkdp_digests OFFSET 0",
        "drawn": f"SELECT {units}, (SELECT min({square} * {square} % {PRIME} * x % {PRIME} * {PRIME + 1} + code) FROM "
        f"(SELECT person + (pick >> 31) AS x, pick & {PRIME} AS code FROM (SELECT unnest(picks) AS pick OFFSET 0) "
        f"AS pkdp_each OFFSET 0) AS pkdp_x) & {PRIME} AS code FROM pkdp_people",
    }
    kept = {name: "" if name in ("homes", "people") else "MATERIALIZED" for name in queries}
    steps = ", ".join(f"pkdp_{name} AS {kept[name]} ({query})" for name, query in queries.items())
    query = f"WITH {steps} SELECT {units}, {cells} FROM pkdp_drawn JOIN pkdp_cells USING (code)"
    return backend.sql(query, schema={name: kinds[name] for name in (*unit, *cell)})


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
    """Return a value's text as `engines.statements` has it: whole numbers in full, decimals without ending zeros."""
    column = nw.col(name)
    if isinstance(dtype, nw.Datetime) and dtype.time_zone is not None:
        # An instant is written as the clock of its zone, UTC, shows it: a zone in the text draws another cell.
        column = column.dt.replace_time_zone(None)
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
