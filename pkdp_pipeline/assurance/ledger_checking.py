"""Checking: the chain, what is derived from it, and every stored release with its certificate, recomputed."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass

from pkdp_pipeline.display.ledger.words import number_of, term_changes
from pkdp_pipeline.errors import ArgumentError, LedgerError
from pkdp_pipeline.ledger import Ledger
from pkdp_pipeline.ledger.chain import GENESIS
from pkdp_pipeline.ledger.sealed import check_table
from pkdp_pipeline.releases.release import Release


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """What was found to be in order.

    Attributes
    ----------
    events : int
    head : str
    held : int or None
        The event whose hash was given as the head; None if none was.
    remarks : tuple of str
        What else is to be said, a line each.
    """

    events: int
    head: str
    held: int | None
    remarks: tuple[str, ...]


def check(ledger: Ledger, *, head: str | None) -> Checked:
    """Check a data set's ledger and recompute what its releases promise.

    Raises
    ------
    LedgerError
        Naming what was altered.
    ArgumentError
        If `head` is no hash, or the one that stands before every chain.
    """
    if head is not None and (len(head) != 64 or set(head) - set("0123456789abcdef")):
        raise ArgumentError("--head must be a hash of 64 hexadecimal digits, as verify prints it.")
    if head == GENESIS:
        raise ArgumentError(
            "--head of 64 zeros says nothing: it stands before the first event of every ledger, and a ledger's first "
            "release names it. Give the head that verify printed, or one that a later release or a run names."
        )
    ledger.verify(head)
    last, held, unreadable = None, None, []
    kinds: Counter[str] = Counter()
    recomputed: dict[str, str] = {}
    with ledger.records.snapshot():
        for event in ledger.records.events():
            last = event.hash
            kinds[event.kind] += 1
            held = event.position if event.hash == head else held
            if event.kind == "unreadable":
                unreadable.append(event.key)
            if event.content is None:
                continue
            release = Release.from_bytes(event.content)
            try:
                _recompute(release, recomputed)
            except ArgumentError as error:
                raise LedgerError(f"the release of event {event.sequence} does not hold: {error}") from error
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
    if held is None:
        remarks.append(
            "A chain cannot show that its end was cut off: keep the head elsewhere, and check with it next time:"
        )
    elif held == events:
        remarks.append(f"The chain ends with the given head, event {held:,} of {events:,}.")
    else:
        remarks.append(
            f"The chain holds the given head, event {held:,} of {events:,}; a cut after it would not show. A later "
            "head covers more:"
        )
    return Checked(events=events, head=last or ledger.head(), held=held, remarks=tuple(remarks))


def _recompute(release: Release, recomputed: dict[str, str]) -> None:
    """Verify one release; where only the publication differs from one before, compare its own sentences alone.

    A year of equal releases has one set of numbers: they are recomputed once, and so is the statement that the
    sentence begins with. Every release's facts, limits and table are its own.
    """
    certificate = release.certificate
    document = json.loads(certificate.to_json())
    context, sentence = document.pop("context"), document.pop("sentence")
    limits = " ".join(certificate.limits)
    same = json.dumps([context is None, document], sort_keys=True)
    if same not in recomputed:
        release.verify()
        recomputed[same] = sentence.removesuffix(limits)
        return
    check_table(release.table, certificate)
    facts = None if certificate.context is None else certificate.context.to_dict()
    if sentence != recomputed[same] + limits or context != facts:
        raise ArgumentError("its certificate's sentence is not what its facts give: the certificate was altered.")
