"""Verification: the claims of a published file, each recomputed or attacked, with its outcome in plain words.

Claims that a ledger settles: it is intact, it holds what a file shows, and nothing has undone that since.
"""

from __future__ import annotations

import functools
import json
import marshal
import os
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any

from pkdp_pipeline.certificates.certificate import Certificate
from pkdp_pipeline.certificates.codec import differences, is_ours, parsed
from pkdp_pipeline.certificates.release_certificate import ReleaseCertificate, release_certificate
from pkdp_pipeline.errors import ArgumentError, LedgerError, NoEvidenceError
from pkdp_pipeline.extras.assurance.verification.attacking import Effort, attack_claims
from pkdp_pipeline.extras.assurance.verification.claims import (
    BREAKS,
    BrokenError,
    Claim,
    Kind,
    Nested,
    Verification,
    certificate_claims,
    checked,
)
from pkdp_pipeline.extras.assurance.verification.files import Opened, file_claims, opened, release_table_claims
from pkdp_pipeline.ledger import Entry, Ledger
from pkdp_pipeline.ledger.chain import GENESIS, Event
from pkdp_pipeline.ledger.history import number_of, term_changes
from pkdp_pipeline.ledger.reading import open_for_reading
from pkdp_pipeline.ledger.records import verify_chain
from pkdp_pipeline.ledger.sealed import MAX_ROWS, Sealed, has_period_column, release_id
from pkdp_pipeline.model.context import Context
from pkdp_pipeline.model.wording import rounded_up, whole_number
from pkdp_pipeline.plugins import view
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
    kinds, recomputed = Counter[str](), dict[bytes, ReleaseCertificate]()

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

    verify_chain(ledger.records, head=head, contents=True, look=look)
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


def _recompute(sealed: Sealed, recomputed: dict[bytes, ReleaseCertificate]) -> None:
    """Verify one release; where only the publication differs from one before, compare its facts and its sentence alone.

    A year of equal releases has one set of numbers: they are recomputed once. Every release's facts, limits and table
    are its own.
    """
    document = parsed(sealed.text)
    context = document["context"]
    own = {name: value for name, value in document.items() if name not in ("context", "sentence")}
    # Equal bytes of this form have equal values of equal types: 1, 1.0 and true differ. Version 2 shares no objects.
    same = marshal.dumps([context is None, own], 2)
    if same not in recomputed:
        recomputed[same] = certificate = release_certificate(sealed.text)
        sealed.cells.check(certificate)
        certificate.verify(any_version=True)
        return
    certificate = replace(recomputed[same], context=None if context is None else Context.from_dict(context))
    sealed.cells.check(certificate)
    words = differences("", document["sentence"], certificate.sentence()) if is_ours(document) else ()
    if words or context != (certificate.context and certificate.context.to_dict()):
        raise ArgumentError("its certificate's sentence is not what its facts give: the certificate was altered.")


__all__ = ["CONFIDENCE", "DRAWS", "Claim", "Verification", "verify"]

DRAWS = 20_000
CONFIDENCE = 0.999999


def verify(
    path: str | os.PathLike[str],
    *,
    ledger: str | os.PathLike[str] | None = None,
    draws: int = DRAWS,
    confidence: float = CONFIDENCE,
    seed: int = 0,
    rows: int = MAX_ROWS,
) -> Verification:
    """Check every claim of a release, a certificate or a report.

    Parameters
    ----------
    path : path-like
        A release (Parquet), a certificate (JSON of `Certificate.to_json`) or a report (HTML, Markdown or JSON). Which
        of them it is, is found out from its content.
    ledger : path-like or str, optional
        The ledger it was published through: a file, or a ``postgresql://`` URL; it is only read. Without one, a
        certificate that is consistent for other assumptions cannot be told from the one that was published.
    draws : int, default 20000
        Draws of every simulated attack; at least 100.
    confidence : float, default 0.999999
        The least probability with which a sound file passes all simulations; strictly between 0 and 1.
    seed : int, default 0
        Seed of the simulations: the same seed gives the same draws.
    rows : int, default 200,000
        A release with more rows, or more than a kilobyte for each of so many, is not read; nor a certificate or report
        of more than 128 bytes for each.

    Returns
    -------
    Verification
        Every claim with its outcome; ``passed`` says whether none failed.

    Raises
    ------
    ConfigError
        If the file cannot be read.
    ArgumentError
        If it is none of ours, or larger than allowed, or an argument is out of range.
    LedgerError, TemporaryError
        If there is no such ledger, or it cannot be used.

    Notes
    -----
    *Guarantee*: a claim passes only if what is stored is what is recomputed, or weaker, and no attack exceeds it by
    more than one part in 10⁹ (for the rounding of floats); a sound file fails with probability ``1 - confidence`` at
    most, by chance of the simulations. *Rounding*: what an attacker attains is rounded down.
    """
    for name, value in (("path", path), ("ledger", ledger)):
        if not (isinstance(value, str | os.PathLike) or (name == "ledger" and value is None)):
            raise ArgumentError(f"{name} must be a path, as text or a pathlib.Path, not {type(value).__name__}.")
    number = whole_number("draws", draws, least=100)
    whole_number("seed", seed, least=0)
    whole_number("rows", rows, least=1)
    if isinstance(confidence, bool) or not isinstance(confidence, int | float) or not 0.0 < confidence < 1.0:
        raise ArgumentError("confidence must be strictly between 0 and 1.")
    file = opened(path, rows)
    effort = Effort(draws=number, error=1.0 - confidence, seed=seed)
    check = _report if file.kind == "report" else _single
    claims = check(file, None if ledger is None else os.fspath(ledger), effort)
    return Verification(kind=file.kind, file=file.name, claims=tuple(claims))


def _single(file: Opened, ledger: str | None, effort: Effort) -> Iterator[Claim]:
    """Yield the claims of a release or a certificate, and what the ledger says about it."""
    if file.kind == "release":
        yield from file_claims(file)
        if file.problem:
            yield Claim("certificate.structure", "fail", f"It cannot be read: {file.problem}")
            return
    claims, nested = _certified(file.document, "certificate", effort)
    if file.kind == "release":
        yield from release_table_claims(file.table, nested)
    yield from claims
    if ledger is None:
        yield from without_ledger(file.kind)
        return
    certificate = nested[-1].certificate if nested else None
    about = certificate.context if isinstance(certificate, ReleaseCertificate) else None
    further = functools.partial(held_claims, file=file, certificate=certificate)
    dataset, head = (None, None) if about is None else (about.dataset, about.head)
    yield from ledger_claims(ledger, dataset, head, further)


def _report(file: Opened, ledger: str | None, effort: Effort) -> Iterator[Claim]:
    """Yield the claims of a report, which the package that makes reports knows."""
    claims: Iterator[Claim] = view("report.claims")(
        file, ledger, lambda document, prefix, shares: _certified(document, prefix, effort.shared(shares))
    )
    yield from claims


def _certified(document: dict[str, Any], prefix: str, effort: Effort) -> tuple[list[Claim], list[Nested]]:
    """Return all claims of one certificate, and it with its parts where they could be made again."""
    claims, nested = certificate_claims(document, prefix)
    try:
        claims += list(attack_claims(nested, effort, prefix)) if nested else ()  # all of them, or none
    except BREAKS as error:
        why = f"The attackers of what it names cannot be written down ({type(error).__name__})."
        claims.append(Claim(f"{prefix}.enumerated", "not_checked", why))
    return claims, nested
