"""Gathering: a report from a ledger, which holds all that is public; no data are read.

Published: what a report is about, which releases of the ledger it shows, and what they promise.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Collection, Container, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from numbers import Number
from typing import Any, Literal

from pkdp_pipeline.certificates.certificate import Certificate
from pkdp_pipeline.certificates.release_certificate import ReleaseCertificate, release_certificate
from pkdp_pipeline.certificates.sentences import BY_ITSELF, BY_NOISE
from pkdp_pipeline.errors import ArgumentError, LedgerError, NoEvidenceError
from pkdp_pipeline.extras.report.content import (
    EVERYTHING,
    About,
    Audience,
    BudgetLine,
    CheckLine,
    LedgerAccount,
    Promise,
    Provenance,
    ReleaseView,
    Report,
    Series,
)
from pkdp_pipeline.extras.report.statement import GuaranteeCurve, Statement, knowledge_curves, what_if
from pkdp_pipeline.ledger import Entry, Ledger
from pkdp_pipeline.ledger.account import unit_named
from pkdp_pipeline.ledger.history import History, Spent, number_of, spending, spent, verify_command
from pkdp_pipeline.ledger.rows import describe, unit_text
from pkdp_pipeline.model.evidence import BoundedDependence
from pkdp_pipeline.model.keys import sort_rank
from pkdp_pipeline.model.mechanisms import key_columns, noised_below, value_columns
from pkdp_pipeline.model.period import joined, key_text, printable
from pkdp_pipeline.releases.printed import bands_of, published_table
from pkdp_pipeline.releases.release import Release
from pkdp_pipeline.schemas import VERSION

Holds = Literal["fully", "by_itself", "by_noise"]
"""How far a release's promise holds beside the others: in full; by itself, whatever stands beside it; or, since others
undo its promise against an attacker who is unsure of other people, as far as its noise gives it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DayTotal:
    """The sum of several releases about one date; or why there is none.

    Parameters
    ----------
    total : Certificate or None
    reason : str
        Why there is none; empty where there is one.
    own : bool
        Whether all of it is public, and of this job: else its certificate shows what others charged.
    """

    total: Certificate | None
    reason: str
    own: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """The subject of a report, in plain values that a job hands over; nothing of it comes from data.

    Parameters
    ----------
    title : str
        The data set's name.
    job, digest : str
        See `Provenance`.
    unit : tuple of str
        Columns of the privacy unit.
    questions : mapping of str to str
        The names of the releases that are published about every date, in the order in which they are shown; and what
        each counts, and what is done before it is published, in one sentence.
    entries : mapping of int to str
        Which of the ledger's entries are which of these releases: published ones, all revisions.
    suffixes : tuple of str
        Of the files that are written of each release.
    files : frozenset of str
        Which of them there are, relative to the output directory: a job whose file has changed lacks some.
    prefix : str
        Before the period in the name of its folder.
    checks : tuple of CheckLine
        The rules that the data of the date were held to; for an auditor only.
    about : About, optional
    """

    title: str
    job: str
    digest: str
    unit: tuple[str, ...]
    questions: Mapping[str, str]
    entries: Mapping[int, str]
    suffixes: tuple[str, ...]
    files: frozenset[str] = frozenset()
    prefix: str = ""
    checks: tuple[CheckLine, ...] = ()
    about: About | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadRelease:
    """One of the job's releases about one period, in its newest revision."""

    name: str
    entry: Entry
    holds: Holds

    @property
    def key(self) -> tuple[str, Holds]:
        """The same for releases that promise the same: all but when they were made, and at which head."""
        document = json.loads(self.entry.certificate)
        context = document.get("context") or {}
        same = {name: value for name, value in context.items() if name not in ("period", "head", "reading")}
        described = [describe(self.entry.certificate), same, document.get("caveats")]
        return json.dumps(described, sort_keys=True), self.holds

    def certificate(self) -> ReleaseCertificate:
        """Return what is certified of it beside all else that the ledger holds."""
        certificate = release_certificate(self.entry.certificate)
        if self.holds == "by_noise":
            return certificate.worst_case_only().with_caveats(BY_NOISE)
        said = certificate.context is not None and certificate.context.beside
        return certificate if self.holds == "fully" or said else certificate.with_caveats(BY_ITSELF)

    def release(self) -> Release:
        """Return the release, read from the ledger's bytes and checked against its id."""
        if self.entry.content is None:
            raise LedgerError(
                f"the ledger's entry {self.entry.sequence} has no bytes: check it with pkdp ledger verify."
            )
        return Release.from_bytes(self.entry.content, replayed=True)


