"""Published: what a report is about, which releases of the ledger it shows, and what they promise."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from pkdp_pipeline.certificates.certificate import Certificate
from pkdp_pipeline.certificates.release_certificate import ReleaseCertificate, release_certificate
from pkdp_pipeline.certificates.sentences import BY_ITSELF, BY_NOISE
from pkdp_pipeline.errors import LedgerError
from pkdp_pipeline.extras.report.content import About, CheckLine, Promise
from pkdp_pipeline.extras.report.statement import GuaranteeCurve, Statement, knowledge_curves, what_if
from pkdp_pipeline.ledger import Entry, Ledger
from pkdp_pipeline.ledger.history import History
from pkdp_pipeline.ledger.rows import describe
from pkdp_pipeline.model.evidence import BoundedDependence
from pkdp_pipeline.releases.release import Release

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
