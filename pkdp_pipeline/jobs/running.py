"""Running a job for one date: refuse, replay, or check, count, charge and publish; then write the files."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from datetime import date

from pkdp_pipeline.jobs.job import Job
from pkdp_pipeline.jobs.recording import recorded_failure
from pkdp_pipeline.jobs.session import JobResult, JobSession
from pkdp_pipeline.jobs.stopping import Stopping

__all__ = ["run_job"]


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
        with recorded_failure(job, day):
            session = held.enter_context(JobSession(job, stopping=stopping))
        return replace(session.run(day, revise=revise), total=session.total())
