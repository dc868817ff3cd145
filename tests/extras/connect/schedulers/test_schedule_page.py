"""What docs/schedulers.md shows and links to is what lies in examples/schedule, and that works."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.docs

ROOT = Path(__file__).resolve().parents[4]
EXAMPLES = ROOT / "examples" / "schedule"
FILES = ("airflow_dag.py", "crontab", "definitions.py", "pkdp-flights.service", "pkdp-flights.timer")
PKDP = Path(sys.executable).with_name("pkdp")


@pytest.fixture
def machine(tmp_path):
    """A folder such as the page tells of: the job, its data and an environment."""
    shutil.copy(ROOT / "examples" / "daily_flights.toml", tmp_path)
    (tmp_path / "data").symlink_to(ROOT / "examples" / "data")
    (tmp_path / ".venv" / "bin").mkdir(parents=True)
    (tmp_path / ".venv" / "bin" / "pkdp").symlink_to(PKDP)
    return tmp_path


def shell(command, folder):
    """Run a line for another day: the examples end in 2013."""
    assert "--date yesterday --catch-up" in command
    line = command.replace("/srv/flights", str(folder)).replace("--date yesterday", "--date 2013-01-02")
    done = subprocess.run(
        ["sh", "-c", line], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def test_the_page_shows_the_files():
    assert sorted(path.name for path in EXAMPLES.iterdir() if path.is_file()) == sorted(FILES)
    page = (ROOT / "docs" / "schedulers.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```text\n(.*?)```", page, re.DOTALL)
    for name in FILES:
        assert f"(../examples/schedule/{name})" in page, name
    # A part of a program, the whole of what is short; the first block is of commands.
    for name, block in zip(("crontab", "definitions.py", "airflow_dag.py"), blocks[1:], strict=True):
        assert block in (EXAMPLES / name).read_text(encoding="utf-8"), name


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed")
def test_systemd_takes_the_units(machine):
    for name in ("pkdp-flights.service", "pkdp-flights.timer"):
        text = (EXAMPLES / name).read_text(encoding="utf-8")
        (machine / name).write_text(text.replace("/srv/flights", str(machine)), encoding="utf-8")
    units = [str(machine / "pkdp-flights.service"), str(machine / "pkdp-flights.timer")]
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", *units], capture_output=True, text=True, check=False
    )
    # Other units of the machine may be told of as well.
    said = [line for line in done.stderr.splitlines() if "pkdp-flights" in line]
    assert (done.returncode, said) == (0, []), done.stderr


def test_the_unit_runs_the_job_and_tries_again_what_is_temporary(machine):
    unit = (EXAMPLES / "pkdp-flights.service").read_text(encoding="utf-8")
    settings = dict(line.split("=", 1) for line in unit.splitlines() if re.match(r"\w+=", line))
    assert settings["RestartForceExitStatus"] == "75"
    assert "Restart" not in settings
    shell(settings["ExecStart"], machine)
    # What it writes, it may write.
    written = {path.relative_to(machine).parts[0] for path in machine.rglob("*") if not path.is_symlink()}
    assert written - {".venv", "daily_flights.toml"} == {"out"}
    assert settings["ReadWritePaths"] == "/srv/flights/out"
    assert (machine / "out" / "2013-01-02" / "aircraft_by_carrier.parquet").is_file()


def test_the_line_for_cron_publishes_silently_and_replays(machine):
    (line,) = [
        line for line in (EXAMPLES / "crontab").read_text(encoding="utf-8").splitlines() if re.match(r"[\d*]", line)
    ]
    *times, command = line.split(None, 5)
    assert len(times) == 5
    assert "%" not in command, "cron ends a line there"
    assert shell(command, machine) == ""
    published = (machine / "out" / "2013-01-02" / "aircraft_by_carrier.parquet").read_bytes()
    (machine / "data").unlink()
    assert shell(command, machine) == ""
    assert (machine / "out" / "2013-01-02" / "aircraft_by_carrier.parquet").read_bytes() == published
