"""Checking: the chain, what is derived from it, and every stored release with its certificate, recomputed."""

from __future__ import annotations

import json
from dataclasses import dataclass

from pkdp_pipeline.errors import ArgumentError, LedgerError
from pkdp_pipeline.ledger.journal import Journal
from pkdp_pipeline.ledger_views.reading import Reading
from pkdp_pipeline.ledger_views.words import number_of
from pkdp_pipeline.release import Release, check_table

__all__ = ["Checked", "check"]

_FIRST = "pkdp-certificate/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """What was found to be in order.

    Attributes
    ----------
    events : int
    head : str
    releases : int
        Stored releases whose table obeys its certificate.
    certificates : int
        Different certificates that were recomputed.
    old : int
        Stored releases whose certificates have the first form, which cannot be compared word by word.
    """

    events: int
    head: str
    releases: int
    certificates: int
    old: int

    def remarks(self, head_given: bool) -> list[str]:
        """Return the rest of the report, a line each."""
        listed = [
            f"{number_of(self.releases, 'stored release')} checked; "
            f"{number_of(self.certificates, 'different certificate')} recomputed; the running total is theirs."
        ]
        if self.old:
            listed.append(
                f"{number_of(self.old, 'release')} with a certificate of an older form: its bytes are intact."
            )
        if not head_given:
            listed.append(
                "A chain cannot show that its end was cut off: note the head, and give it with --head next time."
            )
        return listed


def check(reading: Reading, *, head: str | None) -> Checked:
    """Check a data set's ledger and recompute what its releases promise.

    Raises
    ------
    LedgerError
        Naming what was altered.
    ArgumentError
        If `head` is no hash.
    """
    if head is not None and (len(head) != 64 or set(head) - set("0123456789abcdef")):
        raise ArgumentError("--head must be a hash of 64 hexadecimal digits, as verify prints it.")
    ledger = reading.ledger
    ledger.verify(head)
    events = releases = old = 0
    recomputed: dict[str, str] = {}
    with reading.database.snapshot():
        for event in Journal(reading.database).events(ledger.dataset):
            events += 1
            last = event.hash
            if event.content is None:
                continue
            release = Release.from_bytes(event.content)
            releases += 1
            if json.loads(release.certificate.to_json()).get("schema") == _FIRST:
                old += 1
                continue
            try:
                _recompute(release, recomputed)
            except ArgumentError as error:
                raise LedgerError(f"the release of event {event.sequence} does not hold: {error}") from error
    return Checked(
        events=events,
        head=last if events else ledger.head(),
        releases=releases,
        certificates=len(recomputed),
        old=old,
    )


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