class Published:
    """The job's published releases, the newest revision of each, by period and name.

    Parameters
    ----------
    ledger : Ledger
    history : History
    subject : Subject
    """

    def __init__(self, ledger: Ledger, history: History, subject: Subject) -> None:
        self._ledger, self._history, self._names = ledger, history, list(subject.questions)
        self._lines: dict[tuple[str, str], Entry] = {}
        for line in history.lines:  # in the order of their charge, so that later revisions come later
            name = subject.entries.get(line.sequence)
            if name is not None and line.state == "published":
                former = self._lines.get((line.standing.period, name))
                if former is None or former.revision <= line.revision:
                    self._lines[line.standing.period, name] = line
        self.periods = tuple(sorted({period for period, _ in self._lines}))
        """The periods of which something is published, in order."""
        groups = history.components()
        if not history.evidence and len(history.lines) > 1:  # releases of other periods stand beside it too
            groups = [[row for group in groups for row in group]]
        self._beside_others = {row.id for group in groups if len(group) > 1 for row in group}

    def named(self, name: str) -> list[str]:
        """Return the periods of which a release of this name is published, in order."""
        return [period for period in self.periods if (period, name) in self._lines]

    def about(self, period: str) -> list[ReadRelease]:
        """Return the releases about one period, in the job's order."""
        return [self.read(period, name) for name in self._names if (period, name) in self._lines]

    def read(self, period: str, name: str) -> ReadRelease:
        """Return one release."""
        line = self._lines[period, name]
        entry = self._ledger.find(line.key)
        if entry is None or entry.sequence != line.sequence:
            raise LedgerError(
                f"the ledger's entry {line.sequence} is not where its key leads: check it with pkdp ledger verify."
            )
        return ReadRelease(name=name, entry=entry, holds=self._holds(line))

    def everything(self) -> Iterator[ReadRelease]:
        """Yield all of them, one at a time, by period and then in the job's order."""
        for period in self.periods:
            yield from self.about(period)

    def latest(self) -> Entry:
        """Return the entry that was charged last."""
        period, name = max(self._lines, key=lambda place: self._lines[place].sequence)
        return self.read(period, name).entry

    def _holds(self, line: Entry) -> Holds:
        """Return how a release counts in the ledger's total; see `add_up`."""
        part = self._history.parts[line.row.part]
        if not part.has_partial_knowledge or line.sequence not in self._beside_others:
            return "fully"
        covered = any(isinstance(declaration, BoundedDependence) for declaration in self._history.evidence)
        return "by_itself" if covered or part.worst_case_bound is None else "by_noise"


def promise_of(name: str, certificate: Certificate, delta: float, *, documented: bool = True) -> Promise:
    """Return one guarantee, read at `delta` and in all other ways; `documented` says whether with its certificate."""
    stated = certificate.stated(delta)
    return Promise(
        name=name,
        statement=Statement.of(certificate, delta),
        curve=GuaranteeCurve.of(stated, delta),
        knowledge=knowledge_curves(stated, delta=delta),
        scenarios=what_if(stated, delta=delta),
        certificate=json.loads(certificate.to_json()) if documented else {},
    )


@dataclass(slots=True)
class _Group:
    """Releases with the same guarantee: of the latest period the first one; first and last period of each name."""

    latest: ReadRelease
    names: dict[str, tuple[str, str]] = field(default_factory=dict)


