"""The command line's start: what a command costs before it does anything, beside an import of pandas.

    python benchmarks/bench_start.py [--runs 9]

Runs of all commands take turns, and the CPU time of each is counted (user and system), so that the ratios hold on a
machine that has other work too. Then the largest imports of each command, by the time of their own code. The job is the
one of the examples, on one day that is published before: it reads no data.
"""

from __future__ import annotations

import argparse
import re
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
from contextlib import chdir
from pathlib import Path

PKDP = ("-m", "pkdp_pipeline.cli.main")
RUN = "run daily_flights.toml --date 2013-01-02"
ASKED = (
    "--help",
    "certify histogram --k 50 --p-max 0.1",
    RUN,
    "ledger show out/ledger.sqlite",
    "verify out/2013-01-02/aircraft_by_carrier.parquet",
    "report daily_flights.toml --date 2013-01-02 --out report.html",
)
COMMANDS = {
    "python -c pass": ("-c", "pass"),
    "python -c 'import pandas'": ("-c", "import pandas"),
    "python -c 'import pandas, pkdp_pipeline'": ("-c", "import pandas, pkdp_pipeline"),
} | {f"pkdp {words}": (*PKDP, *words.split()) for words in ASKED}
EMPTY, PANDAS = list(COMMANDS)[:2]
IMPORTS = 8
EXAMPLES = Path(__file__).parents[1] / "examples"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=9)
    runs = parser.parse_args().runs
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        shutil.copy(EXAMPLES / "daily_flights.toml", folder)
        Path("data").symlink_to(EXAMPLES / "data")
        cpu(COMMANDS[f"pkdp {RUN}"])
        measure(runs)


def measure(runs: int) -> None:
    """Print what all commands cost, and what they import."""
    seconds: dict[str, list[float]] = {command: [] for command in COMMANDS}
    for _ in range(1 + runs):  # the first only compiles what is imported
        for command, words in COMMANDS.items():
            seconds[command].append(cpu(words))
    medians = {command: statistics.median(every[1:]) for command, every in seconds.items()}
    print(f"{f'median CPU of {runs} runs':66s} {'seconds':>8s} {'/ pandas':>9s} {'/ pass':>7s}")
    for command, median in medians.items():
        print(f"{command:66s} {median:8.3f} {median / medians[PANDAS]:9.2f} {median / medians[EMPTY]:7.1f}")
    for command in list(COMMANDS)[3:]:
        own = imports(COMMANDS[command])
        print(f"\n{command}: {len(own)} modules, of which the largest, in ms of their own code:")
        for module in sorted(own, key=own.__getitem__, reverse=True)[:IMPORTS]:
            print(f"  {own[module] / 1e3:6.1f}  {module}")


def cpu(words: tuple[str, ...]) -> float:
    """Return the CPU seconds of one run of Python."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *words], check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def imports(words: tuple[str, ...]) -> dict[str, int]:
    """Return the microseconds of each imported module, without those that it imports."""
    ran = subprocess.run(
        [sys.executable, "-X", "importtime", *words], check=True, capture_output=True, text=True, encoding="utf-8"
    )
    lines = re.findall(r"^import time:\s*(\d+) \|\s*\d+ \|\s*(\S+)$", ran.stderr, re.MULTILINE)
    return {module: int(own) for own, module in lines}


if __name__ == "__main__":
    main()
