"""The claims that only the ledger can settle: that it holds this very release, and that nothing undoes it since."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from pkdp_pipeline.assurance.verification.claims import BrokenError, Claim, Kind, checked
from pkdp_pipeline.assurance.verification.opening import Opened
from pkdp_pipeline.certificates.certificate import Certificate
from pkdp_pipeline.certificates.release_certificate import ReleaseCertificate
from pkdp_pipeline.errors import ArgumentError, NoEvidenceError
from pkdp_pipeline.model.wording import rounded_up

if TYPE_CHECKING:
    from pkdp_pipeline.ledger import Entry, Ledger
    from pkdp_pipeline.ledger.chain import Event

_CHAIN = "The ledger's chain and everything derived from it are intact."
_HOLDS = "The ledger holds exactly this."
_STANDING = "Nothing that the ledger holds undoes what is certified."
_AT = (0.1, 0.5, 1.0, 2.0, 5.0)
_SPARE = 1.0 + 1e-9
_HEAD = "The chain holds the head that the certificate names."
_COUNTS = "The counts are those that were published."
_ASSUMPTIONS = "What is declared about the attacker and the releases is what the curator declared before looking."
_ANY_COUNTS = (
    "The file alone cannot tell: whoever changes a count and seals the file anew has one that looks the same. The "
    "ledger can, with --ledger, or whoever has the release as it was published: compare the ids."
)
_ANY_ASSUMPTIONS = (
    "The file alone cannot tell: one that is consistent for other assumptions looks the same. The ledger can, with "
    "--ledger; whether the declared assumptions are true, no program can."
)
_NONE = "The ledger holds no data set of the name that the file gives."
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
        yield Claim("counts.published", _COUNTS, "not_checked", _ANY_COUNTS)
    yield Claim("assumptions.declared", _ASSUMPTIONS, "not_checked", _ANY_ASSUMPTIONS)


def ledger_claims(
    location: str, dataset: str | None, head: str | None, further: Callable[[Ledger], Iterator[Claim]]
) -> Iterator[Claim]:
    """Yield whether a ledger has the data set that a file names and verifies, with its head; then what is further."""
    from pkdp_pipeline.ledger.chain import GENESIS
    from pkdp_pipeline.ledger.views.reading import open_for_reading

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
            yield Claim("ledger.holds", _HOLDS, "fail", _NONE)
            return
        chained = next(checked(("ledger.chain", _CHAIN, chain)))
        yield chained
        if head is not None and chained.outcome == "pass":
            yield from checked(("ledger.head", _HEAD, names))
        yield from further(ledger)


def held_claims(ledger: Ledger, file: Opened, certificate: Certificate | None) -> Iterator[Claim]:
    """Yield whether the ledger holds a release's bytes, or a certificate, and what stands beside it by now."""
    with ledger.records.snapshot():
        event, entry = _found(ledger, file)
        yield from checked(("ledger.holds", _HOLDS, functools.partial(_holds, ledger, event, entry, file)))
    if entry is not None and isinstance(certificate, ReleaseCertificate):
        yield from checked(("ledger.standing", _STANDING, functools.partial(_standing, ledger, entry, certificate)))


def _found(ledger: Ledger, file: Opened) -> tuple[Event | None, Entry | None]:
    """Return the latest event that holds the file, its bytes or its certificate, and the entry that this is about."""
    event = None
    for each in ledger.records.events():
        if (each.content == file.content) if file.kind == "release" else _states(each.certificate, file.document):
            event = each
    for entry in () if event is None else ledger.entries():
        if event is not None and (entry.key, entry.revision) == (event.key, event.revision):
            return event, entry
    return event, None


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
    what = "release, byte by byte" if file.kind == "release" else "certificate, number by number and word by word"
    where = f"event {event.sequence}, {entry.standing.label}, {entry.period}"
    same = event.certificate is None or _states(entry.certificate, json.loads(event.certificate))
    same = same and event.content in (None, entry.content)
    newer = "" if same else " A newer certificate was issued for the same table since."
    return f"It holds this {what}: {where}.{newer}", {"event": event.sequence}


def _standing(ledger: Ledger, entry: Entry, certificate: ReleaseCertificate) -> str:
    allowed = ledger.admission(entry)
    newest = Certificate.from_json(entry.certificate)
    for one, other in ((certificate, newest), (certificate.worst_case, newest.worst_case)):
        for epsilon in _AT:
            if other.delta(epsilon) > one.delta(epsilon) * _SPARE:
                raise BrokenError(
                    f"The same table was certified anew since, and the newest certificate promises less: at ε = "
                    f"{epsilon:g} it has δ = {rounded_up(other.delta(epsilon))}.",
                    epsilon=epsilon,
                )
    if certificate.has_partial_knowledge and not allowed.claims:
        raise BrokenError(
            "Other releases about these people stand beside it by now, so what it says about an attacker who is unsure "
            "of others holds no more."
        )
    if not allowed.alone and certificate.context is not None and not certificate.context.beside:
        return "Other releases stand beside it by now, which its sentence does not say; its numbers hold."
    alone = "It stands alone" if allowed.alone else "What stands beside it is covered by what was declared"
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
