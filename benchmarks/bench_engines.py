"""Histograms of distinct units on every engine, certificate included, against the engine's own GROUP BY.

Both sides of a pair answer one question, units per cell, from the same data; ours also checks for missing units
and for units in several cells, and certifies. Medians of interleaved pairs. "cpu" is the ratio of processor time,
which other work on the machine disturbs less; Spark counts in another process and has none.

    python benchmarks/bench_engines.py [--quick] [--only duckdb polars …] [--no-peers] [--pairs 7] [--cache DIR]

PySpark is measured where it is installed (make engines). Peers get environments of their own under the cache folder,
made when first needed and kept; so is the Parquet file of 1e8 rows. What each peer does is in benchmarks/peers.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
from bench_release import plain, plain_relation, released, released_relation, synthetic
from engine_peers import PEERS, NotAvailableError, answering

import pkdp_pipeline as pkdp

ATTACKER = pkdp.AttackerModel(p_max=0.1)
CHILDREN = Path(__file__).parent / "engine_children.py"
#: Type of the unit, type of the cell, rows per unit.
KINDS = (
    ("integer", "integer", 10),
    ("integer", "text", 10),
    ("text", "text", 10),
    ("integer", "integer", 2),
    ("text", "text", 2),
)
GIB = 2**30


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One row of the report; `goal` bounds `value`, which is a ratio unless `unit` says otherwise."""

    name: str
    value: float
    goal: float | None = None
    unit: str = "×"
    ours: str = ""
    theirs: str = ""
    cpu: float | None = None

    def line(self, *, judged: bool) -> str:
        """Return the row; at small sizes a verdict would say nothing, so none is given."""
        goal = "" if self.goal is None else f"≤ {self.goal:g} {self.unit}"
        verdict = "" if self.goal is None or not judged else "met" if self.value <= self.goal else "NOT MET"
        cpu = "" if self.cpu is None else f"{self.cpu:.2f}"
        value = f"{self.value:.2f} {self.unit}"
        return f"{self.name:<66} {self.ours:>11} {self.theirs:>11} {value:>10} {cpu:>6}  {goal:<9} {verdict}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """How much is measured."""

    rows: int
    parquet_rows: int
    peer_rows: int
    pairs: int


def paired(
    name: str,
    ours: Callable[[], Any],
    theirs: Callable[[], Any],
    *,
    pairs: int,
    goal: float | None = None,
    here: bool = True,
) -> Measured:
    """Time both in turns, after one turn that is not counted; `here` says that this process does the work."""
    ours(), theirs()
    timed = [(_timed(ours), _timed(theirs)) for _ in range(pairs)]
    mine, other = (statistics.median(side[0] for side in sides) for sides in zip(*timed, strict=True))
    cpu = statistics.median(a[1] / b[1] for a, b in timed) if here and all(b[1] > 0 for _, b in timed) else None
    ratio = statistics.median(a[0] / b[0] for a, b in timed)
    return Measured(name=name, value=ratio, goal=goal, ours=f"{mine:.3f} s", theirs=f"{other:.3f} s", cpu=cpu)


def _timed(call: Callable[[], Any]) -> tuple[float, float]:
    wall, processor = time.perf_counter(), time.process_time()
    call()
    return time.perf_counter() - wall, time.process_time() - processor


def _named(kind: tuple[str, str, int]) -> str:
    return f"{kind[0]} units ({kind[2]} rows each), {kind[1]} cells"


def _frames(sizes: Sizes) -> Iterator[tuple[str, pd.DataFrame]]:
    for kind in KINDS:
        unit, cell, share = kind
        yield _named(kind), synthetic(sizes.rows, sizes.rows // share, 200, unit=unit, cell=cell)


def of_pandas(sizes: Sizes, cache: Path) -> Iterator[Measured]:
    for name, frame in _frames(sizes):
        yield paired(f"pandas: {name}", lambda f=frame: released(f), lambda f=frame: plain(f), pairs=sizes.pairs)


def of_duckdb(sizes: Sizes, cache: Path) -> Iterator[Measured]:
    """Measure tables of a database file, which stores columns compressed, and tables in memory, which do not."""
    for name, frame in _frames(sizes):
        with tempfile.TemporaryDirectory() as folder:
            for place, database in (("a file", f"{folder}/rows.duckdb"), ("memory", ":memory:")):
                with duckdb.connect(database) as connection:
                    connection.register("frame", frame)
                    connection.sql("CREATE TABLE rows AS SELECT * FROM frame")
                    connection.execute("CHECKPOINT")
                    rows = connection.table("rows")
                    yield paired(
                        f"DuckDB, {place}: {name}",
                        lambda r=rows: released_relation(r),
                        lambda r=rows: plain_relation(r),
                        pairs=sizes.pairs,
                        goal=1.1,
                    )


def of_polars(sizes: Sizes, cache: Path) -> Iterator[Measured]:
    import polars as pl

    for name, frame in _frames(sizes):
        rows = pl.from_pandas(frame)
        yield paired(
            f"Polars: {name}",
            lambda r=rows: pkdp.histogram(r, "cell", unit="unit", attacker=ATTACKER, k=50),
            lambda r=rows: r.group_by("cell").agg(pl.col("unit").n_unique()),
            pairs=sizes.pairs,
            goal=1.1,
        )


def of_spark(sizes: Sizes, cache: Path) -> Iterator[Measured]:
    from pyspark.sql import SparkSession, functions

    session = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.memory", "4g")
        .config("spark.sql.shuffle.partitions", "8")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("OFF")
    try:
        for name, frame in _frames(sizes):
            with tempfile.TemporaryDirectory() as folder:
                file = f"{folder}/rows.parquet"
                frame.to_parquet(file, index=False)
                rows = session.read.parquet(file)
                yield paired(
                    f"Spark: {name}",
                    lambda r=rows: pkdp.histogram(r, "cell", unit="unit", attacker=ATTACKER, k=50),
                    lambda r=rows: r.groupBy("cell").agg(functions.countDistinct("unit").alias("n")).toArrow(),
                    pairs=sizes.pairs,
                    goal=1.05,
                    here=False,
                )
    finally:
        session.stop()


def of_days(sizes: Sizes, cache: Path) -> Iterator[Measured]:
    """Measure what a predicate selects of a Parquet file of thirty days: one day by cell, and a count of each kind."""
    rows = f"SELECT *, DATE '2024-01-01' + (rownum * 30 // {sizes.rows})::INTEGER AS day FROM numbered"
    for name, frame in _frames(sizes):
        with tempfile.TemporaryDirectory() as folder, duckdb.connect(":memory:") as connection:
            connection.register("numbered", frame.assign(rownum=range(len(frame))))
            connection.execute(f"COPY ({rows}) TO '{folder}/rows.parquet' (FORMAT parquet)")
            read = connection.read_parquet(f"{folder}/rows.parquet")
            day = {"pkdp": "day == '2024-01-15'", "sql": "day = DATE '2024-01-15'"}
            yield paired(
                f"one day by cell: {name}",
                lambda r=read, d=day: pkdp.histogram(r, "cell", unit="unit", where=d["pkdp"], attacker=ATTACKER, k=50),
                lambda r=read, d=day: r.query(
                    "rows", f"SELECT cell, count(DISTINCT unit) FROM rows WHERE {d['sql']} GROUP BY cell"
                ).to_arrow_table(),
                pairs=sizes.pairs,
                goal=1.2,
            )
            half = {"pkdp": "day >= '2024-01-16'", "sql": "day >= DATE '2024-01-16'"}
            for what, where in (("one day", day), ("half of all days", half)):
                yield paired(
                    f"count of {what}: {name}",
                    lambda r=read, w=where: pkdp.count(r, unit="unit", where=w["pkdp"], attacker=ATTACKER, k=50),
                    lambda r=read, w=where: r.query(
                        "rows", f"SELECT count(DISTINCT unit) FROM rows WHERE {w['sql']}"
                    ).to_arrow_table(),
                    pairs=sizes.pairs,
                    goal=1.2,
                )


def of_parquet(sizes: Sizes, cache: Path) -> Iterator[Measured]:
    """Measure the peak resident memory of one histogram over Parquet, in a process with DuckDB's limit at 3 GiB."""
    file = cache / f"rows-{sizes.parquet_rows}.parquet"
    if not file.exists():
        # Ten rows per unit; each unit has one cell, which its number decides.
        units = f"SELECT (hash(range) % {sizes.parquet_rows // 10})::BIGINT AS unit FROM range({sizes.parquet_rows})"
        cells = f"SELECT unit, 'cell-' || lpad((hash(unit + 1) % 200)::VARCHAR, 3, '0') AS cell FROM ({units})"
        unfinished = file.with_suffix(".unfinished")
        with duckdb.connect(":memory:") as connection:
            connection.execute("SET preserve_insertion_order = false")
            connection.execute(f"COPY ({cells}) TO '{unfinished}' (FORMAT parquet)")
        unfinished.replace(file)
    children = [(_child("release", str(file), "3GiB"), _child("plain", str(file), "3GiB")) for _ in range(_few(sizes))]
    size = f"{sizes.parquet_rows:.0e} rows of Parquet"
    mine, other = (max(side["peak"] for side in sides) / GIB for sides in zip(*children, strict=True))
    yield Measured(
        name=f"DuckDB: peak memory, {size} (limit set: 3 GiB)",
        value=mine,
        goal=4,
        unit="GiB",
        ours=f"{mine:.2f} GiB",
        theirs=f"{other:.2f} GiB",
    )
    mine, other = (statistics.median(side["seconds"] for side in sides) for sides in zip(*children, strict=True))
    yield Measured(
        name=f"DuckDB: seconds, {size}",
        value=statistics.median(a["seconds"] / b["seconds"] for a, b in children),
        ours=f"{mine:.1f} s",
        theirs=f"{other:.1f} s",
    )


