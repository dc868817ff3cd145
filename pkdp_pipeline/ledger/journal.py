"""Journal: the events of a ledger, appended to the chain of their data set and read back in order."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime

from pkdp_pipeline.errors import LedgerError
from pkdp_pipeline.ledger.chain import GENESIS, Event, event_hash
from pkdp_pipeline.ledger.database import Database

__all__ = ["Journal", "json_text"]

_COLUMNS = (
    "sequence, dataset, position, kind, key, revision, standing, certificate, terms, release_id, content, "
    "created_at, previous, hash"
)
_PAGE = 64


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

    def append(
        self,
        *,
        dataset: str,
        kind: str,
        key: str,
        revision: int,
        standing: str | None = None,
        certificate: str | None = None,
        terms: str | None = None,
        release_id: str | None = None,
        content: bytes | None = None,
        created_at: str | None = None,
    ) -> int:
        """Append one event to the data set's chain and return its sequence."""
        last, previous = self._end(dataset)
        fields = {
            "dataset": dataset,
            "position": last + 1,
            "kind": kind,
            "key": key,
            "revision": revision,
            "standing": standing,
            "certificate": certificate,
            "terms": terms,
            "release_id": release_id,
            "content": content,
            "created_at": created_at or datetime.now(UTC).isoformat(timespec="seconds"),
            "previous": previous,
        }
        fields["hash"] = event_hash(**fields)  # type: ignore[arg-type]
        names = ", ".join(fields)
        marks = ", ".join(f":{name}" for name in fields)
        rows = self._database.execute(f"INSERT INTO event ({names}) VALUES ({marks}) RETURNING sequence", **fields)
        return int(rows[0][0])

    def events(self, dataset: str) -> Iterator[Event]:
        """Yield the events of one data set in order, a few at a time in memory."""
        query = (
            f"SELECT {_COLUMNS} FROM event WHERE dataset = :dataset AND position > :position "
            f"ORDER BY position LIMIT {_PAGE}"
        )
        names = _COLUMNS.split(", ")
        position = -1  # one before what a chain may hold, so that nothing is overlooked
        while rows := self._database.execute(query, dataset=dataset, position=position):
            for row in rows:
                event = Event(**dict(zip(names, row, strict=True)))
                if not isinstance(event.position, int):
                    raise LedgerError(f"event {event.sequence} of {dataset!r} has no position: it was altered.")
                position = event.position
                yield event

    def _end(self, dataset: str) -> tuple[int, str]:
        rows = self._database.execute(
            "SELECT position, hash FROM event WHERE dataset = :dataset ORDER BY position DESC LIMIT 1", dataset=dataset
        )
        return (0, GENESIS) if not rows else (int(rows[0][0]), str(rows[0][1]))


def json_text(content: object) -> str:
    """Return the JSON text under which a value is recorded: sorted names, no spaces."""
    return json.dumps(content, sort_keys=True, separators=(",", ":"))
