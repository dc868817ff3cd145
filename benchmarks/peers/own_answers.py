"""The tasks of bench_engines.py, answered by this package over one kind of frame, or plainly by the frame's own engine.

Plain answers check nothing and have no certificate: one `count(DISTINCT …)`, by cell where there are cells. Those over
a pandas frame are DuckDB's, which counts it for us, too. Arguments: the source, its kind, pkdp or plain, the unit's
column, and how many days there are.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

from serving import serve

FIRST = date(2026, 1, 1)
KIND, SIDE, UNIT = sys.argv[2:5]
DAYS = [FIRST + timedelta(days=passed) for passed in range(int(sys.argv[5]))]


@dataclass(frozen=True, slots=True)
class Frames:
    """How an engine opens rows, takes one day of them, and counts units plainly: those who were late, or by a key."""

    package: str
    opened: Callable[[str], Any]
    on: Callable[[Any, date], Any]
    count: Callable[[Any], Any]
    by: Callable[[Any, str], Any]


def of_duckdb(opened: Callable[[Any, str], Any]) -> Frames:
    import duckdb

    def connected(source: str) -> Any:
        connection = duckdb.connect()
        # As much as a small machine has: what a file needs must not grow with its rows.
        connection.execute(f"SET memory_limit = '3GiB'; SET temp_directory = '{tempfile.gettempdir()}'")
        return opened(connection, source)

    def count(rows: Any) -> Any:
        return rows.query("asked", f"SELECT count(DISTINCT {UNIT}) FROM asked WHERE delay > 60").fetchall()

    def by(rows: Any, key: str) -> Any:
        return rows.query("asked", f"SELECT {key}, count(DISTINCT {UNIT}) FROM asked GROUP BY {key}").to_arrow_table()

    return Frames("duckdb", connected, lambda rows, day: rows.filter(f"day = DATE '{day}'"), count, by)


def of_parquet() -> Frames:
    return of_duckdb(lambda connection, source: connection.read_parquet(source))


def of_table() -> Frames:
    def attached(connection: Any, source: str) -> Any:
        connection.execute(f"ATTACH '{source}' AS stored (READ_ONLY)")
        return connection.table("stored.rows")

    return of_duckdb(attached)


def of_pandas() -> Frames:
    import duckdb
    import pandas as pd

    plain = of_parquet()

    def over(frame: Any) -> Any:
        return duckdb.connect().from_df(frame)

    return Frames(
        "pandas",
        lambda source: plain.opened(source).df(),
        lambda frame, day: frame[frame["day"] == pd.Timestamp(day)],
        lambda frame: plain.count(over(frame)),
        lambda frame, key: plain.by(over(frame), key),
    )


def of_polars() -> Frames:
    import polars as pl

    distinct = pl.col(UNIT).n_unique()
    return Frames(
        "polars",
        pl.read_parquet,
        lambda frame, day: frame.filter(pl.col("day") == day),
        lambda frame: frame.lazy().filter(pl.col("delay") > 60).select(distinct).collect(),
        lambda frame, key: frame.group_by(key).agg(distinct),
    )


def of_spark() -> Frames:
    from pyspark.sql import SparkSession, functions

    def distinct() -> Any:  # needs a session
        return functions.countDistinct(UNIT).alias("n")

    def opened(source: str) -> Any:
        settings = SparkSession.builder.master("local[2]")
        for key, value in (
            ("ui.enabled", "false"),
            ("ui.showConsoleProgress", "false"),
            ("driver.memory", "3g"),
            ("driver.host", "127.0.0.1"),
            ("sql.shuffle.partitions", "8"),
        ):
            settings = settings.config(f"spark.{key}", value)
        session = settings.getOrCreate()
        session.sparkContext.setLogLevel("OFF")
        return session.read.parquet(source)

    return Frames(
        "pyspark",
        opened,
        lambda frame, day: frame.where(f"day = DATE '{day}'"),
        lambda frame: frame.where("delay > 60").agg(distinct()).toArrow(),
        lambda frame, key: frame.groupBy(key).agg(distinct()).toArrow(),
    )


def of_postgres() -> Frames:
    import ibis
    import psycopg

    distinct = ibis._[UNIT].nunique()
    return Frames(
        "ibis-framework",
        lambda source: ibis.postgres.from_connection(psycopg.connect(source, autocommit=True)).table("rows"),
        lambda frame, day: frame.filter(frame.day == day),
        lambda frame: frame.filter(frame.delay > 60).aggregate(n=distinct).to_pyarrow(),
        lambda frame, key: frame.group_by(key).aggregate(n=distinct).to_pyarrow(),
    )


KINDS: dict[str, Callable[[], Frames]] = {
    "Parquet": of_parquet,
    "DuckDB": of_table,
    "PostgreSQL": of_postgres,
    "pandas": of_pandas,
    "Polars": of_polars,
    "Spark": of_spark,
}


def plain_tasks(frames: Frames) -> dict[str, Callable[[Any], Any]]:
    """Return the plain answers."""

    def days(rows: Any) -> None:
        for day in DAYS:
            frames.by(frames.on(rows, day), "cell")

    return {
        "T0": lambda rows: len(frames.by(rows, "cell")),
        "T1": frames.count,
        "T2": lambda rows: len(frames.by(frames.on(rows, DAYS[len(DAYS) // 2]), "cell")),
        "T3": lambda rows: len(frames.by(rows, "key")),
        "T4": days,
    }


def own_tasks(frames: Frames) -> dict[str, Callable[[Any], Any]]:
    """Return this package's answers."""
    import pkdp_pipeline as pkdp

    asked: dict[str, Any] = {"unit": UNIT, "k": 50, "attacker": pkdp.AttackerModel(p_max=0.1)}

    def keys(rows: Any) -> int:
        noise = pkdp.GeometricNoise(epsilon=1)
        return len(pkdp.histogram(rows, "key", one_cell="hash", noise=noise, release_threshold=50, **asked).table)

    def days(rows: Any) -> None:
        with tempfile.TemporaryDirectory() as folder:
            evidence = pkdp.OneDayProtected()
            with pkdp.Ledger.open(f"{folder}/ledger.sqlite", dataset="rows", evidence=evidence) as ledger:
                for day in DAYS:
                    pkdp.histogram(frames.on(rows, day), "cell", ledger=ledger, period=day, **asked)
                ledger.total().delta(1.0)

    return {
        "T0": lambda rows: len(pkdp.histogram(rows, "cell", **asked).table),
        "T1": lambda rows: pkdp.count(rows, "delay > 60", **asked).value,
        "T2": lambda rows: len(pkdp.histogram(frames.on(rows, DAYS[len(DAYS) // 2]), "cell", **asked).table),
        "T3": keys,
        "T4": days,
    }


FRAMES = KINDS[KIND]()
serve(FRAMES.package, FRAMES.opened, own_tasks(FRAMES) if SIDE == "pkdp" else plain_tasks(FRAMES))
