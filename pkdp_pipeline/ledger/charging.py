"""Charging: a reservation made, or one that was left taken over; the caller's transaction holds it together."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from pkdp_pipeline.certificates.release_certificate import ReleaseCertificate
from pkdp_pipeline.errors import BudgetExceededError, NoEvidenceError
from pkdp_pipeline.ledger.account import Account, read_account
from pkdp_pipeline.ledger.adding_up import add_up
from pkdp_pipeline.ledger.admission import Admission, admit, check_told
from pkdp_pipeline.ledger.budget_check import BudgetCheck
from pkdp_pipeline.ledger.chain import Journal, json_text
from pkdp_pipeline.ledger.database import Database
from pkdp_pipeline.ledger.entries import Entries, Entry, Reservation
from pkdp_pipeline.ledger.parts import Parts, certificate_of, compared, describe
from pkdp_pipeline.ledger.rows import Row
from pkdp_pipeline.ledger.terms import Terms
from pkdp_pipeline.ledger.totals import LedgerTotals
from pkdp_pipeline.model.attacker import AttackerModel
from pkdp_pipeline.model.facts import Facts

_NAMED = 10
"""How many other data sets are named."""


class Charging:
    """The charge of one release. Use it only inside `Database.transaction`.

    Parameters
    ----------
    database : Database
    dataset : str
    key : str
    standing : Facts
    offer : callable
        See `Ledger.reserve`.
    terms : Terms
        Those in force.
    attacker : AttackerModel, optional
        Whom the release is to be certified against. None: the certificate offered will say it.
    """

    def __init__(
        self,
        database: Database,
        *,
        dataset: str,
        key: str,
        standing: Facts,
        offer: Callable[[Admission, str], Any],
        terms: Terms,
        attacker: AttackerModel | None = None,
    ) -> None:
        self._database, self._dataset, self._key, self._standing = database, dataset, key, standing
        self._offer, self._terms = offer, terms
        self._told = attacker is None or attacker.total_is_known
        self._entries = Entries(database)

    def charge(self, *, revise: bool) -> Reservation | Entry:
        """Reserve the release, or take a reservation over; the entry where it is published and not to be revised.

        Raises
        ------
        PkdpError
            If it may not be published, see `Ledger.reserve`; the caller rolls the transaction back.
        """
        if self._entries.register(self._dataset):
            self._name_others()
        published = None if revise else self._entries.published(self._dataset, self._key)
        if published is not None:
            return self._entries.read(published)
        latest = self._entries.charged(self._dataset, self._key)
        if latest is not None and latest.state == "reserved":
            return self._taken_over(latest)
        certificate = self._offered(Journal(self._database).head(self._dataset))
        return self._reserved(certificate, 1 if latest is None else latest.revision + 1)

    def _name_others(self) -> None:
        """Name the ledger's other data sets where one starts: a name mistyped would be about other people."""
        others = [name for name in self._entries.datasets() if name != self._dataset]
        if others:
            more = f" and {len(others) - _NAMED} more" if len(others) > _NAMED else ""
            named = ", ".join(map(repr, others[:_NAMED])) + more
            warnings.warn(
                f"data set {self._dataset!r} starts in a ledger that holds {named}; "
                "releases of different data sets are never added up. Where the same people are meant, give that name.",
                stacklevel=2,
            )

    def _reserved(self, certificate: ReleaseCertificate, revision: int) -> Reservation:
        row = self._entries.record(
            dataset=self._dataset,
            kind="reserved",
            key=self._key,
            revision=revision,
            standing=json_text(self._standing.to_dict()),
            certificate=certificate.to_json(),
            terms=json_text(self._terms.to_dict()),
        )
        _hold_charged(self._database, row, self._standing, self._terms)
        return Reservation.of(self._entries.read(row.id), certificate)

    def _taken_over(self, left: Row) -> Reservation:
        """Finish what another run of the same request has reserved, charged once.

        The release is admitted, certified and held to the budgets anew, as if nothing had been reserved. Where
        terms and certificate are those of the reservation, it stands, and its own run may still publish it;
        otherwise it is given back and the release is charged again.
        """
        entry = self._entries.read(left.id)
        certificate = self._offered(entry.head, instead_of=left.id)
        if (self._terms, certificate.to_json()) == (entry.terms, entry.certificate):
            _hold_charged(self._database, left, entry.standing, self._terms)
            return Reservation.of(entry, certificate)
        self._entries.record(dataset=self._dataset, kind="given_back", key=self._key, revision=left.revision)
        certificate = self._offered(Journal(self._database).head(self._dataset))
        return self._reserved(certificate, left.revision)

    def _offered(self, head: str, instead_of: int | None = None) -> Any:
        allowed = admit(
            self._database, self._dataset, self._standing, self._terms, told=self._told, instead_of=instead_of
        )
        certificate = self._offer(allowed, head).written()
        check_told(allowed, certificate)
        return certificate


