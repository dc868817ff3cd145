"""Entries: what a ledger holds of one release, and of one that is charged and not yet published."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pkdp_pipeline.ledger.rows import Row, State
from pkdp_pipeline.ledger.terms import Terms
from pkdp_pipeline.model.context import Facts

if TYPE_CHECKING:
    from pkdp_pipeline.certificates.release_certificate import ReleaseCertificate
    from pkdp_pipeline.model.evidence import Evidence


@dataclass(frozen=True, slots=True)
class Entry:
    """One release of a data set, frozen.

    Attributes
    ----------
    row : Row
        What admission and adding up look at.
    standing : Facts
        The people, the period, and what is published about them.
    terms : Terms
        The evidence and budgets in force when it was charged.
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

    row: Row
    standing: Facts
    terms: Terms
    certificate: str = field(repr=False)
    release_id: str | None
    content: bytes | None = field(repr=False)
    created_at: str
    head: str
    hash: str
    former: tuple[str, ...] = field(default=(), repr=False)

    @property
    def sequence(self) -> int:
        """Increasing within the ledger: the event that reserved it."""
        return self.row.id

    @property
    def key(self) -> str:
        """What was asked; the same key replays `content`."""
        return self.row.key

    @property
    def revision(self) -> int:
        """1, and one more for each time the same question was published anew."""
        return self.row.revision

    @property
    def dataset(self) -> str:
        """The data set's name."""
        return self.row.dataset

    @property
    def state(self) -> State:
        """Whether it is "reserved", "published" or "given_back".

        A reserved release is charged and not public. It stays so until the same request runs again: nobody can tell
        whether it would have been published.
        """
        return self.row.state

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


@dataclass(frozen=True, slots=True)
class Reservation:
    """What a release is charged before its data are read; made by `Ledger.reserve`.

    Attributes
    ----------
    charged : Entry
        What the ledger holds of it.
    certificate : ReleaseCertificate
        The one that was charged, which the release must carry.
    """

    charged: Entry
    certificate: ReleaseCertificate = field(repr=False)
