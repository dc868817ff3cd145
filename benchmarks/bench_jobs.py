"""T5: a year of days by `backfill`, against one plain count of units per day and cell of the same Parquet file.

Processor time, which other work on the machine disturbs less. Reading is what checks and counts take; a further day is
all the rest: refusals, charges, certificates, files. Each side is a process of its own, so that its peak of memory is
its own.

    python benchmarks/bench_jobs.py [--rows 1000000] [--days 30]

With 10 million rows and 365 days it takes some minutes.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import duckdb

GOALS = {"reading": 1.5, "day": 50.0, "memory": 100.0}
FIRST = date(2013, 1, 1)
CELLS = 200
NOISE: dict[str, Any] = {"noise": {"epsilon": 0.5}, "release_threshold": 60}
RELEASES: dict[int, list[dict[str, Any]]] = {
    1: [{"name": "towns", "by": "town", "k": 20}],
    5: [
        {"name": "towns", "by": "town", **NOISE},
        {"name": "people", "noise": {"epsilon": 0.5}},
        {"name": "walking", "by": "town", "where": "kind == 0", **NOISE},
        {"name": "riding", "by": "town", "where": "kind == 1", **NOISE},
        {"name": "paying", "where": "amount > 1000", "noise": {"epsilon": 0.5}},
    ],
}


def write(path: Path, rows: int, days: int, *, ordered: bool) -> None:
    """Write people who each live in one town, some rows a day."""
    person = f"hash(i) % {max(rows // 30, 1)}"
    order = " ORDER BY day" if ordered else ""
    with duckdb.connect() as connection:
        connection.execute(
            f"COPY (SELECT DATE '{FIRST}' + (hash(i + 1) % {days})::INTEGER AS day, 'u' || ({person}) AS person, "
            f"'town ' || (hash({person}) % {CELLS}) AS town, (hash(i + 3) % 5)::INTEGER AS kind, i::DOUBLE AS amount "
            f"FROM range({rows}) AS r(i){order}) TO '{path}' (FORMAT parquet)"
        )


def plain(path: Path, days: int) -> dict[str, float]:
    """Count units per day and cell in one statement."""
    last = FIRST + timedelta(days=days - 1)
    with duckdb.connect() as connection:
        start = time.process_time()
        connection.sql(
            f"SELECT day, town, count(DISTINCT person) FROM '{path}' "
            f"WHERE day BETWEEN DATE '{FIRST}' AND DATE '{last}' GROUP BY ALL"
        ).to_arrow_table()
        return {"seconds": time.process_time() - start, "memory": peak()}


def backfilled(path: Path, days: int, tables: int) -> dict[str, float]:
    """Backfill a job of so many tables."""
    from pkdp_pipeline.jobs.job import Job
    from pkdp_pipeline.jobs.session import JobSession, backfill

    content: dict[str, Any] = {
        "dataset": "people",
        "source": str(path),
        "period": {"column": "day"},
        "unit": "person",
        "evidence": {"kind": "one_day_protected"},
        "target": "none",
        "release": RELEASES[tables],
    }
    if tables == 1:  # without noise
        content["attacker"] = {"p_max": 0.1}
    reading: list[float] = []
    check = JobSession._check

    def timed(*arguments: Any, **names: Any) -> Any:
        start = time.process_time()
        try:
            return check(*arguments, **names)
        finally:
            reading.append(time.process_time() - start)

    JobSession._check = timed  # type: ignore[method-assign]
    at: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        places = {"ledger": f"{folder}/ledger.sqlite", "output": {"directory": f"{folder}/out"}}
        job = Job.model_validate(content | places)
        before = peak()
        last = FIRST + timedelta(days=days - 1)
        backfill(job, FIRST, last, progress=lambda _: at.append(time.process_time() - sum(reading)))
    further = (at[-1] - at[0]) / (len(at) - 1)
    return {"seconds": sum(reading), "day": further * 1000.0, "memory": peak(), "before": before}


def peak() -> float:
    """Return the most memory that this process has had, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0


def measured(*arguments: object) -> dict[str, float]:
    """Measure in a process of its own."""
    command = [sys.executable, __file__, *map(str, arguments)]
    found: dict[str, float] = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return found


def T5(rows: int, days: int) -> None:  # noqa: N802 (the name of the promise)
    """Print the ratio of a backfill's reading to a plain count, both peaks of memory, and what a further day takes."""
    with tempfile.TemporaryDirectory() as folder:
        for ordered in (True, False):
            path = Path(folder) / "rows.parquet"
            write(path, rows, days, ordered=ordered)
            name = f"{rows:,} rows, {days} days, {'ordered by day' if ordered else 'in no order'}"
            theirs, ours = measured("plain", path, days), measured("backfill", path, days, 1)
            ratio, more = ours["seconds"] / theirs["seconds"], ours["memory"] - theirs["memory"]
            print(f"{name}: plain {theirs['seconds']:.2f} s, {theirs['memory']:.0f} MB")
            print(f"  one table: reading {ours['seconds']:.2f} s, ratio {ratio:.2f} (goal {GOALS['reading']})")
            print(f"  one table: {ours['memory']:.0f} MB, {more:+.0f} MB (goal +{GOALS['memory']:.0f})")
            print(f"  one table: a further day {ours['day']:.0f} ms beside its reading")
            ours = measured("backfill", path, days, 5)
            print(f"  five tables: reading {ours['seconds']:.2f} s, {ours['memory']:.0f} MB")
            print(f"  five tables: a further day {ours['day']:.0f} ms (goal {GOALS['day']:.0f})", flush=True)


def main() -> None:
    if sys.argv[1:2] in (["plain"], ["backfill"]):
        kinds: dict[str, Callable[..., dict[str, float]]] = {"plain": plain, "backfill": backfilled}
        print(json.dumps(kinds[sys.argv[1]](Path(sys.argv[2]), *map(int, sys.argv[3:]))))
        return
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--days", type=int, default=30)
    options = parser.parse_args()
    T5(options.rows, options.days)


if __name__ == "__main__":
    main()
