"""Running things in the environment of the schedulers, beside a copy of the example job."""

from __future__ import annotations

import atexit
import json
import os
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path

import pandas as pd
import pytest

import pkdp_pipeline as pkdp

ROOT = Path(__file__).resolve().parents[4]
PROGRAMS = ROOT / ".venv-schedulers" / "bin"

#: Imports once what takes most of a short run, but neither what reads its settings then nor DuckDB: scripts are run in
#: processes of their own, forked from there.
FORKING = """
import importlib, json, os, runpy, sys

for name in sys.argv[1:]:
    importlib.import_module(name)
for line in sys.stdin:
    folder, environment, printed = json.loads(line)
    child = os.fork()
    if not child:
        os.chdir(folder)
        os.environ.update(environment)
        file = os.open(printed, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(file, 1)
        os.dup2(file, 2)
        sys.path[0], sys.argv = folder, ["script.py"]
        runpy.run_path("script.py", run_name="__main__")
        sys.exit()
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


@cache
def forking(*modules: str) -> subprocess.Popen[str]:
    """Return the process that scripts are forked from; it ends with this one, whose pipe it reads."""
    command = [PROGRAMS / "python", "-c", FORKING, *modules]
    started = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    atexit.register(started.communicate)
    return started


class Flights:
    """A copy of the example job beside its data, and of what is started to run it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.job = folder / "daily_flights.toml"
        self.out = folder / "out"
        shutil.copy(ROOT / "examples" / "daily_flights.toml", folder)
        (folder / "data").mkdir()
        shutil.copy(ROOT / "examples" / "data" / "flights_2013.parquet", folder / "data")
        shutil.copytree(ROOT / "examples" / "schedule", folder / "schedule")

    def change(self, old: str, new: str) -> None:
        """Change the job file."""
        text = self.job.read_text(encoding="utf-8")
        assert old in text
        self.job.write_text(text.replace(old, new), encoding="utf-8")

    def settings(self) -> dict[str, str]:
        """Return what a scheduler is told: where its files are, and to tell nobody outside that it runs."""
        return {
            "DAGSTER_DISABLE_TELEMETRY": "yes",
            "DAGSTER_HOME": str(self.folder / "dagster"),
            "AIRFLOW_HOME": str(self.folder / "airflow"),
            "AIRFLOW__CORE__DAGS_FOLDER": str(self.folder / "dags"),
            "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
            "AIRFLOW__USAGE_DATA_COLLECTION__ENABLED": "False",
            "SCARF_ANALYTICS": "false",
        }

    def start(self, *command: str | Path) -> subprocess.CompletedProcess[str]:
        """Start a program of the schedulers' environment."""
        program, *arguments = command
        return subprocess.run(
            [PROGRAMS / program, *arguments],
            cwd=self.folder,
            env={**os.environ, **self.settings()},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )

    def python(self, script: str, *modules: str) -> str:
        """Run a script after these modules were imported; it must succeed. Return what it and its scheduler print."""
        (self.folder / "script.py").write_text(script, encoding="utf-8")
        printed, process = self.folder / "printed.txt", forking(*modules)
        assert process.stdin is not None
        assert process.stdout is not None
        print(json.dumps([str(self.folder), self.settings(), str(printed)]), file=process.stdin, flush=True)
        code, text = process.stdout.readline(), printed.read_text(encoding="utf-8")
        assert code == "0\n", text
        return text

    def published(self) -> list[str]:
        """Return the days that the ledger holds, after verifying it."""
        with pkdp.Ledger.open(self.out / "ledger.sqlite", dataset="flights") as ledger:
            ledger.verify()
            return [entry.period for entry in ledger.entries()]

    def withheld_in(self, text: str) -> set[str]:
        """Return the people of the data whom a text names."""
        people = pd.read_parquet(ROOT / "examples" / "data" / "flights_2013.parquet")["tailnum"].dropna()
        return set(people) & set(re.findall(r"\w+", text))


@pytest.fixture
def flights(tmp_path):
    return Flights(tmp_path)
