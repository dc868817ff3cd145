"""A backfill that is killed again and again: a program that starts it, stops it where it is told, and starts it anew.

Usage: ``python interrupted_backfill.py JOB.toml FROM TO PLAN.json REPORT.json``. The plan is a list of stops:
``{"signal": "SIGKILL", "at": "reserve", "number": 3}`` stops right after that process has charged its third day;
``store`` is right after a release is stored, ``half`` in the middle of a file and ``whole`` before it has its name;
``{"signal": …, "after": 0.4}`` stops 0.4 seconds after the process has begun to publish, or to replay with
``"from": "start"``. When all stops are done, the backfill runs to its end. The report lists how each process ended.

Everything is imported once, and each backfill is a process forked from here, so that a stop costs no start. All
processes have the same fixed clock, so that the chains of two ledgers can be compared.
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys
import time
from datetime import datetime, tzinfo
from pathlib import Path

from pkdp_pipeline import clock
from pkdp_pipeline.cli import main as cli
from pkdp_pipeline.jobs import outputs, session
from pkdp_pipeline.jobs.sources import source as files
from pkdp_pipeline.ledger import Ledger, sqlite_database

IMPORTED = (cli, outputs, session, files, sqlite_database)
STUCK = 300.0


def ten_o_clock(zone: tzinfo) -> datetime:
    """Return the same moment, always."""
    return datetime(2024, 5, 6, 10, tzinfo=zone)


def stop_after(owner, name: str, number: int, stop) -> None:
    """Stop this process right after the numbered call of a function that is called again and again."""
    real, calls = getattr(owner, name), []

    def counted(*arguments, **names):
        result = real(*arguments, **names)
        calls.append(name)
        if len(calls) == number:
            stop()
        return result

    setattr(owner, name, counted)


class Torn:
    """A file of which only the first half is written before this process is stopped."""

    def __init__(self, file, stop) -> None:
        self._file, self._stop = file, stop

    def __enter__(self):
        return self

    def __exit__(self, *error) -> None:
        self._file.close()

    def __getattr__(self, name):
        return getattr(self._file, name)

    def write(self, content: bytes) -> None:
        self._file.write(content[: len(content) // 2])
        self._file.flush()
        self._stop()
        self._file.write(content[len(content) // 2 :])


def prepare(stop: dict, begun: int) -> None:
    """Arrange, in the process of one backfill, where it is stopped."""
    number = getattr(signal, stop["signal"])

    def now() -> None:
        os.kill(os.getpid(), number)

    place, which = stop.get("at"), stop.get("number", 1)
    if place == "reserve":
        stop_after(session, "charge_day", which, now)
    elif place == "store":
        stop_after(Ledger, "publish", which, now)
    elif place == "whole":
        stop_after(os, "fsync", which, now)
    elif place == "half":
        opened, files = os.fdopen, []

        def torn(*arguments, **names):
            files.append(1)
            file = opened(*arguments, **names)
            return Torn(file, now) if len(files) == which else file

        os.fdopen = torn
    if stop.get("from") == "start":
        os.write(begun, b"!")
    else:
        real = Ledger.reserve

        def telling(self, *arguments, **names):
            os.write(begun, b"!")
            return real(self, *arguments, **names)

        Ledger.reserve = telling


def attempt(arguments: list[str], stop: dict | None, log: Path) -> int:
    """Run the backfill in a process of its own, and return how it ended, as `os.waitstatus_to_exitcode` does."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        code = 70
        try:
            os.close(read)
            written = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
            os.dup2(written, 1)
            os.dup2(written, 2)
            if stop is not None:
                prepare(stop, write)
            code = cli.app(arguments, standalone_mode=False) or 0
        except SystemExit as ended:
            code = ended.code
        finally:
            os._exit(code)
    os.close(write)
    if stop is not None and "after" in stop:
        select.select([read], [], [], STUCK)
        time.sleep(stop["after"])
        os.kill(child, getattr(signal, stop["signal"]))
    ended = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    os.close(read)
    return ended


def main() -> None:
    job, first, last, plan, report = sys.argv[1:]
    clock._read = ten_o_clock
    arguments = ["backfill", job, "--from", first, "--to", last]
    log = Path(report).with_suffix(".log")
    ended = [attempt(arguments, stop, log) for stop in json.loads(Path(plan).read_text(encoding="utf-8"))]
    ended.append(attempt(arguments, None, log))
    Path(report).write_text(json.dumps(ended), encoding="utf-8")


if __name__ == "__main__":
    main()
