"""A histogram of 1e7 rows through `publish`, certificate included, against DuckDB's own GROUP BY.

Both sides answer the same question, units per cell, from the same frame in the same process: median of the
ratios of interleaved pairs. The release also checks for missing units and for units in several cells.

    python benchmarks/bench_release.py [--rows 10000000] [--pairs 7]
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

import duckdb
import numpy as np
import pandas as pd

import pkdp_pipeline as pkdp

GOAL = 1.3
ATTACKER = pkdp.AttackerModel(p_max=0.1)


def synthetic(rows: int, units: int, cells: int, *, unit: str, cell: str) -> pd.DataFrame:
    """Return rows of units that each live in one cell; `unit` and `cell` are "text" or "integer"."""
    random = np.random.default_rng(20130102)
    person = random.integers(0, units, rows)
    home = random.integers(0, cells, units)[person]
    people = pd.Series(person) if unit == "integer" else ("u" + pd.Series(person).astype("str")).astype("str")
    names = np.array([f"cell-{number:03d}" for number in range(cells)])
    homes = pd.Series(home) if cell == "integer" else pd.Series(pd.array(names[home], dtype="str"))
    return pd.DataFrame({"unit": people, "cell": homes})


def plain(frame: pd.DataFrame) -> None:
    with duckdb.connect(":memory:") as connection:
        connection.register("rows", frame)
        connection.sql("SELECT cell, count(DISTINCT unit) AS n FROM rows GROUP BY cell").to_arrow_table()


def released(frame: pd.DataFrame) -> None:
    frame.pkdp.histogram("cell", unit="unit", attacker=ATTACKER, k=50)


def plain_relation(relation: Any) -> None:
    relation.query("rows", "SELECT cell, count(DISTINCT unit) AS n FROM rows GROUP BY cell").to_arrow_table()


def released_relation(relation: Any) -> None:
    pkdp.histogram(relation, "cell", unit="unit", attacker=ATTACKER, k=50)


def seconds(function: Callable[[Any], None], frame: Any) -> float:
    start = time.perf_counter()
    function(frame)
    return time.perf_counter() - start


def compare(name: str, ours: Callable[[Any], None], theirs: Callable[[Any], None], frame: Any, pairs: int) -> float:
    ours(frame)
    theirs(frame)
    timed = [(seconds(ours, frame), seconds(theirs, frame)) for _ in range(pairs)]
    ratio = statistics.median(mine / other for mine, other in timed)
    mine, other = (statistics.median(column) for column in zip(*timed, strict=True))
    print(f"{name:<44} {mine:7.3f} s   plain {other:7.3f} s   ratio {ratio:5.2f}   goal {GOAL}", flush=True)
    return ratio


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--pairs", type=int, default=7)
    options = parser.parse_args()
    kinds = (("text", "text", 10), ("integer", "text", 10), ("integer", "integer", 10), ("text", "text", 2))
    for unit, cell, share in kinds:
        frame = synthetic(options.rows, options.rows // share, 200, unit=unit, cell=cell)
        name = f"{unit} units ({share} rows each), {cell} cells"
        compare(f"pandas: {name}", released, plain, frame, options.pairs)
        with duckdb.connect(":memory:") as connection:
            connection.register("frame", frame)
            connection.sql("CREATE TABLE rows AS SELECT * FROM frame")
            compare(f"DuckDB: {name}", released_relation, plain_relation, connection.table("rows"), options.pairs)


if __name__ == "__main__":
    main()
