"""What is measured in a process of its own: the memory of one histogram over Parquet, and an import.

    python benchmarks/engine_children.py (release|plain) FILE LIMIT
    python benchmarks/engine_children.py import MODULE

prints one line of JSON.
"""

from __future__ import annotations

import json
import resource
import sys
import tempfile
import time
from importlib import import_module
from pathlib import Path


def peak_bytes() -> int:
    """Return this process's own peak resident memory; Linux's ru_maxrss can be inherited from the parent."""
    status = Path("/proc/self/status")
    if status.exists():
        (line,) = (line for line in status.read_text().splitlines() if line.startswith("VmHWM:"))
        return int(line.split()[1]) * 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def histogram(kind: str, file: str, limit: str) -> dict[str, float]:
    import duckdb

    import pkdp_pipeline as pkdp

    with tempfile.TemporaryDirectory() as spill, duckdb.connect(":memory:") as connection:
        connection.execute(f"SET memory_limit = '{limit}'")
        connection.execute(f"SET temp_directory = '{spill}'")
        rows = connection.read_parquet(file)
        start = time.perf_counter()
        if kind == "plain":
            rows.query("rows", "SELECT cell, count(DISTINCT unit) AS n FROM rows GROUP BY cell").to_arrow_table()
        else:
            pkdp.histogram(rows, "cell", unit="unit", attacker=pkdp.AttackerModel(p_max=0.1), k=50)
        return {"seconds": time.perf_counter() - start, "peak": peak_bytes()}


def imported(*modules: str) -> dict[str, float]:
    start = time.perf_counter()
    for module in modules:
        import_module(module)
    return {"seconds": time.perf_counter() - start}


if __name__ == "__main__":
    task, *rest = sys.argv[1:]
    print(json.dumps(imported(*rest) if task == "import" else histogram(task, *rest)))
