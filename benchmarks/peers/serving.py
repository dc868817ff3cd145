"""One side of a benchmark: load once, then answer tasks by name, each with its time and what memory was used so far."""

from __future__ import annotations

import json
import os
import resource
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any


def serve(package: str, load: Callable[[str], Any], tasks: Mapping[str, Callable[[Any], Any]]) -> None:
    """Answer every task on standard input with a line of JSON; whatever else is written goes to standard error."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    data = load(sys.argv[1])
    answers.write(json.dumps({"version": version(package), "tasks": list(tasks)}) + "\n")
    for line in sys.stdin:
        start, before = time.perf_counter(), cpu_seconds()
        cells = tasks[line.strip()](data)
        spent = {"seconds": time.perf_counter() - start, "cpu": cpu_seconds() - before}
        answers.write(json.dumps({**spent, "peak": peak_bytes(), "cells": cells}, default=len) + "\n")


def family() -> dict[int, list[str]]:
    """Return /proc/…/stat, from the state on, of this process, its children (Spark's Java) and a database's server."""
    stats = {}
    for file in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # it may have ended
            stats[int(file.parent.name)] = file.read_text().rpartition(")")[2].split()
    found = {os.getpid(), int(os.environ.get("BENCHMARK_SERVER", os.getpid()))}
    while more := {process for process, stat in stats.items() if int(stat[1]) in found} - found:
        found |= more
    return {process: stats[process] for process in found & stats.keys()}


def cpu_seconds() -> float:
    """Return the processor time of `family`; elsewhere than on Linux, of this process alone."""
    own = family()
    if not own:
        return time.process_time()
    # Of itself a process tells more finely; of others, what ended children used is told as well.
    others = (stat for process, stat in own.items() if process != os.getpid())
    return time.process_time() + sum(sum(map(int, stat[11:15])) for stat in others) / os.sysconf("SC_CLK_TCK")


def peak_bytes() -> int:
    """Return the largest resident memory of this process and of its children; a database's server is not counted."""
    peak = 0
    for process in [os.getpid()] if "BENCHMARK_SERVER" in os.environ else family():
        with suppress(OSError):  # Linux's ru_maxrss can be inherited from the parent
            lines = Path(f"/proc/{process}/status").read_text().splitlines()
            peak += sum(int(line.split()[1]) for line in lines if line.startswith("VmHWM:"))
    return 1024 * peak or resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
