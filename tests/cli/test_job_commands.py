from __future__ import annotations

import datetime
import io
import itertools
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
from moved_clock import clock_at
from rich.console import Console
from thorough import thinned
from typer.testing import CliRunner

from pkdp_pipeline.cli import job_commands
from pkdp_pipeline.cli import main as cli
from pkdp_pipeline.cli.job_views import Watch
from pkdp_pipeline.errors import InputCheckError, TemporaryError
from pkdp_pipeline.jobs import JobResult, load_job
from pkdp_pipeline.jobs.outputs.files import job_lock
from pkdp_pipeline.jobs.tables import PeriodTable
from pkdp_pipeline.ledger import Ledger

pytestmark = pytest.mark.default_target

EXAMPLES = Path(__file__).parents[2] / "examples"
FROM_TO = ("--from", "2013-01-03", "--to", "2013-01-04")


@pytest.fixture(scope="module")
def flights(tmp_path_factory):
    """The flights of the first days of the year."""
    frame = pd.read_parquet(EXAMPLES / "data" / "flights_2013.parquet")
    path = tmp_path_factory.mktemp("flights") / "flights_2013.parquet"
    frame[frame["date"] <= datetime.date(2013, 1, 7)].to_parquet(path)
    return path


@pytest.fixture
def folder(tmp_path, flights):
    """A folder with the example jobs and their data of some days, away from the repository."""
    (tmp_path / "data").mkdir()
    shutil.copy(flights, tmp_path / "data")
    for path in EXAMPLES.glob("*.toml"):
        shutil.copy(path, tmp_path)
    return tmp_path


def pkdp(*arguments):
    return CliRunner(env={"COLUMNS": "80"}).invoke(cli.app, list(map(str, arguments)))


def words(text: str) -> str:
    return " ".join(text.split())


def without(folder: Path, *days: str) -> None:
    """Take the rows of some days away from the source, and let the job ask for rows."""
    with (folder / "daily_flights.toml").open("a", encoding="utf-8") as job:
        job.write("\n[checks]\nrows = { min = 1 }\n")
    path = folder / "data" / "flights_2013.parquet"
    frame = pd.read_parquet(path)
    frame[~frame["date"].astype(str).isin(days)].to_parquet(path)


def periods(folder: Path) -> list[str]:
    with Ledger.open(folder / "out" / "ledger.sqlite", dataset="flights") as ledger:
        return [entry.period for entry in ledger.entries()]


def test_a_backfill_prints_what_it_did_and_fits_on_80_columns(folder):
    job = folder / "daily_flights.toml"
    first = pkdp("backfill", job, "--from", "2013-01-01", "--to", "2013-01-03")
    assert first.exit_code == 0, first.output
    assert "flights, 2013-01-01 to 2013-01-03 (3 days)" in first.stdout
    assert re.search(r"published +3 days", first.stdout)
    assert "3 releases: private at ε = 1.16" in words(first.stdout)
    (folder / "data" / "flights_2013.parquet").unlink()
    again = pkdp("backfill", job, "--from", "2013-01-02", "--to", "2013-01-03")
    assert again.exit_code == 0, again.output
    assert re.search(r"replayed +2 days", again.stdout)
    assert not re.search(r"published +\d", again.stdout)
    for line in first.stdout.splitlines():
        assert len(line) <= 80 or str(folder) in line


def test_a_day_on_which_no_cell_reaches_k_says_so_on_the_terminal(folder):
    job = folder / "daily_flights.toml"
    job.write_text(job.read_text(encoding="utf-8").replace("k = 50", "k = 5000"), encoding="utf-8")
    shown = pkdp("run", job, "--date", "2013-01-03")
    assert shown.exit_code == 0, shown.output
    assert "Nothing reached the rule for publishing." in shown.stdout
    job = folder / "daily_flights_noisy.toml"
    assert "Nothing reached" not in pkdp("run", job, "--date", "2013-01-03").stdout


@pytest.mark.slow
def test_a_backfill_stops_at_the_first_day_that_fails_with_its_exit_code(folder):
    without(folder, "2013-01-02")
    done = pkdp("backfill", folder / "daily_flights.toml", "--from", "2013-01-01", "--to", "2013-01-04")
    assert done.exit_code == 3
    assert "pkdp: 2013-01-02: the input check" in done.stderr
    assert re.search(r"failed +1 day: 2013-01-02", done.stdout)
    assert re.search(r"not reached +2 days", done.stdout)
    assert periods(folder) == ["2013-01-01"]


@pytest.mark.slow
def test_with_keep_going_the_days_that_failed_are_named_at_the_end(folder):
    without(folder, "2013-01-02", "2013-01-04")
    arguments = ("--from", "2013-01-01", "--to", "2013-01-04", "--keep-going")
    done = pkdp("backfill", folder / "daily_flights.toml", *arguments)
    assert done.exit_code == 3
    assert re.search(r"failed +2 days: 2013-01-02, 2013-01-04", done.stdout)
    assert "not reached" not in done.stdout
    assert periods(folder) == ["2013-01-01", "2013-01-03"]