def promises_of(
    releases: Iterable[ReadRelease], delta: float
) -> tuple[tuple[Promise, ...], dict[tuple[str, Holds], int]]:
    """Return the different guarantees of releases, and where each is, by `ReadRelease.key`.

    Parameters
    ----------
    releases : iterable of ReadRelease
        By period, then in the job's order. One certificate stands for all that promise the same: the latest. The
        guarantee of the latest period is the first.
    delta : float
    """
    groups: dict[tuple[str, Holds], _Group] = {}
    for release in releases:
        group = groups.setdefault(release.key, _Group(release))
        period = release.entry.period
        if group.latest.entry.period != period:  # of one period the first, which is the one a reader meets first
            group.latest = release
        first, _ = group.names.get(release.name, (period, period))
        group.names[release.name] = first, period
    # Stable: of one period they stay in the job's order.
    ordered = sorted(groups, key=lambda key: groups[key].latest.entry.period, reverse=True)
    counts = Counter(name for group in groups.values() for name in group.names)
    promises = tuple(
        promise_of(_named(groups[key], counts), groups[key].latest.certificate(), delta) for key in ordered
    )
    return promises, {key: place for place, key in enumerate(ordered)}


def _named(group: _Group, counts: Counter[str]) -> str:
    """Return the names of the releases; with the periods, where a name stands for several guarantees.

    Where others stand beside them, what the guarantee says is about each by itself, and the name says so.
    """
    names = []
    for name, (first, last) in group.names.items():
        stretch = first if first == last else f"{first} to {last}"
        names.append(f"{name} ({stretch})" if counts[name] > 1 else name)
    if group.latest.holds == "by_itself":
        names.append("each by itself" if len(names) > 1 else "by itself")
    return ", ".join(names)


MAX_CELLS = 40
"""So many cells of a series are shown, those that are published most often, and of these the largest."""

MAX_PERIODS = 400
"""So many periods of a series are shown, the latest ones."""

Key = tuple[str, Hashable]
"""The kind of value a key is, and the value: texts, numbers and truths are never the same key."""

Cell = tuple[Key, ...]


def series_of(name: str, releases: Mapping[str, Release], *, more_periods: int = 0) -> Series:
    """Return one release over its periods.

    Parameters
    ----------
    name : str
        Its name in the job file.
    releases : mapping of str to Release
        By period, in their order.
    more_periods : int
        How many earlier ones are left out.
    """
    marked = all(noised_below(release.certificate.mechanism) for release in releases.values())
    rows_of_periods = {period: _rows(release) for period, release in releases.items()}
    times_published = Counter(
        cell for rows in rows_of_periods.values() for cell, (count, *_) in rows.items() if count is not None
    )
    bands = {bands_of(release.certificate.mechanism) for release in releases.values()}
    contexts = [release.certificate.context for release in releases.values()]
    declared = all(context is not None and context.cells == "declared" for context in contexts)
    ordered = _in_order(list(rows_of_periods.values()), declared=declared)
    added_up = Counter[Cell]()
    for rows in rows_of_periods.values():
        added_up.update({cell: count for cell, (count, *_) in rows.items() if count is not None})
    # Of cells that are published equally often, the largest; of these, those that come first.
    kept = set(sorted(ordered, key=lambda cell: (-times_published[cell], -added_up[cell]))[:MAX_CELLS])
    cells = [cell for cell in ordered if cell in kept]
    number = next((value_columns(release.certificate.mechanism)[0] for release in releases.values()), "count")
    return Series(
        name=name,
        number=number,
        cells=tuple(_names(cells, number)),
        periods=tuple(rows_of_periods),
        counts=tuple(tuple(rows.get(cell, (None,))[0] for cell in cells) for rows in rows_of_periods.values()),
        more_cells=len(ordered) - len(cells),
        more_periods=more_periods,
        exact=tuple(tuple(rows.get(cell, (None,))[-1] for cell in cells) for rows in rows_of_periods.values())
        if marked
        else None,
        bands=bands.pop() if len(bands) == 1 else None,
    )


def _rows(release: Release) -> dict[Cell, tuple[Any, ...]]:
    """Return every cell with its count, None where none is published, and whether it is exact, where that is told."""
    by = len(key_columns(name for name, _ in release.sealed.cells.columns))
    return {tuple(map(_key, row[:by])): tuple(row[by:]) for row in release.sealed.rows}


def _key(value: Any) -> Key:
    """Return a key that is equal for equal values: 1 and 1.0 on another day, but neither "1" nor true."""
    kinds = {str: "text", bool: "bool"}
    return kinds.get(type(value), "number" if isinstance(value, Number) else type(value).__name__), value


