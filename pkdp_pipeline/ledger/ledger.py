"""Ledger: what one data set has published, charged before the data are read and published once."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from datetime import date
from functools import partial
from typing import TYPE_CHECKING, Any

from pkdp_pipeline.certificates.release_certificate import Asked, read_target
from pkdp_pipeline.errors import ArgumentError, TemporaryError
from pkdp_pipeline.ledger.admission import Admission, least_admission
from pkdp_pipeline.ledger.chain import GENESIS, Terms, given
from pkdp_pipeline.ledger.charging import Charging, Outside, Run, check_recertified, name_others
from pkdp_pipeline.ledger.database import Database
from pkdp_pipeline.ledger.records import Records, open_database, verify_chain
from pkdp_pipeline.ledger.rows import Entry, Reservation, Row
from pkdp_pipeline.ledger.totals import LedgerTotals
from pkdp_pipeline.model.attacker import AttackerModel
from pkdp_pipeline.model.context import Facts
from pkdp_pipeline.model.period import dataset_name
from pkdp_pipeline.plugins import view

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from pkdp_pipeline.certificates.certificate import Certificate

Offer = Callable[[Admission, str], Any]


class Ledger:
    """The append-only record of what one data set has published.

    Open it with `Ledger.open`, as a context manager. One file or database may hold several data sets; a ledger
    object sees one of them.

    A release takes two transactions. `reserve` charges it, before any data are read; `publish` stores its bytes,
    and only then may anybody see them. After a crash between the two it is charged and not public, and the same
    request, run again, takes the reservation over: it is charged once. A run that publishes nothing gives it back.

    Notes
    -----
    Every reservation, publication, return and new certificate is an event of one chain: its hash covers it and
    every event before it. `verify` recomputes the chain. That the end of a chain is missing can only be seen
    from outside, by a hash known to be in it: `head`, or the head that a release's certificate names.

    Anyone who can write to the file or database can also rewrite all of it; keep heads elsewhere. It knows only what
    is published through it: two ledgers about the same people do not see each other.
    """

    target: Asked = "default"
    """The least that a release has to promise, where it does not say so itself."""

    def __init__(self, database: Database, *, dataset: str, budget: Any = None, evidence: Any = None) -> None:
        self._budgets, self._evidence = given(budget, evidence)
        self.records = Records(database, dataset_name(dataset))

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        *,
        dataset: str = "default",
        budget: Any = None,
        evidence: Any = None,
        target: Asked = "default",
    ) -> Ledger:
        """Open a ledger, creating it when there is none.

        Parameters
        ----------
        path : path-like or str
            A SQLite file on a local disk (a network file system is not safe), ``:memory:``, or a
            ``postgresql://`` URL, which needs the extra ``postgres`` and serves several machines.
        dataset : str, default "default"
            The data set this ledger object is about; its people are the same people in every release. A name
            that differs from a known one in letter case or spacing only means the same data set.
        budget : Budget or sequence of Budget, optional
            The most the total may be. None: the budgets recorded with the last reservation.
        evidence : evidence or sequence, optional
            The evidence declared about the data set, by which its releases add up. None: that of the last reservation.
        target : Target or None, optional
            The least a release has to promise; not recorded. Without it a finite ε at δ = 1e-6, None: nothing.

        Returns
        -------
        Ledger

        Raises
        ------
        ArgumentError
            If an argument is malformed.
        LedgerError
            If it is not a ledger, has an unknown schema, is damaged or cannot be written.
        TemporaryError
            If another process holds it locked, or it cannot be reached.
        """
        dataset_name(dataset)
        # Read once: an iterator has nothing left for a second reading.
        budgets, declared = given(budget, evidence)
        required = read_target(target)
        database = open_database(path)
        try:
            ledger = cls(database, dataset=dataset, budget=budgets, evidence=declared)
            ledger.target = required
            return ledger
        except BaseException:
            database.close()
            raise

    def __enter__(self) -> Ledger:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close it; a closed ledger cannot be used."""
        self.records.close()

    @property
    def dataset(self) -> str:
        """The data set this ledger object is about, in the spelling the ledger keeps."""
        return self.records.dataset

    @property
    def location(self) -> str:
        """The path, or the address without user, password and options."""
        return self.records.database.location

    @property
    def terms(self) -> Terms:
        """Budgets and evidence in force: those given when opening, else those of the last reservation."""
        budgets, evidence = self._budgets, self._evidence
        if budgets is None or evidence is None:
            recorded = self.records.terms()
            budgets = recorded.budgets if budgets is None else budgets
            evidence = recorded.evidence if evidence is None else evidence
        return Terms(budgets=budgets, evidence=evidence)

    def head(self) -> str:
        """Return the hash of the data set's last event; 64 zeros when there is none."""
        return self.records.head()

    def find(self, key: str) -> Entry | None:
        """Return the latest published revision of what `key` asks, or None."""
        return self.records.published(key)

    def entries(self, *, given_back: bool = False) -> Iterator[Entry]:
        """Yield reserved and published entries in the order of their reservation, with `given_back` those as well."""
        return self.records.each(given_back=given_back)

    def beside(self, standing: Facts) -> list[Entry]:
        """Return the published entries about the same people in periods that overlap that of `standing`.

        A release with the same standing is among them once it is published.
        """
        requested = Row.of(standing)
        entries = (self.records.read(row.id) for row in self.records.account(requested).rows if row.meets(requested))
        return sorted((entry for entry in entries if entry.state == "published"), key=lambda entry: entry.sequence)

    def admission(self, entry: Entry) -> Admission:
        """Return what stands beside the charged `entry` now, and what a new certificate of it may claim."""
        self._check_own(entry)
        with self.records.snapshot():
            return self._allowed(entry)

    def _allowed(self, entry: Entry) -> Admission:
        # A new certificate records no terms of its own: those recorded must allow it, and those given as well.
        return least_admission(self.records, entry.sequence, (self.records.terms(), self.terms))

    def total(self, unit: object = None) -> Certificate:
        """Return what everything charged adds up to, under the evidence in force.

        Parameters
        ----------
        unit : str, sequence of str or EACH_ROW, optional
            Columns that name a person; needed where the data set has releases about several units.

        Raises
        ------
        NoEvidenceError
            If they do not add up without evidence, which the message names.

        Warns
        -----
        UserWarning
            If the ledger holds nothing of the data set, but others.
        """
        return self.total_at_hand(unit)()

    def total_at_hand(self, unit: object = None) -> partial[Certificate]:
        """Return what computes the `total` of `unit` as it is now, and needs the ledger no more; it can be pickled."""
        with self.records.snapshot():
            if self.head() == GENESIS:
                name_others(self.records, "has nothing in")
            totals = self.totals()
            return partial(totals.total, totals.asked_unit(unit))

    def totals(self) -> LedgerTotals:
        """Return what adds up to the totals under the terms in force; inside a snapshot or a transaction."""
        return LedgerTotals.read(self.records, self.terms)

    def known_total(self, unit: tuple[str, ...], *days: date) -> Certificate | None:
        """Return the total of `unit`, or of the `days` from the first to the last; see `LedgerTotals.known`."""
        with self.records.snapshot():
            return self.totals().known(unit, *days)

    def plot(self, *, unit: object = None, delta: float = 1e-6, ax: Axes | None = None) -> Axes:
        """Draw the total ε at `delta` after each period, and the budgets; `unit` as for `total`, `ax` for a plot."""
        with self.records.snapshot():
            drawn: Axes = view("plot.ledger")(self, self.totals().asked_unit(unit), delta=delta, axes=ax)
            return drawn

    def reserve(
        self,
        key: str,
        standing: Facts,
        offer: Offer,
        *,
        revise: bool = False,
        attacker: AttackerModel | None = None,
        run: Run = None,
    ) -> Reservation | Entry:
        """Charge a release before its data are read.

        Parameters
        ----------
        key : str
            The key of the question.
        standing : Facts
        offer : callable
            Called as ``offer(admission, head)``, after the differencing check and before the charge, and returns
            the certificate, or a `Work` that makes it. The `Admission` says whether others stand beside the release,
            and whether it may claim more than the worst case; `head` is the head of the chain.
        revise : bool, default False
            Publish the same question anew, as one more revision, charged as another release.
        attacker : AttackerModel, optional
            The attacker of the certificate: what it forbids is then refused before `offer` is called.
        run : callable, optional
            Does each `Work` while others may use the ledger; None: it is done while the ledger is locked.

        Returns
        -------
        Reservation or Entry
            The entry, when the key is published already and `revise` is False. A reservation that another run
            made and did not finish is taken over, charged once: as it is, where the terms in force and what
            `offer` certifies now are those of the reservation; otherwise it is given back and made anew, and the
            other run can publish it no more.

        Raises
        ------
        DifferencingError, NoEvidenceError, BudgetExceededError
            If it may not be published; nothing was charged, and a reservation to be taken over stays as it was.
        LedgerError, TemporaryError
            If the ledger cannot be used or is locked.
        """
        outside = Outside(run)

        def charged() -> Reservation | Entry:
            with self.records.transaction():
                if self.records.register():
                    name_others(self.records)
                charging = Charging(
                    records=self.records,
                    key=key,
                    standing=standing,
                    offer=offer,
                    terms=self.terms,
                    total_is_known=attacker is None or attacker.total_is_known,
                    compute=outside,
                )
                return charging.charge(revise=revise)

        return outside.through(charged)

    def publish(self, reservation: Reservation, content: bytes, release_id: str) -> tuple[Entry, bool]:
        """Publish what was reserved, or return what another process has published of it meanwhile.

        `reservation` comes from `reserve`; `content`, the released bytes of `release_id`, are stored as they are.

        Returns
        -------
        entry : Entry
            The entry that stands; show its `content` to the world, not the argument.
        replayed : bool
            True when it was published before, and `content` was not stored.

        Raises
        ------
        LedgerError, TemporaryError
            If the ledger cannot be used or is locked, or another run gave the reservation back: `content` may
            not be shown to anybody. The same request, run again, finishes what this one began.
        """
        charged = reservation.charged
        self._check_own(charged)
        if not isinstance(content, bytes) or not isinstance(release_id, str) or not release_id:
            raise ArgumentError("content must be the released bytes, and release_id a non-empty text.")
        with self.records.transaction():
            state = self.records.row(charged.sequence).state
            if state == "given_back":
                raise TemporaryError(
                    "another run of the same request gave its reservation back meanwhile; nothing was published: "
                    "run again."
                )
            if state == "reserved":
                self._record("published", charged, release_id=release_id, content=content)
            return self.records.read(charged.sequence), state == "published"

    def _record(self, kind: str, entry: Entry, **fields: Any) -> None:
        self.records.record(kind, entry.key, entry.revision, **fields)

    def give_back(self, reservation: Reservation) -> bool:
        """Take back the charge of a release that was not published, and never will be.

        Only a run that has shown nothing of its `reservation` may do so. Returns False where it was published.
        """
        self._check_own(reservation.charged)
        with self.records.transaction():
            state = self.records.row(reservation.charged.sequence).state
            if state == "reserved":
                self._record("given_back", reservation.charged)
            return state != "published"

    def recertify(self, entry: Entry, certificate: str, release_id: str, content: bytes, *, run: Run = None) -> Entry:
        """Store a published table under another certificate; the table is the same, and nothing new is published.

        `content` is the table of `entry` with the new `certificate`, in JSON, and `release_id` its id. Returns
        the entry as it is now. A certificate that was stored meanwhile, or claims more than `admission` allows by now,
        is a `TemporaryError`; one about an attacker who is not told of a total beside it, a `DifferencingError`; one
        that exceeds a budget, a `BudgetExceededError`. A milder one than before leaves the totals as they are. `run`:
        see `reserve`.
        """
        from pkdp_pipeline.certificates.certificate import Certificate

        self._check_own(entry)
        outside = Outside(run)

        def recertified() -> Entry:
            with self.records.transaction():
                current = self.records.read(entry.sequence)
                if current.state != "published":
                    raise ArgumentError("only a published entry can be certified again.")
                if (current.release_id, current.content) == (release_id, content):
                    return current
                if current.hash != entry.hash:
                    raise TemporaryError("another run certified the same release meanwhile: run again.")
                self._allowed(entry).check_claims(Certificate.from_json(certificate))
                terms = {"recorded": self.records.terms(), "terms": self.terms}
                fields = {"certificate": certificate, "release_id": release_id, "content": content}
                self._record("recertified", entry, **fields)
                newest = self.records.read(entry.sequence)
                if check := check_recertified(self.records, newest, current.row, **terms):
                    outside(check)
                return newest

        return outside.through(recertified)

    def unreadable(self) -> frozenset[str]:
        """Return the tables of the data set that were found to be unreadable."""
        return self.records.unreadable()

    def mark_unreadable(self, table: str) -> None:
        """Record, once, that a `table` could not be read.

        Answers that came back after a failure, or failed for one question and not for another, would spell data out.
        """
        with self.records.transaction():
            self.records.register()
            if table not in self.unreadable():
                self.records.append(kind="unreadable", key=table, revision=1)

    def verify(self, head: str | None = None, *, contents: bool = True) -> None:
        """Recompute the data set's chain and all that is derived from it.

        Parameters
        ----------
        head : str, optional
            A hash that must be in the chain: `head` noted at an earlier time, or the head that a release's
            certificate names. Without it a ledger whose end was cut off passes.
        contents : bool, default True
            Whether the released bytes are read as releases and compared with their ids, too; they are in the
            chain's hashes in any case.

        Raises
        ------
        LedgerError
            If the chain, an event, a stored release, the entries or the running totals are not what they were
            made as, or `head` is not a hash of this chain.
        """
        if head is not None and (not isinstance(head, str) or len(head) != len(GENESIS)):
            raise ArgumentError("head must be a hash of 64 hexadecimal digits, as Ledger.head returns it.")
        verify_chain(self.records, head=head and head.lower(), contents=contents)

    def _check_own(self, given: Entry) -> None:
        if given.dataset != self.dataset:
            raise ArgumentError(f"it belongs to data set {given.dataset!r}, this ledger object to {self.dataset!r}.")
