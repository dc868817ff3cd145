"""What a job asks for on one date: requests, which are checked and compared without data."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from typing import Any

from pkdp_pipeline.errors import (
    ArgumentError,
    ConfigError,
    DifferencingError,
    NoEvidenceError,
    NotCertifiableError,
    PkdpError,
)
from pkdp_pipeline.jobs.job import Job
from pkdp_pipeline.jobs.tables import ReleaseTable
from pkdp_pipeline.ledger import Ledger, check_differencing
from pkdp_pipeline.model.attacker import AttackerModel
from pkdp_pipeline.model.question import Question
from pkdp_pipeline.model.wording import JOB_FILE, worded_for


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedRequest:
    """One of a job's releases on one date."""

    name: str
    request: Question
    attacker: AttackerModel
    job: Job

    @property
    def terms(self) -> dict[str, Any]:
        """What `publish` and `reserve` take beside the question."""
        return {"attacker": self.attacker, "alone": self.job.alone, "target": self.job.asked_target()}


def requests_of(job: Job, day: date) -> tuple[NamedRequest, ...]:
    """Return what the job asks for on this date, in the file's order.

    Raises
    ------
    ArgumentError
        If a release cannot be asked for like this; the message starts with the release's name.
    """
    return tuple(
        NamedRequest(name=release.name, request=_request(job, release, day), attacker=job.attacker_of(release), job=job)
        for release in job.release
    )


def check_together(job: Job) -> None:
    """Refuse releases that cannot be published side by side, before anything is opened or read.

    Raises
    ------
    ConfigError
        If two of them ask for the same thing under two names.
    DifferencingError
        If they are about the same people and period and one of them is noiseless.
    """
    dataset, evidence = job.dataset, job.declared()
    # Any day: what may stand together does not depend on it.
    named = requests_of(job, date(2000, 1, 1))
    for position, one in enumerate(named):
        earlier = named[:position]
        for other in earlier:
            if one.request.key(dataset) == other.request.key(dataset):
                raise ConfigError(f"releases {other.name!r} and {one.name!r} ask for the same; remove one of them.")
        others = [(other.request.facts(), other.attacker) for other in earlier]
        refusal = None
        try:
            check_differencing(one.request.facts(), others, dataset=dataset, evidence=evidence, attacker=one.attacker)
        except DifferencingError as error:
            # All releases of a job are of the same day, so to name it says nothing.
            refusal = worded_for(error, JOB_FILE).replace(f", period {one.request.period}", "")
        if refusal is not None:
            raise DifferencingError(refusal)


def is_published(ledger: Ledger, one: NamedRequest) -> bool:
    """Return whether the ledger holds this release of this date."""
    return ledger.find(one.request.key(ledger.dataset)) is not None


@contextmanager
def in_job_words(release: str) -> Iterator[None]:
    """Let an error from inside name the release, and say what to write in the job file."""
    told = None
    try:
        yield
    except PkdpError as error:
        message = worded_for(error, JOB_FILE)
        if isinstance(error, NoEvidenceError | NotCertifiableError):
            message = f"release {release!r}: {message}"
        if message == str(error):
            raise
        told = type(error)(message)
    if told is not None:
        raise told


def _request(job: Job, release: ReleaseTable, day: date) -> Question:
    histogram = release.by is not None
    try:
        return Question(
            mechanism=release.mechanism,
            protects=release.protects,
            unit=job.unit,
            by=release.by,
            domain=release.domain,
            where=release.where,
            missing_unit=job.missing_unit,
            units=job.units,
            one_cell=(release.one_cell or job.one_cell) if histogram else "error",
            order_by=(release.order_by or job.order_by) if histogram else None,
            undeclared=release.undeclared,
            period=day.isoformat(),
            label=release.name,
            time_zone=job.period.time_zone,
            checks=job.checks.look_at_rows,
        )
    except ArgumentError as error:
        raise ArgumentError(f"release {release.name!r}: {error}") from error
