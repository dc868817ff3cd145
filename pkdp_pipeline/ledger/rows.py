"""Rows and entries: the outcome of every reservation, from the chain's events alone, and what is shown of it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from pkdp_pipeline.certificates.certificate import Certificate
from pkdp_pipeline.certificates.codec import parsed
from pkdp_pipeline.certificates.composed import part_of, promised_by
from pkdp_pipeline.certificates.release_certificate import ReleaseCertificate
from pkdp_pipeline.errors import LedgerError
from pkdp_pipeline.ledger.chain import Event, Terms
from pkdp_pipeline.model.attacker import AttackerModel
from pkdp_pipeline.model.context import Facts
from pkdp_pipeline.model.mechanisms import Kind, mechanism_from_dict
from pkdp_pipeline.model.period import Period, folded

if TYPE_CHECKING:
    from pkdp_pipeline.model.evidence import Evidence


_EPSILONS = np.array([0.0, 0.01, 0.03, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 5.0, 8.0, 12.0, 20.0])
"""Where the certificates of one table are compared."""

_RELATIVE_TOLERANCE = 1e-9
"""Numbers this close, relatively, count as equal."""


def sha256(text: str) -> str:
    """Return the sha256 of a text, in hex."""
    return hashlib.sha256(text.encode()).hexdigest()


@lru_cache(maxsize=256)
def describe(certificate: str) -> str:
    """Return what a release certificate, given as JSON text, follows from: mechanism, attacker, what is protected.

    And how many cells are declared, where it says so.
    Raises `ArgumentError` or `LedgerError` if it is not the certificate of one release.
    """
    document = parsed(certificate)
    if "mechanism" not in document or "attacker" not in document:
        raise LedgerError("the ledger charges releases one by one: the certificate must be that of one release.")
    content = {name: document[name] for name in ("mechanism", "attacker", "protects", "cells") if name in document}
    return json.dumps(content, sort_keys=True, separators=(",", ":"))


@lru_cache(maxsize=4096)
def certificate_of(description: str) -> ReleaseCertificate:
    """Make again what `describe` returned; the certificate belongs to no publication, and promised something once."""
    content = json.loads(description)
    return ReleaseCertificate(
        mechanism=mechanism_from_dict(content["mechanism"]),
        attacker=AttackerModel.from_dict(content["attacker"]),
        protects=content["protects"],
        cells=content.get("cells"),
    )


def counted(certificates: Iterable[str]) -> tuple[str, ...]:
    """Return which of a release's certificates its totals count with: all that no other one of them covers.

    `certificates`: the JSON texts of all that it ever had, the first one first. The answer begins with one that
    protects what the first does, where one is left, and depends on nothing else of their order but the choice between
    equals.

    Notes
    -----
    *Guarantee*: each of the certificates follows from one of these; `promise_of` is the pointwise largest of them, so a
    total never falls when a release is certified again. *Source*: `docs/composition.md`, rule 11.
    """
    listed = list(certificates)
    kept: list[str] = []
    for text in listed:
        if not any(_covers(describe(other), describe(text)) for other in kept):
            kept = [*(other for other in kept if not _covers(describe(text), describe(other))), text]
    aim = certificate_of(describe(listed[0])).protects
    return tuple(
        sorted(
            kept, key=lambda certificate: (certificate_of(describe(certificate)).protects != aim, describe(certificate))
        )
    )


def promise_of(certificates: Iterable[str]) -> Certificate:
    """Return what totals count a release with: the largest promise of all `certificates` that it ever had.

    It belongs to no publication. Raises `NoEvidenceError` if what leaks beside them says nothing together.
    """
    return promised_by([certificate_of(describe(certificate)) for certificate in counted(certificates)])


@lru_cache(maxsize=4096)
def _covers(description: str, other: str) -> bool:
    """Return whether a certificate of a table implies another one, and is nowhere seen to be smaller.

    Everybody who fits the other's attacker fits its own, and it protects as much: the other holds with its numbers.
    """
    covering, covered = certificate_of(description), certificate_of(other)
    # A supremum over more attackers is no smaller, so the promise holds; the grid only keeps a smaller number from
    # being charged instead.
    if not covered.attacker.fits(covering.attacker):
        return False
    if (
        covered.protects != covering.protects
        and part_of(covering, 1, covered.protects).bounds != part_of(covering, 1, covering.protects).bounds
    ):
        return False
    covering_deltas, covered_deltas = (
        np.append(certified.delta(_EPSILONS), certified.worst_case.delta(_EPSILONS))
        for certified in (covering, covered)
    )
    return bool((covering_deltas >= covered_deltas * (1.0 - _RELATIVE_TOLERANCE)).all())


State = Literal["reserved", "published", "given_back"]
Span = tuple[int | None, int | None, str | None]


def unit_text(unit: Sequence[str]) -> str:
    """Return a privacy unit as it is compared: its columns in order, as JSON."""
    return json.dumps(sorted(unit), ensure_ascii=False, separators=(",", ":"))


class Row(NamedTuple):
    """A row of the table ``entry``: what the events say of one reservation; see ``sql/ledger``.

    Admission and adding up look at the fields up to `part` only: a release that is asked for is a row as well, and an
    account reads no more of those that are charged. A period without dates has no days but its folded `label`.
    """

    unit: str
    kind: Kind
    first_day: int | None
    last_day: int | None
    label: str | None
    source: str | None
    told: int = 0
    id: int = 0
    part: str = ""
    state: State = "reserved"
    time_zone: str | None = None
    dataset: str = ""
    key: str = ""
    revision: int = 1
    published: int | None = None
    certificate: int = 0
    content: int | None = None
    counts: int = 0
    leaks: int = 0

    @classmethod
    def of(cls, standing: Facts, *, total_is_known: bool = False, **stored: Any) -> Row:
        """Return a release as it is charged, or would be; `total_is_known`: its attackers know who is there."""
        period = Period.parse(standing.period)
        first, last = period.days() or (None, None)
        label = folded(period.text) if first is None else None
        unit, kind, stored["time_zone"] = unit_text(standing.unit), standing.kind, standing.time_zone
        return cls(unit, kind, first, last, label, standing.table, int(total_is_known), **stored)

    @property
    def span(self) -> Span:
        """When it is about: days as ordinals, or a folded label."""
        return self.first_day, self.last_day, self.label

    def meets(self, other: Row) -> bool:
        """Return whether the periods of two releases overlap. A label meets itself and every dated period."""
        if self.first_day is None or self.last_day is None or other.first_day is None or other.last_day is None:
            return None in (self.label, other.label) or self.label == other.label
        return self.first_day <= other.last_day and other.first_day <= self.last_day


def after(row: Row | None, event: Event, certificates: Callable[[Row], Iterable[str]]) -> Row:
    """Return what an event makes of its reservation; the one rule for charging, copying and verifying.

    `row`: the row of the same key and revision by the events before; None where nothing is charged. `certificates`
    returns the texts of all certificates that a row's release has had; see `Records.certificates`. Raises `LedgerError`
    if the event cannot follow those before, or its certificate is not that of the release.
    """
    number = event.sequence
    if event.kind == "reserved" and row is None:
        return _reserved(event)
    if event.kind == "published" and row is not None and row.state == "reserved":
        return row._replace(state="published", published=number, content=number)
    if event.kind == "given_back" and row is not None and row.state == "reserved":
        return row._replace(state="given_back")
    if event.kind == "recertified" and row is not None and row.state == "published":
        former, new = [*certificates(row)], str(event.certificate)
        certified = certificate_of(describe(new))
        if certified.mechanism != certificate_of(describe(former[0])).mechanism:
            raise LedgerError("the certificate to be recorded is not that of the release: certify what is published.")
        total_is_known = row.told and int(certified.attacker.total_is_known)
        row, fields = row._replace(certificate=number, content=number, told=total_is_known), _part([*former, new])
        return row if fields["part"] == row.part else row._replace(counts=number, **fields)
    raise LedgerError(
        f"the ledger was altered: event {number} ({event.kind}) cannot follow the events before it. Restore it from a "
        "backup, with a head that a release names."
    )


@lru_cache(maxsize=256)
def facts_of(text: str) -> Facts:
    """Return what a reservation has recorded of its release."""
    # It is read each time that something becomes of the release.
    return Facts.from_dict(json.loads(text))


def _reserved(event: Event) -> Row:
    standing = facts_of(str(event.standing))
    description = describe(str(event.certificate))
    certified = certificate_of(description)
    if certified.mechanism != standing.mechanism or certified.protects != standing.protects:
        raise LedgerError("the certificate to be charged is not that of the release: certify what is published.")
    same = {name: getattr(event, name) for name in ("dataset", "key", "revision")}
    events = dict.fromkeys(("id", "certificate", "counts"), event.sequence)
    total_is_known = certified.attacker.total_is_known
    return Row.of(standing, total_is_known=total_is_known, **same, **events, **_part([str(event.certificate)]))


def part_key(certificates: Iterable[str]) -> str:
    """Return the sha256 of what the certificates that a release counts with follow from."""
    described = [describe(certificate) for certificate in counted(certificates)]
    return sha256(described[0] if len(described) == 1 else json.dumps(described))


def _part(certificates: Sequence[str]) -> dict[str, Any]:
    leaks = any(certificate_of(describe(certificate)).attacker.leakage for certificate in counted(certificates))
    return {"part": part_key(certificates), "leaks": int(leaks)}


def replayed(events: Iterable[Event], certificates: Callable[[Row], Iterable[str]]) -> dict[int, Row]:
    """Return the rows, by id, that the events of one data set give; raises a `LedgerError` as `after` does."""
    rows: dict[int, Row] = {}
    charged: dict[tuple[str, int], Row] = {}
    unreadable: set[str] = set()
    for event in events:
        question = (event.key, event.revision)
        if event.kind == "unreadable" and event.key not in unreadable:
            unreadable.add(event.key)
            continue
        row = charged[question] = after(charged.get(question), event, certificates)
        rows[row.id] = row
        if row.state == "given_back":
            del charged[question]
    return rows


@dataclass(frozen=True, slots=True)
class Entry:
    """One release of a data set, frozen.

    Attributes
    ----------
    row : Row
        The part that admission and adding up look at.
    standing : Facts
        The people, the period, and what is published about them.
    terms : Terms
        The evidence and budgets in force when it was charged.
    certificate : str
        The latest certificate's JSON text.
    release_id : str or None
        None unless published; so is `content`.
    content : bytes or None
        The released bytes.
    created_at : str
        UTC, ISO 8601: when it was published, or else reserved. For reading only.
    head : str
        Head of the chain just before it was charged.
    hash : str
        Hash of the event that holds `content`, or else of the one that reserved it.
    former : tuple of str
        The certificates before the latest one, the first one first.
    """

    row: Row
    standing: Facts
    terms: Terms
    certificate: str = field(repr=False)
    release_id: str | None
    content: bytes | None = field(repr=False)
    created_at: str
    head: str
    hash: str
    former: tuple[str, ...] = field(default=(), repr=False)

    @property
    def sequence(self) -> int:
        """Increasing within the ledger: the event that reserved it."""
        return self.row.id

    @property
    def key(self) -> str:
        """The question; the same key replays `content`."""
        return self.row.key

    @property
    def revision(self) -> int:
        """1, and one more for each time the same question was published anew."""
        return self.row.revision

    @property
    def dataset(self) -> str:
        """The data set's name."""
        return self.row.dataset

    @property
    def state(self) -> State:
        """Whether it is "reserved", "published" or "given_back".

        A reserved release is charged and not public. It stays so until the same request runs again: nobody can tell
        whether it would have been published.
        """
        return self.row.state

    @property
    def certificates(self) -> tuple[str, ...]:
        """The JSON texts of all its certificates, the first one first."""
        return (*self.former, self.certificate)

    @property
    def unit(self) -> tuple[str, ...]:
        """Columns of the privacy unit; empty where every row is a person."""
        return self.standing.unit

    @property
    def period(self) -> str:
        """The period the data are about."""
        return self.standing.period

    @property
    def label(self) -> str:
        """The publication, in the words of the request."""
        return self.standing.label

    @property
    def noiseless(self) -> bool:
        """Whether no noise gives it a finite worst case."""
        return self.standing.noiseless

    @property
    def evidence(self) -> tuple[Evidence, ...]:
        """The evidence in force when it was charged."""
        return self.terms.evidence


@dataclass(frozen=True, slots=True)
class Reservation:
    """The charge of a release before its data are read; made by `Ledger.reserve`.

    Attributes
    ----------
    charged : Entry
        The ledger's entry of it.
    certificate : ReleaseCertificate
        The one that was charged, which the release must carry.
    taken_over : bool
        Whether another run has charged it, and not finished.
    """

    charged: Entry
    certificate: ReleaseCertificate = field(repr=False)
    taken_over: bool = field(default=False, compare=False)
