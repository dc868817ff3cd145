"""Claims that a ledger settles: it is intact, it holds what a file shows, and nothing has undone that since."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from pkdp_pipeline.certificates.certificate import Certificate
from pkdp_pipeline.certificates.codec import differences, is_ours
from pkdp_pipeline.certificates.release_certificate import ReleaseCertificate, release_certificate
from pkdp_pipeline.errors import ArgumentError, LedgerError, NoEvidenceError
from pkdp_pipeline.extras.assurance.verification.claims import (
    BrokenError,
    Claim,
    Kind,
    checked,
)
from pkdp_pipeline.extras.assurance.verification.files import Opened
from pkdp_pipeline.ledger import Entry, Ledger
from pkdp_pipeline.ledger.chain import GENESIS, Event
from pkdp_pipeline.ledger.reading import open_for_reading
from pkdp_pipeline.ledger.sealed import Sealed, has_period_column, release_id
from pkdp_pipeline.ledger.verification import verify
from pkdp_pipeline.ledger.words import number_of, term_changes
from pkdp_pipeline.model.wording import rounded_up
from pkdp_pipeline.releases.publish import derived_release
from pkdp_pipeline.releases.release import Release

_EPSILONS = (0.1, 0.5, 1.0, 2.0, 5.0)
_TOLERANCE_FACTOR = 1.0 + 1e-9
_ANY_COUNTS = (
    "The file alone cannot tell: a changed count in a file that is sealed anew looks the same. The ledger can, with "
    "--ledger, and so can anyone who has the release as it was published: compare the ids."
)
_ANY_ASSUMPTIONS = (
    "The file alone cannot tell: one that is consistent for other assumptions looks the same. The ledger can, with "
    "--ledger; whether the declared assumptions are true, no program can."
)
_NO_SUCH = {
    "release": "The ledger holds no such release: it was altered, or is from elsewhere.",
    "certificate": (
        "The ledger holds no such certificate, and its totals by now are others: it was altered, is from elsewhere, or "
        "is a total that has grown since."
    ),
}


def without_ledger(kind: Kind) -> Iterator[Claim]:
    """Yield what cannot be told from a file alone."""
    if kind != "certificate":
        yield Claim("counts.published", "not_checked", _ANY_COUNTS)
    yield Claim("assumptions.declared", "not_checked", _ANY_ASSUMPTIONS)


def ledger_claims(
    location: str, dataset: str | None, head: str | None, further: Callable[[Ledger], Iterator[Claim]]
) -> Iterator[Claim]:
    """Yield whether a ledger has the data set that a file names and verifies, with its head; then what is further."""

    def chain() -> tuple[str, dict[str, str]]:
        ledger.verify()
        return "Verified from its first event to its last.", {"head": ledger.head()}

    def names() -> tuple[str, dict[str, str]]:
        assert head is not None
        ledger.verify(head, contents=False)
        first = "It is the start of every chain: nothing was charged before."
        return first if head == GENESIS else "It does.", {"head": head}

    with ExitStack() as opened:
        try:
            ledger = opened.enter_context(open_for_reading(location, dataset))
        except ArgumentError:
            if dataset is None:
                raise
            yield Claim("ledger.holds", "fail", "The ledger holds no data set of the name that the file gives.")
            return
        chained = next(checked({"ledger.chain": chain}))
        yield chained
        if head is not None and chained.outcome == "pass":
            yield from checked({"ledger.head": names})
        yield from further(ledger)


def held_claims(ledger: Ledger, file: Opened, certificate: Certificate | None) -> Iterator[Claim]:
    """Yield whether the ledger holds a release's bytes, or a certificate, and what stands beside it by now."""
    with ledger.records.snapshot():
        event, entry = _event_of(ledger, file, certificate)
        yield from checked({"ledger.holds": lambda: _holds(ledger, event, entry, file)})
    if entry is not None and isinstance(certificate, ReleaseCertificate):
        yield from checked({"ledger.standing": lambda: _standing(ledger, entry, certificate)})


