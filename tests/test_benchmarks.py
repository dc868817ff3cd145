"""The benchmark of all engines runs from start to end, at a size where its figures mean nothing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).resolve().parents[1] / "benchmarks"


@pytest.mark.slow
def test_the_benchmark_of_engines_measures_what_is_here(tmp_path):
    command = [sys.executable, str(BENCHMARKS / "bench_engines.py"), "--quick", "--only", "Parquet", "--text"]
    done = subprocess.run([*command, "--cache", str(tmp_path)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    rows = [line.split() for line in done.stdout.splitlines()[1:]]
    tasks = [row[:3] for row in rows if row[0] != "memory"]
    others = [[f"T{task}", "Parquet", other] for task in (1, 2, 3, 4) for other in ("plain", "by")]
    assert tasks == [["T0", "Parquet", "plain"], *others]
    assert all(float(row[-1]) > 0 for row in rows)
