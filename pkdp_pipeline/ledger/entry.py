"""Entry: one release as the ledger keeps it, and Reservation: the promise that one may be published."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from pkdp_pipeline.ledger.standing import Standing
from pkdp_pipeline.ledger.terms import Terms

if TYPE_CHECKING:
    from pkdp_pipeline.certificates.release_certificate import ReleaseCertificate
    from pkdp_pipeline.model.evidence import Evidence

__all__ = ["Entry", "Reservation", "State"]

State = Literal["reserved", "published", "given_back"]


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
    standing : Standing
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
    standing: Standing
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
