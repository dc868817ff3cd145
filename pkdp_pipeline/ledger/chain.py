"""The hash chain: what an event's hash covers, how events are appended and read back, and how a chain is checked."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from pkdp_pipeline.errors import LedgerError

GENESIS = "0" * 64
"""The stand-in for a hash before the first event of a data set."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One line of the ledger: something that happened to one key, never changed afterwards.

    Attributes
    ----------
    sequence : int
        Position in the whole ledger. It is given by the database and is not hashed.
    position : int
        1, 2, … within the data set.
    kind : str
        ``"reserved"``, ``"published"``, ``"given_back"``, ``"recertified"`` or ``"unreadable"``.
    key : str
        The key of the question; of an unreadable table its name.
    standing, certificate, terms : str or None
        JSON texts, hashed as they are written.
    content : bytes or None
        The released bytes.
    created_at : str
        UTC, ISO 8601. Clocks go wrong: it is for reading, and decides nothing.
    previous : str
        Hash of the event before it in the data set.
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
"""The text that an event's hash covers."""


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

    `events`: in the order of their positions. `head`: a hash that must be among those of the chain, known from
    elsewhere. A chain alone cannot show that its end is missing. Raises `LedgerError` where an event was altered,
    inserted, moved or removed; at the end, when `head` was not met.
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
