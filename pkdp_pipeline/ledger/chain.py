"""The hash chain: what an event's hash covers, how events are appended and read back, and how a chain is checked."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from pkdp_pipeline.errors import LedgerError
from pkdp_pipeline.ledger.database import Database

_PAGE, _AT_ONCE = 64, 500

GENESIS = "0" * 64
"""What stands in place of a hash before the first event of a data set."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One line of the ledger: something that happened to one key, never changed afterwards.

    Attributes
    ----------
    sequence : int
        Position in the whole ledger. It is given by the database and is not hashed.
    dataset : str
    position : int
        1, 2, … within the data set.
    kind : str
        ``"reserved"``, ``"published"``, ``"given_back"``, ``"recertified"`` or ``"unreadable"``.
    key : str
        What is asked; of an unreadable table its name.
    revision : int
    standing, certificate, terms : str or None
        JSON texts, hashed as they are written.
    release_id : str or None
    content : bytes or None
        The released bytes.
    created_at : str
        UTC, ISO 8601. Clocks go wrong: it is for reading, and decides nothing.
    previous : str
        Hash of the event before it in the data set.
    hash : str
    """

    sequence: int
    dataset: str
    position: int
    kind: str
    key: str
    revision: int
    standing: str | None
    certificate: str | None
    terms: str | None
    release_id: str | None
    content: bytes | None
    created_at: str
    previous: str
    hash: str

    def recomputed(self) -> str:
        """Return the hash that the other fields give."""
        return event_hash(**{name: getattr(self, name) for name in FIELDS})


FIELDS = tuple(name for name in Event.__dataclass_fields__ if name not in ("sequence", "hash"))
"""What an event's hash covers."""


def event_hash(*, content: bytes | None, **fields: str | int | None) -> str:
    """Return the sha256, in hex, of an event's fields as JSON with sorted names, the content by its own sha256.

    Everything hashed is public: the content is what was released.
    """
    digest = None if content is None else hashlib.sha256(content).hexdigest()
    return hashlib.sha256(json_text({**fields, "content": digest}).encode()).hexdigest()


def json_text(content: object) -> str:
    """Return the JSON text under which a value is recorded: sorted names, no spaces."""
    return json.dumps(content, sort_keys=True, separators=(",", ":"))


def checked(events: Iterable[Event], *, dataset: str, head: str | None = None) -> Iterator[Event]:
    """Yield the events of one data set in order, each after it was found to continue the chain.

    Parameters
    ----------
    events : iterable of Event
        In the order of their positions.
    dataset : str
    head : str, optional
        A hash that must be among those of the chain, known from elsewhere. A chain alone cannot show that its
        end is missing.

    Raises
    ------
    LedgerError
        Where an event was altered, inserted, moved or removed; at the end, when `head` was not met.
    """
    previous, sequence = GENESIS, 0
    met = head is None or head == GENESIS
    for position, event in enumerate(events, start=1):
        if event.position != position or event.sequence <= sequence or event.previous != previous:
            raise LedgerError(
                f"the chain of data set {dataset!r} is broken at position {position}: an event before it was removed, "
                "inserted or moved. Restore the ledger from a backup."
            )
        if event.dataset != dataset or event.recomputed() != event.hash:
            raise LedgerError(
                f"event {event.sequence} of data set {dataset!r} was altered: its hash is not the one of its fields. "
                "Restore the ledger from a backup."
            )
        previous, sequence = event.hash, event.sequence
        met = met or event.hash == head
        yield event
    if not met:
        raise LedgerError(
            f"the chain of data set {dataset!r} does not hold the given head: its end was cut off, or this is another "
            "ledger. Restore the ledger from a backup that holds it."
        )