def _hold_charged(db: Database, row: Row, standing: Facts, terms: Terms) -> None:
    """Refuse a release just charged that does not add up with the others, or exceeds a budget.

    Raises
    ------
    BudgetExceededError
        If a budget is exceeded, with what was spent, what is asked for and what is allowed. The caller rolls the
        transaction back.
    NoEvidenceError
        If the release cannot be added up with the evidence declared, or takes the total away that there was, or
        there is a budget and no total. The caller rolls the transaction back.
    """
    if terms.evidence:
        # The evidence may be about another kind of release, which no total could hold.
        component = Account(read_account(db, row.dataset, row.holding.span).component(row.id))
        parts = Parts(db, row.dataset)
        for unit in component.units:
            add_up(component.bundles(unit), parts, terms.evidence, beside_others=False)
    if not terms.budgets and not _is_new(db, row, terms):
        return
    totals = LedgerTotals.read(db, row.dataset, terms)
    before = totals.account.without(row.id)
    _check_still_adds_up(db, totals, before, row)
    BudgetCheck(totals, standing, row, before, before).hold()


def hold_recertified(db: Database, row: Row, former: Row, standing: Facts, *, recorded: Terms, terms: Terms) -> None:
    """Refuse a release's new certificate that takes the total away, or exceeds a budget.

    Parameters
    ----------
    db : Database
    row, former : Row
        The entry as it is and as it was; one that counts as before leaves the totals as they are.
    standing : Facts
    recorded : Terms
        Under which the releases must add up as before.
    terms : Terms
        Whose budgets the totals may not exceed; a milder certificate takes nothing off the totals.

    Raises
    ------
    BudgetExceededError
        If the totals with the new certificate exceed a budget, or nobody can say that they do not. The caller rolls
        the transaction back.
    NoEvidenceError
        If with the new certificate the releases do not add up any more.
    """
    if row.part == former.part:
        return
    description, earlier = (describe(Journal(db).certificate(one.counts)) for one in (row, former))
    how = compared(description, earlier)
    if terms.budgets and how == "neither":
        raise BudgetExceededError(
            f"{standing.label!r} (period {standing.period}) counts in the budgets with a certificate that it has, "
            "and the new one promises more in one respect and less in another: certify it for an attacker who "
            "knows more in every respect, or less."
        )
    parts = Parts(db, row.dataset)
    parts[former.part] = certificate_of(earlier)  # which no release may count with any more
    totals = LedgerTotals(account=read_account(db, row.dataset), parts=parts, terms=recorded)
    others = totals.account.without(row.id)
    before = others.plus(former.holding)
    _check_still_adds_up(db, totals, before, row)
    if how != "as bold":
        BudgetCheck(replace(totals, terms=terms), standing, row, before, others, again=True).hold()


def _is_new(db: Database, row: Row, terms: Terms) -> bool:
    """Return whether a release may take the total away.

    One more of a kind that is there already adds up as the others do, however many they are; and without evidence
    whatever is admitted adds up, unless something leaks beside some of it.
    """
    others = (
        "SELECT 1 FROM entry WHERE dataset = :dataset AND unit = :unit AND state <> 'given_back' AND id <> :id AND "
    )
    where = {"dataset": row.dataset, "unit": row.unit, "id": row.id}
    known = bool(db.execute(f"{others} part = :part LIMIT 1", **where, part=row.part))
    if known or terms.evidence:
        return not known
    return bool(row.leaks) or bool(db.execute(f"{others} leaks = 1 LIMIT 1", **where))


def _check_still_adds_up(db: Database, totals: LedgerTotals, before: Account, row: Row) -> None:
    """Refuse what takes the unit's total away; where there was none before, nothing is lost."""
    own = before.bundles(row.unit)
    if not own or not _is_new(db, row, totals.terms):
        return
    try:
        totals.of(totals.account.bundles(row.unit))
    except NoEvidenceError:
        try:
            totals.of(own)  # beside the units there are now
        except NoEvidenceError:
            return
        raise