def _event_of(ledger: Ledger, file: Opened, certificate: Certificate | None) -> tuple[Event | None, Entry | None]:
    """Return the latest event that holds the file, its bytes or its certificate, and the entry that this is about.

    Where the file is a display that was derived from another one, the event holds that one.
    """
    event = None
    # A column that names the period is not in the ledger's bytes; the id is of the table and the certificate.
    labelled = release_id(file.table, file.text) if has_period_column(file.metadata) else None
    for candidate in ledger.records.events():
        if isinstance(certificate, ReleaseCertificate) and certificate.derived_from is not None:
            matches = _is_source(candidate, file, certificate)
        elif file.kind != "release":
            matches = _states(candidate.certificate, file.document)
        else:
            matches = candidate.content == file.content if labelled is None else candidate.release_id == labelled
        event = candidate if matches else event
    for entry in () if event is None else ledger.entries():
        if event is not None and (entry.key, entry.revision) == (event.key, event.revision):
            return event, entry
    return event, None


def _is_source(event: Event, file: Opened, certificate: ReleaseCertificate) -> bool:
    """Return whether the file follows from the release that an event holds."""
    if event.content is None:
        return False
    release = Release.from_bytes(event.content)
    if release.certificate.mechanism != certificate.derived_from:
        return False
    derived = derived_release(release, certificate.mechanism)
    if file.kind != "release":
        return _states(derived.certificate.to_json(), file.document)
    return derived.id == release_id(file.table, file.text)


def _states(text: str | None, document: dict[str, Any]) -> bool:
    try:
        return text is not None and bool(json.loads(text) == document)
    except ValueError:
        return False


def _holds(ledger: Ledger, event: Event | None, entry: Entry | None, file: Opened) -> str | tuple[str, dict[str, int]]:
    if event is None:
        if file.kind == "certificate" and _is_total(ledger, file):
            return "It is the total of everything that is charged by now."
        raise BrokenError(_NO_SUCH[file.kind])
    if entry is None:
        raise BrokenError("It was charged there and given back: it was never published.")
    if entry.state != "published":
        raise BrokenError("It is charged there and was never published.")
    how = f"release, {'value by value' if has_period_column(file.metadata) else 'byte by byte'}"
    scope = how if file.kind == "release" else "certificate, number by number and word by word"
    where = f"event {event.sequence}, {entry.standing.label}, {entry.period}"
    same = event.certificate is None or _states(entry.certificate, json.loads(event.certificate))
    same = same and event.content in (None, entry.content)
    newer = "" if same else " A newer certificate was issued for the same table since."
    return f"It holds this {scope}: {where}.{newer}", {"event": event.sequence}


def _standing(ledger: Ledger, entry: Entry, certificate: ReleaseCertificate) -> str:
    allowed = ledger.admission(entry)
    newest = Certificate.from_json(entry.certificate)
    for stated, other in ((certificate, newest), (certificate.worst_case, newest.worst_case)):
        for epsilon in _EPSILONS:
            if other.delta(epsilon) > stated.delta(epsilon) * _TOLERANCE_FACTOR:
                raise BrokenError(
                    f"The same table was certified anew since, and the newest certificate promises less: at ε = "
                    f"{epsilon:g} it has δ = {rounded_up(other.delta(epsilon))}.",
                    epsilon=epsilon,
                )
    if certificate.has_partial_knowledge and not allowed.claims:
        raise BrokenError(
            "Other releases about these people stand beside it by now, so what it says about an attacker who is unsure "
            "of others no longer holds."
        )
    if not allowed.alone and certificate.context is not None and not certificate.context.beside:
        return "Other releases stand beside it by now, which its sentence does not say; its numbers hold."
    alone = "It stands alone" if allowed.alone else "The declared evidence covers what stands beside it"
    return f"{alone}: what it claims is what it may claim."


