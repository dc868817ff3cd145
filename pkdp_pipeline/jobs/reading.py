"""Reading: the rows of one day, looked at once and only when a release needs them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date

from pkdp_pipeline.jobs.checks import CheckedDay, check_input
from pkdp_pipeline.jobs.job import Job
from pkdp_pipeline.jobs.requests import NamedRequest
from pkdp_pipeline.jobs.retention import keep_rows
from pkdp_pipeline.jobs.sources import Source
from pkdp_pipeline.jobs.stopping import Stopping, interruptible
from pkdp_pipeline.releases.publish import Counted

__all__ = ["DayReader"]


class DayReader:
    """The day's rows, checked and counted once; a replay never asks for them.

    Parameters
    ----------
    job : Job
    day : datetime.date
    opened : callable
        Returns the source, open.
    stopping : Stopping
        Lets a signal take effect while data are read.

    Attributes
    ----------
    verdicts : list of (str, bool)
        The rules that the day was held to, and whether it keeps them.
    """

    def __init__(self, job: Job, day: date, opened: Callable[[], Source], stopping: Stopping) -> None:
        self._job, self._day = job, day
        self._opened, self._stopping = opened, stopping
        self._checked: CheckedDay | None = None
        self.verdicts: list[tuple[str, bool]] = []

    @property
    def rows(self) -> int | None:
        """How many rows the day has, once they are read."""
        return None if self._checked is None else self._checked.rows

    def check(self, named: Sequence[NamedRequest]) -> None:
        """Check the day, count what the releases ask for, and keep a copy of the rows where the job says so.

        Raises
        ------
        ArgumentError, ConfigError, TemporaryError
            If the source cannot be read, or does not have what a release asks for.
        InputCheckError
            If the day does not look as declared.
        """
        # Not among what a signal interrupts: DuckDB ends the process when it is interrupted while it is imported.
        source = self._opened()
        with self._stopping.reading():
            self._checked = interruptible(lambda: self._looked(source, named), source.interrupt)

    def _looked(self, source: Source, named: Sequence[NamedRequest]) -> CheckedDay:
        self.verdicts.clear()
        checked = check_input(source, self._job, self._day, named, verdicts=self.verdicts)
        keep_rows(self._job, source, self._day)
        return checked

    def counted(self, one: NamedRequest) -> Counted:
        """Return what a release has counted."""
        if self._checked is None or one.name not in self._checked.counted:
            self.check([one])  # another run took its reservation back meanwhile
        assert self._checked is not None
        return self._checked.counted[one.name]
