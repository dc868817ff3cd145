"""Verification: the chain recomputed, and everything derived from it compared with what is stored."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, NoReturn

from pkdp_pipeline.errors import ArgumentError, LedgerError, PkdpError, TemporaryError
from pkdp_pipeline.ledger.account import compare_account
from pkdp_pipeline.ledger.chain import Event, checked
from pkdp_pipeline.ledger.database import Database
from pkdp_pipeline.ledger.entries import Entries, place
from pkdp_pipeline.ledger.journal import Journal
from pkdp_pipeline.ledger.parts import describe, sha256
from pkdp_pipeline.ledger.sealed import opened
from pkdp_pipeline.ledger.standing import Standing
from pkdp_pipeline.model.spelling import folded

__all__ = ["verify"]

_COLUMNS = "id, key, revision, state, published, certificate, content, unit, first_day, last_day, label"
_PAGE = 1000
_PARTS_PAGE = 200


def verify(database: Database, dataset: str, *, head: str | None, contents: bool) -> None:
    """Check one data set; see `Ledger.verify`.

    Raises
    ------
    LedgerError
        Naming what was altered.
    """
    database.check()
    try:
        with database.snapshot():
            _check_names(database, dataset)
            events = checked(Journal(database).events(dataset), dataset=dataset, head=head)
            _compare(_replayed(events, contents=contents), _stored(database, dataset))
            compare_account(database, dataset, Entries(database).each(dataset))
            _check_orphan_rows(database)
    except (LedgerError, TemporaryError):
        raise
    except (PkdpError, AttributeError, KeyError, TypeError, ValueError) as error:
        raise LedgerError(
            f"the ledger {database.location!r} holds what cannot be read ({error}): it was altered or damaged. Restore "
            "it from a backup, with a head that a release names."
        ) from error


def _check_names(database: Database, dataset: str) -> None:
    known = {str(name): str(key) for key, name in database.execute("SELECT folded, name FROM dataset")}
    used = {str(row[0]) for row in database.execute("SELECT DISTINCT dataset FROM event")}
    if set(known) != used or any(folded(name) != key for name, key in known.items()):
        _altered("the list of data sets is not that of the events")
    if dataset not in used and folded(dataset) in known.values():
        _altered(f"data set {dataset!r} was opened under a name that the ledger does not hold")


def _replayed(events: Iterable[Event], *, contents: bool) -> dict[int, list[Any]]:
    """Return the rows of the entries, by id, that the events give."""
    rows: dict[int, list[Any]] = {}
    charged: dict[tuple[str, int], int] = {}
    certificates: dict[int, str] = {}  # of releases not yet published, to be found in their bytes
    unreadable: set[str] = set()
    for event in events:
        what = (event.key, event.revision)
        entry = charged.get(what)
        state = None if entry is None else rows[entry][3]
        if event.kind == "reserved" and entry is None:
            charged[what] = event.sequence
            rows[event.sequence] = [event.sequence, *what, "reserved", None, event.sequence, None, *_place(event)]
            certificates[event.sequence] = _certificate(event)
        elif event.kind == "published" and entry is not None and state == "reserved":
            rows[entry][3:5] = "published", event.sequence
            rows[entry][6] = event.sequence
            certificate = certificates.pop(entry)
            if contents:
                _check_content(event, certificate)
        elif event.kind == "given_back" and entry is not None and state == "reserved":
            rows[entry][3] = "given_back"
            del charged[what], certificates[entry]
        elif event.kind == "recertified" and entry is not None and state == "published":
            rows[entry][5:7] = event.sequence, event.sequence
            if contents:
                _check_content(event, str(event.certificate))
        elif event.kind == "unreadable" and event.key not in unreadable:
            unreadable.add(event.key)
        else:
            _altered(f"event {event.sequence} ({event.kind}) cannot follow the events before it")
    return rows


def _place(event: Event) -> tuple[Any, ...]:
    return tuple(place(Standing.from_dict(json.loads(str(event.standing)))).values())


def _certificate(event: Event) -> str:
    """Return the certificate's text, whose head must be where the release was charged."""
    text = str(event.certificate)
    context = json.loads(text).get("context")
    head = context.get("head") if isinstance(context, dict) else None
    if head is not None and head != event.previous:
        _altered(f"the certificate of event {event.sequence} names another head than the one before it")
    return text


def _check_content(event: Event, certificate: str) -> None:
    try:
        _, text, identity = opened(event.content or b"")
    except ArgumentError as error:
        raise LedgerError(f"the released bytes of event {event.sequence} cannot be replayed: {error}") from error
    if identity != event.release_id:
        _altered(f"event {event.sequence} holds another release than its id says")
    if json.loads(text) != json.loads(certificate):
        _altered(f"the release of event {event.sequence} carries another certificate than was charged")


def _stored(database: Database, dataset: str) -> Iterator[tuple[Any, ...]]:
    query = f"SELECT {_COLUMNS} FROM entry WHERE dataset = :dataset AND id > :after ORDER BY id LIMIT {_PAGE}"
    after = -1
    while rows := database.execute(query, dataset=dataset, after=after):
        yield from rows
        after = rows[-1][0]


def _compare(expected: dict[int, list[Any]], stored: Iterable[tuple[Any, ...]]) -> None:
    for row in stored:
        if expected.pop(row[0], None) != list(row):
            _altered(f"entry {row[0]} is not what its events say")
    if expected:
        _altered(f"entry {min(expected)} is missing, although its events stand")


def _altered(what: str) -> NoReturn:
    """Raise the error for a ledger that was altered."""
    raise LedgerError(f"the ledger was altered: {what}. Restore it from a backup, with a head that a release names.")


def _check_orphan_rows(database: Database) -> None:
    """Check what belongs to no data set that has events, and would be overlooked when one is compared.

    Parameters
    ----------
    database : Database
        Only read; call it in a snapshot.

    Raises
    ------
    LedgerError
        Naming the table.
    """
    for table in ("entry", "holding"):
        if database.execute(f"SELECT dataset FROM {table} EXCEPT SELECT name FROM dataset"):
            _altered(f"table {table} has rows of a data set that has no events")
    _check_parts(database)


def _check_parts(database: Database) -> None:
    """Check that every part is that of a release; one that was given back or certified again leaves its part."""
    left = {str(row[0]) for row in database.execute("SELECT sha256 FROM part EXCEPT SELECT part FROM holding")}
    for key in left:
        ((description,),) = database.execute("SELECT description FROM part WHERE sha256 = :key", key=key)
        if sha256(str(description)) != key:
            _altered("table part has rows that are not what their keys say")
    after = -1
    while left:
        rows = database.execute(
            "SELECT sequence, certificate FROM event WHERE certificate IS NOT NULL AND sequence > :after "
            f"ORDER BY sequence LIMIT {_PARTS_PAGE}",
            after=after,
        )
        if not rows:
            _altered("table part has rows that no release was ever charged with")
        left -= {sha256(describe(str(certificate))) for _, certificate in rows}
        after = rows[-1][0]
