"""Backfilling: the days of a period in order, and the days that a schedule has missed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

from pkdp_pipeline.errors import ArgumentError, InputCheckError, PkdpError, TemporaryError
from pkdp_pipeline.jobs.job import Job
from pkdp_pipeline.jobs.records import JobResult
from pkdp_pipeline.jobs.session import JobSession
from pkdp_pipeline.jobs.stopping import Stopping
from pkdp_pipeline.ledger import Ledger

if TYPE_CHECKING:
    from pkdp_pipeline.certificates.certificate import Certificate


@dataclass(slots=True, kw_only=True)
class BackfillResult:
    """What a backfill has done; it is filled while it goes on.

    Parameters
    ----------
    published : tuple of datetime.date
        Days on which something was published now.
    replayed : tuple of datetime.date
        Days that were published before; no data was read and nothing was charged.
    failed : tuple of JobResult
        Days whose input check failed, with `keep_going`; else the one that stopped it.
    total : Certificate or None
        What everything that the ledger holds about the job's unit adds up to; None where it does not add up.
    report : pathlib.Path or None
        The report of everything the job has published, where ``[output] report`` asks for it.
    stopped : PkdpError or None
        The error of the day that stopped it.
    unreported : PkdpError or None
        Why there is no report.
    """

    published: tuple[date, ...] = ()
    replayed: tuple[date, ...] = ()
    failed: tuple[JobResult, ...] = ()
    total: Certificate | None = None
    report: Path | None = None
    stopped: PkdpError | None = None
    unreported: PkdpError | None = None


def backfill(
    job: Job,
    first: date,
    last: date,
    *,
    revise: bool = False,
    keep_going: bool = False,
    progress: Callable[[JobResult], None] | None = None,
    stopping: Stopping | None = None,
) -> BackfillResult:
    """Publish the days of a period in order; days that were published before are replayed.

    A backfill that was stopped or killed goes on where it was when it is started again. The days get no reports of
    their own: where the job asks for one, it is written at the end, about everything, also after a day that fails.

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
        Called after each day with its `JobResult`; that of a day that failed has the error.
    stopping : Stopping, optional
        Decides where a signal takes effect.

    Raises
    ------
    ArgumentError
        If `last` is before `first`.
    PkdpError
        See `run_job`: the error of the first day that fails. The days before it are published.
    """
    days = days_of(first, last)
    with JobSession(job, day=first, stopping=stopping) as session:
        result = backfill_days(session, days, revise=revise, keep_going=keep_going, progress=progress)
    error = result.stopped or result.unreported
    if error is not None:
        raise error
    return result


def backfill_days(
    session: JobSession,
    days: Sequence[date],
    *,
    revise: bool = False,
    keep_going: bool = False,
    progress: Callable[[JobResult], None] | None = None,
) -> BackfillResult:
    """Do what `backfill` does in a session that is open; the result has the errors, and none is raised."""
    result = BackfillResult()
    for day in days:
        try:
            done = session.run(day, revise=revise, report=False)
            if done.replayed:
                result.replayed += (day,)
            else:
                result.published += (day,)
        except PkdpError as error:
            done = JobResult(job=session.job, day=day, error=error)
            result.failed += (done,)
            result.stopped = None if keep_going and isinstance(error, InputCheckError) else error
        if progress is not None:
            progress(done)
        if result.stopped is not None:
            break
    if isinstance(result.stopped, TemporaryError):
        session.stopping.check()  # a signal came during the wait
    # What stopped it, such as a locked ledger, may stop this as well.
    with nullcontext() if result.stopped is None else suppress(PkdpError):
        result.total = session.total()
    try:
        result.report = session.write_report()
    except PkdpError as error:
        result.unreported = error
    return result


def days_of(first: date, last: date) -> tuple[date, ...]:
    """Return the days from `first` to `last`, both included.

    Raises
    ------
    ArgumentError
        If `last` is before `first`.
    """
    if last < first:
        raise ArgumentError(f"the last day, {last.isoformat()}, is before the first, {first.isoformat()}: swap them.")
    return tuple(map(date.fromordinal, range(first.toordinal(), last.toordinal() + 1)))


def run_missed(session: JobSession, missed: Sequence[date], day: date) -> Iterator[JobResult]:
    """Publish the days that were missed, and then `day`; yield what becomes of each.

    Raises
    ------
    InputCheckError
        If the input check of a missed day fails; the message says how to go on without it.
    PkdpError
        See `run_job`.
    """
    for earlier in missed:
        try:
            result = session.run(earlier)
        except InputCheckError as error:
            raise InputCheckError(
                f"{error} It is {earlier.isoformat()}, a day that was missed; {day.isoformat()} comes after it and was "
                "not begun. To go on without the missed days, leave catch-up out once."
            ) from None
        yield result
    yield session.run(day)


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
    periods = set()
    for text in held.values():
        with suppress(ValueError):  # a month, or a label
            periods.add(date.fromisoformat(text))
    for earlier in sorted((one for one in periods if one < day), reverse=True):
        if all(one.question.key(dataset) in held for one in job.publications(earlier)):
            return days_of(earlier, day)[1:-1]
    return ()
