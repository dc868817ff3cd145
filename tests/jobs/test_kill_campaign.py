"""A backfill that is killed wherever it may be killed ends as one that nobody has disturbed."""

from __future__ import annotations

import json
import random
import shutil
import sqlite3
import subprocess
import sys
from datetime import date
from pathlib import Path

import pytest
from interrupted_backfill import ten_o_clock

from pkdp_pipeline import clock
from pkdp_pipeline.jobs import load_job
from pkdp_pipeline.jobs.session import backfill
from pkdp_pipeline.ledger import Ledger

EXAMPLES = Path(__file__).parents[2] / "examples"
PROGRAM = Path(__file__).with_name("interrupted_backfill.py")
PLACES = ["reserve", "store", "half", "whole"]

pytestmark = pytest.mark.whole_curves


def prepared(folder: Path) -> None:
    """Copy the job of flights, and its source, into `folder`."""
    (folder / "data").mkdir(parents=True)
    shutil.copy(EXAMPLES / "data" / "flights_2013.parquet", folder / "data")
    shutil.copy(EXAMPLES / "daily_flights.toml", folder)


def backfilled(folder: Path, last: str, plan: list[dict]) -> list[int]:
    """Run the backfill of flights with the stops of `plan` in `folder`; return how its processes ended."""
    prepared(folder)
    (folder / "plan.json").write_text(json.dumps(plan), encoding="utf-8")
    arguments = [folder / "daily_flights.toml", "2013-01-01", last, folder / "plan.json", folder / "report.json"]
    done = subprocess.run([sys.executable, PROGRAM, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads((folder / "report.json").read_text(encoding="utf-8"))


def public_files(folder: Path) -> dict[str, bytes]:
    """Return everything in the output folder but the ledger, which is compared by what it says."""
    return {
        str(path.relative_to(folder / "out")): path.read_bytes()
        for path in sorted((folder / "out").rglob("*"))
        if path.is_file() and not path.name.startswith("ledger.sqlite")
    }


def whole_ledger(folder: Path) -> dict[str, list[tuple]]:
    """Return every row of every table."""
    with sqlite3.connect(folder / "out" / "ledger.sqlite") as connection:
        tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return {name: sorted(connection.execute(f"SELECT * FROM {name}"), key=repr) for name in tables}


def check_same(folder: Path, undisturbed: Path) -> None:
    assert public_files(folder) == public_files(undisturbed)
    assert whole_ledger(folder) == whole_ledger(undisturbed)
    with Ledger.open(folder / "out" / "ledger.sqlite", dataset="flights") as ledger:
        ledger.verify()


def stops(number: int, seed: int, *, sent: str = "SIGKILL") -> list[dict]:
    """Return stops of all kinds: aimed ones, and some at any moment."""
    rng = random.Random(seed)
    planned: list[dict] = []
    for position in range(number):
        if position % 2:
            start = {"from": "start"} if rng.random() < 0.3 else {}
            planned.append({"signal": sent, "after": rng.uniform(0.0, 0.8), **start})
        else:
            place = PLACES[position // 2 % len(PLACES)]
            planned.append({"signal": sent, "at": place, "number": rng.randint(1, 3)})
    return planned


@pytest.fixture(scope="module")
def four_days(tmp_path_factory):
    """Four days of flights, published without a disturbance, and by processes of which two were stopped."""
    undisturbed, stopped = tmp_path_factory.mktemp("undisturbed"), tmp_path_factory.mktemp("stopped")
    prepared(undisturbed)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(clock, "_read", ten_o_clock)
        backfill(load_job(undisturbed / "daily_flights.toml"), date(2013, 1, 1), date(2013, 1, 4))
    plan = [{"signal": sent, "at": place, "number": 1} for sent, place in (("SIGKILL", "store"), ("SIGTERM", "half"))]
    assert backfilled(stopped, "2013-01-04", plan) == [-9, 143, 0]
    return undisturbed, stopped


@pytest.fixture(scope="module")
def ten_days(tmp_path_factory):
    """Ten days of flights, published without a disturbance."""
    folder = tmp_path_factory.mktemp("undisturbed")
    assert backfilled(folder, "2013-01-10", []) == [0]
    assert len(public_files(folder)) == 10 * 3 + 2
    return folder


@pytest.mark.slow
def test_ten_days_killed_at_every_kind_of_place_end_as_if_nothing_had_happened(tmp_path, ten_days):
    plan = [{"signal": "SIGKILL", "at": place, "number": 1} for place in PLACES]
    plan += [{"signal": "SIGKILL", "after": 0.15}, {"signal": "SIGKILL", "after": 0.05}]
    assert backfilled(tmp_path / "killed", "2013-01-10", plan) == [-9] * 6 + [0]
    check_same(tmp_path / "killed", ten_days)


def test_four_days_killed_and_stopped_end_as_if_nothing_had_happened(four_days):
    undisturbed, stopped = four_days
    assert len(public_files(undisturbed)) == 4 * 3 + 2
    check_same(stopped, undisturbed)
    assert "stopped by SIGTERM" in (stopped / "report.log").read_text(encoding="utf-8")


@pytest.mark.slow
def test_ten_days_stopped_by_signals_finish_what_they_began_and_end_as_if_nothing_had_happened(tmp_path, ten_days):
    plan = [{"signal": "SIGTERM", "at": place, "number": 1} for place in PLACES[::2]]
    plan += [{"signal": "SIGTERM", "after": 0.1}, {"signal": "SIGINT", "after": 0.05}]
    folder = tmp_path / "stopped"
    assert backfilled(folder, "2013-01-10", plan) == [143] * 3 + [130, 0]
    check_same(folder, ten_days)
    assert "stopped by SIGTERM" in (folder / "report.log").read_text(encoding="utf-8")


@pytest.mark.slow
def test_a_year_killed_fifty_times_ends_as_if_nothing_had_happened(tmp_path):
    assert backfilled(tmp_path / "undisturbed", "2013-12-31", []) == [0]
    assert backfilled(tmp_path / "killed", "2013-12-31", stops(50, seed=2013)) == [-9] * 50 + [0]
    check_same(tmp_path / "killed", tmp_path / "undisturbed")


@pytest.mark.slow
def test_a_year_stopped_by_sigterm_fifty_times_ends_as_if_nothing_had_happened(tmp_path):
    assert backfilled(tmp_path / "undisturbed", "2013-12-31", []) == [0]
    plan = stops(50, seed=365, sent="SIGTERM")
    *ended, last = backfilled(tmp_path / "stopped", "2013-12-31", plan)
    # A process that has hardly started does not listen yet, and the signal simply ends it.
    listening = [code for code, stop in zip(ended, plan, strict=True) if "from" not in stop]
    assert (set(listening), last) == ({143}, 0)
    assert set(ended) <= {143, -15}
    check_same(tmp_path / "stopped", tmp_path / "undisturbed")
