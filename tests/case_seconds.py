"""The processor seconds of a quick case: one that takes more than a second is written to the file PKDP_CASE_SECONDS.

CI names a file for ``make test``, runs the test files of these cases again with nothing beside them, and fails where a
case has taken too long both times: one measurement can be off by several times, next to another process. Seconds are
those of a processor that nobody else uses: where it is slower, a case may take longer, by as much as a loop does that
is measured when a case has taken too much.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from thorough import ALL

__all__ = ["ALLOWED", "DEAR", "SPARED", "complaint", "slowness", "watched"]

ALLOWED = 1.0
#: One case takes up to twice as long as another time, on the same machine: so much is left for that.
_SPREAD = 2.0
#: Tests that took more when the limit was drawn, and have to be made smaller: lines are only taken from this file.
DEAR = frozenset((Path(__file__).parent / "data" / "dear_cases.txt").read_text(encoding="utf-8").splitlines())
#: Campaigns, and what other programs do, take what they take.
SPARED = (
    *("slow", "docs", "processors"),
    *("postgres", "spark", "ibis", "dbt", "browser", "dagster", "airflow"),
)
#: Seconds of the loop on a processor that does nothing else.
_LOOP = 0.0138
#: Whoever is the first to import a library of so many modules pays for all others.
_LIBRARY = 50


def _seconds() -> float:
    """Return the processor seconds of this process, and of those it has started that have ended."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def slowness() -> float:
    """Return how many times as long as a processor that nobody else uses this one takes, just now; at least 1."""

    def loop() -> float:
        began, sums = time.process_time(), dict.fromkeys(range(1024), 0)
        for number in range(100_000):
            sums[number & 1023] = sums[number & 511] + number
        return time.process_time() - began

    return max(1.0, *(loop() / _LOOP for _ in range(5)))


def complaint(seconds: float, modules: int = 0, slower: float | None = None) -> str | None:
    """Return what is said of a case that took so many seconds and loaded so many modules, None where nothing is."""
    if seconds <= ALLOWED or modules >= _LIBRARY:
        return None
    scaled = seconds / (slowness() if slower is None else slower)
    if scaled <= _SPREAD * ALLOWED:
        return None
    return (
        f"{scaled:.2f} s, and {seconds:.2f} s on this machine: quick cases may take {ALLOWED:g} processor second. Make "
        "it smaller, or mark it slow and leave a small one that is not."
    )


def watched(item: pytest.Item) -> Iterator[None]:
    """Write down a case whose call takes more than is allowed; a property that is tried on all its cases may."""
    began, modules = _seconds(), len(sys.modules)
    result = yield
    test = item.nodeid.partition("[")[0].partition("@")[0]
    log = os.environ.get("PKDP_CASE_SECONDS")
    if log and not ALL and test not in DEAR and not any(map(item.get_closest_marker, SPARED)):
        said = complaint(_seconds() - began, len(sys.modules) - modules)
        if said is not None:
            # Processes append whole lines: a short write to a file opened so is not cut in two.
            with open(log, "a", encoding="utf-8") as lines:
                lines.write(f"{item.nodeid}\t{said}\n")
    return result
