"""Reporting: the summary of a date, in Markdown, and what a job adds to a report: releases, words, files, checks."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pkdp_pipeline.certificates.composed import ComposedCertificate, compose
from pkdp_pipeline.certificates.release_certificate import release_certificate
from pkdp_pipeline.display.report.plain_words import asked_sentence, noise_sentence
from pkdp_pipeline.errors import ArgumentError, ConfigError, LedgerError, NoEvidenceError, PkdpError
from pkdp_pipeline.jobs.environment import public_address
from pkdp_pipeline.jobs.job import Job
from pkdp_pipeline.jobs.outputs import make_folder, write_atomically
from pkdp_pipeline.jobs.requests import requests_of
from pkdp_pipeline.jobs.tables import ReleaseTable
from pkdp_pipeline.jobs.written import certificates_of, check_ledger
from pkdp_pipeline.ledger import Entry, Ledger
from pkdp_pipeline.ledger.account import unit_text
from pkdp_pipeline.model.arguments import choice, probability
from pkdp_pipeline.model.evidence import BoundedDependence, SamePeople
from pkdp_pipeline.model.plain_text import key_text, printable, table_line

if TYPE_CHECKING:
    import pandas as pd

    from pkdp_pipeline.certificates.certificate import Certificate
    from pkdp_pipeline.display.content import Audience, CheckLine, Report
    from pkdp_pipeline.display.report.published import DayTotal, Subject
    from pkdp_pipeline.jobs.records import JobResult
    from pkdp_pipeline.ledger.views.history import History, Line
    from pkdp_pipeline.ledger.views.reading import Reading
    from pkdp_pipeline.releases.release import Release

_FILE = "report.html"


class NothingPublishedError(LedgerError):
    """The ledger holds nothing that the job has published."""


def report_of(job: Job, day: date | None = None, *, audience: Audience = "public", delta: float = 1e-6) -> Report:
    """Return the report of what a job has published about one date, or about all of them.

    Read from the ledger: no data are read, nothing is charged or written.

    Parameters
    ----------
    job : Job
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
    from pkdp_pipeline.ledger.views.history import read_history

    choice("audience", audience, ("public", "auditor"))
    probability("delta", delta)
    with ExitStack() as held:
        reading = held.enter_context(_opened(job))
        held.enter_context(reading.database.snapshot())
        check_ledger(job, reading.ledger, certificates_of(job))
        ledger, history = reading.ledger, read_history(reading.ledger)
        subject = _subject(job, ledger, history, day, audience)
        if not subject.entries:
            raise NothingPublishedError(_nothing(job))
        return gather(
            reading,
            history,
            subject,
            period=None if day is None else day.isoformat(),
            together=None if day is None else _together(job, ledger, history, subject.entries, day),
            audience=audience,
            delta=delta,
        )


def check_report(job: Job) -> None:
    """Refuse a report that could not be drawn, before anything is charged.

    Raises
    ------
    ConfigError
        If the extra ``report`` is not installed.
    """
    if job.output.report:
        from pkdp_pipeline.display.figures import need_matplotlib

        need_matplotlib()


def report_place(job: Job, day: date | None) -> Path:
    """Return where ``[output] report = true`` writes the report of a date, or of all of them."""
    return Path(job.output.directory, *(() if day is None else (day.isoformat(),)), _FILE)


