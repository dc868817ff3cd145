"""The benchmark of all engines runs from start to end, at a size where its figures mean nothing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

BENCHMARKS = Path(__file__).resolve().parents[1] / "benchmarks"


def test_the_benchmark_of_engines_measures_what_is_here(tmp_path):
    sections = ["import", "duckdb", "pandas", "polars", "parquet"]
    command = [sys.executable, str(BENCHMARKS / "bench_engines.py"), "--quick", "--no-peers", "--only", *sections]
    done = subprocess.run([*command, "--cache", str(tmp_path)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    rows = done.stdout.splitlines()[2:]
    for label, how_many in (
        ("import pkdp_pipeline", 1),
        ("DuckDB, a file: ", 5),
        ("DuckDB, memory: ", 5),
        ("DuckDB: ", 2),
        ("pandas: ", 5),
        ("Polars: ", 5),
    ):
        assert sum(row.startswith(label) for row in rows) == how_many
    assert "not measured" not in done.stdout
    assert "MET" not in done.stdout