def test_a_dry_run_says_what_would_happen_and_leaves_nothing(folder):
    (folder / "data" / "flights_2013.parquet").unlink()
    job = folder / "daily_flights.toml"
    before = sorted(folder.rglob("*"))
    for arguments in (
        ("run", job, "--date", "2013-01-02"),
        ("backfill", job, "--from", "2013-01-01", "--to", "2013-01-31"),
    ):
        done = pkdp(*arguments, "--dry-run")
        assert done.exit_code == 0, done.output
        assert "aircraft_by_carrier  published" in done.stdout
        assert "the ledger then  1.16" in words(done.stdout).replace("ledger then", "ledger then ")
        assert all(len(line) <= 80 for line in done.stdout.splitlines())
    assert re.search(r"2013-01-01 +2013-01-31 +31 ", done.stdout)
    assert sorted(folder.rglob("*")) == before


def test_a_dry_run_ends_with_the_exit_code_of_the_first_refusal_and_its_reason(folder):
    noisy = folder / "daily_flights_noisy.toml"
    noisy.write_text(noisy.read_text(encoding="utf-8").replace("epsilon = 7.0", "epsilon = 6.0"), encoding="utf-8")
    done = pkdp("backfill", noisy, "--from", "2013-01-01", "--to", "2013-12-31", "--dry-run")
    assert done.exit_code == 4
    for text in ("2013-01-07 would be refused", "allowed: 6.0", "358 days after it would not be reached"):
        assert text in words(done.stdout)


def test_catching_up_publishes_the_days_missed_since_the_latest(folder):
    job = folder / "daily_flights.toml"
    assert pkdp("run", job, "--date", "2013-01-02", "--catch-up").exit_code == 0
    assert periods(folder) == ["2013-01-02"]
    done = pkdp("run", job, "--date", "2013-01-05", "--catch-up")
    assert done.exit_code == 0, done.output
    assert "2013-01-03: published\n2013-01-04: published\naircraft_by_carrier, 2013-01-05" in done.stdout
    assert periods(folder) == ["2013-01-02", "2013-01-03", "2013-01-04", "2013-01-05"]


def test_a_run_that_cannot_find_out_what_was_missed_leaves_a_record(folder):
    job = folder / "daily_flights.toml"
    text = job.read_text(encoding="utf-8")
    job.write_text(f'{text}\n[records]\ndirectory = "runs"\n', encoding="utf-8")
    ledger = Path(load_job(job).ledger)
    ledger.parent.mkdir(parents=True, exist_ok=True)
    ledger.write_bytes(b"no ledger" * 1000)
    assert pkdp("run", job, "--date", "2013-01-04", "--catch-up").exit_code == 2
    (record,) = (folder / "runs").glob("*.json")
    document = json.loads(record.read_text(encoding="utf-8"))
    assert (document["day"], document["outcome"], document["exit_code"]) == ("2013-01-04", "failed", 2)


def test_a_missed_day_that_fails_stops_the_others_and_the_message_says_how_to_go_on(folder):
    without(folder, "2013-01-03")
    job = folder / "daily_flights.toml"
    assert pkdp("run", job, "--date", "2013-01-02").exit_code == 0
    failed = pkdp("run", job, "--date", "2013-01-04", "--catch-up")
    assert failed.exit_code == 3
    assert "leave catch-up out once" in failed.stderr
    assert pkdp("run", job, "--date", "2013-01-04").exit_code == 0
    assert periods(folder) == ["2013-01-02", "2013-01-04"]


@pytest.fixture
def unread(folder):
    """What a process ended with that caught up with two days, and whose output nobody read."""
    job = folder / "daily_flights.toml"
    assert pkdp("run", job, "--date", "2013-01-02").exit_code == 0
    command = [sys.executable, "-m", "pkdp_pipeline.cli.main", "run", str(job), "--date", "2013-01-04", "--catch-up"]
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as closed:
        return subprocess.run(command, stdout=closed, stderr=subprocess.PIPE, text=True, check=False)


@pytest.mark.slow
def test_days_are_caught_up_with_where_nobody_reads_what_is_printed(folder, unread):
    done = unread
    assert (done.returncode, "shown" in done.stderr) == (0, False), done.stderr
    assert periods(folder) == ["2013-01-02", "2013-01-03", "2013-01-04"]


@pytest.fixture
def unwritten(folder):
    """What a process ended with that published a day, and whose output went to a full disk."""
    arguments = ["backfill", folder / "daily_flights.toml", "--from", "2013-01-01", "--to", "2013-01-01"]
    with Path("/dev/full").open("w", encoding="utf-8") as full:
        command = [sys.executable, "-m", "pkdp_pipeline.cli.main", *map(str, arguments)]
        return subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)


