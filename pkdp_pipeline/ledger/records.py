"""Records: one data set's events and the entries derived from them, as a database holds them.

Verification: the chain recomputed, and everything derived from it compared with what is stored.
"""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, NoReturn

from pkdp_pipeline.certificates.certificate import Certificate
from pkdp_pipeline.certificates.codec import parsed
from pkdp_pipeline.clock import now
from pkdp_pipeline.errors import ArgumentError, LedgerError, PkdpError, TemporaryError
from pkdp_pipeline.ledger.account import Account
from pkdp_pipeline.ledger.chain import FIELDS, GENESIS, Event, Terms, checked, event_hash
from pkdp_pipeline.ledger.database import Database, is_misspelt_address
from pkdp_pipeline.ledger.rows import Entry, Row, Span, after, facts_of, part_key, promise_of, replayed
from pkdp_pipeline.ledger.sealed import Sealed, opened
from pkdp_pipeline.model.context import Facts
from pkdp_pipeline.model.mechanisms import Mechanism
from pkdp_pipeline.model.period import folded

_EVENTS_PER_QUERY, _ROWS_PER_QUERY, _HEADS_PER_QUERY = 64, 1000, 500
_MAX_WIDENINGS = 4
"""A component that is not complete after so many widenings is read with everything."""

_NAMES = ", ".join(Row._fields)
_CHANGED = ("state", "published", "certificate", "content", "counts", "part", "told", "leaks")
_STORE = (
    f"INSERT INTO entry ({_NAMES}) VALUES ({', '.join(f':{name}' for name in Row._fields)}) "
    f"ON CONFLICT (id) DO UPDATE SET {', '.join(f'{name} = excluded.{name}' for name in _CHANGED)}"
)
_ENTRY = f"SELECT {_NAMES} FROM entry WHERE dataset = :dataset AND "
_CHARGED = f"{_ENTRY}state <> 'given_back'"
_COUNTED = Row._fields[: Row._fields.index("part") + 1]
_UNREAD = {name: Row._field_defaults[name] for name in Row._fields[len(_COUNTED) :]}
_EVENT = ", ".join(Event.__dataclass_fields__)
_FULL = f"""
    SELECT {", ".join(f"e.{name}" for name in Row._fields)}, r.standing, r.terms, {{}},
        coalesce(p.created_at, r.created_at), r.previous, coalesce(x.hash, r.hash)
    FROM entry AS e
    JOIN event AS r ON r.sequence = e.id
    JOIN event AS c ON c.sequence = e.certificate
    LEFT JOIN event AS p ON p.sequence = e.published
    LEFT JOIN event AS x ON x.sequence = e.content
"""


