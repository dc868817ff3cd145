"""A clock that tests set: the moment, and the machine's own zone."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime

from pkdp_pipeline import clock


@contextmanager
def clock_at(moment: datetime, machine_zone: str) -> Iterator[None]:
    """Let it be this moment, in UTC, on a machine of this zone."""
    former = clock._read, os.environ.get("TZ")
    _set(lambda zone: moment.astimezone(zone), machine_zone)
    try:
        yield
    finally:
        _set(*former)


def _set(read, machine_zone: str | None) -> None:
    clock._read = read
    os.environ.pop("TZ", None)
    if machine_zone is not None:
        os.environ["TZ"] = machine_zone
    time.tzset()