def _names(cells: Sequence[Cell], number: str) -> Iterator[str]:
    """Yield the names of cells; where two would be the same, as those of 7 and "7", texts are in quotation marks."""
    plain = [joined([key_text(value) for _, value in cell]) for cell in cells]
    counts = Counter(plain)
    for cell, name in zip(cells, plain, strict=True):
        if counts[name] > 1:
            name = joined([key_text(value, quoted=kind == "text") for kind, value in cell])  # noqa: PLW2901
        yield name or number


def _in_order(tables: Sequence[Collection[Cell]], *, declared: bool) -> list[Cell]:
    """Return every cell once: as declared, those of the newest table first; else by keys, where these compare."""
    cells = list(dict.fromkeys(cell for table in reversed(tables) for cell in table))
    if not declared and any(list(table) != list(tables[0]) for table in tables[1:]):
        with suppress(TypeError):  # the same column held keys of another kind on another day
            return sorted(cells, key=lambda cell: sort_rank([value for _, value in cell]))
    return cells


_MAX_POINTS = 25  # at so many periods the total is computed; the last one is among them
_SECONDS = 60.0  # after so long the view over time is coarser, and budgets of some days are left open


def gather(
    ledger: Ledger,
    history: History,
    subject: Subject,
    *,
    period: str | None = None,
    together: DayTotal | None = None,
    audience: Audience = "public",
    delta: float = 1e-6,
) -> Report:
    """Return the report of one date, or of all that the job has published.

    Parameters
    ----------
    ledger : Ledger
        Inside a snapshot.
    history : History
        Of the same snapshot.
    subject : Subject
        Of a job that has published something.
    period : str, optional
        None: all dates.
    together : DayTotal, optional
        The sum of everything public about the date; None where it is a single release, and for all dates.
    audience : {"public", "auditor"}, default "public"
    delta : float, default 1e-6
        At which every ε is stated.

    Raises
    ------
    ArgumentError
        If nothing is published of that date.
    """
    published = Published(ledger, history, subject)
    if period is not None and period not in published.periods:
        raise ArgumentError(
            f"nothing is published of {period}: the ledger holds releases of this job, as its file is now, for "
            f"{_stretch(published.periods)}. Name a date of these, or publish this one first."
        )
    shown = published.about(published.periods[-1] if period is None else period)
    promises, places = promises_of(published.everything() if period is None else shown, delta)
    total, reason = None, ""
    try:
        total = history.totals.total(unit_text(subject.unit))
    except NoEvidenceError as error:
        reason = str(error)
    # To the public a ledger's other periods are nothing that has been published.
    periods = None if audience == "auditor" else published.periods
    account = _account(
        ledger, history, subject, audience=audience, delta=delta, total=total, reason=reason, periods=periods
    )
    if period is None and len(history.lines) > 1:
        unit = unit_text(subject.unit)
        own = all(line.sequence in subject.entries for line in history.lines if line.row.unit == unit)
        together = DayTotal(total=total, reason=reason, own=own)
    about = "" if period is None else f" about {printable(period)}"
    first = 0
    if together is not None and together.total is not None:
        documented = audience == "auditor" or together.own
        everything = promise_of(f"{EVERYTHING}{about}", together.total, delta, documented=documented)
        promises, first = (everything, *promises), 1
    latest = (
        published.latest()
        if period is None
        else max((release.entry for release in shown), key=lambda release: release.sequence)
    )
    return Report(
        title=printable(subject.title),
        period=_stretch(published.periods) if period is None else printable(period),
        audience=audience,
        lead=promises[0].statement if together is None or first else None,
        lead_reason="" if together is None else together.reason,
        promises=promises,
        releases=tuple(_view(release, subject, first + places[release.key], delta) for release in shown),
        series=tuple(_series(published, subject)) if period is None else (),
        ledger=account,
        checks=subject.checks if audience == "auditor" else (),
        provenance=Provenance(
            job=subject.job,
            digest=subject.digest,
            version=VERSION,
            theorems=tuple(dict.fromkeys(theorem for promise in promises for theorem in promise.statement.theorems)),
            head=latest.hash,
        ),
        about=subject.about,
    )


def _stretch(periods: Sequence[str]) -> str:
    return periods[0] if len(periods) == 1 else f"{periods[0]} to {periods[-1]}"


