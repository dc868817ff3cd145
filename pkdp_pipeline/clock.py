"""The clock: which moment it is, which day that is in a zone, and what the machine's own zone is called.

Everything that depends on the hour asks here, so that a test which replaces `_read` moves all of it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, date, datetime, time, timedelta
from functools import cache
from zoneinfo import ZoneInfo, available_timezones

_LINK, _NAME = "/etc/localtime", "/etc/timezone"


_read = datetime.now


def now() -> datetime:
    """Return the moment, in UTC."""
    return _read(UTC)


def today(zone: str | None) -> date:
    """Return the date on the clocks of a zone, None: of the machine's own."""
    return now().astimezone(None if zone is None else ZoneInfo(zone)).date()


def midnight(day: date, zone: str | None) -> datetime:
    """Return when a day begins on the clocks of a zone, None: of the machine's own."""
    begins = datetime.combine(day, time())
    return begins.astimezone() if zone is None else begins.replace(tzinfo=ZoneInfo(zone))


@cache
def zones() -> frozenset[str]:
    """Return the names of the time zones that there are; all their files are looked at once for a process."""
    return frozenset(available_timezones())


def machine_zone() -> str | None:
    """Return the name of the machine's own zone, such as Europe/Oslo; None where nothing here names it.

    A name counts if it shows what the machine's clocks show, twice a month from now for a year.
    """
    moments = [now() + timedelta(days=15 * step) for step in range(25)]
    for name in _named():
        if name in zones() and name != "localtime":
            zone = ZoneInfo(name)
            if all(moment.astimezone(zone).utcoffset() == moment.astimezone().utcoffset() for moment in moments):
                return name
    return None


def _named() -> Iterator[str]:
    """Yield what may be the name: `TZ` alone where it is set, as everywhere; else the system's files."""
    given = os.environ.get("TZ", _LINK).removeprefix(":")
    if given != _LINK:
        yield given.rpartition("zoneinfo/")[2] or "UTC"
        return
    with suppress(OSError):
        yield os.readlink(_LINK).rpartition("zoneinfo/")[2]
    yield os.path.realpath(_LINK).rpartition("zoneinfo/")[2]
    with suppress(OSError, UnicodeDecodeError), open(_NAME, encoding="utf-8") as file:
        yield file.read().strip()
    if not os.path.exists(_LINK):
        yield "UTC"


def instant(moment: datetime) -> str:
    """Return an instant of UTC as text, to a thousandth of a second."""
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