def _few(sizes: Sizes) -> int:
    """Return how many pairs of the largest table are measured."""
    return min(3, sizes.pairs)


def of_import(sizes: Sizes, cache: Path) -> Iterator[Measured]:
    def seconds(*modules: str) -> float:
        return _child("import", *modules)["seconds"]

    both = ("pandas", "pkdp_pipeline")
    seconds(*both)
    pairs = [(seconds(*both), seconds("pandas")) for _ in range(sizes.pairs)]
    mine, other = (statistics.median(side) for side in zip(*pairs, strict=True))
    beyond = statistics.median(a - b for a, b in pairs)
    yield Measured(
        name="import pkdp_pipeline, beyond import pandas",
        value=beyond,
        goal=0.15,
        unit="s",
        ours=f"{mine:.3f} s",
        theirs=f"{other:.3f} s",
    )


def of_peers(sizes: Sizes, cache: Path) -> Iterator[Measured]:
    """Compare with peers, all with noise of epsilon 1 and a threshold: ours on a pandas frame, peers on what they take.

    Peers start from loaded rows (OpenDP and SmartNoise: frames, PipelineDP and PyDP: Python lists).
    """
    frame = synthetic(sizes.peer_rows, sizes.peer_rows // 10, 200, unit="integer", cell="text")
    noise = pkdp.GeometricNoise(epsilon=1)

    def ours() -> None:
        frame.pkdp.histogram("cell", unit="unit", attacker=ATTACKER, k=50, noise=noise, release_threshold=50)

    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "rows.csv"
        frame.to_csv(table, index=False)
        for peer in PEERS:
            try:
                with answering(peer, table, cache) as answers:
                    ours(), answers.next()
                    pairs = [(_timed(ours)[0], answers.next()) for _ in range(sizes.pairs)]
                    version = answers.version
            except NotAvailableError as error:
                print(f"{peer.name}: not measured: {error}", flush=True)
                continue
            mine, other = (statistics.median(side) for side in zip(*pairs, strict=True))
            yield Measured(
                name=f"{peer.name} {version}: {sizes.peer_rows:.0e} rows",
                value=statistics.median(a / b for a, b in pairs),
                ours=f"{mine:.3f} s",
                theirs=f"{other:.3f} s",
            )


def _child(*arguments: str) -> dict[str, float]:
    # From the folder of the benchmarks, Python would not find the package beside it.
    environment = {**os.environ, "PYTHONPATH": str(CHILDREN.parents[1])}
    done = subprocess.run(
        [sys.executable, str(CHILDREN), *arguments], check=True, capture_output=True, text=True, env=environment
    )
    answer: dict[str, float] = json.loads(done.stdout)
    return answer


#: What can be measured, and the package it needs.
SECTIONS: dict[str, tuple[Callable[[Sizes, Path], Iterator[Measured]], str]] = {
    "import": (of_import, "pandas"),
    "duckdb": (of_duckdb, "duckdb"),
    "pandas": (of_pandas, "pandas"),
    "polars": (of_polars, "polars"),
    "spark": (of_spark, "pyspark"),
    "days": (of_days, "duckdb"),
    "parquet": (of_parquet, "duckdb"),
    "peers": (of_peers, "pandas"),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=SECTIONS, default=list(SECTIONS))
    parser.add_argument("--quick", action="store_true", help="small sizes: whether it runs, not how fast")
    parser.add_argument("--no-peers", action="store_true")
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--parquet-rows", type=int, default=100_000_000)
    parser.add_argument("--peer-rows", type=int, default=1_000_000)
    home = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
    parser.add_argument("--cache", type=Path, default=home / "pkdp-benchmarks")
    options = parser.parse_args()
    sizes = Sizes(
        rows=options.rows, parquet_rows=options.parquet_rows, peer_rows=options.peer_rows, pairs=options.pairs
    )
    if options.quick:
        sizes = Sizes(rows=20_000, parquet_rows=100_000, peer_rows=20_000, pairs=1)
    options.cache.mkdir(parents=True, exist_ok=True)
    with suppress(OSError):
        print(f"machine: {os.cpu_count()} processors, load {os.getloadavg()[0]:.1f} before the first measurement")
    print(f"{'':<66} {'pkdp':>11} {'plain/peer':>11} {'value':>10} {'cpu':>6}  goal")
    for name in options.only:
        measure, package = SECTIONS[name]
        if name == "peers" and options.no_peers:
            continue
        if find_spec(package) is None:
            print(f"{name}: not measured: {package} is not installed", flush=True)
            continue
        for measured in measure(sizes, options.cache):
            print(measured.line(judged=not options.quick), flush=True)


if __name__ == "__main__":
    main()
