"""The clock: the name of the machine's own zone, days and their beginnings in it, and that nothing else reads one."""

from __future__ import annotations

import json
import os
import re
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, get_args

import pandas as pd
import pytest
from moved_clock import clock_at
from thorough import thinned

import pkdp_pipeline as pkdp
from pkdp_pipeline import clock
from pkdp_pipeline.cli.job_commands import chosen_day
from pkdp_pipeline.clock import midnight
from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.extras.gate.records import AuditLog, add_token, name_of
from pkdp_pipeline.jobs import JobResult
from pkdp_pipeline.jobs.session import days_of
from pkdp_pipeline.jobs.steps import forget_rows
from pkdp_pipeline.jobs.tables import PeriodTable
from pkdp_pipeline.ledger import Ledger
from pkdp_pipeline.model.period import Every

SUMMER = datetime(2026, 7, 1, 12, tzinfo=UTC)
ZONES = Path("/usr/share/zoneinfo")


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("Europe/Berlin", "Europe/Berlin"),
        (":Europe/Berlin", "Europe/Berlin"),
        ("/usr/share/zoneinfo/Asia/Kolkata", "Asia/Kolkata"),
        ("", "UTC"),
        ("EST5EDT", "EST5EDT"),
        ("CET-1CEST", None),
        ("localtime", None),
        ("No/Such_Zone", None),
    ],
)
def test_the_machines_zone_is_that_of_the_environment(given, name):
    with clock_at(SUMMER, given):
        assert clock.machine_zone() == name


@pytest.mark.parametrize(
    ("link", "file", "name"),
    [
        ("Asia/Kolkata", None, "Asia/Kolkata"),
        ("Asia/Kolkata", "Europe/Berlin", "Asia/Kolkata"),
        (None, "Asia/Kolkata", "Asia/Kolkata"),
        (None, "Europe/Berlin", None),  # left over from a former place
        (None, None, None),
    ],
)
def test_without_it_the_system_names_the_zone(tmp_path, monkeypatch, link, file, name):
    """Where the clocks show what those of Kolkata show; a file that names another zone is not believed."""
    monkeypatch.setattr(clock, "_LINK", str(tmp_path / "localtime"))
    monkeypatch.setattr(clock, "_NAME", str(tmp_path / "timezone"))
    if link is not None:
        (tmp_path / "localtime").symlink_to(ZONES / link)
    if file is not None:
        (tmp_path / "timezone").write_text(f"{file}\n", encoding="utf-8")
    with clock_at(SUMMER, "Asia/Kolkata"):
        monkeypatch.setattr(os, "environ", {})
        assert clock.machine_zone() == name
        monkeypatch.undo()


def test_a_day_and_its_beginning_are_those_of_the_zone():
    with clock_at(datetime(2026, 3, 29, 0, 30, tzinfo=UTC), "America/Los_Angeles"):
        assert (clock.today(None), clock.today("Pacific/Kiritimati")) == (date(2026, 3, 28), date(2026, 3, 29))
        assert clock.midnight(date(2026, 3, 8), None).astimezone(UTC) == datetime(2026, 3, 8, 8, tzinfo=UTC)
        assert clock.midnight(date(2026, 3, 9), None).astimezone(UTC) == datetime(2026, 3, 9, 7, tzinfo=UTC)
        assert clock.midnight(date(2026, 3, 29), "Europe/Berlin").isoformat() == "2026-03-29T00:00:00+01:00"


#: The moments at which clocks of a zone change, and how far ahead of UTC they are from then on.
CHANGES = {
    "Etc/GMT+12": [("2026-01-01T00:00", -12.0)],
    "America/Los_Angeles": [
        ("2026-01-01T00:00", -8.0),
        ("2026-03-08T10:00", -7.0),
        ("2026-11-01T09:00", -8.0),
        ("2028-01-01T00:00", -8.0),
    ],
    "UTC": [("2026-01-01T00:00", 0.0)],
    "Europe/Berlin": [
        ("2026-01-01T00:00", 1.0),
        ("2026-03-29T01:00", 2.0),
        ("2026-10-25T01:00", 1.0),
    ],
    "Asia/Kolkata": [("2026-01-01T00:00", 5.5)],
    "Pacific/Auckland": [
        ("2026-01-01T00:00", 13.0),
        ("2026-04-04T14:00", 12.0),
        ("2026-09-26T14:00", 13.0),
    ],
    "Pacific/Kiritimati": [("2026-01-01T00:00", 14.0)],
}
#: An ordinary day, those on which clocks change, and the ends of a year and of a February of 29 days.
DATES = ("2026-05-06", "2026-03-08", "2026-11-01", "2026-03-29", "2026-10-25", "2026-04-04", "2026-04-05")
DATES += ("2026-09-26", "2026-09-27", "2026-12-31", "2028-02-28", "2028-02-29")
HOURS = ("00:00:00", "00:30:00", "03:00:00", "09:59:00", "10:01:00", "11:00:00", "14:00:00", "23:30:00", "23:59:59")
MOMENTS = [datetime.fromisoformat(f"{day}T{hour}+00:00") for day in DATES for hour in HOURS]
DAY = timedelta(1)


