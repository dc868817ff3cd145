"""The same release from Spark and from DuckDB: how many aircraft of each carrier left New York on one day.

Run it with ``python examples/spark_histogram.py``. It needs PySpark and Java: ``pip install ".[spark]"``.

Spark counts distinct aircraft where the rows are. Only the counts of cells reach this process, which suppresses
what is below k and binds the table to its certificate. A release does not depend on what counted it: DuckDB gives the
same bytes, so the same id. The assumption about the attacker is the one of ``daily_flights.toml``, argued there.
"""

from __future__ import annotations

from pathlib import Path

import duckdb
from pyspark.sql import SparkSession

import pkdp_pipeline as pkdp

FLIGHTS = Path(__file__).resolve().parent / "data" / "flights_2013.parquet"
ON_ONE_DAY = "date = DATE '2013-01-02'"


def aircraft_by_carrier(flights: object) -> pkdp.Release:
    return pkdp.histogram(
        flights,
        "carrier",
        unit="tailnum",
        k=50,
        missing_unit="drop",
        attacker=pkdp.AttackerModel(p_max=0.5),
    )


def main() -> None:
    # On a cluster the session is there already, or its settings say which one it is.
    spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    spark.sparkContext.setLogLevel("OFF")  # what Spark logs can quote the data
    counted = aircraft_by_carrier(spark.read.parquet(FLIGHTS.as_uri()).where(ON_ONE_DAY))
    print(counted.table.to_string(index=False))
    print(counted.certificate.sentence())
    print(f"Spark:  {counted.id}")

    again = aircraft_by_carrier(duckdb.read_parquet(str(FLIGHTS)).filter(ON_ONE_DAY))
    print(f"DuckDB: {again.id}")


if __name__ == "__main__":
    main()