@pytest.mark.slow
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no device that is always full")
def test_a_backfill_whose_log_is_on_a_full_disk_ends_with_the_code_of_what_it_did(folder, unwritten):
    done = unwritten
    assert done.returncode == 0, done.stderr
    assert "defect" not in done.stderr
    assert "can be shown" in done.stderr
    assert periods(folder) == ["2013-01-01"]


@thinned(2)
@pytest.mark.parametrize("command", [["run", "--date", "2013-01-03"], ["backfill", *FROM_TO]])
def test_a_signal_while_a_locked_ledger_is_waited_for_is_not_to_be_tried_again(folder, monkeypatch, command):
    assert pkdp("run", folder / "daily_flights.toml", "--date", "2013-01-02").exit_code == 0

    def locked(self, *arguments, **names):
        os.kill(os.getpid(), signal.SIGTERM)
        raise TemporaryError("the ledger is locked.")

    monkeypatch.setattr(Ledger, "reserve", locked)
    done = pkdp(command[0], folder / "daily_flights.toml", *command[1:])
    assert done.exit_code == 143, done.stderr
    assert "stopped by SIGTERM" in done.stderr


def test_catching_up_and_revising_exclude_each_other(folder):
    done = pkdp("run", folder / "daily_flights.toml", "--date", "2013-01-04", "--catch-up", "--revise")
    assert done.exit_code == 2
    assert "--catch-up" in done.stderr


def test_a_run_while_another_one_is_going_on_is_exit_code_75(folder):
    (folder / "out").mkdir()
    with job_lock(folder / "out"):
        done = pkdp("run", folder / "daily_flights.toml", "--date", "2013-01-02")
    assert done.exit_code == 75
    assert "another run" in done.stderr


def test_other_terms_than_the_ledgers_are_remarked_on(folder):
    job = folder / "daily_flights.toml"
    assert pkdp("run", job, "--date", "2013-01-02").stderr == ""
    job.write_text(job.read_text(encoding="utf-8").replace("epsilon = 1.2,", "epsilon = 1.3,"), encoding="utf-8")
    changed = pkdp("run", job, "--date", "2013-01-03")
    assert changed.exit_code == 0
    assert "declares another budget" in changed.stderr


@pytest.mark.parametrize(
    ("zone", "expected"),
    [(None, "2024-03-08"), ("UTC", "2024-03-09"), ("Pacific/Kiritimati", "2024-03-10")],
)
def test_today_and_yesterday_are_days_of_the_jobs_time_zone_or_else_of_the_machines(zone, expected):
    job = type("Job", (), {"period": PeriodTable(column="day", time_zone=zone)})
    with clock_at(datetime.datetime(2024, 3, 9, 10, 30, tzinfo=datetime.UTC), "Etc/GMT+12"):
        today = job_commands.chosen_day("--date", "today", job)
        assert today.isoformat() == expected
        assert today - job_commands.chosen_day("--date", "yesterday", job) == datetime.timedelta(days=1)


@pytest.mark.parametrize(
    "option", [("--from", "x", "--to", "2013-01-02"), ("--from", "2013-01-02", "--to", "2013-1-3")]
)
def test_a_date_of_a_backfill_that_is_none_is_exit_code_2(folder, option):
    done = pkdp("backfill", folder / "daily_flights.toml", *option)
    assert done.exit_code == 2
    assert "must be written YYYY-MM-DD" in done.stderr
    reverse = pkdp("backfill", folder / "daily_flights.toml", "--from", "2013-01-03", "--to", "2013-01-02")
    assert reverse.exit_code == 2
    assert "swap" in reverse.stderr


def test_version():
    assert re.fullmatch(r"pkdp \d+\.\d+\.\d+\S*\n", pkdp("--version").stdout)


def failed(day: int) -> JobResult:
    return JobResult(job=None, day=datetime.date(2020, 1, day), error=InputCheckError("column 'town' must exist"))


def test_without_a_terminal_there_is_a_line_now_and_then_with_the_time_left():
    written, clock = io.StringIO(), itertools.count(0.0, 7.0)
    with Watch(
        40, PeriodTable(column="day"), console=Console(file=written, width=80), clock=lambda: next(clock)
    ) as watch:
        for day in range(1, 7):
            watch.saw(failed(day))
    lines = [line for line in written.getvalue().splitlines() if "about" in line]
    assert 1 <= len(lines) <= 4
    assert all(re.search(r"pkdp: \d+ of 40 days, up to 2020-01-0\d; about \d+:\d\d:\d\d left", line) for line in lines)
    assert written.getvalue().count("must exist") == 6


def test_on_a_terminal_there_is_a_bar():
    written = io.StringIO()
    with Watch(4, PeriodTable(column="day"), console=Console(file=written, width=80, force_terminal=True)) as watch:
        watch.saw(failed(1))
    assert "1/4" in written.getvalue()
    assert "left" in written.getvalue()
