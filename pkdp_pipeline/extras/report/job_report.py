"""The report of a job, from its ledger and its files: which releases are its own, and what it adds to them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

from pkdp_pipeline.errors import ArgumentError, ConfigError, LedgerError, NoEvidenceError, PkdpError
from pkdp_pipeline.extras.report.content import About, Audience, CheckLine, Report
from pkdp_pipeline.extras.report.figures import need_matplotlib
from pkdp_pipeline.extras.report.pages.gathering import DayTotal, Subject, gather
from pkdp_pipeline.jobs.checks import stated_rules
from pkdp_pipeline.jobs.dry_run import certificates_of, check_ledger
from pkdp_pipeline.jobs.job import Job
from pkdp_pipeline.jobs.outputs import describe
from pkdp_pipeline.jobs.outputs.files import make_folder, write_atomically
from pkdp_pipeline.jobs.steps import JobResult, PeriodStep
from pkdp_pipeline.ledger import Ledger
from pkdp_pipeline.ledger.database import public_address
from pkdp_pipeline.ledger.history import History, read_history
from pkdp_pipeline.ledger.reading import is_begun, open_for_reading
from pkdp_pipeline.ledger.rows import unit_text
from pkdp_pipeline.ledger.totals import Together
from pkdp_pipeline.model.evidence import BoundedDependence
from pkdp_pipeline.model.wording import choice, probability

if TYPE_CHECKING:
    from pkdp_pipeline.certificates.certificate import Certificate

_FILE = "report.html"


class ReportStep(PeriodStep):
    """Writes ``report.html`` where ``[output] report`` asks for it."""

    def check(self, job: Job) -> None:
        """See `PeriodStep.check`."""
        need_matplotlib()

    def published(self, result: JobResult, *, alone: bool) -> None:
        """See `PeriodStep.published`."""
        if alone:
            result.report = write_report(result.job, result.day)

    def all_published(self, job: Job) -> Path | None:
        """See `PeriodStep.all_published`; None where nothing is published."""
        with suppress(NothingPublishedError):
            return write_report(job, None)
        return None


class NothingPublishedError(LedgerError):
    """The ledger holds nothing that the job has published."""


def report_of(
    job: Job,
    day: date | None = None,
    *,
    audience: Audience = "public",
    delta: float | None = None,
    today: date | None = None,
) -> Report:
    """Return the report of what a job has published about one date, or about all of them.

    Read from the ledger: no data are read, nothing is charged or written.

    Parameters
    ----------
    day : datetime.date, optional
        None: everything the job has published.
    audience : {"public", "auditor"}, default "public"
    delta : float, optional
        At which every ε is stated; None: that of the job's target, or 1e-6.
    today : datetime.date, optional
        The report's date; None: that of the clock.

    Raises
    ------
    ArgumentError
        If nothing is published of that date.
    ConfigError
        If the output folder holds releases that the ledger does not know: a report would leave them out.
    NothingPublishedError
        If the job has published nothing; a `LedgerError`.
    LedgerError, TemporaryError
        If the ledger cannot be read.
    """
    choice("audience", audience, ("public", "auditor"))
    if delta is None:
        delta = 1e-6 if job.target is None or job.target == "none" else job.target.value.delta
    probability("delta", delta)
    with ExitStack() as opened:
        if not is_begun(job.ledger):
            raise _nothing(job)
        try:
            ledger = opened.enter_context(open_for_reading(job.ledger, job.dataset))
        except ArgumentError:  # it holds other data sets only
            raise _nothing(job) from None
        opened.enter_context(ledger.records.snapshot())
        check_ledger(job, ledger, certificates_of(job))
        history = read_history(ledger)
        entries = _published(job, ledger, history)
        periods = [line.standing.period for line in history.lines if line.sequence in entries]
        if not periods:
            raise _nothing(job)
        about = day or max(filter(None, map(job.period.start, periods)))
        folder, words, made_on = job.folder(about), job.about, today or job.period.today()
        subject = Subject(
            title=job.dataset,
            job=job.name,
            digest=job.digest,
            unit=job.unit,
            questions={release.name: describe(job, release) for release in job.release},
            entries=entries,
            suffixes=(*(form for form in ("parquet", "csv") if form in job.output.formats), "certificate.json"),
            files=frozenset(f"{folder.name}/{path.name}" for path in folder.glob("*")),
            prefix=job.output.folder_name(""),
            checks=_checks(job, about) if audience == "auditor" else (),
            about=None if words is None else About(**words.words(), outdated=words.outdated(made_on)),
        )
        return gather(
            ledger,
            history,
            subject,
            period=None if day is None else job.period.text(day),
            together=None if day is None else _together(job, ledger, history, entries, day),
            audience=audience,
            delta=delta,
        )


def report_place(job: Job, day: date | None) -> Path:
    """Return where ``[output] report = true`` writes the report of a date, or of all of them."""
    return (Path(job.output.directory) if day is None else job.folder(day)) / _FILE


def write_report(job: Job, day: date | None) -> Path:
    """Write the public report of a date, or of all of them, into the output directory; and return where.

    That of all is written again, if there is one, where the date has been revised.

    Raises `ConfigError` if it cannot be drawn or written, or the extra ``report`` is not installed; `LedgerError` or
    `TemporaryError` if the ledger cannot be read, or holds nothing to report.
    """
    from pkdp_pipeline.extras.report.pages import render

    try:
        document = report_of(job, day)
        page = render(document, "html")
    except PkdpError:
        raise
    except Exception as error:  # a drawing that fails must not hide that the releases are published
        raise ConfigError(
            f"the report cannot be drawn ({type(error).__name__}): check that matplotlib works, with pip check, "
            " or write report = false under [output]."
        ) from error
    place = report_place(job, day)
    make_folder(place.parent)
    write_atomically(place, page.encode())
    # A report of everything shows what a revision has replaced.
    revised = day is not None and any(release.revision > 1 for release in document.releases)
    if revised and report_place(job, None).exists():
        write_report(job, None)
    return place


def _nothing(job: Job) -> NothingPublishedError:
    location = public_address(job.ledger) if "://" in job.ledger else job.ledger
    return NothingPublishedError(
        f"the ledger {location!r} holds nothing that this job has published about {job.dataset!r}, and a report is "
        "about what is published: publish a date first, with pkdp run; or correct ledger or dataset in the job file."
    )


def _published(job: Job, ledger: Ledger, history: History) -> Mapping[int, str]:
    """Return which published entries of the ledger are releases of the job, with their names."""
    published = [line for line in history.lines if line.state == "published"]
    names: dict[str, str] = {}
    for day in filter(None, map(job.period.start, {line.standing.period for line in published})):
        questions = [publication.question for publication in job.publications(day)]
        names |= {question.key(ledger.dataset): str(question.label) for question in questions}
    return {line.sequence: names[line.key] for line in published if line.key in names}


def _together(job: Job, ledger: Ledger, history: History, own: Mapping[int, str], day: date) -> DayTotal | None:
    """Return what everything about a day adds up to; `own` are the job's entries."""
    beside = ledger.beside(job.publications(day)[0].question.facts())
    together = Together.of(beside)
    if together is None:
        return None
    total: Certificate | None = together.total
    first, last = map(date.toordinal, job.period.span(day))
    lines = [
        line
        for line in history.lines
        if line.row.first_day is None
        or line.row.last_day is None
        or (line.row.first_day <= last and first <= line.row.last_day)
    ]
    declared = any(isinstance(declaration, BoundedDependence) for declaration in ledger.terms.evidence)
    if total is None and declared and {entry.unit for entry in beside} == {job.unit}:
        # What is declared covers releases about one day too.
        with suppress(NoEvidenceError):
            total = history.of_some(unit_text(job.unit), lines)
    reason = "" if total is not None else together.sentence(job.period.text(day))
    return DayTotal(total=total, reason=reason, own=all(line.sequence in own for line in lines))


def _checks(job: Job, day: date) -> tuple[CheckLine, ...]:
    """Return the rules that the data of a day were held to: as the last run that published it has recorded them.

    Without a record they are those of the job file that stop it: nothing is published of a day that breaks one.
    """
    folder = job.records and job.records.directory
    about = [job.name, job.dataset, day.isoformat(), "published"]
    for file in sorted(Path(folder).glob("[0-9]*.json"), reverse=True) if folder else ():
        with suppress(OSError, ValueError, LookupError, TypeError):
            record = json.loads(file.read_bytes())
            if [record[key] for key in ("job", "dataset", "day", "outcome")] == about and record["checks"]:
                return tuple(
                    CheckLine(rule=str(check["rule"]), passed=check["passed"] is True) for check in record["checks"]
                )
    return tuple(CheckLine(rule=rule, passed=True) for rule in stated_rules(job, day))
