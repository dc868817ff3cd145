"""MD5 where Narwhals has none: in Spark and in the backends of Ibis, by the function that has this name there."""

from __future__ import annotations

from typing import Any

import narwhals.stable.v2 as nw

__all__ = ["with_md5"]


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
