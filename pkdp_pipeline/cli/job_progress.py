"""How far a backfill is: a bar with the time left on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from datetime import date, timedelta
from typing import TYPE_CHECKING, Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from pkdp_pipeline.jobs.backfilling import FailedDay

if TYPE_CHECKING:
    from pkdp_pipeline.jobs import JobResult

_SECONDS = 30.0
"""How long there is silence between two lines."""


class Watch:
    """Counts the days of a backfill and shows how far it is; use it as a context manager.

    Parameters
    ----------
    days : int
        How many there are.
    console : rich.console.Console, optional
        Default: standard error.
    clock : callable, optional
        Seconds since any moment.
    """

    def __init__(
        self, days: int, *, console: Console | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._days, self._ended, self._clock = days, 0, clock
        self._console = console or Console(file=sys.stderr, markup=False, highlight=False, emoji=False)
        columns = (TextColumn("{task.description:<10}"), BarColumn(bar_width=None), MofNCompleteColumn())
        left = (TextColumn("days"), TimeRemainingColumn(compact=True), TextColumn("left"))
        self._bar = Progress(*columns, *left, console=self._console, expand=True)
        self._task = self._bar.add_task("starting", total=days)
        self._begun = self._spoken = clock()

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            self._bar.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self._console.is_terminal:
            self._bar.stop()

    def saw(self, done: JobResult | FailedDay) -> None:
        """Count a day that has ended; one that failed is told at once."""
        self._ended += 1
        if isinstance(done, FailedDay):
            self._console.print(f"pkdp: {done.day.isoformat()}: {done.error}", soft_wrap=True)
        if self._ended == 1:
            self._begun = self._clock()  # the first day takes longer: everything is imported and opened
        if self._console.is_terminal:
            self._bar.update(self._task, advance=1, description=done.day.isoformat())
        elif self._clock() - self._spoken >= _SECONDS:
            self._spoken = self._clock()
            self._console.print(f"pkdp: {self._line(done.day)}", soft_wrap=True)

    def _line(self, day: date) -> str:
        each = (self._spoken - self._begun) / max(1, self._ended - 1)
        left = timedelta(seconds=round(each * (self._days - self._ended)))
        return f"{self._ended} of {self._days} days, up to {day.isoformat()}; about {left} left."
