"""Backfilling: the periods of a stretch of days in order, and those that a schedule has missed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

from pkdp_pipeline.errors import ArgumentError, InputCheckError, PkdpError, TemporaryError
from pkdp_pipeline.jobs.job import Job
from pkdp_pipeline.jobs.session import JobSession
from pkdp_pipeline.jobs.steps import JobResult
from pkdp_pipeline.jobs.stopping import Stopping
from pkdp_pipeline.ledger import Ledger
from pkdp_pipeline.ledger.reading import is_begun

if TYPE_CHECKING:
    from pkdp_pipeline.certificates.certificate import Certificate

_MAX_YEARS = 100  # at most, from the first day to the last: a year of two digits is a slip


@dataclass(slots=True, kw_only=True)
class BackfillResult:
    """The result of a backfill; it is filled while it goes on.

    Parameters
    ----------
    published : tuple of datetime.date
        First days of the periods about which something was published now.
    replayed : tuple of datetime.date
        Those that were published before; no data was read and nothing was charged.
    failed : tuple of JobResult
        Those whose input check failed, with `keep_going`; else the one that stopped it.
    total : Certificate or None
        The total of everything that the ledger holds about the job's unit; None where it does not add up.
    report : pathlib.Path or None
        The report of everything the job has published, where ``[output] report`` asks for it.
    stopped : PkdpError or None
        The error of the one that stopped it.
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
    """Publish the periods from one day to another in order; those that were published before are replayed.

    A backfill that was stopped or killed goes on where it was when it is started again. The periods get no reports of
    their own: where the job asks for one, it is written at the end, about everything, also after one that fails. Raises
    `ArgumentError` before anything is opened as `days_of` does, and the error of the first period that fails (see
    `run_job`): those before it are published.

    Parameters
    ----------
    first, last : datetime.date
        Both included: every period that one of these days lies in.
    revise : bool, default False
        Publish every period's data anew, see `run_job`.
    keep_going : bool, default False
        After a period whose input check fails, go on with the next one.
    progress : callable, optional
        Called after each period with its `JobResult`; that of one that failed has the error.
    stopping : Stopping, optional
        Decides where a signal takes effect.
    """
    days = days_of(job, first, last)
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
    session.announce(days)
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


def days_of(job: Job, first: date, last: date, *, ahead: bool = False) -> tuple[date, ...]:
    """Return the first days of the job's periods from that of `first` to that of `last`; closed ones are left out.

    Raises `ArgumentError` if `last` is before `first`, all are closed, they are of more than a hundred years, or the
    last is not over. With `ahead` it need not be.
    """
    begin, end = map(job.period.text, (first, last))
    if last < first:
        raise ArgumentError(f"the last period, {end}, is before the first, {begin}: swap them.")
    if not ahead and not job.period.is_closed(last):
        job.period.check_open(last)
    if last.year - first.year > _MAX_YEARS:
        raise ArgumentError(
            f"{begin} to {end} are more than {_MAX_YEARS} years, every {job.period.every} of which would be published "
            "and charged: correct the dates, or ask for one part after another."
        )
    days = tuple(job.period.periods(first, last))
    if not days:
        raise ArgumentError("all of these dates are closed, and nothing is published of them: see closed under period.")
    if not ahead:
        job.period.check_open(days[-1])
    return days


def run_missed(session: JobSession, missed: Sequence[date], day: date) -> Iterator[JobResult]:
    """Publish the periods that were missed, and then that of `day`; yield what becomes of each.

    Raises
    ------
    InputCheckError
        If the input check of a missed one fails; the message says how to go on without it.
    PkdpError
        See `run_job`.
    """
    session.announce([*missed, session.job.period.span(day)[0]])
    for earlier in missed:
        try:
            result = session.run(earlier)
        except InputCheckError as error:
            before, then = map(session.job.period.text, (earlier, day))
            raise InputCheckError(
                f"{error} It is {before}, which was missed; {then} comes after it and was not begun. To go on without "
                "what was missed, leave catch-up out once."
            ) from None
        yield result
    yield session.run(day)


def missed_days(job: Job, day: date) -> tuple[date, ...]:
    """Return the periods, by their first days, between the latest before `day` that this job has published and `day`.

    Empty where it has published nothing before `day`: how far back to begin is not for a schedule to decide; and where
    that of `day` is not over, which is refused. Raises `LedgerError` or `TemporaryError` if the ledger cannot be used.
    """
    if not job.period.is_over(day) or not is_begun(job.ledger):
        return ()
    with Ledger.open(job.ledger, dataset=job.dataset) as ledger:
        published = {entry.key: entry.period for entry in ledger.entries() if entry.state == "published"}
        dataset = ledger.dataset
    begin = job.period.span(day)[0]
    starts = {start for start in map(job.period.start, published.values()) if start is not None and start < begin}
    for earlier in sorted(starts, reverse=True):
        if all(publication.question.key(dataset) in published for publication in job.publications(earlier)):
            return tuple(start for start in job.period.periods(earlier, begin) if earlier < start < begin)
    return ()
