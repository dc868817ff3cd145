"""Running a job for one date: refuse, replay, or check, count, charge and publish; then write the files."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from pkdp_pipeline.errors import ConfigError, NoEvidenceError, PkdpError
from pkdp_pipeline.jobs.input_checks import check_input
from pkdp_pipeline.jobs.job import Job, ReleaseTable
from pkdp_pipeline.jobs.outputs import make_folder, write_atomically, write_release
from pkdp_pipeline.jobs.requests import check_together, requests_of
from pkdp_pipeline.jobs.sources import Source, open_source
from pkdp_pipeline.jobs.summary import summarise
from pkdp_pipeline.jobs.together import Together
from pkdp_pipeline.ledger import Ledger, find_former
from pkdp_pipeline.publish import publish
from pkdp_pipeline.release import Release

if TYPE_CHECKING:
    from pkdp_pipeline.certificate import Certificate

__all__ = ["JobRelease", "JobResult", "run_job"]


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
        where it does not add up.
    head : str
        Hash of the ledger's event that holds the last of these releases; ``pkdp ledger verify --head`` finds
        out whether a ledger still has it.
    """

    day: date
    releases: tuple[JobRelease, ...]
    together: Together | None
    summary: Path
    new_ledger: bool
    total: Certificate | None
    head: str

    @property
    def replayed(self) -> bool:
        """Whether everything was published before: no data was read and nothing was charged."""
        return all(entry.release.replayed for entry in self.releases)


def run_job(job: Job, day: date, *, revise: bool = False) -> JobResult:
    """Publish what a job asks for on one date, or show again what it has published.

    Whatever can be refused without data is refused before any is read. Each release is charged before data are
    read and stored when it is made; files are written from the stored bytes afterwards, so a run that was
    interrupted can be repeated.

    Parameters
    ----------
    job : Job
    day : datetime.date
    revise : bool, default False
        Publish the day's changed data as new releases, charged and checked as any other.

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
        If the source, the output folder or the ledger cannot be used.
    """
    named = requests_of(job, day)
    check_together(named, dataset=job.dataset, evidence=job.declared())
    with _open_ledger(job) as ledger, _DayReader(job, day) as reader:
        new_ledger = next(ledger.entries(), None) is None
        for one in named:
            if revise or not (ledger.find(one.request.key(ledger.dataset)) or find_former(ledger, one.request)):
                ledger.check(one.request.standing())
        make_folder(Path(job.output.directory))
        folder = Path(job.output.directory) / day.isoformat()
        alone, attacker = len(named) == 1, job.attacker_model()
        releases: list[JobRelease] = []
        for asked, one in zip(job.release, named, strict=True):
            try:
                release = publish(
                    reader.rows, one.request, attacker=attacker, ledger=ledger, alone=alone, revise=revise
                )
            except PkdpError as error:
                if not releases:
                    raise
                done = ", ".join(repr(published.asked.name) for published in releases)
                raise type(error)(
                    f"release {one.name!r}: {error} Only {done} was published before it; running again replays that."
                ) from error
            with _published():
                make_folder(folder)
                files = write_release(folder, one.name, release)
            releases.append(JobRelease(asked=asked, release=release, files=files))
        beside = ledger.beside(named[0].request.standing())
        head = beside[-1].hash
    total = _total(job)
    together, summary = Together.of(beside), folder / "summary.md"
    text = summarise(job, day, [(published.asked, published.release) for published in releases], together, head)
    with _published():
        write_atomically(summary, text.encode())
    return JobResult(
        day=day,
        releases=tuple(releases),
        together=together,
        summary=summary,
        new_ledger=new_ledger,
        total=total,
        head=head,
    )


@contextmanager
def _published() -> Iterator[None]:
    """Say, where only a file is missing, that the release itself is safe."""
    try:
        yield
    except ConfigError as error:
        raise ConfigError(
            f"{error} The release is published, and charged once: run again with the same date, and the files are "
            "written from the ledger."
        ) from error


def _total(job: Job) -> Certificate | None:
    """Return the total under the terms that the ledger has recorded, which a replay does not change."""
    with Ledger.open(job.ledger, dataset=job.dataset) as ledger:
        try:
            return ledger.total(job.unit)
        except NoEvidenceError:
            return None


class _DayReader:
    """The day's rows, opened and checked when they are first asked for; a replay never asks."""

    def __init__(self, job: Job, day: date) -> None:
        self._job = job
        self._day = day
        self._source: Source | None = None

    def __enter__(self) -> _DayReader:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._source is not None:
            self._source.close()

    def rows(self) -> Any:
        """Return the day's rows as a frame of the job's engine, or raise `InputCheckError`."""
        if self._source is None:
            source = open_source(self._job.engine, self._job.source.files[0])
            self._source = source
            check_input(source, self._job, self._day)
        return self._source.day(self._job.period, self._day)


def _open_ledger(job: Job) -> Ledger:
    if "://" not in job.ledger:
        make_folder(Path(job.ledger).parent)
    # What a job does not declare stays as the ledger has it.
    return Ledger.open(job.ledger, dataset=job.dataset, budget=job.budgets() or None, evidence=job.declared() or None)