class Records:
    """The events and entries of one data set. Change them only inside `transaction`.

    `dataset`: its name; where the ledger keeps another spelling of it, that one counts.
    """

    def __init__(self, database: Database, dataset: str) -> None:
        self.database, self.parts = database, Parts(self)
        self._anew: tuple[tuple[int, str], dict[tuple[str, int], list[int]]] = (0, GENESIS), {}
        self._unreadable: tuple[int, frozenset[str]] = (0, frozenset())
        # By the span whose component is enough, None: all; each as it was when this was the last event.
        self.accounts: dict[Span | None, tuple[tuple[int, int, str], Account]] = {}
        self._name, self._settled = dataset, False
        self._name = self.dataset

    @property
    def dataset(self) -> str:
        """The data set's name, in the spelling the ledger keeps."""
        # While it has no releases, another process may bring another spelling of its name in.
        if not self._settled:
            known = self._spelled()
            self._name, self._settled = known or self._name, known is not None
        return self._name

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Hold the data set's write lock: all that happens inside is committed at the end, or nothing is."""
        try:
            with self.database.transaction(self._name):
                yield
        except BaseException:
            self._settled = False  # where this transaction registered the name, it is registered no more
            raise

    def close(self) -> None:
        """Close the database; what is closed cannot be used, and keeps its name."""
        self._settled = True
        self.database.close()

    def snapshot(self) -> AbstractContextManager[None]:
        """See one state of the ledger throughout, and write nothing; writers are not held up."""
        return self.database.snapshot()

    def execute(self, sql: str, /, **parameters: Any) -> list[tuple[Any, ...]]:
        """Run one statement with ``:name`` placeholders, `dataset` among them, and return its rows."""
        return self.database.execute(sql, **{"dataset": self.dataset, **parameters})

    # the data set's name

    def _spelled(self) -> str | None:
        rows = self.database.execute("SELECT name FROM dataset WHERE folded = :folded", folded=folded(self._name))
        return str(rows[0][0]) if rows else None

    def register(self) -> bool:
        """Record the data set's name, and return whether it was not known.

        A key may have been made with the spelling asked for, so where another one is known that is an error, once.
        """
        if self._settled:
            return False
        name, known = self._name, self._spelled()
        if known is None:
            self.database.execute(
                "INSERT INTO dataset (folded, name) VALUES (:folded, :name)", folded=folded(name), name=name
            )
        elif known != name:
            self._name = known
            raise TemporaryError(
                f"data set {name!r} was recorded as {known!r} meanwhile; nothing was charged: run again."
            )
        return known is None

    def datasets(self) -> list[str]:
        """Return the names of all data sets of the database, in order."""
        return sorted(str(name) for (name,) in self.database.execute("SELECT name FROM dataset"))

    # events

    def head(self) -> str:
        """Return the hash of the last event; 64 zeros when there is none."""
        return self._end()[1]

    def _end(self) -> tuple[int, str]:
        return self._last_event()[1:]

    def _last_event(self) -> tuple[int, int, str]:
        """Return sequence, position and hash."""
        query = "SELECT sequence, position, hash FROM event WHERE dataset = :dataset ORDER BY position DESC LIMIT 1"
        rows = self.execute(query)
        return (0, 0, GENESIS) if not rows else (int(rows[0][0]), int(rows[0][1]), str(rows[0][2]))

    def terms(self) -> Terms:
        """Return the terms recorded with the last reservation."""
        rows = self.execute(
            "SELECT terms FROM event WHERE dataset = :dataset AND terms IS NOT NULL ORDER BY position DESC LIMIT 1"
        )
        return terms_of(str(rows[0][0])) if rows else Terms()

    def certificates(self, row: Row) -> tuple[str, ...]:
        """Return the JSON texts of all certificates that a release had by the last event of its row, in order."""
        numbers = [row.id] if row.certificate == row.id else [row.id, *self._certified_anew(row)]
        rows = self.execute(
            f"SELECT certificate FROM event WHERE sequence IN ({', '.join(map(str, numbers))}) AND dataset = :dataset "
            "AND key = :key AND revision = :revision AND sequence >= :id AND sequence <= :certificate "
            "AND certificate IS NOT NULL ORDER BY sequence",
            **row._asdict(),
        )
        if not rows:
            raise LedgerError(f"event {row.id}, which should hold a certificate, holds none: the ledger was altered.")
        return tuple(str(text) for (text,) in rows)

    def _certified_anew(self, row: Row) -> list[int]:
        """Return the numbers of the events, and maybe of others, that certified a release anew.

        Events have no index by key: those of the whole chain are read once, and then what was appended.
        """
        end, ((position, head), numbers) = self._end(), self._anew
        if end != (position, head):
            query = "SELECT {} FROM event WHERE dataset = :dataset AND position"
            if not self.execute(f"{query.format(1)} = :position AND hash = :head", position=position, head=head):
                position, numbers = 0, {}  # what was read was rolled back
            query = (
                f"{query.format('key, revision, sequence')} > :position AND position <= :end AND kind = 'recertified'"
            )
            for key, revision, number in self.execute(query, position=position, end=end[0]):
                numbers.setdefault((key, revision), []).append(number)
            self._anew = end, numbers
        return numbers.get((row.key, row.revision), [])

    def promise(self, row: Row) -> Certificate:
        """Return what totals count a release with; see `promise_of`.

        Raises `LedgerError` if that is not what its row says.
        """
        texts = self.certificates(row)
        if part_key(texts) != row.part:
            raise LedgerError("the ledger's account refers to a certificate it does not hold: it was altered.")
        return promise_of(texts)

    def append(self, **fields: Any) -> Event:
        """Append one event to the chain; fields of `Event` that are left out are None.

        `position` and `previous` are those that follow the chain's end, `created_at` is now unless it is given.
        """
        last, previous = self._end()
        moment = now().isoformat(timespec="seconds")
        place = {"dataset": self.dataset, "position": last + 1, "previous": previous}
        fields = {**dict.fromkeys(FIELDS), "created_at": moment, **fields, **place}
        fields["hash"] = event_hash(**fields)
        names, marks = ", ".join(fields), ", ".join(f":{name}" for name in fields)
        rows = self.execute(f"INSERT INTO event ({names}) VALUES ({marks}) RETURNING sequence", **fields)
        return Event(sequence=int(rows[0][0]), **fields)

    def events(self) -> Iterator[Event]:
        """Yield the events in order, a few at a time in memory."""
        query = (
            f"SELECT {_EVENT} FROM event WHERE dataset = :dataset AND position > :position "
            f"ORDER BY position LIMIT {_EVENTS_PER_QUERY}"
        )
        position = -1  # one before what a chain may hold, so that nothing is overlooked
        while rows := self.execute(query, position=position):
            for row in rows:
                event = Event(**dict(zip(Event.__dataclass_fields__, row, strict=True)))
                if not isinstance(event.position, int):
                    raise LedgerError(f"event {event.sequence} of {self.dataset!r} has no position: it was altered.")
                position = event.position
                yield event

    def unreadable(self) -> frozenset[str]:
        """Return the tables of the data set that were found to be unreadable; call it before anything is appended."""
        # Events are only added: those up to the end of an earlier call are not read again.
        (last, tables), end = self._unreadable, self._end()[0]
        query = "SELECT key FROM event WHERE dataset = :dataset AND position > :last AND kind = 'unreadable'"
        tables = tables.union(str(key) for (key,) in self.execute(query, last=last))
        self._unreadable = end, tables
        return tables

    def certificates_after(self, heads: Iterable[str]) -> dict[str, list[str]]:
        """Return, for those of `heads` that are in the chain, the certificates of the release charged just after.

        64 zeros stand before the first event of every chain, and are in none.
        """
        listed = sorted({*heads})
        rows = []
        for start in range(0, len(listed), _HEADS_PER_QUERY):
            given = {f"h{number}": text for number, text in enumerate(listed[start : start + _HEADS_PER_QUERY])}
            rows += self.execute(
                "SELECT a.hash, b.key, b.revision, b.certificate FROM event a LEFT JOIN event b ON "
                "b.dataset = a.dataset AND b.position = a.position + 1 AND b.kind = 'reserved' "
                f"WHERE a.dataset = :dataset AND a.hash IN ({', '.join(f':{name}' for name in given)})",
                **given,
            )
        query = "SELECT previous, key, revision, certificate FROM event WHERE dataset = :dataset AND "
        rows += self.execute(f"{query}position = 1 AND kind = 'reserved'")
        anew = self.execute(f"{query}kind = 'recertified' ORDER BY position")
        certificates: dict[str, list[str]] = {}
        for head, key, revision, first in rows:
            later = [text for _, *key_and_revision, text in anew if key_and_revision == [key, revision]]
            certificates[str(head)] = [] if first is None else [str(first), *map(str, later)]
        return certificates

    # entries

    def record(self, kind: str, key: str, revision: int, **fields: Any) -> tuple[Row, Event]:
        """Append an event to the chain, and store what it makes of its reservation; see `append`."""
        event = self.append(kind=kind, key=key, revision=revision, **fields)
        row = after(self.charged(key, revision), event, self.certificates)
        self.execute(_STORE, **row._asdict())
        self._follow(event, row)
        return row, event

    def copy(self, event: Event) -> None:
        """Record an event of another ledger; its hash is the same at the same place in the chain."""
        fields = {name: getattr(event, name) for name in FIELDS if name != "dataset"}
        self.append(**fields) if event.kind == "unreadable" else self.record(**fields)

    def charged(self, key: str, revision: int | None = None) -> Row | None:
        """Return a revision of a key that is charged, None: the latest; or None."""
        exact = "" if revision is None else "AND revision = :revision "
        return self._row(f"{_CHARGED} AND key = :key {exact}ORDER BY revision DESC LIMIT 1", key=key, revision=revision)

    def published(self, key: str) -> Entry | None:
        """Return the latest published revision of a key, or None."""
        # `_CHARGED` has the condition of the index, which SQLite does not infer from the second one.
        row = self._row(f"{_CHARGED} AND key = :key AND state = 'published' ORDER BY revision DESC LIMIT 1", key=key)
        return None if row is None else self.read(row.id)

    def row(self, entry: int) -> Row:
        """Return the row of a reservation that was made; that it is not there is a `LedgerError`."""
        row = self._row(f"{_ENTRY}id = :entry", entry=entry)
        if row is None:
            raise LedgerError(
                f"the ledger {self.database.location!r} does not hold the reservation: it is another ledger, or its "
                "end was cut off. Nothing was published."
            )
        return row

    def _row(self, query: str, **fields: Any) -> Row | None:
        rows = self.execute(query, **fields)
        return Row._make(rows[0]) if rows else None

    def rows(self) -> Iterator[Row]:
        """Yield the stored rows in order."""
        last = -1
        while rows := self.execute(f"{_ENTRY}id > :after ORDER BY id LIMIT {_ROWS_PER_QUERY}", after=last):
            yield from map(Row._make, rows)
            last = rows[-1][Row._fields.index("id")]

    def account(self, beside: Row | None = None) -> Account:
        """Return the account of the data set as it is charged now; with `beside` its own component is enough.

        Nothing of it is stored. At 20,000 entries reading and adding up takes some tenths of a second on a busy
        machine of two cores; a charge without a budget, and a check, read only that component, and do not grow with
        the ledger.
        """
        # The end of the chain determines it: a charge that is tried again, or waits for a sum, reads it once.
        span, end = beside and beside.span, self._last_event()
        state, account = self.accounts.get(span, (None, None))
        if account is None or state != end:
            account = self._read_account(beside)
            if end == self._last_event():
                self.accounts = {key: kept for key, kept in self.accounts.items() if key is None}
                self.accounts[span] = end, account
        return account

    def _follow(self, event: Event, row: Row) -> None:
        """Bring the accounts that were read past a charge or a publication; after anything else they are read anew."""
        now, known, self.accounts = (event.sequence, event.position, event.hash), self.accounts, {}
        for span, ((_, *end), account) in known.items():
            if end == [event.position - 1, event.previous] and span in (None, row.span):
                if event.kind == "reserved":
                    self.accounts[span] = now, account.plus(row._replace(**_UNREAD))
                elif event.kind == "published":
                    self.accounts[span] = now, account

    def _read_account(self, beside: Row | None) -> Account:
        first, last = (None, None) if beside is None else (beside.first_day, beside.last_day)
        charged = _CHARGED.replace(_NAMES, ", ".join(_COUNTED))
        if first is not None and last is not None and not self.execute(f"{_CHARGED} AND label IS NOT NULL LIMIT 1"):
            query = f"{charged} AND last_day >= :first AND first_day <= :last"
            # Fixed point: the days grow to those of all releases they meet, until they are those of a whole component.
            for _ in range(_MAX_WIDENINGS):
                account = Account(Row(*values) for values in self.execute(query, first=first, last=last))
                before = first, last
                first = min([first, *(row.first_day or 0 for row in account.rows)])
                last = max([last, *(row.last_day or 0 for row in account.rows)])
                if before == (first, last):
                    return account
        return Account(Row(*values) for values in self.execute(f"{charged} ORDER BY id"))

    def facts(self, entry: int) -> Facts:
        """Return what an entry is about."""
        ((text,),) = self.execute("SELECT standing FROM event WHERE sequence = :entry", entry=entry)
        try:
            return facts_of(text)
        except ValueError:  # an ArgumentError is one
            raise LedgerError("a release the ledger holds cannot be read: it was altered.") from None

    def mechanisms_beside(self, standing: Facts) -> list[Mechanism]:
        """Return what is charged about the same unit, table and period as `standing`, the first one first."""
        requested = Row.of(standing)
        place = requested.unit, requested.source, requested.span
        rows = sorted(self.account(requested).rows, key=lambda row: row.id)
        alike = (row.id for row in rows if (row.unit, row.source, row.span) == place)
        return list(dict.fromkeys(self.facts(entry).mechanism for entry in alike))

    def read(self, entry: int) -> Entry:
        """Return one entry with its bytes."""
        rows = self.execute(_FULL.format(_TEXTS) + "WHERE e.dataset = :dataset AND e.id = :entry", entry=entry)
        if not rows:
            raise LedgerError(f"the ledger {self.database.location!r} has no entry {entry}, or lost its events.")
        return self._entry(rows[0])

    def each(self, *, given_back: bool = False, brief: bool = False) -> Iterator[Entry]:
        """Yield the entries in the order of their reservation, a few at a time in memory.

        `given_back`: those as well. `brief`: without certificates and bytes.
        """
        skipped = "" if given_back else "AND e.state <> 'given_back' "
        # PostgreSQL does not infer the second bound from the first, and would begin at the first event each time.
        bounds = "e.id > :after AND r.sequence > :after"
        texts = "'', x.release_id, NULL" if brief else _TEXTS
        condition = f"WHERE e.dataset = :dataset AND {bounds} {skipped}"
        query = f"{_FULL.format(texts)}{condition}ORDER BY e.id LIMIT {_EVENTS_PER_QUERY}"
        last = 0
        while rows := self.execute(query, after=last):
            for row in rows:
                entry = self._entry(row, brief=brief)
                yield entry
                last = entry.sequence

    def _entry(self, values: tuple[Any, ...], *, brief: bool = False) -> Entry:
        row, others = Row._make(values[: len(Row._fields)]), values[len(Row._fields) :]
        former = () if row.certificate == row.id or brief else self.certificates(row)[:-1]
        try:
            standing, terms = facts_of(others[0]), terms_of(others[1])
        except (PkdpError, AttributeError, KeyError, TypeError, ValueError) as error:
            raise LedgerError(
                f"the ledger's entry {row.id} cannot be read: {error}. It was altered, or written by another version; "
                "check the ledger with verify()."
            ) from error
        certificate, release_id, content, created_at, head, link = others[2:]
        return Entry(row, standing, terms, certificate, release_id, content, created_at, head, link, former)