def _view(read_release: ReadRelease, subject: Subject, promise: int, delta: float) -> ReleaseView:
    release = read_release.release()
    mechanism = release.certificate.mechanism
    return ReleaseView(
        name=read_release.name,
        period=read_release.entry.period,
        asked=printable(subject.questions[read_release.name]),
        rule=release.error.suppression,
        table=published_table(release),
        k=mechanism.k,
        error=None if mechanism.noise is None else release.error,
        sentence=read_release.certificate().sentence(delta),
        promise=promise,
        id=release.id,
        revision=read_release.entry.revision,
        files=tuple(
            file
            for suffix in subject.suffixes
            if (file := f"{subject.prefix}{read_release.entry.period}/{read_release.name}.{suffix}") in subject.files
        ),
    )


def _series(published: Published, subject: Subject) -> Iterator[Series]:
    for name in subject.questions:
        periods = published.named(name)
        if periods:
            shown = periods[-MAX_PERIODS:]
            releases = {period: published.read(period, name).release() for period in shown}
            yield series_of(name, releases, more_periods=len(periods) - len(shown))


def _account(
    ledger: Ledger,
    history: History,
    subject: Subject,
    *,
    audience: Audience,
    delta: float,
    total: Certificate | None,
    reason: str,
    periods: Container[str] | None,
) -> LedgerAccount:
    """Return what the ledger says about the job's unit; `periods` are those that may be named."""
    unit = unit_text(subject.unit)
    own = [line for line in history.lines if line.row.unit == unit]
    budgets = spent(history.totals, unit, seconds=_SECONDS)
    points = spending(history, unit, delta, max_points=_MAX_POINTS, periods=periods, seconds=_SECONDS)
    location = None if audience == "auditor" else "LEDGER"
    return LedgerAccount(
        unit=", ".join(map(printable, subject.unit)),
        releases=len(own),
        waiting=sum(line.state == "reserved" for line in own),
        total=None if total is None else Statement.of(total, delta),
        reason=reason,
        declared=tuple(declaration.declares for declaration in history.evidence),
        budgets=tuple(_budget_line(use, adds_up=total is not None) for use in budgets),
        delta=delta,
        points=tuple(replace(point, period=printable(point.period), at_one=None) for point in points),
        head=history.head,
        verify=verify_command(ledger, history.head, location),
        remarks=tuple(_remarks(history, own, subject, audience)),
    )


def _budget_line(use: Spent, *, adds_up: bool) -> BudgetLine:
    known = use.complete and (adds_up or use.epsilon < math.inf)
    return BudgetLine.of(use.budget, use.measure, use.epsilon if known else None)


def _remarks(history: History, own: Sequence[Entry], subject: Subject, audience: Audience) -> list[str]:
    listed, newest = [], {line.key: line.revision for line in own if line.state == "published"}
    corrected = [line for line in own if line.sequence in subject.entries and line.revision < newest[line.key]]
    if corrected:
        number, periods = len(corrected), sorted({printable(line.standing.period) for line in corrected})
        tables = f"{number_of(number, 'earlier table')} of {_stretch(periods)}, replaced by corrections,"
        listed.append(f"{tables} {_is(number)} public, too, and in the total.")
    others = sum(line.state == "published" and line.sequence not in subject.entries for line in own)
    if others:
        listed.append(
            f"{number_of(others, 'release')} of the ledger {_is(others)} not of this job as its file is now: the total "
            f"counts {'it' if others == 1 else 'them'}, the tables and dates are not shown here."
        )
    waiting = sum(line.state == "reserved" for line in own)
    if waiting:
        listed.append(
            f"{number_of(waiting, 'release')} {_is(waiting)} charged and not public: the total counts "
            f"{'it' if waiting == 1 else 'them'}."
            + (" A run is under way or was stopped; running it again finishes it." if audience == "auditor" else "")
        )
    units = sorted({line.row.unit for line in history.lines} - {unit_text(subject.unit)})
    if units:
        named = "; ".join(printable(unit_named(unit)) for unit in units)
        listed.append(
            f"The ledger also holds releases for other privacy units ({named}), which are not in the total: what they "
            "tell about the same people comes on top."
        )
    return listed


def _is(number: int) -> str:
    return "is" if number == 1 else "are"
