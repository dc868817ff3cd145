"""Entries: the releases of a ledger, recorded event by event and found again."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pkdp_pipeline.errors import LedgerError, PkdpError, TemporaryError
from pkdp_pipeline.ledger.account import Holding
from pkdp_pipeline.ledger.chain import FIELDS, Event, Journal
from pkdp_pipeline.ledger.database import Database
from pkdp_pipeline.ledger.rows import Row, State, after
from pkdp_pipeline.ledger.terms import Terms
from pkdp_pipeline.model.facts import Facts
from pkdp_pipeline.model.spelling import folded

if TYPE_CHECKING:
    from pkdp_pipeline.certificates.release_certificate import ReleaseCertificate
    from pkdp_pipeline.model.evidence import Evidence


@dataclass(frozen=True, slots=True, kw_only=True)
class Reservation:
    """What a release is charged before its data are read; made by `Ledger.reserve`.

    Attributes
    ----------
    key : str
        What was asked.
    revision : int
    certificate : ReleaseCertificate
        The one that was charged, which the release must carry.
    head : str
        Head of the chain just before the reservation.
    dataset : str
    entry : int
        The entry it is for.
    """

    key: str
    revision: int
    certificate: ReleaseCertificate = field(repr=False)
    head: str
    dataset: str
    entry: int

    @classmethod
    def of(cls, entry: Entry, certificate: ReleaseCertificate) -> Reservation:
        """Return the reservation that `entry` records; `certificate` is the one whose text it holds."""
        return cls(
            key=entry.key,
            revision=entry.revision,
            certificate=certificate,
            head=entry.head,
            dataset=entry.dataset,
            entry=entry.sequence,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One release of a data set, frozen.

    Attributes
    ----------
    sequence : int
        Increasing within the ledger: the event that reserved it.
    key : str
        What was asked; the same key replays `content`.
    revision : int
        1, and one more for each time the same question was published anew.
    dataset : str
    standing : Facts
        The people, the period, and what is published about them.
    terms : Terms
        The evidence and budgets in force when it was charged.
    state : {"reserved", "published", "given_back"}
        A reserved release is charged and not public. It stays so until the same request runs again: nobody
        can tell whether it would have been published.
    certificate : str
        The latest certificate's JSON text.
    release_id : str or None
        None unless published; so is `content`.
    content : bytes or None
        The released bytes.
    created_at : str
        UTC, ISO 8601: when it was published, or else reserved. For reading only.
    head : str
        Head of the chain just before it was charged.
    hash : str
        Hash of the event that holds `content`, or else of the one that reserved it.
    former : tuple of str
        The certificates before the latest one, the first one first.
    """

    sequence: int
    key: str
    revision: int
    dataset: str
    standing: Facts
    terms: Terms
    state: State
    certificate: str = field(repr=False)
    release_id: str | None
    content: bytes | None = field(repr=False)
    created_at: str
    head: str
    hash: str
    former: tuple[str, ...] = field(default=(), repr=False)

    @property
    def certificates(self) -> tuple[str, ...]:
        """The JSON texts of all its certificates, the first one first."""
        return (*self.former, self.certificate)

    @property
    def unit(self) -> tuple[str, ...]:
        """Columns of the privacy unit; empty where every row is a person."""
        return self.standing.unit

    @property
    def period(self) -> str:
        """The period the data are about."""
        return self.standing.period

    @property
    def label(self) -> str:
        """What is published, in the words of the request."""
        return self.standing.label

    @property
    def noiseless(self) -> bool:
        """Whether no noise gives it a finite worst case."""
        return self.standing.noiseless

    @property
    def evidence(self) -> tuple[Evidence, ...]:
        """The evidence in force when it was charged."""
        return self.terms.evidence


_NAMES = ", ".join(Row._fields)
_STORE = (
    f"INSERT INTO entry ({_NAMES}) VALUES ({', '.join(f':{name}' for name in Row._fields)}) "
    "ON CONFLICT (id) DO UPDATE SET "
    + ", ".join(
        f"{name} = excluded.{name}"
        for name in ("state", "published", "certificate", "content", "counts", "part", "told", "leaks")
    )
)
_PAGE, _ROWS = 64, 1000
_FULL = """
    SELECT e.id, e.key, e.revision, e.dataset, e.state, r.standing, r.terms, c.certificate, x.release_id, x.content,
        coalesce(p.created_at, r.created_at), r.previous, coalesce(x.hash, r.hash), e.certificate
    FROM entry AS e
    JOIN event AS r ON r.sequence = e.id
    JOIN event AS c ON c.sequence = e.certificate
    LEFT JOIN event AS p ON p.sequence = e.published
    LEFT JOIN event AS x ON x.sequence = e.content
"""