_TEXTS = "c.certificate, x.release_id, x.content"


class Parts(dict[str, Certificate]):
    """The promises that a data set's releases count with, by `Row.part`, read when they are asked for.

    Raises `LedgerError` if one is missing, or is not what its key says.
    """

    def __init__(self, records: Records) -> None:
        self._records = records

    def __missing__(self, key: str) -> Certificate:
        rows = self._records.execute(f"{_ENTRY}part = :key LIMIT 1", key=key)
        if not rows:
            raise LedgerError("the ledger's account refers to a certificate it does not hold: it was altered.")
        self[key] = self._records.promise(Row._make(rows[0]))
        return self[key]


@functools.lru_cache(maxsize=64)
def terms_of(text: str) -> Terms:
    """Return the terms that a reservation has recorded."""
    # Most entries were made under the same terms.
    return Terms.from_dict(json.loads(text))


def open_database(location: str | os.PathLike[str], *, create: bool = True) -> Database:
    """Open the ledger at a path (SQLite) or a ``postgresql://`` URL; where there is none, `create` it or refuse.

    Raises `ArgumentError` if `location` is not a path or a URL, `LedgerError` or `TemporaryError` as `Database` does.
    """
    if not isinstance(location, str | os.PathLike):
        raise ArgumentError("a ledger is opened by its path or by a postgresql:// URL, written as text.")
    text = os.fspath(location)
    if not isinstance(text, str) or not text.strip() or "\x00" in text:
        raise ArgumentError("a ledger is opened by its path or by a postgresql:// URL, written as text.")
    if is_misspelt_address(text):
        raise ArgumentError(
            "the ledger is neither a file nor an address of a PostgreSQL database: write "
            "postgresql://user@host:5432/database, and percent-encode what is not a letter or a digit in user and "
            "password."
        )
    scheme, mark, _ = text.partition("://")
    if not mark:
        from pkdp_pipeline.ledger.sqlite_database import SqliteDatabase

        return SqliteDatabase(text, create=create)
    if scheme.partition("+")[0] not in ("postgresql", "postgres"):
        raise LedgerError(
            f"a ledger is kept in an SQLite file or in PostgreSQL, not at {scheme}://; give the path of a file or a "
            "postgresql:// URL."
        )
    from pkdp_pipeline.ledger.database import PostgresDatabase

    return PostgresDatabase(text, create=create)


Look = Callable[[Event, Sealed | None], None]
"""A check of an event that continues the chain and, where it has released bytes, of what they hold."""


def verify_chain(records: Records, *, head: str | None, contents: bool, look: Look | None = None) -> None:
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
    head = (parsed(str(event.certificate)).get("context") or {}).get("head")
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