def on_the_clocks(moment: datetime, zone: str) -> date:
    (*_, (_, ahead)) = (change for change in CHANGES[zone] if change[0] <= moment.isoformat())
    return (moment + timedelta(hours=ahead)).date()


@thinned(4)
@pytest.mark.parametrize("zone", CHANGES)
@pytest.mark.parametrize("declared", [True, False], ids=["declared", "machine"])
def test_a_period_is_over_by_the_clocks_of_its_zone_at_every_hour(zone, declared):
    named = zone if declared else None
    periods = [PeriodTable(column="day", every=every, time_zone=named) for every in get_args(Every)]
    for moment in MOMENTS:
        day = on_the_clocks(moment, zone)
        with clock_at(moment, "Asia/Kathmandu" if declared else zone):
            begins, ends = (midnight(start, named) for start in (day, day + DAY))
            assert begins <= moment < ends
            for period in periods:
                before = period.span(day)[0] - DAY
                assert (period.today(), period.is_over(day), period.is_over(before)) == (day, False, True)
                period.check_open(before)
                with pytest.raises(ArgumentError, match=f"the latest that is over .date {period.span(before)[0]}"):
                    period.check_open(day)


@thinned(2)
@pytest.mark.parametrize("zone", CHANGES)
def test_words_and_spans_of_days_follow_the_clocks_of_the_machine(zone):
    job: Any = SimpleNamespace(period=PeriodTable(column="day"))
    for moment in MOMENTS:
        day = on_the_clocks(moment, zone)
        with clock_at(moment, zone):
            assert chosen_day("--date", "today", job) == day
            assert chosen_day("--date", "yesterday", job) == day - DAY
            assert days_of(job, day - 2 * DAY, day - DAY) == (day - 2 * DAY, day - DAY)
            assert days_of(job, day - DAY, day, ahead=True) == (day - DAY, day)
            with pytest.raises(ArgumentError, match="is not over"):
                days_of(job, day - DAY, day)


@thinned(3)
@pytest.mark.parametrize("zone", CHANGES)
def test_records_tokens_and_copies_do_not_depend_on_the_machines_zone(zone, tmp_path):
    tokens, audit, copy = tmp_path / "tokens", tmp_path / "audit", tmp_path / "job.2020-01-04.rows.parquet"
    token = dict.fromkeys((1, 9), "")
    job: Any = SimpleNamespace(name="job", retention=SimpleNamespace(directory=str(tmp_path), days=7))
    tmp_path.chmod(0o700)
    for moment in MOMENTS:
        with clock_at(moment, zone):
            assert JobResult(job=job, day=date(2020, 1, 4)).started == moment
            tokens.unlink(missing_ok=True)
            token = add_token(tokens, "ana", days=1)
            AuditLog(audit).write("answered")
            assert json.loads(audit.read_text(encoding="utf-8").splitlines()[-1])["time"] == moment.isoformat(
                timespec="microseconds"
            )
            for days, stays in ((6.99, True), (7.01, False)):
                copy.write_bytes(b"")
                os.utime(copy, (moment.timestamp() - days * 86_400,) * 2)
                forget_rows(job)
                assert copy.exists() is stays
        valid = [moment + DAY, datetime.combine(moment + DAY, time(23, 59, 59), UTC)]
        for later in (*valid, valid[-1] + timedelta(seconds=1)):
            with clock_at(later, zone):
                assert (name_of(tokens, token) == "ana") is (later in valid)


def test_the_ledger_writes_utc_down_whatever_the_zone():
    for zone in CHANGES:
        with clock_at(MOMENTS[1], zone), Ledger.open(":memory:", dataset="d") as ledger:
            frame = pd.DataFrame({"u": range(40)})
            pkdp.count(frame, unit="u", k=20, attacker=pkdp.AttackerModel(p_max=0.1), ledger=ledger, period="a")
            assert {event.created_at for event in ledger.records.events()} == {"2026-05-06T00:30:00+00:00"}


READING = re.compile(
    r"\b(datetime|date)\.(now|today|utcnow)\b|\btime\.(time|localtime|gmtime|strftime)\(|astimezone\(\)|import tz"
)


def test_nothing_else_reads_a_clock():
    """What measures how long something takes, `time.monotonic`, has no hour."""
    package = Path(clock.__file__).parent
    texts = {str(path.relative_to(package)): path.read_text(encoding="utf-8") for path in package.rglob("*.py")}
    assert {name for name, text in texts.items() if READING.search(text)} == {"clock.py"}
