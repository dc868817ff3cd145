"""Running a job for one date: refuse, replay, or check, count, charge and publish; then write the files."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from pkdp_pipeline.errors import PkdpError
from pkdp_pipeline.jobs.input_checks import check_input
from pkdp_pipeline.jobs.job import Job, ReleaseTable
from pkdp_pipeline.jobs.outputs import make_folder, write_atomically, write_release
from pkdp_pipeline.jobs.requests import check_together, requests_of
from pkdp_pipeline.jobs.source import ParquetSource
from pkdp_pipeline.jobs.summary import summarise
from pkdp_pipeline.jobs.together import Together
from pkdp_pipeline.ledger import Ledger
from pkdp_pipeline.publish import publish
from pkdp_pipeline.release import Release

if TYPE_CHECKING:
    import duckdb

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
        Whether this run started the ledger. Where one was expected, its path is wrong.
    """

    day: date
    releases: tuple[JobRelease, ...]
    together: Together | None
    summary: Path
    new_ledger: bool

    @property
    def replayed(self) -> bool:
        """Whether everything was published before: no data was read and nothing was charged."""
        return all(entry.release.replayed for entry in self.releases)


def run_job(job: Job, day: date) -> JobResult:
    """Publish what a job asks for on one date, or show again what it has published.

    Whatever can be refused without data is refused before any is read. Each release is charged and stored in
    one transaction; files are written from the stored bytes afterwards, so a run that was interrupted can
    be repeated.

    Parameters
    ----------
    job : Job
    day : datetime.date

    Returns
    -------
    JobResult

    Raises
    ------
    DifferencingError, NotCertifiableError
        If a release may not be published; nothing was read.
    InputCheckError
        If the day does not look as declared; nothing was charged.
    ConfigError, LedgerError, TemporaryError
        If the source, the output folder or the ledger cannot be used.
    """
    named = requests_of(job, day)
    check_together(named, dataset=job.dataset)
    new_ledger = not Path(job.ledger).exists()
    with _open_ledger(job) as ledger, _DayReader(job, day) as reader:
        for one in named:
            if ledger.find(one.request.key(job.dataset)) is None:
                ledger.check(one.request.standing())
        make_folder(Path(job.output.directory))
        folder = Path(job.output.directory) / day.isoformat()
        alone, attacker = len(named) == 1, job.attacker_model()
        releases: list[JobRelease] = []
        for asked, one in zip(job.release, named, strict=True):
            try:
                release = publish(reader.rows, one.request, attacker=attacker, ledger=ledger, alone=alone)
            except PkdpError as error:
                if not releases:
                    raise
                done = ", ".join(repr(published.asked.name) for published in releases)
                raise type(error)(
                    f"release {one.name!r}: {error} Only {done} was published before it; running again replays that."
                ) from error
            make_folder(folder)
            files = write_release(folder, one.name, release)
            releases.append(JobRelease(asked=asked, release=release, files=files))
        together = Together.of(ledger.beside(named[0].request.standing()))
    summary = folder / "summary.md"
    text = summarise(job, day, [(published.asked, published.release) for published in releases], together)
    write_atomically(summary, text.encode())
    return JobResult(day=day, releases=tuple(releases), together=together, summary=summary, new_ledger=new_ledger)


class _DayReader:
    """The day's rows, opened and checked when they are first asked for; a replay never asks."""

    def __init__(self, job: Job, day: date) -> None:
        self._job = job
        self._day = day
        self._source: ParquetSource | None = None

    def __enter__(self) -> _DayReader:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._source is not None:
            self._source.close()

    def rows(self) -> duckdb.DuckDBPyRelation:
        """Return the day's rows, or raise `InputCheckError`."""
        if self._source is None:
            source = ParquetSource(self._job.source)
            self._source = source
            check_input(source, self._job, self._day)
        return self._source.day(self._job.period, self._day)


def _open_ledger(job: Job) -> Ledger:
    if "://" not in job.ledger:
        make_folder(Path(job.ledger).parent)
    return Ledger.open(job.ledger, dataset=job.dataset)
