"""Verification: the chain recomputed, and everything derived from it compared with what is stored."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from typing import NoReturn

from pkdp_pipeline.errors import ArgumentError, LedgerError, PkdpError, TemporaryError
from pkdp_pipeline.ledger.chain import Event, checked
from pkdp_pipeline.ledger.records import Records, terms_of
from pkdp_pipeline.ledger.rows import replayed
from pkdp_pipeline.ledger.sealed import Sealed, opened
from pkdp_pipeline.model.spelling import folded

Look = Callable[[Event, Sealed | None], None]
"""A check of an event that continues the chain and, where it has released bytes, of what they hold."""


def verify(records: Records, *, head: str | None, contents: bool, look: Look | None = None) -> None:
    """Check one data set, see `Ledger.verify`; `look` is given every event, whose released bytes are read once.

    Raises
    ------
    LedgerError
        Naming what was altered.
    """
    records.database.check()
    try:
        with records.snapshot():
            _check_names(records)
            compare(records, head=head, contents=contents, look=look)
            if records.execute("SELECT dataset FROM entry EXCEPT SELECT name FROM dataset"):
                _altered("table entry has rows of a data set that has no events")
    except (LedgerError, TemporaryError):
        raise
    except (PkdpError, AttributeError, KeyError, TypeError, ValueError) as error:
        raise LedgerError(
            f"the ledger {records.database.location!r} holds what cannot be read ({error}): it was altered or damaged. "
            "Restore it from a backup, with a head that a release names."
        ) from error


def compare(records: Records, *, head: str | None = None, contents: bool = False, look: Look | None = None) -> None:
    """Compare the stored rows of one data set with what its chain gives; see `Ledger.verify`."""
    events = checked(records.events(), dataset=records.dataset, head=head)
    expected = replayed(_read(events, contents=contents, look=look), records.certificates)
    for row in records.rows():
        if expected.pop(row.id, None) != row:
            _altered(f"entry {row.id} is not what its events say")
    if expected:
        _altered(f"entry {min(expected)} is missing, although its events stand")


def _check_names(records: Records) -> None:
    known = {str(name): str(key) for key, name in records.execute("SELECT folded, name FROM dataset")}
    used, dataset = {str(row[0]) for row in records.execute("SELECT DISTINCT dataset FROM event")}, records.dataset
    if set(known) != used or any(folded(name) != key for name, key in known.items()):
        _altered("the list of data sets is not that of the events")
    if dataset not in used and folded(dataset) in known.values():
        _altered(f"data set {dataset!r} was opened under a name that the ledger does not hold")


def _read(events: Iterable[Event], *, contents: bool, look: Look | None) -> Iterator[Event]:
    """Yield the events after their terms, certificates and, with `contents`, their released bytes were read."""
    charged: dict[tuple[str, int], str] = {}  # certificates to be found in released bytes
    for event in events:
        question = (event.key, event.revision)
        if event.certificate is not None:
            charged[question] = event.certificate
            _check_head(event)
        if event.terms is not None:
            terms_of(event.terms)
        sealed = None
        if event.content is not None and contents:
            sealed = _checked_content(event, charged[question])
        if event.kind != "reserved":
            charged.pop(question, None)
        if look is not None:
            look(event, sealed)
        yield event


def _check_head(event: Event) -> None:
    """Check that a certificate's head is where the release was charged."""
    context = json.loads(str(event.certificate)).get("context")
    head = context.get("head") if isinstance(context, dict) else None
    if event.kind == "reserved" and head is not None and head != event.previous:
        _altered(f"the certificate of event {event.sequence} names another head than the one before it")


def _checked_content(event: Event, certificate: str) -> Sealed:
    try:
        sealed = opened(event.content or b"")
    except ArgumentError as error:
        raise LedgerError(f"the released bytes of event {event.sequence} cannot be replayed: {error}") from error
    if sealed.identity != event.release_id:
        _altered(f"event {event.sequence} holds another release than its id says")
    if sealed.text != certificate and json.loads(sealed.text) != json.loads(certificate):
        _altered(f"the release of event {event.sequence} carries another certificate than was charged")
    return sealed


def _altered(problem: str) -> NoReturn:
    """Raise the error for a ledger that was altered."""
    raise LedgerError(f"the ledger was altered: {problem}. Restore it from a backup, with a head that a release names.")
