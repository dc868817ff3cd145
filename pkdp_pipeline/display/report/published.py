"""Published: which releases of the ledger a report shows, and each of them as it is read."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from pkdp_pipeline.certificates.release_certificate import ReleaseCertificate, release_certificate
from pkdp_pipeline.display.report.subject import Subject
from pkdp_pipeline.errors import LedgerError
from pkdp_pipeline.ledger import Entry, Ledger
from pkdp_pipeline.ledger.parts import describe
from pkdp_pipeline.ledger.views.history import History, Line
from pkdp_pipeline.model.evidence import BoundedDependence
from pkdp_pipeline.releases.release import Release

__all__ = ["OWN_CAVEATS", "Company", "Published", "ReadRelease", "certificate_in", "guarantee_key"]

Company = Literal["alone", "beside", "undone"]
"""Whether a release's certificate says what its promise is: it does; it does by itself, whatever stands beside it;
others undo what it says about an attacker who is unsure of other people, and what its noise gives is left."""

_BESIDE = (
    "Other releases about these people stand beside it: this is about the release by itself, and what they tell "
    "together is stated by the ledger's total."
)
_UNDONE = (
    "Other releases about these people stand beside it, so that only its noise counts here: what its certificate says "
    "about an attacker who is unsure of other people would hold only if nothing else were published."
)
OWN_CAVEATS = (_BESIDE, _UNDONE)
"""What a report adds to certificates: how a release stands beside others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadRelease:
    """One of the job's releases about one period, in its newest revision."""

    name: str
    entry: Entry
    company: Company

    @property
    def period(self) -> str:
        """The period it is about."""
        return self.entry.period

    def certificate(self) -> ReleaseCertificate:
        """Return what is certified of it beside all else that the ledger holds."""
        return certificate_in(self.company, self.entry.certificate)

    def release(self) -> Release:
        """Return the release, read from the ledger's bytes and checked against its id."""
        if self.entry.content is None:
            raise LedgerError(
                f"the ledger's entry {self.entry.sequence} has no bytes: check it with pkdp ledger verify."
            )
        return Release.from_bytes(self.entry.content, replayed=True)


@dataclass(frozen=True, kw_only=True)
class Published:
    """The job's published releases, the newest revision of each, by period and name.

    Parameters
    ----------
    ledger : Ledger
    history : History
    subject : Subject
    """

    ledger: Ledger
    history: History
    subject: Subject
    _lines: dict[tuple[str, str], Line] = field(init=False, repr=False, default_factory=dict)

    def __post_init__(self) -> None:
        for line in self.history.lines:  # in the order of their charge, so that later revisions come later
            name = self.subject.held.get(line.holding.entry)
            if name is not None and line.state == "published":
                former = self._lines.get((line.standing.period, name))
                if former is None or former.revision <= line.revision:
                    self._lines[line.standing.period, name] = line

    @cached_property
    def periods(self) -> tuple[str, ...]:
        """The periods of which something is published, in order."""
        return tuple(sorted({period for period, _ in self._lines}))

    @cached_property
    def _crowded(self) -> frozenset[int]:
        """The entries beside which others stand; without evidence those of other periods do."""
        groups = self.history.components()
        if not self.history.evidence and len(self.history.lines) > 1:
            groups = [[one for group in groups for one in group]]
        return frozenset(one.entry for group in groups if len(group) > 1 for one in group)

    def _company(self, line: Line) -> Company:
        """Return how a release counts in the ledger's total; see `add_up`."""
        part = self.history.parts[line.holding.part]
        if not part.has_partial_knowledge or line.holding.entry not in self._crowded:
            return "alone"
        covered = any(isinstance(one, BoundedDependence) for one in self.history.evidence)
        return "beside" if covered or part.worst_case_bound is None else "undone"

    def named(self, name: str) -> tuple[str, ...]:
        """Return the periods of which a release of this name is published, in order."""
        return tuple(period for period in self.periods if (period, name) in self._lines)

    def about(self, period: str) -> list[ReadRelease]:
        """Return the releases about one period, in the job's order."""
        return [self.read(period, one.name) for one in self.subject.releases if (period, one.name) in self._lines]

    def read(self, period: str, name: str) -> ReadRelease:
        """Return one release."""
        line = self._lines[period, name]
        entry = self.ledger.find(line.key)
        if entry is None or entry.sequence != line.holding.entry:
            raise LedgerError(
                f"the ledger's entry {line.holding.entry} is not where its key leads: check it with pkdp ledger verify."
            )
        return ReadRelease(name=name, entry=entry, company=self._company(line))

    def everything(self) -> Iterator[ReadRelease]:
        """Yield all of them, one at a time, by period and then in the job's order."""
        for period in self.periods:
            yield from self.about(period)

    def last_of(self, releases: Sequence[ReadRelease] | None = None) -> Entry:
        """Return the ledger's latest entry among some releases; None: among all."""
        if releases is not None:
            return max((one.entry for one in releases), key=lambda entry: entry.sequence)
        period, name = max(self._lines, key=lambda place: self._lines[place].holding.entry)
        return self.read(period, name).entry


def certificate_in(company: Company, text: str) -> ReleaseCertificate:
    """Return the certificate that holds in a company, made of the text of the release's own."""
    certificate = release_certificate(text)
    if company == "undone":
        return certificate.worst_case_only().with_caveats(_UNDONE)
    said = certificate.context is not None and certificate.context.beside
    return certificate if company == "alone" or said else certificate.with_caveats(_BESIDE)


def guarantee_key(certificate: str) -> str:
    """Return what two certificates have in common that promise the same: all but when, and at which head."""
    document = json.loads(certificate)
    context: Mapping[str, object] = document.get("context") or {}
    same: Sequence[tuple[str, object]] = sorted(
        (name, value) for name, value in context.items() if name not in ("period", "head")
    )
    return json.dumps([describe(certificate), same, document.get("caveats")], sort_keys=True)
