"""Running things in the environment of the schedulers, beside a copy of the example job."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pandas as pd
import pytest

import pkdp_pipeline as pkdp

ROOT = Path(__file__).resolve().parents[4]
PROGRAMS = ROOT / ".venv-schedulers" / "bin"


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

    def start(self, *command: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
        """Start a program of the schedulers' environment; it tells nobody outside that it runs."""
        quiet = {
            "DAGSTER_DISABLE_TELEMETRY": "yes",
            "DAGSTER_HOME": str(self.folder / "dagster"),
            "AIRFLOW_HOME": str(self.folder / "airflow"),
            "AIRFLOW__CORE__DAGS_FOLDER": str(self.folder / "dags"),
            "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
            "AIRFLOW__USAGE_DATA_COLLECTION__ENABLED": "False",
            "SCARF_ANALYTICS": "false",
        }
        program, *arguments = command
        return subprocess.run(
            [PROGRAMS / program, *arguments],
            cwd=self.folder,
            env={**os.environ, **quiet, **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )

    def python(self, script: str, **environment: str) -> str:
        """Run a script, which must succeed; return what it and its scheduler print."""
        (self.folder / "script.py").write_text(script, encoding="utf-8")
        done = self.start("python", "script.py", **environment)
        assert done.returncode == 0, done.stdout
        return done.stdout

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