def _is_total(ledger: Ledger, file: Opened) -> bool:
    """Return whether a certificate is a total of the ledger."""
    totals = ledger.totals()
    for unit in totals.account.units:
        try:
            total = totals.total(unit)
        except NoEvidenceError:
            continue
        # Its numbers are compared elsewhere: another processor may have computed them.
        if Certificate.from_json(json.dumps(file.document)) == total:
            return True
    return False


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """A ledger that was found to be in order.

    Attributes
    ----------
    head_position : int or None
        The event whose hash was given as the head; None if none was.
    remarks : tuple of str
        Further remarks, a line each.
    """

    events: int
    head: str
    head_position: int | None
    remarks: tuple[str, ...]


def check(ledger: Ledger, *, head: str | None) -> Checked:
    """Check a data set's ledger and recompute what its releases promise.

    Raises `LedgerError`, naming what was altered; `ArgumentError` if `head` is no hash, or the one that stands before
    every chain.
    """
    if head is not None and (len(head) != 64 or set(head) - set("0123456789abcdef")):
        raise ArgumentError("--head must be a hash of 64 hexadecimal digits, as verify prints it.")
    if head == GENESIS:
        raise ArgumentError(
            "--head of 64 zeros says nothing: it stands before the first event of every ledger, and a ledger's first "
            "release names it. Give the head that verify printed, or one that a later release or a run names."
        )
    last, head_position, unreadable = None, None, []
    kinds, recomputed = Counter[str](), set[str]()

    def look(event: Event, sealed: Sealed | None) -> None:
        nonlocal last, head_position
        last = event.hash
        kinds[event.kind] += 1
        head_position = event.position if event.hash == head else head_position
        if event.kind == "unreadable":
            unreadable.append(event.key)
        if sealed is None:
            return
        try:
            _recompute(sealed, recomputed)
        except ArgumentError as error:
            raise LedgerError(f"the release of event {event.sequence} does not hold: {error}") from error

    verify(ledger.records, head=head, contents=True, look=look)
    with ledger.records.snapshot():
        changes = tuple(term_changes(ledger))
    events, charged = kinds.total(), kinds["reserved"] - kinds["given_back"]
    waiting = charged - kinds["published"]
    public = f" ({waiting:,} of them charged and not public)" if waiting else ""
    again = f", {number_of(kinds['recertified'], 'certificate')} issued again" if kinds["recertified"] else ""
    remarks = [
        f"{number_of(charged, 'release')}{public}{again}: every stored table is as its certificate says. "
        f"{number_of(len(recomputed), 'different certificate')} recomputed."
    ]
    if unreadable:
        remarks.append(f"No gate answers about {', '.join(map(repr, unreadable))}, which could not be read.")
    remarks += [f"{change.words[0].upper()}{change.words[1:]}." for change in changes[1:]]
    if head_position is None:
        remarks.append(
            "A chain cannot show that its end was cut off: keep the head elsewhere, and check with it next time:"
        )
    elif head_position == events:
        remarks.append(f"The chain ends with the given head, event {head_position:,} of {events:,}.")
    else:
        remarks.append(
            f"The chain holds the given head, event {head_position:,} of {events:,}; a cut after it would not show. A "
            "later head covers more:"
        )
    return Checked(events=events, head=last or ledger.head(), head_position=head_position, remarks=tuple(remarks))


def _recompute(sealed: Sealed, recomputed: set[str]) -> None:
    """Verify one release; where only the publication differs from one before, compare its facts and its sentence alone.

    A year of equal releases has one set of numbers: they are recomputed once. Every release's facts, limits and table
    are its own.
    """
    certificate = release_certificate(sealed.text)
    sealed.cells.check(certificate)
    document = json.loads(certificate.to_json())
    context = document["context"]
    own = {name: value for name, value in document.items() if name not in ("context", "sentence")}
    same = json.dumps([context is None, own], sort_keys=True)
    if same not in recomputed:
        certificate.verify(any_version=True)
        recomputed.add(same)
        return
    words = differences("", document["sentence"], certificate.sentence()) if is_ours(document) else ()
    if words or context != (certificate.context and certificate.context.to_dict()):
        raise ArgumentError("its certificate's sentence is not what its facts give: the certificate was altered.")
