"""Reading: the rows of one day, looked at once and only when a release needs them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from typing import Any

from pkdp_pipeline.jobs.input_checks import check_input
from pkdp_pipeline.jobs.job import Job
from pkdp_pipeline.jobs.sources import Source
from pkdp_pipeline.jobs.stopping import Stopping

__all__ = ["DayReader"]


class DayReader:
    """The day's rows, checked before they are first counted; a replay never asks for them.

    Parameters
    ----------
    job : Job
    day : datetime.date
    opened : callable
        Returns the source, open.
    stopping : Stopping
        Lets a signal take effect while data are read.
    """

    def __init__(self, job: Job, day: date, opened: Callable[[], Source], stopping: Stopping) -> None:
        self._job, self._day = job, day
        self._opened, self._stopping = opened, stopping
        self._checked = False

    def check(self) -> None:
        """Check the day, unless that was done.

        Raises
        ------
        ConfigError, TemporaryError
            If the source cannot be read.
        InputCheckError
            If the day does not look as declared.
        """
        if self._checked:
            return
        self._stopping.read()
        try:
            check_input(self._opened(), self._job, self._day)
        finally:
            self._stopping.finish()
        self._checked = True

    def rows(self) -> Any:
        """Return the day's rows as a frame of the job's engine; from here on a signal takes effect at once."""
        self.check()  # where another run took its reservation back meanwhile
        self._stopping.read()
        return self._opened().day(self._job.period, self._day)
