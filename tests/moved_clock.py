"""A clock that tests set: the moment, and the machine's own zone."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from unittest import mock

from pkdp_pipeline import clock


@contextmanager
def clock_at(moment: datetime, machine_zone: str) -> Iterator[None]:
    """Let it be this moment, in UTC, on a machine of this zone."""
    try:
        with mock.patch.dict(os.environ, TZ=machine_zone), mock.patch.object(clock, "_read", return_value=moment):
            time.tzset()
            yield
    finally:
        time.tzset()  # the former zone came back with the environment
