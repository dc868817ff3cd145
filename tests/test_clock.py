"""The clock: the name of the machine's own zone, days and their beginnings in it, and that nothing else reads one."""

from __future__ import annotations

import os
from datetime import UTC, date, datetime
from pathlib import Path

import pytest
from moved_clock import clock_at

from pkdp_pipeline import clock

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
