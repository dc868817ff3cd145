"""Reporting: the summary of a date, in Markdown, and what a job adds to a report: releases, words, files, checks."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

from pkdp_pipeline.certificates.composed import ComposedCertificate, compose, promised_by
from pkdp_pipeline.certificates.release_certificate import release_certificate
from pkdp_pipeline.display.content import Audience, CheckLine, Report
from pkdp_pipeline.display.report.gathering import published_table
from pkdp_pipeline.display.report.plain_words import asked_sentence, noise_sentence
from pkdp_pipeline.display.report.published import DayTotal, Subject
from pkdp_pipeline.display.report.withheld import withheld
from pkdp_pipeline.errors import ArgumentError, ConfigError, LedgerError, NoEvidenceError, PkdpError
from pkdp_pipeline.jobs.checks import stated_rules
from pkdp_pipeline.jobs.job import Job
from pkdp_pipeline.jobs.outputs import make_folder, write_atomically
from pkdp_pipeline.jobs.tables import ReleaseTable
from pkdp_pipeline.jobs.written import certificates_of, check_ledger
from pkdp_pipeline.ledger import Entry, Ledger
from pkdp_pipeline.ledger.history import History, read_history
from pkdp_pipeline.ledger.postgres import public_address
from pkdp_pipeline.ledger.reading import is_begun, open_for_reading
from pkdp_pipeline.ledger.rows import counted, unit_text
from pkdp_pipeline.model.arguments import choice, probability
from pkdp_pipeline.model.evidence import BoundedDependence, SamePeople
from pkdp_pipeline.model.spelling import in_markdown, printable, table_line
from pkdp_pipeline.model.wording import fitting

if TYPE_CHECKING:
    from pkdp_pipeline.certificates.certificate import Certificate
    from pkdp_pipeline.jobs.records import JobResult
    from pkdp_pipeline.releases.release import Release

_FILE = "report.html"


class NothingPublishedError(LedgerError):
    """The ledger holds nothing that the job has published."""


def report_of(job: Job, day: date | None = None, *, audience: Audience = "public", delta: float = 1e-6) -> Report:
    """Return the report of what a job has published about one date, or about all of them.

    Read from the ledger: no data are read, nothing is charged or written.

    Parameters
    ----------
    day : datetime.date, optional
        None: everything the job has published.
    audience : {"public", "auditor"}, default "public"
    delta : float, default 1e-6
        At which every ε is stated.

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
    from pkdp_pipeline.display.report.gathering import gather

    choice("audience", audience, ("public", "auditor"))
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
        folder = job.folder(about)
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
            about=None if job.about is None else job.about.content(),
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

    Raises `ConfigError` if it cannot be drawn or written, or the extra ``report`` is not installed; `LedgerError` or
    `TemporaryError` if the ledger cannot be read, or holds nothing to report.
    """
    from pkdp_pipeline.display.report import render

    try:
        page = render(report_of(job, day), "html")
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Together:
    """The total of everything that stands about some people in one period.

    `total`: their sum; None when they protect different units, or do not add up. `reason`: why there is no
    total; empty where there is one.
    """

    releases: int
    total: ComposedCertificate | None
    reason: str = ""

    @classmethod
    def of(cls, entries: Sequence[Entry]) -> Together | None:
        """Add up ledger entries; None for a single one, whose own certificate says everything."""
        if len(entries) < 2:
            return None
        total, reason = None, ""
        if len({entry.unit for entry in entries}) > 1:
            reason = "they protect different units, so their guarantees are not added up here"
        else:
            # An exact total takes nothing from the one release that is certified given it. Beside another release
            # only the noise of a noised one stands.
            single = sum(not entry.standing.total for entry in entries) == 1
            try:
                total = compose([_promised(entry, alone=single) for entry in entries], SamePeople())
            except NoEvidenceError:
                reason = "nothing declared says what they add up to"
        return cls(releases=len(entries), total=total, reason=reason)

    def sentence(self, period: str) -> str:
        """Return the total of a period in words; numbers are rounded up."""
        when = f"{'on' if period.count('-') == 2 else 'in'} {period}"
        start = f"The ledger holds {self.releases} releases about these people {when}"
        if self.total is None:
            return f"{start}; {self.reason}."
        return f"{start}. {self.total.sentence()} The ledger's total states what several periods add up to."


def _promised(entry: Entry, *, alone: bool) -> Certificate:
    """Return the largest promise that a release ever made; only that of its noise, where others stand beside it."""
    counting = [release_certificate(text) for text in counted(entry.certificates)]
    if alone or any(certificate.worst_case_bound is None for certificate in counting):
        return promised_by(counting)
    return promised_by([certificate.worst_case_only() for certificate in counting])


def summarise(result: JobResult, head: str) -> str:
    """Return the summary; it is made from what is public only, so a replay makes the same one.

    `head` is the hash of the ledger's event that holds the last release, for `pkdp ledger verify --head`.
    """
    period = result.job.period.text(result.day)

    def text(words: str) -> str:
        # Names, predicates and labels stand in all of it.
        return in_markdown(printable(words))

    lines = [f"# {text(result.job.dataset)}, {period}", ""]
    releases = [published.release for published in result.releases]
    for declared, release in ((published.asked, published.release) for published in result.releases):
        lines += [f"## {text(declared.name)}", "", text(describe(result.job, declared)), ""]
        lines += markdown_table(release, beside=releases)
        if noise := noise_line(release):
            lines += ["", text(noise)]
        lines += ["", text(release.certificate.sentence()), "", f"Release `{release.id}`.", ""]
    if result.together is not None:
        lines += ["## Together", "", text(result.together.sentence(period)), ""]
    lines += [
        f"Hash of the last of these releases in the ledger's chain: `{head}`. Whether a ledger still has it, and all "
        "before it: `pkdp ledger verify LEDGER --head` with this hash.",
        "",
    ]
    return "\n".join(lines)


def markdown_table(release: Release, most: int | None = None, beside: Sequence[Release] = ()) -> list[str]:
    """Return the lines of a public table in Markdown; see `public_rows`."""
    header, rows, more = public_rows(release, len(release.sealed.rows) if most is None else most, beside)
    listed = [header, ["---"] * (len(header) - 1) + ["---:"], *rows]
    lines = [table_line([*map(in_markdown, cells)]) for cells in listed]
    lines += [] if rows else ["", "Nothing reached the rule for publishing."]
    return [*lines, "", f"{more} rows more are in the files."] if more else lines


def describe(job: Job, declared: ReleaseTable) -> str:
    """Return one sentence on what is counted and what is published."""
    return asked_sentence(", ".join(job.unit), declared.by, declared.where, declared.mechanism)


def noise_line(release: Release) -> str:
    """Return a sentence on how far noise may have moved the counts; nothing without noise."""
    return "" if release.certificate.mechanism.noise is None else noise_sentence(release.error)


def public_rows(release: Release, most: int, beside: Sequence[Release] = ()) -> tuple[list[str], list[list[str]], int]:
    """Return a public table as a report shows it: columns, about `most` rows, and how many rows more there are.

    `beside`: the releases of the same run, whose exact totals may tell of suppressed counts.
    """
    tables = [
        (published_table(other, len(other.sealed.rows)), json.loads(other.certificate.to_json())) for other in beside
    ]
    table = published_table(release, len(release.sealed.rows))
    words = withheld(table, json.loads(release.certificate.to_json()), tables)
    counts = [word if count is None else str(count) for count, word in zip(table.counts, words, strict=True)]
    number = fitting(len(counts), most)
    rows = [[*keys, count] for keys, count in zip(table.keys[:number], counts, strict=False)]
    return [*table.columns, "count"], rows, len(counts) - number
