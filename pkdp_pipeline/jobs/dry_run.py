"""A dry run: what a job would publish, charge and replay, and where it would be refused; nothing is touched."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import date
from typing import TYPE_CHECKING, Any, Literal

from pkdp_pipeline.certificates.composed import compose
from pkdp_pipeline.errors import ConfigError, DifferencingError, NoEvidenceError, NotCertifiableError, PkdpError
from pkdp_pipeline.jobs.job import Job
from pkdp_pipeline.jobs.written import check_folder, check_ledger
from pkdp_pipeline.ledger import Entry, Ledger, check_differencing
from pkdp_pipeline.ledger.reading import copied
from pkdp_pipeline.ledger.rows import certificate_of, describe
from pkdp_pipeline.model.wording import JOB_FILE, WITHIN_JOB, Speech, worded_for

if TYPE_CHECKING:
    from pkdp_pipeline.certificates.certificate import Certificate
    from pkdp_pipeline.certificates.release_certificate import ReleaseCertificate
    from pkdp_pipeline.model.question import Question
    from pkdp_pipeline.releases.publish import Publication

DELTA = 1e-6
"""Where ε is stated."""

Outcome = Literal["publish", "replay"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedRelease:
    """One release of one day.

    Parameters
    ----------
    outcome : {"publish", "replay"}
    certificate : Certificate
        The promise it makes, or made when it was published.
    """

    name: str
    outcome: Outcome
    certificate: Certificate = field(compare=False, repr=False)

    @property
    def epsilon(self) -> float:
        """The ε of its certificate at `DELTA`; `math.inf` where no ε reaches it."""
        return self.certificate.epsilon(DELTA)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedDay:
    """One period, by its first day; where it would be refused, nothing of it would be published."""

    day: date
    releases: tuple[PlannedRelease, ...]
    refused: PkdpError | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The outcome of a run, were it started.

    Parameters
    ----------
    days : tuple of PlannedDay
        In order, up to the first that would be refused.
    unreached : int
        How many days would come after that one.
    before, after : Certificate or None
        The total of everything that the ledger holds about the job's unit, now and then; None where it does not
        add up.
    period : Certificate or None
        The total of those of its releases that are about the days of the plan.
    """

    days: tuple[PlannedDay, ...]
    unreached: int
    before: Certificate | None
    after: Certificate | None
    period: Certificate | None

    @property
    def refused(self) -> PlannedDay | None:
        """The day that would be refused."""
        last = self.days[-1] if self.days else None
        return last if last is not None and last.refused is not None else None


def check_together(job: Job) -> None:
    """Refuse releases that cannot be published side by side, before anything is opened or read.

    Raises `ConfigError` if two of them ask for the same thing under two names, `DifferencingError` if they are about
    the same people and period and one of them is noiseless.
    """
    dataset, evidence = job.dataset, job.declared()
    earlier: list[Publication] = []
    for publication in job.publications():  # what may stand together does not depend on the day
        question = publication.question
        for other in (before.question for before in earlier):
            if question.key(dataset) == other.key(dataset):
                raise ConfigError(
                    f"releases {other.label!r} and {question.label!r} ask for the same; remove one of them."
                )
        if question.follows_from_any(before.question for before in earlier):
            continue
        others = [(other.question.facts(), other.attacker) for other in earlier]
        refusal = None
        try:
            check_differencing(
                question.facts(), others, dataset=dataset, evidence=evidence, attacker=publication.attacker
            )
        except DifferencingError as error:
            refusal = worded_for(error, WITHIN_JOB)
        if refusal is not None:
            raise DifferencingError(refusal)
        earlier.append(publication)


@contextmanager
def in_job_words(release: str | None, speech: Speech = JOB_FILE) -> Iterator[None]:
    """Let an error from inside name the release, and say what to write in the job file, or in another speech."""
    reworded = None
    try:
        yield
    except PkdpError as error:
        message = worded_for(error, speech)
        if isinstance(error, NoEvidenceError | NotCertifiableError):
            message = f"release {release!r}: {message}"
        if message == str(error):
            raise
        reworded = type(error)(message)
    if reworded is not None:
        raise reworded


def plan_job(
    job: Job, days: Sequence[date], *, revise: bool = False, ahead: bool = False, speech: Speech = JOB_FILE
) -> Plan:
    """Return what a job would do about the periods of some days, in this order.

    It charges a copy of the ledger, in memory. No data are read, so whether a day would pass its input check is not
    known; neither the ledger nor the output folder is touched. With `ahead` periods that are not over are planned as if
    they were. `speech`: how a refusal says what to write. Raises `ConfigError` or `DifferencingError` if the job's
    releases cannot stand together, or the output folder is another job's or another ledger's; `LedgerError` or
    `TemporaryError` if the ledger cannot be read.
    """
    check_together(job)
    budget, evidence = job.budgets() or None, job.declared() or None
    planned: list[PlannedDay] = []
    certificates = check_folder(job)
    with copied(job.ledger, dataset=job.dataset, budget=budget, evidence=evidence) as ledger:
        check_ledger(job, ledger, certificates)
        before = ledger.known_total(job.unit)
        for day in days:
            planned.append(plan_day(job, ledger, day, revise=revise, ahead=ahead, speech=speech))
            if planned[-1].refused is not None:
                break
        allowed = [planned_day.day for planned_day in planned if planned_day.refused is None]
        return Plan(
            days=tuple(planned),
            unreached=len(days) - len(planned),
            before=before,
            after=ledger.known_total(job.unit),
            period=ledger.known_total(job.unit, min(allowed), job.period.span(max(allowed))[1])
            if allowed
            else compose([]),
        )


def plan_day(
    job: Job,
    ledger: Ledger,
    day: date,
    *,
    revise: bool = False,
    ahead: bool = False,
    speech: Speech = JOB_FILE,
    publications: Sequence[Publication] | None = None,
) -> PlannedDay:
    """Return what would become of a day's period, and charge it to a copy of the ledger; see `plan_job`.

    `publications` are those of the day, where they are at hand.
    """
    releases, offered = list[PlannedRelease](), list[Any]()
    charged: dict[Question, ReleaseCertificate] = {}
    for publication in job.publications(day) if publications is None else publications:
        question, name = publication.question, str(publication.question.label)
        finer = next(filter(question.follows_from, charged), None)
        try:
            if not ahead:
                job.period.check_open(day)
            if finer is not None:
                certificate = charged[finer].derived(question.mechanism)
                releases.append(PlannedRelease(name=name, outcome="replay", certificate=certificate))
                continue
            with in_job_words(name, speech):
                answer = replace(publication, ledger=ledger, revise=revise).reserve(offered.append)
        except PkdpError as error:
            return PlannedDay(day=day, releases=tuple(releases), refused=error)
        if isinstance(answer, Entry):
            certificate = certificate_of(describe(answer.certificate))
            if certificate.mechanism != question.mechanism:
                certificate = certificate.derived(question.mechanism)
            releases.append(PlannedRelease(name=name, outcome="replay", certificate=certificate))
        else:
            certificate = replace(offered[-1], context=None)  # which names the copy's head
            charged[question] = certificate
            releases.append(PlannedRelease(name=name, outcome="publish", certificate=certificate))
    return PlannedDay(day=day, releases=tuple(releases))