def write_report(job: Job, day: date | None) -> Path:
    """Write the public report of a date, or of all of them, into the output directory; and return where.

    Raises
    ------
    ConfigError
        If it cannot be drawn or written, or the extra ``report`` is not installed.
    LedgerError, TemporaryError
        If the ledger cannot be read, or holds nothing to report.
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


@contextmanager
def _opened(job: Job) -> Iterator[Reading]:
    from pkdp_pipeline.ledger.views.reading import open_for_reading

    if "://" not in job.ledger and not Path(job.ledger).exists():
        raise NothingPublishedError(_nothing(job))
    with ExitStack() as held:
        try:
            reading = held.enter_context(open_for_reading(job.ledger, job.dataset))
        except ArgumentError:  # it holds other data sets only
            raise NothingPublishedError(_nothing(job)) from None
        yield reading


def _nothing(job: Job) -> str:
    location = public_address(job.ledger) if "://" in job.ledger else job.ledger
    return (
        f"the ledger {location!r} holds nothing that this job has published about {job.dataset!r}, and a report is "
        "about what is published: publish a date first, with pkdp run; or correct ledger or dataset in the job file."
    )


def _subject(job: Job, ledger: Ledger, history: History, day: date | None, audience: Audience) -> Subject:
    from pkdp_pipeline.display.report.published import Subject

    held = _held(job, ledger, history)
    newest = max((line.standing.period for line in history.lines if line.holding.entry in held), default=None)
    about = day if day is not None or newest is None else date.fromisoformat(newest)
    suffixes = (*(one for one in ("parquet", "csv") if one in job.output.formats), "certificate.json")
    return Subject(
        title=job.dataset,
        job=job.name,
        digest=job.digest,
        unit=job.unit,
        asked={one.name: describe(job, one) for one in job.release},
        entries=held,
        suffixes=suffixes,
        files=frozenset() if about is None else _files(job, about),
        checks=_checks(job, about) if audience == "auditor" and about is not None else (),
    )


def _files(job: Job, day: date) -> frozenset[str]:
    """Return which files the output directory has of a date, relative to it."""
    folder = day.isoformat()
    try:
        return frozenset(f"{folder}/{path.name}" for path in Path(job.output.directory, folder).iterdir())
    except OSError:  # not there, or not to be read
        return frozenset()


def _held(job: Job, ledger: Ledger, history: History) -> Mapping[int, str]:
    """Return the names that the job has for entries of the ledger: for those that are published, and its own."""
    published = [line for line in history.lines if line.state == "published"]
    names: dict[str, str] = {}
    for period in {line.standing.period for line in published}:
        with suppress(ValueError):  # a month, or a label: not a period of a job
            names |= {one.request.key(ledger.dataset): one.name for one in requests_of(job, date.fromisoformat(period))}
    return {line.holding.entry: names[line.key] for line in published if line.key in names}


def _meets(line: Line, day: date) -> bool:
    first, last = line.holding.first, line.holding.last
    return first is None or last is None or first <= day.toordinal() <= last


def _together(job: Job, ledger: Ledger, history: History, held: Mapping[int, str], day: date) -> DayTotal | None:
    from pkdp_pipeline.display.report.published import DayTotal

    beside = ledger.beside(requests_of(job, day)[0].request.facts())
    found = Together.of(beside)
    if found is None:
        return None
    total: Certificate | None = found.total
    lines = [line for line in history.lines if _meets(line, day)]
    declared = any(isinstance(one, BoundedDependence) for one in ledger.terms.evidence)
    if total is None and declared and {entry.unit for entry in beside} == {job.unit}:
        # What is declared covers releases about one day too.
        with suppress(NoEvidenceError):
            total = history.of_some(unit_text(job.unit), lines)
    own = all(line.holding.entry in held for line in lines)
    return DayTotal(total=total, reason="" if total is not None else found.sentence(day), own=own)


def _checks(job: Job, day: date) -> tuple[CheckLine, ...]:
    """Return the rules that the data of a day were held to: as recorded, else as the job file has them.

    Without a record they are those that stop the job: nothing is published of a day that breaks one.
    """
    from pkdp_pipeline.display.content import CheckLine
    from pkdp_pipeline.jobs.checks import stated_rules

    recorded = _recorded_checks(job, day)
    if recorded is not None:
        return tuple(CheckLine(rule=one["rule"], passed=one["passed"]) for one in recorded)
    return tuple(CheckLine(rule=rule, passed=True) for rule in stated_rules(job, day))


def _recorded_checks(job: Job, day: date) -> Sequence[Mapping[str, Any]] | None:
    """Return the checks of the latest recorded run that published the day; None where there is no such record."""
    if job.records is None or job.records.directory is None:
        return None
    for file in sorted(Path(job.records.directory).glob("[0-9]*.json"), reverse=True):
        with suppress(OSError, ValueError, LookupError, TypeError):
            found = json.loads(file.read_bytes())
            about = (found["job"], found["dataset"], found["day"], found["outcome"])
            if about == (job.name, job.dataset, day.isoformat(), "published") and found["checks"]:
                return [{"rule": str(one["rule"]), "passed": one["passed"] is True} for one in found["checks"]]
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Together:
    """The total of everything that stands about some people in one period.

    Parameters
    ----------
    releases : int
    total : ComposedCertificate or None
        What they add up to; None when they protect different units, or do not add up.
    reason : str
        Why there is no total; empty where there is one.
    """

    releases: int
    total: ComposedCertificate | None
    reason: str = ""

    @classmethod
    def of(cls, entries: Sequence[Entry]) -> Together | None:
        """Add up ledger entries; None for a single one, whose own certificate says everything."""
        if len(entries) < 2:
            return None
        if len({entry.unit for entry in entries}) > 1:
            reason = "they protect different units, so their guarantees are not added up here"
            return cls(releases=len(entries), total=None, reason=reason)
        parts = []
        # An exact total takes nothing from the one release that is certified given it.
        single = sum(not entry.standing.total for entry in entries) == 1
        for entry in entries:
            certificate = release_certificate(entry.certificate)
            noised = certificate.worst_case_bound is not None
            # Beside another release only the noise of a noised one stands.
            parts.append(certificate.worst_case_only() if noised and not single else certificate)
        try:
            return cls(releases=len(entries), total=compose(parts, SamePeople()))
        except NoEvidenceError:
            return cls(releases=len(entries), total=None, reason="nothing declared says what they add up to")

    def sentence(self, day: date) -> str:
        """Return the total in words; numbers are rounded up."""
        held = f"The ledger holds {self.releases} releases about these people on {day.isoformat()}"
        if self.total is None:
            return f"{held}; {self.reason}."
        return f"{held}. {self.total.sentence()} What several periods add up to is stated by the ledger's total."


def summarise(result: JobResult, head: str) -> str:
    """Return the summary; it is made from what is public only, so a replay makes the same one.

    `head` is the hash of the ledger's event that holds the last release, for `pkdp ledger verify --head`.
    """
    lines = [f"# {result.job.dataset}, {result.day.isoformat()}", ""]
    for asked, release in ((one.asked, one.release) for one in result.releases):
        lines += [f"## {asked.name}", "", describe(result.job, asked), "", *markdown_table(release.table)]
        lines += ["", *noise_line(release), release.certificate.sentence(), "", f"Release `{release.id}`.", ""]
    if result.together is not None:
        lines += ["## Together", "", result.together.sentence(result.day), ""]
    lines += [
        f"Hash of the last of these releases in the ledger's chain: `{head}`. Whether a ledger still has it, and all "
        "before it: `pkdp ledger verify LEDGER --head` with this hash.",
        "",
    ]
    return "\n".join(lines)


def markdown_table(table: pd.DataFrame, most: int | None = None) -> list[str]:
    """Return the lines of a public table in Markdown, with `most` rows at most."""
    header, rows = public_rows(table)
    lines = [_table_line(header), _table_line(["---"] * (len(header) - 1) + ["---:"])]
    lines += [_table_line(row) for row in rows[:most]] or ["", "Nothing reached the rule for publishing."]
    if most is not None and len(rows) > most:
        lines += ["", f"{len(rows) - most} rows more are in the files."]
    return lines


def describe(job: Job, asked: ReleaseTable) -> str:
    """Return one sentence on what is counted and what is published."""
    return asked_sentence(", ".join(job.unit), asked.by, asked.where, asked)


def noise_line(release: Release) -> list[str]:
    """Return a line on how far noise may have moved the counts, and an empty one; nothing without noise."""
    if release.certificate.mechanism.noise is None:
        return []
    return [noise_sentence(release.error), ""]


def public_rows(table: pd.DataFrame) -> tuple[list[str], list[list[str]]]:
    """Return a public table as text: column names, then rows; a missing count reads "suppressed".

    Keys are shown as in a report: different texts stay different.
    """
    import pandas as pd

    rows = []
    for row in table.itertuples(index=False, name=None):
        *cell, count = row
        rows.append([*map(key_text, cell), "suppressed" if pd.isna(count) else str(count)])
    return [printable(column) for column in table.columns], rows


def _table_line(cells: Sequence[str]) -> str:
    return table_line([re.sub(r"([\\|<`*_])", r"\\\1", cell) for cell in cells])
