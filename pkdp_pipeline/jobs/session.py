"""Running a job for a day: refuse, replay, or check, count, charge and publish; then write the files.

Backfilling: the periods of a stretch of days in order, and those that a schedule has missed.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, nullcontext, suppress
from dataclasses import dataclass, replace
from datetime import date
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Self

from pkdp_pipeline.errors import ArgumentError, InputCheckError, PkdpError, TemporaryError
from pkdp_pipeline.jobs.checks import CheckedDay, check_input, check_output
from pkdp_pipeline.jobs.dry_run import (
    Charged,
    charge_day,
    check_folder,
    check_ledger,
    check_together,
    give_back,
    in_job_words,
    own,
    plan_day,
    plan_job,
)
from pkdp_pipeline.jobs.job import Job, open_source
from pkdp_pipeline.jobs.outputs import check_outputs, summarise, write_period
from pkdp_pipeline.jobs.outputs.files import is_writable, job_lock, make_folder, remove_leftovers, write_atomically
from pkdp_pipeline.jobs.sources.source import Source
from pkdp_pipeline.jobs.steps import (
    JobRelease,
    JobResult,
    PeriodStep,
    Stopping,
    check_records,
    forget_rows,
    interruptible,
    keep_rows,
    outputs_only,
    recorded,
    steps_of,
)
from pkdp_pipeline.ledger import Entry, Ledger
from pkdp_pipeline.ledger.reading import is_begun, rehearsal
from pkdp_pipeline.ledger.totals import Together
from pkdp_pipeline.model.question import Question
from pkdp_pipeline.model.wording import AFTER_READING, JOB_FILE, Speech
from pkdp_pipeline.releases.publish import Counted, Publication, failures_logged, publish

if TYPE_CHECKING:
    from pkdp_pipeline.certificates.certificate import Certificate
    from pkdp_pipeline.jobs.release_tables import ReleaseTable
    from pkdp_pipeline.releases.release import Release

_MAX_PERIODS_TOGETHER = 1000  # periods at most that are read together: to look so many up takes a second or two


class JobSession:
    """Runs a job for one period after another; use it as a context manager.

    It holds a lock on its folder, the ledger, and from the first day that needs it the source. Where there is no ledger
    yet, nothing is created before a day has passed its check and can be charged.

    Parameters
    ----------
    day : datetime.date, optional
        In the first period that it is opened for: where it cannot be opened, that is recorded of this one.
    stopping : Stopping, optional
        Decides where a signal takes effect; also an attribute.

    Attributes
    ----------
    remarks : tuple of str
        Remarks for the curator before the first day: one before all of the ledger, a ledger that holds other terms.

    Raises
    ------
    ConfigError, DifferencingError
        On entering, if the job's releases cannot stand together, or a place that it writes to cannot be used.
    LedgerError, TemporaryError
        On entering, if another run holds the lock, or the ledger or an output cannot be used.
    """

    def __init__(self, job: Job, *, day: date | None = None, stopping: Stopping | None = None) -> None:
        self.job, self._day = job, None if day is None else job.period.span(day)[0]
        self.stopping = stopping or Stopping()
        self._resources = ExitStack()
        self._ledger: Ledger
        self._new_ledger = self._tried = False
        self._steps: tuple[PeriodStep, ...] = ()
        self._source: Source | None = None
        self._announced: Sequence[date] = ()
        self._together: Sequence[date] = ()
        self.remarks: tuple[str, ...] = ()
        self._reading = secrets.token_hex(32) if len(job.release) > 1 else None

    def __enter__(self) -> Self:
        job = self.job
        try:
            with failures_logged(f"a period in data set {job.dataset!r}"), self._resources as opening:
                self._open(opening)
                self._resources = opening.pop_all()
        except BaseException as error:
            if self._day is not None:
                with suppress(PkdpError):
                    check_records(job, ())
                    with recorded(JobResult(job=job, day=self._day), tuple(self._working_steps())):
                        raise error
            raise
        return self

    def _working_steps(self) -> Iterator[PeriodStep]:
        for step in self._steps:
            with suppress(PkdpError):
                step.check(self.job)
                yield step

    def __exit__(self, *error: object) -> None:
        self._resources.close()

    def _open(self, opening: ExitStack) -> None:
        """Open and check all but the source; that, too, where there is no ledger yet."""
        job, folder = self.job, Path(self.job.output.directory)
        check_together(job)  # nothing is opened to find out
        self._steps = steps_of(job)
        check_records(job, self._steps)
        if folder.is_dir():
            opening.enter_context(job_lock(folder))
        if is_begun(job.ledger):
            self._open_ledger(opening, locked=folder.is_dir())
            return
        # Before its first run a job has nothing, and one that fails leaves nothing: the day is tried on a ledger in
        # memory. A refusal comes before the source.
        for place in (folder,) if "://" in job.ledger else (folder, Path(job.ledger).parent):
            if not is_writable(place, folder=True):
                make_folder(place)  # which says what is wrong
        self._tried, self._new_ledger = True, True
        self._ledger = opening.enter_context(self._opened_ledger(":memory:"))
        check_ledger(job, self._ledger, check_folder(job))
        check_outputs(job)
        if self._day is not None:
            with self.stopping.reading():
                refused = plan_job(job, [self._day]).refused
            if refused is None:
                job.needs().check_named(self._opened_source().columns)

    def _opened_ledger(self, place: str) -> Ledger:
        """Open a ledger under the job's terms; what the job does not declare stays as the ledger has it."""
        budgets, evidence = self.job.budgets() or None, self.job.declared() or None
        return Ledger.open(place, dataset=self.job.dataset, budget=budgets, evidence=evidence)

    def _open_ledger(self, opening: ExitStack, *, locked: bool) -> None:
        """Open the ledger and what is written to, creating what is missing; see `remarks`."""
        job, folder = self.job, Path(self.job.output.directory)
        make_folder(folder)
        if not locked:
            opening.enter_context(job_lock(folder))
        with self.stopping.reading():  # as many as there are periods
            certificates = check_folder(job)
        remove_leftovers(folder)
        if "://" not in job.ledger:
            make_folder(Path(job.ledger).parent)
        self._ledger, self._tried = opening.enter_context(self._opened_ledger(job.ledger)), False
        check_ledger(job, self._ledger, certificates)
        check_outputs(job)
        forget_rows(job)
        budgets, evidence = job.budgets(), job.declared()
        begins = next(self._ledger.entries(), None)
        self._new_ledger = begins is None
        if begins is None:
            return
        if self._day is not None and (earliest := self._earliest_after(self._day, begins)) is not None:
            # The ledger's periods are public; whether one has rows is not.
            self.remarks = (
                f"{job.period.text(self._day)} is before {earliest}, the earliest period of data set {job.dataset!r} "
                "in the ledger. A period without rows is published, and charged, as any other.",
            )
        zone = job.period.time_zone
        if zone is not None and all(entry.standing.time_zone is None for entry in self._ledger.entries()):
            self.remarks += (
                f"no release of data set {job.dataset!r} in the ledger says where its days begin, and this job's begin "
                f"in {zone!r}. Where theirs began elsewhere, a record may be in two periods, which the ledger takes "
                "for different ones: leave out the periods next to theirs, or cut days as before.",
            )
        with self._as_recorded() as ledger:
            known = ledger.terms
        terms = (("evidence", evidence, known.evidence), ("budget", budgets, known.budgets))
        self.remarks += tuple(
            f"the job declares another {key} than the ledger has recorded for data set {job.dataset!r}: the next "
            "release is charged under the job's, and so is everything before it. The old one: pkdp ledger show."
            for key, declared, before in terms
            if declared and declared != before
        )

    def _earliest_after(self, day: date, begins: Entry) -> str | None:
        """Return the ledger's earliest period where a day is before it, and is not published yet."""
        start = self.job.period.start
        if (first := start(begins.period)) is None or day >= first:
            return None
        periods = (entry.period for entry in self._ledger.entries())
        earliest, name = min((first_day, text) for text in periods if (first_day := start(text)) is not None)
        unpublished = any(publication.published() is None for publication in self._publications(day, revise=False))
        return name if day < earliest and unpublished else None

    def _as_recorded(self) -> Ledger:
        """Open the ledger under the terms that it has recorded, which a replay does not change."""
        return Ledger.open(self.job.ledger, dataset=self.job.dataset)

    def announce(self, days: Sequence[date]) -> None:
        """Say which periods, by their first days, `run` is going to be asked for, in their order.

        Those to be read, one after another, are read together where the source can; each becomes what it would alone.
        """
        self._announced = tuple(days)

    def run(self, day: date, *, revise: bool = False, report: bool = True) -> JobResult:
        """Publish what the job asks for about a day's period, or show again what it has published; see `run_job`.

        Without `report` the period gets no report of its own: see `write_report`.
        """
        self.stopping.check()
        result = JobResult(job=self.job, day=self.job.period.span(day)[0], new_ledger=self._new_ledger)
        with recorded(result, self._steps):
            period = _Period(result=result, revise=revise, publications=self._publications(result.day, revise=revise))
            with failures_logged(f"{self.job.period.text(result.day)} in data set {self.job.dataset!r}"):
                self._plan(period)
                if period.to_read:
                    period.checked, period.speech = self._check(period, period.to_read), AFTER_READING
                if self._tried:
                    self._begin(period)
            self._publish(period)
            self._new_ledger = False
            self._write(period, alone=report)
        return result

    def _publications(self, day: date, *, revise: bool) -> tuple[Publication, ...]:
        """Return what is asked about a day; what follows from another one of the day is derived, not revised."""
        listed: list[Publication] = []
        for publication in self.job.publications(day, self._reading):
            follows = publication.question.follows_from_any(other.question for other in listed)
            listed.append(replace(publication, ledger=self._ledger, revise=revise and not follows))
        return tuple(listed)

    def total(self) -> Certificate | None:
        """Return what everything the ledger holds about the job's unit adds up to; None where it does not.

        It is under the terms that the ledger has recorded.
        """
        if self._tried:
            return self._ledger.known_total(self.job.unit)
        with self._as_recorded() as ledger:
            return ledger.known_total(self.job.unit)

    def write_report(self) -> Path | None:
        """Write the report of all that the job has published, where ``[output] report`` asks for it; return where.

        Other plugins take their last step, too. None where no report is asked for, or nothing is published. Raises
        `PkdpError` if it cannot be made or written; what is published stays published.
        """
        with outputs_only():
            reports = [step.all_published(self.job) for step in self._steps]
        return next(filter(None, reports), None)

    def _plan(self, period: _Period) -> None:
        """Refuse what may not be published, all of the period together; find out which questions need data."""
        publications, day = period.publications, period.result.day
        with self.stopping.reading():  # what is charged here is taken back
            if all(publication.published() is not None for publication in publications):
                period.to_read = ()
                return
            with rehearsal(self._ledger) as trial:
                planned = plan_day(
                    self.job, trial, day, revise=period.revise, publications=publications, speech=period.speech
                )
        if planned.refused is not None:
            raise planned.refused
        period.to_read = tuple(
            publication.question
            for publication, planned_release in zip(publications, planned.releases, strict=True)
            if planned_release.outcome == "publish"
        )

    def _check(self, period: _Period, questions: Sequence[Question]) -> CheckedDay:
        """Check the period, count what is asked of it, and keep a copy of its rows where the job says so."""
        result, source = period.result, self._opened_source()
        if result.day not in self._together:
            with self.stopping.reading():
                self._together = self._in_a_row(result.day, revise=period.revise)
            source.together(self.job.period, self._together)
        result.checks = verdicts = list[tuple[str, bool]]()

        def look() -> CheckedDay:
            checked = check_input(source, self.job, result.day, questions, verdicts=verdicts)
            self._reading = self._reading if source.is_one_state() else None
            if not self._tried:
                keep_rows(self.job, source, result.day)
            return checked

        # The source is open: DuckDB ends the process when it is interrupted while it is imported.
        with self.stopping.reading():
            return interruptible(look, source.interrupt)

    def _in_a_row(self, day: date, *, revise: bool) -> tuple[date, ...]:
        """Return the announced periods from this one to the last before one that was published, and not too many."""
        place = self._announced.index(day) if day in self._announced else len(self._announced)
        following = self._announced[place + 1 : place + _MAX_PERIODS_TOGETHER]

        def is_read(other: date) -> bool:
            return any(publication.published() is None for publication in self._publications(other, revise=revise))

        return day, *takewhile(is_read, following)

    def _opened_source(self) -> Source:
        if self._source is None:
            self._source = open_source(self.job)
            self._resources.callback(self._source.close)
        return self._source

    def _begin(self, period: _Period) -> None:
        """Open the ledger of a job whose first period has passed its check, and hold the period to what is in it."""
        self._open_ledger(self._resources, locked=Path(self.job.output.directory).is_dir())
        keep_rows(self.job, self._opened_source(), period.result.day)
        # Of the questions that were counted.
        period.publications = tuple(replace(publication, ledger=self._ledger) for publication in period.publications)
        self._plan(period)

    def _publish(self, period: _Period) -> None:
        """Charge a period's releases together, and publish one after another; what is not published is given back."""
        result, publications = period.result, [replace(each, reading=self._reading) for each in period.publications]
        self.stopping.check()  # the last time: what is charged is published
        charged: Charged = charge_day(self.job, self._ledger, publications, period.speech) if period.to_read else []
        try:
            for table, publication in zip(self.job.release, publications, strict=True):
                with in_job_words(table.name, period.speech):
                    release = self._published(period, table, publication, charged)
                result.releases += (JobRelease(declared=table, release=release),)
        except BaseException as error:
            give_back(self._ledger, charged)
            if not result.releases or not isinstance(error, PkdpError):
                raise
            with suppress(PkdpError):
                write_period(result)
            others = ", ".join(repr(release.declared.name) for release in result.releases)
            remark = f"Only {others} was published before release {table.name!r}; running again replays that."
            raise type(error)(f"{error} {remark}") from error

    def _published(self, period: _Period, table: ReleaseTable, publication: Publication, charged: Charged) -> Release:
        question = publication.question

        def counted() -> Counted:
            checked = period.checked
            if checked is None or question.label not in checked.counted:  # another run took its reservation back
                checked = self._check(period, [question])
                if publication.reading != self._reading:  # which is in the certificate already
                    raise TemporaryError("the source was written while it was read; run again.")
            return checked.counted[str(question.label)]

        def check(release: Release) -> None:
            check_output(release, table, rows=None if period.checked is None else period.checked.rows)

        release = publish(counted, publication, check=check, reserved=charged.pop(0) if charged else None)
        if release.replayed:  # it is another run's, or was there before
            check_output(release, table)
        return release

    def _write(self, period: _Period, *, alone: bool) -> None:
        result, beside = period.result, self._ledger.beside(period.publications[0].question.facts())
        certificates = [published.release.certificate for published in result.releases]
        result.together = Together.of(beside, certificates)
        with outputs_only():
            own(self.job)
            write_period(result)
            write_atomically(result.summary, summarise(result, beside).encode())
            result.head = beside[-1].hash
            for step in self._steps:
                step.published(result, alone=alone)