class Entries:
    """The entries of one database. Change them only inside `Database.transaction`."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._journal = Journal(database)

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

    def record(self, *, dataset: str, kind: str, key: str, revision: int, **fields: Any) -> Row:
        """Append an event to the chain, and store what it makes of its reservation; see `Journal.append`."""
        event = self._journal.append(dataset=dataset, kind=kind, key=key, revision=revision, **fields)
        row = after(self.charged(dataset, key, revision), event, self._journal.certificate)
        self._database.execute(_STORE, **row._asdict())
        return row

    def copy(self, event: Event) -> None:
        """Record an event of another ledger; its hash is the same at the same place in the chain."""
        fields = {name: getattr(event, name) for name in FIELDS}
        self._journal.append(**fields) if event.kind == "unreadable" else self.record(**fields)

    def charged(self, dataset: str, key: str, revision: int | None = None) -> Row | None:
        """Return a revision of a key that is charged, None: the latest; or None."""
        return self._row(
            "dataset = :dataset AND key = :key AND state <> 'given_back' "
            f"{'' if revision is None else 'AND revision = :revision '}ORDER BY revision DESC LIMIT 1",
            dataset=dataset,
            key=key,
            **({} if revision is None else {"revision": revision}),
        )

    def published(self, dataset: str, key: str) -> int | None:
        """Return the id of the latest published revision of a key, or None."""
        # The first condition on state is that of the index, which SQLite does not infer from the second one.
        row = self._row(
            "dataset = :dataset AND key = :key AND state <> 'given_back' AND state = 'published' "
            "ORDER BY revision DESC LIMIT 1",
            dataset=dataset,
            key=key,
        )
        return None if row is None else row.id

    def row(self, entry: int) -> Row:
        """Return the row of a reservation that was made; that it is not there is a `LedgerError`."""
        row = self._row("id = :entry", entry=entry)
        if row is None:
            raise LedgerError(
                f"the ledger {self._database.location!r} does not hold the reservation: it is another ledger, or its "
                "end was cut off. Nothing was published."
            )
        return row

    def rows(self, dataset: str) -> Iterator[Row]:
        """Yield the stored rows of one data set in order."""
        query = f"SELECT {_NAMES} FROM entry WHERE dataset = :dataset AND id > :after ORDER BY id LIMIT {_ROWS}"
        last = -1
        while rows := self._database.execute(query, dataset=dataset, after=last):
            yield from map(Row._make, rows)
            last = rows[-1][0]

    def _row(self, where: str, **fields: Any) -> Row | None:
        rows = self._database.execute(f"SELECT {_NAMES} FROM entry WHERE {where}", **fields)
        return Row._make(rows[0]) if rows else None

    def standing(self, entry: int) -> Facts:
        """Return what an entry is about."""
        ((text,),) = self._database.execute("SELECT standing FROM event WHERE sequence = :entry", entry=entry)
        try:
            return Facts.from_dict(json.loads(text))
        except ValueError:  # an ArgumentError is one
            raise LedgerError("a release the ledger holds cannot be read: it was altered.") from None

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

    def beside(self, dataset: str, standing: Facts) -> list[int]:
        """Return the ids of the published entries whose periods overlap that of `standing`, in order.

        Two queries, so that an index serves each: a period without dates overlaps every period with dates.
        """
        asked = Holding.of(standing)
        dated = "last_day >= :first AND first_day <= :last" if asked.label is None else "last_day IS NOT NULL"
        named = "label IS NOT NULL" if asked.label is None else "label = :label"
        where = "SELECT id FROM entry WHERE dataset = :dataset AND state = 'published' AND"
        given = {"label": asked.label} if asked.label is not None else {"first": asked.first, "last": asked.last}
        rows = self._database.execute(f"{where} {dated} UNION ALL {where} {named}", dataset=dataset, **given)
        return sorted(int(row[0]) for row in rows)


@functools.lru_cache(maxsize=64)
def terms_of(text: str) -> Terms:
    """Return the terms that a reservation has recorded."""
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
            standing=Facts.from_dict(json.loads(standing)),
            terms=terms_of(terms),
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
