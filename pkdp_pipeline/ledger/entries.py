"""Entries: what became of every reservation, derived from the events and kept beside them for quick look-up."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator
from typing import Any

from pkdp_pipeline.errors import LedgerError, PkdpError, TemporaryError
from pkdp_pipeline.ledger.database import Database
from pkdp_pipeline.ledger.entry import Entry
from pkdp_pipeline.ledger.journal import json_text
from pkdp_pipeline.ledger.standing import Standing
from pkdp_pipeline.ledger.terms import Terms
from pkdp_pipeline.model.period import Period
from pkdp_pipeline.model.spelling import folded

__all__ = ["Entries", "place"]

_PAGE = 64
_FULL = """
    SELECT e.id, e.key, e.revision, e.dataset, e.state, r.standing, r.terms, c.certificate, x.release_id, x.content,
        coalesce(p.created_at, r.created_at), r.previous, coalesce(x.hash, r.hash), e.certificate
    FROM entry AS e
    JOIN event AS r ON r.sequence = e.id
    JOIN event AS c ON c.sequence = e.certificate
    LEFT JOIN event AS p ON p.sequence = e.published
    LEFT JOIN event AS x ON x.sequence = e.content
"""


def place(standing: Standing) -> dict[str, Any]:
    """Return the columns under which an entry of this standing is found: unit, first_day, last_day, label."""
    period = Period.parse(standing.period)
    dated = period.first is not None and period.last is not None
    return {
        "unit": json_text(list(standing.unit)),
        "first_day": period.first.toordinal() if period.first is not None else None,
        "last_day": period.last.toordinal() if period.last is not None else None,
        "label": None if dated else folded(period.text),
    }


class Entries:
    """The entries of one database. Change them only inside `Database.transaction`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def spelled(self, dataset: str) -> str | None:
        """Return a data set's name in the spelling the ledger keeps, or None when it is not known."""
        rows = self._database.execute("SELECT name FROM dataset WHERE folded = :folded", folded=folded(dataset))
        return str(rows[0][0]) if rows else None

    def register(self, dataset: str) -> bool:
        """Record a data set's name, and return whether it was not known; in another spelling it is refused."""
        known = self.spelled(dataset)
        if known is None:
            self._database.execute(
                "INSERT INTO dataset (folded, name) VALUES (:folded, :name)", folded=folded(dataset), name=dataset
            )
        elif known != dataset:
            raise TemporaryError(
                f"data set {dataset!r} was recorded as {known!r} meanwhile; nothing was charged: run again."
            )
        return known is None

    def datasets(self) -> list[str]:
        """Return the names of all data sets, in order."""
        return sorted(str(name) for (name,) in self._database.execute("SELECT name FROM dataset"))

    def published(self, dataset: str, key: str) -> int | None:
        """Return the id of the latest published revision of a key, or None."""
        rows = self._database.execute(
            # The first condition on state is that of the index, which SQLite does not infer from the second one.
            "SELECT id FROM entry WHERE dataset = :dataset AND key = :key AND state <> 'given_back' "
            "AND state = 'published' ORDER BY revision DESC LIMIT 1",
            dataset=dataset,
            key=key,
        )
        return int(rows[0][0]) if rows else None

    def latest(self, dataset: str, key: str) -> tuple[int, int, str] | None:
        """Return id, revision and state of the latest revision of a key that is charged, or None."""
        rows = self._database.execute(
            "SELECT id, revision, state FROM entry WHERE dataset = :dataset AND key = :key AND state <> 'given_back' "
            "ORDER BY revision DESC LIMIT 1",
            dataset=dataset,
            key=key,
        )
        return (int(rows[0][0]), int(rows[0][1]), str(rows[0][2])) if rows else None

    def state(self, entry: int) -> str:
        """Return the state of a reservation that was made; that it is not there is a `LedgerError`."""
        rows = self._database.execute("SELECT state FROM entry WHERE id = :entry", entry=entry)
        if not rows:
            raise LedgerError(
                f"the ledger {self._database.location!r} does not hold the reservation: it is another ledger, or its "
                "end was cut off. Nothing was published."
            )
        return str(rows[0][0])

    def reserved(self, entry: int, *, dataset: str, key: str, revision: int, standing: Standing) -> None:
        """Record a new reservation; its id is the sequence of the event that made it."""
        self._database.execute(
            "INSERT INTO entry (id, dataset, key, revision, state, certificate, unit, first_day, last_day, label) "
            "VALUES (:entry, :dataset, :key, :revision, 'reserved', :entry, :unit, "
            "CAST(:first_day AS BIGINT), CAST(:last_day AS BIGINT), CAST(:label AS TEXT))",
            entry=entry,
            dataset=dataset,
            key=key,
            revision=revision,
            **place(standing),
        )

    def published_by(self, entry: int, event: int) -> None:
        """Record that `event` published the entry."""
        self._database.execute(
            "UPDATE entry SET state = 'published', published = :event, content = :event WHERE id = :entry",
            entry=entry,
            event=event,
        )

    def given_back(self, entry: int) -> None:
        """Record that the entry is charged no more."""
        self._database.execute("UPDATE entry SET state = 'given_back' WHERE id = :entry", entry=entry)

    def recertified_by(self, entry: int, event: int) -> None:
        """Record that `event` holds the entry's certificate and bytes now."""
        self._database.execute(
            "UPDATE entry SET certificate = :event, content = :event WHERE id = :entry", entry=entry, event=event
        )

    def read(self, entry: int) -> Entry:
        """Return one entry with its bytes."""
        rows = self._database.execute(_FULL + "WHERE e.id = :entry", entry=entry)
        if not rows:
            raise LedgerError(f"the ledger {self._database.location!r} has no entry {entry}, or lost its events.")
        return self._entry(rows[0])

    def each(self, dataset: str, *, given_back: bool = False) -> Iterator[Entry]:
        """Yield one data set's entries in the order of their reservation, a few at a time in memory."""
        skipped = "" if given_back else "AND e.state <> 'given_back' "
        # PostgreSQL does not infer the second bound from the first, and would begin at the first event each time.
        bounds = "e.id > :after AND r.sequence > :after"
        query = f"{_FULL}WHERE e.dataset = :dataset AND {bounds} {skipped}ORDER BY e.id LIMIT {_PAGE}"
        after = 0
        while rows := self._database.execute(query, dataset=dataset, after=after):
            for row in rows:
                yield self._entry(row)
            after = rows[-1][0]

    def _entry(self, row: tuple[Any, ...]) -> Entry:
        *known, newest = row
        sequence, key, revision, dataset = known[:4]
        if newest == sequence:
            return _entry(tuple(known), ())
        former = self._database.execute(
            "SELECT certificate FROM event WHERE dataset = :dataset AND key = :key AND revision = :revision "
            "AND sequence >= :sequence AND sequence < :newest AND certificate IS NOT NULL ORDER BY sequence",
            dataset=dataset,
            key=key,
            revision=revision,
            sequence=sequence,
            newest=newest,
        )
        return _entry(tuple(known), tuple(str(text) for (text,) in former))

    def beside(self, dataset: str, standing: Standing) -> list[int]:
        """Return the ids of the published entries whose periods overlap that of `standing`, in order.

        Two queries, so that an index serves each: a period without dates overlaps every period with dates.
        """
        where = place(standing)
        state = "dataset = :dataset AND state = 'published'"
        if where["label"] is None:
            found = self._database.execute(
                f"SELECT id FROM entry WHERE {state} AND last_day >= :first AND first_day <= :last "
                f"UNION ALL SELECT id FROM entry WHERE {state} AND first_day IS NULL",
                dataset=dataset,
                first=where["first_day"],
                last=where["last_day"],
            )
        else:
            found = self._database.execute(
                f"SELECT id FROM entry WHERE {state} AND label = :label "
                f"UNION ALL SELECT id FROM entry WHERE {state} AND first_day IS NOT NULL",
                dataset=dataset,
                label=where["label"],
            )
        return sorted(int(row[0]) for row in found)


@functools.lru_cache(maxsize=64)
def _terms(text: str) -> Terms:
    # Most entries were made under the same terms.
    return Terms.from_dict(json.loads(text))


def _entry(row: tuple[Any, ...], former: tuple[str, ...]) -> Entry:
    sequence, key, revision, dataset, state, standing, terms, certificate, release_id, content, at, head, link = row
    try:
        return Entry(
            sequence=sequence,
            key=key,
            revision=revision,
            dataset=dataset,
            standing=Standing.from_dict(json.loads(standing)),
            terms=_terms(terms),
            state=state,
            certificate=certificate,
            former=former,
            release_id=release_id,
            content=content,
            created_at=at,
            head=head,
            hash=link,
        )
    except (PkdpError, AttributeError, KeyError, TypeError, ValueError) as error:
        raise LedgerError(
            f"the ledger's entry {sequence} cannot be read: {error}. It was altered, or written by another version; "
            "check the ledger with verify()."
        ) from error
