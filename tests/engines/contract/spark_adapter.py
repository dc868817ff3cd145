"""PySpark under contract, in the one session of the test run, whose time zone is not UTC."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from adapters import ADAPTERS, Adapter, plain
from local_spark import local_spark

__all__: list[str] = []


def dataframe(table: pa.Table) -> Any:
    """Return the table as a Spark DataFrame; text is text there, and a timestamp without a zone stays one."""
    columns = {}
    for name in table.column_names:
        column = table.column(name)
        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        columns[name] = column
    spark = local_spark()
    spark.conf.set("spark.sql.timestampType", "TIMESTAMP_NTZ")
    try:
        return spark.createDataFrame(pa.table(columns))
    finally:
        spark.conf.unset("spark.sql.timestampType")


ADAPTERS.append(
    Adapter(
        name="spark",
        frame=plain(dataframe),
        marks=(pytest.mark.spark,),
        # Spark has neither unsigned integers nor nanoseconds; its points in time have no zone of their own.
        unheld=frozenset(
            {
                *("uint8", "uint16", "uint32", "uint64"),
                *("timestamps of ns", "fine timestamps", "instants of nanoseconds", "instants in a zone"),
                "null type",
            }
        ),
    )
)