class Journal:
    """The chains of one database. Append only inside `Database.transaction`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def head(self, dataset: str) -> str:
        """Return the hash of the data set's last event; 64 zeros when there is none."""
        return self._end(dataset)[1]

    def terms(self, dataset: str) -> str | None:
        """Return the terms recorded with the data set's last reservation, as JSON text."""
        rows = self._database.execute(
            "SELECT terms FROM event WHERE dataset = :dataset AND terms IS NOT NULL ORDER BY position DESC LIMIT 1",
            dataset=dataset,
        )
        return None if not rows else str(rows[0][0])

    def certificate(self, sequence: int) -> str:
        """Return the JSON text of the certificate that an event holds."""
        rows = self._database.execute("SELECT certificate FROM event WHERE sequence = :sequence", sequence=sequence)
        if not rows or rows[0][0] is None:
            raise LedgerError(f"event {sequence}, which should hold a certificate, holds none: the ledger was altered.")
        return str(rows[0][0])

    def append(self, **fields: Any) -> Event:
        """Append one event to the chain of its data set; fields of `Event` that are left out are None.

        `position` and `previous` are those that follow the chain's end, `created_at` is now unless it is given.
        """
        last, previous = self._end(fields["dataset"])
        now = datetime.now(UTC).isoformat(timespec="seconds")
        fields = {**dict.fromkeys(FIELDS), "created_at": now, **fields, "position": last + 1, "previous": previous}
        fields["hash"] = event_hash(**fields)
        names, marks = ", ".join(fields), ", ".join(f":{name}" for name in fields)
        rows = self._database.execute(f"INSERT INTO event ({names}) VALUES ({marks}) RETURNING sequence", **fields)
        return Event(sequence=int(rows[0][0]), **fields)

    def events(self, dataset: str) -> Iterator[Event]:
        """Yield the events of one data set in order, a few at a time in memory."""
        names = tuple(Event.__dataclass_fields__)
        query = (
            f"SELECT {', '.join(names)} FROM event WHERE dataset = :dataset AND position > :position "
            f"ORDER BY position LIMIT {_PAGE}"
        )
        position = -1  # one before what a chain may hold, so that nothing is overlooked
        while rows := self._database.execute(query, dataset=dataset, position=position):
            for row in rows:
                event = Event(**dict(zip(names, row, strict=True)))
                if not isinstance(event.position, int):
                    raise LedgerError(f"event {event.sequence} of {dataset!r} has no position: it was altered.")
                position = event.position
                yield event

    def unreadable(self, dataset: str) -> frozenset[str]:
        """Return the tables of the data set that were found to be unreadable."""
        query = "SELECT key FROM event WHERE dataset = :dataset AND kind = 'unreadable'"
        return frozenset(str(row[0]) for row in self._database.execute(query, dataset=dataset))

    def among(self, dataset: str, hashes: Iterable[str]) -> set[str]:
        """Return those of `hashes` that are events of the data set's chain."""
        query = "SELECT hash FROM event WHERE dataset = :dataset AND hash"
        return {str(row[0]) for row in self._matching(query, dataset, hashes)}

    def certificates_after(self, dataset: str, heads: Iterable[str]) -> dict[str, list[str]]:
        """Return, by head, the certificates that the release charged just after it has had; where there is one."""
        charged = self._matching(
            "SELECT b.previous, b.key, b.revision, b.certificate FROM event a JOIN event b ON b.dataset = a.dataset "
            "AND b.position = a.position + 1 WHERE b.kind = 'reserved' AND a.dataset = :dataset AND a.hash",
            dataset,
            heads,
        )
        charged += self._database.execute(
            "SELECT previous, key, revision, certificate FROM event WHERE dataset = :dataset AND position = 1 "
            "AND kind = 'reserved'",
            dataset=dataset,
        )
        anew = self._database.execute(
            "SELECT key, revision, certificate FROM event WHERE dataset = :dataset AND kind = 'recertified' "
            "ORDER BY position",
            dataset=dataset,
        )
        return {
            str(head): [str(text), *(str(later) for *what, later in anew if what == [key, revision])]
            for head, key, revision, text in charged
        }

    def _matching(self, query: str, dataset: str, hashes: Iterable[str]) -> list[tuple[Any, ...]]:
        rows: list[tuple[Any, ...]] = []
        listed = sorted({*hashes} - {GENESIS})
        for start in range(0, len(listed), _AT_ONCE):
            given = {f"h{number}": text for number, text in enumerate(listed[start : start + _AT_ONCE])}
            marks = ", ".join(f":{name}" for name in given)
            rows += self._database.execute(f"{query} IN ({marks})", dataset=dataset, **given)
        return rows

    def _end(self, dataset: str) -> tuple[int, str]:
        rows = self._database.execute(
            "SELECT position, hash FROM event WHERE dataset = :dataset ORDER BY position DESC LIMIT 1", dataset=dataset
        )
        return (0, GENESIS) if not rows else (int(rows[0][0]), str(rows[0][1]))
