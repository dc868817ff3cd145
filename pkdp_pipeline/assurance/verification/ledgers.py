"""The claims that only the ledger can settle: that it holds this very release, and that nothing undoes it since."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pkdp_pipeline.assurance.verification.claims import Claim, Kind, failed, not_checked, passed
from pkdp_pipeline.assurance.verification.opening import Opened
from pkdp_pipeline.certificates.certificate import Certificate
from pkdp_pipeline.certificates.release_certificate import ReleaseCertificate
from pkdp_pipeline.errors import ArgumentError, LedgerError, NoEvidenceError, PkdpError
from pkdp_pipeline.model.wording import rounded_up

if TYPE_CHECKING:
    from pkdp_pipeline.ledger import Entry
    from pkdp_pipeline.ledger.chain import Event
    from pkdp_pipeline.ledger.views.reading import Reading

__all__ = ["CHAIN", "HOLDS", "STANDING", "chain_claims", "held_claims", "without_ledger"]

CHAIN = "The ledger's chain and everything derived from it are intact."
HOLDS = "The ledger holds exactly this."
STANDING = "Nothing that the ledger holds undoes what is certified."
_AT = (0.1, 0.5, 1.0, 2.0, 5.0)
_SPARE = 1.0 + 1e-9
_HEAD = "The chain holds the head that the certificate names."
_COUNTS = "The counts are those that were published."
_ASSUMPTIONS = "What is declared about the attacker and the releases is what the curator declared before looking."


def without_ledger(kind: Kind) -> Iterator[Claim]:
    """Yield what cannot be told from a file alone."""
    if kind != "certificate":
        yield not_checked(
            "counts.published",
            _COUNTS,
            "The file alone cannot tell: whoever changes a count and seals the file anew has one that looks the same. "
            "The ledger can, with --ledger, or whoever has the release as it was published: compare the ids.",
        )
    yield not_checked(
        "assumptions.declared",
        _ASSUMPTIONS,
        "The file alone cannot tell: one that is consistent for other assumptions looks the same. The ledger can, with "
        "--ledger; whether the declared assumptions are true, no program can.",
    )


def chain_claims(reading: Reading, named: str | None) -> Iterator[Claim]:
    """Yield whether the ledger verifies, and whether its chain holds the head `named` by a certificate."""
    from pkdp_pipeline.ledger.chain import GENESIS

    try:
        reading.ledger.verify()
    except LedgerError as error:
        yield failed("ledger.chain", CHAIN, str(error))
        return
    head = reading.ledger.head()
    yield passed("ledger.chain", CHAIN, "Verified from its first event to its last.", head=head)
    if named is not None:
        try:
            reading.ledger.verify(named, contents=False)
        except (LedgerError, ArgumentError) as error:
            yield failed("ledger.head", _HEAD, str(error))
        else:
            first = "It is the start of every chain: nothing was charged before."
            yield passed("ledger.head", _HEAD, first if named == GENESIS else "It does.", head=named)


def held_claims(reading: Reading, file: Opened, certificate: Any) -> Iterator[Claim]:
    """Yield whether the ledger holds a release's bytes, or a certificate, and what stands beside it by now."""
    with reading.database.snapshot():
        event = _found(reading, file)
        entry = None if event is None else _entry(reading, event)
        total = _total_claim(reading, file) if event is None else None
    if event is None:
        yield total or failed("ledger.holds", HOLDS, _NO_SUCH[file.kind])
        return
    yield _holds(event, entry, file)
    if entry is not None and isinstance(certificate, ReleaseCertificate):
        yield _standing(reading, entry, certificate)


def _found(reading: Reading, file: Opened) -> Event | None:
    """Return the latest event that holds the file: its bytes, or its certificate."""
    from pkdp_pipeline.ledger.chain import Journal

    found = None
    for event in Journal(reading.database).events(reading.ledger.dataset):
        if file.kind == "release":
            if event.content == file.content:
                found = event
        elif event.certificate is not None and _same_document(event.certificate, file.document):
            found = event
    return found


def _same_document(text: str, document: dict[str, Any]) -> bool:
    try:
        return bool(json.loads(text) == document)
    except ValueError:
        return False


def _entry(reading: Reading, event: Event) -> Entry | None:
    for entry in reading.ledger.entries():
        if (entry.key, entry.revision) == (event.key, event.revision):
            return entry
    return None


def _holds(event: Event, entry: Entry | None, file: Opened) -> Claim:
    what = "release, byte by byte" if file.kind == "release" else "certificate, number by number and word by word"
    if entry is None:
        return failed("ledger.holds", HOLDS, "It was charged there and given back: it was never published.")
    if entry.state != "published":
        return failed("ledger.holds", HOLDS, "It is charged there and was never published.")
    where = f"event {event.sequence}, {entry.standing.label}, {entry.period}"
    newer = ""
    if event.sequence < _latest(entry, event):
        newer = " A newer certificate was issued for the same table since."
    return passed("ledger.holds", HOLDS, f"It holds this {what}: {where}.{newer}", event=event.sequence)


def _latest(entry: Entry, event: Event) -> int:
    """Return the sequence of the event itself, or one more where the entry has another certificate by now."""
    same = event.certificate is None or _same_document(entry.certificate, json.loads(event.certificate))
    same = same and (event.content is None or event.content == entry.content)
    return event.sequence + (not same)


def _standing(reading: Reading, entry: Entry, certificate: ReleaseCertificate) -> Claim:
    key = "ledger.standing"
    try:
        allowed = reading.ledger.admission(entry)
    except PkdpError as error:
        return failed(key, STANDING, str(error))
    newest = Certificate.from_json(entry.certificate)
    for one, other in ((certificate, newest), (certificate.worst_case, newest.worst_case)):
        for epsilon in _AT:
            if other.delta(epsilon) > one.delta(epsilon) * _SPARE:
                return failed(
                    key,
                    STANDING,
                    f"The same table was certified anew since, and the newest certificate promises less: at ε = "
                    f"{epsilon:g} it has δ = {rounded_up(other.delta(epsilon))}.",
                    epsilon=epsilon,
                )
    if certificate.has_partial_knowledge and not allowed.claims:
        return failed(
            key,
            STANDING,
            "Other releases about these people stand beside it by now, so what it says about an attacker who is unsure "
            "of others holds no more.",
        )
    if not allowed.alone and certificate.context is not None and not certificate.context.beside:
        return passed(
            key, STANDING, "Other releases stand beside it by now, which its sentence does not say; its numbers hold."
        )
    alone = "It stands alone" if allowed.alone else "What stands beside it is covered by what was declared"
    return passed(key, STANDING, f"{alone}: what it claims is what it may claim.")


def _total_claim(reading: Reading, file: Opened) -> Claim | None:
    """Return the claim that a certificate is a total of the ledger; None where it is none."""
    from pkdp_pipeline.ledger.account import units_of
    from pkdp_pipeline.ledger.views.reading import stated_total

    if file.kind != "certificate":
        return None
    for unit in units_of(reading.database, reading.ledger.dataset):
        try:
            total = stated_total(reading, unit)
        except NoEvidenceError:
            continue
        # Its numbers are compared elsewhere: another processor may have computed them.
        if Certificate.from_json(json.dumps(file.document)) == total:
            return passed("ledger.holds", HOLDS, "It is the total of everything that is charged by now.")
    return None


_NO_SUCH = {
    "release": "The ledger holds no such release: it was altered, or is from elsewhere.",
    "certificate": (
        "The ledger holds no such certificate, and its totals by now are others: it was altered, is from elsewhere, or "
        "is a total that has grown since."
    ),
}
