"""Backfilling: the days of a period in order, and the days that a schedule has missed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from pkdp_pipeline.errors import ArgumentError, InputCheckError, PkdpError
from pkdp_pipeline.jobs.job import Job
from pkdp_pipeline.jobs.requests import requests_of
from pkdp_pipeline.jobs.session import JobResult, JobSession
from pkdp_pipeline.jobs.stopping import Stopping
from pkdp_pipeline.ledger import Ledger

if TYPE_CHECKING:
    from pkdp_pipeline.certificate import Certificate

__all__ = ["BackfillResult", "DayDone", "FailedDay", "Progress", "backfill", "days_of", "missed_days"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedDay:
    """A day on which nothing was published, and why."""

    day: date
    error: PkdpError


@dataclass(frozen=True, slots=True, kw_only=True)
class DayDone:
    """One day of a backfill that has ended; exactly one of `result` and `failed` is there."""

    day: date
    result: JobResult | None = None
    failed: FailedDay | None = None


Progress = Callable[[DayDone], None]
"""Called after each day, also after one that fails."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BackfillResult:
    """What a backfill has done.

    Parameters
    ----------
    published : tuple of datetime.date
        Days on which something was published now.
    replayed : tuple of datetime.date
        Days that were published before; no data was read and nothing was charged.
    failed : tuple of FailedDay
        Days whose input check failed, with `keep_going`.
    total : Certificate or None
        What everything that the ledger holds about the job's unit adds up to; None where it does not add up.
    """

    published: tuple[date, ...]
    replayed: tuple[date, ...]
    failed: tuple[FailedDay, ...]
    total: Certificate | None


def backfill(
    job: Job,
    first: date,
    last: date,
    *,
    revise: bool = False,
    keep_going: bool = False,
    progress: Progress | None = None,
    stopping: Stopping | None = None,
) -> BackfillResult:
    """Publish the days of a period in order; days that were published before are replayed.

    A backfill that was stopped or killed goes on where it was when it is started again.

    Parameters
    ----------
    job : Job
    first, last : datetime.date
        Both included.
    revise : bool, default False
        Publish every day's data anew, see `run_job`.
    keep_going : bool, default False
        After a day whose input check fails, go on with the next one.
    progress : callable, optional
        Called with a `DayDone` after each day.
    stopping : Stopping, optional
        Decides where a signal takes effect.

    Raises
    ------
    ArgumentError
        If `last` is before `first`.
    PkdpError
        See `run_job`: the error of the first day that fails. The days before it are published.
    """
    results: list[JobResult] = []
    failed: list[FailedDay] = []
    days = days_of(first, last)
    with JobSession(job, stopping=stopping) as session:
        for day in days:
            try:
                result = session.run(day, revise=revise)
            except PkdpError as error:
                failed.append(FailedDay(day=day, error=error))
                _tell(progress, DayDone(day=day, failed=failed[-1]))
                if keep_going and isinstance(error, InputCheckError):
                    continue
                raise
            results.append(result)
            _tell(progress, DayDone(day=day, result=result))
        total = session.total()
    return BackfillResult(
        published=tuple(result.day for result in results if not result.replayed),
        replayed=tuple(result.day for result in results if result.replayed),
        failed=tuple(failed),
        total=total,
    )


def days_of(first: date, last: date) -> tuple[date, ...]:
    """Return the days from `first` to `last`, both included.

    Raises
    ------
    ArgumentError
        If `last` is before `first`.
    """
    if last < first:
        raise ArgumentError(f"the last day, {last.isoformat()}, is before the first, {first.isoformat()}: swap them.")
    return tuple(_between(first, last))


def missed_days(job: Job, day: date) -> tuple[date, ...]:
    """Return the days between the latest day before `day` that this job has published, and `day`; neither included.

    Empty where it has published nothing before `day`: how far back to begin is not for a schedule to decide.

    Raises
    ------
    LedgerError, TemporaryError
        If the ledger cannot be used.
    """
    if "://" not in job.ledger and not Path(job.ledger).exists():
        return ()
    with Ledger.open(job.ledger, dataset=job.dataset) as ledger:
        held = {entry.key: entry.period for entry in ledger.entries() if entry.state == "published"}
        dataset = ledger.dataset
    periods = {read for text in held.values() if (read := _day(text)) is not None and read < day}
    for earlier in sorted(periods, reverse=True):
        if all(one.request.key(dataset) in held for one in requests_of(job, earlier)):
            return tuple(_between(earlier + timedelta(days=1), day - timedelta(days=1)))
    return ()


def _between(first: date, last: date) -> Iterator[date]:
    for number in range(first.toordinal(), last.toordinal() + 1):
        yield date.fromordinal(number)


def _day(text: str) -> date | None:
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None


def _tell(progress: Progress | None, done: DayDone) -> None:
    if progress is not None:
        progress(done)
