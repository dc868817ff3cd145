"""Charging: a reservation made, or one that was left taken over; the caller's transaction holds it together."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from pkdp_pipeline.ledger import accounts
from pkdp_pipeline.ledger.admission import Admission, check_told
from pkdp_pipeline.ledger.database import Database
from pkdp_pipeline.ledger.entries import Entries
from pkdp_pipeline.ledger.entry import Entry, Reservation
from pkdp_pipeline.ledger.journal import Journal, json_text
from pkdp_pipeline.ledger.standing import Standing
from pkdp_pipeline.ledger.terms import Terms
from pkdp_pipeline.model.attacker import AttackerModel

__all__ = ["Charging"]

_NAMED = 10
"""How many other data sets are named."""


class Charging:
    """The charge of one release. Use it only inside `Database.transaction`.

    Parameters
    ----------
    database : Database
    dataset : str
    key : str
    standing : Standing
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
        standing: Standing,
        offer: Callable[[Admission, str], Any],
        terms: Terms,
        attacker: AttackerModel | None = None,
    ) -> None:
        self._database, self._dataset, self._key, self._standing = database, dataset, key, standing
        self._offer, self._terms = offer, terms
        self._told = attacker is None or attacker.total_is_known
        self._journal, self._entries = Journal(database), Entries(database)

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
        latest = self._entries.latest(self._dataset, self._key)
        if latest is not None and latest[2] == "reserved":
            return self._taken_over(latest[0])
        return self._reserved(1 if latest is None else latest[1] + 1)

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

    def _reserved(self, revision: int) -> Reservation:
        certificate = self._offered(self._journal.head(self._dataset))
        sequence = self._journal.append(
            dataset=self._dataset,
            kind="reserved",
            key=self._key,
            revision=revision,
            standing=json_text(self._standing.to_dict()),
            certificate=certificate.to_json(),
            terms=json_text(self._terms.to_dict()),
        )
        self._entries.reserved(
            sequence, dataset=self._dataset, key=self._key, revision=revision, standing=self._standing
        )
        accounts.charge(self._database, self._dataset, self._standing, certificate, self._terms, sequence)
        return Reservation.of(self._entries.read(sequence), certificate)

    def _taken_over(self, left: int) -> Reservation:
        """Finish what another run of the same request has reserved, charged once.

        The release is admitted, certified and held to the budgets anew, as if nothing had been reserved. Where
        terms and certificate are those of the reservation, it stands, and its own run may still publish it;
        otherwise it is given back and the release is charged again.
        """
        entry = self._entries.read(left)
        accounts.withdraw(self._database, self._dataset, left)
        certificate = self._offered(entry.head)
        if (self._terms, certificate.to_json()) == (entry.terms, entry.certificate):
            accounts.charge(self._database, self._dataset, entry.standing, certificate, self._terms, left)
            return Reservation.of(entry, certificate)
        self._journal.append(dataset=self._dataset, kind="given_back", key=self._key, revision=entry.revision)
        self._entries.given_back(left)
        return self._reserved(entry.revision)

    def _offered(self, head: str) -> Any:
        allowed = accounts.admit(self._database, self._dataset, self._standing, self._terms, told=self._told)
        certificate = self._offer(allowed, head).written()
        check_told(allowed, certificate)
        return certificate
