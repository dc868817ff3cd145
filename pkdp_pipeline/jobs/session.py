"""Running a job for a day: refuse, replay, or check, count, charge and publish; then write the files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import date
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from pkdp_pipeline.errors import PkdpError
from pkdp_pipeline.jobs.checks import CheckedDay, check_input, check_output
from pkdp_pipeline.jobs.dry_run import plan_day
from pkdp_pipeline.jobs.job import Job
from pkdp_pipeline.jobs.outputs import check_outputs, make_folder, remove_leftovers, write_atomically, write_outputs
from pkdp_pipeline.jobs.outputs.files import job_lock
from pkdp_pipeline.jobs.records import RunRecord, check_records, check_retention, forget_rows, keep_rows, recorded
from pkdp_pipeline.jobs.reporting import NothingPublishedError, Together, check_report, summarise, write_report
from pkdp_pipeline.jobs.requests import NamedRequest, check_together, in_job_words, is_published, requests_of
from pkdp_pipeline.jobs.sources import Source, open_source
from pkdp_pipeline.jobs.stopping import Stopping, interruptible
from pkdp_pipeline.jobs.tables import ReleaseTable
from pkdp_pipeline.jobs.written import check_folder, check_ledger, own
from pkdp_pipeline.ledger import Ledger
from pkdp_pipeline.ledger.copying import rehearsal
from pkdp_pipeline.releases.publish import Counted, publish
from pkdp_pipeline.releases.release import Release

if TYPE_CHECKING:
    from pkdp_pipeline.certificates.certificate import Certificate


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRelease:
    """One release of a job and the files it was written to."""

    asked: ReleaseTable
    release: Release
    files: tuple[Path, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class JobResult:
    """What one date has published.

    Parameters
    ----------
    day : datetime.date
    releases : tuple of JobRelease
    together : Together or None
        What everything adds up to that the ledger holds about these people on this date, when that is more
        than one release.
    summary : pathlib.Path
    new_ledger : bool
        Whether the ledger held nothing about this data set before. Where something was expected, its path or
        the data set's name is wrong.
    total : Certificate or None
        What everything that the ledger holds about the job's unit adds up to, under the declared evidence; None
        where it does not add up, and for a day of a longer session, whose `JobSession.total` tells it.
    head : str
        Hash of the ledger's event that holds the last of these releases; ``pkdp ledger verify --head`` finds
        out whether a ledger still has it.
    report : pathlib.Path or None
        The date's report, where ``[output] report`` asks for it.
    """

    day: date
    releases: tuple[JobRelease, ...]
    together: Together | None
    summary: Path
    new_ledger: bool
    total: Certificate | None
    head: str
    report: Path | None = None

    @property
    def replayed(self) -> bool:
        """Whether everything was published before: no data was read and nothing was charged."""
        return all(entry.release.replayed for entry in self.releases)


class JobSession:
    """Runs a job for one day after another; use it as a context manager.

    It holds a lock, so that nothing else publishes into the same folder meanwhile, the ledger, and from the first
    day that needs it the source.

    Parameters
    ----------
    job : Job
    stopping : Stopping, optional
        Decides where a signal takes effect; also an attribute.

    Attributes
    ----------
    remarks : tuple of str
        What the curator should know before the first day: a ledger that holds other terms.

    Raises
    ------
    ConfigError, DifferencingError
        On entering, if the job's releases cannot stand together; nothing was opened.
    LedgerError, TemporaryError
        On entering, if another run holds the lock, or the ledger cannot be used.
    """

    def __init__(self, job: Job, *, stopping: Stopping | None = None) -> None:
        self._job = job
        self.stopping = stopping or Stopping()
        self._held = ExitStack()
        self._ledger: Ledger
        self._source: Source | None = None
        self._checked = self._known = False
        self.remarks: tuple[str, ...] = ()

    def __enter__(self) -> Self:
        job = self._job
        check_together(job)  # nothing is opened to find out
        with self._held as opening:
            folder = Path(job.output.directory)
            make_folder(folder)
            opening.enter_context(job_lock(folder))
            certificates = check_folder(job)
            remove_leftovers(folder)
            self._ledger = opening.enter_context(_open_ledger(job))
            check_ledger(job, self._ledger, certificates)
            self.remarks = _remarks(job)
            self._held = opening.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._held.close()

    def run(self, day: date, *, revise: bool = False, report: bool = True) -> JobResult:
        """Publish what the job asks for on one date, or show again what it has published; see `run_job`.

        Without `report` the date gets no report of its own, whatever the job says: see `write_report`.
        """
        job = self._job
        self.stopping.check()
        if not self._checked:
            check_records(job)
        with recorded(job, day) as record:
            if not self._checked:
                check_outputs(job)
                check_report(job)
                check_retention(job)
                forget_rows(job)
                self._checked = True
            named = requests_of(job, day)
            new_ledger = not self._known and next(self._ledger.entries(), None) is None
            to_read = self._refuse(named, day, revise=revise)
            self._publish(named, to_read, record, revise=revise)
            self._known = True
            result = self._write(day, named, record.published, new_ledger=new_ledger)
            record.files = [*(file for one in result.releases for file in one.files), result.summary]
            if report and job.output.report:
                with _published():
                    result = replace(result, report=write_report(job, day))
                record.files = [*record.files, *filter(None, (result.report,))]
            record.head = result.head
        return result

    def total(self) -> Certificate | None:
        """Return what everything the ledger holds about the job's unit adds up to; None where it does not.

        It is under the terms that the ledger has recorded, which a replay does not change.
        """
        with Ledger.open(self._job.ledger, dataset=self._job.dataset) as ledger:
            return ledger.known_total(self._job.unit)

    def write_report(self) -> Path | None:
        """Write the report of all that the job has published, where ``[output] report`` asks for it; return where.

        None where it is not asked for, or nothing is published.

        Raises
        ------
        PkdpError
            If it cannot be made or written; what is published stays published.
        """
        if not self._job.output.report:
            return None
        try:
            with _published():
                return write_report(self._job, None)
        except NothingPublishedError:
            return None

    def _refuse(self, named: Sequence[NamedRequest], day: date, *, revise: bool) -> list[NamedRequest]:
        """Refuse what may not be published, all of the day together; return the releases that need data."""
        if not revise and all(is_published(self._ledger, one) for one in named):
            return []
        with rehearsal(self._ledger) as trial:
            planned = plan_day(self._job, trial, day, revise=revise)
        if planned.refused is not None:
            raise planned.refused
        return [one for one, made in zip(named, planned.releases, strict=True) if made.outcome == "publish"]

    def _publish(
        self, named: Sequence[NamedRequest], to_read: Sequence[NamedRequest], record: RunRecord, *, revise: bool
    ) -> None:
        """Check the day where data are needed, and publish release after release; `record` is filled on the way."""
        day, published, checked = record.day, record.published, None
        if to_read:
            checked = self._check(to_read, record)

        def counted(one: NamedRequest) -> Counted:
            held = checked
            if held is None or one.name not in held.counted:
                held = self._check([one], record)  # another run took its reservation back meanwhile
            return held.counted[one.name]

        for asked, one in zip(self._job.release, named, strict=True):
            self.stopping.check()
            try:
                with in_job_words(one.name):
                    release = publish(
                        partial(counted, one),
                        one.request,
                        ledger=self._ledger,
                        revise=revise,
                        check=partial(check_output, asked=asked, rows=None if checked is None else checked.rows),
                        **one.terms,
                    )
            except PkdpError as error:
                if not published:
                    raise
                with suppress(PkdpError):
                    write_outputs(self._job, day, published)
                others = ", ".join(repr(made.name) for made, _ in published)
                about = str(error).removeprefix(f"release {one.name!r}: ")
                raise type(error)(
                    f"release {one.name!r}: {about} Only {others} was published before it; running again replays that."
                ) from error
            check_output(release, asked)
            published.append((asked, release))

    def _write(
        self,
        day: date,
        named: Sequence[NamedRequest],
        releases: Sequence[tuple[ReleaseTable, Release]],
        *,
        new_ledger: bool,
    ) -> JobResult:
        beside = self._ledger.beside(named[0].request.facts())
        head, together = beside[-1].hash, Together.of(beside)
        summary = Path(self._job.output.directory) / day.isoformat() / "summary.md"
        with _published():
            own(self._job)
            files = write_outputs(self._job, day, releases)
            write_atomically(summary, summarise(self._job, day, releases, together, head).encode())
        return JobResult(
            day=day,
            releases=tuple(JobRelease(asked=one, release=made, files=files[one.name]) for one, made in releases),
            together=together,
            summary=summary,
            new_ledger=new_ledger,
            total=None,
            head=head,
        )

    def _check(self, named: Sequence[NamedRequest], record: RunRecord) -> CheckedDay:
        """Check the day, count what the releases ask for, and keep a copy of the rows where the job says so."""
        if self._source is None:
            self._source = open_source(self._job)
            self._held.callback(self._source.close)
        source, verdicts = self._source, list[tuple[str, bool]]()
        record.checks = verdicts

        def look() -> CheckedDay:
            checked = check_input(source, self._job, record.day, named, verdicts=verdicts)
            keep_rows(self._job, source, record.day)
            return checked

        # The source is open: DuckDB ends the process when it is interrupted while it is imported.
        with self.stopping.reading():
            return interruptible(look, source.interrupt)


def run_job(job: Job, day: date, *, revise: bool = False, stopping: Stopping | None = None) -> JobResult:
    """Publish what a job asks for on one date, or show again what it has published.

    Whatever can be refused without data is refused before any is read. The day is checked and counted before
    anything is charged; each release is charged before it is made, and stored then; files are written from the
    stored bytes afterwards, so a run that was interrupted can be repeated.

    Parameters
    ----------
    job : Job
    day : datetime.date
    revise : bool, default False
        Publish the day's changed data as new releases, charged and checked as any other.
    stopping : Stopping, optional
        Decides where a signal takes effect.

    Returns
    -------
    JobResult

    Raises
    ------
    BudgetExceededError, DifferencingError, NoEvidenceError, NotCertifiableError
        If a release may not be published; nothing was read.
    InputCheckError
        If the day does not look as declared; nothing was charged.
    ConfigError, LedgerError, TemporaryError
        If the source, the output folder or the ledger cannot be used; a `TemporaryError` also where another run
        publishes into the same folder.
    """
    with ExitStack() as held:
        with recorded(job, day, success=False):
            session = held.enter_context(JobSession(job, stopping=stopping))
        return replace(session.run(day, revise=revise), total=session.total())


@contextmanager
def _published() -> Iterator[None]:
    """Say, where only outputs are missing, that the releases themselves are safe."""
    try:
        yield
    except PkdpError as error:
        raise type(error)(
            f"{error} What was asked for is published, and charged once: run again with the same date, and the "
            "outputs are written from the ledger."
        ) from error


def _open_ledger(job: Job) -> Ledger:
    if "://" not in job.ledger:
        make_folder(Path(job.ledger).parent)
    # What a job does not declare stays as the ledger has it.
    return Ledger.open(job.ledger, dataset=job.dataset, budget=job.budgets() or None, evidence=job.declared() or None)


def _remarks(job: Job) -> tuple[str, ...]:
    """Say where the ledger has charged what it holds under other terms than the job's."""
    with Ledger.open(job.ledger, dataset=job.dataset) as ledger:
        empty, known = next(ledger.entries(), None) is None, ledger.terms
    terms = (("evidence", job.declared(), known.evidence), ("budget", job.budgets(), known.budgets))
    return tuple(
        f"the job declares another {key} than the ledger has recorded for data set {job.dataset!r}: the next release "
        "is charged under the job's, and so is everything before it. What it was: pkdp ledger show."
        for key, declared, before in terms
        if declared and not empty and declared != before
    )