@dataclass(slots=True, kw_only=True)
class _Period:
    """One period on its way: planned, checked and counted, published, written; `result` is filled on the way.

    `to_read`: the questions that need data. `checked`: None where none does. `speech`: that of refusals.
    """

    result: JobResult
    revise: bool
    publications: tuple[Publication, ...]
    to_read: tuple[Question, ...] = ()
    checked: CheckedDay | None = None
    speech: Speech = JOB_FILE


def run_job(job: Job, day: date, *, revise: bool = False, stopping: Stopping | None = None) -> JobResult:
    """Publish what a job asks for about the period of a day, or show again what it has published.

    Refusals that need no data come before any is read. The day is checked and counted before anything is charged; its
    releases are charged together before they are made; files are written from the stored bytes, so an interrupted run
    can be repeated. `revise`: publish the day's changed data as new releases. `stopping`: as of `JobSession`.

    Raises `ArgumentError` if the period is not over, or closed. After a `BudgetExceededError`, `DifferencingError`,
    `NoEvidenceError` or `NotCertifiableError` nothing was charged, and nothing read unless another run was charged
    meanwhile; after an `InputCheckError` nothing was charged. Where the source, the output folder or the ledger cannot
    be used it is a `ConfigError`, a `LedgerError` or a `TemporaryError`, the last also where another run publishes into
    the same folder.
    """
    with JobSession(job, day=day, stopping=stopping) as session:
        result = session.run(day, revise=revise)
        result.total = session.total()
    return result


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
