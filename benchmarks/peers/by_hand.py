"""SQL written by hand for DuckDB over Parquet, with noise from NumPy: what a careful analyst needs, and no more.

Guarantee: epsilon 1 worst-case DP of units in each table, up to floating-point noise, if the cells are public and a
unit is in one of them; keys that nobody listed are found with a threshold, one of each unit's, drawn by a hash. Neither
missing units nor units in several cells are looked for. There is no ledger: the total is added up by hand.
"""

from __future__ import annotations

import sys
from typing import Any

import duckdb
import numpy as np
from serving import serve

UNIT, DAYS = sys.argv[2], int(sys.argv[3])
ON = "WHERE day = DATE '2026-01-01' + {}"
RANDOM = np.random.default_rng()


def noisy(rows: Any, sql: str, least: float = -np.inf) -> int:
    answer = rows.query("asked", sql).fetchnumpy()
    counts = answer["n"] + RANDOM.laplace(scale=1.0, size=len(answer["n"]))
    return int(np.count_nonzero(counts >= least))


def by_cell(rows: Any, day: int) -> int:
    return noisy(rows, f"SELECT cell, count(DISTINCT {UNIT}) AS n FROM asked {ON.format(day)} GROUP BY cell")


def keys(rows: Any) -> int:
    drawn = f"SELECT arg_min(key, hash({UNIT}, key)) AS key FROM asked GROUP BY {UNIT}"
    return noisy(rows, f"SELECT key, count(*) AS n FROM ({drawn}) GROUP BY key", least=50)


def load(path: str) -> Any:
    return duckdb.connect().read_parquet(path)


serve(
    "duckdb",
    load,
    {
        "T1": lambda rows: noisy(rows, f"SELECT count(DISTINCT {UNIT}) AS n FROM asked WHERE delay > 60"),
        "T2": lambda rows: by_cell(rows, DAYS // 2),
        "T3": keys,
        "T4": lambda rows: [by_cell(rows, day) for day in range(DAYS)],
    },
)
